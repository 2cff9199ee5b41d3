# SPDX-License-Identifier: Apache-2.0
"""motion_node beside an arm that does as it is told: what is sent, stopped and recorded."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import yaml
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from fair_spinning import STEP, spin_until
from graph_rig import GraphRig
from rclpy.exceptions import ParameterException
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from robots import two_link_urdf
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.errors import RobodynError
from robodyn_ros.identification import Recording
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.motions import table_as_csv
from robodyn_ros.ros.demo.node_process import die_with_parent
from robodyn_ros.ros.motion_node import LEAD_TIME, MOST_REFUSALS, STOP_DELIVERY_TIME, MotionNode

pytest.importorskip('rosbags', reason='needs rosbags: pip install rosbags')
pytestmark = pytest.mark.ros

PERIOD = 0.01  # between joint states [s]
DURATION = 1.5  # of the motion [s]


class Motion(MotionNode):
    """The node in this process; it counts the states that it has seen."""

    seen = 0

    def _on_state(self, content):
        super()._on_state(content)
        self.seen += 1


class Arm(GraphRig):
    """
    An arm that is where its trajectory says, and efforts as its model says, plus a push.

    Parameters
    ----------
    folder : Path
        Where URDF, motion and log are, and the bag will be.
    """

    motion = process = None
    patience = 240.0

    def __init__(self, folder, model, topic, start, reliability):
        super().__init__('arm')
        self.folder = folder
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
        begin, points = message.header.stamp, message.points
        self.way = (
            begin.sec + 1e-9 * begin.nanosec,
            [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points],
            [
                np.array([p.positions for p in points]),
                np.array([p.velocities for p in points]),
                np.array([p.accelerations or [0.0, 0.0] for p in points]),
            ],
        )

    def refuse(self, stamp):
        """Say in diagnostics that the trajectory of a stamp is refused, and why."""
        values = {
            'last_rejection': self.reason,
            'last_rejection_stamp': f'{stamp.sec + 1e-9 * stamp.nanosec:.9f}',
        }
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        status = DiagnosticStatus(name='dynamics_node: torque', values=pairs)
        self.diagnostics.publish(DiagnosticArray(status=[status]))

    def run(self, given):
        """Run the node beside the arm."""
        overrides = [Parameter(name, value=value) for name, value in given.items()]
        self.motion = self.add(Motion(context=self.context, parameter_overrides=overrides))

    def run_process(self, given):
        """Run the node in a process of its own."""
        words = [word for name, value in given.items() for word in ('-p', f'{name}:={value}')]
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'robodyn_ros.ros.motion_node', '--ros-args', *words],
            env={**os.environ, 'ROS_DOMAIN_ID': str(self.domain)},
            stdout=(self.folder / 'log').open('w'),
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )

    @property
    def is_over(self):
        if self.process is None:
            return self.motion.is_over
        return self.process.poll() is not None

    def until_moving(self):
        self.until(lambda: self.received_ and abs(self.q[0]) > 0.1)

    def ended(self):
        """Spin until the node has ended, and return what it logged."""
        self.until(lambda: self.is_over)
        if self.process is not None:
            return (self.folder / 'log').read_text()
        spin_until(self.executor, time.monotonic() + STOP_DELIVERY_TIME)
        self.executor.remove_node(self.motion)
        self.motion.destroy_node()
        self.until(lambda: 'motion_node' not in self.node.get_node_names())
        return self.motion.problem

    def recording(self):
        return Recording.from_bag(self.folder / 'bag', self.model)

    def bag(self):
        """Return topics and messages of the bag."""
        from rosbags.highlevel import AnyReader

        with AnyReader([self.folder / 'bag']) as reader:
            return [
                (connection.topic, reader.deserialize(raw, connection.msgtype))
                for connection, _, raw in reader.messages()
            ]

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        super().close()

    def spin(self, duration=PERIOD):
        """Go on by one simulated period: until the node has seen the state, or for a real one."""
        self.now += PERIOD
        qd = qdd = np.zeros(2)
        if self.obeys and self.received_ and self.received_[-1].points:
            begin, times, tables = self.way
            elapsed = self.now - (begin or self.now)
            if elapsed >= 0:
                at = [[np.interp(elapsed, times, joint) for joint in table.T] for table in tables]
                self.q = np.array(at[0])
                if times[0] <= elapsed < times[-1]:
                    qd, qdd = map(np.array, at[1:])
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
            if self.follows.get_subscription_count():
                told = DynamicsState(header=state.header)
                if self.received_ and self.received_[-1].points:
                    told.reference_position = self.q.tolist()
                self.follows.publish(told)
        end, seen = time.monotonic() + PERIOD, self.motion and self.motion.seen
        while time.monotonic() < end and (self.motion is None or self.motion.seen == seen):
            self.executor.spin_once(timeout_sec=STEP)


@pytest.fixture
def rig(tmp_path):
    """Return a function that starts arm and node."""
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
    arms = []

    def start(
        *,
        start_at=(0.0, 0.0),
        target='dynamics_node',
        reliability=ReliabilityPolicy.RELIABLE,
        run=Arm.run,
        **parameters,
    ):
        topic = f'/{target}/joint_trajectory'
        arms.append(Arm(tmp_path, model, topic, start_at, reliability))
        given = {
            'motion_file': str(motion),
            'urdf_file': str(urdf),
            'bag': str(tmp_path / 'bag'),
            'target': target,
            'confirm': True,
            'rehearsal_speed': 0.0,
            'state_timeout': 2.0,
            **parameters,
        }
        run(arms[-1], given)
        return arms[-1]

    yield start
    for arm in arms:
        arm.close()


def test_an_arm_is_watched_from_when_the_node_follows_even_before_the_motion_begins(rig):
    arm = rig()
    arm.until(lambda: arm.received_)
    arm.push = 100.0
    assert re.match(r'stopped: motion, 0\.[01]\d s: .*effort', arm.ended())


def test_a_motion_is_made_slowly_then_fast_and_recorded_with_the_robots_digest(rig):
    arm = rig(rehearsal_speed=0.5)
    assert arm.ended() == ''
    times = [message.points[-1].time_from_start for message in arm.received_]
    lengths = [t.sec + 1e-9 * t.nanosec for t in times]
    assert lengths[0] == pytest.approx(LEAD_TIME + 2 * DURATION)
    assert lengths[-1] == pytest.approx(LEAD_TIME + DURATION)
    fastest = [
        max(abs(v) for p in message.points for v in p.velocities) for message in arm.received_
    ]
    assert fastest[0] == pytest.approx(fastest[-1] / 2, rel=1e-3)
    recording = arm.recording()
    assert recording.duration > 3 * DURATION
    assert np.ptp(recording.position, axis=0) == pytest.approx([0.8, 1.2], rel=0.01)
    information = yaml.safe_load((arm.folder / 'bag' / 'metadata.yaml').read_text())
    notes = information['rosbag2_bagfile_information']['custom_data']
    assert notes['kinematics'] == kinematics_digest(arm.model)
    assert notes['outcome'] == 'done' and len(notes['urdf_sha256']) == 64
    assert float(notes['start_of_motion']) > float(notes['start_of_rehearsal']) > 100.0


@pytest.mark.longer
@pytest.mark.parametrize(
    'reliability, storage',
    [(ReliabilityPolicy.RELIABLE, 'mcap'), (ReliabilityPolicy.BEST_EFFORT, 'sqlite3')],
)
def test_the_bag_holds_the_description_and_each_state_once_as_reliably_as_it_is_offered(
    rig, reliability, storage
):
    arm = rig(reliability=reliability, storage=storage)
    publish = arm.states.publish
    arm.states.publish = lambda state: (publish(state), publish(state))
    arm.until_moving()
    (listener,) = arm.node.get_subscriptions_info_by_topic('/joint_states')
    assert listener.qos_profile.reliability == reliability
    assert arm.ended() == ''
    bag = arm.bag()
    found = dict(bag)
    assert found['/robot_description'].data == two_link_urdf()
    assert list(found['/joint_states'].name) == ['joint1', 'joint2']
    assert bool(list((arm.folder / 'bag').glob('*.mcap'))) == (storage == 'mcap')
    stamps = [message.header.stamp for topic, message in bag if topic == '/joint_states']
    times = [stamp.sec * 10**9 + stamp.nanosec for stamp in stamps]
    assert len(times) > DURATION / PERIOD / 2
    assert len(set(times)) == len(times)


def test_from_elsewhere_it_begins_only_where_the_approach_is_asked_for(rig):
    arm = rig(start_at=(0.3, 0.0))
    assert 'approach:=true' in arm.ended() and not arm.sent


@pytest.mark.longer
@pytest.mark.parametrize('reason', ['', 'speed on the way: 8.48; allowed 2.16'])
def test_a_refused_trajectory_is_sent_again_with_more_time_where_there_is_a_reason(rig, reason):
    arm = rig()
    arm.refusals, arm.reason = 2, reason  # without one: the node is not yet active
    assert arm.ended() == ''
    assert not arm.refusals and arm.recording().duration > DURATION
    times = [message.points[0].time_from_start for message in arm.sent]
    if reason:
        leads = [time.sec + 1e-9 * time.nanosec for time in times]
        assert leads == pytest.approx([LEAD_TIME, 2 * LEAD_TIME, 4 * LEAD_TIME])


def test_a_trajectory_refused_again_and_again_ends_with_the_nodes_reason(rig):
    arm = rig()
    arm.refusals, arm.reason = 100, 'in mode gravity_compensation'
    why = 'motion: the dynamics node refused the trajectory: in mode gravity_compensation'
    assert arm.ended() == why
    assert len(arm.sent) == MOST_REFUSALS


@pytest.mark.longer
def test_a_second_part_that_is_refused_is_not_blamed_on_the_arm(rig):
    arm = rig(rehearsal_speed=0.5)
    arm.until(lambda: arm.received_)
    arm.refusals, arm.reason = 100, 'while disabled'
    assert arm.ended() == 'motion: the dynamics node refused the trajectory: while disabled'


@pytest.mark.longer
def test_what_the_node_refused_of_others_is_nothing_to_this_motion(rig):
    arm = rig()
    arm.reason = 'of another'
    arm.until(lambda: arm.received_)
    for _ in range(10):
        arm.refuse(Time(sec=7))
    assert arm.ended() == '' and len(arm.sent) == 1


@pytest.mark.longer
def test_an_approach_is_slow_and_ends_at_the_start(rig):
    arm = rig(start_at=(0.05, -0.1), approach=True)
    assert arm.ended() == ''
    way = arm.received_[0].points
    assert list(way[0].positions) == pytest.approx([0.05, -0.1])
    assert list(way[-1].positions) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert max(abs(v) for point in way for v in point.velocities) <= 0.2 + 1e-9


@pytest.mark.longer
def test_efforts_that_leave_the_prediction_stop_the_arm(rig):
    arm = rig(effort_tolerance=[5.0, 5.0])
    arm.until_moving()
    arm.push = 20.0
    assert "effort of joint 'joint1'" in arm.ended()
    assert not arm.received_[-1].points  # the dynamics node brakes and holds
    assert np.abs(arm.recording().effort).max() >= 20.0 - 5.0


@pytest.mark.longer
def test_a_joint_trajectory_controller_is_stopped_by_a_point_at_rest_ahead(rig):
    arm = rig(target='joint_trajectory_controller', effort_tolerance=[5.0])
    arm.until_moving()
    q = arm.q.copy()
    arm.push = 20.0
    assert arm.ended()
    (rest,) = arm.received_[-1].points
    assert list(rest.velocities) == [0.0, 0.0]
    assert np.abs(np.array(rest.positions) - q).max() < 0.6


def test_an_arm_that_does_not_follow_is_stopped(rig):
    arm = rig()
    arm.obeys = False
    assert 'from where the motion is' in arm.ended()


@pytest.mark.longer
def test_a_contact_stops_the_motion_and_its_end_does_not(rig):
    arm = rig()
    arm.until_moving()
    arm.contacts.publish(Contact(is_over=True, joint='joint2'))
    for _ in range(20):
        arm.spin()
    assert not arm.is_over
    arm.contacts.publish(Contact(joint='joint2', torque=7.0, threshold=5.0))
    assert "contact: 7 of 5 N m at joint 'joint2'" in arm.ended()
    assert not arm.received_[-1].points


@pytest.mark.longer
def test_a_driver_that_falls_silent_stops_the_motion_and_leaves_a_bag(rig):
    arm = rig(state_timeout=0.5)
    arm.until_moving()
    arm.talks = False
    assert 'no joint states' in arm.ended()
    assert not arm.received_[-1].points
    assert arm.recording().duration > 0.3


@pytest.mark.parametrize(
    ('parameters', 'named'),
    [
        ({'target': 'arm_controller'}, 'parameter target'),
        ({'motion_file': '/nonexistent/motion.csv'}, 'no such file'),
        ({'motion_file': ''}, 'motion_file'),
        ({'storage': 'tape'}, 'parameter storage'),
        ({'rehearsal_speed': 2.0}, 'speed'),
        ({'position_tolerance': 0.0}, 'position_tolerance'),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(rig, tmp_path, parameters, named):
    with pytest.raises((RobodynError, ParameterException), match=named):
        rig(**parameters)
    assert not (tmp_path / 'bag').exists()


def test_a_bag_that_is_there_is_not_overwritten(rig, tmp_path):
    (tmp_path / 'bag').mkdir()
    with pytest.raises(RobodynError, match='bag'):
        rig()


# --- in a process of its own -------------------------------------------------------------------


@pytest.mark.longer
def test_a_signal_stops_the_motion_and_leaves_a_bag(rig):
    arm = rig(run=Arm.run_process)
    arm.until_moving()
    arm.process.send_signal(signal.SIGINT)
    assert 'stop requested' in arm.ended() and arm.process.returncode == 1
    assert not arm.received_[-1].points
    assert arm.recording().duration > 0.3


@pytest.mark.longer
def test_a_refusal_ends_the_process_with_code_1_before_anything_is_sent(rig):
    arm = rig(run=Arm.run_process, storage='tape')
    assert 'parameter storage' in arm.ended() and arm.process.returncode == 1
    assert not arm.sent


@pytest.mark.longer
def test_without_confirm_nothing_is_sent_or_recorded(rig):
    arm = rig(run=Arm.run_process, confirm='false')
    assert 'confirm:=true' in arm.ended() and arm.process.returncode == 0
    assert not arm.sent and not (arm.folder / 'bag').exists()
