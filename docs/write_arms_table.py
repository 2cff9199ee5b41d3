# SPDX-License-Identifier: Apache-2.0
"""
Write the pages of arms and of public recordings, from facts and from runs.

    python docs/write_arms_table.py [--check]

docs/arms.md comes from arms.yaml and arms_runs.yaml, docs/public_recordings.md from
recordings.yaml and recordings_runs.yaml, all beside it; the rest of the pages is text.
Facts are corrected in the YAML, by hand; runs are written by benchmarks/arms.py and
benchmarks/identify_recordings.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from written_files import ROOT, exit_with, write_or_check

DOCS = ROOT / 'docs'
DRIVER = 'beside_your_driver.md'
# Facts that stand once, above the sections.
SAID_ABOVE = (
    ('Gravity', 'robot; position servo (inferred)'),
    ('Commanded effort', 'none'),
    ('Commanded effort', 'N m'),
)
# What each way in is called, and where it is explained.
WAYS = {
    'node': ('the node', f'{DRIVER}#a-forward-controller'),
    'feedforward': ('`feedforward`', f'{DRIVER}#effort-for-a-joint-trajectory-controller'),
    'servo': (
        '`feedforward` with `servo_gains`',
        f'{DRIVER}#a-servo-that-takes-positions-alone',
    ),
    'topic': ('the node, by named efforts', f'{DRIVER}#a-driver-that-takes-named-efforts'),
    'library': ('the library, in your loop', 'python_api.md'),
    'none': ('positions only', 'positions_only.md'),
}


def cell(words: str) -> str:
    """Return words as Markdown in which what is no code holds no HTML and ends no cell."""
    parts = str(words).replace('|', '/').split('`')
    parts[::2] = [part.replace('<', '&lt;') for part in parts[::2]]
    return '`'.join(parts)


class Sources:
    """Turns what the facts name as source into links; ``unknown`` lists what it cannot."""

    def __init__(self, repositories: Mapping[str, str]) -> None:
        self._repositories = repositories
        self.unknown: list[str] = []

    def links(self, fact: Mapping[str, Any]) -> str:
        """Return the numbered links of a fact, a space before the first; or nothing."""
        addresses = [self._address(source) for source in fact.get('source', [])]
        found = [address for address in addresses if address]
        numbered = ''.join(f'[[{k}]]({address})' for k, address in enumerate(found, 1))
        return f' {numbered}' if numbered else ''

    def _address(self, source: str) -> str:
        """Return the address of a source; empty for a package, which was opened."""
        if source.startswith('https://') or source == 'the package, opened here':
            return source if source.startswith('https://') else ''
        thread = re.fullmatch(r'([\w.-]+/[\w.-]+)#(\d+)', source)
        if thread:
            return f'https://github.com/{thread[1]}/issues/{thread[2]}'
        name, _, path = source.partition(':')
        if name not in self._repositories or not path:
            self.unknown.append(source)
            return ''
        repository, _, commit = self._repositories[name].partition('@')
        # A range of lines is written #L1-L2; what has no lines links to the file.
        return f'https://github.com/{repository}/blob/{commit}/{path.replace("&", "%26")}'


def said(fact: Mapping[str, Any], *keys: str) -> str:
    """Return those words of a fact that are there, joined; none that the next ones begin with."""
    words = [str(fact[key]) for key in keys if fact.get(key)]
    following = [*words, ''][1:]
    kept = [
        one
        for one, other in zip(words, following, strict=True)
        if not other.startswith(one.partition(',')[0])
    ]
    return '; '.join(cell(each) for each in kept)


def anchor(title: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-')


def overview(arms: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the table, a row an arm."""
    lines = [
        '<div class="stacked">',
        '',
        '| arm | interface | gravity (friction) by | reported effort | gravity in it | way in |',
        '|---|---|---|---|---|---|',
    ]
    for arm in arms:
        effort, way = arm['reported_effort'], arm['way_in']
        friction = arm['friction']['who'].replace('not found', '–')
        words, link = WAYS[way['kind']]
        if way['kind'] == 'none':
            words = f'[{words}]({link})'
        if not way.get('parameters', {}).get('terms', {}).get('gravity', True):
            words += ', `terms.gravity: false`'
        cells = [
            f'[{cell(arm["arm"])}](#{anchor(arm["arm"])})',
            arm['commands']['kind'],
            f'{arm["gravity"]["who"]} ({friction})',
            effort['unit'],
            effort['gravity'],
            words,
        ]
        lines.append(f'| {" | ".join(cells)} |')
    return [*lines, '', '</div>', '']


