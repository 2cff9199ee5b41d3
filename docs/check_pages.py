# SPDX-License-Identifier: Apache-2.0
"""
Check what the pages name: links, commands, tests, files, modules, parameters, rows and contents.

    python docs/check_pages.py

Every fault is printed with its file and line; the exit status is 1 where there is one. What the
commands and examples of the pages do is tested in test/project/test_documentation.py.
"""

from __future__ import annotations

import ast
import configparser
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import click
from draw_compiled import told
from lxml import etree
from written_files import ROOT, exit_with

from robodyn_ros.cli import robodyn
from robodyn_ros.control.settings import PARAMETERS

DOCS = ROOT / 'docs'
README = ROOT / 'README.md'
# Where a file or folder may be that a page names without saying what it is in.
PACKAGES = [ROOT / 'robodyn_ros', ROOT / 'launch']
PAGES = sorted([README, ROOT / 'CONTRIBUTING.md', *DOCS.rglob('*.md')])
# What is numbered in the papers: equations by what stands before their number and how many there
# are; the last table, figure and problem.
NUMBERED = {
    '000': ({'': 40, 'A-': 12, 'B-': 4}, {'Table ': 3, 'Fig ': 3}),
    '001': (
        {'3.2-': 40, '3.3-': 59, '3.4-': 28},
        {'Table 3.': 5, 'Fig 3.': 11, 'problem 3.': 18},
    ),
    '002': ({'': 140, 'A.': 21, 'C.': 7, 'D.': 38}, {'Table ': 4, 'Fig ': 11}),
    '003': ({'': 23}, {'Table ': 1, 'Fig ': 2, 'theorem ': 7}),
    '004': ({'': 59}, {'Table ': 3, 'Fig ': 8}),
}

Faults = Iterator[tuple[int, str]]
"""Where in a page's text each fault begins, and the fault."""


def fences(text: str) -> Faults:
    """Yield every fence that does not name its language."""
    for found in list(re.finditer(r'^ *```(.*)$', text, re.M))[::2]:
        if not found[1]:
            yield found.start(), 'a fence that names no language'


def tables(text: str) -> Faults:
    """Yield every table that has no head, as after an empty line among its rows."""
    for found in re.finditer(
        r'(?<!\|)\n\|.*\n(?!\|[-:| ]+\n)', re.sub(r'(?m)^ *```[^`]*?```', _blank, text)
    ):
        yield found.start() + 1, 'a table without a head'


def _blank(found: re.Match[str]) -> str:
    return re.sub('[^\n]', ' ', found[0])


def commands(text: str) -> Faults:
    """Yield every command of a fence that the command line does not take, with its options."""
    for fence in re.finditer(r'^ *```([{}\w]*)\n(.*?)^ *```', text, re.S | re.M):
        if fence[1] not in ('', 'sh', 'bash'):
            continue
        # Continued lines are joined, at the same length.
        for line in re.finditer(r'.+', fence[2].replace('\\\n', '  ')):
            for part in re.split(r'\||&&', line[0].partition(' #')[0]):
                if part.strip().startswith('robodyn '):
                    fault = _fault_of_command(shlex.split(part)[1:])
                    if fault:
                        yield fence.start(2) + line.start(), f'{part.strip()}: {fault}'


def _fault_of_command(words: list[str]) -> str:
    name, *arguments = words
    command = robodyn.get_command(None, name)
    if command is None:
        return 'no such command'
    try:
        # Parses and checks as the command line does, and runs nothing.
        command.make_context(name, arguments)
    except click.ClickException as error:
        return error.format_message()
    return ''


def links(page: Path, text: str) -> Faults:
    """Yield every link to a file or folder that is not there."""
    for found in re.finditer(r'\]\((?!https?:|mailto:)([^)#\s]+)', text):
        if not (page.parent / unquote(found[1])).exists():
            yield found.start(), f'a link to {found[1]}, which is not there'


@cache
def plugins() -> set[str]:
    """Return the names by which pluginlib finds the controller's package."""
    descriptions = (ROOT / 'robodyn_controllers').glob('*.xml')
    return {
        name
        for path in descriptions
        for name in re.findall(r'class name="([^"]+)"', path.read_text(encoding='utf-8'))
    }


