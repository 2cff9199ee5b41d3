# SPDX-License-Identifier: Apache-2.0
"""Every bad recording is refused by name, or its fault is a finding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from simulated_recordings import TrueArm

from robodyn_ros.errors import (
    InsufficientRecording,
    InvalidArgument,
    MalformedData,
    NoSuchName,
    UnreadableSource,
)
from robodyn_ros.identification import DriveTerms, Recording, identify


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def recording(arm: TrueArm) -> Recording:
    return arm.recording(1, 12.0, rate=100.0)


def changed(recording: Recording, **arrays: np.ndarray) -> Recording:
    """Return a recording made anew with other arrays."""
    fields = {
        name: arrays.get(name, getattr(recording, name))
        for name in ('time', 'position', 'velocity', 'effort')
    }
    return Recording(recording.joint_names, **fields)


def as_csv(path: Path, recording: Recording, *, leave_out: str = ' ') -> Path:
    """Write a recording as CSV, but for columns whose names end so."""
    names = [
        f'{joint}{suffix}'
        for suffix in ('', '.velocity', '.effort')
        for joint in recording.joint_names
    ]
    table = np.hstack([recording.position, recording.velocity, recording.effort])
    kept = [k for k, name in enumerate(names) if not name.endswith(leave_out)]
    lines = [','.join(['time', *(names[k] for k in kept)])]
    for time, row in zip(recording.time, table[:, kept]):
        lines.append(','.join(map(repr, [float(time), *map(float, row)])))
    path.write_text('\n'.join(lines) + '\n')
    return path


def codes(recording: Recording) -> set[str]:
    return {finding.code for finding in recording.findings}


def test_a_csv_reads_back_as_it_was_written(arm, recording, tmp_path):
    read = Recording.from_csv(as_csv(tmp_path / 'a.csv', recording), arm.urdf)
    np.testing.assert_array_equal(read.time, recording.time)
    np.testing.assert_array_equal(read.effort, recording.effort)
    np.testing.assert_array_equal(read.velocity, recording.velocity)
    assert read.findings == ()


def test_a_csv_without_velocities_has_none(arm, recording, tmp_path):
    path = as_csv(tmp_path / 'a.csv', recording, leave_out='.velocity')
    assert Recording.from_csv(path, arm.urdf).velocity is None


def test_no_effort_is_refused_by_the_columns_name(arm, recording, tmp_path):
    path = as_csv(tmp_path / 'a.csv', recording, leave_out='.effort')
    with pytest.raises(InsufficientRecording, match='j1.effort'):
        Recording.from_csv(path, arm.urdf)


def test_another_robots_names_are_refused(recording, tmp_path):
    other = TrueArm.drawn(2, 4).urdf
    with pytest.raises(NoSuchName, match='j4'):
        Recording.from_csv(as_csv(tmp_path / 'a.csv', recording), other)
    with pytest.raises(NoSuchName, match='j4'):
        identify(other, [recording])


def test_a_file_that_is_not_there_is_refused(arm, tmp_path):
    with pytest.raises(UnreadableSource):
        Recording.from_csv(tmp_path / 'none.csv', arm.urdf)


def test_half_a_second_of_motion_is_refused(arm, recording):
    with pytest.raises(InsufficientRecording, match='0.4'):
        identify(arm.urdf, [recording.between(2.0, 2.5)])


def test_an_arm_that_never_moves_is_refused(arm, recording):
    still = changed(
        recording,
        position=np.full_like(recording.position, 0.3),
        velocity=np.zeros_like(recording.velocity),
    )
    with pytest.raises(InsufficientRecording, match='never moves'):
        identify(arm.urdf, [still])


def test_a_joint_that_never_moves_is_a_finding(arm, recording):
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 1], velocity[:, 1] = 0.2, 0.0
    found = identify(
        arm.urdf,
        [changed(recording, position=position, velocity=velocity)],
        friction=DriveTerms(),
    )
    named = {(finding.code, finding.element) for finding in found.findings}
    assert ('joint_never_moves', "joint 'j2'") in named


def test_efforts_of_zero_are_refused(recording):
    with pytest.raises(InsufficientRecording, match='zero'):
        changed(recording, effort=np.zeros_like(recording.effort))


def test_efforts_that_are_no_numbers_are_refused_by_the_joints_name(recording):
    effort = recording.effort.copy()
    effort[:, 2] = np.nan
    with pytest.raises(InsufficientRecording, match="'j3'"):
        changed(recording, effort=effort)


def test_one_joint_without_effort_is_a_finding(arm, recording):
    effort = recording.effort.copy()
    effort[:, 0] = 0.0
    found = identify(arm.urdf, [changed(recording, effort=effort)], friction=DriveTerms())
    named = {(finding.code, finding.element) for finding in found.findings}
    assert ('zero_effort', "joint 'j1'") in named


def test_rows_with_nan_are_dropped_and_counted(recording):
    effort = recording.effort.copy()
    effort[100:110] = np.nan
    read = changed(recording, effort=effort)
    assert len(read.time) == len(recording.time) - 10
    assert [finding.value for finding in read.findings] == [10]


def test_absurd_stamps_and_velocities_are_dropped_and_counted(recording):
    time, velocity = recording.time.copy(), recording.velocity.copy()
    time[5], velocity[7, 1] = 1e154, 1e293
    read = changed(recording, time=time, velocity=velocity)
    assert len(read.time) == len(recording.time) - 2
    assert codes(read) == {'corrupt_samples'}


def test_fields_that_are_no_numbers_are_dropped_and_counted(arm, recording, tmp_path):
    path = as_csv(tmp_path / 'a.csv', recording)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].replace(',', ',oops', 1)
    lines[9] = '0.5,1.0'
    path.write_text('\n'.join(lines))
    read = Recording.from_csv(path, arm.urdf)
    assert len(read.time) == len(recording.time) - 2
    assert codes(read) == {'corrupt_samples'}


def test_a_few_stamps_out_of_order_are_dropped_and_counted(recording):
    time = recording.time.copy()
    time[[200, 300]] = time[[195, 295]]
    read = changed(recording, time=time)
    assert (np.diff(read.time) > 0).all()
    assert codes(read) == {'stamps_backwards'}


def test_stamps_that_run_backwards_are_refused(recording):
    half = len(recording.time) // 2
    time = np.concatenate([recording.time[:half], recording.time[:-half]])
    with pytest.raises(MalformedData, match='stamps'):
        changed(recording, time=time)
    with pytest.raises(MalformedData, match='stamps'):
        changed(recording, time=recording.time[::-1])


def test_two_robots_under_the_same_names_are_refused(recording):
    position = recording.position.copy()
    position[::2] += 1.0
    with pytest.raises(MalformedData, match='jumps'):
        changed(recording, position=position)


def test_stamps_that_jitter_change_nothing_much(arm, recording):
    generator = np.random.default_rng(0)
    shifted = recording.time + generator.uniform(-0.004, 0.004, len(recording.time))
    resampled = [
        np.stack([np.interp(shifted, recording.time, column) for column in array.T], axis=1)
        for array in (recording.position, recording.velocity, recording.effort)
    ]
    found = identify(
        arm.urdf,
        [Recording(recording.joint_names, shifted, *resampled)],
        validation=[arm.recording(40)],
        friction=DriveTerms(),
    )
    assert found.errors[-1].relative('identified') < 0.02


def test_a_pause_in_the_stamps_is_not_interpolated_across(arm, recording):
    kept = (recording.time < 4.0) | (recording.time > 6.0)
    paused = Recording(
        recording.joint_names,
        recording.time[kept],
        recording.position[kept],
        recording.velocity[kept],
        recording.effort[kept],
    )
    found = identify(arm.urdf, [paused], validation=[arm.recording(40)], friction=DriveTerms())
    assert found.errors[-1].relative('identified') < 0.02
    expected = found.predict(paused)
    assert not ((expected.time > 4.01) & (expected.time < 5.99)).any()


def test_arrays_of_other_shapes_are_refused_by_name(recording):
    with pytest.raises(InvalidArgument, match='effort'):
        changed(recording, effort=recording.effort[:, :2])


def test_a_validation_that_repeats_the_training_is_a_finding(arm, recording):
    again = arm.recording(1, 12.0, rate=125.0)
    found = identify(arm.urdf, [recording], validation=[again], friction=DriveTerms())
    assert found.errors[-1].repeats_training
    assert 'repeated_motion' in {finding.code for finding in found.findings}


def test_options_outside_what_is_allowed_are_refused_by_name(arm, recording):
    with pytest.raises(InvalidArgument, match='recordings'):
        identify(arm.urdf, [])
    with pytest.raises(InvalidArgument, match='friction'):
        identify(arm.urdf, [recording], friction='all')
    with pytest.raises(InvalidArgument, match='base_tilt'):
        identify(arm.urdf, [recording], base_tilt='maybe')
    with pytest.raises(InvalidArgument, match='prior_deviation'):
        identify(arm.urdf, [recording], prior_deviation=0.0)
    with pytest.raises(InvalidArgument, match='effort_scale'):
        identify(arm.urdf, [recording], effort_scale=0.0)
    with pytest.raises(InvalidArgument, match='effort_scale'):
        identify(arm.urdf, [recording], effort_scale=[1.0, 2.0])
