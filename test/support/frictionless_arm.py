# SPDX-License-Identifier: Apache-2.0
"""A Panda without friction in MuJoCo under the command pipeline, and a bad driver."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from control_arm import WATCHDOG_PERIOD, to
from robots import public_urdf
from scipy.spatial.transform import Rotation

from robodyn_ros import mass_matrix
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.simulation.arm import ArmSimulation

CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
FRICTION = np.array([1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1])  # N m s/rad, and half of it in N m
TIME_STEP = 0.001  # s


@cache
def panda_file(mount, has_friction):
    """Return the file of a Panda, on a fixed joint with these roll, pitch and yaw [rad] if any."""
    robot = ElementTree.parse(public_urdf('panda.urdf')).getroot()
    if mount is not None:
        robot.append(ElementTree.Element('link', name='world'))
        joint = ElementTree.SubElement(robot, 'joint', name='mount', type='fixed')
        ElementTree.SubElement(joint, 'parent', link='world')
        ElementTree.SubElement(joint, 'child', link='panda_link0')
        ElementTree.SubElement(joint, 'origin', xyz='0 0 1', rpy=' '.join(map(str, mount)))
    for i in range(7 if has_friction else 0):
        joint = robot.find(f"joint[@name='panda_joint{i + 1}']")
        for each in joint.findall('dynamics'):
            joint.remove(each)
        friction = {'damping': str(FRICTION[i]), 'friction': str(0.5 * FRICTION[i])}
        ElementTree.SubElement(joint, 'dynamics', friction)
    path = Path(tempfile.mkdtemp(prefix='panda_')) / 'panda.urdf'
    path.write_text(ElementTree.tostring(robot, encoding='unicode'))
    atexit.register(shutil.rmtree, path.parent)
    return path


class FrictionlessArm:
    """Moves when it is enabled; states come once in a period, and some velocities are wrong."""

    def __init__(
        self,
        speed=0.0,
        reversed_joint=None,
        period=TIME_STEP,
        mount=None,
        has_friction=False,
        **settings,
    ):
        urdf = str(panda_file(mount, has_friction))
        self.settings = ControlSettings(urdf_file=urdf, **CHAIN, **settings)
        self.stack = build_control_stack(self.settings, None)
        self.simulation = ArmSimulation.from_urdf(
            urdf, **CHAIN, time_step=TIME_STEP, initial_position=POSITION
        )
        if mount is not None:
            upright = Rotation.from_euler('xyz', mount).inv()
            self.simulation._model.opt.gravity[:] = upright.apply([0.0, 0.0, -9.81])
        self.sign = np.where(np.arange(7) == reversed_joint, -1.0, 1.0)
        self.cycles = round(period / TIME_STEP)
        self.now, self.steps, self.pipeline = 100.0, 0, self.stack.pipeline
        self.move(np.full(7, speed))
        self.torque, self.command = np.zeros(7), None
        self.pipeline.enable(self.now)
        self.energies = [self.energy]

    def move(self, velocity):
        """Give it a velocity (7,) [rad/s]."""
        self.simulation.brakes_engaged = False
        self.simulation._data.qvel[:] = velocity

    def add_friction(self):
        """Give the joints the friction that slow states are judged with."""
        self.simulation._model.dof_damping[:] = FRICTION
        self.simulation._model.dof_frictionloss[:] = 0.5 * FRICTION

    @property
    def energy(self):
        """Its kinetic energy [J]."""
        velocity = self.simulation.velocity
        mass = mass_matrix(self.stack.model, self.simulation.position)
        return 0.5 * velocity @ mass @ velocity

    def measured(self):
        """Return position, velocity and stamp of the joint state of now, None for the silence."""
        return self.simulation.position, self.sign * self.simulation.velocity, self.now

    def follow(self, way, duration):
        """Follow a motion by so much [rad] in a time [s]."""
        goal = self.simulation.position + way
        self.pipeline.follow(to(goal, duration, self.stack.model.joint_names))

    def run(self, duration, has_subscribers=True):
        """Let time pass [s], with joint states or without."""
        for _ in range(round(duration / TIME_STEP)):
            self.now = round(self.now + TIME_STEP, 9)
            self.command = None
            if has_subscribers and self.steps % self.cycles == 0:
                self.command = self.cycle(self.measured())
            if self.command is None and self.steps % round(WATCHDOG_PERIOD / TIME_STEP) == 0:
                self.command = self.pipeline.watchdog(self.now)
            self.steps += 1
            self.torque = self.torque if self.command is None else self.command.torque
            self.step()

    def cycle(self, state):
        """Return the command of a joint state, or None."""
        if state is None:
            return None
        position, velocity, stamp = state
        states, names = self.stack.joint_states, self.stack.model.joint_names
        states.receive(names, position, velocity, received=self.now, stamp=stamp)
        if not states.is_complete:  # the message counts as late
            return None
        return self.pipeline.step(states.take(), self.now)

    def step(self):
        """Let the world go on for a time step."""
        self.simulation.step(self.torque)
        if self.steps % 5 == 0:
            self.energies.append(self.energy)
