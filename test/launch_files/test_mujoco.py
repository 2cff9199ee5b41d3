# SPDX-License-Identifier: Apache-2.0
"""mujoco.launch.py in a real mujoco_ros2_control, headless: the arm is held, and follows."""

import numpy as np
import pytest

pytest.importorskip('launch_ros', reason='needs launch_ros, of a ROS installation')

from gazebo_rig import DOCS_GOAL, WAYS, MujocoRig, missing

pytestmark = pytest.mark.ros

SLOWLY = 0.5  # of real time, which a machine with other work holds
SETTLING = 4.0  # [s], as all that follows: of simulated time
SAG = 0.1  # until the torques carry the arm [rad]
REST, MOTION = 10.0, 3.0
DRIFT = 1e-3  # [rad]
END_ERROR, PATH_ERROR = 5e-3, 50e-3  # [rad]; torques that come late on a busy machine included
STATE_TIMEOUT = '3.0'  # [s]: a busy machine keeps the nodes waiting


@pytest.mark.parametrize('way', WAYS)
def test_arm_in_mujoco_is_held_does_not_drift_and_follows(tmp_path, way):
    if names := missing(way, 'mujoco'):
        pytest.skip(f'mujoco_ros2_control is not installed: no {", ".join(names)}')
    rig = MujocoRig(tmp_path, SLOWLY, way, state_timeout=STATE_TIMEOUT)
    try:
        rig.bring_up()
        rig.simulate(SETTLING)
        positions = rig.arm.between(0.0)[1]  # it begins at zero
        assert np.abs(positions).max() < SAG
        rig.simulate(SETTLING)
        assert np.ptp(rig.arm.between(*rig.simulate(REST))[1], axis=0).max() < DRIFT
        if way == 'forward':
            rig.set_parameters('/dynamics_node', mode='computed_torque')
        times = rig.arrive(rig.move(DOCS_GOAL, MOTION), DOCS_GOAL, rig.arm)
        _, desired, actual = rig.arm.tracked(*times)
        assert np.abs(actual - desired).max() < PATH_ERROR
        np.testing.assert_allclose(rig.arm.position, DOCS_GOAL, atol=END_ERROR)
    finally:
        rig.close()
