# SPDX-License-Identifier: Apache-2.0
"""Positions in degrees or millimetres are no state of the arm: nothing is commanded for them."""

import numpy as np
import pytest

from robodyn_ros import gravity_torque
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.feedforward_efforts import TrajectoryFeedforward
from robodyn_ros.control.settings import checked
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.motions.possible_positions import PossiblePositions

INF = np.inf


def positions(lower, upper, prismatic=False):
    return PossiblePositions(['a'], np.array([[lower, upper]]), np.array([prismatic]))


@pytest.mark.parametrize(
    'lower, upper, prismatic, possible, impossible',
    [
        (-2.0, 1.0, False, [-2.0, -8.28, 7.28], [-8.29, 7.29, 57.0, -60.0]),
        (-2 * np.pi, 2 * np.pi, False, [-12.5, 12.5], [-60.0, 50.0, 12.6]),  # a UR's
        (-3.0718, -0.0698, False, [-9.35, 6.21], [-108.9, 6.22]),  # a Panda's fourth
        (-INF, INF, False, [1e4, -1e4], []),  # continuous: many turns are legal
        (-1.0, INF, False, [1e4], [-7.3]),
        (0.0, 0.5, True, [-4.9, 5.4], [250.0, -5.1]),  # a rail of half a metre
        (-INF, INF, True, [1e4], []),
        (0.0, 0.0, False, [50.0], []),  # limits that leave no room say nothing
        (0.0, 0.0, True, [50.0], []),
        (1.0, -1.0, False, [50.0], []),
        (INF, -INF, False, [50.0], []),
        (INF, INF, True, [50.0], []),
        (-1e308, 1e308, True, [1e308], []),  # as good as none
    ],
)
@pytest.mark.filterwarnings('error')
def test_a_position_far_beyond_the_limits_is_impossible(
    lower, upper, prismatic, possible, impossible
):
    joint = positions(lower, upper, prismatic)
    for value in possible:
        assert joint.lowest[0] <= value <= joint.highest[0] and not joint.suspected_unit(0, value)
    for value in impossible:
        assert not joint.lowest[0] <= value <= joint.highest[0]
        question = 'in millimetres?' if prismatic else 'in degrees?'
        assert joint.suspected_unit(0, value) == question
        assert joint.describe_impossible({0: value}).endswith(f': {question}')


def test_what_is_not_finite_is_not_possible_and_in_no_other_unit():
    joint = positions(-1.0, 1.0)
    for value in (np.nan, INF, -INF):
        assert not joint.suspected_unit(0, value)


def test_joints_are_named_with_their_limits_but_no_more_than_three():
    limits = np.array([[-1.0, 1.0]] * 5)
    joints = PossiblePositions('abcde', limits, np.array([False, False, False, True, False]))
    assert joints.describe_impossible({0: 0.5}) == ''
    assert joints.describe_impossible({0: 0.5, 1: -60.0, 3: 50.0}) == (
        'b is at -60 rad (limits -1 to 1), d is at 50 m (limits -1 to 1): in degrees?'
    )
    assert joints.describe_impossible(dict.fromkeys(range(5), 60.0)).count('(limits') == 3


def ur5_stack(urdf):
    given = {'urdf_file': urdf, 'base_link': 'base_link', 'tip_link': 'tool0'}
    stack = build_control_stack(
        checked({**given, 'algorithm': 'newton_euler', 'torque_rate_limit': [0.0]}), None
    )
    stack.pipeline.enable(100.0)
    return stack


def cycle(stack, now, position):
    """Return the command for a joint state at a steady time [s], by the watchdog if by nobody."""
    stack.joint_states.receive(
        stack.model.joint_names, position, [0.0] * 6, received=now, stamp=now
    )
    if stack.joint_states.is_complete:
        return stack.pipeline.step(stack.joint_states.take(), now)
    return stack.pipeline.watchdog(now)


DEGREES = [0.0, -60.0, 50.0, 0.0, 0.0, 0.0]


def test_a_ur5_in_degrees_is_commanded_nothing_and_the_reason_is_logged(ur5_urdf):
    stack = ur5_stack(ur5_urdf)
    # What was commanded once is of the wrong sign.
    right, wrong = (gravity_torque(stack.model, q)[1] for q in (np.radians(DEGREES), DEGREES))
    assert right < -30.0 and wrong > 50.0
    for k in range(300):
        assert cycle(stack, 100.0 + 0.004 * k, DEGREES) is None
    assert stack.joint_states.trouble() == (
        'shoulder_lift_joint is at -60 rad (limits -6.283 to 6.283), '
        'elbow_joint is at 50 rad (limits -3.142 to 3.142): in degrees?'
    )
    assert not stack.joint_states.is_complete
    command = cycle(stack, 102.0, np.radians(DEGREES).tolist())
    assert command.torque[1] == pytest.approx(right)
    assert stack.joint_states.trouble() == ''


def test_after_a_driver_changes_to_degrees_gravity_is_held_where_the_arm_was(ur5_urdf):
    stack = ur5_stack(ur5_urdf)
    place = np.radians(DEGREES)
    cycle(stack, 100.0, place.tolist())
    commands = [cycle(stack, 100.0 + 0.01 * k, DEGREES) for k in range(1, 130)]
    timeout, hold = 0.1, stack.pipeline.settings.stale_hold_time
    for k, command in enumerate(commands, start=1):
        if timeout + 0.01 < 0.01 * k < timeout + hold:
            np.testing.assert_allclose(
                command.torque, gravity_torque(stack.model, place), atol=1e-9
            )
        if command is not None:
            np.testing.assert_array_equal(command.state.position, place)
    assert commands[-1] is None
    # One joint in degrees: none of that message is used, though the others could be right.
    shared = [0.1, *DEGREES[1:]]
    cycle(stack, 102.0, shared)
    np.testing.assert_array_equal(stack.joint_states.take().position, place)


def test_a_driver_of_other_joints_is_read_beside_one_in_degrees(ur5_urdf):
    states = ur5_stack(ur5_urdf).joint_states
    names, still = states.joint_names, [0.0] * 3
    states.receive(names[:3], DEGREES[:3], still, received=100.0)
    states.receive(names[3:], [0.1, 0.2, 0.3], still, received=100.0)
    assert states.stale_joints(100.0) == names[:3]
    states.receive(names[:3], [0.0, -1.0, 0.9], still, received=100.01)
    assert states.is_complete and states.trouble() == ''


def test_efforts_are_not_filled_in_from_a_state_in_degrees(ur5_urdf):
    given = {'urdf_file': ur5_urdf, 'base_link': 'base_link', 'tip_link': 'tool0'}
    settings = checked({**given, 'algorithm': 'newton_euler'})
    filler = TrajectoryFeedforward(settings, None, 0.1, 0.002)
    filler.joint_states.receive(filler.arm.joint_names, DEGREES, [0.0] * 6, received=1.0)
    filler.take_state()
    with pytest.raises(RejectedTrajectory, match='elbow_joint is at 50 rad .*in degrees?'):
        filler.hold(1.0)
