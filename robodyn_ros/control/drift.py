# SPDX-License-Identifier: Apache-2.0
"""Drift of an arm in gravity compensation, and which gravity or payload explains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from robodyn_ros.dynamics import gravity_torque, inverse_dynamics, smooth_friction_torque
from robodyn_ros.model import Payload, RobotModel, position_unit
from robodyn_ros.spatial import FloatArray

# Interval of the states that are kept, and the longest one before the history restarts [s].
PERIOD, LONGEST_STEP = 0.1, 0.5

# Between the four states that are compared, in kept ones: over three seconds small drifts show,
# over nine tenths of one fast ones.
STRIDES = (10, 3)

# Between two comparisons [s]: each takes milliseconds.
INTERVAL = 0.5

# A faster joint does not drift: it was pushed, or falls for another reason [rad/s] or [m/s].
FASTEST = 1.0

# A drift moves a joint at least this far, in one direction, over all of the states [rad] or [m].
SHORTEST_WAY = 2e-3

# From an explanation, and of one estimate from the next, as a fraction of the missing torque.
LARGEST_DEVIATION = 0.1


# As a fraction of the weight: less is no drift, but what is left of a motion.
LEAST_MISSING = 3e-4

_WIDTH = 0.01  # of the smooth sign of Coulomb friction, as the parameter friction_velocity


class DriftSample(NamedTuple):
    """
    A sample of an arm whose gravity is compensated.

    Parameters
    ----------
    time : float
        By the clock of the joint states [s].
    position, velocity, torque : array, shape (n,)
        The torque as it was commanded for that state [N m] or [N].
    """

    time: float
    position: FloatArray
    velocity: FloatArray
    torque: FloatArray


class DriftWatch:
    """
    Detects, at ten states a second, drift of an arm in gravity compensation.

    Of four states, from one to the next but one the acceleration is (qd_2 - qd_0) / (t_2 - t_0),
    and in the middle the model asks for tau = M(q) qdd + C(q, qd) qd + g(q) + friction(qd). What
    moved the arm beside what was commanded, tau_missing = tau - tau_commanded, is compared with

    - a fraction k of gravity, tau_missing = k g(q): true gravity is (1 - k) times the model's;
    - m times the torque that one kilogram at the tip takes, tau_missing = -m tau_1(q, qd, qdd):
      the arm carries m more than the model.

    Both by least squares. What two successive estimates agree on is reported: the force of a hand
    that leads the arm varies, and an arm held by stiction does not move.
    """

    def __init__(self) -> None:
        self._model: RobotModel | None = None
        self.forget()

    def forget(self) -> None:
        """Start again: the arm follows a reference, or is touched."""
        self._samples: list[DriftSample] = []
        self._words, self._looked = '', -np.inf

    def look(self, model: RobotModel, sample: DriftSample) -> str:
        """Return by how much the arm drifts and what explains it, as text; empty: it does not."""
        if model is not self._model:
            self._model = model
            self.forget()
        samples = self._samples
        if samples:
            step = sample.time - samples[-1].time
            if 0.0 <= step < 0.9 * PERIOD:
                return self._words
            if not 0.0 <= step <= LONGEST_STEP:
                samples.clear()
        samples.append(sample)
        del samples[: -3 * STRIDES[0] - 1]
        if sample.time - self._looked >= INTERVAL:
            self._looked = sample.time
            chosen = (samples[-3 * stride - 1 :: stride] for stride in STRIDES)
            looked = (_explained(model, four) for four in chosen if len(four) == 4)
            self._words = next((words for words in looked if words), '')
        return self._words


def _explained(model: RobotModel, samples: Sequence[DriftSample]) -> str:
    """Return by how much the arm drifted over four states, and what explains it; or nothing."""
    if not _is_drift(samples):
        return ''
    at, torques = _middle(samples), np.array([each.torque for each in samples[1:-1]])
    rigid = inverse_dynamics(model, *at)
    pairs = zip(at[1], rigid)
    friction = np.array([smooth_friction_torque(model, _WIDTH, *pair) for pair in pairs])
    missing = rigid + friction - torques
    weight = gravity_torque(model, at[0])
    if np.linalg.norm(missing) < LEAST_MISSING * np.linalg.norm(weight):  # it coasts
        return ''
    tip = inverse_dynamics(model.with_payload(Payload(1.0)), *at) - rigid
    k, m = _factor(missing, weight), _factor(missing, -tip)
    strength = float(np.linalg.norm(model.gravity))
    told = []
    if k is not None:
        told.append(
            f'gravity of {(1.0 - k) * strength:.4g} in place of {strength:.4g} m/s^2 '
            f'({100.0 * abs(k):.2f} % {"less" if k > 0.0 else "more"})'
        )
    if m is not None:
        told.append(f'{abs(m):.3g} kg {"more" if m > 0.0 else "less"} at the tip')
    if not told:
        return ''
    way = samples[-1].position - samples[0].position
    joint = int(np.argmax(np.abs(way)))
    elapsed = samples[-1].time - samples[0].time
    unit = position_unit(model.dh.prismatic[joint])
    return (
        f'the arm drifts, {model.joint_names[joint]} by {1e3 * way[joint]:+.3g} m{unit} in '
        f'{elapsed:.1f} s: explained by {" or by ".join(told)}'
    )


def _is_drift(samples: Sequence[DriftSample]) -> bool:
    """Return whether the arm moves slowly, and the joint that moves most in one direction."""
    ways = np.diff([each.position for each in samples], axis=0)
    joint = np.argmax(np.abs(ways.sum(axis=0)))
    is_slow = max(np.abs(each.velocity).max() for each in samples) < FASTEST
    is_one_way = bool((np.sign(ways[:, joint]) == np.sign(ways[0, joint])).all())
    return is_slow and is_one_way and bool(abs(ways[:, joint].sum()) > SHORTEST_WAY)


def _middle(samples: Sequence[DriftSample]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return position, velocity and acceleration at the two states in the middle, (2, n) each."""
    times = np.array([each.time for each in samples])
    velocities = np.array([each.velocity for each in samples])
    accelerations = (velocities[2:] - velocities[:-2]) / (times[2:] - times[:-2])[:, None]
    return np.array([each.position for each in samples[1:-1]]), velocities[1:-1], accelerations


def _factor(missing: FloatArray, shape: FloatArray) -> float | None:
    """Return the factor of a shape (2, n) that explains both estimates alike; None: none does."""
    squares = (shape * shape).sum(axis=1)
    if not (squares > 0.0).all():
        return None
    each = (missing * shape).sum(axis=1) / squares
    factor = float((missing * shape).sum() / squares.sum())
    deviation = np.linalg.norm(missing - factor * shape)
    is_explained = deviation <= LARGEST_DEVIATION * np.linalg.norm(missing)
    is_steady = np.ptp(each) <= LARGEST_DEVIATION * abs(factor)
    return factor if is_explained and is_steady else None
