# SPDX-License-Identifier: Apache-2.0
"""What another process writes is read whole, or not at all, and nobody waits."""

import mmap
import os
import time
from itertools import product

import numpy as np

from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.ros import shared_memory
from robodyn_ros.ros.shared_memory import (
    Cycles,
    SharedMemory,
    SharedObject,
    SharedRecord,
    SharedRing,
)

N = 3

# --- rows --------------------------------------------------------------------------------------


def test_last_record_is_read_once_with_its_number_and_one_too_long_is_refused():
    record = SharedRecord(16)
    assert record.read() is None
    for number, data in enumerate((b'first', b'second, longer', b'3'), start=1):
        assert record.write(data)
        assert not record.write(b'x' * 100)
        assert record.read() == record.read(after=number - 1) == (number, data)
        assert record.read(after=number) is None


def test_ring_keeps_the_newest_rows_in_order_and_begins_anew_with_another_length():
    ring = SharedRing(10 * 32)
    for size, count in ((16, 25), (8, 1)):
        assert ring.read() is None and ring.read_all() == []
        ring.begin(size)
        rows = [bytes([k]) * size for k in range(count)]
        assert all(map(ring.write, rows))
        assert ring.read()[1] == rows[-1] and ring.read_all() == rows[-10:]
        ring.begin(1000)  # too long for the memory
        assert not ring.write(b'x' * 1000)


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


def test_state_and_the_last_command_are_read_as_they_were_written():
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
    cycles.sent(100.03, np.full(N, 5.0), np.full(N, 0.5))  # no second measurement
    cycles.received(state(3), 100.04)
    cycles.write()
    last = cycles.last()
    assert (last.received, last.sent) == (100.04, 100.03) and (last.torque == 5.0).all()
    assert cycles.states().received.tolist() == [100.0, 100.01, 100.04]
    assert (cycles.states().position[:, 0] == [1.0, 2.0, 3.0]).all()
    cycles.begin(200)  # another arm
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


def test_memory_that_is_not_written_costs_nothing():
    resident = int(open('/proc/self/statm').read().split()[1])
    memories = [SharedMemory() for _ in range(3)]
    grown = int(open('/proc/self/statm').read().split()[1]) - resident
    assert grown * mmap.PAGESIZE < 2**20 and len(memories) == 3
