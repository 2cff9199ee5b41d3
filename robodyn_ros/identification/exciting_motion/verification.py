# SPDX-License-Identifier: Apache-2.0
"""
How much of its limits a motion uses and how close it comes to obstacles, at every time.

What lies between two samples of a function f is no further from both than h² max |f''| / 8. The
bounds of |f''| here hold for every motion whose derivatives stay within those given. They come
from the Newton-Euler equations with every sum of vectors replaced by the sum of lengths: far from
tight, but h² makes them small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb
from typing import Protocol

import numpy as np

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.identification.exciting_motion.obstacles import Region
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, inertia_tensor

# Sampled until what may happen between samples is less than this part of the effort limits, or
# this distance [m], but no finer than so many samples.
_PART_OF_EFFORT = 0.005
_DISTANCE = 0.001
_FEWEST, _MOST = 500, 40_000
_BATCH = 2000

Torque = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""Inverse dynamics of many states: q, qd, qdd (N, n) to torques (N, n)."""


class Segment(Protocol):
    """A motion whose positions have four derivatives: a Fourier series, or a polynomial."""

    @property
    def duration(self) -> float:
        """How long it takes [s]."""

    def position(self, time: FloatArray) -> FloatArray:
        """Return positions (N, n)."""

    def velocity(self, time: FloatArray) -> FloatArray:
        """Return velocities (N, n)."""

    def acceleration(self, time: FloatArray) -> FloatArray:
        """Return accelerations (N, n)."""

    def range_bound(self) -> FloatArray:
        """Return what positions stay within (n, 2)."""

    def derivative_bounds(self) -> FloatArray:
        """Return bounds (4, n) of the derivatives of order 1 to 4."""


@dataclass(frozen=True, eq=False, repr=False)
class LimitUse(Record):
    """
    What a motion asks for at most, at every time: no samples between which it could be more.

    Attributes
    ----------
    position : array, shape (n, 2) [rad or m]
        What positions stay within.
    velocity, acceleration, effort : array, shape (n,)
        What they stay under; the effort includes the friction that the model has.
    spare : float
        How much further from obstacles than asked for the arm stays [m]; infinite without any.
    closest : str
        The link that comes closest; empty without obstacles.
    region : int
        Which region it comes closest to; -1 without any.
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    spare: float
    closest: str
    region: int = -1

    def excess(self, limits: MotionLimits) -> float:
        """Return the largest relative excess of a limit; zero or less: all are kept."""
        reach = limits.position[:, 1] - limits.position[:, 0]
        parts = [
            ((limits.position[:, 0] - self.position[:, 0]) / reach).max(),
            ((self.position[:, 1] - limits.position[:, 1]) / reach).max(),
            (self.velocity / limits.velocity).max() - 1,
            (self.acceleration / limits.acceleration).max() - 1,
            (self.effort / limits.effort).max() - 1,
            -self.spare,
        ]
        return float(max(parts))

    def broken(self, model: RobotModel, limits: MotionLimits) -> tuple[str, str]:
        """Return which limit is exceeded, or which link comes too close, and how far as text."""
        for name in ('velocity', 'acceleration', 'effort'):
            use, limit = getattr(self, name), getattr(limits, name)
            worst = int(np.argmax(use / limit))
            if use[worst] > limit[worst] * (1 + 1e-9):
                joint = model.joint_names[worst]
                element = f'{name} of joint {joint!r}'
                return element, f'{element} is {use[worst]:.6g} of {limit[worst]:.6g}'
        if self.spare < 0:
            text = f'link {self.closest!r} comes {-self.spare:.3g} m too close to an obstacle'
            return self.closest, text
        return '', ''


def limit_use(
    model: RobotModel,
    segment: Segment,
    torque: Torque,
    limits: MotionLimits,
    regions: Sequence[Region],
) -> LimitUse:
    """
    Return what a motion uses of its limits at every time.

    Efforts and distances are taken at samples, plus what second derivatives allow between them.

    Parameters
    ----------
    model : RobotModel
    segment : Segment
    torque : Torque
        The model's inverse dynamics.
    limits : MotionLimits
        Only efforts that are limited decide how finely is sampled.
    regions : sequence of Region
    """
    range_, rates = segment.range_bound(), segment.derivative_bounds()
    torque_growth, frame_growth = second_derivative_bounds(
        model, np.abs(range_).max(axis=1), rates
    )
    growths = [
        frame_growth[each.points.body, 0]
        + np.linalg.norm(each.points.point, axis=1) * frame_growth[each.points.body, 1]
        for each in regions
    ]
    count = _sample_count(segment.duration, torque_growth, limits, growths)
    time = np.linspace(0.0, segment.duration, count)
    rest = (segment.duration / (count - 1)) ** 2 / 8

    largest = np.zeros(model.n)
    spare, closest, nearest = np.inf, '', -1
    for first in range(0, count, _BATCH):
        part = time[first : first + _BATCH]
        q, qd, qdd = segment.position(part), segment.velocity(part), segment.acceleration(part)
        largest = np.maximum(largest, np.abs(torque(q, qd, qdd)).max(axis=0))
        frames = frame_transforms(model.dh, q) if regions else np.zeros(0)
        for k, (region, growth) in enumerate(zip(regions, growths, strict=True)):
            least = _least_spare(region, region.points.positions(frames), growth * rest)
            if least.min() < spare:
                spare, nearest = float(least.min()), k
                closest = region.points.names[int(least.argmin())]
    rigid = largest + torque_growth * rest
    return LimitUse(
        position=range_,
        velocity=rates[0],
        acceleration=rates[1],
        effort=rigid + _friction_bound(model, rates[0], rigid),
        spare=spare,
        closest=closest,
        region=nearest,
    )


def _sample_count(
    duration: float,
    torque_growth: FloatArray,
    limits: MotionLimits,
    growths: Sequence[FloatArray],
) -> int:
    """Return how many samples keep what lies between them small."""
    relative = float((torque_growth / limits.effort).max()) / _PART_OF_EFFORT
    for growth in growths:
        relative = max(relative, float(growth.max()) / _DISTANCE)
    steps = duration * np.sqrt(relative / 8)
    return int(np.clip(np.ceil(steps), _FEWEST, _MOST)) + 1


def _least_spare(region: Region, placed: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the least spare distance (m,) along paths through points (N, m, 3)."""
    spare = region.spare(placed)
    if len(placed) == 1:
        return spare[0] - rest
    # Distance changes no faster than the point moves; the way bends by ``rest`` at the most.
    way = np.linalg.norm(np.diff(placed, axis=0), axis=-1)
    between = (spare[1:] + spare[:-1] - way) / 2
    return between.min(axis=0) - rest


