# SPDX-License-Identifier: Apache-2.0
"""Messages to arrays and back; pure functions that know no node."""

from __future__ import annotations

from array import array

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion, Transform, Vector3
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory

from robodyn_ros.control.trajectory import Trajectory


def seconds(stamp: Time) -> float:
    """Return a stamp in seconds; exact to a quarter of a microsecond for today's dates."""
    return stamp.sec + 1e-9 * stamp.nanosec


def floats(values: np.ndarray) -> array:
    """Return a float64 message field; messages take an array of this type unchecked."""
    field = array('d')
    field.frombytes(np.ascontiguousarray(values, dtype=float).tobytes())
    return field


def trajectory(message: JointTrajectory, start: float | None) -> Trajectory:
    """
    Return the checked way-points of a message.

    Parameters
    ----------
    message : JointTrajectory
        With at least one point.
    start : float or None
        The message's start on the reference's clock [s]; None: on arrival.

    Raises
    ------
    RejectedTrajectory
        What is malformed.
    """
    points = message.points
    return Trajectory.from_points(
        message.joint_names,
        [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points],
        [point.positions for point in points],
        [point.velocities for point in points],
        [point.accelerations for point in points],
        [point.effort for point in points],
        start=start,
    )


def matrix(values: np.ndarray) -> Float64MultiArray:
    """Return a matrix, shape (rows, columns), row major with labelled dimensions."""
    rows, columns = values.shape
    message = Float64MultiArray(data=floats(values))
    message.layout.dim = [
        MultiArrayDimension(label='rows', size=rows, stride=rows * columns),
        MultiArrayDimension(label='columns', size=columns, stride=columns),
    ]
    return message


def transform(homogeneous: np.ndarray) -> Transform:
    """Return a homogeneous transform, shape (4, 4) [m], with a unit quaternion."""
    x, y, z, w = quaternion(homogeneous[:3, :3])
    px, py, pz = (float(value) for value in homogeneous[:3, 3])
    return Transform(
        translation=Vector3(x=px, y=py, z=pz), rotation=Quaternion(x=x, y=y, z=z, w=w))


def quaternion(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """
    Return the unit quaternion (x, y, z, w), w >= 0, of a rotation matrix, shape (3, 3).

    Notes
    -----
    The eigenvector of the largest eigenvalue of Bar-Itzhack's symmetric matrix: as exact near
    half a turn as anywhere.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    symmetric = np.array([
        [xx - yy - zz, xy + yx, xz + zx, zy - yz],
        [xy + yx, yy - xx - zz, yz + zy, xz - zx],
        [xz + zx, yz + zy, zz - xx - yy, yx - xy],
        [zy - yz, xz - zx, yx - xy, xx + yy + zz],
    ])
    vector = np.linalg.eigh(symmetric)[1][:, -1]
    if vector[3] < 0.0:
        vector = -vector
    x, y, z, w = (float(value) for value in vector)
    return x, y, z, w
