# SPDX-License-Identifier: Apache-2.0
"""``robodyn retime``: a motion in a file in, the same path in less time out."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml
from command_line import error_of, invoked, output_of
from scipy.interpolate import CubicHermiteSpline

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.motions import read_motion, table_as_csv
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows, trajectory_as_yaml

ARM = 'urdf/puma560.urdf'
POINTS = np.array([[0.0] * 6, [0.6, -0.5, 0.4, 0.3, 0.2, 0.5], [1.0, 0.1, -0.3, 0.0, 0.5, 0.2]])
LIMITS = [arg for limit in (90, 180, 90, 20, 20, 20) for arg in ('--effort-limit', limit)]


@pytest.fixture
def model():
    return RobotModel.from_urdf(ARM)


@pytest.fixture
def slow(tmp_path, model):
    """Write a trajectory of eight seconds through three points."""
    nothing = [()] * len(POINTS)
    rows = TrajectoryRows(
        model.joint_names, [0.0, 4.0, 8.0], POINTS.tolist(), nothing, nothing, nothing
    )
    path = tmp_path / 'slow.yaml'
    path.write_text(trajectory_as_yaml(rows))
    return path


def test_trajectory_comes_out_faster_with_effort(slow, tmp_path, model):
    fast, picture = tmp_path / 'fast.yaml', tmp_path / 'fast.png'
    answer = invoked('retime', ARM, slow, '-o', fast, '--plot', picture, *LIMITS)
    assert answer.exit_code == 0, answer.output
    assert '8 s before, ' in answer.output and 'limits that bind' in answer.output
    message = yaml.safe_load(fast.read_text())
    last = message['points'][-1]['time_from_start']
    assert last['sec'] + 1e-9 * last['nanosec'] < 4.0
    assert message['points'][0]['positions'] == pytest.approx(POINTS[0])
    assert message['points'][-1]['positions'] == pytest.approx(POINTS[-1])
    efforts = np.array([point['effort'] for point in message['points']])
    assert (np.abs(efforts) <= [90, 180, 90, 20, 20, 20]).all()
    assert picture.read_bytes().startswith(b'\x89PNG')


def test_effort_is_left_out_for_controllers_that_refuse_it(slow, tmp_path):
    given, without = tmp_path / 'with.yaml', tmp_path / 'without.yaml'
    for path, options in ((given, ()), (without, ('--no-effort',))):
        assert invoked('retime', ARM, slow, '-o', path, *options, *LIMITS).exit_code == 0
    expected = yaml.safe_load(given.read_text())
    for point in expected['points']:
        del point['effort']
    assert yaml.safe_load(without.read_text()) == expected


def test_csv_comes_out_as_csv_with_the_torque_of_its_motion(slow, tmp_path, model):
    given, fast = tmp_path / 'given.csv', tmp_path / 'fast.csv'
    time = np.linspace(0.0, 5.0, 2001)[:, None]
    q = POINTS[2] * (10 - 15 * time / 5 + 6 * (time / 5) ** 2) * (time / 5) ** 3
    given.write_text(table_as_csv(model.joint_names, time[:, 0], q))
    answer = invoked('retime', ARM, given, '-o', fast, '--json', *LIMITS)
    assert answer.exit_code == 0, answer.output
    found = json.loads(answer.stdout)
    assert found['duration'] < found['duration_before'] == pytest.approx(5.0)
    motion = read_motion(fast, model.joint_names)
    assert not motion.derived and motion.time[-1] == pytest.approx(found['duration'])
    torque = inverse_dynamics(model, motion.q, motion.qd, motion.qdd)
    assert (np.abs(torque) <= np.array([90, 180, 90, 20, 20, 20]) * (1 + 1e-6)).all()


def recorded(model, path):
    """
    Write a recording of an encoder with 10,000 counts per rad: there, a rest, and back.

    Its last count comes and goes; its velocity is none of the positions, also at the ends.
    """
    generator = np.random.default_rng(5)
    time = np.arange(0.0, 5.0, 0.01)
    s = np.interp(time, [0.5, 2.2, 2.6, 4.3], [0.0, 1.0, 1.0, 0.0])
    way = (10 - 15 * s + 6 * s**2) * s**3
    q = np.outer(way, POINTS[2]) + np.outer(way**2, POINTS[1] - 0.5 * POINTS[2])
    counts = np.round(1e4 * q + generator.uniform(-0.6, 0.6, q.shape))
    names = [*model.joint_names, *(f'{name}.velocity' for name in model.joint_names)]
    path.write_text(table_as_csv(names, time, 1e-4 * counts, generator.normal(0.0, 0.02, q.shape)))


@pytest.mark.longer
@pytest.mark.parametrize('cutoff', [(), ('--cutoff', 5)])
def test_recording_comes_out_from_rest_to_rest_within_limits_at_any_rate(tmp_path, model, cutoff):
    given, fast = tmp_path / 'given.csv', tmp_path / 'fast.csv'
    recorded(model, given)
    answer = invoked('retime', ARM, given, '-o', fast, *cutoff, *LIMITS)
    assert answer.exit_code == 0, answer.output
    motion = read_motion(fast, model.joint_names)
    assert motion.time[-1] < 2.5
    np.testing.assert_allclose(motion.qd[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(motion.q[[0, -1]], 0.0, atol=5e-4)
    assert motion.q[:, 0].max() == pytest.approx(1.1, abs=2e-3)
    time = np.arange(0.0, motion.time[-1], 1e-3)
    path = CubicHermiteSpline(motion.time, motion.q, motion.qd)
    torque = inverse_dynamics(model, *(path(time, order) for order in range(3)))
    assert (np.abs(torque) / [90, 180, 90, 20, 20, 20]).max() < 1.001


def test_with_a_goal_alone_the_point_on_the_way_is_passed_by(slow, tmp_path):
    pytest.importorskip('ruckig', reason='needs Ruckig')
    fast = tmp_path / 'fast.yaml'
    goal = '--corners', 'goal', '--acceleration-limit', 5, '--velocity-limit', 1
    answer = invoked('retime', ARM, slow, '-o', fast, *LIMITS, *goal)
    assert answer.exit_code == 0, answer.output
    points = np.array([point['positions'] for point in yaml.safe_load(fast.read_text())['points']])
    np.testing.assert_allclose(points[[0, -1]], POINTS[[0, 2]], atol=1e-9)
    assert np.abs(points - POINTS[1]).max(axis=1).min() > 0.1


def test_a_limit_of_one_joint_by_its_name_leaves_the_others_as_they_are(slow, model):
    given, named, each = (
        json.loads(invoked('retime', ARM, slow, '--json', *limits).stdout)
        for limits in (
            (),
            ('--effort-limit', 'joint2=60'),
            [
                word
                for limit in np.where(np.arange(6) == 1, 60, model.effort_limits)
                for word in ('--effort-limit', limit)
            ],
        )
    )
    assert given['duration'] < named['duration']
    assert named == each
    told = [joint for joint in named['joints'] if 'effort' in joint['at_limits']]
    assert [joint['name'] for joint in told] == ['joint2']
    assert told[0]['effort_share'] == pytest.approx(1.0, abs=1e-2)
    refused = error_of('retime', ARM, slow, '--jerk-limit', 'joint2=60')
    assert "--jerk-limit: no value for 'joint1', " in refused


def test_text_on_standard_output_leaves_words_for_standard_error(slow, tmp_path):
    fast = tmp_path / 'fast.yaml'
    said = invoked('retime', ARM, slow, *LIMITS, '-o', fast).stdout
    answer = invoked('retime', ARM, slow, *LIMITS, '-o', '-')
    assert answer.stdout == fast.read_text()
    note, words = answer.stderr.split('\n', 1)
    assert 'rotor' in note and words == said.replace(said.splitlines()[-1] + '\n', '')


def test_it_says_what_slows_a_motion(slow):
    assert 'slowed' not in output_of('retime', ARM, slow, *LIMITS)
    said = output_of('retime', ARM, slow, *LIMITS, '--rms-limit', 60)
    (line,) = [each for each in said.splitlines() if each.startswith('slowed to ')]
    assert "rms effort of joint 'joint2'" in line
    assert 'jerk limits cost ' in output_of('retime', ARM, slow, *LIMITS, '--jerk-limit', 200)


@pytest.mark.parametrize(
    ('arguments', 'named'),
    [
        (('--margin', 1.5), '--margin'),
        (('--jerk-limit', 0), '--jerk-limit'),
        (('--effort-limit', 1, '--effort-limit', 2), '--effort-limit'),
        (('--corners', 'blend'), '--tolerance'),
        (('--payload', 50), "'joint2' torque at rest at "),
    ],
)
def test_what_is_wrong_is_named_by_its_option(slow, arguments, named):
    assert named in error_of('retime', ARM, slow, *LIMITS[:2], *arguments)
