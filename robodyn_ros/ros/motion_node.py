# SPDX-License-Identifier: Apache-2.0
"""
Runs a motion on an arm, and records what the arm makes of it: ``motion_node``.

========== ============================================== ======================================
direction  name                                           notes
========== ============================================== ======================================
sub        ``joint_states``                               with efforts; watched and recorded
sub        ``robot_description``                          where ``urdf_file`` is not given
sub        ``dynamics_node/contact``                      stops the motion
sub        ``dynamics_node/dynamics_state``               until it follows the first part
sub        ``/diagnostics``                               of the dynamics node: what it refuses
pub        ``dynamics_node/joint_trajectory`` or          as ``target`` says
           ``joint_trajectory_controller/...``
========== ============================================== ======================================

The motion is made at a part of its speed first (``rehearsal_speed``), then at ``speed``. Nothing
is sent without ``confirm``. A part that the dynamics node refuses is sent again, with more time to
get to its start; refused again and again, it ends the motion with the node's reason. The motion is
stopped where the arm leaves it, where efforts leave their prediction, on a contact, where joint
states no longer come, and on SIGINT; the bag is completed always.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.executors import Executor
from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros.control.motion_file import samples_of_file
from robodyn_ros.control.settings import chain_ends
from robodyn_ros.description.source import user_path
from robodyn_ros.description.urdf import urdf_text
from robodyn_ros.errors import (
    InsufficientRecording,
    MalformedData,
    UnreadableSource,
    shown,
)
from robodyn_ros.identification.motion_run import MotionWatch, approach, slowed, state_at
from robodyn_ros.kinematics import kinematics_digest
from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.motions import MotionSamples
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.ros.conversions import rows_of_motion, seconds, trajectory_message
from robodyn_ros.ros.dynamics.description_topic import take_description
from robodyn_ros.ros.joint_states import read_joint_state
from robodyn_ros.ros.parameter_overrides import declared_values
from robodyn_ros.ros.plain_text import PlainLoggerMixin
from robodyn_ros.ros.qos import RECORDED_STATES, RECORDING, RELIABLE
from robodyn_ros.ros.signals import StopSignal
from robodyn_ros.ros.spinning import run_from_command_line
from robodyn_ros.ros_parameters import parameters_of

ABOUT = (
    'Runs a motion from robodyn excite on an arm, slowly first, and records joint states with '
    'efforts into a bag for robodyn identify. It stops where the arm or its efforts leave what '
    'is expected.'
)
PARAMETERS = parameters_of('motion_node')
TARGETS = {
    'dynamics_node': 'dynamics_node/joint_trajectory',
    'joint_trajectory_controller': 'joint_trajectory_controller/joint_trajectory',
}
"""The topic that each ``target`` takes trajectories on."""

LEAD_TIME = 0.5  # from sending a motion to its start, by the stamps of the joint states [s]
MOST_REFUSALS = 4  # of one part; each time it is sent again with twice the time to its start
SETTLE_TIME = 1.0  # after each part, in which the arm comes to rest [s]
STOP_TIME = 0.5  # in which a joint trajectory controller is asked to come to rest [s]
STOP_DELIVERY_TIME = 0.3  # for the stop to be sent before the process ends [s]
SPIN_PERIOD = 0.05  # [s]
WATCH_PERIOD = 0.004  # least time between two looks at efforts [s]
ANSWER_TIME = 1.0  # by the stamps, after which a node that follows nothing is asked again [s]
FOLLOW_TIMEOUT = 30.0  # for it to follow [s]
_JOINT_STATE = 'sensor_msgs/msg/JointState'
_VERSION: Final = 8  # which Humble reads, too


class MotionNode(PlainLoggerMixin, Node):
    """
    Sends a motion, watches and records it; ``is_over`` says when, and ``problem`` how.

    Its parameters are ``PARAMETERS``, all read once.

    Raises
    ------
    RobodynError
        A parameter, the URDF or the motion cannot be used.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__('motion_node', **node_options)
        self._given = declared_values(self, PARAMETERS)
        target = self._given['target']
        self.is_over = False
        self.problem = ''
        self._bag: _BagWriter | None = None
        self._watch: MotionWatch | None = None
        self._parts: list[tuple[str, MotionSamples]] = []
        self._part: tuple[str, MotionSamples] | None = None
        self._start, self._lead = 0.0, LEAD_TIME
        self._awaited = ''  # stamp, as diagnostics have it, of what may be refused yet
        self._refusals = 0  # of the part
        self._received = time.monotonic()
        self._stamp = self._watched = 0.0
        self._moved = False
        self._first_sent = np.inf  # by the steady clock [s]
        # A controller does not say whether it is active, or follows.
        self._is_active = self._is_taken = target != 'dynamics_node'
        self._trajectories = self.create_publisher(JointTrajectory, TARGETS[target], RELIABLE)
        if self._given['urdf_file']:
            self._load(urdf_text(Path(self._given['urdf_file'])))
        else:
            take_description(self, self._load, self._end)
        self._states = self.create_subscription(
            JointState, 'joint_states', self._on_state, RECORDED_STATES, raw=True
        )
        self._is_source_known = False
        # Volatile: a contact of before is none of this motion.
        self.create_subscription(Contact, 'dynamics_node/contact', self._on_contact, RELIABLE)
        self._following = None
        if not self._is_taken:
            self._following = self.create_subscription(
                DynamicsState, 'dynamics_node/dynamics_state', self._on_dynamics, RELIABLE
            )
            self.create_subscription(
                DiagnosticArray, '/diagnostics', self._on_diagnostics, RELIABLE
            )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(self._given['state_timeout'] / 2, self._look, clock=steady)

    # --- setting up ------------------------------------------------------------------------

    def _load(self, urdf: str) -> None:
        given = self._given
        ends = chain_ends(given['base_link'], given['tip_link'], given['tip_links'])
        model = RobotModel.from_urdf_text(urdf, **ends)
        motion = samples_of_file(user_path(given['motion_file']), model)
        for finding in motion.findings:
            self.get_logger().warning(str(finding))
        fast = slowed(motion, given['speed'])
        rows_of_motion(model.joint_names, fast)  # what cannot be sent is refused before a move
        if given['rehearsal_speed']:
            self._parts.append(('rehearsal', slowed(motion, given['rehearsal_speed'])))
        self._parts.append(('motion', fast))
        self._watch = MotionWatch(
            model,
            fast,
            effort_tolerance=given['effort_tolerance'] or None,
            position_tolerance=given['position_tolerance'],
            effort_scale=given['effort_scale'],
        )
        self._model = model
        duration = sum(each.time[-1] for _, each in self._parts)
        what = f'{len(self._parts)} parts, {duration:.0f} s, to {self._trajectories.topic_name}'
        if not given['confirm']:
            self._end(f'not sent: {what}. confirm:=true, once the way is clear', failed=False)
            return
        if given['bag']:
            self._bag = _BagWriter(
                user_path(given['bag']),
                given['storage'],
                self.resolve_topic_name('joint_states'),
                urdf,
                {
                    'kinematics': kinematics_digest(model),
                    'base_link': model.base_link,
                    'tip_link': ', '.join(model.tip_links),
                    'motion_file': Path(given['motion_file']).name,
                },
            )
        self.get_logger().info(what)

    # --- running ---------------------------------------------------------------------------

    def _on_state(self, content: bytes) -> None:
        if self._watch is None:
            return
        try:
            message = read_joint_state(content)
        except MalformedData as error:
            self.get_logger().warning(f'ignored: {error}', throttle_duration_sec=1.0)
            return
        names = self._model.joint_names
        if not set(names) <= set(message.names):
            return  # of other joints
        self._received = time.monotonic()
        if not self._is_source_known:
            self._is_source_known = True
            self._listen_reliably()
        last, self._stamp = self._stamp, message.stamp
        is_new = not self._stamp or self._stamp != last  # a simulator may send a state again
        if self._bag is not None and is_new and (self.problem or not self.is_over):
            if not self._bag.count:
                self._bag.note('first_stamp', repr(self._stamp))
            self._bag.write(content, self.get_clock().now().nanoseconds)
        if self.is_over:
            return  # the way to rest is recorded, too
        order = [message.names.index(name) for name in names]
        try:
            q, qd, effort = (
                np.array(values, dtype=float)[order]
                for values in (message.position, message.velocity, message.effort)
            )
        except IndexError:
            self._end('joint states lack velocities or efforts, which identification needs')
            return
        if self._part is None:
            self._begin(q)
        elif self._is_taken:
            if self._following is not None:
                self.destroy_subscription(self._following)
                self._following = None
            self._follow(q, qd, effort)

    def _listen_reliably(self) -> None:
        """Subscribe reliably to the joint states, where the driver offers that."""
        offers = self.get_publishers_info_by_topic(self._states.topic_name)
        if all(each.qos_profile.reliability == ReliabilityPolicy.RELIABLE for each in offers):
            self.destroy_subscription(self._states)
            self._states = self.create_subscription(
                JointState, 'joint_states', self._on_state, RECORDING, raw=True
            )

    def _begin(self, q: np.ndarray) -> None:
        """Send the first part, once it has a subscriber."""
        if not self._stamp:
            self._end('joint states have no stamps: nothing could be compared with the motion')
            return
        if not self._trajectories.get_subscription_count() or not self._is_active:
            self.get_logger().info(
                f'waiting for who takes {self._trajectories.topic_name}',
                throttle_duration_sec=5.0,
            )
            return
        start = self._parts[0][1].q[0]
        j = int(np.abs(q - start).argmax())
        away = float(abs(q[j] - start[j]))
        if self._given['approach']:
            way = approach(self._model, q, start)
            times = np.linspace(0.0, way.duration, 200)
            samples = MotionSamples(
                times, way.position(times), way.velocity(times), way.acceleration(times)
            )
            self._parts.insert(0, ('approach', samples))
        elif away > self._given['start_tolerance']:
            unit = position_unit(self._model.dh.prismatic[j])
            self._end(
                f'joint {self._model.joint_names[j]!r} is {shown(away, unit)} from the start, '
                f'{shown(start)}: move it there, or approach:=true'
            )
            return
        self._first_sent = time.monotonic()
        self._send_next()

    def _send_next(self) -> None:
        self._lead, self._refusals = LEAD_TIME, 0
        self._send(*self._parts.pop(0))

    def _send(self, name: str, motion: MotionSamples) -> None:
        self._part = name, motion
        self._start = self._stamp + self._lead
        self._moved = True
        if self._bag is not None:
            self._bag.note(f'start_of_{name}', repr(self._start))
        names = self._model.joint_names
        # Before its first point the way there: an arm is never quite there.
        rows = rows_of_motion(names, motion)
        message = trajectory_message(rows, self._start - self._lead, self._lead)
        self._awaited = f'{seconds(message.header.stamp):.9f}'
        self._trajectories.publish(message)
        self.get_logger().info(f'{name}: {motion.time[-1]:.1f} s', throttle_duration_sec=1.0)

    def _on_dynamics(self, message: DynamicsState) -> None:
        """Learn that the node is active, and then whether it follows; ask again if not."""
        self._is_active = True
        if self._part is None or self._is_taken or self.is_over:
            return
        since_sent = seconds(message.header.stamp) - (self._start - self._lead)
        if since_sent > 0.0 and len(message.reference_position):
            self._is_taken = True
        elif time.monotonic() - self._first_sent > FOLLOW_TIMEOUT:
            self.stop(
                'the dynamics node has not taken the motion in '
                f'{FOLLOW_TIMEOUT:.0f} s: see its log'
            )
        elif since_sent > ANSWER_TIME:
            self._send(*self._part)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Hear that the node has refused what was sent last; send it again, or say why."""
        for status in message.status:
            values = {pair.key: pair.value for pair in status.values}
            is_answer = values.get('last_rejection_stamp') == self._awaited != ''
            if is_answer and not self.is_over:
                self._on_refusal(values.get('last_rejection', ''))

    def _on_refusal(self, reason: str) -> None:
        assert self._part is not None
        self._awaited = ''
        self._refusals += 1
        words = f'{self._part[0]}: the dynamics node refused the trajectory: {reason}'
        if self._refusals >= MOST_REFUSALS:
            self._end(words)  # nothing of it is followed
            return
        # It may have come late, or from further away than there was time for.
        self.get_logger().warning(f'{words}; sent again')
        self._lead *= 2.0
        self._send(*self._part)

    def _on_contact(self, message: Contact) -> None:
        if self._part is not None and not message.is_over:
            slides = dict(zip(self._model.joint_names, self._model.dh.prismatic))
            unit = force_unit(slides.get(message.joint, False))
            self.stop(
                f'contact: {message.torque:.3g} of {message.threshold:.3g} {unit} at joint '
                f'{message.joint[:40]!r}'
            )

    def _follow(self, q: np.ndarray, qd: np.ndarray, effort: np.ndarray) -> None:
        assert self._part is not None and self._watch is not None
        name, motion = self._part
        elapsed = self._stamp - self._start
        if elapsed > motion.time[-1] + SETTLE_TIME:
            if self._parts:
                self._send_next()
            else:
                self._end('done', failed=False)
            return
        if self._stamp - self._watched < WATCH_PERIOD:
            return
        self._watched = self._stamp
        try:
            problem = self._watch.problem(self._stamp, state_at(motion, elapsed), q, qd, effort)
        except InsufficientRecording as error:
            problem = str(error)
        if problem:
            self.stop(f'{name}, {max(elapsed, 0.0):.2f} s: {problem}')

    def _look(self) -> None:
        """Stop where joint states no longer come."""
        silent = time.monotonic() - self._received
        if self._part is not None and not self.is_over and silent > self._given['state_timeout']:
            self.stop(f'no joint states for {silent:.2f} s')

    # --- ending ----------------------------------------------------------------------------

    def stop(self, reason: str) -> None:
        """Take the motion back, if one is under way: the arm comes to rest and is held."""
        if self.is_over:
            return
        if self._moved:
            self._trajectories.publish(self._stopping())
        self._end(f'stopped: {reason}')

    def _stopping(self) -> JointTrajectory:
        if self._given['target'] == 'dynamics_node':
            return JointTrajectory()  # without points: nothing is followed any more
        assert self._part is not None
        q, qd, _ = state_at(self._part[1], self._stamp - self._start)
        rest, still = (q + 0.5 * STOP_TIME * qd).tolist(), [0.0] * len(q)
        names = self._model.joint_names
        return trajectory_message(TrajectoryRows(names, [STOP_TIME], [rest], [still], [()], [()]))

    def _end(self, words: str, *, failed: bool = True) -> None:
        self.is_over = True
        self.problem = words if failed else ''
        if self._bag is not None:
            self._bag.note('outcome', words)
        if failed:
            self.get_logger().error(words)
        else:
            self.get_logger().info(words)

    def destroy_node(self) -> None:
        """Complete the bag; nothing is sent any more."""
        if self._bag is not None:
            self._bag.close()
            self.get_logger().info(f'{self._bag.count} joint states in {self._given["bag"]}')
        super().destroy_node()


class _BagWriter:
    """
    A bag that is being written; ``close`` completes it, and may be called again.

    It holds the joint states, and the robot's description once, as ``robot_description``.

    Parameters
    ----------
    path : Path
        A folder that is not there.
    storage : str
        ``sqlite3`` or ``mcap``.
    topic : str
        Of the joint states, for the bag.
    urdf : str
        The robot's description.
    notes : mapping of str to str
        For the bag's metadata, beside the URDF's digest.

    Raises
    ------
    UnreadableSource
        The folder is there, or cannot be made, or rosbags is not installed.
    """

    def __init__(
        self, path: Path, storage: str, topic: str, urdf: str, notes: Mapping[str, str]
    ) -> None:
        try:
            from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
            from rosbags.typesys import Stores, get_typestore
        except ImportError as error:
            raise UnreadableSource('bag', str(path), f'pip install rosbags ({error})') from error
        types = get_typestore(Stores.ROS2_JAZZY)
        plugin = StoragePlugin[storage.upper()]
        try:
            self._writer: Any = Writer(path, version=_VERSION, storage_plugin=plugin)
            self._writer.open()
        except (WriterError, OSError) as error:
            raise UnreadableSource('bag', str(path), f'a folder to be made ({error})') from error
        digest = hashlib.sha256(urdf.encode()).hexdigest()
        for key, value in {'urdf_sha256': digest, **notes}.items():
            self._writer.set_custom_data(key, value)
        self._states = self._writer.add_connection(topic, _JOINT_STATE, typestore=types)
        self._description = self._writer.add_connection(
            '/robot_description', 'std_msgs/msg/String', typestore=types
        )
        self._urdf = urdf
        self.count = 0

    def write(self, content: bytes, stamp: int) -> None:
        """Write a serialised joint state that came at a time [ns]."""
        if self._writer is None:
            return
        if not self.count:
            text = serialize_message(String(data=self._urdf))
            self._writer.write(self._description, stamp, text)
        self._writer.write(self._states, stamp, content)
        self.count += 1

    def note(self, key: str, value: str) -> None:
        """Put a remark into the metadata, as long as the bag is open."""
        if self._writer is not None:
            self._writer.set_custom_data(key, value)

    def close(self) -> None:
        """Write the metadata, without which a bag is hard to read."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()


def _spin(node: MotionNode, executor: Executor, stop_signal: StopSignal) -> int:
    """Run the node until the motion has ended or a signal comes; return 0 where it went well."""
    executor.add_node(node)
    while not node.is_over and not stop_signal.has_come:
        executor.spin_once(timeout_sec=SPIN_PERIOD)
    if stop_signal.has_come:
        node.stop('stop requested')
    # What was published last leaves the process, and is recorded, before it ends.
    until = time.monotonic() + STOP_DELIVERY_TIME
    while time.monotonic() < until:
        executor.spin_once(timeout_sec=SPIN_PERIOD)
    return 1 if node.problem else 0


def main(args: list[str] | None = None) -> int:
    """Run the node; 0 where the motion was made, 1 where it was stopped, 2 for a wrong option."""
    return run_from_command_line('motion_node', ABOUT, PARAMETERS, MotionNode, args, spin=_spin)


if __name__ == '__main__':
    sys.exit(main())
