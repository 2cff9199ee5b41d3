# SPDX-License-Identifier: Apache-2.0
"""
Coupling and gravity ratios, relative to a joint's own inertia (Bejczy 1974, VII.C, VII.E).

    D_ii (qdd_i + sum over j of R_ij qdd_j + K_i) + ... = tau_i         (116)-(118), (133)-(136)

R_ij = D_ij / D_ii is the acceleration of joint i that a unit acceleration of joint j stands for,
K_i = G_i / D_ii the acceleration that gravity stands for. D_ii includes rotor inertia. Bejczy
numbers some of them: his R1, R2, R3, R4 are R_12, R_13, R_21, R_31; his K1, K2, K3, K4 are K_2,
K_3, K_4, K_5. In (107) he divides by a4 where (111), and D_33, take a9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.analysis.inertial_characteristics import inertial_characteristics
from robodyn_ros.analysis.joint_space import JointSpace, Limits
from robodyn_ros.analysis.quantities import acceleration_unit, quotient, ratio_unit, symbol
from robodyn_ros.analysis.ranges import Range
from robodyn_ros.arguments import checked_array, checked_number, checked_sequence
from robodyn_ros.dynamics.lagrangian_coefficients import gravitational_coefficients
from robodyn_ros.dynamics.mass_matrix import composite_mass_matrix
from robodyn_ros.errors import InvalidArgument, NoSuchName
from robodyn_ros.model import RobotModel, checked_model, model_states, position_unit
from robodyn_ros.record import Record, Table

Function = Callable[[NDArray], NDArray]

_SAMPLES = 4096
_COARSE = 9
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class RatioMap(Record):
    """
    A ratio over the positions of two joints, the others at rest.

    Attributes
    ----------
    symbol, unit : str
    over : (str, str)
        The two joints.
    position_units : (str, str)
    first, second : tuple of float
        Their positions [rad or m].
    values : tuple of tuples
        values[a][b] at first[a] and second[b].
    position : tuple of float
        Where the other joints rest.
    """

    symbol: str
    unit: str
    over: tuple[str, str]
    position_units: tuple[str, str]
    first: tuple[float, ...]
    second: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    position: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class LargestRatios(Record):
    """
    The largest |R_ij| and |K_i| of ``samples`` positions; made by ``largest_ratios``.

    Attributes
    ----------
    joint_names : tuple of str
    coupling : tuple of tuples
        |R_ij| = |D_ij| / D_ii, acting on joint i, caused by joint j; 1 on the diagonal.
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
        yield ['acting on', *self.joint_names, 'gravity', '']
        rows = zip(self.joint_names, self.coupling, self.gravity, self.gravity_units)
        for name, row, load, unit in rows:
            sizes = (x if x > _ROUNDING else 0.0 for x in (*row, load))
            yield [name, *(f'{x:.3g}' for x in sizes), unit]


def coupling_ratios(model: RobotModel, q: ArrayLike) -> NDArray:
    """
    Return R_ij = D_ij / D_ii (n, n), or (N, n, n) for N positions q (N, n) [rad or m].

    A number between joints of one kind, [1/m] for a revolute i and a prismatic j, [m] the other
    way round; 1 on the diagonal.
    """
    (q,) = model_states(model, q=q)
    return _coupling(model, q)


def gravity_ratios(model: RobotModel, q: ArrayLike) -> NDArray:
    """Return K_i = G_i / D_ii (n,) [rad/s² or m/s²], or (N, n) for N positions q (N, n)."""
    (q,) = model_states(model, q=q)
    return _gravity(model, q)


def coupling_ratio_range(
    model: RobotModel, joint: str, by: str, limits: Limits | None = None
) -> Range:
    """
    Return the extremes of R_ij over the joint limits: acting on ``joint``, caused by joint ``by``.

    Parameters
    ----------
    model : RobotModel
    joint, by : str
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``. Equal ones hold a joint still.

    Raises
    ------
    NoSuchName, InvalidArgument
    """
    i, j = _index(model, joint), _index(model, by)
    return _range(model, i, _coupling_name(model, i, j), _coupling_of(model, i, j), (i, j), limits)


def gravity_ratio_range(model: RobotModel, joint: str, limits: Limits | None = None) -> Range:
    """Return the extremes of K_i over the joint limits, as ``coupling_ratio_range`` does."""
    i = _index(model, joint)
    return _range(model, i, _gravity_name(model, i), _gravity_of(model, i), (i,), limits)


def coupling_ratio_map(
    model: RobotModel,
    joint: str,
    by: str,
    over: tuple[str, str],
    *,
    resolution: int = 61,
    position: ArrayLike | None = None,
    limits: Limits | None = None,
) -> RatioMap:
    """
    Return R_ij over the positions of two joints.

    Parameters
    ----------
    model : RobotModel
    joint, by : str
        Joint i, on which it acts, and j, which causes it.
    over : (str, str)
        The joints that move, between their limits.
    resolution : int
        Positions of each, two or more.
    position : array-like, shape (n,), optional
        Where the others rest [rad or m]; in the middle of their limits where not given.
    limits : mapping of joint name to (lower, upper), optional
        See ``JointSpace.of``.

    Raises
    ------
    NoSuchName, InvalidArgument, NonFiniteValue
    """
    i, j = _index(model, joint), _index(model, by)
    function = _coupling_of(model, i, j)
    return _map(model, _coupling_name(model, i, j), function, over, resolution, position, limits)


