# SPDX-License-Identifier: Apache-2.0
"""
A dynamics node as another process sees it: asked, changed and sent targets, from a terminal.

Where a topic does not answer, the node's next diagnostics do: whether what was sent was refused,
and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Point, PoseStamped, Quaternion, Vector3
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import GetParameters, ListParameters, SetParametersAtomically
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import DynamicsState
from robodyn_interfaces.srv import SetGravity, SetPayload
from robodyn_ros.description.yaml import parsed_yaml
from robodyn_ros.errors import NoSuchName, NotReady, Phrase
from robodyn_ros.model import Payload
from robodyn_ros.motions import read_motion
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.ros.conversions import (
    payload_message,
    rows_of_motion,
    seconds,
    trajectory_message,
)
from robodyn_ros.ros.parameter_overrides import check_name
from robodyn_ros.ros.plain_text import plain
from robodyn_ros.ros.qos import RECORDING, RELIABLE

_LEVELS = ('OK', 'WARN', 'ERROR', 'STALE')  # as diagnostic_msgs numbers them
_REPETITION = 2.0  # of a request without an answer: a node may have lost the answer [s]
_STATE_TIME = 1.0  # for a state to come, beside diagnostics, of a node that computes one [s]
_DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'


class Refusal(Exception):
    """What was asked for was refused; the message is the node's own."""


@dataclass(frozen=True)
class Report:
    """
    A status of a node's diagnostics.

    Attributes
    ----------
    name : str
        As 'torque', without the node's.
    level : str
        'OK', 'WARN', 'ERROR' or 'STALE'.
    message : str
    facts : mapping of str to str
    """

    name: str
    level: str
    message: str
    facts: Mapping[str, str]


