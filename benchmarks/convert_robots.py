# SPDX-License-Identifier: Apache-2.0
"""
Convert every serial chain of a folder of URDFs and compare with Pinocchio.

    python benchmarks/convert_robots.py [folder ...] [--markdown FILE]

Without a folder: the packages example-robot-data and rtb-data. Each chain runs from the root link
to a leaf and has two movable joints or more; other joints are locked in both models.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from oracles import PinocchioArm, pose_difference, random_states, relative_difference
from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros.description.records import RobotDescription
from robodyn_ros.description.urdf import description_of_urdf

STATES = 10
_LARGE = 2e-13  # differences of torque that are listed


@dataclass
class Worst:
    """The largest differences seen over some chains."""

    chains: int = 0
    joints: int = 0
    distance: float = 0.0
    angle: float = 0.0
    torque: float = 0.0
    with_beta: int = 0
    refused: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def leaves(robot: RobotDescription) -> list[str]:
    """Return the links that no joint leads away from."""
    parents = {joint.parent for joint in robot.joints.values()}
    return [name for name in robot.links if name not in parents]


def compare_file(path: Path) -> Worst:
    """Convert all chains of a file, root to every leaf."""
    worst = Worst()
    robot = description_of_urdf(path)
    for leaf in leaves(robot):
        try:
            arm = rd.RobotModel.from_urdf(path, tip_link=leaf, mimic='independent')
        except rd.RobodynError as error:
            worst.refused[type(error).__name__].append(leaf)
            continue
        if arm.n >= 2:
            compare_chain(path, arm, worst)
    return worst


def compare_chain(path: Path, arm: rd.RobotModel, worst: Worst) -> None:
    """Add the differences of one chain at seeded states."""
    oracle = PinocchioArm.of(path, arm)
    states = random_states(arm, STATES, seed=0)
    poses = rd.forward_kinematics(arm, states[0])
    torques = rd.inverse_dynamics(arm, *states)
    for pose, torque, *state in zip(poses, torques, *states):
        distance, angle = pose_difference(pose, oracle.tip_pose(state[0]))
        worst.distance = max(worst.distance, distance)
        worst.angle = max(worst.angle, angle)
        worst.torque = max(worst.torque, relative_difference(torque, oracle.torque(*state)))
    worst.chains += 1
    worst.joints = max(worst.joints, arm.n)
    worst.with_beta += bool(np.any(arm.dh.beta))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument('folders', nargs='*', type=Path)
    parser.add_argument('--markdown', type=Path, help='write the table into this file')
    arguments = parser.parse_args()
    paths = public_urdfs()
    if arguments.folders:
        paths = sorted(path for folder in arguments.folders for path in folder.rglob('*.urdf'))
    rows, unreadable, chainless = [], [], []
    for path in paths:
        try:
            worst = compare_file(path)
        except rd.RobodynError as error:
            unreadable.append((path.name, f'{type(error).__name__}: {error}'))
            continue
        if worst.chains:
            rows.append((path.name, worst))
        else:
            chainless.append((path.name, 'no chain of two movable joints: ' + reasons(worst)))
    table = markdown(rows, unreadable + chainless)
    print(table)
    if arguments.markdown:
        arguments.markdown.write_text(table + '\n', encoding='utf-8')
    largest = max((worst.distance for _, worst in rows), default=0.0)
    torque = max((worst.torque for _, worst in rows), default=0.0)
    return int(largest > 1e-9 or torque > 1e-8)


def reasons(worst: Worst) -> str:
    """Say why chains were refused, a count for each error."""
    return ', '.join(f'{name} ({len(which)})' for name, which in worst.refused.items()) or 'none'


def markdown(rows: list[tuple[str, Worst]], left_out: list[tuple[str, str]]) -> str:
    """Return the table, its sum first."""
    chains = sum(worst.chains for _, worst in rows)
    lines = [
        '# Converted robots',
        '',
        'Every serial chain from the root link to a leaf, against Pinocchio with the same joints',
        'locked (`python benchmarks/convert_robots.py --markdown FILE [folder ...]`). Torques are',
        'relative to the largest of the state, or to 1 N m if that is smaller.',
        '',
        f'{len(rows)} files, {chains} chains of two joints or more, {STATES} seeded states each; '
        f'{sum(worst.with_beta for _, worst in rows)} chains have nearly parallel axes (β).',
        f'Worst: position {max(w.distance for _, w in rows):.1e} m, '
        f'angle {max(w.angle for _, w in rows):.1e} rad, '
        f'torque {max(w.torque for _, w in rows):.1e} of the largest.',
        '',
        f'Files: {", ".join(name.removesuffix(".urdf") for name, _ in rows)}.',
        '',
        f'Where the torque differs most, the others by less than {_LARGE:.0e}:',
        '',
        '| file | joints | position [m] | torque |',
        '|---|--:|--:|--:|',
    ]
    for name, worst in rows:
        if worst.torque >= _LARGE:
            lines.append(
                f'| {name} | {worst.joints} | {worst.distance:.1e} | {worst.torque:.1e} |'
            )
    lines += ['', 'Left out:', '', '| file | why |', '|---|---|']
    lines += [f'| {name} | {why} |' for name, why in left_out]
    return '\n'.join(lines)


if __name__ == '__main__':
    sys.exit(main())
