# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions for the tests: public ones from PyPI, and generators of hard ones."""

from __future__ import annotations

import math
from importlib.metadata import files
from pathlib import Path

import numpy as np


def public_urdfs() -> list[Path]:
    """Return every URDF of the packages example-robot-data and rtb-data."""
    paths = [
        Path(str(file.locate()))
        for package in ('example-robot-data', 'rtb-data')
        for file in files(package) or []
        if file.suffix == '.urdf'
    ]
    return sorted(path.resolve() for path in paths)


def public_urdf(name: str) -> Path:
    """Return the public URDF with this file name."""
    return next(path for path in public_urdfs() if path.name == name)


def two_link_urdf(m1: float = 1.0, m2: float = 1.0, length: float = 1.0) -> str:
    """Return the two-link arm of Fu, Gonzalez and Lee 1987, 3.2.6: slender rods, y upwards."""

    def link(name: str, mass: float) -> str:
        inertia = mass * length**2 / 12
        return (
            f'<link name="{name}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>'
            f'<inertia ixx="0" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/>'
            '</inertial></link>'
        )

    return (
        f'<robot name="two_link"><link name="base"/>{link("link1", m1)}{link("link2", m2)}'
        '<joint name="joint1" type="continuous"><parent link="base"/><child link="link1"/>'
        '<axis xyz="0 0 1"/></joint>'
        f'<joint name="joint2" type="continuous"><origin xyz="{length} 0 0"/>'
        '<parent link="link1"/><child link="link2"/><axis xyz="0 0 1"/></joint></robot>'
    )


# How the next axis lies to the one before; each case is one where converters fail.
RELATIONS = (
    'skew',
    'parallel',
    'antiparallel',
    'coincident',
    'intersecting',
    'perpendicular',
    'nearly_parallel',
    'nearly_antiparallel',
    'rounded_right_angle',
    'slightly_off',
    'oblique',
)


def random_chain(
    generator: np.random.Generator,
    n: int,
    prismatic_fraction: float = 0.3,
    fixed_links: bool = True,
) -> str:
    """Return the URDF text of a chain of n joints, from 'base' to 'tip'."""
    parts = ['<robot name="random"><link name="base"/>']
    parent = 'base'
    for i in range(1, n + 1):
        parts.append(_moving_part(generator, i, parent, prismatic_fraction, fixed_links))
        parent = f'z{i}'
    return ''.join([*parts, _tip_part(generator, parent, 'tip'), '</robot>'])


def random_tree(
    generator: np.random.Generator,
    n: int,
    prismatic_fraction: float = 0.3,
    fixed_links: bool = True,
) -> tuple[str, list[str]]:
    """Return the URDF text of a tree of n joints on 'base', and its tips in a random order."""
    parts = ['<robot name="random"><link name="base"/>']
    leaves = {}
    for i in range(1, n + 1):
        # Half of the joints continue a branch; the others begin one, at the base, too.
        parent = i - 1 if generator.random() < 0.5 else int(generator.integers(i))
        leaves.pop(parent, None)
        leaves[i] = f'tip{i}'
        before = f'z{parent}' if parent else 'base'
        parts.append(_moving_part(generator, i, before, prismatic_fraction, fixed_links))
    parts += [_tip_part(generator, f'z{i}', tip) for i, tip in leaves.items()]
    return ''.join([*parts, '</robot>']), generator.permutation(list(leaves.values())).tolist()


def _moving_part(
    generator: np.random.Generator,
    i: int,
    parent: str,
    prismatic_fraction: float,
    fixed_links: bool,
) -> str:
    """Return joint i behind link ``parent``, what moves with it, and the next one's ``z{i}``."""
    kind = 'prismatic' if generator.random() < prismatic_fraction else 'revolute'
    xyz, rpy = _placement(generator, generator.choice(RELATIONS))
    axis = _axis(generator)
    # The relation holds between z of this joint's frame and z of the one before; the axis is
    # that z, given in a child frame that is turned at will.
    rotation = _rpy_matrix(rpy) @ _rotation_taking(axis, (0.0, 0.0, 1.0))
    link = f'l{i}'
    parts = [
        _joint_text(f'j{i}', kind, parent, link, xyz, _rpy(rotation), axis),
        _link_text(generator, link),
    ]
    # Undo the turn, so that the next relation starts from this axis as z.
    back = _rotation_taking(axis, (0.0, 0.0, 1.0)).T
    if fixed_links and generator.random() < 0.3:
        parts.append(_fixed_text(f'f{i}', link, f'e{i}', (0.02, -0.01, 0.03), (0.3, 0.2, 0.1)))
        parts.append(_link_text(generator, f'e{i}'))
    parts.append(_fixed_text(f'b{i}', link, f'z{i}', (0.0, 0.0, 0.0), _rpy(back)))
    parts.append(f'<link name="z{i}"/>')
    return ''.join(parts)