class NodeClient:
    """
    A client of a node, for a ``with`` statement.

    Parameters
    ----------
    name : str
        Of the node, with its namespace.
    timeout : float
        For each answer [s].

    Raises
    ------
    InvalidArgument
        No node can have that name.
    NotReady
        There is no such node, or it does not answer; of every method.
    """

    def __init__(self, name: str, timeout: float) -> None:
        check_name('node', name)
        self.name, self._timeout = f'/{name.strip("/")}', timeout
        self._state: DynamicsState | None = None
        self._reports: list[Report] = []
        self._subscriptions: list[Any] = []

    def __enter__(self) -> NodeClient:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node('_robodyn', context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.shutdown(context=self._context)

    # --- what is asked -------------------------------------------------------------------------

    def set_parameters(self, texts: Mapping[str, str]) -> None:
        """
        Set parameters from their YAML, all or none.

        Raises
        ------
        Refusal
        """
        request = SetParametersAtomically.Request(
            parameters=[_parameter(name, text) for name, text in texts.items()]
        )
        result = self._answer(SetParametersAtomically, 'set_parameters_atomically', request).result
        _check(result.successful, result.reason)

    def parameters(self, prefix: str) -> dict[str, Any]:
        """
        Return the parameters of a name, or of a group's; None: not set.

        Raises
        ------
        NoSuchName
        """
        request = ListParameters.Request(prefixes=[prefix])
        names = self._answer(ListParameters, 'list_parameters', request).result.names
        if not names:
            raise NoSuchName('parameter', prefix, f'one of ros2 param list {self.name}')
        found = {}
        for name in names:  # one after the other: none comes where one of them is not set
            request = GetParameters.Request(names=[name])
            values = self._answer(GetParameters, 'get_parameters', request).values
            found[name] = parameter_value_to_python(values[0]) if values else None
        return found

    def carry(self, payload: Payload) -> str:
        """Set a payload; return what the node says that it carries, or raise Refusal."""
        request = SetPayload.Request(payload=payload_message(payload))
        return self._done(SetPayload, 'set_payload', request)

    def set_gravity(self, gravity: Sequence[float]) -> str:
        """Set gravity in the base link's axes [m/s²]; return the answer, or raise Refusal."""
        request = SetGravity.Request()
        request.gravity.vector = Vector3(**dict(zip('xyz', map(float, gravity))))
        return self._done(SetGravity, 'set_gravity', request)

    def enable(self, on: bool) -> str:
        """Let it command, or no longer; return what the node says, or raise Refusal."""
        return self._done(SetBool, 'enable', SetBool.Request(data=on))

    # --- what it reports -----------------------------------------------------------------------

    def status(self) -> tuple[list[Report], DynamicsState | None]:
        """Return its next diagnostics, and its state; None: it computes none at present."""
        self._subscribe()
        self._reports = []
        self._until(lambda: bool(self._reports), 'diagnostics')
        self._spin(_STATE_TIME, lambda: self._state is not None)
        return self._reports, self._state

    def rows_of_motion(self, path: Path) -> TrajectoryRows:
        """Return the motion of its joints in a CSV file or a bag, or raise RobodynError."""
        names = self._present_state().joint_names
        return rows_of_motion(names, read_motion(path, names))

    def record(self, duration: float) -> list[DynamicsState]:
        """Return its states of so long a time [s], or until an interrupt, or until none comes."""
        kept = [self._present_state()]
        received = time.monotonic()

        def keep(state: DynamicsState) -> None:
            nonlocal received
            is_later = seconds(state.header.stamp) > seconds(kept[-1].header.stamp)
            if is_later and state.joint_names == kept[0].joint_names:
                kept.append(state)
                received = time.monotonic()

        topic = f'{self.name}/dynamics_state'
        self._node.create_subscription(DynamicsState, topic, keep, RECORDING)
        end = seconds(kept[0].header.stamp) + duration
        try:
            while seconds(kept[-1].header.stamp) < end:
                self._spin_once()
                if time.monotonic() - received > self._timeout:
                    break
        except KeyboardInterrupt:
            pass
        return kept

    def _present_state(self) -> DynamicsState:
        """Return its state, or raise Refusal with what its diagnostics say."""
        self._subscribe()
        self._until(lambda: bool(self._state or self._reports), 'diagnostics')
        if self._state is None:
            reports, _ = self.status()
            if self._state is None:
                raise Refusal(_named('torque', reports).message)
        return self._state

    def _subscribe(self) -> None:
        """Subscribe, once, to its state, and to its diagnostics under whatever name they have."""
        if self._subscriptions:
            return
        own, space = self.name.rpartition('/')[2], self.name.rpartition('/')[0] or '/'

        def topics() -> list[str]:
            if (own, space) not in self._node.get_node_names_and_namespaces():
                return []
            published = self._node.get_publisher_names_and_types_by_node(own, space)
            return [topic for topic, kinds in published if _DIAGNOSTICS in kinds]

        self._until(lambda: bool(topics()), 'diagnostics')
        made = [(DiagnosticArray, topic, self._on_diagnostics) for topic in topics()]
        made.append((DynamicsState, f'{self.name}/dynamics_state', self._on_state))
        self._subscriptions = [self._node.create_subscription(*each, RELIABLE) for each in made]

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        begin = f'{self.name[1:]}: '
        self._reports = [
            Report(
                each.name.removeprefix(begin),
                _LEVELS[min(each.level[0], len(_LEVELS) - 1)],
                plain(each.message),
                {pair.key: plain(pair.value) for pair in each.values},
            )
            for each in message.status
            if each.name.startswith(begin)
        ] or self._reports

    def _on_state(self, message: DynamicsState) -> None:
        self._state = message

    # --- what is sent --------------------------------------------------------------------------

    def send_trajectory(self, rows: TrajectoryRows, lead: float) -> str:
        """
        Send a trajectory; return what the node says that it does then, or raise Refusal.

        Parameters
        ----------
        rows : TrajectoryRows
        lead : float
            From now to its time zero [s].
        """
        publisher = self._publisher(JointTrajectory, 'joint_trajectory')
        # By its stamp the node names what it refuses; a driver may leave it out.
        stamp = seconds(self._present_state().header.stamp)
        stamp = stamp or 1e-9 * self._node.get_clock().now().nanoseconds
        message = trajectory_message(rows, stamp, lead)
        sent = f'{seconds(message.header.stamp):.9f}'

        def refusal(facts: Mapping[str, str]) -> str:
            return (
                facts.get('last_rejection', '')
                if facts.get('last_rejection_stamp') == sent
                else ''
            )

        return self._published(publisher, message, refusal)

    def stop(self) -> str:
        """Let nothing be followed any more; return what the node says that it does then."""
        publisher = self._publisher(JointTrajectory, 'joint_trajectory')
        return self._published(publisher, JointTrajectory(), lambda facts: '')

    def send_pose(
        self, position: np.ndarray, xyzw: np.ndarray | None, *, is_relative: bool
    ) -> str:
        """
        Aim the tip of an impedance; return what the node says, or raise Refusal.

        Parameters
        ----------
        position : array, shape (3,)
            [m], in the base link's axes.
        xyzw : array, shape (4,), or None
            Its orientation, a unit quaternion; None: the present reference's.
        is_relative : bool
            Both are in the frame of the tip's reference.
        """
        publisher = self._publisher(PoseStamped, 'target_pose')
        before, state = self.status()
        message = PoseStamped()
        message.pose.orientation = Quaternion(w=1.0)
        if xyzw is not None:
            message.pose.orientation = Quaternion(**dict(zip('xyzw', map(float, xyzw))))
        elif not is_relative and state is not None and state.mode == 'cartesian_impedance':
            message.pose.orientation = self._reference().pose.orientation
        message.pose.position = Point(**dict(zip('xyz', map(float, position))))
        if is_relative:
            message.header.frame_id = _named('model', before).facts.get('tip_link', '')
        refused = _named('torque', before).facts.get('targets_refused')

        def refusal(facts: Mapping[str, str]) -> str:
            is_refused = facts.get('targets_refused') != refused
            return facts.get('last_refused_target', '') if is_refused else ''

        return self._published(publisher, message, refusal)

    def _reference(self) -> PoseStamped:
        found: list[PoseStamped] = []
        self._node.create_subscription(
            PoseStamped, f'{self.name}/tip_reference', found.append, RELIABLE
        )
        self._until(lambda: bool(found), 'tip_reference')
        return found[-1]

    def _publisher(self, kind: type[Any], topic: str) -> Any:
        publisher = self._node.create_publisher(kind, f'{self.name}/{topic}', RELIABLE)
        self._until(lambda: publisher.get_subscription_count() > 0, topic)
        return publisher

    def _published(
        self, publisher: Any, message: Any, refusal: Callable[[Mapping[str, str]], str]
    ) -> str:
        """Publish a message; return what the node does then, or raise Refusal with its words."""
        publisher.publish(message)
        publisher.wait_for_all_acked(Duration(seconds=self._timeout))
        # A node takes what comes in its order: once it has answered this, it has had the message.
        # The first diagnostics may have been on their way since before, the second ones not.
        self.parameters('mode')
        for _ in range(2):
            report = _named('torque', self.status()[0])
            if words := refusal(report.facts):
                raise Refusal(words)
        return report.message

    # --- waiting -------------------------------------------------------------------------------

    def _done(self, kind: type[Any], service: str, request: Any) -> str:
        answer = self._answer(kind, service, request)
        _check(answer.success, answer.message)
        return plain(answer.message)

    def _answer(self, kind: type[Any], service: str, request: Any) -> Any:
        """Return the answer of a service; what is asked may be asked twice."""
        client = self._node.create_client(kind, f'{self.name}/{service}')
        self._until(client.service_is_ready, service)
        futures: list[Any] = []
        asked = -np.inf

        def is_answered() -> bool:
            nonlocal asked
            if time.monotonic() - asked > _REPETITION:
                asked = time.monotonic()
                futures.append(client.call_async(request))
            return any(each.done() for each in futures)

        self._until(is_answered, service)
        self._node.destroy_client(client)
        return next(each.result() for each in futures if each.done())

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Spin until a condition holds; where it never does, name the nodes that there are."""
        if self._spin(self._timeout, condition):
            return
        nodes = self._node.get_node_names_and_namespaces()
        names = sorted({f'{space.rstrip("/")}/{name}' for name, space in nodes if name[0] != '_'})
        silent = f'not there, or silent, for {self._timeout:g} s'
        missing = f'{what} of {self.name}' if self.name in names else f'node {self.name}'
        there = f'one of {", ".join(names)}' if names else 'one in this ROS_DOMAIN_ID: none is'
        raise NotReady(missing, Phrase(silent), there)

    def _spin(self, duration: float, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + duration
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._spin_once()
        return True

    def _spin_once(self) -> None:
        self._executor.spin_once(timeout_sec=0.05)


def _parameter(name: str, text: str) -> ParameterMessage:
    """Return a parameter of the type that its YAML has; what is no parameter's is text."""
    try:
        (value,) = parsed_yaml(text)
    except (yaml.YAMLError, ValueError):
        value = text
    given = value if isinstance(value, list) else [value]
    kinds = set(map(type, given))
    if kinds == {int, float}:
        value = [float(each) for each in value]
    elif len(kinds) != 1 or not kinds < {bool, int, float, str}:
        value = text
    elif kinds == {int} and max(map(abs, given)) >= 2**63:
        value = text
    return Parameter(name, value=value).to_parameter_msg()


def _check(success: bool, words: str) -> None:
    if not success:
        raise Refusal(plain(words))


def _named(name: str, reports: list[Report]) -> Report:
    """Return the report of a name, or raise Refusal."""
    for each in reports:
        if each.name == name:
            return each
    raise Refusal(f'its diagnostics have no {name!r}, as those of a dynamics_node')
