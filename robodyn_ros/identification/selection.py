# SPDX-License-Identifier: Apache-2.0
"""
Selection of drive terms, of coupled drives, and of a tilt of the base, by cross-validation.

This is blocked cross-validation: every stretch is cut into four blocks in time, which leave their
turn out of the training. All rows are compressed once, for all candidates and blocks together, so
that a candidate costs four solves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robodyn_ros.identification.drive_terms import (
    PRESLIDING_DISPLACEMENTS,
    DriveTerms,
    candidates,
)
from robodyn_ros.identification.estimator import Estimate, estimate
from robodyn_ros.identification.factors import JointFactor, Layout, joint_factors
from robodyn_ros.identification.fit import Fit, drive_deviation, fitted, problem_of
from robodyn_ros.identification.noise import Noise, floored
from robodyn_ros.identification.prior import Prior
from robodyn_ros.identification.rows import Rows, gravity_columns, tilted
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_BLOCKS = 4
# A candidate so much worse than the best one is as good, if it is plainer.
_TOLERANCE = 0.03
_DISPLACEMENTS = (0.0, *PRESLIDING_DISPLACEMENTS)
_RICHEST = tuple(DriveTerms(displacement, True, True) for displacement in _DISPLACEMENTS)
_TILT = 2
# A coupled drive must lower the error of each of its joints, in cross-validation and before it.
_LARGEST_COUPLED, _LARGEST_PROMISING = 0.8, 0.9
# A tilt must pay in cross-validation, be large, and be certain.
_LARGEST_ERROR = 0.9
_LEAST_ANGLE = np.radians(0.5)
_LEAST_CERTAINTY = 5.0


@dataclass(frozen=True, eq=False)
class Score:
    """
    How well a candidate predicts the blocks that it was not trained with.

    Attributes
    ----------
    terms : DriveTerms
    tilt : bool
        Whether a tilt of the base was estimated, too.
    coupled : tuple of int
        Which of the cross-validation's coupled drives were.
    deviation : array, shape (n,)
        Rms error of each joint [N m or N].
    relative_error : float
        Of all joints together, relative to the measured torques.
    typical_deviation : float
        Geometric mean of the joints' rms errors [N m or N]: what candidates are compared by. It
        is the likelihood of the errors with each joint's own noise, so that the strongest joint
        does not decide for all.
    converged : bool
    """

    terms: DriveTerms
    tilt: bool
    coupled: tuple[int, ...]
    deviation: FloatArray
    relative_error: float
    typical_deviation: float
    converged: bool


class CrossValidation:
    """
    The rows of all blocks, compressed, and what candidates make of them.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
    prior : Prior
    baseline : Fit
        Of the plainest terms: friction that grows with load takes the rigid body's torque from it,
        a tilt the gravity torques, and every candidate the correlation of its residuals.
    coupling : array, shape (M, n)
        Of the coupled drives to choose from.
    """

    def __init__(
        self,
        model: RobotModel,
        rows: Sequence[Rows],
        prior: Prior,
        baseline: Fit,
        coupling: FloatArray,
    ) -> None:
        self._model, self._rows, self._prior, self._baseline = model, rows, prior, baseline
        self.coupling = coupling
        self._richest = Layout(model.n, sum(terms.count for terms in _RICHEST), _TILT)
        columns = [self._columns(each) for each in rows]
        self._held_out = [self._compressed(columns, _in_motion, block) for block in range(_BLOCKS)]
        used = [
            self._compressed(columns, lambda each: each.used, block) for block in range(_BLOCKS)
        ]
        self._training = [
            _joined([used[other] for other in range(_BLOCKS) if other != block])
            for block in range(_BLOCKS)
        ]
        self._all = _joined(used)

    def score(
        self, terms: DriveTerms, *, tilt: bool = False, coupled: tuple[int, ...] = ()
    ) -> Score:
        """Return how well a candidate predicts blocks that it was not trained with."""
        n = self._model.n
        common = len(coupled) * terms.coupled_count + (_TILT if tilt else 0)
        layout = Layout(n, terms.count, common)
        chosen = self._chosen(terms, tilt, coupled)
        coupling = self.coupling[list(coupled)]
        deviation = drive_deviation(terms, self._model, self._prior, self._rows)
        noise = self._baseline.noise
        # The noise of the candidate itself, from a fit to everything.
        whole, start = self._solved(
            self._all, chosen, layout, terms, noise, deviation, coupling, None
        )
        sizes = np.array(
            [
                factor.squared_residual(start.x[layout.columns(joint)]) / max(factor.count, 1)
                for joint, factor in enumerate(whole)
            ]
        )
        noise = Noise(floored(np.sqrt(sizes), self._torque), noise.correlation)
        squares = np.zeros(n)
        converged = start.converged
        for training, held_out in zip(self._training, self._held_out, strict=True):
            _, found = self._solved(
                training, chosen, layout, terms, noise, deviation, coupling, start
            )
            converged &= found.converged
            for joint, factor in enumerate(held_out):
                of_joint = factor.of_columns(chosen[joint])
                squares[joint] += of_joint.squared_residual(found.x[layout.columns(joint)])
        counts = self._counts
        total = float((self._torque**2 * counts).sum())
        sizes = np.sqrt(squares / np.maximum(counts, 1))
        return Score(
            terms=terms,
            tilt=tilt,
            coupled=coupled,
            deviation=sizes,
            relative_error=float(np.sqrt(squares.sum() / total)),
            typical_deviation=float(np.exp(np.log(floored(sizes, self._torque)).mean())),
            converged=converged,
        )

    def chosen(
        self,
        among: Sequence[DriveTerms] | None = None,
        progress: Callable[[], None] | None = None,
        coupled: tuple[int, ...] = (),
    ) -> tuple[Score, tuple[Score, ...]]:
        """
        Return the plainest candidate within 3 % of the best, and the scores of all.

        Parameters
        ----------
        among : sequence of DriveTerms, optional
            The dozen of ``candidates()`` where not given.
        progress : callable, optional
            Called after each.
        coupled : tuple of int, optional
            Coupled drives that all candidates have.
        """
        scores = []
        for terms in candidates() if among is None else among:
            scores.append(self.score(terms, coupled=coupled))
            if progress is not None:
                progress()
        best = (1 + _TOLERANCE) * min(score.typical_deviation for score in scores)
        good = [score for score in scores if score.typical_deviation <= best]
        plainest = min(good, key=lambda score: (score.terms.complexity, score.typical_deviation))
        return plainest, tuple(scores)

    def more_coupled(self, best: Score) -> tuple[int, ...]:
        """
        Return the coupled drives of a score and the best further one, where it is worth it.

        It is where it lowers the error of each of its joints by a fifth, and the score without it
        is not within 3 % of that with it.
        """
        found = best
        for k, gears in enumerate(self.coupling):
            if k not in best.coupled and self._is_promising(best, k):
                score = self.score(best.terms, coupled=(*best.coupled, k))
                is_felt = score.deviation <= _LARGEST_COUPLED * best.deviation
                if is_felt[gears != 0].all() and score.typical_deviation < found.typical_deviation:
                    found = score
        worth = best.typical_deviation > (1 + _TOLERANCE) * found.typical_deviation
        return found.coupled if worth else best.coupled

    def _is_promising(self, best: Score, further: int) -> bool:
        """Return whether least squares needs a further drive in each of its joints."""
        without = self._chosen(best.terms, False, best.coupled)
        with_it = self._chosen(best.terms, False, (*best.coupled, further))
        for joint in np.flatnonzero(self.coupling[further]):
            plain, coupled = (
                self._all[joint].of_columns(columns[joint]).free_deviation
                for columns in (without, with_it)
            )
            if coupled > _LARGEST_PROMISING * plain:
                return False
        return True

    def _solved(
        self,
        factors: Sequence[JointFactor],
        chosen: Sequence[FloatArray],
        layout: Layout,
        terms: DriveTerms,
        noise: Noise,
        deviation: FloatArray,
        coupling: FloatArray,
        start: Estimate | None,
    ) -> tuple[list[JointFactor], Estimate]:
        mine = [factor.of_columns(columns) for factor, columns in zip(factors, chosen)]
        problem = problem_of(mine, layout, terms, noise.scale, deviation, self._prior, coupling)
        return mine, estimate(problem, start)

    @cached_property
    def _counts(self) -> FloatArray:
        return np.array(
            [sum(block[j].count for block in self._held_out) for j in range(self._model.n)]
        )

    @cached_property
    def _torque(self) -> FloatArray:
        """The rms of each joint's torque over all blocks (n,)."""
        squares = np.zeros(self._model.n)
        for block in self._held_out:
            squares += [float(factor.triangle[:, -1] @ factor.triangle[:, -1]) for factor in block]
        return np.sqrt(squares / np.maximum(self._counts, 1))

    def _columns(self, rows: Rows) -> tuple[FloatArray, FloatArray]:
        """Return the drive columns of the richest candidates, the tilt's and coupled drives'."""
        parameters = self._baseline.inertial_parameters
        torque = rows.rigid_torque(self._model, parameters)
        drive = np.concatenate([rows.drive(terms, torque) for terms in _RICHEST], axis=-1)
        tilt = gravity_columns(self._model, parameters, rows.states)
        coupled = [rows.coupled(terms, self.coupling) for terms in _RICHEST]
        return drive, np.concatenate([tilt, *coupled], axis=-1)

    def _compressed(
        self,
        columns: Sequence[tuple[FloatArray, FloatArray]],
        mask: Callable[[Rows], np.ndarray],
        block: int,
    ) -> list[JointFactor]:
        parts = []
        for each, (drive, common) in zip(self._rows, columns, strict=True):
            edges = np.linspace(0, len(each.effort), _BLOCKS + 1).astype(int)
            inside = slice(edges[block], edges[block + 1])
            weight = mask(each)[inside].astype(float)
            parts.append(
                (each.inertial[inside], drive[inside], common[inside], each.effort[inside], weight)
            )
        return joint_factors(*(np.concatenate(group) for group in zip(*parts, strict=True)))

    def _chosen(self, terms: DriveTerms, tilt: bool, coupled: tuple[int, ...]) -> list[FloatArray]:
        """Return the numbers of a candidate's columns among each joint's compressed ones."""
        kind = _DISPLACEMENTS.index(terms.presliding)
        names = _RICHEST[kind].names
        offset = kind * len(names)
        drive = [offset + names.index(name) for name in terms.names]
        names, count = _RICHEST[kind].coupled_names, len(self.coupling)
        own = [
            _TILT + (kind * count + k) * len(names) + names.index(name)
            for k in coupled
            for name in terms.coupled_names
        ]
        own += range(_TILT if tilt else 0)
        result = []
        for joint in range(self._model.n):
            links = 10 * (self._model.n - joint)
            common = [links + self._richest.terms + k for k in own]
            result.append(np.r_[0:links, [links + k for k in drive], common].astype(int))
        return result


