# SPDX-License-Identifier: Apache-2.0
"""The documentation tells the truth: its commands and examples run, its site builds unbroken."""

import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import domains
import pytest
from browser import chromium, opened
from lxml import etree, html

from robodyn_ros.cli import robodyn

pytestmark = pytest.mark.longer

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / 'docs'
# Where a file or folder may be that a page names without saying what it is in.
PACKAGES = [ROOT / 'robodyn_ros', ROOT / 'launch']
PAGES = sorted([ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *DOCS.rglob('*.md')])
WITH_PYTHON = ('urdf_to_torque', 'how_to', 'minimal_parameters', 'inverse_kinematics')
EXAMPLES = [
    pytest.param(block, id=f'{path.stem}-{k}')
    for path in (DOCS / f'{name}.md' for name in WITH_PYTHON)
    for k, block in enumerate(
        re.findall(r'^```python\n(.*?)^```', path.read_text(encoding='utf-8'), re.S | re.M)
    )
]


def shell_lines(text):
    """Return the commands of all fences, continued lines joined."""
    fences = re.findall(r'^ *```([{}\w]*)\n(.*?)^ *```', text, re.S | re.M)
    blocks = [block for language, block in fences if language in ('', 'sh', 'bash')]
    return '\n'.join(blocks).replace('\\\n', ' ').splitlines()


def written_commands():
    for path in PAGES:
        for line in shell_lines(path.read_text(encoding='utf-8')):
            for part in re.split(r'\||&&', line.partition(' #')[0]):
                if part.strip().startswith('robodyn '):
                    yield pytest.param(shlex.split(part)[1:], id=f'{path.stem}: {part.strip()}')


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.stem)
def test_every_fence_names_its_language(page):
    fences = re.findall(r'^ *```(.*)$', page.read_text(encoding='utf-8'), re.M)[::2]
    assert all(fences)


@pytest.mark.parametrize('words', list(written_commands()))
def test_every_command_that_is_written_down_exists_with_its_options(words):
    name, *arguments = words
    # Parses and checks as the command line does, and runs nothing.
    robodyn.get_command(None, name).make_context(name, arguments)


