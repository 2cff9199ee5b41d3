# SPDX-License-Identifier: Apache-2.0
"""A joint state read from its bytes is what rclpy reads, and nothing else gets through."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from robodyn_ros.errors import MalformedData
from robodyn_ros.ros import cdr, joint_states
from robodyn_ros.ros.joint_states import LARGEST_SIZE, MOST_JOINTS, JointStateReader

NAMES = [f'joint{i}' for i in range(1, 8)]
NUMBERS = st.lists(st.floats(width=64), max_size=5)
TEXTS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=9)
STAMPS = st.builds(Time, sec=st.integers(-(2**31), 2**31 - 1), nanosec=st.integers(0, 2**32 - 1))
MESSAGES = st.builds(
    JointState,
    header=st.builds(Header, stamp=STAMPS, frame_id=TEXTS | st.just('')),
    name=st.lists(TEXTS, max_size=5) | st.just(NAMES),
    position=NUMBERS,
    velocity=NUMBERS,
    effort=NUMBERS,
)


def content(message):
    return bytes(serialize_message(message))


def check(found, message):
    wanted = deserialize_message(serialize_message(message), JointState)
    assert (found.sec, found.nanosec) == (wanted.header.stamp.sec, wanted.header.stamp.nanosec)
    assert list(found.names) == wanted.name
    np.testing.assert_array_equal(np.array(found.position), np.array(wanted.position))
    np.testing.assert_array_equal(np.array(found.velocity), np.array(wanted.velocity))
    np.testing.assert_array_equal(np.array(found.effort), np.array(wanted.effort))


@given(st.lists(MESSAGES, min_size=1, max_size=12))
def test_every_message_is_read_as_rclpy_reads_it_whatever_came_before(messages):
    reader = JointStateReader()
    for message in [*messages, *messages]:
        check(reader.read(content(message)), message)


def test_second_message_of_a_layout_is_not_taken_apart_again(monkeypatch):
    reader = JointStateReader()
    message = JointState(name=NAMES, position=[0.1] * 7, velocity=[0.2] * 7)
    check(reader.read(content(message)), message)
    monkeypatch.setattr(joint_states, '_layout', None)
    message.position = [0.3] * 7
    message.header.stamp = Time(sec=5, nanosec=6)
    check(reader.read(content(message)), message)


@given(MESSAGES, st.data())
def test_no_bytes_get_anything_but_a_message_or_a_refusal(message, data):
    reader = JointStateReader()
    reader.read(content(message))
    spoilt = bytearray(content(message))
    for _ in range(data.draw(st.integers(1, 4))):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    del spoilt[data.draw(st.integers(0, len(spoilt))) :]
    try:
        found = reader.read(bytes(spoilt))
    except MalformedData:
        return
    assert 8 * (len(found.position) + len(found.velocity)) <= len(spoilt)


@pytest.mark.parametrize(
    'spoilt',
    [
        b'',
        b'\0',
        b'\0\1\0\0',
        b'\xff' * 200,
        b'\0\1\0\0' + b'\xff' * 200,
        b'\0\1\0\0' + b'\0' * 8 + b'\1\0\0\0\0\0\0\0' + b'\xff' * 40,
    ],
)
def test_bytes_that_are_no_message_are_refused(spoilt):
    with pytest.raises(MalformedData, match='a sensor_msgs/JointState|at most'):
        JointStateReader().read(spoilt)


@pytest.mark.parametrize('is_known', [True, False])
def test_message_that_ends_too_soon_is_refused_wherever_it_ends(is_known):
    message = JointState(name=NAMES, position=[0.1] * 7, velocity=[0.2] * 7, effort=[0.3] * 7)
    whole, reader = content(message), JointStateReader()
    if is_known:
        reader.read(whole)
    for size in range(len(whole)):
        with pytest.raises(MalformedData):
            reader.read(whole[:size])


def test_other_encodings_are_left_to_rclpy(monkeypatch):
    message = JointState(name=NAMES, position=[0.1] * 7, effort=[0.3] * 7)
    monkeypatch.setattr(cdr, 'LITTLE_ENDIAN', b'xx')
    check(JointStateReader().read(content(message)), message)


def test_too_many_joints_and_bytes_are_refused_by_their_number():
    reader = JointStateReader()
    most = JointState(name=[f'panda_joint{i}' for i in range(MOST_JOINTS)])
    most.position = most.velocity = most.effort = [0.1] * MOST_JOINTS
    check(reader.read(content(most)), most)
    most.name = ['x'] * (MOST_JOINTS + 1)
    with pytest.raises(MalformedData, match=f'{MOST_JOINTS + 1}.*at most {MOST_JOINTS}'):
        reader.read(content(most))
    with pytest.raises(MalformedData, match=f'{LARGEST_SIZE + 4} bytes.*{LARGEST_SIZE}'):
        reader.read(b'\0\1\0\0' + bytes(LARGEST_SIZE))


def test_large_message_of_known_layout_is_no_way_round_its_size():
    message = JointState(name=NAMES, position=[0.1] * 7)
    reader = JointStateReader()
    reader.read(content(message))
    message.effort = [0.1] * LARGEST_SIZE
    with pytest.raises(MalformedData, match='bytes'):
        reader.read(content(message))


def test_layouts_that_are_remembered_are_few():
    reader = JointStateReader()
    for i in range(100):
        reader.read(content(JointState(name=[f'joint{i}'], position=[0.0])))
    assert len(reader._layouts) <= 8
