# SPDX-License-Identifier: Apache-2.0
"""The README tells the truth: its example runs, its parameters are the node's, its files exist."""

import re
from pathlib import Path

from robodyn_ros.control.settings import PARAMETERS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / 'README.md').read_text(encoding='utf-8')


def test_library_example_runs(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r'```python\n(.*?)```', README, re.S)
    exec(example, {})
    printed = capsys.readouterr().out
    assert 'q6' in printed


def test_parameters_that_it_names_are_the_node_s():
    section = README.partition('### Parameters')[2].partition('\n#')[0]
    named = re.findall(r'^- `([\w.]+)`', section, re.M)
    assert len(named) == 5
    assert set(named) <= {parameter.name for parameter in PARAMETERS}


def test_files_that_it_links_to_exist():
    links = re.findall(r'\]\((?!http)([^)#]+)\)', README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_it_shows_the_two_commands():
    assert 'make demo' in README
    assert 'make test' in README