def _tip_part(generator: np.random.Generator, parent: str, tip: str) -> str:
    xyz = generator.uniform(-0.2, 0.2, 3)
    return _fixed_text(f'to_{tip}', parent, tip, xyz, (0.4, 1.0, -2.0)) + f'<link name="{tip}"/>'


def _placement(generator: np.random.Generator, relation: str) -> tuple[np.ndarray, np.ndarray]:
    xyz = generator.uniform(-0.5, 0.5, 3)
    turn = generator.uniform(-math.pi, math.pi)
    tiny = 10.0 ** generator.uniform(-13, -1)
    rpy = {
        'skew': generator.uniform(-math.pi, math.pi, 3),
        'parallel': (0.0, 0.0, turn),
        'antiparallel': (math.pi, 0.0, turn),
        'coincident': (0.0, 0.0, turn),
        'intersecting': generator.uniform(-math.pi, math.pi, 3),
        'perpendicular': (generator.choice([-1, 1]) * math.pi / 2, 0.0, 0.0),
        'nearly_parallel': (tiny, tiny * generator.uniform(-1, 1), turn),
        'nearly_antiparallel': (math.pi - tiny, 0.0, turn),
        'rounded_right_angle': (generator.choice([1.57, -1.5708, 3.1415, 1.5707963]), 0.0, 0.0),
        'slightly_off': (math.pi / 2 + tiny, 0.0, turn),
        'oblique': (generator.uniform(0.03, 0.8), 0.0, turn),
    }[relation]
    if relation in ('coincident', 'intersecting'):
        xyz = np.array([0.0, 0.0, xyz[2]])
    if generator.random() < 0.2:
        xyz = np.round(xyz, 1)
    return xyz, np.asarray(rpy, dtype=float)


def _axis(generator: np.random.Generator) -> np.ndarray:
    if generator.random() < 0.6:
        axis = np.zeros(3)
        axis[generator.integers(3)] = generator.choice([-1.0, 1.0])
        return axis
    axis = generator.normal(size=3)
    return axis / np.linalg.norm(axis)


def _joint_text(name, kind, parent, child, xyz, rpy, axis) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/><axis xyz="{_text(axis)}"/>'
        '<limit lower="-3" upper="3" effort="100" velocity="2"/></joint>'
    )


def _fixed_text(name, parent, child, xyz, rpy) -> str:
    return (
        f'<joint name="{name}" type="fixed"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(xyz)}" rpy="{_text(rpy)}"/></joint>'
    )


def _link_text(generator: np.random.Generator, name: str) -> str:
    mass = generator.uniform(0.1, 5.0)
    points = generator.uniform(-0.1, 0.1, (6, 3))
    spread = points - points.mean(axis=0)
    second_moments = mass / 6 * spread.T @ spread
    inertia = np.trace(second_moments) * np.eye(3) - second_moments
    rpy = generator.uniform(-1, 1, 3)
    return (
        f'<link name="{name}"><inertial><origin xyz="{_text(points.mean(axis=0))}" '
        f'rpy="{_text(rpy)}"/><mass value="{mass!r}"/>'
        f'<inertia ixx="{float(inertia[0, 0])!r}" ixy="{float(inertia[0, 1])!r}" '
        f'ixz="{float(inertia[0, 2])!r}" iyy="{float(inertia[1, 1])!r}" '
        f'iyz="{float(inertia[1, 2])!r}" izz="{float(inertia[2, 2])!r}"/></inertial></link>'
    )


def _text(numbers) -> str:
    return ' '.join(repr(float(number)) for number in numbers)


def _rpy_matrix(rpy) -> np.ndarray:
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _rpy(rotation: np.ndarray) -> tuple[float, float, float]:
    return (
        math.atan2(rotation[2, 1], rotation[2, 2]),
        math.atan2(-rotation[2, 0], math.hypot(rotation[2, 1], rotation[2, 2])),
        math.atan2(rotation[1, 0], rotation[0, 0]),
    )


def _rotation_taking(start, end) -> np.ndarray:
    """Return a rotation that takes the unit vector ``start`` to ``end``."""
    v, c = np.cross(start, end), float(np.dot(start, end))
    if c < -1 + 1e-12:
        return np.diag([1.0, -1.0, -1.0]) if abs(start[0]) < 0.5 else np.diag([-1.0, 1.0, -1.0])
    k = np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
    return np.eye(3) + k + k @ k / (1 + c)
