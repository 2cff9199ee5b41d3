# SPDX-License-Identifier: Apache-2.0
"""What a node says to its command line before ROS reads it."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from rclpy.utilities import remove_ros_args

from robodyn_ros.description.source import bytes_of_file
from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.errors import UnreadableSource
from robodyn_ros.ros import graph
from robodyn_ros.ros.parameter_overrides import constraints
from robodyn_ros.ros_parameters import Parameter

WRONG_USE = 2
"""The exit code of a command line that is not understood."""

_ROS_FLAGS = ('-p', '--param', '--params-file', '-r', '--remap', '--log-level', '-e', '--enclave')
_PARAMETER_FLAGS = ('-p', '--param')
# Of values of several types for one parameter rcl keeps the first type of this order, whichever
# was given last.
_ORDER = ('integer', 'double', 'integer[]', 'double[]')
_INTEGER = re.compile(r'[-+]?(0[xX][0-9a-fA-F]+|\d+)')
_WIDTH = 79
_LARGEST_FILE = 2**20  # of parameters [bytes]
_SAMPLE = """
a parameter file is indented by spaces, all parameters of a node alike, and looks so
(config/dynamics_node.yaml is a whole one):
/**:
  ros__parameters:
    NAME: VALUE"""


def exit_code(
    args: Sequence[str] | None,
    name: str,
    about: str,
    parameters: Sequence[Parameter],
    *,
    is_lifecycle: bool = False,
) -> int | None:
    """
    Return the code to end with at once, or None where the node is to run.

    0 after ``--help``, which is printed. ``WRONG_USE`` where something is not understood, which
    is named with its remedy on stderr: options of ROS without ``--ros-args``, what ROS cannot
    parse, and a number that ROS would ignore (``lost_numbers``).
    """
    words = list(sys.argv[1:] if args is None else args)
    for flag, value in _ros_words(words):
        if flag == '--params-file' and value and not os.path.isfile(value):
            # ROS reads it more than once: a pipe would be empty the second time, or block.
            what = 'is not a regular file' if os.path.exists(value) else 'does not exist'
            return _refuse(name, f'parameter file {value!r} {what}')
    try:
        rest = remove_ros_args(words)
    except RuntimeError as error:
        problem = str(error).partition(', at /')[0].strip()
        return _refuse(name, problem + (_SAMPLE if 'params file' in problem else ''))
    if {'-h', '--help'} & set(rest):
        print(help_text(name, about, parameters, is_lifecycle))
        return 0
    for word in rest:
        if word.split('=')[0] in _ROS_FLAGS or ':=' in word:
            line = f'{name} --ros-args {" ".join(w for w in words if w != "--ros-args")}'
            return _refuse(name, f'{word} is read after --ros-args only: {line}')
        return _refuse(name, f'{word!r} is not understood; --help says what is')
    for problem in lost_numbers(words, parameters):
        return _refuse(name, problem)
    return None


def help_text(
    name: str, about: str, parameters: Iterable[Parameter], is_lifecycle: bool = False
) -> str:
    """Return what a node is, how to give it parameters, and which it has."""
    example = f'{name} --ros-args -p urdf_file:=arm.urdf'
    lines = [
        *textwrap.wrap(about, _WIDTH),
        '',
        f'usage: {name} [--help] [--ros-args [-p NAME:=VALUE]... [--params-file FILE]...',
        f'       {" " * len(name)} [-r FROM:=TO]... [--log-level LEVEL]]',
        '',
        f'    {example}',
        f'    ros2 run robodyn_ros {example}',
        '',
        'parameters, with types and defaults:',
    ]
    for parameter in parameters:
        default = f' = {parameter.default_text}' if parameter.default_text else ''
        lines.append(f'  {parameter.name}: {parameter.kind}{default}')
        limits = constraints(parameter, is_lifecycle)
        text = parameter.description + (f' ({limits})' if limits else '')
        lines += textwrap.wrap(text, _WIDTH, initial_indent=' ' * 6, subsequent_indent=' ' * 6)
    return '\n'.join(lines)


def lost_numbers(words: Sequence[str], parameters: Iterable[Parameter]) -> list[str]:
    """
    Return as text which numbers ROS would ignore.

    A parameter that one file gives as 1, and a later one or the command line as 0.5, stays 1: rcl
    holds values of both types, and reads the one of the first type in ``_ORDER``.
    """
    names = {p.name for p in parameters if p.kind in ('double', 'double[]')}
    given: dict[tuple[str, str], list[tuple[str, Any]]] = {}
    for node, name, value in _given(words):
        kind = _kind(value)
        if name in names and kind:
            given.setdefault((node, name), []).append((kind, value))
    result = []
    for (_, name), values in given.items():
        kept = min((kind for kind, _ in values), key=_ORDER.index)
        last, value = values[-1]
        if kept != last:
            first = next(value for kind, value in values if kind == kept)
            result.append(
                f'parameter {name} is given as {_bare(first)}, then as {_bare(value)}; ROS would '
                f'keep the first, as their types differ ({kept}, {last}): write both alike'
            )
    return result


def ignored_files(args: Sequence[str] | None, node_name: str) -> list[str]:
    """
    Return as text which parameter files hold parameters of other nodes only.

    Launch files hand one file to many nodes, so that this is no error; but nothing that the file
    gives applies, and ROS does not say so.

    Parameters
    ----------
    args : sequence of str, optional
        The command line; the process's own where not given.
    node_name : str
        Full name of the node.
    """
    result = []
    for flag, value in _ros_words(sys.argv[1:] if args is None else args):
        if flag != '--params-file':
            continue
        nodes = list(dict.fromkeys(_nodes(_content(value))))
        if nodes and not any(_matches(pattern, node_name) for pattern in nodes):
            own = node_name[1:] if node_name.count('/') == 1 else node_name
            result.append(
                f'parameter file {value!r} is ignored: it has parameters for '
                f'{graph.listed(nodes)}, and this node is {node_name}: write {own} or /** there'
            )
    return result


def _matches(pattern: str, node_name: str) -> bool:
    """Return whether a parameter file's key is for a node, by rcl's rules."""
    parts = pattern.strip('/').split('/')
    wildcards = {'**': r'(/\w+)*', '*': r'/\w+'}
    expression = ''.join(wildcards.get(part, f'/{re.escape(part)}') for part in parts)
    return re.fullmatch(expression, node_name) is not None


def _nodes(tree: Any, prefix: str = '') -> Iterator[str]:
    """Yield the keys that stand above ros__parameters; those of namespaces are joined by /."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        name = f'{prefix}/{key}'.replace('//', '/') if prefix else str(key)
        if isinstance(value, dict):
            if 'ros__parameters' in value:
                yield name
            yield from _nodes({k: v for k, v in value.items() if k != 'ros__parameters'}, name)


def _given(words: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    """Yield node, name and value of each parameter given, in order; numbers are still text."""
    for flag, given in _ros_words(words):
        if flag in _PARAMETER_FLAGS:
            name, _, text = given.partition(':=')
            node, _, name = name.rpartition(':')
            yield node or '/**', name, _loaded(text)
        else:
            for key, value in _flat(_content(given)):
                node, has_parameters, name = key.partition('.ros__parameters.')
                if has_parameters:
                    yield node, name, value


def _ros_words(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag that gives parameters, with its word, in order."""
    is_of_ros, rest = False, iter(words)
    for word in rest:
        if word in ('--ros-args', '--'):
            is_of_ros = word == '--ros-args'
        elif is_of_ros and word in (*_PARAMETER_FLAGS, '--params-file'):
            yield word, next(rest, '')


def _content(path: str) -> Any:
    """Return what a parameter file holds; rcl has read it before, and said what is wrong."""
    try:
        return _loaded(bytes_of_file(Path(path), _LARGEST_FILE, 'parameter file'))
    except UnreadableSource:
        return None


def _flat(tree: Any, prefix: str = '') -> Iterator[tuple[str, Any]]:
    for key, value in tree.items() if isinstance(tree, dict) else ():
        if isinstance(value, dict):
            yield from _flat(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def _loaded(text: bytes | str) -> Any:
    """Return what YAML holds, every scalar as its text."""
    try:
        (document,) = parsed_yaml(text, as_text=True)
    except (yaml.YAMLError, ValueError):
        return None
    return document


def _kind(value: Any) -> str:
    """Return which of ``_ORDER`` a value is, or nothing."""
    if isinstance(value, list):
        kinds = {_kind(entry) for entry in value}
        return 'integer[]' if kinds == {'integer'} else 'double[]' if kinds else ''
    if not isinstance(value, str):
        return ''
    if _INTEGER.fullmatch(value):
        return 'integer'
    try:
        float(value)
    except ValueError:
        return ''
    return 'double'


def _bare(value: Any) -> str:
    return f'[{", ".join(value)}]' if isinstance(value, list) else str(value)


def _refuse(name: str, problem: str) -> int:
    print(f'{name}: {problem}', file=sys.stderr)
    return WRONG_USE
