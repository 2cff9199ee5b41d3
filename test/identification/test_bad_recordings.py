# SPDX-License-Identifier: Apache-2.0
"""Every bad recording is refused by name, or its fault is a finding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm, as_csv

from robodyn_ros.errors import (
    InsufficientRecording,
    InvalidArgument,
    MalformedData,
    NoSuchName,
    UnreadableSource,
)
from robodyn_ros.identification import DriveTerms, Recording, identify
from robodyn_ros.motions import read_motion


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def recording(arm: TrueArm) -> Recording:
    return arm.recording(1, 12.0, rate=100.0)


def codes(recording: Recording) -> set[str]:
    return {finding.code for finding in recording.findings}


def test_a_csv_reads_back_as_it_was_written(arm, recording, tmp_path):
    read = Recording.from_csv(as_csv(tmp_path / 'a.csv', recording), arm.urdf)
    np.testing.assert_array_equal(read.time, recording.time)
    np.testing.assert_array_equal(read.effort, recording.effort)
    np.testing.assert_array_equal(read.velocity, recording.velocity)
    assert read.findings == ()


def test_a_device_without_an_end_is_refused_unread(arm):
    for read in (Recording.from_csv, lambda path, model: read_motion(path, model.joint_names)):
        with pytest.raises(UnreadableSource, match='device'):
            read('/dev/zero', arm.urdf)


def test_a_csv_without_velocities_has_none_and_one_without_efforts_is_refused(
    arm, recording, tmp_path
):
    path = as_csv(tmp_path / 'a.csv', recording, leave_out='.velocity')
    assert Recording.from_csv(path, arm.urdf).velocity is None
    path = as_csv(tmp_path / 'a.csv', recording, leave_out='.effort')
    with pytest.raises(InsufficientRecording, match='j1.effort'):
        Recording.from_csv(path, arm.urdf)
    with pytest.raises(UnreadableSource):
        Recording.from_csv(tmp_path / 'none.csv', arm.urdf)


def test_commanded_torques_are_no_efforts_and_the_refusal_says_so(arm, recording, tmp_path):
    path = as_csv(tmp_path / 'a.csv', recording)
    path.write_text(path.read_text().replace('.effort', '.torque'))
    with pytest.raises(InsufficientRecording) as caught:
        Recording.from_csv(path, arm.urdf)
    assert str(caught.value).startswith(
        "column 'j1.effort': missing; allowed: measured efforts: 'j1.torque' is what robodyn "
        'simulate or retime commanded. Record the arm, or, for an arm that is simulated only, '
        "rename it to 'j1.effort'; the header has 'time', "
    )


def test_another_robots_names_are_refused(recording, tmp_path):
    other = TrueArm.drawn(2, 4).urdf
    with pytest.raises(NoSuchName, match='j4'):
        Recording.from_csv(as_csv(tmp_path / 'a.csv', recording), other)
    with pytest.raises(NoSuchName, match='j4'):
        identify(other, [recording])


def test_half_a_second_of_motion_or_none_at_all_is_refused(arm, recording):
    with pytest.raises(InsufficientRecording, match='0.4'):
        identify(arm.urdf, [recording.between(2.0, 2.5)])
    rest = np.zeros_like(recording.position)
    with pytest.raises(InsufficientRecording, match='never moves'):
        identify(arm.urdf, [replace(recording, position=rest + 0.3, velocity=rest)])


def test_a_joint_that_never_moves_or_has_no_effort_is_a_finding(arm, recording):
    position, velocity = recording.position.copy(), recording.velocity.copy()
    position[:, 1], velocity[:, 1] = 0.2, 0.0
    effort = recording.effort.copy()
    effort[:, 0] = 0.0
    for spoilt, expected in (
        ({'position': position, 'velocity': velocity}, ('joint_never_moves', "joint 'j2'")),
        ({'effort': effort}, ('zero_effort', "joint 'j1'")),
    ):
        found = identify(arm.urdf, [replace(recording, **spoilt)], friction=DriveTerms())
        assert expected in {(finding.code, finding.element) for finding in found.findings}


def test_efforts_of_zero_or_no_numbers_or_of_other_shapes_are_refused_by_name(recording):
    with pytest.raises(InsufficientRecording, match='zero'):
        replace(recording, effort=np.zeros_like(recording.effort))
    effort = recording.effort.copy()
    effort[:, 2] = np.nan
    with pytest.raises(InsufficientRecording, match="'j3'"):
        replace(recording, effort=effort)
    with pytest.raises(InvalidArgument, match='effort'):
        replace(recording, effort=recording.effort[:, :2])


def test_absurd_numbers_and_none_are_dropped_and_counted(recording):
    effort = recording.effort.copy()
    effort[100:110] = np.nan
    read = replace(recording, effort=effort)
    assert len(read.time) == len(recording.time) - 10
    assert [finding.value for finding in read.findings] == [10]
    time, velocity = recording.time.copy(), recording.velocity.copy()
    time[5], velocity[7, 1] = 1e154, 1e293
    read = replace(recording, time=time, velocity=velocity)
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
    read = replace(recording, time=time)
    assert (np.diff(read.time) > 0).all()
    assert codes(read) == {'stamps_backwards'}


def test_stamps_that_run_backwards_are_refused(recording):
    half = len(recording.time) // 2
    time = np.concatenate([recording.time[:half], recording.time[:-half]])
    with pytest.raises(MalformedData, match='stamps'):
        replace(recording, time=time)
    with pytest.raises(MalformedData, match='stamps'):
        replace(recording, time=recording.time[::-1])


def test_two_robots_under_the_same_names_are_refused(recording):
    position = recording.position.copy()
    position[::2] += 1.0
    with pytest.raises(MalformedData, match='jumps'):
        replace(recording, position=position)


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
    arrays = ('time', 'position', 'velocity', 'effort')
    paused = replace(recording, **{name: getattr(recording, name)[kept] for name in arrays})
    found = identify(arm.urdf, [paused], validation=[arm.recording(40)], friction=DriveTerms())
    assert found.errors[-1].relative('identified') < 0.02
    expected = found.predict(paused)
    assert not ((expected.time > 4.01) & (expected.time < 5.99)).any()


def test_a_validation_that_repeats_the_training_is_a_finding(arm, recording):
    again = arm.recording(1, 12.0, rate=125.0)
    found = identify(arm.urdf, [recording], validation=[again], friction=DriveTerms())
    assert found.errors[-1].repeats_training
    assert 'repeated_motion' in {finding.code for finding in found.findings}


def test_options_outside_what_is_allowed_are_refused_by_name(arm, recording):
    with pytest.raises(InvalidArgument, match='recordings'):
        identify(arm.urdf, [])
    for options in (
        {'friction': 'all'},
        {'base_tilt': 'maybe'},
        {'prior_deviation': 0.0},
        {'effort_scale': 0.0},
        {'effort_scale': [1.0, 2.0]},
    ):
        with pytest.raises(InvalidArgument, match=next(iter(options))):
            identify(arm.urdf, [recording], **options)


def test_names_that_are_a_list_are_stored_as_a_tuple():
    recording = Recording(['a'], np.arange(40) * 0.01, np.ones((40, 1)), None, np.ones((40, 1)))
    assert recording.joint_names == ('a',)
