# SPDX-License-Identifier: Apache-2.0
"""What another process writes is read whole, or not at all, and nobody waits."""

import mmap
import os
import time
from itertools import product

import numpy as np
import pytest

from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.ros import shared_memory
from robodyn_ros.ros.shared_memory import (
    Cycles,
    SharedMemory,
    SharedObject,
    SharedRecord,
    SharedRing,
    WatchdogCheck,
)

N = 3

# --- rows --------------------------------------------------------------------------------------


def test_last_record_is_read_with_its_number():
    record = SharedRecord(100)
    assert record.read() is None
    assert record.write(b'first') and record.write(b'second, longer')
    assert record.read() == (2, b'second, longer')
    assert record.write(b'3')
    assert record.read() == (3, b'3')


def test_ring_that_has_not_begun_has_no_rows():
    ring = SharedRing(1000)
    assert ring.read() is None and ring.read_all() == [] and not ring.write(b'')


def test_record_that_was_read_before_is_not_read_again():
    record = SharedRecord(100)
    record.write(b'first')
    assert record.read(after=0) == (1, b'first')
    assert record.read(after=1) is None


def test_record_that_is_too_long_is_refused_and_the_one_before_stays():
    record = SharedRecord(16)
    record.write(b'short')
    assert not record.write(b'x' * 100)
    assert record.read() == (1, b'short')


def test_ring_keeps_the_newest_rows_in_order():
    ring = SharedRing(10 * 32)
    ring.begin(16)
    for k in range(25):
        assert ring.write(b'%16d' % k)
    assert ring.read() == (25, b'%16d' % 24)
    assert ring.read_all() == [b'%16d' % k for k in range(15, 25)]


def test_rows_of_another_length_begin_anew():
    ring = SharedRing(1000)
    ring.begin(100)
    ring.write(b'x' * 100)
    ring.begin(8)
    assert ring.read() is None and ring.read_all() == []
    ring.write(b'y' * 8)
    assert ring.read_all() == [b'y' * 8]


def test_row_longer_than_the_memory_is_refused():
    ring = SharedRing(64)
    ring.begin(100)
    assert not ring.write(b'x' * 100)
    assert ring.read() is None and ring.read_all() == []


class Interrupted:
    """Memory of which some bytes of a write never become visible, or not yet."""

    def __init__(self, memory, kept):
        self.memory, self.kept = memory, kept

    def __setitem__(self, where, data):
        before = self.memory[where]
        self.memory[where] = bytes(
            data[i] if i in self.kept else before[i] for i in range(len(data))
        )

    def __getitem__(self, where):
        return self.memory[where]


WHOLE = range(16 + 10)  # head and data of a row that holds ten bytes


def test_row_of_which_a_part_is_visible_is_not_read():
    for case in product(range(1, 26), [True, False], [True, False]):
        boundary, is_early, is_number_visible = case
        record = SharedRecord(100)
        for data in (b'the first!', b'the second', b'the third!'):
            record.write(data)
        memory = record._memory
        record._memory = Interrupted(memory, WHOLE[:boundary] if is_early else WHOLE[boundary:])
        record.write(b'the fourth')
        record._memory = memory
        if not is_number_visible:  # the writer was killed before, or the processor reorders
            record._head[shared_memory._NEWEST] = 3
        assert record.read() == (3, b'the third!'), case


def test_reader_meets_whole_records_only_while_another_process_writes():
    record, count = SharedRecord(4000), 0
    child = os.fork()
    if child == 0:
        try:
            number = 0
            while number < 100_000:
                number += 1
                record.write(bytes([number % 251]) * (number % 3999 + 1))
        finally:
            os._exit(0)
    last, deadline = 0, time.monotonic() + 60.0
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        assert time.monotonic() < deadline
        found = record.read()
        if found is not None:
            number, data = found
            assert number >= last
            assert data == bytes([number % 251]) * (number % 3999 + 1)
            last, count = number, count + 1
    assert count > 100 and record.read()[0] == 100_000


def test_object_is_unpickled_once_and_none_replaces_one_that_is_too_large():
    shared = SharedObject(1000)
    assert shared.value is None
    shared.set({'mass': 1.8})
    assert shared.value == {'mass': 1.8} and shared.value is shared.value
    shared.set(bytes(2000))
    assert shared.value is None


