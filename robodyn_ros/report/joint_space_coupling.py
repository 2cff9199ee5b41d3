# SPDX-License-Identifier: Apache-2.0
"""Coupling of every two joints over the joint space, and maps of the most varied pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from robodyn_ros.analysis.coupling import coefficients_of_coupling
from robodyn_ros.analysis.joint_space import JointSpace
from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_SAMPLE = 4096
_MAPS, _CANDIDATES = 3, 8
_LEAST_VARIATION = 0.02
_COARSE, _FINE = 13, 49


@dataclass(frozen=True, eq=False, repr=False)
class CouplingMap(ArrayRecord):
    """
    k_ij over the positions of two joints, the others in the middle of their limits.

    Attributes
    ----------
    pair, over : (int, int)
        Joints from 0: those coupled, and those that move.
    first, second : array, shape (k,)
        Positions [rad or m] of the joints that move.
    values : array, shape (k, k)
        At ``first[a]``, ``second[b]`` in ``values[a, b]``.
    """

    pair: tuple[int, int]
    over: tuple[int, int]
    first: FloatArray
    second: FloatArray
    values: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class JointSpaceCoupling(ArrayRecord):
    """
    Mean and largest k_ij (n, n) of ``samples`` scattered positions, and maps of some pairs.

    ``largest`` is the largest that was met; ``coupling_over_joint_space`` searches for the largest
    there is.
    """

    mean: FloatArray
    largest: FloatArray
    samples: int
    maps: tuple[CouplingMap, ...]


def joint_space_coupling(model: RobotModel) -> JointSpaceCoupling:
    """
    Return the coupling of an arm's joints over its joint limits.

    Raises
    ------
    InvalidNumber
        See ``JointSpace.of``.
    """
    joint_space = JointSpace.of(model)
    sampled = coefficients_of_coupling(model, joint_space.sample(_SAMPLE))
    variation = np.triu(sampled.std(axis=0), 1)
    order = np.argsort(variation, axis=None, kind='stable')[::-1][:_CANDIDATES]
    pairs = [(int(k) // model.n, int(k) % model.n) for k in order]
    maps = [_map(model, joint_space, p) for p in pairs if variation[p] > _LEAST_VARIATION]
    # Those that two joints change come first: the others are stripes.
    maps.sort(key=lambda found: _lesser_variation(found) < _LEAST_VARIATION)
    chosen = tuple(maps[:_MAPS])
    return JointSpaceCoupling(sampled.mean(axis=0), sampled.max(axis=0), _SAMPLE, chosen)


def _lesser_variation(found: CouplingMap) -> float:
    """Return how much the lesser of the two joints changes the coupling."""
    return min(float(found.values.std(axis=k).mean()) for k in (0, 1))


def _map(model: RobotModel, joint_space: JointSpace, pair: tuple[int, int]) -> CouplingMap:
    """Return the map over two joints that both change the coupling, the most of all."""

    def over(a: int, b: int, resolution: int) -> CouplingMap:
        first, second = (
            np.linspace(joint_space.lower[k], joint_space.upper[k], resolution) for k in (a, b)
        )
        q = np.tile(joint_space.center, (resolution, resolution, 1))
        q[..., a], q[..., b] = first[:, None], second
        values = coefficients_of_coupling(model, q.reshape(-1, model.n))[:, pair[0], pair[1]]
        return CouplingMap(pair, (a, b), first, second, values.reshape(resolution, resolution))

    coarse = [over(a, b, _COARSE) for a, b in combinations(range(model.n), 2)]
    a, b = max(coarse, key=lambda x: (_lesser_variation(x), float(x.values.std()))).over
    return over(a, b, _FINE)
