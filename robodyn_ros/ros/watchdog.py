# SPDX-License-Identifier: Apache-2.0
"""
A process that commands when the dynamics node no longer can, and the node's interface to it.

It waits for the node's heartbeat to stop. It has one publisher, made when the node starts, because
discovery takes time; while the node lives it neither computes nor receives anything. It wakes some
twenty times a second.

From taking over until the node commands again, or until it ends, it has a command pipeline of its
own: gravity at the arm's last position until joint states come, then gravity and damping, which
brakes the arm. Its model is Newton-Euler in NumPy, so that a fault of the generated code does not
affect the watchdog, too. Once the node is gone gravity is still compensated for a while, because a
constant torque is unstable: a Panda without friction under it moves at 5 rad/s within a second.
"""

from __future__ import annotations

import gc
import math
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import rclpy
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from rclpy.type_support import check_for_type_support
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from robodyn_ros.control.command_pipeline import Command, CommandPipeline, ControlLaw
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.control.settings import ArmSettings
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.model import RobotModel
from robodyn_ros.ros import conversions
from robodyn_ros.ros.child_process import ChildProcess
from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL, CommandListener, watchdog_name
from robodyn_ros.ros.joint_states import take_in
from robodyn_ros.ros.qos import RELIABLE, SENSOR
from robodyn_ros.ros.rclpy_workarounds import is_rejected_message
from robodyn_ros.ros.shared_memory import Names, SharedMemory, WatchdogCheck, WatchdogSettings
from robodyn_ros.ros.signals import leave_stop_signals_to_the_node

WAKE_PERIOD = 0.05  # between looks at the heartbeat, if none is due before [s]
COMMAND_PERIOD = 0.002  # between commands while the torque changes [s]
DELIVERY_TIMEOUT = 0.2  # that the stop command is given to reach its subscribers [s]
NICENESS = -10  # it is idle but when all depends on it
LONGEST_LIFE = 10  # after the node's end [s]; no bug may keep the process for longer
LATENESS_WINDOW = 1.0  # of the lateness that diagnostics tell [s]
CLOSING_TIME = 2  # that closing may take [s]

QUIET = ['--ros-args', '--disable-stdout-logs', '--disable-rosout-logs']
QUIET += ['--disable-external-lib-logs', '--']

BRAKING_RATE = 10.0  # largest rate at which velocities decay [1/s]
LONGEST_BRAKING = 4.0  # after which the arm counts as at rest in any case [s]
DISCOVERY_TIME = 0.5  # for the first joint states [s]

