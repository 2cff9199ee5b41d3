# SPDX-License-Identifier: Apache-2.0
"""Every signal that would end the process stops it in order, but for crashes."""

import os
import signal
import subprocess
import sys

import pytest

from robodyn_ros.ros.signals import (
    STOP_SIGNALS,
    StopRequested,
    StopSignal,
    leave_stop_signals_to_the_node,
)


@pytest.fixture(autouse=True)
def handlers():
    """Put every handler back."""
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    yield
    while signal.sigtimedwait(STOP_SIGNALS, 0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) != handler:
            signal.signal(number, handler)


def ends_a_process(number):
    """Return whether a process that does nothing about a signal ends by it, without a core."""
    pid = os.fork()
    if pid == 0:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        os._exit(0)
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return False
    return os.WIFSIGNALED(status)


def test_stop_signals_are_those_that_end_a_process_but_for_crashes():
    fatal = {
        number
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
        if ends_a_process(number)
    }
    crashes = {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGABRT,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
    ignored_by_python = {signal.SIGPIPE, signal.SIGXFSZ}
    assert fatal - crashes - ignored_by_python == set(STOP_SIGNALS)


@pytest.mark.parametrize('number', sorted(STOP_SIGNALS))
def test_each_stop_signal_is_remembered(number):
    stop_signal = StopSignal()
    assert not stop_signal.has_come
    signal.raise_signal(number)
    assert stop_signal.has_come


def test_every_stop_signal_at_once_is_taken_on_the_smallest_stack():
    # What the events executor of rclpy does to the main thread's stack for signals.
    storm = (
        'import faulthandler, os, signal\n'
        'from robodyn_ros.ros.signals import STOP_SIGNALS, StopSignal\n'
        'stop_signal = StopSignal()\n'
        'faulthandler.enable()\n'
        'if os.fork() == 0:\n'
        '    os.kill(os.getppid(), signal.SIGSTOP)\n'
        '    for number in STOP_SIGNALS:\n'
        '        os.kill(os.getppid(), number)\n'
        '    os.kill(os.getppid(), signal.SIGCONT)\n'
        '    os._exit(0)\n'
        'os.wait()\n'
        'assert stop_signal.has_come\n'
    )
    assert subprocess.run([sys.executable, '-c', storm], timeout=60.0).returncode == 0


def test_what_is_started_meanwhile_can_be_ended():
    stop_signal = StopSignal()
    with stop_signal.may_interrupt():
        child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
    child.terminate()
    assert child.wait(30.0) == -signal.SIGTERM


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_signal_that_a_script_left_ignored_is_taken(number):
    signal.signal(number, signal.SIG_IGN)
    stop_signal = StopSignal()
    signal.raise_signal(number)
    assert stop_signal.has_come


def test_hangup_stays_ignored_under_nohup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop_signal = StopSignal()
    signal.raise_signal(signal.SIGHUP)
    assert not stop_signal.has_come


def test_what_may_take_long_is_interrupted_and_tidied_up():
    stop_signal, tidied = StopSignal(), []
    with pytest.raises(StopRequested):
        with stop_signal.may_interrupt():
            try:
                signal.raise_signal(signal.SIGTERM)
                raise AssertionError('it went on')
            finally:
                signal.raise_signal(signal.SIGINT)  # it must not interrupt this
                tidied.append(True)
    assert tidied == [True] and stop_signal.has_come


def test_what_may_take_long_does_not_begin_after_a_signal():
    stop_signal = StopSignal()
    signal.raise_signal(signal.SIGTERM)
    with pytest.raises(StopRequested):
        with stop_signal.may_interrupt():
            raise AssertionError('it began')


def test_nothing_else_is_interrupted():
    stop_signal = StopSignal()
    with stop_signal.may_interrupt():
        pass
    signal.raise_signal(signal.SIGTERM)
    assert stop_signal.has_come


@pytest.mark.parametrize('number', [*sorted(STOP_SIGNALS), signal.SIGTSTP])
def test_forked_process_goes_on_after_a_signal_to_the_group(number):
    pid = os.fork()
    if pid == 0:
        StopSignal()
        leave_stop_signals_to_the_node(even_stops=True)
        os.kill(os.getpid(), number)
        os._exit(7)
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7
