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
import pytest
from robots import public_urdf
from scipy.signal import lfilter

from robodyn_ros import Payload, RobotModel
from robodyn_ros.identification import DriveTerms, Identification, Recording, identify
from robodyn_ros.monitoring.ageing import MotionEntry
from robodyn_ros.monitoring.motion_terms import motion_terms
from robodyn_ros.simulation.arm import ArmSimulation

# File, base and tip, and the middle of the motions.
ARMS = {
    'panda': ('panda.urdf', 'panda_link0', 'panda_link8', [0, -0.5, 0, -2.0, 0, 1.6, 0.8]),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0', [0.3, -1.2, 1.4, -1.0, -1.2, 0.4]),
    'xarm7': ('xarm7.urdf', 'link_base', 'link7', [0, -0.5, 0, 1.2, 0, 1.0, 0]),
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
        keep = np.exp(-1.0 / (0.05 * RATE))  # correlated over 0.05 s
        white = np.sqrt(1.0 - keep**2) * generator.normal(size=q.shape)
        effort += noise * self.size * lfilter([1.0], [1.0, -keep], white, axis=0)
        return Recording(self.urdf.joint_names, start + time, q, qd, effort)

    def _states(self, duration, speed, generator, time=None):
        time = np.arange(0.0, duration, 1.0 / RATE) if time is None else time
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


class MujocoArm(AgeingArm):
    """The same arms in MuJoCo, whose friction and contacts of friction are its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        pytest.importorskip('mujoco', reason='mujoco is not installed')
        file, base, tip, _ = ARMS[self.name]
        self.simulation = ArmSimulation.from_urdf(
            public_urdf(file), base_link=base, tip_link=tip, time_step=self.step
        )
        pinocchio.crba(self.model, self.data, self.middle)
        inertia = np.diagonal(self.data.M).copy()
        self.simulation._model.dof_armature[:] = self.armature = 0.1 * inertia + 0.02
        self.gain = inertia + self.armature

    step, every = 2e-3, 5

    def motion(
        self,
        seed: int,
        *,
        duration: float = 10.0,
        load: float = 1.0,
        friction: np.ndarray | float = 1.0,
        coulomb: np.ndarray | float = 1.0,
        noise: float = 0.01,
        start: float = 0.0,
        shift: tuple[float, float, float] = (0.0, 0.0, 0.05),
    ) -> Recording:
        """Return what the arm did under feedforward of the tool and feedback; see above."""
        generator = np.random.default_rng([self.seed, seed])
        speed = generator.uniform(0.7, 1.0)
        fine = np.arange(0.0, duration, self.step)
        time, q, qd, qdd = self._states(duration, speed, generator, fine)
        known = self._rigid(time, q, qd, qdd, self.tool, shift) + self.armature * qdd
        known += self.viscous * qd + self.coulomb * np.tanh(qd / 0.02)
        simulation, n = self.simulation, self.urdf.n
        simulation.carry([Payload(load * self.tool, shift, link=self.urdf.tip_link)])
        simulation._model.dof_damping[:] = friction * self.viscous
        simulation._model.dof_frictionloss[:] = friction * coulomb * self.coulomb
        simulation.reset(q[0])
        simulation._data.qvel[:] = qd[0]
        position, velocity, effort = np.zeros((3, len(time), n))
        for k in range(len(time)):
            position[k], velocity[k] = simulation.position, simulation.velocity
            feedback = 400.0 * (q[k] - position[k]) + 40.0 * (qd[k] - velocity[k])
            effort[k] = known[k] + self.gain * feedback
            simulation.step(effort[k])
        # A torque is held over the step that follows a state: its middle is half a step later.
        position[1:] = 0.5 * (position[1:] + position[:-1])
        velocity[1:] = 0.5 * (velocity[1:] + velocity[:-1])
        chosen = slice(1, None, self.every)
        measured = effort[0 :: self.every][: len(position[chosen])]
        measured = measured + noise * self.size * generator.normal(size=measured.shape)
        return Recording(
            self.urdf.joint_names,
            start + time[chosen],
            position[chosen],
            velocity[chosen],
            measured,
        )


def aged(
    arm: AgeingArm,
    count: int,
    *,
    joint: int | None = None,
    since: int = 20,
    loads: tuple[float, float] = (0.7, 1.3),
    warm_up: float = 0.3,
    is_clock_known: bool = True,
    term: str = 'friction',
    wear: float = 1.3,
    gripper: float = 1.0,
    duration: float = 10.0,
) -> list[MotionEntry]:
    """
    Return motions of days of ten, cold at first; a joint wears, or the load changes, from one on.

    Parameters
    ----------
    arm : AgeingArm
    count : int
    joint : int, optional
        That wears; none where not given.
    since : int
        The first motion with wear, or with another gripper.
    loads : tuple of float
        Between which the load lies, relative to the tool.
    warm_up : float
        Friction of a cold arm above that of a warm one.
    is_clock_known : bool
        Whether the time since the start is.
    term : str
        What wears: ``'friction'`` or ``'coulomb'``.
    wear, gripper : float
        Factor of it; what the load is multiplied with.
    duration : float
        Of a motion [s].
    """
    generator = np.random.default_rng([arm.seed, 99])
    motions = []
    for k in range(count):
        on = 60.0 + 300.0 * (k % 10)
        factors = {
            'friction': np.full(arm.urdf.n, 1.0 + warm_up * np.exp(-on / 1000.0)),
            'coulomb': np.ones(arm.urdf.n),
        }
        if joint is not None and k >= since:
            factors[term][joint] *= wear
        load = generator.uniform(*loads) * (gripper if k >= since else 1.0)
        recording = arm.motion(k, load=load, duration=duration, **factors)
        stamp = 86_400.0 * (1 + k // 10) + on
        clock = on if is_clock_known else float('nan')
        terms = motion_terms(arm.identified, recording)
        motions.append(MotionEntry(terms, f'motion {k}', stamp, clock))
    return motions


def with_push(recording: Recording, start: float, end: float, torque: np.ndarray) -> Recording:
    """Return the recording with a push: the drives bear so much less, (n,) [N m]."""
    pushed = (recording.time >= start) & (recording.time < end)
    return replace(recording, effort=recording.effort - np.outer(pushed, torque))
