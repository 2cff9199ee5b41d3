# SPDX-License-Identifier: Apache-2.0
"""The YAML of joint trajectories is read as ROS prints it, and written to be read by ROS."""

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BPoly

from robodyn_ros.errors import InvalidArgument, MalformedData, UnreadableSource
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.trajectory_yaml import (
    LARGEST,
    TrajectoryRows,
    trajectory_as_yaml,
    trajectory_of_yaml,
)

# What `ros2 topic echo --once` prints of a trajectory.
PRINTED = """\
header:
  stamp:
    sec: 12
    nanosec: 500
  frame_id: ''
joint_names:
- j1
- j2
points:
- positions:
  - 0.1
  - -0.2
  velocities: []
  accelerations: []
  effort: []
  time_from_start:
    sec: 0
    nanosec: 0
- positions:
  - 1
  - 2.0e-1
  velocities:
  - 0.0
  - 0.0
  accelerations: []
  effort:
  - 5.5
  - 6.5
  time_from_start:
    sec: 1
    nanosec: 250000000
---
"""
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def read(tmp_path, text):
    path = tmp_path / 'trajectory.yaml'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return trajectory_of_yaml(path)


def test_what_ros_prints_is_read(tmp_path):
    rows = read(tmp_path, PRINTED)
    assert rows.joint_names == ['j1', 'j2']
    assert rows.times == [0.0, 1.25]
    assert rows.positions == [[0.1, -0.2], [1.0, 0.2]]
    assert rows.velocities == [[], [0.0, 0.0]]
    assert rows.accelerations == [[], []]
    assert rows.effort == [[], [5.5, 6.5]]


def test_goal_of_an_action_is_read_too(tmp_path):
    body = yaml.safe_load(PRINTED.removesuffix('---\n'))
    rows = read(tmp_path, yaml.safe_dump({'trajectory': body, 'goal_time_tolerance': {'sec': 1}}))
    assert rows == read(tmp_path, PRINTED)


