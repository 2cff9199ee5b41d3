# SPDX-License-Identifier: Apache-2.0
"""The builders of an arm's kernels: each function as straight-line code, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from robodyn_ros.compiled.symbolic import articulated_bodies, derivatives
from robodyn_ros.compiled.symbolic import rigid_body as rigid
from robodyn_ros.compiled.symbolic.arm import (
    Row,
    SymbolicArm,
    Vector,
    constants,
    dh_rows,
    symbolic_arm,
)
from robodyn_ros.compiled.symbolic.equivalent_inertias import EquivalentInertias
from robodyn_ros.compiled.symbolic.expression import Graph, Scalar, operation_count, sign
from robodyn_ros.compiled.symbolic.kernel import Kernel, KernelName
from robodyn_ros.compiled.symbolic.matrices import minus_product
from robodyn_ros.compiled.symbolic.newton_euler import joint_torques, link_motions
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.dynamics.friction import drive_velocity, friction_of
from robodyn_ros.parameters.base_parameters import base_parameters
from robodyn_ros.spatial import FloatArray

Result = tuple[tuple[str, tuple[int, ...]], Sequence[Scalar]]


class _Inputs:
    """The symbols that a kernel asks for, in order, and the arm on them."""

    def __init__(self, run_time: RunTime, generic: bool) -> None:
        self.model = run_time.model
        self.n = run_time.model.n
        self.names: list[tuple[str, int]] = []
        self.optional: list[str] = []
        self.pivots: Sequence[Scalar] = ()
        self._graph = Graph()
        self._run_time = run_time
        self._generic = generic

    def __call__(self, name: str, size: int | None = None, optional: bool = False) -> list[Scalar]:
        size = self.n if size is None else size
        self.names.append((name, size))
        if optional:
            self.optional.append(name)
        return list(self._graph.input(name, size))

    def vector(self, name: str, values: Sequence[Scalar]) -> Result:
        """Return a result of one number for each joint."""
        return (name, (self.n,)), values

    def arm(self, q: Sequence[Scalar]) -> SymbolicArm:
        """Return the arm for torques: regrouped, with its run-time inputs."""
        return symbolic_arm(
            self.model,
            q,
            self._run_time.equivalent_inertias,
            symbols=self._graph if self._generic else None,
            gravity=self._run_time.gravity(self._graph),
            inertias=self._run_time.inertias(self._graph),
        )

    def arm_as_described(self, q: Sequence[Scalar]) -> SymbolicArm:
        """Return the arm for regressors, not regrouped and in metres, under run-time gravity."""
        gravity = self._run_time.gravity(self._graph)
        if gravity is not None:
            gravity = [self._run_time.equivalent_inertias.length_unit * x for x in gravity]
        return symbolic_arm(self.model, q, EquivalentInertias(self.model.dh), gravity=gravity)

    def chain(self, q: Sequence[Scalar]) -> tuple[list[Row], FloatArray, FloatArray]:
        """Return the arm for poses: rows, base and tip transform."""
        dh = self.model.dh
        fold = constants(self._graph) if self._generic else float
        return (
            dh_rows(self.model, q, EquivalentInertias(dh), fold),
            dh.base_transform,
            dh.tip_transform,
        )


def _inverse_dynamics(given: _Inputs) -> list[Result]:
    q, qd, qdd = given('q'), given('qd'), given('qdd')
    return [given.vector('tau', joint_torques(given.arm(q), qd, qdd))]


def _tip_wrench_torque(given: _Inputs) -> list[Result]:
    q, wrench = given('q'), given('tip_wrench', 6)
    return [given.vector('tau', rigid.wrench_torques(*given.chain(q), wrench))]


def _gravity_torque(given: _Inputs) -> list[Result]:
    still: Vector = [0.0] * given.n
    return [given.vector('tau', joint_torques(given.arm(given('q')), still, still))]


def _bias_torque(given: _Inputs) -> list[Result]:
    q, qd = given('q'), given('qd')
    return [given.vector('tau', joint_torques(given.arm(q), qd, [0.0] * given.n))]


def _mass_matrix(given: _Inputs) -> list[Result]:
    arm = given.arm(given('q'))
    ways = [rigid.mass_matrix(arm), rigid.mass_matrix_from_base(arm)]
    return [_matrix('mass', _cheaper([(_flat(rows), rows) for rows in ways]))]


def _coriolis_matrix(given: _Inputs) -> list[Result]:
    q, qd = given('q'), given('qd')
    return [_matrix('coriolis', derivatives.coriolis_matrix(given.arm(q), qd))]


def _christoffel_symbols(given: _Inputs) -> list[Result]:
    symbols = derivatives.christoffel_symbols(given.arm(given('q')))
    return [(('symbols', (given.n,) * 3), _flat(map(_flat, symbols)))]


def _forward_dynamics(given: _Inputs) -> list[Result]:
    q, qd, tau = given('q'), given('qd'), given('tau')
    arm = given.arm(q)
    qdd, factors = _accelerations(arm, qd, tau)
    given.pivots = factors.pivots
    if not arm.coupled_rotors:  # rotors that turn with two joints are part of no body
        ways = [(qdd, factors.pivots), articulated_bodies.accelerations(arm, qd, tau)]
        qdd, given.pivots = _cheaper([(_flat(way), way) for way in ways])
    return [given.vector('qdd', qdd)]


_Way = TypeVar('_Way')


def _cheaper(ways: Sequence[tuple[Sequence[Scalar], _Way]]) -> _Way:
    """
    Return the first of two ways, with what it computes, or the second where that is for less.

    The second, for long arms, must take a fifth less operations: few more are worth an order of
    operations that the processor can carry out side by side.
    """
    (first, usual), (second, other) = ways
    is_cheaper = sum(operation_count(second)) < 0.8 * sum(operation_count(first))
    return other if is_cheaper else usual


def _accelerations(
    arm: SymbolicArm, qd: Sequence[Scalar], tau: Sequence[Scalar]
) -> tuple[Vector, rigid.Factors]:
    """Return the accelerations that torques cause, and the mass matrix's factors."""
    bias = joint_torques(arm, qd, [0.0] * arm.n)
    net = [a - b for a, b in zip(tau, bias)]
    mass = rigid.mass_matrix(arm)
    arm.rows[0].begin('M = L D LT, solved')
    factors = rigid.Factors.of(mass)
    return factors.solution(net), factors


