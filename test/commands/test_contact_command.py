# SPDX-License-Identifier: Apache-2.0
"""``robodyn contact-thresholds``: from free motion to the node's parameters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import invoked
from simulated_recordings import TrueArm, as_csv

from robodyn_ros.control.contact import ContactThresholds
from robodyn_ros.control.contact_thresholds import ObservedRecording, contact_thresholds
from robodyn_ros.control.core_binding import core
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, ModelMismatch
from robodyn_ros.identification import Recording, identify


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp('contact')
    arm = TrueArm.drawn(13, 4)
    (folder / 'arm.urdf').write_text(arm.text)
    motion = arm.recording(1, 15.0, rate=100.0)
    as_csv(folder / 'free.csv', motion)
    as_csv(folder / 'short.csv', arm.recording(2, 1.0, rate=100.0))
    identify(arm.urdf, [motion]).save(folder / 'found.yaml')
    (folder / 'other.urdf').write_text(TrueArm.drawn(4, 4).text)
    return folder


def run(folder: Path, *arguments: str, urdf: str = 'arm.urdf'):
    files = [folder / each if each.endswith(('.csv', '.yaml')) else each for each in arguments]
    return invoked('contact-thresholds', folder / urdf, *files, '--base', 'base', '--tip', 'tip')


@pytest.mark.slow
def test_the_identified_model_needs_far_lower_thresholds_than_the_urdf(folder):
    found, plain = (
        json.loads(run(folder, 'free.csv', *more, '--json').output)
        for more in (('--identified', 'found.yaml'), ())
    )
    for name in ('contact_threshold_moving', 'contact_threshold_stationary'):
        assert (np.array(found[name]) < 0.5 * np.array(plain[name])).any()
        assert len(found[name]) == 4
    assert found['observer_gain'] == [30.0]


@pytest.mark.longer
def test_the_file_is_one_of_the_nodes_parameters(folder):
    answer = run(folder, 'free.csv', '--identified', 'found.yaml', '-o', 'contact.yaml')
    assert answer.exit_code == 0, answer.output
    text = (folder / 'contact.yaml').read_text()
    given = yaml.safe_load(text)['/**']['ros__parameters']
    assert list(given) == [
        'observer_gain',
        'contact_threshold_moving',
        'contact_threshold_stationary',
    ]
    assert all(value > 0 for value in given['contact_threshold_moving'])
    assert "'j1'" in text and 'contact.yaml' in answer.output


@pytest.mark.parametrize(
    ('factor', 'words'), [(1.0, ''), (-1.0, 'has the wrong sign'), (0.02, 'is not in N')]
)
def test_efforts_that_are_no_torques_are_named(folder, factor, words):
    free = TrueArm.drawn(13, 4).recording(1, 15.0, rate=100.0)
    as_csv(folder / 'other.csv', replace(free, effort=factor * free.effort))
    answer = run(folder, 'other.csv')
    assert answer.exit_code == 0, answer.output
    warnings = [x for x in answer.output.splitlines() if x.startswith('Warning: effort of joint')]
    assert any(words in each for each in warnings) == bool(words), answer.output


def test_a_recording_at_rest_may_stand_beside_one_in_motion(folder):
    arm = TrueArm.drawn(13, 4)
    motion = arm.recording(1, 15.0, rate=100.0)
    position, effort = (np.repeat(x[:1], 500, axis=0) for x in (motion.position, motion.effort))
    still = Recording(arm.urdf.joint_names, motion.time[:500], position, 0.0 * position, effort)
    as_csv(folder / 'rest.csv', still)
    answer = run(folder, 'free.csv', 'rest.csv')
    assert answer.exit_code == 0, answer.output


def test_a_gain_that_the_node_refuses_is_refused(folder):
    with pytest.raises(InvalidArgument, match='observer_gain: 100000.0; allowed: each 0.0'):
        raise run(folder, 'free.csv', '--gain', '1e5', '-o', 'refused.yaml').exception
    assert not (folder / 'refused.yaml').exists()


def test_too_little_motion_and_the_model_of_another_arm_are_refused(folder):
    answer = run(folder, 'short.csv', '--identified', 'found.yaml')
    assert isinstance(answer.exception, InsufficientRecording)
    answer = run(folder, 'free.csv', '--effort-scale', '0')
    assert isinstance(answer.exception, InvalidArgument)
    answer = run(folder, 'free.csv', '--identified', 'found.yaml', urdf='other.urdf')
    assert isinstance(answer.exception, ModelMismatch)


def test_thresholds_are_a_quarter_more_than_what_all_but_a_thousandth_stays_below():
    arm = TrueArm.drawn(13, 4)
    samples = 20_000
    random = np.random.default_rng(0)
    torque = random.uniform(-1.0, 1.0, (samples, 4)) * [1.0, 2.0, 4.0, 8.0]
    stationary = random.random((samples, 4)) < 0.5
    torque[stationary] *= 3.0
    observed = ObservedRecording(np.arange(samples), np.zeros((samples, 4)), torque, stationary)
    found = contact_thresholds(arm.urdf, [observed])
    assert isinstance(found, ContactThresholds)
    np.testing.assert_allclose(found.moving, 1.25 * 0.999 * np.array([1, 2, 4, 8]), rtol=2e-3)
    np.testing.assert_allclose(found.stationary, 3.0 * found.moving, rtol=4e-3)


def test_a_joint_that_never_stands_is_named():
    arm = TrueArm.drawn(13, 4)
    ones, never = np.ones((1000, 4)), np.zeros((1000, 4), bool)
    observed = ObservedRecording(np.arange(1000), ones, ones, never)
    with pytest.raises(InsufficientRecording, match='j1.*stationary'):
        contact_thresholds(arm.urdf, [observed])


def test_a_joint_that_has_just_turned_round_counts_as_standing():
    joints = core.StationaryJoints(2)
    for k in range(100):
        stationary = joints.at([0.5, 0.5], 0.01 * k)
    assert stationary == [False, False]
    assert joints.at([-0.5, 0.5], 1.0) == [True, False]
    assert joints.at([-0.5, 0.5], 1.29) == [True, False]
    assert joints.at([-0.5, 0.5], 1.31) == [False, False]
