# SPDX-License-Identifier: Apache-2.0
"""two_arms.launch.py: two arms in namespaces of their own hold and track at once, over DDS."""

import unittest

import numpy as np
import pytest

pytest.importorskip('launch_testing', reason='needs launch_testing, of a ROS installation')
pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')

from launch_rig import Listener, ends_well, launched
from sensor_msgs.msg import JointState

ARMS = ('red', 'blue')
START = [0.2, -0.4, 0.9, 0.1, 0.6, 0.3]
HOLD_STEPS = 250
STEPS = 1000  # of 4 ms, for a motion of 2 s from a start that the motion is planned at
GOALS = {'red': np.add(START, 0.4), 'blue': np.subtract(START, 0.3)}


@pytest.mark.launch_test
@pytest.mark.ros
def generate_test_description():
    return launched(
        'two_arms',
        left_name='red',
        right_name='blue',
        initial_position=str(START),
        initial_mode='computed_torque',
        lockstep='true',
    )


class TestTwoArms(unittest.TestCase):
    def setUp(self):
        self.listener = Listener()
        self.states = {
            arm: self.listener.heard(JointState, f'/{arm}/joint_states') for arm in ARMS
        }

    def tearDown(self):
        self.listener.close()

    def both_have_made(self, steps):
        return lambda: all(len(states) >= steps for states in self.states.values())

    def test_both_hold_then_each_follows_its_own_trajectory_at_the_same_time(self):
        self.listener.until(self.both_have_made(HOLD_STEPS))
        for arm, states in self.states.items():
            self.assertEqual(list(states[-1].name), [f'{arm}_joint{i}' for i in range(1, 7)])
            np.testing.assert_allclose(states[-1].position, START, atol=1e-3)
        for arm, goal in GOALS.items():
            names = [f'{arm}_joint{i}' for i in range(1, 7)]
            self.listener.follow(f'/{arm}/dynamics_node/joint_trajectory', names, goal, 2)
        made = max(len(states) for states in self.states.values())
        self.listener.until(self.both_have_made(made + STEPS))
        for arm, states in self.states.items():
            np.testing.assert_allclose(states[-1].position, GOALS[arm], atol=5e-3)


# A loaded machine keeps the simulators waiting.
TestAfterwards = ends_well('no fresh state of')
