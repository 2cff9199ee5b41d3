# SPDX-License-Identifier: Apache-2.0
"""``robodyn excite``: a URDF in; a motion as CSV and YAML, a picture and a dry run out."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from command_line import invoked
from robots import two_link_urdf

from robodyn_ros import RobotModel
from robodyn_ros.control.trajectory import MOST_POINTS, Trajectory
from robodyn_ros.errors import InvalidArgument, NoSuchName
from robodyn_ros.identification.exciting_motion import search
from robodyn_ros.motions import read_motion

LIMIT = '<limit lower="-2" upper="2" velocity="2" effort="60"/>'


@pytest.fixture
def arm(tmp_path, monkeypatch):
    """Write an upright arm with limits, and search hastily."""
    monkeypatch.setattr(search, '_STAGES', ((30.0, 5), (1e3, 5), (1e5, 5)))
    monkeypatch.setattr(search, '_STARTS', 1)
    path = tmp_path / 'arm.urdf'
    text = two_link_urdf().replace('continuous', 'revolute').replace('0 0 1', '0 1 0')
    text = text.replace('ixx="0"', 'ixx="0.01"')  # slender rods are no bodies to MuJoCo
    path.write_text(text.replace('"0 1 0"/></joint>', f'"0 1 0"/>{LIMIT}</joint>'))
    return path


def run(arm, *arguments):
    output = arm.parent / 'motion.csv'
    few = ('--duration', 4, '--harmonics', 3)
    return invoked('excite', arm, '-o', output, *few, *arguments), output


@pytest.mark.longer
def test_csv_and_yaml_are_the_same_motion_within_the_limits(arm):
    answer, output = run(arm, '--poses', '2', '--friction-motion', '--no-dry-run')
    assert answer.exit_code == 0, answer.output
    model = RobotModel.from_urdf(arm)
    motion = read_motion(output, model.joint_names)
    assert not motion.derived
    assert (np.abs(motion.q) <= 1.9).all() and (np.abs(motion.qd) <= 1.6).all()
    message = yaml.safe_load(output.with_suffix('.yaml').read_text())
    points = message['points']
    times = [p['time_from_start']['sec'] + 1e-9 * p['time_from_start']['nanosec'] for p in points]
    trajectory = Trajectory.from_points(
        message['joint_names'],
        times,
        *([p[name] for p in points] for name in ('positions', 'velocities', 'accelerations')),
        [()] * len(points),
    )
    assert trajectory.joint_names == model.joint_names and len(points) <= MOST_POINTS
    expected = np.stack([np.interp(times, motion.time, each) for each in motion.q.T], axis=1)
    np.testing.assert_allclose(trajectory.positions, expected, atol=1e-3)
    assert output.with_suffix('.png').read_bytes().startswith(b'\x89PNG')


@pytest.mark.slow
def test_it_says_what_the_motion_asks_for_and_what_mujoco_made_of_it(arm):
    pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')
    answer, _ = run(arm, '--json')
    assert answer.exit_code == 0, answer.output
    record = json.loads(answer.stdout)
    assert record['dry_run_problem'] == ''
    for joint in record['joints']:
        assert joint['velocity'] <= joint['velocity_limit'] == pytest.approx(1.6)
        assert 0 < joint['dry_run_effort'] <= joint['effort'] * 1.05 <= 0.7 * 60 * 1.05
        assert joint['dry_run_error'] < 0.01
    assert any(each['code'] == 'no_obstacles' for each in record['findings'])


def test_the_tip_stays_above_its_height_and_the_arm_out_of_the_box(arm):
    answer, _ = run(
        arm, '--json', '--no-dry-run', '--tip-height', '-1.5', '--box', *'2 -1 -1 3 1 1'.split()
    )
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)['clearance_m'] >= 0.05


@pytest.mark.parametrize(
    ('arguments', 'error', 'named'),
    [
        (['--harmonics', '1'], InvalidArgument, 'harmonics'),
        (['--floor', '0', '--watch', 'elbow'], NoSuchName, 'elbow'),
        (['--acceleration', '-1'], InvalidArgument, 'acceleration'),
        (['--box', *'1 1 1 0 0 0'.split()], InvalidArgument, 'box'),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_written(arm, arguments, error, named):
    answer, output = run(arm, *arguments)
    assert isinstance(answer.exception, error) and named in str(answer.exception)
    assert not output.exists()