def facts(arm: Mapping[str, Any], sources: Sources) -> list[str]:
    """Return what was read about an arm and its driver, an item a fact that was found."""
    urdf, effort, gravity = arm['urdf'], arm['reported_effort'], arm['gravity']
    file = f'`{urdf["package"]}`' + (f', `{urdf["file"]}`' if 'file' in urdf else '')
    if 'file' in urdf and re.fullmatch(r'[\w/]+', urdf['package']):
        file = f'`{urdf["package"]}/{urdf["file"].split(";")[0].split(" (")[0]}`'
    notes = said(urdf, 'base_note', 'tip_note', 'note')
    in_it = said(effort, 'gravity', 'gravity_note')
    reported = said(effort, 'unit', 'unit_note', 'what')
    if in_it not in ('none', 'not found', ''):
        reported += f'; gravity in it: {in_it}'
    rows = [
        ('URDF', file + (f' ({notes})' if notes else ''), urdf),
        ('Interface', said(arm['commands'], 'how', 'gains'), arm['commands']),
        ('Gravity', said(gravity, 'who', 'how'), gravity),
        ('Friction', said(arm['friction'], 'who', 'how'), arm['friction']),
        ('Payload', said(arm['payload'], 'how'), arm['payload']),
        ('Reported effort', reported, effort),
        ('Its sign', said(effort, 'sign'), {}),
        ('Commanded effort', said(arm['commanded_effort'], 'unit'), arm['commanded_effort']),
        ('Read', said(arm['read'], 'what'), arm['read']),
    ]
    return [
        f'- **{name}:** {words}{sources.links(fact)}'
        for name, words, fact in rows
        if words not in ('', 'not found') and (name, words) not in SAID_ABOVE
    ]


def way_in(arm: Mapping[str, Any], sources: Sources) -> list[str]:
    """Return the way in, with what differs from arm to arm in files and lines."""
    way, urdf = arm['way_in'], arm['urdf']
    name, link = WAYS[way['kind']]
    parameters = way.get('parameters')
    if way['kind'] == 'node' and not (parameters or {}).get('terms', {}).get('gravity', True):
        link, parameters = f'{DRIVER}#a-driver-that-compensates-gravity', None
    if way['kind'] == 'feedforward' and arm['commands']['kind'] == 'position with effort':
        link = f'{DRIVER}#a-drive-that-takes-position-and-torque'
    lines = [f'**Way in: [{name}]({link}).** {cell(way.get("text", ""))}'.rstrip(), '']
    if 'servo' in arm:
        lines[0] += f' Source of the gains:{sources.links(arm["servo"])}.'
    if parameters:
        file = 'my_parameters' if way['kind'] == 'node' else 'my_feedforward'
        lines += yaml_block(f'# {file}.yaml', {'/**': {'ros__parameters': parameters}})
    chain = f'BASE={urdf["base"]} TIP={urdf["tip"]}'
    if way.get('commands'):
        lines += ['```bash', chain, *way['commands'], '```', '']
    else:
        lines[0] += f' `{chain}`'
    if 'switch' in way:
        switch = f'ros2 control switch_controllers {way["switch"]}'
        lines += ['In another terminal:', '', '```bash', switch, '```', '']
    if 'python' in way:
        lines += ['```python', way['python'], '```', '']
    if 'more' in way:
        lines += [cell(way['more']), '']
    return lines


def yaml_block(title: str, record: Mapping[str, Any]) -> list[str]:
    """Return a fence with what stands in a file."""
    text = yaml.safe_dump(dict(record), sort_keys=False, default_flow_style=None, width=90)
    # Mappings in blocks, lists of plain values in a line.
    text = re.sub(
        r'^( *)(\S+): \{(.*)\}$',
        lambda found: (
            f'{found[1]}{found[2]}:\n'
            + '\n'.join(f'{found[1]}  {part}' for part in re.split(r', (?=[\w]+:)', found[3]))
        ),
        text,
        flags=re.M,
    )
    return ['```yaml', title, text.rstrip(), '```', '']


def described(arm: Mapping[str, Any]) -> list[str]:
    """Return which public file of an arm was simulated, or why none was."""
    if 'descriptions' not in arm:
        words = cell(arm.get('no_description', ''))
        return [f'**Not simulated:** {words}.', ''] if words else []
    first = arm['descriptions'][0]
    notes = ' '.join(cell(each['note']) for each in arm['descriptions'] if 'note' in each)
    line = ' '.join(f'{key.upper()}={first[key]}' for key in ('package', 'file', 'base', 'tip'))
    return [f'**Without the robot:** `{line}`. {notes}'.rstrip(), '']


