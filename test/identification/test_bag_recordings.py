# SPDX-License-Identifier: Apache-2.0
"""Recordings in ROS bags, sqlite3 and MCAP: the same samples, by name, in parts, of one robot."""

from __future__ import annotations

import numpy as np
import pytest
from bags import ros2_bag
from simulated_recordings import TrueArm

from robodyn_ros.errors import (
    InsufficientRecording,
    MalformedData,
    NoSuchName,
    RobodynError,
    UnreadableSource,
)
from robodyn_ros.identification import Recording
from robodyn_ros.motions import read_motion

pytest.importorskip('rosbags', reason='rosbags is not installed')


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def recording(arm: TrueArm) -> Recording:
    return arm.recording(1, 3.0, rate=50.0)


def messages(recording: Recording, *, prefix: str = '', order: slice = slice(None)) -> list[tuple]:
    names = [prefix + name for name in recording.joint_names][order]
    return [
        (10 + time, names, q[order], qd[order], tau[order])
        for time, q, qd, tau in zip(
            recording.time, recording.position, recording.velocity, recording.effort
        )
    ]


@pytest.mark.parametrize('storage', ['SQLITE3', 'MCAP'])
def test_either_storage_gives_the_samples_back(arm, recording, tmp_path, storage):
    backwards = messages(recording, order=slice(None, None, -1))
    path = ros2_bag(tmp_path / 'bag', {'/joint_states': backwards}, storage)
    read = Recording.from_bag(path, arm.urdf)
    np.testing.assert_allclose(read.time, recording.time - recording.time[0], atol=1e-8)
    np.testing.assert_array_equal(read.position, recording.position)
    np.testing.assert_array_equal(read.velocity, recording.velocity)
    np.testing.assert_array_equal(read.effort, recording.effort)


def test_joint_states_in_parts_are_put_together(arm, recording, tmp_path):
    first, rest = (messages(recording, order=slice(*part)) for part in ((0, 1), (1, 3)))
    parts = [part for both in zip(first, rest) for part in both]
    read = Recording.from_bag(ros2_bag(tmp_path / 'bag', {'/js': parts}), arm.urdf)
    np.testing.assert_array_equal(read.effort, recording.effort)


def test_the_topic_that_names_the_joints_is_taken_and_refused_where_there_is_none(
    arm, recording, tmp_path
):
    ours, others = messages(recording), messages(recording, prefix='left_')
    topics = {'/left/joint_states': others, '/right/joint_states': ours}
    read = Recording.from_bag(ros2_bag(tmp_path / 'both', topics), arm.urdf)
    np.testing.assert_array_equal(read.effort, recording.effort)
    other = ros2_bag(tmp_path / 'other', {'/joint_states': others})
    with pytest.raises(NoSuchName, match='left_j1'):
        Recording.from_bag(other, arm.urdf)


def test_two_robots_in_a_bag_are_refused_until_one_is_named(arm, recording, tmp_path):
    path = ros2_bag(tmp_path / 'bag', dict.fromkeys(('/one', '/two'), messages(recording)))
    with pytest.raises(MalformedData, match='/two'):
        Recording.from_bag(path, arm.urdf)
    assert len(Recording.from_bag(path, arm.urdf, topic='/two').time) == len(recording.time)
    with pytest.raises(MalformedData, match='/three'):
        Recording.from_bag(path, arm.urdf, topic='/three')


def test_a_bag_without_efforts_or_velocities(arm, recording, tmp_path):
    silent = [(time, names, q, [], []) for time, names, q, _, _ in messages(recording)]
    with pytest.raises(InsufficientRecording):
        Recording.from_bag(ros2_bag(tmp_path / 'silent', {'/js': silent}), arm.urdf)
    still = [(time, names, q, [], tau) for time, names, q, _, tau in messages(recording)]
    read = Recording.from_bag(ros2_bag(tmp_path / 'still', {'/js': still}), arm.urdf)
    assert read.velocity is None


def test_what_is_no_bag_is_refused(arm, tmp_path):
    with pytest.raises(UnreadableSource):
        Recording.from_bag(tmp_path / 'none.mcap', arm.urdf)
    path = tmp_path / 'text.mcap'
    path.write_text('no bag')
    with pytest.raises(UnreadableSource):
        Recording.from_bag(path, arm.urdf)


@pytest.mark.parametrize('length', [2**62, 2**63], ids=['more than memory', 'more than an index'])
def test_a_bag_that_claims_to_be_longer_than_it_is_is_refused(arm, tmp_path, length):
    path = tmp_path / 'hollow.mcap'
    path.write_bytes(b'\x89MCAP0\r\n\x01' + length.to_bytes(8, 'little') + b'x')
    for read in (Recording.from_bag, lambda path, arm: read_motion(path, arm.joint_names)):
        with pytest.raises(UnreadableSource, match='hollow.mcap.*a whole ROS bag'):
            read(path, arm.urdf)


@pytest.mark.longer
@pytest.mark.parametrize('storage', ['MCAP', 'SQLITE3'])
def test_whatever_is_damaged_of_a_bag_it_is_read_or_refused(arm, recording, storage, tmp_path):
    folder = ros2_bag(tmp_path / 'whole', {'/js': messages(recording)[:20]}, storage)
    (file,) = (path for path in folder.iterdir() if path.suffix in ('.mcap', '.db3'))
    whole, generator = file.read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(25):
        damaged = bytearray(whole)
        if generator.random() < 0.3:
            del damaged[generator.integers(len(damaged)) :]
        else:
            at = generator.integers(len(damaged) - 8)
            damaged[at : at + 8] = generator.bytes(8)
        file.write_bytes(damaged)
        try:
            read_motion(file, recording.joint_names)
        except RobodynError:
            refused += 1
    assert 0 < refused < 25


def test_metadata_of_a_bag_with_aliases_is_refused(arm, recording, tmp_path):
    folder = ros2_bag(tmp_path / 'bag', {'/js': messages(recording)})
    metadata = folder / 'metadata.yaml'
    assert 'rosbag2_bagfile_information' in metadata.read_text()
    metadata.write_text('a: &a {b: 1}\nc: {<<: [*a, *a]}\n' + metadata.read_text())
    with pytest.raises(UnreadableSource, match=r'an alias, \*a, in line 2'):
        Recording.from_bag(folder, arm.urdf)
