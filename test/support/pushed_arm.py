# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo with friction and noisy sensors, in motion or at rest, that is pushed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from control_arm import torque_parts
from robots import public_urdf

from robodyn_ros import RobotModel, forward_kinematics
from robodyn_ros.control.contact import MomentumObserver
from robodyn_ros.control.control_stack import control_law
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.simulation.arm import ArmSimulation

ARMS = {
    'panda': ('panda.urdf', 'panda_link0', 'panda_link8', [0, -0.5, 0, -2.0, 0, 1.6, 0.8]),
    'ur5': ('ur5_robot.urdf', 'base_link', 'tool0', [0.3, -1.2, 1.4, -1.0, -1.2, 0.4]),
}
TIME_STEP = 2e-3
GAIN = 30.0
VELOCITY_NOISE = 1e-3  # [rad/s]
EFFORT_NOISE = 0.003  # of the effort limit


class PushedArm:
    """
    Computed torque along sines, observed by its own commands.

    Parameters
    ----------
    name : str
        One of ``ARMS``.
    seed : int
        Of noise and motion.
    speed : float
        How fast the motion is; 0: it stands.
    friction : float
        Coulomb friction as a fraction of the effort limit, and half as much viscous per rad/s.
    noisy : bool
        Whether sensors and drives are.
    """

    def __init__(self, name, seed=0, speed=1.0, friction=0.01, noisy=True):
        file, base, tip, middle = ARMS[name]
        self.random = np.random.default_rng(seed)
        model = RobotModel.from_urdf(public_urdf(file), base_link=base, tip_link=tip)
        n = model.n
        self.model = model = replace(
            model,
            coulomb_friction=friction * model.effort_limits,
            viscous_friction=0.5 * friction * model.effort_limits,
        )
        self.simulation = ArmSimulation.from_urdf(
            public_urdf(file), base_link=base, tip_link=tip, time_step=TIME_STEP
        )
        self.simulation._model.dof_frictionloss[:] = model.coulomb_friction
        self.simulation._model.dof_damping[:] = model.viscous_friction
        self.noise = float(noisy)
        self.middle = np.array(middle, dtype=float)
        self.size = speed * self.random.uniform(0.15, 0.35, n)
        self.rate = self.random.uniform(0.8, 1.6, n)
        self.phase = self.random.uniform(0.0, 6.0, n)
        torque = RigidBodyTorque.of(model, 'compiled')
        settings = ControlSettings(mode='computed_torque', kp=(100.0,), kd=(20.0,))
        law = control_law(model, settings, torque)
        self.torque_parts = torque_parts(law, np.zeros(n))
        self.observer = MomentumObserver(
            law.inverse_dynamics, law.friction, np.full(n, GAIN), is_held=True
        )
        self.simulation.reset(self.reference(0.0).position)
        self.simulation._data.qvel[:] = self.reference(0.0).velocity
        self.time, self.velocity = 0.0, np.zeros(n)
        self.torque = np.zeros(n)

    def reference(self, time):
        """Return what is followed at a time [s]."""
        angle = self.rate * time + self.phase
        return ReferenceState(
            self.middle + self.size * np.sin(angle),
            self.size * self.rate * np.cos(angle),
            -self.size * self.rate**2 * np.sin(angle),
            np.zeros_like(angle),
        )

    def step(self, wrench=None):
        """Control, move and observe one time step; return the external torques estimated."""
        simulation = self.simulation
        simulation.push(np.zeros(6) if wrench is None else wrench)
        n = self.model.n
        position = simulation.position
        self.velocity = simulation.velocity + self.noise * VELOCITY_NOISE * self.random.normal(
            size=n
        )
        found = self.observer.update(position, self.velocity, self.torque, self.time)
        wanted = self.reference(self.time)
        self.torque = self.torque_parts(position, self.velocity, wanted).total
        disturbed = self.torque + self.noise * EFFORT_NOISE * (
            self.model.effort_limits * self.random.normal(size=n)
        )
        simulation.step(disturbed)
        self.time = round(self.time + TIME_STEP, 9)
        return found

    def tip_axes(self, vector):
        """Return a vector of the base link's axes in the tip link's."""
        return forward_kinematics(self.model, self.simulation.position)[:3, :3].T @ vector


def random_force(random, size):
    """Return a force of a size [N] in a random direction, without a moment, (6,)."""
    direction = random.normal(size=3)
    return np.concatenate([size * direction / np.linalg.norm(direction), np.zeros(3)])
