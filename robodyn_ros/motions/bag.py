# SPDX-License-Identifier: Apache-2.0
"""
The joint states of a ROS bag, of ROS 1 or 2, opened by rosbags without ROS.

A few kilobytes may decompress to gigabytes, a hundred bytes of YAML expand to more, and a view of
sqlite has rows without end. So rosbags reads in a process of its own, and what that may take is
held to the bag's size.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.description.child_process import child_command
from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import check_yaml
from robodyn_ros.errors import MalformedData, Phrase, RobodynError, UnreadableSource
from robodyn_ros.motions.motion_samples import MotionSamples

BAG_SUFFIXES = ('.bag', '.db3', '.mcap')
# What a bag may decompress to: so many bytes, and so many times its size beyond.
SMALL, RATIO = 2**28, 200
# What may be computed for it: so long [s], and so long for each of its bytes.
SECONDS, SECONDS_OF_BYTE = 20.0, 1e-5
_TYPE = 'sensor_msgs/msg/JointState'
_NANOSECOND = 1e-9
_LARGEST_METADATA = 2**24  # bytes
_BATCH = 2**20  # bytes of messages that come together
_ROOM = 2**26  # bytes that rosbags takes whatever the bag is


def is_bag(path: Path) -> bool:
    """Return whether a path is that of a bag, a folder or a file, by its name."""
    return path.is_dir() or path.suffix in BAG_SUFFIXES


def motion_of_bag(path: Path, joint_names: Sequence[str], topic: str | None) -> MotionSamples:
    """
    Return the motion of some joints; the first sample is at time zero.

    Drivers may publish a joint state in parts: a sample is taken whenever all joints have been
    heard since the last one. Velocities are the drivers', if all messages have them.

    Parameters
    ----------
    path : Path
        A folder of ROS 2, or a file of either.
    joint_names : sequence of str
    topic : str or None
        None: the only one with joint states.

    Raises
    ------
    UnreadableSource, MalformedData
    """
    with opened_bag(path) as reader:
        samples = list(_samples(reader, joint_names, topic))
    if not samples:
        joints = ', '.join(map(repr, joint_names))
        raise MalformedData(
            'bag', Phrase('no complete joint state'), f'messages that name {joints}'
        )
    stamps, positions, velocities = zip(*samples, strict=True)
    time = np.array([(stamp - stamps[0]) * _NANOSECOND for stamp in stamps])
    later = np.concatenate([[True], np.diff(np.maximum.accumulate(time)) > 0])
    qd = np.array(velocities, dtype=float)[later]
    return MotionSamples.from_samples(
        time[later], np.array(positions)[later], qd if np.isfinite(qd).all() else None
    )


class Connection(NamedTuple):
    """A topic of a bag, and the type of its messages."""

    topic: str
    msgtype: str


@dataclass(frozen=True)
class OpenedBag:
    """
    What is read of a bag.

    The definitions of messages that it brings are not: a joint state is the same in every bag, and
    a definition of a hundred characters can occupy rosbags' parser forever.

    Parameters
    ----------
    connections : sequence of Connection
    messages : callable
        (connections) to tuples of connection, time of receipt [ns] and serialised message.
    deserialize : callable
        (serialised message, type) to the message.
    """

    connections: Sequence[Connection]
    messages: Callable[..., Iterator[tuple[Connection, int, bytes]]]
    deserialize: Callable[[bytes, str], Any]


@contextmanager
def opened_bag(path: Path) -> Iterator[OpenedBag]:
    """
    Give a bag, open.

    Raises
    ------
    UnreadableSource
        No bag, a damaged one, one whose metadata no YAML of ROS is, one that expands to more than
        is in proportion to its size, or rosbags is not installed.
    """
    try:
        from rosbags.typesys import Stores, get_typestore

        if (metadata := path / 'metadata.yaml').is_file():
            check_yaml(bytes_of_file(metadata, _LARGEST_METADATA, 'metadata of the bag'))
        is_of_ros1 = path.suffix == '.bag'
        types = get_typestore(Stores.ROS1_NOETIC if is_of_ros1 else Stores.LATEST)
        deserialize = types.deserialize_ros1 if is_of_ros1 else types.deserialize_cdr
        with _reading(path, 'rosbag1' if is_of_ros1 else 'rosbag2') as reader:
            yield OpenedBag(reader.connections, reader.messages, deserialize)
    except RobodynError:
        raise
    except ImportError as error:
        remedy = f"pip install 'rosbags>=0.11.9' ({error})"
        raise UnreadableSource('bag', str(path), remedy) from error
    except Exception as error:  # a damaged message makes anything of itself
        raise _damaged(path, f'{type(error).__name__}: {error}'.removesuffix(': ')) from error


def _damaged(path: Path, words: str) -> UnreadableSource:
    return UnreadableSource('bag', str(path), f'a whole ROS bag ({words})')


def _samples(
    reader: OpenedBag, joint_names: Sequence[str], topic: str | None
) -> Iterator[tuple[int, list[float], list[float]]]:
    """Yield stamp [ns], positions and velocities, NaN where there are none."""
    offered = sorted({x.topic for x in reader.connections if x.msgtype == _TYPE})
    if topic is None and len(offered) > 1:
        raise MalformedData('bag', offered, 'one topic of joint states: name it')
    if topic is not None and topic not in offered:
        raise MalformedData('topic', topic, f'one with joint states: {offered}')
    connections = [
        x for x in reader.connections if x.topic in offered and topic in (None, x.topic)
    ]
    heard: dict[str, tuple[float, float]] = {}
    for connection, received, raw in reader.messages(connections=connections):
        message = reader.deserialize(raw, connection.msgtype)
        velocities = message.velocity if len(message.velocity) else [np.nan] * len(message.name)
        for name, q, qd in zip(message.name, message.position, velocities):
            if name in joint_names and np.isfinite(q):
                heard[name] = float(q), float(qd)
        if len(heard) == len(joint_names):
            stamp = message.header.stamp
            state = [heard[name] for name in joint_names]
            heard = {}
            time = stamp.sec * 1_000_000_000 + stamp.nanosec or received
            yield time, [q for q, _ in state], [qd for _, qd in state]


# --- rosbags, in a process of its own ------------------------------------------------------------


@contextmanager
def _reading(path: Path, package: str) -> Iterator[_Reader]:
    """Give what a package of rosbags reads of a bag, while its process lives."""
    files = list(path.iterdir()) if path.is_dir() else [path]
    for each in files:
        if each.exists() and not (each.is_file() or each.is_dir()):
            raise UnreadableSource('bag', str(each), 'a file: this is a device or a pipe')
    size = sum(each.stat().st_size for each in files if each.is_file())
    most = SMALL + RATIO * size
    seconds = SECONDS + SECONDS_OF_BYTE * size
    refusal = UnreadableSource(
        f'bag {str(path)!r}',
        Phrase(f'over {most} bytes once it is decompressed, or {seconds:.0f} s to read'),
        'a whole ROS bag, in proportion to its size',
    )
    # Each of the files may be decompressed to one of its own.
    limits = _ROOM + most, most // max(1, len(files)), seconds
    with TemporaryDirectory(prefix='robodyn_bag_', ignore_cleanup_errors=True) as folder:
        given = json.dumps([package, str(path.absolute()), folder, limits, _BATCH])
        with subprocess.Popen(
            child_command(_READ, given),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            try:
                yield _Reader(process, path, most, refusal)
            finally:
                process.kill()


class _Reader:
    """
    What the process sends of a bag.

    Parameters
    ----------
    process : Popen
    path : Path
    most : int
        Bytes that it may send.
    beyond : UnreadableSource
        Raised where they are more, or the process has no memory left or ended.

    Attributes
    ----------
    connections : sequence of Connection

    Raises
    ------
    UnreadableSource
        The bag is damaged, or out of proportion.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], path: Path, most: int, beyond: UnreadableSource
    ) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._requests, self._answers = process.stdin.fileno(), process.stdout
        self._path, self._left, self._beyond = path, most, beyond
        self._numbers = count()
        self.connections = [Connection(*each) for each in self._answer()]

    def messages(
        self, connections: Sequence[Connection] = ()
    ) -> Iterator[tuple[Connection, int, bytes]]:
        """Yield connection, time of receipt [ns] and serialised message; of all, if none given."""
        request = json.dumps([next(self._numbers), connections]).encode() + b'\n'
        while True:
            try:
                os.write(self._requests, request)
            except BrokenPipeError:
                raise self._beyond from None
            batch = self._answer()
            if not batch:
                return
            # All of them at once: another request may come before the last is asked for.
            contents = [self._bytes(size) for _, _, size in batch]
            for (connection, received, _), content in zip(batch, contents, strict=True):
                yield self.connections[connection], received, content

    def _answer(self) -> list[Any]:
        """Return the next line of JSON, which is no error."""
        line = self._answers.readline(self._left + 1)
        self._left -= len(line)
        if not line.endswith(b'\n') or self._left < 0:
            raise self._beyond
        words, answer = json.loads(line)
        if words is None:
            raise self._beyond
        if words:
            raise _damaged(self._path, words)
        return list(answer)

    def _bytes(self, size: int) -> bytes:
        self._left -= size
        content = self._answers.read(size) if self._left >= 0 else b''
        if len(content) < size:
            raise self._beyond
        return content


