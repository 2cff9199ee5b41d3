# SPDX-License-Identifier: Apache-2.0
"""The factor from recorded efforts to torque: given, assumed from the URDF, or refined."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_per_joint
from robodyn_ros.description.records import Finding, warning
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.fit import Fit
from robodyn_ros.identification.rows import LEAST_ROWS, Rows
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

# A joint tells where so much of its effort is the rigid body's.
_TELLING = 0.3
# It is sure where the URDF's torque and friction explain all but so much of its effort, and two
# joints must say the same.
_SURE = 0.4
_LEAST_KNOWN = 2
# URDFs are wrong, but not by so much.
_LARGEST_FACTOR = 3.0


def assumed_effort_scale(
    model: RobotModel, rows: Sequence[Rows]
) -> tuple[FloatArray, tuple[Finding, ...]]:
    """
    Return the factor from recorded effort to torque (n,): 1, unless it cannot be one.

    Where a joint's effort follows the URDF's torque, but is more than three times larger or
    smaller, it is in another unit, amperes for example, and the factor that makes the URDF's
    masses true is taken; joints that cannot tell get the others' geometric mean. Absolute masses
    are then the URDF's by assumption.

    Parameters
    ----------
    model : RobotModel
        As described by the URDF.
    rows : sequence of Rows
        Prepared with a factor of one.
    """
    factors = np.ones(model.n)
    known = np.zeros(model.n, dtype=bool)
    columns = np.concatenate([each.drive(DriveTerms())[..., 1:] for each in rows])
    torque = np.concatenate([each.inertial @ model.inertial_parameters.ravel() for each in rows])
    effort = np.concatenate([each.effort for each in rows])
    used = np.concatenate([each.used for each in rows])
    for joint in range(model.n):
        mine = used[:, joint]
        if mine.sum() < LEAST_ROWS or not torque[mine, joint].any():
            continue
        matrix = np.column_stack([torque[mine, joint], columns[mine, joint]])
        solution = np.linalg.lstsq(matrix, effort[mine, joint], rcond=None)[0]
        slope, size = float(solution[0]), float(np.linalg.norm(effort[mine, joint]))
        explained = np.linalg.norm(slope * torque[mine, joint])
        residual = np.linalg.norm(effort[mine, joint] - matrix @ solution)
        known[joint] = slope > 0 and explained > _TELLING * size and residual < _SURE * size
        if known[joint]:
            factors[joint] = 1.0 / slope
    off = known & (np.maximum(factors, 1.0 / factors) > _LARGEST_FACTOR)
    # One joint off may be a wrong mass; if some efforts are torques, all of the arm's are.
    if off.sum() < _LEAST_KNOWN or not off[known].all():
        return np.ones(model.n), ()
    mean = float(np.exp(np.log(factors[off]).mean()))
    scale = np.where(off, factors, mean)
    names = ', '.join(repr(model.joint_names[joint]) for joint in np.flatnonzero(off))
    message = (
        f'the effort of {names} is no torque; the factors '
        f'{", ".join(f"{x:.4g}" for x in scale)} [N m per unit], which make the '
        "URDF's masses true, were assumed: give effort_scale"
    )
    return scale, (
        warning('effort_unit', 'effort', tuple(float(f'{x:.4g}') for x in scale), message),
    )


def given_effort_scale(model: RobotModel, given: ArrayLike) -> FloatArray:
    """
    Return torque for a unit of effort (n,), checked: one number for all joints, or one for each.

    Raises
    ------
    NonFiniteValue, InvalidArgument
        It is of another shape, or zero for a joint.
    """
    scale = checked_per_joint('effort_scale', given, model.n)
    for name, value in zip(model.joint_names, scale, strict=True):
        if value == 0.0:
            raise InvalidArgument(f'effort_scale of joint {name!r}', value, 'a number but zero')
    return scale


def refined_effort_scale(scale: FloatArray, rows: Sequence[Rows], fit: Fit) -> FloatArray:
    """
    Return the factors under which each joint's effort agrees best with a fit's bodies (n,).

    Bodies couple the joints: what joint 3 carries, joint 2 carries, too. So fits and factors, in
    turn, bring the joints' units together; the URDF's masses, by the prior, fix them all.

    Parameters
    ----------
    scale : array, shape (n,)
        That the rows were prepared with.
    rows : sequence of Rows
    fit : Fit
        Of the plainest drive terms.
    """
    columns = np.concatenate([each.drive(DriveTerms()) for each in rows])
    torque = np.concatenate([each.inertial @ fit.inertial_parameters.ravel() for each in rows])
    effort = np.concatenate([each.effort for each in rows])
    used = np.concatenate([each.used for each in rows])
    result = scale.copy()
    for joint in range(len(scale)):
        mine = used[:, joint]
        size = np.linalg.norm(effort[mine, joint])
        if mine.sum() < LEAST_ROWS or np.linalg.norm(torque[mine, joint]) < _TELLING * size:
            continue
        matrix = np.column_stack([torque[mine, joint], columns[mine, joint]])
        slope = float(np.linalg.lstsq(matrix, effort[mine, joint], rcond=None)[0][0])
        result[joint] /= float(np.clip(slope, 0.5, 2.0))
    return result
