# SPDX-License-Identifier: Apache-2.0
"""
Is this effort a torque? Unit, sign, order, gravity or friction already removed, delay.

Each joint's effort is a combination of gravity's torque, the rest of the rigid body's, and
friction; the size of each part shows what the effort is. One driver reports all joints in one
unit: what most of the joints show decides for those that show nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_per_joint
from robodyn_ros.description.records import Finding, note, stated, warning
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.factors import triangular_factor
from robodyn_ros.identification.findings import (
    FAR,
    LATE,
    LATE_SIGMAS,
    POOR,
    check_rows,
    of_delay,
)
from robodyn_ros.identification.fit import Fit, fitted, joint_delays, predicted
from robodyn_ros.identification.prior import BODIES_DEVIATION, Prior, prior_pseudo_inertia
from robodyn_ros.identification.recording import (
    Recording,
    checked_recordings,
    clipped,
    findings_of,
    samples_of,
)
from robodyn_ros.identification.regression import ONE_AND_THE_SAME, least_squares
from robodyn_ros.identification.rows import LEAST_ROWS, Rows, TrainingData
from robodyn_ros.model import RobotModel, checked_model, force_unit
from robodyn_ros.record import Record, quantity
from robodyn_ros.spatial import FloatArray, pseudo_inertia
from robodyn_ros.threads import one_thread

_Unit = Literal['torque', 'scaled', 'undecided']
_Part = Literal['included', 'removed', 'none', 'undecided']

# Bodies near the URDF's explain an effort if they leave at most so many times the residual.
_EXPLAINED = 1.5
# Friction is removed below this part of the effort, and seen above that.
_NO_FRICTION, _SEEN_FRICTION = 0.03, 0.06
_ROUNDS = 3
# Columns of a joint's regression.
GRAVITY, INERTIAL, VISCOUS, COULOMB, OFFSET, ROTOR = range(6)
# A part of the rigid body's torque tells where it makes up so much of the effort, is so many
# deviations from zero, and leaves so little of the effort unexplained.
_MIN_TORQUE_SHARE, _MIN_SIGMAS, _MAX_RESIDUAL = 0.35, 2.5, 0.45
# The rest of the rigid body's torque need not be so large to be seen.
_SEEN_REST = 0.015
# Gravity weaker than this beside the rest of the torque cannot be told from it.
_LEAST_GRAVITY = 0.2
# URDFs are wrong, rotors are heavy, but not by more than this.
_LARGEST_FACTOR = 3.0
# Gravity is missing where it is so much weaker than the rest of the rigid body's torque.
_MISSING = 0.45
# So much of the URDF's gravity may be left where another one was removed.
_LARGEST_REMAINDER = 0.5
# Largest residual under another joint's torque, relative to that under its own, for which the
# effort is the other joint's.
_OF_ANOTHER = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class JointEffort(Record):
    """
    What the effort of one joint is.

    Attributes
    ----------
    joint : str
    unit : 'torque', 'scaled' or 'undecided'
        'torque' where the factor lies between a third and three: URDFs are no better.
    factor, factor_deviation : float
        Torque for a unit of effort [N m or N], as far as the model's masses are right; negative
        where the sign is wrong; NaN where undecided, -1 where only the sign is known. The
        deviation is that of the regression, not of the model's masses.
    gravity : 'included', 'removed', 'none' or 'undecided'
        'none': gravity does not act on the joint.
    friction : 'included', 'removed' or 'undecided'
        'removed': compensated by the drive, or the sensor stands behind the gear.
    offset, offset_deviation : float
        In the recorded unit; NaN where gravity is constant, and cannot be told from it.
    rigid_share : float
        Rms of the rigid body's torque over that of the effort, as far as it was seen.
    friction_share : float
    residual : float
        Rms of what is unexplained, relative.
    delay, delay_deviation : float
        Of this joint's effort behind the motion [s]; NaN where undecided.
    carried : float
        Constant part of gravity that something else than the drive carries, a counterweight or a
        spring [N m or N]: of a joint on which gravity is constant, and not in the effort.
    of_joint : str
        The joint whose torque this effort follows, where it is another one.
    unexplained : float
        Relative to the effort's rms: what no bodies, and no friction of this joint, explain, where
        it is much; else 0.
    """

    joint: str
    unit: _Unit
    factor: float
    factor_deviation: float
    gravity: _Part
    friction: _Part
    offset: float
    offset_deviation: float
    rigid_share: float
    friction_share: float
    residual: float
    delay: float = float('nan')
    delay_deviation: float = float('nan')
    carried: float = 0.0
    of_joint: str = ''
    unexplained: float = 0.0

    _columns = ('joint', 'unit', 'factor', 'is_inverted', 'gravity', 'friction', 'offset')
    _headings = {
        'unit': 'it is',
        'factor': 'torque per unit',
        'is_inverted': 'wrong sign',
        'rigid_share': "rigid body's part",
        'residual': 'unexplained',
    }

    @property
    def is_inverted(self) -> bool:
        """Whether its sign is wrong."""
        return self.factor < 0


@dataclass(frozen=True, eq=False, repr=False)
class EffortFindings(Record):
    """
    What the efforts of an arm are.

    Attributes
    ----------
    joints : tuple of n JointEffort
    delay, delay_deviation : float
        By which all efforts are stamped after the motion [s]: advisory, nothing compensates it.
    findings : tuple of Finding
        The same as text, and what the data cannot decide.
    """

    joints: tuple[JointEffort, ...]
    delay: float
    delay_deviation: float
    findings: tuple[Finding, ...]

    _keys = {
        'delay': 'delay_s',
        'delay_deviation': 'delay_deviation_s',
        'effort_scale': 'effort_scale',
    }

    def __repr__(self) -> str:
        units = ', '.join(f'{each.joint}: {each.unit}' for each in self.joints)
        return f'EffortFindings({units}; delay: {self.delay_text})'

    @property
    def delay_text(self) -> str:
        """The delay with its deviation, where it differs from zero by more than that."""
        if math.isnan(self.delay):
            return 'unknown'
        return stated(1e3 * self.delay, 'ms', 1e3 * self.delay_deviation)

    @property
    def effort_scale(self) -> FloatArray:
        """
        Torque for a unit of effort, array, shape (n,), for ``identify(effort_scale=...)``.

        One where the effort is a torque, with the sign that it has. Where all joints that tell are
        scaled, those that are undecided get the geometric mean; where all are inverted, the sign.
        ``identify`` takes these factors where it is given none.
        """
        decided = [each for each in self.joints if each.unit != 'undecided']
        scales = [
            np.copysign(abs(each.factor) if each.unit == 'scaled' else 1.0, each.factor)
            for each in decided
        ]
        other = 1.0
        if decided and all(each.unit == 'scaled' for each in decided):
            other = float(np.exp(np.mean(np.log(np.abs(scales)))))
        if decided and all(each.is_inverted for each in decided):
            other = -other
        known = iter(scales)
        return np.array(
            [
                next(known)
                if each.unit != 'undecided'
                else -abs(other)
                if each.is_inverted
                else other
                for each in self.joints
            ]
        )


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
    InvalidArgument
        No recording is given.
    NoSuchName, InsufficientRecording
    """
    checked_model(model)
    training = TrainingData.of(model, checked_recordings('recordings', recordings))
    rows = training.rows(model, np.ones(model.n))
    found = examined(model, rows)
    verdicts = {j: each for j, each in enumerate(found.joints) if not math.isnan(each.residual)}
    delays = _delays(model, rows, verdicts)
    joints = tuple(
        replace(each, delay=delays[j][0], delay_deviation=delays[j][1]) if j in delays else each
        for j, each in enumerate(found.joints)
    )
    delay, deviation = _common(list(delays.values()))
    return EffortFindings(
        joints,
        delay,
        deviation,
        (
            *findings_of(training.recordings),
            *found.findings,
            *(finding for each in joints for finding in _of_joint_delay(each)),
            *of_delay(delay, deviation),
        ),
    )