@given(
    names=st.lists(st.text(), min_size=1, max_size=3),
    nanoseconds=st.lists(st.integers(0, 10**15), min_size=1, max_size=4),
    data=st.data(),
)
def test_what_is_written_reads_back_exactly(tmp_path_factory, names, nanoseconds, data):
    def row():
        return data.draw(
            st.one_of(st.just([]), st.lists(NUMBERS, min_size=len(names), max_size=len(names)))
        )

    fields = [[row() for _ in nanoseconds] for _ in range(4)]
    rows = TrajectoryRows(names, [1e-9 * t for t in nanoseconds], *fields)
    path = tmp_path_factory.getbasetemp() / 'written.yaml'
    path.write_text(trajectory_as_yaml(rows), encoding='utf-8')
    again = trajectory_of_yaml(path)
    assert again.joint_names == names
    assert list(again[2:]) == fields
    np.testing.assert_allclose(again.times, rows.times, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ('text', 'word'),
    [
        ('', '0 documents'),
        ('3', '1 documents'),
        ('a: 1\n---\nb: 2\n', '2 documents'),
        ('joint_names: [a]', 'points'),
        ('points: []', 'joint_names'),
        ('joint_names: [1]\npoints: []', 'a joint named 1'),
        ('joint_names: [a]\npoints: 3', 'not iterable'),
        ('joint_names: [a]\npoints: [3]', 'int'),
        ('joint_names: [a]\npoints: [{positions: [x]}]', "'x'"),
        ('joint_names: [a]\npoints: [{positions: [[1]]}]', 'list'),
        ('joint_names: [a]\npoints: [{positions: [1], time_from_start: 3}]', 'int'),
        ('joint_names: [a]\npoints: [{positions: [1], time_from_start: {sec: .inf}}]', 'inf'),
        ('joint_names: [a]\npoints: [{positions: [1], time_from_start: {sec: 0.5}}]', 'sec 0.5'),
        ('joint_names: [a]\npoints: [{positions: [1], time_from_start: {secs: 1}}]', "'secs'"),
        (
            'joint_names: [a]\npoints: [{positions: [1], time_from_start: {sec: 5000000000}}]',
            '5000000000',
        ),
        (
            'joint_names: [a]\npoints: [{positions: [1], time_from_start: {nanosec: -1}}]',
            'nanosec -1',
        ),
        ('joint_names: [a]\npoints: [{positions: [1], velocity: [1]}]', "'velocity'"),
        ('trajectory: 3', 'int'),
        ('trajectory: []', '0 parts'),
        ('trajectory: [3]', 'int'),
        ('goal: {trajectory: [{}, {}]}', '2 parts'),
        ('joint_trajectory: [[[]]]', 'list'),
        ('multi_dof_joint_trajectory: {points: [3]}', 'moves None'),
        ('joint_names: [a]\npoints: [...]', 'cut off after 0'),
        ('joint_names: [a]\npoints: [{positions: [1]}, ..., {positions: [1]}]', 'str'),
        ('a: [', 'flow'),
        ('!!python/object/apply:os.system [ls]', 'python'),
        (b'\xff\xfe\xfd', 'YAML'),
        ('[' * 100000, 'nested more than 20 deep'),
        ('joint_names: &a [j]\npoints: [{positions: [1], velocities: *a}]', r'\*a, in line 2'),
        ('a: &a {joint_names: [j]}\n<<: *a\npoints: []', r'\*a, in line 2'),
        ('joint_names: [a]\npoints: [{positions: [' + ':'.join(500 * ['59']) + ']}]', '1499'),
        ('joint_names: [a]\npoints: [{positions: [' + 5000 * '9' + ']}]', '5000'),
        ('joint_names: [a]\npoints: [{positions: [2001-99-99]}]', 'month'),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(tmp_path, text, word):
    with pytest.raises(MalformedData, match=word):
        read(tmp_path, text)


def test_file_that_is_missing_or_too_large_is_refused(tmp_path):
    with pytest.raises(UnreadableSource, match=r'absent\.yaml'):
        trajectory_of_yaml(tmp_path / 'absent.yaml')
    with pytest.raises(UnreadableSource, match=str(LARGEST)):
        read(tmp_path, b' ' * (LARGEST + 1))


def test_a_trajectory_as_moveit_writes_it_is_read_too(tmp_path):
    body = yaml.safe_load(PRINTED.removesuffix('---\n'))
    rows = read(tmp_path, yaml.safe_dump({'joint_trajectory': body, 'multi_dof': {}}))
    assert rows == read(tmp_path, PRINTED)


def test_samples_that_are_left_out_are_those_between_which_nothing_happens():
    """A short move within ten minutes was between two even samples."""
    time = np.arange(0.0, 600.0, 0.01)
    s = np.clip((time - 300.17) / 0.5, 0.0, 1.0)
    motion = MotionSamples.from_samples(time, ((4.0 * s * (1.0 - s)) ** 3)[:, None])
    rows = TrajectoryRows.of_motion(['a'], motion, 100)
    assert len(rows.times) <= 100
    between = BPoly.from_derivatives(
        rows.times, np.stack([rows.positions, rows.velocities, rows.accelerations], axis=1)
    )
    np.testing.assert_allclose(between(time), motion.q, rtol=0, atol=5e-3)


def test_motion_that_moves_more_often_than_there_are_points_is_refused():
    time = np.arange(0.0, 600.0, 0.01)
    motion = MotionSamples.from_samples(time, 0.2 * np.sin(3.0 * time)[:, None])
    with pytest.raises(InvalidArgument, match='100 points leave its samples by .* or in parts'):
        TrajectoryRows.of_motion(['a'], motion, 100)
    assert len(TrajectoryRows.of_motion(['a'], motion, 1000).times) <= 1000
