# SPDX-License-Identifier: Apache-2.0
"""``robodyn identify``: recordings in, a URDF, YAML, JSON and a page out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import invoked
from simulated_recordings import TrueArm, as_csv, recorded_folder

from robodyn_ros import Payload, RobotModel, gravity_torque
from robodyn_ros.commands import progress as progress_module
from robodyn_ros.errors import InsufficientRecording
from robodyn_ros.identification import Identification, Recording


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Return a folder with a wrong URDF and three recordings of the true arm."""
    folder = recorded_folder(tmp_path_factory.mktemp('identify'))
    as_csv(folder / 'again.csv', TrueArm.drawn(1, 3).recording(1, 8.0, rate=125.0))
    return folder


def run(folder: Path, *arguments):
    """Identify the arm from recordings in the folder."""
    files = [folder / each if str(each).endswith('.csv') else each for each in arguments]
    return invoked('identify', folder / 'arm.urdf', *files, '--base', 'base', '--tip', 'tip')


@pytest.fixture(scope='module')
def result(folder):
    output = folder / 'out'
    mjcf = folder / 'identified.xml'
    given = ('motion.csv', '--validate', 'other.csv', '-o', output, '--mjcf', mjcf)
    return run(folder, *given), output


def test_it_says_the_held_out_error_beside_the_urdfs(result):
    answer, output = result
    assert answer.exit_code == 0, answer.output
    assert 'last validation motion' in answer.output
    record = json.loads((output / 'identified.json').read_text())
    relative = record['errors'][1]['relative']
    assert relative['identified'] < 0.02 < 0.1 < relative['urdf']
    assert record['converged']


def test_the_mjcf_has_the_rotor_inertia_and_is_read_by_commands(result):
    pytest.importorskip('mujoco', reason='mujoco is not installed')
    answer, output = result
    path = output.parent / 'identified.xml'
    assert str(path) in answer.output
    found = Identification.load(output / 'identified.yaml').model
    arm = {'base_link': found.base_link, 'tip_link': found.tip_link}
    assert RobotModel.from_mjcf(path, **arm).rotor_inertia.tolist() == found.rotor_inertia.tolist()
    answers = [
        invoked('dh', file, '--base', 'base', '--tip', 'tip')
        for file in (path, output / 'identified.urdf')
    ]
    tables = [answer.output.partition('Worst difference') for answer in answers]
    assert tables[0][0] == tables[1][0] != ''
    # The rotors are no difference of the conversion.
    assert float(tables[0][2].partition('torque ')[2].split()[0]) < 1e-12


def test_an_mjcf_that_cannot_be_written_is_said_before_the_work(folder):
    answer = run(folder, 'motion.csv', '--mjcf', folder / 'none' / 'arm.xml')
    assert str(answer.exception).startswith('--mjcf')


@pytest.mark.longer
def test_the_progress_bar_runs_from_nothing_to_the_end_and_names_every_step(
    folder, monkeypatch, tmp_path
):
    shown = []
    update = progress_module.Progress.update

    def noting(progress, task, **what):
        update(progress, task, **what)
        state = progress.tasks[0]
        shown.append((state.completed / state.total, state.description))

    monkeypatch.setattr(progress_module.Progress, 'update', noting)
    answer = run(folder, 'motion.csv', '-o', tmp_path)
    assert answer.exit_code == 0, answer.output
    fractions = [fraction for fraction, _ in shown]
    assert fractions[0] == 0.0 and fractions[-1] == 1.0
    assert fractions == sorted(fractions)
    # One candidate of friction after the other takes the longest.
    assert np.diff(fractions).max() <= 0.15
    assert list(dict.fromkeys(what for _, what in shown)) == [
        'preparing',
        'first estimate',
        'choosing the friction',
        'estimating',
        'comparing',
        'done',
        'drawing',
    ]


def test_the_page_needs_nothing_else_and_names_no_script(result):
    _, output = result
    page = (output / 'identified.html').read_text()
    assert page.count('<svg') == 3 * 2 + 1
    assert '<script' not in page
    assert 'http://' not in page.replace('http://www.w3.org', '')
    assert 'held-out error' in page


