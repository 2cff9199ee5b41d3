# SPDX-License-Identifier: Apache-2.0
"""Parameters with which an arm floats or is soft, from its effort limits, reach and joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.control.settings import ArmSettings, ControlSettings, arm_settings
from robodyn_ros.dynamics import gravity_torque, mass_matrix
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.kinematics import forward_kinematics, jacobian, reach, tip_jacobian
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

COMPENSATED = 0.8
"""Of the model's friction: a model with a fifth too much does not drive the arm."""

_USED = 0.5  # of the effort limits, at the deflections below; the rest is for gravity and dampers
_DEFLECTION = 0.1  # of the tip, over the reach
_TURN = 0.4  # of the tip, or of a joint [rad]
_STIFFEST = 400.0, 30.0, 100.0  # [N/m], [N m/rad], of a joint [N m/rad]
_FORCE, _MOMENT = 50.0, 5.0  # largest added ones [N], [N m]


@dataclass(frozen=True)
class Chosen:
    """
    Parameters of the dynamics node.

    Parameters
    ----------
    parameters : dict of str to parameter
    reasons : tuple of str
        What was chosen and why, a line each.
    """

    parameters: dict[str, Any]
    reasons: tuple[str, ...]


def floating(model: RobotModel) -> Chosen:
    """Return what compensates gravity and most of the friction, for an arm that a hand guides."""
    friction, reason = _friction(model)
    return Chosen(
        {'mode': 'gravity_compensation', **friction},
        ('mode gravity_compensation: nothing holds the arm where it is', reason),
    )


def soft(model: RobotModel, stiffness: float | None = None) -> Chosen:
    """
    Return the springs that hold an arm where it is.

    Parameters
    ----------
    model : RobotModel
    stiffness : float, optional
        Of the tip [N/m], or of each joint with fewer than six [N m/rad] or [N/m]; not given: half
        of the effort limits at a deflection of a tenth of the reach, or of 0.4 rad, and no more
        than 400 N/m, 30 N m/rad and 100 N m/rad.

    Raises
    ------
    InvalidArgument
        A joint has no effort limit, or the stiffness is not positive.
    """
    limits = _effort_limits(model)
    if stiffness is not None and not 0.0 < stiffness < np.inf:
        raise InvalidArgument('stiffness', stiffness, 'a positive number')
    friction, reason = _friction(model)
    length = reach(model)
    if not np.isfinite(length):
        length = 1.0
    if model.n < 6:
        chosen = _soft_joints(model, limits, length, stiffness)
    else:
        chosen = _soft_tip(model, limits, length, stiffness)
    return Chosen({**chosen.parameters, **friction}, (*chosen.reasons, reason))


def light_joints(
    model: RobotModel,
    settings: ArmSettings,
    position: FloatArray | None = None,
    rate: float = 250.0,
) -> list[str]:
    """
    Return which joints of a model without rotors are too light for springs, a sentence each.

    Parameters
    ----------
    model : RobotModel
    settings : ArmSettings
        Without springs, or of a model that has rotors, none is.
    position : array, shape (n,), optional
        [rad] or [m]; not given: a bent posture.
    rate : float
        Of the joint states [Hz].
    """
    if not settings.mode.endswith('impedance') or model.rotor_inertia.any():
        return []
    if position is None:
        position = bent_posture(model)
    mass = mass_matrix(model, position)
    if settings.mode == 'joint_impedance':
        stiffness = np.diag(settings.impedance_stiffness)
    else:
        rows = tip_jacobian(model, position)
        stiffness = rows.T * settings.impedance_tip_stiffness @ rows
    root = np.linalg.inv(np.linalg.cholesky(mass))
    squares, shapes = np.linalg.eigh(root @ stiffness @ root.T)
    shapes = root.T @ shapes  # a column of the joints' motion for each mode
    fastest = core.largest_frequency(settings.impedance_damping_ratio)
    worst: dict[int, float] = {}  # squares rise: a joint's last one is its largest
    for square, shape in zip(squares, shapes.T, strict=True):
        if square > (fastest * rate) ** 2:
            worst[int(np.argmax(shape * (mass @ shape)))] = float(square)
    return [
        f'joint {model.joint_names[i]!r} is light, {mass[i, i]:.2g} '
        f'{"kg" if model.dh.prismatic[i] else "kg m²"}: the model has no rotors; with joint '
        f'states at {rate:g} Hz its springs will be '
        f'{1.0 - (fastest * rate) ** 2 / square:.0%} softer than asked for, from '
        f'{np.sqrt(square) / fastest:.0f} Hz on they are not'
        for i, square in sorted(worst.items())
    ]


