# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories keep their path and their joints, and get the time that the drives need."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd
from robodyn_ros.control.feedforward_efforts import (
    FeedforwardSettings,
    TrajectoryFeedforward,
    with_feedforward_efforts,
)
from robodyn_ros.control.model_torque import ReferenceTorque
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.retimed_trajectory import Retiming, knot_bound, slowed_trajectory
from robodyn_ros.control.settings import checked
from robodyn_ros.control.timed_motion import TimingLimits
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.errors import RejectedTrajectory

UR5 = public_urdf('ur5_robot.urdf')
MODEL = rd.RobotModel.from_urdf(UR5, tip_link='tool0')
TORQUE = ReferenceTorque.of(MODEL)
LIMITS = TimingLimits.of(MODEL)
STANCE = np.array([0.2, -1.4, 1.3, 0.1, 0.4, -0.2])
GOAL = STANCE + np.array([0.9, -0.4, 0.7, -0.5, 0.3, 0.8])
CORNER = np.array([STANCE, GOAL, STANCE + 0.3])


def trajectory(points, times, fields='p', names=MODEL.joint_names):
    points, nothing = np.atleast_2d(points), [()] * len(times)
    zeros = np.zeros_like(points).tolist()
    return Trajectory.from_points(
        names,
        times,
        points.tolist(),
        zeros if 'v' in fields else nothing,
        zeros if 'a' in fields else nothing,
        nothing,
    )


def executed(given, rate=1000.0):
    """Return a trajectory's q, qd, qdd at 1 kHz, in chain order, from just after its beginning."""
    columns = [given.joint_names.index(name) for name in MODEL.joint_names]
    fields = (given.positions, given.velocities, given.accelerations, given.efforts)
    points = ReferenceState(*(field[:, columns] for field in fields))
    reference = Reference.through(given.times.tolist(), points, 0.0)
    times = np.arange(given.times[0] + 1e-9, given.times[-1], 1.0 / rate)
    states = [reference.sample(float(time)) for time in times]
    return tuple(
        np.array([vars(state)[name] for state in states])
        for name in ('position', 'velocity', 'acceleration')
    )


def share(model, given):
    """Return the largest torque in parts of the limits."""
    return (np.abs(rd.inverse_dynamics(model, *executed(given))) / MODEL.effort_limits).max()


def test_joint_that_moves_nothing_of_the_arm_is_left_out():
    times, names = [0.0, 3.0, 6.0], ('neck', *MODEL.joint_names)
    torque = ReferenceTorque.of(dataclasses.replace(MODEL, unmodelled_joints=('neck',)))
    wider = trajectory(np.column_stack([[0.0, 0.5, 0.1], CORNER]), times, names=names)
    found = Retiming(LIMITS).of(wider, torque).trajectory
    expected = Retiming(LIMITS).of(trajectory(CORNER, times), TORQUE).trajectory
    assert found.joint_names == expected.joint_names
    np.testing.assert_array_equal(found.positions, expected.positions)


@pytest.mark.parametrize('fields', ['p', 'pv', 'pva'])
def test_trajectory_is_faster_on_its_own_path(fields):
    given = trajectory(CORNER, [0.0, 3.0, 6.0], fields)
    found = Retiming(LIMITS).of(given, TORQUE)
    assert found.motion.duration < 0.5 * found.given.duration == pytest.approx(3.0)
    q = executed(found.trajectory)[0]
    for point in CORNER:
        assert np.linalg.norm(q - point, axis=1).min() < 5e-3
    if fields != 'p':  # straight lines, as all joints move together
        ahead = GOAL - STANCE
        first = q[: np.linalg.norm(q - GOAL, axis=1).argmin()] - STANCE
        off = first - np.outer(first @ ahead, ahead) / (ahead @ ahead)
        assert np.abs(off).max() < 1e-4
    assert share(MODEL, found.trajectory) <= 1.0 + 1e-6


def test_retimed_trajectory_is_retimed_to_itself():
    first = Retiming(LIMITS).of(trajectory(CORNER, [0.0, 3.0, 6.0]), TORQUE)
    second = Retiming(LIMITS).of(first.trajectory, TORQUE)
    assert second.motion.duration == pytest.approx(first.motion.duration, rel=0.01)


