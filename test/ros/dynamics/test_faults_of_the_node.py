# SPDX-License-Identifier: Apache-2.0
"""The node is stopped, killed, paused, reconfigured and broken while the arm moves."""

import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Time
from fault_rig import POSITION, case, fault, rig_in
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

pytestmark = [pytest.mark.slow, pytest.mark.ros]


@pytest.fixture(scope='module')
def running(tmp_path_factory, panda_urdf):
    """A node that takes its robot from the topic."""
    rig = rig_in(tmp_path_factory.mktemp('lifecycle'), panda_urdf)
    rig.description.publish(String(data=Path(rig.robot.pop('urdf_file')).read_text()))
    rig.launch(mode='computed_torque')
    rig.bring_up(POSITION)
    yield rig
    rig.close()


@pytest.fixture
def rig(running):
    """The one node for faults that it survives."""
    with running.surviving():
        yield running


def ends_with(rig, wanted):
    rig.spin(0.2)
    return np.array(rig.commands[-1].data) == pytest.approx(wanted, abs=1e-6)


# --- told to stop ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'numbers, on_stop',
    [
        case(
            'SIGINT in motion',
            'Stop command at the pace of the rate limit, to gravity; exit code 0.',
            [signal.SIGINT],
            'hold_gravity',
        ),
        case(
            'SIGTERM in motion',
            'Stop command at the pace of the rate limit, to zero; exit code 0.',
            [signal.SIGTERM],
            'zero',
        ),
        case('SIGHUP in motion, as from a closed terminal', 'The same.', [signal.SIGHUP], 'zero'),
        case('SIGQUIT in motion, as from Ctrl-\\', 'The same.', [signal.SIGQUIT], 'zero'),
        case(
            'SIGINT and SIGTERM one after the other',
            'The second one changes nothing.',
            [signal.SIGINT, signal.SIGTERM, signal.SIGINT],
            'zero',
        ),
    ],
)
def test_signal_in_motion_ends_with_the_torque_of_on_stop(own, gravity, numbers, on_stop):
    own.launch(mode='computed_torque', on_stop=on_stop)
    own.bring_up(POSITION)
    own.in_motion(seconds=1.0)
    own.stream(POSITION, lambda: np.abs(own.commands[-1].data - gravity).max() > 4.0)
    before = len(own.record)
    for number in numbers[:-1]:
        own.process.send_signal(number)
    assert own.end(numbers[-1]) == 0
    wanted = gravity if on_stop == 'hold_gravity' else np.zeros(7)
    assert ends_with(own, wanted)
    words = own.commands_after(before)
    assert len(words) >= 3  # more than one: the way there
    assert 'Traceback' not in own.log


@fault('SIGTERM while the arm is silent and stale', 'The stop command still comes; exit code 0.')
def test_signal_while_stale_ends_with_the_torque_of_on_stop(own, gravity):
    own.launch(on_stop='zero')
    own.bring_up(POSITION)
    own.until_held()
    assert own.end(signal.SIGTERM) == 0
    assert ends_with(own, np.zeros(7))


@fault('SIGINT with on_stop silent', 'Nothing is added: the driver keeps the last command.')
def test_silent_stop_says_nothing(own):
    own.launch(on_stop='silent')
    own.bring_up(POSITION)
    own.until_held()  # nothing is commanded any more, and any other stop command would be
    count = len(own.commands)
    assert own.end() == 0
    assert len(own.commands) == count


@pytest.mark.slow
@fault(
    'rate limit too small for the stop command',
    'It ends after 4 s where it is, with an ERROR in the log; no step.',
)
def test_stop_command_that_would_take_too_long_ends_with_an_error(own):
    own.launch(on_stop='zero', torque_rate_limit='[1.0]')
    own.bring_up(POSITION)
    assert own.end() == 0
    assert 'torque_rate_limit is too small' in own.log
    own.check_stream(rate_limit=1.0)


