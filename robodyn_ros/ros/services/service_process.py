# SPDX-License-Identifier: Apache-2.0
"""
The process that answers what takes long to compute, so that no request costs a control cycle.

It is forked before ROS starts, runs at low priority, and ends when the process that commands
does. At each request it reads the robot, the measured state and the last minute of motion from the
memory that both share. It changes nothing there: an estimated payload is set by ``~/set_payload``,
as any client sets one.
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
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    EstimatePayload,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    SetPayload,
)
from robodyn_ros.errors import ChangeRefused
from robodyn_ros.ros import qos
from robodyn_ros.ros.child_process import ChildProcess
from robodyn_ros.ros.services import callbacks, payload_estimation
from robodyn_ros.ros.shared_memory import Names, SharedMemory
from robodyn_ros.ros.signals import leave_stop_signals_to_the_node

MODEL_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_dh_parameters': (GetDHParameters, callbacks.get_dh_parameters),
    'get_minimal_parameters': (GetMinimalParameters, callbacks.get_minimal_parameters),
}
STATE_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_mass_matrix': (GetMassMatrix, callbacks.get_mass_matrix),
    'get_dynamics_terms': (GetDynamicsTerms, callbacks.get_dynamics_terms),
    'compute_inverse_dynamics': (ComputeInverseDynamics, callbacks.compute_inverse_dynamics),
    'compute_forward_dynamics': (ComputeForwardDynamics, callbacks.compute_forward_dynamics),
}
SERVICES = (*MODEL_SERVICES, *STATE_SERVICES, 'estimate_payload', 'set_payload')
"""Those that it offers, and the one that it calls."""

NICENESS = 10  # leaves the processor to the process that commands
CLOSING_TIME = 2  # that closing may take before the process is ended [s]
CHANGE_TIMEOUT = 2.0  # that the control cycle is given to set a payload [s]
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
        self._process = ChildProcess(partial(run, shared, args))

    @property
    def status(self) -> Status:
        """Whether it responds."""
        if self._process.has_ended:
            return 'ended'
        now, last = time.monotonic(), self._shared.responded
        is_hung = now - last > HUNG_TIME if last else now - self._began > START_TIMEOUT
        return 'hung' if is_hung else 'answering'

    def close(self) -> None:
        """End it, by force if need be."""
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
        self._measured = payload_estimation.MeasuredMotion(shared.cycles)
        self._asked: tuple[Future, float] | None = None  # to set a payload, until when [s]
        for name, (kind, callback) in MODEL_SERVICES.items():
            respond = partial(self._respond, callback)
            self.create_service(kind, names.services[name], respond, qos_profile=qos.SERVICES)
        for name, (kind, callback) in STATE_SERVICES.items():
            respond = partial(self._respond_at_state, callback)
            self.create_service(kind, names.services[name], respond, qos_profile=qos.SERVICES)
        self.create_service(
            EstimatePayload,
            names.services['estimate_payload'],
            self._respond_from_motion,
            qos_profile=qos.SERVICES,
            # Of its own: while it waits for the payload to be set, the others are answered.
            callback_group=MutuallyExclusiveCallbackGroup(),
        )
        self._payload = self.create_client(SetPayload, names.services['set_payload'])

    def give_up_late_answers(self) -> None:
        """Wait no longer for a payload to be set by a node that does not answer."""
        if self._asked is not None and time.monotonic() > self._asked[1]:
            self._asked[0].cancel()

    def _respond(self, callback: Callable[..., Any], request: Any, response: Any) -> Any:
        return callback(self._shared.robot.value, request, response)

    def _respond_at_state(self, callback: Callable[..., Any], request: Any, response: Any) -> Any:
        return callback(self._shared.robot.value, request, response, self._shared.cycles.last())

    async def _respond_from_motion(
        self, request: EstimatePayload.Request, response: EstimatePayload.Response
    ) -> EstimatePayload.Response:
        robot = self._shared.robot.value
        payload_estimation.estimate_payload(robot, request, response, self._measured)
        if not (response.success and request.apply):
            return response
        answer = None
        if self._payload.wait_for_service(CHANGE_TIMEOUT):
            change = SetPayload.Request(payload=response.payload)
            future = self._payload.call_async(change)
            self._asked = future, time.monotonic() + CHANGE_TIMEOUT
            answer = await future  # None where it is given up
            self._asked = None
        if answer is None:
            element, given = 'the control cycle', f'no answer in {CHANGE_TIMEOUT} s'
            answer = SetPayload.Response(
                message=str(ChangeRefused(element, given, 'a running node'))
            )
        found = response.message
        response.success = response.applied = answer.success
        response.message = (
            f'{found}; applied: {answer.message}' if answer.success else answer.message
        )
        return response


def run(shared: SharedMemory, args: Sequence[str] | None, parent: int) -> None:
    """Offer the services until the other process ends; this is all that the process does."""
    leave_stop_signals_to_the_node()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it limits the process's life
    _yield_to_others()

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
        node.give_up_late_answers()
        shared.respond()
    # A middleware that never finishes closing was seen to outlive the node: it gets this long.
    signal.alarm(CLOSING_TIME)
    node.destroy_node()
    rclpy.shutdown()


def _yield_to_others() -> None:
    """Give up a real-time priority that the process may have inherited, and be nice."""
    with suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.nice(NICENESS)
