# SPDX-License-Identifier: Apache-2.0
"""An identification as YAML: it comes back bit by bit, and nothing else passes for one."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from simulated_recordings import TrueArm

from robodyn_ros.errors import MalformedData, ModelMismatch, UnreadableSource
from robodyn_ros.identification import Identification, identify


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def found(arm) -> Identification:
    return identify(
        arm.urdf,
        [arm.recording(1, 12.0, rate=100.0)],
        validation=[arm.recording(40, 6.0, rate=100.0)],
    )


def test_what_was_saved_is_loaded_bit_by_bit(found, arm, tmp_path):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    read = Identification.load(path)
    assert read == found
    recording = arm.recording(41, 6.0, rate=100.0)
    before, after = found.predict(recording), read.predict(recording)
    np.testing.assert_array_equal(before.effort, after.effort)
    np.testing.assert_array_equal(before.deviation, after.deviation)
    assert read.errors[1].relative('identified') == found.errors[1].relative('identified')


def test_it_belongs_to_its_robot_and_to_no_other(found, arm):
    found.check_kinematics(arm.urdf)
    with pytest.raises(ModelMismatch, match='j4'):
        found.check_kinematics(TrueArm.drawn(2, 4).urdf)
    with pytest.raises(ModelMismatch, match='DH table'):
        found.check_kinematics(TrueArm.drawn(9, 3).urdf)


@pytest.mark.parametrize(
    'text',
    [
        '',
        '[1, 2',
        'format: something',
        'format: robodyn identification 1\n',
        '- 1\n',
        '\x00',
        '!!python/object/apply:os.system ["false"]',
    ],
)
def test_another_file_is_refused(text, tmp_path):
    path = tmp_path / 'other.yaml'
    with pytest.raises(UnreadableSource):
        Identification.load(path)
    path.write_text(text)
    with pytest.raises(MalformedData):
        Identification.load(path)


@pytest.mark.parametrize(
    ('field', 'value'),
    [
        ('drive_model', {}),
        ('errors', 3),
        ('parameters', []),
        ('kinematics', 'abc'),
        ('cutoff', {}),
    ],
)
def test_a_damaged_file_is_refused(found, tmp_path, field, value):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    document = yaml.safe_load(path.read_text())
    document[field] = value
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(MalformedData):
        Identification.load(path)


@pytest.mark.parametrize(
    ('field', 'value', 'words'),
    [
        ('viscous_friction', [0.0, 0.0, float('nan')], 'viscous_friction has shape'),
        ('load_friction', [0.0], 'load_friction has shape'),
        (
            'friction_curve',
            [[0.0, 0.0], [0.0, 0.0], [0.0, float('inf')]],
            'friction_curve has shape',
        ),
        ('coupled_friction', [[0.0]], 'coupled_friction'),
        ('coupled_friction', None, "no 'coupled_friction'"),
        ('effort_offset', None, "no 'effort_offset'"),
    ],
)
def test_drives_that_are_no_numbers_are_refused(found, tmp_path, field, value, words):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    document = yaml.safe_load(path.read_text())
    model = document['drive_model']['model']
    assert field in model
    if value is None:
        del model[field]
    else:
        model[field] = value
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(MalformedData, match=words):
        Identification.load(path)


def test_a_file_from_before_models_had_several_tips_is_read(found, tmp_path):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    document = yaml.safe_load(path.read_text())
    model = document['drive_model']['model']
    (model['tip_link'],) = model.pop('tip_links')
    for field in ('parents', 'gamma', 'b', 'tips'):
        del model['dh'][field]
    path.write_text(yaml.safe_dump(document))
    assert Identification.load(path).model == found.model


def test_parameters_that_are_not_those_of_drives_and_base_are_refused(found, tmp_path):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    document = yaml.safe_load(path.read_text())
    drives = document['drive_model']
    document['parameters'].pop()
    drives['covariance'] = [row[:-1] for row in drives['covariance'][:-1]]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(MalformedData, match='where the drives and the base have'):
        Identification.load(path)


@pytest.mark.parametrize(
    ('text', 'word'),
    [
        ('a: &a [0]\nbase_tilt: [*a, *a]', r'\*a, in line 3'),
        ('a: &a {b: 1}\nc: {<<: [*a, *a]}', r'\*a, in line 3'),
        ('a: ' + '[' * 100000 + ']' * 100000, 'nested more than 20 deep'),
        ('a: ' + ':'.join(500 * ['59']), 'a number of 1499 characters'),
        ('a: ' + 5000 * '9', 'a number of 5000 characters'),
        ('a: 2001-99-99', 'month'),
        ('---\nb: 1', "format: 'NoneType'"),
    ],
)
def test_yaml_that_costs_more_than_it_says_is_refused(tmp_path, text, word):
    path = tmp_path / 'identified.yaml'
    path.write_text(f'format: robodyn identification 1\n{text}\n')
    with pytest.raises(MalformedData, match=word):
        Identification.load(path)