@fault(
    'a bug in the control cycle', 'The stop command comes, then the process ends with the trace.'
)
def test_bug_ends_the_node_with_its_stop_command(own, gravity):
    own.launch_patched(
        'from robodyn_ros.control import command_pipeline\n'
        'step, calls = command_pipeline.CommandPipeline.step, []\n'
        'def broken(path, state, now):\n'
        '    calls.append(now)\n'
        '    if len(calls) > 100:\n'
        "        raise RuntimeError('a bug')\n"
        '    return step(path, state, now)\n'
        'command_pipeline.CommandPipeline.step = broken\n',
        on_stop='zero',
    )
    own.stream(POSITION, lambda: own.process.poll() is not None)
    assert own.process.returncode != 0
    assert 'a bug' in own.log
    assert ends_with(own, np.zeros(7))


# --- killed and paused -------------------------------------------------------------------------


@fault(
    'node killed and restarted in motion',
    'The watchdog sends the stop command; the new process begins with gravity.',
)
def test_killed_node_can_be_started_again(own, gravity):
    own.launch(mode='computed_torque')
    own.bring_up(POSITION)
    own.in_motion()
    own.kill()
    own.launch(mode='computed_torque')
    first = len(own.record)
    own.bring_up(POSITION)
    own.stream(POSITION, lambda: len(own.record) > first)
    assert own.commands_after(first)[0] == pytest.approx(gravity, abs=1e-6)
    own.in_motion()


@fault(
    'node paused and continued in motion',
    'On waking it finds old states: stale; it recovers with the next new one, without a step.',
)
def test_paused_node_comes_back_without_a_step(rig):
    rig.in_motion()
    rig.pause()
    for _ in range(160):
        rig.send(POSITION)
        rig.spin(0.005)
    rig.go_on()
    rig.recover()


# --- the lifecycle in motion -------------------------------------------------------------------


@fault('deactivated and reactivated in motion', 'Stop command; then it starts again with gravity.')
def test_deactivation_in_motion_and_back(rig, gravity):
    rig.in_motion(seconds=1.0)
    rig.stream(POSITION, lambda: np.abs(rig.commands[-1].data - gravity).max() > 2.0)
    assert rig.transition('deactivate', rig.send_home)
    assert ends_with(rig, gravity)
    assert rig.is_quiet()
    rig.begin_anew()
    assert rig.transition('activate', rig.send_home)
    rig.bring_up(POSITION)
    assert not rig.states[-1].reference_position


@fault('disabled and enabled at once in motion', 'Stop command; the rate limit continues from it.')
def test_disabling_and_enabling_at_once_causes_no_step(rig):
    rig.in_motion(seconds=1.0)
    for _ in range(3):
        assert rig.enable(False, rig.send_home).success
        assert rig.enable(True, rig.send_home).success
        rig.bring_up(POSITION)


@fault('cleaned up and configured in motion', 'Deactivated by a stop command first; starts again.')
def test_clean_up_and_configure(rig, gravity):
    rig.in_motion(seconds=1.0)
    assert rig.transition('deactivate', rig.send_home)
    assert rig.transition('cleanup')
    assert ends_with(rig, gravity)
    rig.begin_anew()
    assert rig.transition('configure')
    assert rig.transition('activate')
    rig.bring_up(POSITION)


@fault('shut down in motion', 'Stop command; the node stays finalized until its process ends.')
def test_shutdown_in_motion(own, gravity):
    own.launch(mode='computed_torque', on_stop='zero')
    own.bring_up(POSITION)
    own.in_motion(seconds=1.0)
    assert own.transition('shutdown', own.send_home)
    assert ends_with(own, np.zeros(7))
    assert own.lifecycle() == 'finalized'
    assert own.end() == 0


@fault('transitions that the state does not allow', 'Refused; commanding continues.')
def test_impossible_transitions_in_motion_are_refused(rig):
    rig.in_motion()
    for label in ('configure', 'activate', 'cleanup'):
        assert not rig.transition(label, rig.send_home)
    rig.bring_up(POSITION)
    assert len(rig.states[-1].reference_position) == 7


IGNORED = 'Ignored with a warning until clean-up.'


