# SPDX-License-Identifier: Apache-2.0
"""Whom the watchdog's process comes before."""

import os

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.ros.watchdog import _raise_priority

pytestmark = pytest.mark.ros

HIGHEST = os.sched_get_priority_max(os.SCHED_FIFO)


def scheduling_after(policy: int, priority: int) -> tuple[int, int]:
    """Return policy and priority that a process of these has as the watchdog."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os.sched_setscheduler(0, policy, os.sched_param(priority))
            _raise_priority()
            found = f'{os.sched_getscheduler(0)} {os.sched_getparam(0).sched_priority}'
            os.write(writer, found.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        found = pipe.read().split()
    if not found:
        pytest.skip('this user may not have a real-time priority')
    return int(found[0]), int(found[1])


def test_watchdog_of_an_ordinary_node_comes_before_all_that_is_not_real_time():
    assert scheduling_after(os.SCHED_OTHER, 0) == (os.SCHED_FIFO, 1)


def test_watchdog_of_a_real_time_node_comes_before_it():
    assert scheduling_after(os.SCHED_RR, 40) == (os.SCHED_RR, 41)
    assert scheduling_after(os.SCHED_FIFO, HIGHEST) == (os.SCHED_FIFO, HIGHEST)


def test_watchdog_that_may_not_stays_as_it_is(monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(os, 'sched_setscheduler', refuse)
    monkeypatch.setattr(os, 'nice', refuse)
    _raise_priority()
