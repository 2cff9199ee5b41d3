# SPDX-License-Identifier: Apache-2.0
"""Torques that a node commands, brought together with the states that caused them."""

from __future__ import annotations

import numpy as np
import pytest

from robodyn_ros.monitoring.motions import CommandedEfforts


@pytest.fixture
def efforts():
    return CommandedEfforts(most=100)


def give(efforts, states=(), torques=()):
    """Take states and torques whose numbers are their stamps; return the samples' stamps."""
    for stamp in states:
        efforts.take_state(stamp, np.array([stamp]), np.zeros(1))
    for stamp in torques:
        efforts.take_effort(stamp, np.array([stamp]))
    samples = list(efforts.samples())
    assert all(q == tau == stamp for stamp, q, _, tau in samples)
    return [stamp for stamp, *_ in samples]


def test_each_state_of_a_batch_has_its_own_torque(efforts):
    assert give(efforts, (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)) == [1.0, 2.0, 3.0]
    assert give(efforts) == []


def test_one_waits_for_the_other(efforts):
    assert give(efforts, (1.0, 2.0)) == []
    assert give(efforts, (), (1.0,)) == [1.0]
    assert give(efforts, (), (2.0, 3.0)) == [2.0]
    assert give(efforts, (3.0,)) == [3.0]


def test_a_state_or_a_torque_that_has_no_other_half_is_left_out(efforts):
    assert give(efforts, (1.0, 3.0), (2.0, 3.0)) == [3.0]


def test_a_clock_that_goes_back_begins_anew(efforts):
    assert give(efforts, (10.0, 11.0), (10.0,)) == [10.0]
    assert give(efforts, (), (1.0,)) == []
    assert give(efforts, (2.0,), (2.0,)) == [2.0]


def test_what_waits_is_bounded(efforts):
    assert give(efforts, np.arange(1000.0)) == []
    assert give(efforts, (), np.arange(1000.0)) == list(np.arange(900.0, 1000.0))
