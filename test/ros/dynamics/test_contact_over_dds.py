# SPDX-License-Identifier: Apache-2.0
"""Forces on an arm in MuJoCo, felt by the node over DDS: topics, contacts, what follows."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from contact_rig import POSITION, ContactRig
from lockstep_rig import seconds
from node_in_process import NodeInProcess
from node_rig import ARM
from sensor_msgs.msg import JointState

from robodyn_ros import forward_kinematics, jacobian

pytestmark = pytest.mark.ros

FORCE = np.array([8.0, -12.0, 6.0])  # [N], in the base link's axes
THRESHOLDS = {'contact_threshold_moving': [3.0], 'contact_threshold_stationary': [3.0]}


@pytest.fixture
def rig(tmp_path):
    result = ContactRig(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.mark.slow
@pytest.mark.parametrize('observed', ['commanded', 'measured'])
def test_the_torques_and_the_wrench_of_a_force_are_published(rig, robot, model, observed):
    rig.listen()
    rig.hold(robot, observed_effort=observed)
    begin = rig.pushed(FORCE, 'panda_link0')
    rig.run_until(begin + 1.0)
    for kept in (rig.external, rig.wrenches):  # each topic arrives at its own pace
        rig.until(lambda kept=kept: kept and seconds(kept[-1].header.stamp) > begin + 0.8)
    assert all(any(each.effort) for each in rig.external)  # none of a state without an estimate
    latest = rig.external[-1]
    assert list(latest.name) == list(model.joint_names)
    position = np.array(rig.states[-1].position)
    expected = jacobian(model, position)[:3].T @ FORCE
    np.testing.assert_allclose(latest.effort, expected, atol=0.1 * np.abs(expected).max())
    wrench = rig.wrenches[-1]
    assert wrench.header.frame_id == 'panda_link8'
    given = wrench.wrench.force
    rotation = forward_kinematics(model, position)[:3, :3]
    found = rotation @ [given.x, given.y, given.z]
    assert np.linalg.norm(found - FORCE) <= max(0.1 * np.linalg.norm(FORCE), 2.0)
    np.testing.assert_allclose(rig.states[-1].external_torque, latest.effort, atol=0.5)
    assert not rig.contacts  # no thresholds
    rig.until(lambda: rig.report.get('contact_thresholds') == 'none')


@pytest.mark.slow
def test_a_contact_stops_the_arm_and_is_logged_once(rig, robot):
    rig.listen()
    rig.hold(robot, on_contact='stop', **THRESHOLDS)
    begin = rig.follow([np.add(POSITION, [0.8, 0, 0, 0, 0, 0, 0])], [2.0])
    rig.run_until(begin + 0.8)
    assert not rig.contacts
    rig.pushed([0.0, -20.0, 0.0])  # that feedback withstands, however late it ends
    rig.until(lambda: rig.contacts)
    told = rig.contacts[0]
    assert not told.is_over
    assert told.joint in ARM and told.link.startswith('panda_link')
    assert abs(told.torque) > told.threshold == 3.0
    assert told.duration >= 0.019
    when = seconds(told.header.stamp)
    rig.pushed([0.0, 0.0, 0.0])
    rig.run_until(when + 1.5)
    after = [s for s in rig.states if seconds(s.header.stamp) > when + 1.0]
    assert max(np.abs(s.velocity).max() for s in after) < 0.02
    assert np.abs(np.array(after[-1].position) - after[-1].reference_position).max() < 0.05
    rig.until(lambda: rig.report.get('last_fault', '').startswith('contact'))
    assert rig.report['contacts'] == '1'
    rig.until(lambda: 'contact: ' in rig.log)


@pytest.fixture
def plain(tmp_path):
    """A node without an arm in MuJoCo."""
    result = NodeInProcess(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.mark.parametrize(
    'parameters, words',
    [
        ({'on_contact': 'stop'}, ('parameter on_contact: stop', 'contact-thresholds')),
        ({'external_effort_topic': 'not//a topic'}, ('parameter external_effort_topic',)),
    ],
)
def test_what_cannot_be_felt_or_acted_on_is_refused_by_name(plain, robot, parameters, words):
    plain.start(**robot, **parameters)
    plain.until(lambda: 'cannot configure' in plain.log)
    assert all(each in plain.log for each in words)


@pytest.mark.longer
def test_nothing_is_computed_without_a_subscriber_nor_done_without_thresholds(plain, robot):
    plain.start(**robot)
    plain.bring_up(POSITION)
    # The rig listens to the dynamics state, and so the observer runs; take that away.
    plain.disconnect('/dynamics_node/dynamics_state')
    plain.stream(POSITION, lambda: plain.report.get('contact_observer') == 'idle')
    refused = plain.set_parameter('on_contact', 'stop', lambda: plain.send(POSITION))
    assert not refused.successful and 'no contact thresholds' in refused.reason


@pytest.mark.longer
def test_the_effort_of_another_is_added_and_fades(plain, robot):
    plain.start(
        **robot,
        state_timeout=0.5,
        external_effort_topic='/felt',
        external_effort_scale=[0.5],
        external_effort_limit=[2.0],
    )
    felt = plain.node.create_publisher(JointState, '/felt', 1)
    plain.bring_up(POSITION)
    plain.stream(POSITION, lambda: len(plain.commands) > 20)
    gravity = np.array(plain.commands[-1].data)

    def push():
        plain.send(POSITION)
        felt.publish(JointState(name=ARM, effort=[2.0, 100.0, 0.0, 0.0, 0.0, 0.0, -1.0]))

    wanted = gravity + [1.0, 2.0, 0.0, 0.0, 0.0, 0.0, -0.5]
    plain.until(lambda: np.allclose(plain.commands[-1].data, wanted, atol=1e-6), push)
    plain.stream(POSITION, lambda: np.allclose(plain.commands[-1].data, gravity, atol=1e-6))
