# SPDX-License-Identifier: Apache-2.0
"""
Control cycles about which nothing needs a closer look, each by one call of machine code.

Nearly all cycles are of this kind: the state is near the last one, no joint is fast or far from
what it follows, no law fades. What the machine code finds unusual it leaves to the modules that
decide it, and those compute all the same torques: ``supervision``, ``evaluation``,
``torque_limits``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from robodyn_ros.control.command import Command
from robodyn_ros.control.compiled_step import CompiledStep, cycle_constants
from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.plausibility import PLAUSIBLE_STEP
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.errors import NonFiniteValue


class PlainCycles:
    """
    Calls the machine code, and keeps what it is given until that changes.

    Parameters
    ----------
    compiled : CompiledStep
    """

    def __init__(self, compiled: CompiledStep) -> None:
        self._cycle = compiled.plain_cycle
        self._known: tuple[Any, ...] = (None, None, None)
        self._constants: tuple[Any, ...] = ()

    def command(
        self,
        law: ControlLaw,
        settings: SafetySettings,
        limits: ReferenceLimits,
        reference: Reference | None,
        state: MeasuredState,
        last: MeasuredState,
        limiter: TorqueLimiter,
        now: float,
    ) -> Command | None:
        """
        Return the command, which counts as sent at a steady time [s]; None: look closer.

        Parameters
        ----------
        law, settings, limits
            Those of this cycle.
        reference : Reference or None
            What is followed.
        state, last : MeasuredState
            Now, and in the last valid cycle.
        limiter : TorqueLimiter
            Knows what was sent last.
        """
        law_before, settings_before, limits_before = self._known
        if law is not law_before or settings is not settings_before or limits is not limits_before:
            self._take(law, settings, limits)
        try:
            found = self._cycle(
                self._constants,
                None if reference is None else reference.arrays,
                state.position,
                state.velocity,
                last.position,
                state.time,
                limiter.last_torque,
                now - limiter.last_sent,
            )
        except NonFiniteValue:  # an overflow on the way to the model
            return None
        if found is None:
            return None
        torque, effort_limited, rate_limited, position_limited, parts, followed = found
        limiter.last_torque, limiter.last_sent = torque, now
        return Command(
            torque,
            effort_limited,
            rate_limited,
            position_limited,
            TorqueParts(*parts),
            state,
            None if followed is None else ReferenceState(*followed),
        )

    def _take(self, law: ControlLaw, settings: SafetySettings, limits: ReferenceLimits) -> None:
        self._known = (law, settings, limits)
        self._constants = cycle_constants(
            law,
            settings.effort_limits,
            limits.position_limits,
            settings.torque_rate_limits,
            PLAUSIBLE_STEP,
            limits.lowest_velocity_limit,
            settings.max_following_error if law.weights.follows else np.inf,
        )
