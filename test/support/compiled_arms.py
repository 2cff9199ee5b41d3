# SPDX-License-Identifier: Apache-2.0
"""Arms to compile, and what the core computes for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import known_arms
import numpy as np
from oracles import PinocchioArm, random_states, relative_difference
from robots import random_chain, random_tree

import robodyn_ros as rd
from robodyn_ros.compiled.symbolic.expression import evaluated
from robodyn_ros.compiled.symbolic.kernel import Kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import PARAMETERS
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.dynamics.friction import friction_of

PUBLIC_ARMS = {name: known_arms.PUBLIC_ARMS[name] for name in ('panda', 'ur5', 'tiago')}
public_arm = known_arms.known_arm


def random_arm(seed: int, rotors: bool = False) -> rd.RobotModel:
    """Return a random chain of 2 to 8 joints under tilted gravity."""
    generator = np.random.default_rng(seed)
    text = random_chain(generator, int(generator.integers(2, 9)))
    gravity = generator.uniform(-10, 10, 3)
    arm = rd.RobotModel.from_urdf(text, base_link='base', tip_link='tip', gravity=gravity)
    return arm.with_rotor_inertia(generator.uniform(0, 0.5, arm.n)) if rotors else arm


def tree_arm(seed: int, rotors: bool = False) -> rd.RobotModel:
    """Return a random tree of 3 to 9 joints under tilted gravity."""
    generator = np.random.default_rng(seed)
    text, tips = random_tree(generator, int(generator.integers(3, 10)))
    gravity = generator.uniform(-10, 10, 3)
    arm = rd.RobotModel.from_urdf(text, tip_link=tips, gravity=gravity)
    return arm.with_rotor_inertia(generator.uniform(0, 0.5, arm.n)) if rotors else arm


def chain_and_oracle(seed: int) -> tuple[rd.RobotModel, PinocchioArm]:
    """Return a random chain of 1 to 8 joints under tilted gravity, and the same in Pinocchio."""
    generator = np.random.default_rng(seed)
    text = random_chain(generator, int(generator.integers(1, 9)))
    gravity = generator.uniform(-10, 10, 3)
    arm = rd.RobotModel.from_urdf(text, base_link='base', tip_link='tip', gravity=gravity)
    return arm, PinocchioArm.of(text, arm)


def identified_arm(seed: int) -> rd.RobotModel:
    """Return a random chain with all terms of friction that an identification finds."""
    generator = np.random.default_rng(seed)
    arm = random_arm(seed)
    return replace(
        arm,
        viscous_friction=generator.uniform(0, 5, arm.n),
        coulomb_friction=generator.uniform(0, 9, arm.n),
        effort_offset=generator.uniform(-3, 3, arm.n),
        friction_curve=generator.uniform(-2, 2, (arm.n, 2)),
        load_friction=generator.uniform(0, 0.1, arm.n) * (seed % 3 > 0),
    )


def coupled_arm(seed: int) -> rd.RobotModel:
    """Return an identified arm with two drives that turn with neighbouring joints."""
    generator = np.random.default_rng(seed)
    arm = identified_arm(seed)
    coupling = np.zeros((2, arm.n))
    coupling[0, :2], coupling[1, -2:] = (0.5, 1.0), (-1.0, 1.0)
    return replace(
        arm.with_rotor_inertia(generator.uniform(0, 0.5, arm.n)),
        coupling=coupling,
        coupled_rotor_inertia=generator.uniform(0.1, 0.5, 2),
        coupled_friction=generator.uniform(0, 3, (2, 4)),
    )


def states(arm: rd.RobotModel, count: int = 5, seed: int = 0) -> dict[str, np.ndarray]:
    """Return seeded inputs by the names that the kernels give them."""
    q, qd, qdd = random_states(arm, count, seed)
    generator = np.random.default_rng(seed)
    return {
        'q': q,
        'qd': qd,
        'qdd': qdd,
        'tau': generator.uniform(-20, 20, q.shape),
        'tip_wrench': generator.uniform(-20, 20, (count, 6 * len(arm.tip_links))),
        'rigid_torque': generator.uniform(-50, 50, q.shape),
        'width': generator.uniform(0.01, 1, (count, 1)),
        'direction': generator.uniform(-1, 1, (count, arm.n + len(arm.coupling))),
    }


def _torque_of_wrench(arm, q, tip_wrench):
    still = np.zeros_like(q)
    with_it = rd.inverse_dynamics(arm, q, still, still, tip_wrench=tip_wrench)
    return with_it - rd.gravity_torque(arm, q)


def of_tips(function, arm, q):
    """Return what a function gives for the only tip, or for each of several."""
    results = [function(arm, q, tip) for tip in arm.tip_links]
    return results[0] if len(results) == 1 else np.stack(results, axis=-3)


def _base_regressor(arm, q, qd, qdd):
    return rd.base_parameters(arm, rotor_inertia=False).regressor(q, qd, qdd)


_CORE: dict[str, Callable] = {
    'inverse_dynamics': rd.inverse_dynamics,
    'gravity_torque': rd.gravity_torque,
    'bias_torque': rd.bias_torque,
    'mass_matrix': rd.mass_matrix,
    'coriolis_matrix': rd.coriolis_matrix,
    'christoffel_symbols': rd.christoffel_symbols,
    'forward_dynamics': rd.forward_dynamics,
    'inverse_dynamics_derivatives': rd.inverse_dynamics_derivatives,
    'forward_dynamics_derivatives': rd.forward_dynamics_derivatives,
    'linearization': rd.linearization,
    'forward_kinematics': lambda arm, q: of_tips(rd.forward_kinematics, arm, q),
    'jacobian': lambda arm, q: of_tips(rd.jacobian, arm, q),
    'friction_torque': lambda arm, qd, tau: rd.friction_torque(arm, qd, rigid_torque=tau),
    'smooth_friction_torque': lambda arm, qd, width, tau: smooth_friction_torque(
        arm, width, qd, tau
    ),
    'directed_friction_torque': friction_of,
    'regressor': rd.regressor,
    'base_regressor': _base_regressor,
    'tip_wrench_torque': _torque_of_wrench,
}


def core(name: str, arm: rd.RobotModel, *arguments: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return each result of a function of the core, by its kernel's name."""
    return as_tuple(_CORE[name](arm, *arguments))


def as_tuple(results: np.ndarray | tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    return results if isinstance(results, tuple) else (results,)


def interpreted(
    kernel: Kernel, given: dict[str, np.ndarray], parameters=()
) -> tuple[np.ndarray, ...]:
    """Return what the kernel's expressions give, node by node, without any compiler."""
    count = len(given['q'])
    inputs = {name: given[name] for name, _ in kernel.inputs}
    inputs[PARAMETERS] = np.tile(np.asarray(parameters, dtype=float), (count, 1))
    parts = np.split(evaluated(kernel.outputs, inputs), np.cumsum(kernel.sizes)[:-1], axis=-1)
    return tuple(
        part.reshape(count, *shape) for part, (_, shape) in zip(parts, kernel.results, strict=True)
    )


def largest_difference(results: tuple[np.ndarray, ...], expected: tuple[np.ndarray, ...]) -> float:
    """Return the largest relative difference of results."""
    return max(relative_difference(*pair) for pair in zip(results, expected, strict=True))
