# SPDX-License-Identifier: Apache-2.0
"""
What rosbags makes of a bag, held to the bag's size.

A few kilobytes decompress to gigabytes, a hundred bytes of YAML expand to more, and a table of
sqlite computes its columns: a bag of either would fill memory or never end.
"""

from __future__ import annotations

import sqlite3
import threading
from bz2 import BZ2Decompressor
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from robodyn_ros.description.yaml import check_yaml
from robodyn_ros.errors import UnreadableSource

SMALL = 2**28
"""That a bag of any size may decompress to [bytes]."""

RATIO = 200
"""That it may decompress to beyond that, times its size."""

_STEP = 2**20  # [bytes]
_TABLES = ('messages', 'topics', 'schema', 'message_definitions')
_one_at_a_time = threading.RLock()  # rosbags' functions are everybody's


@contextmanager
def bounded(path: Path) -> Iterator[None]:
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
    expansion = Expansion(sum(file.stat().st_size for file in files))
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


class Expansion:
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
                'bag', f'over {self._most} bytes once it is decompressed', 'one in proportion'
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

    def __init__(self, expansion: Expansion, module: Any) -> None:
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
                        'bag', f'column {column[1]!r} of {table}, which is computed', 'stored rows'
                    )
