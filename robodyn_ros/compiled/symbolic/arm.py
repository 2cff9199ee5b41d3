# SPDX-License-Identifier: Apache-2.0
"""An arm for straight-line code: joint variables symbolic, everything else folded or symbolic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.compiled.symbolic.equivalent_inertias import EquivalentInertias
from robodyn_ros.compiled.symbolic.expression import Graph, Scalar, graph_of, sine_and_cosine
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, rotation_x

# Cosine and sine of an angle.
PlaneRotation = tuple[Scalar, Scalar]
Vector = list[Scalar]
Matrix = list[Vector]


@dataclass(frozen=True)
class Row:
    """
    A row of the modified DH table: Rz(gamma) Tz(b) Rx(alpha) Tx(a) Ry(beta) Rz(theta) Tz(d).

    Attributes
    ----------
    parent : int
        The row before; -1: the base.
    right_angled : bool
        Whether alpha is a multiple of pi/2, and beta and gamma are zero.
    total : PlaneRotation or None
        By the sum of the angles since the first of a row of parallel revolute axes; None where
        the axis before is not parallel.
    """

    parent: int
    gamma: PlaneRotation
    b: Scalar
    alpha: PlaneRotation
    a: Scalar
    beta: PlaneRotation
    theta: PlaneRotation
    d: Scalar
    prismatic: bool
    right_angled: bool
    total: PlaneRotation | None

    def begin(self, section: str) -> None:
        """Say what is computed from here on: a comment in the code that comes of it."""
        graph_of([*self.theta, self.d]).section = section


@dataclass(frozen=True)
class Body:
    """Second moments (3, 3) [kg m²], first moments (3,) [kg m] and mass [kg] of a link."""

    second: Matrix
    first: Vector
    mass: Scalar

    @classmethod
    def of_pseudo_inertia(cls, pseudo: Sequence[Sequence[Scalar]]) -> Body:
        """Return the body with a pseudo-inertia (4, 4)."""
        return cls([list(r[:3]) for r in pseudo[:3]], [r[3] for r in pseudo[:3]], pseudo[3][3])


@dataclass(frozen=True)
class SymbolicArm:
    """
    What the recursions compute with, in the unit of length of ``EquivalentInertias``.

    Attributes
    ----------
    rows : list of n Row
        At the joint positions.
    bodies : list of n Body
        Regrouped.
    rotor_inertia : list of n scalars
        On the diagonal of M.
    coupled_rotors : mapping of (i, j), i < j, to scalar
        What coupled drives add to M beside its diagonal.
    base_acceleration : list of 3 scalars
        Minus gravity, in frame 0.
    """

    rows: list[Row]
    bodies: list[Body]
    rotor_inertia: Vector
    coupled_rotors: Mapping[tuple[int, int], Scalar]
    base_acceleration: Vector

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.rows)

    def moving(self, j: int) -> list[int]:
        """Return the joints that move link j, from it to the base."""
        return moving(self.rows, j)


def moving(rows: Sequence[Row], j: int) -> list[int]:
    """Return the joints that move link j, from it to the base."""
    joints = []
    while j >= 0:
        joints.append(j)
        j = rows[j].parent
    return joints


def symbolic_arm(
    model: RobotModel,
    q: Sequence[Scalar],
    equivalent_inertias: EquivalentInertias,
    *,
    symbols: Graph | None = None,
    gravity: Sequence[Scalar] | None = None,
    inertias: Sequence[Sequence[Sequence[Scalar]]] | None = None,
) -> SymbolicArm:
    """
    Return the arm at joint positions ``q``.

    Parameters
    ----------
    model : RobotModel
    q : sequence of n scalars
    equivalent_inertias : EquivalentInertias
    symbols : Graph, optional
        Where numbers other than 0 and +-1 become symbolic constants: one for each distinct
        length, sine or cosine, and one for each inertial parameter. They are folded otherwise.
    gravity : sequence of 3 scalars, optional
        As ``gravity_in_first_frame`` gives it; the model's where not given.
    inertias : (n, 4, 4) scalars, optional
        As ``equivalent_inertias.pseudo_inertias`` gives them; the model's where not given.
    """
    fold = float if symbols is None else constants(symbols)
    if inertias is None:
        numbers = equivalent_inertias.pseudo_inertias(model.inertial_parameters)
        inertias = numbers.tolist() if symbols is None else _inertia_symbols(symbols, numbers)
    if gravity is None:
        gravity = [fold(x) for x in gravity_in_first_frame(model, equivalent_inertias)]
    rotors = model.rotor_matrix
    return SymbolicArm(
        dh_rows(model, q, equivalent_inertias, fold),
        [Body.of_pseudo_inertia(pseudo) for pseudo in inertias],
        [fold(x) for x in np.diagonal(rotors)],
        {(int(i), int(j)): fold(rotors[i, j]) for i, j in np.argwhere(np.triu(rotors, 1))},
        [-x for x in gravity],
    )


def dh_rows(
    model: RobotModel,
    q: Sequence[Scalar],
    equivalent_inertias: EquivalentInertias,
    fold: Callable[[float], Scalar] = float,
) -> list[Row]:
    """Return the rows of the model's DH table at joint positions ``q``."""
    dh, unit = model.dh, equivalent_inertias.length_unit
    rows: list[Row] = []
    angle: Scalar = 0.0
    offsets = 0.0
    for j in range(dh.n):
        prismatic = bool(dh.prismatic[j])
        alpha, beta = _plane_rotation(dh.alpha[j], fold), _plane_rotation(dh.beta[j], fold)
        offset = dh.theta[j] + (equivalent_inertias.tip_angle if j == dh.n - 1 else 0.0)
        gamma = _plane_rotation(dh.gamma[j], fold)
        parent = int(dh.parents[j])
        # An angle of 1e-9 has a cosine of exactly one, and is not zero.
        straight = beta == gamma == (1, 0)
        parallel = (
            j > 0
            and parent == j - 1
            and not (prismatic or dh.prismatic[j - 1])
            and straight
            and alpha == (1, 0)
        )
        angle, offsets = (angle + q[j], offsets + offset) if parallel else (q[j], offset)
        rows.append(
            Row(
                parent,
                gamma,
                fold(dh.b[j] / unit),
                alpha,
                fold(dh.a[j] / unit),
                beta,
                _plane_rotation(offset, fold) if prismatic else _joint_rotation(q[j], offset),
                q[j] + fold(dh.d[j]) if prismatic else fold(dh.d[j] / unit),
                prismatic,
                straight and 0 in alpha,
                _joint_rotation(angle, offsets) if parallel else None,
            )
        )
    return rows


