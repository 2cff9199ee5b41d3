# SPDX-License-Identifier: Apache-2.0
"""docs/safety.md lists the faults that tests show, all of them and no others."""

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
from write_fault_table import SAFETY, faults, with_table
rows = faults()
text = SAFETY.read_text(encoding='utf-8')
print(len(rows), len({row[0] for row in rows}), with_table(text, rows) == text)
print(*[row[2] for row in rows if row[0].startswith('not marked')], sep='\\n')
"""


def test_table_of_faults_is_that_of_the_tests():
    # In a process of its own: pytest does not run inside pytest. What this one was told to select
    # is not for that one.
    environment = {key: value for key, value in os.environ.items() if key != 'PYTEST_ADDOPTS'}
    result = subprocess.run(
        [sys.executable, '-c', PROGRAM],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    first, *unmarked = result.stdout.splitlines()
    count, names, is_current = first.split()
    assert not any(unmarked)
    assert int(count) == int(names), 'a name is used twice'
    assert int(count) >= 40
    assert is_current == 'True', 'run: python docs/write_fault_table.py'
