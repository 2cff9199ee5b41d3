# SPDX-License-Identifier: Apache-2.0
"""
Cache of compiled code on disk, private to the user; damaged entries are refused.

Loading an entry runs it. So the directory and its files belong to the user and are open to nobody
else (modes 0700 and 0600), which is checked at every reading. Each entry begins with a digest of
its name and its content: an entry that was cut short, damaged or moved to another name is not
loaded. An entry is read once, checked, and loaded from the memory that was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from robodyn_ros.errors import Phrase, RobodynError

_DIGEST_SIZE = hashlib.sha256().digest_size


class RefusedCacheEntry(RobodynError):
    """A file of the cache is not the user's own, or is damaged; it is not loaded."""


def cache_directory() -> Path:
    """
    Return the directory, made where it is missing.

    ``ROBODYN_CACHE_DIR``, else ``robodyn_ros`` under ``XDG_CACHE_HOME`` or ``~/.cache``.

    Raises
    ------
    RefusedCacheEntry
        It is a link, belongs to someone else, or others may write there; or the user has no home.
    OSError
        It cannot be made.
    """
    path = Path(os.environ.get('ROBODYN_CACHE_DIR') or _root() / 'robodyn_ros')
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    _check_private(path, path.lstat(), stat.S_ISDIR)
    return path


def stored(key: str) -> bytes | None:
    """
    Return the content stored under a key, or None.

    Raises
    ------
    RefusedCacheEntry
        The directory or the entry is not the user's own, or the content is not what was stored.
    OSError
        It cannot be read.
    """
    directory = cache_directory()
    try:
        entry = _read_private(directory / key)
    except FileNotFoundError:
        return None
    digest, content = entry[:_DIGEST_SIZE], entry[_DIGEST_SIZE:]
    if digest != _digest(key, content):
        raise RefusedCacheEntry(
            f'cache entry {directory / key}',
            Phrase('its content has changed'),
            'what was stored there',
        )
    return content


def store(key: str, content: bytes) -> None:
    """
    Store a content under a key (a hexadecimal digest), at once or not at all.

    Raises
    ------
    RefusedCacheEntry, OSError
    """
    directory = cache_directory()
    _write(directory / key, _digest(key, content) + content)


def remove(key: str) -> None:
    """
    Remove what is stored under a key, if anything is.

    Raises
    ------
    RefusedCacheEntry, OSError
    """
    with contextlib.suppress(FileNotFoundError):
        (cache_directory() / key).unlink()


def _root() -> Path:
    """Return the directory that the cache's stands in, where none is named."""
    named = os.environ.get('XDG_CACHE_HOME')
    if named:
        return Path(named)
    try:
        return Path.home() / '.cache'
    except (RuntimeError, KeyError) as error:  # a user whom the machine does not know
        raise RefusedCacheEntry(
            'cache directory', Phrase(str(error)), 'HOME, XDG_CACHE_HOME or ROBODYN_CACHE_DIR'
        ) from error


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + b'\0' + content).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, mode 0600."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.write(content)
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def _read_private(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RefusedCacheEntry(
            f'cache entry {path}', Phrase(str(error)), 'a plain file'
        ) from error
    with os.fdopen(descriptor, 'rb') as file:
        _check_private(path, os.fstat(descriptor), stat.S_ISREG)
        return file.read()


def _check_private(path: Path, status: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    allowed = 'the own user, with access for nobody else'
    if not is_kind(status.st_mode):
        raise RefusedCacheEntry(f'cache path {path}', stat.filemode(status.st_mode), allowed)
    if status.st_uid != os.geteuid():
        raise RefusedCacheEntry(f'owner of {path}', status.st_uid, allowed)
    if status.st_mode & 0o077:
        raise RefusedCacheEntry(f'mode of {path}', stat.filemode(status.st_mode), allowed)
