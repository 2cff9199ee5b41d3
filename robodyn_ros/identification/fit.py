# SPDX-License-Identifier: Apache-2.0
"""
The estimator in a loop: noise, friction that grows with load, and tilt, by repeated solves.

The delay of the efforts is estimated beside a fit, as one more column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.dynamics import mass_matrix
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.estimator import Estimate, Problem, estimate
from robodyn_ros.identification.factors import JointFactor, Layout, joint_factors
from robodyn_ros.identification.noise import (
    Noise,
    floored,
    huber_weights,
    rms,
    typical,
)
from robodyn_ros.identification.prior import Prior
from robodyn_ros.identification.rows import Rows, gravity_columns
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_ROUNDS = 4
_FIRST_DEVIATION = 0.01
_FIRST_CORRELATION = 2.0
_TILT_DEVIATION = 0.1  # rad
_STATES_FOR_INERTIA = 200
# What the drive's terms may do, relative to the joint's rms torque.
_PLAIN_TERMS, _FINE_TERMS = 0.5, 0.1
_POSITIVE = ('Ia', 'Fv', 'Fc')


@dataclass(frozen=True, eq=False)
class Fit:
    """
    An estimate and what it rests on.

    Attributes
    ----------
    terms : DriveTerms
    layout : Layout
    estimate : Estimate
    noise : Noise
        Of the rows that it was trained with.
    coupling : array, shape (m, n)
        Of the coupled drives.
    """

    terms: DriveTerms
    layout: Layout
    estimate: Estimate
    noise: Noise
    coupling: FloatArray

    @property
    def inertial_parameters(self) -> FloatArray:
        """Ten parameters of each link, array, shape (n, 10)."""
        return self.estimate.inertial_parameters

    @property
    def drive(self) -> FloatArray:
        """Coefficients of each joint's drive terms, array, shape (n, terms.count)."""
        size = self.layout.n * self.layout.terms
        return self.estimate.others[:size].reshape(self.layout.n, self.layout.terms)

    def coefficient(self, name: str) -> FloatArray:
        """Return the coefficients of a drive term, shape (n,), zero where it was left out."""
        if name not in self.terms.names:
            return np.zeros(self.layout.n)
        return self.drive[:, self.terms.names.index(name)].copy()

    @property
    def coupled(self) -> FloatArray:
        """Coefficients of the coupled drives' terms, array, shape (m, terms.coupled_count)."""
        begin = self.layout.n * self.layout.terms
        shape = (len(self.coupling), self.terms.coupled_count)
        return self.estimate.others[begin:][: shape[0] * shape[1]].reshape(shape)

    def coupled_coefficient(self, name: str) -> FloatArray:
        """Return the coefficients of a coupled drive's term, shape (m,), as ``coefficient``."""
        if name not in self.terms.coupled_names:
            return np.zeros(len(self.coupling))
        return self.coupled[:, self.terms.coupled_names.index(name)].copy()

    @property
    def common(self) -> FloatArray:
        """Further parameters that all joints have in common: the tilt, if any."""
        return self.estimate.others[self.layout.n * self.layout.terms + self.coupled.size :]


def drive_deviation(
    terms: DriveTerms, model: RobotModel, prior: Prior, rows: Sequence[Rows]
) -> FloatArray:
    """
    Return how large each joint's drive terms are thought to be at most, array, shape (n, terms).

    Rotor inertia up to the largest inertia that the joint sees, or, of a light wrist behind a
    gear, what half the rms torque accelerates, at most a tenth of the heaviest joint's; viscous
    and Coulomb friction and offset up to half the rms torque, curve and load terms up to a tenth.
    """
    q = np.concatenate([each.states.q for each in rows])
    chosen = np.linspace(0, len(q) - 1, min(len(q), _STATES_FOR_INERTIA)).astype(int)
    bodies = model.with_inertial_parameters(prior.inertial_parameters)
    inertia = np.diagonal(mass_matrix(bodies, q[chosen]), axis1=1, axis2=2).max(axis=0)
    torque = typical(np.concatenate([each.effort for each in rows]))
    velocity = np.concatenate([each.velocity for each in rows])
    speed = np.maximum(rms(velocity, np.ones(velocity.shape, dtype=bool)), 1e-2)
    acceleration = np.concatenate([each.drive(DriveTerms())[..., 0] for each in rows])
    rate = np.maximum(rms(acceleration, np.ones(acceleration.shape, dtype=bool)), 1e-2)
    sizes = {
        'Ia': np.maximum(
            inertia, np.minimum(_PLAIN_TERMS * torque / rate, _FINE_TERMS * inertia.max())
        ),
        'Fv': _PLAIN_TERMS * torque / speed,
        'Fc': _PLAIN_TERMS * torque,
        'offset': _PLAIN_TERMS * torque,
        'c1': _FINE_TERMS * torque,
        'c2': _FINE_TERMS * torque,
        'mu': np.full(model.n, _FINE_TERMS),
    }
    return np.stack([sizes[name] for name in terms.names], axis=1)