@pytest.mark.parametrize(
    'text',
    [
        case('robot description replaced while active', IGNORED, '<robot name="other"/>'),
        case('robot description replaced by garbage', IGNORED, '\x01\x02 not even XML <<<'),
        case('robot description of a megabyte', IGNORED, '<robot>' + 'x' * 1000000),
        case(
            'robot description of 20 MB',
            'Ignored with a warning until clean-up, and not even read.',
            '<robot>' + 'x' * 20_000_000,
        ),
    ],
)
def test_replaced_description_is_ignored_in_motion(rig, text):
    rig.in_motion(seconds=30.0)
    before = len(rig.log)
    rig.description.publish(String(data=text))
    rig.stream(POSITION, lambda: 'ignored until clean-up' in rig.log[before:])
    assert len(rig.states[-1].reference_position) == 7


# --- parameters in motion ----------------------------------------------------------------------


@fault(
    'effort limits scaled down in motion',
    'The torque shrinks to the new limit at the pace of the rate limit.',
)
def test_lowered_effort_limits_cause_no_step(rig, gravity):
    rig.in_motion(seconds=30.0)
    assert rig.set_parameter('effort_limit_scale', 0.02, rig.send_home).successful
    rig.stream(POSITION, lambda: np.abs(rig.commands[-1].data).max() <= 0.02 * 87.0 + 1e-9)
    assert rig.set_parameter('effort_limit_scale', 1.0, rig.send_home).successful


@fault('mode, gains and terms changed in motion', 'Each change fades.')
def test_changes_of_law_in_motion_cause_no_step(rig):
    rig.in_motion(seconds=30.0)
    for name, value in (
        ('terms.gravity', False),
        ('kp', [400.0]),
        ('terms.gravity', True),
        ('mode', 'feedforward'),
        ('kd', [1.0]),
        ('mode', 'gravity_compensation'),
        ('mode', 'computed_torque'),
        ('kp', [100.0]),
        ('kd', [20.0]),
        ('ramp_time', 0.0),
        ('terms.gravity', False),
        ('terms.gravity', True),
        ('ramp_time', 0.1),
    ):
        assert rig.set_parameter(name, value, rig.send_home).successful


@fault('parameters that make no sense in motion', 'Refused with a reason; commanding continues.')
def test_senseless_parameters_are_refused_in_motion(rig):
    rig.in_motion(seconds=30.0)
    for name, value in (
        ('kp', [float('nan')]),
        ('kd', [-1.0]),
        ('mode', 'x'),
        ('ramp_time', float('inf')),
        ('state_timeout', 0.0),
        ('effort_limit_scale', 2.0),
        ('torque_rate_limit', [-1.0]),
        ('soft_limit_width', -1.0),
        ('friction_velocity', 0.0),
        ('joints', ['a']),
        ('effort_limits', [1.0]),
        ('on_stop', 'drop'),
    ):
        assert not rig.set_parameter(name, value, rig.send_home).successful, name
    assert len(rig.states[-1].reference_position) == 7


# --- the clock and the disk --------------------------------------------------------------------


class Simulation:
    """A driver and a /clock of the same simulated time."""

    def __init__(self, rig):
        self.rig, self.now, self.step = rig, 100.0, 0.005
        self.clock = rig.node.create_publisher(Clock, '/clock', 10)

    def send(self):
        self.now += self.step
        stamp = Time(sec=int(self.now), nanosec=int(self.now % 1.0 * 1e9))
        self.clock.publish(Clock(clock=stamp))
        self.rig.send(POSITION, stamp=stamp)

    def until(self, condition):
        self.rig.until(condition, doing=self.send)

    def in_motion(self):
        self.until(self.rig.commanded_since(len(self.rig.commands)))
        self.rig.follow([np.array(POSITION) + 0.2], [30.0])
        self.until(lambda: len(self.rig.states[-1].reference_position))


@fault(
    'simulated time, and no clock',
    'Stamps are never old then; receipt measures staleness, and everything else continues.',
)
def test_missing_clock_is_survived(own):
    own.launch(mode='computed_torque', use_sim_time='true')
    own.bring_up(POSITION)
    own.in_motion()
    own.until_held()
    own.recover()


@pytest.mark.parametrize(
    'now',
    [
        case(
            'clock set back to zero', 'A reset of the simulator: the reference is dropped.', 1e-3
        ),
        case('clock set back by seconds', 'The reference is dropped.', 97.0),
        case('clock jumped ahead', 'The reference is dropped.', 86400.0),
    ],
)
def test_clock_that_jumps_in_motion_drops_the_reference(simulated, now):
    simulated.in_motion()
    simulated.now = now
    simulated.until(
        lambda: (
            not len(simulated.rig.states[-1].reference_position)
            or simulated.rig.report.get('level') != 0
        )
    )
    simulated.in_motion()


