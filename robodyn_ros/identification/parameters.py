# SPDX-License-Identifier: Apache-2.0
"""The identified base parameters and drive coefficients, with their deviations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.estimator import Estimate
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import BaseParameters, base_parameters
from robodyn_ros.spatial import FloatArray

# Where the data leave so much of the prior's deviation, the value is the prior's.
_FROM_THE_PRIOR = 0.8
_WELL_KNOWN = 0.1
_UNITS = {
    'Ia': ('kg m²', 'kg'),
    'Fv': ('N m s/rad', 'N s/m'),
    'Fc': ('N m', 'N'),
    'offset': ('N m', 'N'),
    'c1': ('N m', 'N'),
    'c2': ('N m', 'N'),
    'mu': ('1', '1'),
}


@dataclass(frozen=True)
class IdentifiedParameter:
    """
    A base parameter or a coefficient of a drive.

    Attributes
    ----------
    name : str
        ``ZZR2``, or ``Fc`` of a joint.
    element : str
        The link or the joint that it belongs to.
    unit : str
    value, deviation : float
        What was found, and its standard deviation.
    prior, prior_deviation : float
        What was thought before, and how uncertainly.
    """

    name: str
    element: str
    unit: str
    value: float
    deviation: float
    prior: float
    prior_deviation: float

    @property
    def remaining(self) -> float:
        """Which fraction of the prior's deviation is left: 1 where nothing was measured."""
        return self.deviation / self.prior_deviation if self.prior_deviation > 0 else 1.0

    @property
    def is_measured(self) -> bool:
        """Whether the recordings, rather than the prior, say what it is."""
        return self.remaining < _FROM_THE_PRIOR

    @property
    def is_well_known(self) -> bool:
        """Whether its deviation is less than a tenth of its value."""
        return self.deviation < _WELL_KNOWN * abs(self.value)


def identified_parameters(
    model: RobotModel,
    terms: DriveTerms,
    estimate: Estimate,
    prior: Estimate,
) -> tuple[BaseParameters, tuple[IdentifiedParameter, ...], FloatArray]:
    """
    Return the base parameters, all parameters with their deviations, and their covariance.

    Parameters
    ----------
    model : RobotModel
        With the identified bodies.
    terms : DriveTerms
    estimate, prior : Estimate
        With the recordings, and without: of the same parameters.
    """
    base = bare_base_parameters(model)
    count = model.n * terms.count + len(model.coupling) * terms.coupled_count
    matrix = np.zeros((base.count + count, len(estimate.x)))
    matrix[: base.count, : 10 * model.n] = base.regrouping
    matrix[base.count :, 10 * model.n : 10 * model.n + count] = np.eye(count)
    factor = matrix @ estimate.deviation_factor
    covariance = factor @ factor.T
    prior_factor = matrix @ prior.deviation_factor
    columns = zip(
        parameter_labels(model, base, terms),
        matrix @ estimate.x,
        np.sqrt(np.diagonal(covariance)),
        matrix @ prior.x,
        np.linalg.norm(prior_factor, axis=1),
        strict=True,
    )
    found = tuple(
        IdentifiedParameter(name, element, unit, *(float(number) for number in numbers))
        for (name, element, unit), *numbers in columns
    )
    return base, found, covariance


def bare_base_parameters(model: RobotModel) -> BaseParameters:
    """Return the base parameters of the bodies alone: rotors and friction are the drives'."""
    return base_parameters(model.with_rotor_inertia(np.zeros(model.n)), rotor_inertia=False)


def parameter_labels(
    model: RobotModel, base: BaseParameters, terms: DriveTerms
) -> Iterator[tuple[str, str, str]]:
    """Yield name, element and unit of base parameters, of joints' drives, of coupled drives."""
    for expression in base.expressions:
        yield expression.name, expression.link, expression.unit
    for joint, prismatic in zip(model.joint_names, model.dh.prismatic, strict=True):
        for name in terms.names:
            yield name, joint, _UNITS[name][int(prismatic)]
    for gears in model.coupling:
        first = int(np.flatnonzero(gears)[0])
        for name in terms.coupled_names:
            yield name, coupled_name(model, gears), _UNITS[name][int(model.dh.prismatic[first])]


def coupled_name(model: RobotModel, gears: FloatArray) -> str:
    """Return a coupled drive as the sum of joints that it turns with: ``joint_5 + joint_6``."""
    parts = [
        f'{"-" if gear < 0 else "+"} {"" if abs(gear) == 1 else f"{abs(gear):g} "}{name}'
        for gear, name in zip(gears.tolist(), model.joint_names, strict=True)
        if gear
    ]
    return ' '.join(parts).removeprefix('+ ')
