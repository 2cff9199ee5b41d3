# SPDX-License-Identifier: Apache-2.0
"""From random motions to the best of several local optima that keeps every limit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robodyn_ros.errors import NoExcitation
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion
from robodyn_ros.identification.exciting_motion.objective import Objective
from robodyn_ros.identification.exciting_motion.verification import LimitUse, limit_use
from robodyn_ros.identification.progress import Progress
from robodyn_ros.spatial import FloatArray

_FIRST_GUESSES = 60
_STARTS = 3
# One after the other: how much exceeded limits weigh, and how many steps of L-BFGS.
_STAGES = ((30.0, 60), (1e3, 80), (1e5, 60))
_BISECTIONS = 10
_LEAST_SCALE = 0.05
_SLACK = 1.1  # an amplitude that may be so many times larger is small on purpose


@dataclass(frozen=True, eq=False)
class Found:
    """A motion that keeps the limits, what it uses of them, and its criterion."""

    motion: FourierMotion
    use: LimitUse
    lost: float


def searched(objective: Objective, seed: int, progress: Progress) -> Found:
    """
    Return the best motion of a search from several starts.

    Parameters
    ----------
    objective : Objective
    seed : int
        Of the random motions that it begins at: the same seed gives the same motion.
    progress : callable
        Called with the fraction done and what is done.

    Raises
    ------
    NoExcitation
        No motion that keeps the limits was found.
    """
    generator = np.random.default_rng(seed)
    guesses = [objective.shapes.random(generator) for _ in range(_FIRST_GUESSES)]
    scores = [objective.value(objective.shapes.raw(x), _STAGES[0][0]) for x in guesses]
    order = np.argsort(scores, kind='stable')[:_STARTS]
    steps = sum(most for _, most in _STAGES)
    best: Found | None = None
    reasons = []
    for k, index in enumerate(order):

        def report(done: int, start: int = k) -> None:
            progress((start + done / steps) / _STARTS, f'start {start + 1} of {_STARTS}')

        x = optimised(objective, objective.shapes.raw(guesses[index]), report)
        found, reason = verified(objective, x)
        if found is None:
            reasons.append(reason)
        elif best is None or found.lost < best.lost:
            best = found
    if best is None:
        raise NoExcitation('motion', '; '.join(dict.fromkeys(reasons)), 'limits that leave room')
    return best


def optimised(objective: Objective, x: FloatArray, report: Callable[[int], None]) -> FloatArray:
    """Return numbers (n, size) of ``objective.shapes`` at a local optimum."""
    shape, done = x.shape, 0
    for penalty, most in _STAGES:

        def value_and_gradient(flat: FloatArray, penalty: float = penalty) -> Any:
            value, gradient = objective.gradient(flat.reshape(shape), penalty)
            return value, gradient.ravel()

        steps = itertools.count(done + 1)
        found = minimize(
            value_and_gradient,
            x.ravel(),
            jac=True,
            method='L-BFGS-B',
            callback=lambda _, steps=steps: report(next(steps)),
            options={'maxiter': most, 'maxcor': 20},
        )
        x = found.x.reshape(shape)
        done += most
        report(done)
    return x


def verified(objective: Objective, x: FloatArray) -> tuple[Found | None, str]:
    """
    Return the motion of numbers (n, size), as large as the limits allow, or why there is none.

    Its amplitudes are enlarged to the limits of position, velocity and acceleration, and made
    smaller until efforts and distances are kept at every time.
    """
    limits = objective.limits
    model = objective.knowledge.model

    def use(motion: FourierMotion) -> LimitUse:
        return limit_use(model, motion, objective.functions.torque, limits, objective.regions)

    whole = objective.shapes.motion(objective.shapes.inside(x))
    whole = _enlarged(whole, objective)
    used = use(whole)
    if used.excess(limits) > 0:
        reason = used.broken(model, limits)
        low, high, best = 0.0, 1.0, None
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            tried = whole.scaled(middle)
            used_then = use(tried)
            if used_then.excess(limits) > 0:
                high = middle
            else:
                low, best = middle, (tried, used_then)
        if best is None or low < _LEAST_SCALE:
            return None, reason
        whole, used = best
    return Found(whole, used, objective.criterion(objective.information(whole))[0]), ''


def _enlarged(motion: FourierMotion, objective: Objective) -> FourierMotion:
    """Return the motion with each joint's amplitude as large as its own limits allow."""
    limits = objective.limits
    range_, (speed, acceleration) = motion.range_bound(), motion.rate_bounds()
    with np.errstate(divide='ignore'):
        allowed = np.stack(
            [
                limits.velocity / speed,
                limits.acceleration / acceleration,
                (limits.position[:, 1] - motion.center) / (range_[:, 1] - motion.center),
                (motion.center - limits.position[:, 0]) / (motion.center - range_[:, 0]),
            ]
        )
    # Only what the p-norm left free: a joint that was slow on purpose stays slow.
    factor = np.where(allowed.min(axis=0) < _SLACK, allowed.min(axis=0), 1.0) * (1 - 1e-9)
    return FourierMotion(
        motion.center,
        motion.sines * factor[:, None],
        motion.cosines * factor[:, None],
        motion.duration,
    )
