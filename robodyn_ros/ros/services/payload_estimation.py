# SPDX-License-Identifier: Apache-2.0
"""The service ``estimate_payload``: from the efforts of the last seconds, or of poses at rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Vector3

from robodyn_interfaces.srv import EstimatePayload
from robodyn_ros.control.load import Load
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NotReady, Phrase
from robodyn_ros.model import Payload, RobotModel, position_unit
from robodyn_ros.ros import conversions
from robodyn_ros.ros.services.callbacks import Robot, responding
from robodyn_ros.ros.shared_memory import Cycles

DURATION = 10.0  # that is looked back where a request does not say [s]
LONGEST_DURATION = 60.0  # so that an answer takes a second or two at most [s]
POSE_DURATION = 1.5  # that the arm must have stood [s]
LONGEST_WAY = 0.002  # of a joint of an arm that stands: no end of a motion [rad] or [m]
SAME_POSE = 0.05  # apart: what stiction holds in one is no second measurement [rad] or [m]
MOST_POSES = 50  # the oldest are forgotten

_METHODS = ('motion', 'poses')
_RATE = 250.0  # that quicker samples are averaged to [Hz]: what is estimated lies under 10 Hz


class MeasuredSamples(NamedTuple):
    """
    Samples of n joints at K times.

    Parameters
    ----------
    time : array, shape (K,)
        Of the joint states, increasing [s].
    received : float
        When the last one came, by the steady clock [s].
    position, velocity, effort : array, shape (K, n)
        [rad or m], that per second, the drives' unit; NaN where it is not known.
    """

    time: np.ndarray
    received: float
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def last_motion(cycles: Cycles, duration: float) -> MeasuredSamples | None:
    """Return the states with efforts that are older than the newest by a time [s] at the most."""
    found = cycles.states()
    if found is None:
        return None
    has_effort = np.isfinite(found.effort).any(axis=1)
    if not has_effort.any():
        return None
    newest = int(np.flatnonzero(has_effort)[-1])
    age = found.time[newest] - found.time
    rows = np.column_stack([found.time, found.position, found.velocity, found.effort])
    rows = _averaged(rows[has_effort & (age >= 0.0) & (age <= duration)])
    position, velocity, effort = np.split(rows[:, 1:], 3, axis=1)
    return MeasuredSamples(rows[:, 0], float(found.received[newest]), position, velocity, effort)


def _averaged(rows: np.ndarray) -> np.ndarray:
    """Return means of successive rows where they are more than ``_RATE`` a second."""
    span = rows[-1, 0] - rows[0, 0]
    width = int((len(rows) - 1) / (span * _RATE)) if span > 0.0 else 1
    if width < 2:
        return rows
    kept = len(rows) // width * width
    return rows[len(rows) - kept :].reshape(-1, width, rows.shape[1]).mean(axis=1)


class MeasuredMotion:
    """
    Measurements of a robot: its last seconds, and the poses of earlier calls.

    Parameters
    ----------
    cycles : Cycles
        Of the node.
    """

    def __init__(self, cycles: Cycles) -> None:
        self.poses: list[MeasuredSamples] = []
        self._cycles = cycles
        self._configured = 0.0

    def look_at(self, robot: Robot) -> None:
        """Discard the poses of a previous robot, if this is another one."""
        if robot.configured != self._configured:
            self._configured = robot.configured
            self.poses.clear()

    def last(self, robot: Robot, duration: float) -> MeasuredSamples:
        """
        Return the last seconds.

        Raises
        ------
        InsufficientRecording
            No joint state with efforts has come.
        NotReady
            None has come for a while.
        """
        motion = last_motion(self._cycles, duration)
        if motion is None:
            raise InsufficientRecording(
                'joint states', Phrase('none with efforts came'), 'those of a driver with efforts'
            )
        age = time.monotonic() - motion.received
        if age > robot.longest_age:
            raise NotReady(
                'age of the latest measured effort',
                round(age, 3),
                f'at most {robot.longest_age:g} s',
                unit='s',
            )
        return motion

    def add_pose(self, robot: Robot) -> None:
        """
        Add the present pose, replacing an earlier sample of it.

        Raises
        ------
        InsufficientRecording, NotReady
            As ``last``, and where it has not stood for long enough.
        """
        motion = self.last(robot, POSE_DURATION)
        stood = float(motion.time[-1] - motion.time[0])
        if stood < 0.9 * POSE_DURATION:
            raise InsufficientRecording(
                'pose', Phrase(f'{stood:.2g} s'), f'{POSE_DURATION:g} s with efforts'
            )
        way = np.ptp(motion.position, axis=0)
        joint = int(way.argmax())
        if way[joint] > LONGEST_WAY:
            unit = position_unit(robot.arm.dh.prismatic[joint])
            raise InsufficientRecording(
                f'joint {robot.arm.joint_names[joint]!r}',
                Phrase(f'moved by {way[joint]:.3g} {unit} in the last {POSE_DURATION:g} s'),
                'an arm that stands still, or the method motion',
            )
        here = motion.position.mean(axis=0)
        others = [
            each
            for each in self.poses
            if np.abs(each.position.mean(axis=0) - here).max() > SAME_POSE
        ]
        self.poses = [*others, motion][-MOST_POSES:]


@responding
def estimate_payload(
    robot: Robot,
    request: EstimatePayload.Request,
    response: EstimatePayload.Response,
    measured: MeasuredMotion,
    apply: Callable[[Payload], Load],
) -> str:
    """Estimate the payload of the tip link, and apply it on request."""
    # Importing it takes as long as half of the node's start; few nodes need it.
    from robodyn_ros.identification import Recording, identify_payload

    measured.look_at(robot)
    if request.forget_poses:
        measured.poses.clear()
    motions = _motions(robot, request, measured)
    found = identify_payload(
        _without_tip_payload(robot),
        [
            Recording(robot.arm.joint_names, m.time, m.position, m.velocity, m.effort)
            for m in motions
        ],
        effort_scale=robot.effort_scale,
    )
    payload = replace(found.payload, link=robot.arm.tip_link)
    response.payload = conversions.payload_message(payload)
    response.mass_deviation = found.mass_deviation
    x, y, z = found.center_deviation.tolist()
    response.center_of_mass_deviation = Vector3(x=x, y=y, z=z)
    response.inertia_deviation = conversions.floats(found.inertia_deviation.ravel())
    response.residual = found.residual
    response.pose_count = len(measured.poses) if request.method == 'poses' else 0
    response.poses_to_add = conversions.matrix(found.poses)
    response.findings = [str(finding) for finding in found.findings]
    if not request.apply:
        return f'{found}; not applied'
    doubts = [str(finding) for finding in found.findings if finding.level == 'warning']
    if doubts:
        raise NotReady(
            'estimated payload', Phrase('; '.join(doubts)), 'a certain one; set_payload takes any'
        )
    load = apply(payload)
    response.applied = True
    return f'{found}; applied: {load}'


def _motions(
    robot: Robot, request: EstimatePayload.Request, measured: MeasuredMotion
) -> list[MeasuredSamples]:
    """Return the data of the estimate."""
    method = request.method or 'motion'
    if method not in _METHODS:
        raise InvalidArgument('request method', request.method, ', '.join(_METHODS))
    if not 0.0 <= request.duration <= LONGEST_DURATION:
        raise InvalidArgument(
            'request duration', request.duration, f'0 to {LONGEST_DURATION:g} [s]'
        )
    if method == 'motion':
        return [measured.last(robot, request.duration or DURATION)]
    measured.add_pose(robot)
    return list(measured.poses)


def _without_tip_payload(robot: Robot) -> RobotModel:
    """Return the arm under its load, without the payload to be estimated."""
    others = tuple(each for each in robot.load.payloads if each.link != robot.arm.tip_link)
    return replace(robot.load, payloads=others).applied_to(robot.arm)
