# SPDX-License-Identifier: Apache-2.0
"""
Information of a motion: the information matrix of base parameters and drive terms.

Measured efforts are torques plus noise, tau = Y beta + D c + e, with Y the base regressor and D
the drives' columns Ia qdd, Fv qd, Fc tanh(qd / 0.05), offset. With deviations of e and what is
thought of beta and c beforehand, the covariance after the motion is (Lambda + A)⁻¹,
A = sum of [Y D]ᵀ [Y D] / deviation². The prior is that of ``identify``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.compiled.compiled_model import compile_model
from robodyn_ros.dynamics import inverse_dynamics, mass_matrix
from robodyn_ros.errors import NoBackend
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.exciting_motion.verification import Torque
from robodyn_ros.identification.parameters import (
    IdentifiedParameter,
    bare_base_parameters,
    parameter_labels,
)
from robodyn_ros.identification.prior import PARAMETERS, Prior, congruence, prior_pseudo_inertia
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import BaseParameters
from robodyn_ros.spatial import FloatArray

TERMS = DriveTerms()
DIRECTION_WIDTH = 0.05
"""Over which the direction of motion turns here [rad/s or m/s]; ``identify`` takes a fifth."""

NOISE = 0.02
"""Deviation of measured efforts, relative to the joint's rms torque in random motions."""

RATE = 10.0
"""So many independent efforts a second are counted."""

_LEAST_TORQUE = 0.05  # of the joint's that carries most

Regressor = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class ArmFunctions:
    """
    The functions of an arm that a search calls thousands of times.

    Attributes
    ----------
    base : BaseParameters
        Of the bodies alone.
    regressor : Regressor
        Its base regressor, (N, n) to (N, n, count).
    torque : Torque
        Inverse dynamics with rotors.
    note : str
        Why nothing is compiled; empty where it is.
    """

    base: BaseParameters
    regressor: Regressor
    torque: Torque
    note: str = ''

    @classmethod
    def of(cls, model: RobotModel) -> ArmFunctions:
        """Return a model's functions, compiled where there is a C compiler."""
        base = bare_base_parameters(model)
        try:
            compiled = compile_model(model, kernels=('base_regressor', 'inverse_dynamics'))
        except NoBackend as error:
            return cls(
                base,
                base.regressor,
                lambda q, qd, qdd: inverse_dynamics(model, q, qd, qdd),
                str(error),
            )
        return cls(base, compiled.base_regressor, compiled.inverse_dynamics)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """
    What is known before a motion, and how well its efforts will be measured.

    Attributes
    ----------
    model : RobotModel
    base : BaseParameters
    prior : array, shape (count + 4 n,) * 2
        Covariance of base parameters and drive terms before the motion.
    noise : array, shape (n,)
        Deviation of each joint's measured effort [N m or N].
    """

    model: RobotModel
    base: BaseParameters
    prior: FloatArray
    noise: FloatArray

    @classmethod
    def before(
        cls,
        model: RobotModel,
        functions: ArmFunctions,
        states: tuple[FloatArray, FloatArray, FloatArray],
        prior_deviation: float,
        noise: FloatArray | None,
    ) -> Knowledge:
        """
        Return what is known before.

        Parameters
        ----------
        model : RobotModel
        functions : ArmFunctions
        states : tuple of arrays, shape (N, n)
            q, qd, qdd of typical states: they say how large torques and inertias are.
        prior_deviation : float
            How far the URDF's bodies are thought to be off, relative.
        noise : array, shape (n,), or None
            [N m or N]; None: 2 % of the rms torque.
        """
        pseudo, _ = prior_pseudo_inertia(model)
        prior = Prior(pseudo, 1.0 / (4.0 * prior_deviation**2))
        bodies = model.with_inertial_parameters(prior.inertial_parameters)
        q, qd, qdd = states
        rms = np.sqrt((inverse_dynamics(bodies, q, qd, qdd) ** 2).mean(axis=0))
        # A joint that carries nothing is not measured that much better than the others.
        rms = np.maximum(rms, max(_LEAST_TORQUE * float(rms.max()), 1e-9))
        lower: FloatArray = np.asarray(np.linalg.cholesky(pseudo), dtype=float)
        roots = PARAMETERS @ congruence(lower) / np.sqrt(prior.strength)
        factor = np.hstack(
            [
                functions.base.regrouping[:, 10 * i : 10 * i + 10] @ root
                for i, root in enumerate(roots)
            ]
        )
        inertia = np.diagonal(mass_matrix(bodies, q), axis1=1, axis2=2).max(axis=0)
        speed = np.maximum(np.sqrt((qd**2).mean(axis=0)), 1e-2)
        drive = np.stack([inertia, 0.5 * rms / speed, 0.5 * rms, 0.5 * rms], axis=1).ravel()
        count = functions.base.count
        covariance = np.zeros((count + len(drive),) * 2)
        covariance[:count, :count] = factor @ factor.T
        covariance[count:, count:] = np.diag(drive**2)
        return cls(model, functions.base, covariance, NOISE * rms if noise is None else noise)

    @cached_property
    def root(self) -> FloatArray:
        """R with R Rᵀ the prior's covariance."""
        scale = np.sqrt(np.diagonal(self.prior))
        scale = np.where(scale > 0, scale, 1.0)
        values, vectors = np.linalg.eigh(self.prior / np.outer(scale, scale))
        return scale[:, None] * vectors * np.sqrt(np.maximum(values, 1e-12 * values[-1]))

    def information(self, columns: FloatArray, duration: float) -> FloatArray:
        """
        Return 1 + Rᵀ A R for evenly sampled columns (N, n, count + 4 n) over a duration [s].

        That is the information in coordinates in which the prior's covariance is the identity.
        """
        weighted = columns / self.noise[:, None]
        rows = weighted.reshape(-1, columns.shape[-1]) @ self.root
        return np.eye(len(self.root)) + rows.T @ rows * self.weight(len(columns), duration)

    @staticmethod
    def weight(count: int, duration: float) -> float:
        """Return for how many independent efforts each of a number of samples counts."""
        return RATE * duration / count

    def expected(self, information: FloatArray) -> tuple[IdentifiedParameter, ...]:
        """Return all parameters with the deviations that an information matrix leaves."""
        inverse_root = np.linalg.solve(np.linalg.cholesky(information), self.root.T)
        after = np.linalg.norm(inverse_root, axis=0)
        before = np.linalg.norm(self.root, axis=1)
        model = self.model
        drive = np.stack(
            [
                model.rotor_inertia,
                model.viscous_friction,
                model.coulomb_friction,
                model.effort_offset,
            ],
            axis=1,
        )
        values = np.concatenate([self.base.values, drive.ravel()])
        return tuple(
            IdentifiedParameter(*label, float(x), float(d), float(x), float(p))
            for label, x, d, p in zip(
                parameter_labels(model, self.base, TERMS), values, after, before, strict=True
            )
        )


def all_columns(base: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return base regressors (N, n, count) with the drives' columns (N, n, 4 n) beside them."""
    count, n = qd.shape
    terms = np.stack([qdd, qd, np.tanh(qd / DIRECTION_WIDTH), np.ones_like(qd)], axis=-1)
    drive = np.zeros((count, n, n, 4))
    drive[:, np.arange(n), np.arange(n)] = terms
    return np.concatenate([base, drive.reshape(count, n, 4 * n)], axis=-1)
