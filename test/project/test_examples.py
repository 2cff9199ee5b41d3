# SPDX-License-Identifier: Apache-2.0
"""Every example runs, and says something."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OVER_ROS = ('import rclpy', 'from rclpy')


def examples():
    for path in sorted((ROOT / 'examples').glob('*.py')):
        if path.stem == 'record_motion':  # test_recording.py runs it, and reads what it records
            continue
        needs_ros = any(line in path.read_text(encoding='utf-8') for line in OVER_ROS)
        marks = [pytest.mark.slow, pytest.mark.ros] if needs_ros else []
        yield pytest.param(path, needs_ros, marks=marks, id=path.stem)


@pytest.mark.slow
@pytest.mark.parametrize(('path', 'needs_ros'), list(examples()))
def test_example_runs(path, needs_ros, tmp_path):
    if needs_ros:
        pytest.importorskip('rclpy')
    pictures = {each: each.stat().st_mtime_ns for each in (ROOT / 'docs' / 'images').iterdir()}
    result = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert 'nan' not in result.stdout
    # What it writes, it writes where it is run.
    assert pictures == {
        each: each.stat().st_mtime_ns for each in (ROOT / 'docs' / 'images').iterdir()
    }
