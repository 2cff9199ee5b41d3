# SPDX-License-Identifier: Apache-2.0
"""Example 2 of Angeles, Ma and Rojas 1989: the six-axis arm's hand along a straight line."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from paper_arms import SIX_AXIS

import robodyn_ros as rd

SCRIPT = Path(__file__).resolve().parents[2] / 'examples' / 'six_axis_path.py'
TIMES = np.linspace(0, 1, 101)


@pytest.fixture(scope='module')
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope='module')
def states(script):
    return script['trajectory'](SIX_AXIS.model(), TIMES)


def test_printed_angles_reach_the_line_with_digits_of_theta4_exchanged():
    # The print: (1.33, 0, 1.80) m; its table, with d = -b: 10 mm off with 93.6, half a metre with
    # 39.6 degrees. The frames are the paper's, multiplied out in test/support/paper_arms.py.
    def hand(theta4):
        return SIX_AXIS.frames(np.radians([0, 68.5, -135, theta4, 90, 90]))[-1][:3, 3]

    np.testing.assert_allclose(hand(93.6), [1.324, 0, 1.792], atol=5e-4)
    np.testing.assert_allclose(hand(93.6), [1.33, 0, 1.80], atol=9e-3)
    assert hand(39.6)[2] == pytest.approx(1.238, abs=5e-4)


def test_path_begins_where_the_printed_angles_round_to(states):
    begin = np.degrees(states[0][0])
    np.testing.assert_allclose(begin, [0, 68.9, -134.6, 92.8, 90, 90], atol=0.05)
    np.testing.assert_allclose(begin, [0, 68.5, -135, 93.6, 90, 90], atol=0.9)


def test_hand_stays_on_the_line_and_does_not_turn(states):
    poses = rd.forward_kinematics(SIX_AXIS.model(), states[0])
    np.testing.assert_allclose(poses[:, 0, 3], 1.33, atol=1e-12)
    np.testing.assert_allclose(poses[:, 2, 3], 1.80, atol=1e-12)
    np.testing.assert_allclose(
        poses[:, :3, :3], np.tile(poses[0, :3, :3], (101, 1, 1)), atol=1e-12
    )
    assert poses[0, 1, 3] == pytest.approx(0, abs=1e-12)
    assert (np.diff(poses[:, 1, 3]) > 0).all()


def test_motion_begins_and_ends_at_rest(states):
    q, qd, qdd = states
    for x in (qd, qdd):
        np.testing.assert_allclose(x[[0, -1]], 0, atol=1e-9)
    np.testing.assert_allclose(np.gradient(q, 0.01, axis=0)[1:-1], qd[1:-1], atol=3e-3)
    np.testing.assert_allclose(np.gradient(qd, 0.01, axis=0)[1:-1], qdd[1:-1], atol=2e-2)


@pytest.mark.longer
def test_script_draws_its_figure(script, tmp_path, capsys):
    script['main'](tmp_path / 'path.png')
    assert (tmp_path / 'path.png').read_bytes().startswith(b'\x89PNG')
    assert '0.0, 68.9, -134.6, 92.8, 90.0, 90.0 deg' in capsys.readouterr().out