def coupled_deviation(
    terms: DriveTerms, coupling: FloatArray, deviation: FloatArray
) -> FloatArray:
    """
    Return how large coupled drives' terms are thought to be, shape (m, terms.coupled_count).

    Parameters
    ----------
    terms : DriveTerms
    coupling : array, shape (m, n)
    deviation : array, shape (n, terms.count)
        From ``drive_deviation``: a drive is no stronger than the weakest of its joints.
    """
    columns = [terms.names.index(name) for name in terms.coupled_names]
    return np.array([deviation[gears != 0][:, columns].min(axis=0) for gears in coupling]).reshape(
        len(coupling), len(columns)
    )


def problem_of(
    factors: Sequence[JointFactor],
    layout: Layout,
    terms: DriveTerms,
    scale: FloatArray,
    deviation: FloatArray,
    prior: Prior,
    coupling: FloatArray | None = None,
) -> Problem:
    """
    Return the estimator's problem.

    Parameters
    ----------
    factors : sequence of n JointFactor
        With the columns that ``layout`` says.
    layout : Layout
    terms : DriveTerms
    scale : array, shape (n,)
        What each joint's residuals are divided by.
    deviation : array, shape (n, terms)
        From ``drive_deviation``.
    prior : Prior
    coupling : array, shape (m, n), optional
        Of the coupled drives, whose terms are the first of the common columns.
    """
    factor, target = layout.assembled(factors, scale)
    coupling = np.zeros((0, layout.n)) if coupling is None else coupling
    coupled = coupled_deviation(terms, coupling, deviation).ravel()
    tilt = np.full(layout.common - len(coupled), _TILT_DEVIATION)
    positive = [name in _POSITIVE for name in terms.names] * layout.n
    positive += [name in _POSITIVE for name in terms.coupled_names] * len(coupling)
    return Problem(
        factor=factor,
        target=target,
        prior=prior.pseudo_inertia,
        strength=prior.strength,
        deviation=np.concatenate([deviation.ravel(), coupled, tilt]),
        positive=np.array(positive + [False] * len(tilt)),
    )


def first_noise(rows: Sequence[Rows]) -> Noise:
    """
    Return the noise to begin with: the residual of least squares, each joint by itself.

    Without a prior, without links that are bodies or the same for every joint, it is noise at the
    most. To begin with more would be wrong: what the prior resists would pass
    for noise, and noise that large would let the prior resist.
    """
    drive = [each.drive(DriveTerms()) for each in rows]
    factors = joint_factors(
        np.concatenate([each.inertial for each in rows]),
        np.concatenate(drive),
        np.zeros((*np.concatenate([each.effort for each in rows]).shape, 0)),
        np.concatenate([each.effort for each in rows]),
        np.concatenate([each.used for each in rows]).astype(float),
    )
    torque = typical(np.concatenate([each.effort for each in rows]))
    free = np.array([factor.free_deviation for factor in factors])
    deviation = np.where(np.isfinite(free), free, _FIRST_DEVIATION * torque)
    return Noise(floored(deviation, torque), np.full(len(torque), _FIRST_CORRELATION))


