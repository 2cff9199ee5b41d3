# SPDX-License-Identifier: Apache-2.0
"""An arm's kernels, by name: each function as straight-line code, and what it must give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from robodyn_ros.arguments import checked_sequence
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
from robodyn_ros.compiled.symbolic.kernel import Kernel
from robodyn_ros.compiled.symbolic.matrices import minus_product
from robodyn_ros.compiled.symbolic.newton_euler import joint_torques, link_motions
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.dynamics import (
    bias_torque,
    christoffel_symbols,
    coriolis_matrix,
    forward_dynamics,
    forward_dynamics_derivatives,
    friction_torque,
    gravity_torque,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    linearization,
    mass_matrix,
    smooth_friction_torque,
)
from robodyn_ros.dynamics.friction import drive_velocity, friction_of
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.kinematics import forward_kinematics, jacobian
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import base_parameters, regressor
from robodyn_ros.spatial import FloatArray

Symbols = Sequence[Scalar]
Result = tuple[tuple[str, tuple[int, ...]], Sequence[Scalar]]


class _Arm:
    """An arm as its kernels need it, on the symbols of one graph."""

    def __init__(self, run_time: RunTime, graph: Graph, generic: bool) -> None:
        self.model = run_time.model
        self.n = run_time.model.n
        self.pivots: Symbols = ()
        self._graph = graph
        self._run_time = run_time
        self._generic = generic

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

    def tips(self, q: Sequence[Scalar]) -> list[tuple[list[Row], FloatArray, int, FloatArray]]:
        """Return the arm for poses, of each tip: rows, base transform, body and tip transform."""
        dh = self.model.dh
        fold = constants(self._graph) if self._generic else float
        rows = dh_rows(self.model, q, EquivalentInertias(dh), fold)
        return [
            (rows, dh.base_transform, int(body), placed)
            for body, placed in zip(dh.tips, dh.tip_transforms, strict=True)
        ]

    def of_tips(self, name: str, results: Sequence[Sequence[Sequence[Scalar]]]) -> list[Result]:
        """Return a matrix of the only tip, or one of each."""
        if len(results) == 1:
            return [_matrix(name, results[0])]
        shape = (len(results), len(results[0]), len(results[0][0]))
        return [((name, shape), _flat(map(_flat, results)))]


def _inverse_dynamics(given: _Arm, q: Symbols, qd: Symbols, qdd: Symbols) -> list[Result]:
    return [given.vector('tau', joint_torques(given.arm(q), qd, qdd))]


def _tip_wrench_torque(given: _Arm, q: Symbols, wrench: Symbols) -> list[Result]:
    tips = enumerate(given.tips(q))
    torques = [rigid.wrench_torques(*tip, wrench[6 * k : 6 * k + 6]) for k, tip in tips]
    return [given.vector('tau', [sum(each[1:], each[0]) for each in zip(*torques)])]


def _gravity_torque(given: _Arm, q: Symbols) -> list[Result]:
    still: Vector = [0.0] * given.n
    return [given.vector('tau', joint_torques(given.arm(q), still, still))]


def _bias_torque(given: _Arm, q: Symbols, qd: Symbols) -> list[Result]:
    return [given.vector('tau', joint_torques(given.arm(q), qd, [0.0] * given.n))]


def _mass_matrix(given: _Arm, q: Symbols) -> list[Result]:
    arm = given.arm(q)
    ways = [rigid.mass_matrix(arm), rigid.mass_matrix_from_base(arm)]
    return [_matrix('mass', _cheaper([(_flat(rows), rows) for rows in ways]))]


def _coriolis_matrix(given: _Arm, q: Symbols, qd: Symbols) -> list[Result]:
    return [_matrix('coriolis', derivatives.coriolis_matrix(given.arm(q), qd))]


def _christoffel_symbols(given: _Arm, q: Symbols) -> list[Result]:
    symbols = derivatives.christoffel_symbols(given.arm(q))
    return [(('symbols', (given.n,) * 3), _flat(map(_flat, symbols)))]


def _forward_dynamics(given: _Arm, q: Symbols, qd: Symbols, tau: Symbols) -> list[Result]:
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


def _inverse_dynamics_derivatives(
    given: _Arm, q: Symbols, qd: Symbols, qdd: Symbols
) -> list[Result]:
    by_position, coriolis = derivatives.torque_derivatives(given.arm(q), qd, qdd)
    by_velocity = [[2.0 * x for x in row] for row in coriolis]
    return [_matrix('dtau_dq', by_position), _matrix('dtau_dqd', by_velocity)]


def _forward_dynamics_derivatives(
    given: _Arm, q: Symbols, qd: Symbols, tau: Symbols
) -> list[Result]:
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


def _linearization(given: _Arm, q: Symbols, qd: Symbols, tau: Symbols) -> list[Result]:
    n = given.n
    by_position, by_velocity, by_torque = (
        [values[n * i : n * (i + 1)] for i in range(n)]
        for _, values in _forward_dynamics_derivatives(given, q, qd, tau)
    )
    nothing: Vector = [0.0] * n
    rates = [[*nothing, *(1.0 if k == i else 0.0 for k in range(n))] for i in range(n)]
    return [
        _matrix('a', [*rates, *([*x, *y] for x, y in zip(by_position, by_velocity))]),
        _matrix('b', [*([nothing] * n), *by_torque]),
    ]


def _forward_kinematics(given: _Arm, q: Symbols) -> list[Result]:
    return given.of_tips('pose', [rigid.tip_pose(*tip) for tip in given.tips(q)])


def _jacobian(given: _Arm, q: Symbols) -> list[Result]:
    return given.of_tips('jacobian', [rigid.tip_jacobian(*tip) for tip in given.tips(q)])


def _friction_torque(given: _Arm, qd: Symbols, rigid_torque: Symbols) -> list[Result]:
    direction = [sign(x) for x in drive_velocity(given.model, np.array(qd))]
    return _friction(given, qd, direction, rigid_torque)


def _smooth_friction_torque(
    given: _Arm, qd: Symbols, width: Symbols, rigid_torque: Symbols
) -> list[Result]:
    velocity = drive_velocity(given.model, np.array(qd))
    return _friction(given, qd, np.tanh(velocity / width), rigid_torque)


def _friction(given: _Arm, *arrays: Symbols) -> list[Result]:
    """Return the friction torque under a direction; NumPy computes with expressions, too."""
    qd, direction, rigid_torque = (np.array(array, dtype=object) for array in arrays)
    return [given.vector('tau', list(friction_of(given.model, qd, direction, rigid_torque)))]


def _regressor(given: _Arm, *state: Symbols) -> list[Result]:
    return _regressor_columns(given, range(10 * given.n), *state)


def _base_regressor(given: _Arm, *state: Symbols) -> list[Result]:
    columns = base_parameters(given.model, rotor_inertia=False).columns
    return _regressor_columns(given, columns, *state)


def _regressor_columns(
    given: _Arm, columns: Sequence[int], q: Symbols, qd: Symbols, qdd: Symbols
) -> list[Result]:
    arm = given.arm_as_described(q)
    motions = link_motions(arm, qd, qdd)
    values = rigid.regressor_columns(arm, motions, [divmod(k, 10) for k in columns])
    return [_matrix('regressor', list(zip(*values)))]


def _matrix(name: str, rows: Sequence[Sequence[Scalar]]) -> Result:
    return (name, (len(rows), len(rows[0]))), _flat(rows)


def _flat(rows: Iterable[Iterable[Scalar]]) -> list[Scalar]:
    return [x for row in rows for x in row]


def _base_columns(model: RobotModel, *state: FloatArray) -> FloatArray:
    return base_parameters(model, rotor_inertia=False).regressor(*state)


def _poses(model: RobotModel, q: FloatArray) -> FloatArray:
    return _of_each_tip(forward_kinematics, model, q)


def _jacobians(model: RobotModel, q: FloatArray) -> FloatArray:
    return _of_each_tip(jacobian, model, q)


def _of_each_tip(
    function: Callable[..., FloatArray], model: RobotModel, q: FloatArray
) -> FloatArray:
    """Return what a function gives for the only tip, or for each of several."""
    results = [function(model, q, tip) for tip in model.tip_links]
    return results[0] if len(results) == 1 else np.stack(results, axis=-3)


def _torque_of_wrench(model: RobotModel, q: FloatArray, wrench: FloatArray) -> FloatArray:
    still = np.zeros_like(q)
    held = inverse_dynamics(model, q, still, still, tip_wrench=wrench)
    return held - gravity_torque(model, q)


class Kind(NamedTuple):
    """
    What every arm has a kernel of.

    Parameters
    ----------
    inputs : str
        Their names, in order.
    build : callable
        Of an ``_Arm`` and the inputs' symbols, to results.
    reference : callable
        Of a model and the inputs for N samples: what NumPy computes.
    description : str
        For the readers of the code, and of a function's help.
    """

    inputs: str
    build: Callable[..., list[Result]]
    reference: Callable[..., Any]
    description: str


_STATE, _TORQUE = 'q qd qdd', 'q qd tau'

# All kernels: the rigid body first, then the others that are usual in C, then the rest.
KINDS = {
    'inverse_dynamics': Kind(
        _STATE,
        _inverse_dynamics,
        inverse_dynamics,
        'Joint torques (n) [N m or N] that cause accelerations qdd.',
    ),
    'gravity_torque': Kind(
        'q', _gravity_torque, gravity_torque, 'Joint torques (n) that hold the arm still.'
    ),
    'bias_torque': Kind(
        'q qd', _bias_torque, bias_torque, 'Coriolis, centrifugal and gravity torques (n).'
    ),
    'mass_matrix': Kind('q', _mass_matrix, mass_matrix, 'Mass matrix (n, n), row by row.'),
    'forward_dynamics': Kind(
        _TORQUE, _forward_dynamics, forward_dynamics, 'Accelerations (n) that torques cause.'
    ),
    'forward_kinematics': Kind(
        'q',
        _forward_kinematics,
        _poses,
        "The tip link's pose (4, 4), of several (k, 4, 4), in the base link's frame, row by row.",
    ),
    'jacobian': Kind(
        'q',
        _jacobian,
        _jacobians,
        "The tip's Jacobian (6, n), of several (k, 6, n), linear rows first, in base link axes.",
    ),
    'coriolis_matrix': Kind(
        'q qd',
        _coriolis_matrix,
        coriolis_matrix,
        'C(q, qd) (n, n) of the Christoffel symbols, row by row.',
    ),
    'friction_torque': Kind(
        'qd rigid_torque',
        _friction_torque,
        lambda model, qd, torque: friction_torque(model, qd, rigid_torque=torque),
        "Torques (n) that overcome friction, load's only with rigid_torque.",
    ),
    'smooth_friction_torque': Kind(
        'qd width rigid_torque',
        _smooth_friction_torque,
        lambda model, qd, width, torque: smooth_friction_torque(model, width, qd, torque),
        'The same with tanh(qd / width) as sign, to be commanded; width in rad/s or m/s.',
    ),
    'directed_friction_torque': Kind(
        'qd direction rigid_torque',
        _friction,
        friction_of,
        'The same with a direction of motion, -1 to 1, of joints and coupled drives as sign.',
    ),
    'christoffel_symbols': Kind(
        'q',
        _christoffel_symbols,
        christoffel_symbols,
        'G (n, n, n), with tau_i = sum of G_ijk qd_j qd_k.',
    ),
    'inverse_dynamics_derivatives': Kind(
        _STATE,
        _inverse_dynamics_derivatives,
        inverse_dynamics_derivatives,
        'Derivatives (n, n) of the torques by q and by qd; that by qdd is the mass matrix.',
    ),
    'forward_dynamics_derivatives': Kind(
        _TORQUE,
        _forward_dynamics_derivatives,
        forward_dynamics_derivatives,
        'Derivatives (n, n) of the accelerations by q, qd and tau.',
    ),
    'linearization': Kind(
        _TORQUE,
        _linearization,
        linearization,
        'A (2 n, 2 n) and B (2 n, n) of deviations from a state (q, qd).',
    ),
    'regressor': Kind(
        _STATE, _regressor, regressor, 'Regressor (n, 10 n) of the links, row by row.'
    ),
    'base_regressor': Kind(
        _STATE,
        _base_regressor,
        _base_columns,
        'Regressor (n, count) of the base parameters of the links, row by row.',
    ),
    'tip_wrench_torque': Kind(
        'q tip_wrench',
        _tip_wrench_torque,
        _torque_of_wrench,
        'Joint torques (n) for a wrench that the tip exerts on the world; for k tips (6 k).',
    ),
}
KERNELS = tuple(KINDS)
# Those whose operation counts are given, and those that are written as C99 where none are named.
RIGID_BODY, USUAL = KERNELS[:7], KERNELS[:10]
WRENCH = 'tip_wrench_torque'


def checked_kernels(names: Sequence[str]) -> tuple[str, ...]:
    """
    Return names of kernels in the order of the table.

    Raises
    ------
    InvalidArgument
    """
    names = checked_sequence('kernels', names, str, "names, as ['gravity_torque']")
    for name in names:
        if name not in KINDS:
            raise InvalidArgument('argument kernels', name, ', '.join(map(repr, KERNELS)))
    return tuple(name for name in KERNELS if name in names)


def build_kernel(name: str, run_time: RunTime, *, generic: bool = False) -> Kernel:
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
    graph, n = Graph(), run_time.model.n
    given, names = _Arm(run_time, graph, generic), KINDS[name].inputs.split()
    model = run_time.model
    other = {'width': 1, 'tip_wrench': 6 * len(model.tip_links)}
    other['direction'] = n + len(model.coupling)
    inputs = [(each, other.get(each, n)) for each in names]
    results = KINDS[name].build(given, *(list(graph.input(*each)) for each in inputs))
    return Kernel(
        name,
        tuple(inputs),
        tuple(result for result, _ in results),
        tuple(x for _, values in results for x in values),
        tuple(given.pivots),
        tuple(each for each in names if each == 'rigid_torque'),
    )
