# SPDX-License-Identifier: Apache-2.0
"""`robodyn torque` of a trajectory: a file goes in, the same with effort comes out."""

import numpy as np
import pytest
from command_line import error_of, invoked, json_of

import robodyn_ros as rd
from robodyn_ros.motions.trajectory_yaml import (
    TrajectoryRows,
    trajectory_as_yaml,
    trajectory_of_yaml,
)

ARM = 'urdf/arm.urdf.xacro'


def filled(path, *options):
    """Return the record of a trajectory with the torque in effort."""
    return json_of('torque', ARM, path, *options)


@pytest.fixture
def given(tmp_path):
    model = rd.RobotModel.from_urdf(ARM)
    positions = [[0.1] * model.n, np.linspace(0.2, 0.6, model.n).tolist()]
    still, none = [[0.0] * model.n] * 2, [[], []]
    rows = TrajectoryRows(model.joint_names, [0.0, 2.0], positions, still, none, none)
    path = tmp_path / 'trajectory.yaml'
    path.write_text(trajectory_as_yaml(rows))
    return model, path


def test_file_is_written_with_the_torque_in_effort(given, tmp_path):
    model, path = given
    output = tmp_path / 'with_effort.yaml'
    result = invoked('torque', ARM, path, '-o', output)
    assert result.exit_code == 0, result.output
    after = trajectory_of_yaml(output)
    before = trajectory_of_yaml(path)
    assert after.positions[0] == before.positions[0]
    assert before.positions[1] in after.positions
    assert all(len(row) == model.n for row in after.effort)
    np.testing.assert_allclose(
        after.effort[0], rd.gravity_torque(model, after.positions[0]), atol=1e-9
    )
    middle = len(after.times) // 2
    assert after.accelerations[middle] == []
    assert f'{len(after.times)} points' in result.stdout
    # Given again it has effort already.
    assert 'effort' in error_of('torque', ARM, output)


def test_json_says_what_was_inserted_and_how_far_it_is_off(given):
    model, path = given
    fine, coarse = filled(path, '--error-bound', 0.01), filled(path)
    assert fine['inserted'] > coarse['inserted'] > 0
    assert max(fine['largest_error'].values()) <= 0.01
    assert list(fine['largest_torque']) == list(model.joint_names)
    first, *others = model.joint_names
    one = filled(path, '--error-bound', f'{first}=1e-5')['largest_error']
    assert one[first] <= 1e-5 < coarse['largest_error'][first]
    assert max(one[name] for name in others) > 1e-5
    assert len(fine['effort']) == len(fine['time']) == 2 + fine['inserted']


def test_friction_and_gravity_reach_the_effort(given):
    model, path = given
    bound = 0.01
    plain, rubbing, floating = (
        filled(path, '--error-bound', bound, *more)
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
    ('options', 'words'),
    [
        (('--cutoff', 5), '--cutoff'),
        (('--topic', '/t'), '--topic'),
        (('--error-bound', 0), '--error-bound'),
    ],
)
def test_options_of_the_other_kind_of_motion_are_refused(given, options, words):
    assert words in error_of('torque', ARM, given[1], *options)


@pytest.mark.parametrize('option', ['--error-bound', '--effort-limit'])
def test_bounds_of_samples_are_refused(option):
    said = error_of('torque', ARM, 'motion.csv', option, 1)
    assert 'are for a trajectory in YAML' in said
