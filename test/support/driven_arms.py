# SPDX-License-Identifier: Apache-2.0
"""
Arms in MuJoCo under drives that are no torque sources, following trajectories of ``feedforward``.

An arm is a public URDF with friction and rotors of its own: for each joint a part of its rms
gravity torque, so that a model without them is wrong about them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from jtc_rule import JointTrajectoryController
from lxml import etree
from robots import public_urdf

from robodyn_ros import Payload, RobotModel
from robodyn_ros.control.feedforward_efforts import FeedforwardSettings, with_feedforward_efforts
from robodyn_ros.control.law import Terms
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.servo_offset import ENCODER_RESOLUTION, ServoGains, servo_gains
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.description.chain import Chain
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.motions.point_to_point import PointToPoint, suitable_motion
from robodyn_ros.simulation import ArmSimulation
from robodyn_ros.simulation.drive import Drive, driven_motion
from robodyn_ros.simulation.sampled_arm import joint_loads

TIPS = {
    'panda.urdf': 'panda_link8',
    'ur5_robot.urdf': 'tool0',
    'xarm7.urdf': 'link7',
    'so101.urdf': 'gripper_frame_link',
}
PERIOD = 1e-3
MOTION = 2.0
"""How long a motion takes at least [s]."""
REST = 2.0
"""At rest before a motion, and after it [s]."""
POSES, SETTLING = 8, 3.0
"""In which servos' gains are measured, and how long each takes to rest [s]."""
VISCOUS, COULOMB = 0.1, 0.05
"""Of a joint's rms gravity torque, at 1 rad/s and always."""


@dataclass(frozen=True)
class DrivenArm:
    """A model with friction, the same URDF for MuJoCo, and a motion from rest to rest."""

    model: RobotModel
    chain: Chain
    motion: PointToPoint

    def simulation(self, payload: Payload | None = None) -> ArmSimulation:
        simulation = ArmSimulation(
            self.chain,
            gravity=self.model.gravity,
            time_step=PERIOD,
            rotor_inertia=self.model.rotor_inertia,
        )
        if payload is not None:
            simulation.carry([replace(payload, link=self.model.tip_link)])
        return simulation

    def trajectory(self) -> Trajectory:
        """Rest, the motion, rest: quintics, as a planner would send them."""
        times = np.array([0.0, REST, REST + self.motion.duration, 2 * REST + self.motion.duration])
        positions = np.array([self.motion.start] * 2 + [self.motion.goal] * 2)
        zero = np.zeros_like(positions)
        return Trajectory(self.model.joint_names, times, positions, zero, zero, zero)

    def filled(self, model: RobotModel, terms: Terms | None = None) -> Trajectory:
        """Return the trajectory as ``feedforward`` fills it, by a model and some of its terms."""
        torque = ReferenceTorque.of(model)
        torque = torque if terms is None else replace(torque, terms=terms)
        limits = np.where(model.effort_limits > 0, model.effort_limits, 100.0)
        settings = FeedforwardSettings.of(limits)
        return with_feedforward_efforts(self.trajectory(), torque, settings).trajectory

    def commands(self, trajectory: Trajectory) -> tuple[np.ndarray, ...]:
        """Return positions, velocities and efforts of each cycle, as the controller has them."""
        controller = JointTrajectoryController(trajectory, 0.0, 0.0)
        cycles = np.arange(round(trajectory.times[-1] / PERIOD)) * PERIOD
        position, velocity, effort = zip(*map(controller.sample, cycles), strict=True)
        return np.array(position), np.array(velocity), np.array(effort)

    def error(
        self,
        drive: Drive,
        trajectory: Trajectory,
        *,
        with_velocity: bool = True,
        payload: Payload | None = None,
    ) -> np.ndarray:
        """Return the errors (N, n) [rad] of an arm that rests at the start, from its motion on."""
        cycles = round(trajectory.times[-1] / PERIOD)
        time = np.arange(cycles) * PERIOD - REST
        position, velocity, effort = self.commands(trajectory)
        return driven_motion(
            self.simulation(payload),
            drive,
            self.motion.position(time),
            desired_position=position,
            desired_velocity=velocity if with_velocity else None,
            effort=effort,
        ).error[time >= 0.0]


@lru_cache
def driven_arm(name: str, rotor: float = 0.1) -> DrivenArm:
    """Return a public arm with friction, and rotors of this inertia [kg m²]."""
    path = public_urdf(name)
    bare = RobotModel.from_urdf(path, tip_link=TIPS[name])
    torque, _ = joint_loads(bare, np.random.default_rng(0))
    root = etree.fromstring(path.read_bytes())
    for joint, size in zip(bare.joint_names, torque, strict=True):
        (element,) = root.xpath(f'joint[@name="{joint}"]')
        for old in element.findall('dynamics'):
            element.remove(old)
        values = {'damping': str(VISCOUS * size), 'friction': str(COULOMB * size)}
        etree.SubElement(element, 'dynamics', values)
    chain = Chain.from_urdf_text(etree.tostring(root, encoding='unicode'), tip_link=TIPS[name])
    model = RobotModel.from_chain(chain).with_rotor_inertia(np.full(bare.n, rotor))
    motion = suitable_motion(bare)
    return DrivenArm(model, chain, replace(motion, duration=max(MOTION, motion.duration)))


def measured_gains(arm: DrivenArm, drive: Drive, random: np.random.Generator) -> ServoGains:
    """Return servos' gains as a user measures them; 0: gravity does not turn that joint."""
    simulation, n = arm.simulation(), arm.model.n
    lower, upper = np.clip(arm.model.position_limits, -3.0, 3.0).T
    sag = 0.3  # no joint must rest on a stop
    commanded = random.uniform(lower + sag, upper - sag, (POSES, n))
    measured = np.empty((POSES, n))
    for k, target in enumerate(commanded):
        simulation.reset(np.clip(target + random.choice([-0.3, 0.3], n), lower, upper))
        for _ in range(round(SETTLING / PERIOD)):
            state = simulation.position, simulation.velocity
            simulation.step(drive.torque(*state, desired_position=target))
        measured[k] = ENCODER_RESOLUTION * np.round(simulation.position / ENCODER_RESOLUTION)
    gain, deviation = np.zeros((2, n))
    for i, name in enumerate(arm.model.joint_names):
        try:
            found = servo_gains(arm.model, measured, commanded, joints=[name])
        except InsufficientRecording:
            continue
        gain[i], deviation[i] = found.gain[i], found.deviation[i]
    return ServoGains(arm.model.joint_names, gain, deviation)