def fitted(
    model: RobotModel,
    rows: Sequence[Rows],
    prior: Prior,
    terms: DriveTerms,
    *,
    noise: Noise | None = None,
    start: Fit | None = None,
    coupling: FloatArray | None = None,
    tilt: bool = False,
    robust: bool = False,
    rounds: int = _ROUNDS,
) -> Fit:
    """
    Return the fit of a kind of drive terms to rows.

    Each round solves with the noise, the load's torque and the tilt's columns of the one before.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
    prior : Prior
    terms : DriveTerms
    noise : Noise, optional
        To begin with.
    start : Fit, optional
        To begin at.
    coupling : array, shape (m, n), optional
        Of coupled drives, which have the same terms.
    tilt : bool
        Whether a tilt of the base is estimated, too: two common parameters [rad].
    robust : bool
        Whether rows that stand out are weighted down.
    rounds : int
    """
    n = model.n
    coupling = np.zeros((0, n)) if coupling is None else coupling
    layout = Layout(n, terms.count, len(coupling) * terms.coupled_count + (2 if tilt else 0))
    coupled = np.concatenate([each.coupled(terms, coupling) for each in rows])
    deviation = drive_deviation(terms, model, prior, rows)
    torque = typical(np.concatenate([each.effort for each in rows]))
    parameters = prior.inertial_parameters if start is None else start.inertial_parameters
    noise = noise or (first_noise(rows) if start is None else start.noise)
    weights = [each.used.astype(float) for each in rows]
    found: Estimate | None = None
    if start is not None and start.layout == layout:
        found = start.estimate
    for _ in range(rounds):
        drive = [
            each.drive(terms, each.rigid_torque(model, parameters) if terms.load else None)
            for each in rows
        ]
        common = [
            gravity_columns(model, parameters, each.states)
            if tilt
            else np.zeros((*each.effort.shape, 0))
            for each in rows
        ]
        factors = joint_factors(
            np.concatenate([each.inertial for each in rows]),
            np.concatenate(drive),
            np.concatenate([coupled, np.concatenate(common)], axis=-1),
            np.concatenate([each.effort for each in rows]),
            np.concatenate(weights),
        )
        problem = problem_of(factors, layout, terms, noise.scale, deviation, prior, coupling)
        found = estimate(problem, found)
        fit = Fit(terms, layout, found, noise, coupling)
        parameters = fit.inertial_parameters
        residuals = [
            each.effort - predicted(fit, each, columns, extra)
            for each, columns, extra in zip(rows, drive, common, strict=True)
        ]
        if robust:
            together = np.concatenate(residuals)
            chosen = np.concatenate([each.used for each in rows])
            ends = np.cumsum([len(each.effort) for each in rows])[:-1]
            weights = [
                each.used * weight
                for each, weight in zip(
                    rows, np.split(huber_weights(together, chosen), ends), strict=True
                )
            ]
        weighted = [r * np.where(w > 0, w, 0.0) for r, w in zip(residuals, weights, strict=True)]
        noise = Noise.of(weighted, [each.used for each in rows], torque)
    return replace(fit, noise=noise)


def predicted(
    fit: Fit, rows: Rows, drive: FloatArray, common: FloatArray | None = None
) -> FloatArray:
    """Return the fit's torques at the rows, shape (K, n), from the drive's and common columns."""
    result = rows.inertial @ fit.inertial_parameters.ravel()
    result = result + (drive * fit.drive).sum(axis=-1)
    if len(fit.coupling):
        result = result + rows.coupled(fit.terms, fit.coupling) @ fit.coupled.ravel()
    if common is not None and common.shape[-1]:
        result = result + common @ fit.common
    return result


# --- how much later efforts are stamped than the motion ------------------------------------------


def estimated_delay(
    model: RobotModel, rows: Sequence[Rows], prior: Prior, fit: Fit
) -> tuple[float, float]:
    """
    Return the delay of efforts behind the motion, common to all joints, and its deviation [s].

    To first order tau(t - delay) is tau - delay dtau/dt: the predicted torque's derivative is one
    more column, estimated together with all other parameters.
    """
    delay, deviation = _delays(model, rows, prior, fit, common=True)
    return float(delay[0]), float(deviation[0])


def joint_delays(
    model: RobotModel, rows: Sequence[Rows], prior: Prior, fit: Fit
) -> tuple[FloatArray, FloatArray]:
    """Return the delay of each joint's effort, and its deviation, (n,) each [s]."""
    return _delays(model, rows, prior, fit, common=False)


def _delays(
    model: RobotModel, rows: Sequence[Rows], prior: Prior, fit: Fit, *, common: bool
) -> tuple[FloatArray, FloatArray]:
    delays = 1 if common else model.n
    layout = Layout(model.n, fit.terms.count, fit.coupled.size + delays)
    drives, columns = [], []
    for each in rows:
        torque = each.rigid_torque(model, fit.inertial_parameters) if fit.terms.load else None
        drive = each.drive(fit.terms, torque)
        late = -np.gradient(predicted(fit, each, drive), each.time, axis=0)[..., None]
        drives.append(drive)
        late = late if common else late * np.eye(model.n)
        columns.append(np.concatenate([each.coupled(fit.terms, fit.coupling), late], axis=-1))
    factors = joint_factors(
        np.concatenate([each.inertial for each in rows]),
        np.concatenate(drives),
        np.concatenate(columns),
        np.concatenate([each.effort for each in rows]),
        np.concatenate([each.used for each in rows]).astype(float),
    )
    deviation = drive_deviation(fit.terms, model, prior, rows)
    problem = problem_of(
        factors, layout, fit.terms, fit.noise.scale, deviation, prior, fit.coupling
    )
    found = estimate(problem)
    own = found.deviation_factor[-delays:]
    return found.others[-delays:], np.linalg.norm(own, axis=1)
