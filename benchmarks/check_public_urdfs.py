# SPDX-License-Identifier: Apache-2.0
"""
Read every URDF of a folder, and compare with the result of urdfdom's check_urdf.

    python benchmarks/check_public_urdfs.py [DIR ...] [--check-urdf PATH] [--markdown FILE]

For each file every chain from a root link to a leaf is made into a model. Exit code 1: a file that
check_urdf accepts is refused, but for entities, size, and floating or planar joints on the chain.
check_urdf is in Debian's liburdfdom-tools; where it is missing, ours alone is shown. Without a
folder: the packages example-robot-data and rtb-data.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.chain import LinkTree, serial_chain
from robodyn_ros.description.findings import chain_findings
from robodyn_ros.description.records import RobotDescription
from robodyn_ros.description.urdf import description_of_urdf


@dataclass
class Outcome:
    """What became of one file: a kind, the reason where it is refused, codes of its findings."""

    path: Path
    accepted_by_urdfdom: bool | None
    kind: str
    reason: str = ''
    codes: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        return self.kind == 'refused'


def outcome_of(path: Path, check_urdf: str | None) -> Outcome:
    """Read a file, and make a model of every chain from a root to a leaf."""
    accepted = None
    if check_urdf is not None:
        answer = subprocess.run([check_urdf, path], capture_output=True, timeout=60)
        accepted = answer.returncode == 0
    try:
        description = description_of_urdf(path)
        tree = LinkTree(description)
        codes: set[str] = set()
        chains = 0
        others: set[str] = set()
        for root in tree.roots:
            for leaf in tree.below(root):
                if tree.child_joints[leaf]:
                    continue
                try:
                    codes.update(codes_of_chain(description, root, leaf))
                    chains += 1
                except errors.NoChain:
                    continue
                except errors.UnsupportedJoint as error:
                    others.add(str(error))
    except errors.NoChain as error:
        return Outcome(path, accepted, 'nothing moves', str(error))
    except rd.RobodynError as error:
        return Outcome(path, accepted, 'refused', f'{type(error).__name__}: {error}')
    if chains:
        return Outcome(path, accepted, 'read', codes=tuple(sorted(codes)))
    kind = 'floating or planar joints only' if others else 'nothing moves'
    return Outcome(path, accepted, kind)


def codes_of_chain(description: RobotDescription, root: str, leaf: str) -> set[str]:
    """Return the codes of all findings about one chain of which a model can be made."""
    chain = serial_chain(description, base_link=root, tip_link=leaf, mimic='independent')
    rd.RobotModel.from_chain(chain)
    return {finding.code for finding in chain_findings(chain)}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('folders', nargs='*', type=Path)
    parser.add_argument('--check-urdf', default=shutil.which('check_urdf'), metavar='PATH')
    parser.add_argument('--markdown', type=Path, help='write the table into this file')
    arguments = parser.parse_args()
    paths = [
        path
        for folder in arguments.folders
        for path in sorted(folder.rglob('*'))
        if path.suffix.lower() == '.urdf' and path.is_file()
    ]
    if not arguments.folders:
        paths = public_urdfs()
    outcomes = [outcome_of(path, arguments.check_urdf) for path in paths]
    text = table(outcomes, arguments.folders)
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text + '\n', encoding='utf-8')
    return int(any(each.is_refused and each.accepted_by_urdfdom for each in outcomes))


def table(outcomes: list[Outcome], folders: list[Path]) -> str:
    """Return counts, the refusals with their reasons, and how many files have which finding."""
    verdicts = {True: 'accepted', False: 'refused', None: 'not asked'}
    counts = Counter((each.kind, verdicts[each.accepted_by_urdfdom]) for each in outcomes)
    findings = Counter(code for each in outcomes for code in each.codes)
    lines = [
        f'{len(outcomes)} files',
        '',
        '| here | check_urdf | files |',
        '|---|---|---|',
        *(f'| {kind} | {verdict} | {count} |' for (kind, verdict), count in counts.most_common()),
        '',
        '| refused here | check_urdf | why |',
        '|---|---|---|',
    ]
    for each in outcomes:
        if each.is_refused:
            verdict = verdicts[each.accepted_by_urdfdom]
            lines.append(f'| {named(each.path, folders)} | {verdict} | {each.reason} |')
    lines += ['', '| finding | files |', '|---|---|']
    lines += [f'| {code} | {count} |' for code, count in findings.most_common()]
    return '\n'.join(lines)


def named(path: Path, folders: list[Path]) -> str:
    """Return a path below the folder that was asked for."""
    for folder in folders:
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return path.name


if __name__ == '__main__':
    sys.exit(main())
