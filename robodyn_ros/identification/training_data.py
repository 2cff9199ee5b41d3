# SPDX-License-Identifier: Apache-2.0
"""Recordings made ready to estimate with, all in one band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robodyn_ros.description.records import Finding
from robodyn_ros.identification.even_samples import EvenSamples, even_samples
from robodyn_ros.identification.preparation import Band, motion_band, states_of
from robodyn_ros.identification.recording import Recording
from robodyn_ros.identification.rows import Rows, rows_of
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray


@dataclass(frozen=True, eq=False)
class TrainingData:
    """
    Recordings of the model's joints, as even samples, and the band they share.

    Attributes
    ----------
    recordings : tuple of Recording
        Of the model's joints, in its order.
    stretches : tuple of EvenSamples
        What they were cut into.
    recording_of_rows : tuple of int
        Which recording each stretch is of.
    band : Band
    silent : array of bool, shape (n,)
        Joints whose effort is always zero.
    """

    recordings: tuple[Recording, ...]
    stretches: tuple[EvenSamples, ...]
    recording_of_rows: tuple[int, ...]
    band: Band
    silent: np.ndarray

    @classmethod
    def of(cls, model: RobotModel, recordings: Sequence[Recording]) -> TrainingData:
        """
        Return what recordings hold of a model's joints.

        Raises
        ------
        NoSuchJoint, TooShortRecording
        """
        mine = tuple(each.of_joints(model.joint_names) for each in recordings)
        cut = [even_samples(each) for each in mine]
        stretches = tuple(stretch for each in cut for stretch in each)
        numbers = tuple(k for k, each in enumerate(cut) for _ in each)
        silent = np.array(
            [not any(each.effort[:, j].any() for each in mine) for j in range(model.n)]
        )
        return cls(mine, stretches, numbers, motion_band(stretches), silent)

    def rows(self, model: RobotModel, scale: FloatArray) -> list[Rows]:
        """Return the rows of all stretches, with torques for a unit of effort, shape (n,)."""
        return [
            rows_of(model, states_of(each, self.band), scale, self.silent)
            for each in self.stretches
        ]

    def silent_findings(self, model: RobotModel) -> list[Finding]:
        """Return which joints say nothing."""
        return [
            Finding(
                'zero_effort',
                'warning',
                f'joint {name!r}',
                0.0,
                f'the effort of joint {name!r} is always zero',
            )
            for name, silent in zip(model.joint_names, self.silent, strict=True)
            if silent
        ]
