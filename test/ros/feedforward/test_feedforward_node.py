# SPDX-License-Identifier: Apache-2.0
"""The node feedforward over DDS: trajectories go in bare and come out with effort."""

import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from diagnostic_msgs.msg import DiagnosticStatus
from feedforward_rig import MODEL, POSITION, Rig, trajectory
from robots import two_link_urdf
from trajectory_msgs.msg import JointTrajectory

import robodyn_ros as rd
from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import SetPayload
from robodyn_ros.errors import RobodynError
from robodyn_ros.ros.feedforward import action_front, feedforward_node
from robodyn_ros.ros.feedforward.action_front import given_indices

pytestmark = pytest.mark.ros
PAGE = Path(__file__).parents[3] / 'docs' / 'beside_your_driver.md'


@pytest.fixture
def rig(request):
    rig = Rig(**getattr(request, 'param', {}))
    yield rig
    rig.close()


def test_bare_trajectory_goes_on_with_the_torque_in_effort(rig):
    rig.drive()
    given = trajectory(POSITION + 0.2, POSITION)
    given.header.frame_id = 'base'
    sent = rig.send(given)
    assert sent.header == given.header
    assert sent.joint_names == list(MODEL.joint_names)
    first, last = sent.points[0], sent.points[-1]
    assert first.time_from_start.sec == first.time_from_start.nanosec == 0
    np.testing.assert_allclose(first.positions, POSITION, atol=1e-12)
    gravity = rd.gravity_torque(MODEL, POSITION)
    np.testing.assert_allclose(first.effort, gravity, atol=1e-9)
    np.testing.assert_allclose(last.effort, gravity, atol=1e-9)
    assert len(sent.points) > len(given.points) + 10
    assert all(len(point.accelerations) == 0 for point in sent.points)
    times = [p.time_from_start.sec * 10**9 + p.time_from_start.nanosec for p in sent.points]
    assert (np.diff(times) > 0).all() and {10**9, 2 * 10**9} <= set(times)


def test_empty_trajectory_holds_the_arm_with_gravity_in_effort(rig):
    rig.drive()
    sent = rig.send(JointTrajectory())
    for point in sent.points:
        np.testing.assert_allclose(point.positions, POSITION, atol=1e-12)
        np.testing.assert_allclose(point.effort, rd.gravity_torque(MODEL, POSITION), atol=1e-9)


@pytest.mark.parametrize('rig', [{'retime': 0.8}], indirect=True)
def test_trajectory_is_timed_anew_within_its_part_of_the_effort_limits(rig):
    rig.drive()
    sent = rig.send(trajectory(POSITION + 0.4, POSITION, seconds=3))
    last = sent.points[-1].time_from_start
    assert last.sec + 1e-9 * last.nanosec < 2.0
    np.testing.assert_allclose(sent.points[-1].positions, POSITION, atol=1e-9)
    share = np.abs([point.effort for point in sent.points]) / MODEL.effort_limits
    assert share.max() <= 0.8 + 1e-9


def test_payload_counts_at_once_and_slows_a_trajectory_that_waits_for_its_start(rig):
    rig.drive()
    given = trajectory(POSITION + 0.5, POSITION)
    given.header.stamp.sec = rig.tester.get_clock().now().to_msg().sec + 100
    before = rig.send(given)
    heavy = Payload(mass=2.0)
    heavy.center_of_mass.x = 0.1
    count = len(rig.out)
    request = SetPayload.Request(payload=heavy)
    client = rig.tester.create_client(SetPayload, 'feedforward/set_payload')
    rig.until(client.service_is_ready)
    answer = client.call_async(request)
    rig.until(lambda: answer.done() and len(rig.out) > count)
    after = rig.out[-1]
    assert answer.result().success and after.header == before.header
    carried = rd.gravity_torque(MODEL.with_payload(rd.Payload(2.0, (0.1, 0.0, 0.0))), POSITION)
    np.testing.assert_allclose(after.points[-1].effort, carried, atol=1e-9)
    assert np.abs(np.subtract(carried, before.points[-1].effort)).max() > 1.0
    share = np.abs([point.effort for point in after.points]) / MODEL.effort_limits
    assert share.max() <= 1.0
    sent = rig.send(trajectory(POSITION))
    np.testing.assert_allclose(sent.points[-1].effort, carried, atol=1e-9)


def test_what_cannot_be_driven_is_not_passed_on(rig):
    rig.drive()
    rig.send(trajectory(POSITION))
    for bad in (
        trajectory(POSITION + 3.0, POSITION, seconds=0),
        trajectory([0.1], names=['finger']),
        trajectory([math.nan] * 7),
    ):
        for k, point in enumerate(bad.points):
            point.time_from_start.nanosec = 10**8 * (k + 1)
        rig.trajectories.publish(bad)
    sent = rig.send(trajectory(POSITION + 0.05))
    assert len(rig.out) == 2
    np.testing.assert_allclose(sent.points[-1].positions, POSITION + 0.05)


