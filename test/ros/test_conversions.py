# SPDX-License-Identifier: Apache-2.0
"""What messages are made of, where a closed form says it."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.ros.conversions import quaternion

pytestmark = pytest.mark.ros


def rotation(axis, angle):
    """Return Rodrigues' rotation matrix."""
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross


AXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, -1), (1, -2, 3)]


def test_quaternion_is_that_of_half_the_angle_about_the_axis():
    for axis in AXES:
        for angle in (0.0, 1e-9, 0.3, np.pi / 2, np.pi - 1e-9, 3.0, 4.0, 6.2):
            expected = np.append(np.sin(angle / 2) * np.array(axis) / np.linalg.norm(axis), 0.0)
            expected[3] = np.cos(angle / 2)
            expected *= np.copysign(1.0, expected[3])
            found = quaternion(rotation(axis, angle))
            assert found == pytest.approx(expected, abs=1e-12), (axis, angle)


def test_quaternion_of_half_a_turn_is_the_axis():
    for axis in AXES:
        *vector, w = quaternion(rotation(axis, np.pi))
        assert w >= 0.0 and w == pytest.approx(0.0, abs=1e-12), axis
        assert abs(np.dot(vector, axis)) == pytest.approx(np.linalg.norm(axis), abs=1e-12), axis
