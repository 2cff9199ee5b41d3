# SPDX-License-Identifier: Apache-2.0
"""Records of arrays that do not change: compared by value, printed in one line, pickled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

K = TypeVar('K')
V = TypeVar('V')

_MOST_ENTRIES = 6


class ReadOnlyMapping(Mapping[K, V]):
    """A dict that cannot be written; unlike ``types.MappingProxyType`` it can be pickled."""

    def __init__(self, entries: Mapping[K, V]) -> None:
        self._entries = {key: read_only(value) for key, value in entries.items()}

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[type[ReadOnlyMapping[K, V]], tuple[dict[K, V]]]:
        return type(self), (self._entries,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and _equal(self, other)

    def __hash__(self) -> int:
        return hash(frozenset((key, _hashable(value)) for key, value in self.items()))

    def __repr__(self) -> str:
        return repr(self._entries)


class ArrayRecord:
    """
    What a frozen dataclass of arrays inherits: ``@dataclass(frozen=True, eq=False, repr=False)``.

    Its arrays are copies that cannot be written, in tuples and mappings, too, and stay so in a
    pickle or a deep copy. Two records are equal where all of their fields are; NaN equals NaN.
    Properties that are cached are no part of it.
    """

    def __post_init__(self) -> None:
        for name, value in self._fields():
            object.__setattr__(self, name, read_only(value))

    def _fields(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(
            _equal(value, getattr(other, name)) for name, value in self._fields()
        )

    def __hash__(self) -> int:
        return hash((type(self), *(_hashable(value) for _, value in self._fields())))

    def __repr__(self) -> str:
        shown = ', '.join(f'{name}={_in_one_line(value)}' for name, value in self._fields())
        return f'{type(self).__name__}({shown})'

    def __getstate__(self) -> dict[str, Any]:
        return dict(self._fields())

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, read_only(value))


def read_only(value: Any) -> Any:
    """Return a copy of an array that cannot be written; tuples and mappings of such, too."""
    if isinstance(value, np.ndarray):
        if value.flags.writeable or value.base is not None:
            value = value.copy()
            value.setflags(write=False)
        return value
    if type(value) is tuple:
        return tuple(read_only(entry) for entry in value)
    if isinstance(value, Mapping) and not isinstance(value, ReadOnlyMapping):
        return ReadOnlyMapping(value)
    return value


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b, equal_nan='f' == a.dtype.kind == b.dtype.kind)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_equal(a[key], b[key]) for key in a)
    if type(a) is tuple and type(b) is tuple:
        return len(a) == len(b) and all(map(_equal, a, b))
    both_nan = isinstance(a, float) and isinstance(b, float) and a != a and b != b
    return both_nan or type(a) is type(b) and bool(a == b)


def _hashable(value: Any) -> Any:
    """Return something with a hash that is the same for equal values."""
    if isinstance(value, np.ndarray):
        return value.shape, tuple(_hashable(entry) for entry in value.ravel().tolist())
    if type(value) is tuple:
        return tuple(_hashable(entry) for entry in value)
    return 'nan' if isinstance(value, float) and value != value else value


def _in_one_line(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size <= _MOST_ENTRIES and value.dtype != object:
            return ' '.join(np.array2string(value, precision=6, separator=', ').split())
        return f'<{"×".join(map(str, value.shape))} {value.dtype}>'
    if isinstance(value, (tuple, Mapping)) and len(value) > _MOST_ENTRIES:
        return f'<{len(value)} entries>'
    if type(value) is tuple:
        return f'({", ".join(map(_in_one_line, value))})'
    if isinstance(value, Mapping):
        return f'{{{", ".join(f"{key!r}: {_in_one_line(value[key])}" for key in value)}}}'
    return f'{value:g}' if isinstance(value, float) else repr(value)