def _inverse_dynamics_derivatives(given: _Inputs) -> list[Result]:
    q, qd, qdd = given('q'), given('qd'), given('qdd')
    by_position, coriolis = derivatives.torque_derivatives(given.arm(q), qd, qdd)
    by_velocity = [[2.0 * x for x in row] for row in coriolis]
    return [_matrix('dtau_dq', by_position), _matrix('dtau_dqd', by_velocity)]


def _forward_dynamics_derivatives(given: _Inputs) -> list[Result]:
    q, qd, tau = given('q'), given('qd'), given('tau')
    arm = given.arm(q)
    qdd, factors = _accelerations(arm, qd, tau)
    given.pivots = factors.pivots
    by_position, coriolis = derivatives.torque_derivatives(arm, qd, qdd)
    arm.rows[0].begin('the inverse of M, and its products')
    inverse = factors.inverse()
    twice = [[2.0 * x for x in row] for row in inverse]
    return [
        _matrix('dqdd_dq', minus_product(inverse, by_position)),
        _matrix('dqdd_dqd', minus_product(twice, coriolis)),
        _matrix('dqdd_dtau', inverse),
    ]


def _linearization(given: _Inputs) -> list[Result]:
    n = given.n
    by_position, by_velocity, by_torque = (
        [values[n * i : n * (i + 1)] for i in range(n)]
        for _, values in _forward_dynamics_derivatives(given)
    )
    nothing: Vector = [0.0] * n
    rates = [[*nothing, *(1.0 if k == i else 0.0 for k in range(n))] for i in range(n)]
    return [
        _matrix('a', [*rates, *([*x, *y] for x, y in zip(by_position, by_velocity))]),
        _matrix('b', [*([nothing] * n), *by_torque]),
    ]


def _forward_kinematics(given: _Inputs) -> list[Result]:
    return [_matrix('pose', rigid.tip_pose(*given.chain(given('q'))))]


def _jacobian(given: _Inputs) -> list[Result]:
    return [_matrix('jacobian', rigid.tip_jacobian(*given.chain(given('q'))))]


def _friction_torque(given: _Inputs) -> list[Result]:
    qd, rigid_torque = given('qd'), given('rigid_torque', optional=True)
    direction = [sign(x) for x in drive_velocity(given.model, np.array(qd))]
    return [_friction(given, qd, direction, rigid_torque)]


def _smooth_friction_torque(given: _Inputs) -> list[Result]:
    qd, width = given('qd'), given('width', 1)
    rigid_torque = given('rigid_torque', optional=True)
    velocity = drive_velocity(given.model, np.array(qd))
    return [_friction(given, qd, np.tanh(velocity / width), rigid_torque)]


def _directed_friction_torque(given: _Inputs) -> list[Result]:
    qd = given('qd')
    direction = given('direction', given.n + len(given.model.coupling))
    rigid_torque = given('rigid_torque', optional=True)
    return [_friction(given, qd, direction, rigid_torque)]


