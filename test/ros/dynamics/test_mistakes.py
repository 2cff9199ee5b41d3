# SPDX-License-Identifier: Apache-2.0
"""
Mistakes that users make with the node, and what it says; docs/troubleshooting.md lists them.

Each test is marked with what is done, what the log (or the answer) says, and what diagnostics say,
and holds the node to these very words. '…' in them stands for anything; an empty log for no
warning.
"""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

import rclpy
from node_in_process import NodeInProcess
from node_rig import ARM, PERIOD, UNHURRIED, NodeRig, regularly
from rcl_interfaces.srv import GetParameters
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

from robodyn_interfaces.srv import EstimatePayload, SetPayload
from robodyn_ros import RobotModel
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.load import Load
from robodyn_ros.ros.dynamics import control_cycle, dynamics_node
from robodyn_ros.ros.services.callbacks import Robot
from robodyn_ros.ros.services.payload_estimation import MeasuredMotion, estimate_payload
from robodyn_ros.ros.shared_memory import Cycles

pytestmark = pytest.mark.ros

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
LEVELS = ('OK', 'WARN', 'ERROR', 'STALE')
IDLE = 'unconfigured, commanding nothing'
# Said on a loaded machine, where the services, or the first joint state, take seconds to come, and
# joint states are delayed.
BUSY = re.compile(
    'services are not ready|no joint state has come yet|nobody subscribes to|joint states c[ao]me '
)
CALM = {'state_timeout': UNHURRIED, 'ramp_time': 0.1}


def mistake(done, log, diagnostics):
    """Mark a test with a mistake, and what is said of it."""
    return pytest.mark.mistake(done, log, diagnostics)


def case(done, log, diagnostics, *values):
    """Return a parameter set that is a mistake of its own."""
    return pytest.param(*values, id=done.replace(' ', '_'), marks=mistake(done, log, diagnostics))


class Mistaken:
    """A node that a mistake is made with, and the words that it is to say."""

    log_words = diagnosed = ''

    def made(self, request):
        """Take the words from the mark of a test."""
        _, self.log_words, self.diagnosed = request.node.get_closest_marker('mistake').args
        return self

    def expect(self, doing=None):
        """Wait for the words in the log and in diagnostics, doing something again and again."""
        self.until(lambda: self.is_logged and self.is_diagnosed, doing)
        if not self.log_words:
            lines = [line for line in self.log.splitlines() if not BUSY.search(line)]
            assert not re.search('WARN|ERROR|FATAL', '\n'.join(lines)), self.log

    def stream_until_told(self, position=POSITION, period=PERIOD, **options):
        """Publish joint states until the words have come."""
        self.expect(regularly(lambda: self.send(position, **options), period))

    @property
    def is_logged(self):
        return says(self.log, self.log_words)

    @property
    def is_diagnosed(self):
        """Whether the last report is as told, or the process has ended so."""
        ended = re.search(r'ends with code (\d)', self.diagnosed)
        if ended:
            return self.process.poll() == int(ended.group(1))
        level, _, words = self.diagnosed.partition(': ')
        if level == 'OK' and self.report.get('message', '').startswith('joint states come at '):
            return True  # a busy machine sends too few: nothing else is wrong
        is_level = self.report.get('level') == LEVELS.index(level.partition(',')[0])
        same = self.log_words if level.endswith('the same') else words
        return is_level and says(self.report['message'], same)


def says(text, words):
    """Return whether a text has these words, '…' standing for anything."""
    parts = (re.escape(part.strip()) for part in words.split('…'))
    return re.search('.*'.join(parts), text, re.S) is not None


class Here(Mistaken, NodeInProcess):
    """A node in this process."""


class Alone(Mistaken, NodeRig):
    """A node for one mistake: where it is started, or where it ends."""


@pytest.fixture
def rig(request, tmp_path, monkeypatch):
    monkeypatch.setattr(control_cycle, 'WAITING_TIME', 0.5)  # not to wait for words
    result = Here(tmp_path / 'node.log').made(request)
    yield result
    result.close()


