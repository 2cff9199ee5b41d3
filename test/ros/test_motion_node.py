# SPDX-License-Identifier: Apache-2.0
"""motion_node beside an arm that does as it is told: what is sent, stopped and recorded."""

import os
import signal
import subprocess
import sys
import time

import domains
import numpy as np
import pytest
import rclpy
import yaml
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from fair_spinning import spin_until
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robots import two_link_urdf
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.identification import Recording
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.motions import table_as_csv
from robodyn_ros.ros.demo.node_process import die_with_parent
from robodyn_ros.ros.motion_node import LEAD_TIME, MOST_REFUSALS

pytest.importorskip('rosbags', reason='needs rosbags: pip install rosbags')
pytestmark = pytest.mark.ros

PERIOD = 0.005  # between joint states [s]
DURATION = 1.5  # of the motion [s]
PATIENCE = 240.0  # for anything that must happen; a loaded machine may take long [s]


class Arm:
    """An arm that is where its trajectory says, and efforts as its model says, plus a push."""

    def __init__(self, model, topic, start, reliability=ReliabilityPolicy.RELIABLE):
        self.domain = domains.claim()
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=self.domain)
        self.node = rclpy.create_node('arm', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.states = self.node.create_publisher(
            JointState, '/joint_states', QoSProfile(depth=10, reliability=reliability)
        )
        self.diagnostics = self.node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.follows = self.node.create_publisher(
            DynamicsState, '/dynamics_node/dynamics_state', 10
        )
        self.contacts = self.node.create_publisher(Contact, '/dynamics_node/contact', 10)
        self.node.create_subscription(JointTrajectory, topic, self.received, 10)
        self.model, self.received_ = model, []
        self.q, self.push, self.now = np.array(start, dtype=float), 0.0, 100.0
        self.talks, self.obeys = True, True
        self.refusals, self.reason = 0, ''
        self.sent = []  # all that was, refused or not

    def received(self, message):
        """Take a trajectory, as an active node does that does not refuse it."""
        self.sent.append(message)
        if self.refusals:
            self.refusals -= 1
            if self.reason:
                self.refuse(message.header.stamp)
            return
        self.received_.append(message)

    def refuse(self, stamp):
        """Say in diagnostics that the trajectory of a stamp is refused, and why."""
        values = {
            'last_rejection': self.reason,
            'last_rejection_stamp': f'{stamp.sec + 1e-9 * stamp.nanosec:.9f}',
        }
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        status = DiagnosticStatus(name='dynamics_node: torque', values=pairs)
        self.diagnostics.publish(DiagnosticArray(status=[status]))

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)
        domains.release(self.domain)

    def spin(self):
        """Go on by one period, simulated and real."""
        self.now += PERIOD
        qd = qdd = np.zeros(2)
        if self.obeys and self.received_ and self.received_[-1].points:
            message = self.received_[-1]
            times = [
                p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points
            ]
            start = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            elapsed = self.now - (start or self.now)
            if elapsed >= 0:
                columns = zip(*(p.positions for p in message.points))
                self.q = np.array([np.interp(elapsed, times, column) for column in columns])
                if times[0] <= elapsed < times[-1]:
                    qd, qdd = (
                        np.array([np.interp(elapsed, times, column) for column in zip(*table)])
                        for table in (
                            [p.velocities for p in message.points],
                            [p.accelerations or [0.0, 0.0] for p in message.points],
                        )
                    )
        effort = inverse_dynamics(self.model, self.q, qd, qdd) + [self.push, 0.0]
        if self.talks:
            state = JointState(
                name=['joint1', 'joint2'],
                position=self.q.tolist(),
                velocity=qd.tolist(),
                effort=effort.tolist(),
            )
            whole, part = divmod(round(self.now * 1e9), 10**9)
            state.header.stamp = Time(sec=whole, nanosec=part)
            self.states.publish(state)
            told = DynamicsState(header=state.header)
            if self.received_ and self.received_[-1].points:
                told.reference_position = self.q.tolist()
            self.follows.publish(told)
        spin_until(self.executor, time.monotonic() + PERIOD, 1e-3)


