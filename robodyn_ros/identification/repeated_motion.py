# SPDX-License-Identifier: Apache-2.0
"""Whether a recording repeats the motion of another: then it proves nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial import cKDTree

from robodyn_ros.identification.even_samples import EvenSamples
from robodyn_ros.identification.preparation import States, band_with_cutoff, states_of
from robodyn_ros.spatial import FloatArray

_CUTOFF = 2.0
# States closer than this, in units of their own spread, are the same state of the motion.
_SAME = 0.1
_MOST = 0.5


def repeats(validation: Sequence[EvenSamples], training: Sequence[EvenSamples]) -> bool:
    """
    Return whether more than half of a motion's states, moving, occur in another motion.

    States are positions and velocities; when in the motion they occur does not matter.
    """
    known = np.concatenate([_points(stretch) for stretch in training])
    new = np.concatenate([_points(stretch) for stretch in validation])
    spread = known.std(axis=0)
    varying = spread > 1e-6 * spread.max()
    scale = 1.0 / (spread[varying] * np.sqrt(varying.sum()))
    distance, _ = cKDTree(known[:, varying] * scale).query(new[:, varying] * scale)
    return bool(np.mean(distance < _SAME) > _MOST)


def _points(stretch: EvenSamples) -> FloatArray:
    states: States = states_of(stretch, band_with_cutoff(_CUTOFF, [stretch]))
    speed = np.abs(states.qd).max(axis=1)
    moving = speed > 0.2 * speed.max()
    return np.hstack([states.q, states.qd])[moving]
