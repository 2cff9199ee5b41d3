# SPDX-License-Identifier: Apache-2.0
"""
The process that offers the dynamics node's services, so that no request costs a control cycle.

It is forked before ROS starts, runs at low priority, and ends when the process that commands
does. At each request it reads the robot, the measured state and the last minute of motion from the
memory that both share. A change of payload or gravity it writes there; the node looks for one
every ``CHANGE_PERIOD``, checks and applies it between two cycles, and writes what became of it.

Were the changes callbacks of the node, a flood of requests would reach the participant that
commands, and delay its torques (``benchmarks/service_flood.py`` measures that).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Literal

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
from robodyn_ros.errors import NotReady, Phrase, RobodynError
from robodyn_ros.model import Payload
from robodyn_ros.ros import qos
from robodyn_ros.ros.child_process import ChildProcess
from robodyn_ros.ros.services import callbacks, payload_estimation
from robodyn_ros.ros.shared_memory import Change, ChangeOutcome, Names, SharedMemory
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
MOTION_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'estimate_payload': (EstimatePayload, payload_estimation.estimate_payload),
}
SERVICES = (*MODEL_SERVICES, *STATE_SERVICES, *CHANGE_SERVICES, *MOTION_SERVICES)

NICENESS = 10  # leaves the processor to the process that commands
CLOSING_TIME = 2  # that closing may take before the process is ended [s]
CHANGE_PERIOD = 0.01  # after which the node checks for a change again [s]
CHANGE_TIMEOUT = 2.0  # that the control cycle is given to apply a change [s]
OUTCOME_TIMEOUT = 0.5  # that its outcome may take after it [s]
OUTCOME_PERIOD = 0.002  # between looks for it [s]
WAKE_PERIOD = 0.05  # between looks at whether to end [s]
HUNG_TIME = 4.0  # without a round of the loop that runs the callbacks [s]
START_TIMEOUT = 30.0  # the same for the first round, which waits for ROS to start [s]

Status = Literal['answering', 'hung', 'ended']


# --- in the process that commands --------------------------------------------------------------


class ServiceProcess:
    """
    A forked process that offers services; make it before ``rclpy.init`` and before any thread.

    Parameters
    ----------
    shared : SharedMemory
        What it answers from; the node's names are all that it waits for.
    args : sequence of str, optional
        The ROS arguments of the command line; the process's own where not given.
    """

    def __init__(self, shared: SharedMemory, args: Sequence[str] | None = None) -> None:
        self._shared = shared
        self._began = time.monotonic()
        self._changes = 0  # the number of the last one that was looked at
        self._process = ChildProcess(partial(run, shared, args))

    @property
    def status(self) -> Status:
        """Whether it responds."""
        if self._process.has_ended:
            return 'ended'
        now, last = time.monotonic(), self._shared.responded
        is_hung = now - last > HUNG_TIME if last else now - self._began > START_TIMEOUT
        return 'hung' if is_hung else 'answering'

    def look_for_change(self, apply: Callable[[Payload | GravityChange], Load]) -> None:
        """
        Apply a change that a client has requested.

        Parameters
        ----------
        apply : callable
            Returns the load after a change; raises RobodynError where it is refused.
        """
        change: Change | None = self._shared.change.value
        if change is None or change.number == self._changes:
            return
        self._changes = change.number
        if time.monotonic() > change.deadline:
            return  # the client has been answered: no response in time
        try:
            outcome = ChangeOutcome(change.number, apply(change.what))
        except RobodynError as error:
            outcome = ChangeOutcome(change.number, None, error)
        self._shared.outcome.set(outcome)

    def close(self) -> None:
        """End the process, by force if necessary."""
        self._shared.close()
        self._process.join()


# --- in its own process ------------------------------------------------------------------------


class ServiceNode(Node):
    """
    Offers the services.

    Parameters
    ----------
    shared : SharedMemory
        What they are answered from; the names are there already.
    """

    def __init__(self, shared: SharedMemory) -> None:
        names: Names = shared.names.value
        super().__init__(
            f'_{names.node}_services',
            namespace=names.namespace,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._shared = shared
        measured = payload_estimation.MeasuredMotion(shared.cycles)
        self._changes = 0
        for table, more in (
            (MODEL_SERVICES, lambda: ()),
            (STATE_SERVICES, lambda: (shared.cycles.last(),)),
            (CHANGE_SERVICES, lambda: (self._change,)),
            (MOTION_SERVICES, lambda: (measured, self._change)),
        ):
            for name, (kind, callback) in table.items():
                self.create_service(
                    kind,
                    names.services[name],
                    partial(self._respond, callback, more),
                    # The usual depth of ten would drop what fifty clients ask at once.
                    qos_profile=qos.SERVICES,
                )

    def _respond(
        self,
        callback: Callable[..., Any],
        more: Callable[[], tuple[Any, ...]],
        request: Any,
        response: Any,
    ) -> Any:
        return callback(self._shared.robot.value, request, response, *more())

    def _change(self, what: Payload | GravityChange) -> Load:
        """Let the node apply a change, and return the load after it."""
        self._changes += 1
        deadline = time.monotonic() + CHANGE_TIMEOUT
        self._shared.change.set(Change(self._changes, deadline, what))
        while time.monotonic() < deadline + OUTCOME_TIMEOUT:
            outcome: ChangeOutcome | None = self._shared.outcome.value
            if outcome is not None and outcome.number == self._changes:
                if outcome.load is None:
                    raise outcome.refusal or NotReady('the load', Phrase('unknown'), 'a known one')
                return outcome.load
            time.sleep(OUTCOME_PERIOD)
        given = f'no answer in {CHANGE_TIMEOUT} s'
        raise NotReady('the control cycle', Phrase(given), 'a running node')


def run(shared: SharedMemory, args: Sequence[str] | None, parent: int) -> None:
    """Offer the services until the other process ends; this is all that the process does."""
    leave_stop_signals_to_the_node()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it limits the process's life
    _lower_priority()

    def is_wanted() -> bool:
        return os.getppid() == parent and not shared.is_closing

    while shared.names.value is None:
        if not is_wanted():
            return
        time.sleep(WAKE_PERIOD)
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    node = ServiceNode(shared)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while is_wanted():
        executor.spin_once(timeout_sec=WAKE_PERIOD)
        shared.respond()
    # A middleware that never finishes closing was seen to outlive the node: it gets this long.
    signal.alarm(CLOSING_TIME)
    node.destroy_node()
    rclpy.shutdown()


def _lower_priority() -> None:
    """Give up an inherited real-time priority, and lower the priority."""
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.nice(NICENESS)