@pytest.mark.parametrize('block', EXAMPLES)
def test_python_of_the_pages_runs(block, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    exec(block, {})
    assert capsys.readouterr().out


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


def test_every_test_that_the_papers_page_names_is_there():
    text = (DOCS / 'papers.md').read_text(encoding='utf-8')
    file = None
    named = re.findall(r'`(?:(test_\w+\.py)(?:::)?)?(test_\w+)?`', text)
    assert len([name for _, name in named if name]) > 80
    for file_name, name in named:
        # A test without its file is of the file named before it.
        if file_name:
            found = list((ROOT / 'test').rglob(file_name))
            assert len(found) == 1, file_name
            file = found[0].read_text(encoding='utf-8')
        if name:
            assert f'def {name}(' in file, name


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


@pytest.mark.parametrize('paper', NUMBERED)
def test_every_equation_table_figure_and_problem_of_the_papers_has_a_row(paper):
    text = (DOCS / 'papers.md').read_text(encoding='utf-8')
    (section,) = re.findall(rf'^## {paper}, .*?(?=^## )', text, re.S | re.M)
    items = [line.split(' | ')[0] for line in section.splitlines() if line.startswith('| ')]
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
    equations, others = NUMBERED[paper]
    numbered = {f'{x}{k}' for x, count in equations.items() for k in range(1, count + 1)}
    numbered |= {f'{x}{k}' for x, count in others.items() for k in range(1, count + 1)}
    assert numbered - found == set()


def test_every_page_is_in_the_contents():
    for path in DOCS.rglob('*.md'):
        contents = (path.parent / 'index.md').read_text(encoding='utf-8')
        assert path.stem == 'index' or re.search(rf'^{path.stem}$', contents, re.M), path.name


def test_every_file_has_a_line_on_the_page_that_its_script_writes():
    words = subprocess.run(
        [sys.executable, '-c', 'import write_file_list as w; print(w.page(), end="")'],
        cwd=DOCS,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    written = (DOCS / 'development.md').read_text(encoding='utf-8')
    assert words == written, 'docs/write_file_list.py'


def test_the_repository_is_named_in_package_xml_and_nowhere_else():
    url = etree.parse(str(ROOT / 'package.xml')).findtext('url[@type="repository"]')
    for path in PAGES:
        text = path.read_text(encoding='utf-8')
        assert '<this repository>' not in text, path.name
        assert set(re.findall(r'git clone (\S+)', text)) <= {url}, path.name
    # The site's own is made from package.xml; GitHub shows the README as it is.
    clone = f'git clone {url} robodyn_ros && cd robodyn_ros'
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    assert url is None or clone in readme, f'write into README.md, above make demo: {clone}'


def is_a_name_of_the_package(dotted):
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
def python_files():
    """Return the files of the package, its tests and what stands beside them."""
    folders = ('robodyn_ros', 'test', 'launch', 'examples', 'benchmarks', 'environment', 'docs')
    return [path for folder in folders for path in (ROOT / folder).rglob('*.py')]


@cache
def names_of_tests():
    paths = [path for path in python_files() if ROOT / 'test' in path.parents]
    text = '\n'.join(path.read_text(encoding='utf-8') for path in paths)
    return {path.stem for path in paths} | set(re.findall(r'^def (test_\w+)', text, re.M))


def is_somewhere(path):
    """Return whether a page may call a file or folder, or an interface, by this path."""
    interface = re.fullmatch(r'robodyn_interfaces/(?:(?:msg|srv)/)?(\w+)', path)
    if interface:
        return any((ROOT / 'robodyn_interfaces').glob(f'*/{interface.group(1)}.*'))
    return any((root / path).exists() for root in (ROOT, DOCS, *PACKAGES))


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.stem)
def test_every_test_file_folder_and_module_that_a_page_names_exists(page):
    text = page.read_text(encoding='utf-8')
    missing = sorted(set(re.findall(r'\btest_\w+\b(?!\*)', text)) - names_of_tests())
    # A path is one of the repository, of docs/ or of the package; what a user makes has no folder.
    spoken = re.findall(r'(?<![\w/.~$-])(?:[\w-]+/)+[\w.-]*\w(?!\w*\*)|(?<=`)(?:\w+/)+(?=`)', text)
    bare = set(re.findall(r'(?<![\w/.-])\w+\.py\b', text))
    missing += sorted(bare - {path.name for path in [*ROOT.glob('*.py'), *python_files()]})
    folders = {path.name for root in (ROOT, ROOT / 'robodyn_ros') for path in root.iterdir()}
    for path in set(spoken):
        is_ours = path.endswith('.py') or path.split('/')[0] in folders - {'src'}
        if is_ours and not is_somewhere(path):
            missing.append(path)
    missing += [
        name
        for name in set(re.findall(r'\brobodyn_ros(?:\.[A-Za-z]\w*)+', text))
        if not name.endswith('.git') and not is_a_name_of_the_package(name)
    ]
    assert missing == []


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    """Return the folder of the site, built without a warning."""
    pytest.importorskip('sphinx', reason='environment/docs.txt is not installed: make docs')
    folder = tmp_path_factory.mktemp('site')
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
            str(folder),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_its_links_lead_somewhere(site):
    pages = {path: html.parse(str(path)).getroot() for path in site.glob('*.html')}
    broken = [
        f'{path.name}: {link}'
        for path, root in pages.items()
        for _, _, link, _ in root.iterlinks()
        if not leads_somewhere(path, link, pages)
    ]
    assert broken == []


@pytest.mark.slow
@pytest.mark.parametrize('width', [390, 1440])
def test_pages_of_the_site_fit_a_phone_and_a_desktop(site, width):
    pages = (
        'index',
        'installation',
        'quick_start',
        'parameters',
        'mistakes',
        'safety',
        'troubleshooting',
        'evidence',
        'python_api',
        'public_urdfs',
    )
    with chromium() as browser:
        for name in pages:
            with opened(browser, site / f'{name}.html', width) as page:
                assert page.evaluate('document.documentElement.scrollWidth') <= width, name
                # A picture of a page is one of a page that is as wide.
                shown = page.eval_on_selector_all(
                    'article img',
                    'all => all.filter(x => x.offsetWidth).map(x => x.naturalWidth)',
                )
                assert width > 1000 or max(shown, default=0) <= 800, name
                cut = page.eval_on_selector_all(
                    'article .table-wrapper',
                    'all => all.filter(x => x.scrollWidth > x.clientWidth + 1).length',
                )
                assert width < 1000 or cut == 0, f'{name}: {cut} tables are wider than the page'


@pytest.mark.slow
def test_the_site_says_how_to_install_and_under_which_licence(site):
    index = html.parse(str(site / 'index.html')).getroot()
    assert index.xpath('//aside//a[@href="installation.html"]')
    assert 'Apache-2.0' in index.find('.//footer').text_content()
    api = html.parse(str(site / 'python_api.html')).getroot()
    # The summary comes before the reference, and leads into it.
    (table, *_) = api.xpath('//article//table')
    assert {'#models', '#dynamics', '#errors'} <= set(table.xpath('.//a/@href'))


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