def simulated(arms: Iterable[Mapping[str, Any]], runs: Mapping[str, Any]) -> str:
    """Return the table of runs."""
    lines = [
        '<div class="stacked">',
        '',
        '| file | joints | kg | warnings | driver alone | with the model |',
        '|---|---|---|---|---|---|',
    ]
    for arm in arms:
        package_of = {each['robot']: each['package'] for each in arm.get('descriptions', [])}
        for run in runs.get(arm['id'], []):
            errors = [
                f'{run["tracking"][key]["rms"]:g} ({run["tracking"][key]["largest"]:g})'
                for key in ('without', 'with')
                if 'tracking' in run
            ]
            cells = [
                f'{run["robot"]}, {package_of[run["robot"]]} {run["version"]}',
                str(run['joints']),
                f'{run["mass"]:g}',
                str(run['warnings']),
                *(errors or ['', '']),
            ]
            lines.append(f'| {" | ".join(cells)} |')
    return '\n'.join([*lines, '', '</div>', ''])


def sections(arms: Iterable[Mapping[str, Any]], sources: Sources) -> str:
    """Return a section for each arm."""
    lines: list[str] = []
    for arm in arms:
        lines += [f'## {arm["arm"]}', '', f'Driver: {arm["driver"]}. Also: {arm["names"]}.', '']
        lines += way_in(arm, sources)
        if 'note' in arm:
            lines += [arm['note'], '']
        lines += [*facts(arm, sources), '', *described(arm)]
    return '\n'.join(lines)


def recordings_table(
    recordings: Iterable[Mapping[str, Any]], runs: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return the table of recordings."""
    lines = [
        '<div class="stacked">',
        '',
        '| robot | recording | licence | trained → held out | URDF | error | band |',
        '|---|---|---|---|---|---|---|',
    ]
    for each in recordings:
        run = runs.get(each.get('split', ''))
        motions = f'{each["trained"]} → {each["held_out"]}' if 'trained' in each else ''
        figures = ['', 'not run', '']
        if run is not None:
            figures = [
                f'{run["urdf"]:g} %',
                f'**{run["error"]:g} %**',
                f'± {run["band"]:g} %, {run["inside"]:g} % inside',
            ]
        name = each['source'].removeprefix('https://').removeprefix('github.com/')
        words = f'{cell(each["what"])} ([{name.removesuffix("/src/master/")}]({each["source"]}))'
        cells = [cell(each['robot']), words, cell(each['licence']), motions, *figures]
        lines.append(f'| {" | ".join(cells)} |')
    return '\n'.join([*lines, '', '</div>', ''])


def recordings_commands(recordings: Iterable[Mapping[str, Any]]) -> str:
    """Return the command of each recording that was run, in one block."""
    run = [each for each in recordings if 'command' in each]
    lines = [line for each in run for line in (f'# {each["robot"]}', each['command'])]
    return '\n'.join(['```bash', *lines, '```', ''])


def stored(name: str) -> Any:
    """Return what a YAML file of docs/ holds."""
    return yaml.safe_load((DOCS / name).read_text(encoding='utf-8'))


def between_marks(page: Path, written: Mapping[str, str]) -> str:
    """Return a page's text with each of these between its marks."""
    text = page.read_text(encoding='utf-8')
    for name, part in written.items():
        begin, end = f'<!-- {name}: begin -->\n', f'<!-- {name}: end -->'
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise ValueError(f'{page.name}: no place between {begin.strip()} and {end}')
        text = f'{head}{begin}{part}{end}{tail}'
    return text


if __name__ == '__main__':
    facts_of_arms, runs = stored('arms.yaml'), stored('arms_runs.yaml')['runs']
    arms, sources = facts_of_arms['arms'], Sources(facts_of_arms['repositories'])
    of_arms = {
        'overview': '\n'.join(overview(arms)),
        'arms': sections(arms, sources),
        'runs': simulated(arms, runs),
    }
    exit_with([f'arms.yaml: no repository for the source {each}' for each in sources.unknown])
    recordings = stored('recordings.yaml')['recordings']
    of_recordings = {
        'recordings': recordings_table(recordings, stored('recordings_runs.yaml') or {}),
        'commands': recordings_commands(recordings),
    }
    pages = {DOCS / 'arms.md': of_arms, DOCS / 'public_recordings.md': of_recordings}
    write_or_check({page: between_marks(page, written) for page, written in pages.items()})