def names(text: str) -> Faults:
    """Yield every test, file, folder and module that is named and is not there."""
    for found in re.finditer(r'\btest_\w+\b(?!\*)', text):
        if found[0] not in names_of_tests():
            yield found.start(), f'no test is called {found[0]}'
    # A path is one of the repository, of docs/ or of the package; what a user makes has no folder.
    spoken = r'(?<![\w/.~$-])(?:[\w-]+/)+[\w.-]*\w(?!\w*\*)|(?<=`)(?:\w+/)+(?=`)'
    folders = {path.name for root in (ROOT, ROOT / 'robodyn_ros') for path in root.iterdir()}
    for found in re.finditer(spoken, text):
        is_ours = found[0].endswith('.py') or found[0].split('/')[0] in folders - {'src'}
        if is_ours and not is_somewhere(found[0]) and found[0] not in plugins():
            yield found.start(), f'no file or folder {found[0]}'
    files = {path.name for path in [*ROOT.glob('*.py'), *python_files()]}
    for found in re.finditer(r'(?<![\w/.-])\w+\.py\b', text):
        if found[0] not in files:
            yield found.start(), f'no file {found[0]}'
    for found in re.finditer(r'\brobodyn_ros(?:\.[A-Za-z]\w*)+', text):
        if not found[0].endswith('.git') and not is_a_name_of_the_package(found[0]):
            yield found.start(), f'no module or name {found[0]}'


