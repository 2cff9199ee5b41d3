# SPDX-License-Identifier: Apache-2.0
"""
The process that answers the dynamics node's services, so that no question costs a cycle.

It is forked before ROS starts, runs at low priority, and ends when the process that commands does.
Questions it answers alone, from its own copy of the model; a change of payload or gravity it
checks and hands over, and answers when the change is in force.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    GetPayload,
    SetGravity,
    SetPayload,
)
from robodyn_ros.control.load import Gravity, Load
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.ros.services import callbacks as services
from robodyn_ros.ros.services.state_snapshot import StateSnapshot

MODEL_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_dh_parameters': (GetDHParameters, services.get_dh_parameters),
    'get_minimal_parameters': (GetMinimalParameters, services.get_minimal_parameters),
    'get_payload': (GetPayload, services.get_payload),
}
STATE_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'get_mass_matrix': (GetMassMatrix, services.get_mass_matrix),
    'get_dynamics_terms': (GetDynamicsTerms, services.get_dynamics_terms),
    'compute_inverse_dynamics': (ComputeInverseDynamics, services.compute_inverse_dynamics),
    'compute_forward_dynamics': (ComputeForwardDynamics, services.compute_forward_dynamics),
}
CHANGE_SERVICES: dict[str, tuple[Any, Callable[..., Any]]] = {
    'set_payload': (SetPayload, services.set_payload),
    'set_gravity': (SetGravity, services.set_gravity),
}
SERVICES = (*MODEL_SERVICES, *STATE_SERVICES, *CHANGE_SERVICES)

# The usual depth of ten would drop what fifty clients ask at once, and they would wait for ever.
SERVICE_QOS = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)

NICENESS = 10  # leaves the processor to the process that commands
CLOSING_TIME = 2  # that closing may take before the process is ended [s]
CHANGE_TIMEOUT = 2.0  # that the commanding process is given to put a change in force [s]
ANSWER_TIMEOUT = 0.5  # that its answer may take after it [s]
WAKE_PERIOD = 0.05  # between looks at whether to end [s]


@dataclass(frozen=True)
class Opening:
    """The first message: the names, resolved where the dynamics node's remappings are known."""

    node_name: str
    namespace: str
    services: Mapping[str, str]


@dataclass(frozen=True)
class NewRobot:
    """The robot was configured, or forgotten; it is acknowledged."""

    fields: Mapping[str, Any] | None
    load: Load | None

    @classmethod
    def of(cls, arm: RobotModel, load: Load) -> NewRobot:
        """Return the message of an arm, in a form that can be sent."""
        return cls({**vars(arm), 'link_frames': dict(arm.link_frames)}, load)

    def robot(self) -> services.Robot | None:
        """Return what it tells of."""
        if self.fields is None or self.load is None:
            return None
        return services.Robot(RobotModel(**self.fields), self.load)


@dataclass(frozen=True)
class Acknowledgement:
    """A new robot was taken in."""


@dataclass(frozen=True)
class Change:
    """A change that is asked for, with a number, until a steady time [s]; later it is void."""

    number: int
    deadline: float
    what: Payload | Gravity


@dataclass(frozen=True)
class Outcome:
    """What became of a change: the load in force, and why it is not the one asked for."""

    number: int
    load: Load | None
    refusal: str = ''


class ChangeRefused(RobodynError):
    """The process that commands did not put a change in force."""


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
        Where that puts up the measured state.
    """

    def __init__(self, opening: Opening, connection: Connection, snapshot: StateSnapshot) -> None:
        super().__init__(
            opening.node_name,
            namespace=opening.namespace,
            use_global_arguments=False,
            start_parameter_services=False,
            enable_rosout=False,
        )
        self._connection = connection
        self._snapshot = snapshot
        self._robot: services.Robot | None = None
        self._outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self._asked = 0
        for name, (kind, answer) in MODEL_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._answer, answer))
        for name, (kind, answer) in STATE_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._answer_at_state, answer))
        for name, (kind, answer) in CHANGE_SERVICES.items():
            self._offer(kind, opening.services[name], partial(self._answer_change, answer))

    def listen(self) -> None:
        """Take in what the other process says, until it ends."""
        with suppress(EOFError, OSError):
            while True:
                message = self._connection.recv()
                if message is None:
                    return
                if isinstance(message, NewRobot):
                    self._robot = message.robot()
                    self._connection.send(Acknowledgement())
                else:
                    self._take_in(message)
                    self._outcomes.put(message)

    def _offer(self, kind: Any, name: str, callback: Callable[..., Any]) -> None:
        self.create_service(kind, name, callback, qos_profile=SERVICE_QOS)

    def _answer(self, answer: Callable[..., Any], request: Any, response: Any) -> Any:
        return answer(self._robot, request, response)

    def _answer_at_state(self, answer: Callable[..., Any], request: Any, response: Any) -> Any:
        return answer(self._robot, request, response, self._snapshot.read())

    def _answer_change(self, answer: Callable[..., Any], request: Any, response: Any) -> Any:
        return answer(self._robot, request, response, self._put_in_force)

    def _put_in_force(self, change: Payload | Gravity) -> Load:
        robot = self._robot
        assert robot is not None  # the service has looked
        robot.load.changed(change, robot.arm)
        self._asked += 1
        deadline = time.monotonic() + CHANGE_TIMEOUT
        try:
            self._connection.send(Change(self._asked, deadline, change))
            outcome = self._outcome(self._asked, deadline + ANSWER_TIMEOUT)
        except (OSError, queue.Empty) as error:
            raise ChangeRefused(
                'the control cycle',
                f'no answer in {CHANGE_TIMEOUT} s',
                'a running node',
            ) from error
        if outcome.load is None or outcome.refusal:
            raise ChangeRefused('the control cycle', outcome.refusal, 'a configured robot')
        return outcome.load

    def _outcome(self, number: int, deadline: float) -> Outcome:
        """Return what became of a change; those given up before are passed over."""
        while True:
            outcome = self._outcomes.get(timeout=max(deadline - time.monotonic(), 0.0))
            if outcome.number == number:
                return outcome

    def _take_in(self, outcome: Outcome) -> None:
        robot = self._robot
        if robot is not None and outcome.load is not None:
            self._robot = services.Robot(robot.arm, outcome.load)


def run(connection: Connection, snapshot: StateSnapshot, args: Sequence[str] | None) -> None:
    """Answer until the other process ends; this is all that the forked process does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the process that commands
    _yield_to_others()
    try:
        opening = connection.recv()
    except (EOFError, OSError):
        return
    if opening is None:
        return
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    node = ServiceNode(opening, connection, snapshot)
    listener = threading.Thread(target=node.listen, daemon=True)
    listener.start()
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while listener.is_alive():
        executor.spin_once(timeout_sec=WAKE_PERIOD)
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
