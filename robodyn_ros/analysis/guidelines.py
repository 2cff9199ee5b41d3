# SPDX-License-Identifier: Apache-2.0
"""The four design guidelines of Tourassis and Neuman (1985, section 6), evaluated for an arm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robodyn_ros.analysis.inertial_characteristics import (
    InertialCharacteristics,
    inertial_characteristics,
)
from robodyn_ros.analysis.quantities import symbol
from robodyn_ros.analysis.records import Record
from robodyn_ros.model import RobotModel

TRANSLATIONAL_JOINTS = 'as many translational joints as the application allows'
RIGHT_ANGLES = 'axes in parallel or orthogonal directions'
DECREASING_MASSES = 'masses that decrease from the base to the end-effector'
NO_GRAVITY_ON_FIRST = 'a first joint that does no work against gravity'


@dataclass(frozen=True)
class Guideline(Record):
    """
    A guideline, and how an arm meets it.

    Attributes
    ----------
    number : int
    statement : str
    met : bool or None
        None for the first: what the application allows is the designer's to say.
    values : tuple of float
    unit : str
        Of the values.
    meaning : str
        What the values are.
    """

    number: int
    statement: str
    met: bool | None
    values: tuple[float, ...]
    unit: str
    meaning: str

    def __str__(self) -> str:
        verdict = {True: 'met', False: 'not met', None: 'open'}[self.met]
        values = ', '.join(f'{x:.4g}' for x in self.values)
        return f'{self.number}. {self.statement}: {verdict} ({self.meaning}: {values} {self.unit})'


def design_guidelines(
    model: RobotModel, structure: InertialCharacteristics | None = None
) -> tuple[Guideline, ...]:
    """
    Return the four guidelines evaluated for an arm.

    Parameters
    ----------
    model : RobotModel
    structure : InertialCharacteristics, optional
        The arm's, if it is there already; its tolerance is also that of the angles' sines.
    """
    structure = structure or inertial_characteristics(model)
    gravity = structure[symbol('G', 0)]
    axes = np.cos(model.dh.alpha) * np.cos(model.dh.beta)
    angles = [math.degrees(math.acos(min(1.0, max(-1.0, c)))) for c in axes[1:]]
    away = [abs(math.sin(2 * math.radians(angle))) for angle in angles]
    masses = model.inertial_parameters[:, 9]
    return (
        Guideline(
            1,
            TRANSLATIONAL_JOINTS,
            None,
            (float(model.dh.prismatic.sum()), float(model.n)),
            'joints',
            'translational, all',
        ),
        Guideline(
            2,
            RIGHT_ANGLES,
            all(x <= 2 * structure.tolerance for x in away),
            tuple(angles),
            'deg',
            'angles between consecutive axes',
        ),
        Guideline(
            3,
            DECREASING_MASSES,
            bool((np.diff(masses) < 0).all()),
            tuple(map(float, masses)),
            'kg',
            'link masses',
        ),
        Guideline(
            4,
            NO_GRAVITY_ON_FIRST,
            not gravity.nonzero,
            (gravity.fraction,),
            'of what it could be',
            f'largest {gravity.symbol}',
        ),
    )