def gravity_in_first_frame(
    model: RobotModel, equivalent_inertias: EquivalentInertias
) -> FloatArray:
    """Return gravity (3,) in DH frame 0 and the unit of length, rounding removed."""
    gravity = model.dh.base_transform[:3, :3].T @ model.gravity
    gravity[np.abs(gravity) < 1e-15 * np.abs(gravity).max()] = 0.0
    return gravity / equivalent_inertias.length_unit


def _plane_rotation(angle: float, fold: Callable[[float], Scalar]) -> PlaneRotation:
    rotation = rotation_x(float(angle))
    return fold(rotation[1, 1]), fold(rotation[2, 1])


def _joint_rotation(q: Scalar, offset: float) -> PlaneRotation:
    """Return cosine and sine of q + offset; offsets of whole quarter turns cost nothing."""
    quarters = round(offset / (math.pi / 2))
    if offset != quarters * (math.pi / 2):
        s, c = sine_and_cosine(q + float(offset))
        return c, s
    s, c = sine_and_cosine(q)
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters % 4]


def constants(graph: Graph) -> Callable[[float], Scalar]:
    """Return the function that gives a number's symbol: one for each distinct magnitude."""

    def symbol(value: float) -> Scalar:
        value = float(value)
        if value in (0.0, 1.0, -1.0):
            return value
        return math.copysign(1.0, value) * graph.symbol(repr(abs(value)), abs(value))

    return symbol


def _inertia_symbols(graph: Graph, inertias: FloatArray) -> list[Matrix]:
    """Return a symbol for each inertial parameter that is not zero."""
    result: list[Matrix] = [[[0.0] * 4 for _ in range(4)] for _ in inertias]
    for j, row, column in zip(*np.nonzero(inertias)):
        name = f'inertia {j} {min(row, column)} {max(row, column)}'
        result[j][row][column] = graph.symbol(name, float(inertias[j, row, column]))
    return result
