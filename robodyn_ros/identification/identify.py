# SPDX-License-Identifier: Apache-2.0
"""From recordings of an arm to a model of it: the steps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_number
from robodyn_ros.description.records import Finding
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification import findings as found
from robodyn_ros.identification.comparison import (
    CandidateError,
    UrdfWithFriction,
    recording_errors,
    repeats,
)
from robodyn_ros.identification.drive_terms import DriveTerms, candidates, neighbours
from robodyn_ros.identification.effort_scale import (
    assumed_effort_scale,
    given_effort_scale,
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
from robodyn_ros.identification.prior import Prior, prior_pseudo_inertia
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import Recording, checked_recordings
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
    prior_deviation: float = 0.25,
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
        Torque [N m or N] for a unit of the recorded effort. Where not given, the effort is a
        torque, unless the URDF's masses show that it cannot be one: see ``findings``.
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
        An argument is none that is allowed.

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

    scale, unit_findings = _effort_scale(model, training, effort_scale)
    rows = training.rows(model, scale)
    found.check_rows(model, rows)
    report(0.1, 'first estimate')
    baseline = fitted(model, rows, prior, DriveTerms(), rounds=_BASELINE_ROUNDS)
    if unit_findings:
        for _ in range(_UNIT_ROUNDS):
            refined = refined_effort_scale(scale, rows, baseline)
            rows = [replace(each, effort=each.effort * (refined / scale)) for each in rows]
            scale = refined
            baseline = fitted(model, rows, prior, DriveTerms(), start=baseline, rounds=1)
        assumed = tuple(float(f'{x:.4g}') for x in scale)
        unit_findings = tuple(replace(each, value=assumed) for each in unit_findings)

    report(0.2, 'choosing the friction')
    drives = neighbours(model.n) if searched else known
    validator = CrossValidation(model, rows, prior, baseline, drives)
    best, scores = _chosen(validator, friction, report, () if searched else range(len(known)))
    while searched and (coupled := validator.more_coupled(best)) != best.coupled:
        best, scores = _chosen(validator, friction, reporting(None), coupled)
    drives = drives[list(best.coupled)]
    tilt, tilt_deviation, tilted_model, best = chosen_tilt(
        model, rows, prior, validator, best, base_tilt
    )
    if tilt.any():
        rows = training.rows(tilted_model, scale)

    report(0.8, 'estimating')
    fit = fitted(tilted_model, rows, prior, best.terms, start=baseline, coupling=drives)
    outlying = found.outlying(model, rows, fit, training.recording_of_rows)
    if outlying.robust:
        fit = fitted(
            tilted_model, rows, prior, best.terms, start=fit, coupling=drives, robust=True
        )
    delay, delay_deviation = estimated_delay(tilted_model, rows, prior, fit)
    drive_model, parameters, covariance = _result(
        model, tilted_model, rows, prior, fit, best, scale
    )

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
        *(finding for each in (*training.recordings, *held_out) for finding in each.findings),
        *prior_findings,
        *unit_findings,
        *training.silent_findings(model),
        *found.of_motion(model, rows),
        *found.of_estimate(fit, parameters, best),
        *outlying.findings,
        *found.of_tilt(tilt),
        *found.of_coupling(drive_model.model),
        *found.of_delay(delay, delay_deviation),
        *found.of_validation(errors),
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


def _effort_scale(
    model: RobotModel, training: TrainingData, given: ArrayLike | None
) -> tuple[FloatArray, tuple[Finding, ...]]:
    if given is None:
        return assumed_effort_scale(model, training.rows(model, np.ones(model.n)))
    return given_effort_scale(model, given), ()


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
) -> tuple[DriveModel, tuple, FloatArray]:
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
        effort_offset=coefficient('offset'),
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
        coefficients=_frozen(fit.drive.copy()),
        base=base,
        covariance=_frozen(covariance),
        residual=_frozen(best.deviation),
        effort_scale=_frozen(scale),
    )
    return drive_model, parameters, covariance


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
