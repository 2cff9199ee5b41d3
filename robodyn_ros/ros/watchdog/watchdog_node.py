# SPDX-License-Identifier: Apache-2.0
"""
The watchdog's own process: it waits for the node's heartbeat to stop, and then commands.

It has one publisher, made when the node starts, because discovery takes time; while the node lives
it neither computes nor receives anything. It wakes some twenty times a second.
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

from robodyn_ros.errors import MalformedData
from robodyn_ros.ros import conversions
from robodyn_ros.ros.command_conflicts import WATCHDOG_LABEL, CommandListener, watchdog_name
from robodyn_ros.ros.joint_states import JointStateReader
from robodyn_ros.ros.qos import RELIABLE, SENSOR
from robodyn_ros.ros.rclpy_workarounds import is_rejected_message
from robodyn_ros.ros.shared_memory import Look, Names, SharedMemory, WatchdogSettings
from robodyn_ros.ros.signals import leave_stop_signals_to_the_node
from robodyn_ros.ros.watchdog.handover import Handover
from robodyn_ros.ros.watchdog.takeover import LastCommand, Takeover

WAKE_PERIOD = 0.05  # between looks at the heartbeat, if none is due before [s]
COMMAND_PERIOD = 0.002  # between commands while the torque changes [s]
DELIVERY_TIMEOUT = 0.2  # that the stop command is given to reach its subscribers [s]
NICENESS = -10  # it is idle but when all depends on it
LONGEST_LIFE = 10  # after the node's end [s]; no bug may keep the process for longer
PUNCTUALITY_WINDOW = 1.0  # of the lateness that diagnostics tell [s]
CLOSING_TIME = 2  # that closing may take [s]

QUIET = ['--ros-args', '--disable-stdout-logs', '--disable-rosout-logs']
QUIET += ['--disable-external-lib-logs', '--']


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


class Punctuality:
    """
    The lateness of the checks, within the last one or two time windows.

    Parameters
    ----------
    window : float
        [s]
    """

    def __init__(self, window: float = PUNCTUALITY_WINDOW) -> None:
        self._window = window
        self._began = -np.inf
        self._worst = self._worst_before = 0.0

    def look(self, now: float, planned: float) -> Look:
        """Return the lateness after a check at a steady time [s] that was planned for another."""
        if now - self._began > self._window:
            is_next = now - self._began <= 2.0 * self._window
            self._worst_before = self._worst if is_next else 0.0
            self._began, self._worst = now, 0.0
        self._worst = max(self._worst, now - planned)
        return Look(now, max(self._worst, self._worst_before))


class Excuse:
    """
    The time that a node is given where the watchdog was late, too: all of the machine stood still.

    Once for each of its beats: on a machine that is always late the watchdog still takes over.
    """

    def __init__(self) -> None:
        self._beat = self._until = -np.inf

    def counts(self, beat: float, now: float, time: float) -> bool:
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
        self._punctuality = Punctuality()
        self._excuse = Excuse()

    def watch(self) -> None:
        """Wait, and take over when needed, until the node's process ends or closes the memory."""
        shared, parent = self._shared, self._parent
        planned = np.inf
        while not shared.is_closing:
            is_alive = parent.is_alive  # first: if it is not, what is read below is final
            heartbeat, settings, now = shared.heartbeat, shared.settings.value, time.monotonic()
            shared.looked(self._punctuality.look(now, planned))
            if not heartbeat.is_active or settings is None:
                if not is_alive:
                    return
                planned = now + WAKE_PERIOD
            elif not is_alive:
                self._command(settings)
                return
            else:
                period = settings.watchdog_period
                timeout = max(settings.safety.state_timeout, 2.0 * period)
                planned_before = planned
                # The executor may starve the timer on a busy machine, while cycles go on.
                cycle = shared.cycles.last()
                sent = -np.inf if cycle is None else np.nan_to_num(cycle.sent, nan=-np.inf)
                beat = max(heartbeat.time, float(sent), self._given_back)
                planned = beat + timeout
                if planned <= now:
                    is_late = now - planned_before > period
                    if is_late and self._excuse.counts(beat, now, timeout):
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
        handover: Handover | None = None
        is_node_gone = is_asked = False
        while not shared.is_closing:
            is_alive = parent.is_alive
            if is_alive and shared.is_wanted_back:
                break
            if not is_alive and not is_node_gone:
                is_node_gone = True
                signal.alarm(LONGEST_LIFE + math.ceil(settings.safety.stale_hold_time))
                handover = Handover(self, self._commands.topic_name)
            is_asked = handover is not None and handover.hand_over(
                *(self._last or (last.time, last.torque))
            )
            if is_asked:
                break
            now = time.monotonic()
            shared.looked(self._punctuality.look(now, np.inf))
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
        if handover is not None:
            handover.close()
        self._given_back = time.monotonic()
        shared.stand_in(*(self._last or (0.0, None)), is_over=True)
        return takeover.is_over or is_asked

    def end(self) -> None:
        """Wait until the last command has arrived, and leave the graph."""
        signal.alarm(CLOSING_TIME + LONGEST_LIFE)
        self._commands.wait_for_all_acked(Duration(seconds=DELIVERY_TIMEOUT))
        # A middleware that never finishes closing was seen: it gets this long.
        signal.alarm(CLOSING_TIME)
        self.destroy_node()

    def _subscribe(self, takeover: Takeover) -> rclpy.subscription.Subscription:
        reader = JointStateReader()

        def receive(content: bytes) -> None:
            with suppress(MalformedData):
                message = reader.read(content)
                takeover.joint_states.receive(
                    message.names,
                    message.position,
                    message.velocity,
                    received=time.monotonic(),
                    stamp=message.stamp,
                )

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
    _come_before_the_node()
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


def _come_before_the_node() -> None:
    """Take a real-time priority, the next above the node's if it has one, where allowed."""
    with suppress(AttributeError, OSError):
        policy, priority = os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
        if policy not in (os.SCHED_FIFO, os.SCHED_RR):
            policy, priority = os.SCHED_FIFO, 0
        priority = min(priority + 1, os.sched_get_priority_max(policy))
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    with suppress(OSError):
        os.nice(NICENESS)
