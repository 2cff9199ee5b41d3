# SPDX-License-Identifier: Apache-2.0
"""Doubts about the result of an identification, as findings in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding, note, warning
from robodyn_ros.errors import InsufficientRecording, Phrase
from robodyn_ros.identification.comparison import RecordingErrors
from robodyn_ros.identification.fit import Fit, predicted
from robodyn_ros.identification.noise import MEDIAN_TO_DEVIATION, rms
from robodyn_ros.identification.parameters import IdentifiedParameter, coupled_name
from robodyn_ros.identification.prediction import DriveModel
from robodyn_ros.identification.rows import LEAST_ROWS, Rows
from robodyn_ros.identification.selection import Score
from robodyn_ros.model import RobotModel, force_unit

_SHORT, _GOOD = 8.0, 15.0  # s
_LITTLE_RANGE = 0.1  # rad or m
_LITTLE_MOTION = 0.1
_OUTLYING, _MANY = 6.0, 0.01
_OTHER_RECORDING = 2.0
# Largest part of a joint's effort that may be left unexplained, and largest ratio of a mass to
# that of the URDF.
POOR, FAR = 0.3, 2.0
# Ratio of the result's residual to that of the URDF with friction from which it is worse.
_WORSE = 1.1
# In training motions, residuals below this part of the strongest joint's effort are only a note.
_SMALL = 0.01
# Report a delay longer than this [s] and this many standard deviations.
LATE, LATE_SIGMAS = 0.002, 5.0


@dataclass(frozen=True, eq=False)
class _Outlying:
    """
    Whether some rows cannot be explained as the others are.

    Attributes
    ----------
    robust : bool
        Whether they are to be weighted down.
    findings : tuple of Finding
    """

    robust: bool
    findings: tuple[Finding, ...]


def check_rows(model: RobotModel, rows: Sequence[Rows]) -> None:
    """
    Refuse motion that is too short to tell anything.

    Raises
    ------
    InsufficientRecording
    """
    used = int(max(sum(each.used[:, j].sum() for each in rows) for j in range(model.n)))
    if used < LEAST_ROWS:
        raise InsufficientRecording(
            'recordings', Phrase(f'{used} rows in which a joint moves'), f'{LEAST_ROWS} at least'
        )


def of_motion(model: RobotModel, rows: Sequence[Rows]) -> Iterator[Finding]:
    """Yield what is wrong with the motion: too short, joints that hardly move."""
    length = sum(float(each.time[-1] - each.time[0]) for each in rows)
    if length < _GOOD:
        message = (
            f'the recordings have {length:.3g} s of motion: errors on other motions may be '
            'several times larger than with 15 s'
        )
        finding = warning if length < _SHORT else note
        yield finding('short_motion', 'recordings', length, message)
    q = np.concatenate([each.states.q for each in rows])
    used = np.concatenate([each.used for each in rows])
    moving = np.concatenate([each.moving for each in rows]).mean(axis=0)
    travel = np.ptp(q, axis=0)
    for joint, name in enumerate(model.joint_names):
        element = f'joint {name!r}'
        if not used[:, joint].any():
            if moving[joint] >= _LITTLE_MOTION:
                continue  # it moves: why its effort is not used, another finding says
            message = (
                f'{element} never moves: its friction is unknown, and its load comes from the URDF'
            )
            yield warning('joint_never_moves', element, float(travel[joint]), message)
        elif travel[joint] < _LITTLE_RANGE or moving[joint] < _LITTLE_MOTION:
            message = (
                f'{element} hardly moves, by {travel[joint]:.3g} '
                f'{"m" if model.dh.prismatic[joint] else "rad"}: what it carries is hardly known'
            )
            yield warning('joint_barely_moves', element, float(travel[joint]), message)


def of_estimate(
    fit: Fit, parameters: Sequence[IdentifiedParameter], best: Score
) -> Iterator[Finding]:
    """Yield whether it converged, and which parameters are still the URDF's."""
    if not (fit.estimate.converged and best.converged):
        message = f'the estimate did not reach the optimum in {fit.estimate.steps} steps'
        yield warning('not_converged', 'estimate', fit.estimate.steps, message)
    for each in parameters:
        if not each.is_measured:
            parameter = f'{each.element} {each.name}'
            message = (
                f'{parameter} comes from the URDF, not from measurement: '
                f"{each.remaining:.0%} of the prior's deviation is left"
            )
            yield note('from_prior', parameter, float(f'{each.remaining:.3g}'), message)
    measured = [each for each in parameters if each.is_well_known]
    message = f'{len(measured)} of {len(parameters)} parameters are known to within 10 %'
    yield note('well_known', 'parameters', len(measured), message)


