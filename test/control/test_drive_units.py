# SPDX-License-Identifier: Apache-2.0
"""Where the drives' units come from, and which are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from simulated_recordings import TrueArm

from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InvalidArgument, MalformedData
from robodyn_ros.identification import Identification, identify

AMPERES = np.array([12.0, -9.0, 0.5])


@pytest.fixture(scope='module')
def arm() -> TrueArm:
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def found(arm) -> Identification:
    recording = arm.recording(1, 12.0, rate=100.0)
    recording = replace(recording, effort=recording.effort / AMPERES)
    return identify(arm.urdf, [recording], effort_scale=AMPERES)


def units(arm, **settings):
    return build_control_stack(
        ControlSettings(
            base_link='base',
            tip_link='tip',
            algorithm='newton_euler',
            **{'effort_limits': (1000.0,), **settings},
        ),
        arm.text,
    ).units


def test_nothing_given_is_newton_metres(arm):
    given = units(arm)
    np.testing.assert_array_equal(given.effort_scale, np.ones(3))
    np.testing.assert_array_equal(given.command_scale, np.ones(3))
    assert given.notes == ()


def test_one_value_is_for_all_joints_and_others_follow_the_order_of_joints(arm):
    one, two, three = arm.urdf.joint_names
    given = units(
        arm, joints=(three, one, two), effort_scale=(2.0,), command_scale=(3.0, -1.0, 2.0)
    )
    np.testing.assert_array_equal(given.effort_scale, 2.0)
    np.testing.assert_array_equal(given.command_scale, [-1.0, 2.0, 3.0])
    assert given.notes == (
        'effort_scale, base to tip: 2, 2, 2',
        'command_scale, base to tip: -1, 2, 3',
    )


def test_identified_model_carries_both(arm, found, tmp_path):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    assert Identification.load(path) == found
    given = units(arm, identified_model=str(path))
    np.testing.assert_array_equal(given.effort_scale, AMPERES)
    np.testing.assert_array_equal(given.command_scale, 1.0)
    with_scale = replace(found, command_scale=1.0 / AMPERES)
    with_scale.save(path)
    assert Identification.load(path) == with_scale
    given = units(arm, identified_model=str(path))
    np.testing.assert_array_equal(given.command_scale, 1.0 / AMPERES)


def test_scale_written_into_the_identified_file_by_hand_is_taken(arm, found, tmp_path):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    path.write_text(path.read_text() + 'command_scale: [1, -2, 0.5]\n')
    given = units(arm, identified_model=str(path))
    np.testing.assert_array_equal(given.command_scale, [1.0, -2.0, 0.5])


@pytest.mark.parametrize('scale', ['[1, 0, 2]', '[1, 2]', '[1, .nan, 2]', '[1, .inf, 2]', 'x'])
def test_bad_scale_in_the_identified_file_is_refused_by_name(arm, found, tmp_path, scale):
    path = tmp_path / 'identified.yaml'
    found.save(path)
    path.write_text(path.read_text() + f'command_scale: {scale}\n')
    with pytest.raises(MalformedData, match='command_scale' if scale != 'x' else "'x'"):
        units(arm, identified_model=str(path))


def test_parameter_wins_over_the_identified_model_and_says_so_once(arm, found, tmp_path):
    path = tmp_path / 'identified.yaml'
    replace(found, command_scale=1.0 / AMPERES).save(path)
    given = units(arm, identified_model=str(path), effort_scale=(1.0,), command_scale=(4.0,))
    np.testing.assert_array_equal(given.effort_scale, 1.0)
    np.testing.assert_array_equal(given.command_scale, 4.0)
    told = [note for note in given.notes if 'not that of identified_model' in note]
    assert [note.split()[1] for note in told] == ['effort_scale', 'command_scale']
    same = units(arm, identified_model=str(path), effort_scale=tuple(AMPERES))
    assert not [note for note in same.notes if 'not that of' in note]


@pytest.mark.parametrize('name', ['effort_scale', 'command_scale'])
def test_wrong_length_is_refused_by_name(arm, name):
    with pytest.raises(InvalidArgument, match=f'parameter {name}: 2 values; allowed: 1 or 3'):
        units(arm, **{name: (1.0, 2.0)})


def test_scale_that_no_command_at_the_limit_survives_is_refused(arm):
    with pytest.raises(InvalidArgument, match='command_scale of joint'):
        units(arm, effort_limits=(1e300,), command_scale=(1e9,))