RETURN_TIMEOUT = 1.0  # that it is given to leave the commands to a node that asks [s]
LONGEST_WAIT = 0.05  # that counts between two times of asking [s]


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
        limits, arm = settings.limits, settings.arm
        self.joint_states = JointStateBuffer(
            limits.joint_names,
            arm.state_timeout,
            limits.continuous,
            limits.possible,
            velocity_limits=limits.velocity_limits,
        )
        # The node already commanded there, so that gravity is compensated as far as the limits
        # allow.
        law = ControlLaw(
            partial(inverse_dynamics, model),
            partial(friction_of, model),
            replace(arm, effort_limits=np.full(model.n, np.inf)),
            coupling=model.coupling,
        )
        self._pipeline = pipeline = CommandPipeline(law, self.joint_states, limits)
        # A state that is stale at once, from which gravity is known until others come.
        before = now - 2.0 * arm.state_timeout
        self.joint_states.receive(limits.joint_names, last.position.tolist(), (), received=before)
        pipeline.enable(before)
        last_state = self.joint_states.take()
        for _ in range(2):  # a state without velocities needs another that agrees
            pipeline.step(last_state, before)
        self.joint_states.forget()
        pipeline.settings = self._settings = replace(
            arm, damping=BRAKING_RATE, is_braked_by_damping=True
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
            hold_time = max(self._settings.stale_hold_time, DISCOVERY_TIME)
            pipeline.settings = replace(
                self._settings, on_stale_state=self._settings.on_stop, stale_hold_time=hold_time
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
        if self._is_yielding or self._settings.on_stop != 'hold_gravity':
            return True
        if pipeline.is_stale:  # joint states may come, or come back
            return now - self._begin >= DISCOVERY_TIME and pipeline.fallback == 'silent'
        is_late = now - end_of_node > LONGEST_BRAKING
        if self._rest_since is None and (pipeline.has_stopped or is_late):
            self._rest_since = now
        return self._rest_since is not None and (
            now - self._rest_since >= self._settings.stale_hold_time
        )


class Parent:
    """
    The node's process.

    Parameters
    ----------
    pid : int
        Its number.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._poll = select.poll()
        with suppress(AttributeError, OSError):  # before Linux 5.3, or it has ended already
            self._poll.register(os.pidfd_open(pid), select.POLLIN)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return os.getppid() == self._pid

    def wait(self, timeout: float) -> None:
        """Wait until it ends, or the time [s] is over."""
        self._poll.poll(max(1e3 * timeout, 0.0))


class LatenessWindow:
    """
    The lateness of the checks, within the last one or two time windows.

    Parameters
    ----------
    window : float
        [s]
    """

    def __init__(self, window: float = LATENESS_WINDOW) -> None:
        self._window = window
        self._began = -np.inf
        self._worst = self._worst_before = 0.0

    def look(self, now: float, planned: float) -> WatchdogCheck:
        """Return the lateness after a check at a steady time [s] that was planned for another."""
        if now - self._began > self._window:
            is_next = now - self._began <= 2.0 * self._window
            self._worst_before = self._worst if is_next else 0.0
            self._began, self._worst = now, 0.0
        self._worst = max(self._worst, now - planned)
        return WatchdogCheck(now, max(self._worst, self._worst_before))


class GracePeriod:
    """
    The time that a node is given where the watchdog was late, too: all of the machine stood still.

    Once for each of its beats: on a machine that is always late the watchdog still takes over.
    """

    def __init__(self) -> None:
        self._beat = self._until = -np.inf

    def is_active(self, beat: float, now: float, time: float) -> bool:
        """
        Return whether a node may still go on.

        Parameters
        ----------
        beat, now : float
            When it was heard last, and steady time [s].
        time : float
            That it is given from the first look that was late on [s].
        """
        if beat != self._beat:
            self._beat, self._until = beat, now + time
        return now < self._until


class WatchdogNode(Node):
    """
    The watchdog's node: it publishes the takeover's commands.

    Parameters
    ----------
    shared : SharedMemory
        What is known of the node that is watched, its names at least.
    parent : Parent
        Its process.
    """

    def __init__(self, shared: SharedMemory, parent: Parent) -> None:
        names: Names = shared.names.value
        super().__init__(
            watchdog_name(names.node),
            namespace=names.namespace,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
            parameter_overrides=[Parameter('start_type_description_service', value=False)],
        )
        check_for_type_support(JointState)  # now: loading it takes longer than subscribing
        self._shared = shared
        self._parent = parent
        self._joint_states = names.joint_states
        self._commands = self.create_publisher(Float64MultiArray, names.commands, RELIABLE)
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self)
        self._last: tuple[float, np.ndarray] | None = None  # of this process
        self._given_back = -np.inf  # when [s]
        self._lateness = LatenessWindow()
        self._grace = GracePeriod()

    def watch(self) -> None:
        """Wait, and take over when needed, until the node's process ends or closes the memory."""
        shared, parent = self._shared, self._parent
        planned = np.inf
        while not shared.is_closing:
            is_alive = parent.is_alive  # first: if it is not, what is read below is final
            heartbeat, settings, now = shared.heartbeat, shared.settings.value, time.monotonic()
            shared.record_check(self._lateness.look(now, planned))
            if not heartbeat.is_active or settings is None:
                if not is_alive:
                    return
                planned = now + WAKE_PERIOD
            elif not is_alive:
                self._command(settings)
                return
            else:
                period = settings.watchdog_period
                timeout = max(settings.arm.state_timeout, 2.0 * period)
                planned_before = planned
                # The executor may starve the timer on a busy machine, while cycles go on.
                cycle = shared.cycles.last()
                sent = -np.inf if cycle is None else np.nan_to_num(cycle.sent, nan=-np.inf)
                beat = max(heartbeat.time, float(sent), self._given_back)
                planned = beat + timeout
                if planned <= now:
                    is_late = now - planned_before > period
                    if is_late and self._grace.is_active(beat, now, timeout):
                        planned = now + period
                    elif self._command(settings):
                        return
                    else:
                        planned = np.inf
                        continue
                planned = min(planned, now + WAKE_PERIOD)
            parent.wait(planned - now)

    def _command(self, settings: WatchdogSettings) -> bool:
        """Command until the node asks for control; return whether the node has ended instead."""
        shared, parent = self._shared, self._parent
        cycle, robot = shared.cycles.last(), shared.robot.value
        if cycle is None or robot is None or not np.isfinite(cycle.sent):
            return False
        last = LastCommand(float(cycle.sent), cycle.torque, cycle.commanded_at)
        if self._last is not None and self._last[0] > last.time:
            last = LastCommand(*self._last, last.position)
        shared.take()
        takeover = Takeover(robot.model, settings, last, time.monotonic())
        message = Float64MultiArray()
        size = len(settings.order)
        message.layout.dim = [MultiArrayDimension(label=WATCHDOG_LABEL, size=size, stride=size)]
        subscription = None
        listener: CommandListener | None = None
        is_node_gone = False
        while not shared.is_closing:
            is_alive = parent.is_alive
            if is_alive and shared.is_wanted_back:
                break
            if not is_alive and not is_node_gone:
                is_node_gone = True
                signal.alarm(LONGEST_LIFE + math.ceil(settings.arm.stale_hold_time))
            now = time.monotonic()
            shared.record_check(self._lateness.look(now, np.inf))
            torque = takeover.command(now, is_alive)
            if torque is not None:
                command = (settings.command_scale * torque)[settings.order]
                message.data = conversions.floats(command)
                # Before: whom publishing wakes may have the processor next, and this be killed.
                shared.stand_in(time.monotonic(), torque)
                self._commands.publish(message)
                self._last = time.monotonic(), torque
                takeover.sent(self._last[0])
            if takeover.is_over:
                break
            if subscription is None:  # after the first command
                subscription = self._subscribe(takeover)
            if is_node_gone and listener is None:
                listener = CommandListener(self, self._commands.topic_name)
            if listener is not None and listener.taken():
                takeover.yield_commands()
            period = settings.watchdog_period if takeover.is_steady else COMMAND_PERIOD
            self._spin_until(now + period)
        if subscription is not None:
            self.destroy_subscription(subscription)
        if listener is not None:
            listener.destroy()
        self._given_back = time.monotonic()
        shared.stand_in(*(self._last or (0.0, None)), is_over=True)
        return takeover.is_over

    def end(self) -> None:
        """Wait until the last command has arrived, and leave the graph."""
        signal.alarm(CLOSING_TIME + LONGEST_LIFE)
        self._commands.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT))
        # A middleware that never finishes closing was seen: it gets this long.
        signal.alarm(CLOSING_TIME)
        self.destroy_node()

    def _subscribe(self, takeover: Takeover) -> rclpy.subscription.Subscription:
        def receive(content: bytes) -> None:
            take_in(takeover.joint_states, content, time.monotonic(), math.nan)

        return self.create_subscription(JointState, self._joint_states, receive, SENSOR, raw=True)

    def _spin_until(self, deadline: float) -> None:
        while (remaining := deadline - time.monotonic()) > 0.0:
            try:
                self._executor.spin_once(timeout_sec=remaining)
            except Exception as error:
                if not is_rejected_message(error):
                    raise