@pytest.mark.slow
def test_without_a_validation_motion_it_says_so(folder):
    output = folder / 'unvalidated'
    answer = run(folder, 'motion.csv', '-o', output)
    assert answer.exit_code == 0, answer.output
    assert 'blocked cross-validation' in answer.output
    assert 'No validation motion' in (output / 'identified.html').read_text()


@pytest.mark.slow
def test_gravity_that_the_driver_took_is_added(folder):
    arm = RobotModel.from_urdf(folder / 'arm.urdf', base_link='base', tip_link='tip')
    recording = Recording.from_csv(folder / 'motion.csv', arm)
    told = arm.with_payload(Payload(1.2, (0.0, 0.0, 0.05)))
    less = replace(recording, effort=recording.effort - gravity_torque(told, recording.position))
    as_csv(folder / 'less.csv', less)
    option = '--effort-without-gravity'
    answer = run(
        folder, 'less.csv', option, '--driver-payload', 1.2, 0, 0, 0.05, '-o', folder / 'added'
    )
    assert answer.exit_code == 0, answer.output
    full = run(folder, 'motion.csv', '-o', folder / 'full')
    assert full.exit_code == 0, full.output
    added, whole = (
        Identification.load(folder / name / 'identified.yaml') for name in ('added', 'full')
    )
    np.testing.assert_allclose(
        added.model.inertial_parameters, whole.model.inertial_parameters, rtol=1e-3, atol=1e-4
    )
    lonely = run(folder, 'less.csv', '--driver-payload', 1.2, 0, 0, 0.05)
    assert lonely.exit_code == 2
    assert option in lonely.output


def test_a_validation_that_repeats_the_training_is_refused(folder):
    answer = run(folder, 'motion.csv', '--validate', 'again.csv', '-o', folder / 'refused')
    assert isinstance(answer.exception, InsufficientRecording)
    assert 'again.csv' in str(answer.exception)
    assert not (folder / 'refused').exists()


@pytest.mark.slow
def test_each_recording_by_itself_is_a_job_and_one_that_fails_is_named(folder, tmp_path):
    answer = run(
        folder, 'motion.csv', 'missing.csv', 'other.csv', '--each', '--jobs', 2, '-o', tmp_path
    )
    assert answer.exit_code == 1, answer.output
    assert 'missing.csv' in answer.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ['motion', 'other']
    alone = tmp_path / 'alone'
    assert run(folder, 'motion.csv', '-o', alone).exit_code == 0
    for name in ('identified.yaml', 'identified.urdf'):
        assert (alone / name).read_bytes() == (tmp_path / 'motion' / name).read_bytes()


def test_each_with_one_name_twice_is_refused(folder, tmp_path):
    answer = run(folder, 'motion.csv', 'motion.csv', '--each', '-o', tmp_path)
    assert answer.exit_code == 2 and 'one name' in answer.output


def test_gears_are_given_by_the_names_of_joints(folder):
    arm = TrueArm.drawn(1, 3)
    last, first = arm.urdf.joint_names[2], arm.urdf.joint_names[0]
    answer = run(folder, 'motion.csv', '-o', folder / 'geared', '--coupling', f'{last}={first}:-2')
    assert answer.exit_code == 0, answer.output
    found = Identification.load(folder / 'geared' / 'identified.yaml')
    assert found.model.coupling.tolist() == [[-2.0, 0.0, 1.0]]
    record = json.loads((folder / 'geared' / 'identified.json').read_text())
    assert record['coupling'] == [[-2.0, 0.0, 1.0]]
    (finding,) = (each for each in record['findings'] if each['code'] == 'coupled_drive')
    assert f'- 2 {first} + {last}' in finding['message']


@pytest.mark.parametrize('given', ['{0}', '{0}={1}', '{0}={1}:x', '{0}={0}:1', 'none={1}:1'])
def test_gears_that_name_no_joints_are_refused(folder, given):
    names = TrueArm.drawn(1, 3).urdf.joint_names
    answer = run(folder, 'motion.csv', '--coupling', given.format(*names))
    assert answer.exit_code
    assert '--coupling' in answer.output or '--coupling' in str(answer.exception)
