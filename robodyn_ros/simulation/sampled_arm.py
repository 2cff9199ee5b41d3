# SPDX-License-Identifier: Apache-2.0
"""An arm that differs from its URDF: bodies, rotors and friction, sampled by a seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robodyn_ros.dynamics import gravity_torque, mass_matrix
from robodyn_ros.identification.prior import prior_pseudo_inertia
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, parameters_of_pseudo_inertia

# Relative to the loads of a joint in random poses: its largest inertia, its rms gravity torque.
_ROTOR_INERTIA = (0.02, 0.1)
_VISCOUS, _COULOMB = (0.05, 0.15), (0.05, 0.15)
_URDF_FRICTION = (1.0, 1.5)  # where the URDF has some: what is compensated too much oscillates
_LEAST_TORQUE = 0.05  # of the strongest joint's: the least that a joint is taken to carry
_LEAST_INERTIA = 0.01  # of the largest: a wrist's drive is not as small as what it turns
_POSES = 200


def sampled_arm(model: RobotModel, seed: int, off: float = 0.3) -> RobotModel:
    """
    Return an arm of the same kinematics with other bodies, rotor inertia and friction.

    Parameters
    ----------
    model : RobotModel
        As the URDF has it.
    seed : int
    off : float
        Deviation of masses, and of inertias and centres of mass relative to the body's radius.
    """
    generator = np.random.default_rng(seed)
    prior, _ = prior_pseudo_inertia(model)
    # Half the deviation, in a root of the pseudo-inertia: so the bodies can exist.
    change = np.eye(4) + off / 2 * generator.normal(size=(model.n, 4, 4))
    roots = np.linalg.cholesky(prior) @ change
    bodies = parameters_of_pseudo_inertia(roots @ np.swapaxes(roots, -1, -2))
    true = model.with_inertial_parameters(bodies).with_rotor_inertia(np.zeros(model.n))
    torque, inertia = joint_loads(true, generator)
    largest = inertia.max(axis=0)
    drives = np.maximum(largest, _LEAST_INERTIA * largest.max())
    return replace(
        true,
        rotor_inertia=generator.uniform(*_ROTOR_INERTIA, model.n) * drives,
        viscous_friction=_sampled_friction(generator, model.viscous_friction, _VISCOUS, torque),
        coulomb_friction=_sampled_friction(generator, model.coulomb_friction, _COULOMB, torque),
    )


def _sampled_friction(
    generator: np.random.Generator,
    given: FloatArray,
    part: tuple[float, float],
    torque: FloatArray,
) -> FloatArray:
    """Return more friction than the URDF gives, or a fraction of the joint's torque, (n,)."""
    more = generator.uniform(*_URDF_FRICTION, len(torque)) * given
    return np.where(given > 0.0, more, generator.uniform(*part, len(torque)) * torque)


def joint_loads(
    model: RobotModel, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return each joint's rms gravity torque (n,), no joint's zero, and inertias (N, n)."""
    q = random_poses(model, generator, _POSES)
    torque = np.sqrt((gravity_torque(model, q) ** 2).mean(axis=0))
    inertia = np.diagonal(mass_matrix(model, q), axis1=1, axis2=2)
    least = _LEAST_TORQUE * max(float(torque.max()), float(inertia.max()))
    return np.maximum(torque, least), inertia


def random_poses(model: RobotModel, generator: np.random.Generator, count: int) -> FloatArray:
    """Return positions (count, n) within the limits, or a turn (half a metre) where none are."""
    lower, upper = model.position_limits.T
    half = np.where(model.dh.prismatic, 0.25, np.pi)
    bounded = np.isfinite(lower) & np.isfinite(upper) & (lower < upper)
    low, high = np.where(bounded, lower, -half), np.where(bounded, upper, half)
    return generator.uniform(low, high, (count, model.n))
