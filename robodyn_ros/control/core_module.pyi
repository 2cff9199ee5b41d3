# SPDX-License-Identifier: Apache-2.0
"""The core, which core/core_module.cpp binds."""

from collections.abc import Callable
from enum import Enum
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

SOURCES: str
REST_SPEED: float
SETTLED_SPEED: float
OVERSPEED: float
PLAUSIBLE_SPEED_RATIO: float
PLAUSIBLE_STEP: float
LONGEST_RATE_STEP: float
GRAVITY_RATE: float
TANK_POWER: float
RATE_RESERVE: float
LARGEST_KD_T: float
LARGEST_ROOT_KP_T: float
QUATERNION_TOLERANCE: float
STANDSTILL: float
DEVIATIONS: float
UNKNOWN_DEVIATION: float
EXPECTED_FORCE: float
EXPECTED_MOMENT: float

class StateLayout:
    size: int
    def __init__(
        self, begin: int, counts: tuple[int, int, int], gaps: tuple[int, int], /
    ) -> None: ...
    def read(
        self, content: bytes, /
    ) -> tuple[int, int, np.ndarray, np.ndarray, np.ndarray] | None: ...

def largest_frequency(ratio: float) -> float: ...
def valid_state(
    position: ArrayLike,
    velocity: ArrayLike,
    effort: ArrayLike,
    lowest: np.ndarray,
    highest: np.ndarray,
    /,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None: ...

class ContactAction(Enum):
    report = ...
    stop = ...
    float = ...

class ContactEvent(Enum):
    none = ...
    begins = ...
    ends = ...

class Following(Enum):
    none = ...
    waiting = ...
    moving = ...
    braking = ...
    holding = ...

class Cause(Enum):
    none = ...
    following_error = ...
    implausible_position = ...
    overspeed = ...
    overload = ...
    unknown_velocity = ...
    stale_state = ...
    refused_reference = ...
    feedback_far_away = ...
    impossible_position = ...
    clock = ...
    no_following_mode = ...
    contact = ...
    slow_states = ...
    damping_adds_energy = ...
    wrong_velocity = ...

class Refusal(Enum):
    none = ...
    implausible = ...
    overload = ...
    not_finite = ...
    contradicting = ...

class TargetRefusal(Enum):
    none = ...
    inactive = ...
    mode = ...
    fault = ...
    not_followed = ...
    reach = ...
    no_spring = ...

class Fault:
    cause: Cause
    joint: int
    value: float
    limit: float

SETTINGS: tuple[str, ...]

class Settings:
    def __init__(
        self,
        record: object,
        position_limits: ArrayLike,
        velocity_limits: ArrayLike,
        is_continuous: ArrayLike,
    ) -> None: ...

class Arm:
    @overload
    def __init__(self, library: Any, load: np.ndarray) -> None: ...
    @overload
    def __init__(
        self,
        joints: int,
        inverse_dynamics: Callable[..., Any],
        friction: Callable[..., Any],
        not_finite: type[Exception],
        pose: Callable[..., Any] | None = None,
        jacobian: Callable[..., Any] | None = None,
        reach: float = ...,
        coupling: np.ndarray | None = None,
    ) -> None: ...

class Motion:
    knots: list[float]
    coefficients: np.ndarray
    efforts: np.ndarray
    start: np.ndarray
    end: np.ndarray
    before: Motion | None
    def __init__(
        self,
        knots: ArrayLike,
        coefficients: np.ndarray,
        efforts: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        before: Motion | None = None,
    ) -> None: ...
    def sample(self, time: float) -> np.ndarray: ...
    def followed_at(self, time: float) -> Motion: ...

def since(received: float, stamp: float, now: float, simulated: float) -> float: ...
def fastest_timing(
    alpha: np.ndarray,
    beta: np.ndarray,
    bound: np.ndarray,
    highest: np.ndarray,
    begin: float,
    end: tuple[float, float],
) -> tuple[np.ndarray, np.ndarray, int]: ...
def segments(states: np.ndarray, durations: np.ndarray) -> np.ndarray: ...

class PositionStream:
    is_stream: bool
    period: float
    moving: float
    stopping: float
    def __init__(self) -> None: ...
    def take(self, now: float) -> None: ...
    def horizon(self, ahead: float, distance: float) -> float: ...

def approach(
    from_state: np.ndarray, to: np.ndarray, now: float, horizon: float, stop: float
) -> Motion: ...
def stop(
    state: np.ndarray, now: float, duration: float, position_limits: np.ndarray
) -> Motion: ...
def torque_parts(
    arm: Arm,
    settings: Settings,
    position: np.ndarray,
    velocity: np.ndarray,
    reference: np.ndarray | None,
) -> np.ndarray: ...
def torque_deviation(
    known: np.ndarray, coulomb: np.ndarray, velocity: np.ndarray
) -> np.ndarray: ...
def torque_rate_limits(given: ArrayLike, effort_limits: ArrayLike) -> list[float]: ...
def part_beyond(wrench: ArrayLike, largest: tuple[float, float]) -> int: ...
def tip_wrench(
    pose: np.ndarray,
    jacobian: np.ndarray,
    point: np.ndarray,
    torque: np.ndarray,
    deviation: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...

_Flags = np.ndarray
_Rows = np.ndarray | None
_Found = tuple[np.ndarray, _Flags, _Flags, _Flags, bool, _Rows, _Rows] | None

class Pipeline:
    is_clock_stopped: bool
    is_enabled: bool
    is_stopping: bool
    follows: bool
    is_contradicted: bool
    has_state: bool
    is_stale: bool
    velocity: np.ndarray
    is_ready: bool
    is_slow: bool
    wrong_velocities: np.ndarray
    is_holding_gravity: bool
    has_stopped: bool
    is_model_blending: bool
    following: Following
    faults: list[Fault]
    needed_rate: float
    fault_changes: int
    last_drop: Fault
    refusal: Refusal
    torque: np.ndarray | None
    last_cycle: float
    period: float
    followed: Motion | None
    counts: tuple[int, int, int, int, int]
    def __init__(self, arm: Arm, settings: Settings) -> None: ...
    def enable(self, now: float) -> None: ...
    def listen(self, until: float) -> None: ...
    def disable(self) -> None: ...
    def change_settings(self, settings: Settings) -> None: ...
    def change_load(self, arm: Arm, is_checked: bool) -> Fault: ...
    def follow(self, motion: Motion) -> None: ...
    def cancel(self) -> None: ...
    def aim_tip(self, position: ArrayLike, xyzw: ArrayLike) -> TargetRefusal: ...
    def add_wrench(self, wrench: ArrayLike, now: float) -> TargetRefusal: ...
    def target_refusal(self, is_pose: bool) -> TargetRefusal: ...
    reach: float
    def is_within_reach(self, position: ArrayLike) -> bool: ...
    tip_reference: tuple[list[float], list[float]]
    has_tip_target: bool
    spring_wrench: list[float]
    stiffness: tuple[np.ndarray, np.ndarray, list[float], list[float]]
    is_stiffness_limited: bool
    damping_ratio: float
    least_stiffness: float
    stiffening: tuple[bool, float, float, float, float]
    def begin_stop(self) -> None: ...
    def react_to_contact(self, action: ContactAction) -> None: ...
    def continue_from(self, torque: np.ndarray, sent: float) -> None: ...
    def sent(self, now: float) -> None: ...
    def step(
        self,
        position: np.ndarray,
        velocity: np.ndarray,
        time: float,
        is_stamped: bool,
        now: float,
        simulated: float,
        added: np.ndarray | None,
    ) -> _Found: ...
    def watchdog(
        self, now: float, has_stale_joint: bool, simulated: float, added: np.ndarray | None
    ) -> _Found: ...
    def update(
        self,
        now: float,
        position: np.ndarray,
        velocity: np.ndarray,
        desired: np.ndarray | None,
        possible: np.ndarray,
    ) -> _Found: ...
    def stop_command(self, now: float) -> _Found: ...
    def is_clock_reliable(self, now: float) -> bool: ...

class ObserverSettings:
    gain: ArrayLike
    is_held: bool
    longest: float
    friction_velocity: float
    presliding: float

class Observer:
    torque: np.ndarray
    skipped: int
    def __init__(self, arm: Arm, settings: ObserverSettings) -> None: ...
    def change_arm(self, arm: Arm) -> None: ...
    def change_longest(self, longest: float) -> None: ...
    def reset(self) -> None: ...
    def update(
        self, position: np.ndarray, velocity: np.ndarray, torque: np.ndarray, time: float
    ) -> np.ndarray | None: ...

class ContactThresholds:
    moving: ArrayLike
    stationary: ArrayLike
    dwell: float

class StationaryJoints:
    def __init__(self, joints: int) -> None: ...
    def at(self, velocity: ArrayLike, time: float) -> list[bool]: ...

class Contact:
    joint: int
    outermost: int
    torque: float
    threshold: float
    began: float
    time: float

class Detector:
    count: int
    is_in_contact: bool
    contact: Contact
    def __init__(self, thresholds: ContactThresholds) -> None: ...
    def update(self, velocity: np.ndarray, torque: np.ndarray, time: float) -> ContactEvent: ...
    def reset(self) -> None: ...
