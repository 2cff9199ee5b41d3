# SPDX-License-Identifier: Apache-2.0
"""The dynamics node over real DDS: what it commands, and what it does when things go wrong."""

import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import ARM, UNHURRIED, NodeRig
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.srv import GetDHParameters, GetMassMatrix
from robodyn_ros import mass_matrix
from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL

pytestmark = pytest.mark.ros

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
ERROR, WARN = 2, 1
CALM = {'state_timeout': UNHURRIED, 'ramp_time': 0.1}
# What draws, reports, fits, simulates or is for the command line.
NOT_FOR_A_NODE = (
    'matplotlib jinja2 markupsafe scipy sympy pandas rich click mujoco distributed websockets '
    'rosbags'
).split()


@pytest.fixture
def process(tmp_path):
    """A node in a process of its own."""
    result = NodeRig(tmp_path / 'node.log')
    yield result
    result.close()


def is_level(rig, level):
    return lambda: rig.report.get('level') == level


# --- what it commands --------------------------------------------------------------------------


def test_gravity_compensation_commands_the_torque_that_pinocchio_computes(rig, robot, panda_urdf):
    pin = pytest.importorskip('pinocchio')
    full = pin.buildModelFromUrdf(panda_urdf)
    fingers = [full.getJointId(name) for name in full.names if 'finger' in name]
    model = pin.buildReducedModel(full, fingers, pin.neutral(full))
    expected = pin.computeGeneralizedGravity(model, model.createData(), np.array(POSITION))
    order = ARM[::-1]
    rig.start(**robot, **CALM, joints='[' + ', '.join(order) + ']')
    rig.bring_up(POSITION)
    assert np.array(rig.commands[-1].data) == pytest.approx(expected[::-1], abs=1e-9)
    assert rig.torques[-1].name == ARM
    assert np.array(rig.torques[-1].effort) == pytest.approx(expected, abs=1e-9)


def test_torques_carry_the_stamp_of_the_joint_state_that_caused_them(rig, robot):
    rig.start(**robot, **CALM)
    rig.bring_up(POSITION)
    rig.spin(0.2)
    stamp = rig.node.get_clock().now().to_msg()
    rig.stream(POSITION, lambda: any(t.header.stamp == stamp for t in rig.torques), stamp=stamp)


def test_dynamics_state_takes_the_commanded_torque_apart(rig, robot, gravity):
    rig.start(**robot, **CALM, mode='computed_torque')
    rig.bring_up(POSITION)
    target = np.array(POSITION) + 0.1
    rig.follow([target], [30.0])
    rig.stream(POSITION, lambda: rig.states and len(rig.states[-1].reference_position) == 7)
    state = rig.states[-1]
    parts = np.array(
        [
            getattr(state, part)
            for part in ('inertial', 'coriolis', 'gravity', 'friction', 'feedback', 'effort')
        ]
    )
    assert state.joint_names == ARM
    assert state.mode == 'computed_torque'
    assert np.array(state.position) == pytest.approx(POSITION)
    assert parts[2] == pytest.approx(gravity)
    assert np.array(state.total) == pytest.approx(parts.sum(axis=0), abs=0.5)
    assert state.cycle_time > 0.0


# --- the robot and the lifecycle ---------------------------------------------------------------


@pytest.mark.longer
def test_lifecycle_manager_walks_the_node_through_all_states(rig, robot):
    rig.start(**robot, **CALM, autostart='false')

    def stream():
        rig.send(POSITION)

    assert rig.lifecycle() == 'unconfigured'
    assert rig.transition('configure')
    assert rig.lifecycle() == 'inactive'
    for _ in range(40):
        stream()
        rig.spin(0.005)
    assert not rig.commands
    assert rig.transition('activate')
    rig.bring_up(POSITION)
    assert rig.transition('deactivate', doing=stream)
    rig.spin(0.2)
    count = len(rig.commands)
    for _ in range(40):
        stream()
        rig.spin(0.005)
    assert len(rig.commands) == count
    assert rig.transition('activate', doing=stream)
    rig.bring_up(POSITION)
    assert rig.transition('deactivate', doing=stream)
    assert rig.transition('cleanup')
    assert rig.transition('configure')
    assert rig.transition('shutdown')
    assert rig.lifecycle() == 'finalized'
    rig.end()


