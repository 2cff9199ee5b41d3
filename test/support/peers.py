# SPDX-License-Identifier: Apache-2.0
"""
Calls of other libraries for the same arm, as ``timeit`` needs them.

Each function takes an arm, its state and an expected result for every function, and returns
statements with what they refer to; nothing where the library is not installed. A call whose result
is not the expected one is an error: what computes something else is not timed. All but Pinocchio
and MuJoCo, which read the arm's own URDF, get a plain URDF of the chain alone.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from oracles import PinocchioArm

import robodyn_ros as rd
from robodyn_ros.dh.frames import step_transforms
from robodyn_ros.spatial import inertia_tensor, skew

Calls = dict[str, tuple[str, dict[str, Any]]]
State = Mapping[str, np.ndarray]

_PINOCCHIO = {
    'inverse_dynamics': 'pin.rnea(model, data, q, qd, qdd)',
    'gravity_torque': 'pin.computeGeneralizedGravity(model, data, q)',
    'mass_matrix': 'pin.crba(model, data, q)',
    'coriolis_matrix': 'pin.computeCoriolisMatrix(model, data, q, qd)',
    'forward_dynamics': 'pin.aba(model, data, q, qd, tau)',
    'inverse_dynamics_derivatives': 'pin.computeRNEADerivatives(model, data, q, qd, qdd)',
    'forward_dynamics_derivatives': 'pin.computeABADerivatives(model, data, q, qd, tau)',
    'regressor': 'pin.computeJointTorqueRegressor(model, data, q, qd, qdd)',
}


def pinocchio_calls(source: str | Path, arm: rd.RobotModel, state: State) -> Calls:
    """Return Pinocchio's calls; the tests compare its results with ours."""
    oracle = PinocchioArm.of(source, arm)
    scope = {'pin': pin, 'model': oracle.model, 'data': oracle.data}
    scope |= {**state, 'q': oracle.configuration(state['q'])}
    return {name: (call, scope) for name, call in _PINOCCHIO.items()}


def mujoco_calls(source: str | Path, base: str, tip: str) -> Calls:
    """Return MuJoCo's calls; it takes its state from its own data."""
    try:
        import mujoco

        from robodyn_ros.simulation.arm import ArmSimulation

        simulation = ArmSimulation.from_urdf(source, base_link=base, tip_link=tip)
    except (ImportError, rd.RobodynError):
        return {}
    scope = {'mujoco': mujoco, 'model': simulation._model, 'data': simulation._data}
    return {
        'inverse_dynamics': ('mujoco.mj_inverse(model, data)', scope),
        'forward_dynamics': ('mujoco.mj_forward(model, data)', scope),
    }


def toolbox_calls(name: str, state: State) -> Calls:
    """
    Return the calls of roboticstoolbox's own DH model of an arm.

    Its inverse dynamics run in C; gravity, mass matrix and forward dynamics call it from Python.
    """
    try:
        from roboticstoolbox.models import DH

        robot = getattr(DH, name)()
    except (ImportError, AttributeError):
        return {}
    calls = {
        'inverse_dynamics': 'robot.rne(q, qd, qdd)',
        'gravity_torque': 'robot.gravload(q)',
        'mass_matrix': 'robot.inertia(q)',
        'forward_dynamics': 'robot.accel(q, qd, tau)',
    }
    if np.linalg.matrix_rank(robot.inertia(state['q'])) < robot.n:
        del calls['forward_dynamics']
    return {key: (call, {**state, 'robot': robot}) for key, call in calls.items()}


def drake_calls(arm: rd.RobotModel, state: State, expected: State) -> Calls:
    """Return Drake's calls (C++), each with its setting of the state."""
    try:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant
        from pydrake.multibody.tree import MultibodyForces
    except ImportError:
        return {}
    plant = MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(plain_urdf(arm), 'urdf')
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName('link0'))
    plant.mutable_gravity_field().set_gravity_vector(arm.gravity)
    plant.Finalize()
    context = plant.CreateDefaultContext()
    scope = {**state, 'plant': plant, 'context': context, 'forces': MultibodyForces(plant)}
    at_q = 'plant.SetPositions(context, q)'
    at_state = f'{at_q}; plant.SetVelocities(context, qd)'
    gravity = 'plant.CalcForceElementsContribution(context, forces)'
    return _checked(
        'Drake',
        {
            'inverse_dynamics': f'{at_state}; {gravity};'
            ' result = plant.CalcInverseDynamics(context, qdd, forces)',
            'gravity_torque': f'{at_q}; result = -plant.CalcGravityGeneralizedForces(context)',
            'mass_matrix': f'{at_q}; result = plant.CalcMassMatrix(context)',
        },
        scope,
        expected,
    )


