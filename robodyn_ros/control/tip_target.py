# SPDX-License-Identifier: Apache-2.0
"""Targets of the tip in an impedance: poses, trajectories of poses and wrenches, each checked."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from robodyn_ros.control.core_binding import core
from robodyn_ros.errors import Phrase, RejectedTrajectory
from robodyn_ros.spatial import FloatArray

MOST_POSES = 250
"""Of a trajectory of poses: no cycle runs while they are read."""


class RejectedTarget(RejectedTrajectory):
    """A target of the tip cannot be taken; the message says why."""


@dataclass(frozen=True, eq=False)
class TipPose:
    """
    Where the tip is or shall be: the point of the tip link that ``wrench_point`` names.

    Parameters
    ----------
    position : array, shape (3,)
        [m]
    xyzw : array, shape (4,)
        A unit quaternion.
    """

    position: FloatArray
    xyzw: FloatArray

    @classmethod
    def checked(
        cls, position: Sequence[float], xyzw: Sequence[float], element: str = 'target pose'
    ) -> TipPose:
        """
        Return a pose with its quaternion normalised.

        Raises
        ------
        RejectedTarget
            A number that is not finite, or a quaternion whose norm is not one.
        """
        fault, at, turn = core.take_pose(position, xyzw)
        if fault.cause != core.Cause.none:
            is_wrong, allowed = core.words(fault)
            raise RejectedTarget(element, Phrase(is_wrong), allowed)
        return cls(np.array(at), np.array(turn))


@dataclass(frozen=True, eq=False)
class PoseTrajectory:
    """
    Poses at times: positions between two are linear in time, orientations by slerp.

    Parameters
    ----------
    times : tuple of k float
        [s], strictly increasing, on the clock that it is sampled with.
    poses : tuple of k TipPose
        In base axes.
    """

    times: tuple[float, ...]
    poses: tuple[TipPose, ...]

    @property
    def end(self) -> float:
        """The time of the last pose [s]."""
        return self.times[-1]

    def at(self, time: float) -> TipPose:
        """Return the pose at a time [s]; before and after, the first and the last."""
        after = bisect_right(self.times, time)
        if after == 0 or after == len(self.times):
            return self.poses[max(after - 1, 0)]
        begin, end = self.times[after - 1 : after + 1]
        fraction = (time - begin) / (end - begin)
        one, other = self.poses[after - 1 : after + 1]
        position = one.position + fraction * (other.position - one.position)
        return TipPose(position, slerp(one.xyzw, other.xyzw, fraction))


def checked_times(times: Sequence[float]) -> None:
    """
    Check the times of poses after their start [s].

    Raises
    ------
    RejectedTarget
        None or more than ``MOST_POSES``, negative ones, or times that do not increase.
    """
    if not 0 < len(times) <= MOST_POSES:
        raise RejectedTarget('target poses', len(times), f'1 to {MOST_POSES}')
    before = -1.0
    for i, time in enumerate(times):
        if not (isfinite(time) and time >= 0.0 and time > before):
            raise RejectedTarget(
                f'target pose {i} time_from_start', time, 'times from 0 on that increase'
            )
        before = time


def slerp(one: FloatArray, other: FloatArray, fraction: float) -> FloatArray:
    """Return the unit quaternion x, y, z, w at a fraction of the shorter way between two."""
    cosine = float(one @ other)
    if cosine < 0.0:
        other, cosine = -other, -cosine
    if cosine > 1.0 - 1e-9:
        blended = one + fraction * (other - one)
    else:
        angle = np.arccos(cosine)
        blended = np.sin((1.0 - fraction) * angle) * one + np.sin(fraction * angle) * other
    unit: FloatArray = blended / np.linalg.norm(blended)
    return unit


class TipTargets:
    """
    Aims the tip in the core's pipeline: at one pose, or at another one in each cycle.

    Parameters
    ----------
    pipeline : ArmRuntime
        The core's.
    """

    def __init__(self, pipeline: Any) -> None:
        self._core = pipeline
        self._poses: PoseTrajectory | None = None

    @property
    def reference(self) -> TipPose | None:
        """The tip's reference in base axes; None before the first one."""
        if not self._core.has_tip_reference:
            return None
        return TipPose(*map(np.array, self._core.tip_reference))

    def aim(self, pose: TipPose, is_relative: bool = False) -> core.Fault:
        """Aim at a pose in base axes, or those of the reference; return why it is refused."""
        refusal = self._core.aim_tip(pose.position, pose.xyzw, is_relative)
        if refusal.cause == core.Cause.none:
            self._poses = None
        return refusal

    def follow(self, poses: PoseTrajectory, time: float) -> core.Fault:
        """Follow poses from a time [s] on; return why the core refuses, and go on then."""
        refusal = self.aim(poses.at(time))
        if refusal.cause == core.Cause.none:
            self._poses = poses
        return refusal

    def advance(self, time: float) -> None:
        """
        Go on at a time of the reference [s].

        A trajectory ends where the core has given its target up: a brake, another reference.
        """
        if self._poses is None:
            return
        poses, target = self._poses, self._poses.at(time)
        is_aimed = self._core.has_tip_target and (
            self._core.aim_tip(target.position, target.xyzw).cause == core.Cause.none
        )
        if not is_aimed or time >= poses.end:
            self._poses = None

    def end(self) -> None:
        """End a trajectory; the core decides what becomes of its target."""
        self._poses = None

    @property
    def is_following(self) -> bool:
        """Whether a trajectory of poses is followed."""
        return self._poses is not None
