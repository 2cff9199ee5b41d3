# SPDX-License-Identifier: Apache-2.0
"""
External torques of a commanded arm, the wrench at the tip, and contacts.

``core/contact.hpp`` and ``core/tip_wrench.hpp`` compute them; here they get names and messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from robodyn_ros.control.core_binding import core, core_arm
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.law import Friction, InverseDynamics, OfPosition
from robodyn_ros.control.settings import ArmSettings, ControlSettings, each_joint
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.kinematics import forward_kinematics, tip_jacobian
from robodyn_ros.model import RobotModel, force_unit
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

# A slower joint is stationary: stiction may hide any external torque [rad/s] or [m/s].
STANDSTILL: float = core.STANDSTILL

# Prior standard deviations of a force [N] and of a moment [N m] at the tip.
EXPECTED_FORCE: float = core.EXPECTED_FORCE
EXPECTED_MOMENT: float = core.EXPECTED_MOMENT


class MomentumObserver:
    """
    Estimates external torques from one sample to the next.

    Parameters
    ----------
    inverse_dynamics : InverseDynamics
    friction : Friction
        The friction torque of the drives.
    gain : array, shape (n,)
        K of each joint [1/s]: a step of the torque is followed to 95 % within 3 / K.
    is_held : bool
        Whether the torque of a sample is that of the whole step before it, as one's own commands
        are. Otherwise it is of the sample's instant, as measurements are, and the mean of two is
        that of the step.
    longest : float
        A longer step gives no estimate: it is a pause, or a clock that was set [s].
    friction_velocity : float
        Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
    presliding : float
        Displacement over which friction reverses [rad] or [m]; 0: it follows the velocity's sign.
    coupling : array, shape (m, n), optional
        Of the coupled drives, as ``RobotModel`` has it.

    Raises
    ------
    InvalidArgument
        A gain that is not positive.
    """

    def __init__(
        self,
        inverse_dynamics: InverseDynamics,
        friction: Friction,
        gain: FloatArray,
        *,
        is_held: bool,
        longest: float = 0.1,
        friction_velocity: float = 0.01,
        presliding: float = 0.0,
        coupling: FloatArray | None = None,
    ) -> None:
        if not ((gain > 0.0) & np.isfinite(gain)).all():
            raise InvalidArgument('observer gain', gain.tolist(), 'positive numbers [1/s]')
        self.gain, self._coupling = gain, coupling
        settings = core.ObserverSettings()
        settings.gain, settings.is_held, settings.longest = gain, is_held, longest
        settings.friction_velocity, settings.presliding = friction_velocity, presliding
        self._core = core.Observer(self._arm(inverse_dynamics, friction), settings)

    @property
    def torque(self) -> FloatArray:
        """
        The estimate, shape (n,) [N m] or [N]: torques on the joints beside those of the drives.

        It begins at zero after every reset.
        """
        return self._core.torque

    @property
    def skipped(self) -> int:
        """Number of samples that were skipped: one of their numbers is not finite."""
        return self._core.skipped

    def change_longest(self, longest: float) -> None:
        """Change the longest step [s] that gives an estimate."""
        self._core.change_longest(longest)

    def reset(self) -> None:
        """Discard all samples."""
        self._core.reset()

    def change_load(self, inverse_dynamics: InverseDynamics, friction: Friction) -> None:
        """Start again with another model, for which the old estimate is not valid."""
        self._core.change_arm(self._arm(inverse_dynamics, friction))

    def _arm(self, inverse_dynamics: InverseDynamics, friction: Friction) -> Any:
        return core_arm(inverse_dynamics, friction, len(self.gain), coupling=self._coupling)

    def update(
        self, position: FloatArray, velocity: FloatArray, torque: FloatArray, time: float
    ) -> FloatArray | None:
        """
        Take a sample and return the estimate, shape (n,); None where the sample gives none.

        Parameters
        ----------
        position, velocity : array, shape (n,)
            [rad], [rad/s] or [m], [m/s]
        torque : array, shape (n,)
            Of the drives [N m] or [N].
        time : float
            Of the sample [s].

        Notes
        -----
        The first sample gives none, nor does one that is not finite. A time that goes back, or
        that is too far ahead, is a first sample again; one that stands still changes nothing.
        """
        return self._core.update(position, velocity, torque, time)


@dataclass(frozen=True, eq=False, repr=False)
class ContactThresholds(Record):
    """
    Bounds of the external torques that are estimated where there is no contact.

    Attributes
    ----------
    moving : array, shape (n,)
        Of a joint that moves [N m] or [N].
    stationary : array, shape (n,)
        Of one that stands, or stood or turned round within 0.3 s [N m] or [N].

    Raises
    ------
    InvalidArgument
        The two are not of one shape.
        A threshold that is not positive.
    """

    moving: FloatArray
    stationary: FloatArray

    def __post_init__(self) -> None:
        super().__post_init__()
        if np.ndim(self.moving) != 1 or np.shape(self.moving) != np.shape(self.stationary):
            shapes = f'{np.shape(self.moving)} and {np.shape(self.stationary)}'
            raise InvalidArgument(
                'contact thresholds', Phrase(f'shapes {shapes}'), 'one of each for each joint'
            )
        for name, values in (('moving', self.moving), ('stationary', self.stationary)):
            if not ((values > 0.0) & np.isfinite(values)).all():
                raise InvalidArgument(
                    f'contact thresholds, {name}', values.tolist(), 'positive numbers [N m] or [N]'
                )


class Contact(NamedTuple):
    """
    A contact, at its beginning or its end.

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
    slides : bool
        Whether the joint is prismatic.
    """

    is_over: bool
    joint: str
    link: str
    torque: float
    threshold: float
    began: float
    time: float
    slides: bool = False

    def __str__(self) -> str:
        what = 'contact is over' if self.is_over else 'contact'
        return (
            f'{what}: {abs(self.torque):.3g} of {self.threshold:.3g} {force_unit(self.slides)} at '
            f'joint {self.joint!r}, likely on link {self.link!r}'
        )


class ContactDetector:
    """
    Detects the beginning and the end of contacts in external torques.

    Parameters
    ----------
    thresholds : ContactThresholds
    joint_names : sequence of n str
    links : sequence of n str
        The link that each joint moves.
    prismatic : sequence of n bool
        Whether each joint slides.
    dwell : float
        How long a torque is beyond its threshold before it is a contact, and how long all are
        well below before it is over [s].

    Notes
    -----
    Of a stationary joint the change counts: what lasts is stiction, or a contact that cannot be
    told from it. So a lasting contact with a stationary arm is over after some seconds.

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
        prismatic: Sequence[bool],
        dwell: float = 0.02,
    ) -> None:
        self.thresholds = thresholds
        self.contact: Contact | None = None
        self._joint_names, self._links = tuple(joint_names), tuple(links)
        self._prismatic = tuple(map(bool, prismatic))
        settings = core.ContactThresholds()
        settings.moving, settings.stationary = thresholds.moving, thresholds.stationary
        settings.dwell = dwell
        self._core = core.Detector(settings)

    @property
    def count(self) -> int:
        """How many contacts there were."""
        return self._core.count

    def reset(self) -> None:
        """Start again, without contact; each joint's first sample counts as a reversal."""
        self.contact = None
        self._core.reset()

    def update(self, velocity: FloatArray, torque: FloatArray, time: float) -> Contact | None:
        """
        Take a sample, and return a contact that begins or ends with it, or None.

        Parameters
        ----------
        velocity, torque : array, shape (n,)
            [rad/s], [N m] or [m/s], [N]; the torque is the observer's.
        time : float
            Of the sample [s]; where it goes back, start again.
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
            self._prismatic[found.joint],
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


@dataclass(frozen=True, eq=False, repr=False)
class TipWrench(Record):
    """
    The external wrench on the arm at a point of the tip link.

    Attributes
    ----------
    wrench : array, shape (6,)
        Force [N], then the moment about the point [N m], in the tip link's axes.
    deviation : array, shape (6,)
        Standard deviations, from those of the joints' torques.
    undetermined : array, shape (k, 6)
        Unit vectors of wrenches, forces in units of ``EXPECTED_FORCE`` and moments in those of
        ``EXPECTED_MOMENT``, that hardly show in the torques at this pose: whatever acts along
        them is left out.
    """

    wrench: FloatArray
    deviation: FloatArray
    undetermined: FloatArray


def tip_wrench(
    model: RobotModel,
    position: FloatArray,
    torque: FloatArray,
    deviation: FloatArray,
    point: FloatArray,
) -> TipWrench:
    """
    Return the wrench at the tip that explains external torques best.

    Parameters
    ----------
    model : RobotModel
    position : array, shape (n,)
        [rad] or [m]
    torque : array, shape (n,)
        External torques of the joints [N m] or [N].
    deviation : array, shape (n,)
        Standard deviations of the torques, positive [N m] or [N].
    point : array, shape (3,)
        Where the force acts and what the moment is about, in the tip link's frame [m].

    Notes
    -----
    Least squares, damped by what a wrench is expected to be like: ``core/tip_wrench.hpp``.
    """
    pose, columns = forward_kinematics(model, position), tip_jacobian(model, position)
    return TipWrench(*core.tip_wrench(pose, columns, point, torque, deviation))


@dataclass(frozen=True, eq=False, repr=False)
class KnownResidual(Record):
    """
    The residual torques of an identified model.

    Attributes
    ----------
    deviation : array, shape (n,)
        Rms error of a moving joint [N m] or [N].
    presliding : float
        Displacement over which friction reverses [rad] or [m]; 0: it follows the velocity's sign.
    """

    deviation: FloatArray
    presliding: float


class ContactMonitor:
    """
    Estimates external torques, contacts and the wrench at the tip while an arm is commanded.

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
    tip : tuple of two callables, optional
        The tip's pose and Jacobian as functions of positions, compiled ones: the wrench is fitted
        in each cycle, and they are most of it. Not given: the model's.

    Attributes
    ----------
    observer : MomentumObserver
    detector : ContactDetector or None
        None where there are no thresholds: nothing is ever a contact then.
    has_estimate : bool
        Whether the last state gave an estimate.
    trouble : str
        Why nothing is estimated, as text; empty: it is.

    Raises
    ------
    InvalidArgument
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
        tip: tuple[OfPosition, OfPosition] | None = None,
    ) -> None:
        self._model, self._effort_scale = model, effort_scale
        self._pose: OfPosition = partial(forward_kinematics, model)
        self._jacobian: OfPosition = partial(tip_jacobian, model)
        if tip is not None:
            self._pose, self._jacobian = tip
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
            coupling=model.coupling,
        )
        thresholds = contact_thresholds_of(model, settings, residual)
        self.detector = None
        self._deviation = core.UNKNOWN_DEVIATION * effort_limits
        if thresholds is not None:
            self.detector = ContactDetector(
                thresholds,
                model.joint_names,
                moved_links(model),
                model.dh.prismatic.tolist(),
                settings.contact_dwell,
            )
            self._deviation = thresholds.moving / core.DEVIATIONS
        self._point = np.array(settings.wrench_point, dtype=float)
        self.has_estimate = False
        self.trouble = ''
        self.check(settings)

    def check(self, settings: ControlSettings) -> None:
        """
        Refuse a reaction to contacts without detection.

        Raises
        ------
        InvalidArgument
            ``on_contact`` acts, and there are no thresholds.
        """
        if settings.on_contact != 'report' and self.detector is None:
            raise InvalidArgument(
                f'parameter on_contact: {settings.on_contact}',
                Phrase('no contact thresholds'),
                'contact_threshold_moving and contact_threshold_stationary, which robodyn '
                'contact-thresholds finds, or an identified_model',
            )

    @property
    def contact(self) -> Contact | None:
        """The present contact."""
        return None if self.detector is None else self.detector.contact

    @property
    def torque(self) -> FloatArray:
        """The external torques, shape (n,) [N m] or [N]; zero until there is an estimate."""
        return self.observer.torque

    def reset(self) -> None:
        """Start again, as after a pause."""
        self.has_estimate = False
        self.observer.reset()
        if self.detector is not None:
            self.detector.reset()

    def change_load(
        self, model: RobotModel, inverse_dynamics: InverseDynamics, friction: Friction
    ) -> None:
        """Start again with another load."""
        self.has_estimate = False
        self._model, self._inverse_dynamics = model, inverse_dynamics
        self.observer.change_load(inverse_dynamics, friction)
        if self.detector is not None:
            self.detector.reset()

    def update(
        self, state: MeasuredState, commanded: FloatArray | None, settings: ArmSettings
    ) -> Contact | None:
        """
        Take a state, and return a contact that begins or ends with it, or None.

        Parameters
        ----------
        state : MeasuredState
        commanded : array, shape (n,), or None
            The torque sent before the state came, which brought the arm there [N m] or [N].
        settings : ArmSettings
            What it was computed by.
        """
        self.has_estimate = False
        torque = self._drive_torque(state, commanded, settings)
        if torque is None:
            return None
        found = self.observer.update(state.position, state.velocity, torque, state.time)
        self.has_estimate = found is not None
        if found is None or self.detector is None:
            return None
        return self.detector.update(state.velocity, found, state.time)

    def tip_wrench(self, state: MeasuredState) -> TipWrench:
        """Return the wrench at the tip that explains the external torques."""
        deviation = core.torque_deviation(
            self._deviation, self._model.dry_friction, state.velocity
        )
        pose, columns = self._pose(state.position), self._jacobian(state.position)
        return TipWrench(*core.tip_wrench(pose, columns, self._point, self.torque, deviation))

    def _drive_torque(
        self, state: MeasuredState, commanded: FloatArray | None, settings: ArmSettings
    ) -> FloatArray | None:
        """Return the drives' torque at a state, or None where it is not known."""
        if self._is_measured:
            self.trouble = '' if state.effort is not None else 'joint states have no efforts'
            return None if state.effort is None else self._effort_scale * state.effort
        if settings.mode == 'feedforward':
            self.trouble = (
                'in mode feedforward the drives add torque of their own: observed_effort must be '
                'measured'
            )
            return None
        self.trouble = ''
        if commanded is None or settings.terms_gravity:
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
    InvalidArgument
        Only one of the two is given, or neither one value nor one for each joint.
    """
    given = settings.contact_threshold_moving, settings.contact_threshold_stationary
    if all(given):
        return ContactThresholds(
            each_joint(model, settings, 'contact_threshold_moving'),
            each_joint(model, settings, 'contact_threshold_stationary'),
        )
    if any(given):
        raise InvalidArgument(
            'parameters contact_threshold_moving and contact_threshold_stationary',
            Phrase('one of the two'),
            'both, or neither',
        )
    if residual is None:
        return None
    moving = core.DEVIATIONS * np.maximum(residual.deviation, 1e-6)
    return ContactThresholds(moving, moving + model.dry_friction)
