# SPDX-License-Identifier: Apache-2.0
"""From recordings of an arm to a model of it: the steps, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_number, checked_per_joint
from robodyn_ros.description.records import Finding, warning
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.identification import findings as found
from robodyn_ros.identification.comparison import (
    CandidateError,
    UrdfWithFriction,
    recording_errors,
    repeats,
)
from robodyn_ros.identification.drive_terms import DriveTerms, candidates, neighbours
from robodyn_ros.identification.effort_examination import (
    EffortFindings,
    examined,
    given_effort_scale,
    of_efforts,
    refined_effort_scale,
)
from robodyn_ros.identification.estimator import Problem, estimate
from robodyn_ros.identification.fit import (
    Fit,
    coupled_deviation,
    drive_deviation,
    estimated_delay,
    fitted,
)
from robodyn_ros.identification.identification import Identification
from robodyn_ros.identification.parameters import identified_parameters
from robodyn_ros.identification.prediction import DriveModel
from robodyn_ros.identification.preparation import even_samples
from robodyn_ros.identification.prior import BODIES_DEVIATION, Prior, prior_pseudo_inertia
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import Recording, checked_recordings, findings_of
from robodyn_ros.identification.rows import Rows, TrainingData
from robodyn_ros.identification.selection import CrossValidation, Score, chosen_tilt
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

_BASELINE_ROUNDS = 3
_UNIT_ROUNDS = 40
Auto = Literal['auto']


@one_thread()
def identify(
    model: RobotModel,
    recordings: Recording | Sequence[Recording],
    *,
    validation: Recording | Sequence[Recording] = (),
    friction: DriveTerms | Auto = 'auto',
    base_tilt: bool | Auto = 'auto',
    coupling: ArrayLike | Auto = 'auto',
    effort_scale: ArrayLike | None = None,
    balance: ArrayLike | None = None,
    prior_deviation: float = BODIES_DEVIATION,
    progress: Progress | None = None,
) -> Identification:
    """
    Return the model that explains what an arm's drives reported, and what it leaves open.

    Parameters
    ----------
    model : RobotModel
        The arm as its URDF has it: where the recordings say nothing, its bodies remain.
    recordings : Recording or sequence of Recording
        To train with; best half a minute or more in which all joints move through their range.
    validation : Recording or sequence of Recording
        Of other motions, for errors that are held out.
    friction : DriveTerms or 'auto'
        The drives' terms; ``'auto'``: the plainest of a dozen within 3 % of the best in blocked
        cross-validation.
    base_tilt : bool or 'auto'
        Whether a tilt of the base is estimated; ``'auto'``: kept where it is large, certain, and
        lowers the cross-validated error by a tenth.
    coupling : array-like, shape (m, n), or 'auto'
        Velocity of each coupled drive for a unit velocity of each joint, where it is known: the
        sixth motor of a wrist that turns with joints 5 and 6 is ``[[0, 0, 0, 0, 1, 1]]``, and
        ``()`` says that there is none. ``'auto'``: the model's; of a model without any, sums and
        differences of neighbouring joints, as far as each lowers the cross-validated error of
        both by a fifth, and that of all by more than 3 %.
    effort_scale : array-like, shape (n,), or float, optional
        Torque [N m or N] for a unit of the recorded effort. Where not given, the effort is what
        ``examine_effort`` says, as far as the URDF's masses are right: see ``findings``.
    balance : array-like, shape (n,), or float, optional
        Constant force or torque by which a counterweight or a spring carries a joint's gravity, so
        that it is not in the effort [N m or N]. Where not given, it is seen where gravity is
        constant, as on a lift: see ``findings``.
    prior_deviation : float
        How far the URDF's bodies are thought to be off, relative.
    progress : callable, optional
        Called with the fraction done, 0 to 1, and what is done next; ``print`` shows both.

    Raises
    ------
    NoSuchName
        A recording lacks a joint of the model.
    InsufficientRecording
        There is too little motion.
    WrongType, InvalidArgument, NonFiniteValue
        An argument is none that is allowed, or most joints have no gravity in their efforts.

    Notes
    -----
    ``converged`` of the result says whether the optimum was reached; a finding, if it was not.

    Ten parameters of every link and the terms of every drive are estimated together, every link's
    pseudo-inertia positive definite, drawn to the URDF's by an entropic divergence. See
    docs/identification.md.

    References
    ----------
    Wensing, Kim and Slotine 2018; Lee, Wensing and Park 2020; Gautier and Khalil 1988.
    """
    report = reporting(progress)
    checked_model(model)
    recordings = checked_recordings('recordings', recordings)
    held_out = [
        each.of_joints(model.joint_names)
        for each in (checked_recordings('validation', validation) if validation else ())
    ]
    _check(friction, base_tilt, coupling, prior_deviation)
    known = model.coupling if isinstance(coupling, str) else _coupling(model, coupling)
    searched = isinstance(coupling, str) and not len(known)
    model = replace(model, coupling=np.zeros((0, model.n)))
    report(0.0, 'preparing')
    training = TrainingData.of(model, recordings)
    pseudo, prior_findings = prior_pseudo_inertia(model)
    prior = Prior(pseudo, 1.0 / (4.0 * prior_deviation**2))

    scale = np.ones(model.n) if effort_scale is None else given_effort_scale(model, effort_scale)
    efforts = examined(model, training.rows(model, scale))
    is_assumed = effort_scale is None and bool((efforts.effort_scale != 1.0).any())
    if is_assumed:
        scale = efforts.effort_scale
    balanced = _Balance.of(model, efforts, balance)
    rows = balanced.rows(training, model, scale)
    report(0.1, 'first estimate')
    baseline = fitted(model, rows, prior, DriveTerms(), rounds=_BASELINE_ROUNDS)
    if is_assumed and any(each.unit == 'scaled' for each in efforts.joints):
        for _ in range(_UNIT_ROUNDS):
            scale = refined_effort_scale(scale, rows, baseline)
            rows = balanced.rows(training, model, scale)
            baseline = fitted(model, rows, prior, DriveTerms(), start=baseline, rounds=1)

    report(0.2, 'choosing the friction')
    drives = neighbours(model.parents) if searched else known
    validator = CrossValidation(model, rows, prior, baseline, drives)
    best, scores = _chosen(validator, friction, report, () if searched else range(len(known)))
    while searched and (coupled := validator.more_coupled(best)) != best.coupled:
        best, scores = _chosen(validator, friction, reporting(None), coupled)
    drives = drives[list(best.coupled)]
    tilt, tilt_deviation, tilted_model, best = chosen_tilt(
        model, rows, prior, validator, best, base_tilt
    )
    if tilt.any():
        rows = balanced.rows(training, tilted_model, scale)

    report(0.8, 'estimating')
    fit = fitted(tilted_model, rows, prior, best.terms, start=baseline, coupling=drives)
    outlying = found.outlying(model, rows, fit, training.recording_of_rows)
    if outlying.robust:
        fit = fitted(
            tilted_model, rows, prior, best.terms, start=fit, coupling=drives, robust=True
        )
    delay, delay_deviation = estimated_delay(tilted_model, rows, prior, fit)
    drive_model, parameters, covariance = _result(
        model, tilted_model, rows, prior, fit, best, scale, balanced.carried
    )
    drive_model = replace(drive_model, scale_is_assumed=is_assumed)

    report(0.9, 'comparing')
    urdf = UrdfWithFriction.fitted(model, training.rows(model, scale))
    cutoff = training.band.cutoff
    errors = [
        recording_errors(each, urdf, drive_model, cutoff, role='training')
        for each in training.recordings
    ]
    for each in held_out:
        same = repeats(even_samples(each), training.stretches)
        errors.append(
            recording_errors(
                each, urdf, drive_model, cutoff, role='validation', repeats_training=same
            )
        )
    all_findings = [
        *findings_of((*training.recordings, *held_out)),
        *prior_findings,
        *of_efforts(
            efforts,
            scale,
            is_assumed=is_assumed,
            crossing=[model.joint_names[j] for j in np.flatnonzero(drives.any(axis=0))],
        ),
        *balanced.findings(model),
        *training.silent_findings(model),
        *found.of_motion(model, rows),
        *found.of_estimate(fit, parameters, best),
        *outlying.findings,
        *found.of_tilt(tilt),
        *found.of_coupling(drive_model.model),
        *found.of_delay(delay, delay_deviation),
        *found.of_validation(errors),
        *found.of_result(model, drive_model, errors),
    ]
    report(1.0, 'done')
    return Identification(
        model=drive_model.model,
        drive_model=drive_model,
        parameters=parameters,
        covariance=_frozen(covariance),
        base_tilt=_frozen(tilt),
        base_tilt_deviation=_frozen(tilt_deviation),
        delay=delay,
        delay_deviation=delay_deviation,
        errors=tuple(errors),
        candidates=tuple(CandidateError(s.terms, s.relative_error) for s in scores),
        findings=tuple(all_findings),
        cutoff=cutoff,
        converged=fit.estimate.converged,
        kinematics=kinematics_digest(model),
    )


def _check(
    friction: DriveTerms | Auto,
    base_tilt: bool | Auto,
    coupling: ArrayLike | Auto,
    prior_deviation: float,
) -> None:
    if friction != 'auto' and friction not in candidates():
        raise InvalidArgument('argument friction', friction, "'auto' or one of candidates()")
    if base_tilt not in (True, False, 'auto'):
        raise InvalidArgument('argument base_tilt', base_tilt, "'auto', True or False")
    if isinstance(coupling, str) and coupling != 'auto':
        raise InvalidArgument('argument coupling', coupling, "'auto', or numbers (m, n)")
    if not 0.0 < checked_number('prior_deviation', prior_deviation) < np.inf:
        raise InvalidArgument('argument prior_deviation', prior_deviation, 'a positive number')


def _coupling(model: RobotModel, given: ArrayLike) -> FloatArray:
    """Return the coupled drives (m, n) that are given."""
    if not np.size(given):
        return np.zeros((0, model.n))
    checked = checked_array('coupling', given, (len(np.atleast_1d(given)), model.n))
    for row in checked:
        if np.count_nonzero(row) < 2:
            allowed = 'numbers that are not zero for two joints or more'
            raise InvalidArgument('argument coupling', row.tolist(), allowed)
    return checked


@dataclass(frozen=True, eq=False)
class _Balance:
    """
    Gravity that something else than the drives carries.

    Attributes
    ----------
    carried : array, shape (n,)
        What is missing in the efforts, constant [N m or N]; the drives' offsets take it.
    is_left_out : array of bool, shape (n,)
        Joints whose gravity is missing and not constant, or whose effort follows the torque of
        another joint: their efforts say nothing of the bodies.
    of_joint : tuple of n str
        That other joint; empty: none.
    """

    carried: FloatArray
    is_left_out: np.ndarray
    of_joint: tuple[str, ...]

    @classmethod
    def of(cls, model: RobotModel, efforts: EffortFindings, given: ArrayLike | None) -> _Balance:
        """
        Return what the user says, or what the efforts lack.

        Raises
        ------
        NonFiniteValue, InvalidArgument
            Of what is given; most joints have no gravity in their efforts, or none is left.
        """
        of_joint = tuple(each.of_joint for each in efforts.joints)
        is_of_another = np.array(of_joint) != ''
        if is_of_another.all():
            raise InvalidArgument(
                'effort',
                Phrase('that of another joint at all of them: ' + ', '.join(map(repr, of_joint))),
                "each joint's own, in the order " + ', '.join(map(repr, model.joint_names)),
            )
        if given is not None:
            carried = checked_per_joint('balance', given, model.n)
            return cls(carried, is_of_another, of_joint)
        carried = np.array([each.carried for each in efforts.joints])
        removed = np.array([each.gravity == 'removed' for each in efforts.joints])
        left_out = removed & (carried == 0.0)
        included = sum(each.gravity == 'included' for each in efforts.joints)
        if left_out.sum() > included:
            raise InvalidArgument(
                'effort',
                Phrase(
                    'without gravity on '
                    + ', '.join(repr(model.joint_names[j]) for j in np.flatnonzero(left_out))
                ),
                'all that the drives make: where a driver takes its own gravity from it, identify '
                'with --effort-without-gravity (with_driver_gravity); where springs carry it, '
                'give balance',
            )
        return cls(carried, left_out | is_of_another, of_joint)

    def rows(self, training: TrainingData, model: RobotModel, scale: FloatArray) -> list[Rows]:
        """Return the rows of all stretches, with what is missing in the efforts."""
        return [
            replace(each, effort=each.effort + self.carried, used=each.used & ~self.is_left_out)
            for each in training.rows(model, scale)
        ]

    def findings(self, model: RobotModel) -> Iterator[Finding]:
        """Yield which joints were left out."""
        for j in np.flatnonzero(self.is_left_out):
            element = f'joint {model.joint_names[j]!r}'
            why = f'follows the torque of {self.of_joint[j]!r}'
            if not self.of_joint[j]:
                why = 'has no gravity in it, which a spring may carry'
            message = f'{element} was left out: its effort {why}; its friction is unknown'
            yield warning('joint_left_out', element, 0.0, message)


def _chosen(
    validator: CrossValidation,
    friction: DriveTerms | Auto,
    report: Progress,
    coupled: Sequence[int],
) -> tuple[Score, tuple[Score, ...]]:
    if isinstance(friction, DriveTerms):
        return validator.score(friction, coupled=tuple(coupled)), ()
    count = len(candidates())
    done = iter(range(1, count + 1))
    return validator.chosen(
        progress=lambda: report(0.2 + 0.6 * next(done) / count, 'choosing the friction'),
        coupled=tuple(coupled),
    )


def _result(
    model: RobotModel,
    tilted_model: RobotModel,
    rows: Sequence[Rows],
    prior: Prior,
    fit: Fit,
    best: Score,
    scale: FloatArray,
    carried: FloatArray,
) -> tuple[DriveModel, tuple, FloatArray]:
    coefficients = fit.drive.copy()
    coefficients[:, fit.terms.names.index('offset')] -= carried
    own = drive_deviation(fit.terms, model, prior, rows)
    coupled = coupled_deviation(fit.terms, fit.coupling, own)
    deviation = np.concatenate([own.ravel(), coupled.ravel()])
    nothing = Problem(
        factor=np.zeros((1, fit.layout.size)),
        target=np.zeros(1),
        prior=prior.pseudo_inertia,
        strength=prior.strength,
        deviation=deviation,
        positive=np.zeros(len(deviation), dtype=bool),
    )
    bodies = tilted_model.with_inertial_parameters(fit.inertial_parameters)
    coefficient = fit.coefficient
    identified = replace(
        bodies,
        rotor_inertia=coefficient('Ia'),
        viscous_friction=coefficient('Fv'),
        coulomb_friction=coefficient('Fc'),
        effort_offset=coefficient('offset') - carried,
        friction_curve=np.stack([coefficient('c1'), coefficient('c2')], axis=1),
        load_friction=coefficient('mu'),
        coupling=fit.coupling,
        coupled_rotor_inertia=fit.coupled_coefficient('Ia'),
        coupled_friction=np.stack(
            [fit.coupled_coefficient(name) for name in ('Fv', 'Fc', 'c1', 'c2')], axis=1
        ),
    )
    base, parameters, covariance = identified_parameters(
        identified, fit.terms, fit.estimate, estimate(nothing)
    )
    drive_model = DriveModel(
        model=identified,
        terms=fit.terms,
        coefficients=_frozen(coefficients),
        base=base,
        covariance=_frozen(covariance),
        residual=_frozen(best.deviation),
        effort_scale=_frozen(scale),
    )
    return drive_model, parameters, covariance


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
