# SPDX-License-Identifier: Apache-2.0
"""Targets in frames of /tf, by a stand-in for tf2's buffer; with the real one where it is."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from geometry_msgs.msg import TransformStamped
from rclpy.time import Time as RosTime
from scipy.spatial.transform import Rotation

from robodyn_ros.control.tip_target import RejectedTarget, TipPose
from robodyn_ros.ros.dynamics.tip_topics import TargetFrames, in_base, turned

CAMERA = Rotation.from_rotvec([0.3, -1.2, 0.7])
PLACE = np.array([0.4, -0.2, 1.1])
NOW = 100.0


class NoTransform(Exception):
    pass


class Buffer:
    """What tf2's buffer does with one transform."""

    transform = None

    def lookup_transform(self, target, source, stamp):
        if (target, source) != ('base', 'camera') or self.transform is None:
            raise NoTransform(f'"{source}" passed to lookupTransform does not exist')
        assert stamp == RosTime()  # the newest
        return self.transform


class Listener:
    def __init__(self, buffer, node):
        node.listeners.append(self)

    def unregister(self):
        self.is_over = True


def transform(place=PLACE, xyzw=None, stamp=0.0):
    message = TransformStamped()
    message.header.stamp = RosTime(nanoseconds=int(1e9 * stamp)).to_msg()
    at, turn = message.transform.translation, message.transform.rotation
    at.x, at.y, at.z = map(float, place)
    turn.x, turn.y, turn.z, turn.w = map(float, CAMERA.as_quat() if xyzw is None else xyzw)
    return message


@pytest.fixture
def node():
    clock = SimpleNamespace(now=lambda: RosTime(nanoseconds=int(1e9 * NOW)))
    return SimpleNamespace(listeners=[], get_clock=lambda: clock)


@pytest.fixture
def frames(node, monkeypatch):
    stand_in = SimpleNamespace(
        Buffer=Buffer, TransformListener=Listener, TransformException=NoTransform
    )
    monkeypatch.setitem(sys.modules, 'tf2_ros', stand_in)
    monkeypatch.setattr(Buffer, 'transform', transform())
    return TargetFrames(node, 'base', 'tool')


def test_a_pose_in_a_camera_s_frame_is_where_the_camera_sees_it(frames):
    is_relative, camera = frames.placed('camera')
    turn = Rotation.from_rotvec([0.1, 0.2, -0.5])
    found = in_base(camera, TipPose(np.array([0.1, 0.0, 0.8]), turn.as_quat()))
    assert not is_relative
    np.testing.assert_allclose(found.position, PLACE + CAMERA.apply([0.1, 0.0, 0.8]), atol=1e-12)
    assert (Rotation.from_quat(found.xyzw).inv() * CAMERA * turn).magnitude() < 1e-9
    wrench = turned(camera, [1.0, 2.0, 3.0, 0.0, 0.5, 0.0])
    expected = np.concatenate([CAMERA.apply([1.0, 2.0, 3.0]), CAMERA.apply([0.0, 0.5, 0.0])])
    np.testing.assert_allclose(wrench, expected, atol=1e-12)


def test_base_and_tip_need_no_transform_and_nothing_is_read_for_them(frames, node):
    assert frames.placed('') == frames.placed('base') == (False, None)
    assert frames.placed('tool') == (True, None)
    assert not node.listeners
    frames.placed('camera')
    frames.placed('camera')
    assert len(node.listeners) == 1
    frames.close()
    assert node.listeners[0].is_over


@pytest.mark.parametrize(
    'given, words',
    [
        (None, 'to lookupTransform does not exist'),
        (transform([np.nan, 0.0, 0.0]), 'not finite'),
        (transform(xyzw=[0.0, 0.0, 0.0, np.inf]), 'not finite'),
        (transform(xyzw=[0.0] * 4), 'norm of the quaternion'),
        (transform(stamp=NOW - 1.5), '1.5 s old; allowed: at most 1 s'),
        (transform(stamp=NOW - 0.9), ''),
    ],
)
def test_a_transform_that_is_missing_stale_or_no_number_is_refused_by_name(
    frames, monkeypatch, given, words
):
    monkeypatch.setattr(Buffer, 'transform', given)
    if not words:
        assert frames.placed('camera')[1] is not None
        return
    with pytest.raises(RejectedTarget) as refused:
        frames.placed('camera')
    assert words in str(refused.value) and 'camera' in str(refused.value)


def test_a_name_from_a_topic_opens_nothing(frames):
    for name in ('/etc/passwd', 'file:///etc/passwd', '../camera', 'x' * 10_000):
        with pytest.raises(RejectedTarget, match='a frame of /tf') as refused:
            frames.placed(name)
        assert len(str(refused.value)) < 600


def test_without_tf2_other_frames_are_refused_as_such(node, monkeypatch):
    monkeypatch.setitem(sys.modules, 'tf2_ros', None)
    with pytest.raises(RejectedTarget) as refused:
        TargetFrames(node, 'base', 'tool').placed('camera')
    assert "'camera'; allowed: one of '', 'tool', 'base'; with tf2_ros" in str(refused.value)


def test_the_real_buffer_gives_what_the_stand_in_gives(node):
    tf2 = pytest.importorskip('tf2_ros', reason='needs tf2_ros, which is not on PyPI')
    frames = TargetFrames(node, 'base', 'tool')
    frames._tf2, frames._buffer = tf2, tf2.Buffer()
    with pytest.raises(RejectedTarget, match='camera'):
        frames.placed('camera')
    given = transform()
    given.header.frame_id, given.child_frame_id = 'base', 'camera'
    frames._buffer.set_transform_static(given, 'test')
    camera = frames.placed('camera')[1]
    np.testing.assert_allclose(camera.position, PLACE)
    np.testing.assert_allclose(
        Rotation.from_quat(camera.xyzw).apply([1, 2, 3]), CAMERA.apply([1, 2, 3])
    )
