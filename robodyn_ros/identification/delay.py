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


def estimated_delay(
    model: RobotModel, rows: Sequence[Rows], prior: Prior, fit: Fit
) -> tuple[float, float]:
    """
    Return the delay of efforts behind the motion, common to all joints, and its deviation [s].

    To first order tau(t - delay) is tau - delay dtau/dt: the predicted torque's derivative is one
    more column, estimated together with all other parameters.
    """
    layout = Layout(model.n, fit.terms.count, 1)
    drives, columns = [], []
    for each in rows:
        torque = each.rigid_torque(model, fit.inertial_parameters) if fit.terms.load else None
        drive = each.drive(fit.terms, torque)
        expected = predicted(fit, each, drive)
        drives.append(drive)
        columns.append(-np.gradient(expected, each.time, axis=0)[..., None])
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
    return float(found.others[-1]), float(np.linalg.norm(found.deviation_factor[-1]))
