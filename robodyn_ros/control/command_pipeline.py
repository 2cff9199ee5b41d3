# SPDX-License-Identifier: Apache-2.0
"""
The command pipeline: the core's ``ArmRuntime`` for Python, and messages for its faults.

``core/arm_runtime.hpp`` computes the commands. Python adds text, time and topology: which
joint states are fresh, trajectories, added efforts, and messages for faults.

``CommandPipeline.step`` turns a complete joint state into a command, ``watchdog`` commands when
joint states are late or missing, and ``stop_command`` gives the last commands. Each returns a
command or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os.path import commonprefix
from typing import Any, NamedTuple, TypeVar

import numpy as np

from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.joint_state_buffer import JointStateBuffer, MeasuredState
from robodyn_ros.control.law import (
    Friction,
    InverseDynamics,
    OfPosition,
    TorqueParts,
)
from robodyn_ros.control.planning import PositionStream, ReferenceLimits, planned_reference
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.settings import ArmSettings, ContactAction
from robodyn_ros.control.tip_target import (
    PoseTrajectory,
    RejectedTarget,
    TipPose,
    TipTargets,
    checked_times,
)
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import Overload, Phrase, RejectedTrajectory
from robodyn_ros.motions.possible_positions import velocity_error
from robodyn_ros.spatial import FloatArray

_T = TypeVar('_T')

CONTRADICTION = 'sources of joint states contradict each other'

_ORIGIN = TipPose(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))
_MOST_LAYOUTS = 8  # of messages with added efforts, remembered


class NotFollowing(RejectedTrajectory):
    """No trajectory is followed at present, whatever it holds; the message says what to do."""

    def __init__(self, element: str, value: Any, allowed: str) -> None:
        super().__init__(element, value, allowed)
        self.args = (f'{value}: {allowed}',)


@dataclass(frozen=True, eq=False)
class ControlLaw:
    """
    The settings and the model of a control law.

    Parameters
    ----------
    inverse_dynamics : InverseDynamics
    friction : Friction
    settings : ArmSettings
    forward_kinematics, jacobian : callable, optional
        Of the tip; not given: no stiffness there.
    coupling : array, shape (m, n), optional
        Of the coupled drives, as ``RobotModel`` has it.
    """

    inverse_dynamics: InverseDynamics
    friction: Friction
    settings: ArmSettings
    forward_kinematics: OfPosition | None = None
    jacobian: OfPosition | None = None
    coupling: np.ndarray | None = None


class Command(NamedTuple):
    """
    One torque to send, and where it comes from.

    Parameters
    ----------
    torque : array, shape (n,)
        [N m] or [N], finite and within the limits.
    effort_limited, rate_limited : array of bool, shape (n,)
        Joints whose torque that limit changed.
    position_limited : array of bool, shape (n,)
        Joints beyond a position limit, where the soft joint limit acts.
    is_limited : bool
        Whether any of these is true.
    part_rows : array, shape (6, n), or None
        What the law added up; None when there was no control cycle.
    reference_rows : array, shape (4, n), or None
        What was followed.
    state : MeasuredState
        The joint state that it answers.
    """

    torque: np.ndarray
    effort_limited: np.ndarray
    rate_limited: np.ndarray
    position_limited: np.ndarray
    is_limited: bool
    part_rows: np.ndarray | None
    reference_rows: np.ndarray | None
    state: MeasuredState

    @property
    def parts(self) -> TorqueParts | None:
        """What the law added up; None when there was no control cycle."""
        return None if self.part_rows is None else TorqueParts(*self.part_rows)

    @property
    def reference(self) -> ReferenceState | None:
        """What was followed."""
        return None if self.reference_rows is None else ReferenceState(*self.reference_rows)


class AddedEffort:
    """
    The newest added effort of each joint, and when it came.

    Parameters
    ----------
    joint_names : sequence of n str
        In chain order.
    scale : array, shape (n,)
        What an effort is multiplied by.
    limit : array, shape (n,)
        Largest effort that is added [N m] or [N].
    timeout : float
        An older effort fades, and is gone when it is twice as old [s].

    Attributes
    ----------
    refused : int
        Messages that could not be used.
    """

    def __init__(
        self, joint_names: Sequence[str], scale: FloatArray, limit: FloatArray, timeout: float
    ) -> None:
        self.scale, self.limit, self.timeout = scale, limit, timeout
        self.refused = 0
        self._joint_names = tuple(joint_names)
        self._columns: dict[tuple[str, ...], list[int] | str] = {}  # of names that came before
        self._effort = np.zeros(len(self._joint_names))
        self._received = -np.inf

    def receive(
        self, names: Sequence[str], effort: Sequence[float] | np.ndarray, now: float
    ) -> str:
        """
        Take one message, and return why it cannot be used; empty: it can.

        Parameters
        ----------
        names, effort
            As in sensor_msgs/JointState. Joints that are not named get nothing added. All joints
            of an arm of the same kind may have another prefix than ours.
        now : float
            When it came, by the steady clock [s].
        """
        columns = self._known_columns(names)
        if isinstance(columns, str):
            fault = columns
        elif len(effort) != len(names):
            fault = f'{len(names)} names but {len(effort)} efforts'
        elif not all(map(isfinite, effort)):
            fault = 'efforts that are not finite'
        else:
            given = np.zeros(len(self._joint_names))
            given[columns] = effort
            with np.errstate(over='ignore'):
                scaled = self.scale * given
            self._effort = np.minimum(np.maximum(scaled, -self.limit), self.limit)
            self._received = now
            return ''
        return self.refuse(fault)

    def refuse(self, fault: str) -> str:
        """Count a message that cannot be used, and return why."""
        self.refused += 1
        return fault

    def at(self, now: float) -> FloatArray | None:
        """Return what is added at a steady time [s], shape (n,) [N m] or [N]; None: nothing."""
        age = now - self._received
        if age >= 2.0 * self.timeout:
            return None
        if age <= self.timeout:
            return self._effort
        return (2.0 - age / self.timeout) * self._effort

    def _known_columns(self, names: Sequence[str]) -> list[int] | str:
        """Return which joints the names are, or why they are none."""
        if len(names) > len(self._joint_names):
            return f'{len(names)} names; allowed: at most {len(self._joint_names)}'
        key = tuple(names)
        if key not in self._columns:
            if len(self._columns) >= _MOST_LAYOUTS:
                self._columns.clear()
            self._columns[key] = self._matched(key)
        return self._columns[key]

    def _matched(self, names: tuple[str, ...]) -> list[int] | str:
        if len(set(names)) < len(names):
            return 'a joint is named twice'
        ours = self._joint_names
        if not set(names) <= set(ours) and len(names) == len(ours):
            ours, names = _without_prefix(ours), _without_prefix(names)
        strangers = [name for name in names if name not in ours]
        if strangers:
            return f'joint {strangers[0][:40]!r}; allowed: {", ".join(self._joint_names)}'
        return [ours.index(name) for name in names]


def _without_prefix(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names without what all of them begin with."""
    length = len(commonprefix(names))
    return tuple(name[length:] for name in names)


