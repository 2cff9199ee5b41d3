# SPDX-License-Identifier: Apache-2.0
"""Streams of positions without velocities, in the node, in feedforward and in a controller."""

import numpy as np
import pytest
from compiled_arms import public_arm
from controller_core import Cycles
from frictionless_arm import POSITION, TIME_STEP, FrictionlessArm
from jtc_rule import JointTrajectoryController
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.control.feedforward_efforts import TrajectoryFeedforward
from robodyn_ros.control.settings import checked
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory

WAY = np.array([1.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
RATE = 0.5 * np.pi  # rad/s
FASTEST = 0.2 * RATE  # rad/s, of the motion
LARGEST_LAG = 0.04  # rad


def goal(time):
    return POSITION + 0.2 * WAY * (1.0 - np.cos(RATE * time))


def goal_velocity(time):
    return FASTEST * WAY * np.sin(RATE * time)


def message(names, time, due, has_velocities=False, points=1):
    """Return where the motion will be when it is due, and a period of 20 ms after that."""
    times = due + 0.02 * np.arange(points)
    rows = [goal(time + at) for at in times]
    velocities = [goal_velocity(time + at) if has_velocities else () for at in times]
    return Trajectory.from_points(names, times, rows, velocities, [()] * points, [()] * points)


def arrivals(rate, duration, jitter=0.3):
    """Yield times, each a period and at most the jitter after the one before."""
    generator, time = np.random.default_rng(0), 0.0
    while time < duration:
        yield time
        time += (1.0 + generator.uniform(-jitter, jitter)) / rate


class Stream:
    """What a rubbing arm does under a stream."""

    def __init__(self, mode, rate, ratio, duration, has_velocities=False, until=np.inf, points=1):
        arm = FrictionlessArm(mode=mode)
        arm.add_friction()
        arm.run(0.1)
        self.arm, start = arm, arm.now
        errors, speeds, references = [], [], []
        due = list(arrivals(rate, duration))
        while (time := arm.now - start) < duration:
            while due and due[0] <= time + 1e-9:
                if due.pop(0) <= until:
                    names = arm.stack.model.joint_names
                    self.last = message(names, time, ratio / rate, has_velocities, points)
                    arm.pipeline.follow(self.last)
            arm.run(TIME_STEP)
            errors.append(np.abs(arm.simulation.position - goal(arm.now - start)).max())
            speeds.append(np.abs(arm.simulation.velocity).max())
            references.append(arm.command.reference)
        self.error, self.speed = max(errors), max(speeds)
        self.references = references

    def largest(self, part):
        return max(np.abs(getattr(reference, part)).max() for reference in self.references)


def assert_as_with_velocities(mode, rate, ratio, duration):
    bare = Stream(mode, rate, ratio, duration)
    given = Stream(mode, rate, ratio, duration, has_velocities=True)
    assert bare.speed <= 1.2 * given.speed
    if 20 <= rate <= 50:
        assert bare.error <= given.error + LARGEST_LAG


@pytest.mark.longer
@pytest.mark.parametrize(('rate', 'ratio'), [(50.0, 1.1), (20.0, 0.5)])
def test_a_stream_of_positions_is_followed_as_one_with_velocities(rate, ratio):
    assert_as_with_velocities('joint_impedance', rate, ratio, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize('mode', ['computed_torque', 'joint_impedance', 'cartesian_impedance'])
@pytest.mark.parametrize(
    ('rate', 'ratio'),
    # Each rate with a point that is due soon and one that is due late.
    [
        *((10.0, 0.5), (10.0, 2.0), (20.0, 1.0), (20.0, 5.0), (50.0, 0.5)),
        *((50.0, 1.5), (200.0, 1.0), (200.0, 2.0), (1000.0, 1.5), (1000.0, 5.0)),
    ],
)
def test_a_stream_of_positions_is_followed_in_every_mode(mode, rate, ratio):
    assert_as_with_velocities(mode, rate, ratio, 2.0)


def test_a_stream_that_stops_in_motion_ends_at_its_last_position_without_overshoot():
    stream = Stream('joint_impedance', 50.0, 1.0, 1.2, until=0.8)
    assert stream.speed <= 1.2 * FASTEST
    end = stream.last.positions[-1]
    past = [(reference.position - end) * WAY for reference in stream.references]
    assert np.max(past) <= 1e-9
    assert stream.references[-1].position == pytest.approx(end)
    assert not stream.references[-1].velocity.any()


@pytest.mark.parametrize('ratio', [0.3, 1.0])
def test_trajectories_that_replace_one_another_before_they_end_do_not_add_speed(ratio):
    stream = Stream('joint_impedance', 50.0, ratio, 0.8, points=3)
    assert stream.largest('velocity') <= 1.2 * FASTEST
    # The motion's own is 0.49 rad/s²; quintics that must stop within a period reach hundreds.
    assert stream.largest('acceleration') < 10.0


def test_a_stream_in_which_a_long_motion_came_ends_when_it_ends():
    arm = FrictionlessArm(mode='computed_torque')
    arm.run(0.1)
    names = arm.stack.model.joint_names
    for k in range(40):
        ahead = 60.0 if k == 10 else 0.02
        arm.pipeline.follow(
            Trajectory.from_points(names, [ahead], [POSITION + 0.002 * k], [()], [()], [()])
        )
        arm.run(0.02)
    arm.run(0.5)
    assert arm.pipeline.reference_status == 'holding'


def test_a_stream_of_some_joints_lets_the_others_come_to_rest_once():
    arm = FrictionlessArm(mode='computed_torque', ramp_time=0.3)
    arm.run(0.1)
    names = arm.stack.model.joint_names
    arm.pipeline.follow(Trajectory.from_points(names, [1.0], [POSITION + 0.2], [()], [()], [()]))
    arm.run(0.5)
    at = arm.command.reference
    for k in range(40):
        arm.pipeline.follow(
            Trajectory.from_points(
                names[:1], [0.02], [[at.position[0] + 0.002 * k]], [()], [()], [()]
            )
        )
        arm.run(0.02)
    stop = arm.pipeline.settings.ramp_time
    expected = at.position[1:] + 0.5 * stop * at.velocity[1:]
    assert arm.command.reference.position[1:] == pytest.approx(expected, abs=1e-3)
    assert arm.command.reference.velocity[1:] == pytest.approx(np.zeros(6), abs=1e-4)


def test_a_position_too_far_for_a_stream_is_refused_with_what_to_send():
    arm = FrictionlessArm(mode='joint_impedance')
    arm.run(0.1)
    names = arm.stack.model.joint_names
    for step in (0.0, 0.001):
        arm.pipeline.follow(message(names, step, 0.02))
        arm.run(0.02)
    with pytest.raises(RejectedTrajectory, match=r'10 Hz to 1 kHz.*velocities'):
        arm.pipeline.follow(
            Trajectory.from_points(names, [0.02], [POSITION + 0.3], [()], [()], [()])
        )


# --- feedforward -------------------------------------------------------------------------------


@pytest.mark.parametrize(('rate', 'ratio'), [(50.0, 1.0), (10.0, 0.5)])
def test_feedforward_sends_a_stream_of_positions_without_jumps_of_velocity(rate, ratio):
    values = {'urdf_file': str(public_urdf('panda.urdf')), 'tip_link': 'panda_link8'}
    filler = TrajectoryFeedforward(checked({**values, 'algorithm': 'compiled'}), None, 0.1, 0.002)
    names, followed, begun = filler.arm.joint_names, None, 0.0
    due, velocities = list(arrivals(rate, 1.0)), []
    for time in np.arange(0.0, 1.0, TIME_STEP):
        if due and due[0] <= time + 1e-9:
            due.pop(0)
            at = POSITION if followed is None else followed.sample(time - begun)[0]
            filler.joint_states.receive(names, at, 0.0 * at, received=time, stamp=50.0 + time)
            filler.take_state()
            filled = filler.with_efforts(message(names, time, ratio / rate), time)
            followed, begun = JointTrajectoryController(filled.trajectory, 0.0, 0.0), time
        velocities.append(followed.sample(time - begun)[1])
    assert np.abs(velocities).max() <= 1.2 * FASTEST
    assert np.abs(np.diff(velocities, axis=0)).max() < 0.01


# --- a controller ------------------------------------------------------------------------------


@pytest.mark.longer
@pytest.mark.parametrize('velocity', [0.0, np.nan])
@pytest.mark.parametrize('rate', [10.0, 50.0])
def test_a_controller_follows_positions_that_come_in_steps(rate, velocity):
    arm = Cycles(public_arm('panda'))
    position, speed = POSITION.copy(), np.zeros(7)
    for _ in range(10):
        torque = arm.cycle(position, speed)
    due, begin, speeds, steps = list(arrivals(rate, 1.0)), arm.now, [], []
    rows = np.zeros((4, 7))
    rows[1] = velocity
    while (time := arm.now - begin) < 1.0:
        if due and due[0] <= time + 1e-9:
            rows[0] = goal(due.pop(0))
        arm.now += TIME_STEP
        before = torque
        torque = arm.pipeline.update(arm.now, position, speed, rows, arm.possible)[0]
        assert arm.following == 'moving'
        speed = speed + TIME_STEP * rd.forward_dynamics(arm.model, position, speed, torque)
        position = position + TIME_STEP * speed
        speeds.append(np.abs(speed).max())
        steps.append(np.abs(torque - before).max())
    assert max(speeds) <= 1.2 * FASTEST
    assert max(steps) <= arm.rate_limit * TIME_STEP * (1.0 + 1e-9)
    assert np.abs(position - goal(1.0)).max() < 0.3 * 3.0 / rate + 0.01
