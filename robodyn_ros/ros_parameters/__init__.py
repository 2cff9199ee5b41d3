# SPDX-License-Identifier: Apache-2.0
"""
The nodes' parameters, read from the YAML files beside this one.

Each file is in the format of generate_parameter_library: the first document has one root, below it
the parameters. A second document, which the generator does not read, says what a node takes from
other files: all of one, or some by name (``terms``: all below it).

What the format does not say is the same for all:

- A number is finite. It is at most 1e9 where no upper bound is given.
- ``default_value: []`` means that nothing is given.
- An array of numbers without ``fixed_size<>`` holds one value for all joints, or one for each: its
  length is checked where the robot is known, as is a permutation of its joints.
- ``robodyn::not_zero`` is a validator of ours.
- A scalar is taken for an array, a whole number for a double: ``ros/parameter_overrides.py``.

To add one: write it into the node's file, or into one that nodes share; use it; run ``python
docs/write_parameter_table.py``. What the dynamics node has is a field of ``ControlSettings``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.errors import InvalidArgument

FOLDER = Path(__file__).parent
AT_START = 'read when the node starts'
"""The additional constraint of a read-only parameter that no lifecycle transition reads again."""

_KEYS = set('type default_value description read_only additional_constraints validation'.split())
_NAMES_OF_TYPES = {'int': 'integer', 'double_array': 'double[]', 'string_array': 'string[]'}
_LARGEST = 1e9
_SMALLEST = 1e-6  # a lower bound that only says: positive
# Name of a validator, to the lowest and the highest number that its arguments allow.
_LIMITS: dict[str, Callable[..., tuple[float, float]]] = {
    'bounds': lambda low, high: (low, high),
    'element_bounds': lambda low, high: (low, high),
    'gt': lambda low: (math.nextafter(low, math.inf), _LARGEST),
    'gt_eq': lambda low: (low, _LARGEST),
    'lower_element_bounds': lambda low: (low, _LARGEST),
}
_RULES = {*_LIMITS, 'one_of', 'fixed_size', 'not_empty', 'unique', 'robodyn::not_zero'}


@dataclass(frozen=True)
class Parameter:
    """
    A parameter of a node.

    Parameters
    ----------
    name : str
        With the groups that it is in: ``terms.gravity``.
    kind : str
        Its type as ROS writes it: bool, integer, string, double, double[] or string[].
    default : bool, int, float, str or tuple
        An empty tuple where nothing is given.
    description : str
    is_read_only : bool
        A plain node never lets it change; ``dynamics_node`` only while it has no robot, and never
        one that is ``AT_START``.
    constraints : str
        What else is to be said about its values or changes.
    rules : mapping
        Arguments of each validator, by its name without ``<>``.
    file : str
        The file that it is in, without ``.yaml``: the node's own, or one that is shared.
    """

    name: str
    kind: str
    default: Any
    description: str
    is_read_only: bool = False
    constraints: str = ''
    rules: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    file: str = ''

    @property
    def is_array(self) -> bool:
        """Whether it has any number of values."""
        return self.kind.endswith('[]')

    @property
    def default_text(self) -> str:
        """The default as YAML has it; empty: nothing is given."""
        if self.is_array:
            return f'[{", ".join(map(str, self.default))}]' if self.default else ''
        return str(self.default).lower() if self.kind == 'bool' else str(self.default)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that exist; empty: any."""
        return tuple(*self.rules.get('one_of', ((),)))

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Smallest and largest number, also of each number of an array; None: no number."""
        if not self.kind.startswith('double'):
            return None
        for name in self.rules.keys() & _LIMITS.keys():
            return _LIMITS[name](*self.rules[name])
        return -_LARGEST, _LARGEST

    @property
    def has_range(self) -> bool:
        """Whether its bounds are a range as ROS describes and checks them."""
        return not self.is_array and bool(self.rules.keys() & {'bounds', 'gt_eq'})

    @property
    def allowed(self) -> str:
        """What values it may have, as text; empty: any of its type."""
        if self.choices:
            return 'one of ' + ', '.join(self.choices)
        if self.bounds is None:
            return 'not empty' if 'not_empty' in self.rules else ''
        low, high = self.bounds
        if high < _LARGEST:
            words = f'{low:g} to {high:g}'
        elif low == -_LARGEST:
            words = 'finite, not 0' if 'robodyn::not_zero' in self.rules else 'finite'
        else:
            words = 'positive' if 0.0 < low <= _SMALLEST else f'at least {low:g}'
        return f'each {words}' if self.is_array else words

    @property
    def change(self) -> str:
        """When ``dynamics_node`` lets it change, as text."""
        if not self.is_read_only:
            return 'at any time'
        return f'never: {AT_START}' if self.constraints == AT_START else 'before configure'

    def checked(self, value: Any) -> Any:
        """
        Return a value of its type, an array as a tuple.

        Raises
        ------
        InvalidArgument
            The parameter, its value and what is allowed.
        """
        element = f'parameter {self.name}'
        if self.is_array:
            value = tuple(entry for entry in value or () if entry != '')
        size = self.rules.get('fixed_size', (0,))[0]
        if size and len(value) != size and value != self.default:
            raise InvalidArgument(element, list(value), f'{size} numbers')
        if 'not_empty' in self.rules and not value:
            raise InvalidArgument(element, value, self.allowed)
        if self.choices and value not in self.choices:
            raise InvalidArgument(element, value, ', '.join(self.choices))
        if self.bounds is not None:
            low, high = self.bounds
            for number in value if self.is_array else (value,):
                is_forbidden = number == 0.0 and 'robodyn::not_zero' in self.rules
                if not low <= number <= high or is_forbidden:
                    raise InvalidArgument(element, number, self.allowed)
        return value


@lru_cache
def parameters_of(node: str) -> tuple[Parameter, ...]:
    """Return a node's parameters: those that it shares, then its own."""
    return parameters_in(FOLDER / f'{node}.yaml')


