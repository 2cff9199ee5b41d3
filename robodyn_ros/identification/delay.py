# SPDX-License-Identifier: Apache-2.0
"""How much later efforts are stamped than the motion that they belong to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.identification.estimator import estimate
from robodyn_ros.identification.factors import Layout, joint_factors
from robodyn_ros.identification.fit import Fit, Prior, drive_deviation, predicted, problem_of
from robodyn_ros.identification.rows import Rows
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray


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
    layout = Layout(model.n, fit.terms.count, 1 if common else model.n)
    drives, columns = [], []
    for each in rows:
        torque = each.rigid_torque(model, fit.inertial_parameters) if fit.terms.load else None
        drive = each.drive(fit.terms, torque)
        late = -np.gradient(predicted(fit, each, drive), each.time, axis=0)[..., None]
        drives.append(drive)
        columns.append(late if common else late * np.eye(model.n))
    factors = joint_factors(
        np.concatenate([each.inertial for each in rows]),
        np.concatenate(drives),
        np.concatenate(columns),
        np.concatenate([each.effort for each in rows]),
        np.concatenate([each.used for each in rows]).astype(float),
    )
    deviation = drive_deviation(fit.terms, model, prior, rows)
    problem = problem_of(factors, layout, fit.terms, fit.noise.scale, deviation, prior)
    found = estimate(problem)
    own = found.deviation_factor[-layout.common :]
    return found.others[-layout.common :], np.linalg.norm(own, axis=1)