@pytest.mark.parametrize('fields', ['p', 'pv'])
@pytest.mark.parametrize('strength', [1.0, 100.0])
def test_points_are_no_denser_than_torque_and_path_need(fields, strength):
    """Of strong drives any number of points may go, by the torque."""
    limits = dataclasses.replace(
        LIMITS, effort=strength * LIMITS.effort, acceleration=np.full(6, 12.0)
    )
    found = Retiming(limits).of(trajectory(CORNER, [0.0, 3.0, 6.0], fields), TORQUE)
    kept = len(found.trajectory.times)
    assert kept < 0.6 * len(found.motion.time)
    q, qd, qdd = executed(found.trajectory)
    time = np.arange(1e-9, found.motion.duration, 1e-3)
    given = found.motion.at(time)
    assert np.abs(q - given[0]).max() < 1.2e-4
    sparse, dense = (rd.inverse_dynamics(MODEL, *states) for states in ((q, qd, qdd), given))
    # Where the torque jumps, a sample may fall on either side.
    off = np.sort(np.abs(sparse - dense).max(axis=1) / 150.0)
    assert off[int(0.95 * len(off))] < 2e-3 * strength


def cubic_peaks(given, count=1000):
    """Return the largest speeds and accelerations of the cubics between points, from formulas."""
    s = np.linspace(0.0, 1.0, count)[:, None]
    peaks = np.zeros((2, given.positions.shape[1]))
    for k, step in enumerate(np.diff(given.times)):
        way = given.positions[k + 1] - given.positions[k]
        v0, v1 = given.velocities[k] * step, given.velocities[k + 1] * step
        c2, c3 = 3.0 * way - 2.0 * v0 - v1, v0 + v1 - 2.0 * way
        speed = np.abs(v0 + 2.0 * c2 * s + 3.0 * c3 * s**2).max(axis=0) / step
        rise = np.abs(2.0 * c2 + 6.0 * c3 * s).max(axis=0) / step**2
        peaks = np.maximum(peaks, [speed, rise])
    return peaks


@pytest.mark.parametrize('grid_points', [2, 5, 200])
@pytest.mark.parametrize('distance', [0.3, 2.0])
def test_points_keep_every_limit_between_them_of_joints_that_need_no_torque(grid_points, distance):
    """Its wrist is so light that any number of points may go, by its torque."""
    text = two_link_urdf(1.0, 1e-3)
    light = dataclasses.replace(rd.RobotModel.from_urdf(text), effort_limits=np.full(2, 50.0))
    limits = TimingLimits.of(light, None, 2.0, 5.0)
    given = trajectory([[0.3, 0.0], [0.3, distance]], [0.0, 5.0], 'p', light.joint_names)
    retiming = Retiming(limits, grid_points=grid_points)
    found = retiming.of(given, ReferenceTorque.of(light)).trajectory
    speed, rise = cubic_peaks(found)
    assert speed.max() <= 2.0 * (1.0 + 1e-6) and rise.max() <= 5.0 * (1.0 + 1e-6)
    fastest = distance / 2.0 + 2.0 / 5.0 if distance > 0.8 else 2.0 * (distance / 5.0) ** 0.5
    assert fastest <= found.times[-1] <= 1.03 * fastest or grid_points < 200


@pytest.mark.filterwarnings('error')
def test_joints_that_need_no_torque_get_no_points_for_it():
    """Their bound is zero: a division by it made NaN, and every point the file may have."""
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    none = np.zeros_like(arm.inertial_parameters)
    arm = dataclasses.replace(arm, inertial_parameters=none)
    limits = TimingLimits.of(arm, None, 2.0, 5.0)
    torque = ReferenceTorque.of(arm)
    given = trajectory([[0.0, 0.0], [1.0, 2.0]], [0.0, 5.0], 'p', arm.joint_names)
    found = Retiming(limits).of(given, torque)
    settings = FeedforwardSettings(limits.effort, knot_bound(found.motion, limits), np.ones(2))
    filled = with_feedforward_efforts(found.trajectory, torque, settings)
    assert len(filled.trajectory.times) < 20 and not filled.trajectory.efforts.any()
    assert not filled.largest_error.any()


