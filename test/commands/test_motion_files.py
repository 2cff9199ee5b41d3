# SPDX-License-Identifier: Apache-2.0
"""A trajectory in a file is the same to every command, in whichever message it stands."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command_line import error_of, invoked, json_of
from jtc_rule import JointTrajectoryController

from robodyn_ros import RobotModel
from robodyn_ros.control.motion_file import samples_of_file, trajectory_of_file
from robodyn_ros.errors import MalformedData, RejectedTrajectory

ARM = 'urdf/puma560.urdf'
MODEL = RobotModel.from_urdf(ARM)
POINTS = np.array([[0.0] * 6, [0.6, -0.5, 0.4, 0.3, 0.2, 0.5], [1.0, 0.1, -0.3, 0.0, 0.5, 0.2]])
HEADER = {'stamp': {'sec': 3, 'nanosec': 4}, 'frame_id': ''}
COMMANDS = {
    'retime': ('retime', '--acceleration-limit', 5, ARM),
    'torque': ('torque', ARM),
    'split': ('split', ARM, '--motion'),
}


def message(points=POINTS, times=(0, 2, 5), **fields):
    """Return a JointTrajectory as YAML has it; ``fields`` are rows of velocities and so on."""
    rows = [
        {
            'positions': q.tolist(),
            **{name: row[k].tolist() for name, row in fields.items()},
            **({} if times is None else {'time_from_start': {'sec': times[k], 'nanosec': 0}}),
        }
        for k, q in enumerate(points)
    ]
    return {'header': HEADER, 'joint_names': list(MODEL.joint_names), 'points': rows}


def moveit(trajectory):
    """Return MoveIt's RobotTrajectory."""
    nothing = {'header': HEADER, 'joint_names': [], 'points': []}
    return {'joint_trajectory': trajectory, 'multi_dof_joint_trajectory': nothing}


HOLDERS = {
    'RobotTrajectory': moveit,
    'goal of FollowJointTrajectory': lambda each: {'trajectory': each, 'path_tolerance': []},
    'goal as it is sent': lambda each: {'goal': {'trajectory': each}},
    'goal of ExecuteTrajectory': lambda each: {'trajectory': moveit(each)},
    'DisplayTrajectory': lambda each: {'model_id': 'puma', 'trajectory': [moveit(each)]},
    'result of MoveGroup': lambda each: {'result': {'planned_trajectory': moveit(each)}},
}


@pytest.fixture
def written(tmp_path):
    def write(content, name='motion.yaml'):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


def reading(command, path):
    """Return the arguments by which a command reads a file."""
    return *COMMANDS[command], path


@pytest.mark.parametrize('command', COMMANDS)
def test_messages_that_hold_a_trajectory_are_read_as_it(written, command):
    plain = json_of(*reading(command, written(message())))
    for name, holder in HOLDERS.items():
        assert json_of(*reading(command, written(holder(message()), 'held.yml'))) == plain, name
    # As ros2 topic echo prints it.
    assert json_of(*reading(command, written(json.dumps(message()) + '\n---\n'))) == plain


@pytest.mark.parametrize('command', COMMANDS)
@pytest.mark.parametrize(
    ('content', 'words'),
    [
        ({'trajectory': [moveit(message())] * 2}, '2 parts; allowed: one: each in a file'),
        (
            moveit(message())
            | {'multi_dof_joint_trajectory': {'joint_names': ['base'], 'points': [{}]}},
            'joints of one degree of freedom alone',
        ),
        (json.dumps(message()) + '\n---\n' + json.dumps(message()), '2 documents'),
        (message() | {'points': [*message()['points'], '...']}, 'cut off after 3'),
        (message(times=(0, 5, 2)), 'later than the point before'),
        (message(times=(-1, 0, 1)), 'none negative'),
        (message(POINTS[:, :5]), '5 values'),
        (message(100.0 * POINTS), 'degrees'),
    ],
)
def test_others_are_refused_by_every_command_with_what_is_wrong(written, command, content, words):
    assert words in error_of(*reading(command, written(content)))


# --- without times -------------------------------------------------------------------------------

UNTIMED = {
    'no times': message(times=None),
    'all at zero': message(times=(0, 0, 0)),
    'all at one time': message(times=(3, 3, 3)),
    'some at one time': message(times=(0, 2, 2)),
    'at zero with velocities': message(times=(0, 0, 0), velocities=0.0 * POINTS),
}


