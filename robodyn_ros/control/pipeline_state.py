# SPDX-License-Identifier: Apache-2.0
"""The parts of a command pipeline, and what they say about it."""

from __future__ import annotations

import numpy as np

from robodyn_ros.control.active_law import ActiveLaw
from robodyn_ros.control.added_effort import AddedEffort
from robodyn_ros.control.bridging import Bridging
from robodyn_ros.control.compiled_step import CompiledStep
from robodyn_ros.control.computed_torque import ControlLaw
from robodyn_ros.control.fallback import Fallback
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.plain_cycles import PlainCycles
from robodyn_ros.control.planning import ReferenceLimits
from robodyn_ros.control.reference_follower import ReferenceFollower
from robodyn_ros.control.safety_settings import SafetySettings
from robodyn_ros.control.supervision import Supervision
from robodyn_ros.control.torque_limits import TorqueLimiter


class PipelineState:
    """
    What ``CommandPipeline`` is made of; nothing here commands.

    Parameters
    ----------
    law : ControlLaw
        What to command while all is well.
    joint_states : JointStateBuffer
        Asked for staleness only; the states themselves come through ``step``. It knows whether
        time is simulated.
    settings : SafetySettings
        What never to exceed, and what to do when states stop.
    reference_limits : ReferenceLimits
        What a trajectory must respect.
    compiled : CompiledStep, optional
        Computes the torques; without it NumPy does.

    Attributes
    ----------
    added : AddedEffort or None
        What somebody else has added to the law's torque, inside all limits.
    refused_torques : int
        Cycles without a finite torque, or with a load that the drives cannot carry.
    """

    def __init__(
        self,
        law: ControlLaw,
        joint_states: JointStateBuffer,
        settings: SafetySettings,
        reference_limits: ReferenceLimits,
        *,
        compiled: CompiledStep | None = None,
    ) -> None:
        self.settings = settings
        self.reference_limits = reference_limits
        self.is_enabled = False
        self.added: AddedEffort | None = None
        self.refused_torques = 0
        self._joint_states = joint_states
        self._law = ActiveLaw(law)
        self._follower = ReferenceFollower()
        self._supervision = Supervision(joint_states.elapsed)
        self._bridging = Bridging(joint_states.elapsed.is_simulated)
        self._compiled = compiled
        self._limiter = TorqueLimiter()
        self._plain = None
        if compiled is not None:
            self._limiter = TorqueLimiter(compiled.limited)
            self._plain = PlainCycles(compiled)
        self._state: MeasuredState | None = None  # of the last valid cycle since enabling
        self._last_cycle = -np.inf
        self._elapsed = 0.0  # since the last valid cycle [s]
        self._fallback = Fallback()
        self._refusal = ''  # of the last state, where it was refused
        self._is_stopping = False

    @property
    def law(self) -> ControlLaw:
        """The latest law; the active one may still be in transition to it."""
        return self._law.latest

    @property
    def is_stale(self) -> bool:
        """Whether the watchdog found the state stale and no valid cycle came since."""
        return self._fallback.stale_since is not None

    @property
    def has_stopped(self) -> bool:
        """Whether there is nothing to wait for before the stop command: no motion, no states."""
        if self._state is None or self.is_stale or self.law.mode == 'feedforward':
            return True
        velocity, time = self._state.velocity, self._state.time
        if np.isnan(velocity).any():
            return not self._follower.is_brake_due
        return not self._follower.is_brake_due and self._follower.has_settled(velocity, time)

    @property
    def fallback(self) -> str:
        """The action under way: one of ``ACTIONS``, or none."""
        return self._fallback.action(self.settings)

    @property
    def stale_cause(self) -> str:
        """Why the state was last found stale, as it was then; empty: it never was."""
        return self._fallback.cause

    @property
    def state(self) -> MeasuredState | None:
        """The state of the last valid cycle since enabling."""
        return self._state

    @property
    def last_torque(self) -> np.ndarray | None:
        """The last command, shape (n,) [N m] or [N]; None before the first."""
        return self._limiter.last_torque

    @property
    def last_fault(self) -> str:
        """Why a reference was last given up, or commanding refused; empty: it was not."""
        return self._supervision.last_fault

    @property
    def implausible_states(self) -> int:
        """How many states no joint can have come to."""
        return self._supervision.implausible_states

    @property
    def following_errors(self) -> int:
        """How many references were given up because the arm was too far away."""
        return self._supervision.following_errors

    @property
    def dropped_references(self) -> int:
        """How many references were given up though nobody asked for it."""
        return self._follower.drops

    @property
    def last_drop(self) -> str:
        """Why the last one was; empty: none was."""
        return self._follower.last_drop

    @property
    def reference_status(self) -> str:
        """One of: none, waiting, moving, braking, holding."""
        return 'none' if self._state is None else self._follower.status(self._state.time)