def run(shared: SharedMemory, args: Sequence[str] | None, parent_pid: int) -> None:
    """Monitor the node until its process ends: the forked process's main function."""
    leave_stop_signals_to_the_node(even_pauses=True)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it limits the process's life
    with suppress(OSError):
        os.setsid()  # a terminal or a launcher that kills its group leaves it alive
    _raise_priority()
    gc.disable()  # it makes nothing in circles, and looking would copy the parent's memory
    parent = Parent(parent_pid)
    while shared.names.value is None:
        if shared.is_closing or not parent.is_alive:
            return
        parent.wait(WAKE_PERIOD)
    arguments = list(sys.argv if args is None else args)
    rclpy.init(args=arguments + QUIET, signal_handler_options=SignalHandlerOptions.NO)
    node = WatchdogNode(shared, parent)
    node.watch()
    node.end()
    rclpy.shutdown()


def _raise_priority() -> None:
    """Take a real-time priority, the next above the node's if it has one, where allowed."""
    with suppress(AttributeError, OSError):
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy not in (os.SCHED_FIFO, os.SCHED_RR):
            policy, priority = os.SCHED_FIFO, 0
        priority = min(priority + 1, os.sched_get_priority_max(policy))
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    with suppress(OSError):
        os.nice(NICENESS)


