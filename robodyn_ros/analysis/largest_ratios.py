# SPDX-License-Identifier: Apache-2.0
"""The largest ratios R_ij and K_i that scattered positions show, and maps where they vary most."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from robodyn_ros.analysis.joint_space import JointSpace, Limits
from robodyn_ros.analysis.quantities import acceleration_unit, ratio_unit
from robodyn_ros.analysis.ratios import (
    RatioMap,
    coupling_ratio_map,
    coupling_ratios,
    gravity_ratio_map,
    gravity_ratios,
)
from robodyn_ros.analysis.records import Record
from robodyn_ros.model import RobotModel
from robodyn_ros.notebook import Table, Tabular

_SAMPLES = 4096
_COARSE = 9
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LargestRatios(Record, Tabular):
    """
    The largest |R_ij| and |K_i| of ``samples`` positions; made by ``largest_ratios``.

    Attributes
    ----------
    joint_names : tuple of str
    coupling : tuple of tuples
        |R_ij| = |D_ij| / D_ii, felt at joint i, caused by joint j; 1 on the diagonal.
    coupling_units : tuple of tuples of str
    gravity : tuple of float
        |K_i| = |G_i| / D_ii.
    gravity_units : tuple of str
    samples : int
    """

    joint_names: tuple[str, ...]
    coupling: tuple[tuple[float, ...], ...]
    coupling_units: tuple[tuple[str, ...], ...]
    gravity: tuple[float, ...]
    gravity_units: tuple[str, ...]
    samples: int

    def __str__(self) -> str:
        width = max(10, *(len(name) + 1 for name in self.joint_names))
        return '\n'.join(
            f'{name:{width}}{"".join(f"{cell:>{width}}" for cell in cells)} {unit}'.rstrip()
            for name, *cells, unit in self._rows()
        )

    def _tables(self) -> Iterable[Table]:
        header, *rows = self._rows()
        return [Table(header, rows)]

    def _rows(self) -> Iterator[list[str]]:
        yield ['felt at', *self.joint_names, 'gravity', '']
        rows = zip(self.joint_names, self.coupling, self.gravity, self.gravity_units)
        for name, row, load, unit in rows:
            sizes = (x if x > _ROUNDING else 0.0 for x in (*row, load))
            yield [name, *(f'{x:.3g}' for x in sizes), unit]


def largest_ratios(model: RobotModel, limits: Limits | None = None) -> LargestRatios:
    """
    Return the largest |R_ij| and |K_i| met at positions scattered between the joint limits.

    ``coupling_ratio_range`` and ``gravity_ratio_range`` search for the largest there are.

    Parameters
    ----------
    model : RobotModel
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``.

    Raises
    ------
    NoSuchJoint, InvalidNumber
    """
    q = JointSpace.of(model, limits).sample(_SAMPLES)
    prismatic = model.dh.prismatic
    coupling = np.abs(coupling_ratios(model, q)).max(axis=0)
    return LargestRatios(
        joint_names=model.joint_names,
        coupling=tuple(map(tuple, coupling.tolist())),
        coupling_units=tuple(tuple(ratio_unit(i, j) for j in prismatic) for i in prismatic),
        gravity=tuple(np.abs(gravity_ratios(model, q)).max(axis=0).tolist()),
        gravity_units=tuple(map(acceleration_unit, prismatic)),
        samples=len(q),
    )


def telling_map(
    model: RobotModel,
    joint: str,
    by: str | None = None,
    over: tuple[str, str] | None = None,
    *,
    resolution: int = 61,
    limits: Limits | None = None,
) -> RatioMap:
    """
    Return the map of R_ij, or of K_i where ``by`` is not given.

    Parameters
    ----------
    model : RobotModel
    joint, by : str
    over : (str, str), optional
        The two joints that move; not given: those that change it most.
    resolution : int
    limits : mapping of joint name to (lower, upper), optional

    Raises
    ------
    NoSuchJoint, InvalidNumber
    """

    def of(pair: tuple[str, str], points: int) -> RatioMap:
        if by is None:
            return gravity_ratio_map(model, joint, pair, resolution=points, limits=limits)
        return coupling_ratio_map(model, joint, by, pair, resolution=points, limits=limits)

    if over is None:
        coarse = [of(pair, _COARSE) for pair in combinations(model.joint_names, 2)]
        over = max(coarse, key=_variation).over
    return of(over, resolution)


def _variation(found: RatioMap) -> tuple[float, float]:
    """Return how much the lesser of the two joints changes the ratio, then how much both do."""
    values = np.array(found.values)
    return min(float(values.std(axis=k).mean()) for k in (0, 1)), float(values.std())
