# SPDX-License-Identifier: Apache-2.0
"""Messages to arrays and back; pure functions that know no node."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Quaternion, Transform, Vector3, Vector3Stamped, Wrench
from numpy.typing import ArrayLike
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robodyn_interfaces.msg import MinimalParameter
from robodyn_interfaces.msg import Payload as PayloadMessage
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.trajectory import MOST_POINTS
from robodyn_ros.errors import NonFiniteValue
from robodyn_ros.model import Payload
from robodyn_ros.motions import MotionSamples
from robodyn_ros.motions.trajectory_yaml import TrajectoryRows
from robodyn_ros.parameters import LinearCombination
from robodyn_ros.ros.plain_text import plain

POINT_RATE = 50.0
"""Most points of a trajectory that is made of samples [Hz]."""

_NANOSECONDS = 1_000_000_000


def seconds(stamp: Time | Duration) -> float:
    """Return a time in seconds; a stamp of today is exact to a quarter of a microsecond."""
    return stamp.sec + 1e-9 * stamp.nanosec


def duration(time: float) -> Duration:
    """Return a time [s] as a message has it."""
    whole, nanoseconds = divmod(round(time * _NANOSECONDS), _NANOSECONDS)
    return Duration(sec=whole, nanosec=nanoseconds)


def floats(values: ArrayLike) -> array:
    """Return a float64 message field; messages take an array of this type unchecked."""
    field = array('d')
    field.frombytes(np.ascontiguousarray(values, dtype=float).tobytes())
    return field


def rows_of_motion(joint_names: Sequence[str], motion: MotionSamples) -> TrajectoryRows:
    """Return samples of a motion to be sent: no more than a node takes, or follows any better."""
    duration = float(motion.time[-1] - motion.time[0])
    most = min(MOST_POINTS, math.ceil(duration * POINT_RATE) + 1)
    return TrajectoryRows.of_motion(joint_names, motion, most)


def trajectory_message(
    rows: TrajectoryRows, stamp: float = 0.0, lead: float = 0.0
) -> JointTrajectory:
    """Return the message of a trajectory, whose points come so long [s] after its stamp [s]."""
    message = JointTrajectory(joint_names=list(rows.joint_names))
    message.points = [
        JointTrajectoryPoint(
            positions=floats(position),
            velocities=floats(velocity),
            accelerations=floats(acceleration),
            effort=floats(effort),
            time_from_start=duration(lead + time),
        )
        for time, position, velocity, acceleration, effort in zip(*rows[1:], strict=True)
    ]
    whole = duration(stamp)
    message.header.stamp = Time(sec=whole.sec, nanosec=whole.nanosec)
    return message


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
        translation=Vector3(x=px, y=py, z=pz), rotation=Quaternion(x=x, y=y, z=z, w=w)
    )


def vector(message: Vector3) -> np.ndarray:
    """Return a vector, shape (3,)."""
    return np.array([message.x, message.y, message.z])


def wrench(message: Wrench) -> np.ndarray:
    """
    Return force [N] and moment [N m], shape (6,).

    Raises
    ------
    NonFiniteValue
    """
    values = np.concatenate([vector(message.force), vector(message.torque)])
    if not np.isfinite(values).all():
        raise NonFiniteValue('request tip_wrench', values.tolist(), 'finite numbers')
    return values


def gravity(message: Vector3Stamped) -> GravityChange:
    """Return a gravity, unchecked [m/s²]."""
    return GravityChange(vector(message.vector), message.header.frame_id)


def payload(message: PayloadMessage) -> Payload:
    """Return a payload, unchecked; an empty link is the tip's."""
    inertia = np.array(
        [
            [message.ixx, message.ixy, message.ixz],
            [message.ixy, message.iyy, message.iyz],
            [message.ixz, message.iyz, message.izz],
        ]
    )
    return Payload(message.mass, vector(message.center_of_mass), inertia, message.link or None)


def payload_message(body: Payload) -> PayloadMessage:
    """Return the message of a payload."""
    x, y, z = (float(value) for value in np.asarray(body.center_of_mass))
    inertia = np.asarray(body.inertia, dtype=float)
    elements = {
        'i' + 'xyz'[i] + 'xyz'[j]: float(inertia[i, j]) for i in range(3) for j in range(i, 3)
    }
    return PayloadMessage(
        link=body.link or '',
        mass=float(body.mass),
        center_of_mass=Vector3(x=x, y=y, z=z),
        **elements,
    )


def minimal_parameter(expression: LinearCombination, deviation: float) -> MinimalParameter:
    """Return the message of a minimal parameter; the deviation is NaN where none is known."""
    return MinimalParameter(
        name=expression.name,
        value=expression.value,
        deviation=deviation,
        expression=expression.text(),
        link=expression.link,
        unit=expression.unit,
    )


def diagnostics(stamp: Time, *status: DiagnosticStatus) -> DiagnosticArray:
    """Return the message of some status."""
    message = DiagnosticArray(status=list(status))
    message.header.stamp = stamp
    return message


def diagnostic_status(
    name: str, hardware_id: str, level: bytes, message: str, facts: Mapping[str, object]
) -> DiagnosticStatus:
    """Return a status with its facts as plain text."""
    values = [KeyValue(key=key, value=plain(str(value))) for key, value in facts.items()]
    return DiagnosticStatus(
        name=name, hardware_id=hardware_id, level=level, message=plain(message), values=values
    )


def quaternion(rotation: np.ndarray) -> tuple[float, float, float, float]:
    """Return the unit quaternion (x, y, z, w), w >= 0, of a rotation matrix, shape (3, 3)."""
    # Of the four components, the largest first: nothing is divided by a small number. SciPy has
    # this, too; importing it takes as long as half of the node's start.
    r = rotation
    diagonal = np.diagonal(r)
    squares = np.array([*(1.0 + 2.0 * diagonal - np.trace(r)), 1.0 + np.trace(r)])
    differences = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    largest = int(np.argmax(squares))
    if largest == 3:
        xyzw = np.array([*differences, squares[3]])
    else:
        xyzw = np.array([*(r[largest] + r[:, largest]), differences[largest]])
        xyzw[largest] = squares[largest]
    xyzw = xyzw / np.linalg.norm(xyzw)
    x, y, z, w = (xyzw if xyzw[3] >= 0.0 else -xyzw).tolist()
    return x, y, z, w
