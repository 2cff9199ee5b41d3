# SPDX-License-Identifier: Apache-2.0
"""
The process that offers the dynamics node's services, so that no request costs a control cycle.

It is forked before ROS starts, runs at low priority, and ends when the process that commands does.
Most requests it serves alone, from its own copy of the model; a change of payload or gravity it
checks and hands over, and responds when the control cycle has applied it.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    EstimatePayload,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    GetPayload,
    SetGravity,
    SetPayload,
)
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.errors import ChangeRefused
from robodyn_ros.model import Payload
from robodyn_ros.ros import qos
from robodyn_ros.ros.services import callbacks, payload_estimation
from robodyn_ros.ros.services.exchange import (
    Acknowledgement,
    Change,
    NewRobot,
    Opening,
    Outcome,
    Ping,
)
from robodyn_ros.ros.services.motion_history import MotionHistory
from robodyn_ros.ros.services.payload_estimation import MeasuredMotion
from robodyn_ros.ros.services.state_snapshot import StateSnapshot
from robodyn_ros.ros.signals import leave_stop_signals_to_the_node

MODEL_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_dh_parameters': (GetDHParameters, callbacks.get_dh_parameters),
    'get_minimal_parameters': (GetMinimalParameters, callbacks.get_minimal_parameters),
    'get_payload': (GetPayload, callbacks.get_payload),
}
STATE_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_mass_matrix': (GetMassMatrix, callbacks.get_mass_matrix),
    'get_dynamics_terms': (GetDynamicsTerms, callbacks.get_dynamics_terms),
    'compute_inverse_dynamics': (ComputeInverseDynamics, callbacks.compute_inverse_dynamics),
    'compute_forward_dynamics': (ComputeForwardDynamics, callbacks.compute_forward_dynamics),
}
CHANGE_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'set_payload': (SetPayload, callbacks.set_payload),
    'set_gravity': (SetGravity, callbacks.set_gravity),
}
ESTIMATION_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'estimate_payload': (EstimatePayload, payload_estimation.estimate_payload),
}
SERVICES = (*MODEL_SERVICES, *STATE_SERVICES, *CHANGE_SERVICES, *ESTIMATION_SERVICES)

NICENESS = 10  # leaves the processor to the process that commands
CLOSING_TIME = 2  # that closing may take before the process is ended [s]
CHANGE_TIMEOUT = 2.0  # that the control cycle is given to apply a change [s]
OUTCOME_TIMEOUT = 0.5  # that its outcome may take after it [s]
WAKE_PERIOD = 0.05  # between looks at whether to end [s]


class ServiceNode(Node):
    """
    Offers the services.

    Parameters
    ----------
    opening : Opening
        Its names.
    connection : Connection
        To the process that commands.
    snapshot : StateSnapshot
        Where that process writes the measured state.
    history : MotionHistory
        Where it writes those with efforts.
    """

    def __init__(
        self,
        opening: Opening,
        connection: Connection,
        snapshot: StateSnapshot,
        history: MotionHistory,
    ) -> None:
        super().__init__(
            opening.node_name,
            namespace=opening.namespace,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._connection = connection
        self._sending = threading.Lock()  # two threads send
        self._snapshot = snapshot
        self._history = history
        self._robot: callbacks.Robot | None = None
        self._measured = MeasuredMotion(history)
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._pings: queue.SimpleQueue[Ping] = queue.SimpleQueue()
        self._changes = 0
        for name, (kind, callback) in MODEL_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._respond, callback))
        for name, (kind, callback) in STATE_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._respond_at_state, callback))
        for name, (kind, callback) in CHANGE_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._respond_to_change, callback))
        for name, (kind, callback) in ESTIMATION_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._respond_from_motion, callback))

    def listen(self) -> None:
        """Receive what the other process sends, until it ends."""
        with suppress(EOFError, OSError):
            while True:
                message = self._connection.recv()
                if message is None:
                    return
                if isinstance(message, NewRobot):
                    self._measured = MeasuredMotion(self._history)
                    self._robot = _robot(message)
                    self._send(Acknowledgement(message.number))
                elif isinstance(message, Ping):
                    self._pings.put(message)
                else:
                    self._on_outcome(message)

    def return_pings(self) -> None:
        """Show that the loop which runs the callbacks goes round."""
        with suppress(queue.Empty, OSError):
            while True:
                self._send(self._pings.get_nowait())

    def _offer(self, kind: Any, name: str, callback: Callable[..., Any]) -> None:
        self.create_service(kind, name, callback, qos_profile=qos.SERVICES)

    def _respond(self, callback: Callable[..., Any], request: Any, response: Any) -> Any:
        return callback(self._robot, request, response)

    def _respond_at_state(self, callback: Callable[..., Any], request: Any, response: Any) -> Any:
        return callback(self._robot, request, response, self._snapshot.read())

    def _respond_to_change(self, callback: Callable[..., Any], request: Any, response: Any) -> Any:
        # The robot may be cleaned up meanwhile: the callback and the change are about one.
        robot = self._robot
        apply = None if robot is None else partial(self._apply, robot)
        return callback(robot, request, response, apply)

    def _respond_from_motion(
        self, callback: Callable[..., Any], request: Any, response: Any
    ) -> Any:
        robot, measured = self._robot, self._measured
        apply = None if robot is None else partial(self._apply, robot)
        return callback(robot, request, response, measured, apply)

    def _apply(self, robot: callbacks.Robot, change: Payload | GravityChange) -> Load:
        """Have the control cycle apply a change, and return the load that applies."""
        robot.load.changed(change, robot.arm)
        self._changes += 1
        deadline = time.monotonic() + CHANGE_TIMEOUT
        try:
            self._send(Change(self._changes, deadline, change))
            outcome = self._outcome(self._changes, deadline + OUTCOME_TIMEOUT)
        except (OSError, queue.Empty) as error:
            raise ChangeRefused(
                'the control cycle', f'no answer in {CHANGE_TIMEOUT} s', 'a running node'
            ) from error
        if outcome.load is None or outcome.refusal is not None:
            raise outcome.refusal or ChangeRefused('the load', 'unknown', 'a configured robot')
        return outcome.load

    def _outcome(self, number: int, deadline: float) -> Outcome:
        """Return the outcome of a change; those of changes given up before are passed over."""
        while True:
            outcome = self._outcomes.get(timeout=max(deadline - time.monotonic(), 0.0))
            if outcome.number == number:
                return outcome

    def _on_outcome(self, outcome: Outcome) -> None:
        robot = self._robot
        if robot is not None and outcome.load is not None:
            self._robot = replace(robot, load=outcome.load)
        self._outcomes.put(outcome)

    def _send(self, message: Any) -> None:
        with self._sending:
            self._connection.send(message)


def run(
    connection: Connection,
    other_end: Connection,
    snapshot: StateSnapshot,
    history: MotionHistory,
    args: Sequence[str] | None,
) -> None:
    """
    Offer the services until the other process ends; this is all that the forked process does.

    Parameters
    ----------
    connection : Connection
        To the process that commands.
    other_end : Connection
        That process's end, inherited: while it is open here, its end would not be noticed.
    snapshot : StateSnapshot
        Where that process writes the measured state.
    history : MotionHistory
        Where it writes those with efforts.
    args : sequence of str or None
        The ROS arguments of the command line; the process's own where not given.
    """
    other_end.close()
    leave_stop_signals_to_the_node()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it limits the process's life
    _yield_to_others()
    try:
        opening = connection.recv()
    except (EOFError, OSError):
        return
    if opening is None:
        return
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    node = ServiceNode(opening, connection, snapshot, history)
    listener = threading.Thread(target=node.listen, daemon=True)
    listener.start()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while listener.is_alive():
        executor.spin_once(timeout_sec=WAKE_PERIOD)
        node.return_pings()
    # A middleware that never finishes closing was seen to outlive the node: it gets this long.
    signal.alarm(CLOSING_TIME)
    node.destroy_node()
    rclpy.shutdown()


def _robot(message: NewRobot) -> callbacks.Robot | None:
    if message.arm is None or message.load is None:
        return None
    return callbacks.Robot(
        message.arm,
        message.load,
        message.longest_age,
        message.parameter_deviation,
        message.effort_scale,
    )


def _yield_to_others() -> None:
    """Give up a real-time priority that the process may have inherited, and be nice."""
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.nice(NICENESS)
