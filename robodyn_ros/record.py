# SPDX-License-Identifier: Apache-2.0
"""
Results: dataclasses of arrays, numbers, texts, tuples and each other, which do not change.

One mechanism compares them by value, prints them in one line, pickles them, writes them to JSON
and reads them back, and makes tables of them, as text and as HTML. Units stand in the docstring of
the class, in brackets, and nowhere else. JSON is read by hand, and not by cattrs, which structures
these dataclasses too: by default it turns ``"1"``, ``true`` and ``1.5`` into any number asked for
and drops keys it does not know, where a record that was damaged is to be refused with the place of
the damage. Names of links and joints are data: in HTML and LaTeX they are escaped.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from html import escape
from typing import (
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.errors import MalformedData, spelled_out

K = TypeVar('K')
V = TypeVar('V')
R = TypeVar('R', bound='Record')

Sides = Sequence[bool] | np.ndarray[Any, Any]
"""Of each joint: whether it is prismatic."""

_MOST_ENTRIES = 6
_INFINITE = ('inf', '-inf')
_DEVIATION = '_deviation'


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


class Record:
    """
    What a frozen dataclass inherits: ``@dataclass(frozen=True, eq=False, repr=False)``.

    Its arrays are copies that cannot be written, in tuples and mappings, too, and stay so in a
    pickle or a deep copy. Two records are equal where all of their fields are; NaN equals NaN.
    Properties that are cached are no part of it.
    """

    _keys: ClassVar[Mapping[str, str]] = {}
    """Key in JSON of a field or a property; a field that is not named has its own name."""
    _columns: ClassVar[tuple[str, ...]] = ()
    """Fields and properties that tables show; empty: all fields."""
    _headings: ClassVar[Mapping[str, str]] = {}
    """Heading of a field or a property; one that is not named has its name, with spaces."""
    _row_header: ClassVar[tuple[str, ...]] = ()
    """Headings of a record that makes its row of a table by itself, in ``_row``."""

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

    def _row(self) -> Sequence[str]:
        raise NotImplementedError

    # --- JSON ----------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Return fields, and properties that have a key, as JSON holds them."""
        kind = type(self)
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        names += [name for name in kind._keys if name not in names]
        return {_key(kind, name): plain(getattr(self, name)) for name in names}

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the record as JSON text; numbers come back bit by bit."""
        return json.dumps(self.as_dict(), indent=indent, allow_nan=False)

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

    # --- tables --------------------------------------------------------------------------------

    def tables(self, prismatic: Sides = ()) -> Iterable[Table]:
        """
        Return its tables, one below the other.

        Parameters
        ----------
        prismatic : sequence of n bool
            Of each joint: which of two units, as in ``[N m or N]``, a row of the table has.
        """
        own = self._tables()
        return _tables(self, prismatic) if own is None else own

    def _tables(self) -> Iterable[Table] | None:
        """Return tables of its own; None: those of its fields."""
        return [table_of([self])] if self._row_header else None

    def as_text(self, prismatic: Sides = ()) -> str:
        """Return its tables as text; ``prismatic`` as for ``tables``."""
        return '\n\n'.join(table.text() for table in self.tables(prismatic))

    def _repr_html_(self) -> str:
        return ''.join(table.html() for table in self.tables())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


class Rows(tuple[R, ...]):
    """A tuple of records that make the rows of one table; ``str`` has a line for each."""

    def tables(self) -> Iterable[Table]:
        """Return the one table."""
        return [table_of(self)]

    def _repr_html_(self) -> str:
        return table_of(self).html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        return '\n'.join(map(str, self))


def plain(value: Any) -> Any:
    """
    Return a value as JSON holds it, all the way down.

    Records and mappings become dictionaries, arrays and tuples lists; NaN is null, what is not
    known, and an infinity, which JSON lacks, a text.
    """
    if isinstance(value, Record):
        return value.as_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return [[plain(key), plain(item)] for key, item in value.items()]
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _key(kind: Any, name: str) -> str:
    return getattr(kind, '_keys', {}).get(name, name)


def _derived(kind: Any) -> set[str]:
    """Return the keys of properties, which are written and not read."""
    names = {field.name for field in fields(kind)}
    return {key for name, key in getattr(kind, '_keys', {}).items() if name not in names}


def _restored(kind: Any, value: Any, where: str) -> Any:
    """Return ``value``, as JSON gave it, as the annotated type ``kind``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind == ArrayLike or isinstance(kind, type) and issubclass(kind, np.ndarray):
        return _restored_array(value, where)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        *others, last = [each for each in arguments if each is not type(None)]
        for each in others:
            with suppress(MalformedData):
                return _restored(each, value, where)
        return _restored(last, value, where)
    if kind is Any:
        if isinstance(value, list):
            return tuple(_restored(Any, item, where) for item in value)
        return float(value) if value in _INFINITE else value
    if origin in (dict, ReadOnlyMapping, Mapping):
        if arguments[0] is not str and isinstance(value, list):
            pairs = _restored(tuple[tuple[arguments], ...], value, where)  # type: ignore[valid-type]
            return dict(pairs)
        if not isinstance(value, dict):
            raise MalformedData(where, value, 'an object')
        return {n: _restored(arguments[1], item, f'{where}.{n}') for n, item in value.items()}
    if origin is Sequence:
        return _restored(tuple[arguments[0], ...], value, where)  # type: ignore[valid-type]
    if origin is np.ndarray:
        return _restored_array(value, where)
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
        return tuple(
            _restored(argument, item, f'{where}[{k}]')
            for k, (argument, item) in enumerate(zip(arguments, value))
        )
    if is_dataclass(kind):
        keys = {field.name: _key(kind, field.name) for field in fields(kind)}
        there = set(value) if isinstance(value, dict) else set()
        if not isinstance(value, dict) or there - _derived(kind) != set(keys.values()):
            raise MalformedData(where, value, f'an object of {", ".join(keys.values())}')
        hints = get_type_hints(kind)
        make: Any = kind
        return make(**{n: _restored(hints[n], value[k], f'{where}.{k}') for n, k in keys.items()})
    if kind is float and value is None:
        return math.nan
    if kind is float and value in _INFINITE:
        return float(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise MalformedData(where, value, kind.__name__)
    return value


def _restored_array(value: Any, where: str) -> np.ndarray[Any, Any]:
    """Return numbers or truth values as an array; null is NaN."""
    if not isinstance(value, list):
        raise MalformedData(where, value, 'a list')

    def flat(items: list[Any]) -> Iterator[Any]:
        for item in items:
            if isinstance(item, list):
                yield from flat(item)
            else:
                yield item

    kinds = set(map(type, flat(value)))
    kind = float if kinds <= {int, float, str, type(None)} and kinds != {int} else None
    texts = [item for item in flat(value) if isinstance(item, str) and item not in _INFINITE]
    if texts or kind is None and kinds not in ({int}, {bool}):
        raise MalformedData(where, texts[0] if texts else value, 'numbers, or true and false')
    try:
        return np.array(value, dtype=kind)
    except ValueError as error:
        raise MalformedData(where, value, 'rows of one length') from error


# --- values ------------------------------------------------------------------------------------


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


# --- tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table's headings, its rows and what stands above it."""

    header: Sequence[str]
    rows: Iterable[Sequence[str]]
    caption: str = ''

    def html(self) -> str:
        """Return it as HTML; every text in it is escaped, and no dollar in a name is a formula."""
        title = f'<caption>{escape(self.caption)}</caption>' if self.caption else ''
        head = ''.join(f'<th>{escape(cell)}</th>' for cell in self.header)
        body = ''.join(
            f'<tr>{"".join(f"<td>{escape(cell)}</td>" for cell in row)}</tr>' for row in self.rows
        )
        inside = f'{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        return f'<table class="mathjax_ignore tex2jax_ignore">{inside}</table>'

    def text(self) -> str:
        """Return it as text in columns; what a terminal cannot print in a name is escaped."""
        rows = [list(self.header), *map(list, self.rows)]
        if not any(self.header):
            rows = rows[1:]
        rows = [list(map(spelled_out, row)) for row in rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in rows
        ]
        return '\n'.join([f'{self.caption}:', *lines] if self.caption else lines)


def table_of(
    records: Sequence[Record],
    prismatic: Sides = (),
    caption: str = '',
    columns: Sequence[str] = (),
) -> Table:
    """Return a table with a row for each of these records, of one kind, and some more columns."""
    if not records:
        return Table(('none',), [], caption)
    kind = type(records[0])
    if kind._row_header:
        return Table(kind._row_header, [each._row() for each in records], caption)
    shown = [*_shown(kind), *columns]
    names = [name for name in shown if any(_is_known(getattr(x, name)) for x in records)]
    rows = [
        [
            _cell(each, name, bool(prismatic[k]) if len(prismatic) == len(records) else None)
            for name in names
        ]
        for k, each in enumerate(records)
    ]
    return Table([_heading(kind, name) for name in names], rows, caption)


def _tables(record: Record, prismatic: Sides) -> Iterator[Table]:
    """Yield a table of single values, one of what joints have, one of each tuple of records."""
    joints: Sequence[str] = getattr(record, 'joint_names', ())
    sides: list[bool | None] = [bool(x) for x in prismatic] or [None] * len(joints)
    single, columns, inner = [], [], []
    kind = type(record)
    for name in _shown(kind):
        value = getattr(record, name)
        if name in ('joint_names', 'findings') or not _is_known(value):
            continue
        if isinstance(value, np.ndarray) and joints and value.shape == (len(joints),):
            columns.append(name)
        elif isinstance(value, str | float | int):
            single.append([_heading(kind, name), _cell(record, name, None)])
        elif isinstance(value, tuple) and value and isinstance(value[0], Record):
            inner.append(
                table_of(value, prismatic, '' if name == 'joints' else _heading(kind, name))
            )
    if single:
        yield Table(('', ''), single)
    if columns:
        rows = [
            [joint, *(_cell(record, name, side, k) for name in columns)]
            for k, (joint, side) in enumerate(zip(joints, sides))
        ]
        yield Table(['joint', *(_heading(kind, name) for name in columns)], rows)
    yield from inner


def _shown(kind: type[Record]) -> list[str]:
    """Return the names of what tables show; a deviation stands beside its value."""
    names = kind._columns or [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [name for name in names if not name.endswith(_DEVIATION)]


def _heading(kind: type[Record], name: str) -> str:
    return kind._headings.get(name, name.removeprefix('is_').replace('_', ' '))


def _is_known(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind != 'f' or not np.isnan(value).all()
    return value is not None and value != '' and not (isinstance(value, float) and value != value)


def _cell(record: Record, name: str, is_prismatic: bool | None, joint: int | None = None) -> str:
    value, deviation = getattr(record, name), getattr(record, name + _DEVIATION, math.nan)
    if joint is not None:
        value = value[joint].item()
        deviation = deviation[joint].item() if isinstance(deviation, np.ndarray) else math.nan
    kind: Any = type(record)
    return quantity(value, units_of(kind).get(name, ''), deviation, is_prismatic)


def quantity(
    value: Any, unit: str = '', deviation: float = math.nan, is_prismatic: bool | None = None
) -> str:
    """
    Return a value with its deviation and its unit, as a table shows it.

    Parameters
    ----------
    value
        A number; a text or a truth value stand as they are.
    unit : str
        As in a docstring: ``'N m or N'`` has one for a revolute and one for a prismatic joint.
    deviation : float
        One standard deviation; NaN where it has none.
    is_prismatic : bool, optional
        Which of two units it has.
    """
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    if value is None or isinstance(value, float) and math.isnan(value):
        return '-'
    if isinstance(value, str):
        return value
    if not isinstance(value, float):
        return str(value)
    if ' or ' in unit and is_prismatic is not None:
        unit = unit.split(' or ')[is_prismatic]
    if 0.0 < deviation < math.inf and math.isfinite(value):
        # Two digits of the deviation, and the value no finer than that.
        places = max(0, 1 - math.floor(math.log10(deviation)))
        size = f'{value:.{places}f} ± {deviation:.{places}f}'
    else:
        size = f'{value:.4g}'
    return f'{size} {unit}' if unit and ' or ' not in unit else size


@cache
def units_of(kind: Any) -> Mapping[str, str]:
    """Return the unit of each attribute: what stands in brackets in the class's docstring."""
    text = (kind.__doc__ or '').partition('Attributes\n')[2]
    entries = re.findall(r'^    ([\w, ]+) : .*((?:\n {8}.*)*)', text, re.MULTILINE)
    return {
        name: unit
        for names, about in entries
        for unit in re.findall(r'\[([^\]\d]+)\]', about)[:1]
        for name in names.split(', ')
    }


# --- formulas ----------------------------------------------------------------------------------


def latex_number(value: float) -> str:
    """Return a number with six digits, powers of ten written out."""
    digits, _, power = f'{value:.6g}'.partition('e')
    return rf'{digits} \cdot 10^{{{int(power)}}}' if power else digits


def latex_symbol(name: str) -> str:
    """Return a symbol such as d_12, c_23(1), q3 or XXR2 with its indices below it."""
    derivative = re.fullmatch(r'd (.+) / d (q\d+)', name)
    if derivative:
        above, below = map(latex_symbol, derivative.groups())
        return rf'\frac{{\partial {above}}}{{\partial {below}}}'
    symbol = re.fullmatch(r'([A-Za-z]+)_?(\d+(?:,\d+)*)(\(\d+\))?', name)
    if symbol is None:
        return latex_text(name)
    letters, index, of = symbol.groups()
    upright = letters if len(letters) == 1 else rf'\mathit{{{letters}}}'
    return f'{upright}_{{{index}}}{of or ""}'


def latex_text(text: str) -> str:
    """Return any text, a link's name, that means nothing to LaTeX but its letters."""
    spelled = {
        '\\': r'\textbackslash{}',
        '^': r'\textasciicircum{}',
        '~': r'\textasciitilde{}',
        **{each: f'\\{each}' for each in '{}$&#%_'},
    }
    shown = (spelled.get(each, each if each.isprintable() else ' ') for each in text)
    return rf'\text{{{"".join(shown)}}}'