def examined(model: RobotModel, rows: Sequence[Rows]) -> EffortFindings:
    """
    Return what efforts are, but for their delays, as ``identify`` uses it, too.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
        With efforts in the unit that is examined: as recorded, or times a given factor.

    Raises
    ------
    InsufficientRecording
    """
    check_rows(model, rows)
    regressions = joint_regressions(model, rows)
    joints = {j: _classified(model.joint_names[j], each) for j, each in regressions.items()}
    joints = _without_explained(model, rows, regressions, joints)
    joints = _without_urdf(model, rows, _of_one_driver(model, rows, joints))
    complete = tuple(joints.get(j, _undecided(name)) for j, name in enumerate(model.joint_names))
    nan = float('nan')
    return EffortFindings(
        complete,
        nan,
        nan,
        tuple(
            finding
            for each, slides in zip(complete, model.dh.prismatic, strict=True)
            for finding in _findings_of_joint(each, force_unit(slides))
        ),
    )


def effort_doubts(model: RobotModel, rows: Sequence[Rows]) -> tuple[Finding, ...]:
    """
    Return what is wrong with efforts of an arm that is known, its unit and its offsets, too.

    Nothing where no joint moves: a pose does not show what an effort is.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
        In torques.
    """
    if not any((each.used.sum(axis=0) >= LEAST_ROWS).any() for each in rows):
        return ()
    own = [replace(each, effort=each.effort - model.effort_offset) for each in rows]
    return tuple(each for each in examined(model, own).findings if each.level == 'warning')


