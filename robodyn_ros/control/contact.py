# SPDX-License-Identifier: Apache-2.0
"""When external torques are a contact, at which joint it shows, and on which link it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.control.core_binding import core
from robodyn_ros.errors import InvalidNumber, WrongShape
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

STANDSTILL: float = core.STANDSTILL
"""A slower joint stands: stiction decides what its drive has to do [rad/s] or [m/s]."""


@dataclass(frozen=True, eq=False, repr=False)
class ContactThresholds(ArrayRecord):
    """
    The external torques that an arm shows without any contact, and no more than these.

    Attributes
    ----------
    moving : array, shape (n,)
        Of a joint that moves [N m] or [N].
    standing : array, shape (n,)
        Of one that stands, or stood or turned round within 0.3 s [N m] or [N].

    Raises
    ------
    WrongShape
        The two are not of one shape.
    InvalidNumber
        A threshold that is not positive.
    """

    moving: FloatArray
    standing: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.moving) != 1 or np.shape(self.moving) != np.shape(self.standing):
            shapes = f'{np.shape(self.moving)} and {np.shape(self.standing)}'
            raise WrongShape('contact thresholds', shapes, 'one of each for each joint')
        for name, values in (('moving', self.moving), ('standing', self.standing)):
            if not ((values > 0.0) & np.isfinite(values)).all():
                raise InvalidNumber(
                    f'contact thresholds, {name}', values.tolist(), 'positive numbers [N m] or [N]'
                )


class Contact(NamedTuple):
    """
    A contact, at its begin or its end.

    Parameters
    ----------
    is_over : bool
        Whether it has just ended.
    joint : str
        The joint that showed it first, or most clearly.
    link : str
        The link that the contact is likely on: that of the outermost joint that shows it. It may
        lie on a link beyond, where its force has no lever about the joints in between.
    torque, threshold : float
        The external torque of that joint, and what it exceeds [N m] or [N].
    began, time : float
        When the torque exceeded its threshold first, and when this was said [s].
    """

    is_over: bool
    joint: str
    link: str
    torque: float
    threshold: float
    began: float
    time: float

    def __str__(self) -> str:
        what = 'contact is over' if self.is_over else 'contact'
        return (
            f'{what}: {abs(self.torque):.3g} of {self.threshold:.3g} N m or N at joint '
            f'{self.joint!r}, likely on link {self.link!r}'
        )


class ContactDetector:
    """
    Tells contacts from what an arm shows without any.

    Parameters
    ----------
    thresholds : ContactThresholds
    joint_names : sequence of n str
    links : sequence of n str
        The link that each joint moves.
    dwell : float
        How long a torque is beyond its threshold before it is a contact, and how long all are
        well below before it is over [s].

    Notes
    -----
    Of a joint that stands the change counts: what lasts is stiction, or a contact that nothing
    tells from it. So a lasting contact with a standing arm is over after some seconds.

    Attributes
    ----------
    contact : Contact or None
        The one that lasts.
    """

    def __init__(
        self,
        thresholds: ContactThresholds,
        joint_names: Sequence[str],
        links: Sequence[str],
        dwell: float = 0.02,
    ) -> None:
        self.thresholds = thresholds
        self.contact: Contact | None = None
        self._joint_names, self._links = tuple(joint_names), tuple(links)
        settings = core.ContactThresholds()
        settings.moving, settings.standing = thresholds.moving, thresholds.standing
        settings.dwell = dwell
        self._core = core.Detector(settings)

    @property
    def count(self) -> int:
        """How many contacts there were."""
        return self._core.count

    def reset(self) -> None:
        """Begin anew, with no contact, every joint taken to have just stood."""
        self.contact = None
        self._core.reset()

    def update(self, velocity: FloatArray, torque: FloatArray, time: float) -> Contact | None:
        """
        Take in a sample, and return a contact that begins or ends with it, or None.

        Parameters
        ----------
        velocity, torque : array, shape (n,)
            [rad/s], [N m] or [m/s], [N]; the torque is the observer's.
        time : float
            Of the sample [s]; where it goes back, everything begins anew.
        """
        event = self._core.update(velocity, torque, time)
        if event == core.ContactEvent.none:
            if self.contact is not None and not self._core.is_in_contact:
                self.contact = None  # time went back
            return None
        found = self._core.contact
        contact = Contact(
            event == core.ContactEvent.ends,
            self._joint_names[found.joint],
            self._links[found.outermost],
            found.torque,
            found.threshold,
            found.began,
            found.time,
        )
        self.contact = None if contact.is_over else contact
        return contact


def moved_links(model: RobotModel) -> tuple[str, ...]:
    """Return the link that each joint moves, the first of those that move with it."""
    links = [''] * model.n
    for name, (body, _) in model.link_frames.items():
        if body >= 0 and not links[body]:
            links[body] = name
    return tuple(links)
