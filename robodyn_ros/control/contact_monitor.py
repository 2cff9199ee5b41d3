# SPDX-License-Identifier: Apache-2.0
"""What the outside does to a commanded arm: torques, the wrench at the tip, contacts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.control.contact import (
    Contact,
    ContactDetector,
    ContactThresholds,
    moved_links,
)
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.joint_order import each_joint
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.law import ControlLaw, Friction, InverseDynamics
from robodyn_ros.control.momentum_observer import MomentumObserver
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.tip_wrench import TipWrench, tip_wrench
from robodyn_ros.errors import InvalidNumber, WrongShape
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class KnownResidual(ArrayRecord):
    """
    What an identification says of the torques that its model does not explain.

    Attributes
    ----------
    deviation : array, shape (n,)
        Rms error of a moving joint [N m] or [N].
    presliding : float
        Displacement over which friction turns [rad] or [m]; 0: it follows the velocity's sign.
    """

    deviation: FloatArray
    presliding: float


class ContactMonitor:
    """
    Watches the outside while an arm is commanded.

    Parameters
    ----------
    model : RobotModel
        Under its load.
    settings : ControlSettings
    inverse_dynamics, friction : callable
        Of the model, as the control law has them.
    effort_scale : array, shape (n,)
        [N m] or [N] for a unit of measured effort.
    effort_limits : array, shape (n,)
        [N m] or [N]
    residual : KnownResidual, optional
        What an identification says; where the settings have no thresholds, they follow from it.

    Attributes
    ----------
    observer : MomentumObserver
    detector : ContactDetector or None
        None where there are no thresholds: nothing is ever a contact then.
    trouble : str
        Why nothing is estimated, in words; empty: it is.

    Raises
    ------
    InvalidNumber, WrongShape
        A setting that cannot be used; an action on contact without thresholds.
    """

    def __init__(
        self,
        model: RobotModel,
        settings: ControlSettings,
        inverse_dynamics: InverseDynamics,
        friction: Friction,
        effort_scale: FloatArray,
        effort_limits: FloatArray,
        residual: KnownResidual | None = None,
    ) -> None:
        self._model, self._effort_scale = model, effort_scale
        self._is_measured = settings.observed_effort == 'measured'
        self._inverse_dynamics = inverse_dynamics
        self.observer = MomentumObserver(
            inverse_dynamics,
            friction,
            each_joint(model, settings, 'observer_gain'),
            is_held=not self._is_measured,
            longest=settings.state_timeout,
            friction_velocity=settings.friction_velocity,
            presliding=0.0 if residual is None else residual.presliding,
        )
        thresholds = contact_thresholds_of(model, settings, residual)
        self.detector = None
        self._deviation = core.UNKNOWN_DEVIATION * effort_limits
        if thresholds is not None:
            self.detector = ContactDetector(
                thresholds, model.joint_names, moved_links(model), settings.contact_dwell
            )
            self._deviation = thresholds.moving / core.DEVIATIONS
        self._point = np.array(settings.wrench_point, dtype=float)
        self.trouble = ''
        self.check(settings)

    def check(self, settings: ControlSettings) -> None:
        """
        Refuse to act on contacts that nothing could tell.

        Raises
        ------
        InvalidNumber
            ``on_contact`` acts, and there are no thresholds.
        """
        if settings.on_contact != 'report' and self.detector is None:
            raise InvalidNumber(
                f'parameter on_contact: {settings.on_contact}',
                'no contact thresholds',
                'contact_threshold_moving and contact_threshold_standing, which robodyn '
                'contact-thresholds finds, or an identified_model',
            )

    @property
    def contact(self) -> Contact | None:
        """The contact that lasts."""
        return None if self.detector is None else self.detector.contact

    @property
    def torque(self) -> FloatArray:
        """The external torques, shape (n,) [N m] or [N]; zero until there is an estimate."""
        return self.observer.torque

    def reset(self) -> None:
        """Begin anew, as after a pause."""
        self.observer.reset()
        if self.detector is not None:
            self.detector.reset()

    def change_model(
        self, model: RobotModel, inverse_dynamics: InverseDynamics, friction: Friction
    ) -> None:
        """Begin anew with another load."""
        self._model, self._inverse_dynamics = model, inverse_dynamics
        self.observer.change_model(inverse_dynamics, friction)
        if self.detector is not None:
            self.detector.reset()

    def update(
        self, state: MeasuredState, commanded: FloatArray | None, law: ControlLaw
    ) -> Contact | None:
        """
        Take in a state, and return a contact that begins or ends with it, or None.

        Parameters
        ----------
        state : MeasuredState
        commanded : array, shape (n,), or None
            The torque sent before the state came, which brought the arm there [N m] or [N].
        law : ControlLaw
            What it was computed by.
        """
        torque = self._drive_torque(state, commanded, law)
        if torque is None:
            return None
        found = self.observer.update(state.position, state.velocity, torque, state.time)
        if found is None or self.detector is None:
            return None
        return self.detector.update(state.velocity, found, state.time)

    def tip_wrench(self, state: MeasuredState) -> TipWrench:
        """Return the wrench at the tip that the external torques are explained by."""
        deviation = core.torque_deviation(
            self._deviation, self._model.coulomb_friction, state.velocity
        )
        return tip_wrench(self._model, state.position, self.torque, deviation, self._point)

    def _drive_torque(
        self, state: MeasuredState, commanded: FloatArray | None, law: ControlLaw
    ) -> FloatArray | None:
        """Return the drives' torque that goes with a state, or None where it is not known."""
        if self._is_measured:
            self.trouble = '' if state.effort is not None else 'joint states have no efforts'
            return None if state.effort is None else self._effort_scale * state.effort
        if law.mode == 'feedforward':
            self.trouble = (
                'in mode feedforward the drives add torque of their own: observed_effort must be '
                'measured'
            )
            return None
        self.trouble = ''
        if commanded is None or law.terms.gravity:
            return commanded
        # The driver adds the gravity torque itself.
        zero = np.zeros((1, len(commanded)))
        return commanded + self._inverse_dynamics(state.position[None], zero, zero)[0]


def contact_thresholds_of(
    model: RobotModel, settings: ControlSettings, residual: KnownResidual | None
) -> ContactThresholds | None:
    """
    Return the thresholds of the settings, else those that follow from an identification, if any.

    Raises
    ------
    WrongShape
        Only one of the two is given, or neither one value nor one for each joint.
    """
    given = settings.contact_threshold_moving, settings.contact_threshold_standing
    if all(given):
        return ContactThresholds(
            each_joint(model, settings, 'contact_threshold_moving'),
            each_joint(model, settings, 'contact_threshold_standing'),
        )
    if any(given):
        raise WrongShape(
            'parameters contact_threshold_moving and contact_threshold_standing',
            'one of the two',
            'both, or neither',
        )
    if residual is None:
        return None
    moving = core.DEVIATIONS * np.maximum(residual.deviation, 1e-6)
    return ContactThresholds(moving, moving + model.coulomb_friction)