# Answers are lines of JSON: what is wrong, null where it is a limit, and what was asked for. The
# bytes of messages follow theirs. A thread takes the requests, to end when there are no more.
_READ = """
import errno, queue, shutil, tempfile, threading
from pathlib import Path

package, path, folder, limits, largest = json.loads(sys.argv[1])
requests = queue.SimpleQueue()


def take_requests():
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def answer(words, what):
    output.write(json.dumps([words, what]).encode() + b'\\n')


def is_limit(error):
    return error is not None and (
        # Of Python and of apsw, whose IOError is, as EFBIG, of the limit on files.
        type(error).__name__ in ('MemoryError', 'NoMemError', 'TooBigError', 'IOError')
        or getattr(error, 'errno', None) == errno.EFBIG
        or is_limit(error.__cause__ or error.__context__)
    )


threading.Thread(target=take_requests, daemon=True).start()
tempfile.tempdir = folder
try:
    from rosbags import rosbag1, rosbag2

    limit(*limits)
    with {'rosbag1': rosbag1, 'rosbag2': rosbag2}[package].Reader(Path(path)) as reader:
        kinds = list(dict.fromkeys((x.topic, x.msgtype) for x in reader.connections))
        answer('', kinds)
        running = {}
        while True:
            output.flush()
            number, wanted = requests.get()
            if number not in running:
                wanted = [x for x in reader.connections if [x.topic, x.msgtype] in wanted]
                running[number] = reader.messages(connections=wanted)
            heads, contents, size = [], [], 0
            for connection, received, content in running[number]:
                kind = kinds.index((connection.topic, connection.msgtype))
                heads.append((kind, received, len(content)))
                contents.append(content)
                size += 64 + len(content)
                if size > largest:
                    break
            answer('', heads)
            output.writelines(contents)
except BaseException as error:
    words = f'{type(error).__name__}: {error}'.removesuffix(': ')
    answer(None if is_limit(error) else words[:2000], [])
    output.flush()
"""