def _friction(given: _Inputs, *arrays: Sequence[Scalar]) -> Result:
    """Return the friction torque under a direction; NumPy computes with expressions, too."""
    qd, direction, rigid_torque = (np.array(array, dtype=object) for array in arrays)
    return given.vector('tau', list(friction_of(given.model, qd, direction, rigid_torque)))


def _regressor(given: _Inputs) -> list[Result]:
    return [_regressor_columns(given, range(10 * given.n))]


def _base_regressor(given: _Inputs) -> list[Result]:
    columns = base_parameters(given.model, rotor_inertia=False).columns
    return [_regressor_columns(given, columns)]


def _regressor_columns(given: _Inputs, columns: Sequence[int]) -> Result:
    q, qd, qdd = given('q'), given('qd'), given('qdd')
    arm = given.arm_as_described(q)
    motions = link_motions(arm, qd, qdd)
    values = rigid.regressor_columns(arm, motions, [divmod(k, 10) for k in columns])
    return _matrix('regressor', list(zip(*values)))


def _matrix(name: str, rows: Sequence[Sequence[Scalar]]) -> Result:
    return (name, (len(rows), len(rows[0]))), _flat(rows)


def _flat(rows: Iterable[Iterable[Scalar]]) -> list[Scalar]:
    return [x for row in rows for x in row]


# What each kernel computes.
DESCRIPTIONS = {
    'inverse_dynamics': 'Joint torques that cause accelerations qdd.',
    'tip_wrench_torque': 'Joint torques for a wrench that the tip exerts on the world.',
    'gravity_torque': 'Joint torques that hold the arm still.',
    'bias_torque': 'Coriolis, centrifugal and gravity torques.',
    'mass_matrix': 'Mass matrix, row by row.',
    'coriolis_matrix': 'C(q, qd) of the Christoffel symbols, row by row.',
    'christoffel_symbols': 'G (n, n, n), with tau_i = sum of G_ijk qd_j qd_k.',
    'forward_dynamics': 'Accelerations that torques cause.',
    'inverse_dynamics_derivatives': 'Derivatives (n, n) of the torques by q and by qd.',
    'forward_dynamics_derivatives': 'Derivatives (n, n) of the accelerations by q, qd and tau.',
    'linearization': 'A (2 n, 2 n) and B (2 n, n) of deviations from a state (q, qd).',
    'forward_kinematics': "The tip link's pose (4, 4) in the base link's frame, row by row.",
    'jacobian': "The tip's Jacobian (6, n), linear rows first, in base link axes, row by row.",
    'friction_torque': "Torques that overcome friction, load's only with rigid_torque.",
    'smooth_friction_torque': 'The same with tanh(qd / width) as sign, to be commanded.',
    'directed_friction_torque': 'The same with a direction of motion, -1 to 1, as sign.',
    'regressor': 'Regressor (n, 10 n) of the links, row by row.',
    'base_regressor': 'Regressor (n, count) of the base parameters of the links, row by row.',
}

_BUILDERS: dict[KernelName, Callable[[_Inputs], list[Result]]] = {
    'inverse_dynamics': _inverse_dynamics,
    'gravity_torque': _gravity_torque,
    'bias_torque': _bias_torque,
    'mass_matrix': _mass_matrix,
    'coriolis_matrix': _coriolis_matrix,
    'christoffel_symbols': _christoffel_symbols,
    'forward_dynamics': _forward_dynamics,
    'inverse_dynamics_derivatives': _inverse_dynamics_derivatives,
    'forward_dynamics_derivatives': _forward_dynamics_derivatives,
    'linearization': _linearization,
    'forward_kinematics': _forward_kinematics,
    'jacobian': _jacobian,
    'friction_torque': _friction_torque,
    'smooth_friction_torque': _smooth_friction_torque,
    'directed_friction_torque': _directed_friction_torque,
    'regressor': _regressor,
    'base_regressor': _base_regressor,
    'tip_wrench_torque': _tip_wrench_torque,
}
WRENCH: KernelName = 'tip_wrench_torque'
FRICTION_KERNELS = ('friction_torque', 'smooth_friction_torque', 'directed_friction_torque')


def build_kernel(name: KernelName, run_time: RunTime, *, generic: bool = False) -> Kernel:
    """
    Return a kernel.

    Parameters
    ----------
    name : str
        One of ``KERNELS``.
    run_time : RunTime
        The model, and what of it stays an input.
    generic : bool
        Whether the model's numbers other than 0 and +-1 become symbolic constants, to count the
        operations of all arms of this structure.
    """
    given = _Inputs(run_time, generic)
    results = _BUILDERS[name](given)
    outputs = tuple(x for _, values in results for x in values)
    return Kernel(
        name,
        tuple(given.names),
        tuple(result for result, _ in results),
        outputs,
        tuple(given.pivots),
        tuple(given.optional),
    )
