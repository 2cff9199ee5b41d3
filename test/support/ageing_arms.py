# SPDX-License-Identifier: Apache-2.0
"""
Public arms that age, warm up and carry, by Pinocchio: none of the package's own formulas.

Friction is F_v qd + F_c sgn qd with a smooth sign that is not the one fitted, and noise is
correlated in time, as that of drives is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pinocchio
from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.identification import DriveTerms, Identification, Recording, identify

# File, base and tip, and the middle of the motions.
ARMS = {
    'panda': ('panda.urdf', 'panda_link0', 'panda_link8', [0, -0.5, 0, -2.0, 0, 1.6, 0.8]),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0', [0.3, -1.2, 1.4, -1.0, -1.2, 0.4]),
    'kinova': ('kinova.urdf', 'base', 'j2s6s200_end_effector', [0, 2.9, 1.5, 0, 1.0, 0]),
}
COMMON_NOISE, RATE = 0.02, 100.0  # of the rms torque; Hz
_SIGN_WIDTH = 0.006  # rad/s


@dataclass
class AgeingArm:
    """An arm with friction and a tool; ``motion`` moves it, in a state of wear and warmth."""

    name: str
    seed: int = 0
    tool: float = 1.0
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        file, base, tip, middle = ARMS[self.name]
        path = public_urdf(file)
        self.urdf = RobotModel.from_urdf(path, base_link=base, tip_link=tip)
        self.middle = np.array(middle, dtype=float)
        whole = pinocchio.buildModelFromUrdf(str(path))
        held = [
            whole.getJointId(name) for name in whole.names[1:] if name not in self.urdf.joint_names
        ]
        self.model = pinocchio.buildReducedModel(whole, held, pinocchio.neutral(whole))
        self.last = self.model.getJointId(self.urdf.joint_names[-1])
        self.flange = self.model.frames[self.model.getFrameId(tip)].placement
        self.data = self.model.createData()
        self.bare = pinocchio.Inertia(self.model.inertias[self.last])
        torque = self._rigid(*self._states(20.0, 1.0, self.random), 0.0)
        self.size = np.maximum(np.sqrt((torque**2).mean(axis=0)), 0.02 * torque.std())
        self.coulomb = self.random.uniform(0.1, 0.2, self.urdf.n) * self.size
        self.viscous = self.random.uniform(0.1, 0.2, self.urdf.n) * self.size

    def motion(
        self,
        seed: int,
        *,
        duration: float = 10.0,
        load: float = 1.0,
        friction: np.ndarray | float = 1.0,
        coulomb: np.ndarray | float = 1.0,
        noise: float = COMMON_NOISE,
        start: float = 0.0,
        shift: tuple[float, float, float] = (0.0, 0.0, 0.05),
    ) -> Recording:
        """
        Return a recording.

        Parameters
        ----------
        seed : int
        duration, start : float
            [s]
        load : float
            Mass at the tip relative to the tool's.
        friction, coulomb : array, shape (n,), or float
            Factors of all friction, and of Coulomb friction alone.
        noise : float
            Of the efforts, relative.
        shift : tuple of float
            The load's centre of mass from the flange [m].
        """
        generator = np.random.default_rng([self.seed, seed])
        time, q, qd, qdd = self._states(duration, generator.uniform(0.7, 1.0), generator)
        sign = qd / np.sqrt(qd**2 + _SIGN_WIDTH**2)
        effort = self._rigid(time, q, qd, qdd, load * self.tool, shift)
        effort += friction * (self.viscous * qd + coulomb * self.coulomb * sign)
        white = generator.normal(size=q.shape)
        slow = np.empty_like(white)  # correlated over 0.05 s
        keep, state = np.exp(-1.0 / (0.05 * RATE)), white[0]
        for k, row in enumerate(white):
            state = keep * state + np.sqrt(1.0 - keep**2) * row
            slow[k] = state
        effort += noise * self.size * slow
        return Recording(self.urdf.joint_names, start + time, q, qd, effort)

    def _states(self, duration, speed, generator):
        time = np.arange(0.0, duration, 1.0 / RATE)
        n = len(self.middle)
        rates = 2 * np.pi * generator.uniform(0.1, 0.45, (2, n)) * speed
        sizes = generator.uniform(0.3, 0.6, (2, n))
        phases = generator.uniform(0.0, 2 * np.pi, (2, n))
        angle = rates * time[:, None, None] + phases
        q = self.middle + (sizes * np.sin(angle)).sum(axis=1)
        qd = (sizes * rates * np.cos(angle)).sum(axis=1)
        qdd = -(sizes * rates**2 * np.sin(angle)).sum(axis=1)
        return time, q, qd, qdd

    def _rigid(self, time, q, qd, qdd, load, shift=(0.0, 0.0, 0.05)):
        body = pinocchio.Inertia(load, np.array(shift), 0.002 * load * np.eye(3))
        self.model.inertias[self.last] = self.bare + self.flange.act(body)
        rnea, model, data = pinocchio.rnea, self.model, self.data
        return np.array([rnea(model, data, *row).copy() for row in zip(q, qd, qdd)])

    @cached_property
    def identified(self) -> Identification:
        """The model identified from two minutes of it, warm and new, with its tool."""
        training = [self.motion(10_000 + k, duration=30.0) for k in range(3)]
        return identify(self.urdf, training, friction=DriveTerms(), base_tilt=False)


def with_push(recording: Recording, start: float, end: float, torque: np.ndarray) -> Recording:
    """Return the recording with a push: the drives bear so much less, (n,) [N m]."""
    pushed = (recording.time >= start) & (recording.time < end)
    return replace(recording, effort=recording.effort - np.outer(pushed, torque))