@pytest.fixture(scope='module')
def started_by_a_script(tmp_path_factory):
    """A node that a script started in the background, with a file of another node's parameters."""
    folder = tmp_path_factory.mktemp('script')
    (folder / 'node.log').touch()
    result = Alone(folder / 'node.log')
    yield result
    result.close()


@pytest.fixture
def background(started_by_a_script, request, robot):
    result = started_by_a_script.made(request)
    if result.process is None or result.process.poll() is not None:
        # A shell without job control has its background processes ignore SIGINT.
        result.start(
            *parameter_file(result.log_path.parent, 'my_node', kp=3.0),
            program='import signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n'
            'from robodyn_ros.ros.dynamics.dynamics_node import main\nsys.exit(main())\n',
            **robot,
        )
    return result


@pytest.fixture
def alone(request, tmp_path):
    result = Alone(tmp_path / 'node.log').made(request)
    yield result
    result.close()


@pytest.fixture
def ended(request, capfd, monkeypatch):
    """
    Return a function that runs the node's main function here, and returns what it printed.

    Without the processes beside the node; it is told to stop before it begins.
    """
    for name in ('SharedMemory', 'WatchdogProcess', 'ServiceProcess'):
        monkeypatch.setattr(dynamics_node, name, MagicMock())
    stopped = SimpleNamespace(has_come=True, take=lambda: None)
    monkeypatch.setattr(dynamics_node, 'StopSignal', lambda: stopped)
    _, words, end = request.node.get_closest_marker('mistake').args

    def run(*arguments):
        code = dynamics_node.main([*map(str, arguments)])
        printed = ''.join(capfd.readouterr())
        assert says(printed, words) and 'Traceback' not in printed, printed
        assert end == f'the node ends with code {code}'
        return printed

    return run


