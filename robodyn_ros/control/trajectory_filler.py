# SPDX-License-Identifier: Apache-2.0
"""What the node ``feedforward`` runs: an arm, its load, where it is, and what was sent last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robodyn_ros.control.control_stack import (
    configured_arm,
    continuous_joints,
    safety_settings,
)
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.drive_units import drive_units
from robodyn_ros.control.effort_filling import (
    FilledTrajectory,
    FillingSettings,
    filled_with_effort,
)
from robodyn_ros.control.joint_state_buffer import ElapsedTime, JointStateBuffer, MeasuredState
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.possible_positions import PossiblePositions
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.reference_torque import ReferenceTorque
from robodyn_ros.control.rigid_body import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.model import Payload

LARGEST_DEVIATION = 0.01
"""From what was sent last, within which the controller is believed to follow it [rad] or [m]."""


class TrajectoryFiller:
    """
    Fills the trajectories of one arm with effort, each from where the arm is.

    Parameters
    ----------
    settings : ControlSettings
    description : str or None
        The URDF's text, where the settings name no file.
    error_fraction : float
        The bound of the interpolated torque's error, as a fraction of the effort limits.
    period : float
        Of the controller [s].
    elapsed : ElapsedTime, optional
        Knows whether time is simulated; not given: it is not.

    Attributes
    ----------
    joint_states : JointStateBuffer
        Fed by joint states; ``take_state`` is called behind.
    load : Load
        Payloads and gravity that apply.

    Raises
    ------
    RobodynError
        What is wrong with the robot or the settings.
    """

    def __init__(
        self,
        settings: ControlSettings,
        description: str | None,
        error_fraction: float,
        period: float,
        elapsed: ElapsedTime | None = None,
    ) -> None:
        configured = configured_arm(settings, description)
        arm, scales = configured.model, configured.scales
        limits = safety_settings(arm, settings).effort_limits
        units = drive_units(arm, settings, scales, limits)
        self.arm = arm
        self.load = Load(arm.gravity)
        self.joint_states = JointStateBuffer(
            arm.joint_names,
            settings.state_timeout,
            continuous_joints(arm),
            PossiblePositions.of(arm),
            elapsed,
        )
        self._settings = settings
        self._filling = replace(
            FillingSettings.of(limits),
            error_bound=error_fraction * limits,
            command_scale=units.command_scale,
            period=period,
            settle_time=settings.ramp_time,
        )
        self._rigid_body = RigidBodyTorque.of(arm, settings.algorithm)
        self._torque = ReferenceTorque.of(arm, settings, self._rigid_body)
        self._state: MeasuredState | None = None
        self._sent: Reference | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What did not work on the way to the algorithm that was asked for."""
        return self._rigid_body.notes

    def take_state(self) -> None:
        """Take the joints' states, where all have come since the last time."""
        if self.joint_states.is_complete:
            self._state = self.joint_states.take()

    def change(self, change: Payload | GravityChange) -> Load:
        """
        Change what the arm carries or how its base stands, for the trajectories that follow.

        Raises
        ------
        RobodynError
            What ``Load.changed`` refuses.
        """
        self.load = self.load.changed(change, self.arm)
        model = self.load.applied_to(self.arm)
        self._rigid_body = self._rigid_body.checked(model)
        self._torque = ReferenceTorque.of(model, self._settings, self._rigid_body)
        return self.load

    def filled(
        self, trajectory: Trajectory, now: float, wait: float | None = None
    ) -> FilledTrajectory:
        """
        Return a trajectory with effort, which is then taken to be executed.

        Parameters
        ----------
        trajectory : Trajectory
        now : float
            Steady time [s].
        wait : float or None
            Until its start [s]; negative: it is past; None: it starts at once.

        Raises
        ------
        RejectedTrajectory
            No fresh state of every joint, and what ``filled_with_effort`` refuses.

        Notes
        -----
        It goes on from what was sent last, where the arm still is there, else from the measured
        state: what the controller is commanded does not jump by what the arm lags behind.
        """
        ahead = max(wait or 0.0, 0.0)
        result = filled_with_effort(
            trajectory,
            self._torque,
            self._filling,
            beginning=self._beginning(now, ahead),
            begin=max(0.0, -(wait or 0.0)),  # in this order: never -0.0
        )
        start = self.joint_states.elapsed.time(now) + (wait or 0.0)
        self._sent = self._reference(result.trajectory, start)
        return result

    def hold(self, now: float) -> FilledTrajectory:
        """
        Return the trajectory that brings the arm to rest and holds it, gravity in its effort.

        Raises
        ------
        RejectedTrajectory
            No fresh state of every joint.
        """
        self._sent = None
        state, settle_time = self._beginning(now, 0.0), self._filling.settle_time
        limits = self.arm.position_limits
        rest = Reference.stopping(state, 0.0, settle_time, limits).end_state.position[None]
        zero, times = np.zeros_like(rest), np.array([max(settle_time, self._filling.period)])
        trajectory = Trajectory(self.arm.joint_names, times, rest, zero, zero, zero)
        return self.filled(trajectory, now)

    def _beginning(self, now: float, ahead: float) -> ReferenceState:
        """Return where the arm will be in a while [s], in chain order."""
        if self._state is None or self.joint_states.stale_joints(now):
            stale = ', '.join(self.joint_states.stale_joints(now)) or 'every joint'
            allowed = f'one within {self.joint_states.timeout:g} s'
            if trouble := self.joint_states.trouble():
                allowed += f'; {trouble}'
            raise RejectedTrajectory('joint states', f'none of {stale}', allowed)
        position, velocity = self._state.position, self._state.velocity
        if self._sent is not None:
            time = self.joint_states.elapsed.time(now)
            wanted = self._sent.sample(time)
            if np.abs(wanted.position - position).max() <= LARGEST_DEVIATION:
                return self._sent.sample(time + ahead)
        if (np.abs(velocity) < core.REST_SPEED).all() or not self._state.has_velocities:
            return ReferenceState.at_rest(position)
        zero = np.zeros_like(position)
        measured = ReferenceState(position.copy(), velocity.copy(), zero, zero)
        stopping = Reference.stopping(
            measured, 0.0, self._filling.settle_time, self.arm.position_limits
        )
        return stopping.sample(ahead)

    def _reference(self, trajectory: Trajectory, start: float) -> Reference:
        columns = [trajectory.joint_names.index(name) for name in self.arm.joint_names]
        points = ReferenceState(
            *(
                part[:, columns]
                for part in (
                    trajectory.positions,
                    trajectory.velocities,
                    trajectory.accelerations,
                    trajectory.efforts,
                )
            )
        )
        return Reference.through((start + trajectory.times).tolist(), points, 0.0)
