# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node and its service process tell each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.errors import RobodynError
from robodyn_ros.model import Payload, RobotModel

LONGEST_AGE = 1.0  # of a measured state that services still use, unless another is given [s]


@dataclass(frozen=True)
class Opening:
    """To the services: the names, resolved where the dynamics node's remappings are known."""

    node_name: str
    namespace: str
    services: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class NewRobot:
    """
    To the services: the robot was configured, or cleaned up; it is acknowledged.

    Parameters
    ----------
    arm : RobotModel or None
        Without payloads; None: there is no robot.
    load : Load or None
        Payloads and gravity that apply.
    longest_age : float
        Of a measured state that a request without a position is computed at [s].
    parameter_deviation : array or None
        Of the base parameters of an identified arm.
    effort_scale : array or None
        Torque for a unit of measured effort; None: 1.
    number : int
        That the acknowledgement names.
    """

    arm: RobotModel | None = None
    load: Load | None = None
    longest_age: float = LONGEST_AGE
    parameter_deviation: np.ndarray | None = None
    effort_scale: np.ndarray | None = None
    number: int = 0


@dataclass(frozen=True)
class Acknowledgement:
    """From the services: the new robot of this number was taken in."""

    number: int


@dataclass(frozen=True)
class Ping:
    """To the services, which return it from the loop that runs their callbacks."""

    number: int


@dataclass(frozen=True)
class Change:
    """From the services: a change that a client asks for; void after a steady time [s]."""

    number: int
    deadline: float
    what: Payload | GravityChange


@dataclass(frozen=True)
class Outcome:
    """To the services: the load after a change, and why it is not the one asked for."""

    number: int
    load: Load | None
    refusal: RobodynError | None = None
