# SPDX-License-Identifier: Apache-2.0
"""The README tells the truth: its example runs, its table is the node's, its files exist."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / 'README.md').read_text(encoding='utf-8')


def test_library_example_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r'```python\n(.*?)```', README, re.S)
    exec(example, {})
    printed = capsys.readouterr().out
    assert 'q6' in printed


def test_parameter_table_is_made_from_the_declarations():
    pytest.importorskip('rclpy')
    sys.path.insert(0, str(ROOT / 'docs'))
    from write_parameter_table import table, with_table

    assert '`effort_limit_scale`' in table()
    assert with_table(README) == README, 'run: python docs/write_parameter_table.py'


def test_files_that_it_links_to_exist():
    links = re.findall(r'\]\((?!http)([^)#]+)\)', README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_it_shows_the_two_commands():
    assert 'make demo' in README
    assert 'make test' in README