def _in_motion(rows: Rows) -> np.ndarray:
    """Return all joints' rows while any joint moves: where all stand, stiction decides."""
    return rows.moving.any(axis=1, keepdims=True) & ~rows.states.row_clipped


def _joined(blocks: Sequence[Sequence[JointFactor]]) -> list[JointFactor]:
    return [JointFactor.joined(parts) for parts in zip(*blocks, strict=True)]


# --- the tilt of the base ------------------------------------------------------------------------


def chosen_tilt(
    model: RobotModel,
    rows: Sequence[Rows],
    prior: Prior,
    validator: CrossValidation,
    best: Score,
    wanted: bool | str,
) -> tuple[FloatArray, FloatArray, RobotModel, Score]:
    """
    Return tilt and its deviation, (2,) each [rad], the model with it, and its score.

    Parameters
    ----------
    model : RobotModel
    rows : sequence of Rows
    prior : Prior
    validator : CrossValidation
    best : Score
        Of the drive terms without a tilt.
    wanted : bool or 'auto'
        Whether one is estimated; ``'auto'``: where it lowers the cross-validated error by a tenth,
        and exceeds half a degree and five of its standard deviations.
    """
    none = np.zeros(2)
    if wanted is False or not model.gravity.any():
        return none, none, model, best
    score = validator.score(best.terms, tilt=True, coupled=best.coupled)
    # The score, of compressed rows, is cheap; the fit goes over all rows again and again.
    if wanted == 'auto' and score.typical_deviation > _LARGEST_ERROR * best.typical_deviation:
        return none, none, model, best
    coupling = validator.coupling[list(best.coupled)]
    fit = fitted(model, rows, prior, best.terms, coupling=coupling, tilt=True)
    factor = fit.estimate.deviation_factor[-2:]
    covariance = factor @ factor.T
    if wanted == 'auto' and not _is_large_and_certain(fit.common, covariance):
        return none, none, model, best
    deviation = np.sqrt(np.diagonal(covariance))
    return fit.common, deviation, tilted(model, fit.common), score


def _is_large_and_certain(tilt: FloatArray, covariance: FloatArray) -> bool:
    angle = float(np.linalg.norm(tilt))
    if angle < _LEAST_ANGLE:
        return False
    along = tilt / angle
    return angle > _LEAST_CERTAINTY * float(np.sqrt(along @ covariance @ along))