@pytest.fixture
def rig(tmp_path):
    """Return a function that starts arm and node: (arm, process, folder)."""
    urdf, motion = tmp_path / 'arm.urdf', tmp_path / 'motion.csv'
    urdf.write_text(two_link_urdf())
    model = RobotModel.from_urdf(urdf)
    times = np.linspace(0.0, DURATION, 151)
    phase = 2 * np.pi * times / DURATION
    sizes = np.array([0.4, -0.6])
    rate = 2 * np.pi / DURATION
    q = sizes * (1 - np.cos(phase))[:, None]
    qd = sizes * rate * np.sin(phase)[:, None]
    qdd = sizes * rate**2 * np.cos(phase)[:, None]
    names = [f'joint{j}{s}' for s in ('', '.velocity', '.acceleration') for j in (1, 2)]
    motion.write_text(table_as_csv(names, times, q, qd, qdd))
    started = []

    def start(
        *,
        start_at=(0.0, 0.0),
        target='dynamics_node',
        reliability=ReliabilityPolicy.RELIABLE,
        **parameters,
    ):
        arm = Arm(model, f'/{target}/joint_trajectory', start_at, reliability)
        given = {
            'motion_file': motion,
            'urdf_file': urdf,
            'bag': tmp_path / 'bag',
            'target': target,
            'confirm': 'true',
            'rehearsal_speed': 0.0,
            'state_timeout': 2.0,
            **parameters,
        }
        arguments = [word for name, value in given.items() for word in ('-p', f'{name}:={value}')]
        log = (tmp_path / 'log').open('w')
        process = subprocess.Popen(
            [
                sys.executable,
                '-m',
                'robodyn_ros.ros.motion_node',
                '--ros-args',
                *arguments,
            ],
            env={**os.environ, 'ROS_DOMAIN_ID': str(arm.domain)},
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        started.append((arm, process))
        return arm, process, tmp_path

    yield start
    for arm, process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        arm.close()


def until(arm, process, folder, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, (folder / 'log').read_text()
        arm.spin()


def ended(arm, process, folder):
    """Spin until the node has ended; return its code and what it printed."""
    until(arm, process, folder, lambda: process.poll() is not None)
    return process.returncode, (folder / 'log').read_text()


def moving(arm):
    return lambda: bool(arm.received_) and abs(arm.q[0]) > 0.1


def test_a_motion_is_made_slowly_then_fast_and_recorded_with_the_robots_digest(rig):
    arm, process, folder = rig(rehearsal_speed=0.5)
    code, log = ended(arm, process, folder)
    assert code == 0, log
    times = [message.points[-1].time_from_start for message in arm.received_]
    lengths = [t.sec + 1e-9 * t.nanosec for t in times]
    assert lengths[0] == pytest.approx(LEAD_TIME + 2 * DURATION)
    assert lengths[-1] == pytest.approx(LEAD_TIME + DURATION)
    fastest = [
        max(abs(v) for p in message.points for v in p.velocities) for message in arm.received_
    ]
    assert fastest[0] == pytest.approx(fastest[-1] / 2, rel=1e-3)
    recording = Recording.from_bag(folder / 'bag', arm.model)
    assert recording.duration > 3 * DURATION
    assert np.ptp(recording.position, axis=0) == pytest.approx([0.8, 1.2], rel=0.01)
    information = yaml.safe_load((folder / 'bag' / 'metadata.yaml').read_text())
    notes = information['rosbag2_bagfile_information']['custom_data']
    assert notes['kinematics'] == kinematics_digest(arm.model)
    assert notes['outcome'] == 'done' and len(notes['urdf_sha256']) == 64
    assert float(notes['start_of_motion']) > float(notes['start_of_rehearsal']) > 100.0


@pytest.mark.longer
def test_the_bag_holds_the_description_and_may_be_mcap(rig):
    arm, process, folder = rig(storage='mcap')
    assert ended(arm, process, folder)[0] == 0
    from rosbags.highlevel import AnyReader

    with AnyReader([folder / 'bag']) as reader:
        found = {
            connection.topic: reader.deserialize(raw, connection.msgtype)
            for connection, _, raw in reader.messages()
        }
    assert found['/robot_description'].data == two_link_urdf()
    assert list(found['/joint_states'].name) == ['joint1', 'joint2']
    assert list((folder / 'bag').glob('*.mcap'))


def test_without_confirm_nothing_is_sent_or_recorded(rig):
    arm, process, folder = rig(confirm='false')
    code, log = ended(arm, process, folder)
    assert code == 0 and 'confirm:=true' in log
    assert not arm.received_ and not (folder / 'bag').exists()


@pytest.mark.longer
def test_from_elsewhere_it_begins_only_where_the_approach_is_asked_for(rig):
    arm, process, folder = rig(start_at=(0.3, 0.0))
    code, log = ended(arm, process, folder)
    assert code == 1 and 'approach:=true' in log and not arm.received_


@pytest.mark.longer
def test_a_node_that_is_not_yet_active_is_asked_again(rig):
    arm, process, folder = rig()
    arm.refusals = 2
    code, log = ended(arm, process, folder)
    assert code == 0, log
    assert not arm.refusals


@pytest.mark.longer
def test_a_refused_trajectory_is_sent_again_with_more_time_to_its_start(rig):
    arm, process, folder = rig()
    arm.refusals, arm.reason = 2, 'speed on the way: 8.48; allowed 2.16'
    code, log = ended(arm, process, folder)
    assert code == 0, log
    leads = [
        message.points[0].time_from_start.sec + 1e-9 * message.points[0].time_from_start.nanosec
        for message in arm.sent
    ]
    assert leads == pytest.approx([LEAD_TIME, 2 * LEAD_TIME, 4 * LEAD_TIME])
    assert Recording.from_bag(folder / 'bag', arm.model).duration > DURATION


@pytest.mark.longer
def test_a_trajectory_refused_again_and_again_ends_with_the_nodes_reason(rig):
    arm, process, folder = rig()
    arm.refusals, arm.reason = 100, 'in mode gravity_compensation'
    code, log = ended(arm, process, folder)
    assert code == 1
    assert 'motion: the dynamics node refused the trajectory: in mode gravity_compensation' in log
    assert 'from where the motion is' not in log
    assert len(arm.sent) == MOST_REFUSALS


@pytest.mark.longer
def test_a_second_part_that_is_refused_is_not_blamed_on_the_arm(rig):
    arm, process, folder = rig(rehearsal_speed=0.5)
    until(arm, process, folder, lambda: arm.received_)
    arm.refusals, arm.reason = 100, 'while disabled'
    code, log = ended(arm, process, folder)
    assert code == 1
    assert 'motion: the dynamics node refused the trajectory: while disabled' in log
    assert 'from where the motion is' not in log


@pytest.mark.longer
def test_what_the_node_refused_of_others_is_nothing_to_this_motion(rig):
    arm, process, folder = rig()
    arm.reason = 'of another'
    until(arm, process, folder, lambda: arm.received_)
    for _ in range(10):
        arm.refuse(Time(sec=7))
    code, log = ended(arm, process, folder)
    assert code == 0 and 'of another' not in log


@pytest.mark.longer
@pytest.mark.parametrize(
    'reliability', [ReliabilityPolicy.RELIABLE, ReliabilityPolicy.BEST_EFFORT]
)
def test_joint_states_are_taken_as_reliably_as_they_are_offered(rig, reliability):
    arm, process, folder = rig(reliability=reliability)
    until(arm, process, folder, moving(arm))
    (listener,) = arm.node.get_subscriptions_info_by_topic('/joint_states')
    assert listener.qos_profile.reliability == reliability
    assert ended(arm, process, folder)[0] == 0


@pytest.mark.longer
def test_a_state_that_is_sent_again_is_recorded_once(rig):
    arm, process, folder = rig()
    publish = arm.states.publish
    arm.states.publish = lambda state: (publish(state), publish(state))
    assert ended(arm, process, folder)[0] == 0
    from rosbags.highlevel import AnyReader

    with AnyReader([folder / 'bag']) as reader:
        stamps = [
            reader.deserialize(raw, connection.msgtype).header.stamp
            for connection, _, raw in reader.messages()
            if connection.topic == '/joint_states'
        ]
    times = [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]
    assert len(times) > DURATION / PERIOD / 2
    assert len(set(times)) == len(times)


@pytest.mark.longer
def test_an_approach_is_slow_and_ends_at_the_start(rig):
    arm, process, folder = rig(start_at=(0.05, -0.1), approach='true')
    code, log = ended(arm, process, folder)
    assert code == 0, log
    way = arm.received_[0].points
    assert list(way[0].positions) == pytest.approx([0.05, -0.1])
    assert list(way[-1].positions) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert max(abs(v) for point in way for v in point.velocities) <= 0.2 + 1e-9


@pytest.mark.longer
def test_efforts_that_leave_the_prediction_stop_the_arm(rig):
    arm, process, folder = rig(effort_tolerance='[5.0, 5.0]')
    until(arm, process, folder, moving(arm))
    arm.push = 20.0
    code, log = ended(arm, process, folder)
    assert code == 1 and "effort of joint 'joint1'" in log
    assert not arm.received_[-1].points  # the dynamics node brakes and holds
    recording = Recording.from_bag(folder / 'bag', arm.model)
    assert np.abs(recording.effort).max() >= 20.0 - 5.0


@pytest.mark.longer
def test_a_joint_trajectory_controller_is_stopped_by_a_point_at_rest_ahead(rig):
    arm, process, folder = rig(target='joint_trajectory_controller', effort_tolerance='5')
    until(arm, process, folder, moving(arm))
    q = arm.q.copy()
    arm.push = 20.0
    assert ended(arm, process, folder)[0] == 1
    (rest,) = arm.received_[-1].points
    assert list(rest.velocities) == [0.0, 0.0]
    assert np.abs(np.array(rest.positions) - q).max() < 0.6


@pytest.mark.longer
def test_an_arm_that_does_not_follow_is_stopped(rig):
    arm, process, folder = rig()
    arm.obeys = False
    code, log = ended(arm, process, folder)
    assert code == 1 and 'from where the motion is' in log


@pytest.mark.longer
def test_a_contact_stops_the_motion_and_its_end_does_not(rig):
    arm, process, folder = rig()
    until(arm, process, folder, moving(arm))
    arm.contacts.publish(Contact(is_over=True, joint='joint2'))
    for _ in range(20):
        arm.spin()
    assert process.poll() is None
    arm.contacts.publish(Contact(joint='joint2', torque=7.0, threshold=5.0))
    code, log = ended(arm, process, folder)
    assert code == 1 and "contact: 7 of 5 N m or N at joint 'joint2'" in log
    assert not arm.received_[-1].points


@pytest.mark.longer
def test_a_driver_that_falls_silent_stops_the_motion_and_leaves_a_bag(rig):
    arm, process, folder = rig(state_timeout=0.5)
    until(arm, process, folder, moving(arm))
    arm.talks = False
    code, log = ended(arm, process, folder)
    assert code == 1 and 'no joint states' in log
    assert not arm.received_[-1].points
    assert Recording.from_bag(folder / 'bag', arm.model).duration > 0.3


@pytest.mark.longer
def test_a_signal_stops_the_motion_and_leaves_a_bag(rig):
    arm, process, folder = rig()
    until(arm, process, folder, moving(arm))
    process.send_signal(signal.SIGINT)
    code, log = ended(arm, process, folder)
    assert code == 1 and 'told to stop' in log
    assert not arm.received_[-1].points
    assert Recording.from_bag(folder / 'bag', arm.model).duration > 0.3


@pytest.mark.longer
@pytest.mark.parametrize(
    ('parameters', 'named'),
    [
        ({'target': 'arm_controller'}, 'parameter target'),
        ({'motion_file': '/nonexistent/motion.csv'}, 'no such file'),
        ({'motion_file': '""'}, 'motion_file'),
        ({'storage': 'tape'}, 'parameter storage'),
        ({'rehearsal_speed': 2.0}, 'speed'),
        ({'position_tolerance': 0.0}, 'position_tolerance'),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(rig, parameters, named):
    arm, process, folder = rig(**parameters)
    code, log = ended(arm, process, folder)
    assert code == 1 and named in log
    assert not arm.received_ and not (folder / 'bag').exists()


@pytest.mark.longer
def test_a_bag_that_is_there_is_not_overwritten(rig, tmp_path):
    (tmp_path / 'bag').mkdir()
    arm, process, folder = rig()
    code, log = ended(arm, process, folder)
    assert code == 1 and 'bag' in log and not arm.received_
