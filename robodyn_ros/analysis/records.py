# SPDX-License-Identifier: Apache-2.0
"""
Plain records: dataclasses of numbers, texts, tuples and each other, to JSON and back.

By hand, and not by cattrs, which structures these dataclasses too: by default it turns ``"1"``,
``true`` and ``1.5`` into any number asked for and drops keys it does not know, where a record that
was damaged is to be refused with the place of the damage. Hooks that forbid all that, one for each
kind of value, would take the place of what cattrs saves.
"""

from __future__ import annotations

import json
import types
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from robodyn_ros.errors import MalformedData

R = TypeVar('R', bound='Record')


class Record:
    """What every result of the analysis is: a frozen dataclass that JSON can hold."""

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the record as JSON text; numbers come back bit by bit."""
        return json.dumps(plain(self), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls: type[R], text: str) -> R:
        """
        Return the record that ``to_json`` wrote.

        Raises
        ------
        MalformedData
            The text is no JSON, or not of this record's fields.
        """
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:  # a number of too many digits, too deep
            raise MalformedData(f'{cls.__name__} as JSON', text, 'JSON text') from error
        return _restored(cls, value, cls.__name__)


def plain(value: Any) -> Any:
    """Return records as dictionaries and tuples as lists, all the way down."""
    if isinstance(value, Record) and is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value


def _restored(kind: Any, value: Any, where: str) -> Any:
    """Return ``value``, as JSON gave it, as the annotated type ``kind``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (kind,) = [argument for argument in arguments if argument is not type(None)]
        return _restored(kind, value, where)
    if origin is Literal:
        if value not in arguments:
            raise MalformedData(where, value, ', '.join(map(repr, arguments)))
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise MalformedData(where, value, 'a list')
        if arguments[-1] is Ellipsis:
            arguments = arguments[:1] * len(value)
        if len(arguments) != len(value):
            raise MalformedData(where, value, f'{len(arguments)} items')
        pairs = enumerate(zip(arguments, value))
        return tuple(_restored(argument, item, f'{where}[{k}]') for k, (argument, item) in pairs)
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        if not isinstance(value, dict) or set(value) != set(names):
            raise MalformedData(where, value, f'an object of {", ".join(names)}')
        hints = get_type_hints(kind)
        make: Any = kind
        return make(**{n: _restored(hints[n], value[n], f'{where}.{n}') for n in names})
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise MalformedData(where, value, kind.__name__)
    return value
