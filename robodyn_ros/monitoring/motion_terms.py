# SPDX-License-Identifier: Apache-2.0
"""
Drive terms of one motion, refitted with the base parameters of the identified model frozen.

What the identified model leaves of the measured torques is linear in changes of the drive terms,
in velocity odd but for the offset, and in the ten parameters of a body at the tip, whose torque is
even in velocity:

    tau - tau_model = dFv qd + dFc s + dmu |tau_rigid| s + doffset + Y_tip(q, qd, qdd) dpayload

The payload is common to all joints and the drive terms are not, so that a payload does not pass
for friction, nor friction for a payload.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from robodyn_ros.errors import InsufficientRecording, Phrase
from robodyn_ros.identification import Identification, Recording
from robodyn_ros.identification.effort_examination import effort_doubts
from robodyn_ros.identification.noise import (
    MEDIAN_TO_DEVIATION,
    Noise,
    floored,
    huber_weights,
    rms,
    typical,
)
from robodyn_ros.identification.preparation import band_with_cutoff, even_samples, states_of
from robodyn_ros.identification.regression import Regression, Solution
from robodyn_ros.identification.rows import (
    LEAST_ROWS,
    Rows,
    payload_columns,
    rows_of,
    with_payload_parameters,
)
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

TERMS = ('viscous', 'coulomb', 'load')
"""What friction is made of, in the order of the columns of ``MotionTerms.terms``."""

_NAMES = ('Fv', 'Fc', 'mu')
_ROUNDS = 2  # friction that grows with load needs the payload
# A push: residuals beyond so many robust deviations, so many of the model's, and so much of the
# friction, for so long [s]; and what is left out before and behind it [s].
_PUSH, _BAND, _SMALL, _DWELL, _MARGIN = 5.0, 3.0, 0.25, 0.1, 0.3
_LARGE_BAND = 10.0
_PASSES = 2
MOST_LEFT_OUT = 0.5
"""Of a motion; of one that is pushed for longer nothing is said."""
# Prior deviations: of a drive term relative to what it would be if it were all of the torque's
# tenth, and of the payload's parameters if each were ten times the torque: neither holds anything
# that the motion shows.
_TERM, _PAYLOAD = 1.0, 10.0
_LEAST_FRICTION = 1e-3  # of the rms torque: less friction than that is none to compare with


@dataclass(frozen=True, eq=False, repr=False)
class MotionTerms(Record):
    """
    How far the drives of n joints are from the identified model in one motion.

    NaN stands where the motion, or the model, says nothing.

    Attributes
    ----------
    friction, friction_deviation : array, shape (n,)
        Change of the friction torque, rms over the motion, relative to the model's.
    terms, term_deviation : array, shape (n, 3)
        The same of each of ``TERMS``.
    level : array, shape (n,)
        The model's friction torque, rms over the motion [N m or N].
    offset, offset_deviation : array, shape (n,)
        Change of the offset [N m or N].
    payload, payload_deviation : array, shape (4,)
        What the tip link carries beyond the model: mass [kg] and first moment [kg m].
    residual : array, shape (n,)
        Rms of what the refitted model leaves [N m or N].
    left_out : float
        Fraction of the rows in which something pushed the arm.
    duration : float
        [s]
    digest : str
        Of the samples; the same motion again has the same.
    """

    friction: FloatArray
    friction_deviation: FloatArray
    terms: FloatArray
    term_deviation: FloatArray
    level: FloatArray
    offset: FloatArray
    offset_deviation: FloatArray
    payload: FloatArray
    payload_deviation: FloatArray
    residual: FloatArray
    left_out: float
    duration: float
    digest: str


@one_thread()
def motion_terms(found: Identification, recording: Recording) -> MotionTerms:
    """
    Return the drive terms of one motion relative to those of the identified model.

    Parameters
    ----------
    found : Identification
        The baseline: its bodies, rotor inertia and friction curve stay as they are.
    recording : Recording
        One motion, of seconds to a minute, in the unit that the model was identified in.

    Raises
    ------
    NoSuchName
        A joint of the model is not recorded.
    InsufficientRecording
        There is hardly any motion, something pushed the arm during most of it, or its efforts are
        of another unit, sign or order than the model's.

    Notes
    -----
    Deviations are of the residual's rms times the root of its autocorrelation time. Rows are left
    out in which residuals of the refitted model exceed five robust deviations, three of those that
    the identified model claims, and a quarter of the friction, for a tenth of a second: something
    pushed the arm. Friction that changed does not look like that, for it is refitted first.
    """
    fit = _Refit.of(found, recording)
    weights = np.ones_like(fit.effort)
    payload = np.zeros(10)
    for _ in range(_ROUNDS):
        solution = fit.solved(payload, weights)
        payload = solution.common
        weights = huber_weights(solution.residual, fit.used)
    # Without and with what it carries: a load alone may make a wrist's efforts many times larger.
    model = found.drive_model.model
    loaded = model.with_inertial_parameters(with_payload_parameters(model, payload))
    doubts = effort_doubts(model, fit.stretches)
    if doubts and effort_doubts(loaded, fit.stretches):
        raise InsufficientRecording(
            'recording',
            Phrase('; '.join(map(str, doubts))),
            'efforts as those that the model was identified from',
        )
    limits = fit.limits(solution)
    for _ in range(_PASSES):
        pushed = fit.pushed(solution.residual, limits)
        fit = fit.without(pushed)
        solution = fit.solved(solution.common, np.ones_like(weights))
        if not pushed.any():
            break
    return fit.terms_of(solution, recording)


@dataclass(frozen=True, eq=False)
class _Refit:
    """The rows of a motion, and what the identified model says of them."""

    found: Identification
    stretches: tuple[Rows, ...]
    effort: FloatArray
    rigid: FloatArray
    tip: FloatArray
    used: np.ndarray
    could_be_used: int

    @classmethod
    def of(cls, found: Identification, recording: Recording) -> _Refit:
        """
        Return the rows of a recording.

        Raises
        ------
        NoSuchName, InsufficientRecording
        """
        drive = found.drive_model
        model = drive.model.with_rotor_inertia(np.zeros(drive.model.n))
        cut = even_samples(recording.of_joints(model.joint_names))
        band = band_with_cutoff(found.cutoff, cut)
        silent = ~np.any([each.effort.any(axis=0) for each in cut], axis=0)
        stretches = tuple(
            rows_of(model, states_of(each, band), drive.effort_scale, silent) for each in cut
        )
        inertial = np.concatenate([each.inertial for each in stretches])
        used = np.concatenate([each.used for each in stretches])
        if (used.sum(axis=0) < LEAST_ROWS).all():
            raise InsufficientRecording(
                'recording',
                Phrase(f'{used.sum(axis=0).max()} rows in motion'),
                f'{LEAST_ROWS} at least',
            )
        return cls(
            found,
            stretches,
            np.concatenate([each.effort for each in stretches]),
            inertial @ model.inertial_parameters.ravel()
            + np.concatenate(
                [each.coupled_torque(drive.model, drive.terms.presliding) for each in stretches]
            ),
            np.concatenate([payload_columns(model, each) for each in stretches]),
            used,
            int(used.any(axis=1).sum()),
        )

    @property
    def ends(self) -> np.ndarray:
        """Where the rows of a stretch end and those of the next one begin."""
        return np.cumsum([len(each.effort) for each in self.stretches])[:-1]

    @property
    def names(self) -> tuple[str, ...]:
        """The drive terms that are refitted: those of the model."""
        return tuple(name for name in _NAMES if name in self.found.terms.names)

    def drive(self, payload: FloatArray) -> FloatArray:
        """Return the columns of all the model's drive terms under a payload, (K, n, count)."""
        drive = self.found.drive_model
        parts = []
        for each in self.stretches:
            torque = None
            if drive.terms.load:
                bodies = with_payload_parameters(drive.model, payload)
                torque = each.rigid_torque(drive.model, bodies)
            parts.append(each.drive(drive.terms, torque))
        return np.concatenate(parts)

    def solved(self, payload: FloatArray, weights: FloatArray) -> Solution:
        """
        Return the changes that explain what the model leaves, by weighted least squares.

        Parameters
        ----------
        payload : array, shape (10,)
            For friction that grows with load.
        weights : array, shape (K, n)
            Square roots of the rows' weights.
        """
        drive, known = self.drive(payload), self.found.drive_model
        columns = drive[..., [known.terms.names.index(name) for name in (*self.names, 'offset')]]
        rest = self.effort - self.rigid - (drive * known.coefficients).sum(axis=-1)
        size = typical(self.effort)
        regression = Regression(self.tip, columns, rest, weights * self.used)
        prior, noise = self._prior(columns, size), floored(known.residual, size)
        for _ in range(2):  # the second time with the noise that the first one left
            found = regression.solved(noise, prior)
            left, used = (np.split(each, self.ends) for each in (found.residual, self.used))
            noise = Noise.of(left, used, size).scale
        return found

    def _prior(self, columns: FloatArray, size: FloatArray) -> FloatArray:
        """Return prior deviations of the payload's parameters and of the terms, joint by joint."""
        tip = np.sqrt((self.tip**2).mean(axis=0)) / size[:, None]
        per_unit = np.maximum(tip.max(axis=0), 1e-9)
        of_terms = np.sqrt((columns**2).mean(axis=0))
        wide = _TERM * size[:, None] / np.maximum(of_terms, 1e-6)
        return np.concatenate([_PAYLOAD / per_unit, wide.ravel()])

    def limits(self, solution: Solution) -> FloatArray:
        """Return the residuals (n,) beyond which something pushes a joint [N m or N]."""
        drive = self.drive(solution.common)
        level = rms(self._friction(drive), self.used)
        robust = [
            MEDIAN_TO_DEVIATION * float(np.median(np.abs(residual[mine]))) if mine.any() else 0.0
            for residual, mine in zip(solution.residual.T, self.used.T)
        ]
        known = self.found.drive_model.residual
        limit = np.maximum.reduce([_PUSH * np.array(robust), _BAND * known, _SMALL * level])
        # Where pushes are so many that they are the rule, they are pushes all the same.
        return np.minimum(limit, np.maximum(_LARGE_BAND * known, level))

    def pushed(self, residual: FloatArray, limits: FloatArray) -> np.ndarray:
        """Return the rows (K,) in which something pushed the arm, and those around them."""
        rate = self.stretches[0].states.band.row_rate
        dwell = max(2, int(np.ceil(_DWELL * rate)))
        beyond = np.zeros(len(residual), dtype=bool)
        for mine in (self.used & (np.abs(residual) > limits)).T:
            beyond |= _long(mine, dwell)
        margin = int(np.ceil(_MARGIN * rate))
        return np.convolve(beyond, np.ones(2 * margin + 1), mode='same') > 0.5

    def _friction(self, drive: FloatArray) -> FloatArray:
        """Return the model's friction torque, shape (K, n), from the drive's columns."""
        known = self.found.drive_model
        chosen = [k for k, name in enumerate(known.terms.names) if name not in ('Ia', 'offset')]
        return (drive[..., chosen] * known.coefficients[:, chosen]).sum(axis=-1)

    def without(self, pushed: np.ndarray) -> _Refit:
        """
        Return the rows but those in which something pushed the arm.

        Raises
        ------
        InsufficientRecording
            Those are most of them.
        """
        used = self.used & ~pushed[:, None]
        left = 1.0 - float(used.any(axis=1).sum()) / self.could_be_used
        if left > MOST_LEFT_OUT or (used.sum(axis=0) < LEAST_ROWS).all():
            raise InsufficientRecording(
                'recording',
                Phrase(f'pushed during {left:.0%} of it'),
                'a motion that nothing touches',
            )
        return replace(self, used=used)

    def terms_of(self, solution: Solution, recording: Recording) -> MotionTerms:
        """Return the record of a solution."""
        known, n = self.found.drive_model, self.effort.shape[1]
        names, width = known.terms.names, len(self.names) + 1
        drive = self.drive(solution.common)
        of_model = self._friction(drive)
        level = rms(of_model, self.used)
        size = rms(self.effort, self.used)
        unknown: FloatArray = np.full(n, np.nan)
        friction, friction_deviation = unknown.copy(), unknown.copy()
        offset, offset_deviation = unknown.copy(), unknown.copy()
        terms, term_deviation = np.full((n, len(TERMS)), np.nan), np.full((n, len(TERMS)), np.nan)
        for j in range(n):
            mine = self.used[:, j]
            if mine.sum() < LEAST_ROWS:
                continue
            at = slice(10 + j * width, 10 + (j + 1) * width)
            covariance = solution.factor[at] @ solution.factor[at].T
            offset[j] = solution.own[j, -1]
            offset_deviation[j] = np.sqrt(covariance[-1, -1])
            if level[j] < _LEAST_FRICTION * max(size[j], 1e-9):
                continue
            # Projected onto the model's own friction along the motion: by how much of it the
            # change makes friction larger.
            own = drive[mine, j][:, [names.index(name) for name in self.names]]
            shape = of_model[mine, j] @ own / (len(own) * level[j] ** 2)
            friction[j] = shape @ solution.own[j, :-1]
            friction_deviation[j] = np.sqrt(shape @ covariance[:-1, :-1] @ shape)
            for k, name in enumerate(self.names):
                reference = known.coefficients[j, names.index(name)]
                if name == 'Fc' and known.terms.curve:
                    # What the curve comes to at speed counts as Coulomb friction.
                    reference = (
                        reference
                        + known.coefficients[j, [names.index('c1'), names.index('c2')]].sum()
                    )
                if reference <= 0.0:
                    continue
                terms[j, _NAMES.index(name)] = solution.own[j, k] / reference
                term_deviation[j, _NAMES.index(name)] = np.sqrt(covariance[k, k]) / reference
        carried = [9, 6, 7, 8]  # mass, first moment
        return MotionTerms(
            friction=friction,
            friction_deviation=friction_deviation,
            terms=terms,
            term_deviation=term_deviation,
            level=level,
            offset=offset,
            offset_deviation=offset_deviation,
            payload=solution.common[carried],
            payload_deviation=np.linalg.norm(solution.factor[carried], axis=1),
            residual=rms(solution.residual, self.used),
            left_out=1.0 - float(self.used.any(axis=1).sum()) / self.could_be_used,
            duration=recording.duration,
            digest=motion_digest(recording),
        )


def _long(chosen: np.ndarray, least: int) -> np.ndarray:
    """Return the runs of chosen rows that are so long at least."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(int)))
    result = np.zeros_like(chosen)
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist()):
        result[first:last] = last - first >= least
    return result


def motion_digest(recording: Recording) -> str:
    """Return what tells whether two recordings have the same samples."""
    content = hashlib.sha256()
    for array in (recording.time, recording.position, recording.effort):
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:16]
