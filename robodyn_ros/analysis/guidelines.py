# SPDX-License-Identifier: Apache-2.0
"""The four design guidelines of Tourassis and Neuman (1985, section 6), evaluated for an arm."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.analysis.inertial_characteristics import (
    InertialCharacteristics,
    inertial_characteristics,
)
from robodyn_ros.analysis.quantities import symbol
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Record, Rows

TRANSLATIONAL_JOINTS = 'as many translational joints as the application allows'
RIGHT_ANGLES = 'axes in parallel or orthogonal directions'
DECREASING_MASSES = 'masses that decrease from the base to the end-effector'
NO_GRAVITY_ON_FIRST = 'a first joint that does no work against gravity'
_CONFIGURATIONS = 8
_SEED = 17
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
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

    _row_header = ('', 'guideline', '', 'why', '')

    def _row(self) -> tuple[str, str, str, str, str]:
        verdict = {True: 'met', False: 'not met', None: 'open'}[self.met]
        values = ', '.join(f'{x:.4g}' for x in self.values)
        evidence = f'{values} {self.unit}' if self.values else 'none'
        return str(self.number), self.statement, verdict, self.meaning, evidence

    def __str__(self) -> str:
        number, statement, verdict, meaning, evidence = self._row()
        return f'{number}. {statement}: {verdict} ({meaning}: {evidence})'


def design_guidelines(
    model: RobotModel, structure: InertialCharacteristics | None = None
) -> Rows[Guideline]:
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
    angles = _constant_angles(model)
    away = np.abs(np.sin(2 * np.array(list(angles.values()))))
    masses = model.inertial_parameters[:, 9]
    return Rows(
        (
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
                bool((away <= 2 * structure.tolerance).all()),
                tuple(map(float, np.degrees(list(angles.values())))),
                'deg',
                ' '.join(['angles between axes', *(f'{i + 1}-{j + 1}' for i, j in angles)]),
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
    )


def _constant_angles(model: RobotModel) -> dict[tuple[int, int], float]:
    """
    Return the angles [rad] between axes i < j that no joint changes.

    Those of consecutive axes are among them, and those of all axes between which nothing turns:
    two slides that lie askew push each other, whatever stands between them.
    """
    q = np.random.default_rng(_SEED).uniform(-1, 1, (_CONFIGURATIONS, model.n)) * np.pi
    axes: NDArray = frame_transforms(model.dh, q)[..., :3, 2]
    angles = {}
    for i, j in combinations(range(model.n), 2):
        cosine = (axes[:, i] * axes[:, j]).sum(axis=-1)
        if np.ptp(cosine) > _ROUNDING:
            continue
        # The cosine alone knows nothing of angles under 1e-8.
        sine = np.linalg.norm(np.cross(axes[0, i], axes[0, j]))
        angles[i, j] = float(np.arctan2(sine, cosine[0]))
    return angles