def _friction_bound(model: RobotModel, speed: FloatArray, rigid: FloatArray) -> FloatArray:
    """Return the largest friction (n,) at speeds up to some and under torques up to some."""
    constant = model.coulomb_friction + np.abs(model.effort_offset)
    curve = np.abs(model.friction_curve).sum(axis=1)
    return model.viscous_friction * speed + constant + curve + model.load_friction * rigid


# --- how fast torques and points can change ------------------------------------------------------

# A *jet* is an array of bounds of a quantity's length and those of its derivatives, of orders
# 0, 1 and so on. The derivatives of a product follow Leibniz's rule; those of a vector v fixed to
# a body that turns with w follow from v' = w x v.


def second_derivative_bounds(
    model: RobotModel, positions: FloatArray, derivatives: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """
    Return bounds of the second derivatives in time of joint torques and of points.

    Parameters
    ----------
    model : RobotModel
    positions : array, shape (n,)
        Bounds of the prismatic joints' distance from zero [m]; others' are not used.
    derivatives : array, shape (4, n)
        Bounds of the derivatives of q of order 1 to 4.

    Returns
    -------
    torque : array, shape (n,)
        [N m/s² or N/s²], rotors' part included.
    frames : array, shape (n, 2)
        Of the acceleration of a point of body i: this of the frame's origin [m/s²], and for each
        metre that the point is away from it [1/s²].
    """
    n, prismatic = model.n, model.dh.prismatic
    gravity = float(np.linalg.norm(model.gravity))
    turning = np.zeros((n, 4))  # jets of each joint's angular velocity, relative to the one before
    turning[~prismatic] = derivatives.T[~prismatic]
    sliding = np.zeros((n, 5))
    sliding[:, 0], sliding[:, 1:] = positions, derivatives.T

    dh, path = model.dh, [np.flatnonzero(moving).tolist() for moving in model.dh.carries]
    lengths = (np.abs(dh.a) + np.abs(dh.b) + np.abs(dh.d)).tolist()
    steps: list[FloatArray] = []
    axes: list[FloatArray] = []
    spins: list[FloatArray] = []
    for j, parent in enumerate(model.parents.tolist()):
        w = spins[parent] if parent >= 0 else np.zeros(4)  # of the body before
        axis, step = _fixed(1.0, w, 5), _fixed(lengths[j], w, 5)
        if prismatic[j]:
            step = step + _product(sliding[j], axis)
        w = w + _product(turning[j], axis[:4])
        axes.append(axis)
        steps.append(step)
        spins.append(w)

    torque = model.rotor_inertia * derivatives[3]
    frames = np.zeros((n, 2))
    for i in range(n):
        origin: FloatArray = sum((steps[j] for j in path[i]), np.zeros(5))
        acceleration = origin[2:].copy()
        frames[i] = acceleration[0], _fixed(1.0, spins[i], 3)[2]
        acceleration[0] += gravity
        body = model.inertial_parameters[i]
        tensor = float(np.linalg.norm(inertia_tensor(body), ord=2))
        mass, moment = abs(float(body[9])), float(np.linalg.norm(body[6:9]))
        momentum = _product(_turned_tensor(tensor, spins[i]), spins[i])
        first = _fixed(moment, spins[i], 5)
        force = mass * acceleration + first[2:]
        couple = momentum[1:] + _product(first[:3], acceleration)
        lever = np.zeros(3)
        for j in reversed(path[i]):
            transmitted = force if prismatic[j] else couple + _product(lever, force)
            torque[j] += _product(axes[j][:3], transmitted)[2]
            lever = lever + steps[j][:3]
    return torque, frames


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the jet of a product, of as many orders as the shorter factor."""
    orders = min(len(one), len(other))
    return np.array(
        [sum(comb(r, s) * one[s] * other[r - s] for s in range(r + 1)) for r in range(orders)]
    )


def _fixed(length: float, w: FloatArray, orders: int, factor: float = 1.0) -> FloatArray:
    """Return the jet of what is fixed to a body that turns with the jet w."""
    jet = np.zeros(orders)
    jet[0] = length
    for r in range(orders - 1):
        jet[r + 1] = factor * sum(comb(r, s) * w[s] * jet[r - s] for s in range(r + 1))
    return jet


def _turned_tensor(norm: float, w: FloatArray) -> FloatArray:
    """Return the jet of an inertia tensor fixed to a body: J' = S(w) J - J S(w)."""
    return _fixed(norm, w, 4, factor=2.0)
