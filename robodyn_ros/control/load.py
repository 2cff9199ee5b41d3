# SPDX-License-Identifier: Apache-2.0
"""The payloads and gravity of an arm, which may change in motion."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.arguments import checked_array
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.model import STRONGEST_GRAVITY, Payload, RobotModel
from robodyn_ros.record import Record


@dataclass(frozen=True, eq=False, repr=False)
class GravityChange(Record):
    """
    A change of gravity.

    Parameters
    ----------
    vector : array, shape (3,)
        [m/s²], in the axes of ``frame``.
    frame : str
        The base link, or empty, which means the same.
    """

    vector: np.ndarray
    frame: str = ''


@dataclass(frozen=True, eq=False, repr=False)
class Load(Record):
    """
    Payloads by link, and gravity.

    Parameters
    ----------
    gravity : array, shape (3,)
        [m/s²], in the base link's axes.
    payloads : tuple of Payload
        At most one for each link, the link always named.
    """

    gravity: np.ndarray
    payloads: tuple[Payload, ...] = ()

    @property
    def payload_mass(self) -> float:
        """Mass of all payloads [kg]."""
        return float(sum(payload.mass for payload in self.payloads))

    def changed(self, change: Payload | GravityChange, arm: RobotModel) -> tuple[Load, RobotModel]:
        """
        Return the load after a change, which is checked against the arm, and the arm under it.

        A payload replaces the one of its link; mass zero takes that away.

        Raises
        ------
        NoSuchName, NonFiniteValue, InvalidArgument
            As ``RobotModel.with_payload``; a payload that is heavier or larger than any of this
            arm's; gravity in another frame than the base link's, or stronger than
            ``STRONGEST_GRAVITY``.
        """
        if isinstance(change, GravityChange):
            load = replace(self, gravity=_checked_gravity(change, arm))
            return load, load.applied_to(arm)
        payload = replace(change, link=change.link or arm.tip_link)
        _check_size(payload, arm)
        others = tuple(kept for kept in self.payloads if kept.link != payload.link)
        if payload.mass > 0.0:
            others += (payload,)
        else:
            arm.with_payload(payload)  # refuses a link that is none, too
        load = replace(self, payloads=others)
        return load, load.applied_to(arm)

    def applied_to(self, arm: RobotModel) -> RobotModel:
        """Return the model of an arm without payload, under this load."""
        loaded = arm.with_gravity(self.gravity)
        for payload in self.payloads:
            loaded = loaded.with_payload(payload)
        return loaded

    def __str__(self) -> str:
        carried = ', '.join(f'{p.mass:g} kg on {p.link}' for p in self.payloads)
        return carried or 'no payload'


def gravity_text(vector: Any) -> str:
    """Return a gravity, shape (3,), as the messages write it."""
    return '({:g}, {:g}, {:g}) m/s²'.format(*vector)


def _check_size(payload: Payload, arm: RobotModel) -> None:
    """Refuse values that must be in other units than kg, m and kg m²."""
    heaviest, largest = arm.possible_payload
    if payload.mass > heaviest:
        raise InvalidArgument(
            'payload mass', payload.mass, f'at most {heaviest:.4g} kg', unit='kg'
        )
    if payload.mass <= 0.0:
        return
    moment = float(np.linalg.eigvalsh(np.asarray(payload.inertia, dtype=float))[-1])
    radius = math.sqrt(max(moment, 0.0) / payload.mass)
    if radius > largest:
        raise InvalidArgument(
            'payload radius of gyration',
            radius,
            f'at most {largest:.3g} m: inertia is in kg m², about the centre of mass',
            unit='m',
        )
    distance = math.hypot(*np.asarray(payload.center_of_mass, dtype=float))
    if distance > largest:
        raise InvalidArgument(
            'payload centre of mass, distance from the link',
            distance,
            f'at most {largest:.3g} m',
            unit='m',
        )


def _checked_gravity(change: GravityChange, arm: RobotModel) -> np.ndarray:
    if change.frame not in ('', arm.base_link):
        raise InvalidArgument(
            'gravity frame_id', change.frame, f'the base link {arm.base_link!r}, or empty'
        )
    vector = checked_array('gravity', change.vector, (3,))
    strength = math.hypot(*vector)
    if strength > STRONGEST_GRAVITY:
        raise InvalidArgument(
            'gravity strength', strength, f'at most {STRONGEST_GRAVITY:g} m/s²', unit='m/s²'
        )
    return vector
