# SPDX-License-Identifier: Apache-2.0
"""
Inertial parameters that give the same torques and cost the recursion the fewest operations.

What lies on a revolute joint's axis moves with either of the links it joins, and the tensor of a
link behind a prismatic joint rotates with the link before. Gautier and Khalil 1988, eqs. (20) and
(21), move both to the link before. Of the parameters that may be set to zero for it, this module
takes those that suit straight-line code: mass, first moment along z and the integral of z^2 dm, in
place of their YY, as the tensor then acts as that of a flat body, sharing its factors with the
first moment. As many parameters are left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robodyn_ros.dh.frames import joint_transforms
from robodyn_ros.dh.table import DHTable
from robodyn_ros.spatial import FloatArray, pseudo_inertia, rotation_z

_ROUNDING = 1e-13


@dataclass(frozen=True)
class EquivalentInertias:
    """
    A linear map from inertial parameters to the pseudo-inertias that the kernels compute with.

    Parameters
    ----------
    dh : DHTable
        Modified.
    length_unit : float [m]
        In which lengths, and with them first moments and masses, are expressed. Torques, tensors
        and times keep their units: first moments scale with the unit, masses with its square.
    tip_angle : float [rad]
        By which frame n is rotated about its axis.
    """

    dh: DHTable
    length_unit: float = 1.0
    tip_angle: float = 0.0

    @classmethod
    def fewest_operations(cls, dh: DHTable, parameters: FloatArray) -> EquivalentInertias:
        """
        Return the equivalent inertias that suit these parameters (n, 10).

        The most frequent offset becomes the unit of length, where all joints are revolute, and
        the centre of mass of the last link lies above x.
        """
        if dh.prismatic.any():
            unit = 1.0
        else:
            offsets = [abs(x) for x in (*dh.a, *dh.b, *dh.d) if x != 0.0]
            unit = max(offsets, key=offsets.count, default=1.0)
        last = parameters[-1]
        angle = math.atan2(last[7], last[6]) if last[6] * last[7] and not dh.prismatic[-1] else 0.0
        return cls(dh, float(unit), angle)

    def pseudo_inertias(self, parameters: FloatArray) -> FloatArray:
        """Return pseudo-inertias (n, 4, 4) with the torques of inertial parameters (n, 10)."""
        result = pseudo_inertia(parameters)
        rounding = _ROUNDING * _sizes(result)
        rotations, origins = joint_transforms(self.dh, np.zeros(self.dh.n))
        step = np.eye(4)
        for j in range(self.dh.n - 1, -1, -1):
            prismatic = self.dh.prismatic[j]
            moving = np.s_[:3, :3] if prismatic else np.s_[2:, 2:]
            step[:3, :3], step[:3, 3] = rotations[j], 0.0 if prismatic else origins[j]
            moved = np.zeros((4, 4))
            moved[moving] = result[j][moving]
            result[j][moving] = 0.0
            if (parent := self.dh.parents[j]) >= 0:
                result[parent] += step @ moved @ step.T
        result[np.abs(result) < rounding] = 0.0
        if self.tip_angle:
            rotation = np.eye(4)
            rotation[:3, :3] = rotation_z(-self.tip_angle)
            result[-1] = rotation @ result[-1] @ rotation.T
            result[-1, 1, 3] = result[-1, 3, 1] = 0.0
        units = np.array([1.0, 1.0, 1.0, self.length_unit])
        return result * units[:, None] * units


def _sizes(pseudo: FloatArray) -> FloatArray:
    """Return the largest second moment, first moment and mass of all links, as (4, 4)."""
    sizes = np.empty((4, 4))
    sizes[:3, :3] = np.abs(pseudo[:, :3, :3]).max()
    sizes[:3, 3] = sizes[3, :3] = np.abs(pseudo[:, :3, 3]).max()
    sizes[3, 3] = np.abs(pseudo[:, 3, 3]).max()
    return sizes
