# SPDX-License-Identifier: Apache-2.0
"""What feedforward is worth beside drives that are no torque sources, each on two arms."""

from dataclasses import replace

import numpy as np
import pytest
from driven_arms import VISCOUS, driven_arm, measured_gains

from robodyn_ros import gravity_torque
from robodyn_ros.control.law import Terms
from robodyn_ros.control.servo_offset import ServoOffset
from robodyn_ros.simulation.drive import Drive

pytest.importorskip('mujoco')
pytestmark = pytest.mark.slow

LARGE = pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf'])


def rms(error):
    return float(np.sqrt(np.mean(error**2)))


@LARGE
def test_feedforward_of_what_a_driver_leaves_over(name):
    arm = driven_arm(name)
    gain = 200.0
    drive = Drive(arm.model, gain, 20.0, compensates_gravity=True, compensates_friction=0.8)
    left = arm.filled(arm.model, Terms(True, True, False, False))
    before, after = arm.error(drive, arm.trajectory()), arm.error(drive, left)
    assert rms(after) < 0.5 * rms(before)
    # Compensated twice, gravity lifts the arm by its weight over the gain, up to dry friction.
    twice = arm.error(drive, arm.filled(arm.model, Terms(True, True, True, False)))[-1]
    lift = -gain * twice - gravity_torque(arm.model, arm.motion.goal)
    assert (np.abs(lift) < 1.1 * arm.model.coulomb_friction + 0.5).all()
    assert np.abs(twice).max() > 0.1


@LARGE
def test_torque_beside_the_position_of_a_servo_takes_its_sag_and_its_lag(name):
    arm = driven_arm(name)
    gain = 4.0 * arm.model.viscous_friction / VISCOUS
    drive = Drive(arm.model, gain, 0.14 * gain)
    before = arm.error(drive, arm.trajectory(), with_velocity=False)
    assert np.abs(before[-1]).max() > 0.2
    # No velocity is commanded beside position and effort: told as friction, its damping is none.
    damped = replace(arm.model, viscous_friction=arm.model.viscous_friction + 0.14 * gain)
    after = arm.error(drive, arm.filled(damped), with_velocity=False)
    assert rms(after) < 0.01 * rms(before)


@pytest.mark.parametrize('name', ['so101.urdf', 'xarm7.urdf'])
def test_offset_by_measured_gains_takes_the_sag_of_servos_that_take_positions_alone(name):
    arm = driven_arm(name, 0.03 if name.startswith('so') else 0.1)
    random = np.random.default_rng(1)
    gain = 20.0 * arm.model.viscous_friction / VISCOUS * random.uniform(0.7, 1.3, arm.model.n)
    drive = Drive(arm.model, gain, 0.05 * gain)
    found = measured_gains(arm, drive, random)
    known = found.gain > 0.0
    assert known.sum() >= 3
    off = (found.gain - gain)[known] / found.deviation[known]
    assert np.abs(off).max() < 4.0
    damped = replace(arm.model, viscous_friction=arm.model.viscous_friction + 0.05 * gain)
    filled = arm.filled(damped)
    servo = ServoOffset.of(arm.model, found.gain, 0.2)
    moved = servo.in_trajectory(filled, np.arange(arm.model.n), filled.efforts)
    before = arm.error(drive, arm.trajectory(), with_velocity=False)[:, known]
    after = arm.error(drive, moved, with_velocity=False)[:, known]
    assert rms(after) < 0.1 * rms(before)
