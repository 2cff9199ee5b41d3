# SPDX-License-Identifier: Apache-2.0
"""``robodyn effort`` and ``robodyn payload``: what drives report, and what a hand holds."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import invoked
from simulated_recordings import TrueArm, as_csv

from robodyn_ros import Payload
from robodyn_ros.errors import ModelMismatch
from robodyn_ros.identification import identify

LOAD = Payload(1.8, (0.02, -0.03, 0.09), np.diag([0.012, 0.011, 0.006]))


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Return a folder with a URDF, its YAML, and recordings in amperes, empty and loaded."""
    folder = tmp_path_factory.mktemp('effort')
    arm = TrueArm.drawn(13, 6)
    (folder / 'arm.urdf').write_text(arm.text)
    loaded = replace(arm, bodies=arm.bodies.with_payload(LOAD))
    motion, held = arm.recording(1, 15.0, rate=100.0), loaded.recording(2, 10.0, rate=100.0)
    amperes = [replace(each, effort=each.effort / 12.0) for each in (motion, held)]
    for name, recording in zip(('motion', 'loaded'), amperes):
        as_csv(folder / f'{name}.csv', recording)
    identify(arm.urdf, amperes[:1], effort_scale=12.0).save(folder / 'identified.yaml')
    (folder / 'other.urdf').write_text(TrueArm.drawn(4, 6).text)
    return folder


def run(folder: Path, command: str, *arguments: str, urdf: str = 'arm.urdf'):
    files = ('.csv', '.yaml', '.html')
    given = [folder / each if each.endswith(files) else each for each in arguments]
    return invoked(command, folder / urdf, *given, '--base', 'base', '--tip', 'tip')


@pytest.mark.slow
def test_effort_says_in_words_that_amperes_are_no_torque(folder):
    answer = run(folder, 'effort', 'motion.csv', '-o', 'page.html')
    assert answer.exit_code == 0, answer.output
    assert 'is not in N m' in answer.output
    rows = [re.split(' {2,}', line) for line in answer.output.splitlines()]
    header = next(row for row in rows if row[0] == 'joint')
    joints = [dict(zip(header, row)) for row in rows if re.fullmatch("'?j[1-6]'?", row[0])]
    scaled = [each for each in joints if each['it is'] == 'scaled']
    assert len(joints) == 6 and scaled
    sizes = [each['torque per unit'] for each in scaled]
    assert all(re.fullmatch(r'[\d.]+ ± [\d.]+ N( m)?', size) for size in sizes)
    assert all(f'1 unit = {size}, ' in answer.output for size in sizes)
    assert 'included' in {each['gravity'] for each in scaled}
    assert 'robodyn gains measures the factors' in answer.output
    page = (folder / 'page.html').read_text()
    assert page.count('<svg') == 6
    # Amperes of an ideal motor: the axis has no unit.
    assert page.count('>effort as recorded<') == 6
    assert len(re.findall(r'<figure><figcaption>.*</figcaption><svg', page)) == 6
    assert '<script' not in page
    assert 'http://' not in page.replace('http://www.w3.org', '')


def test_effort_as_json_has_null_where_nothing_is_known(folder):
    record = json.loads(run(folder, 'effort', 'motion.csv', '--json').output)
    assert [each['joint'] for each in record['joints']] == [f'j{k}' for k in range(1, 7)]
    for each in record['joints']:
        assert (each['factor'] is None) == (each['unit'] == 'undecided')
    scaled = [each['factor'] for each in record['joints'] if each['unit'] == 'scaled']
    assert scaled
    assert all(6 < factor < 20 for factor in scaled)


def test_payload_prints_the_call_that_sets_it_at_the_node(folder):
    answer = run(folder, 'payload', 'loaded.csv', '--identified', 'identified.yaml')
    assert answer.exit_code == 0, answer.output
    call = re.search('SetPayload "(.*)"', answer.output).group(1)
    payload = yaml.safe_load(call)['payload']
    assert payload['mass'] == pytest.approx(1.8, rel=0.04)
    center = [payload['center_of_mass'][axis] for axis in 'xyz']
    np.testing.assert_allclose(center, LOAD.center_of_mass, atol=0.01)
    assert {'ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'} < set(payload)
    assert 'at rest in these poses' in answer.output


def test_payload_sets_nothing_where_the_hand_is_empty(folder):
    answer = run(folder, 'payload', 'motion.csv', '--identified', 'identified.yaml')
    assert 'mass not distinguishable from zero' in answer.output
    assert 'SetPayload' not in answer.output


@pytest.mark.longer
def test_payload_identifies_the_arm_from_an_empty_recording(folder):
    answer = run(
        folder, 'payload', 'loaded.csv', '--unloaded', 'motion.csv', '--effort-scale', '12',
        '--json',
    )  # fmt: skip
    record = json.loads(answer.output)
    assert record['mass'] == pytest.approx(1.8, rel=0.04)
    assert np.shape(record['poses']) == (3, 6)


def test_payload_refuses_the_yaml_of_another_robot_and_two_sources(folder):
    answer = run(
        folder, 'payload', 'loaded.csv', '--identified', 'identified.yaml', urdf='other.urdf'
    )
    assert isinstance(answer.exception, ModelMismatch)
    both = run(
        folder, 'payload', 'loaded.csv', '--identified', 'identified.yaml', '--unloaded',
        'motion.csv',
    )  # fmt: skip
    assert both.exit_code == 2
    assert 'not both' in both.output
