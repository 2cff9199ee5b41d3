# SPDX-License-Identifier: Apache-2.0
"""
Watches an arm age, beside the node that commands it, and moves nothing: ``monitor_node``.

========== ============================================== ======================================
direction  name                                           notes
========== ============================================== ======================================
sub        ``joint_states``                               with efforts
sub        ``dynamics_node/torques``                      where ``efforts`` is ``torques``
sub        ``dynamics_node/contact``                      samples within a contact are left out
sub        as ``temperature_topic`` says                  ``sensor_msgs/Temperature``
pub        ``/diagnostics``                               once a second: what was found
========== ============================================== ======================================

Each motion, from its first movement to a second's standstill, is refitted when it is over, and
appended to the history.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from sensor_msgs.msg import JointState, Temperature

from robodyn_interfaces.msg import Contact
from robodyn_ros.description.source import user_path
from robodyn_ros.errors import MalformedData, RobodynError
from robodyn_ros.identification import Identification, Recording
from robodyn_ros.monitoring.ageing import REFERENCE, Condition, MotionEntry, condition
from robodyn_ros.monitoring.history import append_motions, read_history
from robodyn_ros.monitoring.motions import Clock, CommandedEfforts, MotionCollector, examined
from robodyn_ros.ros.conversions import diagnostic_status, diagnostics
from robodyn_ros.ros.joint_states import JointStateMessage, read_joint_state
from robodyn_ros.ros.parameter_overrides import declared_values
from robodyn_ros.ros.plain_text import PlainLoggerMixin
from robodyn_ros.ros.qos import RECORDED_STATES, RELIABLE
from robodyn_ros.ros.rclpy_workarounds import PolledCallbackGroup, waiting_messages
from robodyn_ros.ros.spinning import run_from_command_line
from robodyn_ros.ros_parameters import parameters_of
from robodyn_ros.spatial import FloatArray

ABOUT = (
    'Watches an arm age: friction of each motion against the identified model, in /diagnostics '
    'and a file of history. It moves nothing.'
)
PARAMETERS = parameters_of('monitor_node')
LEAST_STEP = 0.004
"""Between two samples that are kept [s]: more tell no more of friction."""

_PERIOD = 0.25  # between looks at the messages that wait [s]
_REPORT = 1.0  # s
_MOST_TEMPERATURES = 4000
_MOST_MOTIONS = 5000  # that are kept in memory


class MonitorNode(PlainLoggerMixin, Node):
    """
    Refits each motion, and says in /diagnostics what its history bears.

    Its parameters are ``PARAMETERS``, all read once.

    Raises
    ------
    RobodynError
        A parameter, the model or the history cannot be used.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('monitor_node', **node_options)
        self._given = given = declared_values(self, PARAMETERS)
        self._found = found = Identification.load(user_path(given['model']))
        names = found.model.joint_names
        self._motions: list[MotionEntry] = []
        if given['history']:
            before = read_history(given['history'], found)
            for finding in before.findings:
                self.get_logger().warning(str(finding))
            self._motions = list(before.motions)
        self._condition: Condition = condition(found, self._motions)
        self._refused, self._refusals, self._contacts = '', 0, 0
        self._wrong: dict[str, str] = {}  # samples of the last motion: by element, what it is
        self._logged: set[str] = set()
        self._in_contact = False
        self._collector = MotionCollector(names, LEAST_STEP)
        self._heard: dict[str, tuple[float, float, float]] = {}
        self._temperatures: list[tuple[float, float]] = []
        self._efforts = CommandedEfforts()
        self._last = 0.0
        node = given['watched_node']
        # None of these callbacks runs: messages are taken together, several hundred at a time.
        self._states = self._silent(JointState, 'joint_states')
        self._commanded = (
            self._silent(JointState, f'{node}/torques') if given['efforts'] == 'torques' else None
        )
        self.create_subscription(Contact, f'{node}/contact', self._on_contact, RELIABLE)
        if given['temperature_topic']:
            self.create_subscription(
                Temperature, given['temperature_topic'], self._on_temperature, RELIABLE
            )
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE)
        self.create_timer(_PERIOD, self._take_in)
        self.create_timer(_REPORT, self._report)

    def _silent(self, kind: Any, topic: str) -> Any:
        """Return a subscription that no executor waits for; its messages wait to be taken."""
        return self.create_subscription(
            kind,
            topic,
            lambda _: None,
            RECORDED_STATES,
            callback_group=PolledCallbackGroup(),
            raw=True,
        )

    def _on_contact(self, message: Contact) -> None:
        self._take_in()
        self._in_contact = not message.is_over
        self._contacts += self._in_contact

    def _on_temperature(self, message: Temperature) -> None:
        if np.isfinite(message.temperature):
            self._temperatures.append((self._last, float(message.temperature)))
            del self._temperatures[:-_MOST_TEMPERATURES]

    def _take_in(self) -> None:
        """Take what has come since the last look, oldest first."""
        for content in waiting_messages(self._states, JointState):
            message = self._read(content)
            if message is not None:
                self._add(message)
        if self._commanded is None:
            return
        for content in waiting_messages(self._commanded, JointState):
            message = self._read(content)
            if message is not None and len(message.effort) == len(message.names):
                efforts = dict(zip(message.names, message.effort))
                row = [efforts.get(name, np.nan) for name in self._found.model.joint_names]
                self._efforts.take_effort(message.stamp, np.array(row))
        for sample in self._efforts.samples():
            self._collect(*sample)

    def _read(self, content: bytes) -> JointStateMessage | None:
        try:
            return read_joint_state(content)
        except MalformedData as error:
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return None

    def _add(self, message: JointStateMessage) -> None:
        """Take a joint state, or a part of one."""
        names, count = self._found.model.joint_names, len(message.names)
        efforts = message.effort if len(message.effort) == count else [np.nan] * count
        velocities = message.velocity if len(message.velocity) == count else [np.nan] * count
        for name, *state in zip(message.names, message.position, velocities, efforts):
            if name in names:
                self._heard[name] = (state[0], state[1], state[2])
        if len(self._heard) < len(names):
            return
        rows = np.array([self._heard[name] for name in names], dtype=float).T
        self._heard = {}
        self._last = message.stamp
        if self._in_contact:
            return
        if self._commanded is not None:
            self._efforts.take_state(message.stamp, rows[0], rows[1])
        else:
            self._collect(message.stamp, *rows)

    def _collect(
        self, stamp: float, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> None:
        try:
            motion = self._collector.add(stamp, position, velocity, effort)
            if motion is not None:
                self._examine(motion)
        except RobodynError as error:
            self._refused, self._refusals = str(error), self._refusals + 1
            if isinstance(error, MalformedData):
                self._warn({error.element: str(error)})

    def _examine(self, recording: Recording) -> None:
        given = self._given
        started = given['started'] or float('nan')
        clock = Clock(0.0, started, tuple(self._temperatures))
        known = {each.terms.digest for each in self._motions[-100:]}
        told = examined(self._found, recording, 'live', clock, known)
        self._warn({f'{each.code} of {each.element}': str(each) for each in told.warnings})
        for words in told.refused:
            self._refused, self._refusals = words, self._refusals + 1
        if not told.motions:
            return
        if given['history']:
            try:
                append_motions(given['history'], self._found, told.motions)
            except (OSError, RobodynError) as error:
                self.get_logger().error(
                    f'history not written: {error}', throttle_duration_sec=60.0
                )
        before = {each.code + each.element for each in self._condition.findings}
        self._motions += told.motions
        del self._motions[REFERENCE : max(REFERENCE, len(self._motions) - _MOST_MOTIONS)]
        self._condition = condition(self._found, self._motions)
        for finding in self._condition.findings:
            if finding.code + finding.element not in before:
                self.get_logger().warning(str(finding))

    def _warn(self, wrong: dict[str, str]) -> None:
        """Take what is wrong with the samples of a motion; the log has each once."""
        new = [words for element, words in wrong.items() if element not in self._logged]
        if new:
            self.get_logger().warning('; '.join(new))
        self._wrong = wrong
        self._logged |= wrong.keys()

    def _report(self) -> None:
        now = self._condition
        warnings = [*self._wrong.values(), *(x for x in now.findings if x.level == 'warning')]
        level = DiagnosticStatus.WARN if warnings else DiagnosticStatus.OK
        words = '; '.join(map(str, warnings or now.findings))
        facts: dict[str, object] = {
            'motions': len(self._motions),
            'contacts': self._contacts,
            'motions_refused': self._refusals,
            'last_refusal': self._refused,
            'payload_kg': _measured(now.payload, now.payload_deviation, 3),
        }
        for name, value, deviation in zip(
            now.joint_names, 100 * now.friction, 100 * now.friction_deviation
        ):
            facts[f'friction_{name}_percent'] = _measured(value, deviation, 1)
        for k, finding in enumerate(now.findings):
            facts[f'finding_{k + 1}'] = finding.message
        name = self.get_fully_qualified_name().lstrip('/')
        status = diagnostic_status(
            f'{name}: ageing',
            name,
            level,
            words or now.verdict,
            facts,
        )
        self._diagnostics.publish(diagnostics(self.get_clock().now().to_msg(), status))


def _measured(value: float, deviation: float, decimals: int) -> str:
    if not np.isfinite([value, deviation]).all():
        return 'unknown'
    return f'{value:+.{decimals}f} ± {deviation:.{decimals}f}'


def main(args: list[str] | None = None) -> int:
    """Run the node; 0 after a signal, 1 where what it is given is wrong, 2 for a wrong option."""
    return run_from_command_line('monitor_node', ABOUT, PARAMETERS, MonitorNode, args)


if __name__ == '__main__':
    sys.exit(main())