@pytest.mark.parametrize('content', UNTIMED.values(), ids=list(UNTIMED))
def test_path_without_times_is_timed_and_says_so(written, content, tmp_path):
    picture = tmp_path / 'fast.png'
    timed = json_of(*reading('retime', written(message())))
    path = written(content, 'untimed.yaml')
    found = json_of(*reading('retime', path))
    assert timed['duration_before'] == 5.0 and found['duration_before'] is None
    assert found | {'duration_before': 5.0} == timed
    answer = invoked(*reading('retime', path), '--plot', picture)
    assert answer.output.startswith(f'no times before, {found["duration"]:.4g} s after')
    assert picture.read_bytes().startswith(b'\x89PNG')


@pytest.mark.parametrize('command', sorted(set(COMMANDS) - {'retime'}))
def test_where_times_are_needed_the_way_to_them_is_named(written, command):
    refused = error_of(*reading(command, written(message(times=(0, 0, 0)))))
    assert 'motion.yaml' in refused and 'robodyn retime gives them' in refused


def test_a_point_that_is_there_twice_counts_once(written):
    twice = message(POINTS[[0, 1, 1, 2]], (0, 2, 2, 5))
    assert json_of(*reading('torque', written(twice, 'twice.yaml'))) == json_of(
        *reading('torque', written(message()))
    )


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize('fields', [('velocities',), ('velocities', 'accelerations')])
def test_between_points_samples_are_those_of_the_trajectory_controller(written, fields):
    generator = np.random.default_rng(3)
    rows = {field: generator.normal(0.0, 0.2, POINTS.shape) for field in fields}
    path = written(message(**rows))
    motion = samples_of_file(path, MODEL)
    controller = JointTrajectoryController(trajectory_of_file(path), 0.0, 0.0)
    assert motion.time[[0, -1]] == pytest.approx([0.0, 5.0]) and not motion.derived
    assert np.diff(motion.time).max() <= 5e-3 + 1e-12
    for time, q, qd in list(zip(motion.time, motion.q, motion.qd, strict=True))[:-1:37]:
        position, velocity, _ = controller.sample(time)
        np.testing.assert_allclose(q, position, atol=1e-12)
        np.testing.assert_allclose(qd, velocity, atol=1e-12)


def test_joints_in_another_order_are_put_into_that_of_the_chain(written):
    order = [3, 0, 5, 1, 2, 4]
    turned = message(POINTS[:, order], velocities=0.1 * POINTS[:, order])
    turned['joint_names'] = [MODEL.joint_names[k] for k in order]
    plain, other = (
        samples_of_file(written(each), MODEL)
        for each in (message(velocities=0.1 * POINTS), turned)
    )
    np.testing.assert_allclose(other.q, plain.q, atol=1e-12)
    np.testing.assert_allclose(other.qd, plain.qd, atol=1e-12)


def test_numbers_too_large_to_interpolate_are_refused(written):
    with pytest.raises(RejectedTrajectory, match='too large to interpolate'):
        samples_of_file(written(message(velocities=1e308 * (1.0 + 0.0 * POINTS))), MODEL)


def test_one_point_is_an_arm_at_rest(written):
    motion = samples_of_file(written(message(POINTS[1:2], (2,))), MODEL)
    np.testing.assert_array_equal(motion.q, POINTS[1:2])
    assert not motion.qd.any()


def test_a_joint_that_is_not_named_and_one_of_another_arm_are_refused(written):
    short = message(POINTS[:, :5])
    short['joint_names'] = short['joint_names'][:5]
    with pytest.raises(RejectedTrajectory, match='without joint6'):
        samples_of_file(written(short), MODEL)
    with pytest.raises(MalformedData):
        samples_of_file(written('{}'), MODEL)


def test_torque_of_a_trajectory_comes_as_csv_where_the_file_ends_so(written, tmp_path):
    path, table = written(message()), tmp_path / 'torque.csv'
    found = json.loads(invoked('torque', ARM, path, '--json').stdout)
    assert invoked('torque', ARM, path, '-o', table).exit_code == 0
    rows = np.loadtxt(table, delimiter=',', skiprows=1)
    np.testing.assert_array_equal(rows[:, 0], found['time'])
    np.testing.assert_array_equal(rows[:, 1:], found['effort'])