def idyntree_calls(arm: rd.RobotModel, state: State, expected: State) -> Calls:
    """Return iDynTree's calls (C++), each with its setting of the state."""
    try:
        import idyntree.bindings as idyn
    except ImportError:
        return {}
    loader = idyn.ModelLoader()
    loader.loadModelFromString(plain_urdf(arm), 'urdf')
    model = loader.model()
    kin = idyn.KinDynComputations()
    kin.loadRobotModel(model)
    scope = {
        **state,
        'kin': kin,
        'g': np.array(arm.gravity),
        'still': np.zeros(arm.n),
        'still_base': np.zeros(6),
        'wrenches': idyn.LinkWrenches(model),
        'tau_out': idyn.FreeFloatingGeneralizedTorques(model),
        'mass': idyn.MatrixDynSize(6 + arm.n, 6 + arm.n),
    }
    return _checked(
        'iDynTree',
        {
            'inverse_dynamics': 'kin.setRobotState(q, qd, g);'
            ' kin.inverseDynamics(still_base, qdd, wrenches, tau_out);'
            ' result = tau_out.jointTorques().toNumPy()',
            'gravity_torque': 'kin.setRobotState(q, still, g);'
            ' kin.generalizedGravityForces(tau_out); result = tau_out.jointTorques().toNumPy()',
            'mass_matrix': 'kin.setRobotState(q, still, g);'
            ' kin.getFreeFloatingMassMatrix(mass); result = mass.toNumPy()[6:, 6:]',
        },
        scope,
        expected,
    )


def frax_calls(arm: rd.RobotModel, state: State, expected: State) -> Calls:
    """Return the calls of frax (JAX, compiled by XLA); derivatives are JAX's, forward mode."""
    os.environ.setdefault('JAX_ENABLE_X64', '1')
    os.environ.setdefault('JAX_PLATFORMS', 'cpu')
    os.environ.setdefault('XLA_FLAGS', '--xla_cpu_multi_thread_eigen=false')
    try:
        import frax
        import jax
    except ImportError:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'arm.urdf')
        path.write_text(plain_urdf(arm), encoding='utf-8')
        robot = frax.Robot(str(path))
    # Gravity as the base's acceleration: linear first, as its own gravity_vector has it.
    field = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])

    def torque(q: Any, qd: Any, qdd: Any) -> Any:
        return robot.rnea(q, qd, qdd, field, None)

    functions: dict[str, Callable] = {
        'inverse_dynamics': jax.jit(torque),
        'gravity_torque': jax.jit(robot.gravity_vector),
        'mass_matrix': jax.jit(robot.mass_matrix),
        'forward_dynamics': jax.jit(lambda q, qd, tau: robot.forward_dynamics(q, qd, tau, None)),
        'inverse_dynamics_derivatives': jax.jit(jax.jacfwd(torque, argnums=(0, 1, 2))),
    }
    arguments = {
        'gravity_torque': 'q',
        'mass_matrix': 'q',
        'forward_dynamics': 'q, qd, tau',
    }
    calls = {
        name: f'result = ready(f_{name}({arguments.get(name, "q, qd, qdd")}))'
        for name in functions
    }
    scope = {**state, 'ready': jax.block_until_ready}
    scope |= {f'f_{name}': function for name, function in functions.items()}
    return _checked('frax', calls, scope, expected)


def _checked(
    library: str, calls: Mapping[str, str], scope: dict[str, Any], expected: State
) -> Calls:
    """Return calls after a comparison of what each puts into ``result``."""
    for name, call in calls.items():
        exec(call, scope)
        given = scope['result']
        given = np.array(given[:2]) if isinstance(given, tuple) else np.asarray(given)
        wanted = expected[name]
        if not np.allclose(given, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max()):
            raise RuntimeError(f'{library}, {name}: {given} where we have {wanted}')
    return {name: (call, scope) for name, call in calls.items()}


def plain_urdf(arm: rd.RobotModel) -> str:
    """Return a URDF of an arm's chain: a link for each DH frame, with its inertial parameters."""
    steps = step_transforms(arm.dh, np.zeros(arm.n))
    steps[0] = arm.dh.base_transform @ steps[0]
    # The base does not move, but frax reads its inertial parameters, too.
    parts = [
        '<robot name="plain"><link name="link0"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    ]
    for j, (step, parameters) in enumerate(zip(steps, arm.inertial_parameters, strict=True), 1):
        kind = 'prismatic' if arm.dh.prismatic[j - 1] else 'revolute'
        mass, center = parameters[9], parameters[6:9] / (parameters[9] or 1.0)
        inertia = inertia_tensor(parameters) + mass * skew(center) @ skew(center)
        tensor = ' '.join(
            f'i{a}{b}="{float(inertia["xyz".index(a), "xyz".index(b)])!r}"'
            for a, b in ('xx', 'xy', 'xz', 'yy', 'yz', 'zz')
        )
        parts.append(
            f'<link name="link{j}"><inertial><origin xyz="{_text(center)}"/>'
            f'<mass value="{float(mass)!r}"/><inertia {tensor}/></inertial></link>'
            f'<joint name="joint{j}" type="{kind}"><parent link="link{j - 1}"/>'
            f'<child link="link{j}"/><axis xyz="0 0 1"/>'
            f'<origin xyz="{_text(step[:3, 3])}" rpy="{_text(_rpy(step[:3, :3]))}"/>'
            '<limit lower="-10" upper="10" effort="1000" velocity="100"/></joint>'
        )
    return ''.join([*parts, '</robot>'])


def _rpy(rotation: np.ndarray) -> tuple[float, float, float]:
    r = rotation
    pitch = np.arctan2(-r[2, 0], np.hypot(r[2, 1], r[2, 2]))
    if np.hypot(r[0, 0], r[1, 0]) < 1e-9:
        return float(np.arctan2(-r[1, 2], r[1, 1])), float(pitch), 0.0
    return float(np.arctan2(r[2, 1], r[2, 2])), float(pitch), float(np.arctan2(r[1, 0], r[0, 0]))


def _text(numbers: Any) -> str:
    return ' '.join(repr(float(x)) for x in numbers)