def test_path_of_many_waypoints_is_that_of_their_velocities():
    """A wave of parabolas: its waypoints alone lie on a straight line."""
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    count, step = 300, 0.01
    wave = np.where(np.arange(count) % 2, -step, step)
    points = np.stack([step * np.arange(count) - 1.5, np.zeros(count)], axis=1)
    velocities = np.stack([np.full(count, step), wave], axis=1)
    velocities[[0, -1]] = 0.0
    given = dataclasses.replace(
        trajectory(points, np.arange(float(count)), 'p', arm.joint_names), velocities=velocities
    )
    limits = TimingLimits.of(arm, None, 2.0, 20.0)
    found = Retiming(limits).of(given, ReferenceTorque.of(arm)).motion
    x, y = found.at(np.linspace(0.0, found.duration, 10_000))[0].T
    inner = np.abs(x) < 1.4
    part, y = (x[inner] + 1.5) / step % 2.0, y[inner]
    parabola = step * part * (1.0 - part)
    parabola = np.where(part < 1.0, parabola, -step * (part - 1.0) * (2.0 - part))
    assert np.abs(y - parabola).max() < 1e-4


def test_small_moves_after_many_turns_stay():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    points = [[0.0, 0.0], [90.0, 0.0], [90.0, 5e-3], [90.0, 0.0]]
    given = trajectory(points, [0.0, 90.0, 91.0, 92.0], 'pv', arm.joint_names)
    limits = TimingLimits.of(arm, None, 2.0, 20.0)
    found = Retiming(limits).of(given, ReferenceTorque.of(arm)).trajectory
    motion = Waypoints(found.times, found.positions, found.velocities).polynomials
    assert motion.extremes(0)[1][:, 1].max() == pytest.approx(5e-3, rel=0.01)


def test_names_in_another_order_stay_in_it():
    order = [3, 0, 5, 1, 2, 4]
    names = tuple(MODEL.joint_names[k] for k in order)
    given = trajectory(CORNER[:, order], [0.0, 3.0, 6.0], 'pv', names)
    found = Retiming(LIMITS).of(given, TORQUE)
    assert found.trajectory.joint_names == names
    assert found.trajectory.positions[0] == pytest.approx(STANCE[order])
    plain = Retiming(LIMITS).of(trajectory(CORNER, [0.0, 3.0, 6.0], 'pv'), TORQUE)
    assert found.motion.duration == pytest.approx(plain.motion.duration)


def test_joints_that_are_not_named_stay():
    given = trajectory(CORNER[:, :2], [0.0, 3.0, 6.0], 'pv', MODEL.joint_names[:2])
    with pytest.raises(RejectedTrajectory, match='without elbow_joint'):
        Retiming(LIMITS).of(given, TORQUE)
    beginning = ReferenceState.at_rest(STANCE)
    found = Retiming(LIMITS).of(given, TORQUE, beginning=beginning)
    assert np.ptp(found.motion.position[:, 2:], axis=0) == pytest.approx(0.0)
    assert found.trajectory.joint_names == MODEL.joint_names[:2]


def test_path_begins_where_the_arm_is():
    beginning = ReferenceState.at_rest(STANCE)
    found = Retiming(LIMITS).of(trajectory(GOAL, [4.0]), TORQUE, beginning=beginning, begin=1.0)
    assert found.trajectory.times[0] == 1.0
    assert found.trajectory.positions[0] == pytest.approx(STANCE)
    assert found.given.duration == pytest.approx(3.0) and found.motion.duration < 1.0


def test_waits_are_left_out():
    points = [STANCE, STANCE, GOAL, GOAL]
    waits = Retiming(LIMITS).of(trajectory(points, [0.0, 5.0, 8.0, 20.0], 'pv'), TORQUE)
    plain = Retiming(LIMITS).of(trajectory(points[1:3], [0.0, 3.0], 'pv'), TORQUE)
    assert waits.motion.duration == pytest.approx(plain.motion.duration, rel=1e-2)


@pytest.mark.parametrize('fields', ['p', 'pv'])
def test_trajectory_that_does_not_move_is_refused(fields):
    with pytest.raises(RejectedTrajectory, match='no motion'):
        Retiming(LIMITS).of(trajectory([STANCE, STANCE], [0.0, 1.0], fields), TORQUE)


def test_load_that_cannot_be_held_on_the_way_is_refused_with_joint_and_place():
    loaded = ReferenceTorque.of(MODEL.with_payload(rd.Payload(60.0)))
    given = trajectory(CORNER, [0.0, 3.0, 6.0], 'pv')
    for refuse in (
        lambda: Retiming(LIMITS).of(given, loaded),
        lambda: slowed_trajectory(given, loaded, MODEL.effort_limits),
    ):
        with pytest.raises(RejectedTrajectory, match="'shoulder_lift_joint' torque at rest"):
            refuse()


