# SPDX-License-Identifier: Apache-2.0
"""The positions that a report looks at, where limits are absurd or missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

_LONGEST_TURN = 4 * np.pi + 0.01
_LONGEST_SLIDE = 100.0  # [m]
_SHORTEST_SLIDE = 0.1


def turned_once(model: RobotModel) -> NDArray[np.bool_]:
    """Return which joints (n,) have limits of more than two turns: one says as much of them."""
    with np.errstate(invalid='ignore', over='ignore'):
        span = model.position_limits[:, 1] - model.position_limits[:, 0]
    return np.isfinite(span) & (span > _LONGEST_TURN) & ~model.dh.prismatic


def with_single_turns(model: RobotModel) -> RobotModel:
    """Return a model whose joints of more than two turns make one, from -pi to pi."""
    once = turned_once(model)
    if not once.any():
        return model
    limits = np.where(once[:, None], [-np.pi, np.pi], model.position_limits)
    return replace(model, position_limits=limits)


def slider_ranges(model: RobotModel) -> FloatArray:
    """
    Return where each slider begins and ends (n, 2) [rad or m].

    These are the position limits. A revolute joint without any, or with those of more than two
    turns, makes one; a prismatic one goes as far as the arm is long, in both directions.
    """
    prismatic = model.dh.prismatic
    origins = frame_transforms(model.dh, np.zeros(model.n))[:, :3, 3]
    tip = frame_transforms(model.dh, np.zeros(model.n))[-1] @ model.dh.tip_transform
    points = np.vstack([np.zeros(3), origins, tip[:3, 3]])
    length = float(np.clip(np.ptp(points, axis=0).max(), _SHORTEST_SLIDE, _LONGEST_SLIDE / 2))
    limits = with_single_turns(model).position_limits
    with np.errstate(invalid='ignore', over='ignore'):
        span = limits[:, 1] - limits[:, 0]
    usable = (span >= 0) & np.isfinite(span) & ~(prismatic & (span > _LONGEST_SLIDE))
    otherwise = np.where(prismatic, length, np.pi)[:, None] * [-1.0, 1.0]
    return np.where(usable[:, None], limits, otherwise)
