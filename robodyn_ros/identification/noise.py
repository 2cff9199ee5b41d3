# SPDX-License-Identifier: Apache-2.0
"""The noise in residuals: its size, its correlation in time, and weights of outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.spatial import FloatArray

# No drive is known better than to this fraction of its rms torque.
_FLOOR = 0.003
# Residuals beyond so many deviations are weighted down (Huber 1964).
_HUBER = 3.0
# Of a normal distribution: its standard deviation, over the median of its absolute values.
MEDIAN_TO_DEVIATION = 1.4826


@dataclass(frozen=True, eq=False)
class Noise:
    """
    How far measured torques lie from a model's.

    Attributes
    ----------
    deviation : array, shape (n,)
        [N m or N]
    correlation : array, shape (n,)
        Autocorrelation time, in rows: so many rows tell as much as one independent one.
    """

    deviation: FloatArray
    correlation: FloatArray

    @classmethod
    def of(
        cls, residuals: Sequence[FloatArray], chosen: Sequence[np.ndarray], torque: FloatArray
    ) -> Noise:
        """
        Return the noise that residuals show.

        Parameters
        ----------
        residuals : sequence of array, shape (K, n)
            Of stretches at one rate.
        chosen : sequence of array of bool, shape (K, n)
            Which of them count.
        torque : array, shape (n,)
            The joints' ``typical`` torque: no drive is known better than to 0.3 % of it.
        """
        size = rms(np.concatenate(residuals), np.concatenate(chosen))
        return cls(floored(size, torque), autocorrelation_time(residuals, chosen))

    @property
    def scale(self) -> FloatArray:
        """What residuals are divided by, array, shape (n,)."""
        return self.deviation * np.sqrt(self.correlation)


def rms(values: FloatArray, chosen: np.ndarray) -> FloatArray:
    """Return the root mean square of each column's chosen rows, zero where none is chosen."""
    count = np.maximum(chosen.sum(axis=0), 1)
    return np.sqrt(np.where(chosen, values**2, 0.0).sum(axis=0) / count)


def typical(effort: FloatArray) -> FloatArray:
    """Return the rms of each joint's effort (K, n), not zero: array, shape (n,)."""
    result = rms(effort, np.ones(effort.shape, dtype=bool))
    return np.maximum(result, 1e-6 * max(float(result.max()), 1e-9))


def floored(deviation: FloatArray, torque: FloatArray) -> FloatArray:
    """Return deviations of at least 0.3 % of the rms torques, all (n,) and above zero."""
    return np.maximum(np.maximum(deviation, _FLOOR * torque), 1e-9 * max(torque.max(), 1e-9))


def autocorrelation_time(
    residuals: Sequence[FloatArray], chosen: Sequence[np.ndarray]
) -> FloatArray:
    """
    Return 1 + 2 sum rho_k of each joint's residuals, array, shape (n,), up to the first rho_k < 0.

    Parameters
    ----------
    residuals : sequence of array, shape (K, n)
        Of stretches at one rate; correlations are counted within a stretch.
    chosen : sequence of array of bool, shape (K, n)
        Which residuals count; the others are taken as zero.
    """
    longest = max(len(each) for each in residuals)
    sums = np.zeros((longest, residuals[0].shape[1]))
    for residual, mask in zip(residuals, chosen, strict=True):
        count = np.maximum(mask.sum(axis=0), 1)
        values = np.where(mask, residual - np.where(mask, residual, 0).sum(axis=0) / count, 0.0)
        spectrum = np.abs(np.fft.rfft(values, 2 * len(values), axis=0)) ** 2
        sums[: len(values)] += np.fft.irfft(spectrum, axis=0)[: len(values)]
    times = np.ones(sums.shape[1])
    for joint, column in enumerate(sums.T):
        if column[0] <= 0:
            continue
        correlation = column / column[0]
        end = int((correlation < 0).argmax()) if (correlation < 0).any() else len(correlation)
        times[joint] = max(1.0, 2.0 * correlation[:end].sum() - 1.0)
    return times


def huber_weights(residual: FloatArray, chosen: np.ndarray) -> FloatArray:
    """
    Return the square roots of Huber's weights, shape (K, n), 1 within three robust deviations.

    Parameters
    ----------
    residual : array, shape (K, n)
    chosen : array of bool, shape (K, n)
        Rows that the robust deviation is taken from.
    """
    weights = np.ones_like(residual)
    for joint in range(residual.shape[1]):
        mine = np.abs(residual[chosen[:, joint], joint])
        if not len(mine):
            continue
        limit = _HUBER * MEDIAN_TO_DEVIATION * float(np.median(mine))
        size = np.abs(residual[:, joint])
        weights[:, joint] = np.sqrt(limit / np.maximum(size, max(limit, 1e-300)))
    return weights