@cache
def is_a_name_of_the_package(dotted: str) -> bool:
    """Return whether a dotted name can be imported."""
    parts = dotted.split('.')
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module('.'.join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@cache
def python_files() -> list[Path]:
    """Return the files of the package, its tests and what stands beside them."""
    folders = ('robodyn_ros', 'test', 'launch', 'examples', 'benchmarks', 'environment', 'docs')
    return [path for folder in folders for path in (ROOT / folder).rglob('*.py')]


@cache
def names_of_tests() -> set[str]:
    """Return the names of the tests and of their files."""
    paths = [path for path in python_files() if ROOT / 'test' in path.parents]
    text = '\n'.join(path.read_text(encoding='utf-8') for path in paths)
    return {path.stem for path in paths} | set(re.findall(r'^def (test_\w+)', text, re.M))


@cache
def is_somewhere(path: str) -> bool:
    """Return whether a page may call a file or folder, or an interface, by this path."""
    interface = re.fullmatch(r'robodyn_interfaces/(?:(?:msg|srv)/)?(\w+)', path)
    if interface:
        return any((ROOT / 'robodyn_interfaces').glob(f'*/{interface.group(1)}.*'))
    return any((root / path).exists() for root in (ROOT, DOCS, *PACKAGES))


def contents(page: Path) -> Faults:
    """Yield a page of docs/ that the contents of its folder leave out."""
    if DOCS in page.parents and page.stem != 'index':
        index = (page.parent / 'index.md').read_text(encoding='utf-8')
        if not re.search(rf'^{page.stem}$', index, re.M):
            yield 0, 'is not in the contents of index.md'


def repository(page: Path, text: str) -> Faults:
    """Yield every name of the repository that is not the one of package.xml."""
    url = etree.parse(str(ROOT / 'package.xml')).findtext('url[@type="repository"]')
    for found in re.finditer(r'<this repository>|git clone (\S+)', text):
        if found[1] is None or found[1] != url:
            yield found.start(), 'package.xml alone names the repository'
    # The site's own is made from package.xml; GitHub shows the README as it is.
    clone = f'git clone {url} robodyn_ros && cd robodyn_ros'
    if page == README and url is not None and clone not in text:
        yield text.index('make demo'), f'write above make demo: {clone}'


def readme(text: str) -> Faults:
    """Yield what is wrong with the parameters and commands of the README."""
    for command in ('make demo', 'make test'):
        if command not in text:
            yield 0, f'does not show {command}'
    start = text.find('### Parameters')
    end = text.find('\n#', start)
    listed = list(re.compile(r'^- `([\w.]+)`', re.M).finditer(text, start, end))
    if len(listed) != 5:
        yield max(start, 0), f'lists {len(listed)} parameters, not 5'
    for found in listed:
        if found[1] not in {parameter.name for parameter in PARAMETERS}:
            yield found.start(), f'no parameter {found[1]}'


def tests_of_papers(text: str) -> Faults:
    """Yield every test that the page names and is not in the file that is named before it."""
    file, count = '', 0
    for found in re.finditer(r'`(?:(test_\w+\.py)(?:::)?)?(test_\w+)?`', text):
        # A test without its file is of the file named before it.
        if found[1]:
            paths = list((ROOT / 'test').rglob(found[1]))
            if len(paths) != 1:
                yield found.start(), f'{len(paths)} files are called {found[1]}'
                continue
            file = paths[0].read_text(encoding='utf-8')
        if found[2]:
            count += 1
            if f'def {found[2]}(' not in file:
                yield found.start(), f'{found[2]} is not in the file that is named before it'
    if count <= 80:
        yield 0, f'names {count} tests only'


def rows_of_papers(text: str) -> Faults:
    """Yield every equation, table, figure and problem of the papers that has no row."""
    for paper, (equations, others) in NUMBERED.items():
        section = re.search(rf'^## {paper}, .*?(?=^## )', text, re.S | re.M)
        if section is None:
            yield 0, f'no section on paper {paper}'
            continue
        items = [line.split(' | ')[0] for line in section[0].splitlines() if line[:2] == '| ']
        numbered = {f'{x}{k}' for x, count in equations.items() for k in range(1, count + 1)}
        numbered |= {f'{x}{k}' for x, count in others.items() for k in range(1, count + 1)}
        for missing in sorted(numbered - _numbers_in(items)):
            yield section.start(), f'no row of {missing}'


def _numbers_in(items: list[str]) -> set[str]:
    found = set()
    for item in items:
        for before, first, last in re.findall(
            r'\(([A-D][.-]|3\.[234]-)?(\d+)\)(?:-\((?:[A-D][.-]|3\.[234]-)?(\d+)\))?', item
        ):
            found |= {f'{before}{k}' for k in range(int(first), int(last or first) + 1)}
        for kind, several in re.findall(
            r'(Table|Fig|problem|theorem)s?\.? ((?:3\.)?\d+(?:(?:-|, )(?:3\.)?\d+(?!\w))*)', item
        ):
            for one in several.split(', '):
                first, last = (one.split('-') * 2)[:2]
                chapter = '3.' if first.startswith('3.') and '.' in first else ''
                ends = [int(x.removeprefix(chapter)) for x in (first, last)]
                found |= {f'{kind} {chapter}{k}' for k in range(ends[0], ends[1] + 1)}
    return found


def folders_of_architecture(text: str) -> Faults:
    """Yield a fault where the folders do not stand in the order of their imports, of setup.cfg."""
    start = text.find('|---|---|---|')
    table = text[start:].partition('\n\n')[0]
    first_column = '\n'.join(line.split('|')[1] for line in table.splitlines() if line)
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg')
    layers = config['importlinter:contract:order']['layers'].split()
    rooms = [name.strip('()') for name in reversed(layers)]
    there = [name for name in rooms if list((ROOT / 'robodyn_ros').glob(f'{name}*'))]
    if re.findall(r'`(\w+)(?:\.py|/)`', first_column) != there:
        yield start, f'the folders are not those of setup.cfg, in their order: {", ".join(there)}'


def extras(text: str) -> Faults:
    """Yield a fault where the extras that are listed are not those of setup.py."""
    found = re.findall(r'^\| `(\w+)` \|', text, re.M)
    there = _literal(ROOT / 'setup.py', 'EXTRAS')
    if set(found) != set(there):
        yield 0, f'lists other extras than setup.py: {", ".join(there)}'


def picture_of_parts(text: str) -> Faults:
    """Yield a fault where the picture of a torque's parts is not the one of its example."""
    title = _literal(ROOT / 'examples' / 'record_motion.py', 'TITLE')
    if told(DOCS / 'images' / 'torque_parts.png')['Title'] != title:
        yield text.find('torque_parts.png'), f'the picture has not the title: {title}'


def _literal(path: Path, name: str) -> object:
    """Return the value of a name of a file, which is not run."""
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == name:
            return ast.literal_eval(node.value)
    raise KeyError(f'{path}: {name}')


OF_ONE_PAGE = {
    'README.md': (readme,),
    'docs/papers.md': (tests_of_papers, rows_of_papers),
    'docs/architecture.md': (folders_of_architecture,),
    'docs/installation.md': (extras,),
    'docs/services.md': (picture_of_parts,),
}


def faults() -> Iterator[str]:
    """Yield a line for each fault of each page."""
    for page in PAGES:
        text = page.read_text(encoding='utf-8')
        name = str(page.relative_to(ROOT))
        checks = [
            fences(text),
            tables(text),
            commands(text),
            links(page, text),
            names(text),
            contents(page),
            repository(page, text),
            *(check(text) for check in OF_ONE_PAGE.get(name, ())),
        ]
        for check in checks:
            for start, fault in check:
                yield f'{name}:{text.count(chr(10), 0, max(start, 0)) + 1}: {fault}'


if __name__ == '__main__':
    exit_with(list(faults()))
    print(f'{len(PAGES)} pages: what they name is there')
