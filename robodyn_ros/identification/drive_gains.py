# SPDX-License-Identifier: Apache-2.0
"""
The torque per unit of recorded effort, from a load of known mass.

Efforts in the recorded unit are explained by gains, bodies, the load and the drives' terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.arguments import checked_number
from robodyn_ros.description.records import Finding, warning
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.effort_examination import examined
from robodyn_ros.identification.findings import check_rows
from robodyn_ros.identification.fit import drive_deviation, first_noise
from robodyn_ros.identification.noise import Noise, typical
from robodyn_ros.identification.parameters import bare_base_parameters
from robodyn_ros.identification.prior import LOAD_REACH, Prior, prior_pseudo_inertia
from robodyn_ros.identification.recording import Recording, checked_recordings, findings_of
from robodyn_ros.identification.regression import Regression
from robodyn_ros.identification.rows import Rows, TrainingData, payload_columns
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

_MOST_STEPS = 60
_REACHED = 1e-6
_LONGEST_STEP = 0.5
# A gain is known where its relative deviation is below this.
_KNOWN = 0.1
_TERMS = DriveTerms(presliding=1e-4, curve=True, load=True)
# Of a gain before anything is measured, relative to the first guess: a factor of twenty.
_GAIN = 3.0
# Base parameters and drive terms are held this loosely, relative to what they do to the effort.
_LOOSE = 3.0
_LOAD_ROUNDS = 3


@dataclass(frozen=True, eq=False, repr=False)
class DriveGains(Record):
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
        Which gains remain unknown.
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
    inertia unknown. Its mass fixes the scale of all joints that carry it; bodies that several
    joints carry fix that of the others.

    Without a load the gains of joints that carry something in common are known in proportion to
    one another: all of them may be off by one factor, which is chosen as the model's masses have
    it. Then ``known`` and ``deviation`` are about their proportions.

    Parameters
    ----------
    model : RobotModel
        Its masses are only initial values.
    unloaded, loaded : Recording or sequence of Recording
        Of like motions, on one day: friction changes with temperature. All joints should move.
    mass : float
        Of the load at the tip link [kg].

    Raises
    ------
    InvalidArgument
        The mass is not a positive number, or only one of load and mass is given.
    NoSuchName, InsufficientRecording

    Notes
    -----
    Residuals are in the recorded unit, their weights each joint's own. Gauss-Newton on log K with
    base parameters, load and drive terms; friction that grows with load by a fixed point.
    """
    checked_model(model)
    is_relative = loaded is None
    if is_relative != (mass is None):
        raise InvalidArgument('argument mass', mass, 'a load and its mass [kg], or neither')
    if mass is not None and not 0.0 < checked_number('mass', mass) < np.inf:
        raise InvalidArgument('argument mass', mass, 'a positive number [kg]')
    without, with_load = (
        checked_recordings('unloaded', unloaded),
        [] if loaded is None else checked_recordings('loaded', loaded),
    )
    training = TrainingData.of(model, [*without, *with_load])
    rows = training.rows(model, np.ones(model.n))
    check_rows(model, rows)
    is_loaded = [k >= len(without) for k in training.recording_of_rows]
    first = _first_gain(model, rows, is_loaded)
    regression = _GainRegression.of(model, rows, is_loaded, mass or 1.0, first)
    gain, converged = first, False
    noise = first_noise(rows).scale
    for _ in range(_MOST_STEPS):
        step, solution, factor, noise = regression.step(gain, noise)
        gain = gain * np.exp(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        if np.abs(step).max() < _REACHED:
            converged = True
            break
    center = solution[-3:] / mass if mass else np.full(3, np.nan)
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
        (
            *findings_of(training.recordings),
            *_findings(model, deviation, known, is_relative=is_relative, converged=converged),
        ),
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
) -> Iterator[Finding]:
    load = 'what it carries with other joints'
    told_by = f'{load} does not tell' if is_relative else f'neither the load nor {load} tells'
    for name, each, sure in zip(model.joint_names, deviation, known, strict=True):
        if not sure:
            element = f'joint {name!r}'
            message = f'{element} has an unknown gain, uncertain by {each:.0%}: {told_by} it'
            yield warning('gain_unknown', element, float(f'{each:.3g}'), message)
    if is_relative and known.any():
        message = (
            f'{known.sum()} of {model.n} gains are known in proportion; their common factor '
            "comes from the model's masses"
        )
        yield warning('gains_relative', 'gains', int(known.sum()), message)
    if not converged:
        message = f'the gains did not settle in {_MOST_STEPS} steps'
        yield warning('not_converged', 'gains', _MOST_STEPS, message)


def _first_gain(model: RobotModel, rows: Sequence[Rows], is_loaded: Sequence[bool]) -> FloatArray:
    empty = [each for each, loaded in zip(rows, is_loaded, strict=True) if not loaded]
    return np.abs(examined(model, empty).effort_scale)


