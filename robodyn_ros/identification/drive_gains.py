# SPDX-License-Identifier: Apache-2.0
"""What a unit of recorded effort is worth, from a load whose mass is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.arguments import checked_number
from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.description.records import Finding
from robodyn_ros.errors import InvalidNumber
from robodyn_ros.identification.effort_unit import assumed_effort_scale
from robodyn_ros.identification.findings import check_rows
from robodyn_ros.identification.gain_regression import GainRegression
from robodyn_ros.identification.recording import Recording, checked_recordings
from robodyn_ros.identification.rows import Rows
from robodyn_ros.identification.training_data import TrainingData
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

_MOST_STEPS = 60
_REACHED = 1e-6
_LONGEST_STEP = 0.5
# A gain is known where its relative deviation is below this.
_KNOWN = 0.1
# Noise to begin with, relative to a joint's rms effort.
_FIRST_NOISE = 0.05


@dataclass(frozen=True, eq=False, repr=False)
class DriveGains(ArrayRecord):
    """
    Torque for a unit of recorded effort.

    Attributes
    ----------
    joint_names : tuple of n str
    gain, deviation : array, shape (n,)
        [N m or N for a unit of effort]
    known : array of bool, shape (n,)
        Whether the recordings tell a joint's gain to a tenth; without a load, its proportion to
        the others that are known.
    center_of_mass : array, shape (3,)
        Of the load, in the tip link's frame [m]; NaN without one.
    findings : tuple of Finding
        Which joints cannot be told.
    converged : bool
    """

    joint_names: tuple[str, ...]
    gain: FloatArray
    deviation: FloatArray
    known: np.ndarray
    center_of_mass: FloatArray
    findings: tuple[Finding, ...]
    converged: bool

    def __repr__(self) -> str:
        gains = ', '.join(
            f'{gain:.4g}' if known else '?' for gain, known in zip(self.gain, self.known)
        )
        return f'DriveGains({gains})'


@one_thread()
def identify_drive_gains(
    model: RobotModel,
    unloaded: Recording | Sequence[Recording],
    loaded: Recording | Sequence[Recording] | None = None,
    mass: float | None = None,
) -> DriveGains:
    """
    Return what a unit of effort is worth, from recordings without and with a load of known mass.

    Both are explained together: with the same bodies and drives, the load's first moment and
    inertia unknown. Its mass fixes the scale of all joints that feel it, what they carry in common
    the others'.

    Without a load the gains of joints that carry something in common are known in proportion to
    one another: all of them may be off by one factor, which is chosen as the model's masses have
    it. Then ``known`` and ``deviation`` are about their proportions.

    Parameters
    ----------
    model : RobotModel
        Its masses are not believed, but begun with.
    unloaded, loaded : Recording or sequence of Recording
        Of like motions, on one day: friction changes with temperature. All joints should move.
    mass : float
        Of the load at the tip link [kg].

    Raises
    ------
    InvalidNumber
        The mass is not a positive number, or only one of load and mass is given.
    NoSuchJoint, TooShortRecording

    Notes
    -----
    Residuals are in the recorded unit, their weights each joint's own. Gauss-Newton on log K with
    base parameters, load and drive terms; friction that grows with load by a fixed point.
    """
    checked_model(model)
    is_relative = loaded is None
    if is_relative != (mass is None):
        raise InvalidNumber('argument mass', mass, 'a load and its mass [kg], or neither')
    if mass is not None and not 0.0 < checked_number('mass', mass) < np.inf:
        raise InvalidNumber('argument mass', mass, 'a positive number [kg]')
    without, with_load = (
        checked_recordings('unloaded', unloaded),
        [] if loaded is None else checked_recordings('loaded', loaded),
    )
    training = TrainingData.of(model, [*without, *with_load])
    rows = training.rows(model, np.ones(model.n))
    check_rows(model, rows)
    is_loaded = [k >= len(without) for k in training.recording_of_rows]
    regression = GainRegression.of(model, rows, is_loaded, mass or 1.0)
    first = _first_gain(model, rows, is_loaded)
    gain, converged = first, False
    noise = np.maximum(_FIRST_NOISE * regression.size, 1e-12)
    for _ in range(_MOST_STEPS):
        step, solution, factor, noise = regression.step(gain, noise)
        gain = gain * np.exp(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        if np.abs(step).max() < _REACHED:
            converged = True
            break
    center = regression.first_moment(solution) / mass if mass else np.full(3, np.nan)
    if is_relative:
        deviation, known = _proportions(factor)
        if known.any():
            gain = gain * np.exp(np.mean(np.log(first / gain)[known]))
    else:
        deviation = np.linalg.norm(factor, axis=1)
        known = deviation < _KNOWN
    return DriveGains(
        model.joint_names,
        gain,
        gain * deviation,
        known,
        center,
        tuple(_findings(model, deviation, known, is_relative=is_relative, converged=converged)),
        converged,
    )


def _proportions(factor: FloatArray) -> tuple[FloatArray, np.ndarray]:
    """
    Return the deviations of log K against the mean of those that are known so, and which are.

    The one that is known least is left out, until all that remain are known.
    """
    chosen = np.ones(len(factor), dtype=bool)
    while True:
        deviation = np.linalg.norm(factor - factor[chosen].mean(axis=0), axis=1)
        if chosen.sum() < 2:
            return deviation, np.zeros(len(factor), dtype=bool)
        worst = int(np.where(chosen, deviation, 0.0).argmax())
        if deviation[worst] < _KNOWN:
            return deviation, chosen
        chosen[worst] = False


def _findings(
    model: RobotModel,
    deviation: FloatArray,
    known: np.ndarray,
    *,
    is_relative: bool,
    converged: bool,
) -> list[Finding]:
    told_by = (
        'what it carries with other joints'
        if is_relative
        else ('neither the load nor what it carries with other joints')
    )
    verb = 'does not tell' if is_relative else 'tells'
    result = [
        Finding(
            'gain_unknown',
            'warning',
            f'joint {name!r}',
            float(f'{each:.3g}'),
            f'joint {name!r} has an unknown gain, uncertain by {each:.0%}: {told_by} {verb} it',
        )
        for name, each, sure in zip(model.joint_names, deviation, known, strict=True)
        if not sure
    ]
    if is_relative and known.any():
        result.append(
            Finding(
                'gains_relative',
                'warning',
                'gains',
                int(known.sum()),
                f'{known.sum()} of {model.n} gains are known in proportion; their common factor '
                "comes from the model's masses",
            )
        )
    if not converged:
        result.append(
            Finding(
                'not_converged',
                'warning',
                'gains',
                _MOST_STEPS,
                f'the gains did not settle in {_MOST_STEPS} steps',
            )
        )
    return result


def _first_gain(model: RobotModel, rows: Sequence[Rows], is_loaded: Sequence[bool]) -> FloatArray:
    empty = [each for each, loaded in zip(rows, is_loaded, strict=True) if not loaded]
    return np.abs(assumed_effort_scale(model, empty)[0])