def _soft_joints(
    model: RobotModel, limits: FloatArray, length: float, given: float | None
) -> Chosen:
    deflection = np.where(model.dh.prismatic, _DEFLECTION * length, _TURN)
    values = np.minimum(_USED * limits / deflection, _STIFFEST[2])
    why = f'{_USED:g} of each effort limit at {_TURN:g} rad, at most {_STIFFEST[2]:g}'
    if given is not None:
        values, why = np.full(model.n, given), 'as given'
    values = _rounded(values)
    units = 'N m/rad, where they slide N/m' if model.dh.prismatic.any() else 'N m/rad'
    return Chosen(
        {'mode': 'joint_impedance', 'impedance.stiffness': values.tolist()},
        (
            f'mode joint_impedance: {model.n} joints cannot hold a pose of the tip, which takes 6',
            f'stiffness of the joints {_listed(values)} {units}: {why}',
        ),
    )


def _soft_tip(model: RobotModel, limits: FloatArray, length: float, given: float | None) -> Chosen:
    levers = np.where(model.dh.prismatic, 1.0, _levers(model))
    force = float((limits / levers).min())
    turning = float(limits[~model.dh.prismatic].min(initial=np.inf))
    along = min(_USED * force / (_DEFLECTION * length), _STIFFEST[0])
    about = min(_USED * turning / _TURN, _STIFFEST[1])
    why = (
        f'{_USED:g} of the {force:.3g} N that the drives can give at full reach ({length:.3g} m '
        f'at most), {_DEFLECTION:g} of the reach away; at most {_STIFFEST[0]:g}'
    )
    if given is not None:
        about, along, why = min(about, about * given / along), given, 'as given'
    along, about = (float(value) for value in _rounded(np.array([along, about])))
    posture = float(_rounded(np.array([min(10.0, about)]))[0])
    added = _rounded(np.array([min(_FORCE, _USED * force), min(_MOMENT, _USED * turning)]))
    reasons = [
        f'mode cartesian_impedance: {model.n} joints hold a pose of the tip',
        f'stiffness of the tip {along:g} N/m: {why}',
        f'and {about:g} N m/rad: {_USED:g} of the weakest effort limit, {turning:.3g} N m, at '
        f'{_TURN:g} rad; at most {_STIFFEST[1]:g}',
    ]
    parameters: dict[str, Any] = {
        'mode': 'cartesian_impedance',
        'impedance.tip_stiffness': [along] * 3 + [about] * 3,
        'impedance.nullspace_stiffness': [posture if model.n > 6 else 0.0],
        'impedance.largest_force': float(added[0]),
        'impedance.largest_moment': float(added[1]),
    }
    if model.n > 6:
        reasons.append(f'{posture:g} N m/rad towards the posture, where it does not move the tip')
    return Chosen(parameters, tuple(reasons))


def _friction(model: RobotModel) -> tuple[dict[str, float], str]:
    if not (model.dry_friction.any() or model.viscous_friction.any()):
        return {}, 'friction_compensation 0: the model has no friction (robodyn identify finds it)'
    return (
        {'friction_compensation': COMPENSATED},
        f'friction_compensation {COMPENSATED:g}: of the friction of the model',
    )


def _effort_limits(model: RobotModel) -> FloatArray:
    """Return those that a node has by default; InvalidArgument where a joint has none."""
    return arm_settings(model, ControlSettings()).effort_limits


def _levers(model: RobotModel) -> FloatArray:
    """Return how far the tip can be from each joint's axis at most, shape (n,) [m]."""
    dh = model.dh
    tip = float(np.linalg.norm(dh.tip_transform[:3, 3]))
    steps = (np.abs(dh.a) + np.abs(dh.d) + np.abs(dh.b)) * dh.carries[dh.tips[0]]
    # Of its own joint, d is along the axis, and a is before it.
    after = np.concatenate([np.cumsum(steps[::-1])[::-1][1:], [0.0]])
    return np.maximum(after + tip, 0.01)


def _rounded(values: FloatArray) -> FloatArray:
    """Return positive numbers with two digits."""
    return np.array([float(f'{value:.2g}') for value in values])


def _listed(values: FloatArray) -> str:
    return ' '.join(f'{value:g}' for value in values)


def bent_posture(model: RobotModel) -> FloatArray:
    """
    Return a posture, shape (n,) [rad] or [m], away from singular ones and from the limits.

    Of 500 random ones in the inner half of the ranges that one whose Jacobian's smallest singular
    value, lengths over the reach, is largest, gravity taking no more than half of the efforts.
    """
    limits = _effort_limits(model)
    lower, upper = (np.clip(model.position_limits[:, side], -2.0, 2.0) for side in (0, 1))
    middle, half = 0.5 * (lower + upper), 0.25 * (upper - lower)
    random = np.random.default_rng(0)
    drawn = middle + half * random.uniform(-1.0, 1.0, (500, model.n))
    rows = jacobian(model, drawn)
    length = reach(model)
    rows[:, :3] /= length if np.isfinite(length) else 1.0
    smallest = np.linalg.svd(rows, compute_uv=False)[:, min(6, model.n) - 1]
    is_carried = (np.abs(gravity_torque(model, drawn)) <= 0.5 * limits).all(axis=1)
    is_high = forward_kinematics(model, drawn)[:, 2, 3] > 0.0
    quality = smallest + 10.0 * is_carried + 1.0 * is_high
    best: FloatArray = drawn[int(np.argmax(quality))]
    return np.round(best, 3)
