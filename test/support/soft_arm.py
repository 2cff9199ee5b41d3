# SPDX-License-Identifier: Apache-2.0
"""An arm in MuJoCo with friction, rotors and noise, under an impedance of a wrong model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from robots import public_urdf
from scipy.linalg import eigh
from scipy.optimize import least_squares

from robodyn_ros import RobotModel, forward_kinematics, gravity_torque, mass_matrix
from robodyn_ros.control.command_pipeline import CommandPipeline
from robodyn_ros.control.control_stack import control_law, reference_limits
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings, arm_settings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.kinematics import tip_jacobian
from robodyn_ros.simulation.arm import ArmSimulation

TIME_STEP = 5e-4  # of the physics [s]
FRICTION = 0.01  # Coulomb, of the effort limits; half as much viscous per rad/s
MOST_FRICTION = 1.0  # Coulomb [N m]: a push of 20 N does not move a joint with the rest
ROTOR = 1.0 / 300.0  # of the effort limits [kg m² per N m]
POSITION_RESOLUTION, VELOCITY_NOISE = 1e-5, 1e-3  # rad, rad/s
EFFORT_NOISE = 0.003  # of the effort limits
SAMPLING = 0.02  # of a slow push [s]
ROTATION_LENGTH = 0.3  # m, makes rotations comparable to translations


class Named(NamedTuple):
    """An arm of a public package; limits [N m] where its URDF has none."""

    file: str
    base: str
    tip: str
    limits: tuple[float, ...] | None = None


def urdf_with_wrong_masses(path, error, generator, limits=None):
    """Return a URDF's text with every link's inertia off by a factor of 1 - error or 1 + error."""
    tree = ElementTree.parse(path)
    for link in tree.iter('link'):
        factor = 1.0 + error * generator.choice([-1.0, 1.0])
        for part in link.findall('inertial'):
            for each in (part.find('mass'), part.find('inertia')):
                for name, value in each.attrib.items():
                    each.set(name, repr(float(factor * float(value))))
    return ElementTree.tostring(tree.getroot(), encoding='unicode')


def dexterous_position(model, limits, generator, count=2000):
    """Return a position away from singular ones and limits, where gravity is easy to carry."""
    low, high = np.clip(model.position_limits, -2.8, 2.8).T
    best, value = None, -np.inf
    scale = np.array([1.0] * 3 + [ROTATION_LENGTH] * 3)[:, None]
    for _ in range(count):
        q = low + (high - low) * generator.uniform(0.15, 0.85, model.n)
        smallest = np.linalg.svd(scale * tip_jacobian(model, q), compute_uv=False)[-1]
        weight = np.abs(gravity_torque(model, q) / limits).max()
        if weight < 0.5 and smallest > value:
            best, value = q, smallest
    return best


class SoftArm:
    """
    The command pipeline and an arm in MuJoCo.

    Parameters
    ----------
    arm : Named
    rate : float
        Of the control cycles [Hz].
    error : float
        By which the model's inertias and friction are wrong, each up or down.
    seed : int
    position : array, optional
        Not given: a dexterous one.
    friction, noise : float
        Multiples of the usual ones.
    parameters
        Of the dynamics node.
    """

    def __init__(
        self, arm, rate=1000.0, error=0.1, seed=0, position=None, friction=1.0, noise=1.0,
        **parameters
    ):  # fmt: skip
        self.random, self.noise, self.arm = np.random.default_rng(seed), noise, arm
        path, ends = public_urdf(arm.file), {'base_link': arm.base, 'tip_link': arm.tip}
        given = RobotModel.from_urdf(path, **ends)
        self.limits = np.array(arm.limits or given.effort_limits, dtype=float)
        coulomb = friction * np.minimum(FRICTION * self.limits, MOST_FRICTION)
        self.model = replace(
            given,
            effort_limits=self.limits,
            coulomb_friction=coulomb,
            viscous_friction=0.5 * coulomb,
            rotor_inertia=ROTOR * self.limits,
        )
        self.urdf = path.read_text(encoding='utf-8')
        text = urdf_with_wrong_masses(path, error, self.random)
        wrong = 1.0 + error * self.random.choice([-1.0, 1.0], (3, given.n))
        self.assumed = replace(
            RobotModel.from_urdf(text, **ends),
            effort_limits=self.limits,
            coulomb_friction=wrong[0] * coulomb,
            viscous_friction=0.5 * wrong[1] * coulomb,
            rotor_inertia=wrong[2] * ROTOR * self.limits,
        )
        self.simulation = ArmSimulation.from_urdf(
            path, **ends, time_step=TIME_STEP, rotor_inertia=self.model.rotor_inertia
        )
        physics, joints = self.simulation._model, np.arange(given.n)
        physics.dof_frictionloss[joints] = coulomb
        physics.dof_damping[joints] = self.model.viscous_friction
        if position is None:
            position = dexterous_position(self.model, self.limits, np.random.default_rng(1))
        self.start = np.array(position, dtype=float)
        self.period, self.steps = 1.0 / rate, round(1.0 / rate / TIME_STEP)
        self.torque_of = RigidBodyTorque.of(self.assumed, 'compiled')
        self.parameters = parameters
        settings = self.settings()
        always = SimpleNamespace(
            stale_joints=lambda now: [], elapsed=SimpleNamespace(simulated=np.nan)
        )
        law = control_law(self.assumed, settings, self.torque_of)
        self.pipeline = CommandPipeline(law, always, reference_limits(self.assumed))
        self.core = self.pipeline._core
        self.time, self.wrench = 0.0, np.zeros(6)
        self.simulation.reset(self.start)
        self.pipeline.enable(self.time)

    def settings(self, **changes):
        given = {**self.parameters, **changes}
        self.parameters = given
        as_tuples = {
            name: tuple(map(float, np.atleast_1d(value)))
            if isinstance(value, (list, np.ndarray))
            else value
            for name, value in given.items()
        }
        return ControlSettings(**as_tuples)

    def change(self, **changes):
        """Change parameters."""
        self.pipeline.settings = arm_settings(self.assumed, self.settings(**changes))

    def torque(self, position, velocity):
        """Return the torque of one control cycle."""
        command = self.pipeline.step(MeasuredState(position, velocity, self.time), self.time)
        return None if command is None else command.torque

    def cycle(self):
        """Control, and move for one period."""
        n = self.model.n
        q = self.simulation.position
        q = q + self.noise * (np.round(q / POSITION_RESOLUTION) * POSITION_RESOLUTION - q)
        qd = self.simulation.velocity + self.noise * VELOCITY_NOISE * self.random.normal(size=n)
        torque = self.torque(q, qd)
        self.simulation.push(self.wrench)
        for _ in range(self.steps):
            shaken = self.noise * EFFORT_NOISE * self.limits * self.random.normal(size=n)
            self.simulation.step(shaken if torque is None else torque + shaken)
        self.time = round(self.time + self.period, 9)

    def run(self, duration, wrench=None, each=None, every=1):
        """Run for a time [s] under a wrench by the time since; return what some cycles give."""
        begin, found = self.time, []
        for cycle in range(round(duration / self.period)):
            self.wrench = np.zeros(6) if wrench is None else wrench(self.time - begin)
            self.cycle()
            if each is not None and cycle % every == 0:
                found.append(each())
        return np.array(found)

    def pose(self):
        return forward_kinematics(self.model, self.simulation.position)

    def follow(self, positions, times):
        self.pipeline.follow(
            Trajectory.from_points(
                self.model.joint_names, list(times), list(positions), *[[()] * len(times)] * 3
            )
        )

    def energy(self):
        """Return the kinetic energy [J]."""
        qd = self.simulation.velocity
        return 0.5 * qd @ mass_matrix(self.model, self.simulation.position) @ qd


def displacement(pose, start):
    """Return how far a pose is from another in base axes, (6,): [m] and [rad]."""
    turn = pose[:3, :3] @ start[:3, :3].T
    vector = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    size = np.linalg.norm(vector)
    angle = np.arctan2(size, np.trace(turn) - 1.0)
    return np.append(pose[:3, 3] - start[:3, 3], vector * (angle / size if size else 0.0))


class Rendered(NamedTuple):
    """Of a slow push: the stiffness [N/m, N m/rad], and the width of the loop at no force."""

    stiffness: float
    hysteresis: float


def push_loop(arm, axis, largest, duration=16.0):
    """
    Push slowly along or about an axis to one side, the other, and back.

    Returns
    -------
    force, moved : array, shape (N,)
        Every ``SAMPLING`` s: [N, N m] and how far the tip is from its start [m, rad].
    """
    start, unit, every = arm.pose(), np.eye(6)[axis], round(SAMPLING / arm.period)

    def size(time):
        return largest * np.interp(time / duration, [0.0, 0.2, 0.6, 1.0], [0, 1, -1, 1])

    moved = arm.run(
        duration, lambda t: size(t) * unit, lambda: displacement(arm.pose(), start)[axis], every
    )
    return np.array([size(k * every * arm.period) for k in range(len(moved))]), moved


def rendered(force, moved):
    """Return what a loop of ``push_loop`` renders."""
    largest, first = force.max(), round(0.2 * len(moved))  # from the first peak on: a whole loop
    down, up = slice(first, 3 * first), slice(3 * first, 5 * first)
    # Not near the ends, where friction turns round.
    inner = np.abs(force) < 0.5 * largest
    slopes = [
        np.polyfit(moved[part][inner[part]], force[part][inner[part]], 1)[0] for part in (down, up)
    ]
    width = np.interp(0.0, -force[down], moved[down]) - np.interp(0.0, force[up], moved[up])
    return Rendered(np.mean(slopes), abs(width))


def slow_push(arm, axis, largest, duration=16.0):
    """Push slowly to both sides and back; return what is rendered."""
    found = rendered(*push_loop(arm, axis, largest, duration))
    arm.run(duration / 16.0)
    return found


def modes(arm, stiffness):
    """
    Return the tip's modes on its springs, the softest first.

    Returns
    -------
    squares : array, shape (6,)
        Of their frequencies [rad/s].
    shapes : array, shape (6, 6)
        A column of displacement each.
    """
    q = arm.simulation.position
    j = tip_jacobian(arm.model, q)
    inertia = np.linalg.inv(j @ np.linalg.solve(mass_matrix(arm.model, q), j.T))
    return eigh(np.diag(stiffness), inertia)


def released_push(arm, stiffness, mode, force=20.0, moment=3.0):
    """Bend the springs as one mode does, let go, and return the damping ratio of the motion."""
    start = arm.pose()
    squares, shapes = modes(arm, stiffness)
    shape, frequency = shapes[:, mode], float(np.sqrt(squares[mode]))
    wrench = stiffness * shape
    wrench = wrench / max(np.abs(wrench[:3]).max() / force, np.abs(wrench[3:]).max() / moment)
    along = wrench / (wrench @ (wrench / stiffness))
    arm.run(max(3.0, 12.0 / frequency), lambda t: wrench * min(t / 2.0, 1.0))
    moved = arm.run(8.0 / frequency, each=lambda: along @ displacement(arm.pose(), start))
    time = arm.period * np.arange(len(moved))

    def fitted(values):
        ratio, pace, begin, end = values
        ratio = np.clip(ratio, 0.05, 0.99)
        turning = pace * np.sqrt(1.0 - ratio**2)
        wave = np.cos(turning * time) + ratio / np.sqrt(1 - ratio**2) * np.sin(turning * time)
        return end + (begin - end) * np.exp(-ratio * pace * time) * wave

    found = least_squares(lambda v: fitted(v) - moved, [0.7, frequency, moved[0], 0.0])
    return float(np.clip(found.x[0], 0.05, 0.99))
