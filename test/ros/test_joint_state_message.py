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

from robodyn_ros.control.joint_state_buffer import JointStateBuffer
from robodyn_ros.errors import MalformedData
from robodyn_ros.ros import cdr, conversions
from robodyn_ros.ros.joint_states import LARGEST_SIZE, MOST_JOINTS, read_joint_state

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


@given(MESSAGES)
def test_every_message_is_read_as_rclpy_reads_it(message):
    check(read_joint_state(content(message)), message)


@given(st.lists(MESSAGES, max_size=6))
def test_bytes_make_the_same_state_as_the_arrays_that_rclpy_reads(messages):
    names = NAMES[:2]
    by_bytes, by_arrays = JointStateBuffer(names, 0.1), JointStateBuffer(names, 0.1)
    for k, message in enumerate(messages):
        now, stamp = 0.01 * k, conversions.seconds(message.header.stamp)
        arrays = message.name, message.position, message.velocity
        age = 0.5 - stamp if stamp > 0.0 else 0.0
        faults = (
            by_bytes.receive_bytes(content(message), now, 0.5),
            by_arrays.receive(*arrays, received=now, stamp=stamp, age=age, effort=message.effort),
        )
        assert faults[0] == faults[1]
        assert by_bytes.stamp == (message.header.stamp.sec, message.header.stamp.nanosec)
        assert by_bytes.is_complete == by_arrays.is_complete
        for one, other in zip(by_bytes.take(), by_arrays.take(), strict=True):
            np.testing.assert_array_equal(one, other)
        assert by_bytes.trouble() == by_arrays.trouble()


@given(MESSAGES, st.data())
def test_no_bytes_get_anything_but_a_message_or_a_refusal(message, data):
    spoilt = bytearray(content(message))
    for _ in range(data.draw(st.integers(1, 4))):
        spoilt[data.draw(st.integers(0, len(spoilt) - 1))] = data.draw(st.integers(0, 255))
    del spoilt[data.draw(st.integers(0, len(spoilt))) :]
    states = JointStateBuffer(NAMES, 0.1)
    fault = states.receive_bytes(bytes(spoilt), 1.0, 0.0)
    if states.is_complete:
        assert np.isfinite(states.take().position).all()
    try:
        found = read_joint_state(bytes(spoilt))
    except MalformedData as error:
        assert fault is not None or spoilt[:2] != cdr.LITTLE_ENDIAN, error
        return
    assert 8 * (len(found.position) + len(found.velocity)) <= len(spoilt)


@pytest.mark.parametrize('field', ['position', 'velocity', 'effort'])
@pytest.mark.parametrize('count', [8, 2**29, 2**29 + 7, 2**31, 2**32 - 1])
def test_numbers_whose_size_overflows_are_refused(field, count):
    # Eight bytes for each make none, or as many as there are, where 32 bits count them.
    spoilt = bytearray(content(JointState(name=NAMES, position=[0.1] * 7)))
    end = spoilt.rindex(np.float64(0.1).tobytes()) + 8
    at = {'position': spoilt.index(b'joint7') + 8, 'velocity': end, 'effort': end + 4}[field]
    spoilt[at : at + 4] = count.to_bytes(4, 'little')
    with pytest.raises(MalformedData, match='a sensor_msgs/JointState'):
        read_joint_state(bytes(spoilt))


def test_other_encodings_are_left_to_rclpy(monkeypatch):
    message = JointState(name=NAMES, position=[0.1] * 7, effort=[0.3] * 7)
    monkeypatch.setattr(cdr, 'LITTLE_ENDIAN', b'xx')
    check(read_joint_state(content(message)), message)


def test_too_many_joints_and_bytes_are_refused_by_their_number():
    most = JointState(name=[f'panda_joint{i}' for i in range(MOST_JOINTS)])
    most.position = most.velocity = most.effort = [0.1] * MOST_JOINTS
    check(read_joint_state(content(most)), most)
    most.name = ['x'] * (MOST_JOINTS + 1)
    with pytest.raises(MalformedData, match=f'{MOST_JOINTS + 1}.*at most {MOST_JOINTS}'):
        read_joint_state(content(most))
    with pytest.raises(MalformedData, match=f'{LARGEST_SIZE + 4} bytes.*{LARGEST_SIZE}'):
        read_joint_state(b'\0\1\0\0' + bytes(LARGEST_SIZE))