def gravity_ratio_map(
    model: RobotModel,
    joint: str,
    over: tuple[str, str],
    *,
    resolution: int = 61,
    position: ArrayLike | None = None,
    limits: Limits | None = None,
) -> RatioMap:
    """Return K_i over the positions of two joints, as ``coupling_ratio_map`` does."""
    i = _index(model, joint)
    function = _gravity_of(model, i)
    return _map(model, _gravity_name(model, i), function, over, resolution, position, limits)


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
    NoSuchName, InvalidArgument
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
    NoSuchName, InvalidArgument
    """

    def of(pair: tuple[str, str], points: int) -> RatioMap:
        if by is None:
            return gravity_ratio_map(model, joint, pair, resolution=points, limits=limits)
        return coupling_ratio_map(model, joint, by, pair, resolution=points, limits=limits)

    if over is None:
        coarse = [of(pair, _COARSE) for pair in combinations(model.joint_names, 2)]
        over = max(coarse, key=_variation).over
    return of(over, resolution)


def _coupling(model: RobotModel, q: NDArray) -> NDArray:
    inertia = composite_mass_matrix(model, q) + model.rotor_matrix
    return quotient(inertia, np.diagonal(inertia, axis1=-2, axis2=-1)[..., None])


def _gravity(model: RobotModel, q: NDArray) -> NDArray:
    inertia = composite_mass_matrix(model, q) + model.rotor_matrix
    return quotient(gravitational_coefficients(model, q), np.diagonal(inertia, axis1=-2, axis2=-1))


def _coupling_of(model: RobotModel, i: int, j: int) -> Function:
    return lambda q: _coupling(model, q)[:, i, j]


def _gravity_of(model: RobotModel, i: int) -> Function:
    return lambda q: _gravity(model, q)[:, i]


def _coupling_name(model: RobotModel, i: int, j: int) -> tuple[str, str]:
    return symbol('R', i, j), ratio_unit(*model.dh.prismatic[[i, j]])


def _gravity_name(model: RobotModel, i: int) -> tuple[str, str]:
    return symbol('K', i), acceleration_unit(model.dh.prismatic[i])


def _index(model: RobotModel, joint: str) -> int:
    if joint not in checked_model(model).joint_names:
        raise NoSuchName('joint', joint, f'one of {", ".join(map(repr, model.joint_names))}')
    return model.joint_names.index(joint)


def _range(
    model: RobotModel,
    i: int,
    name: tuple[str, str],
    function: Function,
    indices: tuple[int, ...],
    limits: Limits | None,
) -> Range:
    structure = inertial_characteristics(model)
    above = symbol('d', *sorted(indices)) if len(indices) == 2 else symbol('G', i)
    involved = {*structure[above].joints, *structure[symbol('d', i, i)].joints}
    depends_on = tuple(joint for joint in model.joint_names if joint in involved)
    joints = [_index(model, joint) for joint in depends_on]
    extremes = JointSpace.of(model, limits).extremes(function, joints)
    return Range(name[0], model.joint_names[i], name[1], depends_on, *extremes)


def _map(
    model: RobotModel,
    name: tuple[str, str],
    function: Function,
    over: tuple[str, str],
    resolution: int,
    position: ArrayLike | None,
    limits: Limits | None,
) -> RatioMap:
    if checked_number('resolution', resolution) < 2:
        raise InvalidArgument('argument resolution', resolution, 'two or more')
    joint_space = JointSpace.of(model, limits)
    rest = checked_array(
        'position', joint_space.center if position is None else position, (model.n,)
    )
    a, b = (_index(model, joint) for joint in checked_sequence('over', over, str, 'two joints'))
    first, second = (
        np.linspace(joint_space.lower[k], joint_space.upper[k], resolution) for k in (a, b)
    )
    q = np.tile(rest, (resolution, resolution, 1))
    q[..., a] = first[:, None]
    q[..., b] = second
    values = function(q.reshape(-1, model.n)).reshape(resolution, resolution)
    units = tuple(position_unit(model.dh.prismatic[k]) for k in (a, b))
    return RatioMap(
        symbol=name[0],
        unit=name[1],
        over=(over[0], over[1]),
        position_units=(units[0], units[1]),
        first=tuple(first.tolist()),
        second=tuple(second.tolist()),
        values=tuple(map(tuple, values.tolist())),
        position=tuple(rest.tolist()),
    )


def _variation(found: RatioMap) -> tuple[float, float]:
    """Return how much the lesser of the two joints changes the ratio, then how much both do."""
    values = np.array(found.values)
    return min(float(values.std(axis=k).mean()) for k in (0, 1)), float(values.std())
