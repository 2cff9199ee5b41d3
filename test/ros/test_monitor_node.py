# SPDX-License-Identifier: Apache-2.0
"""monitor_node beside an arm that moves and stops: history and diagnostics, contacts left out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from graph_rig import GraphRig
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from simulated_recordings import TrueArm

from robodyn_interfaces.msg import Contact
from robodyn_ros.errors import RobodynError
from robodyn_ros.identification import DriveTerms, identify
from robodyn_ros.monitoring.history import read_history
from robodyn_ros.ros.monitor_node import MonitorNode
from robodyn_ros.ros.qos import LATCHED

pytestmark = pytest.mark.ros

PATIENCE = 60.0


@pytest.fixture(scope='module')
def arm():
    return TrueArm.drawn(3, 3)


@pytest.fixture(scope='module')
def found(arm):
    return identify(arm.urdf, arm.recording(3, 12.0, rate=100.0), friction=DriveTerms())


class Rig(GraphRig):
    """A driver's joint states, a node's contacts, and monitor_node."""

    def __init__(self, folder, found, **parameters):
        found.save(folder / 'found.yaml')
        self.found, self.history = found, folder / 'arm.jsonl'
        self.efforts = parameters.get('efforts', 'joint_states')
        super().__init__('dynamics_node')
        self.states = self.node.create_publisher(
            JointState, '/joint_states', QoSProfile(depth=5000)
        )
        self.torques = self.node.create_publisher(JointState, '~/torques', QoSProfile(depth=5000))
        self.contacts = self.node.create_publisher(Contact, '~/contact', LATCHED)
        self.reports = []
        self.node.create_subscription(
            DiagnosticArray, '/diagnostics', lambda each: self.reports.extend(each.status), 10
        )
        given = {'model': str(folder / 'found.yaml'), 'history': str(self.history), **parameters}
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.monitor = self.add(MonitorNode(context=self.context, parameter_overrides=overrides))
        self.until_subscribed(self.states)

    def move(self, recording, start, effort=None, at=lambda k: None):
        """Publish a recording from a stamp on, then two seconds of standstill."""
        names = list(recording.joint_names)
        effort = recording.effort if effort is None else effort
        rows = zip(recording.time, recording.position, recording.velocity, effort)
        for k, (t, q, qd, tau) in enumerate(rows):
            at(k)
            self.publish(names, start + t, q, qd, tau)
        end = start + recording.time[-1]
        for k in range(1, 40):
            self.publish(names, end + 0.05 * k, q, 0.0 * qd, tau)

    def publish(self, names, stamp, q, qd, tau):
        seconds, rest = divmod(round(1e9 * stamp), 10**9)
        message = JointState(name=names, position=q.tolist(), velocity=qd.tolist())
        message.header.stamp = Time(sec=seconds, nanosec=rest)
        if self.efforts == 'torques':
            self.states.publish(message)
            # As the node: with the state's stamp, after it, by name.
            torques = JointState(name=names[::-1], effort=tau[::-1].tolist())
            torques.header.stamp = message.header.stamp
            self.torques.publish(torques)
        else:
            message.effort = tau.tolist()
            self.states.publish(message)
        self.executor.spin_once(timeout_sec=0.0)

    def motions(self):
        return read_history(self.history, self.found).motions


@pytest.fixture
def rig(tmp_path, found):
    made = Rig(tmp_path, found, started=900.0)
    yield made
    made.close()


def test_each_motion_is_appended_and_reported_when_it_is_over(rig, arm):
    for k in range(2):
        rig.move(arm.recording(50 + k, 8.0, rate=100.0), 1000.0 + 100.0 * k)
        rig.until(lambda k=k: len(rig.motions()) == k + 1)
    first, second = rig.motions()
    assert first.since_start == pytest.approx(104.0, abs=1.0)
    assert second.stamp == pytest.approx(1100.0, abs=0.5)
    assert np.abs(first.terms.friction).max() < 0.2
    rig.reports.clear()
    rig.until(lambda: rig.reports)
    status = rig.reports[-1]
    assert status.name == 'monitor_node: ageing'
    facts = {each.key: each.value for each in status.values}
    assert facts['motions'] == '2' and '%' not in facts['motions']
    assert any(key.startswith('friction_') for key in facts)


def test_before_the_first_motion_what_is_not_known_is_said_to_be_unknown(rig):
    rig.until(lambda: rig.reports)
    status = rig.reports[-1]
    facts = {each.key: each.value for each in status.values}
    assert facts['payload_kg'] == 'unknown'
    assert {value for key, value in facts.items() if key.startswith('friction_')} == {'unknown'}
    assert not any('nan' in words.lower() for words in (status.message, *facts.values()))


@pytest.mark.longer
def test_velocities_that_are_not_of_the_positions_are_warned_of_while_they_come(rig, arm):
    logged = []
    rig.monitor.get_logger = lambda: type(
        'Logger', (), {'warning': lambda _, x: logged.append(x)}
    )()
    recording = arm.recording(50, 8.0, rate=100.0)

    def status_after(start, velocity):
        known = len(rig.motions())
        rig.move(replace(recording, velocity=velocity), start)
        rig.until(lambda: len(rig.motions()) > known)
        rig.reports.clear()
        rig.until(lambda: rig.reports)
        return rig.reports[-1]

    for start in (1000.0, 1100.0):
        status = status_after(start, -recording.velocity * [1.0, start / 1000.0, 1.0])
        assert status.level == DiagnosticStatus.WARN
        assert "velocity of joint 'j1' (and of 'j2', 'j3') has the wrong sign" in status.message
    assert len(logged) == 1 and 'has the wrong sign' in logged[0]
    assert np.abs(rig.motions()[0].terms.friction).max() < 0.2
    assert status_after(1200.0, recording.velocity * 0.999).level == DiagnosticStatus.OK


def test_where_joint_states_have_no_efforts_those_are_taken_that_the_node_commands(
    tmp_path, found, arm
):
    rig = Rig(tmp_path, found, efforts='torques')
    try:
        rig.until_subscribed(rig.torques)
        rig.move(arm.recording(54, 8.0, rate=100.0), 1000.0)
        rig.until(lambda: rig.motions())
        (motion,) = rig.motions()
    finally:
        rig.close()
    # As from the drives' own efforts: each sample has the torque of its own state.
    assert np.abs(motion.terms.friction).max() < 0.1


@pytest.mark.longer
def test_samples_within_a_contact_are_left_out(rig, arm):
    recording = arm.recording(52, 12.0, rate=100.0)
    pushed = recording.effort.copy()
    pushed[400:600] -= 3.0 * recording.effort.std(axis=0)

    def contact(k):
        if k in (400, 600):
            rig.contacts.publish(Contact(is_over=k == 600))
            rig.spin(1.0)  # a contact is heard as it happens

    rig.move(recording, 1000.0, pushed, at=contact)
    rig.until(lambda: rig.motions())
    assert np.abs(rig.motions()[0].terms.friction).max() < 0.2
    assert rig.monitor._contacts == 1


@pytest.mark.longer
def test_a_motion_that_says_nothing_is_counted_and_nothing_is_written(rig, arm):
    recording = arm.recording(53, 8.0, rate=100.0)
    rig.move(recording, 1000.0, effort=0.0 * recording.effort)
    rig.until(lambda: facts_of(rig).get('motions_refused') == '1')
    assert 'effort: zero in all samples' in facts_of(rig)['last_refusal']
    assert rig.reports[-1].level == DiagnosticStatus.OK
    impossible = SimpleNamespace(**{**vars(recording), 'velocity': 900.0 * recording.velocity})
    rig.move(impossible, 1100.0)
    rig.until(lambda: facts_of(rig).get('motions_refused') == '2')
    assert 'velocity of joint' in rig.reports[-1].message
    assert rig.reports[-1].level == DiagnosticStatus.WARN
    assert rig.motions() == ()


def facts_of(rig):
    return {each.key: each.value for each in rig.reports[-1].values} if rig.reports else {}


@pytest.mark.parametrize('wrong', [{'model': ''}, {'model': '/nowhere.yaml'}, {'efforts': 'x'}])
def test_what_cannot_be_used_is_refused(tmp_path, found, wrong):
    with pytest.raises(RobodynError):
        Rig(tmp_path, found, **wrong)