@pytest.fixture
def robot(panda_urdf):
    """Parameters that name the robot."""
    return {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8', **CALM}


def edited(robot, tmp_path, pattern, replacement):
    """Return the robot's parameters, with a file in which one place differs."""
    text = Path(robot['urdf_file']).read_text(encoding='utf-8')
    changed = re.sub(pattern, replacement, text, count=1, flags=re.S)
    assert changed != text
    path = tmp_path / 'edited.urdf'
    path.write_text(changed, encoding='utf-8')
    return {**robot, 'urdf_file': path}


# --- parameters --------------------------------------------------------------------------------


# Each ends the node with code 1.
IMPOSSIBLE = {
    'kpp:=100.0': 'parameter kpp: 100.0; allowed: kp',
    'effort_limits_scale:=0.1': 'parameter effort_limits_scale: 0.1; allowed: effort_limit_scale',
    'terms:=false': 'parameter terms: False; allowed: terms.inertial, terms.coriolis, '
    'terms.gravity, terms.friction, terms.gravity_factor',
    'kp:=[-1.0]': 'parameter kp: -1.0; allowed: each at least 0',
    'kp:=fast': "parameter kp: 'fast'; allowed: a number, or a list of numbers",
    'mode:=impedance': "parameter mode: 'impedance'; allowed: gravity_compensation, feedforward, "
    'computed_torque, joint_impedance, cartesian_impedance',
    'effort_limit_scale:=2.0': 'effort_limit_scale … 2.0',
    'gravity:=[0.0,0.0]': 'parameter gravity: [0.0, 0.0]; allowed: 3 numbers',
}


@pytest.mark.parametrize(
    'given',
    [
        case(f'`-p {given}`', words, 'the node ends with code 1', given)
        for given, words in IMPOSSIBLE.items()
    ],
)
def test_parameter_that_cannot_be_meant_ends_the_node(ended, given):
    assert '[FATAL]' in ended('--ros-args', '-p', given)


@mistake(
    'a file with `term: {gravity: false}`',
    'parameter term.gravity: False; allowed: terms.gravity',
    'the node ends with code 1',
)
def test_misspelt_parameter_in_a_file_ends_the_node(ended, tmp_path):
    file = tmp_path / 'mine.yaml'
    file.write_text('/**:\n  ros__parameters:\n    term: {gravity: false}\n')
    ended('--ros-args', '--params-file', file)


def parameter_file(tmp_path, key, **parameters):
    """Return a file with a node's parameters, and its path as arguments of ROS."""
    values = ', '.join(f'{name}: {value}' for name, value in parameters.items())
    path = tmp_path / 'mine.yaml'
    path.write_text(f'{key}:\n  ros__parameters: {{{values}}}\n')
    return '--params-file', str(path)


@pytest.mark.longer
@mistake(
    "a file whose top key is another node's name",
    'parameter file … is ignored: it has parameters for my_node, and this node is /dynamics_node: '
    'write dynamics_node or /** there',
    'WARN: compensating gravity; parameter file … is ignored: … write dynamics_node or /** there',
)
def test_file_for_another_node_is_named_with_the_key_that_would_be_taken(background):
    background.stream_until_told()
    assert background.log.count('is ignored') == 1


@mistake(
    'the same, where the node is in a namespace',
    'it has parameters for dynamics_node, and this node is /left/dynamics_node: '
    'write /left/dynamics_node or /** there',
    'the node ends with code 0',
)
def test_file_for_a_node_of_another_namespace_is_named(ended, tmp_path):
    file = parameter_file(tmp_path, 'dynamics_node', kp=3.0)
    ended('--ros-args', '-r', '__ns:=/left', *file)


@pytest.mark.parametrize(
    'text',
    [
        case(
            'a file whose lines are not indented alike',
            "Couldn't parse params file … is indented by spaces, all parameters of a node "
            'alike … config/dynamics_node.yaml … ros__parameters:',
            'the node ends with code 2',
            '/**:\n  ros__parameters:\n    kp: [1.0]\n   kd: [2.0]\n',
        ),
        case(
            'a file with a tab',
            "Couldn't parse params file … is indented by spaces … config/dynamics_node.yaml",
            'the node ends with code 2',
            '/**:\n  ros__parameters:\n\tkp: [1.0]\n',
        ),
        case(
            'a file without `ros__parameters`',
            "Couldn't parse params file … looks so … config/dynamics_node.yaml … ros__parameters:",
            'the node ends with code 2',
            'dynamics_node:\n  kp: [1.0]\n',
        ),
    ],
)
def test_file_that_ros_cannot_read_is_refused_with_a_sample(ended, tmp_path, text):
    file = tmp_path / 'mine.yaml'
    file.write_text(text)
    ended('--ros-args', '--params-file', file)


@pytest.mark.longer
@mistake(
    '`-p gain_p:=3.0`, which is like none of ours',
    'this node has no parameter gain_p: ignored; --help names all it has',
    'OK: compensating gravity',
)
def test_unknown_parameter_is_one_warning(rig, robot):
    rig.start(**robot, gain_p=3.0)
    rig.stream_until_told()
    assert rig.log.count('gain_p') == 1


@pytest.mark.longer
@mistake(
    "what is every node's: `use_sim_time`, `qos_overrides.*`, `start_type_description_service`",
    '',
    'OK: compensating gravity',
)
def test_parameters_of_every_node_pass(rig, robot):
    of_every_node = {
        'use_sim_time': 'false',
        'start_type_description_service': 'true',
        'qos_overrides./parameter_events.publisher.depth': 10,
    }
    rig.start(**robot, **of_every_node)
    rig.stream_until_told()
    assert not any(name in rig.log for name in of_every_node)


@pytest.mark.longer
@mistake(
    '`-p kp:=50 -p kd:=[9,9,9,9,9,9,9] -p ramp_time:=1`: one number for all joints, whole ones',
    '',
    'OK: compensating gravity',
)
def test_scalars_and_whole_numbers_are_taken_as_they_are_meant(rig, robot):
    del robot['ramp_time']
    rig.start(**robot, kp=50, kd=[9] * 7, ramp_time=1)
    rig.stream_until_told()
    request = GetParameters.Request(names=['kp', 'kd', 'ramp_time'])
    kp, kd, ramp_time = rig.call(GetParameters, 'get_parameters', request).values
    assert list(kp.double_array_value) == [50.0] and list(kd.double_array_value) == [9.0] * 7
    assert ramp_time.double_value == 1.0


@pytest.mark.longer
@mistake(
    '`ros2 param set /dynamics_node kpp 1.0`, later',
    'kpp; meant is perhaps kp',
    'OK: compensating gravity',
)
def test_misspelt_name_later_is_refused_with_the_right_one(rig, robot):
    rig.start(**robot)
    rig.bring_up(POSITION)
    answer = rig.set_parameter('kpp', 1.0, doing=lambda: rig.send(POSITION))
    assert not answer.successful and says(answer.reason, rig.log_words)
    assert rig.set_parameter('kp', 7, doing=lambda: rig.send(POSITION)).successful
    rig.stream(POSITION, lambda: rig.is_diagnosed)


@pytest.mark.longer
@mistake(
    '`dynamics_node -p kp:=100.0`',
    '-p is read after --ros-args only: dynamics_node --ros-args -p kp:=100.0',
    'the node ends with code 2',
)
def test_parameters_without_ros_args_are_refused(ended):
    words = '-p', 'kp:=100.0'
    printed = ended(*words)
    # As in a process of its own.
    command = [sys.executable, '-m', 'robodyn_ros.ros.dynamics.dynamics_node', *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (2, printed)


@mistake(
    '`dynamics_node --help`',
    'Turns joint states into torques … usage: dynamics_node … --ros-args -p urdf_file:=arm.urdf … '
    'kp: double[] = [100.0]',
    'the node ends with code 0',
)
def test_help_says_what_it_is_and_how_to_pass_parameters(ended):
    ended('--help')


# --- the robot ---------------------------------------------------------------------------------


@pytest.mark.longer
@mistake(
    'neither `urdf_file` nor `robot_description`',
    'waiting for the topic robot_description, as urdf_file is not given',
    'WARN, the same',
)
def test_robot_that_is_not_given_is_waited_for(rig):
    rig.start()
    rig.expect()


@pytest.mark.longer
@pytest.mark.parametrize(
    'autostart',
    [
        case(
            '`robot_description` published with durability volatile',
            'waiting for the topic robot_description',
            'WARN: … /test publishes /robot_description with durability volatile, which is not '
            'received; allowed: transient local',
            True,
        ),
        case(
            'the same, with `autostart:=false`, and configured',
            'cannot configure: topic robot_description: … /test publishes /robot_description with '
            'durability volatile, which is not received; allowed: transient local',
            'ERROR, the same',
            False,
        ),
    ],
)
def test_description_that_is_published_volatile_names_its_publisher(rig, robot, autostart):
    rig.node.destroy_publisher(rig.description)
    volatile = rig.node.create_publisher(String, '/robot_description', QoSProfile(depth=1))
    rig.start(tip_link=robot['tip_link'], autostart=str(autostart).lower())
    rig.until(lambda: rig.dynamics_node.count_publishers('/robot_description') == 1)
    volatile.publish(String(data=Path(robot['urdf_file']).read_text()))
    assert autostart or not rig.transition('configure')
    rig.expect()


# What is given, what is wrong with it, and what differs from a robot that is right.
WRONG_ROBOTS = (
    (
        '`urdf_file:=/nodir/arm.urdf`',
        "no such file: '/nodir/arm.urdf'",
        {'urdf_file': '/nodir/arm.urdf'},
    ),
    (
        'no `tip_link`, where a gripper leaves several',
        'tip_link: not given; allowed: one of these links … '
        "'panda_hand_tcp': 7 joints, 'panda_joint1'",
        {'tip_link': "''"},
    ),
    (
        '`tip_link:=tool0`, which the robot does not have',
        "tip_link: 'tool0'; allowed: one of 'panda_link0', 'panda_link1'",
        {'tip_link': 'tool0'},
    ),
    (
        '`joints:=[panda_joint1]` of seven',
        "parameter joints: ['panda_joint1']; allowed: each of these once: "
        'panda_joint1, panda_joint2',
        {'joints': '[panda_joint1]'},
    ),
    (
        '`kp:=[1.0,2.0]` for seven joints',
        'parameter kp: 2 values; allowed: 1 or 7, one for each joint',
        {'kp': '[1.0,2.0]'},
    ),
)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    'changes',
    [
        case(done, f'cannot configure: {words}', 'ERROR, the same', changes)
        for done, words, changes in WRONG_ROBOTS
    ],
)
def test_robot_that_cannot_be_taken_is_red_with_the_reason(rig, robot, changes):
    rig.start(**{**robot, **changes})
    rig.expect()
    rig.until(lambda: rig.report['message'].startswith(IDLE) and rig.is_diagnosed)


@pytest.mark.longer
@mistake('`urdf_file:=~/arm.urdf`, which no shell expands', '', 'OK: compensating gravity')
def test_home_folder_is_found_where_the_shell_leaves_it(rig, robot, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'arm.urdf').symlink_to(robot['urdf_file'])
    rig.start(**{**robot, 'urdf_file': '~/arm.urdf'})
    rig.stream_until_told()


@pytest.mark.longer
@mistake(
    'a joint with `<limit effort="0">`',
    "cannot configure: joint 'panda_joint5' effort limit: 0.0 N m; allowed: a positive <limit "
    'effort> in the URDF, or parameter effort_limits',
    'ERROR, the same',
)
def test_effort_limit_of_zero_is_red_with_the_parameter_that_helps(rig, robot, tmp_path):
    pattern = r'(<joint name="panda_joint5".*?effort=)"[^"]*"'
    rig.start(**edited(robot, tmp_path, pattern, r'\1"0"'))
    rig.expect()
    assert rig.set_parameter('effort_limits', [50.0]).successful
    assert rig.transition('configure')
    rig.until(lambda: rig.report['message'] == 'inactive, commanding nothing')


@mistake(
    'a joint with `<mimic>` on the chain',
    "cannot configure: joint 'panda_joint5' on the chain: mimics 'panda_joint4'; allowed: no "
    'mimic joint, a tip_link before it, or a URDF without its <mimic> where it has a drive of its '
    'own',
    'ERROR, the same',
)
def test_mimic_joint_is_red_with_what_the_node_s_user_can_do(rig, robot, tmp_path):
    pattern = r'(<joint name="panda_joint5"[^>]*>)'
    mimic = r'\1<mimic joint="panda_joint4"/>'
    rig.start(**edited(robot, tmp_path, pattern, mimic), kd=[9.0])
    rig.expect()
    assert "mimic='" not in rig.log
    assert rig.set_parameter('tip_link', 'panda_link4').successful
    assert rig.transition('configure')


# --- joint states ------------------------------------------------------------------------------


@pytest.mark.longer
@mistake(
    'no driver',
    'no joint state has come yet on /joint_states: nobody publishes it',
    'STALE, the same',
)
def test_missing_driver_is_named(rig, robot):
    rig.start(**robot)
    rig.disconnect('/joint_states')
    rig.expect()
    assert rig.log.count('no joint state') == 1


@pytest.mark.slow
@mistake(
    'a driver that publishes on another topic, or in another namespace',
    'no joint state has come yet on /left/joint_states: nobody publishes there, but on '
    '/joint_states: -r joint_states:=/joint_states takes it',
    'STALE, the same',
)
def test_joint_states_of_another_namespace_are_named_with_the_remapping(alone, robot):
    alone.start('-r', '__ns:=/left', **robot)
    alone.expect()


@pytest.mark.longer
@pytest.mark.parametrize(
    'names, position',
    [
        case(
            "another robot's joint states, or a prefix",
            'commanding nothing: joint states name left_joint1, left_joint2, …; none is on the '
            'chain',
            'ERROR, the same',
            [f'left_joint{i}' for i in range(1, 8)],
            POSITION,
        ),
        case(
            'joint states without one of the joints',
            'waiting for the state of panda_joint7',
            'WARN, the same',
            ARM[:6],
            POSITION[:6],
        ),
        case(
            'a position of NaN',
            'commanding nothing: position of panda_joint3 is nan',
            'ERROR, the same',
            ARM,
            [*POSITION[:2], float('nan'), *POSITION[3:]],
        ),
    ],
)
def test_joint_states_that_cannot_be_commanded_on_are_named(rig, robot, names, position):
    rig.start(**robot)
    rig.stream_until_told(position, names=names)
    assert not rig.commands


@pytest.mark.longer
@mistake(
    'positions in degrees',
    'commanding nothing: panda_joint4 is at -108.9 rad (limits … to …): in degrees?',
    'ERROR, the same',
)
def test_positions_in_degrees_are_refused(rig, robot):
    rig.start(**robot)
    degrees = [0.06, -0.2, 0.1, -108.9, 0.2, 1.6, 0.4]
    rig.stream_until_told(degrees)
    assert rig.log.count('in degrees?') == 1 and not rig.commands
    rig.bring_up(POSITION)


@pytest.mark.longer
@mistake(
    'joint states at 5 Hz',
    'no fresh state of … (joint states came … s apart; allowed: state_timeout = 0.1; gravity '
    'compensation needs 100 Hz',
    'ERROR: no fresh state of … gravity compensation needs 100 Hz): hold_gravity',
)
def test_joint_states_that_are_too_slow_name_the_rate_that_is_needed(rig, robot):
    rig.start(**{**robot, 'state_timeout': 0.1})
    rig.stream_until_told(period=0.2)


@pytest.mark.slow
@mistake(
    'the same, for long',
    '; joint states were missed … times since the last',
    'ERROR: no fresh state of … gravity compensation needs 100 Hz): hold_gravity',
)
def test_joint_states_that_are_missed_again_and_again_are_counted(rig, robot):
    rig.start(**{**robot, 'state_timeout': 0.1})
    rig.stream_until_told(period=0.2)
    told = rig.log.count('no fresh state')
    assert told < int(rig.report['missed_cycles'])
    assert rig.log.count('commanding again, after') <= told


@pytest.mark.slow
@mistake(
    'joint states that are stamped 0.7 s ago, where 0.5 s are allowed',
    'joint states are stamped 0.7… s ago; allowed: state_timeout = 0.5',
    'ERROR, the same',
)
def test_late_joint_states_name_the_parameter_and_do_not_suspect_the_clock(rig, robot):
    rig.start(**{**robot, 'state_timeout': 0.5})
    rig.expect(lambda: rig.send(POSITION, stamp=ago(rig, 0.7)))
    assert 'use_sim_time' not in rig.log


@pytest.mark.slow
@mistake(
    'joint states with the stamps of a simulator, without `use_sim_time`',
    "joint states have stamps of another clock (… s behind this node's): set use_sim_time as "
    'their source does',
    'ERROR, the same',
)
def test_stamps_of_another_clock_are_logged_once_with_what_to_set(rig, robot):
    rig.start(**{**robot, 'state_timeout': 0.5})
    rig.expect(lambda: rig.send(POSITION, stamp=ago(rig, 1e6)))
    reports = len(rig.reports)
    rig.until(
        lambda: len(rig.reports) > reports + 3, lambda: rig.send(POSITION, stamp=ago(rig, 1e6))
    )
    assert rig.log.count('another clock') == 1


@pytest.mark.longer
@mistake(
    '`use_sim_time:=true`, and nobody publishes `/clock`',
    'use_sim_time is set and /clock has not come: set it false, or start the clock',
    'WARN, the same',
)
def test_simulated_time_without_a_clock_names_it(rig, robot):
    rig.start(**robot, use_sim_time='true')
    rig.stream_until_told()


def ago(rig, seconds):
    """Return a stamp of a time [s] ago."""
    now = rig.node.get_clock().now().nanoseconds - round(1e9 * seconds)
    return type(rig.node.get_clock().now())(nanoseconds=now).to_msg()


# --- commands ----------------------------------------------------------------------------------


@pytest.mark.longer
@mistake(
    '`terms.gravity:=false`, and no trajectory',
    '',
    'OK: commanding nothing until there is a reference: terms.gravity is false',
)
def test_terms_without_gravity_do_not_claim_to_compensate_it(rig, robot):
    rig.start(**robot, terms__gravity='false')
    rig.stream_until_told()


@pytest.mark.longer
@mistake(
    'another publisher on the topic of the commands',
    'test has a publisher on /dynamics_node/commands, too',
    'WARN, the same',
)
def test_another_publisher_is_named(rig, robot):
    rig.start(**robot)
    rig.bring_up(POSITION)
    rig.node.create_publisher(Float64MultiArray, '/dynamics_node/commands', 1)
    rig.stream_until_told()


@pytest.mark.longer
@mistake(
    "a display's `joint_state_publisher` beside the driver",
    'sources of joint states contradict each other: /display, /test publish on /joint_states; '
    'allowed: one source for each joint',
    'ERROR, the same',
)
def test_sources_of_joint_states_that_contradict_each_other_are_named(rig, robot):
    display = rclpy.create_node('display', context=rig.node.context)
    zeros = JointState(name=list(ARM), position=[0.0] * len(ARM))
    publisher = display.create_publisher(JointState, 'joint_states', 10)

    def both():
        rig.send(POSITION)
        publisher.publish(zeros)

    rig.start(**robot)
    rig.expect(regularly(both))
    display.destroy_node()
    assert rig.commands == []


@pytest.mark.longer
@mistake(
    'a second node of the same name, or another commander',
    'cannot activate: … test commands on /dynamics_node/commands … allowed: nobody else',
    'ERROR, the same',
)
def test_another_commander_refuses_activation(alone, robot):
    publisher = alone.node.create_publisher(Float64MultiArray, '/dynamics_node/commands', 1)
    alone.start(**robot)
    alone.expect(lambda: publisher.publish(Float64MultiArray(data=[0.0] * 7)))
    alone.node.destroy_publisher(publisher)
    alone.bring_up(POSITION)


@pytest.mark.longer
@mistake(
    'a payload of 100 kg, by `~/set_payload`',
    "gravity torque of joint 'panda_joint4' here: … allowed: at most its effort limit, 87",
    'OK: compensating gravity',
)
def test_payload_that_is_too_heavy_is_refused_with_what_is_allowed(rig, robot):
    rig.start(**robot)
    rig.bring_up(POSITION)
    request = SetPayload.Request()
    request.payload.mass = 100.0
    answer = rig.call(SetPayload, 'set_payload', request, doing=lambda: rig.send(POSITION))
    assert not answer.success and 'configured' not in answer.message
    assert says(answer.message, rig.log_words), answer.message
    rig.stream(POSITION, lambda: rig.is_diagnosed)


@pytest.mark.longer
@mistake(
    'the commands are not remapped to where the drives take them',
    'nobody subscribes to the commands on /dynamics_node/commands; Float64MultiArray is awaited '
    'on /effort/commands: -r "~/commands:=/effort/commands" sends them there',
    'WARN, the same',
)
def test_commands_that_nobody_takes_are_named_with_the_remapping(rig, robot):
    rig.start(**robot)
    rig.node.create_subscription(Float64MultiArray, '/effort/commands', print, 10)
    rig.bring_up(POSITION)
    rig.disconnect('/dynamics_node/commands', '/dynamics_node/torques')
    rig.stream_until_told()
    assert rig.log.count('nobody subscribes') == 1


def trajectory_until_told(rig, position, doing=None, **options):
    """Send a trajectory again and again until the words have come."""
    rig.until(lambda: rig.trajectories.get_subscription_count() > 0, doing)

    def send():
        if doing is not None:
            doing()
        if not rig.is_logged:
            rig.follow([position], [2.0], **options)

    rig.expect(send)


@pytest.mark.longer
@mistake(
    'a trajectory that is stamped an hour ahead',
    'the trajectory begins in 3… s: is its stamp of another clock?',
    'WARN, the same',
)
def test_trajectory_that_begins_long_after_it_came_says_when(rig, robot):
    rig.start(**robot, mode='feedforward')
    rig.bring_up(POSITION)
    options = {'stamp': ago(rig, -3600.0)}
    trajectory_until_told(rig, POSITION, regularly(lambda: rig.send(POSITION)), **options)


@pytest.mark.longer
@mistake(
    'a trajectory in mode gravity_compensation',
    'trajectory rejected: the mode is gravity_compensation, which follows none: set parameter '
    'mode to feedforward, computed_torque, joint_impedance or cartesian_impedance',
    'WARN: compensating gravity; a trajectory was rejected: the mode is gravity_compensation, '
    'which follows none: set parameter mode to feedforward, computed_torque, joint_impedance or '
    'cartesian_impedance',
)
def test_trajectory_in_gravity_compensation_names_the_parameter(rig, robot):
    rig.start(**robot)
    rig.bring_up(POSITION)
    trajectory_until_told(rig, POSITION, lambda: rig.send(POSITION))
    assert rig.set_parameter('mode', 'computed_torque', lambda: rig.send(POSITION)).successful
    rig.stream(POSITION, lambda: rig.report['message'] == 'compensating gravity')


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    'names, position',
    [
        case(
            'positions in degrees in a trajectory',
            "trajectory rejected: trajectory joint 'panda_joint2' position on the way: -60.0 rad; "
            'allowed: within the position limits … in degrees?',
            'OK: compensating gravity',
            ARM,
            [POSITION[0], -60.0, *POSITION[2:]],
        ),
        case(
            'a trajectory with other joint names',
            "trajectory rejected: trajectory joint_names: 'joint1'; allowed: one of panda_joint1, "
            'panda_joint2',
            'OK: compensating gravity',
            [f'joint{i}' for i in range(1, 8)],
            POSITION,
        ),
    ],
)
def test_trajectory_of_another_unit_or_arm_is_refused_with_what_is_allowed(
    rig, robot, names, position
):
    rig.start(**robot, mode='computed_torque')
    rig.bring_up(POSITION)
    trajectory_until_told(rig, position, lambda: rig.send(POSITION), names=names)


