# SPDX-License-Identifier: Apache-2.0
"""
Every output of ``retime`` keeps its limits between its points, and is as fast as others are.

Judged by polynomials of the tests, Pinocchio, toppra and Ruckig: ``support/timing_oracle.py``.
``benchmarks/timing_promises.py`` prints the figures.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.interpolate import BPoly
from timing_oracle import (
    FILES,
    OUTPUTS,
    ROUNDING,
    Sent,
    between,
    by_ruckig,
    by_toppra,
    cases,
    largest_jerk,
    passed_on,
    sent,
    shares,
)

import robodyn_ros as rd

PATHS = 20  # of each arm
PLACES = 200  # between two points, whose smooth torque is known there to a few millionths
# Toppra has the torque limits of one instant and one grid; with friction it stands for the sign.
LONGEST = {'wrist': 1.01, 'bare': 1.01, 'rough': 1.1}  # in parts of toppra's time
NEAREST = 5e-3  # of a limit, to which the fastest motion comes


@pytest.fixture(scope='module')
def case_of(tmp_path_factory):
    """Return what returns a path of an arm by its number."""
    folder = tmp_path_factory.mktemp('arms')
    return lambda name, k: next(islice(cases(name, PATHS, folder), k, None))


@pytest.mark.repeats(check=3, test=3)
@pytest.mark.parametrize(
    ('name', 'k'), [(name, k) for k in range(PATHS) for name in FILES], ids='{0}'.format
)
def test_every_output_keeps_every_limit_between_its_points(case_of, name, k, tmp_path):
    case = case_of(name, k)
    shortest = by_toppra(case)
    for output in OUTPUTS:
        points = sent(case, output, tmp_path)
        used = shares(case, points, PLACES)
        if output == 'message':  # feedforward has no limit of acceleration
            del used['acceleration']
        for limit in set(used) - {'error'}:
            assert used[limit] <= 1.0 + ROUNDING, (output, limit)
        highest = max(used[limit] for limit in {'velocity', 'acceleration', 'torque'} & set(used))
        assert highest > 1.0 - NEAREST, output
        is_like = output != 'message' or name != 'wrist'
        if is_like and output != 'coarse' and shortest is not None:
            assert points.time[-1] - points.time[0] <= LONGEST[name] * shortest, output


@pytest.mark.parametrize(
    'options',
    [
        ('--corners', 'stop'),
        ('--corners', 'blend', '--tolerance', 0.02),
        ('--jerk-limit', 500.0),
        ('--margin', 0.2),
    ],
    ids=lambda options: options[0],
)
@pytest.mark.repeats(check=1, test=4)
@pytest.mark.parametrize('name', FILES)
def test_other_ways_keep_every_limit_between_their_points(case_of, name, options, tmp_path):
    case = case_of(name, 2)
    part = 1.0 - options[1] if options[0] == '--margin' else 1.0
    for output in ('yaml', 'csv'):
        points = sent(case, output, tmp_path, *options)
        used = shares(case, points, PLACES)
        used['torque'] /= part
        for limit in set(used) - {'error', 'effort'}:
            assert used[limit] <= 1.0 + ROUNDING, (output, limit)
        if options[0] == '--jerk-limit':
            assert largest_jerk(points).max() <= options[1] * (1.0 + ROUNDING), output


@pytest.mark.repeats(check=2, test=4)
@pytest.mark.parametrize('fields', [2, 3], ids=['cubics', 'quintics'])
@pytest.mark.parametrize(
    ('name', 'k'),
    [(name, k) for k in range(PATHS) for name in ('bare', 'rough')],
    ids='{0}'.format,
)
def test_feedforward_passes_on_what_torque_carries_between_points(case_of, name, k, fields):
    case = case_of(name, k)
    rest = 0.0 * case.points
    count = np.arange(len(case.points))

    def share(step):
        points = Sent(step * count, case.points, rest, rest if fields == 3 else None, None)
        return shares(case, points, PLACES)['torque']

    low, high = 0.02, 50.0  # of the least time between points that torque carries
    while high / low > 1.0 + 1e-5:
        middle = np.sqrt(low * high)
        low, high = (middle, high) if share(middle) > 1.0 else (low, middle)
    used = shares(case, passed_on(case, 1.01 * high, fields), PLACES)
    assert used['torque'] <= 1.0 + ROUNDING and used['effort'] <= 1.0
    assert used['error'] <= 1.1e-3  # of error_fraction at eight places of a line
    with pytest.raises(rd.RobodynError, match='torque at'):
        passed_on(case, 0.98 * high, fields)


def test_goal_is_as_fast_as_ruckig_where_accelerations_bind(case_of):
    case = case_of('wrist', 1)
    ends = case.points[[0, -1]]
    motion = rd.retime(case.model, ends, corners='goal', acceleration_limits=case.acceleration)
    assert motion.duration == pytest.approx(by_ruckig(case), rel=1e-3)


# --- the oracle itself ---------------------------------------------------------------------------


def test_polynomials_of_the_oracle_are_those_of_scipy():
    generator = np.random.default_rng(0)
    time = np.cumsum(generator.uniform(0.1, 2.0, 4))
    rows = generator.normal(size=(3, 4, 2))
    for known in (2, 3):
        points = Sent(time, rows[0], rows[1], rows[2] if known == 3 else None, None)
        found = between(points, 5)
        for j in range(2):
            path = BPoly.from_derivatives(time, rows[:known, :, j].T)
            for k in range(3):
                # Just inside: the third derivative is of either side at a knot.
                s = np.linspace(0.0, 1.0, 5)
                inside = time[k] + np.clip(s, 1e-9, 1.0 - 1e-9) * (time[k + 1] - time[k])
                for order in range(4):
                    np.testing.assert_allclose(
                        found[order][k, :, j], path(inside, order), rtol=1e-6, atol=1e-5
                    )


def test_oracle_finds_what_lies_between_two_points(case_of):
    # From rest to rest along one cubic: 1.5 times the mean speed, 6 times way over time squared.
    case = case_of('wrist', 0)
    way, duration = 2.0, 1.0
    q = np.zeros((2, 6))
    q[1, 5] = way
    points = Sent(np.array([0.0, duration]), q, 0.0 * q, None, None)
    used = shares(case, points, 101)
    assert used['velocity'] == pytest.approx(1.5 * way / duration / 2.0)
    assert used['acceleration'] == pytest.approx(6.0 * way / duration**2 / 5.0)
    q[1, 5] = case.position[5, 1] + 0.25
    assert shares(case, points, 101)['position'] == pytest.approx(1.25)
