# SPDX-License-Identifier: Apache-2.0
"""Is this effort a torque? Unit, sign, gravity or friction already removed, delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.identification.delay import joint_delays
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_findings import (
    EffortFindings,
    JointEffort,
    Part,
    Unit,
    findings_of_delay,
    findings_of_joint,
    undecided,
)
from robodyn_ros.identification.findings import check_rows
from robodyn_ros.identification.fit import Prior, fitted, predicted
from robodyn_ros.identification.joint_effort import (
    COULOMB,
    LARGEST_FACTOR,
    LEAST_ROWS,
    OFFSET,
    VISCOUS,
    JointRegression,
)
from robodyn_ros.identification.prior import prior_pseudo_inertia
from robodyn_ros.identification.recording import Recording, checked_recordings
from robodyn_ros.identification.rows import Rows
from robodyn_ros.identification.training_data import TrainingData
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.threads import one_thread

_STRENGTH = 4.0
# Bodies near the URDF's explain an effort if they leave at most so many times the residual.
_EXPLAINED = 1.5
_HARDLY_ANY = 0.03
_SEEN = 0.06
_ROUNDS = 3


@one_thread()
def examine_effort(
    model: RobotModel, recordings: Recording | Sequence[Recording]
) -> EffortFindings:
    """
    Return what the recorded efforts are: torques, amperes or counts, of which sign, without what.

    Of each joint the effort is compared with gravity's torque, the rest of the rigid body's, and
    friction, in one regression. It tells something where the rigid body makes up a third of the
    effort; other joints are undecided.

    Parameters
    ----------
    model : RobotModel
        As the URDF has it, with the load that it carried; or identified, which tells more.
    recordings : Recording or sequence of Recording

    Raises
    ------
    WrongShape
        No recording is given.
    NoSuchJoint, TooShortRecording
    """
    checked_model(model)
    training = TrainingData.of(model, checked_recordings('recordings', recordings))
    rows = training.rows(model, np.ones(model.n))
    check_rows(model, rows)
    regressions = joint_regressions(model, rows)
    joints = {j: _classified(model.joint_names[j], each) for j, each in regressions.items()}
    joints = _without_explained(model, rows, regressions, joints)
    delays = _delays(model, rows, joints)
    complete = []
    for j, name in enumerate(model.joint_names):
        if j not in joints:
            complete.append(undecided(name))
        else:
            delay, deviation = delays.get(j, (np.nan, np.nan))
            complete.append(replace(joints[j], delay=delay, delay_deviation=deviation))
    delay, deviation = _common(list(delays.values()))
    return EffortFindings(
        tuple(complete),
        delay,
        deviation,
        (
            *(finding for each in training.recordings for finding in each.findings),
            *(finding for each in complete for finding in findings_of_joint(each)),
            *findings_of_delay(delay, deviation),
        ),
    )


def joint_regressions(model: RobotModel, rows: Sequence[Rows]) -> dict[int, JointRegression]:
    """Return the regression of each joint that moves enough."""
    effort = np.concatenate([each.effort for each in rows])
    used = np.concatenate([each.used for each in rows])
    gravity = np.concatenate(
        [each.states.rows(gravity_torque(model, each.states.q)) for each in rows]
    )
    rigid = np.concatenate([each.inertial @ model.inertial_parameters.ravel() for each in rows])
    drive = np.concatenate([each.drive(DriveTerms())[..., 1:] for each in rows])
    parts = np.concatenate([gravity[..., None], (rigid - gravity)[..., None], drive], axis=-1)
    return {
        j: JointRegression.of(parts[used[:, j], j], effort[used[:, j], j])
        for j in range(model.n)
        if used[:, j].sum() >= LEAST_ROWS and parts[used[:, j], j, :2].any()
    }


def _classified(joint: str, found: JointRegression) -> JointEffort:
    misses = found.misses_gravity
    unit: Unit = 'undecided'
    factor = deviation = np.nan
    if misses:
        unit, factor, deviation = 'torque', 1.0, np.nan
    elif found.tells:
        factor = 1.0 / found.unit_per_torque
        deviation = abs(factor) * found.unit_deviation / abs(found.unit_per_torque)
        near = 1.0 / LARGEST_FACTOR < abs(factor) < LARGEST_FACTOR
        unit = 'torque' if near else 'scaled'
    gravity: Part = 'undecided'
    if not found.has_gravity:
        gravity = 'none'
    elif misses or found.tells:
        gravity = 'removed' if misses else 'included'
    share = found.share(VISCOUS, COULOMB)
    friction: Part = 'undecided'
    if share > _SEEN and (found.is_certain(COULOMB) or found.is_certain(VISCOUS)):
        friction = 'included'
    elif share < _HARDLY_ANY:
        friction = 'removed'
    return JointEffort(
        joint=joint,
        unit=unit,
        factor=factor,
        factor_deviation=deviation,
        gravity=gravity,
        friction=friction,
        offset=float(found.coefficients[OFFSET]),
        offset_deviation=float(found.deviation[OFFSET]),
        rigid_share=found.share(0, 1),
        friction_share=share,
        residual=found.residual,
    )


def _without_explained(
    model: RobotModel,
    rows: Sequence[Rows],
    regressions: Mapping[int, JointRegression],
    joints: Mapping[int, JointEffort],
) -> dict[int, JointEffort]:
    """
    Return the verdicts without those of missing gravity that other bodies explain, too.

    Where no more of the rigid body's torque is seen, gravity may be missing because the URDF's
    wrist is wrong. Then bodies near the URDF's that agree with the other joints explain it.
    """
    result = dict(joints)
    sure = [j for j, each in joints.items() if each.gravity == 'removed']
    sure = [j for j in sure if regressions[j].sees_the_rest]
    included = [each for each in joints.values() if each.gravity == 'included']
    if len(sure) > len(included):
        return result
    for j, each in joints.items():
        if each.gravity == 'removed' and j not in sure:
            tried = {**joints, j: replace(each, gravity='included')}
            residual = _residual(model, _corrected(rows, tried), j)
            if residual < _EXPLAINED * each.residual:
                result[j] = replace(each, unit='undecided', factor=np.nan, gravity='undecided')
    return result


def _corrected(rows: Sequence[Rows], joints: Mapping[int, JointEffort]) -> list[Rows]:
    """Return the rows in torques, of joints that tell and have gravity."""
    result = []
    for each in rows:
        effort, used = each.effort.copy(), each.used.copy()
        for j in range(effort.shape[1]):
            verdict = joints.get(j)
            if verdict is None or verdict.unit == 'undecided' or verdict.gravity == 'removed':
                used[:, j] = False
            elif verdict.unit == 'scaled' or verdict.is_inverted:
                effort[:, j] *= verdict.factor
        result.append(replace(each, effort=effort, used=used))
    return result


def _residual(model: RobotModel, rows: Sequence[Rows], joint: int) -> float:
    """Return what bodies near the URDF's leave of a joint's effort, relative."""
    fit = fitted(model, rows, _prior(model), DriveTerms(), rounds=_ROUNDS)
    size = left = 0.0
    for each in rows:
        error = each.effort - predicted(fit, each, each.drive(DriveTerms()))
        mine = each.used[:, joint]
        left += float((error[mine, joint] ** 2).sum())
        size += float((each.effort[mine, joint] ** 2).sum())
    return float(np.sqrt(left / size))


def _prior(model: RobotModel) -> Prior:
    return Prior(prior_pseudo_inertia(model)[0], _STRENGTH)


def _delays(
    model: RobotModel, rows: Sequence[Rows], joints: Mapping[int, JointEffort]
) -> dict[int, tuple[float, float]]:
    """Return delay and deviation [s] of the joints that tell."""
    corrected = _corrected(rows, joints)
    telling = [j for j in range(model.n) if any(each.used[:, j].any() for each in corrected)]
    if not telling:
        return {}
    prior = _prior(model)
    fit = fitted(model, corrected, prior, DriveTerms(), rounds=_ROUNDS)
    delay, deviation = joint_delays(model, corrected, prior, fit)
    return {j: (float(delay[j]), float(deviation[j])) for j in telling}


def _common(delays: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the delay that joints have in common: their median, and how far they scatter."""
    if not delays:
        return float('nan'), float('nan')
    each, own = np.array(delays).T
    middle = float(np.median(each))
    scatter = 1.2533 * np.sqrt(np.mean((each - middle) ** 2) / len(each))
    return middle, float(max(scatter, np.median(own) / np.sqrt(len(each))))
