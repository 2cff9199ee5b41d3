# SPDX-License-Identifier: Apache-2.0
"""
The live page of an arm: where it is, torque by part, the force on its tip, contact, residual.

The page and its scripts come once; numbers come over a WebSocket (``watch.js``). The arm that
turns is that of the report (``arm_in_space.js``).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.model import RobotModel
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.report import arm_in_space
from robodyn_ros.report.facts import slider_ranges
from robodyn_ros.report.template import rendered_page
from robodyn_ros.spatial import FloatArray

PARTS = (
    ('gravity', 'blue', 'gravity'),
    ('inertial', 'orange', 'inertia'),
    ('coriolis', 'red', 'Coriolis'),
    ('friction', 'green', 'friction'),
    ('feedback', 'violet', 'feedback'),
    ('effort', 'body', 'feedforward'),
)
"""Parts of a torque as ``DynamicsState`` names them, their colours and their words."""

JOINT_NUMBERS = ('position', 'total', *(name for name, _, _ in PARTS), 'external_torque')
"""What a frame has of each joint, as ``DynamicsState`` names it, in this order."""

_SEED, _POSES = 5, 200
_ROOM = 1.5  # of the largest torque that gravity asks for, where a joint has no limit
_SMALL = 0.1  # of the scale: the band where no threshold is known


def watch_page(model: RobotModel, thresholds: FloatArray | None = None, *, title: str = '') -> str:
    """
    Return the live page of an arm as HTML text that needs nothing but its WebSocket ``/live``.

    Parameters
    ----------
    model : RobotModel
    thresholds : array, shape (n,), optional
        External torques from which on something touches a joint that moves [N m or N].
    title : str
        Of the arm; not given: its name in the description.
    """
    full, bands = _full_scale(model), residual_bands(model, thresholds)
    scripts = [arm_in_space.script(), _script()]
    return rendered_page(
        'watch.html.jinja',
        title=title or model.name or f'{model.base_link} to {", ".join(model.tip_links)}',
        joints=model.joint_names,
        rows=[
            {'name': name, 'full': f'{a:.6g}', 'band': f'{b:.6g}', 'unit': unit}
            for name, a, b, unit in zip(
                model.joint_names,
                full.tolist(),
                bands.tolist(),
                ['N' if prismatic else 'N\u00a0m' for prismatic in model.dh.prismatic],
            )
        ],
        parts=PARTS,
        has_thresholds=thresholds is not None,
        numbers=arm_in_space.numbers_for_script(model, np.zeros(model.n)),
        scripts=scripts,
        digests=[_digest(text) for text in scripts],
    )


def live_frame(words: bytes, numbers: Sequence[bytes], force: FloatArray) -> bytes:
    """
    Return what ``watch.js`` shows once: words, as JSON, and numbers, as they came in a message.

    Parameters
    ----------
    words : bytes
        JSON of ``contact``, ``link`` and ``mode``.
    numbers : sequence of bytes
        n little-endian float64 for each of ``JOINT_NUMBERS``; NaN where there are none.
    force : array, shape (3,)
        On the tip, in the base link's axes; NaN where it is not known [N].
    """
    size = len(words).to_bytes(4, 'little')
    return b''.join((size, words, *numbers, force.astype('<f8').tobytes()))


def residual_bands(model: RobotModel, thresholds: FloatArray | None) -> FloatArray:
    """
    Return from which external torque on each joint is shown as touched, shape (n,) [N m or N].

    Parameters
    ----------
    model : RobotModel
    thresholds : array, shape (n,), or None
        Of contacts with a joint that moves; None: unknown, a tenth of the scale.
    """
    if thresholds is None:
        return _SMALL * _full_scale(model)
    return np.asarray(thresholds, dtype=float)


def _full_scale(model: RobotModel) -> FloatArray:
    """Return what a full bar of each joint stands for, shape (n,) [N m or N]."""
    lower, upper = slider_ranges(model).T
    q = np.random.default_rng(_SEED).uniform(lower, upper, size=(_POSES, model.n))
    holding = _ROOM * np.abs(gravity_torque(model, q)).max(axis=0)
    holding = np.maximum(holding, 0.05 * max(float(holding.max()), 1e-6))
    limits = known_effort_limits(model)
    return np.where(np.isfinite(limits), np.minimum(limits, 3.0 * holding), holding)


def _script() -> str:
    return Path(__file__).with_name('watch.js').read_text(encoding='utf-8')


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')
