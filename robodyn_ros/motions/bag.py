# SPDX-License-Identifier: Apache-2.0
"""
The joint states of a ROS bag, of ROS 1 or 2, opened by rosbags without ROS.

What rosbags makes of a bag is held to the bag's size: a few kilobytes decompress to gigabytes, a
hundred bytes of YAML expand to more, and a table of sqlite computes its columns; a bag of either
would fill memory or never end.
"""

from __future__ import annotations

import sqlite3
import threading
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import check_yaml
from robodyn_ros.errors import MalformedData, Phrase, RobodynError, UnreadableSource
from robodyn_ros.motions.motion_samples import MotionSamples

BAG_SUFFIXES = ('.bag', '.db3', '.mcap')
# What a bag may decompress to: so many bytes, and so many times its size beyond.
SMALL, RATIO = 2**28, 200
_TYPE = 'sensor_msgs/msg/JointState'
_NANOSECOND = 1e-9
_LARGEST_METADATA = 2**24  # bytes
_STEP = 2**20  # bytes
_TABLES = ('messages', 'topics', 'schema', 'message_definitions')
_one_at_a_time = threading.RLock()  # rosbags' functions are everybody's


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


@dataclass(frozen=True)
class OpenedBag:
    """
    What is read of a bag.

    The definitions of messages that it brings are not: a joint state is the same in every bag, and
    a definition of a hundred characters can occupy rosbags' parser forever.

    Parameters
    ----------
    connections : sequence of rosbags' Connection
    messages : callable
        (connections) to tuples of connection, time of receipt [ns] and serialised message.
    deserialize : callable
        (serialised message, type) to the message.
    """

    connections: Sequence[Any]
    messages: Callable[..., Iterator[tuple[Any, int, bytes]]]
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
        from rosbags import rosbag1, rosbag2
        from rosbags.typesys import Stores, get_typestore

        if (metadata := path / 'metadata.yaml').is_file():
            check_yaml(bytes_of_file(metadata, _LARGEST_METADATA, 'metadata of the bag'))
        is_of_ros1 = path.suffix == '.bag'
        types = get_typestore(Stores.ROS1_NOETIC if is_of_ros1 else Stores.LATEST)
        deserialize = types.deserialize_ros1 if is_of_ros1 else types.deserialize_cdr
        with _bounded(path), (rosbag1 if is_of_ros1 else rosbag2).Reader(path) as reader:
            yield OpenedBag(reader.connections, reader.messages, deserialize)
    except RobodynError:
        raise
    except ImportError as error:  # not installed, or older than what it is _bounded by
        remedy = f"pip install 'rosbags>=0.11.9' ({error})"
        raise UnreadableSource('bag', str(path), remedy) from error
    except Exception as error:  # a damaged file makes anything of itself, MemoryError included
        words = f'{type(error).__name__}: {error}'.removesuffix(': ')
        raise UnreadableSource('bag', str(path), f'a whole ROS bag ({words})') from error


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


# --- rosbags, held to the bag's size -------------------------------------------------------------


