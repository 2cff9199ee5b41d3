# SPDX-License-Identifier: Apache-2.0
"""A Panda without friction in MuJoCo under the command pipeline, and a bad driver."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

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
def mounted_panda(mount):
    """Return the file of a Panda on a fixed joint with these roll, pitch and yaw [rad]."""
    rpy = ' '.join(map(str, mount))
    base = (
        '<link name="world"/><joint name="mount" type="fixed"><parent link="world"/>'
        f'<child link="panda_link0"/><origin xyz="0 0 1" rpy="{rpy}"/></joint></robot>'
    )
    path = Path(tempfile.mkdtemp(prefix='mounted_panda_')) / 'panda.urdf'
    path.write_text(public_urdf('panda.urdf').read_text().replace('</robot>', base))
    atexit.register(shutil.rmtree, path.parent)
    return path


class FrictionlessArm:
    """Moves when it is enabled; states come once in a period, and some velocities are wrong."""

    def __init__(self, speed=0.0, reversed_joint=None, period=TIME_STEP, mount=None, **settings):
        urdf = str(public_urdf('panda.urdf') if mount is None else mounted_panda(mount))
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
