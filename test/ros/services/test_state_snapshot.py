# SPDX-License-Identifier: Apache-2.0
"""A state is read as one that was written, or not at all."""

import multiprocessing
import time

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.ros.services import state_snapshot
from robodyn_ros.ros.services.state_snapshot import StateSnapshot

N = 7


def test_state_is_read_as_it_was_written():
    snapshot = StateSnapshot()
    position, velocity = np.linspace(-1.0, 1.0, N), np.full(N, np.nan)
    snapshot.write(position, velocity, 12.5)
    state = snapshot.read()
    assert np.array_equal(state.position, position)
    assert np.isnan(state.velocity).all() and state.velocity.shape == (N,)
    assert state.time == 12.5


def test_nothing_is_read_before_the_first_state_and_after_clearing():
    snapshot = StateSnapshot()
    assert snapshot.read() is None
    snapshot.write(np.ones(N), np.ones(N), 1.0)
    snapshot.clear()
    assert snapshot.read() is None


def test_arm_of_any_size_that_fits_is_read_and_one_that_does_not_is_left_out():
    snapshot = StateSnapshot()
    for n in (1, 200, 4095):
        snapshot.write(np.arange(n, dtype=float), -np.arange(n, dtype=float), 2.0)
        assert snapshot.read().velocity[-1] == 1 - n
    snapshot.write(np.ones(4096), np.ones(4096), 3.0)
    assert snapshot.read().time == 2.0


class Interrupted:
    """Memory of which only the first bytes of a write become visible, or all but the first."""

    def __init__(self, memory, visible):
        self.memory, self.visible = memory, visible

    def __setitem__(self, where, data):
        before = self.memory[where]
        kept = range(len(data))[self.visible]
        mixed = bytes(data[i] if i in kept else before[i] for i in range(len(data)))
        self.memory[where] = mixed

    def __getitem__(self, where):
        return self.memory[where]


@pytest.mark.parametrize('boundary', range(8, 128, 8))
@pytest.mark.parametrize('is_early', [True, False])
def test_state_of_which_a_part_is_visible_is_not_read(boundary, is_early, monkeypatch):
    monkeypatch.setattr(state_snapshot, '_ATTEMPTS', 2)
    snapshot = StateSnapshot()
    snapshot.write(np.full(N, 1.0), np.full(N, 2.0), 3.0)
    whole = snapshot._memory
    visible = slice(None, boundary) if is_early else slice(boundary, None)
    snapshot._memory = Interrupted(whole, visible)
    snapshot.write(np.full(N, 1.5), np.full(N, 2.5), 3.5)
    snapshot._memory = whole
    assert snapshot.read() is None
    snapshot.write(np.full(N, 1.5), np.full(N, 2.5), 3.5)
    assert snapshot.read().time == 3.5


def write_without_end(snapshot):
    k = 0.0
    while True:
        k += 1.0
        snapshot.write(np.full(N, k), np.full(N, -k), k)


def test_states_read_from_another_process_are_never_mixed():
    snapshot = StateSnapshot()
    writer = multiprocessing.get_context('fork').Process(
        target=write_without_end, args=(snapshot,), daemon=True
    )
    writer.start()
    seen, deadline = set(), time.monotonic() + 30.0
    while len(seen) < 1000:
        assert time.monotonic() < deadline
        state = snapshot.read()
        if state is not None:
            assert (state.position == state.time).all() and (state.velocity == -state.time).all()
            seen.add(state.time)
    writer.kill()
    writer.join()
