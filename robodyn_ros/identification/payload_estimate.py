# SPDX-License-Identifier: Apache-2.0
"""
Payload estimation: mass, centre of mass and inertia from efforts, moving or at rest.

The arm and its drives are known. What their torques leave of the measured ones is linear in the
payload's ten parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.description.records import Finding, differs_from_zero, note, stated, warning
from robodyn_ros.errors import InsufficientRecording, Phrase
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_examination import effort_doubts, given_effort_scale
from robodyn_ros.identification.estimator import Estimate, Problem, estimate
from robodyn_ros.identification.fit import first_noise
from robodyn_ros.identification.identification import Identification
from robodyn_ros.identification.identify import identify
from robodyn_ros.identification.noise import Noise, typical
from robodyn_ros.identification.preparation import band_with_cutoff, even_samples, states_of
from robodyn_ros.identification.prior import BODIES_DEVIATION, LOAD_REACH
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import Recording, checked_recordings, findings_of
from robodyn_ros.identification.regression import Regression
from robodyn_ros.identification.rows import (
    Rows,
    payload_columns,
    payload_matrix,
    rows_of,
    with_payload_parameters,
)
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.parameters import regressor
from robodyn_ros.payload import Payload
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray, inertia_tensor
from robodyn_ros.threads import one_thread

_ROUNDS = 4
_IDENTIFYING = 0.9  # of the time, where the arm is identified first
# The prior keeps an inertia sane that only gravity excites; it hardly holds mass and centre.
_STRENGTH = 0.05
_RADIUS = 0.06  # of gyration of a kilogram [m]
_LEAST_MASS = 0.01  # kg
_LOOSE = 100.0
_POORLY_KNOWN, _POOR_CENTER = 0.05, 0.01
_CUTOFF = 5.0  # Hz
# Friction of the day against that of the model: relative to each term, and of the rms torque.
_FRICTION, _OFFSET = 0.2, 0.01
_LEAST_FRICTION = 1e-3
# Time at rest [s] that makes a pose.
_LEAST_STAND = 0.3
# Columns of the drives' terms.
_FV, _FC, _ONE = 1, 2, 3
# Poses that are proposed, and of how many random ones.
_COUNT, _CANDIDATES = 3, 300
_SEED = 0
# A continuous joint turns anywhere; a sliding one without limits this far [m].
_TURN, _STROKE = np.pi, 0.5
_MARGIN = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class PayloadEstimate(Record):
    """
    What the tip link carries.

    Attributes
    ----------
    payload : Payload
        A body that can exist.
    mass_deviation : float
        [kg]
    center_deviation : array, shape (3,)
        [m]
    inertia_deviation : array, shape (3, 3)
        About the tip link's origin [kg m²]; as large as the prior's where nothing was measured.
    residual : float
        Rms of what is unexplained over that of the torque, all joints together.
    poses : array, shape (k, n)
        Where to stand still, in turn, for a better mass and centre of mass [rad or m].
    findings : tuple of Finding
    """

    payload: Payload
    mass_deviation: float
    center_deviation: FloatArray
    inertia_deviation: FloatArray
    residual: float
    poses: FloatArray
    findings: tuple[Finding, ...]

    @property
    def deviation(self) -> FloatArray:
        """Of mass [kg] and centre of mass [m], array, shape (4,)."""
        return np.concatenate([[self.mass_deviation], self.center_deviation])

    def __repr__(self) -> str:
        size = stated(self.payload.mass, 'kg', self.mass_deviation)
        if not differs_from_zero(self.payload.mass, self.mass_deviation):
            return f'PayloadEstimate({size})'
        center = ', '.join(f'{1e3 * x:.0f}' for x in np.asarray(self.payload.center_of_mass))
        return f'PayloadEstimate({size} at {center} mm)'


@one_thread()
def identify_payload(
    model: RobotModel | Identification,
    loaded: Recording | Sequence[Recording],
    *,
    unloaded: Recording | Sequence[Recording] | None = None,
    effort_scale: ArrayLike | None = None,
    progress: Progress | None = None,
) -> PayloadEstimate:
    """
    Return the payload of the tip link in recordings, moving or at rest in some poses.

    Parameters
    ----------
    model : RobotModel or Identification
        The arm without it. An identification knows friction and unit of the efforts; a model is
        believed as it is, unless ``unloaded`` is given.
    loaded : Recording or sequence of Recording
    unloaded : Recording or sequence of Recording, optional
        Without the load, to identify the arm from first.
    effort_scale : array-like, shape (n,), or float, optional
        Torque for a unit of effort [N m or N]; the identification's where not given, else 1.
    progress : callable, optional
        Called with the fraction done, 0 to 1, and what is done next: ``unloaded`` takes as long as
        ``identify``.

    Raises
    ------
    NoSuchName, InsufficientRecording
        The recordings hold neither motion nor a pose.
    InvalidArgument, NonFiniteValue
        Of ``effort_scale``.

    Notes
    -----
    What the torques of the arm by itself do not explain is linear in the payload's ten parameters.
    Friction that grows with load takes part, and friction may be off by a fifth: it is another
    day. A pose counts as one row, uncertain by all that Coulomb friction can hold. How uncertain
    the arm itself is, is not in the deviations.
    """
    report = reporting(progress)
    bare = model.model if isinstance(model, Identification) else checked_model(model)
    recordings = checked_recordings('loaded', loaded)
    if unloaded is not None:
        model = identify(
            bare,
            unloaded,
            effort_scale=effort_scale,
            progress=lambda fraction, what: report(_IDENTIFYING * fraction, what),
        )
    begin = 0.0 if unloaded is None else _IDENTIFYING
    report(begin, 'preparing')
    arm = _KnownArm.of(model, effort_scale)
    mine = [each.of_joints(arm.model.joint_names) for each in recordings]
    regression = _PayloadRegression.of(arm, mine)
    if not regression.has_rows:
        raise InsufficientRecording(
            'recording', Phrase('neither motion nor a pose'), 'one of both'
        )
    parameters, noise = np.zeros(10), first_noise(regression.rows).scale
    prior = None
    for k in range(_ROUNDS):
        report(begin + (1.0 - begin) * (k + 1) / (_ROUNDS + 1), 'estimating')
        factor, target = regression.factor_and_target(parameters, noise)
        body, loose = _prior(factor, target, regression.friction_deviation)
        prior = body if prior is None else prior
        found = estimate(
            Problem(
                factor=factor,
                target=target,
                prior=prior,
                strength=_STRENGTH,
                deviation=regression.friction_deviation,
                positive=np.zeros(len(regression.friction_deviation), dtype=bool),
            )
        )
        parameters = found.inertial_parameters[0]
        noise = regression.noise(parameters, found.others)
    result = _result(arm, regression, found, noise, loose)
    given = [*recordings, *(checked_recordings('unloaded', unloaded) if unloaded else ())]
    result = replace(result, findings=(*findings_of(given), *result.findings))
    report(1.0, 'done')
    return result


def _prior(
    factor: FloatArray, target: FloatArray, friction: FloatArray
) -> tuple[FloatArray, float]:
    """
    Return a round body (1, 4, 4) with the mass and the centre that least squares find.

    And the deviation of that mass [kg], large where nothing shows it, as in an arm of one joint.
    """
    columns = np.r_[6:10, 10 : factor.shape[1]]
    held = np.diag(1.0 / np.concatenate([np.full(4, _LOOSE), friction]))
    matrix = np.vstack([factor[:, columns], held])
    right = np.concatenate([target, np.zeros(len(columns))])
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    mass = max(float(solution[3]), _LEAST_MASS)
    center = solution[:3] / mass
    center *= min(1.0, LOAD_REACH / max(float(np.linalg.norm(center)), 1e-12))
    radius = _RADIUS * mass ** (1.0 / 3.0)
    result = np.empty((1, 4, 4))
    result[0, :3, :3] = mass * (radius**2 * np.eye(3) + np.outer(center, center))
    result[0, :3, 3] = result[0, 3, :3] = mass * center
    result[0, 3, 3] = mass
    return result, float(np.linalg.norm(np.linalg.pinv(matrix)[3]))


def _result(
    arm: _KnownArm,
    regression: _PayloadRegression,
    found: Estimate,
    noise: FloatArray,
    loose: float,
) -> PayloadEstimate:
    parameters = found.inertial_parameters[0]
    mass = float(parameters[9])
    center = parameters[6:9] / mass
    own = found.deviation_factor[:10]
    of_center = (own[6:9] - np.outer(center, own[9])) / mass
    about_center = inertia_tensor(parameters) - mass * (
        center @ center * np.eye(3) - np.outer(center, center)
    )
    # The unit is a factor on mass and inertia, and none on the centre.
    systematic = arm.scale_deviation * mass
    random = float(np.linalg.norm(own[9]))
    center_deviation = np.linalg.norm(of_center, axis=1)
    if loose > mass:  # the prior's mass it is, and the centre of that
        random = loose
        center_deviation = np.maximum(center_deviation, LOAD_REACH)
    mass_deviation = float(np.hypot(random, systematic))
    prior_inertia = _RADIUS**2 * mass ** (5.0 / 3.0)
    inertia_deviation = inertia_tensor(np.concatenate([np.linalg.norm(own[:6], axis=1), 4 * [0]]))
    loaded = arm.model.with_inertial_parameters(with_payload_parameters(arm.model, parameters))
    findings = [*effort_doubts(loaded, regression.rows)]
    if systematic:
        message = (
            "the unit of the efforts comes from the URDF's masses: the payload of "
            f'{mass:.3g} kg is as far off as they are, {systematic:.2g} kg if by '
            f'{arm.scale_deviation:.0%}; robodyn gains measures the unit'
        )
        findings.append(warning('payload_unit', 'payload', float(f'{systematic:.2g}'), message))
    if not differs_from_zero(mass, random):
        message = f"the payload's mass is {stated(mass, 'kg', random)}"
        findings.append(warning('no_payload', 'payload', mass, message))
    elif random > _POORLY_KNOWN * mass or center_deviation.max() > _POOR_CENTER:
        message = (
            f'the payload is uncertain, by {random:.2g} kg and '
            f'{1e3 * center_deviation.max():.2g} mm of its centre: add the poses, or a motion'
        )
        findings.append(warning('payload_uncertain', 'payload', float(f'{random:.2g}'), message))
    if np.diagonal(inertia_deviation).max() > prior_inertia:
        largest = f'{np.diagonal(about_center).max():.3g}'
        message = (
            f"the payload's inertia, at most {largest} kg m² about its centre, is a guess: the "
            'motion hardly shows it'
        )
        findings.append(note('inertia_from_prior', 'payload', float(largest), message))
    if not found.converged:
        message = f'the payload did not settle in {found.steps} steps'
        findings.append(warning('not_converged', 'payload', found.steps, message))
    covariance = own[6:10] @ own[6:10].T
    return PayloadEstimate(
        Payload(mass, center, about_center),
        mass_deviation,
        center_deviation,
        inertia_deviation,
        regression.relative_residual(parameters, found.others),
        _poses_to_add(arm.model, covariance, np.hypot(noise, arm.stiction)),
        tuple(findings),
    )


# --- the regression ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _KnownArm:
    """
    An arm, its drives, and the unit of its efforts.

    Attributes
    ----------
    model : RobotModel
    terms : DriveTerms
    coefficients : array, shape (n, terms.count)
    effort_scale : array, shape (n,)
    scale_deviation : float
        Common to all joints, relative: how far the URDF's masses may be off, where they gave it.
    """

    model: RobotModel
    terms: DriveTerms
    coefficients: FloatArray
    effort_scale: FloatArray
    scale_deviation: float

    @classmethod
    def of(cls, given: RobotModel | Identification, effort_scale: ArrayLike | None) -> _KnownArm:
        """Return what an identification, or a model alone, says."""
        if isinstance(given, Identification):
            drive = given.drive_model
            model, terms, scale = given.model, drive.terms, drive.effort_scale
            coefficients = drive.coefficients
            deviation = BODIES_DEVIATION if drive.scale_is_assumed else 0.0
        else:
            model, terms = checked_model(given), DriveTerms(curve=True, load=True)
            scale, deviation = np.ones(model.n), 0.0
            coefficients = np.column_stack(
                [
                    model.rotor_inertia,
                    model.viscous_friction,
                    model.coulomb_friction,
                    model.effort_offset,
                    model.friction_curve,
                    model.load_friction,
                ]
            )
        if effort_scale is not None:
            scale, deviation = given_effort_scale(model, effort_scale), 0.0
        return cls(model, terms, coefficients, scale, deviation)

    @property
    def stiction(self) -> FloatArray:
        """Deviation of a torque anywhere between plus and minus Coulomb friction, shape (n,)."""
        coupled = self.model.dry_friction - self.model.coulomb_friction
        return (np.maximum(self.coefficients[:, _FC], 0.0) + coupled) / np.sqrt(3.0)


@dataclass(frozen=True, eq=False)
class _PayloadRegression:
    """
    The rows that a payload has to explain, in motion and in the poses that the arm stands in.

    Attributes
    ----------
    arm : _KnownArm
    rows : tuple of Rows
    payload : tuple of array, shape (K, n, 10)
        Columns of the payload's ten parameters.
    poses : tuple of (number of rows, first row, last row)
        Stretches in which the whole arm stands.
    size : array, shape (n,)
        Rms of the torques.
    """

    arm: _KnownArm
    rows: tuple[Rows, ...]
    payload: tuple[FloatArray, ...]
    poses: tuple[tuple[int, int, int], ...]
    size: FloatArray

    @classmethod
    def of(cls, arm: _KnownArm, recordings: Sequence[Recording]) -> _PayloadRegression:
        """
        Return the rows of recordings of the arm's joints.

        Raises
        ------
        InsufficientRecording
        """
        stretches = [each for r in recordings for each in even_samples(r, standing=True)]
        band = band_with_cutoff(_CUTOFF, stretches)
        bare = arm.model.with_rotor_inertia(np.zeros(arm.model.n))
        rows = tuple(rows_of(bare, states_of(each, band), arm.effort_scale) for each in stretches)
        poses = tuple(
            (k, first, last)
            for k, each in enumerate(rows)
            for first, last in _stationary(each, int(np.ceil(_LEAST_STAND * band.row_rate)))
        )
        effort = np.concatenate([each.effort for each in rows])
        return cls(
            arm,
            rows,
            tuple(payload_columns(arm.model, each) for each in rows),
            poses,
            typical(effort),
        )

    @property
    def has_rows(self) -> bool:
        """Whether there is any motion or pose."""
        return bool(self.poses) or any(each.used.any() for each in self.rows)

    @property
    def friction_deviation(self) -> FloatArray:
        """How far viscous and Coulomb friction and offset may be off, shape (3 n,)."""
        least = _LEAST_FRICTION * self.size
        friction = np.abs(self.arm.coefficients[:, [_FV, _FC]])
        return np.column_stack(
            [np.maximum(_FRICTION * friction, least[:, None]), _OFFSET * self.size + least]
        ).ravel()

    def factor_and_target(
        self, parameters: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """
        Return factor and target of the payload's ten parameters and friction's corrections.

        Parameters
        ----------
        parameters : array, shape (10,)
            Of the payload, as far as friction that grows with load needs them.
        noise : array, shape (n,)
            Deviation of the residuals times the root of their autocorrelation time.
        """
        rest, drive = self._rest(parameters)
        payload = [*self.payload]
        own = [columns[..., [_FV, _FC, _ONE]] for columns in drive]
        weight = [each.used.astype(float) for each in self.rows]
        for k, first, last in self.poses:
            payload.append(self.payload[k][first:last].mean(axis=0, keepdims=True))
            own.append(np.broadcast_to([0.0, 0.0, 1.0], (1, len(noise), 3)))
            rest.append(self._pose_rest(k)[first:last].mean(axis=0, keepdims=True))
            weight.append((noise / np.hypot(noise, self.arm.stiction))[None])
        parts = (np.concatenate(each) for each in (payload, own, rest, weight))
        return Regression(*parts).reduced(noise)

    def noise(self, parameters: FloatArray, friction: FloatArray) -> FloatArray:
        """Return the noise (n,) that a payload and friction's corrections (3 n,) leave."""
        used = [each.used for each in self.rows]
        return Noise.of(self._residuals(parameters, friction), used, self.size).scale

    def relative_residual(self, parameters: FloatArray, friction: FloatArray) -> float:
        """Return the rms of what is left over that of the torque, of moving rows."""
        used = np.concatenate([each.used for each in self.rows])
        left = np.concatenate(self._residuals(parameters, friction))[used]
        whole = np.concatenate([each.effort for each in self.rows])[used]
        return float(np.linalg.norm(left)) / max(float(np.linalg.norm(whole)), 1e-12)

    def _rest(self, parameters: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return what the arm without the payload does not explain, and the drives' columns."""
        arm = self.arm
        bodies = with_payload_parameters(arm.model, parameters)
        rest, columns = [], []
        for each in self.rows:
            torque = each.rigid_torque(arm.model, bodies) if arm.terms.load else None
            drive = each.drive(arm.terms, torque)
            rigid = each.inertial @ arm.model.inertial_parameters.ravel()
            coupled = each.coupled_torque(arm.model, arm.terms.presliding)
            rest.append(each.effort - rigid - coupled - (drive * arm.coefficients).sum(axis=-1))
            columns.append(drive)
        return rest, columns

    def _pose_rest(self, k: int) -> FloatArray:
        """Return what gravity and offset do not explain of a stretch, shape (K, n)."""
        rigid = self.rows[k].inertial @ self.arm.model.inertial_parameters.ravel()
        return self.rows[k].effort - rigid - self.arm.coefficients[:, _ONE]

    def _residuals(self, parameters: FloatArray, friction: FloatArray) -> list[FloatArray]:
        corrections = friction.reshape(self.arm.model.n, 3)
        rest, drive = self._rest(parameters)
        return [
            np.where(
                each.used,
                left
                - payload @ parameters
                - (columns[..., [_FV, _FC, _ONE]] * corrections).sum(axis=-1),
                0.0,
            )
            for each, payload, left, columns in zip(
                self.rows, self.payload, rest, drive, strict=True
            )
        ]


def _stationary(rows: Rows, least: int) -> list[tuple[int, int]]:
    """Return the stretches of rows, first and behind the last, in which no joint moves."""
    still = np.concatenate([[False], ~rows.moving.any(axis=1), [False]])
    edges = np.flatnonzero(np.diff(still.astype(int)))
    pairs = zip(edges[::2].tolist(), edges[1::2].tolist())
    return [(first, last) for first, last in pairs if last - first >= least]


# --- poses that would tell more ------------------------------------------------------------------


def _poses_to_add(
    model: RobotModel, covariance: FloatArray, deviation: FloatArray, count: int = _COUNT
) -> FloatArray:
    """
    Return different poses, shape (count, n), that narrow mass and first moment down, in turn.

    Parameters
    ----------
    model : RobotModel
    covariance : array, shape (4, 4)
        Of first moment and mass as they are known.
    deviation : array, shape (n,)
        Of a joint's torque at rest [N m or N].
    count : int

    Notes
    -----
    Greedy, by the determinant of the covariance, among seeded poses a tenth within the limits.
    """
    low, high = model.position_limits.T
    reach = np.where(model.dh.prismatic, _STROKE, _TURN)
    low, high = np.where(np.isfinite(low), low, -reach), np.where(np.isfinite(high), high, reach)
    margin = _MARGIN * (high - low)
    generator = np.random.default_rng(_SEED)
    q = generator.uniform(low + margin, high - margin, (_CANDIDATES, model.n))
    still = np.zeros_like(q)
    body, matrix = payload_matrix(model)
    columns = regressor(model, q, still, still)[..., 10 * body : 10 * body + 10] @ matrix
    weighed = columns[..., 6:] / deviation[:, None]
    size = np.sqrt(np.diagonal(covariance))
    weighed = weighed * size
    information = np.linalg.pinv(covariance / np.outer(size, size))
    chosen: list[int] = []
    for _ in range(count):
        gains = np.linalg.slogdet(information + np.swapaxes(weighed, 1, 2) @ weighed)[1]
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        information = information + weighed[best].T @ weighed[best]
    return q[chosen]