# --- the regression ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _GainRegression:
    """
    Rows of all joints, in the recorded unit once divided by the gains.

    Attributes
    ----------
    rigid : array, shape (K, n, b)
        Columns of the base parameters, then of the load's nine unknown ones.
    known : array, shape (K, n)
        Torque of the known mass at the tip's origin.
    first : array, shape (b,)
        The parameters to begin with.
    spread : array, shape (b,)
        How far they may be off.
    drive_spread : array, shape (n, terms)
        How large the drives' terms may be.
    """

    rows: Sequence[Rows]
    rigid: FloatArray
    known: FloatArray
    first: FloatArray
    spread: FloatArray
    drive_spread: FloatArray
    effort: FloatArray
    used: np.ndarray
    size: FloatArray

    @classmethod
    def of(
        cls,
        model: RobotModel,
        rows: Sequence[Rows],
        is_loaded: Sequence[bool],
        mass: float,
        gain: FloatArray,
    ) -> _GainRegression:
        """
        Return the regression of rows, some of which are with a load of a mass [kg].

        The gains (n,) say how large rotors may be, in the recorded unit.

        Raises
        ------
        NoSuchName
            The tip link does not move.
        """
        base = bare_base_parameters(model)
        columns, known = [], []
        for each, loaded in zip(rows, is_loaded, strict=True):
            load = payload_columns(model, each) * float(loaded)
            columns.append(
                np.concatenate([each.inertial[..., list(base.columns)], load[..., :9]], axis=-1)
            )
            known.append(mass * load[..., 9])
        effort = np.concatenate([each.effort for each in rows])
        used = np.concatenate([each.used for each in rows])
        first = base.regrouping @ model.inertial_parameters.ravel()
        drive = drive_deviation(_TERMS, model, Prior(prior_pseudo_inertia(model)[0], 1.0), rows)
        drive[:, 0] /= gain
        # What would give each column the size of the largest torque it can have a part in.
        largest = np.abs(base.regrouping) @ np.abs(model.inertial_parameters).ravel()
        inertia, moment = mass * LOAD_REACH**2, mass * LOAD_REACH
        return cls(
            rows,
            np.concatenate(columns),
            np.concatenate(known),
            np.concatenate([first, np.zeros(9)]),
            np.concatenate(
                [_LOOSE * np.maximum(largest, 1e-3), np.full(6, inertia), np.full(3, moment)]
            ),
            drive,
            effort,
            used,
            typical(effort),
        )

    def step(
        self, gain: FloatArray, noise: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """
        Return the step of log K, the bodies' parameters, a factor F of the covariance F Fᵀ of
        log K (n, m), and the noise. The last three parameters are the load's first moment [kg m].

        Parameters
        ----------
        gain : array, shape (n,)
        noise : array, shape (n,)
            Deviation of the residuals, times the root of their autocorrelation time.
        """
        base = self.first
        common, rest = self.rigid / gain[:, None], self.effort - self.known / gain
        weight, wide = self.used.astype(float), self.drive_spread
        spread = np.concatenate([self.spread, wide.ravel()])
        first = np.concatenate([self.first, np.zeros(wide.size)])
        for _ in range(_LOAD_ROUNDS):
            # The load's friction needs the torque that is being estimated.
            drive = self._drive(gain, self.rigid @ base + self.known)
            found = Regression(common, drive, rest, weight).solved(noise, spread, first)
            base = found.common
        torque = self.rigid @ base + self.known
        # From there, with one column more: the step of log K.
        own = np.concatenate([-(torque / gain)[..., None], drive], axis=-1)
        wide = np.column_stack([np.full(len(gain), _GAIN), wide])
        first = np.column_stack([np.zeros(len(gain)), -found.own])
        step = Regression(common, own, found.residual, weight).solved(
            noise,
            np.concatenate([self.spread, wide.ravel()]),
            np.concatenate([self.first - base, first.ravel()]),
        )
        steps = len(base) + np.arange(len(gain)) * own.shape[-1]
        ends = np.cumsum([len(each.effort) for each in self.rows])[:-1]
        left, used = (np.split(each, ends) for each in (found.residual, self.used))
        return step.own[:, 0], base, step.factor[steps], Noise.of(left, used, self.size).scale

    def _drive(self, gain: FloatArray, rigid: FloatArray) -> FloatArray:
        """Return the drives' columns, (K, n, terms), load in the recorded unit."""
        plain = DriveTerms(_TERMS.presliding, _TERMS.curve)
        columns = np.concatenate([each.drive(plain) for each in self.rows])
        load = np.abs(rigid / gain) * columns[..., plain.names.index('Fc')]
        return np.concatenate([columns, load[..., None]], axis=-1)
