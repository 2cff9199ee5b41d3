# SPDX-License-Identifier: Apache-2.0
"""
Is this effort a torque? Unit, sign, gravity or friction already removed, delay.

Each joint's effort is a combination of gravity's torque, the rest of the rigid body's, and
friction; the size of each part shows what the effort is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from robodyn_ros.description.records import Finding, note, stated, warning
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.findings import check_rows, of_delay
from robodyn_ros.identification.fit import fitted, joint_delays, predicted
from robodyn_ros.identification.noise import autocorrelation_time
from robodyn_ros.identification.prior import Prior, prior_pseudo_inertia
from robodyn_ros.identification.recording import Recording, checked_recordings
from robodyn_ros.identification.rows import LEAST_ROWS, Rows, TrainingData
from robodyn_ros.model import RobotModel, checked_model, force_unit
from robodyn_ros.record import Record, quantity
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

_Unit = Literal['torque', 'scaled', 'undecided']
_Part = Literal['included', 'removed', 'none', 'undecided']

# A delay is worth a word where it is longer than this [s], and so many deviations.
_LATE, _CERTAINLY_LATE = 0.002, 5.0
# Of the prior (gamma): bodies stay near the URDF's.
_PRIOR_STRENGTH = 4.0
# Bodies near the URDF's explain an effort if they leave at most so many times the residual.
_EXPLAINED = 1.5
# Friction is removed below this part of the effort, and seen above that.
_NO_FRICTION, _SEEN_FRICTION = 0.03, 0.06
_ROUNDS = 3
# Columns of a joint's regression.
GRAVITY, INERTIAL, VISCOUS, COULOMB, OFFSET = range(5)
# A part of the rigid body's torque tells where it makes up so much of the effort, is so many
# deviations from zero, and leaves so little of the effort unexplained.
_TELLING, _CERTAIN, _SURE = 0.35, 2.5, 0.45
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
        where the sign is wrong; NaN where undecided. The deviation is that of the regression.
    gravity : 'included', 'removed', 'none' or 'undecided'
        'none': gravity does not act on the joint.
    friction : 'included', 'removed' or 'undecided'
        'removed': compensated by the drive, or the sensor stands behind the gear.
    offset, offset_deviation : float
        In the recorded unit.
    rigid_share : float
        Rms of the rigid body's torque over that of the effort, as far as it was seen.
    friction_share : float
    residual : float
        Rms of what is unexplained, relative.
    delay, delay_deviation : float
        Of this joint's effort behind the motion [s]; NaN where undecided.
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

    _columns = ('joint', 'unit', 'factor', 'is_inverted', 'gravity', 'friction', 'offset')
    _headings = {
        'unit': 'it is',
        'factor': 'torque for a unit',
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
            [other if each.unit == 'undecided' else next(known) for each in self.joints]
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
    check_rows(model, rows)
    regressions = joint_regressions(model, rows)
    joints = {j: _classified(model.joint_names[j], each) for j, each in regressions.items()}
    joints = _without_explained(model, rows, regressions, joints)
    delays = _delays(model, rows, joints)
    complete = []
    for j, name in enumerate(model.joint_names):
        if j not in joints:
            complete.append(_undecided(name))
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
            *(
                finding
                for each, slides in zip(complete, model.dh.prismatic, strict=True)
                for finding in _findings_of_joint(each, force_unit(slides))
            ),
            *of_delay(delay, deviation),
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
    return Prior(prior_pseudo_inertia(model)[0], _PRIOR_STRENGTH)


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


# --- what one joint's effort is made of ----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class JointRegression:
    """
    A joint's effort as a combination of what may be in it.

    Attributes
    ----------
    parts : array, shape (K, 5)
        Gravity and the rest of the rigid body's torque, velocity, its direction, and one.
    effort : array, shape (K,)
        In the recorded unit.
    coefficients, deviation : array, shape (5,)
    rigid, rigid_deviation : float
        Of gravity and the rest under one coefficient.
    residual : float
        Relative to the effort's rms.
    """

    parts: FloatArray
    effort: FloatArray
    coefficients: FloatArray
    deviation: FloatArray
    rigid: float
    rigid_deviation: float
    residual: float

    @classmethod
    def of(cls, parts: FloatArray, effort: FloatArray) -> JointRegression:
        """Return the regression by least squares; what is zero throughout has no coefficient."""
        coefficients, deviation, residual = _least_squares(parts, effort)
        together = np.column_stack([parts[:, GRAVITY] + parts[:, INERTIAL], parts[:, VISCOUS:]])
        rigid, rigid_deviation, _ = _least_squares(together, effort)
        return cls(
            parts,
            effort,
            coefficients,
            deviation,
            float(rigid[0]),
            float(rigid_deviation[0]),
            residual,
        )

    def share(self, *columns: int) -> float:
        """Return the rms of some parts together over the effort's."""
        together = self.parts[:, list(columns)] @ self.coefficients[list(columns)]
        return float(np.linalg.norm(together) / np.linalg.norm(self.effort))

    @property
    def has_gravity(self) -> bool:
        """Whether the model has gravity act on the joint."""
        gravity, rest = np.linalg.norm(self.parts[:, [GRAVITY, INERTIAL]], axis=0)
        return bool(gravity > _LEAST_GRAVITY * rest)

    def is_certain(self, column: int) -> bool:
        """Whether a part is many deviations from zero."""
        return bool(abs(self.coefficients[column]) > _CERTAIN * self.deviation[column])

    @property
    def tells(self) -> bool:
        """Whether the rigid body's torque explains enough of the effort to scale it."""
        if self.residual > _SURE:
            return False
        if self.has_gravity:
            return self.share(GRAVITY) > _TELLING and self.is_certain(GRAVITY)
        share = abs(self.rigid) * np.linalg.norm(self.parts[:, [GRAVITY, INERTIAL]].sum(axis=1))
        return bool(
            share > _TELLING * np.linalg.norm(self.effort)
            and abs(self.rigid) > _CERTAIN * self.rigid_deviation
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
        if not self.has_gravity or abs(gravity) > _LARGEST_REMAINDER:
            return False
        if self.sees_the_rest and rest < 0:
            return False  # the sign is wrong: then gravity says nothing of its own
        if self.sees_the_rest:
            # The rest of the torque shows the unit, and gravity is less than that.
            return bool(rest > 1.0 / _LARGEST_FACTOR and gravity < _MISSING * rest)
        if abs(gravity) > 1.0 / _LARGEST_FACTOR:
            return False  # the URDF's masses may be off by so much
        # Nothing shows the unit: gravity is missing if it would be a large part of a torque.
        expected = np.linalg.norm(self.parts[:, GRAVITY]) / np.linalg.norm(self.effort)
        return bool(expected > _TELLING and (gravity < 0 or self.share(GRAVITY) < _TELLING))

    @property
    def unit_per_torque(self) -> float:
        """Recorded units for a torque [1 / (N m) or 1 / N]."""
        return float(self.coefficients[GRAVITY]) if self.has_gravity else self.rigid

    @property
    def unit_deviation(self) -> float:
        """The standard deviation of ``unit_per_torque``."""
        return float(self.deviation[GRAVITY]) if self.has_gravity else self.rigid_deviation


def _least_squares(
    columns: FloatArray, effort: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return coefficients, their deviations, and the relative residual."""
    size = np.linalg.norm(columns, axis=0)
    kept = np.flatnonzero(size > 1e-9 * size.max())
    scaled = columns[:, kept] / size[kept]
    left, singular, right = np.linalg.svd(scaled, full_matrices=False)
    solution = right.T @ ((left.T @ effort) / singular)
    residual = effort - scaled @ solution
    rows = np.ones((len(effort), 1), dtype=bool)
    correlation = float(autocorrelation_time([residual[:, None]], [rows])[0])
    variance = residual @ residual / max(len(effort) - len(kept), 1) * correlation
    deviation = np.sqrt(variance * ((right.T / singular) ** 2).sum(axis=1))
    coefficients, deviations = np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    coefficients[kept], deviations[kept] = solution / size[kept], deviation / size[kept]
    whole = max(float(np.linalg.norm(effort)), 1e-300)
    return coefficients, deviations, float(np.linalg.norm(residual)) / whole


# --- in words ------------------------------------------------------------------------------------


def _undecided(joint: str) -> JointEffort:
    """Return that nothing is known of a joint's effort."""
    nan = float('nan')
    return JointEffort(
        joint, 'undecided', nan, nan, 'undecided', 'undecided', nan, nan, nan, nan, nan
    )


def _findings_of_joint(joint: JointEffort, unit: str) -> Iterator[Finding]:
    """Yield as text what a joint's effort is."""
    element = f'effort of joint {joint.joint!r}'
    factor, rigid_share = float(f'{joint.factor:.4g}'), float(f'{joint.rigid_share:.4g}')
    if joint.unit == 'undecided':
        message = f'{element} has an undecided unit'
        if not math.isnan(joint.rigid_share):
            message += f": the rigid body's torque is only {joint.rigid_share:.0%} of it"
        yield note('effort_undecided', element, rigid_share, message)
    if joint.unit == 'scaled':
        message = (
            f'{element} is not in {unit}: 1 unit = '
            f"{quantity(joint.factor, unit, joint.factor_deviation)}, if the model's masses are "
            'right'
        )
        if joint.gravity == 'none':
            message += '; rotors weigh here and are not in a URDF'
        yield warning('effort_scaled', element, factor, message)
    if joint.is_inverted:
        message = f'{element} has the wrong sign: the torque is {joint.factor:.4g} times it'
        yield warning('effort_inverted', element, factor, message)
    if joint.gravity == 'removed':
        message = (
            f"{element} has no gravity in it: the rigid body's torque is {joint.rigid_share:.0%} "
            'of it. If the driver takes its own gravity from it, identify with '
            '--effort-without-gravity and --driver-payload, what the driver was told '
            '(with_driver_gravity)'
        )
        yield warning('gravity_removed', element, rigid_share, message)
    if joint.friction == 'removed':
        message = (
            f'{element} has hardly any friction in it, {joint.friction_share:.1%}: compensated, '
            'or measured behind the gear'
        )
        friction_share = float(f'{joint.friction_share:.4g}')
        yield note('friction_removed', element, friction_share, message)
    if abs(joint.delay) > max(5 * _LATE, 2 * _CERTAINLY_LATE * joint.delay_deviation):
        message = f'{element} is stamped {joint.delay:.3g} s after the motion, unlike the others'
        yield note('joint_delay', element, float(f'{joint.delay:.4g}'), message)
