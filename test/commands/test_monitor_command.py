# SPDX-License-Identifier: Apache-2.0
"""``robodyn monitor``: recordings in, findings, a history and a page out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bags import ros2_bag
from command_line import invoked, json_of, output_of
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


@pytest.mark.parametrize('started', ['yesterday', 'nan x', '2026-13-01'])
def test_a_time_that_is_none_is_refused(folder, started):
    answer = invoked(*arguments(folder, '0.csv'), '--started', started)
    assert answer.exit_code == 2 and 'seconds since 1970' in answer.output


def test_names_reach_the_page_escaped(folder, tmp_path):
    name = '<script>alert(1)<'  # of a file: no slash
    path = tmp_path / f'{name}.csv'
    path.write_text('time\n')
    page = tmp_path / '<b>arm.html'
    answer = invoked(*arguments(folder, '0.csv'), path, '-o', page)
    assert answer.exit_code == 1
    text = page.read_text()
    assert '<script>' not in text and '&lt;script&gt;' in text
    assert '<b>arm' not in text


def test_neither_recording_nor_history_is_an_error(folder):
    assert invoked(*arguments(folder)).exit_code == 2


def test_the_baseline_must_be_given(folder):
    answer = invoked('monitor', folder / '0.csv')
    assert answer.exit_code == 2 and "Missing option '--model'" in answer.output


def test_findings_are_json(folder, tmp_path):
    arm = TrueArm.drawn(3, 3)
    arm.coulomb = arm.coulomb * 3.0
    arm.viscous = arm.viscous * 3.0
    paths = [
        as_csv(tmp_path / f'{k}.csv', arm.recording(70 + k, 8.0, rate=100.0)) for k in range(5)
    ]
    record = json_of(*arguments(folder), *paths)
    codes = {each['code'] for each in record['findings']}
    assert codes == {'friction_differs'}
    json.dumps(record, allow_nan=False)