@pytest.mark.parametrize('rig', [{'use_sim_time': True}], indirect=True)
def test_simulated_time_without_a_clock_names_it(rig):
    rig.drive()
    rig.told.clear()
    rig.until(lambda: rig.told, rig.tell_state)
    assert rig.told[-1].level == DiagnosticStatus.WARN
    assert rig.told[-1].message.startswith('use_sim_time is set and /clock has not come')


@pytest.mark.longer
def test_sender_of_a_refused_trajectory_gets_the_reason_until_one_is_filled(rig):
    rig.drive()
    bad = trajectory([0.1], names=['finger'])
    bad.header.stamp.sec = 12
    rig.until(lambda: rig.trajectories.get_subscription_count() > 0)
    rig.until(lambda: rig.told)
    rig.trajectories.publish(bad)
    rig.until(lambda: 'refused' in rig.told[-1].message, rig.tell_state)
    status = rig.told[-1]
    facts = {pair.key: pair.value for pair in status.values}
    assert (status.name, status.level) == ('feedforward: trajectories', DiagnosticStatus.WARN)
    assert "'finger'" in facts['last_rejection']
    assert status.message == f'a trajectory was refused: {facts["last_rejection"]}'
    assert facts['last_rejection_stamp'] == '12.000000000'
    rig.send(trajectory(POSITION))
    rig.until(lambda: rig.told[-1].level == DiagnosticStatus.OK, rig.tell_state)


@pytest.mark.longer
def test_sender_gets_the_reason_that_no_joint_states_come_and_nothing_is_passed_on(rig):
    rig.until(lambda: rig.told and 'waiting for the state of' in rig.told[-1].message)
    for message in (JointTrajectory(), trajectory(POSITION)):
        rig.trajectories.publish(message)
        rig.until(lambda: 'refused: joint states' in rig.told[-1].message)
    assert rig.out == []


def test_next_trajectory_goes_on_from_what_was_sent_while_the_arm_follows(rig):
    rig.drive()
    rig.send(trajectory(POSITION + 0.002, seconds=1))
    sent = rig.send(trajectory(POSITION, seconds=2))
    # The measured arm has not moved; what was commanded has begun to.
    assert np.abs(np.array(sent.points[0].positions) - POSITION).max() > 0.0
    assert np.abs(sent.points[0].velocities).max() > 0.0


@pytest.mark.parametrize('rig', [{'terms.gravity': False}], indirect=True)
def test_terms_of_the_node_count(rig):
    rig.drive()
    sent = rig.send(trajectory(POSITION + 0.2))
    np.testing.assert_allclose(sent.points[0].effort, 0.0, atol=1e-9)
    assert max(np.abs(point.effort).max() for point in sent.points) > 0.1


def test_arm_without_effort_limits_is_refused(tmp_path):
    urdf = tmp_path / 'two_link.urdf'
    urdf.write_text(two_link_urdf())
    with pytest.raises(RobodynError, match="'joint1' effort limit"):
        Rig(urdf_file=str(urdf), tip_link='')


@pytest.mark.parametrize('name', ['', 'not a name'])
def test_controller_that_ros_cannot_name_is_refused(name):
    with pytest.raises(RobodynError, match='parameter controller'):
        Rig(controller=name)


def test_page_names_every_parameter():
    page = PAGE.read_text(encoding='utf-8').replace('\n', ' ')
    for parameter in feedforward_node.PARAMETERS:
        name = 'terms.*' if parameter.name.startswith('terms.') else parameter.name
        assert f'`{name}`' in page


def test_index_of_feedback_counts_the_given_points():
    given, filled = np.array([1.0, 2.0]), np.array([0.0, 0.5, 1.0, 1.001, 1.5, 2.0, 2.001])
    assert given_indices(given, filled) == [0, 0, 0, 1, 1, 1, 1]


def test_without_control_msgs_the_node_says_so_and_has_no_action(rig):
    if action_front.is_available():
        pytest.skip('control_msgs is installed')
    assert rig.node._front is None


@pytest.mark.longer
@pytest.mark.parametrize(
    'rig', [{'servo_gains': [1000.0], 'terms.friction': False}], indirect=True
)
def test_servos_that_take_positions_alone_get_them_offset_and_no_effort(rig):
    """With effort a controller that commands position alone would refuse every point."""
    rig.drive()
    expected = POSITION + rd.gravity_torque(MODEL, POSITION) / 1000.0
    for given in (JointTrajectory(), trajectory(POSITION + 0.2, POSITION)):
        sent = rig.send(given)
        assert not any(len(point.effort) for point in sent.points)
        for point in (sent.points[0], sent.points[-1]):
            np.testing.assert_allclose(point.positions, expected, atol=1e-9)
    rig.until(lambda: rig.told and 'offsets of the positions' in rig.told[-1].message)
