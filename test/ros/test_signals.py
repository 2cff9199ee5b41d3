# SPDX-License-Identifier: Apache-2.0
"""What shells, launch and systemd send stops the process in order."""

import os
import signal
import subprocess
import sys
from itertools import product

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
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_stop_signal_is_remembered_also_where_a_script_left_it_ignored():
    for case in product(STOP_SIGNALS, [signal.SIG_DFL, signal.SIG_IGN]):
        signal.signal(*case)
        stop_signal = StopSignal()
        assert not stop_signal.has_come, case
        signal.raise_signal(case[0])
        is_under_nohup = case == (signal.SIGHUP, signal.SIG_IGN)
        assert stop_signal.has_come is not is_under_nohup, case


def test_signals_that_a_library_took_are_taken_again():
    stop_signal = StopSignal()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    stop_signal.take()
    signal.raise_signal(signal.SIGINT)
    assert stop_signal.has_come


def test_all_of_them_at_once_are_taken():
    # The kernel puts the handlers of a process that goes on upon one another.
    storm = (
        'import os, signal\n'
        'from robodyn_ros.ros.signals import STOP_SIGNALS, StopSignal\n'
        'import rclpy\n'
        'from robodyn_ros.ros.rclpy_workarounds import fastest_executor\n'
        'rclpy.init()\n'
        'executor = fastest_executor()\n'
        'stop_signal = StopSignal()\n'
        'if os.fork() == 0:\n'
        '    os.kill(os.getppid(), signal.SIGSTOP)\n'
        '    for number in STOP_SIGNALS:\n'
        '        os.kill(os.getppid(), number)\n'
        '    os.kill(os.getppid(), signal.SIGCONT)\n'
        '    os._exit(0)\n'
        'os.wait()\n'
        'assert stop_signal.has_come\n'
    )
    pytest.importorskip('rclpy', reason='needs ROS 2')
    assert subprocess.run([sys.executable, '-c', storm], timeout=60.0).returncode == 0


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


def test_forked_process_goes_on_after_a_signal_to_the_group():
    for number in (*STOP_SIGNALS, signal.SIGTSTP):
        pid = os.fork()
        if pid == 0:
            StopSignal()
            leave_stop_signals_to_the_node(even_pauses=True)
            os.kill(os.getpid(), number)
            os._exit(7)
        _, status = os.waitpid(pid, os.WUNTRACED)
        assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 7, number
