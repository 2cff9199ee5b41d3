# SPDX-License-Identifier: Apache-2.0
"""gazebo.launch.py and mujoco.launch.py without a window: the arm is held, and follows."""

import time

import numpy as np
import pytest

pytest.importorskip('launch_ros', reason='needs launch_ros, of a ROS installation')

from gazebo_rig import DOCS_GOAL, WAYS, GazeboRig, MujocoRig, missing

pytestmark = pytest.mark.ros

# Of each: the rig, and how far the arm sags until the torques carry it [rad].
SIMULATORS = {'gazebo': (GazeboRig, 0.05), 'mujoco': (MujocoRig, 0.1)}
SLOWLY = 0.5  # of real time, which a machine with other work holds
SETTLING = 4.0  # [s], as all that follows: of simulated time
REST, MOTION, LONG_MOTION = 10.0, 3.0, 12.0
DRIFT = 1e-3  # [rad]
END_ERROR, PATH_ERROR = 5e-3, 50e-3  # [rad]; torques that come late on a busy machine included
STATE_TIMEOUT = '3.0'  # [s]: a busy machine keeps the nodes waiting
PAUSE = 4.0  # of real time [s]: longer, so that only simulated time can save the motion


def moved(rig, begin, end):
    """Return how far the joint that moved most did [rad]."""
    return np.ptp(rig.arm.between(begin, end)[1], axis=0).max()


def assert_it_goes_there(rig, begin, goal):
    times = rig.arrive(begin, goal, rig.arm)
    _, desired, actual = rig.arm.tracked(*times)
    assert np.abs(actual - desired).max() < PATH_ERROR
    np.testing.assert_allclose(rig.arm.position, goal, atol=END_ERROR)


@pytest.mark.parametrize('way', WAYS)
@pytest.mark.parametrize('simulator', SIMULATORS)
def test_arm_is_held_does_not_drift_follows_and_survives_a_pause(tmp_path, simulator, way):
    if names := missing(way, simulator):
        pytest.skip(f'{simulator} with ros2_control is not installed: no {", ".join(names)}')
    make, sag = SIMULATORS[simulator]
    rig = make(tmp_path, SLOWLY, way, state_timeout=STATE_TIMEOUT)
    try:
        rig.bring_up()
        begin = rig.arm.between(0.0)[0][0]
        rig.simulate(SETTLING)
        assert moved(rig, begin, rig.now) < sag
        rig.simulate(SETTLING)
        assert moved(rig, *rig.simulate(REST)) < DRIFT
        if way == 'forward':
            rig.set_parameters('/dynamics_node', mode='computed_torque')
        assert_it_goes_there(rig, rig.move(DOCS_GOAL, MOTION), DOCS_GOAL)
        if simulator == 'gazebo':  # the other has no pause
            survive_a_pause(rig)
    finally:
        rig.close()


def survive_a_pause(rig):
    back = np.zeros(6)
    begin = rig.move(back, LONG_MOTION)
    rig.until(lambda: np.abs(rig.arm.desired - DOCS_GOAL).max() > 0.02)
    rig.control('pause: true')
    paused = rig.now
    assert np.abs(rig.arm.desired - back).max() > 0.02, 'it was too late to pause'
    time.sleep(PAUSE)
    assert rig.now < paused + 0.5  # or it was no pause
    rig.control('pause: false')
    assert_it_goes_there(rig, begin, back)
    assert 'reference dropped' not in rig.log