@pytest.mark.longer
def test_node_that_was_cleaned_up_stays_so_whatever_description_comes(rig, robot, panda_urdf):
    del robot['urdf_file']
    text = Path(panda_urdf).read_text(encoding='utf-8')
    rig.start(**{**robot, 'tip_link': 'panda_link88'}, **CALM)
    rig.description.publish(rig_text(text))
    rig.until(lambda: 'panda_link88' in rig.log)
    refusal = 'unconfigured, commanding nothing: cannot configure'
    rig.until(lambda: rig.report.get('message', '').startswith(refusal))
    assert rig.report['level'] == ERROR
    assert 'panda_link88' in rig.report['message'] and 'allowed' in rig.report['message']
    assert rig.set_parameter('tip_link', 'panda_link8').successful
    assert rig.transition('configure') and rig.transition('activate')
    assert rig.transition('deactivate') and rig.transition('cleanup')
    rig.description.publish(rig_text(text))
    rig.spin(0.5)
    assert rig.lifecycle() == 'unconfigured'


@pytest.mark.longer
def test_a_node_commands_and_answers_where_nothing_that_draws_or_fits_is_installed(
    process, robot, model
):
    # A finder that refuses them stands in for a machine without them.
    program = f"""
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in {NOT_FOR_A_NODE!r}:
            raise ModuleNotFoundError('a node imports ' + name)
sys.meta_path.insert(0, Refusing())
from robodyn_ros.ros.dynamics.dynamics_node import main
sys.exit(main())
"""
    process.start(program=program, **robot, **CALM)
    process.bring_up(POSITION)
    request = GetMassMatrix.Request(position=POSITION)
    answer = process.call(GetMassMatrix, 'get_mass_matrix', request)
    assert answer.success, answer.message
    expected = mass_matrix(model, POSITION)
    assert np.array(answer.mass_matrix.data) == pytest.approx(expected.ravel(), abs=1e-9)
    assert process.end() == 0
    assert 'a node imports' not in process.log


@pytest.mark.slow
def test_garbage_collector_leaves_what_configuring_made_alone(process, robot):
    program = (
        'import atexit, gc\n'
        "atexit.register(lambda: print('frozen:', gc.get_freeze_count()))\n"
        'from robodyn_ros.ros.dynamics.dynamics_node import main\n'
        'main()\n'
    )
    process.start(program=program, **robot, **CALM)
    process.bring_up(POSITION)
    assert process.end() == 0
    assert int(process.log.split('frozen:')[1].split()[0]) > 30_000


@pytest.mark.longer
def test_broken_robot_fails_configure_and_a_good_one_can_follow(rig, robot, panda_urdf):
    del robot['urdf_file']
    rig.start(**robot, **CALM)
    text = Path(panda_urdf).read_text(encoding='utf-8')
    rig.description.publish(rig_text('/etc/hostname'))
    rig.until(lambda: 'no path is opened here' in rig.log)
    rig.description.publish(rig_text(text.replace('</robot>', '')))
    rig.until(lambda: 'cannot configure: XML' in rig.log)
    assert rig.lifecycle() == 'unconfigured'
    rig.description.publish(rig_text(text))
    rig.bring_up(POSITION)


def rig_text(text):
    from std_msgs.msg import String

    return String(data=text)


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.longer
def test_signal_ends_the_node_with_its_stop_command_and_exit_code_zero(process, robot):
    process.start(**robot, **CALM, on_stop='zero')
    process.until(lambda: 'no joint state has come yet' in process.log)
    process.bring_up(POSITION)
    process.until(lambda: '[dynamics_node]: commanding' in process.log)
    assert process.end(signal.SIGTERM) == 0
    assert 'stop requested' in process.log
    assert np.array(process.commands[-1].data) == pytest.approx(np.zeros(7))
    assert 'Traceback' not in process.log


@pytest.mark.slow
def test_node_without_a_robot_ends_on_a_signal(process):
    process.start()
    assert process.lifecycle() == 'unconfigured'
    assert process.end() == 0


def test_disabling_sends_the_stop_command_and_enabling_begins_again(rig, robot, gravity):
    rig.start(**robot, **CALM, on_stop='zero')

    def stream():
        rig.send(POSITION)

    rig.bring_up(POSITION)
    assert rig.enable(False, doing=stream).success
    rig.spin(0.2)
    assert np.array(rig.commands[-1].data) == pytest.approx(np.zeros(7))
    count = len(rig.commands)
    for _ in range(40):
        stream()
        rig.spin(0.005)
    assert len(rig.commands) == count
    assert rig.enable(True, doing=stream).success
    rig.stream(POSITION, lambda: np.allclose(rig.commands[-1].data, gravity, atol=1e-9))


# --- trajectories ------------------------------------------------------------------------------


