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
from bags import TYPE, ros1_bag, ros2_bag

from robodyn_ros.errors import UnreadableSource
from robodyn_ros.motions import bag, read_motion
from robodyn_ros.motions.bag import opened_bag

pytest.importorskip('rosbags', reason='rosbags is not installed')
from rosbags.rosbag2.reader import zstd

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


@pytest.mark.longer
@pytest.mark.repeats(check=1)
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
    folder = bag_of('sqlite3, whole files', tmp_path)
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


# Joint states, with text that shrinks to nothing.
STATES = {'/js': [(k + 1, JOINTS, position, [], []) for k, position in enumerate(POSITIONS)]}
KINDS = {
    'mcap, chunks': (ros2_bag, 'MCAP', 'STORAGE'),
    'mcap, messages': (ros2_bag, 'MCAP', 'MESSAGE'),
    'sqlite3, whole files': (ros2_bag, 'SQLITE3', 'FILE'),
    'sqlite3, messages': (ros2_bag, 'SQLITE3', 'MESSAGE'),
    'ROS 1, bz2': (ros1_bag, 'BZ2'),
    'ROS 1, lz4': (ros1_bag, 'LZ4'),
}


def bag_of(kind: str, folder: Path) -> Path:
    write, *how = KINDS[kind]
    name = 'made.bag' if write is ros1_bag else 'bag'
    return write(folder / name, STATES, *how, frame_id='x' * 2000)


@pytest.mark.parametrize('kind', KINDS)
def test_compressed_bag_is_read_as_ever_and_refused_beyond_proportion(tmp_path, monkeypatch, kind):
    path = bag_of(kind, tmp_path)
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
    for path in (bag_of('ROS 1, lz4', tmp_path), tmp_path / 'none.mcap'):
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
    one = bag_of('mcap, chunks', paths[0])
    two = bag_of('sqlite3, whole files', paths[1])
    with opened_bag(one) as first, opened_bag(two) as second:
        counts = [len(list(bag.messages(connections=bag.connections))) for bag in (first, second)]
    assert counts == [50, 50]
