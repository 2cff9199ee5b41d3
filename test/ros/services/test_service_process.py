# SPDX-License-Identifier: Apache-2.0
"""What the commanding process answers to a change of payload or gravity, whatever goes wrong."""

import time
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.model import Payload
from robodyn_ros.ros.services.service_node import Change, Outcome
from robodyn_ros.ros.services.service_process import ServiceProcess

pytestmark = pytest.mark.ros


def answer(change, put_in_force):
    """Return the outcome that is sent back, and what was logged."""
    sent, logged = [], []
    process = object.__new__(ServiceProcess)  # without a fork
    process._send = sent.append
    process._put_in_force = put_in_force
    process._node = SimpleNamespace(get_logger=lambda: SimpleNamespace(error=logged.append))
    process._on_change(change)
    (outcome,) = sent
    return outcome, logged


def change(seconds_left=1.0):
    return Change(7, time.monotonic() + seconds_left, Payload(1.0))


def test_change_is_put_in_force_and_answered_with_its_number():
    outcome, logged = answer(change(), lambda asked: Outcome(asked.number, None, 'no robot'))
    assert outcome == Outcome(7, None, 'no robot')
    assert not logged


def test_change_that_was_given_up_is_not_put_in_force():
    def put_in_force(asked):
        raise AssertionError('must not be asked')

    outcome, logged = answer(change(seconds_left=-0.1), put_in_force)
    assert outcome.number == 7 and 'too long ago' in outcome.refusal
    assert not logged


def test_exception_is_logged_and_refused_and_ends_nothing():
    def put_in_force(asked):
        raise ZeroDivisionError('of all things')

    outcome, logged = answer(change(), put_in_force)
    assert outcome.number == 7 and outcome.load is None and outcome.refusal
    assert 'of all things' in logged[0]
