# SPDX-License-Identifier: Apache-2.0
"""The functions of one arm as straight-line code: inputs, and an expression for every output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from robodyn_ros.compiled.symbolic import derivatives
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
from robodyn_ros.compiled.symbolic.expression import (
    INPUT,
    SCALAR_FUNCTIONS,
    Graph,
    Scalar,
    graph_of,
    live_nodes,
    operation_count,
    sign,
)
from robodyn_ros.compiled.symbolic.newton_euler import joint_torques, link_motions
from robodyn_ros.compiled.symbolic.run_time import PARAMETERS, RunTime
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.parameters.base_parameters import base_parameters
from robodyn_ros.spatial import FloatArray

RigidBodyName = Literal[
    'inverse_dynamics',
    'gravity_torque',
    'bias_torque',
    'mass_matrix',
    'forward_dynamics',
    'forward_kinematics',
    'jacobian',
]
ExportedName = Literal[
    RigidBodyName, 'coriolis_matrix', 'friction_torque', 'smooth_friction_torque'
]
KernelName = Literal[
    'inverse_dynamics',
    'gravity_torque',
    'bias_torque',
    'mass_matrix',
    'coriolis_matrix',
    'forward_dynamics',
    'forward_kinematics',
    'jacobian',
    'friction_torque',
    'smooth_friction_torque',
    'base_regressor',
    'tip_wrench_torque',
]

KERNELS: tuple[KernelName, ...] = get_args(KernelName)
"""The kernels by name."""
EXPORTED: tuple[ExportedName, ...] = get_args(ExportedName)
"""Those that can be written as C99."""
RIGID_BODY: tuple[RigidBodyName, ...] = get_args(RigidBodyName)
"""Those that operation counts are given of."""


@dataclass(frozen=True)
class Kernel:
    """
    Straight-line code of one function.

    Attributes
    ----------
    name : str
    inputs : tuple of (name, size)
        Those of the caller, in order.
    shape : tuple of int
        Of the result.
    outputs : tuple of scalars
        The result, row by row.
    pivots : tuple of scalars
        What must be positive for the result to exist.
    optional : tuple of str
        The last inputs, zero where a caller of the extension module leaves them out.
    """

    name: str
    inputs: tuple[tuple[str, int], ...]
    shape: tuple[int, ...]
    outputs: tuple[Scalar, ...]
    pivots: tuple[Scalar, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def has_parameters(self) -> bool:
        """Whether it reads run-time parameters."""
        outputs = [*self.outputs, *self.pivots]
        nodes = graph_of(outputs).nodes
        return any(nodes[node][:2] == (INPUT, PARAMETERS) for node in live_nodes(outputs))

    @property
    def has_scalar_functions(self) -> bool:
        """Whether it calls the C library for more than sines and cosines."""
        nodes = graph_of(self.outputs).nodes
        return any(nodes[node][0] in SCALAR_FUNCTIONS for node in live_nodes(self.outputs))

    @property
    def operation_count(self) -> tuple[int, int]:
        """Multiplications, with divisions, and additions."""
        return operation_count([*self.outputs, *self.pivots])


class _Inputs:
    """The symbols that a kernel asks for, in order, and the arm on them."""

    def __init__(self, run_time: RunTime, generic: bool) -> None:
        self.model = run_time.model
        self.n = run_time.model.n
        self.names: list[tuple[str, int]] = []
        self._graph = Graph()
        self._run_time = run_time
        self._generic = generic

    def __call__(self, name: str, size: int | None = None) -> list[Scalar]:
        size = self.n if size is None else size
        self.names.append((name, size))
        return list(self._graph.input(name, size))

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
        """Return the arm for regressors: not regrouped, under the run-time gravity."""
        equivalent = EquivalentInertias(self.model.dh)
        return symbolic_arm(self.model, q, equivalent, gravity=self._run_time.gravity(self._graph))

    def chain(self, q: Sequence[Scalar]) -> tuple[list[Row], FloatArray, FloatArray]:
        """Return the arm for poses: rows, base and tip transform."""
        dh = self.model.dh
        fold = constants(self._graph) if self._generic else float
        return (
            dh_rows(self.model, q, EquivalentInertias(dh), fold),
            dh.base_transform,
            dh.tip_transform,
        )


Result = tuple[tuple[int, ...], Sequence[Scalar]]


def _inverse_dynamics(given: _Inputs) -> Result:
    q, qd, qdd = given('q'), given('qd'), given('qdd')
    return (given.n,), joint_torques(given.arm(q), qd, qdd)


def _tip_wrench_torque(given: _Inputs) -> Result:
    q, wrench = given('q'), given('tip_wrench', 6)
    return (given.n,), rigid.wrench_torques(*given.chain(q), wrench)


def _gravity_torque(given: _Inputs) -> Result:
    still: Vector = [0.0] * given.n
    return (given.n,), joint_torques(given.arm(given('q')), still, still)


def _bias_torque(given: _Inputs) -> Result:
    q, qd = given('q'), given('qd')
    return (given.n,), joint_torques(given.arm(q), qd, [0.0] * given.n)


def _mass_matrix(given: _Inputs) -> Result:
    return (given.n, given.n), _flat(rigid.mass_matrix(given.arm(given('q'))))


def _forward_dynamics(given: _Inputs) -> Result:
    q, qd, tau = given('q'), given('qd'), given('tau')
    arm = given.arm(q)
    bias = joint_torques(arm, qd, [0.0] * given.n)
    net = [a - b for a, b in zip(tau, bias)]
    mass = rigid.mass_matrix(arm)
    arm.rows[0].begin('M = L D LT, solved')
    result, pivots = rigid.accelerations(mass, net)
    return (given.n,), [*result, *pivots]


def _coriolis_matrix(given: _Inputs) -> Result:
    q, qd = given('q'), given('qd')
    return (given.n, given.n), _flat(derivatives.coriolis_matrix(given.arm(q), qd))


def _forward_kinematics(given: _Inputs) -> Result:
    return (4, 4), _flat(rigid.tip_pose(*given.chain(given('q'))))


def _jacobian(given: _Inputs) -> Result:
    return (6, given.n), _flat(rigid.tip_jacobian(*given.chain(given('q'))))


def _friction_torque(given: _Inputs) -> Result:
    qd, rigid_torque = given('qd'), given('rigid_torque')
    return (given.n,), _friction(given, qd, [sign(x) for x in qd], rigid_torque)


def _smooth_friction_torque(given: _Inputs) -> Result:
    qd, width, rigid_torque = given('qd'), given('width', 1), given('rigid_torque')
    return (given.n,), _friction(given, qd, np.tanh(np.array(qd) / width), rigid_torque)


def _friction(given: _Inputs, *arrays: Sequence[Scalar]) -> Sequence[Scalar]:
    """Return the friction torque under a direction; NumPy computes with expressions, too."""
    qd, direction, rigid_torque = (np.array(array, dtype=object) for array in arrays)
    return list(friction_of(given.model, qd, direction, rigid_torque))


def _base_regressor(given: _Inputs) -> Result:
    q, qd, qdd = given('q'), given('qd'), given('qdd')
    columns = base_parameters(given.model, rotor_inertia=False).columns
    arm = given.arm_as_described(q)
    motions = link_motions(arm, qd, qdd)
    values = rigid.regressor_columns(arm, motions, [divmod(k, 10) for k in columns])
    return (given.n, len(columns)), _flat(zip(*values))


def _flat(rows: Iterable[Iterable[Scalar]]) -> list[Scalar]:
    return [x for row in rows for x in row]


DESCRIPTIONS = {
    'inverse_dynamics': 'Joint torques that cause accelerations qdd.',
    'tip_wrench_torque': 'Joint torques for a wrench that the tip exerts on the world.',
    'gravity_torque': 'Joint torques that hold the arm still.',
    'bias_torque': 'Coriolis, centrifugal and gravity torques.',
    'mass_matrix': 'Mass matrix, row by row.',
    'coriolis_matrix': 'C(q, qd) of the Christoffel symbols, row by row.',
    'forward_dynamics': 'Accelerations that torques cause.',
    'forward_kinematics': "The tip link's pose (4, 4) in the base link's frame, row by row.",
    'jacobian': "The tip's Jacobian (6, n), linear rows first, in base link axes, row by row.",
    'friction_torque': "Torques that overcome friction, load's only with rigid_torque.",
    'smooth_friction_torque': 'The same with tanh(qd / width) as sign, to be commanded.',
    'base_regressor': 'Regressor (n, count) of the base parameters of the links, row by row.',
}
"""What each kernel computes."""

_BUILDERS: dict[KernelName, Callable[[_Inputs], Result]] = {
    'inverse_dynamics': _inverse_dynamics,
    'gravity_torque': _gravity_torque,
    'bias_torque': _bias_torque,
    'mass_matrix': _mass_matrix,
    'coriolis_matrix': _coriolis_matrix,
    'forward_dynamics': _forward_dynamics,
    'forward_kinematics': _forward_kinematics,
    'jacobian': _jacobian,
    'friction_torque': _friction_torque,
    'smooth_friction_torque': _smooth_friction_torque,
    'base_regressor': _base_regressor,
    'tip_wrench_torque': _tip_wrench_torque,
}
WRENCH = 'tip_wrench_torque'
FRICTION_KERNELS = ('friction_torque', 'smooth_friction_torque')


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
    inputs = _Inputs(run_time, generic)
    shape, values = _BUILDERS[name](inputs)
    size = math.prod(shape)
    optional = ('rigid_torque',) if name in FRICTION_KERNELS else ()
    return Kernel(
        name, tuple(inputs.names), shape, tuple(values[:size]), tuple(values[size:]), optional
    )
