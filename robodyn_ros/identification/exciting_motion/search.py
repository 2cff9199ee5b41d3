# SPDX-License-Identifier: Apache-2.0
"""
The search for an exciting motion: from random ones along gradients to the best local optimum.

What is made small is lost information, plus what limits are exceeded by. The gradient goes through
the compiled base regressor Y. It is linear in qdd and quadratic in qd, for which differences are
exact, and smooth in q, where central differences are good to 1e-8.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.errors import NoSolution, Phrase
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion, Shapes
from robodyn_ros.identification.exciting_motion.information import (
    DIRECTION_WIDTH,
    ArmFunctions,
    Knowledge,
    all_columns,
)
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.identification.exciting_motion.obstacles import HalfSpace, Region
from robodyn_ros.identification.exciting_motion.verification import LimitUse, limit_use
from robodyn_ros.identification.progress import Progress
from robodyn_ros.spatial import FloatArray

_FIRST_GUESSES = 60
_STARTS = 3
# One after the other: how much exceeded limits weigh, and how many steps of L-BFGS.
_STAGES = ((30.0, 60), (1e3, 80), (1e5, 60))
_BISECTIONS = 10
_LEAST_SCALE = 0.05
_SLACK = 1.1  # an amplitude that may be so many times larger is small on purpose
_STEP = 1e-4  # of positions [rad or m]
# Kept in reserve for what is between the samples: part of the effort limit, distance [m].
_EFFORT_RESERVE = 0.03
_RESERVE = 0.005
_LENGTH = 0.05  # a penetration of so much weighs as much as an effort of twice its limit [m]

# Of an information matrix: what is made small, and its derivative by the matrix.
_Criterion = Callable[[FloatArray], tuple[float, FloatArray]]


@dataclass(frozen=True, eq=False)
class _Found:
    """A motion that keeps the limits, what it uses of them, and its criterion."""

    motion: FourierMotion
    use: LimitUse
    lost: float


def searched(objective: Objective, seed: int, progress: Progress) -> _Found:
    """
    Return the best motion of a search from several starts.

    Parameters
    ----------
    objective : Objective
    seed : int
        Of the random motions that it begins at: the same seed gives the same motion.
    progress : callable
        Called with the fraction done and what is done.

    Raises
    ------
    NoSolution
        No motion that keeps the limits was found.
    """
    generator = np.random.default_rng(seed)
    guesses = [objective.shapes.random(generator) for _ in range(_FIRST_GUESSES)]
    scores = [objective.value(objective.shapes.raw(x), _STAGES[0][0]) for x in guesses]
    order = np.argsort(scores, kind='stable')[:_STARTS]
    steps = sum(most for _, most in _STAGES)
    best: _Found | None = None
    broken: list[LimitUse] = []
    for k, index in enumerate(order):

        def report(done: int, start: int = k) -> None:
            progress((start + done / steps) / _STARTS, f'start {start + 1} of {_STARTS}')

        x = _optimised(objective, objective.shapes.raw(guesses[index]), report)
        found, used = verified(objective, x)
        if found is None:
            broken.append(used)
        elif best is None or found.lost < best.lost:
            best = found
    if best is None:
        raise _no_room(objective, broken)
    return best


def _no_room(objective: Objective, broken: Sequence[LimitUse]) -> NoSolution:
    """Return the error that says what no start of a search kept, each limit and link once."""
    limits, reasons = objective.limits, {}
    remedies: dict[str, None] = {}
    for used in sorted(broken, key=lambda each: each.excess(limits)):
        limit, reason = used.broken(objective.knowledge.model, limits)
        if limit in reasons:
            continue
        reasons[limit] = reason
        remedy = 'limits that leave room'
        if used.spare < 0.0 and limit == used.closest:
            obstacle = objective.regions[used.region].obstacle
            remedy = 'obstacles or a margin that leave room'
            if isinstance(obstacle, HalfSpace):
                lower = np.floor(1e3 * (obstacle.offset + used.spare)) / 1e3
                remedy = f'a floor at {lower:g} m or lower'
            remedy += f', or watched links without {used.closest!r}'
        remedies[remedy] = None
    return NoSolution('motion', Phrase('; '.join(reasons.values())), '; '.join(remedies))


def _optimised(objective: Objective, x: FloatArray, report: Callable[[int], None]) -> FloatArray:
    """Return numbers (n, size) of ``objective.shapes`` at a local optimum."""
    shape, done = x.shape, 0
    for penalty, most in _STAGES:

        def value_and_gradient(flat: FloatArray, penalty: float = penalty) -> Any:
            value, gradient = objective.gradient(flat.reshape(shape), penalty)
            return value, gradient.ravel()

        steps = itertools.count(done + 1)
        found = minimize(
            value_and_gradient,
            x.ravel(),
            jac=True,
            method='L-BFGS-B',
            callback=lambda _, steps=steps: report(next(steps)),
            options={'maxiter': most, 'maxcor': 20},
        )
        x = found.x.reshape(shape)
        done += most
        report(done)
    return x


def verified(objective: Objective, x: FloatArray) -> tuple[_Found | None, LimitUse]:
    """
    Return the motion of numbers (n, size), as large as the limits allow, and its use of them.

    Where no size keeps the limits there is none, and the use is that of the motion in full size.

    Its amplitudes are enlarged to the limits of position, velocity and acceleration, and made
    smaller until efforts and distances are kept at every time.
    """
    limits = objective.limits
    model = objective.knowledge.model

    def use(motion: FourierMotion) -> LimitUse:
        return limit_use(model, motion, objective.functions.torque, limits, objective.regions)

    whole = objective.shapes.motion(objective.shapes.inside(x))
    whole = _enlarged(whole, objective)
    used = use(whole)
    if used.excess(limits) > 0:
        low, high, best = 0.0, 1.0, None
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            tried = whole.scaled(middle)
            used_then = use(tried)
            if used_then.excess(limits) > 0:
                high = middle
            else:
                low, best = middle, (tried, used_then)
        if best is None or low < _LEAST_SCALE:
            return None, used
        whole, used = best
    return _Found(whole, used, objective.criterion(objective.information(whole))[0]), used


def _enlarged(motion: FourierMotion, objective: Objective) -> FourierMotion:
    """Return the motion with each joint's amplitude as large as its own limits allow."""
    limits = objective.limits
    range_, (speed, acceleration) = motion.range_bound(), motion.rate_bounds()
    with np.errstate(divide='ignore'):
        allowed = np.stack(
            [
                limits.velocity / speed,
                limits.acceleration / acceleration,
                (limits.position[:, 1] - motion.center) / (range_[:, 1] - motion.center),
                (motion.center - limits.position[:, 0]) / (motion.center - range_[:, 0]),
            ]
        )
    # Only what the p-norm left free: a joint that was slow on purpose stays slow.
    factor = np.where(allowed.min(axis=0) < _SLACK, allowed.min(axis=0), 1.0) * (1 - 1e-9)
    return FourierMotion(
        motion.center,
        motion.sines * factor[:, None],
        motion.cosines * factor[:, None],
        motion.duration,
    )


