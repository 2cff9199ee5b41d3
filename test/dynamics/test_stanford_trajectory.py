# SPDX-License-Identifier: Apache-2.0
"""The Stanford arm of Angeles, Ma and Rojas 1989 along its ten seconds of motion."""

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from paper_arms import STANFORD

import robodyn_ros as rd
from robodyn_ros.spatial import parameters_of_pseudo_inertia

SCRIPT = Path(__file__).resolve().parents[2] / 'examples' / 'stanford_torques.py'


@pytest.fixture(scope='module')
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope='module')
def states(script):
    return script['trajectory'](np.linspace(0, 10, 1001))


def test_trajectory_is_the_papers(states):
    q, qd, qdd = states
    np.testing.assert_allclose(q[0], [0, np.pi / 2, 0, 0, 0, 0], atol=1e-15)
    travel = np.array([np.pi / 3, -np.pi / 6, -0.1, np.pi / 3, np.pi / 3, np.pi / 3])
    np.testing.assert_allclose(q[-1] - q[0], travel, atol=1e-12)
    np.testing.assert_allclose(qd[[0, -1]], 0, atol=1e-12)
    np.testing.assert_allclose(np.gradient(q, 0.01, axis=0)[1:-1], qd[1:-1], atol=1e-5)
    np.testing.assert_allclose(np.gradient(qd, 0.01, axis=0)[1:-1], qdd[1:-1], atol=1e-5)


def test_arm_at_rest_holds_its_outer_links(states):
    # Before the start the boom is level: what lies beyond joint 2 hangs on it, in closed form.
    arm = STANFORD.model()
    torque = rd.inverse_dynamics(arm, *(x[0] for x in states), method='kane')
    moment = 1.0 * (0.6 + 0.1) + 0.6 * (0.6 + 0.06) + 0.5 * 0.6
    assert abs(torque[1]) == pytest.approx(9.81 * moment, rel=1e-12)
    assert torque[0] == pytest.approx(0, abs=1e-12)
    assert torque[2] == pytest.approx(0, abs=1e-12)


def arm_of_table_2(alpha):
    """Return the arm of the paper's own rows, frames and inertias, with angles alpha [deg]."""
    paper, arm = replace(STANFORD, alpha=tuple(alpha)), STANFORD.model()
    rows = dict(zip(('alpha', 'a', 'theta', 'd'), paper.modified_rows()))
    still = np.eye(4)
    table = replace(arm.dh, **rows, beta=np.zeros(6), base_transform=still, tip_transform=still)
    parameters = parameters_of_pseudo_inertia(np.array(paper.pseudo_inertias()))
    return replace(arm, dh=table, inertial_parameters=parameters)


# Joint; which torque its sign moves most by size, and by how much at most [N m].
@pytest.mark.parametrize('joint, most, moved', [(3, 5, 0.243), (5, 2, 0.706), (6, 1, 0.0005)])
def test_signs_of_alpha_that_the_scan_does_not_show(states, joint, most, moved):
    # Of Table 2 the scan keeps two of five 90s, and no sign. Mass centre 5 lies further along the
    # boom with +90 at joint 5; nothing tells the signs at joints 3 and 6.
    torque = rd.inverse_dynamics(STANFORD.model(), *states)
    np.testing.assert_allclose(
        rd.inverse_dynamics(arm_of_table_2(STANFORD.alpha), *states), torque, atol=1e-12
    )
    alpha = list(STANFORD.alpha)
    alpha[joint - 1] *= -1
    flipped = rd.inverse_dynamics(arm_of_table_2(alpha), *states)
    # A boom that points the other way reverses its torques: sizes are compared.
    difference = np.abs(np.abs(flipped) - np.abs(torque)).max(axis=0)
    assert difference.argmax() == most - 1
    assert difference.max() == pytest.approx(moved, rel=0.1)


@pytest.mark.longer
def test_script_draws_its_figure(script, tmp_path):
    script['main'](tmp_path / 'torques.png')
    assert (tmp_path / 'torques.png').read_bytes().startswith(b'\x89PNG')
