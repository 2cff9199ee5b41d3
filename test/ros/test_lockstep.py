# SPDX-License-Identifier: Apache-2.0
"""A simulation in lockstep that is held at first is the same to the last bit at any load."""

import os
import random
import signal

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from lockstep_rig import TIME_STEP, LockstepRig, seconds
from rclpy.qos import QoSProfile
from robots import public_urdf
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros

PANDA = {'urdf_file': public_urdf('panda.urdf'), 'tip_link': 'panda_link8'}
START = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.0])
DURATION = 0.5  # of the motion [s]
NOISE = {'velocity_noise': 1e-3, 'effort_noise': [0.1] * 7, 'sensor_seed': 5}
RESENT = 0.02  # after which the simulator sends a state again [s]


def recorded(log_path, stops, held):
    """
    Return stamp, position, velocity and effort of every state from the release to the end.

    The node, then the simulator, stands still for these times [s], one after the other; before
    the release everything is ready for another while [s].
    """
    rig = LockstepRig(log_path)
    states = {}
    rig.node.create_subscription(
        JointState,
        '/joint_states',
        lambda message: states.setdefault(seconds(message.header.stamp), message),
        QoSProfile(depth=20_000),
    )
    try:
        rig.start(**PANDA, mode='computed_torque')
        rig.start_simulator(
            **PANDA, **NOISE, initial_position=START, hold=True, lockstep_timeout=RESENT
        )
        assert rig.transition('activate')
        rig.until(lambda: rig.states)
        rig.follow([START + 0.2], [DURATION])
        rig.until(lambda: rig.states and len(rig.states[-1].reference_position) == 7)
        rig.spin(held)
        rig.until(lambda: states)
        assert set(states) == {TIME_STEP}
        release = rig.node.create_client(Trigger, '/simulator_node/release')
        rig.until(release.service_is_ready)
        rig.until(release.call_async(Trigger.Request()).done)
        for k, stop in enumerate(stops):
            victim = (rig.process, rig.simulator)[k % 2].pid
            os.kill(victim, signal.SIGSTOP)
            rig.spin(stop)
            os.kill(victim, signal.SIGCONT)
            rig.spin(0.02)
        rig.until(lambda: max(states) >= 1.5 * DURATION, patience=240.0)
    finally:
        rig.close()
    times = sorted(time for time in states if time <= 1.5 * DURATION)
    return np.array(
        [
            [time, *states[time].position, *states[time].velocity, *states[time].effort]
            for time in times
        ]
    )


@pytest.mark.slow
def test_delays_of_any_process_change_no_bit_of_a_held_run(tmp_path):
    generator = random.Random(3)
    (tmp_path / 'disturbed').mkdir()
    quiet = recorded(tmp_path / 'log', (), 0.0)
    stops = [generator.uniform(0.03, 0.3) for _ in range(8)]
    disturbed = recorded(tmp_path / 'disturbed' / 'log', stops, 0.3)
    np.testing.assert_allclose(np.diff(quiet[:, 0]), TIME_STEP)
    np.testing.assert_array_equal(disturbed, quiet)
    moved = quiet[-1, 1:8] - START
    np.testing.assert_allclose(moved, 0.2, atol=0.02)