class WatchdogProcess:
    """
    A forked process that takes over when this one no longer commands.

    Make it before ``rclpy.init`` and before any thread, and before other processes are forked.

    Parameters
    ----------
    shared : SharedMemory
        What it is told; the node's names are all that it waits for.
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.

    Attributes
    ----------
    opened : float
        When the names were set, by the steady clock [s].

    Notes
    -----
    Before every command look at ``has_commands``, and after it was true at ``continues_from``.
    """

    def __init__(self, shared: SharedMemory, args: Sequence[str] | None = None) -> None:
        self.opened = -math.inf
        self._shared = shared
        self._continues_from: tuple[float, np.ndarray] | None = None
        self._was_taken = False
        self._asked_takeover = 0  # for whose commands it was asked,
        self._asked = self._waited = 0.0  # when last, and for how long it was waited for [s]
        self._is_left = False  # whether it ended while it commanded, and that was noticed
        self._told: ArmSettings | None = None
        self._process = ChildProcess(partial(run, shared, args))

    # --- from the node ------------------------------------------------------------------------

    def beat(self, stack: ControlStack, watchdog_period: float, now: float) -> None:
        """Write a heartbeat at a steady time [s], and the settings if they have changed."""
        pipeline = stack.pipeline
        if pipeline.settings is not self._told:
            self._told = pipeline.settings
            self._shared.settings.set(watchdog_settings(stack, watchdog_period))
        self._shared.beat(now, pipeline.is_enabled and pipeline.state is not None)

    def close(self) -> None:
        """End the process; whatever it commands ends with it."""
        self._shared.close()
        self._process.join()

    # --- to the node --------------------------------------------------------------------------

    @property
    def priority(self) -> str:
        """The priority that the system gives the process, as text: a real-time one if it may."""
        return self._process.priority

    @property
    def has_ended(self) -> bool:
        """Whether the watchdog has ended."""
        return self._process.has_ended

    @property
    def has_commands(self) -> bool:
        """
        Whether it commands, so that the node must not; asks it to stop.

        One that does not for ``RETURN_TIMEOUT``, because it hangs or is stopped, is killed.
        """
        if not self._shared.is_taken:
            if self._was_taken:
                self._was_taken = False
                self._continues_from = self._shared.last_of_watchdog
            return False
        if self.has_ended:
            if not self._is_left:
                self._is_left = True
                self._continues_from = self._last_of_the_killed()
            return False
        self._was_taken = True
        self._wait()
        self._shared.want_back()
        return True

    def continues_from(self) -> tuple[float, np.ndarray] | None:
        """Return once its last command and time: the rate limit continues from there."""
        result, self._continues_from = self._continues_from, None
        return result

    @property
    def takeovers(self) -> int:
        """How often it has taken over."""
        return self._shared.takeovers

    def lateness(self, now: float) -> float:
        """Return its largest recent lateness, or that of the check that is due [s]."""
        last, lateness = self._shared.last_check
        return max(lateness, now - max(last, self.opened) - WAKE_PERIOD, 0.0)

    def _last_of_the_killed(self) -> tuple[float, np.ndarray] | None:
        """Return time and torque of its last command, if that was after the node's last one."""
        own, last = self._shared.cycles.last(), self._shared.last_of_watchdog
        return None if last is None or (own is not None and own.sent > last[0]) else last

    def _wait(self) -> None:
        """Kill the process if it has not returned control in time."""
        now, takeover = time.monotonic(), self._shared.takeovers
        if takeover != self._asked_takeover:
            self._asked_takeover, self._waited = takeover, 0.0
        else:  # both may have stood still
            self._waited += min(now - self._asked, LONGEST_WAIT)
        self._asked = now
        if self._waited > RETURN_TIMEOUT:
            self._process.kill()


def watchdog_settings(stack: ControlStack, watchdog_period: float) -> WatchdogSettings:
    """Return the watchdog's settings for a control stack."""
    arm = stack.pipeline.settings
    is_feedforward = arm.mode == 'feedforward'  # then drives have a loop of their own, which leads
    return WatchdogSettings(
        order=stack.order,
        command_scale=stack.units.command_scale,
        watchdog_period=watchdog_period,
        arm=replace(
            arm,
            mode='feedforward' if is_feedforward else 'gravity_compensation',
            friction_compensation=0.0,
        ),
        limits=stack.pipeline.reference_limits,
    )
