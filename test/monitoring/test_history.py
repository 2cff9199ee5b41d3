# SPDX-License-Identifier: Apache-2.0
"""The history's file: appended, bounded, readable after a kill, and not trusted."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from drawn_motions import motions
from simulated_recordings import TrueArm

from robodyn_ros.errors import MalformedData, ModelMismatch, UnreadableSource
from robodyn_ros.identification import DriveTerms, Identification, identify
from robodyn_ros.monitoring import history
from robodyn_ros.monitoring.history import append_motions, read_history


@pytest.fixture
def path(tmp_path, found) -> Path:
    append_motions(tmp_path / 'arm.jsonl', found, motions(5))
    return tmp_path / 'arm.jsonl'


def test_what_is_appended_reads_back_bit_by_bit(path, found):
    further = motions(2, seed=1, clock=False)
    append_motions(path, found, further)
    told = read_history(path, found)
    assert told.findings == ()
    assert [each.to_json() for each in told.motions] == [
        each.to_json() for each in (*motions(5), *further)
    ]


@pytest.mark.parametrize('number', [float('inf'), -1e15, 1e300])
def test_a_number_that_would_not_be_read_is_not_written(path, found, number):
    before = path.read_bytes()
    motion = replace(motions(1, seed=1)[0], temperature=number)
    with pytest.raises(MalformedData, match='finite numbers'):
        append_motions(path, found, [motion])
    assert path.read_bytes() == before


def test_a_missing_file_is_an_empty_history(tmp_path, found):
    assert read_history(tmp_path / 'none', found).motions == ()


@pytest.mark.parametrize('cut', [1, 2, 100])
def test_a_torn_last_line_is_skipped_with_a_note_and_closed_by_the_next(path, found, cut):
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    told = read_history(path, found)
    assert len(told.motions) == 4
    assert [each.code for each in told.findings] == ['torn_line']
    append_motions(path, found, motions(1, seed=2))
    told = read_history(path, found)
    assert len(told.motions) in (5, 6)  # a line that lacks its end alone is whole again
    assert told.motions[-1].terms.digest == '2-0'


def test_lines_that_hold_no_motion_are_skipped_and_counted(path, found):
    lines = path.read_text().splitlines()
    record = json.loads(lines[1])

    def line(**changes):
        return json.dumps({**record, **changes})

    wrong = [
        line(friction=[0.0, 1.0]),
        line(friction=[0.0, 1.0, 'x']),
        line(friction=[0.0, 1.0, True]),
        line(terms=[[0.0] * 3] * 2),
        line(friction=[1e300, 0.0, 0.0]),
        line(stamp=None),
        line(source=3),
        line(source='x' * 1000),
        line(digest=None),
        lines[1].replace('"duration":10.0', '"duration":NaN'),
        lines[1].replace('"duration":10.0', '"duration":1e999'),
        lines[1].replace('"duration":10.0', '"duration":Infinity'),
        lines[1].replace('"duration":10.0', '"duration":' + '9' * 6000),
        '[' * 50_000,
        '"' + 'x' * 70_000 + '"',
        '{}',
        'null',
        '\x00',
        '\udcff',
    ]
    text = '\n'.join([*lines, *wrong, lines[2], ''])
    path.write_bytes(text.encode('utf-8', 'surrogateescape'))
    told = read_history(path, found)
    assert len(told.motions) == 6
    (finding,) = told.findings
    assert (finding.code, finding.value) == ('unreadable_lines', len(wrong))


def test_the_file_of_another_arm_or_another_baseline_is_refused(path, found):
    arm = TrueArm.drawn(4, 3)
    other = identify(arm.urdf, arm.recording(3, 10.0, rate=100.0), friction=DriveTerms())
    drive = replace(found.drive_model, coefficients=found.drive_model.coefficients * 1.1)
    for model in (other, replace(found, drive_model=drive)):
        for action in (read_history, lambda x, y: append_motions(x, y, motions(1))):
            with pytest.raises(ModelMismatch):
                action(path, model)


@pytest.mark.parametrize('content', [b'hello\n', b'{"format": "other"}\n', b'[1]\n', b'\xff\n'])
def test_a_file_that_is_no_history_is_refused_and_left_alone(tmp_path, found, content):
    path = tmp_path / 'other'
    path.write_bytes(content)
    with pytest.raises(MalformedData):
        read_history(path, found)
    with pytest.raises(MalformedData):
        append_motions(path, found, motions(1))
    assert path.read_bytes() == content


def test_a_file_larger_than_any_history_and_a_device_are_not_read(tmp_path, found):
    path = tmp_path / 'large'
    with path.open('wb') as file:
        file.truncate(100 * 2**30)
    with pytest.raises(UnreadableSource):
        read_history(path, found)
    with pytest.raises(UnreadableSource):
        read_history('/dev/zero', found)


@pytest.mark.parametrize('line', [b'\n', b'x\n', b'{}\n'])
def test_more_lines_than_any_history_has_are_not_read(path, found, line):
    with path.open('ab') as file:
        file.write(line * 2**20)
    with pytest.raises(UnreadableSource, match='history: 10485.. lines; allowed: 131072 at most'):
        read_history(path, found)


def test_a_history_beyond_its_size_is_thinned_out_between_the_first_and_the_last(
    path, found, monkeypatch
):
    monkeypatch.setattr(history, 'LARGEST', 40_000)
    monkeypatch.setattr(history, 'RECENT', 8)
    for seed in range(1, 30):
        append_motions(path, found, motions(2, seed=seed))
        assert path.stat().st_size < 42_000
    told = read_history(path, found)
    digests = [each.terms.digest for each in told.motions]
    assert told.findings == ()
    assert digests[:5] == [f'0-{k}' for k in range(5)] and digests[-1] == '29-1'
    assert len(digests) == len(set(digests))
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_history_is_not_thinned_out_again_for_each_motion(path, found, monkeypatch):
    line = len(path.read_bytes().splitlines()[-1])
    monkeypatch.setattr(history, 'LARGEST', 40 * line)
    monkeypatch.setattr(history, 'RECENT', 27)
    thinned, replace_file = [], os.replace
    monkeypatch.setattr(os, 'replace', lambda *x: (thinned.append(x), replace_file(*x)))
    for k in range(60):
        append_motions(path, found, motions(1, seed=k + 1))
    assert len(read_history(path, found).motions) > 10
    assert 1 < len(thinned) < 10


def test_what_a_killed_thinning_leaves_blocks_no_later_one(path, found, monkeypatch):
    monkeypatch.setattr(history, 'LARGEST', path.stat().st_size + 10)
    killed = os.fork()
    if not killed:
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        append_motions(path, found, motions(1, seed=1))
        os._exit(1)
    assert os.waitpid(killed, 0)[1] == signal.SIGKILL
    assert len(list(path.parent.iterdir())) == 2
    monkeypatch.setattr(os, 'getpid', lambda: killed)  # in a container all have the same
    append_motions(path, found, motions(1, seed=2))
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert read_history(path, found).motions[-1].terms.digest == '2-0'


def _append(path: Path, model: Path, seed: int) -> None:
    found = Identification.load(model)
    for k in range(10):
        append_motions(path, found, motions(1, seed=100 * seed + k))


@pytest.mark.longer
def test_several_processes_append_to_one_file(tmp_path, found):
    model = tmp_path / 'found.yaml'
    found.save(model)
    path = tmp_path / 'arm.jsonl'
    context = multiprocessing.get_context('fork')
    processes = [context.Process(target=_append, args=(path, model, seed)) for seed in range(1, 4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    told = read_history(path, found)
    assert told.findings == () and len(told.digests) == 30
