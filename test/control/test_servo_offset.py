# SPDX-License-Identifier: Apache-2.0
"""Servos that take positions alone: the offset of torque over gain, and the gain measured."""

from dataclasses import replace

import numpy as np
import pytest
from jtc_rule import JointTrajectoryController
from robots import public_urdf

from robodyn_ros import RobotModel, gravity_torque
from robodyn_ros.control.feedforward_efforts import TrajectoryFeedforward
from robodyn_ros.control.servo_offset import ServoOffset, servo_gains
from robodyn_ros.control.settings import checked
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NoSuchName

PANDA = public_urdf('panda.urdf')
MODEL = RobotModel.from_urdf(PANDA, tip_link='panda_link8')
GAINS = np.array([900.0, 1000.0, 800.0, 700.0, 90.0, 80.0, 70.0])
TURNED = ['panda_joint2', 'panda_joint3', 'panda_joint4', 'panda_joint5', 'panda_joint6']
START = np.array([0.1, -0.3, 0.2, -1.8, 0.3, 1.6, 0.5])


def poses(count=12, noise=0.0, seed=0):
    """Return where servos of these gains rest, and what they were told: the closed form."""
    random = np.random.default_rng(seed)
    position = START + random.uniform(-0.6, 0.6, (count, 7))
    error = gravity_torque(MODEL, position) / GAINS
    return position, position + error + noise * random.normal(size=error.shape)


# --- the gains ---------------------------------------------------------------------------------


def test_gain_is_the_gravity_torque_over_the_error():
    found = servo_gains(MODEL, *poses(), joints=TURNED, resolution=0.0)
    np.testing.assert_allclose(found.gain[1:6], GAINS[1:6], rtol=1e-9)
    assert found.gain[0] == found.gain[6] == 0.0


def test_deviation_is_that_of_many_measurements():
    noise = 2e-4
    many = [
        servo_gains(MODEL, *poses(noise=noise, seed=k), joints=TURNED[:3], resolution=0.0)
        for k in range(100)
    ]
    gain, said = (np.array([getattr(f, n)[1:4] for f in many]) for n in ('gain', 'deviation'))
    scatter = ((gain - GAINS[1:4]) / said).std(axis=0)
    np.testing.assert_allclose(scatter, 1.0, atol=0.3)


def test_encoder_bounds_what_is_known():
    exact = poses()
    known = servo_gains(MODEL, *exact, joints=TURNED[:3], resolution=1e-3)
    torque = gravity_torque(MODEL, exact[0])[:, 1]
    expected = GAINS[1] ** 2 * 1e-3 / np.sqrt(12.0 * (torque @ torque))
    assert known.deviation[1] == pytest.approx(expected)


def test_dry_friction_bounds_what_is_known():
    sticky = replace(MODEL, coulomb_friction=np.full(7, 0.9))
    position, commanded = poses()
    known = servo_gains(sticky, position, commanded, joints=TURNED[:3], resolution=0.0)
    torque = gravity_torque(MODEL, position)[:, 1]
    expected = GAINS[1] * 0.9 / np.sqrt(3.0 * (torque @ torque))
    assert known.deviation[1] == pytest.approx(expected)


def test_joint_that_gravity_does_not_turn_is_refused_by_name():
    with pytest.raises(InsufficientRecording, match="'panda_joint1' servo gain.*leave it out"):
        servo_gains(MODEL, *poses())
    # A sag of less than the encoder's step says nothing, however steady it is.
    for resolution in (0.5, 1e300):
        with pytest.raises(InsufficientRecording, match="'panda_joint6' servo gain.*gravity"):
            servo_gains(MODEL, *poses(), joints=['panda_joint6'], resolution=resolution)


def test_reversed_joint_is_reported():
    position, commanded = poses()
    with pytest.raises(InsufficientRecording, match="'panda_joint2' servo gain: -.*positive"):
        servo_gains(MODEL, position, 2 * position - commanded, joints=['panda_joint2'])


def test_poses_and_names_that_cannot_be_are_refused():
    position, commanded = poses()
    for given, kind, words in (
        ((position[:1], commanded[:1]), InsufficientRecording, 'poses at rest: 1'),
        ((position[0], commanded[0]), InsufficientRecording, 'poses at rest: 1'),
        ((position, commanded[:5]), InvalidArgument, 'argument commanded'),
    ):
        with pytest.raises(kind, match=words):
            servo_gains(MODEL, *given)
    with pytest.raises(NoSuchName, match="argument joints: 'elbow'"):
        servo_gains(MODEL, position, commanded, joints=['elbow'])
    with pytest.raises(InvalidArgument, match='argument resolution'):
        servo_gains(MODEL, position, commanded, resolution=-1.0)


