# SPDX-License-Identifier: Apache-2.0
"""
The interactive drawing with ellipsoids, as an arm's numbers; ``arm_in_space.js`` draws them.

There are numbers only. Names of a URDF are in the page beside the sliders, where the template
escapes them, and never in a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.report.arm_drawing import mass_centers, shown_points, view_of
from robodyn_ros.report.facts import slider_ranges
from robodyn_ros.spatial import FloatArray, inertia_tensor, skew

_SEED, _POSES = 3, 256
_LEAST_TORQUE = 1e-9
_ROOM = 1.2
_LARGEST = 2.0  # half axis of an ellipsoid that is drawn, of the arm's radius
_AROUND = np.array([*product((-1.0, 0.0, 1.0), repeat=3)])
_AROUND = np.delete(_AROUND, 13, axis=0) / np.linalg.norm(
    np.delete(_AROUND, 13, axis=0), axis=1, keepdims=True
)
"""Directions (26, 3): where the surface of an ellipsoid is looked at."""


def script() -> str:
    """Return the script that draws."""
    return Path(__file__).with_suffix('.js').read_text(encoding='utf-8')


def script_digest() -> str:
    """Return what a content security policy names the script by."""
    return base64.b64encode(hashlib.sha256(script().encode()).digest()).decode('ascii')


def numbers_for_script(model: RobotModel, q: FloatArray) -> str:
    """
    Return what the script draws, as JSON that may stand in a script element.

    Parameters
    ----------
    model : RobotModel
    q : array, shape (n,)
        Where the sliders begin [rad or m].
    """
    dh = model.dh
    ranges = slider_ranges(model)
    lower, upper = ranges.T
    poses = np.random.default_rng(_SEED).uniform(lower, upper, size=(_POSES, model.n))
    frames = frame_transforms(model.dh, q)
    points = shown_points(_points(model, frames), mass_centers(model, frames))
    size = max(_ROOM * _radius(points, _middle(points)), 1e-3)
    ellipsoids = [inertia_ellipsoid(row) for row in model.inertial_parameters]
    too_large = [
        each is not None and np.linalg.norm(each['half'], axis=1).max() > _LARGEST * size
        for each in ellipsoids
    ]
    surfaces = [
        (_AROUND @ each['half'] + each['center']) @ frame[:3, :3].T + frame[:3, 3]
        for each, frame, left_out in zip(ellipsoids, frames, too_large)
        if each is not None and not left_out
    ]
    middle = _middle(np.vstack([points, *surfaces]))
    azimuth, elevation = view_of(points)[0]
    limits = model.effort_limits
    known = np.isfinite(limits) & (limits > 0)
    holding = np.abs(gravity_torque(model, poses)).max(axis=0)
    numbers: dict[str, Any] = {
        'rotations': dh.constant_rotations,
        'a': dh.a,
        'd': dh.d,
        'theta': dh.theta,
        'prismatic': dh.prismatic,
        'base': dh.base_transform,
        'tip': dh.tip_transform,
        'moments': model.inertial_parameters[:, 6:],
        'ellipsoids': ellipsoids,
        'too_large': too_large,
        'around': _AROUND,
        'gravity': model.gravity,
        'limits': [limit if is_known else None for limit, is_known in zip(limits, known)],
        # What a full arc stands for: the limit, or else the largest torque that was met.
        'full': np.where(known, limits, np.maximum(holding, _LEAST_TORQUE)),
        'q': np.clip(q, lower, upper),
        'zero': np.clip(np.zeros(model.n), lower, upper),
        'middle': middle,
        'size': size,
        'radius': max(_ROOM * _radius(points, middle), 1e-3),
        'azimuth': azimuth,
        'elevation': elevation,
    }
    text = json.dumps(numbers, default=_plain, allow_nan=False, separators=(',', ':'))
    return text.replace('<', '\\u003c')


def inertia_ellipsoid(row: NDArray) -> dict[str, FloatArray] | None:
    """
    Return centre and half axes of the solid ellipsoid with a body's mass and inertia.

    It is uniformly dense, in the axes of the body's DH frame: half axes are rows (3, 3) [m]. None
    where there is no mass. A half axis is zero where no mass could have these moments.
    """
    mass = float(row[9])
    if mass <= 0.0:
        return None
    center = row[6:9] / mass
    moments, axes = np.linalg.eigh(inertia_tensor(row) + mass * skew(center) @ skew(center))
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    return {'center': center, 'half': np.sqrt(np.maximum(squares, 0.0))[:, None] * axes.T}


def _points(model: RobotModel, frames: FloatArray) -> FloatArray:
    """Return the origins of base, DH frames (n, 4, 4) and tip (k, 3) [m]."""
    tip = frames[-1] @ model.dh.tip_transform
    first = np.stack([np.zeros(3), model.dh.base_transform[:3, 3]])
    return np.vstack([first, frames[:, :3, 3], tip[:3, 3]])


def _middle(points: FloatArray) -> FloatArray:
    return (points.min(axis=0) + points.max(axis=0)) / 2


def _radius(points: FloatArray, middle: FloatArray) -> float:
    return float(np.linalg.norm(points - middle, axis=1).max())


def _plain(value: Any) -> Any:
    return value.tolist()