# --- the objective -------------------------------------------------------------------------------


def lost_information(information: FloatArray) -> tuple[float, FloatArray]:
    """Return -log det of an information matrix, and its derivative: D-optimality."""
    _, logarithm = np.linalg.slogdet(information)
    return -float(logarithm), -np.asarray(np.linalg.inv(information), dtype=float)


@dataclass(frozen=True, eq=False)
class Objective:
    """
    What a search makes small.

    Attributes
    ----------
    shapes : Shapes
    functions : ArmFunctions
    knowledge : Knowledge
    limits : MotionLimits
    regions : sequence of Region
    criterion : _Criterion
    """

    shapes: Shapes
    functions: ArmFunctions
    knowledge: Knowledge
    limits: MotionLimits
    regions: Sequence[Region]
    criterion: _Criterion = lost_information

    def value(self, x: FloatArray, penalty: float) -> float:
        """Return the objective at numbers (n, size) of ``shapes``."""
        inside = self.shapes.inside(x)
        states = self.shapes.states(inside)
        base = self.functions.regressor(*states)
        lost = self.criterion(self._information(base, states))[0]
        q, qd, torque = self._with_center(states, base, self.shapes.center(inside))
        return lost + penalty * (self._effort(torque, qd)[0] + self._obstacles(q)[0])

    def gradient(self, x: FloatArray, penalty: float) -> tuple[float, FloatArray]:
        """Return the objective at numbers (n, size) of ``shapes``, and its gradient."""
        shapes, count = self.shapes, len(self.shapes.time)
        inside = shapes.inside(x)
        states = shapes.states(inside)
        center = shapes.center(inside)
        # The mean pose is one sample more, at rest: there the motion can always be shrunk to.
        everything = np.concatenate([states, np.zeros((3, 1, shapes.n))], axis=1)
        everything[0, -1] = center
        base, changes = self._differentiated(everything)

        information = self._information(base[:count], states)
        lost, by_information = self.criterion(information)
        by_columns = self._by_columns(base[:count], states, by_information)
        by_base = np.zeros_like(base)
        by_base[:count] = by_columns[..., : base.shape[-1]]
        torque = base @ self.knowledge.base.values
        torque = torque + self.knowledge.model.rotor_inertia * everything[2]
        excess, by_torque, by_velocity = self._effort(torque, everything[1])
        by_base += penalty * by_torque[..., None] * self.knowledge.base.values
        by_states = np.einsum('sktjc,tjc->stk', changes, by_base)
        by_states[1] += penalty * by_velocity
        by_states[2] += penalty * by_torque * self.knowledge.model.rotor_inertia
        self._add_drive(by_states, by_columns[..., base.shape[-1] :], states)
        near, by_position = self._obstacles(everything[0])
        by_states[0] += penalty * by_position

        gradient = shapes.gradient(by_states[:, :count], by_states[0, -1])
        return lost + penalty * (excess + near), shapes.pulled_back(x, gradient)

    def information(self, motion: FourierMotion) -> FloatArray:
        """Return the information matrix of a motion; see ``Knowledge``."""
        states = self.states(motion)
        return self._information(self.functions.regressor(*states), states)

    def states(self, motion: FourierMotion) -> FloatArray:
        """Return positions, velocities and accelerations (3, N, n) of a motion at the samples."""
        time = self.shapes.time
        return np.stack([motion.position(time), motion.velocity(time), motion.acceleration(time)])

    # --- information -----------------------------------------------------------------------

    def _information(self, base: FloatArray, states: FloatArray) -> FloatArray:
        columns = all_columns(base, states[1], states[2])
        return self.knowledge.information(columns, self.shapes.duration)

    def _by_columns(
        self, base: FloatArray, states: FloatArray, by_information: FloatArray
    ) -> FloatArray:
        knowledge = self.knowledge
        columns = all_columns(base, states[1], states[2])
        weight = knowledge.weight(len(base), self.shapes.duration)
        middle = knowledge.root @ by_information @ knowledge.root.T
        return 2 * weight * (columns / knowledge.noise[:, None] ** 2) @ middle

    def _add_drive(self, by_states: FloatArray, by_drive: FloatArray, states: FloatArray) -> None:
        """Add what the drives' own columns, functions of qd and qdd alone, contribute."""
        count, n = len(by_drive), self.shapes.n
        diagonal = by_drive.reshape(count, n, n, 4)[:, np.arange(n), np.arange(n)]
        slope = (1 - np.tanh(states[1] / DIRECTION_WIDTH) ** 2) / DIRECTION_WIDTH
        by_states[2, :count] += diagonal[..., 0]
        by_states[1, :count] += diagonal[..., 1] + diagonal[..., 2] * slope

    def _differentiated(self, states: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return base regressors (N, n, count), and their derivatives (3, n, N, n, count)."""
        _, count, n = states.shape
        units = np.eye(n)[:, None, :]
        q, qd, qdd = (np.broadcast_to(each, (n, count, n)) for each in states)
        variants = np.stack(
            [
                np.stack([q + _STEP * units, qd, qdd]),
                np.stack([q - _STEP * units, qd, qdd]),
                np.stack([q, qd + units, qdd]),
                np.stack([q, qd - units, qdd]),
                np.stack([q, qd, qdd + units]),
            ],
            axis=1,
        )
        flat = np.concatenate([states, variants.reshape(3, -1, n)], axis=1)
        values = self.functions.regressor(*np.ascontiguousarray(flat))
        base = values[:count]
        ahead, behind, faster, slower, pushed = values[count:].reshape(5, n, count, n, -1)
        changes = np.stack([(ahead - behind) / (2 * _STEP), (faster - slower) / 2, pushed - base])
        return base, changes

    # --- limits ----------------------------------------------------------------------------

    def _with_center(
        self, states: FloatArray, base: FloatArray, center: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        n = self.shapes.n
        still = np.zeros((1, n))
        held = self.functions.regressor(center[None], still, still)
        q = np.vstack([states[0], center])
        qd, qdd = np.vstack([states[1], still]), np.vstack([states[2], still])
        torque = np.concatenate([base, held]) @ self.knowledge.base.values
        return q, qd, torque + self.knowledge.model.rotor_inertia * qdd

    def _effort(self, torque: FloatArray, qd: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return the squared excess of efforts, and its derivatives by torque and velocity."""
        model, limit = self.knowledge.model, self.limits.effort
        constant = model.coulomb_friction + np.abs(model.effort_offset)
        constant = constant + np.abs(model.friction_curve).sum(axis=1)
        effort = np.abs(torque) * (1 + model.load_friction) + model.viscous_friction * np.abs(qd)
        excess = np.maximum((effort + constant) / limit - (1 - _EFFORT_RESERVE), 0.0)
        slope = 2 * excess / limit
        return (
            float((excess**2).sum()),
            slope * np.sign(torque) * (1 + model.load_friction),
            slope * np.sign(qd) * model.viscous_friction,
        )

    def _obstacles(self, q: FloatArray) -> tuple[float, FloatArray]:
        """Return the squared penetration of margins, and its derivative by position (N, n)."""
        total, slope = 0.0, np.zeros_like(q)
        if not self.regions:
            return total, slope
        dh = self.knowledge.model.dh
        frames = frame_transforms(dh, q)
        for region in self.regions:
            placed = region.points.positions(frames)
            short = np.maximum(_RESERVE - region.spare(placed), 0.0) / _LENGTH
            if short.any():
                total += float((short**2).sum())
                outward = region.obstacle.gradient(placed)
                forces = -(2 * short / _LENGTH)[..., None] * outward
                slope += region.points.pulled_back(frames, placed, forces, dh)
        return total, slope
