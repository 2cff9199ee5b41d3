# SPDX-License-Identifier: Apache-2.0
"""A small bag that would fill memory, or never end, is refused by name before it does."""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robodyn_ros.errors import UnreadableSource
from robodyn_ros.motions import bag, read_motion
from robodyn_ros.motions.bag import opened_bag

rosbag1 = pytest.importorskip('rosbags.rosbag1', reason='rosbags is not installed')
from rosbags import rosbag2  # noqa: E402
from rosbags.rosbag2.reader import zstd  # noqa: E402
from rosbags.typesys import Stores, get_typestore  # noqa: E402

TYPE = 'sensor_msgs/msg/JointState'
JOINTS = ('a', 'b')
POSITIONS = np.linspace(0, 1, 50)[:, None] + [0.0, 0.5]
GIGABYTES = 3 * 2**30
MAGIC = b'\x89MCAP0\r\n'
# Reads a bag with 400 MB to spare, and prints what it is refused for.
CHILD = """
import resource, sys
from pathlib import Path
from rosbags import rosbag1, rosbag2, typesys
from robodyn_ros.errors import RobodynError
from robodyn_ros.motions import read_motion
now = 1024 * int(next(x.split()[1] for x in open('/proc/self/status') if x[:6] == 'VmSize'))
resource.setrlimit(resource.RLIMIT_AS, 2 * (now + 400_000_000,))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
try:
    read_motion(Path(sys.argv[1]), ('a', 'b'))
except RobodynError as error:
    print(error)
"""


def refusal(path: Path) -> str:
    """Return why a child process, whose memory is bounded, refuses a bag."""
    child = subprocess.run(
        [sys.executable, '-c', CHILD, str(path)], capture_output=True, text=True, check=True
    )
    return child.stdout


def record(opcode: int, body: bytes) -> bytes:
    return bytes([opcode]) + struct.pack('<Q', len(body)) + body


def string(text: bytes) -> bytes:
    return struct.pack('<I', len(text)) + text


def mcap(*records: bytes) -> bytes:
    """Return an mcap file without an index."""
    head, foot = record(1, string(b'ros2') + string(b'')), record(2, bytes(20))
    return MAGIC + head + b''.join(records) + foot + MAGIC


def chunk(compression: bytes, data: bytes, declared: int) -> bytes:
    head = struct.pack('<QQQI', 0, 1, declared, 0)
    return record(6, head + string(compression) + struct.pack('<Q', len(data)) + data)


