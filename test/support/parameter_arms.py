# SPDX-License-Identifier: Apache-2.0
"""Arms for the tests of the minimal parameters: from DH tables, at random, and public ones."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
from oracles import PinocchioArm
from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros.description.records import MOVABLE_KINDS
from robodyn_ros.description.urdf import description_of_urdf
from robodyn_ros.errors import RobodynError

DOWN = (0.0, 0.0, -9.81)
TILTED = (3.0, -4.0, 5.0)


def dh_arm(kinds, alpha, a, d, theta=None, beta=None, gravity=DOWN, seed=0) -> rd.RobotModel:
    """Return the arm of a modified DH table, angles in degrees, its links random bodies."""
    n = len(kinds)
    generator = np.random.default_rng(seed)
    table = rd.DHTable(
        alpha=np.array([quarters_exact(x) for x in alpha]),
        a=np.array(a, dtype=float),
        beta=np.radians(np.zeros(n) if beta is None else np.array(beta, dtype=float)),
        theta=np.array([quarters_exact(x) for x in (theta or [0] * n)]),
        d=np.array(d, dtype=float),
        prismatic=np.array([kind == 'P' for kind in kinds]),
        base_transform=np.eye(4),
        tip_transform=np.eye(4),
    )
    none = np.zeros(n)
    unlimited = np.full(n, np.inf)
    return rd.RobotModel(
        joint_names=tuple(f'j{i + 1}' for i in range(n)),
        dh=table,
        inertial_parameters=generator.normal(size=(n, 10)),
        rotor_inertia=none,
        viscous_friction=generator.uniform(0, 1, n),
        coulomb_friction=generator.uniform(0, 1, n),
        effort_limits=unlimited,
        velocity_limits=unlimited,
        position_limits=np.array([[-np.inf, np.inf]] * n),
        gravity=np.array(gravity, dtype=float),
        findings=(),
        base_link='base',
        tip_links=(f'l{n}',),
        link_frames={f'l{i + 1}': (i, np.eye(4)) for i in range(n)},
    )


def quarters_exact(degrees: float) -> float:
    return degrees / 90 * (math.pi / 2)


def scemi(gravity=DOWN, d3=0.5, rl4=0.4) -> rd.RobotModel:
    """Return the SCEMI robot of Gautier and Khalil 1988, section 9."""
    return dh_arm(
        'RRRRRR',
        [0, 90, 0, -90, 90, -90],
        [0, 0, d3, 0, 0, 0],
        [0, 0, 0, rl4, 0, 0],
        gravity=gravity,
    )


def generic_arm(kinds: str, seed: int = 0, gravity=TILTED) -> rd.RobotModel:
    """Return an arm with no two axes parallel, perpendicular or meeting, axis 1 upright."""
    generator = np.random.default_rng(seed)
    n = len(kinds)
    alpha = generator.uniform(20, 70, n) * generator.choice([-1, 1], n)
    return dh_arm(
        kinds,
        [0, *alpha[1:]],
        generator.uniform(0.1, 0.5, n),
        generator.uniform(0.1, 0.5, n),
        list(generator.uniform(-60, 60, n)),
        gravity=gravity,
        seed=seed,
    )


def structured_arm(generator: np.random.Generator, kinds: str) -> rd.RobotModel:
    """Return an arm of axes that are parallel, perpendicular or oblique, meet or do not."""
    n = len(kinds)
    table = {
        'alpha': generator.choice([0, 0, 90, -90, 180, 35, -60], n),
        'a': generator.choice([0, 0, 0.3, -0.2], n),
        'd': generator.choice([0, 0, 0.25, -0.4], n),
        'theta': list(generator.choice([0, 0, 90, 180, 25], n)),
        'beta': generator.choice([0, 0, 0, 0, 2], n),
    }
    gravity = [DOWN, (0.0, -9.81, 0.0), TILTED, (0.0, 0.0, 0.0)][generator.integers(4)]
    return dh_arm(kinds, **table, gravity=gravity, seed=int(generator.integers(2**31)))


@cache
def public_chains(longest: int = 8) -> tuple[tuple[Path, str, str, int], ...]:
    """
    Return file, base link, tip link and number of joints of all chains in the public URDFs.

    From the root to the last moving link of every branch; where that has more joints than
    ``longest``, the last ones of them.
    """
    chains = {}
    for path in public_urdfs():
        try:
            robot = description_of_urdf(path)
        except RobodynError:
            continue
        joints = list(robot.joints.values())
        to_parent = {joint.child: joint for joint in joints}
        movable = [joint for joint in joints if joint.kind in MOVABLE_KINDS]
        inner = set()
        for joint in movable:
            link = joint.parent
            while link in to_parent:
                inner.add(to_parent[link].name)
                link = to_parent[link].parent
        for joint in movable:
            if joint.name in inner:
                continue
            chain, link = [joint], joint.parent
            while link in to_parent and len(chain) < longest:
                before = to_parent[link]
                if before.kind not in (*MOVABLE_KINDS, 'fixed'):
                    break
                if before.kind != 'fixed':
                    chain.append(before)
                link = before.parent
            base = chain[-1].parent
            key = (path, tuple(part.name for part in chain))
            chains[key] = (path, base, joint.child, len(chain))
    return tuple(chains.values())


def pinocchio_regressor(oracle: PinocchioArm, states) -> np.ndarray:
    """Return Pinocchio's torque regressor (N, n, 10 n) at states q, qd, qdd (N, n)."""
    return np.array([oracle.torque_regressor(*state) for state in zip(*states)])


def ranks(stacked: np.ndarray, tolerances=(1e-10, 1e-9, 1e-8)) -> set[int]:
    """Return the ranks of a regressor (..., columns) for tolerances relative to its norm."""
    triangle = np.linalg.qr(stacked.reshape(-1, stacked.shape[-1]), mode='r')
    singular = np.linalg.svd(triangle, compute_uv=False)
    return {int((singular > tolerance * singular[0]).sum()) for tolerance in tolerances}


def rank(stacked: np.ndarray, tolerance: float = 1e-9) -> int:
    """Return the rank of a regressor (..., columns)."""
    return ranks(stacked, (tolerance,)).pop()