def joint_regressions(model: RobotModel, rows: Sequence[Rows]) -> dict[int, JointRegression]:
    """Return the regression of each joint that moves enough."""
    gravity = np.concatenate(
        [each.states.rows(gravity_torque(model, each.states.q)) for each in rows]
    )
    rigid = np.concatenate([each.inertial @ model.inertial_parameters.ravel() for each in rows])
    drive = np.concatenate([each.drive(DriveTerms()) for each in rows])
    effort = np.concatenate([each.effort for each in rows])
    used = np.concatenate([each.used for each in rows])
    # A rotor that the model has is part of the rigid body's torque.
    rotor = drive[..., :1] * (model.rotor_inertia == 0.0)[:, None]
    rest = rigid - gravity + drive[..., 0] * model.rotor_inertia
    parts = np.concatenate([gravity[..., None], rest[..., None], drive[..., 1:], rotor], axis=-1)
    return {
        j: JointRegression.of(parts[used[:, j], j], effort[used[:, j], j])
        for j in range(model.n)
        if used[:, j].sum() >= LEAST_ROWS and parts[used[:, j], j, :2].any()
    }


def _classified(joint: str, found: JointRegression) -> JointEffort:
    misses = found.misses_gravity
    unit: _Unit = 'undecided'
    factor = deviation = np.nan
    if misses:
        # What is left of the rigid body's torque is too little to scale by.
        unit, factor, deviation = 'torque', 1.0, np.nan
    elif found.tells:
        factor = 1.0 / found.unit_per_torque
        deviation = abs(factor) * found.unit_deviation / abs(found.unit_per_torque)
        near = 1.0 / _LARGEST_FACTOR < abs(factor) < _LARGEST_FACTOR
        unit = 'torque' if near else 'scaled'
    gravity: _Part = 'undecided'
    if not found.has_gravity:
        gravity = 'none'
    elif misses or found.tells:
        gravity = 'removed' if misses else 'included'
    share = found.share(VISCOUS, COULOMB)
    friction: _Part = 'undecided'
    if share > _SEEN_FRICTION and (found.is_certain(COULOMB) or found.is_certain(VISCOUS)):
        friction = 'included'
    elif share < _NO_FRICTION:
        friction = 'removed'
    return JointEffort(
        joint=joint,
        unit=unit,
        factor=factor,
        factor_deviation=deviation,
        gravity=gravity,
        friction=friction,
        offset=np.nan if found.constant_gravity else float(found.coefficients[OFFSET]),
        offset_deviation=np.nan if found.constant_gravity else float(found.deviation[OFFSET]),
        rigid_share=found.share(0, 1),
        friction_share=share,
        residual=found.residual,
        carried=(1.0 - float(found.coefficients[GRAVITY])) * found.constant_gravity
        if misses
        else 0.0,
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


def _of_one_driver(
    model: RobotModel,
    rows: Sequence[Rows],
    joints: Mapping[int, JointEffort],
) -> dict[int, JointEffort]:
    """
    Return the verdicts under the unit that most of the joints that tell have.

    A load that the model lacks makes a wrist of amperes look like torque, and a wrong mass makes
    one torque look like amperes.
    """
    result, nan = dict(joints), float('nan')
    telling = {j: each for j, each in joints.items() if each.unit != 'undecided'}
    scaled = [j for j, each in telling.items() if each.unit == 'scaled']
    larger = [j for j in scaled if abs(telling[j].factor) > 1.0]
    most = max(larger, [j for j in scaled if j not in larger], key=len)
    if 2 * len(most) > len(telling):
        for j, each in telling.items():
            if j not in most:
                result[j] = replace(
                    each,
                    unit='undecided',
                    factor=-1.0 if each.is_inverted else nan,
                    factor_deviation=nan,
                    carried=0.0,
                    gravity='undecided' if each.gravity == 'removed' else each.gravity,
                )
        return result
    for j in scaled:
        if telling[j].is_inverted or len(telling) == 1:
            continue
        tried = {**joints, j: replace(telling[j], unit='torque', factor=1.0)}
        if _residual(model, _corrected(rows, tried), j) < _EXPLAINED * telling[j].residual:
            result[j] = replace(telling[j], unit='undecided', factor=nan)
    return result


def _without_urdf(
    model: RobotModel, rows: Sequence[Rows], joints: Mapping[int, JointEffort]
) -> dict[int, JointEffort]:
    """
    Return the verdicts with what shows whatever the URDF's bodies are: order and friction's sign.

    Each effort is explained by each joint's velocity, and by any bodies behind that joint. If
    another joint explains it far better than its own, it is that joint's.
    """
    n = model.n
    inertial = np.concatenate([each.inertial for each in rows])
    drive = np.concatenate([each.drive(DriveTerms()) for each in rows])
    effort = np.concatenate([each.effort for each in rows])
    used = np.concatenate([each.used for each in rows])
    left = np.full((n, n), np.inf)  # of the effort of the second, if it were the first's
    result = dict(joints)
    for j, verdict in joints.items():
        mine = used[:, j]
        columns = np.hstack([inertial[mine, j, 10 * j :], drive[mine, j]])
        coefficients, deviation, _ = least_squares(columns, effort[mine, j])
        friction = columns[:, -3:-1] @ coefficients[-3:-1]
        brakes = friction @ columns[:, -3] >= 0.0
        size = np.linalg.norm(effort[mine], axis=0)
        is_seen = np.linalg.norm(friction) > _SEEN_FRICTION * size[j]
        is_certain = (np.abs(coefficients) > _MIN_SIGMAS * deviation)[-3:-1]
        if verdict.unit == 'undecided' and not brakes and is_seen and is_certain.any():
            result[j] = replace(verdict, factor=-1.0)
        triangle = triangular_factor(np.column_stack([columns, effort[mine]]))
        spare = mine.sum() - columns.shape[1]
        if spare >= LEAST_ROWS:
            rest = np.linalg.norm(triangle[columns.shape[1] :, columns.shape[1] :], axis=0)
            left[j] = rest / np.maximum(size, 1e-300) * np.sqrt(mine.sum() / spare)
    best = left.argmin(axis=0)
    limit = np.minimum(_MAX_RESIDUAL, _OF_ANOTHER * np.diagonal(left))
    displaced = {j for j in joints if left[best[j], j] < limit[j]}
    for j, verdict in joints.items():
        if j in displaced and best[j] in displaced:
            result[j] = replace(verdict, of_joint=model.joint_names[best[j]])
        elif POOR < left[j, j] < math.inf:
            result[j] = replace(result[j], unexplained=float(left[j, j]))
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
    """Return what bodies near the URDF's leave of a joint's effort, relative; else infinity."""
    prior = _prior(model)
    fit = fitted(model, rows, prior, DriveTerms(), rounds=_ROUNDS)
    ratio = np.linalg.solve(prior.pseudo_inertia, pseudo_inertia(fit.inertial_parameters))
    divergence = np.trace(ratio, axis1=1, axis2=2) - np.linalg.slogdet(ratio)[1] - 4.0
    if divergence.max() > 4.0 * (FAR - np.log(FAR) - 1.0):
        return math.inf  # further off than all of a body's parameters times that
    size = left = 0.0
    for each in rows:
        error = each.effort - predicted(fit, each, each.drive(DriveTerms()))
        mine = each.used[:, joint]
        left += float((error[mine, joint] ** 2).sum())
        size += float((each.effort[mine, joint] ** 2).sum())
    return float(np.sqrt(left / size))


def _prior(model: RobotModel) -> Prior:
    return Prior(prior_pseudo_inertia(model)[0], 1.0 / (4.0 * BODIES_DEVIATION**2))


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


# --- torque for a unit of effort, where the examination is not all -----------------------------


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


def with_driver_gravity(
    recording: Recording, model: RobotModel, effort_scale: ArrayLike = 1.0
) -> Recording:
    """
    Return a recording with the gravity that a driver took from its efforts added to them.

    Before anything else is done with it: its efforts then are all that the drives made.

    Parameters
    ----------
    recording : Recording
    model : RobotModel
        That the driver takes gravity from: the URDF's, ``with_payload`` of what the driver was
        told that the arm carries, whether or not it did.
    effort_scale : array-like, shape (n,), or float
        Torque [N m or N] for a unit of the recorded effort.

    Raises
    ------
    NoSuchName
        A joint of the model is not recorded.
    WrongType, NonFiniteValue, InvalidArgument
    """
    scale = given_effort_scale(checked_model(model), effort_scale)
    (mine,) = checked_recordings('recording', recording)
    mine = mine.of_joints(model.joint_names)
    # What is clipped shows no more once gravity is added.
    mine = samples_of(mine, np.asarray(~clipped(mine).any(axis=1)))
    return replace(mine, effort=mine.effort + gravity_torque(model, mine.position) / scale)


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
        if (
            mine.sum() < LEAST_ROWS
            or np.linalg.norm(torque[mine, joint]) < _MIN_TORQUE_SHARE * size
        ):
            continue
        matrix = np.column_stack([torque[mine, joint], columns[mine, joint]])
        slope = float(least_squares(matrix, effort[mine, joint])[0][0])
        result[joint] /= float(np.clip(slope, 0.5, 2.0))
    return result


# --- what one joint's effort is made of ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointRegression:
    """
    A joint's effort as a combination of what may be in it.

    Attributes
    ----------
    parts : array, shape (K, 6)
        Gravity and the rest of the rigid body's torque, velocity, its direction, one, and the
        acceleration where the rotor is unknown and gravity does not act.
    effort : array, shape (K,)
        In the recorded unit.
    coefficients, deviation : array, shape (6,)
    rigid, rigid_deviation : float
        Of gravity and the rest under one coefficient.
    residual : float
        Relative to the effort's rms.
    has_gravity : bool
        Whether the model has gravity act on the joint.
    constant_gravity : float
        Gravity where it is constant, as on a lift [N m or N]; else 0.
    """

    parts: FloatArray
    effort: FloatArray
    coefficients: FloatArray
    deviation: FloatArray
    rigid: float
    rigid_deviation: float
    residual: float
    has_gravity: bool
    constant_gravity: float

    @classmethod
    def of(cls, parts: FloatArray, effort: FloatArray) -> JointRegression:
        """Return the regression by least squares; what is zero throughout has no coefficient."""
        parts = parts.copy()
        gravity, rest = np.linalg.norm(parts[:, [GRAVITY, INERTIAL]], axis=0)
        has_gravity = bool(gravity > _LEAST_GRAVITY * rest)
        constant = float(parts[:, GRAVITY].mean()) if has_gravity else 0.0
        if has_gravity:
            parts[:, ROTOR] = 0.0  # gravity shows the unit, whatever the rotor is
        if np.linalg.norm(parts[:, GRAVITY] - constant) < ONE_AND_THE_SAME * gravity:
            parts[:, OFFSET] = 0.0  # the same as gravity: the drive is thought to have none
        else:
            constant = 0.0
        coefficients, deviation, residual = least_squares(parts, effort)
        together = np.column_stack([parts[:, GRAVITY] + parts[:, INERTIAL], parts[:, VISCOUS:]])
        rigid, rigid_deviation, _ = least_squares(together, effort)
        return cls(
            parts,
            effort,
            coefficients,
            deviation,
            float(rigid[0]),
            float(rigid_deviation[0]),
            residual,
            has_gravity,
            constant,
        )

    def share(self, *columns: int) -> float:
        """Return the rms of some parts together over the effort's."""
        together = self.parts[:, list(columns)] @ self.coefficients[list(columns)]
        return float(np.linalg.norm(together) / np.linalg.norm(self.effort))

    def is_certain(self, column: int) -> bool:
        """Whether a part is many deviations from zero."""
        return bool(abs(self.coefficients[column]) > _MIN_SIGMAS * self.deviation[column])

    @property
    def tells(self) -> bool:
        """Whether the rigid body's torque explains enough of the effort to scale it."""
        if self.residual > _MAX_RESIDUAL:
            return False
        if self.has_gravity:
            return self.share(GRAVITY) > _MIN_TORQUE_SHARE and self.is_certain(GRAVITY)
        share = abs(self.rigid) * np.linalg.norm(self.parts[:, [GRAVITY, INERTIAL]].sum(axis=1))
        return bool(
            share > _MIN_TORQUE_SHARE * np.linalg.norm(self.effort)
            and abs(self.rigid) > _MIN_SIGMAS * self.rigid_deviation
        )

    @property
    def sees_the_rest(self) -> bool:
        """Whether the rigid body's torque beside gravity is seen."""
        return self.is_certain(INERTIAL) and self.share(INERTIAL) > _SEEN_REST

    @property
    def misses_gravity(self) -> bool:
        """
        Whether gravity is missing from an effort that is a torque.

        What the URDF's gravity differs from the one that was removed remains, of either sign.
        """
        gravity, rest = self.coefficients[[GRAVITY, INERTIAL]]
        if (
            not self.has_gravity
            or abs(gravity) > _LARGEST_REMAINDER
            or self.residual > _MAX_RESIDUAL
        ):
            return False
        if self.sees_the_rest and rest < 0:
            return False  # the sign is wrong: then gravity says nothing of its own
        if self.sees_the_rest:
            # The rest of the torque shows the unit, and gravity is certainly less than that.
            most = gravity + _MIN_SIGMAS * self.deviation[GRAVITY]
            return bool(rest > 1.0 / _LARGEST_FACTOR and most < _MISSING * rest)
        if abs(gravity) > 1.0 / _LARGEST_FACTOR:
            return False  # the URDF's masses may be off by so much
        seen, friction = self.share(GRAVITY), self.share(VISCOUS, COULOMB)
        if seen > _MIN_TORQUE_SHARE and (gravity > 0 or seen > friction):
            return False  # it is most of the effort, in another unit
        # Nothing shows the unit: gravity is missing if it would be a large part of a torque.
        expected = np.linalg.norm(self.parts[:, GRAVITY]) / np.linalg.norm(self.effort)
        return bool(expected > _MIN_TORQUE_SHARE)

    @property
    def unit_per_torque(self) -> float:
        """Recorded units for a torque [1 / (N m) or 1 / N]."""
        return float(self.coefficients[GRAVITY]) if self.has_gravity else self.rigid

    @property
    def unit_deviation(self) -> float:
        """The standard deviation of ``unit_per_torque``."""
        return float(self.deviation[GRAVITY]) if self.has_gravity else self.rigid_deviation


# --- in words ------------------------------------------------------------------------------------


def _undecided(joint: str) -> JointEffort:
    """Return that nothing is known of a joint's effort."""
    nan = float('nan')
    return JointEffort(
        joint, 'undecided', nan, nan, 'undecided', 'undecided', nan, nan, nan, nan, nan
    )


def _element(joint: str) -> str:
    return f'effort of joint {joint!r}'


def _findings_of_joint(joint: JointEffort, unit: str) -> Iterator[Finding]:
    """Yield as text what a joint's effort is."""
    element = _element(joint.joint)
    factor, rigid_share = float(f'{joint.factor:.4g}'), float(f'{joint.rigid_share:.4g}')
    if joint.unit == 'undecided':
        message = f'{element} has an undecided unit'
        if not math.isnan(joint.rigid_share):
            message += (
                f": the rigid body's torque is {joint.rigid_share:.0%} of it, friction "
                f'{joint.friction_share:.0%}, unexplained {joint.residual:.0%}'
            )
        yield note('effort_undecided', element, rigid_share, message)
    if joint.unit == 'scaled':
        message = (
            f'{element} is not in {unit}: 1 unit = '
            f"{quantity(joint.factor, unit, joint.factor_deviation)}, if the model's masses are "
            'right'
        )
        yield warning('effort_scaled', element, factor, message)
    if joint.is_inverted:
        message = f'{element} has the wrong sign: '
        if joint.unit == 'undecided':
            message += 'friction would drive the joint'
        else:
            message += f'the torque is {joint.factor:.4g} times it'
        yield warning('effort_inverted', element, factor, message)
    if joint.of_joint:
        message = (
            f'{element} follows the torque of {joint.of_joint!r}: the order of the efforts is not '
            'that of the names'
        )
        yield warning('effort_order', element, rigid_share, message)
    elif joint.unexplained:
        message = (
            f'{element}: {joint.unexplained:.0%} of it is not explained by any bodies and '
            'friction of this joint: joints in another order, another arm, or a contact?'
        )
        yield warning('effort_unexplained', element, float(f'{joint.unexplained:.3g}'), message)
    if joint.carried:
        message = (
            f'{element} lacks {joint.carried:.4g} {unit} of gravity, which is constant: a '
            'counterweight or a spring carries it, or it is an offset of the drive'
        )
        yield warning('gravity_carried', element, float(f'{joint.carried:.4g}'), message)
    elif joint.gravity == 'removed':
        message = (
            f"{element} has no gravity in it: the rigid body's torque is {joint.rigid_share:.0%} "
            'of it. If the driver subtracts its own gravity, identify with '
            '--effort-without-gravity and --driver-payload, the payload set in the driver '
            '(with_driver_gravity)'
        )
        yield warning('gravity_removed', element, rigid_share, message)
    elif joint.gravity == 'included' and math.isnan(joint.offset):
        message = (
            f'{element} may have an offset: gravity is constant here, and not distinguishable'
        )
        yield note('offset_undecided', element, rigid_share, message)
    if joint.friction == 'removed':
        message = (
            f'{element} has hardly any friction in it, {joint.friction_share:.1%}: compensated, '
            'or measured behind the gear'
        )
        friction_share = float(f'{joint.friction_share:.4g}')
        yield note('friction_removed', element, friction_share, message)


def _of_joint_delay(joint: JointEffort) -> Iterator[Finding]:
    """Yield that a joint's effort is late, unlike the others'."""
    element = _element(joint.joint)
    if abs(joint.delay) > max(5 * LATE, 2 * LATE_SIGMAS * joint.delay_deviation):
        message = f'{element} is stamped {joint.delay:.3g} s after the motion, unlike the others'
        yield note('joint_delay', element, float(f'{joint.delay:.4g}'), message)


def of_efforts(
    efforts: EffortFindings, scale: FloatArray, *, is_assumed: bool, crossing: Sequence[str] = ()
) -> Iterator[Finding]:
    """
    Yield what the efforts are; where the user says the unit, only what contradicts that.

    Efforts of joints whose drives turn with other joints, too, are not explained by their own
    friction, and that is no question.
    """
    crossed = {_element(joint) for joint in crossing}
    for each in efforts.findings:
        if each.code == 'effort_unexplained' and each.element in crossed:
            continue
        if is_assumed or each.code != 'effort_scaled':
            yield each
        else:
            message = (
                f'{each.element} does not fit the effort_scale that was given: {each.message}'
            )
            yield replace(each, message=message)
    if is_assumed:
        factors = ', '.join(f'{x:.4g}' for x in scale)
        message = (
            f"the factors {factors} [N m or N per unit], which make the URDF's masses true, were "
            'assumed: all masses are as far off as those; robodyn gains measures them'
        )
        value = tuple(float(f'{x:.4g}') for x in scale)
        yield warning('effort_unit', 'effort', value, message)
