# SPDX-License-Identifier: Apache-2.0
"""
The watchdog's commands, from taking over until the node commands again, or until it ends.

It has a command pipeline of its own: gravity at the arm's last position until joint states come,
then gravity and damping, which brakes the arm. Its model is Newton-Euler in NumPy, so that a fault
of the generated code does not affect the watchdog, too. This module decides when that starts and
ends. Once the node is gone gravity is still compensated for a while, because a constant torque is
unstable: a Panda without friction under it moves at 5 rad/s within a second.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.command_pipeline import Command, CommandPipeline
from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.control.law import ControlLaw
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.model import RobotModel
from robodyn_ros.ros.shared_memory import WatchdogSettings

BRAKING_RATE = 10.0
"""Largest rate at which velocities decay [1/s]."""

LONGEST_BRAKING = 4.0
"""Time after which the arm counts as at rest in any case [s]."""

DISCOVERY_TIME = 0.5
"""Time to wait for the first joint states [s]."""


class LastCommand(NamedTuple):
    """When a torque was sent [s], the torque, and the position there, in chain order."""

    time: float
    torque: np.ndarray
    position: np.ndarray


class Takeover:
    """
    Commands within the node's limits that continue its last command.

    Parameters
    ----------
    model : RobotModel
        Of the arm with its load.
    settings : WatchdogSettings
        What to do.
    last : LastCommand
        Of the node.
    now : float
        Steady time [s].

    Attributes
    ----------
    is_over : bool
        Whether the node is gone and the stop command has been sent.
    is_steady : bool
        Whether the last command was the one before.
    joint_states : JointStateBuffer
        To be fed with joint states.
    """

    def __init__(
        self, model: RobotModel, settings: WatchdogSettings, last: LastCommand, now: float
    ) -> None:
        self.is_over = self.is_steady = False
        limits, safety = settings.limits, settings.safety
        self.joint_states = JointStateBuffer(
            limits.joint_names,
            safety.state_timeout,
            limits.continuous,
            limits.possible,
            velocity_limits=limits.velocity_limits,
        )
        law = ControlLaw(
            partial(inverse_dynamics, model),
            partial(friction_of, model),
            settings.mode,
            settings.terms,
            np.zeros(model.n),
            settings.kd,
            limit_width=settings.limit_width,
            coupling=model.coupling,
        )
        # The node already commanded there, so that gravity is compensated as far as the limits
        # allow.
        unlimited = replace(safety, effort_limits=np.full(model.n, np.inf))
        self._pipeline = pipeline = CommandPipeline(law, self.joint_states, unlimited, limits)
        # A state that is stale at once, from which gravity is known until others come.
        before = now - 2.0 * safety.state_timeout
        self.joint_states.receive(limits.joint_names, last.position.tolist(), (), received=before)
        pipeline.enable(before)
        last_state = self.joint_states.take()
        for _ in range(2):  # a state without velocities needs another that agrees
            pipeline.step(last_state, before)
        self.joint_states.forget()
        pipeline.settings = self._safety = replace(
            safety, damping=BRAKING_RATE, is_braked_by_damping=True
        )
        pipeline.continue_from(last.torque, last.time)
        self._begin = now
        self._end_of_node: float | None = None
        self._rest_since: float | None = None  # after that [s]
        self._is_yielding = False

    def command(self, now: float, is_node_alive: bool) -> np.ndarray | None:
        """Return the torque to send at a steady time [s], shape (n,), in chain order, or None."""
        pipeline, before = self._pipeline, self._pipeline.last_torque
        if not is_node_alive and self._end_of_node is None:
            self._end_of_node = now
            pipeline.begin_stop()
            hold_time = max(self._safety.stale_hold_time, DISCOVERY_TIME)
            pipeline.settings = replace(
                self._safety, on_stale_state=self._safety.on_stop, stale_hold_time=hold_time
            )
        if self._end_of_node is not None and self._is_left(now, self._end_of_node):
            found = pipeline.stop_command(now)
            self.is_over = found is None or not found.rate_limited.any()
        else:
            found = self._carrying(now)
        if found is not None or pipeline.is_stale:
            self.is_steady = found is None or bool((found.torque == before).all())
        return None if found is None else found.torque

    def yield_commands(self) -> None:
        """End commanding, once the node is gone: another node is about to command."""
        self._is_yielding = True

    def sent(self, now: float) -> None:
        """Record that the last command was sent by a steady time [s]."""
        self._pipeline.sent(now)

    def _carrying(self, now: float) -> Command | None:
        """Return the next command while commanding must go on."""
        pipeline, found = self._pipeline, None
        holds = pipeline.settings.on_stale_state == 'hold_gravity'
        if holds and self.joint_states.is_complete:
            with np.errstate(over='ignore', invalid='ignore'):  # absurd velocities
                found = pipeline.step(self.joint_states.take(), now)
        return found or pipeline.watchdog(now)

    def _is_left(self, now: float, end_of_node: float) -> bool:
        """Return whether commanding may end, the node being gone."""
        pipeline = self._pipeline
        if self._is_yielding or self._safety.on_stop != 'hold_gravity':
            return True
        if pipeline.is_stale:  # joint states may come, or come back
            return now - self._begin >= DISCOVERY_TIME and pipeline.fallback == 'silent'
        is_late = now - end_of_node > LONGEST_BRAKING
        if self._rest_since is None and (pipeline.has_stopped or is_late):
            self._rest_since = now
        return self._rest_since is not None and (
            now - self._rest_since >= self._safety.stale_hold_time
        )
