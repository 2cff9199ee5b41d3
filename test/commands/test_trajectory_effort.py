# SPDX-License-Identifier: Apache-2.0
"""`robodyn torque --trajectory`: a file goes in, the same with effort comes out."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import robodyn_ros as rd
from robodyn_ros.cli import robodyn
from robodyn_ros.motions.trajectory_yaml import (
    TrajectoryRows,
    trajectory_as_yaml,
    trajectory_of_yaml,
)

ARM = 'urdf/arm.urdf.xacro'


def run(*arguments):
    return CliRunner().invoke(robodyn, ['torque', *map(str, arguments)])


@pytest.fixture
def given(tmp_path):
    model = rd.RobotModel.from_urdf(ARM)
    rows = [np.full(model.n, 0.1), np.linspace(0.2, 0.6, model.n)]
    still = [[0.0] * model.n] * 2
    path = tmp_path / 'trajectory.yaml'
    path.write_text(
        trajectory_as_yaml(
            TrajectoryRows(
                model.joint_names,
                [0.0, 2.0],
                [r.tolist() for r in rows],
                still,
                [[], []],
                [[], []],
            )
        )
    )
    return model, path


def test_file_is_written_with_the_torque_in_effort(given, tmp_path):
    model, path = given
    output = tmp_path / 'with_effort.yaml'
    result = run(ARM, path, '--trajectory', '-o', output)
    assert result.exit_code == 0, result.output
    filled = trajectory_of_yaml(output)
    before = trajectory_of_yaml(path)
    assert filled.positions[0] == before.positions[0]
    assert before.positions[1] in filled.positions
    assert all(len(row) == model.n for row in filled.effort)
    np.testing.assert_allclose(
        filled.effort[0], rd.gravity_torque(model, filled.positions[0]), atol=1e-9
    )
    middle = len(filled.times) // 2
    assert filled.accelerations[middle] == []
    assert f'{len(filled.times)} points' in result.stdout
    # Given again it has effort already.
    again = run(ARM, output, '--trajectory')
    assert 'effort' in str(again.exception)


def test_json_says_what_was_inserted_and_how_far_it_is_off(given):
    model, path = given
    fine = json.loads(run(ARM, path, '--trajectory', '--json', '--error-bound', 0.01).stdout)
    coarse = json.loads(run(ARM, path, '--trajectory', '--json').stdout)
    assert fine['inserted'] > coarse['inserted'] > 0
    assert max(fine['largest_error'].values()) <= 0.01
    assert list(fine['largest_torque']) == list(model.joint_names)
    assert len(fine['effort']) == len(fine['time']) == 2 + fine['inserted']


def test_friction_and_gravity_reach_the_effort(given):
    model, path = given
    bound = 0.01
    plain, rubbing, floating = (
        json.loads(run(ARM, path, '--trajectory', '--json', '--error-bound', bound, *more).stdout)
        for more in ((), ('--friction',), ('--gravity', 0, 0, 0))
    )
    np.testing.assert_allclose(floating['effort'][0], 0.0, atol=1e-9)
    velocity = np.array(rubbing['velocities'])
    friction = model.viscous_friction * velocity
    assert friction.max() > 10.0 * bound and not model.coulomb_friction.any()
    without = np.transpose(
        [np.interp(rubbing['time'], plain['time'], tau) for tau in np.transpose(plain['effort'])]
    )
    np.testing.assert_allclose(rubbing['effort'], without + friction, atol=1.1 * bound)


@pytest.mark.parametrize(
    ('options', 'word'),
    [
        (('--trajectory', '--cutoff', 5), '--cutoff'),
        (('--trajectory', '--topic', '/t'), '--topic'),
        (('--error-bound', 1), '--trajectory'),
        (('--trajectory', '--error-bound', 0), '--error-bound'),
    ],
)
def test_options_of_the_other_kind_of_motion_are_refused(given, options, word):
    _, path = given
    result = run(ARM, path, *options)
    assert result.exit_code == 2
    assert word in result.output


def test_arm_without_effort_limits_needs_a_bound(given, tmp_path):
    model, path = given
    urdf = tmp_path / 'free.urdf'
    urdf.write_text(
        '<robot name="r"><link name="base"/><link name="l"><inertial><mass value="1"/>'
        '<origin xyz="0.3 0 0"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="base"/>'
        '<child link="l"/><axis xyz="0 1 0"/></joint></robot>'
    )
    path.write_text('joint_names: [j]\npoints: [{positions: [0.1], time_from_start: {sec: 1}}]')
    refused = run(urdf, path, '--trajectory')
    assert refused.exit_code == 2 and "'j' has no effort limit" in refused.output
    assert run(urdf, path, '--trajectory', '--error-bound', 0.1).exit_code == 0
