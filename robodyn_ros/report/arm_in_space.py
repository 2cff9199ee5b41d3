# SPDX-License-Identifier: Apache-2.0
"""
The drawing of an arm as numbers; ``arm_in_space.js`` draws them.

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
from robodyn_ros.report.facts import slider_ranges
from robodyn_ros.spatial import FloatArray, inertia_tensor, rotation_z, skew

_SEED, _POSES = 3, 256
_LEAST_TORQUE = 1e-9
_LARGEST = 2.0  # half axis of an ellipsoid that is drawn, of the arm's size
_FAR = 6.0  # centre of mass that is drawn, from its frame, of the arm's size
_LEAST_SIZE = 1e-3  # [m]
_ELEVATION, _ASIDE = np.radians(24), np.radians(25)
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
    lower, upper = slider_ranges(model).T
    poses = np.random.default_rng(_SEED).uniform(lower, upper, size=(_POSES, model.n))
    points, size = _points_and_size(model, q)
    ellipsoids = [inertia_ellipsoid(row) for row in model.inertial_parameters]
    far = masses_left_out(model, q)
    too_large = [
        each is not None
        and (k in far or np.linalg.norm(each['half'], axis=1).max() > _LARGEST * size)
        for k, each in enumerate(ellipsoids)
    ]
    # From where the arm is widest, a little aside.
    azimuths = np.radians(np.arange(0, 180, 15))
    widths = [np.std(points @ rotation_z(-azimuth)[0]) for azimuth in azimuths]
    limits = model.effort_limits
    known = np.isfinite(limits) & (limits > 0)
    holding = np.abs(gravity_torque(model, poses)).max(axis=0)
    numbers: dict[str, Any] = {
        'rotations': dh.constant_rotations,
        'steps': dh.constant_steps,
        'parents': dh.parents,
        'ends': dh.ends,
        'd': dh.d,
        'theta': dh.theta,
        'prismatic': dh.prismatic,
        'base': dh.base_transform,
        'tips': dh.tips,
        'tip_transforms': dh.tip_transforms,
        'tip_names': model.tip_links if len(dh.tips) > 1 else ['tip'],
        'moments': model.inertial_parameters[:, 6:],
        'ellipsoids': ellipsoids,
        'too_large': too_large,
        'far': [k in far for k in range(model.n)],
        'around': _AROUND,
        'gravity': model.gravity,
        'limits': [limit if is_known else None for limit, is_known in zip(limits, known)],
        # What a full arc stands for: the limit, or else the largest torque that was met.
        'full': np.where(known, limits, np.maximum(holding, _LEAST_TORQUE)),
        'q': np.clip(q, lower, upper),
        'zero': np.clip(np.zeros(model.n), lower, upper),
        'size': size,
        'azimuth': azimuths[int(np.argmax(widths))] + _ASIDE,
        'elevation': _ELEVATION,
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


def masses_left_out(model: RobotModel, q: FloatArray) -> list[int]:
    """Return which joints, from 0, move a centre of mass too far from the arm to be drawn."""
    away = np.linalg.norm(_mass_centers(model.inertial_parameters), axis=1)
    return np.flatnonzero(away > _FAR * _points_and_size(model, q)[1]).tolist()


def _points_and_size(model: RobotModel, q: FloatArray) -> tuple[FloatArray, float]:
    """
    Return the origins of base, frames and tips (k, 3), and how far the arm reaches [m].

    Where all of them coincide, as those of one joint may, the centres of mass are among them.
    """
    frames = frame_transforms(model.dh, q)
    tips = frames[model.dh.tips] @ model.dh.tip_transforms
    first = np.stack([np.zeros(3), model.dh.base_transform[:3, 3]])
    points = np.vstack([first, frames[:, :3, 3], tips[:, :3, 3]])
    if np.ptp(points, axis=0).max() <= _LEAST_SIZE:
        centers = _mass_centers(model.inertial_parameters)
        points = np.vstack([points, np.einsum('kij,kj->ki', frames[:, :3, :3], centers)])
    return points, max(float(np.linalg.norm(np.ptp(points, axis=0))) / 2, _LEAST_SIZE)


def _mass_centers(rows: FloatArray) -> FloatArray:
    """Return the centres of mass (n, 3) [m] in their DH frames; zero where there is no mass."""
    mass = rows[:, 9:]
    return np.divide(rows[:, 6:9], mass, out=np.zeros((len(rows), 3)), where=mass > 0)


def _plain(value: Any) -> Any:
    return value.tolist()
