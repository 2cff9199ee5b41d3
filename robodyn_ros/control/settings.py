# SPDX-License-Identifier: Apache-2.0
"""What a user sets of the control stack: the parameters of the dynamics node as one record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import make_dataclass
from typing import Any

from robodyn_ros import ros_parameters
from robodyn_ros.errors import UnknownOption

PARAMETERS = ros_parameters.parameters_of('dynamics_node')
_BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}


def _field(name: str) -> str:
    return name.replace('.', '_')


_Fields: Any = make_dataclass(
    '_Fields', [(_field(p.name), Any, p.default) for p in PARAMETERS], frozen=True
)


class ControlSettings(_Fields):
    """
    The parameters of the dynamics node, each with its default; checked by ``checked``.

    ``ros_parameters/`` says of each what it means and what is allowed; the parameter
    ``terms.gravity`` is the field ``terms_gravity``. A tuple of numbers holds one value for every
    joint, or one for each in the order of ``joints``; an empty one means that none is given.
    """


def checked(values: Mapping[str, Any]) -> ControlSettings:
    """
    Return the settings that the parameters' values are, each checked.

    Parameters
    ----------
    values : mapping
        By the names of parameters; those that are not given have their defaults.

    Raises
    ------
    UnknownOption, InvalidNumber, WrongShape
        The parameter, its value and what is allowed.
    """
    given = (_BY_NAME[name] for name in values)
    settings = ros_parameters.checked(given, values)
    return ControlSettings(**{_field(name): value for name, value in settings.items()})


def check_live(names: Iterable[str]) -> None:
    """
    Check that a configured node may change these parameters.

    Raises
    ------
    UnknownOption
        One takes effect only at configure.
    """
    for name in names:
        parameter = _BY_NAME.get(name)
        if parameter is not None and parameter.is_read_only:
            meanwhile = parameter.constraints
            raise UnknownOption(
                f'parameter {name}',
                'changed while configured',
                'changes before configure' + (meanwhile and f'; {meanwhile}'),
            )
