# SPDX-License-Identifier: Apache-2.0
"""Samples are read as they were written, in order, and none that is half there."""

import multiprocessing

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.ros.services import motion_history
from robodyn_ros.ros.services.motion_history import MotionHistory

N = 3


def written(history, times, n=N, received=100.0):
    """Write a sample for each time, whose numbers are known from it."""
    for time in times:
        history.write(time, received + time, *(np.arange(n) + each for each in sample(time)))


def sample(time):
    return time, 10.0 * time, -time


def filled(times, n=N):
    history = MotionHistory()
    history.begin(n)
    written(history, times, n)
    return history


def test_the_last_seconds_are_read_as_they_were_written():
    motion = filled(np.arange(100, 600) / 100).read(N, 2.005)
    np.testing.assert_allclose(motion.time, np.arange(399, 600) / 100)
    assert motion.received == pytest.approx(105.99)
    for values, each in zip(motion[2:], sample(motion.time)):
        np.testing.assert_allclose(values, each[:, None] + np.arange(N))


def test_nothing_is_read_before_the_first_sample_and_of_the_time_before():
    history = MotionHistory()
    assert history.read(N, 1.0) is None
    history.begin(N)
    written(history, [1.0, 2.0])
    assert history.read(N, 5.0, since=102.0) is None
    assert len(history.read(N, 5.0, since=101.5).time) == 1


def test_an_arm_with_other_joints_is_not_read_into_this_one():
    history = filled([1.0, 1.1, 1.2], n=5)
    assert history.read(N, 9.0) is None
    history.begin(N)
    written(history, [2.0, 2.1], received=200.0)
    np.testing.assert_allclose(history.read(N, 9.0).time, [2.0, 2.1])


def test_the_ring_keeps_the_newest(monkeypatch):
    monkeypatch.setattr(motion_history, '_SIZE', 10 * (8 + 8 * (2 + 3 * N)) + 3)
    motion = filled(np.arange(1.0, 3.0, 0.1)).read(N, 60.0)
    np.testing.assert_allclose(motion.time, np.arange(2.0, 2.95, 0.1))


def test_an_arm_too_large_for_the_memory_is_left_out(monkeypatch):
    monkeypatch.setattr(motion_history, '_SIZE', 64)
    assert filled([1.0]).read(N, 1.0) is None


def test_a_sample_that_is_half_written_is_left_out():
    history = filled([1.0, 1.1, 1.2])
    stride = 8 + 8 * (2 + 3 * N)
    history._memory[stride + 40] ^= 1
    np.testing.assert_allclose(history.read(N, 9.0).time, [1.0, 1.2])


def test_a_clock_that_is_set_back_leaves_only_what_came_after_it():
    history = filled(np.arange(50.0, 60.0, 0.1))
    written(history, np.arange(1.0, 2.0, 0.1), received=300.0)
    motion = history.read(N, 60.0)
    assert motion.time[-1] == pytest.approx(1.9)
    assert (motion.time <= 1.9 + 1e-9).all()
    assert len(motion.time) == 10


def test_samples_of_a_quick_driver_are_averaged():
    time = np.arange(1.0, 3.0, 0.0005)
    motion = filled(time).read(N, 10.0)
    assert len(motion.time) == pytest.approx(2.0 * 250.0, abs=2)
    # All alike, so that they still belong together.
    np.testing.assert_allclose(motion.position[:, 0], motion.time)
    np.testing.assert_allclose(motion.effort[:, 1], 1.0 - motion.time)


def test_another_process_reads_what_is_written_after_the_fork():
    history = MotionHistory()
    history.begin(N)
    context = multiprocessing.get_context('fork')
    begin, ours = context.Event(), context.Queue()

    def read():
        begin.wait(10.0)
        ours.put(history.read(N, 10.0).time.tolist())

    child = context.Process(target=read)
    child.start()
    written(history, [1.0, 1.5])
    begin.set()
    assert ours.get(timeout=10.0) == [1.0, 1.5]
    child.join()
