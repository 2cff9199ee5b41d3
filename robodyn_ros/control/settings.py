# SPDX-License-Identifier: Apache-2.0
"""
Settings of the control stack: the parameters of the dynamics node as one record.

Parameters with a value for each joint are in the order of the commands, which the parameter
``joints`` gives; in arrays they are in chain order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Any, Literal, get_args

import numpy as np

from robodyn_ros import ros_parameters
from robodyn_ros.errors import InvalidArgument, NoSuchName, Phrase
from robodyn_ros.model import RobotModel, force_unit
from robodyn_ros.record import Record

PARAMETERS = ros_parameters.parameters_of('dynamics_node')
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


@dataclass(frozen=True, eq=False, repr=False)
class SafetySettings(Record):
    """
    Limits and policies of the command pipeline.

    Parameters
    ----------
    effort_limits : array, shape (n,)
        Largest torque [N m] or force [N] of each joint.
    torque_rate_limits : array, shape (n,)
        Largest change [N m/s] or [N/s]; infinite: none.
    ramp_time : float
        How long a change of law takes [s].
    state_timeout : float
        Age at which a joint state is stale [s].
    on_stale_state, on_stop : str
        One of ``ACTIONS``.
    stale_hold_time : float
        How long gravity is held on a stale state before silence [s].
    max_following_error : float
        Error of a joint at which a reference is given up [rad] or [m]; infinite: none.
    braking_acceleration : array, shape (n,), or None
        Largest deceleration to rest [rad/s²] or [m/s²]; None: what the effort limits allow.
    damping : float
        Of an arm that moves when gravity compensation takes over, until it rests [1/s].
    is_braked_by_damping : bool
        Whether nothing else brakes the arm: then damping acts whenever it moves, obeys the braking
        acceleration, and shrinks as one vector where the effort limits would clip it.
    tip_speed, tip_turn_rate : float
        Fastest motion of the tip's reference towards a target pose [m/s], [rad/s].
    largest_force, largest_moment : float
        That may be added at the tip [N], [N m].
    """

    effort_limits: np.ndarray
    torque_rate_limits: np.ndarray
    ramp_time: float
    state_timeout: float
    on_stale_state: Action
    stale_hold_time: float
    on_stop: Action
    max_following_error: float = np.inf
    braking_acceleration: np.ndarray | None = None
    damping: float = 0.0
    is_braked_by_damping: bool = False
    tip_speed: float = 0.0
    tip_turn_rate: float = 0.0
    largest_force: float = 0.0
    largest_moment: float = 0.0


def safety_settings(model: RobotModel, settings: ControlSettings) -> SafetySettings:
    """
    Return the limits and policies of the command pipeline.

    Raises
    ------
    InvalidArgument
        A joint without limit in the URDF while ``effort_limits`` is empty.
    """
    # Imported here, as the parameters are there without a compiler.
    from robodyn_ros.control.core_binding import core

    if settings.effort_limits:
        limits = each_joint(model, settings, 'effort_limits')
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
    rates = each_joint(model, settings, 'torque_rate_limit') if settings.torque_rate_limit else ()
    return SafetySettings(
        settings.effort_limit_scale * limits,
        np.array(core.torque_rate_limits(rates, limits)),
        settings.ramp_time,
        settings.state_timeout,
        settings.on_stale_state,
        settings.stale_hold_time,
        settings.on_stop,
        settings.max_following_error or np.inf,
        each_joint(model, settings, 'braking_acceleration')
        if settings.braking_acceleration
        else None,
        settings.damping,
        tip_speed=settings.impedance_tip_speed,
        tip_turn_rate=settings.impedance_tip_turn_rate,
        largest_force=settings.impedance_largest_force,
        largest_moment=settings.impedance_largest_moment,
    )
