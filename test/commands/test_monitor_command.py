# SPDX-License-Identifier: Apache-2.0
"""``robodyn monitor``: recordings in, findings, a history and a page out."""

from __future__ import annotations

from pathlib import Path

import pytest
from bags import ros2_bag
from command_line import error_of, invoked, json_of, output_of
from simulated_recordings import TrueArm, as_csv

from robodyn_ros.identification import DriveTerms, Identification, identify
from robodyn_ros.monitoring.history import read_history


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Return a folder with an identified model and two motions of its arm."""
    folder = tmp_path_factory.mktemp('monitor')
    arm = TrueArm.drawn(3, 3)
    found = identify(arm.urdf, arm.recording(3, 12.0, rate=100.0), friction=DriveTerms())
    found.save(folder / 'found.yaml')
    for k in range(2):
        as_csv(folder / f'{k}.csv', arm.recording(50 + k, 8.0, rate=100.0))
    return folder


def arguments(folder: Path, *others):
    files = [folder / each if str(each).endswith('.csv') else each for each in others]
    return ('monitor', *files, '--model', folder / 'found.yaml', '--jobs', 1)


def test_it_says_what_it_bears_and_appends_to_the_history(folder, tmp_path):
    history = tmp_path / 'arm.jsonl'
    said = output_of(*arguments(folder, '0.csv', '1.csv'), '--history', history)
    assert '2 motions, 2 of them new' in said
    assert 'No change beyond normal scatter.' not in said
    assert 'before a joint has 15 motions in which it moves enough, 10 to compare with.' in said
    found = Identification.load(folder / 'found.yaml')
    assert [x.source for x in read_history(history, found).motions] == ['0.csv', '1.csv']
    again = invoked(*arguments(folder, '1.csv'), '--history', history)
    assert again.exit_code == 0
    assert '1 motion of these recordings had been counted before' in again.output
    assert len(read_history(history, found).motions) == 2


def test_a_recording_that_cannot_be_used_is_named_the_others_are_used_and_the_code_says_so(
    folder, tmp_path
):
    answer = invoked(*arguments(folder, '0.csv', 'missing.csv', '1.csv'))
    assert answer.exit_code == 1
    assert 'missing.csv' in answer.stderr
    assert '2 motions, 2 of them new' in answer.stdout


def test_a_page_and_json_come_of_the_history_alone(folder, tmp_path):
    history, page = tmp_path / 'arm.jsonl', tmp_path / 'arm.html'
    output_of(*arguments(folder, '0.csv', '1.csv'), '--history', history)
    record = json_of(*arguments(folder), '--history', history, '-o', page)
    assert record['motions'] == 2 and record['findings'] == []
    assert len(record['friction']) == 3
    text = page.read_text()
    assert text.count('<svg') == 4 and '<script' not in text
    name = Identification.load(folder / 'found.yaml').model.name
    assert name and f'<bdi>{name}</bdi>: friction and payload' in text
    assert 'http://' not in text.replace('http://www.w3.org', '') and 'https://' not in text


def test_columns_of_time_and_temperature_are_read(folder, tmp_path):
    lines = (folder / '0.csv').read_text().splitlines()
    path = tmp_path / 'warm.csv'
    rows = [f'{line},{90.0 + 0.01 * k},41.5' for k, line in enumerate(lines[1:])]
    path.write_text('\n'.join([f'{lines[0]},since_start,temperature', *rows]))
    history = tmp_path / 'arm.jsonl'
    output_of('monitor', path, '--model', folder / 'found.yaml', '--history', history)
    (motion,) = read_history(history, Identification.load(folder / 'found.yaml')).motions
    assert motion.since_start == pytest.approx(94.0, abs=1.0)
    assert motion.temperature == pytest.approx(41.5)


def test_undated_files_follow_each_other_as_they_are_given(folder, tmp_path):
    arm, history = TrueArm.drawn(3, 3), tmp_path / 'arm.jsonl'
    files = [
        as_csv(tmp_path / name, arm.recording(70 + k, 50.0, rate=50.0))
        for k, name in enumerate(['monday.csv', 'tuesday.csv'])
    ]
    output_of('monitor', *files, '--model', folder / 'found.yaml', '--history', history)
    motions = read_history(history, Identification.load(folder / 'found.yaml')).motions
    assert [each.source for each in motions] == ['monday.csv'] * 2 + ['tuesday.csv'] * 2


def test_a_bag_has_the_date_and_the_time_since_the_start_that_is_given(folder, tmp_path):
    recording = TrueArm.drawn(3, 3).recording(60, 8.0, rate=50.0)
    states = zip(recording.time, recording.position, recording.velocity, recording.effort)
    bag = ros2_bag(
        tmp_path / 'bag',
        {'/joint_states': ((1.7e9 + t, recording.joint_names, *state) for t, *state in states)},
    )
    history = tmp_path / 'arm.jsonl'
    common = ('monitor', bag, '--model', folder / 'found.yaml', '--history', history)
    output_of(*common, '--started', '2023-11-14T22:00:00+00:00')
    (motion,) = read_history(history, Identification.load(folder / 'found.yaml')).motions
    assert motion.stamp == pytest.approx(1.7e9, abs=1.0)
    assert motion.since_start == pytest.approx(1.7e9 - 1_699_999_200 + 4.0, abs=1.0)


@pytest.mark.parametrize('started', ['yesterday', 'nan x', '2026-13-01', '-inf', 'nan'])
def test_a_time_that_is_none_is_refused(folder, started):
    assert 'seconds since 1970' in error_of(*arguments(folder, '0.csv'), '--started', started)


def test_without_anything_to_judge_or_a_baseline_it_says_what_is_missing(folder):
    assert '--history' in error_of(*arguments(folder))
    assert "Missing option '--model'" in error_of('monitor', folder / '0.csv')
