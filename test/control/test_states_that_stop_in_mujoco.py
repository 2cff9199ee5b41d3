# SPDX-License-Identifier: Apache-2.0
"""An arm whose joint states stop in motion comes to rest by the model alone."""

import numpy as np
import pytest
from robots import public_urdf

pytest.importorskip('mujoco')

from robodyn_ros import mass_matrix
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.simulation.arm import ArmSimulation

CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
TURN = np.array([0.5, -0.3, 0.4, 0.5, -0.4, 0.3, 0.5])
PERIOD, WATCHDOG_PERIOD = 0.001, 0.01
DURATION = 2.0


class Arm:
    """A Panda in MuJoCo without friction, under the command pipeline."""

    def __init__(self, **settings):
        urdf = str(public_urdf('panda.urdf'))
        settings = ControlSettings(urdf_file=urdf, mode='computed_torque', **CHAIN, **settings)
        self.stack = build_control_stack(settings, None)
        self.simulation = ArmSimulation.from_urdf(
            urdf, **CHAIN, time_step=PERIOD, initial_position=POSITION
        )
        self.now, self.energies, self.torque = 100.0, [], None
        self.stack.pipeline.enable(self.now)

    def run(self, duration, is_heard=True):
        """Let time pass [s], with joint states or without."""
        pipeline, states = self.stack.pipeline, self.stack.joint_states
        for i in range(round(duration / PERIOD)):
            q, qd = self.simulation.position, self.simulation.velocity
            command = None
            if is_heard:
                states.receive(
                    self.stack.model.joint_names, q, qd, received=self.now, stamp=self.now
                )
                command = pipeline.step(states.take(), self.now)
            elif i % round(WATCHDOG_PERIOD / PERIOD) == 0:
                command = pipeline.watchdog(self.now)
            self.torque = self.torque if command is None else command.torque
            self.simulation.step(self.torque)
            self.energies.append(0.5 * qd @ mass_matrix(self.stack.model, q) @ qd)
            self.now = round(self.now + PERIOD, 9)

    def follow(self):
        goal = [POSITION + TURN]
        names = self.stack.model.joint_names
        self.stack.pipeline.follow(
            Trajectory.from_points(names, [DURATION], goal, [[]], [[]], [[]])
        )


@pytest.fixture(scope='module')
def plain_energy():
    arm = Arm()
    arm.run(0.1)
    arm.follow()
    arm.run(1.2 * DURATION)
    return max(arm.energies)


@pytest.mark.parametrize('instant', [0.25, 0.5, 0.75])
@pytest.mark.parametrize('silence', [0.3, 0.6])
def test_arm_is_slower_after_a_silence_than_before_and_holds_when_states_come_back(
    plain_energy, instant, silence
):
    arm = Arm()
    arm.run(0.1)
    arm.follow()
    arm.run(instant * DURATION)
    before = arm.energies[-1]
    arm.run(silence, is_heard=False)
    assert max(arm.energies) < 1.1 * plain_energy
    assert arm.energies[-1] < 0.02 * before
    arm.run(2.0)
    assert max(arm.energies) < 1.1 * plain_energy
    assert arm.energies[-1] < 1e-6 * before
    assert arm.stack.pipeline.reference_status == 'holding'


def test_zero_torque_on_stale_states_is_not_braked():
    arm = Arm(on_stale_state='zero', torque_rate_limit=(0.0,))
    arm.run(0.1)
    arm.follow()
    arm.run(0.5 * DURATION)
    arm.run(0.15, is_heard=False)
    assert not arm.torque.any()
