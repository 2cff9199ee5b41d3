# SPDX-License-Identifier: Apache-2.0
"""
What happens to a torque while a joint is measured beyond its position limits.

Beyond a limit, what the torque has over gravity and points further out fades to nothing over the
width of the soft joint limit, and outward motion is braked as much as the fading has grown.
Gravity itself stays in full, so that the arm never drops; torques that lead back pass; nothing
pulls. The soft limit only ever takes energy out of a joint, is continuous in position and
velocity, and has no state: it ends where the arm is back inside.
"""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.joint_state_buffer import MeasuredState


def soft_limited(
    torque: np.ndarray,
    law: ControlLaw,
    state: MeasuredState,
    effort_limits: np.ndarray,
    position_limits: np.ndarray,
) -> tuple[np.ndarray, np.ndarray | None]:
    """
    Return a torque within the soft joint limits, and the penetration or None.

    Parameters
    ----------
    torque : array, shape (n,)
        What the law asks for [N m] or [N]; where a joint is outside, clipped to the effort limits
        before it fades.
    law : ControlLaw
    state : MeasuredState
    effort_limits : array, shape (n,)
        [N m] or [N].
    position_limits : array, shape (n, 2)
        [rad] or [m].
    """
    penetration = limit_penetration(state.position, position_limits, law.weights.limit_slope)
    if penetration is None:
        return torque, None
    clipped = np.clip(torque, -effort_limits, effort_limits)
    limited = soft_limited_torque(clipped, penetration, law, state.position, state.velocity)
    return limited, penetration


def limit_penetration(position: np.ndarray, limits: np.ndarray, slope: float) -> np.ndarray | None:
    """
    Return the penetration of each joint, shape (n,), or None where the whole arm is inside.

    It is 0 for a joint inside its limits, and 1 or -1 far beyond the upper or the lower one.

    Parameters
    ----------
    position : array, shape (n,)
        Measured [rad] or [m].
    limits : array, shape (n, 2)
        Lower and upper [rad] or [m]; infinite where there is none.
    slope : float
        Penetration per displacement beyond a limit [1/rad] or [1/m]; 0: no soft joint limits.
    """
    beyond = position - np.minimum(np.maximum(position, limits[:, 0]), limits[:, 1])
    if slope <= 0.0 or not beyond.any():
        return None
    return np.clip(slope * beyond, -1.0, 1.0)


def soft_limited_torque(
    torque: np.ndarray,
    penetration: np.ndarray,
    law: ControlLaw,
    position: np.ndarray,
    velocity: np.ndarray,
) -> np.ndarray:
    """
    Return the torque that a joint beyond its limits may have, shape (n,) [N m] or [N].

    With the penetration p, tau' = g + (1 - |p|) (tau - g) where tau - g points outward, and
    minus |p| K_d M_jj qd where the joint moves outward.

    Parameters
    ----------
    torque : array, shape (n,)
        What the law wants.
    penetration : array, shape (n,)
        From ``limit_penetration``.
    law : ControlLaw
        Knows gravity, the joints' own inertias and the gain of the brake.
    position, velocity : array, shape (n,)
        Measured; a velocity that is not known (NaN) is not braked.

    Notes
    -----
    Each joint is braked with its own inertia, not the coupled matrix, so that the brake's power
    is never positive. It costs one call of the inverse dynamics, while a joint is outside only.
    """
    gravity, inertia = law.gravity_and_inertia(position, np.flatnonzero(penetration))
    side = np.sign(penetration)
    depth = np.abs(penetration)
    beyond_gravity = torque - gravity
    is_outward = side * beyond_gravity > 0.0
    kept = np.where(is_outward, (1.0 - depth) * beyond_gravity, beyond_gravity)
    outward_velocity = np.where(side * velocity > 0.0, velocity, 0.0)
    return gravity + kept - depth * law.weights.limit_damping * inertia * outward_velocity
