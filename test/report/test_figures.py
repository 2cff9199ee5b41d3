# SPDX-License-Identifier: Apache-2.0
"""Every figure that the package draws lies in its axes and on its paper, and warns of nothing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn_figures import examined_figures
from drawn_motions import motions
from robots import random_chain, two_link_urdf
from simulated_recordings import TrueArm

import robodyn_ros as rd
from robodyn_ros.control.model_torque import ReferenceTorque, RigidBodyTorque
from robodyn_ros.control.timed_motion import TimingLimits
from robodyn_ros.control.waypoints import Waypoints
from robodyn_ros.identification import (
    Box,
    CandidateError,
    DriveTerms,
    HalfSpace,
    examine_effort,
    excitation,
    identify,
)
from robodyn_ros.identification.exciting_motion import search
from robodyn_ros.monitoring.ageing import condition
from robodyn_ros.report import report_page
from robodyn_ros.report.effort_page import effort_page
from robodyn_ros.report.excitation_plot import save_excitation_plot
from robodyn_ros.report.identification_page import identification_page
from robodyn_ros.report.monitor_page import monitor_page
from robodyn_ros.report.retiming_plot import save_retiming_plot
from robodyn_ros.report.session_plot import Session, save_session_plot

# Beside those of this file: test_demo.py and test_identification_demo.py draw the demos' pictures.
EXAMINED = {
    'report/charts.py',
    'report/effort_page.py',
    'report/excitation_plot.py',
    'report/identification_page.py',
    'report/monitor_page.py',
    'report/retiming_plot.py',
    'report/session_plot.py',
    'ros/demo/identification_loop.py',
    'ros/demo/tracking.py',
}
LIMIT = '<limit lower="-2" upper="2" velocity="2" effort="60"/>'
NAMES = {
    'plain': ('shoulder', 'elbow'),
    'hostile': ('関節 \u202e $x_1$ _', f'_a joint with a name of {"very " * 20}many letters'),
}


def test_no_other_module_draws():
    package = Path(rd.__file__).parent
    drawing = {
        str(path.relative_to(package))
        for path in package.rglob('*.py')
        if re.search(r'(inline_svg|save_picture|\bFigure)\(', path.read_text(encoding='utf-8'))
    }
    assert drawing - {'report/svg.py', 'report/drawing.py'} == EXAMINED


def upright(names=NAMES['plain']):
    """Return a URDF of two joints with limits, whose path leaves z = 0 to either side."""
    text = two_link_urdf().replace('continuous', 'revolute').replace('0 0 1', '0 1 0')
    text = text.replace('"0 1 0"/></joint>', f'"0 1 0"/>{LIMIT}</joint>')
    for k, name in enumerate(names, start=1):
        text = text.replace(f'joint{k}"', f'{name}"')
    return text


@pytest.fixture
def hasty(monkeypatch):
    """Search hastily for a motion to identify by."""
    monkeypatch.setattr(search, '_STAGES', ((30.0, 5), (1e3, 5), (1e5, 5)))
    monkeypatch.setattr(search, '_STARTS', 1)


@pytest.mark.parametrize('names', NAMES)
@pytest.mark.parametrize(
    'obstacles', [(), (Box((2, -1, -1), (3, 1, 1)), HalfSpace((0, 0, 1), -1.5))]
)
def test_motion_to_identify_by_is_drawn_whole(names, obstacles, hasty, tmp_path, capfd):
    model = rd.RobotModel.from_urdf(upright(NAMES[names]))
    found = excitation(model, 4.0, harmonics=3, obstacles=obstacles)
    with examined_figures():
        save_excitation_plot(model, found, tmp_path / 'motion.png', obstacles)
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('n', [2, 12])
def test_retimed_motion_is_drawn_whole(n, tmp_path, capfd):
    urdf = upright(NAMES['hostile']) if n == 2 else random_chain(np.random.default_rng(3), n)
    model = rd.RobotModel.from_urdf(urdf, tip_link='link2' if n == 2 else 'tip')
    points = np.random.default_rng(1).uniform(-0.4, 0.4, (3, n))
    efforts = 1.5 * np.abs(rd.gravity_torque(model, points)).max() + np.full(n, 20.0)
    motion = rd.retime(
        model,
        points,
        effort_limits=efforts,
        velocity_limits=np.full(n, 1.0),
        acceleration_limits=8,
    )
    given = Waypoints(np.array([0.0, 3.0, 7.0]), points, np.zeros_like(points))
    torque = ReferenceTorque.of(model, torque=RigidBodyTorque('newton_euler'))
    limits = TimingLimits.of(model, efforts, np.full(n, 1.0), 8)
    with examined_figures():
        save_retiming_plot(motion, given, torque, limits, tmp_path / 'fast.png')
    assert capfd.readouterr().err == ''


@pytest.mark.parametrize('names', NAMES)
@pytest.mark.parametrize('size', [0.0, 1e-6, 1.0, 60.0, 1e5])
def test_what_an_arm_did_is_drawn_whole_with_the_limits_that_are_near(
    names, size, tmp_path, capfd
):
    model = rd.RobotModel.from_urdf(upright(NAMES[names]))
    time = np.linspace(0.0, 7.0, 300)
    curve = np.sin(np.outer(time, (1.0, 2.0)))
    reference = np.where(time[:, None] > 3.0, 2.1 * curve, np.nan)
    for session in (
        Session(time, size * curve),
        Session(time, 2.0 * curve, reference, size * curve, model=(size + 1.0) * curve),
        Session(time, curve, np.full_like(curve, np.nan), np.full_like(curve, np.nan)),
    ):
        with examined_figures():
            save_session_plot(session, model, tmp_path / 'session.png')
    assert capfd.readouterr().err == ''


@pytest.fixture(scope='module')
def recorded():
    arm = TrueArm.drawn(13, 3)
    return arm, arm.recording(1, 15.0, rate=100.0)


@pytest.mark.parametrize('factor', [1.0, -1.0, 12.0, 1e-3, 1e5])
def test_efforts_over_torques_are_drawn_whole(recorded, factor):
    arm, recording = recorded
    made = replace(recording, effort=recording.effort / factor)
    found = examine_effort(arm.urdf, [made])
    with examined_figures():
        effort_page(arm.urdf, found, [made])


def test_efforts_of_noise_alone_are_drawn_whole(recorded):
    arm, recording = recorded
    noise = np.random.default_rng(2).normal(3.0, 1e-3, recording.effort.shape)
    made = replace(recording, effort=noise)
    found = examine_effort(arm.urdf, [made])
    with examined_figures():
        page = effort_page(arm.urdf, found, [made])
    assert '–\u00a0' not in page


@pytest.fixture(scope='module')
def identified(recorded):
    arm, recording = recorded
    return identify(arm.urdf, [recording], friction=DriveTerms())


@pytest.mark.parametrize('count', [0, 1, 12])
def test_identification_is_drawn_whole(recorded, identified, count):
    arm, recording = recorded
    kinds = [DriveTerms(), *(DriveTerms(presliding=True) for _ in range(11))][:count]
    candidates = tuple(CandidateError(terms, 0.042 + 0.001 * k) for k, terms in enumerate(kinds))
    identified = replace(identified, candidates=candidates)
    with examined_figures():
        identification_page(identified, arm.urdf, recording)


@pytest.mark.parametrize(
    'drawn',
    [
        {},
        {'wear': 1.3, 'warm_up': 0.3},
        {'scatter': 0.3},
        {'warm_up': 0.4, 'clock': False},
        {'mass': 2.0},
    ],
)
@pytest.mark.parametrize('count', [1, 40])
def test_history_is_drawn_whole(identified, count, drawn):
    made = motions(count, **drawn)
    with examined_figures():
        page = monitor_page(identified, made, condition(identified, made))
    assert '–\u00a0' not in page


def test_history_has_a_legend_of_what_is_drawn_alone(identified):
    for warm_up, measured in ((0.0, False), (0.4, True)):
        made = motions(40, warm_up=warm_up)
        page = monitor_page(identified, made, condition(identified, made))
        assert ('without warm-up' in page) == measured, warm_up


def test_uncertain_friction_of_the_last_motions_is_drawn_whole(identified):
    made = motions(40)
    now = condition(identified, made)
    with examined_figures():
        monitor_page(identified, made, replace(now, friction_deviation=np.full(3, 0.14)))


@pytest.mark.longer
@pytest.mark.parametrize('text', [two_link_urdf(), upright(), upright().replace('"2"', '"-2"', 1)])
def test_report_is_drawn_whole(facts_of, text):
    with examined_figures():
        report_page(facts_of(text))
