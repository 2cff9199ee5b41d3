# SPDX-License-Identifier: Apache-2.0
"""Limits of a motion for each joint, and what is assumed where the URDF has none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import float_array
from robodyn_ros.description.records import Finding, note
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.model import RobotModel, checked_model, force_unit, position_unit
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

POSITION_FRACTION = 0.95
"""So much of a joint's range is used."""

VELOCITY_FRACTION = 0.8
"""So much of its velocity limit."""

EFFORT_FRACTION = 0.7
"""So much of its effort limit, by the URDF's masses, which may be a fifth too small."""

ASSUMED_REACH = (np.pi, 0.25)
"""To either side of zero, of joints without position limits [rad], [m]."""

ASSUMED_VELOCITY = (1.0, 0.25)
"""Of joints without velocity limits [rad/s], [m/s]."""


@dataclass(frozen=True, eq=False, repr=False)
class MotionLimits(Record):
    """
    What a motion stays within.

    Attributes
    ----------
    position : array, shape (n, 2) [rad or m]
        Lower and upper, finite.
    velocity : array, shape (n,) [rad/s or m/s]
        Finite.
    acceleration : array, shape (n,) [rad/s² or m/s²]
        Infinite where none is given.
    effort : array, shape (n,) [N m or N]
        Infinite where there is none.
    findings : tuple of Finding
        What was assumed.
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    findings: tuple[Finding, ...] = ()


def motion_limits(
    model: RobotModel,
    *,
    position: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
) -> MotionLimits:
    """
    Return limits for an arm: those given, else fractions of the URDF's, else assumptions.

    Parameters
    ----------
    model : RobotModel
    position : array-like, shape (n, 2), optional
        Lower and upper [rad or m]; where not given, the middle 95 % of the URDF's range, or half
        a turn (25 cm) to either side of zero where it has none.
    velocity : array-like, shape (n,) or float, optional
        [rad/s or m/s]; where not given, 80 % of the URDF's, or 1 rad/s (0.25 m/s).
    acceleration : array-like, shape (n,) or float, optional
        [rad/s² or m/s²]; where not given there is no limit: velocity limits and the highest
        harmonic bound it.
    effort : array-like, shape (n,) or float, optional
        [N m or N]; where not given, 70 % of the URDF's; without a limit where it has none.

    Raises
    ------
    InvalidArgument
        Naming the joint.
    """
    n, kind = checked_model(model).n, model.dh.prismatic.astype(int)
    findings: list[Finding] = []

    def assume(
        code: str, missing: np.ndarray, what: str, values: FloatArray, units: tuple[str, str]
    ) -> None:
        for j in np.flatnonzero(missing):
            name, value = f'joint {model.joint_names[j]!r}', float(values[j])
            message = f'{name} has {what.format(f"{value:g} {units[kind[j]]}")}'
            findings.append(note(code, name, value, message))

    if position is None:
        reach = np.array(ASSUMED_REACH)[kind]
        middle, half = _middle_and_half(model.position_limits)
        missing = ~np.isfinite(half) | (half <= 0)
        assume(
            'assumed_range',
            missing,
            'no position limits: the motion stays within {} of zero',
            reach,
            ('rad', 'm'),
        )
        middle = np.where(missing, np.clip(0.0, *model.position_limits.T), middle)
        half = np.where(missing, reach, POSITION_FRACTION * half)
        range_ = np.stack([middle - half, middle + half], axis=1)
        # One-sided limits remain where they are.
        range_ = np.where(missing[:, None], _within(range_, model.position_limits), range_)
    else:
        range_ = _checked('position', position, (n, 2))
    if velocity is None:
        known = np.isfinite(model.velocity_limits) & (model.velocity_limits > 0)
        assumed = np.array(ASSUMED_VELOCITY)[kind]
        assume(
            'assumed_velocity_limit',
            ~known,
            'no velocity limit in the URDF: {} was assumed',
            assumed,
            ('rad/s', 'm/s'),
        )
        speed = np.where(known, VELOCITY_FRACTION * model.velocity_limits, assumed)
    else:
        speed = _checked('velocity', velocity, (n,))
    growth = (
        np.full(n, np.inf)
        if acceleration is None
        else _checked('acceleration', acceleration, (n,))
    )
    if effort is None:
        known = np.isfinite(model.effort_limits) & (model.effort_limits > 0)
        assume(
            'no_effort_limit',
            ~known,
            'no effort limit in the URDF: the torque of the motion is not bounded',
            model.effort_limits,
            ('N m', 'N'),
        )
        torque = np.where(known, EFFORT_FRACTION * model.effort_limits, np.inf)
    else:
        torque = _checked('effort', effort, (n,))
    limits = MotionLimits(range_, speed, growth, torque, tuple(findings))
    _check(model, limits)
    return limits


def _middle_and_half(limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(invalid='ignore'):
        return limits.mean(axis=1), (limits[:, 1] - limits[:, 0]) / 2


def _within(range_: FloatArray, limits: FloatArray) -> FloatArray:
    """Return ranges clipped to limits; as they are where limits leave no room."""
    clipped = np.clip(range_, limits[:, :1], limits[:, 1:])
    room = clipped[:, 1:] > clipped[:, :1]
    return np.where(room, clipped, range_)


def _checked(name: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = float_array(f'limits.{name}', values)
    if array.ndim == 0 and len(shape) == 1:
        array = np.full(shape, float(array))
    if array.shape != shape:
        raise InvalidArgument(f'limits.{name}', Phrase(f'shape {array.shape}'), f'shape {shape}')
    return array


def _check(model: RobotModel, limits: MotionLimits) -> None:
    for j, joint in enumerate(model.joint_names):
        slides = model.dh.prismatic[j]
        way = position_unit(slides)
        lower, upper = limits.position[j]
        if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
            raise InvalidArgument(
                f'position limits of joint {joint!r}',
                (lower, upper),
                'lower < upper, finite',
                unit=way,
            )
        if not 0 < limits.velocity[j] < np.inf:
            raise InvalidArgument(
                f'velocity limit of joint {joint!r}',
                limits.velocity[j],
                'positive and finite',
                unit=f'{way}/s',
            )
        for name, unit in (('acceleration', f'{way}/s²'), ('effort', force_unit(slides))):
            value = getattr(limits, name)[j]
            if not value > 0:
                raise InvalidArgument(
                    f'{name} limit of joint {joint!r}', value, 'positive', unit=unit
                )
