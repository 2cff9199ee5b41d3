# SPDX-License-Identifier: Apache-2.0
"""
The examples of the documentation run.

What its pages name, and its site, is checked by `make lint` and `make docs`: docs/check_pages.py,
docs/check_site.py.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
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


# What follows the quick start's own program: it ends when the arm is where it was sent.
UNTIL_THERE = """
from sensor_msgs.msg import JointState
arm = {}
def take(state):
    arm.update(zip(state.name, state.position))
node.create_subscription(JointState, '/joint_states', take, 10)
while any(abs(arm.get(name, 9.0) - goal) > 1e-2 for name, goal in zip(names, point.positions)):
    rclpy.spin_once(node, timeout_sec=0.1)
"""


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.ros
def test_the_quick_start_moves_the_simulated_arm():
    pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('mujoco')
    page = (DOCS / 'quick_start.md').read_text(encoding='utf-8')
    commands = re.findall(r'^robodyn (node .*)$', page, re.M)
    (program,) = re.findall(r'^```python\n(.*?)^```', page, re.S | re.M)
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(domains.claim())}
    command = [sys.executable, '-m', 'robodyn_ros.cli']
    nodes = [
        subprocess.Popen([*command, *shlex.split(words)], cwd=ROOT, env=environment)
        for words in commands
    ]
    try:
        # A computer that is too busy drops a trajectory: whoever reads the page sends it again.
        for _ in range(6):
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    [sys.executable, '-c', program + UNTIL_THERE],
                    env=environment,
                    check=True,
                    timeout=20,
                )
                break
        else:
            pytest.fail('the arm did not arrive')
    finally:
        for node in reversed(nodes):
            node.send_signal(signal.SIGINT)
        codes = [node.wait(timeout=60) for node in nodes]
    assert codes == [0, 0]
