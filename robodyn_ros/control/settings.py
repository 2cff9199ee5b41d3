# SPDX-License-Identifier: Apache-2.0
"""
Settings of the control stack: the parameters of the dynamics node as one record.

Parameters with a value for each joint are in the order of the commands, which the parameter
``joints`` gives; in arrays they are in chain order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import make_dataclass
from typing import Any, Literal, get_args

import numpy as np

from robodyn_ros import ros_parameters
from robodyn_ros.errors import InvalidArgument, NoSuchName, Phrase
from robodyn_ros.model import RobotModel, force_unit

PARAMETERS = ros_parameters.parameters_of('dynamics_node')
_PIPELINE = ros_parameters.parameters_of('command_pipeline')
_BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}

Action = Literal['hold_gravity', 'zero', 'silent']
ACTIONS: tuple[Action, ...] = get_args(Action)

ContactAction = Literal['report', 'stop', 'float']
CONTACT_ACTIONS: tuple[ContactAction, ...] = get_args(ContactAction)


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
    Return the settings of the parameters' values, each checked.

    Parameters
    ----------
    values : mapping
        By the names of parameters; those that are not given have their defaults.

    Raises
    ------
    InvalidArgument
        The parameter, its value and what is allowed.
    """
    given = (_BY_NAME[name] for name in values)
    settings = ros_parameters.checked(given, values)
    return ControlSettings(**{_field(name): value for name, value in settings.items()})


def chain_ends(
    base_link: str, tip_link: str, tip_links: Sequence[str]
) -> dict[Literal['base_link', 'tip_link'], Any]:
    """
    Return the ends of a chain or a tree, as ``RobotModel.from_urdf`` takes them.

    Raises
    ------
    InvalidArgument
        Of several tips ``tip_link`` is none.
    """
    if tip_links and tip_link and tip_link not in tip_links:
        raise InvalidArgument(
            'parameter tip_link', tip_link, f'empty, or one of tip_links: {", ".join(tip_links)}'
        )
    return {'base_link': base_link or None, 'tip_link': list(tip_links) or tip_link or None}


def check_live(names: Iterable[str]) -> None:
    """
    Check that a configured node may change these parameters.

    Raises
    ------
    InvalidArgument
        One takes effect only at configure.
    """
    for name in names:
        parameter = _BY_NAME.get(name)
        if parameter is not None and parameter.is_read_only:
            meanwhile = parameter.constraints
            raise InvalidArgument(
                f'parameter {name}',
                Phrase('changed while configured'),
                'changes before configure' + (meanwhile and f'; {meanwhile}'),
            )


def command_order(model: RobotModel, joints: Sequence[str]) -> np.ndarray:
    """
    Return the chain's index of each of the joints, shape (n,); none named: chain order.

    Raises
    ------
    NoSuchName
        The joints are no permutation of the chain's.
    """
    if not joints:
        return np.arange(model.n)
    if sorted(joints) != sorted(model.joint_names):
        raise NoSuchName(
            'parameter joints', list(joints), 'each of these once: ' + ', '.join(model.joint_names)
        )
    return np.array([model.joint_names.index(name) for name in joints])


def each_joint(model: RobotModel, settings: ControlSettings, name: str) -> np.ndarray:
    """
    Return a parameter in chain order, shape (n,): one value for all, or one for each joint.

    Raises
    ------
    InvalidArgument
        There are neither one nor n values.
    """
    return in_chain_order(model, settings, name, getattr(settings, name))


def in_chain_order(
    model: RobotModel, settings: ControlSettings, name: str, given: Sequence[float]
) -> np.ndarray:
    """Return the values of a parameter that is no setting, as ``each_joint`` does."""
    if len(given) not in (1, model.n):
        raise InvalidArgument(
            f'parameter {name}',
            Phrase(f'{len(given)} values'),
            f'1 or {model.n}, one for each joint',
        )
    values = np.empty(model.n)
    values[command_order(model, settings.joints)] = given
    return values


_ArmFields: Any = make_dataclass(
    '_ArmFields',
    [
        *((_field(p.name), Any, p.default) for p in _PIPELINE),
        ('is_braked_by_damping', bool, False),
    ],
    frozen=True,
    eq=False,
)


class ArmSettings(_ArmFields):
    """
    The parameters of the command pipeline for an arm, as the core takes them by their names.

    Those with a value for each joint are arrays of shape (n,) in chain order. Effort limits are
    those that may be used; a rate of the torque, a following error and an acceleration that have
    no limit are infinite.

    Parameters
    ----------
    is_braked_by_damping : bool
        Whether nothing else brakes the arm: then damping acts whenever it moves, obeys the braking
        acceleration, and shrinks as one vector where the effort limits would clip it.
    """

    @property
    def stiffness(self) -> str:
        """The stiffness of the springs in the mode, as text with units; empty: there are none."""

        def text(values: np.ndarray) -> str:
            return ' '.join(f'{value:g}' for value in values)

        if self.mode == 'joint_impedance':
            return f'joints {text(self.impedance_stiffness)} [N m/rad or N/m]'
        if self.mode == 'cartesian_impedance':
            along, about = (text(part) for part in np.split(self.impedance_tip_stiffness, 2))
            return f'tip {along} N/m, {about} N m/rad, axes of the {self.impedance_frame}'
        return ''


def arm_settings(model: RobotModel, settings: ControlSettings) -> ArmSettings:
    """
    Return the settings of the command pipeline for an arm.

    Raises
    ------
    InvalidArgument
        A parameter has neither one value nor one for each joint, or a joint has no limit in the
        URDF while ``effort_limits`` is empty.
    """
    # Imported here, as the parameters are there without a compiler.
    from robodyn_ros.control.core_binding import core

    values = {}
    for parameter in _PIPELINE:
        field = _field(parameter.name)
        value = values[field] = getattr(settings, field)
        if parameter.is_array and value:
            is_of_joints = 'fixed_size' not in parameter.rules
            values[field] = (
                in_chain_order(model, settings, parameter.name, value)
                if is_of_joints
                else np.array(value)
            )
    if settings.effort_limits:
        limits = values['effort_limits']
    else:
        limits = model.effort_limits
        for name, limit, slides in zip(model.joint_names, limits, model.dh.prismatic):
            if not np.isfinite(limit) or limit <= 0.0:
                raise InvalidArgument(
                    f'joint {name!r} effort limit',
                    float(limit),
                    'a positive <limit effort> in the URDF, or parameter effort_limits',
                    unit=force_unit(slides),
                )
    values['effort_limits'] = settings.effort_limit_scale * limits
    rates = core.torque_rate_limits(values['torque_rate_limit'], limits)
    values['torque_rate_limit'] = np.array(rates)
    values['max_following_error'] = settings.max_following_error or np.inf
    if not settings.braking_acceleration:
        values['braking_acceleration'] = np.full(model.n, np.inf)
    return ArmSettings(**values)
