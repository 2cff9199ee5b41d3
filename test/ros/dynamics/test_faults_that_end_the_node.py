# SPDX-License-Identifier: Apache-2.0
"""The node is killed, crashes, hangs or cannot print, and its watchdog commands in its place."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import POSITION, STATE_TIMEOUT, WATCHDOG_PERIOD, case, fault

from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL

pytestmark = [pytest.mark.slow, pytest.mark.ros]

SCHEDULING = 5.0  # that a loaded machine may take; benchmarks/watchdog.py measures [s]


@pytest.fixture
def rig(own):
    return own


def watchdog_of(rig):
    """Return the process that watches the node: the child that has made itself a session."""
    folder = Path(f'/proc/{rig.process.pid}/task/{rig.process.pid}/children')
    (pid,) = [pid for pid in map(int, folder.read_text().split()) if os.getsid(pid) == pid]
    return pid


def is_running(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def carry(rig, **changes):
    """Have a node command, where a driver goes on reporting the arm at rest."""
    listen_to_commands_only(rig)
    rig.launch(mode='computed_torque', **changes)
    rig.driver(rate=100.0)
    rig.until_commanded()
    rig.until(lambda: rig.node.count_publishers('/dynamics_node/commands') == 2)


def lead_away(rig, gravity, doing=None):
    """Begin a motion that the arm does not follow, and wait until the torque says so."""
    begin = -np.inf

    def begin_again():  # a trajectory is lost where the node has not discovered its publisher
        nonlocal begin
        if time.monotonic() > begin + 5.0:
            begin = time.monotonic()
            rig.follow([np.array(POSITION) + 0.5], [20.0])
        if doing is not None:
            doing()

    rig.until(lambda: np.abs(rig.commands[-1].data - gravity).max() > 3.0, begin_again)


def listen_to_commands_only(rig):
    """Leave out what the test does not look at: a busy machine lets it keep up with the rest."""
    for subscription in list(rig.node.subscriptions):
        if subscription.topic_name.endswith(('torques', 'dynamics_state')):
            rig.node.destroy_subscription(subscription)


def ends_with(rig, wanted):
    rig.spin(0.2)
    return np.array(rig.commands[-1].data) == pytest.approx(wanted, abs=1e-6)


def first_after(rig, moment):
    """Return when the first command after a moment was sent, counted from it [s]."""
    rig.until(lambda: rig.record[-1][0] > moment)
    return next(sent for sent, *_ in rig.record if sent > moment) - moment


# --- ended -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'number, on_stop',
    [
        case(
            'SIGKILL in motion',
            'The watchdog brakes, sends the stop command, and ends.',
            signal.SIGKILL,
            'hold_gravity',
        ),
        case('SIGSEGV in motion', 'The same.', signal.SIGSEGV, 'zero'),
        case('SIGABRT in motion', 'The same.', signal.SIGABRT, 'hold_gravity'),
    ],
)
def test_node_that_ends_leaves_the_stop_command(rig, gravity, number, on_stop):
    carry(rig, on_stop=on_stop)
    watchdog = watchdog_of(rig)
    lead_away(rig, gravity)
    moment = time.time()
    rig.process.send_signal(number)
    assert rig.process.wait(30.0) == -number
    assert first_after(rig, moment) <= STATE_TIMEOUT + WATCHDOG_PERIOD + SCHEDULING
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    assert ends_with(rig, gravity if on_stop == 'hold_gravity' else np.zeros(7))


@fault('SIGKILL with on_stop silent', 'The driver keeps the last command.')
def test_killed_node_with_silent_stop_leaves_nothing(rig, gravity):
    carry(rig, on_stop='silent')
    watchdog = watchdog_of(rig)
    rig.kill()
    rig.spin(0.3)
    count = len(rig.record)
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    rig.spin(0.2)
    assert len(rig.record) == count


@fault('SIGKILL while no driver reports', 'Gravity of the last state is the stop command.')
def test_killed_node_without_joint_states_leaves_gravity(rig, gravity):
    rig.launch(mode='computed_torque')
    rig.bring_up(POSITION)
    lead_away(rig, gravity, rig.send_home)
    watchdog = watchdog_of(rig)
    rig.kill()
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    assert ends_with(rig, gravity)


@fault('SIGKILL while inactive', 'Nothing is commanded, and the watchdog ends.')
def test_killed_node_that_was_inactive_leaves_nothing(rig):
    carry(rig)
    watchdog = watchdog_of(rig)
    assert rig.transition('deactivate')
    rig.spin(0.2)
    count = len(rig.record)
    rig.kill()
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    rig.spin(0.2)
    assert len(rig.record) == count


@fault('SIGKILL and a new node at once', 'The watchdog ends; the new node begins with gravity.')
def test_killed_node_is_replaced_at_once(rig, gravity):
    carry(rig)
    first = watchdog_of(rig)
    lead_away(rig, gravity)
    rig.kill()
    rig.until(lambda: not is_running(first), patience=30.0)
    rig.spin(0.1)
    count = len(rig.record)
    rig.launch(mode='computed_torque')
    rig.until(lambda: len(rig.record) > count)
    assert rig.commands_after(count)[0] == pytest.approx(gravity, abs=1e-6)
    rig.until_commanded()
    assert watchdog_of(rig) != first


# --- stopped -----------------------------------------------------------------------------------


@fault(
    'SIGSTOP for seconds in motion',
    'The watchdog brakes and compensates gravity; on waking the node may send one old '
    "command, then continues from the watchdog's, within the rate limit.",
)
def test_stopped_node_is_stood_in_for_until_it_wakes(rig, gravity):
    carry(rig)
    lead_away(rig, gravity)
    moment = time.time()
    rig.pause()
    assert first_after(rig, moment + 0.02) <= STATE_TIMEOUT + WATCHDOG_PERIOD + SCHEDULING
    rig.spin(2.0)
    assert ends_with(rig, gravity)
    before = len(rig.record)
    rig.go_on()
    rig.until(lambda: 'the watchdog commanded meanwhile' in rig.log)
    rig.until(lambda: 'this process stood still for' in rig.log)
    rig.until(lambda: int(rig.report.get('late_watchdogs', 0)) > 0)
    rig.until_commanded()
    assert rig.process.poll() is None
    torques = rig.commands_after(before)
    distance = np.abs(torques - gravity).max(axis=1)
    far = distance > 1e-6
    # An old command, then back at the pace of the rate limit, as queued states come at once.
    assert far.sum() <= 5 and (np.diff(distance[far]) < 0.0).all()
    rig.record = [entry for i, entry in enumerate(rig.record) if i < before or not far[i - before]]
    rig.until_commanded()


@fault('stopped twice, then killed', 'The watchdog takes over each time.')
def test_node_is_taken_over_again_and_again(rig, gravity):
    carry(rig)
    watchdog = watchdog_of(rig)
    for _ in range(2):
        rig.pause()
        rig.spin(1.0)
        rig.go_on()
        rig.until_commanded(100)
    rig.pause()
    rig.spin(0.5)
    rig.kill()
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    assert ends_with(rig, gravity)


@fault('SIGINT while stopped', 'When it wakes it sends the stop command; exit code 0.')
def test_stopped_node_that_gets_a_signal_stops_when_it_wakes(rig, gravity):
    carry(rig, on_stop='zero')
    rig.pause()
    rig.process.send_signal(signal.SIGINT)
    rig.spin(1.0)
    assert ends_with(rig, gravity)
    rig.go_on()
    assert rig.process.wait(30.0) == 0
    assert ends_with(rig, np.zeros(7))


@fault(
    'a callback that takes a second',
    'The watchdog takes over; then the node continues, and reports how long it hung.',
)
def test_callback_that_hangs_is_stood_in_for(rig, gravity):
    rig.begin_anew()
    rig.launch_patched(
        'import time\n'
        'from robodyn_ros.control import command_pipeline\n'
        'follow = command_pipeline.CommandPipeline.follow\n'
        'def slow(pipeline, trajectory):\n'
        '    time.sleep(1.0)\n'
        '    return follow(pipeline, trajectory)\n'
        'command_pipeline.CommandPipeline.follow = slow\n',
        mode='computed_torque',
    )
    rig.driver(rate=100.0)
    rig.until_commanded()
    rig.until(lambda: rig.node.count_publishers('/dynamics_node/commands') == 2)
    begin = -np.inf

    def hang_again():  # a trajectory is lost where the node has not discovered its publisher
        nonlocal begin
        if time.monotonic() > begin + 5.0:
            begin = time.monotonic()
            rig.follow([np.array(POSITION) + 0.1], [1.0])

    rig.until(lambda: 'the watchdog commanded meanwhile' in rig.log, hang_again)
    assert any(label == WATCHDOG_LABEL for *_, label in rig.record)
    rig.until(lambda: 'this process stood still for' in rig.log)
    rig.until(lambda: int(rig.report.get('late_watchdogs', 0)) > 0)
    rig.until_commanded()
    assert rig.process.poll() is None


# --- told to stop ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'number',
    [
        case(
            'SIGINT under the watchdog',
            'It publishes nothing, and ends with the node.',
            signal.SIGINT,
        ),
        case('SIGTERM under the watchdog', 'The same.', signal.SIGTERM),
    ],
)
def test_watchdog_is_silent_at_a_clean_stop(rig, gravity, number):
    carry(rig)
    watchdog = watchdog_of(rig)
    lead_away(rig, gravity)
    assert rig.end(number) == 0
    assert ends_with(rig, gravity)
    assert not is_running(watchdog)
    assert 'the watchdog commanded' not in rig.log


@fault('signals to the watchdog itself', 'Ignored while the node lives.')
def test_watchdog_ignores_what_is_meant_for_the_group(rig):
    carry(rig)
    watchdog = watchdog_of(rig)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP, signal.SIGQUIT):
        os.kill(watchdog, number)
    rig.spin(0.3)
    assert is_running(watchdog)
    rig.kill()
    rig.until(lambda: not is_running(watchdog), patience=30.0)


@fault('watchdog killed', 'WARN; the node continues without it, and stops as usual.')
def test_node_goes_on_without_its_watchdog(rig, gravity):
    carry(rig)
    os.kill(watchdog_of(rig), signal.SIGKILL)
    rig.until(lambda: rig.report.get('watchdog') == 'ended')
    rig.until_commanded(100)
    assert rig.end() == 0
    assert ends_with(rig, gravity)


@fault('watchdog stopped', 'The node continues, and diagnostics warn until it runs again.')
def test_node_reports_a_watchdog_that_is_stopped(rig):
    carry(rig)
    watchdog = watchdog_of(rig)
    rig.until(lambda: rig.report.get('watchdog') == 'watching')
    os.kill(watchdog, signal.SIGSTOP)
    rig.until(lambda: rig.report['watchdog'] == 'late')
    assert float(rig.report['watchdog_process_lateness_ms']) > 1000.0
    os.kill(watchdog, signal.SIGCONT)
    rig.until(lambda: rig.report['watchdog'] == 'watching')
    rig.until_commanded(100)


@fault(
    'SIGKILL in motion, the watchdog starved',
    'It takes over late, brakes without a step, and sends the stop command.',
)
def test_starved_watchdog_stands_in_for_a_killed_node(rig, gravity):
    carry(rig)
    watchdog = watchdog_of(rig)
    lead_away(rig, gravity)
    rig.kill()

    def starve():  # it gets a tenth of the time, whatever else the machine does
        os.kill(watchdog, signal.SIGSTOP)
        rig.spin(0.09)
        os.kill(watchdog, signal.SIGCONT)
        rig.spin(0.01)

    try:
        rig.until(lambda: rig.record[-1][-1] == WATCHDOG_LABEL, starve)
        for _ in range(30):
            starve()
    except ProcessLookupError:  # it has ended
        pass
    rig.until(lambda: not is_running(watchdog), patience=30.0)
    assert ends_with(rig, gravity)


@pytest.mark.parametrize(
    'number',
    [
        case(
            'node stopped, and its watchdog while that commands',
            'The node kills the watchdog after a second, and continues from its last command.',
            signal.SIGSTOP,
        ),
        case('node stopped, and its watchdog killed', 'The node continues.', signal.SIGKILL),
    ],
)
def test_node_goes_on_where_its_watchdog_does_not_return_the_commands(rig, gravity, number):
    carry(rig)
    watchdog = watchdog_of(rig)
    lead_away(rig, gravity)
    rig.pause()
    rig.until(lambda: rig.record[-1][-1] == WATCHDOG_LABEL)
    os.kill(watchdog, number)
    rig.spin(0.5)
    before = len(rig.record)
    rig.go_on()
    rig.until(lambda: 'the watchdog commanded meanwhile' in rig.log)
    rig.until_commanded()
    assert rig.record[-1][-1] != WATCHDOG_LABEL
    rig.until(lambda: rig.report.get('watchdog') == 'ended')
    # On waking the node may send one old command.
    last = rig.record[before - 1][1]
    rig.record = [
        entry
        for i, entry in enumerate(rig.record)
        if i != before or np.abs(entry[1] - last).max() < 1e-6
    ]
    assert rig.end() == 0
    assert ends_with(rig, gravity)


# --- what is printed ---------------------------------------------------------------------------


@fault(
    'output that is not read for seconds, as in a terminal on hold',
    'The watchdog brakes and compensates gravity meanwhile.',
)
def test_node_whose_output_is_blocked_is_stood_in_for(rig, gravity):
    listen_to_commands_only(rig)
    rig.output = subprocess.PIPE
    rig.launch_patched(
        'from robodyn_ros.control import command_pipeline\n'
        'from rclpy.logging import get_logger\n'
        'watchdog = command_pipeline.CommandPipeline.watchdog\n'
        'def chatting(pipeline, now):\n'
        # Only once commanded: the watchdog stands in for nobody who has not begun.
        '    if pipeline.last_torque is not None:\n'
        "        get_logger('chat').info(1000 * 'x')\n"
        '    return watchdog(pipeline, now)\n'
        'command_pipeline.CommandPipeline.watchdog = chatting\n',
        mode='computed_torque',
    )
    rig.driver(rate=100.0)
    rig.until(lambda: rig.record and rig.record[-1][-1] == WATCHDOG_LABEL)
    rig.spin(2.0)
    assert rig.record[-1][-1] == WATCHDOG_LABEL
    assert ends_with(rig, gravity)
    reader = threading.Thread(target=rig.process.stdout.read, daemon=True)
    reader.start()
    rig.until_commanded(100)
    rig.until(lambda: rig.record[-1][-1] != WATCHDOG_LABEL)
    rig.process.send_signal(signal.SIGINT)
    assert rig.process.wait(30.0) == 0
