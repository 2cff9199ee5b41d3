# SPDX-License-Identifier: Apache-2.0
"""A small bag that would fill memory, or never end, is refused by name before it does."""

from __future__ import annotations

import os
import resource
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
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
# Reads a bag, and prints what it is refused for, and the most memory [bytes] that was taken.
CHILD = """
import re, resource, sys
from pathlib import Path
from robodyn_ros.errors import RobodynError
from robodyn_ros.motions import read_motion
try:
    read_motion(Path(sys.argv[1]), ('a', 'b'))
except RobodynError as error:
    print(error)
# Its own without that of the process which it was forked from.
own = int(re.search(r'VmHWM:\\s*(\\d+) kB', Path('/proc/self/status').read_text())[1])
print(1024 * max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
"""


def refusal(path: Path) -> str:
    """Return why a process refuses a bag, with less than 600 MB."""
    child = subprocess.run(
        [sys.executable, '-c', CHILD, str(path)], capture_output=True, text=True, check=True
    )
    words, memory = child.stdout.splitlines()
    assert int(memory) < 600e6
    return words


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


def test_quality_of_service_that_expands_is_refused(tmp_path):
    lines = ['x0: &x0 {' + ', '.join(f'k{j}: 0' for j in range(10)) + '}']
    lines += [f'x{k}: &x{k} [{", ".join(10 * [f"*x{k - 1}"])}]' for k in range(1, 9)]
    qos = string(b'offered_qos_profiles') + string('\n'.join(lines).encode())
    schema = record(3, b'\1\0' + string(TYPE.encode()) + string(b'ros2msg') + string(b''))
    channel = record(4, b'\1\0\1\0' + string(b'/js') + string(b'cdr') + string(qos))
    path = tmp_path / 'qos.mcap'
    path.write_bytes(mcap(schema, channel))
    assert 'a whole ROS bag' in refusal(path)


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
    with pytest.raises(UnreadableSource, match=r"qos\.db3'.*a whole ROS bag"):
        read_motion(path, JOINTS)


@pytest.mark.parametrize('is_compressed', [False, True], ids=['plain', 'compressed'])
def test_rows_that_are_computed_are_refused(tmp_path, is_compressed):
    path = database(tmp_path / 'computed.db3', 'data blob as (zeroblob(900000000))', '')
    if is_compressed:
        file, path = path, bag_of('sqlite3, whole files', tmp_path)
        (path / 'bag.db3.zstd').write_bytes(zstd.compress(file.read_bytes()))
    assert 'once it is decompressed' in refusal(path)


@pytest.mark.longer
def test_rows_without_end_are_refused(tmp_path, monkeypatch):
    path = database(tmp_path / 'endless.db3', 'data blob', '')
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            create table schema(schema_version integer);
            insert into schema values(4);
            create view message_definitions as
                with recursive r(k) as (select 1 union all select k + 1 from r)
                select 1 as id, '' as topic_type, '' as encoding, '' as encoded_message_definition,
                '' as type_description_hash from r where k < 0;
        """)
    monkeypatch.setattr(bag, 'SECONDS', 1.0)
    with pytest.raises(UnreadableSource, match='or 1 s to read'):
        read_motion(path, JOINTS)


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


def test_messages_that_are_small_one_by_one_are_counted(tmp_path, monkeypatch):
    states = {'/js': STATES['/js'] * 2}
    path = ros2_bag(tmp_path / 'bag', states, 'MCAP', 'MESSAGE', frame_id=400_000 * 'x')
    monkeypatch.setattr(bag, 'RATIO', 0)
    monkeypatch.setattr(bag, 'SMALL', 50_000_000)
    assert len(read_motion(path, JOINTS).time) == 50  # the other half has their stamps
    monkeypatch.setattr(bag, 'SMALL', 30_000_000)
    with pytest.raises(UnreadableSource, match='over 30000000 bytes once it is decompressed'):
        read_motion(path, JOINTS)


def test_two_bags_are_read_side_by_side(tmp_path):
    paths = [tmp_path / 'one', tmp_path / 'two']
    for path in paths:
        path.mkdir()
    one = bag_of('mcap, chunks', paths[0])
    two = bag_of('sqlite3, whole files', paths[1])
    with opened_bag(one) as first, opened_bag(two) as second:
        counts = [len(list(bag.messages(connections=bag.connections))) for bag in (first, second)]
    assert counts == [50, 50]


def test_topics_are_read_one_after_another_each_from_its_beginning(tmp_path):
    topics = {'/one': STATES['/js'], '/two': STATES['/js'][:7]}
    with opened_bag(ros2_bag(tmp_path / 'bag', topics, 'SQLITE3')) as opened:
        one, two = sorted(opened.connections)
        begun = opened.messages(connections=[one])
        first = next(begun)
        assert len(list(opened.messages(connections=[two]))) == 7
        whole = list(opened.messages(connections=[one]))
        assert [first, *begun] == whole
        assert len(list(opened.messages())) == 57


# --- its process -------------------------------------------------------------------------------


def test_a_pipe_in_a_bag_is_refused(tmp_path):
    folder = bag_of('mcap, chunks', tmp_path)
    (folder / 'bag.mcap').unlink()
    os.mkfifo(folder / 'bag.mcap')
    with pytest.raises(UnreadableSource, match='a pipe'):
        read_motion(folder, JOINTS)


def test_nothing_is_imported_from_the_folder_that_a_bag_lies_in(tmp_path, monkeypatch):
    path = bag_of('mcap, chunks', tmp_path)
    for name in ('rosbags', 'queue', 'sitecustomize', 'lz4'):
        (tmp_path / f'{name}.py').write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    for here in ('', '.', str(tmp_path)):
        monkeypatch.setattr(sys, 'path', [here, *sys.path])
        np.testing.assert_array_equal(read_motion(path, JOINTS).q, POSITIONS)
    assert not (tmp_path / 'ran').exists()


def test_this_process_keeps_its_limits_and_no_process_is_left(tmp_path):
    kinds = resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU
    before, others = [resource.getrlimit(kind) for kind in kinds], children(os.getpid())
    with opened_bag(bag_of('mcap, chunks', tmp_path)) as opened:
        next(opened.messages())
        (child,) = children(os.getpid()) - others
    assert [resource.getrlimit(kind) for kind in kinds] == before
    assert not Path(f'/proc/{child}').exists()


# Opens a bag, says so, and waits.
WAITING = """
import json, sys, time
from pathlib import Path
from robodyn_ros.motions.bag import opened_bag
with opened_bag(Path(sys.argv[1])) as opened:
    print(flush=True)
    time.sleep(600)
"""


def test_a_process_that_is_killed_leaves_neither_the_reading_one_nor_its_files(tmp_path):
    path = bag_of('sqlite3, whole files', tmp_path)
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, '-c', WAITING, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, 'TMPDIR': str(temporary)},
    ) as parent:
        parent.stdout.readline()
        (child,) = children(parent.pid)
        assert list(temporary.rglob('bag.db3'))
        parent.kill()
    while Path(f'/proc/{child}').exists() and not is_zombie(child):
        time.sleep(0.01)
    assert not list(temporary.iterdir())


def children(process: int) -> set[int]:
    """Return the processes that a process has begun."""
    tasks = Path(f'/proc/{process}/task').iterdir()
    return {int(each) for task in tasks for each in (task / 'children').read_text().split()}


def is_zombie(process: int) -> bool:
    """Return whether a process has ended, though nobody has asked how."""
    try:
        return ') Z ' in Path(f'/proc/{process}/stat').read_text()
    except OSError:
        return True