@mistake(
    '`~/estimate_payload`, with a driver that reports no efforts', 'none with efforts came', ''
)
def test_payload_cannot_be_estimated_without_efforts(request, panda_urdf):
    model = RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')
    cycles, still = Cycles(), np.zeros(7)
    cycles.begin(7)
    cycles.received(MeasuredState(np.array(POSITION), still, 1.0, True, None), time.monotonic())
    cycles.write()
    robot = Robot.under(Load(model.gravity), model)
    asked, answer = EstimatePayload.Request(), EstimatePayload.Response()
    estimate_payload(robot, asked, answer, MeasuredMotion(cycles), None)
    _, words, _ = request.node.get_closest_marker('mistake').args
    assert not answer.success and says(answer.message, words), answer.message


@pytest.mark.slow
@mistake(
    '`autostart:=false`, and nobody activates it',
    'autostart is false: waiting for configure, then activate by a lifecycle manager, `ros2 '
    'lifecycle set /dynamics_node configure`, or the service /dynamics_node/change_state; '
    '-p autostart:=true makes it start itself',
    'WARN: unconfigured, commanding nothing: waiting for configure, then activate by …',
)
def test_node_that_nobody_activates_says_what_it_waits_for(alone, robot):
    alone.start(**robot, autostart='false')
    alone.expect()
    assert alone.transition('configure')
    words = 'inactive, commanding nothing: waiting for activate by'
    alone.until(lambda: alone.report['message'].startswith(words))
    assert alone.transition('activate')
    alone.bring_up(POSITION)
    alone.stream(POSITION, lambda: alone.report['message'] == 'compensating gravity')
    assert alone.transition('deactivate')
    alone.until(lambda: alone.report['message'] == 'inactive, commanding nothing')


@pytest.mark.longer
@mistake(
    'a trajectory while the node is not active',
    'trajectory rejected: the node is unconfigured, not active: configure and activate it',
    'WARN: unconfigured, commanding nothing; a trajectory was rejected: the node is '
    'unconfigured, not active: configure and activate it',
)
def test_trajectory_while_the_node_is_not_active_is_reported(rig, robot):
    rig.start(**robot, mode='computed_torque')
    assert rig.transition('deactivate') and rig.transition('cleanup')
    trajectory_until_told(rig, POSITION)
    assert rig.transition('configure')
    rig.follow([POSITION], [2.0])
    words = 'nothing is commanded: activate the node or the controller, or call ~/enable'
    rig.until(lambda: words in rig.log and words in rig.report['message'])


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.longer
@mistake('SIGINT to a node that a script started with `&`', '', 'the node ends with code 0')
def test_node_that_a_script_started_in_the_background_stops(background):
    background.bring_up(POSITION)
    assert background.end(signal.SIGINT) == 0
