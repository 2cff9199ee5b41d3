# SPDX-License-Identifier: Apache-2.0
"""The simulator offers the topics of a driver, over real DDS."""

import os
import signal
import time
from types import SimpleNamespace

import numpy as np
import pytest
from graph_rig import GraphRig

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rclpy.exceptions import ParameterException  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from robodyn_interfaces.srv import GetPayload, SetPayload  # noqa: E402
from robodyn_ros.errors import RobodynError  # noqa: E402
from robodyn_ros.ros import conversions  # noqa: E402
from robodyn_ros.ros.demo.node_process import DemoFailed, NodeProcess  # noqa: E402
from robodyn_ros.ros.qos import LATCHED  # noqa: E402
from robodyn_ros.ros.simulator_node import HANDOVER_TIME, SimulatorNode  # noqa: E402

pytestmark = pytest.mark.ros

PATIENCE = 30.0  # for anything that must happen; a loaded machine may take long [s]
JOINTS = ['joint1', 'joint2']


def swinging_arm():
    """Two links that swing in a vertical plane, from 'base' to 'link2'."""
    inertial = (
        '<inertial><origin xyz="0.5 0 0"/><mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    return (
        f'<robot name="arm"><link name="base"/><link name="link1">{inertial}</link>'
        f'<link name="link2">{inertial}</link>'
        '<joint name="joint1" type="continuous"><parent link="base"/><child link="link1"/>'
        '<axis xyz="0 1 0"/></joint>'
        '<joint name="joint2" type="continuous"><parent link="link1"/><child link="link2"/>'
        '<origin xyz="1 0 0"/><axis xyz="0 1 0"/></joint></robot>'
    )


