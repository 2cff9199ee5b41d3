# SPDX-License-Identifier: Apache-2.0
"""The documentation tells the truth: its commands and examples run, its site builds unbroken."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html

from robodyn_ros.cli import robodyn

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
PAGES = sorted(path for path in [ROOT / 'README.md', *DOCS.glob('*.md')])
# What is in ```sh may be copied and run in a checkout as it stands; what needs more, a robot or
# a recording, stands in plain fences.
COMMANDS = {
    path.name: '\n'.join(blocks)
    for path in PAGES
    if (blocks := re.findall(r'^```sh\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M))
}
EXAMPLES = [
    pytest.param(block, id=f'{path.stem}-{k}')
    for path in (DOCS / name for name in ('urdf_to_torque.md', 'how_to.md'))
    for k, block in enumerate(
        re.findall(r'^```python\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M)
    )
]


def shell_lines(text):
    """Return the commands of all fences, continued lines joined."""
    blocks = re.findall(r'^```(?:sh)?\n(.*?)^```', text, re.S | re.M)
    return '\n'.join(blocks).replace('\\\n', ' ').splitlines()


def written_commands():
    for path in PAGES:
        for line in shell_lines(path.read_text(encoding='utf-8')):
            for part in re.split(r'\||&&', line.partition(' #')[0]):
                if part.strip().startswith('robodyn '):
                    yield pytest.param(shlex.split(part)[1:], id=f'{path.stem}: {part.strip()}')


@pytest.mark.parametrize('words', list(written_commands()))
def test_every_command_that_is_written_down_exists_with_its_options(words):
    name, *arguments = words
    # Parses and checks as the command line does, and runs nothing.
    robodyn.commands[name].make_context(name, arguments)


@pytest.mark.parametrize('block', EXAMPLES)
def test_python_of_the_pages_runs(block, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(block, {})
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize('page', COMMANDS)
def test_commands_of_the_pages_run_one_after_the_other(page, tmp_path):
    (tmp_path / 'urdf').symlink_to(ROOT / 'urdf')
    script = f'robodyn() {{ {shlex.quote(sys.executable)} -m robodyn_ros.cli "$@"; }}\n'
    result = subprocess.run(
        ['bash', '-ec', script + COMMANDS[page]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr


def test_every_page_is_in_the_contents():
    contents = (DOCS / 'index.md').read_text(encoding='utf-8')
    left_out = {'index', 'release_checklist'}
    for path in DOCS.glob('*.md'):
        assert path.stem in left_out or re.search(rf'^{path.stem}$', contents, re.M), path.name


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_lead_somewhere(tmp_path):
    pytest.importorskip('sphinx', reason='environment/docs.txt is not installed: make docs')
    result = subprocess.run(
        [
            sys.executable,
            '-m',
            'sphinx',
            '-q',
            '-W',
            '--keep-going',
            '-b',
            'html',
            str(DOCS),
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    pages = {path: html.parse(str(path)).getroot() for path in tmp_path.glob('*.html')}
    broken = [
        f'{path.name}: {link}'
        for path, root in pages.items()
        for _, _, link, _ in root.iterlinks()
        if not leads_somewhere(path, link, pages)
    ]
    assert broken == []


def leads_somewhere(page, link, pages):
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target in pages and parts.fragment:
        return any(
            element.get('id') == unquote(parts.fragment) for element in pages[target].iter()
        )
    return target.exists()
