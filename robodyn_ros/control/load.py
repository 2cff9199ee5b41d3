# SPDX-License-Identifier: Apache-2.0
"""What the arm carries and how its base stands, both of which may change while it moves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robodyn_ros.arguments import checked_array
from robodyn_ros.errors import InvalidNumber, UnknownOption
from robodyn_ros.model import Payload, RobotModel

STRONGEST_GRAVITY = 50.0
"""Five times the Earth's: more is a mistake of units or of sign conventions [m/s²]."""


@dataclass(frozen=True, eq=False)
class Gravity:
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


@dataclass(frozen=True, eq=False)
class Load:
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

    def changed(self, change: Payload | Gravity, arm: RobotModel) -> Load:
        """
        Return the load after a change, which is checked against the arm.

        A payload replaces the one of its link; mass zero takes that away.

        Raises
        ------
        NoSuchLink, ImplausiblePayload, WrongShape, NonFiniteValue
            As ``RobotModel.with_payload``.
        UnknownOption
            Gravity in another frame than the base link's.
        InvalidNumber
            Gravity stronger than ``STRONGEST_GRAVITY``.
        """
        if isinstance(change, Gravity):
            return replace(self, gravity=_checked_gravity(change, arm))
        payload = replace(change, link=change.link or arm.tip_link)
        arm.with_payload(payload)
        others = tuple(kept for kept in self.payloads if kept.link != payload.link)
        return replace(self, payloads=(*others, payload) if payload.mass > 0.0 else others)

    def applied_to(self, arm: RobotModel) -> RobotModel:
        """Return the model of an arm that carries nothing yet, under this load."""
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


def _checked_gravity(change: Gravity, arm: RobotModel) -> np.ndarray:
    if change.frame not in ('', arm.base_link):
        raise UnknownOption(
            'gravity frame_id', change.frame, f'the base link {arm.base_link!r}, or empty'
        )
    vector = checked_array('gravity', change.vector, (3,))
    strength = float(np.linalg.norm(vector))
    if strength > STRONGEST_GRAVITY:
        raise InvalidNumber('gravity strength', strength, f'at most {STRONGEST_GRAVITY} [m/s²]')
    return vector