@contextmanager
def _bounded(path: Path) -> Iterator[None]:
    """
    Have rosbags decompress no more than is in proportion, and no YAML that grows, while within.

    Parameters
    ----------
    path : Path
        The bag's folder or file.

    Raises
    ------
    UnreadableSource
        It decompresses to more than ``SMALL`` and ``RATIO`` times its size, or computes rows.
    yaml.YAMLError
        A topic's quality of service is YAML that ``check_yaml`` refuses.
    """
    from rosbags.rosbag1 import reader as of_ros1
    from rosbags.rosbag2 import reader, storage_mcap, storage_sqlite3
    from rosbags.rosbag2.storage_mcap import zstd  # which stays

    files = [each for each in path.rglob('*') if each.is_file()] if path.is_dir() else [path]
    expansion = _Expansion(sum(file.stat().st_size for file in files))
    lz4 = import_module('lz4.frame').LZ4FrameDecompressor  # a requirement of rosbags
    parse_qos, open_database = storage_mcap.parse_qos, storage_sqlite3.Sqlite3Reader.open

    def checked_qos(given: Any) -> Any:
        if isinstance(given, str):
            check_yaml(given)
        return parse_qos(given)

    def open_checked(database: Any) -> None:
        _check_columns(Path(database.path))
        open_database(database)

    mcap = {'': None, 'lz4': lz4, 'zstd': zstd.ZstdDecompressor}
    ros1 = {'none': None, 'bz2': BZ2Decompressor, 'lz4': lz4}
    with _one_at_a_time, ExitStack() as stack:
        for owner, name, value in (
            (storage_mcap, 'DECOMPRESSORS', {k: expansion.of(made) for k, made in mcap.items()}),
            (storage_mcap, 'parse_qos', checked_qos),
            (storage_sqlite3, 'parse_qos', checked_qos),
            (storage_sqlite3.Sqlite3Reader, 'open', open_checked),
            (of_ros1, 'decompressors', {k: expansion.of(made) for k, made in ros1.items()}),
            (reader, 'zstd', _Zstd(expansion, zstd)),
        ):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, value)
        yield


class _Expansion:
    """
    Counts what a bag decompresses to, and refuses what is beyond proportion.

    Parameters
    ----------
    size : int
        Of the bag [bytes].
    """

    def __init__(self, size: int) -> None:
        self._most = self._left = SMALL + RATIO * size

    def check(self, size: int) -> None:
        """
        Look whether so many bytes more are in proportion.

        Raises
        ------
        UnreadableSource
        """
        if size > self._left:
            raise UnreadableSource(
                'bag',
                Phrase(f'over {self._most} bytes once it is decompressed'),
                'one in proportion',
            )

    def count(self, size: int) -> None:
        """Take so many bytes from what is left, which ``check`` allows."""
        self.check(size)
        self._left -= size

    def of(self, made: Callable[[], Any] | None) -> Callable[..., bytes]:
        """
        Return a function that decompresses data whole, of a declared size if one is given.

        Parameters
        ----------
        made : callable or None
            Returns a decompressor as those of ``bz2`` are; None: nothing is compressed.
        """

        def decompressed(data: bytes, declared: int = 0) -> bytes:
            if made is None:
                self.count(len(data))
                return data
            self.check(declared)
            parts = []
            while data:
                decompressor, step = made(), _STEP + 4 * len(data)
                while not decompressor.eof:
                    part = decompressor.decompress(data, step)
                    if not part and decompressor.needs_input and not decompressor.eof:
                        raise EOFError('compressed data end too soon')
                    self.count(len(part))
                    parts.append(part)
                    data = b''
                data = decompressor.unused_data or b''
            return b''.join(parts)

        return decompressed


class _Zstd(SimpleNamespace):
    """The two functions of rosbags' zstd that a folder is read by, counted."""

    def __init__(self, expansion: _Expansion, module: Any) -> None:
        super().__init__(decompress=expansion.of(module.ZstdDecompressor))
        self._expansion = expansion
        self._module = module

    @contextmanager
    def open(self, file: Any, mode: str) -> Iterator[SimpleNamespace]:
        """Give a file that is read decompressed."""
        with self._module.open(file, mode) as opened:

            def read(size: int) -> bytes:
                part = opened.read(size)
                self._expansion.count(len(part))
                return part

            yield SimpleNamespace(read=read)


def _check_columns(file: Path) -> None:
    """Refuse a database whose rows are computed as they are read, and may be of any size."""
    with closing(sqlite3.connect(f'{file.absolute().as_uri()}?immutable=1', uri=True)) as database:
        for table in _TABLES:
            for column in database.execute(f'PRAGMA table_xinfo({table})'):
                if column[-1]:
                    raise UnreadableSource(
                        'bag',
                        Phrase(f'column {column[1]!r} of {table}, which is computed'),
                        'stored rows',
                    )