class SimulatorRig(GraphRig):
    """A simulator in this process, what it publishes, and what it logs."""

    def __init__(self, folder, capfd):
        self.capfd, self._log = capfd, ''
        self.urdf = folder / 'arm.urdf'
        self.urdf.write_text(swinging_arm())
        super().__init__()
        self.states, self.clocks, self.descriptions, self.reports = [], [], [], []
        subscribe = self.node.create_subscription
        subscribe(JointState, 'joint_states', self.states.append, 1000)
        subscribe(Clock, 'clock', self.clocks.append, 1000)
        subscribe(DiagnosticArray, 'diagnostics', self.reports.append, 10)
        self.torques = self.node.create_publisher(JointState, 'torques', 10)
        self.commands = self.node.create_publisher(Float64MultiArray, 'commands', 10)

    def start(self, **parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        return self.add(SimulatorNode(context=self.context, parameter_overrides=overrides))

    @property
    def log(self):
        self._log += self.capfd.readouterr().err
        return self._log

    def until_more(self, more):
        """Wait for so many more states."""
        count = len(self.states) + more
        self.until(lambda: len(self.states) >= count)

    def answer(self, state, effort=(0.0, 0.0), names=JOINTS):
        message = JointState(name=list(names), effort=list(effort))
        message.header.stamp = state.header.stamp
        self.torques.publish(message)

    def in_lockstep(self, **parameters):
        """Start a simulator whose first state has come, and wait for the torques to it."""
        given = {'urdf_file': str(self.urdf), 'lockstep': True, 'lockstep_timeout': 0.05}
        simulator = self.start(**{**given, **parameters})
        self.until_subscribed(self.torques)
        self.until(lambda: self.states)
        return simulator

    def step(self, effort=(0.0, 0.0)):
        """Answer the last state, and return the largest position and velocity of the next."""
        before = self.stamps()[-1]
        self.answer(self.states[-1], effort)
        self.until(lambda: self.stamps()[-1] > before)
        state = self.states[-1]
        return np.abs(state.position).max(), np.abs(state.velocity).max()

    def ask(self, kind, name, request):
        """Return the answer of one of the simulator's services."""
        return self.call(kind, f'simulator_node/{name}', request)

    def release(self):
        return self.ask(Trigger, 'release', Trigger.Request())

    def carry(self, mass, link='', x=0.0):
        """Return the answer to a payload at a distance along its link."""
        request = SetPayload.Request()
        request.payload.link, request.payload.mass = link, mass
        request.payload.center_of_mass.x = x
        return self.ask(SetPayload, 'set_payload', request)

    def stamps(self):
        return [
            state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec for state in self.states
        ]

    def counts(self):
        return {pair.key: int(pair.value) for pair in self.reports[-1].status[0].values}


# Two links of 1 kg, held in the middle of their metre; 2 kg at the end of the second.
BARE = -9.81 * np.array([0.5 + 1.5, 0.5])
LOAD = -9.81 * 2.0 * np.array([2.0, 1.0])


@pytest.fixture
def rig(tmp_path, capfd):
    made = SimulatorRig(tmp_path, capfd)
    yield made
    made.close()


def test_in_lockstep_the_arm_moves_on_the_answer_to_its_last_state_and_on_nothing_else(rig):
    rig.in_lockstep()
    # On the brakes, the same state comes again and again.
    rig.until(lambda: len(rig.states) >= 3)
    assert set(rig.stamps()) == {0.001}
    assert all(list(state.position) == [0.0, 0.0] for state in rig.states)
    # The answer to it lets the arm go, by one step.
    first = rig.states[0]
    rig.answer(first)
    rig.until(lambda: rig.stamps()[-1] > 0.001)
    moved = rig.states[-1]
    assert rig.stamps()[-1] == pytest.approx(0.002)
    assert moved.velocity[1] != 0.0
    # A second answer to the old state does nothing; states that come are the same one again.
    rig.states.clear()
    rig.answer(first)
    rig.until(lambda: len(rig.states) >= 3)
    assert set(rig.stamps()) == {0.002}
    assert all(state.position == moved.position for state in rig.states)
    rig.until(lambda: rig.reports and rig.counts()['missed_cycles'] >= 3)
    assert rig.counts()['steps'] == rig.counts()['commands'] == 1
    assert rig.clocks[-1].clock == moved.header.stamp


def test_held_time_stands_still_until_the_release_and_no_answer_from_before_counts(rig):
    rig.in_lockstep(hold=True)
    held = rig.states[0]
    for _ in range(3):
        rig.answer(held)
        rig.until_more(1)
    assert set(rig.stamps()) == {0.001}
    assert rig.release().success
    rig.until(lambda: rig.stamps()[-1] > 0.001)
    assert rig.stamps()[-1] == pytest.approx(0.002)
    rig.answer(held)  # computed before the release
    count = len(rig.states)
    rig.until(lambda: len(rig.states) >= count + 3)
    assert set(rig.stamps()[count:]) == {rig.stamps()[-1]}
    assert list(rig.states[-1].position) == list(held.position)
    rig.answer(rig.states[-1])
    rig.until(lambda: rig.stamps()[-1] > 0.0021)
    assert rig.states[-1].velocity[1] != 0.0
    again = rig.release()
    assert not again.success and again.message == 'not held'


@pytest.mark.longer
def test_in_real_time_a_held_arm_takes_no_command_before_the_release(rig):
    rig.start(urdf_file=str(rig.urdf), hold=True)
    rig.until_subscribed(rig.commands)
    rig.commands.publish(Float64MultiArray(data=[40.0, 0.0]))
    rig.until(lambda: len(rig.states) >= 50)
    assert all(list(state.position) == [0.0, 0.0] for state in rig.states)
    assert rig.release().success
    rig.commands.publish(Float64MultiArray(data=[40.0, 0.0]))
    rig.until(lambda: rig.states[-1].position[0] > 0.01)


def test_in_lockstep_torques_are_matched_by_joint_name(rig):
    rig.in_lockstep()
    rig.answer(rig.states[-1], effort=[1.0], names=['joint1'])
    rig.answer(rig.states[-1], effort=[float('nan'), 0.0])
    rig.until_more(3)
    assert set(rig.stamps()) == {0.001}
    rig.answer(rig.states[-1], effort=[5.0, -3.0, 7.0], names=['joint2', 'other', 'joint1'])
    rig.until(lambda: rig.stamps()[-1] > 0.001)
    assert list(rig.states[-1].effort) == [7.0, 5.0]


@pytest.mark.slow
def test_in_lockstep_what_is_missing_is_said_where_it_belongs(rig):
    rig.start(urdf_file=str(rig.urdf), lockstep=True, lockstep_timeout=0.05)
    other = rig.node.create_publisher(JointState, 'arm_node/torques', 10)
    rig.node.destroy_publisher(rig.torques)
    here = '/torques'
    elsewhere = f'nobody publishes on {here}, but on /arm_node/torques'
    remedy = '-r torques:=/arm_node/torques takes it'

    def says(*words):
        text = rig.log
        message = rig.reports[-1].status[0].message if rig.reports else ''
        return all(each in text and each in message for each in words)

    rig.until(lambda: says(f'held by its brakes: {elsewhere}: {remedy}'))
    assert rig.reports[-1].status[0].level == DiagnosticStatus.WARN
    # It publishes there, and sends nothing.
    rig.torques = rig.node.create_publisher(JointState, 'torques', 10)
    rig.node.destroy_publisher(other)
    rig.until(
        lambda: says(
            f'no torques come on {here}: /test must be active, with '
            'use_sim_time:=true and a state_timeout well over lockstep_timeout = 0.05'
        )
    )
    rig.answer(rig.states[-1])
    rig.until(lambda: rig.reports[-1].status[0].message == 'moving freely')
    assert rig.log.count(elsewhere) == 1


@pytest.mark.longer
def test_commands_that_are_published_elsewhere_are_named_with_the_remapping(rig):
    rig.node.destroy_publisher(rig.commands)
    rig.commands = rig.node.create_publisher(Float64MultiArray, 'arm_node/commands', 10)
    rig.start(urdf_file=str(rig.urdf))
    topic = '/arm_node/commands'
    rig.until(lambda: f'-r commands:={topic} takes it' in rig.log)


@pytest.mark.parametrize('tips', [[''], ['link2', 'link1']], ids=['chain', 'first tip'])
def test_wrench_at_the_tip_acts_from_its_stamp_on(rig, tips):
    wrenches = rig.node.create_publisher(WrenchStamped, 'tip_wrench', 10)
    rig.start(urdf_file=str(rig.urdf), lockstep=True, time_step=0.01, tip_links=tips)
    rig.until_subscribed(rig.torques)
    rig.until_subscribed(wrenches)
    rig.until(lambda: rig.states)
    # Upwards on the tip from 0.05 s to 0.08 s.
    for nanosec, force in ((80_000_000, 0.0), (50_000_000, 40.0)):
        message = WrenchStamped()
        message.header.stamp.nanosec = nanosec
        message.wrench.force.z = force
        wrenches.publish(message)
    rig.until(lambda: rig.reports)  # later than what was published before
    gravity = [-14.715 - 4.905, -4.905]
    for k in range(1, 12):
        rig.until(lambda k=k: len(set(rig.stamps())) >= k)
        rig.answer(rig.states[-1], gravity)
    velocity = {round(s.header.stamp.nanosec / 1e7): s.velocity[0] for s in rig.states}
    change = {k: velocity[k + 1] - velocity[k] for k in range(1, 10)}
    pushed = [k for k, each in change.items() if abs(each) > 0.02]
    assert pushed == [5, 6, 7]


def test_in_real_time_the_arm_stands_on_its_brakes_until_the_first_command(rig):
    rig.start(urdf_file=str(rig.urdf), initial_position=[0.3, -0.2], publish_clock=True)
    rig.until_subscribed(rig.commands)
    rig.until(lambda: len(rig.states) >= 50)
    assert all(list(state.position) == [0.3, -0.2] for state in rig.states)
    rig.commands.publish(Float64MultiArray(data=[1.0]))  # not a command for this arm
    rig.until_more(50)
    assert all(list(state.position) == [0.3, -0.2] for state in rig.states)
    rig.commands.publish(Float64MultiArray(data=[40.0, 0.0]))
    rig.until(lambda: rig.states[-1].position[0] > 0.31)
    # One command acts until the next, and time goes on by steps.
    assert list(rig.states[-1].effort) == [40.0, 0.0]
    steps = [later - earlier for earlier, later in zip(rig.stamps(), rig.stamps()[1:])]
    assert min(steps) == pytest.approx(0.001)


def test_states_that_are_made_up_for_bear_the_times_of_their_motion(rig):
    simulator = rig.start(urdf_file=str(rig.urdf), gravity=[0.0, 0.0, 0.0])
    states = []
    simulator._states = SimpleNamespace(publish=states.append)
    simulator._take([40.0, 0.0])
    time.sleep(0.06)  # a computer that is busy with something else
    simulator._catch_up()
    stamps = np.array([conversions.seconds(state.header.stamp) for state in states])
    position = np.array([state.position[0] for state in states])
    velocity = np.array([state.velocity[0] for state in states])
    assert len(states) >= 59
    assert np.diff(stamps) == pytest.approx(1e-3, abs=1e-6)
    mean = 0.5 * (velocity[1:] + velocity[:-1])
    assert np.diff(position) / np.diff(stamps) == pytest.approx(mean, abs=0.01)
    simulator._catch_up()
    assert conversions.seconds(states[-1].header.stamp) <= time.time()


def test_drives_in_another_unit_take_and_report_it(rig):
    scales = {'effort_scale': [8.0, -2.0], 'command_scale': [0.25, -0.5]}
    rig.start(urdf_file=str(rig.urdf), **scales)
    rig.until_subscribed(rig.commands)
    rig.until(lambda: rig.states)
    rig.commands.publish(Float64MultiArray(data=[10.0, 4.0]))  # 40 N m and -8 N m
    rig.until(lambda: rig.states[-1].position[0] > 0.01)
    assert list(rig.states[-1].effort) == [5.0, 4.0]


def test_in_lockstep_drives_in_another_unit_wait_for_the_command(rig):
    rig.start(
        urdf_file=str(rig.urdf), lockstep=True, lockstep_timeout=0.05, command_scale=[0.25, -0.5]
    )
    rig.until_subscribed(rig.torques)
    rig.until_subscribed(rig.commands)
    rig.until(lambda: rig.states)
    rig.answer(rig.states[-1], effort=[7.0, 5.0])
    rig.until_more(3)
    assert set(rig.stamps()) == {0.001}
    rig.commands.publish(Float64MultiArray(data=[10.0, 4.0]))
    rig.until(lambda: rig.stamps()[-1] > 0.001)
    assert list(rig.states[-1].effort) == [40.0, -8.0]


def test_arm_at_rest_is_held_until_the_torques_carry_its_payload(rig):
    rig.in_lockstep()
    for _ in range(3):
        assert max(rig.step(BARE)) < 1e-9
    answer = rig.carry(2.0, x=1.0)
    assert answer.success and answer.message == '2 kg on link2', answer.message
    got = rig.ask(GetPayload, 'get_payload', GetPayload.Request())
    assert [(each.link, each.mass) for each in got.payloads] == [('link2', 2.0)]
    for carried in (0.0, 0.0, 0.3, 0.6, 0.9):  # as a rate limit lets it
        assert rig.step(BARE + carried * LOAD) == (0.0, 0.0)
    for _ in range(3):
        assert max(rig.step(BARE + LOAD)) < 1e-9
    # Once let go it is free, whatever the torques are.
    assert rig.step(BARE)[1] > 1e-3
    # An arm that moves is not braked.
    for _ in range(10):
        moving = rig.step(BARE)[1]
    assert moving > 0.05
    assert rig.carry(0.0).success
    assert rig.step(BARE)[1] > 0.5 * moving


def test_brakes_let_go_of_a_payload_that_the_torques_do_not_carry(rig):
    rig.in_lockstep(time_step=0.05)
    held = int(HANDOVER_TIME / 0.05)
    for k in range(held + 10):
        if k == 5:
            assert rig.carry(2.0).success
        is_free = rig.step(BARE)[1] > 1e-6
        assert is_free == (k > 5 + held) or k == 5 + held
    assert 'do not carry it: tell whoever commands them' in rig.log


def test_payload_that_is_none_is_refused_as_the_node_refuses_it(rig):
    rig.start(urdf_file=str(rig.urdf), lockstep=True)
    for link, mass, words in (
        ('elbow', 1.0, "payload link: 'elbow'; allowed: one of 'base', 'link1', 'link2'"),
        ('', -1.0, 'payload mass: -1.0 kg; allowed: zero or more'),
        ('', 1000.0, 'payload mass: 1000.0 kg; allowed: at most 100 kg'),
    ):
        answer = rig.carry(mass, link)
        assert not answer.success and words in answer.message
    assert rig.ask(GetPayload, 'get_payload', GetPayload.Request()).payload_mass == 0.0


def test_description_is_published_for_others_where_the_simulator_has_the_file(rig):
    rig.start(urdf_file=str(rig.urdf))
    rig.until(lambda: rig.states)
    rig.node.create_subscription(String, 'robot_description', rig.descriptions.append, LATCHED)
    rig.until(lambda: rig.descriptions)
    assert rig.descriptions[0].data == swinging_arm()


def test_description_is_taken_from_the_topic_where_there_is_no_file(rig):
    rig.start(lockstep=True)
    publisher = rig.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data='<robot name="empty"/>'))
    rig.until(lambda: 'robot_description' in rig.log)
    publisher.publish(String(data=swinging_arm()))
    rig.until(lambda: rig.states)
    assert list(rig.states[0].name) == JOINTS


