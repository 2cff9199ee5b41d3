# SPDX-License-Identifier: Apache-2.0
"""
The node that adds feedforward efforts to joint trajectories, and holds the arm before the first.

It stands in front of a joint trajectory controller that commands effort: trajectories come by its
own topic, or as goals of its own action, and go to the controller's, filled. It has no part in
the control loop. With servo_gains the controller commands position alone, and the positions are
offset in place of effort.

With the parameter controller_manager it holds the arm when the controller has become active. The
controller holds it, too, but without effort: the arm sags until the gains carry it. A trajectory
that comes earlier is not taken. Until then the hold is sent once a second all the same, for who
activates the controller and waits until the arm can be held.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robodyn_interfaces.srv import GetPayload, SetGravity, SetPayload
from robodyn_ros.control.feedforward_efforts import FeedforwardTrajectory, TrajectoryFeedforward
from robodyn_ros.control.settings import checked
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import MalformedData, Phrase, RejectedTrajectory
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.ros import conversions
from robodyn_ros.ros.controller_activity import UNKNOWN, ControllerActivity
from robodyn_ros.ros.conversions import trajectory_message
from robodyn_ros.ros.dynamics.description_topic import late_description, take_description
from robodyn_ros.ros.feedforward import action_front
from robodyn_ros.ros.joint_states import NO_CLOCK, elapsed_time, ros_time, take_in
from robodyn_ros.ros.parameter_overrides import check_name, declared_values
from robodyn_ros.ros.plain_text import PlainLoggerMixin
from robodyn_ros.ros.qos import RELIABLE, SENSOR
from robodyn_ros.ros.rclpy_workarounds import message_of
from robodyn_ros.ros.services import callbacks
from robodyn_ros.ros.spinning import run_from_command_line
from robodyn_ros.ros.trajectory_message import (
    RateLimiter,
    Rejections,
    TrajectoryMessage,
    largest_size,
)
from robodyn_ros.ros_parameters import parameters_of

ABOUT = (
    "Puts the model's torque into the effort of joint trajectories, for a joint trajectory "
    'controller that commands effort. It takes ~/joint_trajectory and goals of '
    '~/follow_joint_trajectory, joint_states and robot_description, and sends to the topic and '
    'the action of the controller, and tells on /diagnostics what it refuses.'
)
DIAGNOSTICS_PERIOD = 1.0  # [s]

NAME = 'feedforward'
PARAMETERS = parameters_of(NAME)


class FeedforwardNode(PlainLoggerMixin, Node):
    """
    Adds feedforward efforts to trajectories, and forwards them.

    Raises
    ------
    RobodynError
        A parameter or the URDF file cannot be used.
    """

    def __init__(self, **node_options: Any) -> None:
        super().__init__(NAME, **node_options)
        given = declared_values(self, PARAMETERS)
        # What it shares with the dynamics node means the same here.
        self._settings = checked({p.name: given[p.name] for p in PARAMETERS if p.file != NAME})
        self._servo = {name: given[name] for name in ('servo_gains', 'largest_offset')}
        self._filler: TrajectoryFeedforward | None = None
        self._rejections, self._at_once = Rejections(), RateLimiter()
        self._is_refused = False  # the last trajectory
        self._waiting: JointTrajectory | None = None  # the last of the topic, if it has a start
        controller = given['controller']
        check_name('controller', controller)
        self._action = f'{controller}/follow_joint_trajectory'
        self._is_hold_due = False  # the controller has become active, and was sent nothing since
        self._activity: ControllerActivity | None = None
        if manager := given['controller_manager']:
            self._activity = ControllerActivity(self, manager, controller, self._on_begin)
        self._output = self.create_publisher(
            JointTrajectory, f'{controller}/joint_trajectory', RELIABLE
        )
        self.create_subscription(
            JointState, 'joint_states', self._on_joint_state, SENSOR, raw=True
        )
        self.create_subscription(
            JointTrajectory, '~/joint_trajectory', self._on_trajectory, RELIABLE, raw=True
        )
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(DIAGNOSTICS_PERIOD, self._on_timer, clock=steady)
        self.create_service(SetPayload, '~/set_payload', self._changing(callbacks.set_payload))
        self.create_service(GetPayload, '~/get_payload', self._on_get_payload)
        self.create_service(SetGravity, '~/set_gravity', self._changing(callbacks.set_gravity))
        self._front: action_front.ActionFront | None = None
        if action_front.is_available():
            self._front = action_front.ActionFront(
                self, controller, self.fill, self.hold, self._forget_sent
            )
        else:
            self.get_logger().warning(
                'no action follow_joint_trajectory: control_msgs is not installed'
            )
        if self._settings.urdf_file:
            self._take_robot(None)
        else:
            take_description(self, self._take_robot)

    def destroy_node(self) -> None:
        """Close the action, then everything else."""
        if self._front is not None:
            self._front.destroy()
        super().destroy_node()

    def fill(self, message: JointTrajectory) -> JointTrajectory:
        """
        Return the trajectory with feedforward efforts.

        Raises
        ------
        RejectedTrajectory
            There is no robot yet, and what ``TrajectoryFeedforward.with_efforts`` refuses.
        """
        filler = self._robot()
        given = TrajectoryMessage.from_message(message)
        self._judge_sent(filler)
        wait = None
        if given.stamp > 0.0:
            wait = given.stamp - 1e-9 * self.get_clock().now().nanoseconds
        filled = filler.with_efforts(given.trajectory(None), time.monotonic(), wait)
        self._is_hold_due = False
        self._waiting = None
        return self._message(message, filled)

    def _message(self, given: JointTrajectory, filled: FeedforwardTrajectory) -> JointTrajectory:
        for note in filled.notes:
            self.get_logger().info(note)
        self.get_logger().debug(f'{filled.inserted} points inserted')
        return _filled_message(given, filled.trajectory, self._robot().servo is None)

    def hold(self) -> JointTrajectory | None:
        """
        Return the message that holds the arm where it is; None: that is not known.

        It is for a controller that ended what it was sent: it holds the measured position then.
        """
        self._forget_sent()
        try:
            return self._held()
        except RejectedTrajectory as error:
            self.get_logger().warning(f'the arm is not held: {error}')
            return None

    def _held(self, *, is_asked: bool = False) -> JointTrajectory:
        filler = self._robot()
        self._judge_sent(filler)
        held = filler.hold(time.monotonic())
        self._waiting = None
        if is_asked:
            return self._message(JointTrajectory(), held)
        return _filled_message(JointTrajectory(), held.trajectory, filler.servo is None)

    def _judge_sent(self, filler: TrajectoryFeedforward) -> None:
        """Forget what was sent to a controller that is not active, and find other senders."""
        activity = self._activity
        # Each client of an action subscribes to its feedback.
        clients = self.count_subscribers(f'{self._action}/_action/feedback')
        filler.sent.is_only_command = (
            activity is not None
            and activity.state != UNKNOWN
            and self.count_publishers(self._output.topic_name) <= 1
            and clients <= (self._front is not None)
        )
        if activity is not None and not activity.may_be_active:
            filler.sent.forget()

    def _forget_sent(self) -> None:
        """Forget what was sent: the controller holds something else."""
        if self._filler is not None:
            self._filler.sent.forget()

    def _on_begin(self) -> None:
        self._is_hold_due = True
        self._forget_sent()
        self._hold_if_due()

    def _hold_if_due(self) -> None:
        """Hold the arm, or try again with the next joint state."""
        if self._is_hold_due and self._sent_hold():
            self._is_hold_due = False
            self.get_logger().info('the controller is active: the arm is held')

    def _sent_hold(self) -> bool:
        """Return whether the hold was sent; without fresh joint states it cannot be."""
        try:
            self._output.publish(self._held())
        except RejectedTrajectory:
            return False
        return True

    def _on_timer(self) -> None:
        self._report()
        if self._activity is not None and not self._activity.may_be_active:
            self._sent_hold()

    def _robot(self) -> TrajectoryFeedforward:
        if self._filler is None:
            raise RejectedTrajectory(
                'robot', Phrase('none yet'), 'a URDF on the topic robot_description'
            )
        return self._filler

    def _take_robot(self, text: str | None) -> None:
        self._filler = TrajectoryFeedforward(
            self._settings,
            text,
            self.get_parameter('error_fraction').value,
            self.get_parameter('controller_period').value,
            elapsed_time(self),
            self._servo['servo_gains'],
            self._servo['largest_offset'],
            self.get_parameter('retime').value,
        )
        found = [str(each) for each in self._filler.arm.findings if each.level == 'warning']
        for note in (*found, *self._filler.notes):
            self.get_logger().warning(note)
        self.get_logger().info('joints, base to tip: ' + ', '.join(self._filler.arm.joint_names))

    # --- what comes in -------------------------------------------------------------------------

    def _on_joint_state(self, content: bytes) -> None:
        if self._filler is None:
            return
        states = self._filler.joint_states
        fault = take_in(states, content, time.monotonic(), ros_time(self))
        if fault is not None:
            self.get_logger().warning(f'joint state ignored: {fault}', throttle_duration_sec=1.0)
        self._filler.take_state()
        self._hold_if_due()

    def _on_trajectory(self, content: bytes) -> None:
        stamp = 0.0
        try:
            largest = largest_size(self._robot().arm.n)
            if len(content) > largest:
                raise RejectedTrajectory(
                    'trajectory message', Phrase(f'{len(content)} bytes'), f'at most {largest}'
                )
            message = message_of(content, JointTrajectory)
            stamp = conversions.seconds(message.header.stamp)
            output = self.fill(message) if message.points else self._held(is_asked=True)
            self._is_hold_due = False
        except (RejectedTrajectory, MalformedData) as error:
            self.get_logger().warning(f'trajectory refused: {error}')
            self._rejections.note(error, stamp)
            self._is_refused = True
            if self._at_once.is_due(time.monotonic()):
                self._report()
            return
        self._is_refused = False
        self._output.publish(output)
        if message.points and stamp > 0.0:
            self._waiting = message

    # --- what it tells -------------------------------------------------------------------------

    def _report(self) -> None:
        """Publish the diagnostics."""
        name = self.get_fully_qualified_name().lstrip('/')
        level, message = self._verdict()
        status = conversions.diagnostic_status(
            f'{name}: trajectories', name, level, message, self._rejections.facts
        )
        now = self.get_clock().now().to_msg()
        self._diagnostics.publish(conversions.diagnostics(now, status))

    def _verdict(self) -> tuple[bytes, str]:
        if self._is_refused:
            return DiagnosticStatus.WARN, f'a trajectory was refused: {self._rejections.reason}'
        if self._filler is None:
            waits = f'waiting for the topic robot_description{late_description(self)}'
            return DiagnosticStatus.WARN, waits
        joint_states = self._filler.joint_states
        if trouble := joint_states.trouble():
            return DiagnosticStatus.ERROR, trouble
        if joint_states.elapsed.lacks_clock:
            return DiagnosticStatus.WARN, NO_CLOCK
        if stale := joint_states.stale_joints(time.monotonic()):
            return DiagnosticStatus.WARN, f'waiting for the state of {", ".join(stale)}'
        with_what = 'effort' if self._filler.servo is None else 'offsets of the positions'
        return DiagnosticStatus.OK, f'trajectories are filled with {with_what}'

    # --- what the arm carries ------------------------------------------------------------------

    def _changing(self, service: Callable[..., Any]) -> Callable[[Any, Any], Any]:
        """Return a service that changes the load."""

        def respond(request: Any, response: Any) -> Any:
            change = self._filler.change if self._filler else None
            answer = service(self._callbacks_robot(), request, response, change)
            self._send_waiting()
            return answer

        return respond

    def _send_waiting(self) -> None:
        """Send a trajectory again that has not begun, under the load that now applies."""
        given = self._waiting
        if given is None or self._filler is None:
            return
        try:
            filled = self._filler.waiting(time.monotonic())
            if filled is not None:
                self._output.publish(self._message(given, filled))
        except RejectedTrajectory as error:
            self.get_logger().error(f'the trajectory that waits is replaced by a hold: {error}')
            self._sent_hold()

    def _on_get_payload(self, request: Any, response: Any) -> Any:
        return callbacks.get_payload(self._callbacks_robot(), request, response)

    def _callbacks_robot(self) -> callbacks.Robot | None:
        filler = self._filler
        return callbacks.Robot.under(filler.load, filler.arm) if filler else None


def _filled_message(
    given: JointTrajectory, filled: Trajectory, has_effort: bool
) -> JointTrajectory:
    """
    Return a filled trajectory, with the header of the original message.

    A controller that commands position alone refuses points with effort.
    """
    has_acceleration = np.isfinite(filled.accelerations).all(axis=1)
    rows = TrajectoryRows(
        filled.joint_names,
        filled.times.tolist(),
        filled.positions.tolist(),
        filled.velocities.tolist(),
        [row.tolist() if has else () for row, has in zip(filled.accelerations, has_acceleration)],
        filled.efforts.tolist() if has_effort else [()] * len(filled.times),
    )
    message = trajectory_message(rows)
    message.header = given.header
    return message


def main(args: list[str] | None = None) -> int:
    """Run the node until a signal ends it with code 0; 1 where it cannot begin."""
    return run_from_command_line(NAME, ABOUT, PARAMETERS, FeedforwardNode, args)


if __name__ == '__main__':
    sys.exit(main())
