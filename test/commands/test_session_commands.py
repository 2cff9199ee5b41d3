# SPDX-License-Identifier: Apache-2.0
"""`robodyn plot`: what it draws of a CSV file and of a bag."""

from pathlib import Path

import numpy as np
import pytest
from bags import ros2_bag
from command_line import error_of, invoked, json_of, output_of
from robots import two_link_urdf

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.commands import session as commands
from robodyn_ros.motions import table_as_csv
from robodyn_ros.motions.point_to_point import suitable_motion

pytest.importorskip('matplotlib')

PUMA = str(Path(__file__).parents[2] / 'urdf' / 'puma560.urdf')
NAMES = ('joint1', 'joint2')
TIME = np.linspace(0.0, 4.0, 401)
MOTION = np.column_stack([np.sin(TIME), 0.5 * np.cos(2.0 * TIME)])


@pytest.fixture
def drawn(monkeypatch):
    """Return the sessions that are drawn, in place of drawing them."""
    found = []
    monkeypatch.setattr(commands, 'save_session_plot', lambda session, *_: found.append(session))
    return found


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_text(two_link_urdf(), encoding='utf-8')
    return path


def file_of(path, time, **columns):
    names = [f'{name}{suffix}' for suffix in columns for name in NAMES]
    names = [name.replace('_', '.') for name in names]
    path.write_text(table_as_csv(names, time, *columns.values()), encoding='utf-8')
    return path


def test_a_simulated_motion_is_drawn_with_its_torques_and_errors(drawn, tmp_path):
    pytest.importorskip('mujoco')
    motion = tmp_path / 'motion.csv'
    followed = json_of('simulate', PUMA, '-o', motion)
    output_of('plot', PUMA, motion, '-o', tmp_path / 'session.png')
    (session,) = drawn
    model = RobotModel.from_urdf(PUMA)
    asked = suitable_motion(model).position(session.time)
    np.testing.assert_allclose(session.reference, asked, atol=1e-5)  # linear between samples
    for j, joint in enumerate(followed['joints']):
        error = session.reference[:, j] - session.position[:, j]
        assert np.abs(error).max() == pytest.approx(joint['largest_error'])
        assert np.abs(session.torque[:, j]).max() == pytest.approx(joint['largest_torque'])
    assert session.torque_name == 'commanded torque'


def test_the_models_torque_is_drawn_beside_the_recorded_one(drawn, urdf, tmp_path):
    model = RobotModel.from_urdf(urdf)
    qd = np.column_stack([np.cos(TIME), -np.sin(2.0 * TIME)])
    qdd = np.column_stack([-np.sin(TIME), -2.0 * np.cos(2.0 * TIME)])
    torque = inverse_dynamics(model, MOTION, qd, qdd)
    path = file_of(tmp_path / 'session.csv', 5.0 + TIME, **{'': MOTION, '_effort': torque / 2.0})
    output_of(
        'plot', urdf, path, '--cutoff', '20', '--effort-scale', '2', '-o', tmp_path / 'x.png'
    )
    (session,) = drawn
    assert session.time[0] == 0.0 and session.torque_name == 'effort'
    np.testing.assert_allclose(session.torque, torque, atol=1e-12)
    inside = slice(50, -50)  # the low-pass is not the motion at its ends
    np.testing.assert_allclose(session.model[inside], torque[inside], rtol=0.01, atol=0.01)


def test_a_reference_that_is_not_always_there_is_drawn_where_it_is(drawn, urdf, tmp_path):
    reference = np.where(TIME[:, None] > 2.0, MOTION + 0.1, np.nan)
    path = file_of(tmp_path / 'session.csv', TIME, **{'': MOTION, '_reference': reference})
    result = invoked('plot', urdf, path, '-o', tmp_path / 'x.png')
    assert result.exit_code == 0 and 'has no torque' in result.stderr
    np.testing.assert_array_equal(drawn[0].reference, reference)


def test_rows_are_those_of_the_motion_whatever_text_stands_beside_them(drawn, urdf, tmp_path):
    path = file_of(tmp_path / 'session.csv', TIME, **{'': MOTION, '_effort': 2.0 * MOTION})
    header, *rows = path.read_text().splitlines()
    rows = [f'"a, #\nb",{row}' for row in rows]
    path.write_text('\n'.join(['', f'"no\nte",{header}', *rows]))
    output_of('plot', urdf, path, '-o', tmp_path / 'x.png')
    np.testing.assert_array_equal(drawn[0].torque, 2.0 * MOTION)
    assert 'joint2' in output_of('effort', urdf, path)  # which reads the same rows


def test_a_bag_is_drawn_with_its_efforts_or_without_any(drawn, urdf, tmp_path):
    states = [(1.0 + t, NAMES, q, [0.0, 0.0], [t, 2.0]) for t, q in zip(TIME, MOTION)]
    path = ros2_bag(tmp_path / 'bag', {'/joint_states': states})
    assert json_of('plot', urdf, path, '-o', tmp_path / 'x.png')['missing'] == ['reference']
    np.testing.assert_allclose(drawn[0].torque[:, 0], TIME, atol=1e-9)
    silent = [(*state[:4], []) for state in states]
    path = ros2_bag(tmp_path / 'silent', {'/joint_states': silent})
    found = json_of('plot', urdf, path, '-o', tmp_path / 'x.png')
    assert found['missing'] == ['torque', 'reference']
    np.testing.assert_allclose(drawn[1].position, MOTION, atol=1e-9)


def test_a_picture_is_written_and_a_file_that_is_none_is_named(urdf, tmp_path):
    path = file_of(tmp_path / 'session.csv', TIME, **{'': MOTION})
    output_of('plot', urdf, path, '-o', tmp_path / 'session.svg')
    assert '<svg' in (tmp_path / 'session.svg').read_text(encoding='utf-8')
    assert '.png, .svg or .pdf' in error_of('plot', urdf, path, '-o', tmp_path / 'session.txt')
    assert 'effort_scale' in error_of('plot', urdf, path, '--effort-scale', 'nan')
    assert 'nowhere.csv' in error_of('plot', urdf, tmp_path / 'nowhere.csv')