def zeros_by_zstd(size: int) -> bytes:
    compressor, block = zstd.ZstdCompressor(level=1), bytes(2**24)
    parts = [compressor.compress(block) for _ in range(size // len(block))]
    return b''.join([*parts, compressor.flush()])


@pytest.mark.parametrize('declared', [1000, GIGABYTES], ids=['little', 'all of it'])
def test_chunk_that_expands_to_gigabytes_is_refused_before_it_does(tmp_path, declared):
    path = tmp_path / 'bomb.mcap'
    path.write_bytes(mcap(chunk(b'zstd', zeros_by_zstd(GIGABYTES), declared)))
    assert path.stat().st_size < 500_000
    assert 'once it is decompressed' in refusal(path)


def test_quality_of_service_that_expands_is_refused_unread(tmp_path):
    lines = ['x0: &x0 [' + ', '.join(10 * ['0']) + ']']
    lines += [f'x{k}: &x{k} [{", ".join(10 * [f"*x{k - 1}"])}]' for k in range(1, 9)]
    qos = string(b'offered_qos_profiles') + string('\n'.join(lines).encode())
    schema = record(3, b'\1\0' + string(TYPE.encode()) + string(b'ros2msg') + string(b''))
    channel = record(4, b'\1\0\1\0' + string(b'/js') + string(b'cdr') + string(qos))
    path = tmp_path / 'qos.mcap'
    path.write_bytes(mcap(schema, channel))
    assert 'an alias, *x0, in line 2' in refusal(path)


def test_definition_of_messages_is_not_parsed(tmp_path):
    # rosbags' parser takes twice as long for each pair of parentheses.
    definition = f'module a {{ const long x = {40 * "("}1{40 * ")"}; }};'
    kind, language = string(TYPE.encode()), string(b'ros2idl')
    schema = record(3, b'\1\0' + kind + language + string(definition.encode()))
    channel = record(4, b'\1\0\1\0' + string(b'/js') + string(b'cdr') + string(b''))
    path = tmp_path / 'definition.mcap'
    path.write_bytes(mcap(schema, channel))
    assert 'no complete joint state' in refusal(path)


def test_quality_of_service_that_expands_is_refused_in_a_database(tmp_path):
    path = database(tmp_path / 'qos.db3', 'data blob', '[&a [0], *a]')
    with pytest.raises(UnreadableSource, match=r'an alias, \*a'):
        read_motion(path, JOINTS)


def test_rows_that_are_computed_are_refused(tmp_path):
    path = database(tmp_path / 'computed.db3', 'data blob as (zeroblob(900000000))', '')
    with pytest.raises(UnreadableSource, match="column 'data' of messages, which is computed"):
        read_motion(path, JOINTS)


def test_rows_that_are_computed_are_refused_where_the_database_is_compressed(tmp_path):
    path = database(tmp_path / 'computed.db3', 'data blob as (zeroblob(900000000))', '')
    folder = ros2_bag(tmp_path, 'SQLITE3', 'FILE')
    (folder / 'bag.db3.zstd').write_bytes(zstd.compress(path.read_bytes()))
    with pytest.raises(UnreadableSource, match="column 'data' of messages, which is computed"):
        read_motion(folder, JOINTS)


def database(path: Path, data: str, qos: str) -> Path:
    connection = sqlite3.connect(path)
    connection.execute(
        'create table topics(id integer primary key, name, type, serialization_format, '
        'offered_qos_profiles)'
    )
    topic = (1, '/js', TYPE, 'cdr', qos)
    connection.execute('insert into topics values(?, ?, ?, ?, ?)', topic)
    connection.execute(f'create table messages(id integer, topic_id, timestamp, {data})')
    connection.execute('insert into messages(topic_id, timestamp) values(1, 1)')
    connection.commit()
    connection.close()
    return path


# --- compressed bags of every kind -------------------------------------------------------------


def written(writer, types, names: str, serialized: str) -> None:
    """Write joint states, and text that shrinks to nothing, into a bag."""
    state, header, stamp = (
        types.types[name] for name in (TYPE, 'std_msgs/msg/Header', 'builtin_interfaces/msg/Time')
    )
    with writer:
        connection = writer.add_connection('/js', TYPE, typestore=types)
        for k, position in enumerate(POSITIONS):
            extra = {'seq': k} if names == 'ros1' else {}
            message = state(
                header=header(stamp=stamp(sec=k + 1, nanosec=0), frame_id='x' * 2000, **extra),
                name=list(JOINTS),
                position=position,
                velocity=np.array([]),
                effort=np.array([]),
            )
            data = getattr(types, serialized)(message, TYPE)
            writer.write(connection, 10**9 * (k + 1), data)


def ros2_bag(folder: Path, storage: str, mode: str) -> Path:
    path = folder / 'bag'
    writer = rosbag2.Writer(path, version=9, storage_plugin=rosbag2.StoragePlugin[storage])
    writer.set_compression(rosbag2.CompressionMode[mode], rosbag2.CompressionFormat.ZSTD)
    written(writer, get_typestore(Stores.ROS2_JAZZY), 'ros2', 'serialize_cdr')
    return path


def ros1_bag(folder: Path, compression: str) -> Path:
    path = folder / 'made.bag'
    writer = rosbag1.Writer(path)
    writer.set_compression(writer.CompressionFormat[compression])
    written(writer, get_typestore(Stores.ROS1_NOETIC), 'ros1', 'serialize_ros1')
    return path


KINDS = {
    'mcap, chunks': lambda folder: ros2_bag(folder, 'MCAP', 'STORAGE'),
    'mcap, messages': lambda folder: ros2_bag(folder, 'MCAP', 'MESSAGE'),
    'sqlite3, whole files': lambda folder: ros2_bag(folder, 'SQLITE3', 'FILE'),
    'sqlite3, messages': lambda folder: ros2_bag(folder, 'SQLITE3', 'MESSAGE'),
    'ROS 1, bz2': lambda folder: ros1_bag(folder, 'BZ2'),
    'ROS 1, lz4': lambda folder: ros1_bag(folder, 'LZ4'),
}


@pytest.mark.parametrize('kind', KINDS)
def test_compressed_bag_is_read_as_ever_and_refused_beyond_proportion(tmp_path, monkeypatch, kind):
    path = KINDS[kind](tmp_path)
    np.testing.assert_array_equal(read_motion(path, JOINTS).q, POSITIONS)
    monkeypatch.setattr(bag, 'SMALL', 1000)
    monkeypatch.setattr(bag, 'RATIO', 0)
    with pytest.raises(UnreadableSource, match='once it is decompressed'):
        read_motion(path, JOINTS)


def test_rosbags_is_as_it_was_afterwards(tmp_path):
    from rosbags.rosbag1 import reader as of_ros1
    from rosbags.rosbag2 import reader, storage_mcap

    before = (storage_mcap.DECOMPRESSORS, storage_mcap.parse_qos, reader.zstd)
    decompressors = of_ros1.decompressors
    for path in (ros1_bag(tmp_path, 'LZ4'), tmp_path / 'none.mcap'):
        try:
            read_motion(path, JOINTS)
        except UnreadableSource:
            pass
    assert (storage_mcap.DECOMPRESSORS, storage_mcap.parse_qos, reader.zstd) == before
    assert of_ros1.decompressors is decompressors


def test_two_bags_are_read_side_by_side(tmp_path):
    paths = [tmp_path / 'one', tmp_path / 'two']
    for path in paths:
        path.mkdir()
    one, two = ros2_bag(paths[0], 'MCAP', 'STORAGE'), ros2_bag(paths[1], 'SQLITE3', 'FILE')
    with opened_bag(one) as first, opened_bag(two) as second:
        counts = [len(list(bag.messages(connections=bag.connections))) for bag in (first, second)]
    assert counts == [50, 50]
