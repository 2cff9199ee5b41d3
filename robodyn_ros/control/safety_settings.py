# SPDX-License-Identifier: Apache-2.0
"""What the command pipeline never exceeds, and what it does when states or commanding end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from robodyn_ros.array_record import ArrayRecord

Action = Literal['hold_gravity', 'zero', 'silent']
ACTIONS: tuple[Action, ...] = get_args(Action)

ContactAction = Literal['report', 'stop', 'float']
CONTACT_ACTIONS: tuple[ContactAction, ...] = get_args(ContactAction)


@dataclass(frozen=True, eq=False, repr=False)
class SafetySettings(ArrayRecord):
    """
    What the command pipeline holds itself to.

    Parameters
    ----------
    effort_limits : array, shape (n,)
        Largest torque [N m] or force [N] of each joint.
    torque_rate_limits : array, shape (n,)
        Largest change [N m/s] or [N/s]; infinite: none.
    ramp_time : float
        How long a change of law takes [s].
    state_timeout : float
        Age at which a joint state is stale [s].
    on_stale_state, on_stop : str
        One of ``ACTIONS``.
    stale_hold_time : float
        How long gravity is held on a stale state before silence [s].
    max_following_error : float
        Error of a joint at which a reference is given up [rad] or [m]; infinite: none.
    braking_acceleration : array, shape (n,), or None
        Largest deceleration to rest [rad/s²] or [m/s²]; None: what the effort limits allow.
    damping : float
        Of an arm that moves when gravity compensation takes over, until it rests [1/s].
    is_braked_by_damping : bool
        Whether nothing else brakes the arm: then damping acts whenever it moves, obeys the braking
        acceleration, and shrinks as one vector where the effort limits would clip it.
    """

    effort_limits: np.ndarray
    torque_rate_limits: np.ndarray
    ramp_time: float
    state_timeout: float
    on_stale_state: Action
    stale_hold_time: float
    on_stop: Action
    max_following_error: float = np.inf
    braking_acceleration: np.ndarray | None = None
    damping: float = 0.0
    is_braked_by_damping: bool = False
