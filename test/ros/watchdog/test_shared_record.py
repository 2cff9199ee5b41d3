# SPDX-License-Identifier: Apache-2.0
"""A record that another process writes is whole, or it is the one before."""

import os
import time

import pytest

from robodyn_ros.ros.watchdog.shared_record import SharedRecord


def test_last_record_is_read_with_its_number():
    record = SharedRecord(100)
    assert record.read() is None
    assert record.write(b'first') and record.write(b'second, longer')
    assert record.read() == (2, b'second, longer')
    assert record.write(b'3')
    assert record.read() == (3, b'3')


def test_record_that_was_read_before_is_not_read_again():
    record = SharedRecord(100)
    record.write(b'first')
    assert record.read(after=0) == (1, b'first')
    assert record.read(after=1) is None


def test_record_that_is_too_long_is_refused_and_the_one_before_stays():
    record = SharedRecord(10)
    record.write(b'short')
    assert not record.write(b'x' * 11)
    assert record.read() == (1, b'short')


@pytest.mark.parametrize('broken', range(24))
def test_writer_that_dies_in_a_record_leaves_the_one_before(broken):
    record = SharedRecord(100)
    for data in (b'the first', b'the second', b'the third'):
        record.write(data)
    # The fourth is written over the second, byte by byte, and ends after some of them.
    other = SharedRecord(100)
    other._number = 3
    other.write(b'the fourth')
    record._memory[:broken] = other._memory[:broken]
    assert record.read() == (3, b'the third')


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
