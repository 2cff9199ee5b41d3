# SPDX-License-Identifier: Apache-2.0
"""YAML from untrusted sources: a small text costs little, and nothing is executed."""

from __future__ import annotations

import re
from typing import Any

import yaml

_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_TEXT_LOADER = getattr(yaml, 'CBaseLoader', yaml.BaseLoader)
_DEEPEST = 20  # the loader recurses until its stack is full
_LONGEST_NUMBER = 400  # characters; the time of one to the base of 60 goes with their square
_NUMBER = re.compile('[-+.:_0-9eE]*')


def parsed_yaml(content: bytes | str, *, as_text: bool = False) -> list[Any]:
    """
    Return the documents of a YAML text: mappings, lists and scalars.

    Parameters
    ----------
    content : bytes or str
    as_text : bool
        Whether every scalar stays the text that it is.

    Raises
    ------
    yaml.YAMLError
        No YAML, or what ``check_yaml`` refuses.
    """
    check_yaml(content)
    try:
        return list(yaml.load_all(content, Loader=_TEXT_LOADER if as_text else _LOADER))
    except ValueError as error:  # a date that is none, an integer of too many digits
        raise yaml.YAMLError(str(error)) from error


def check_yaml(content: bytes | str) -> None:
    """
    Look at a YAML text without making anything of it.

    An alias stands for as much as its anchor does, and a merge key copies it: a few hundred bytes
    of both would fill memory.

    Raises
    ------
    yaml.YAMLError
        No YAML, an alias, too deep, or a number that is too long.
    """
    depth = 0
    try:
        for event in yaml.parse(content, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise yaml.YAMLError(f'nested more than {_DEEPEST} deep')
            if isinstance(event, yaml.AliasEvent):
                where = event.start_mark.line + 1
                raise yaml.YAMLError(f'an alias, *{event.anchor}, in line {where}')
            if isinstance(event, yaml.ScalarEvent) and len(event.value) > _LONGEST_NUMBER:
                if _NUMBER.fullmatch(event.value):
                    raise yaml.YAMLError(f'a number of {len(event.value)} characters')
    except UnicodeDecodeError as error:
        raise yaml.YAMLError(str(error)) from error
    except yaml.MarkedYAMLError as error:
        if 'nesting depth' in str(error):  # libyaml's own limit, which it meets as it looks ahead
            raise yaml.YAMLError(f'nested more than {_DEEPEST} deep') from error
        raise
