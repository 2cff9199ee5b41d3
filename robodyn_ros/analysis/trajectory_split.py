# SPDX-License-Identifier: Apache-2.0
"""
Translational and rotational parts along a trajectory (Fu, Gonzalez and Lee 1987, 3.4.1).

D and h of the generalized d'Alembert equations are sums of what the motion of the centres of mass
takes and what the rotation about them takes. Along a trajectory one part of an element often
rules, and the other can be neglected: Figures 3.10 and 3.11. Rotor inertia is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.analysis.quantities import inertia_unit, symbol
from robodyn_ros.arguments import checked_number
from robodyn_ros.dynamics.generalized_dalembert import coriolis_torques, inertia_matrices
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.model import RobotModel, force_unit, model_states
from robodyn_ros.record import Record, Table, quantity, table_of

_ROUNDING = 1e-12
_NO_SIZE = 1e-15  # shown as zero
Dominance = Literal['translational', 'rotational', 'both', 'none']


@dataclass(frozen=True, eq=False, repr=False)
class SplitElement(Record):
    """
    An element of D or h along a trajectory.

    Attributes
    ----------
    symbol, unit : str
    translational, rotational : tuple of float
        At each setpoint; the element is their sum.
    dominant : {'translational', 'rotational', 'both', 'none'}
        The larger part; 'none' where both are zero.
    lesser_fraction : float
        The largest magnitude of the lesser part by the larger of the two parts'.
    """

    symbol: str
    unit: str
    translational: tuple[float, ...]
    rotational: tuple[float, ...]
    dominant: Dominance
    lesser_fraction: float

    _row_header = ('largest', 'translation', 'rotation', 'dominant')

    def _row(self) -> tuple[str, str, str, str]:
        parts = (self.translational, self.rotational)
        sizes = (max(map(abs, part), default=0.0) for part in parts)
        first, second = (quantity(size if size > _NO_SIZE else 0.0, self.unit) for size in sizes)
        return self.symbol, first, second, self.dominant

    @property
    def values(self) -> tuple[float, ...]:
        """The element itself."""
        return tuple(a + b for a, b in zip(self.translational, self.rotational))


@dataclass(frozen=True, eq=False, repr=False)
class TrajectorySplit(Record):
    """
    D and h split along a trajectory; made by ``split_along``.

    Attributes
    ----------
    joint_names : tuple of str
    fraction : float
        A lesser part up to this fraction is neglected.
    inertia : tuple of SplitElement
        D_11, D_12, ... D_1n, D_22, ... D_nn.
    coriolis : tuple of SplitElement
        h_1 to h_n, Coriolis and centrifugal torques.
    """

    joint_names: tuple[str, ...]
    fraction: float
    inertia: tuple[SplitElement, ...]
    coriolis: tuple[SplitElement, ...]

    def _tables(self) -> Iterable[Table]:
        return [table_of((*self.inertia, *self.coriolis))]

    def __getitem__(self, name: str) -> SplitElement:
        elements = (*self.inertia, *self.coriolis)
        for each in elements:
            if each.symbol == name:
                return each
        raise InvalidArgument('element', name, ', '.join(each.symbol for each in elements))


def split_along(
    model: RobotModel, q: ArrayLike, qd: ArrayLike, *, fraction: float = 0.1
) -> TrajectorySplit:
    """
    Return D and h along a trajectory, each split into two parts.

    Parameters
    ----------
    model : RobotModel
    q, qd : array-like, shape (N, n)
        Positions and velocities at N setpoints [rad or m, and per s].
    fraction : float
        One part rules where the other's largest magnitude is at most this fraction of its own.

    Raises
    ------
    NonFiniteValue, InvalidArgument
        A shape or a value is wrong, the fraction is not between 0 and 1, or a link has first
        moments but no mass.
    """
    q, qd = model_states(model, q=q, qd=qd)
    if q.ndim != 2 or not len(q):
        raise InvalidArgument('argument q', Phrase(f'shape {q.shape}'), f'shape (N, {model.n})')
    if not 0 <= checked_number('fraction', fraction) <= 1:
        raise InvalidArgument('argument fraction', fraction, '0 to 1')
    prismatic = model.dh.prismatic
    inertia = inertia_matrices(model, q)
    coriolis = coriolis_torques(model, q, qd)
    scale = np.abs(inertia[0] + inertia[1]).max(initial=0.0)
    fastest = np.abs(qd).max(initial=0.0)
    return TrajectorySplit(
        joint_names=model.joint_names,
        fraction=fraction,
        inertia=tuple(
            _element(
                symbol('D', i, j),
                inertia_unit(prismatic[[i, j]]),
                [part[:, i, j] for part in inertia],
                fraction,
                _ROUNDING * scale,
            )
            for i, j in combinations_with_replacement(range(model.n), 2)
        ),
        coriolis=tuple(
            _element(
                symbol('h', i),
                force_unit(prismatic[i]),
                [part[:, i] for part in coriolis],
                fraction,
                _ROUNDING * scale * fastest**2,
            )
            for i in range(model.n)
        ),
    )


def _element(
    name: str, unit: str, parts: list[NDArray], fraction: float, rounding: float
) -> SplitElement:
    sizes = [float(np.abs(part).max()) for part in parts]
    sizes = [size if size > rounding else 0.0 for size in sizes]
    lesser = min(sizes) / max(sizes) if max(sizes) > 0 else 0.0
    dominant: Dominance
    if max(sizes) == 0:
        dominant = 'none'
    elif lesser > fraction:
        dominant = 'both'
    else:
        dominant = 'translational' if sizes[0] > sizes[1] else 'rotational'
    translational, rotational = (tuple(part.tolist()) for part in parts)
    return SplitElement(name, unit, translational, rotational, dominant, lesser)