@pytest.mark.parametrize(
    'are_states_repeated',
    [
        case(
            'simulation paused',
            'Nothing is stale or dropped, the motion continues with it.',
            False,
        ),
        case('simulation paused, its last state sent again', 'The same.', True),
    ],
)
def test_motion_goes_on_after_a_pause_of_the_simulation(simulated, are_states_repeated):
    rig = simulated.rig
    simulated.in_motion()
    takeovers, drops = rig.report['watchdog_takeovers'], rig.report['dropped_references']
    log = len(rig.log)
    simulated.step = 0.0
    end = time.monotonic() + 3.0
    said = len(rig.reports)
    rig.until(
        lambda: time.monotonic() > end, doing=simulated.send if are_states_repeated else None
    )
    words = [report['message'] for report in rig.reports[said:]]
    assert are_states_repeated or any('simulation stands still' in each for each in words)
    assert not any(report['level'] >= 2 for report in rig.reports[said:])
    simulated.step = 0.005
    before = len(rig.states)
    simulated.until(lambda: len(rig.states) > before + 10)
    assert len(rig.states[-1].reference_position)
    reported = len(rig.reports)
    simulated.until(lambda: len(rig.reports) > reported + 1)
    assert rig.report['watchdog_takeovers'] == takeovers
    assert rig.report['dropped_references'] == drops
    assert 'state_timeout' not in rig.log[log:] and 'ERROR' not in rig.log[log:]


@fault('simulation paused, and the node killed', 'The watchdog commands all the same.')
def test_watchdog_acts_when_the_node_dies_in_a_pause(own):
    own.launch(mode='computed_torque', use_sim_time='true')
    simulation = Simulation(own)
    simulation.in_motion()
    own.spin(1.0)  # in which the simulation stands still
    before = len(own.record)
    own.process.kill()
    own.until(lambda: len(own.record) > before)
    assert any(label for _, _, _, label in own.record[before:])


@fault('clock jumped ahead, and the driver not', 'Its stamps are old: stale, until it follows.')
def test_clock_ahead_of_the_driver_is_stale_until_it_follows(simulated):
    rig = simulated.rig
    simulated.in_motion()
    rig.until(
        lambda: rig.report.get('level', 0) >= 2,
        doing=lambda: (
            simulated.clock.publish(Clock(clock=Time(sec=500000))),
            rig.send(POSITION, stamp=Time(sec=100)),
        ),
    )
    simulated.now = 500000.0
    simulated.in_motion()


@pytest.fixture(scope='module')
def simulated_rig(tmp_path_factory, panda_urdf):
    rig = rig_in(tmp_path_factory.mktemp('clock'), panda_urdf)
    rig.launch(mode='computed_torque', use_sim_time='true')
    yield rig
    rig.close()


@pytest.fixture
def simulated(simulated_rig):
    simulation = Simulation(simulated_rig)
    simulated_rig.forget()
    yield simulation
    simulation.until(lambda: simulated_rig.report.get('level') == 0)
    assert simulated_rig.process.poll() is None
    simulated_rig.check_stream()
    simulated_rig.node.destroy_publisher(simulation.clock)


@fault('full disk under the cache', 'The node starts and commands all the same.')
def test_full_disk_stops_nothing(own, gravity):
    own.launch_patched(
        'import errno\n'
        'from robodyn_ros.compiled.c import cache\n'
        'def full(*arguments, **keywords):\n'
        "    raise OSError(errno.ENOSPC, 'No space left on device')\n"
        'cache._write = full\n'
    )
    own.bring_up(POSITION)
    assert np.array(own.commands[-1].data) == pytest.approx(gravity, abs=1e-6)


@fault('cache that cannot be made', 'The node starts and commands all the same.')
def test_impossible_cache_stops_nothing(own, gravity):
    own.environment['ROBODYN_CACHE_DIR'] = '/proc/no/such/place'
    own.launch()
    own.bring_up(POSITION)
    assert np.array(own.commands[-1].data) == pytest.approx(gravity, abs=1e-6)
