# SPDX-License-Identifier: Apache-2.0
"""docs/evidence.md and docs/mistakes.md list what marked tests show, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import sys
sys.path.insert(0, 'docs')
from write_fault_table import FAULTS, MISTAKES
tests = {'faults': FAULTS, 'mistakes': MISTAKES}[sys.argv[1]]
rows = tests.rows()
text = tests.page.read_text(encoding='utf-8')
print(len(rows), len({row[0] for row in rows}), tests.with_table(text, rows) == text)
print(*[row[-1] for row in rows if row[0].startswith('no mark')], sep='\\n')
"""


@pytest.mark.longer
@pytest.mark.parametrize('what, fewest', [('faults', 40), ('mistakes', 30)])
def test_table_is_that_of_the_tests(what, fewest):
    # In a process of its own: pytest does not run inside pytest. What this one was told to select
    # is not for that one.
    environment = {key: value for key, value in os.environ.items() if key != 'PYTEST_ADDOPTS'}
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM, what],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    first, *unmarked = result.stdout.splitlines()
    count, names, is_current = first.split()
    assert not any(unmarked)
    assert int(count) == int(names), 'a name is used twice'
    assert int(count) >= fewest
    assert is_current == 'True', 'run: python docs/write_fault_table.py'
