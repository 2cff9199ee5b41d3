# SPDX-License-Identifier: Apache-2.0
"""
The examples of the documentation run.

What its pages name, and its site, is checked by `make lint` and `make docs`: docs/check_pages.py,
docs/check_site.py.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import domains
import pytest

pytestmark = pytest.mark.longer

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
WITH_PYTHON = ('urdf_to_torque', 'how_to', 'minimal_parameters', 'inverse_kinematics')
EXAMPLES = [
    pytest.param(block, id=f'{path.stem}-{k}')
    for path in (DOCS / f'{name}.md' for name in WITH_PYTHON)
    for k, block in enumerate(
        re.findall(r'^```python\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M)
    )
]


@pytest.mark.parametrize('block', EXAMPLES)
def test_python_of_the_pages_runs(block, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(block, {})
    assert capsys.readouterr().out


def test_library_example_of_the_readme_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = (ROOT / 'README.md').read_text(encoding='utf-8')
    (example,) = re.findall(r'```python\n(.*?)```', page, re.S)
    exec(example, {})
    assert 'q6' in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.ros
def test_the_quick_start_moves_the_simulated_arm_and_gives_it_a_load(tmp_path):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('mujoco')
    page = (DOCS / 'quick_start.md').read_text(encoding='utf-8')
    lines = re.findall(r'^robodyn (.*)$', page.replace('\\\n', ' '), re.M)
    (tmp_path / 'urdf').symlink_to(ROOT / 'urdf')
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domains.claim())}
    options = {'cwd': tmp_path, 'env': environment}

    def command(words):
        return [sys.executable, '-m', 'robodyn_ros.cli', *shlex.split(words)]

    def until_well():
        for _ in range(60):  # the reader waits for the nodes
            if subprocess.run(command('status'), **options).returncode == 0:
                return
        pytest.fail('the nodes are not well')

    def until_there(**goal):
        for _ in range(60):
            said = subprocess.run(command('status --json'), **options, stdout=subprocess.PIPE)
            joints = json.loads(said.stdout)['joints']
            there = dict(zip(joints['joint_names'], joints['position']))
            if all(abs(there[name] - where) < 1e-3 for name, where in goal.items()):
                return
        pytest.fail(f'the arm did not arrive: {there}')

    nodes = [
        subprocess.Popen(command(words), **options) for words in lines if words.startswith('node ')
    ]
    try:
        for words in lines[[words.startswith('node ') for words in lines].index(True) :]:
            if words.startswith('node '):
                continue
            if words.endswith('--node simulator_node'):  # the reader sees it arrive
                until_there(joint1=0.5, joint2=-0.5, joint5=0.5)
            if words == 'status':
                until_well()
            subprocess.run(command(words), **options, check=True)
        until_there(joint1=-0.5, joint2=-0.5, joint5=-0.5)
        assert (tmp_path / 'session.png').stat().st_size > 10_000
    finally:
        for node in reversed(nodes):
            node.send_signal(signal.SIGINT)
        codes = [node.wait(timeout=60) for node in nodes]
    assert codes == [0, 0]