@pytest.mark.parametrize('fields', ['pv', 'pva'])
def test_slowed_trajectory_carries_what_the_given_one_could_not(fields):
    given = trajectory(CORNER, [0.0, 0.3, 0.6], fields)
    loaded = MODEL.with_payload(rd.Payload(5.0))
    assert share(loaded, given) > 1.05
    slower, scale = slowed_trajectory(given, ReferenceTorque.of(loaded), MODEL.effort_limits)
    assert scale > 1.0 and slower.times == pytest.approx(scale * given.times)
    assert 0.98 <= share(loaded, slower) <= 1.0


# --- in front of a controller --------------------------------------------------------------------


def filler(retime=0.0):
    settings = checked({'urdf_file': str(UR5), 'tip_link': 'tool0', 'algorithm': 'newton_euler'})
    result = TrajectoryFeedforward(settings, None, 1e-3, 1e-3, retime=retime)
    result.joint_states.receive(
        result.arm.joint_names, STANCE, 0.0 * STANCE, received=1.0, stamp=50.0
    )
    result.take_state()
    return result


@pytest.mark.parametrize('part', [1.0, 0.5])
def test_feedforward_retimes_within_its_part_of_the_limits(part):
    one = filler(part)
    filled = one.with_efforts(trajectory(CORNER[1:], [3.0, 6.0], 'pv'), 1.0)
    assert filled.trajectory.times[-1] < 3.0 and len(filled.trajectory.times) <= MOST_POINTS
    reached = np.abs(filled.trajectory.efforts) / MODEL.effort_limits
    assert 0.9 * part <= reached.max() <= part + 1e-9
    assert filled.notes[0].startswith('timed anew: ')


def test_retiming_leads_a_joint_that_has_turned_round_no_turn_back():
    """Its position counts turns, the trajectory does not."""
    text = two_link_urdf().replace('type="revolute"', 'type="continuous"')
    text = text.replace('</joint>', '<limit effort="200" velocity="3"/></joint>')
    assert text.count('continuous') == 2
    settings = checked({'algorithm': 'newton_euler', 'effort_limits': [200.0]})
    one = TrajectoryFeedforward(settings, text, 1e-3, 1e-3, retime=0.9)
    turned = np.array([4.0 * np.pi + 0.1, 0.2])
    for stamp in (1.0, 1.1):
        names = one.arm.joint_names
        one.joint_states.receive(names, turned, 0.0 * turned, received=stamp, stamp=50.0 + stamp)
        one.take_state()
    given = trajectory([[0.6, 0.5]], [5.0], 'pv', names)
    positions = one.with_efforts(given, 1.1).trajectory.positions
    assert positions[0] == pytest.approx([0.1, 0.2], abs=1e-6)
    assert np.ptp(positions[:, 0]) == pytest.approx(0.5, abs=1e-6)


def test_trajectories_keep_their_times_by_default():
    filled = filler().with_efforts(trajectory(CORNER[1:], [3.0, 6.0], 'pv'), 1.0)
    assert filled.trajectory.times[-1] >= 6.0


def test_payload_slows_the_trajectory_that_waits_and_a_lighter_one_gives_it_its_time_again():
    one = filler(1.0)
    empty = one.with_efforts(trajectory(CORNER[1:], [3.0, 6.0], 'pv'), 1.0, wait=2.0)
    one.change(rd.Payload(5.0))
    loaded = one.waiting(1.5)
    assert loaded.trajectory.times[-1] > 1.02 * empty.trajectory.times[-1]
    assert loaded.notes[0].startswith('slowed to ')
    model = MODEL.with_payload(rd.Payload(5.0))
    assert share(model, loaded.trajectory) <= 1.0 and share(model, empty.trajectory) > 1.0
    one.change(rd.Payload(0.0))
    again = one.waiting(1.6)
    assert again.trajectory.times[-1] == pytest.approx(empty.trajectory.times[-1], abs=2e-3)


def test_nothing_waits_once_it_has_begun():
    one = filler()
    one.with_efforts(trajectory(GOAL, [3.0], 'pv'), 1.0, wait=2.0)
    assert one.waiting(3.5) is None
    one.with_efforts(trajectory(GOAL, [3.0], 'pv'), 1.0)
    assert one.waiting(1.0) is None
