# SPDX-License-Identifier: Apache-2.0
"""Targets of the tip from topics, and where the tip and its reference are; for an impedance."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Pose, PoseStamped, WrenchStamped
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.time import Time as ClockTime
from trajectory_msgs.msg import MultiDOFJointTrajectory

from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.control_stack import ControlStack
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.tip_target import MOST_POSES, RejectedTarget, TipPose
from robodyn_ros.errors import MalformedData, Phrase, RejectedTrajectory
from robodyn_ros.ros import conversions
from robodyn_ros.ros.joint_states import WARNING_PERIOD
from robodyn_ros.ros.plain_text import plain
from robodyn_ros.ros.qos import RELIABLE
from robodyn_ros.ros.rclpy_workarounds import message_of

LARGEST_POSES = 256 * MOST_POSES
"""Of a message with a trajectory of poses [bytes]: each is a transform and two empty lists."""

LONGEST_AGE = 1.0
"""Of the newest transform of /tf to a frame that moves [s]."""


class TipTopics:
    """
    Takes targets of the tip, and publishes its pose, reference and springs while they are heard.

    Parameters
    ----------
    node : LifecycleNode
        Owns the topics; publishers are silent while it is not active.
    stack : ControlStack
        What runs.
    settings : ControlSettings
        What it was configured with.
    start : callable
        Returns a stamp [s] on the clock of the joint states; None: at once.
    check : callable
        Raises RejectedTrajectory where nothing is to be followed at present.

    Attributes
    ----------
    refused : int
        Targets that could not be taken.
    last_refusal : str
        Why the last of them could not; empty: none was refused.
    has_subscribers : bool
        Whether anything is to be published.
    """

    def __init__(
        self,
        node: LifecycleNode,
        stack: ControlStack,
        settings: ControlSettings,
        start: Callable[[float], float | None],
        check: Callable[[], None],
    ) -> None:
        self.refused, self.last_refusal, self.has_subscribers = 0, '', False
        self._node, self._stack = node, stack
        self._start, self._check = start, check
        self._point = np.array([*settings.wrench_point, 1.0])
        base, tip = stack.model.base_link, stack.model.tip_link
        self._frames = TargetFrames(node, base, tip)
        self._poses = node.create_lifecycle_publisher(PoseStamped, '~/tip_pose', RELIABLE)
        self._references = node.create_lifecycle_publisher(
            PoseStamped, '~/tip_reference', RELIABLE
        )
        self._springs = node.create_lifecycle_publisher(WrenchStamped, '~/spring_wrench', RELIABLE)
        self._pose, self._wrench = PoseStamped(), WrenchStamped()
        self._pose.header.frame_id = self._wrench.header.frame_id = base
        takers: tuple[tuple[str, type[Any], Callable[[Any], None]], ...] = (
            ('target_pose', PoseStamped, self._take_pose),
            ('target_wrench', WrenchStamped, self._take_wrench),
            ('target_poses', MultiDOFJointTrajectory, self._take_poses),
        )
        self._subscriptions = [
            node.create_subscription(
                kind, f'~/{name}', self._refusing(name, kind, take), RELIABLE, raw=True
            )
            for name, kind, take in takers
        ]
        self.look_for_subscribers()

    def look_for_subscribers(self) -> None:
        """Update which topics have subscribers; call it periodically."""
        self._are_poses_heard = self._poses.get_subscription_count() > 0
        self._are_references_heard = self._references.get_subscription_count() > 0
        self._are_springs_heard = self._springs.get_subscription_count() > 0
        self.has_subscribers = (
            self._are_poses_heard or self._are_references_heard or self._are_springs_heard
        )

    @property
    def facts(self) -> dict[str, object]:
        """The facts for diagnostics."""
        pipeline = self._stack.pipeline
        return {
            'stiffness': pipeline.stiffness_in_effect,
            'stiffness_asked_for': pipeline.settings.stiffness,
            'stiffness_waits_for': pipeline.stiffening,
            'stiffness_limited': pipeline.is_stiffness_limited,
            'least_stiffness': f'{pipeline.least_stiffness:.2g}',
            'weighing': pipeline.weighing,
            'targets_refused': self.refused,
            'last_refused_target': self.last_refusal,
        }

    def publish(self, command: Command, stamp: Time) -> None:
        """
        Publish what is heard.

        Parameters
        ----------
        command : Command
            Of a control cycle.
        stamp : Time
            Of its joint state.
        """
        pipeline = self._stack.pipeline
        forward_kinematics = pipeline.law.forward_kinematics
        if self._are_poses_heard and forward_kinematics is not None:
            pose = forward_kinematics(command.state.position[np.newaxis])[0]
            tip = TipPose((pose @ self._point)[:3], np.array(conversions.quaternion(pose[:3, :3])))
            self._publish_pose(self._poses, tip, stamp)
        if self._are_references_heard and (reference := pipeline.tip_reference) is not None:
            self._publish_pose(self._references, reference, stamp)
        if self._are_springs_heard:
            self._wrench.header.stamp = stamp
            force, moment = self._wrench.wrench.force, self._wrench.wrench.torque
            force.x, force.y, force.z, moment.x, moment.y, moment.z = pipeline.spring_wrench
            self._springs.publish(self._wrench)

    def destroy(self) -> None:
        """Close the topics."""
        for publisher in (self._poses, self._references, self._springs):
            self._node.destroy_lifecycle_publisher(publisher)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._frames.close()

    def _publish_pose(self, publisher: Any, pose: TipPose, stamp: Time) -> None:
        message = self._pose
        message.header.stamp = stamp
        position, turn = message.pose.position, message.pose.orientation
        position.x, position.y, position.z = pose.position.tolist()
        turn.x, turn.y, turn.z, turn.w = pose.xyzw.tolist()
        publisher.publish(message)

    # --- targets -------------------------------------------------------------------------------

    def _refusing(
        self, name: str, kind: type[Any], take: Callable[[Any], None]
    ) -> Callable[[bytes], None]:
        """Return a callback that takes a message from its bytes, and says why it cannot."""

        def take_or_refuse(content: bytes) -> None:
            try:
                if len(content) > LARGEST_POSES:
                    raise RejectedTarget(
                        f'~/{name}', Phrase(f'{len(content)} bytes'), f'at most {LARGEST_POSES}'
                    )
                self._check()
                take(message_of(content, kind))
            except (RejectedTrajectory, MalformedData) as error:
                self._refuse(name, str(error))

        return take_or_refuse

    def _refuse(self, name: str, why: str) -> None:
        self.refused += 1
        self.last_refusal = f'{name}: {why}'
        self._node.get_logger().warning(
            f'{name} refused: {why}', throttle_duration_sec=WARNING_PERIOD
        )

    def _take_pose(self, message: PoseStamped) -> None:
        is_relative, frame = self._frames.placed(message.header.frame_id)
        pose = in_base(frame, _pose(message.pose))
        self._stack.pipeline.aim_tip(pose, is_relative=is_relative)

    def _take_wrench(self, message: WrenchStamped) -> None:
        is_relative, frame = self._frames.placed(message.header.frame_id)
        force, moment = message.wrench.force, message.wrench.torque
        wrench = [force.x, force.y, force.z, moment.x, moment.y, moment.z]
        wrench = turned(frame, wrench)
        self._stack.pipeline.add_wrench(wrench, time.monotonic(), is_relative=is_relative)

    def _take_poses(self, message: MultiDOFJointTrajectory) -> None:
        is_relative, frame = self._frames.placed(message.header.frame_id)
        names, tip = list(message.joint_names), self._stack.model.tip_link
        if names not in ([], [tip]):
            raise RejectedTarget('target poses: joint_names', names, f'none, or {[tip]}')
        if len(message.points) > MOST_POSES:
            raise RejectedTarget('target poses', len(message.points), f'at most {MOST_POSES}')
        times, poses = [], []
        for i, point in enumerate(message.points):
            if len(point.transforms) != 1:
                raise RejectedTarget(
                    f'target pose {i}',
                    Phrase(f'{len(point.transforms)} transforms'),
                    'one transform',
                )
            there, turn = point.transforms[0].translation, point.transforms[0].rotation
            xyzw = turn.x, turn.y, turn.z, turn.w
            pose = TipPose.checked((there.x, there.y, there.z), xyzw, f'target pose {i}')
            poses.append(in_base(frame, pose))
            times.append(conversions.seconds(point.time_from_start))
        stamp = conversions.seconds(message.header.stamp)
        self._stack.pipeline.follow_poses(
            times, poses, start=self._start(stamp), is_relative=is_relative
        )


def _pose(message: Pose) -> TipPose:
    there, turn = message.position, message.orientation
    return TipPose.checked((there.x, there.y, there.z), (turn.x, turn.y, turn.z, turn.w))


class TargetFrames:
    """
    Where frames of /tf are in the base link's, when a message comes; where tf2_ros is installed.

    Reading /tf takes time of control cycles: it begins with the first target that needs it, which
    is refused where its transform has not come yet.

    Parameters
    ----------
    node : Node
        Subscribes to /tf and /tf_static.
    base, tip : str
        Links whose frames need no transform.
    """

    def __init__(self, node: Node, base: str, tip: str) -> None:
        self._node, self._base = node, base
        self._is_relative = {'': False, tip: True, base: False}
        self._tf2: Any = None
        self._buffer: Any = None
        self._listener: Any = None

    def placed(self, frame: str) -> tuple[bool, TipPose | None]:
        """
        Return whether a frame is that of the tip's reference, and another one's pose in the base.

        Raises
        ------
        RejectedTarget
            There is no such transform, or it is stale, not finite or no rotation.
        """
        if frame in self._is_relative:
            return self._is_relative[frame], None
        if self._buffer is None:
            self._listen(frame)
        try:
            found = self._buffer.lookup_transform(self._base, frame, ClockTime())
        except self._tf2.TransformException as error:
            raise RejectedTarget(
                'frame_id',
                frame,
                f'a frame of /tf with a transform to {self._base!r}; of what came since it '
                f'was first needed, tf2 says: {plain(str(error))[:200]}',
            ) from None
        age = conversions.seconds(self._node.get_clock().now().to_msg())
        age -= conversions.seconds(found.header.stamp)
        element = f'transform of frame_id {frame!r}'
        # A static transform has no stamp.
        if found.header.stamp != ClockTime().to_msg() and not age <= LONGEST_AGE:
            raise RejectedTarget(element, Phrase(f'{age:.3g} s old'), f'at most {LONGEST_AGE:g} s')
        there, turn = found.transform.translation, found.transform.rotation
        xyzw = turn.x, turn.y, turn.z, turn.w
        return False, TipPose.checked((there.x, there.y, there.z), xyzw, element)

    def close(self) -> None:
        """Read /tf no longer."""
        if self._listener is not None:
            self._listener.unregister()
        self._listener = self._buffer = None

    def _listen(self, frame: str) -> None:
        try:
            import tf2_ros
        except ImportError:
            known = ', '.join(repr(name) for name in self._is_relative)
            raise RejectedTarget(
                'frame_id', frame, f'one of {known}; with tf2_ros installed, those of /tf'
            ) from None
        self._tf2, self._buffer = tf2_ros, tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, self._node)


def in_base(frame: TipPose | None, pose: TipPose) -> TipPose:
    """Return a pose that is given in a frame; None: in the base link's."""
    if frame is None:
        return pose
    position = frame.position + _rotated(frame.xyzw, pose.position)
    return TipPose(position, _product(frame.xyzw, pose.xyzw))


def turned(frame: TipPose | None, wrench: list[float]) -> list[float]:
    """Return a wrench at the tip, given in a frame's axes, in base axes."""
    if frame is None:
        return wrench
    result: list[float] = _rotated(frame.xyzw, np.reshape(wrench, (2, 3))).ravel().tolist()
    return result


def _rotated(xyzw: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    across = 2.0 * np.cross(xyzw[:3], vectors)
    return vectors + xyzw[3] * across + np.cross(xyzw[:3], across)


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    vector = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(vector, a[3] * b[3] - a[:3] @ b[:3])