@pytest.mark.longer
def test_the_diagnostics_name_by_its_stamp_the_trajectory_that_was_refused(rig, robot):
    rig.start(**robot, **CALM, mode='computed_torque')
    rig.bring_up(POSITION)
    rig.until(lambda: rig.trajectories.get_subscription_count() > 0)
    for sec in (7, 8):
        message = JointTrajectory(joint_names=['elbow'], points=[JointTrajectoryPoint()])
        message.header.stamp.sec, message.header.stamp.nanosec = sec, 250_000_000
        rig.trajectories.publish(message)
        told = f'{sec}.250000000'
        rig.stream(POSITION, lambda t=told: rig.report.get('last_rejection_stamp') == t)
        assert rig.report['last_rejection']


def test_trajectory_is_followed_held_and_cancelled(rig, robot):
    rig.start(**robot, **CALM, mode='computed_torque')
    rig.bring_up(POSITION)
    target = np.array(POSITION) + 0.1  # which the arm never gets to, but near enough
    rig.follow([target], [0.5])
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'holding')
    assert np.array(rig.states[-1].reference_position) == pytest.approx(target)
    rig.follow([target - 0.05], [60.0])
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'moving')
    rig.follow([], [])
    rig.stream(POSITION, lambda: rig.report.get('reference') == 'holding')
    assert (np.array(rig.states[-1].reference_position) > target - 0.0499).all()


# --- services and parameters -------------------------------------------------------------------


def test_dh_service_answers_in_both_conventions(rig, robot, model):
    rig.start(**robot, autostart='false')
    assert rig.transition('configure')
    for convention, table in (('', model.dh), ('standard', model.dh.standard())):
        answer = rig.call(
            GetDHParameters, 'get_dh_parameters', GetDHParameters.Request(convention=convention)
        )
        assert answer.success and answer.joint_names == ARM
        for name in ('alpha', 'a', 'beta', 'd', 'theta'):
            assert np.array(getattr(answer, name)) == pytest.approx(getattr(table, name))
        assert answer.tip_transform.translation.z == pytest.approx(table.tip_transform[2, 3])


def test_mode_and_gains_change_while_active_and_wrong_values_are_refused(rig, robot):
    rig.start(**robot, **CALM)

    def stream():
        rig.send(POSITION)

    rig.bring_up(POSITION)
    assert rig.set_parameter('mode', 'computed_torque', stream).successful
    assert rig.set_parameter('kp', [50.0] * 7, stream).successful
    for name, value, word in (
        ('mode', 'impedance', 'computed_torque'),
        ('kp', [1.0, 2.0], '2 values'),
        ('kd', [float('nan')], 'kd'),
        ('ramp_time', -1.0, 'ramp_time'),
        ('base_link', 'panda_link1', 'configure'),
    ):
        result = rig.set_parameter(name, value, stream)
        assert not result.successful and word in result.reason
    rig.stream(POSITION, lambda: rig.report.get('mode') == 'computed_torque')


# --- what runs beside it -----------------------------------------------------------------------


def test_watchdog_commands_while_the_node_does_nothing_and_gives_back(rig, robot, gravity):
    rig.start(**robot, state_timeout=0.1, ramp_time=0.0, watchdog_period=0.01)
    rig.watch()
    rig.bring_up(POSITION)
    rig.stream(POSITION, lambda: np.allclose(rig.commands[-1].data, gravity, atol=1e-9))
    rig.stream(POSITION, lambda: rig.is_watched)
    rig.hang_until(lambda: is_of_watchdog(rig.commands[-1]))
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-6)
    rig.stream(POSITION, lambda: not is_of_watchdog(rig.commands[-1]))
    rig.stream(POSITION, lambda: int(rig.report.get('watchdog_takeovers', 0)) > 0)
    rig.stream(POSITION, lambda: np.allclose(rig.commands[-1].data, gravity, atol=1e-9))


@pytest.mark.longer
def test_watchdog_that_is_always_late_takes_over_all_the_same(rig, robot):
    # As on a machine with too much to do; it waits once for a beat, as if all had stood still.
    rig.start(**robot, state_timeout=0.1, ramp_time=0.0, watchdog_period=0.01)
    rig.watch(late=0.03)
    rig.bring_up(POSITION)
    rig.stream(POSITION, lambda: rig.is_watched)
    rig.hang_until(lambda: is_of_watchdog(rig.commands[-1]))


def is_of_watchdog(command):
    return WATCHDOG_LABEL in [each.label for each in command.layout.dim]