# --- control cycles ----------------------------------------------------------------------------


def state(k, effort=True):
    position = np.arange(N) + float(k)
    return MeasuredState(position, -position, 0.01 * k, True, 2.0 * position if effort else None)


def test_state_and_command_are_read_as_they_were_written():
    cycles = Cycles()
    cycles.begin(N)
    assert cycles.last() is None and cycles.states() is None
    cycles.received(state(1), 100.0)
    cycles.write()
    last = cycles.last()
    assert last.received == 100.0 and np.isnan(last.sent) and np.isnan(last.torque).all()
    assert (last.velocity == [-1.0, -2.0, -3.0]).all() and (last.effort == [2.0, 4.0, 6.0]).all()
    cycles.received(state(2, effort=False), 100.01)
    cycles.sent(100.02, np.full(N, 5.0), np.full(N, 0.5))
    last = cycles.last()
    assert (last.time, last.received, last.sent) == (0.02, 100.01, 100.02)
    assert np.isnan(last.effort).all() and (last.torque == 5.0).all()
    assert (last.commanded_at == 0.5).all()


def test_state_without_a_command_leaves_the_last_one_to_the_watchdog():
    cycles = Cycles()
    cycles.begin(N)
    cycles.received(state(1), 100.0)
    cycles.sent(100.1, np.full(N, 5.0), np.full(N, 0.5))
    cycles.received(state(2), 100.2)
    cycles.write()
    last = cycles.last()
    assert last.received == 100.2 and last.sent == 100.1 and (last.torque == 5.0).all()


def test_command_without_a_state_is_no_second_measurement():
    cycles = Cycles()
    cycles.begin(N)
    for k in range(3):
        cycles.received(state(k), 100.0 + k)
        cycles.sent(100.1 + k, np.zeros(N), np.zeros(N))
        cycles.sent(100.2 + k, np.zeros(N), np.zeros(N))
    states = cycles.states()
    assert states.received.tolist() == [100.0, 101.0, 102.0]
    assert (states.position[:, 0] == [0.0, 1.0, 2.0]).all()


@pytest.mark.parametrize('n', [1, 200, 3000])
def test_arm_of_any_size_is_read(n):
    cycles = Cycles()
    cycles.begin(n)
    position = np.arange(n, dtype=float)
    cycles.received(MeasuredState(position, -position, 1.0, True, None), 2.0)
    cycles.write()
    assert cycles.last().velocity[-1] == 1 - n


def test_another_arm_begins_anew():
    cycles = Cycles()
    cycles.begin(N)
    cycles.received(state(1), 100.0)
    cycles.write()
    cycles.begin(5)
    assert cycles.last() is None and cycles.states() is None


# --- takeovers ---------------------------------------------------------------------------------


def test_commands_are_taken_until_the_watchdog_says_that_it_is_over():
    shared = SharedMemory()
    assert not shared.is_taken and shared.last_of_watchdog is None
    shared.take()
    assert shared.is_taken and shared.takeovers == 1 and not shared.is_wanted_back
    shared.stand_in(12.0, np.array([1.0, 2.0]))
    assert shared.is_taken
    shared.want_back()
    assert shared.is_wanted_back
    shared.stand_in(13.0, np.array([3.0, 4.0]), is_over=True)
    assert not shared.is_taken
    now, torque = shared.last_of_watchdog
    assert now == 13.0 and torque.tolist() == [3.0, 4.0]
    shared.take()
    assert shared.is_taken and not shared.is_wanted_back


def test_look_and_heartbeat_reach_the_other_side():
    shared = SharedMemory()
    assert shared.last_check == WatchdogCheck(-np.inf, 0.0)
    assert shared.heartbeat == (-np.inf, False)
    shared.record_check(WatchdogCheck(12.0, 0.25))
    shared.beat(11.0, True)
    assert shared.last_check == WatchdogCheck(12.0, 0.25) and shared.heartbeat == (11.0, True)


def test_memory_that_is_not_written_costs_nothing():
    resident = int(open('/proc/self/statm').read().split()[1])
    memories = [SharedMemory() for _ in range(3)]
    grown = int(open('/proc/self/statm').read().split()[1]) - resident
    assert grown * mmap.PAGESIZE < 2**20 and len(memories) == 3