@pytest.mark.longer
@pytest.mark.parametrize('name', ['arm.urdf', 'arm.urdf.xacro'])
def test_a_description_that_is_a_path_opens_no_file(rig, name):
    path = rig.urdf.with_name(name)
    path.write_text(swinging_arm())
    rig.start()
    publisher = rig.node.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=str(path)))
    rig.until(lambda: f'robot_description: URDF text: {str(path)!r}' in rig.log)
    # It goes on waiting for a description, and takes one.
    assert not rig.states
    publisher.publish(String(data=swinging_arm()))
    rig.until(lambda: rig.states)


@pytest.mark.parametrize(
    'parameters, reason',
    [
        ({'urdf_file': '/no/such/file.urdf'}, '/no/such/file.urdf'),
        ({'tip_link': 'elbow'}, "one of 'base', 'link1', 'link2'"),
        ({'initial_position': [0.0]}, r'\(2,\)'),
        ({'lockstep': True, 'lockstep_timeout': 0.0}, 'lockstep_timeout'),
        ({'command_scale': [1.0, 0.0]}, 'parameter command_scale: 0.0'),
        ({'effort_scale': [1.0, 2.0, 3.0]}, 'parameter effort_scale'),
        ({'drive.velocity_gain': [1.0]}, 'drive.velocity_gain.*none without'),
        ({'drive.position_gain': [1.0], 'lockstep': True}, 'drive.position_gain.*in lockstep'),
        ({'drive.position_gain': [1.0, 2.0, 3.0]}, 'drive.position_gain.*allowed: 1 or 2'),
        ({'drive.position_gain': [-1.0]}, 'drive.position_gain.*each at least 0'),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_reason(rig, parameters, reason):
    with pytest.raises((RobodynError, ParameterException), match=reason):
        rig.start(**{'urdf_file': str(rig.urdf), **parameters})


# --- in a process of its own -------------------------------------------------------------------


def process(folder, **parameters):
    return NodeProcess(
        'simulator_node',
        namespace=f'/simulator_test_{time.monotonic_ns()}',
        parameters=parameters,
        remappings={},
        log=folder / 'simulator.log',
    )


def wait(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.longer
def test_refusal_ends_the_simulator_with_code_1_and_a_signal_with_code_0(rig, tmp_path):
    with process(tmp_path, urdf_file='/no/such/file.urdf') as refused:
        wait(lambda: refused.exit_code is not None)
    with pytest.raises(DemoFailed, match=r'ended with code 1(.|\n)*/no/such/file.urdf') as caught:
        refused.check()
    assert 'Traceback' not in str(caught.value)
    with process(tmp_path, urdf_file=str(rig.urdf)) as running:
        wait(lambda: 'held by their brakes' in running.log.read_text())
        os.kill(running.pid, signal.SIGTERM)
        wait(lambda: running.exit_code is not None)
    assert running.exit_code == 0 and 'Traceback' not in running.log.read_text()


@pytest.mark.longer
def test_servo_takes_positions_and_torques_behind_them(rig):
    rig.start(
        urdf_file=str(rig.urdf),
        **{'drive.position_gain': [400.0, 100.0], 'drive.velocity_gain': [80.0, 20.0]},
    )
    rig.until_subscribed(rig.commands)
    rig.until(lambda: rig.states)

    def rests_at(data):
        rig.commands.publish(Float64MultiArray(data=data))
        count = len(rig.states) + 200
        rig.until(lambda: len(rig.states) > count and np.abs(rig.states[-1].velocity).max() < 1e-4)
        return np.array(rig.states[-1].position)

    # At rest kp (q_d - q) is the weight, of two links of 1 kg held in the middle of their metre.
    sag = rests_at([0.0, 0.0])
    first, second = np.cos(sag[0]), np.cos(sag.sum())
    weight = -9.81 * np.array([1.5 * first + 0.5 * second, 0.5 * second])
    np.testing.assert_allclose([400.0, 100.0] * -sag, weight, atol=0.1)
    np.testing.assert_allclose(rig.states[-1].effort, weight, atol=0.1)
    bare = [-9.81 * 2.0, -9.81 * 0.5]
    rig.commands.publish(Float64MultiArray(data=[0.0, 0.0, *bare]))
    rig.until(lambda: np.abs(rig.states[-1].position).max() < 1e-3)
    rig.commands.publish(Float64MultiArray(data=[0.0, 0.0, 0.0]))
    rig.until(lambda: 'is not 2 positions, or 4: then torques' in rig.log)


def test_driver_that_compensates_gravity_and_has_its_payload_needs_no_torque(rig):
    rig.in_lockstep(**{'drive.compensates_gravity': True, 'drive.knows_payload': True})
    rig.step()
    assert rig.carry(2.0, x=1.0).success
    for _ in range(5):
        rig.step()
    assert np.abs(rig.states[-1].velocity).max() < 1e-9
    np.testing.assert_allclose(rig.states[-1].effort, BARE + LOAD, atol=1e-6)


def test_command_that_its_scale_makes_infinite_is_ignored(rig):
    rig.start(urdf_file=str(rig.urdf), command_scale=[1e-9])
    rig.until_subscribed(rig.commands)
    rig.commands.publish(Float64MultiArray(data=[1e308, 0.0]))
    rig.until(lambda: 'is no torque' in rig.log)
    assert 'held by its brakes' not in rig.log