def outlying(
    model: RobotModel, rows: Sequence[Rows], fit: Fit, recording_of_rows: Sequence[int]
) -> _Outlying:
    """
    Return whether rows stand out, and whether a minority of recordings is made of them.

    Rows that stand out within a recording are contact, most likely, and weighted down. Where a
    whole recording differs from the others it carries another load, and weighting its rows down
    would only hide that.
    """
    residuals = []
    for each in rows:
        torque = each.rigid_torque(model, fit.inertial_parameters) if fit.terms.load else None
        residuals.append(each.effort - predicted(fit, each, each.drive(fit.terms, torque)))
    used = [each.used for each in rows]
    together, chosen = np.concatenate(residuals), np.concatenate(used)
    numbers = np.asarray(recording_of_rows)
    count = int(numbers.max()) + 1
    if count > 1:
        sizes = np.array(
            [
                np.linalg.norm(
                    rms(
                        np.concatenate([residuals[k] for k in np.flatnonzero(numbers == number)]),
                        np.concatenate([used[k] for k in np.flatnonzero(numbers == number)]),
                    )
                    / fit.noise.deviation
                )
                for number in range(count)
            ]
        )
        other = np.flatnonzero(sizes > _OTHER_RECORDING * np.median(sizes))
        if len(other):
            return _Outlying(
                False,
                tuple(_differing(int(k) + 1, float(sizes[k] / np.median(sizes))) for k in other),
            )
    size = np.abs(together)
    fractions = np.zeros(model.n)
    for joint in range(model.n):
        mine = size[chosen[:, joint], joint]
        if len(mine):
            limit = _OUTLYING * MEDIAN_TO_DEVIATION * float(np.median(mine))
            fractions[joint] = (mine > max(limit, 1e-9)).mean()
    if fractions.max() <= _MANY:
        return _Outlying(False, ())
    worst = int(fractions.argmax())
    element, fraction = f'joint {model.joint_names[worst]!r}', float(fractions[worst])
    message = (
        f'{fraction:.0%} of the rows of {element} stand out: contact? They were weighted down'
    )
    found = warning('outlying_rows', element, float(f'{fraction:.3g}'), message)
    return _Outlying(True, (found,))


def _differing(number: int, times: float) -> Finding:
    message = (
        f'recording {number} has {times:.3g} times the error of the others: another load in the '
        'hand, or contact? Identify it apart'
    )
    return warning('recording_differs', f'recording {number}', times, message)


def of_tilt(tilt: np.ndarray) -> Iterator[Finding]:
    """Yield that the base is tilted, if it was found to be."""
    if tilt.any():
        angles = tuple(float(f'{angle:.3g}') for angle in np.degrees(tilt))
        message = (
            f'the base is tilted by {angles[0]:g} and {angles[1]:g} degrees about its two level '
            'axes; a URDF cannot say so: give gravity where it is used'
        )
        yield warning('base_tilt', 'base', angles, message)


def of_coupling(model: RobotModel) -> Iterator[Finding]:
    """Yield which drives turn with several joints."""
    for gears in model.coupling:
        name = coupled_name(model, gears)
        message = (
            f'a drive turns with {name}: its friction and rotor are in the identified YAML and an '
            'MJCF; in a URDF each joint has the friction of one that moves alone'
        )
        yield note('coupled_drive', name, tuple(gears.tolist()), message)


def of_delay(delay: float, deviation: float) -> Iterator[Finding]:
    """Yield that efforts are stamped late, or early, where that is certain."""
    if abs(delay) > max(LATE, LATE_SIGMAS * deviation):
        message = f'efforts of all joints are stamped {delay:.3g} s after the motion'
        yield note('delay', 'effort', float(f'{delay:.3g}'), message)


def of_validation(errors: Sequence[RecordingErrors]) -> Iterator[Finding]:
    """Yield whether errors are held out at all."""
    held_out = [each for each in errors if each.role == 'validation']
    if not held_out:
        message = (
            'no validation recordings were given: errors on other motions are those of blocked '
            'cross-validation'
        )
        yield note('no_validation', 'validation', 0, message)
    for number, each in enumerate(held_out, start=1):
        if each.repeats_training:
            element, error = f'validation recording {number}', each.relative('identified')
            message = (
                f'{element} repeats a motion that was trained with: its error of {error:.2%} '
                'proves nothing'
            )
            yield warning('repeated_motion', element, float(f'{error:.3g}'), message)


def of_result(
    model: RobotModel, found: DriveModel, errors: Sequence[RecordingErrors]
) -> Iterator[Finding]:
    """Yield where the result is no better than what was known, or far from it."""
    roles = {each.role for each in errors}
    role = 'validation' if 'validation' in roles else 'training'
    judged = [each for each in errors if each.role == role]
    size, left, before, moving, moving_left = (
        np.sqrt(np.mean([getattr(each, name) ** 2 for each in judged], axis=0))
        for name in (
            'torque',
            'identified',
            'urdf_friction',
            'moving_torque',
            'identified_moving',
        )
    )
    ours, theirs = (float(np.linalg.norm(x) / np.linalg.norm(size)) for x in (left, before))
    if ours > _WORSE * theirs:
        message = (
            f'the result leaves {ours:.1%} of the effort in the {role} motions, the URDF with '
            f'friction only {theirs:.1%}'
        )
        yield warning('no_better_than_urdf', 'result', float(f'{ours:.3g}'), message)
    for name, whole, rest, slides in zip(
        model.joint_names, moving, moving_left, model.dh.prismatic, strict=True
    ):
        if rest > POOR * whole > 0.0:
            element, unit = f'joint {name!r}', force_unit(slides)
            message = (
                f'{element} is explained poorly: {rest:.3g} of {whole:.3g} {unit} are left while '
                f'it moves in the {role} motions'
            )
            if rest > whole:
                message += ', worse than to predict zero'
            finding = note if rest < _SMALL * moving.max() and role == 'training' else warning
            yield finding('joint_explained_poorly', element, float(f'{rest / whole:.3g}'), message)
    masses, known = found.model.inertial_parameters[:, 9], model.inertial_parameters[:, 9]
    bodies = [*zip(model.joint_names, masses, known, strict=True)]
    for name, mass, of_urdf in [('', masses.sum(), known.sum()), *bodies]:
        if of_urdf > 0.0 and not 1.0 / FAR < mass / of_urdf < FAR:
            element = f'link behind joint {name!r}' if name else 'arm'
            message = f'{element} has {mass:.3g} kg in the result, {of_urdf:.3g} kg in the URDF'
            yield (note if name else warning)('mass_far', element, float(f'{mass:.3g}'), message)
