# SPDX-License-Identifier: Apache-2.0
"""
Units of the drives' efforts and commands.

Laws and limits know N m and N alone. Measured efforts are multiplied on their way in, commands on
their way out, after the last limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import NamedTuple

import numpy as np

from robodyn_ros.control.settings import ControlSettings, each_joint
from robodyn_ros.errors import InvalidArgument, shown
from robodyn_ros.model import RobotModel


class DriveUnits(NamedTuple):
    """
    Factors in chain order, finite and not 0; negative for reversed drives.

    Parameters
    ----------
    effort_scale : array, shape (n,)
        Torque for a unit of measured effort [N m or N].
    command_scale : array, shape (n,)
        The commands' unit per torque.
    notes : tuple of str
        Where they come from, where that is worth a line in the log.
    """

    effort_scale: np.ndarray
    command_scale: np.ndarray
    notes: tuple[str, ...] = ()


def drive_units(
    model: RobotModel,
    settings: ControlSettings,
    identified: Mapping[str, np.ndarray],
    effort_limits: np.ndarray,
) -> DriveUnits:
    """
    Return the units that the parameters give, else those that were identified, else N m and N.

    Parameters
    ----------
    model : RobotModel
    settings : ControlSettings
    identified : mapping of parameter name to array, shape (n,)
        What ``identified_model`` says, in chain order.
    effort_limits : array, shape (n,)
        [N m] or [N]

    Raises
    ------
    InvalidArgument
        A parameter has neither one value nor one for each joint.
        A command at the effort limit would not be finite.
    """
    scales, notes = [], []
    for name in ('effort_scale', 'command_scale'):
        found = identified.get(name)
        scale = np.ones(model.n) if found is None else found
        if getattr(settings, name):
            scale = each_joint(model, settings, name)
            if found is not None and not np.array_equal(found, scale):
                notes.append(
                    f'parameter {name} counts, not that of identified_model: {shown(found)}'
                )
        if (scale != 1.0).any():
            notes.append(f'{name}, base to tip: {", ".join(f"{x:.6g}" for x in scale)}')
        scales.append(scale)
    for joint, limit, scale in zip(model.joint_names, effort_limits.tolist(), scales[1].tolist()):
        if not isfinite(limit * scale):
            raise InvalidArgument(
                f'command_scale of joint {joint!r}',
                scale,
                f'a factor that leaves the effort limit, {limit:g}, finite',
            )
    return DriveUnits(scales[0], scales[1], tuple(notes))
