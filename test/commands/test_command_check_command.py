# SPDX-License-Identifier: Apache-2.0
"""``robodyn command-check``: what commanded torques become, and the lines to copy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import invoked
from commanded_arm import PENDULUM, sliding

from robodyn_ros import RobotModel


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    """Return a folder with a pendulum's URDF, and its recording under a reversed drive."""
    folder = tmp_path_factory.mktemp('commands')
    (folder / 'arm.urdf').write_text(PENDULUM)
    recording = sliding(RobotModel.from_urdf(PENDULUM), -0.5)
    table = np.column_stack([recording.time, recording.position, recording.effort])
    np.savetxt(
        folder / 'probed.csv', table, delimiter=',', header='time,j1,j1.effort', comments=''
    )
    return folder


def test_it_says_what_to_copy(folder):
    rotor = ('--rotor-inertia', 'j1=1e-9')
    answer = invoked('command-check', folder / 'arm.urdf', folder / 'probed.csv', *rotor)
    assert answer.exit_code == 0, answer.output
    assert 'wrong sign' in answer.output
    line = answer.output.splitlines()[-1]
    assert line.startswith('command_scale: [')
    assert json.loads(line.partition(': ')[2]) == pytest.approx([-2.0], rel=5e-3)
    assert 'joints: [' not in answer.output  # their order is right


def test_without_the_rotor_it_says_a_sign_and_no_scale(folder):
    answer = invoked('command-check', folder / 'arm.urdf', folder / 'probed.csv')
    assert 'has the wrong sign has an unknown scale' not in answer.output
    assert 'wrong sign' in answer.output
    assert 'give the rotor inertia' in answer.output
    assert answer.output.splitlines()[-1] == 'No command_scale: not every scale is known.'
    record = json.loads(
        invoked('command-check', folder / 'arm.urdf', folder / 'probed.csv', '--json').output
    )
    assert record['command_scale'] is None
    assert record['joints'][0]['sign'] == -1


def test_without_motion_it_ends_with_what_is_missing(folder):
    (folder / 'still.csv').write_text(
        'time,j1,j1.effort\n' + ''.join(f'{0.01 * k},0,{k % 7}\n' for k in range(500))
    )
    answer = invoked('command-check', folder / 'arm.urdf', folder / 'still.csv')
    assert answer.exit_code != 0
    assert 'slides' in str(answer.exception)