# --- the offset --------------------------------------------------------------------------------


def test_offset_is_torque_over_gain_bounded_and_within_the_position_limits():
    gains = np.array([100.0, 100.0, 0.0, 100.0, 100.0, 100.0, 100.0])
    servo = ServoOffset.of(MODEL, gains, 0.1)
    torque = np.array([5.0, -50.0, 80.0, 0.0, 5.0, 5.0, -5.0])
    position = START.copy()
    lower, upper = MODEL.position_limits.T
    position[4], position[6] = upper[4] - 0.02, lower[6] - 0.3  # the last is past its limit
    moved = servo.command(position, torque) - position
    np.testing.assert_allclose(moved, [0.05, -0.1, 0.0, 0.0, 0.02, 0.05, 0.0], atol=1e-12)


def test_offset_that_cannot_be_is_refused():
    for given, words in (((-1.0,), 'gains'), ((1.0, [0.1, 0.2]), 'largest_offset')):
        with pytest.raises(InvalidArgument, match=f'argument {words}'):
            ServoOffset.of(MODEL, *given)


def feedforward(gains=tuple(GAINS), **changes):
    settings = checked({'urdf_file': str(PANDA), 'tip_link': 'panda_link8', **changes})
    made = TrajectoryFeedforward(settings, None, 1e-4, 1e-3, servo_gains=gains)
    zero = [0.0] * 7
    made.joint_states.receive(
        MODEL.joint_names, START.tolist(), zero, received=0.0, stamp=0.0, age=0.0
    )
    made.take_state()
    return made


def motion(names=MODEL.joint_names):
    columns = [MODEL.joint_names.index(name) for name in names]
    positions = np.array([START, START + 0.3])[:, columns]
    zero = np.zeros_like(positions)
    return Trajectory(tuple(names), np.array([0.0, 1.5]), positions, zero, zero, zero)


def test_trajectory_is_the_one_with_effort_moved_by_effort_over_gain_all_the_way():
    """At any time, as the controller interpolates both, and in the order of the trajectory."""
    names = MODEL.joint_names[::-1]
    wanted = feedforward(gains=(), algorithm='newton_euler').with_efforts(motion(names), 0.0)
    found = feedforward(algorithm='newton_euler').with_efforts(motion(names), 0.0)
    assert not found.trajectory.efforts.any() and found.notes == wanted.notes
    before, after = (
        JointTrajectoryController(each.trajectory, 0.0, 0.0) for each in (wanted, found)
    )
    for time in np.linspace(0.0, 1.7, 500):
        position, _, effort = before.sample(time)
        moved = (after.sample(time)[0] - position) * GAINS[::-1]
        assert (np.abs(moved - effort) < 1e-3 * MODEL.effort_limits[::-1]).all(), time
    np.testing.assert_array_equal(found.trajectory.velocities, wanted.trajectory.velocities)


def test_hold_is_offset_by_gravity_and_unit_of_commands_does_not_matter():
    held = feedforward(command_scale=(0.25,)).hold(0.0).trajectory
    expected = START + gravity_torque(MODEL, START) / GAINS
    np.testing.assert_allclose(held.positions, np.tile(expected, (len(held.times), 1)), atol=1e-9)
    assert not held.efforts.any()


def test_next_trajectory_goes_on_from_where_the_arm_is_meant_to_be():
    """The offset counts once: what was sent is where the arm should be, not what was commanded."""
    filler = feedforward(gains=tuple(10.0 * GAINS))
    held = filler.hold(0.0).trajectory
    first = filler.with_efforts(motion(), 0.05).trajectory
    np.testing.assert_allclose(first.positions[0], held.positions[0], atol=1e-9)


def test_offset_that_is_cut_is_reported():
    found = feedforward(gains=(100.0,)).hold(0.0)
    gravity = np.abs(gravity_torque(MODEL, START))
    told = [note for note in found.notes if 'needs an offset of' in note]
    named = [name for name, torque in zip(MODEL.joint_names, gravity) if torque > 10.0]
    assert [note.split()[0] for note in told] == named and told[0].endswith('cut at 0.1')


def test_gains_are_in_the_order_of_the_joints_and_one_for_each():
    names = list(MODEL.joint_names[::-1])
    filler = feedforward(gains=tuple(GAINS[::-1]), joints=names)
    np.testing.assert_array_equal(filler.servo.gains, GAINS)
    with pytest.raises(InvalidArgument, match='parameter servo_gains'):
        feedforward(gains=(1.0, 2.0))
