# SPDX-License-Identifier: Apache-2.0
"""What a user sets of the control stack, each setting with its type and its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from robodyn_ros.control.law import Mode
from robodyn_ros.control.momentum_observer import USUAL_GAIN
from robodyn_ros.control.rigid_body import Algorithm
from robodyn_ros.control.safety_settings import Action, ContactAction
from robodyn_ros.model import STANDARD_GRAVITY

ObservedEffort = Literal['commanded', 'measured']
OBSERVED_EFFORTS: tuple[ObservedEffort, ...] = get_args(ObservedEffort)


@dataclass(frozen=True)
class ControlSettings:
    """
    The parameters of the dynamics node, checked by ``parameter_table.checked``.

    ``parameter_table`` says of each what it means and what is allowed; the parameter
    ``terms.gravity`` is the field ``terms_gravity``. A tuple of numbers holds one value for every
    joint, or one for each in the order of ``joints``; an empty one means that none is given.
    """

    urdf_file: str = ''
    identified_model: str = ''
    base_link: str = ''
    tip_link: str = ''
    joints: tuple[str, ...] = ()
    algorithm: Algorithm = 'compiled'
    gravity: tuple[float, ...] = STANDARD_GRAVITY
    mode: Mode = 'gravity_compensation'
    kp: tuple[float, ...] = (100.0,)
    kd: tuple[float, ...] = (20.0,)
    terms_inertial: bool = True
    terms_coriolis: bool = True
    terms_gravity: bool = True
    terms_friction: bool = True
    friction_velocity: float = 0.01
    ramp_time: float = 0.5
    state_timeout: float = 0.1
    watchdog_period: float = 0.01
    on_stale_state: Action = 'hold_gravity'
    stale_hold_time: float = 1.0
    on_stop: Action = 'hold_gravity'
    effort_limits: tuple[float, ...] = ()
    effort_limit_scale: float = 1.0
    torque_rate_limit: tuple[float, ...] = (1000.0,)
    max_reference_step: float = 0.1
    max_following_error: float = 0.2
    braking_acceleration: tuple[float, ...] = ()
    damping: float = 5.0
    position_guard: float = 0.05
    effort_scale: tuple[float, ...] = ()
    command_scale: tuple[float, ...] = ()
    controller_manager: str = ''
    controller: str = ''
    on_contact: ContactAction = 'report'
    contact_threshold_moving: tuple[float, ...] = ()
    contact_threshold_standing: tuple[float, ...] = ()
    contact_dwell: float = 0.02
    observer_gain: tuple[float, ...] = (USUAL_GAIN,)
    observed_effort: ObservedEffort = 'commanded'
    wrench_point: tuple[float, ...] = (0.0, 0.0, 0.0)
    external_effort_topic: str = ''
    external_effort_scale: tuple[float, ...] = (1.0,)
    external_effort_limit: tuple[float, ...] = ()
    autostart: bool = True
