# SPDX-License-Identifier: Apache-2.0
"""A trajectory read from its bytes is what rclpy reads, and nothing else gets through."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from builtin_interfaces.msg import Duration, Time
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_ros.control.trajectory import MOST_POINTS
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros import cdr
from robodyn_ros.ros.trajectory_message import MOST_JOINTS, TrajectoryMessage

NAMES = [f'joint{i}' for i in range(1, 8)]
JOINTS = len(NAMES)

NUMBERS = st.floats(width=64)
ROWS = st.lists(NUMBERS, max_size=9)
POINTS = st.builds(
    JointTrajectoryPoint,
    positions=ROWS,
    velocities=ROWS,
    accelerations=ROWS,
    effort=ROWS,
    time_from_start=st.builds(
        Duration,
        sec=st.just(0) | st.integers(-(2**31), 2**31 - 1),
        nanosec=st.integers(0, 2**32 - 1),
    ),
)
TEXTS = st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=9)
STAMPS = st.builds(Time, sec=st.integers(-(2**31), 2**31 - 1), nanosec=st.integers(0, 10**9))
MESSAGES = st.builds(
    JointTrajectory,
    header=st.builds(Header, stamp=STAMPS, frame_id=TEXTS),
    joint_names=st.lists(TEXTS, max_size=9),
    # Points of one layout are read together: repeated ones are as likely as others.
    points=st.lists(st.tuples(POINTS, st.sampled_from([1, 1, 2, 5, 300])), max_size=4).map(
        lambda pairs: [point for point, count in pairs for _ in range(count)]
    ),
)


def read(message, joints=JOINTS):
    return TrajectoryMessage.from_bytes(bytes(serialize_message(message)), joints)


def message_of(count, *fields, names=NAMES):
    points = [
        JointTrajectoryPoint(
            time_from_start=Duration(sec=i), **{field: [0.1 * i] * len(names) for field in fields}
        )
        for i in range(1, count + 1)
    ]
    return JointTrajectory(joint_names=list(names), points=points)


@given(MESSAGES)
def test_every_message_is_read_as_rclpy_reads_it(message):
    found = read(message)
    wanted = deserialize_message(serialize_message(message), JointTrajectory)
    stamp = wanted.header.stamp
    assert found.stamp == stamp.sec + 1e-9 * stamp.nanosec
    assert list(found.rows.joint_names) == wanted.joint_names
    times = [point.time_from_start for point in wanted.points]
    assert found.rows.times == [time.sec + 1e-9 * time.nanosec for time in times]
    for field, rows in (
        ('positions', found.rows.positions),
        ('velocities', found.rows.velocities),
        ('accelerations', found.rows.accelerations),
        ('effort', found.rows.effort),
    ):
        assert len(rows) == len(wanted.points)
        for row, point in zip(rows, wanted.points, strict=True):
            np.testing.assert_array_equal(np.asarray(row), np.asarray(getattr(point, field)))


@pytest.mark.parametrize('frame', range(9))
def test_first_point_may_stand_otherwise_than_those_after_it(frame):
    message = message_of(4, 'positions', names=['a'])
    message.header.frame_id = 'x' * frame
    for i, point in enumerate(message.points, start=1):
        point.time_from_start = Duration(nanosec=i)  # zeros, where lengths might be looked for
    found = read(message)
    assert [list(row) for row in found.rows.positions] == [[0.1 * i] for i in (1, 2, 3, 4)]
    assert found.rows.times == pytest.approx([1e-9, 2e-9, 3e-9, 4e-9])


@given(MESSAGES, st.data())
def test_no_bytes_get_anything_but_a_message_or_a_refusal(message, data):
    content = bytearray(serialize_message(message))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(0, len(content))) :]
    try:
        found = TrajectoryMessage.from_bytes(bytes(content), JOINTS)
    except RejectedTrajectory:
        return
    lists = (
        found.rows.positions,
        found.rows.velocities,
        found.rows.accelerations,
        found.rows.effort,
    )
    assert {len(rows) for rows in lists} == {len(found.rows.times)}


def test_message_that_ends_too_soon_is_refused_wherever_it_ends():
    content = bytes(serialize_message(message_of(3, 'positions', 'velocities')))
    is_read = [not refused(content[:size]) for size in range(len(content) + 1)]
    assert is_read == sorted(is_read)
    shortest = TrajectoryMessage.from_bytes(content[: is_read.index(True)], JOINTS)
    assert shortest.rows.times == [1.0, 2.0, 3.0]


def refused(content):
    try:
        TrajectoryMessage.from_bytes(content, JOINTS)
    except RejectedTrajectory:
        return True
    return False


def test_other_encodings_are_left_to_rclpy(monkeypatch):
    content = bytes(serialize_message(message_of(3, 'positions', 'effort')))
    monkeypatch.setattr(cdr, 'LITTLE_ENDIAN', b'xx')
    found = TrajectoryMessage.from_bytes(content, JOINTS)
    assert found.rows.times == [1.0, 2.0, 3.0]
    assert [list(row) for row in found.rows.effort] == [[0.1 * i] * 7 for i in (1, 2, 3)]
    assert found.trajectory(5.0).start == 5.0


def test_largest_message_has_every_field_at_every_point():
    fields = ('positions', 'velocities', 'accelerations', 'effort')
    trajectory = read(message_of(MOST_POINTS, *fields)).trajectory(None)
    assert trajectory.positions.shape == trajectory.efforts.shape == (MOST_POINTS, 7)


def test_too_many_joints_are_refused_by_their_number():
    with pytest.raises(RejectedTrajectory, match=f'{MOST_JOINTS + 1}.*at most {MOST_JOINTS}'):
        read(JointTrajectory(joint_names=[''] * (MOST_JOINTS + 1)))