def parameters_in(path: Path) -> tuple[Parameter, ...]:
    """
    Return the parameters in a file, after those that it shares.

    Raises
    ------
    ValueError
        A key or a validator that the reader does not know, or nothing of a shared name.
    """
    own, *more = parsed_yaml(path.read_bytes())
    result: list[Parameter] = []
    for file, names in (more[0]['shared'] if more else {}).items():
        theirs = parameters_of(file)
        for name in [''] if names == 'all' else names:
            chosen = [p for p in theirs if not name or f'{p.name}.'.startswith(f'{name}.')]
            if not chosen:
                raise ValueError(f'{path.name}: {file} has no parameter {name}')
            result += chosen
    ((_, tree),) = own.items()
    return (*result, *_parameters(tree, path.stem))


def checked(parameters: Iterable[Parameter], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters' values by name, each checked by ``Parameter.checked``."""
    return {p.name: p.checked(values[p.name]) for p in parameters}


def _parameters(tree: Mapping[str, Any], file: str, prefix: str = '') -> Iterator[Parameter]:
    for name, entry in tree.items():
        name = prefix + name
        if not isinstance(entry.get('type'), str):
            yield from _parameters(entry, file, f'{name}.')
            continue
        rules = {
            rule.removesuffix('<>'): arguments or ()
            for rule, arguments in entry.get('validation', {}).items()
        }
        unknown = (entry.keys() - _KEYS) | (rules.keys() - _RULES)
        if unknown:
            raise ValueError(f'{file}: parameter {name} has {", ".join(unknown)}')
        default = entry['default_value']
        yield Parameter(
            name,
            _NAMES_OF_TYPES.get(entry['type'], entry['type']),
            tuple(default) if isinstance(default, list) else default,
            entry['description'],
            entry.get('read_only', False),
            entry.get('additional_constraints', ''),
            rules,
            file,
        )
