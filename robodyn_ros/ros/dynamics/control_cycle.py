# SPDX-License-Identifier: Apache-2.0
"""
What the node does from configure to clean-up: joint states and trajectories in, commands out.

It counts what happened in the cycles, and how long they took.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode
from rclpy.timer import Timer
from sensor_msgs.msg import JointState

from robodyn_ros.control.command_pipeline import CONTRADICTION, Command
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.drift import DriftSample, DriftWatch
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros import graph
from robodyn_ros.ros.command_conflicts import CommandConflictMonitor
from robodyn_ros.ros.controller_activity import ControllerWatch
from robodyn_ros.ros.dynamics.contact_topics import ContactTopics
from robodyn_ros.ros.dynamics.outputs import CycleOutputs
from robodyn_ros.ros.dynamics.tip_topics import TipTopics
from robodyn_ros.ros.joint_states import WARNING_PERIOD, StateReception, ros_time
from robodyn_ros.ros.qos import SENSOR
from robodyn_ros.ros.shared_memory import SharedMemory
from robodyn_ros.ros.trajectory_message import Rejections, TrajectoryMessage
from robodyn_ros.ros.watchdog import WatchdogProcess

STOP_PERIOD = 0.001  # between the steps of the stop command to its torque [s]
LONGEST_BRAKING = 3.0  # that an arm is given to come to rest before [s]
LONGEST_STOP = 4.0  # that all of it may take [s]: launch files kill a process after 5 s
LONGEST_RETURN = 1.5  # until the watchdog leaves the commands to this, or is killed [s]
DELIVERY_TIMEOUT = 0.2  # that the stop command is given to reach its subscribers [s]
WAITING_TIME = 3.0  # for what is missing at the beginning, before the log says what [s]
MOST_MISSES = 3  # of joint states that are logged one by one; more that follow are counted
MISSES_PERIOD = 10.0  # in which they are counted then [s]
LISTENING_TO_SOURCES = 1.2  # before the first torque, to more than one [s]
LONGEST_LISTENING = 0.5  # for other commanders before activation [s]
LONG_WAIT = 60.0  # for a trajectory to begin, of which more is a warning [s]
DRIFT_PERIOD = 60.0  # between two lines of the log that say that the arm drifts [s]
LATE = 3.0  # watchdog periods without the timer, after which only the newest state is answered
_GAP_WINDOW = 5.0  # in which gaps between joint states are counted together [s]
_MOST_GAPS = 100  # that are remembered
_PERCENTILES = (50, 90, 99, 100)  # of the cycle times; the last is the longest


@dataclass(frozen=True)
class Recent:
    """
    The cycles since the last report.

    Parameters
    ----------
    cycles : int
        How many.
    rate : float
        [1/s]
    cycle_times : array, shape (4,)
        The ``_PERCENTILES`` of the time from a joint state to its command [s].
    saturated, beyond : array of int
        Indices of the joints that an effort limit held back, and of those beyond a position limit.
    refused : int
        States that no command followed from.
    lateness : float
        By which the watchdog timer came too late, at worst [s].
    gaps : list of float
        For how long joint states were missed, each time within ``_GAP_WINDOW`` [s].
    """

    cycles: int
    rate: float
    cycle_times: np.ndarray
    saturated: np.ndarray
    beyond: np.ndarray
    refused: int
    lateness: float
    gaps: list[float]


@dataclass
class CycleCounts:
    """
    Counts since the node was configured, and since the last report.

    Parameters
    ----------
    cycles, missed_cycles : int
        Control cycles, and times that joint states failed to come in time.
    effort_limited, rate_limited : int
        Cycles in which that limit changed a torque.
    malformed : int
        Joint states that could not be read.
    last_malformed : str
        Why the last joint state was refused; empty: none was.
    rejections : Rejections
        Of trajectories.
    late_watchdogs : int
        Times that the watchdog timer came later than by its period.
    """

    cycles: int = 0
    missed_cycles: int = 0
    effort_limited: int = 0
    rate_limited: int = 0
    malformed: int = 0
    last_malformed: str = ''
    rejections: Rejections = field(default_factory=Rejections)
    late_watchdogs: int = 0
    _refused: int = 0
    _lateness: float = 0.0
    _gaps: list[tuple[float, float]] = field(default_factory=list)
    _since: float = field(default_factory=time.monotonic)
    _cycle_times: list[float] = field(default_factory=list)
    _saturated: np.ndarray | None = None
    _beyond: np.ndarray | None = None

    def count(self, command: Command, cycle_time: float) -> None:
        """Count one control cycle that took a time [s]."""
        self.cycles += 1
        self._cycle_times.append(cycle_time)
        if not command.is_limited:
            return
        if command.effort_limited.any():
            self.effort_limited += 1
            before = False if self._saturated is None else self._saturated
            self._saturated = command.effort_limited | before
        if command.position_limited.any():
            before = False if self._beyond is None else self._beyond
            self._beyond = command.position_limited | before
        self.rate_limited += bool(command.rate_limited.any())

    def late(self, lateness: float) -> None:
        """Count a watchdog timer that came too late by a time [s]."""
        self.late_watchdogs += 1
        self._lateness = max(self._lateness, lateness)

    def recovered(self, gap: float, now: float) -> None:
        """Count that joint states are back after a gap [s], at a steady time [s]."""
        self._gaps = [*self._gaps[1 - _MOST_GAPS :], (now, gap)]

    def recent(self, now: float, refused: int) -> Recent:
        """Return the counts since the last call; ``refused`` is the total of refused states."""
        times = self._cycle_times
        elapsed = now - self._since
        saturated, beyond = (
            np.empty(0, int) if joints is None else np.flatnonzero(joints)
            for joints in (self._saturated, self._beyond)
        )
        newly_refused, lateness = refused - self._refused, self._lateness
        gaps = [gap for ended, gap in self._gaps if now - ended < _GAP_WINDOW]
        self._since, self._cycle_times, self._saturated, self._beyond = now, [], None, None
        self._refused, self._lateness = refused, 0.0
        return Recent(
            len(times),
            len(times) / elapsed if elapsed > 0.0 else 0.0,
            np.percentile(times or [0.0], _PERCENTILES),
            saturated,
            beyond,
            newly_refused,
            lateness,
            gaps,
        )


class ControlCycle:
    """
    Runs a command pipeline on a node's topics, from configure to clean-up.

    Parameters
    ----------
    node : LifecycleNode
        Owns the topics.
    stack : ControlStack
        What to run.
    settings : ControlSettings
        What it was configured with.
    report : callable
        Publishes the node's diagnostics and returns that of the torque; called when they change.
    shared : SharedMemory
        Where each cycle is written for the watchdog and the services.
    watchdog : WatchdogProcess
        Commands in this one's place when it no longer hears of it.

    Raises
    ------
    InvalidArgument
        The controller that the settings name cannot be watched.
    """

    def __init__(
        self,
        node: LifecycleNode,
        stack: ControlStack,
        settings: ControlSettings,
        report: Callable[[], DiagnosticStatus],
        shared: SharedMemory,
        watchdog: WatchdogProcess,
    ) -> None:
        self._controller = ControllerWatch.of(node, settings)  # first: it may be refused
        self.stack = stack
        self.counts = CycleCounts()
        self._node = node
        self._report = report
        self._shared = shared
        self._cycles = shared.cycles
        self._cycles.begin(stack.model.n)
        self._watchdog = watchdog
        self._watchdog_period = settings.watchdog_period
        self._watchdog_timer: Timer | None = None
        self._was_taken_over = False
        self._is_missed = self._is_reported_stale = False
        self._reported_stale = self._missed_since = -math.inf
        self._reported_changes = 0
        self._reported_velocities: dict[str, str] = {}
        self._reported_drops = 0
        self._last_watchdog = math.inf
        self._drift, self._drift_logged_at = DriftWatch(), -math.inf
        self.drift = ''  # of a weightless arm, and what explains it
        self._started = -math.inf
        self._last_logged_missing = ''  # at the beginning
        self._logged_contradiction = ''
        self._logged_misses = self._counted_misses = 0
        self._states = StateReception(node, stack.joint_states, self.counts)
        self._stamp = Time()
        self._outputs = CycleOutputs(
            node,
            stack.model.joint_names,
            stack.order,
            stack.units.command_scale,
            settings.state_publish_rate,
        )
        self.contacts = self._outputs.contacts = ContactTopics(node, stack, settings)
        self.tip = TipTopics(node, stack, settings, self._start, self._check_controller)
        self._subscription = node.create_subscription(
            JointState, 'joint_states', self._on_joint_state, SENSOR, raw=True
        )

    @property
    def others(self) -> CommandConflictMonitor:
        """Other publishers on the commands' topic."""
        return self._outputs.others

    @property
    def subscribers(self) -> int:
        """Number of subscribers to the commands or the torques, without this node."""
        return self._outputs.subscribers

    @property
    def no_subscriber(self) -> str:
        """A message that nobody subscribes to the commands, and where a subscriber may be."""
        return self._outputs.no_subscriber_hint

    @property
    def no_joint_state(self) -> str:
        """A message that no joint state has come, and where there may be some."""
        return self._states.no_publisher_hint

    @property
    def contradiction(self) -> str:
        """Which nodes send joint states that contradict each other, as text; empty: they agree."""
        if not self.stack.pipeline.is_contradicted:
            return ''
        topic = self._node.resolve_topic_name('joint_states')
        names = ', '.join(graph.publishers(self._node, topic)) or 'a node'
        return (
            f'{CONTRADICTION}: {names} publish on {topic}; allowed: one source for each joint. '
            'End or remap the other one'
        )

    def other_commander(self) -> str:
        """Return which other node has commanded recently, as text; empty: none has."""
        return self.others.heard_before_activation(self._listening_time)

    def update_command_conflicts(self) -> None:
        """Update the command conflicts; call it once per diagnostics period."""
        before = self.others.names
        self.others.look()
        contradiction = self.contradiction
        if contradiction and contradiction != self._logged_contradiction:
            self._node.get_logger().error(contradiction)
        self._logged_contradiction = contradiction
        if self.stack.pipeline.is_enabled and self.others.recent:
            self._node.get_logger().error(self.others.text)
        elif self.others.names != before and self.others.text:
            self._node.get_logger().warning(self.others.text)

    def log_missing_inputs(self, status: DiagnosticStatus) -> None:
        """
        Log, once each, what diagnostics report as missing: the first states, or a subscriber.

        What is wrong with states that come again after a pause is logged, too, and that a
        simulation stands still or has no clock.

        Parameters
        ----------
        status : DiagnosticStatus
            Of the torque; call this once per diagnostics period.
        """
        pipeline = self.stack.pipeline
        has_no_subscriber = self.subscribers == 0 and status.level == DiagnosticStatus.WARN
        trouble = self.stack.joint_states.trouble() if pipeline.is_stale else ''
        is_held_up = self.stack.joint_states.standstill(time.monotonic()) > 0.0
        is_clockless = self.stack.joint_states.elapsed.lacks_clock
        is_missing = has_no_subscriber or trouble or is_held_up or is_clockless
        if not pipeline.is_enabled or not (pipeline.state is None or is_missing):
            return
        is_due = time.monotonic() - self._started > WAITING_TIME
        what = _without_numbers(trouble or status.message)
        if is_due and what != self._last_logged_missing:
            self._last_logged_missing = what
            # Two calls: rclpy raises where one is made with another severity than before.
            if status.level == DiagnosticStatus.ERROR:
                self._node.get_logger().error(status.message)
            else:
                self._node.get_logger().warning(status.message)

    def start(self) -> None:
        """Start to command with the next complete joint state."""
        self._started, self._last_logged_missing = time.monotonic(), ''
        self._last_watchdog = math.inf
        self.others.begin_commanding()
        self._update_subscribers()
        self.stack.pipeline.enable(self._started)
        topic = self._node.resolve_topic_name('joint_states')
        if len(self._node.get_publishers_info_by_topic(topic)) > 1:
            self.stack.pipeline.listen(self._started + LISTENING_TO_SOURCES)
        self._watchdog_timer = self._node.create_timer(
            self._watchdog_period, self._on_watchdog, clock=Clock(clock_type=ClockType.STEADY_TIME)
        )

    def begin_again(self) -> str:
        """Command again after a stop; return which other node commands; empty: none does."""
        if self.stack.pipeline.is_enabled:
            return ''
        if other := self.others.heard_recently(self._listening_time):
            return other
        self.others.begin_commanding()
        self.stack.pipeline.enable(time.monotonic())
        return ''

    def leave(self) -> None:
        """Stop commanding without a stop command: another node commands."""
        self.stack.pipeline.disable()
        self._beat(time.monotonic())

    def stop_commanding(self) -> None:
        """Bring a moving arm to rest, send the stop command, and stop commanding."""
        pipeline, begin = self.stack.pipeline, time.monotonic()
        if not pipeline.is_enabled:
            return
        while self._is_taken_over() and time.monotonic() - begin < LONGEST_RETURN:
            time.sleep(STOP_PERIOD)
        pipeline.begin_stop()
        if self._controller is None or self._controller.may_be_active:  # else nothing brakes it
            while not pipeline.has_stopped and time.monotonic() - begin < LONGEST_BRAKING:
                self._command_without_executor()
        if self._controller is not None:
            self._controller.deactivate(self._command_without_executor)
        self._send_stop_command(begin)
        pipeline.disable()
        self.others.end_commanding()
        self._beat(time.monotonic())

    def stop(self) -> None:
        """End commanding, and the watchdog with it."""
        self.stop_commanding()
        if self._watchdog_timer is not None:
            self._outputs.wait_for_delivery(DELIVERY_TIMEOUT)
            self._node.destroy_timer(self._watchdog_timer)
            self._watchdog_timer = None
            self.others.end_commanding()

    def destroy(self) -> None:
        """Stop, and close the topics."""
        self.stop()
        self._node.destroy_subscription(self._subscription)
        self._outputs.destroy()
        if self._controller is not None:
            self._controller.destroy()
        self.contacts.destroy()
        self.tip.destroy()

    def _command_without_executor(self) -> None:
        """Continue to command for a short time, where no executor runs."""
        self._take_states()
        self._on_watchdog()
        time.sleep(STOP_PERIOD)

    def _update_subscribers(self) -> None:
        """Update which topics have subscribers, and so what is computed and published."""
        self._outputs.look_for_subscribers()
        self.contacts.look_for_subscribers(are_states_heard=self._outputs.are_states_heard)
        self.tip.look_for_subscribers()

    @property
    def _listening_time(self) -> float:
        return min(2.0 * self.stack.pipeline.settings.state_timeout, LONGEST_LISTENING)

    def _take_states(self) -> None:
        """Take the queued joint states, where no executor does it."""
        for content in self._states.waiting(self._subscription):
            self._on_joint_state(content)

    def _send_stop_command(self, begin: float) -> None:
        """Send the stop command at the pace of the rate limit; stopping began at a time [s]."""
        pipeline = self.stack.pipeline
        while (command := pipeline.stop_command(now := time.monotonic())) is not None:
            self._publish(command, now)
            self._beat(now)
            if now - begin > LONGEST_STOP:
                self._node.get_logger().error(
                    f'stopped {LONGEST_STOP} s after the request, before on_stop was reached: '
                    f'{pipeline.settings.on_stop}: torque_rate_limit is too small to get there'
                )
                break
            if command.rate_limited.any():
                time.sleep(STOP_PERIOD)

    def _on_joint_state(self, content: bytes) -> None:
        now = time.monotonic()
        is_active = self._watchdog_timer is not None
        if is_active and now - self._last_watchdog > LATE * self._watchdog_period:
            # Were each answered, the executor's queue would grow, and timers wait ever longer.
            for newer in self._states.waiting(self._subscription):
                self._states.receive(content, now)
                content = newer
        self._states.receive(content, now)
        joint_states, pipeline = self.stack.joint_states, self.stack.pipeline
        if not joint_states.is_complete:
            return
        state = joint_states.take()
        if self._is_taken_over():
            return
        acting = pipeline.last_torque
        command = pipeline.step(state, time.monotonic())
        self._look_for_faults()
        self._cycles.received(state, joint_states.received)
        if command is None:
            self._cycles.write()
        else:
            self._stamp.sec, self._stamp.nanosec = joint_states.stamp
            self.counts.count(command, self._publish(command, now))
            if self.contacts.is_active:
                self.contacts.update(command.state, acting, self._stamp)
            if self.tip.has_subscribers:
                self.tip.publish(command, self._stamp)
            if self.counts.cycles == 1:
                self._node.get_logger().info('commanding')
        if command is not None and self._is_missed:
            self._is_missed = False
            if (gap := now - self._missed_since) > pipeline.settings.state_timeout:
                self.counts.recovered(gap, now)
            if self._is_reported_stale:
                self._is_reported_stale = False
                self._report()
                # Where the node itself stood still, the states came as soon as it looked.
                after = f', after {gap:.2f} s without fresh joint states' if gap >= 0.01 else ''
                self._node.get_logger().info(f'commanding again{after}')

    def _look_for_faults(self) -> None:
        """Log the command pipeline's new faults, once."""
        pipeline = self.stack.pipeline
        if (changes := pipeline.fault_changes) != self._reported_changes:
            self._reported_changes = changes
            if fault := pipeline.last_fault:
                self._node.get_logger().error(fault)
                self._reported_velocities = self._kinds_of_wrong_velocities()
                self._report()
        if (drops := pipeline.dropped_references) != self._reported_drops:
            self._reported_drops = drops
            self._node.get_logger().warning(f'reference dropped: {pipeline.last_drop}')

    def _kinds_of_wrong_velocities(self) -> dict[str, str]:
        """Return what is wrong with velocities, without its numbers, and with them."""
        return {_without_numbers(words): words for words in self.stack.pipeline.wrong_velocities}

    def _look_for_wrong_velocities(self) -> None:
        """Log what is wrong with velocities where it is not what was logged when it was found."""
        # The first verdict is of some hundredths of a second, which may hold a gap or a step.
        found = self._kinds_of_wrong_velocities()
        if self._reported_velocities:
            for kind in found.keys() - self._reported_velocities.keys():
                self._node.get_logger().error(f'{found[kind]}: taken from positions instead')
        self._reported_velocities = {**self._reported_velocities, **found} if found else {}

    def _on_watchdog(self) -> None:
        now = time.monotonic()
        pipeline = self.stack.pipeline
        self._beat(now)
        self._look_for_lateness(now)
        if self._controller is not None:
            self._controller.keep_from_following(pipeline, now)
        self._update_subscribers()
        self._look_for_drift(now)
        if self._is_taken_over():
            return
        command = pipeline.watchdog(now)
        self._look_for_faults()
        self._look_for_wrong_velocities()
        if command is not None:
            self._publish(command, now)
        status = None
        if pipeline.is_stale and not self._is_missed:
            self._is_missed = True
            since = now - min(self.stack.joint_states.age(now), now - self._started)
            if since - self._missed_since > MISSES_PERIOD:  # the last one before
                self._logged_misses = self._counted_misses = 0
            self._missed_since = since
            self._counted_misses += 1
            self.counts.missed_cycles += 1
            status = self._report()
        if self._is_missed and not self._is_reported_stale and self._should_log_miss(now):
            self._is_reported_stale, self._reported_stale = True, now
            words = (status or self._report()).message
            if self._counted_misses > 1 and self._logged_misses >= MOST_MISSES:
                words += f'; joint states were missed {self._counted_misses} times since the last'
            self._last_logged_missing = _without_numbers(self.stack.joint_states.trouble())
            self._logged_misses += 1
            self._counted_misses = 0
            self._node.get_logger().error(words)

    def _should_log_miss(self, now: float) -> bool:
        """Return whether missed joint states are to be logged at a steady time [s]."""
        is_lasting = now - self._missed_since > WARNING_PERIOD
        is_counted = self._logged_misses >= MOST_MISSES and not is_lasting
        period = MISSES_PERIOD if is_counted else WARNING_PERIOD
        return now - self._reported_stale >= period

    def _look_for_drift(self, now: float) -> None:
        """Check for drift of an arm in gravity compensation, and log it."""
        pipeline, state = self.stack.pipeline, self.stack.pipeline.state
        torque = pipeline.last_torque
        is_weightless = (
            pipeline.is_enabled
            and not pipeline.is_stale
            and pipeline.reference_status == 'none'
            and pipeline.settings.terms_gravity
            and self.stack.monitor.contact is None
            and (self._controller is None or self._controller.is_active)
        )
        if state is None or torque is None or not is_weightless or not state.has_velocities:
            self._drift.forget()
            self.drift = ''
            return
        sample = DriftSample(state.time, state.position, state.velocity, torque)
        self.drift = self._drift.look(self.stack.model, sample)
        if self.drift and now - self._drift_logged_at > DRIFT_PERIOD:
            self._drift_logged_at = now
            self._node.get_logger().warning(self.drift)

    def _look_for_lateness(self, now: float) -> None:
        """Count a watchdog timer that comes late: this process was paused."""
        lateness = now - self._last_watchdog - self._watchdog_period
        self._last_watchdog = now
        if lateness > self._watchdog_period:
            self.counts.late(lateness)
        if lateness > self.stack.pipeline.settings.state_timeout:
            self.counts.missed_cycles += 1
            self._node.get_logger().warning(
                f'this process stood still for {lateness:.2f} s',
                throttle_duration_sec=WARNING_PERIOD,
            )

    def follow(self, content: bytes) -> None:
        """
        Take a trajectory, as bytes; one without points cancels the reference.

        Raises
        ------
        RejectedTrajectory
            It is not followed.
        """
        pipeline, stamp = self.stack.pipeline, 0.0
        try:
            message = TrajectoryMessage.from_bytes(content, self.stack.model.n)
            stamp = message.stamp
            if message.rows.times:
                self._check_controller()
                pipeline.follow(message.trajectory(self._start(message.stamp)))
                if others := {*message.rows.joint_names} - {*self.stack.model.joint_names}:
                    self._node.get_logger().info(
                        f'left out of trajectories: {", ".join(sorted(others))}, which move '
                        'nothing of the model',
                        once=True,
                    )
                if self.long_wait:
                    self._node.get_logger().warning(
                        self.long_wait, throttle_duration_sec=WARNING_PERIOD
                    )
            else:
                pipeline.cancel()
        except RejectedTrajectory as error:
            self.counts.rejections.note(error, stamp)
            raise

    @property
    def long_wait(self) -> str:
        """A message that a trajectory begins long after it came; empty: none does."""
        wait = self.stack.pipeline.begins_in
        if wait <= LONG_WAIT:
            return ''
        return f'the trajectory begins in {wait:.0f} s: is its stamp of another clock?'

    def _check_controller(self) -> None:
        """
        Check that a reference can be followed, where the node is told of a controller.

        Raises
        ------
        RejectedTrajectory
        """
        if self._controller is not None:
            self._controller.check_active()

    def _start(self, stamp: float) -> float | None:
        """Return a trajectory's start on the clock of the joint states [s]; None: at once."""
        state = self.stack.pipeline.state
        if stamp <= 0.0:
            return None
        if state is None or state.stamped:
            return stamp
        return time.monotonic() + stamp - ros_time(self._node)

    def _publish(self, command: Command, received: float) -> float:
        pipeline = self.stack.pipeline
        # Before: whom publishing wakes may have the processor next, and this process be killed.
        self._cycles.sent(time.monotonic(), command.torque, command.state.position)
        cycle_time = self._outputs.publish_command(command, received)
        pipeline.sent(received + cycle_time)
        self._outputs.publish_details(
            command, self._stamp, pipeline.settings.mode, received, cycle_time
        )
        return cycle_time

    def _beat(self, now: float) -> None:
        """Write the heartbeat for the watchdog."""
        self._watchdog.beat(self.stack, self._watchdog_period, now)

    def _is_taken_over(self) -> bool:
        """Return whether the watchdog commands instead; then it is asked to stop."""
        if not (self._shared.is_taken or self._was_taken_over):
            return False
        self._was_taken_over = self._watchdog.has_commands
        if self._was_taken_over:
            return True
        last = self._watchdog.continues_from()
        if last is not None:
            sent, torque = last
            self.stack.pipeline.continue_from(torque, sent)
            self.counts.missed_cycles += 1
            self._is_missed = self._is_reported_stale = True
            self._missed_since = time.monotonic()
            self._node.get_logger().error(
                'the watchdog commanded meanwhile: this process had stood still'
            )
        return False


def _without_numbers(words: str) -> str:
    """Return a message without its numbers, to compare messages whose numbers change."""
    return re.sub(r'[\d.]+', '', words)
