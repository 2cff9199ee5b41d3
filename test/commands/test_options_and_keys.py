# SPDX-License-Identifier: Apache-2.0
"""What scripts rely on: options and keys of JSON that commands had in version 0.5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import yaml
from command_line import json_of
from commanded_arm import PENDULUM, sliding
from simulated_recordings import TrueArm, as_csv

from robodyn_ros import RobotModel
from robodyn_ros.cli import robodyn
from robodyn_ros.identification import DriveTerms, identify

ARM = '--base --gravity --json --lock --mimic --tip'
HAD = yaml.safe_load(Path(__file__).with_name('version_0_5.yaml').read_text())
PUMA = str(Path(__file__).parents[2] / 'urdf' / 'puma560.urdf')
CALLS = {
    'dh': 'dh arm.urdf',
    'check': 'check arm.urdf',
    'params': 'params arm.urdf',
    'structure': 'structure arm.urdf',
    'ratios': 'ratios arm.urdf',
    'ratios --map': 'ratios arm.urdf --map j2 --resolution 3',
    'split': 'split arm.urdf --motion motion.csv',
    'torque': 'torque arm.urdf motion.csv',
    'torque of a trajectory': 'torque PUMA puma.yaml',
    'simulate': 'simulate PUMA -o simulated.csv',
    'retime': 'retime arm.urdf points.yaml --effort-limit j1=500 --velocity-limit 3',
    'excite': 'excite PUMA -o excite.csv --duration 6 --harmonics 2',
    'identify': 'identify arm.urdf motion.csv -o identified',
    'effort': 'effort arm.urdf motion.csv',
    'payload': 'payload arm.urdf motion.csv --identified found.yaml',
    'contact-thresholds': 'contact-thresholds arm.urdf motion.csv',
    'report': 'report arm.urdf -o report.html',
    'export': 'export arm.urdf -o model',
    'command-check': 'command-check pendulum.urdf probed.csv',
    'monitor': 'monitor motion.csv --model found.yaml --jobs 1',
}
SLOW = ('excite', 'report')


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an arm, its recording and model, a trajectory and a probed pendulum."""
    folder = tmp_path_factory.mktemp('keys')
    arm = TrueArm.drawn(3, 3)
    (folder / 'arm.urdf').write_text(arm.text)
    motion = arm.recording(3, 12.0, rate=100.0)
    as_csv(folder / 'motion.csv', motion)
    identify(arm.urdf, motion, friction=DriveTerms()).save(folder / 'found.yaml')
    for file, joints in (
        ('points', motion.joint_names),
        ('puma', [f'joint{k}' for k in range(1, 7)]),
    ):
        points = '\n'.join(
            f'- {{positions: {len(joints) * [x]}, time_from_start: {{sec: {6 * k}, nanosec: 0}}}}'
            for k, x in enumerate((0.0, 0.2, 0.3))
        )
        text = f'joint_names: {list(joints)}\npoints:\n{points}\n'
        (folder / f'{file}.yaml').write_text(text)
    (folder / 'pendulum.urdf').write_text(PENDULUM)
    probed = sliding(RobotModel.from_urdf(PENDULUM), -0.5)
    table = np.column_stack([probed.time, probed.position, probed.effort])
    head = 'time,j1,j1.effort'
    np.savetxt(folder / 'probed.csv', table, delimiter=',', header=head, comments='')
    return folder


def test_every_option_is_still_there():
    context = click.Context(robodyn)
    for name, text in HAD['options'].items():
        command = robodyn.get_command(context, name)
        assert command is not None, name
        there = {each for parameter in command.params for each in parameter.opts}
        wanted = set(text.replace('ARM', ARM).split())
        assert wanted <= there, (name, wanted - there)


@pytest.mark.longer
@pytest.mark.parametrize(
    'name', [pytest.param(x, marks=pytest.mark.slow if x in SLOW else ()) for x in CALLS]
)
def test_every_key_is_still_there(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(folder)
    words = [PUMA if word == 'PUMA' else word for word in CALLS[name].split()]
    missing = set(HAD['keys'][name].split()) - set(found_in(json_of(*words)))
    assert not missing, missing


def found_in(value: Any, at: str = '') -> Iterator[str]:
    """Yield the keys in JSON, with those that they are in before a dot."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (at + key).replace(' ', '_')
            yield from found_in(item, f'{at}{key}.')
    elif isinstance(value, list):
        for item in value[:3]:
            yield from found_in(item, at)
