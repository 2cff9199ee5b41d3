# SPDX-License-Identifier: Apache-2.0
"""A drive's torque is one formula; what an arm does under it follows from closed forms."""

import math
from dataclasses import replace

import numpy as np
import pytest

from robodyn_ros import Payload, RobotModel, friction_torque, gravity_torque
from robodyn_ros.description.chain import Chain
from robodyn_ros.errors import InvalidArgument, NonFiniteValue
from robodyn_ros.simulation.drive import Drive

pytest.importorskip('mujoco')

from robodyn_ros.simulation import ArmSimulation
from robodyn_ros.simulation.drive import driven_motion

G, MASS, ARM = 9.81, 2.0, 0.5
WEIGHT = MASS * G * ARM  # at the horizontal [N m]


def pendulum(damping=0.0, friction=0.0, effort=100.0):
    """One arm about a horizontal axis; at zero it is horizontal, and falls towards +."""
    return (
        '<robot name="arm"><link name="base"/><link name="link">'
        f'<inertial><origin xyz="{ARM} 0 0"/><mass value="{MASS}"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="joint" type="revolute"><parent link="base"/><child link="link"/>'
        f'<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="{effort}" velocity="9"/>'
        f'<dynamics damping="{damping}" friction="{friction}"/></joint></robot>'
    )


def arm(**dynamics):
    chain = Chain.from_urdf_text(pendulum(**dynamics))
    return RobotModel.from_chain(chain), ArmSimulation(chain)


def at_rest(simulation, drive, position, effort=0.0, seconds=3.0):
    """Return where an arm comes to rest whose drives are told a position."""
    desired = np.full((round(seconds / simulation.time_step), 1), position)
    motion = driven_motion(simulation, drive, desired, effort=np.full_like(desired, effort))
    assert np.abs(motion.velocity[-1]) < 1e-6
    return motion.position[-1, 0]


def test_servo_sags_by_its_gravity_torque_over_its_gain():
    model, simulation = arm()
    rest = at_rest(simulation, Drive(model, 40.0, 8.0), 0.0)
    # Gravity at the angle q is -WEIGHT cos q: kp q = WEIGHT cos q, by bisection.
    low, high = 0.0, 1.5
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 40.0 * middle < WEIGHT * math.cos(middle) else (low, middle)
    assert rest == pytest.approx(low, abs=1e-6) and rest > 0.2


def test_torque_beside_the_position_takes_the_sag_away():
    model, simulation = arm()
    rest = at_rest(simulation, Drive(model, 40.0, 8.0), 0.4, effort=-WEIGHT * math.cos(0.4))
    assert rest == pytest.approx(0.4, abs=1e-9)


def test_servo_without_desired_velocity_lags_by_its_damping_times_velocity_over_its_gain():
    model, simulation = arm()
    time = np.arange(1500)[:, None] * simulation.time_step
    drive = Drive(model.with_gravity([0.0, 0.0, 0.0]), 400.0, 40.0)
    simulation = ArmSimulation(Chain.from_urdf_text(pendulum()), gravity=[0.0, 0.0, 0.0])
    for velocity, lag in ((None, 40.0 / 400.0 * 0.5), (np.full_like(time, 0.5), 0.0)):
        motion = driven_motion(simulation, drive, 0.5 * time, desired_velocity=velocity)
        assert motion.error[-1, 0] == pytest.approx(lag, abs=1e-5)


def test_driver_that_has_its_payload_holds_the_arm_and_one_that_does_not_drops_it():
    model, simulation = arm()
    payload = Payload(1.0, (0.3, 0.0, 0.0), link='link')
    simulation.carry([payload])
    inertia = 0.1 + MASS * ARM**2 + 0.3**2
    for known, acceleration in (
        (model.with_payload(payload), 0.0),
        (model, G * 0.3 / inertia),  # the payload's weight alone
    ):
        drive = Drive(known, compensates_gravity=True)
        motion = driven_motion(simulation, drive, np.zeros((21, 1)))
        assert motion.velocity[-1, 0] / 0.02 == pytest.approx(acceleration, rel=1e-3, abs=1e-9)


def test_gravity_compensated_twice_lifts_the_arm_as_its_weight_would_drop_it():
    model, simulation = arm()
    drive = Drive(model, compensates_gravity=True)
    effort = np.full((21, 1), gravity_torque(model, [0.0])[0])
    motion = driven_motion(simulation, drive, np.zeros((21, 1)), effort=effort)
    expected = -WEIGHT / (0.1 + MASS * ARM**2)
    assert motion.velocity[-1, 0] / 0.02 == pytest.approx(expected, rel=1e-3)


def test_driver_compensates_its_fraction_of_friction_by_the_measured_velocity():
    model, _ = arm(damping=0.7, friction=0.4)
    drive = Drive(model, compensates_friction=0.8)
    for speed in (2.0, -2.0):  # forty times the width of its sign
        torque = drive.torque(np.zeros(1), np.array([speed]))
        np.testing.assert_allclose(torque, 0.8 * friction_torque(model, [speed]), rtol=1e-12)
    assert drive.torque(np.zeros(1), np.zeros(1)) == 0.0


def test_effort_limit_clips_the_sum():
    model, _ = arm(effort=5.0)
    drive = Drive(model, 40.0, 0.0, compensates_gravity=True)
    zero = np.zeros(1)
    assert drive.torque(zero, zero, effort=np.array([9.0])) == -WEIGHT + 9.0
    assert drive.torque(zero, zero, desired_position=np.array([2.0])) == 5.0
    assert drive.torque(zero, zero, desired_position=np.array([-2.0])) == -5.0
    unbounded = replace(drive, model=replace(model, effort_limits=zero))
    assert unbounded.torque(zero, zero, desired_position=np.array([2.0])) == 80.0 - WEIGHT


def test_drive_that_cannot_be_is_refused():
    model, simulation = arm()
    for gains, words in (
        ({'position_gain': -1.0}, 'argument position_gain.*each zero or more'),
        ({'velocity_gain': [1.0, 2.0]}, 'argument velocity_gain: 2 values; allowed: 1 or 1'),
        ({'compensates_friction': -0.1}, 'argument compensates_friction'),
    ):
        with pytest.raises(InvalidArgument, match=words):
            Drive(model, **gains)
    with pytest.raises(NonFiniteValue, match='argument position_gain'):
        Drive(model, np.nan)
    with pytest.raises(InvalidArgument, match='argument effort: .*that of desired'):
        driven_motion(simulation, Drive(model), np.zeros((3, 1)), effort=np.zeros((2, 1)))
