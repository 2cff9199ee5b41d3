# SPDX-License-Identifier: Apache-2.0
"""The dynamics node over real DDS: what it commands, and what it does when things go wrong."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from control_arm import NAMES
from node_in_process import NodeInProcess
from node_rig import ARM, UNHURRIED, NodeRig
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.srv import GetDHParameters, GetMassMatrix
from robodyn_ros import RobotModel, gravity_torque, inverse_dynamics, mass_matrix
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
def rig(tmp_path):
    """A node in this process."""
    result = NodeInProcess(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.fixture
def process(tmp_path):
    """A node in a process of its own."""
    result = NodeRig(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.fixture(scope='module')
def panda(panda_urdf):
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')


@pytest.fixture(scope='module')
def gravity(panda):
    return gravity_torque(panda, POSITION)


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


def test_partial_messages_from_two_drivers_make_one_state(rig, robot, gravity):
    rig.start(**robot, **CALM)
    lower, upper = slice(0, 3), slice(3, 7)

    def both():
        rig.send(POSITION[upper], names=ARM[upper])
        rig.send([*POSITION[lower], 9.9], names=[*ARM[lower], 'gripper'])

    rig.until(rig.commanded_since(0), doing=both)
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-9)


@pytest.mark.longer
def test_drivers_without_velocities_and_stamps_are_understood(rig, robot, gravity):
    rig.start(**robot, **CALM)
    zero = type(rig.node.get_clock().now().to_msg())()
    rig.stream(POSITION, rig.commanded_since(0, 20), velocity=[], stamp=zero)
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-9)


def test_nothing_is_commanded_before_every_joint_was_seen(rig, robot):
    rig.start(**robot, **CALM)
    rig.until(is_level(rig, WARN), doing=lambda: rig.send(POSITION[:6], names=ARM[:6]))
    for _ in range(100):
        rig.send(POSITION[:6], names=ARM[:6])
        rig.spin(0.005)
    assert not rig.commands
    assert 'panda_joint7' in rig.report['message']


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
def test_impossible_transition_is_refused_and_survived(rig, robot):
    rig.start(**robot, autostart='false')
    assert not rig.transition('activate')
    assert not rig.transition('deactivate')
    assert rig.transition('configure')


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
def test_log_says_what_is_waited_for_and_when_it_begins(process, robot):
    process.start(**robot)
    process.until(lambda: 'no joint state has come yet' in process.log)
    process.bring_up(POSITION)
    process.until(lambda: '[dynamics_node]: commanding' in process.log)
    assert process.end() == 0
    process.until(lambda: 'told to stop' in process.log)


@pytest.mark.longer
def test_a_node_commands_and_answers_where_nothing_that_draws_or_fits_is_installed(
    process, robot, panda
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
    expected = mass_matrix(panda, POSITION)
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


@pytest.mark.longer
def test_replaced_robot_description_is_ignored_until_clean_up(rig, robot, panda_urdf, gravity):
    del robot['urdf_file']
    rig.start(**robot, **CALM)
    text = Path(panda_urdf).read_text(encoding='utf-8')
    rig.description.publish(rig_text(text))
    rig.bring_up(POSITION)
    rig.description.publish(rig_text('<robot name="other"/>'))
    rig.stream(POSITION, lambda: 'ignored until clean-up' in rig.log)
    rig.bring_up(POSITION)
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-9)


def test_configure_without_a_robot_says_where_it_may_come_from(rig):
    rig.start(autostart='false')
    assert not rig.transition('configure')
    rig.until(lambda: 'robot_description' in rig.log and 'urdf_file' in rig.log)


@pytest.mark.longer
def test_joint_without_effort_limit_is_named_until_the_parameters_give_it(rig, robot, panda_urdf):
    text = Path(panda_urdf).read_text(encoding='utf-8')
    joint = text.index('<joint name="panda_joint5"')
    text = text[:joint] + re.sub(r'effort="\S*"', 'effort="0"', text[joint:], count=1)
    del robot['urdf_file']
    rig.start(**robot, **CALM, autostart='false')
    rig.description.publish(rig_text(text))
    rig.spin(0.5)
    rig.until(lambda: not rig.transition('configure') and 'panda_joint5' in rig.log)
    rig.until(lambda: 'effort_limits' in rig.log)
    assert rig.set_parameter('effort_limits', [50.0]).successful
    assert rig.transition('configure')


def test_joints_that_are_no_permutation_fail_configure(rig, robot):
    rig.start(**robot, joints='[panda_joint1]', autostart='false')
    assert not rig.transition('configure')
    rig.until(lambda: 'parameter joints' in rig.log)


def rig_text(text):
    from std_msgs.msg import String

    return String(data=text)


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.longer
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_the_node_with_its_stop_command_and_exit_code_zero(process, robot, number):
    process.start(**robot, **CALM, on_stop='zero')
    process.bring_up(POSITION)
    assert process.end(number) == 0
    assert np.array(process.commands[-1].data) == pytest.approx(np.zeros(7))
    assert 'Traceback' not in process.log


@pytest.mark.longer
def test_stop_command_holds_gravity_by_default(rig, robot, gravity):
    rig.start(**robot, **CALM, mode='computed_torque', max_following_error=0.0)
    rig.bring_up(POSITION)
    rig.follow([np.array(POSITION) + 0.5], [10.0])
    rig.stream(
        POSITION,
        lambda: (
            rig.report.get('reference') == 'moving'
            and not np.allclose(rig.commands[-1].data, gravity, atol=1.0)
        ),
    )
    rig.end()
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-9)


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


def test_enable_is_refused_with_words_while_inactive(rig, robot):
    rig.start(**robot, autostart='false')
    answer = rig.enable(True)
    assert not answer.success and 'unconfigured' in answer.message


# --- staleness ---------------------------------------------------------------------------------


@pytest.mark.longer
def test_silent_driver_gets_gravity_held_then_silence_then_recovery(rig, robot, gravity):
    rig.start(**robot, state_timeout=0.3, stale_hold_time=5.0, ramp_time=0.1)
    rig.bring_up(POSITION)
    sent = len(rig.commands)
    rig.until(is_level(rig, ERROR))
    assert 'panda_joint1' in rig.report['message']
    rig.until(rig.commanded_since(sent, 20))
    assert np.array(rig.commands[-1].data) == pytest.approx(gravity, abs=1e-9)
    rig.until(lambda: quiet(rig))
    rig.bring_up(POSITION)
    rig.stream(POSITION, is_level(rig, 0))
    rig.until(lambda: 'commanding again, after' in rig.log)


def quiet(rig, duration=0.3):
    """Return whether no command comes for a while."""
    count = len(rig.commands)
    rig.spin(duration)
    return len(rig.commands) == count


def test_nan_position_makes_its_joint_stale_and_never_reaches_the_wire(rig, robot):
    rig.start(**robot, state_timeout=0.3)
    rig.bring_up(POSITION)
    bad = [*POSITION[:6], float('nan')]
    rig.stream(bad, is_level(rig, ERROR))
    assert rig.report['stale_joints'] == 'panda_joint7'
    rig.bring_up(POSITION)
    assert all(np.isfinite(command.data).all() for command in rig.commands)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize(
    'names, position',
    [(ARM, POSITION[:5]), ([*ARM[:6], ARM[0]], POSITION), (NAMES, [0.0, 0.0]), ([], [])],
)
def test_malformed_joint_states_are_survived(rig, robot, names, position):
    rig.start(**robot, **CALM)
    rig.bring_up(POSITION)
    for _ in range(20):
        rig.send(position, names=names)
    rig.bring_up(POSITION)


@pytest.mark.longer
def test_joint_states_with_old_stamps_are_stale_and_the_log_says_why(rig, robot):
    rig.start(**robot, state_timeout=0.3)
    rig.bring_up(POSITION)
    old = type(rig.node.get_clock().now().to_msg())(sec=12, nanosec=5)
    rig.stream(POSITION, is_level(rig, ERROR), stamp=old)
    rig.stream(POSITION, lambda: 'use_sim_time' in rig.log, stamp=old)
    rig.bring_up(POSITION)


# --- trajectories ------------------------------------------------------------------------------


@pytest.mark.longer
def test_rejected_trajectory_is_explained_in_log_and_diagnostics(rig, robot):
    rig.start(**robot, **CALM, mode='computed_torque')
    rig.bring_up(POSITION)
    rig.follow([[9.0] * 7], [1.0])
    rig.stream(POSITION, lambda: 'position limits' in rig.report.get('last_rejection', ''))
    assert 'trajectory rejected' in rig.log
    assert rig.report['reference'] == 'none'


@pytest.mark.longer
def test_the_diagnostics_tell_by_its_stamp_which_trajectory_was_refused(rig, robot):
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


@pytest.mark.longer
def test_arm_that_does_not_follow_is_an_error_in_diagnostics(rig, robot):
    rig.start(**robot, **CALM, mode='computed_torque', max_following_error=0.1)
    rig.bring_up(POSITION)
    rig.follow([np.array(POSITION) + 0.3], [0.5])
    rig.stream(POSITION, lambda: 'max_following_error' in rig.report.get('last_fault', ''))
    assert rig.report['following_errors'] == '1'
    rig.stream(POSITION, lambda: np.allclose(rig.states[-1].reference_position, POSITION))
    rig.follow([np.array(POSITION) + 0.05], [0.5])
    rig.stream(POSITION, lambda: rig.report.get('last_fault') == '')


# --- services and parameters -------------------------------------------------------------------


def test_mass_matrix_service_answers_for_given_and_measured_positions(rig, robot, panda):
    rig.start(**robot, **CALM)
    rig.bring_up(POSITION)
    for position in ([0.3] * 7, []):
        request = GetMassMatrix.Request(position=position)
        answer = rig.call(
            GetMassMatrix, 'get_mass_matrix', request, doing=lambda: rig.send(POSITION)
        )
        expected = mass_matrix(panda, position or POSITION)
        assert answer.success, answer.message
        assert answer.joint_names == ARM
        sizes = [dimension.size for dimension in answer.mass_matrix.layout.dim]
        assert np.reshape(answer.mass_matrix.data, sizes) == pytest.approx(expected)


def test_dh_service_answers_in_both_conventions(rig, robot, panda):
    rig.start(**robot, autostart='false')
    assert rig.transition('configure')
    for convention, table in (('', panda.dh), ('standard', panda.dh.standard())):
        answer = rig.call(
            GetDHParameters, 'get_dh_parameters', GetDHParameters.Request(convention=convention)
        )
        assert answer.success and answer.joint_names == ARM
        for name in ('alpha', 'a', 'beta', 'd', 'theta'):
            assert np.array(getattr(answer, name)) == pytest.approx(getattr(table, name))
        assert answer.tip_transform.translation.z == pytest.approx(table.tip_transform[2, 3])


def test_services_refuse_with_words(rig, robot):
    rig.start(**robot, autostart='false')
    answer = rig.call(GetMassMatrix, 'get_mass_matrix', GetMassMatrix.Request())
    assert not answer.success and 'not configured' in answer.message
    assert rig.transition('configure')
    for position, word in (([], 'no joint state'), ([0.0] * 3, '3 values'), ([np.nan] * 7, 'nan')):
        answer = rig.call(
            GetMassMatrix, 'get_mass_matrix', GetMassMatrix.Request(position=position)
        )
        assert not answer.success and word in answer.message
    answer = rig.call(
        GetDHParameters, 'get_dh_parameters', GetDHParameters.Request(convention='craig')
    )
    assert not answer.success and 'modified' in answer.message


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


@pytest.mark.longer
def test_parameter_out_of_its_range_at_start_is_fatal_and_named(process):
    process.start(ramp_time=-1.0)
    process.until(lambda: process.process.poll() is not None)
    assert process.process.returncode == 1
    process.until(lambda: 'ramp_time' in process.log)


# --- what runs beside it -----------------------------------------------------------------------


@pytest.mark.longer
def test_services_that_have_ended_are_told_of_once(rig, robot):
    rig.start(**robot, **CALM)
    rig.bring_up(POSITION)
    rig.end_services()
    rig.stream(POSITION, lambda: rig.report.get('services') == 'ended')
    rig.stream(POSITION, lambda: rig.report.get('model_level') == WARN)
    reports = len(rig.reports)
    rig.stream(POSITION, lambda: len(rig.reports) > reports + 1)
    assert rig.log.count('[ERROR] [dynamics_node]: the service process has ended') == 1


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


def test_functions_that_give_wrong_numbers_are_replaced_and_told_of(rig, robot, panda, gravity):
    rig.start(**robot, **CALM)
    rig.bring_up(POSITION)
    pipeline = rig.dynamics_node._cycle.stack.pipeline
    pipeline.change_load(lambda *state: 1.01 * inverse_dynamics(panda, *state))
    rig.stream(POSITION, lambda: 'algorithm newton_euler instead of compiled' in rig.log)
    rig.stream(POSITION, lambda: np.allclose(rig.commands[-1].data, gravity, atol=1e-9))
    rig.stream(POSITION, lambda: rig.report.get('model_level') == WARN)
