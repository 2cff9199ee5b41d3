# SPDX-License-Identifier: Apache-2.0
"""Errors of the identification, each a leaf of ``RobodynError``."""

from __future__ import annotations

from robodyn_ros.errors import RobodynError


class MalformedRecording(RobodynError):
    """A file or an array does not hold a recording of the arm's joints."""


class NoEffort(RobodynError):
    """A recording has no effort, or nothing but zeros, for a joint or for all."""


class TooShortRecording(RobodynError):
    """A recording holds less motion than an estimate can be made of."""


class RepeatedMotion(RobodynError):
    """A validation recording repeats the motion that the model was identified from."""


class NotConverged(RobodynError):
    """The estimator stopped before it had reached the optimum."""


class OtherKinematics(RobodynError):
    """An identified model belongs to a robot with other kinematics."""


class MalformedIdentification(RobodynError):
    """A file does not hold an identified model."""
