# SPDX-License-Identifier: Apache-2.0
"""
Where a URDF comes from: a file that the caller names, or text; to bytes, of a bounded number.

Text may come from a topic, so ``bytes_of_text`` opens nothing.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path

from robodyn_ros.description.child_process import child_command
from robodyn_ros.errors import MalformedUrdf, Phrase, UnreadableSource

LARGEST_SOURCE = 16 * 2**20
"""Bytes of XML that are read at the most."""

XACRO = '.xacro'
"""Suffix of the files that are expanded where the caller names them, and nowhere else."""

LONGEST_EXPANSION = 30.0
"""Time within which xacro must expand a file [s]."""

LARGEST_EXPANSION = 4 * 2**30
"""Bytes of memory that xacro may take for it."""

_DESCRIPTIONS = 'robot_descriptions'
_DESCRIPTION_NAME = re.compile('[a-z0-9_]+_description')
_BEFORE_TEXT = re.compile(r'[\s\ufeff]*')


def is_xml_text(source: str) -> bool:
    """Return whether a source is XML text, and no path."""
    return _BEFORE_TEXT.sub('', source, count=1).startswith('<')


def bytes_of_text(text: str) -> bytes:
    """
    Return XML that is given as text, in UTF-8; opens no file whatever the text says.

    Raises
    ------
    UnreadableSource
        No str, or larger than ``LARGEST_SOURCE`` bytes.
    MalformedUrdf
        It does not begin with ``<``.
    """
    if not isinstance(text, str):
        raise UnreadableSource('URDF text', type(text).__name__, 'a str of XML')
    if not is_xml_text(text):
        raise MalformedUrdf(
            'URDF text', text, "XML, which begins with '<': no path is opened here"
        )
    # The str is Unicode whatever encoding its declaration names.
    text = re.sub(
        r'^(<\?xml[^>]*?)\s+encoding\s*=\s*("[^"]*"|\'[^\']*\')',
        r'\1',
        _BEFORE_TEXT.sub('', text, count=1),
        count=1,
    )
    try:
        content = text.encode('utf-8')
    except UnicodeEncodeError as error:
        raise MalformedUrdf('XML text', Phrase(str(error)), 'text without surrogates') from error
    return _bounded(content, 'XML text')


def bytes_of_source(source: str | Path) -> bytes:
    """
    Return the XML of a file that the caller names, its macros expanded, or of XML text.

    A file whose name ends in ``.xacro`` is code: xacro evaluates the expressions in it and in what
    it includes. It runs in a process of its own, for at most ``LONGEST_EXPANSION``.

    A str, and never a Path, may also name a robot of the package robot_descriptions, where that
    is installed and no file has this name: the package may fetch it from the internet, so that
    what a node or a command reads is given as a Path.

    Raises
    ------
    UnreadableSource
        No such file, not a regular file, or larger than ``LARGEST_SOURCE`` bytes.
    MalformedUrdf
        A macro cannot be expanded.
    """
    if isinstance(source, str) and is_xml_text(source):
        return bytes_of_text(source)
    if not isinstance(source, (str, Path)):
        raise UnreadableSource('source', type(source).__name__, 'a path or XML text')
    path = user_path(source)
    if isinstance(source, str) and not path.exists() and _names_a_description(source):
        path = _path_of_description(source)
    if path.suffix == XACRO:
        _check_file(path, source)
        return _expanded_xacro(path)
    return plain_bytes(path, source)


def plain_bytes(path: Path, named: str | Path | None = None) -> bytes:
    """
    Return what is in a file of XML, expanding nothing: for files that other files name.

    Parameters
    ----------
    path : Path
    named : str or Path, optional
        How the caller named it, for messages.

    Raises
    ------
    UnreadableSource
        No such file, not a regular file, or larger than ``LARGEST_SOURCE`` bytes.
    """
    named = path if named is None else named
    _check_file(path, named)
    try:
        with path.open('rb') as file:
            return _bounded(file.read(LARGEST_SOURCE + 1), f'file {str(path)!r}')
    except (OSError, ValueError) as error:
        raise _unreadable(named, error) from error


def _check_file(path: Path, named: str | Path) -> None:
    """Refuse what is no regular file."""
    try:
        if not path.exists():
            remedy = 'the path of a URDF, or XML text'
            if isinstance(named, str) and _DESCRIPTION_NAME.fullmatch(named):
                remedy += (
                    f'; as a robot of the package {_DESCRIPTIONS}: pip install {_DESCRIPTIONS}'
                )
            raise UnreadableSource('no such file', str(named), remedy)
        if not path.is_file():
            what = 'a folder' if path.is_dir() else 'no regular file'
            raise UnreadableSource(
                f'source {str(named)!r}', Phrase(what), 'a file with a URDF or an MJCF'
            )
    except (OSError, ValueError) as error:
        raise _unreadable(named, error) from error


def _unreadable(named: str | Path, error: Exception) -> UnreadableSource:
    return UnreadableSource('source', str(named), f'a readable file ({error})')


def user_path(path: str | Path) -> Path:
    """
    Return a path that the caller names, with ``~`` as in a shell: for parameters no shell does it.

    Where there is no such user, it stays as it is.
    """
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # ValueError: a zero byte, which no user's name has
        return Path(path)


def refuse_device(path: Path, element: str) -> None:
    """
    Refuse a device, which may have no end; a pipe is read.

    Raises
    ------
    UnreadableSource
    """
    if path.is_char_device() or path.is_block_device():
        raise UnreadableSource(element, str(path), 'a file: this is a device')


def bytes_of_file(path: Path, most: int, element: str) -> bytes:
    """
    Return a file that the caller names, if it has no more bytes than ``most``.

    Raises
    ------
    UnreadableSource
        There is no such file, or it is too large; ``element`` is what it was meant for.
    """
    try:
        with user_path(path).open('rb') as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise UnreadableSource(element, str(path), f'a file ({error})') from error
    if len(content) > most:
        raise UnreadableSource(element, Phrase(f'over {most} bytes'), 'a smaller file')
    return content


def _bounded(content: bytes, element: str) -> bytes:
    if len(content) > LARGEST_SOURCE:
        raise UnreadableSource(
            element, Phrase(f'over {LARGEST_SOURCE} bytes'), f'at most {LARGEST_SOURCE}'
        )
    return content


def _names_a_description(source: str) -> bool:
    found = _DESCRIPTION_NAME.fullmatch(source)
    return found is not None and importlib.util.find_spec(_DESCRIPTIONS) is not None


def _path_of_description(name: str) -> Path:
    """Return the URDF of a robot of the package robot_descriptions, which may download it."""
    element = f'robot of the package {_DESCRIPTIONS}'
    if importlib.util.find_spec(f'{_DESCRIPTIONS}.{name}') is None:
        raise UnreadableSource(element, name, 'a name of its list, or the path of a URDF')
    try:
        module = importlib.import_module(f'{_DESCRIPTIONS}.{name}')
        if hasattr(module, 'XACRO_PATH') and not hasattr(module, 'URDF_PATH'):
            # What its own loaders expand macros by.
            loaders = importlib.import_module(f'{_DESCRIPTIONS}._xacro')
            return Path(loaders.get_urdf_path(module))
    except Exception as error:  # git, a network, xacro: anything can come
        raise UnreadableSource(element, name, f'one that it can fetch ({error})') from error
    if not hasattr(module, 'URDF_PATH'):
        raise UnreadableSource(element, name, 'one with a URDF_PATH: this has no URDF')
    return Path(module.URDF_PATH)


def _expanded_xacro(path: Path) -> bytes:
    """Expand a xacro file, which is code: only for files the caller names."""
    if importlib.util.find_spec('xacro') is None:
        raise UnreadableSource(
            'source', str(path), 'a URDF; for .xacro files, install the xacro package'
        )
    element = f'file {str(path)!r}'
    command = child_command(_EXPAND, str(path.absolute()))
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=messages
        )
        try:
            failed = process.wait(LONGEST_EXPANSION)
        except subprocess.TimeoutExpired:
            raise MalformedUrdf(
                element,
                Phrase(f'not expanded within {LONGEST_EXPANSION:g} s'),
                'a file that xacro expands sooner',
            ) from None
        finally:
            process.kill()
            process.wait()
        if failed:
            messages.seek(0)
            said = messages.read(LARGEST_SOURCE).decode(errors='replace').strip().splitlines()
            raise MalformedUrdf(
                element,
                Phrase(said[-1] if said else f'xacro ended with {failed}'),
                'a file xacro expands',
            )
        output.seek(0)
        return _bounded(output.read(LARGEST_SOURCE + 1), element)


# What a file prints goes to the messages. The output is the XML alone, of a bounded size.
_EXPAND = f"""
limit({LARGEST_EXPANSION}, {LARGEST_SOURCE + 1}, {LONGEST_EXPANSION})
import xacro
try:
    content = xacro.process_file(sys.argv[1]).toxml(encoding='utf-8')
    output.write(content[:{LARGEST_SOURCE + 1}])
    output.flush()
except BaseException as error:
    print(' '.join(str(error).split()) or type(error).__name__, file=sys.stderr)
    os._exit(1)
os._exit(0)
"""
