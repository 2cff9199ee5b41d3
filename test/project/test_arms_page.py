# SPDX-License-Identifier: Apache-2.0
"""What docs/arms.md tells users to type works, for the arms whose descriptions are installed."""

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import yaml
from arms import file_of, run

from robodyn_ros.ros_parameters import parameters_of

ROOT = Path(__file__).resolve().parents[2]
ARMS = yaml.safe_load((ROOT / 'docs' / 'arms.yaml').read_text(encoding='utf-8'))['arms']
RUNS = yaml.safe_load((ROOT / 'docs' / 'arms_runs.yaml').read_text(encoding='utf-8'))['runs']
PAGE = (ROOT / 'docs' / 'arms.md').read_text(encoding='utf-8')
SECTIONS = {
    arm['id']: re.search(rf'^## {re.escape(arm["arm"])}\n(.*?)(?=^## )', PAGE, re.S | re.M)[1]
    for arm in ARMS
}
DESCRIBED = [
    pytest.param(arm, description, id=description['robot'])
    for arm in ARMS
    for description in arm.get('descriptions', [])
]
LAUNCH = '\n'.join(
    path.read_text(encoding='utf-8')
    for path in [*(ROOT / 'launch').glob('*.py'), ROOT / 'robodyn_ros' / 'ros' / 'launching.py']
)


@pytest.mark.parametrize('arm', ARMS, ids=lambda arm: arm['id'])
def test_launch_lines_name_what_there_is_and_the_chain_that_is_checked(arm):
    section = SECTIONS[arm['id']].replace('\\\n', ' ')
    base, tip = re.search(r'(?<![A-Z] )BASE=(\S+) TIP=([^\s`]+)', section).groups()
    assert (base, tip) == (arm['urdf']['base'], arm['urdf']['tip'])
    for file, words in re.findall(r'ros2 launch robodyn_ros (\S+)(.*)', section):
        assert (ROOT / 'launch' / file).is_file()
        given = dict(word.split(':=') for word in words.split())
        assert (given['base_link'], given['tip_link']) == (base, tip)
        assert all(f"'{name}'" in LAUNCH for name in given)


@pytest.mark.parametrize('arm', ARMS, ids=lambda arm: arm['id'])
def test_parameters_of_the_page_are_parameters(arm):
    way = arm['way_in']
    node = 'feedforward' if way['kind'] in ('feedforward', 'servo') else 'dynamics_node'
    known = {each.name for each in parameters_of(node)}
    for name, value in way.get('parameters', {}).items():
        names = {f'{name}.{key}' for key in value} if isinstance(value, dict) else {name}
        assert names <= known


def skip_without(description):
    try:
        file_of(description['package'], description['file'])
    except PackageNotFoundError as missing:
        pytest.skip(f'no package {missing}')


@pytest.mark.parametrize(('arm', 'description'), DESCRIBED)
def test_check_says_what_the_page_says(arm, description):
    skip_without(description)
    told = next(each for each in RUNS[arm['id']] if each['robot'] == description['robot'])
    found = run({**arm, 'way_in': {'kind': 'none'}}, description)
    for key in ('joints', 'mass', 'warnings', 'worst'):
        assert found[key] == told[key]


@pytest.mark.slow
@pytest.mark.parametrize('name', ['panda', 'z1', 'so101', 'openarm', 'piper'])
def test_lines_without_the_robot_lead_to_a_simulation(name, tmp_path):
    pytest.importorskip('mujoco')
    skip_without(next(each for each in ARMS if each['id'] == name)['descriptions'][0])
    values = re.search(r'^\*\*Without the robot:\*\* `(.*)`', SECTIONS[name], re.M)[1]
    lines = re.search(r'^PACKAGE=.*\npip install .*\n((?:.*\n)*?)```', PAGE, re.M)[1]
    block = f'{values}\n{lines}'
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    said = subprocess.run(
        ['bash', '-c', block],
        cwd=tmp_path,
        env={**os.environ, 'PATH': path},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    assert ' joints, ' in said.stdout and (tmp_path / 'motion.csv').is_file()


@pytest.mark.slow
@pytest.mark.parametrize('name', ['panda', 'z1', 'so101', 'openarm', 'piper'])
def test_the_stated_way_tracks_as_the_page_says(name):
    pytest.importorskip('mujoco')
    arm = next(each for each in ARMS if each['id'] == name)
    skip_without(arm['descriptions'][0])
    tracked = run(arm, arm['descriptions'][0])['tracking']
    told = RUNS[name][0]['tracking']
    assert tracked['with']['rms'] < 0.15 * tracked['without']['rms']
    assert tracked['with']['rms'] == pytest.approx(told['with']['rms'], rel=0.1)
