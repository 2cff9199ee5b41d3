# SPDX-License-Identifier: Apache-2.0
"""Whether the base stands as level as the model has it, and by how much it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robodyn_ros.identification.cross_validation import CrossValidation, Score
from robodyn_ros.identification.fit import Prior, fitted
from robodyn_ros.identification.rows import Rows, tilt_axes
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, rotation_about

# A tilt must pay in cross-validation, be large, and be certain.
_LEAST_GAIN = 0.10
_LEAST_ANGLE = np.radians(0.5)
_LEAST_CERTAINTY = 5.0


def is_worth_it(
    error_with: float, error_without: float, tilt: FloatArray, covariance: FloatArray
) -> bool:
    """
    Return whether a tilt (2,) [rad] is kept.

    It must lower the cross-validated error by a tenth, exceed half a degree, and five of its
    standard deviations.
    """
    angle = float(np.linalg.norm(tilt))
    if angle < _LEAST_ANGLE or error_with > (1.0 - _LEAST_GAIN) * error_without:
        return False
    along = tilt / angle
    return angle > _LEAST_CERTAINTY * float(np.sqrt(along @ covariance @ along))


def tilted(model: RobotModel, tilt: FloatArray) -> RobotModel:
    """Return the model with its base turned by ``tilt`` (2,) [rad] about ``tilt_axes``."""
    turn = tilt @ tilt_axes(model.gravity)
    angle = float(np.linalg.norm(turn))
    if angle == 0.0:
        return model
    return model.with_gravity(rotation_about(turn / angle, -angle) @ model.gravity)


def chosen_tilt(
    model: RobotModel,
    rows: Sequence[Rows],
    prior: Prior,
    validator: CrossValidation,
    best: Score,
    wanted: bool | str,
) -> tuple[FloatArray, FloatArray, RobotModel, Score]:
    """
    Return tilt and its deviation, (2,) each [rad], the model with it, and its score.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
    prior : Prior
    validator : CrossValidation
    best : Score
        Of the drive terms without a tilt.
    wanted : bool or 'auto'
        Whether one is estimated; ``'auto'``: where it is worth it.
    """
    none = np.zeros(2)
    if wanted is False or not model.gravity.any():
        return none, none, model, best
    score = validator.score(best.terms, tilt=True)
    if wanted == 'auto' and score.typical_deviation > 0.9 * best.typical_deviation:
        return none, none, model, best
    fit = fitted(model, rows, prior, best.terms, tilt=True)
    factor = fit.estimate.deviation_factor[-2:]
    covariance = factor @ factor.T
    if wanted == 'auto' and not is_worth_it(
        score.typical_deviation, best.typical_deviation, fit.common, covariance
    ):
        return none, none, model, best
    deviation = np.sqrt(np.diagonal(covariance))
    return fit.common, deviation, tilted(model, fit.common), score