def core_settings(settings: ArmSettings, limits: ReferenceLimits) -> core.Settings:
    """Return the settings of an arm for the core."""
    is_continuous = limits.continuous.astype(float)
    return core.Settings(
        settings, limits.position_limits.ravel(), limits.velocity_limits, is_continuous
    )


class CommandPipeline:
    """
    The command pipeline's state machine: enabled or not, fresh or stale, following or not.

    Parameters
    ----------
    law : ControlLaw
        The model, and the settings.
    joint_states : JointStateBuffer
        Asked for staleness only; the states themselves come through ``step``. It knows whether
        time is simulated.
    reference_limits : ReferenceLimits
        What a trajectory must respect.

    Attributes
    ----------
    added : AddedEffort or None
        Efforts of another node, added to the law's torque within all limits.
    law : ControlLaw
        The latest; the active one may still be in transition to it.
    state : MeasuredState or None
        That of the last valid cycle since enabling, with the velocity that the law used.
    stale_cause : str
        Why the state was last found stale, as it was then; empty: it never was.
    """

    def __init__(
        self,
        law: ControlLaw,
        joint_states: JointStateBuffer,
        reference_limits: ReferenceLimits,
    ) -> None:
        self.added: AddedEffort | None = None
        self.law = law
        self.state: MeasuredState | None = None
        self.stale_cause = ''
        self.reference_limits = reference_limits
        self._joint_states = joint_states
        self._core = core.ArmRuntime(self._arm(law), core_settings(law.settings, reference_limits))
        self._stream = PositionStream()
        self._tip = TipTargets(self._core)
        self._refusal = ''  # of the last state, where it was refused
        self._changes_before = -1  # of faults, when the mode was changed
        self._contact = ''  # that was reacted to last
        self._dropped_by = ''  # the cause for which states were stale then

    @property
    def settings(self) -> ArmSettings:
        """
        Its settings; may be changed for the same number of joints.

        Limits and policies change at once, the mode, the gains and the terms by a transition. A
        reference is kept while an active law follows one. Where feedback begins far from it, the
        arm is braked instead.
        """
        return self.law.settings

    @settings.setter
    def settings(self, settings: ArmSettings) -> None:
        former = self.settings.mode
        self._core.change_settings(core_settings(settings, self.reference_limits))
        self.law = replace(self.law, settings=settings)
        if former != settings.mode:
            self._changes_before = self.fault_changes

    # --- requests --------------------------------------------------------------------------

    def enable(self, now: float) -> None:
        """Start to command with the next complete state."""
        if not self.is_enabled:
            self.state, self._refusal, self.stale_cause = None, '', ''
            self._core.enable(now)

    def listen(self, until: float) -> None:
        """Command nothing before a steady time [s]: each source may have sent a state by then."""
        self._core.listen(until)

    @property
    def is_contradicted(self) -> bool:
        """Whether sources of joint states contradict each other."""
        return self._core.is_contradicted

    def disable(self) -> None:
        """Stop commanding; call ``stop_command`` before."""
        self._tip.end()
        self._core.disable()

    def _arm(self, law: ControlLaw) -> Any:
        tip = law.forward_kinematics, law.jacobian
        limits = self.reference_limits
        joints = len(limits.joint_names)
        return core_arm(
            law.inverse_dynamics, law.friction, joints, tip, limits.reach, law.coupling
        )

    def change_load(self, inverse_dynamics: InverseDynamics, *, check: bool = False) -> None:
        """
        Change to the model under another payload or gravity; reference and feedback continue.

        The next cycle commands what the new model asks for, and the rate limit shapes the change
        of torque. Where a joint has none, the old model fades into the new one.

        Raises
        ------
        Overload
            Gravity is beyond an effort limit where the arm is, and was not before, where that is
            to be checked; nothing has changed then.
        """
        law = replace(self.law, inverse_dynamics=inverse_dynamics)
        fault = self._core.change_load(self._arm(law), check)
        if fault.cause != core.Cause.none:
            what, allowed = self._core_words(fault)
            element, _, torque = what.rpartition(': ')
            raise Overload(element, fault.value, allowed, unit=torque.partition(' ')[2])
        self.law = law

    def follow(self, trajectory: Trajectory) -> None:
        """
        Follow a trajectory from now on.

        Raises
        ------
        NotFollowing
            Disabled or stopping, or a mode that follows none.
        RejectedTrajectory
            No fresh joint state with known velocities, stamps that do not keep pace with time,
            joint states that come too seldom for the gains, or what ``planned_reference``
            refuses. What was followed before is still followed.
        """
        self._require('trajectory', self._core.reference_refusal)
        if not self._core.is_clock_reliable(self._core.last_cycle):
            is_stopped = self._core.is_clock_stopped
            how = 'stand still' if is_stopped else 'run faster or slower than time'
            raise RejectedTrajectory(
                'trajectory',
                Phrase(f"the joint states' stamps {how}"),
                'a clock that keeps pace',
            )
        state = self.state
        if state is None or self.is_stale or not state.has_velocities:
            raise RejectedTrajectory(
                'trajectory',
                Phrase('there is no fresh joint state'),
                'one once positions and velocities of all joints are known',
            )
        self._check_rate()
        zero = np.zeros_like(state.position)
        measured = ReferenceState(state.position, state.velocity, zero, zero)
        followed = self._core.followed
        current = None if followed is None else Reference(followed)
        limits = self.reference_limits
        planned = planned_reference(
            trajectory, state.time, measured, current, limits, self.settings, self._stream
        )
        self._tip.end()
        self._core.follow(planned.motion)

    def aim_tip(self, pose: TipPose, *, is_relative: bool = False) -> None:
        """
        Let the tip of an impedance go to a pose, smoothly and no faster than ``tip_speed``.

        It stays there until another target, a trajectory, a cancellation, or whatever brakes the
        arm.

        Parameters
        ----------
        pose : TipPose
            In base axes; or, where it is relative, in the frame of the present tip reference.

        Raises
        ------
        NotFollowing
            Disabled or stopping, a mode without a spring at the tip, or nothing is followed yet.
        RejectedTarget
            Beyond the arm's reach, or a fault is not acknowledged.
        """
        self._require('target pose', self._tip.aim(pose, is_relative))

    def follow_poses(
        self,
        times: Sequence[float],
        poses: Sequence[TipPose],
        *,
        start: float | None = None,
        is_relative: bool = False,
    ) -> None:
        """
        Let the tip follow poses; the last one stays the target.

        It moves as with ``aim_tip``, from where its reference is to the first pose in the time of
        that: some tenths of a second behind, and no faster than ``tip_speed``.

        Parameters
        ----------
        times : sequence of k float
            After the start [s], from 0 on and strictly increasing.
        poses : sequence of k TipPose
            As in ``aim_tip``; relative to the tip reference of now.
        start : float, optional
            On the clock of the joint states [s]; not given: now.

        Raises
        ------
        NotFollowing, RejectedTarget
            As ``aim_tip``; times that are none, or are over already.
        """
        checked_times(times)
        what = 'target poses'
        self._require(what, self._core.target_refusal(is_pose=True))
        reference = self._pose_in_base(what, _ORIGIN, is_relative=True)
        targets = [self._pose_in_base(what, pose, is_relative) for pose in poses]
        now = 0.0 if self.state is None else self.state.time
        begin = now if start is None else start
        at = [begin + time for time in times]
        if at[-1] < now:
            raise RejectedTarget(what, Phrase(f'over {now - at[-1]:.3g} s ago'), 'poses to come')
        if at[0] > now:  # from where the reference is until then
            targets, at = [reference, *targets], [begin if now < begin < at[0] else now, *at]
        poses_in_time = PoseTrajectory(tuple(at), tuple(targets))
        self._require(what, self._tip.follow(poses_in_time, now))

    def add_wrench(
        self, wrench: Sequence[float] | np.ndarray, now: float, *, is_relative: bool = False
    ) -> None:
        """
        Add a wrench at the tip of an impedance; it fades in, and ends when it is not renewed.

        Parameters
        ----------
        wrench : array-like, shape (6,)
            Force [N] and moment [N m], in base axes; or, where it is relative, in those of the
            present tip reference. It is gone ``state_timeout`` after it came.
        now : float
            Steady time [s].

        Raises
        ------
        NotFollowing
            As ``aim_tip``, but any impedance will do.
        RejectedTarget
            Not finite, larger than ``largest_force`` or ``largest_moment``, or a fault is not
            acknowledged.
        """
        self._require('target wrench', self._core.add_wrench(wrench, now, is_relative))

    def weigh(self, gravity: np.ndarray) -> None:
        """
        Weigh what the hand takes in the next second, and carry it, in an impedance at rest.

        Parameters
        ----------
        gravity : array, shape (3,)
            In base axes [m/s²].

        Raises
        ------
        NotFollowing, RejectedTarget
            As ``add_wrench``; the arm moves, or did 0.3 s ago.
        """
        self._require('load', self._core.weigh(gravity))

    @property
    def weighing(self) -> str:
        """What became of ``weigh``, as text: none, weighing, carried 1.5 kg, refused, given up."""
        state, mass, refusal = self._core.weighing
        words = [state.replace('_', ' '), f'{mass:.3g} kg' if state == 'carried' else '']
        if refusal.cause != core.Cause.none:
            wrong, allowed = self._core_words(refusal)
            words.append(f'(refused: {wrong}; allowed: {allowed})')
        return ' '.join(filter(None, words))

    def cancel(self) -> None:
        """Cancel the reference: brake to rest and hold, or fade. Acknowledges faults."""
        self._tip.end()
        self._core.cancel()

    def begin_stop(self) -> None:
        """Bring a moving arm to rest, until ``has_stopped``; trajectories are refused."""
        self._tip.end()
        self._core.begin_stop()

    def react_to_contact(self, action: ContactAction, what: str) -> None:
        """
        Drop the reference because of a contact that the text describes.

        ``stop`` brakes to rest and holds, where the law has feedback; a brake that is under way
        goes on. In an impedance it only ends a motion of the reference, targets of the tip and an
        added wrench: the springs yield. In other modes, and with ``float``, gravity is compensated
        and damping brings the arm to rest. A new trajectory or a cancellation acknowledges it,
        like a fault.
        """
        if action != 'report' and self.is_enabled:
            self._contact = what
            self._tip.end()
        self._core.react_to_contact(getattr(core.ContactAction, action))

    def continue_from(self, torque: np.ndarray, sent: float) -> None:
        """
        Continue from a torque that another process commanded, sent at a steady time [s].

        As after stale states, the reference is dropped.
        """
        cause = 'the watchdog commanded meanwhile'
        self._noting_staleness(lambda: cause, lambda: self._core.continue_from(torque, sent))

    # --- commands --------------------------------------------------------------------------

    def step(self, state: MeasuredState, now: float) -> Command | None:
        """
        Return the command of one control cycle, or None where there must be none.

        Parameters
        ----------
        state : MeasuredState
            Every joint refreshed since the last cycle.
        now : float
            Steady time [s].
        """
        if self._joint_states.stale_joints(now):
            return None
        self._tip.advance(state.time)
        found = self._core.step(
            state.position,
            state.velocity,
            state.time,
            state.stamped,
            now,
            self._joint_states.elapsed.simulated,
            self._added(now),
            state.lag,
        )
        if found is None:
            self._refusal = self._why_refused()
            if not self._core.has_state:  # a first state that the second one contradicts
                self.state = None
        else:
            self._refusal = ''
        if self._core.is_contradicted:
            self._refusal = self.stale_cause = CONTRADICTION
        elif found is not None:
            # The checked velocity: that of the driver may be in degrees.
            if self._core.has_other_velocity:
                state = state._replace(velocity=self._core.velocity)
            self.state = state
        return None if found is None else Command(*found, self.state or state)

    def watchdog(self, now: float) -> Command | None:
        """
        Return the command for a late or a stale state at this time, or None.

        Call it once per watchdog period. A state is stale when a joint is, or when no cycle gave
        a valid torque for as long; until then it is extrapolated.
        """
        state = self.state
        if not self._core.is_enabled or state is None:
            return None
        self._tip.advance(state.time)
        stale = self._joint_states.stale_joints(now)

        def cause() -> str:
            if stale:
                return f'no fresh state of {", ".join(stale)}'
            return self._refusal or 'no control cycle in time'

        simulated, added = self._joint_states.elapsed.simulated, self._added(now)
        found = self._noting_staleness(
            cause, lambda: self._core.watchdog(now, bool(stale), simulated, added)
        )
        return None if found is None else Command(*found, state)

    def stop_command(self, now: float) -> Command | None:
        """
        Return the next command toward the torque of ``on_stop``; None once that was sent.

        Call it repeatedly to end commanding, after ``begin_stop`` where the arm moves, and before
        ``disable``. The torque changes at the rate limit; without a limit it is one command. The
        first call computes the final torque, for the last valid state.
        """
        found = self._core.stop_command(now)
        if found is None or self.state is None:
            return None
        return Command(*found, self.state)

    def sent(self, now: float) -> None:
        """
        Record that the last command was sent by a steady time [s].

        So the rate limit counts from one sent command to the next, however late a cycle was.
        """
        self._core.sent(now)

    # --- its state -----------------------------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """Whether it commands, or will with the next complete state."""
        return self._core.is_enabled

    @property
    def is_stale(self) -> bool:
        """Whether the watchdog found the state stale and no valid cycle came since."""
        return self._core.is_stale

    @property
    def has_stopped(self) -> bool:
        """Whether the stop command may follow: no motion, or no states."""
        return self._core.has_stopped

    @property
    def is_model_blending(self) -> bool:
        """Whether one model fades into another."""
        return self._core.is_model_blending

    @property
    def fallback(self) -> str:
        """The active stale-state policy: one of ``ACTIONS``, or none."""
        if not self.is_stale:
            return 'none'
        action = self.settings.on_stale_state
        return (
            'silent' if action == 'hold_gravity' and not self._core.is_holding_gravity else action
        )

    @property
    def last_torque(self) -> np.ndarray | None:
        """The last command, shape (n,) [N m] or [N]; None before the first."""
        return self._core.torque

    @property
    def last_fault(self) -> str:
        """Why a reference was last dropped, or commanding refused; empty: it was not."""
        faults = self._core.faults
        return '; '.join(map(self._words, faults)) if faults else ''

    @property
    def fault_changes(self) -> int:
        """How often a fault began, or all were acknowledged."""
        return self._core.fault_changes

    @property
    def is_fault_of_former_mode(self) -> bool:
        """Whether the last fault is older than the last change of the mode."""
        return self.fault_changes == self._changes_before

    @property
    def begins_in(self) -> float:
        """Time until what waits begins [s]; 0: nothing waits."""
        motion, state = self._core.followed, self.state
        if motion is None or state is None or self.reference_status != 'waiting':
            return 0.0
        return float(motion.knots[0]) - state.time

    @property
    def last_drop(self) -> str:
        """Why a reference was last dropped without a request; empty: none was."""
        return self._words(self._core.last_drop)

    @property
    def refused_torques(self) -> int:
        """How many cycles had no finite torque, or a load that the drives cannot carry."""
        return self._core.counts[0]

    @property
    def implausible_states(self) -> int:
        """How many states the joints cannot have reached."""
        return self._core.counts[1]

    @property
    def following_errors(self) -> int:
        """How many references were dropped because the following error was too large."""
        return self._core.counts[2]

    @property
    def dropped_references(self) -> int:
        """How many references were dropped without a request."""
        return self._core.counts[3]

    @property
    def reference_status(self) -> str:
        """One of: none, waiting, moving, braking, holding."""
        return self._core.following.name

    @property
    def slow_rate(self) -> float | None:
        """How often states come [Hz], where that is too seldom for gravity compensation."""
        return 1.0 / self._core.period if self._core.is_slow else None

    @property
    def wrong_velocities(self) -> list[str]:
        """Which joints' velocities are not those of their positions, as text; empty: none."""
        ratios = self._core.wrong_velocities
        return [self._velocity(i, ratios[i]) for i in np.flatnonzero(~np.isnan(ratios)).tolist()]

    @property
    def needed_rate(self) -> str:
        """How many joint states in a second the feedback needs, as text; empty: it has none."""
        rate = self._core.needed_rate
        return self._needed_rate(rate) if rate > 0.0 else ''

    @property
    def is_stiffness_limited(self) -> bool:
        """Whether the last cycle's springs were made softer, for rates of states or torques."""
        return bool(self._core.is_stiffness_limited)

    @property
    def least_stiffness(self) -> float:
        """Of the stiffness of the arm's modes, the least that both rates leave."""
        return float(self._core.least_stiffness)

    @property
    def stiffness_in_effect(self) -> str:
        """The stiffness that acts, as text with units; empty: none."""
        joints, _, along_base, along_reference = map(np.array, self._core.stiffness)
        parts = []
        if joints.any():
            springs = replace(self.settings, mode='joint_impedance', impedance_stiffness=joints)
            parts.append(springs.stiffness)
        for frame, tip in (('base', along_base), ('reference', along_reference)):
            if tip.any():
                springs = replace(
                    self.settings,
                    mode='cartesian_impedance',
                    impedance_tip_stiffness=tip,
                    impedance_frame=frame,
                )
                parts.append(springs.stiffness)
        return ' and '.join(parts) or self.settings.stiffness

    @property
    def stiffening(self) -> str:
        """What springs that become stiffer wait for, and how long, as text; empty: nothing."""
        is_waiting, waited, energy, longest, going_back = self._core.stiffening
        if not is_waiting:
            return ''
        return (
            f'{energy:.2g} J, of dampers or of {core.TANK_POWER:g} W: '
            f'for {waited:.1f} s, {longest:.1f} s more at most, '
            f'{going_back:.1f} s where the arm goes back under a load that stays'
        )

    @property
    def tip_reference(self) -> TipPose | None:
        """Where the tip of an impedance shall be, in base axes; None: nothing is followed."""
        return None if self.reference_status == 'none' else self._tip.reference

    @property
    def is_following_poses(self) -> bool:
        """Whether a trajectory of poses is followed."""
        return self._tip.is_following

    @property
    def spring_wrench(self) -> list[float]:
        """What the tip's springs give, and what is added, in base axes, six of [N], [N m]."""
        wrench: list[float] = self._core.spring_wrench
        return wrench

    # --- how -----------------------------------------------------------------------------------

    def _added(self, now: float) -> np.ndarray | None:
        """Return the added efforts, shape (n,); None: there are none."""
        return None if self.added is None else self.added.at(now)

    def _noting_staleness(self, cause: Callable[[], str], call: Callable[[], _T]) -> _T:
        """Return the result of a call, and store the cause if states became stale in it."""
        was_stale, drops = self.is_stale, self.dropped_references
        found = call()
        if self.is_stale and not was_stale:
            self.stale_cause = cause()
            if self.dropped_references != drops:
                self._dropped_by = self.stale_cause
        return found

    def _why_refused(self) -> str:
        """Return why a state gave no torque, as text."""
        refusal = self._core.refusal
        if refusal == core.Refusal.implausible:
            return 'no plausible state'
        return 'no finite torque' if refusal == core.Refusal.not_finite else self._refusal

    def _require(self, what: str, refusal: core.Fault) -> None:
        """
        Put the core's refusal of a request into words; none: return.

        Raises
        ------
        NotFollowing, RejectedTarget
        """
        if refusal.cause == core.Cause.none:
            return
        is_wrong, allowed = self._core_words(refusal)
        if refusal.cause == core.Cause.unacknowledged:
            is_wrong = f'after {self.last_fault}'
        error = NotFollowing if refusal.cause in _NOTHING_FOLLOWED else RejectedTarget
        raise error(what, Phrase(is_wrong), allowed)

    def _pose_in_base(self, what: str, pose: TipPose, is_relative: bool) -> TipPose:
        """Return a pose in base axes, or refuse one that is out of reach or of no reference."""
        refusal, *target = self._core.pose_in_base(pose.position, pose.xyzw, is_relative)
        self._require(what, refusal)
        return TipPose(*map(np.array, target))

    def _check_rate(self) -> None:
        """
        Refuse to follow a trajectory where joint states come too seldom for the gains.

        Raises
        ------
        RejectedTrajectory
            They do.
        """
        lag, needed = self._core.lag, self._core.needed_rate
        delay = self._core.period + lag
        if not delay * needed > 1.0:
            return
        kp, kd = self.settings.kp.max(), self.settings.kd.max()
        late = f' and velocities from positions, {1e3 * lag:.2g} ms late' if lag > 0.0 else ''
        raise RejectedTrajectory(
            'trajectory',
            Phrase(
                f'kd T = {kd * delay:.2g} and sqrt(kp) T = {kp**0.5 * delay:.2g} '
                f'with joint states at {1.0 / self._core.period:.3g} Hz{late}'
            ),
            f'at most {core.LARGEST_KD_T:g} and {core.LARGEST_ROOT_KP_T:.2g}: '
            f'{self._needed_rate(needed)}',
        )

    def _needed_rate(self, rate: float) -> str:
        kp, kd = self.settings.kp.max(), self.settings.kd.max()
        return f'kp = {kp:g} and kd = {kd:g} need {rate:.3g} Hz'

    def _velocity(self, joint: int, ratio: float) -> str:
        """Return what is wrong with a velocity that is ``ratio`` times that of the positions."""
        return f'velocity of joint {self._name(joint)!r} {velocity_error(ratio)}'

    def _name(self, joint: int) -> str:
        return self.reference_limits.joint_names[joint]

    def _words(self, fault: core.Fault) -> str:
        """Return a fault of the core as text."""
        cause = fault.cause
        if cause == core.Cause.none:
            return ''
        if cause == core.Cause.stale_state:
            return self._dropped_by
        if cause == core.Cause.contact:
            return self._contact
        if cause == core.Cause.wrong_velocity:
            return f'{self._velocity(fault.joint, fault.value)}: taken from positions instead'
        what, allowed = self._core_words(fault)
        return f'{what}; allowed: {allowed}' if allowed else what

    def _core_words(self, fault: core.Fault) -> tuple[str, str]:
        """Return what is wrong, and what is allowed, in words."""
        limits = self.reference_limits
        return self._core.words(fault, limits.joint_names, limits.possible.prismatic.tolist())


# Refusals of whatever is sent at present.
_NOTHING_FOLLOWED = {
    core.Cause.inactive,
    core.Cause.no_following_mode,
    core.Cause.mode_without_tip,
    core.Cause.mode_without_springs,
    core.Cause.not_followed,
    core.Cause.no_spring,
}
