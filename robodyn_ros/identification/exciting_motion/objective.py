# SPDX-License-Identifier: Apache-2.0
"""
What a search for a motion makes small: lost information, plus what limits are exceeded by.

The gradient goes through the compiled base regressor Y. It is linear in qdd and quadratic in qd,
for which differences are exact, and smooth in q, where central differences are good to 1e-8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion
from robodyn_ros.identification.exciting_motion.information import (
    DIRECTION_WIDTH,
    ArmFunctions,
    Knowledge,
    all_columns,
)
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits
from robodyn_ros.identification.exciting_motion.obstacles import Region
from robodyn_ros.identification.exciting_motion.shapes import Shapes
from robodyn_ros.spatial import FloatArray

_STEP = 1e-4  # of positions [rad or m]
# Kept in reserve for what is between the samples: part of the effort limit, distance [m].
_EFFORT_RESERVE = 0.03
_RESERVE = 0.005
_LENGTH = 0.05  # a penetration of so much weighs as much as an effort of twice its limit [m]

Criterion = Callable[[FloatArray], tuple[float, FloatArray]]
"""Of an information matrix: what is made small, and its derivative by the matrix."""


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
    criterion : Criterion
    """

    shapes: Shapes
    functions: ArmFunctions
    knowledge: Knowledge
    limits: MotionLimits
    regions: Sequence[Region]
    criterion: Criterion = lost_information

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
                slope += region.points.pulled_back(frames, placed, forces, dh.prismatic)
        return total, slope
