# SPDX-License-Identifier: Apache-2.0
"""What the hand holds: mass, centre of mass and inertia from efforts, moving or standing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.description.records import Finding
from robodyn_ros.errors import TooShortRecording
from robodyn_ros.identification.estimator import Estimate, Problem, estimate
from robodyn_ros.identification.identification import Identification
from robodyn_ros.identification.identify import identify
from robodyn_ros.identification.loaded_rows import KnownArm, LoadedRows
from robodyn_ros.identification.payload_poses import poses_to_add
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.identification.recording import Recording, checked_recordings
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.payload import Payload
from robodyn_ros.spatial import FloatArray, inertia_tensor
from robodyn_ros.threads import one_thread

_ROUNDS = 4
_IDENTIFYING = 0.9  # of the time, where the arm is identified first
# The prior keeps an inertia sane that only gravity excites; it hardly holds mass and centre.
_STRENGTH = 0.05
_RADIUS = 0.06  # of gyration of a kilogram [m]
_REACH = 0.3  # m
_LEAST_MASS = 0.01  # kg
_LOOSE = 100.0
_FIRST_NOISE = 0.02
_CERTAIN = 3.0
_POORLY_KNOWN, _POOR_CENTER = 0.05, 0.01


@dataclass(frozen=True, eq=False, repr=False)
class PayloadEstimate(ArrayRecord):
    """
    What the tip link carries.

    Attributes
    ----------
    payload : Payload
        A body that can exist.
    mass_deviation : float
        [kg]
    center_deviation : array, shape (3,)
        [m]
    inertia_deviation : array, shape (3, 3)
        About the tip link's origin [kg m²]; as large as the prior's where nothing was measured.
    residual : float
        Rms of what is unexplained over that of the torque, all joints together.
    poses : array, shape (k, n)
        Where to stand still, in turn, to know mass and centre of mass better [rad or m].
    findings : tuple of Finding
    """

    payload: Payload
    mass_deviation: float
    center_deviation: FloatArray
    inertia_deviation: FloatArray
    residual: float
    poses: FloatArray
    findings: tuple[Finding, ...]

    @property
    def deviation(self) -> FloatArray:
        """Of mass [kg] and centre of mass [m], array, shape (4,)."""
        return np.concatenate([[self.mass_deviation], self.center_deviation])

    def __repr__(self) -> str:
        center = ', '.join(f'{1e3 * x:.0f}' for x in np.asarray(self.payload.center_of_mass))
        return (
            f'PayloadEstimate({self.payload.mass:.4g} +- {self.mass_deviation:.2g} kg '
            f'at {center} mm)'
        )


@one_thread()
def identify_payload(
    model: RobotModel | Identification,
    loaded: Recording | Sequence[Recording],
    *,
    unloaded: Recording | Sequence[Recording] | None = None,
    effort_scale: ArrayLike | None = None,
    progress: Progress | None = None,
) -> PayloadEstimate:
    """
    Return what the tip link carries in recordings, moving or standing in some poses.

    Parameters
    ----------
    model : RobotModel or Identification
        The arm without it. An identification knows friction and unit of the efforts; a model is
        believed as it is, unless ``unloaded`` is given.
    loaded : Recording or sequence of Recording
    unloaded : Recording or sequence of Recording, optional
        Without the load, to identify the arm from first.
    effort_scale : array-like, shape (n,), or float, optional
        Torque for a unit of effort [N m or N]; the identification's where not given, else 1.
    progress : callable, optional
        Called with the fraction done, 0 to 1, and what is done next: ``unloaded`` takes as long as
        ``identify``.

    Raises
    ------
    NoSuchJoint, TooShortRecording
        The recordings hold neither motion nor a pose.
    WrongShape, NonFiniteValue, InvalidNumber
        Of ``effort_scale``.

    Notes
    -----
    The torques that the arm without it does not explain are linear in the load's ten parameters.
    Friction that grows with load takes part, and friction may be off by a fifth: it is another
    day. A pose counts as one row, uncertain by all that Coulomb friction can hold. How uncertain
    the arm itself is, is not in the deviations.
    """
    report = reporting(progress)
    bare = model.model if isinstance(model, Identification) else checked_model(model)
    recordings = checked_recordings('loaded', loaded)
    if unloaded is not None:
        model = identify(
            bare,
            unloaded,
            effort_scale=effort_scale,
            progress=lambda fraction, what: report(_IDENTIFYING * fraction, what),
        )
    begin = 0.0 if unloaded is None else _IDENTIFYING
    report(begin, 'preparing')
    arm = KnownArm.of(model, effort_scale)
    mine = [each.of_joints(arm.model.joint_names) for each in recordings]
    data = LoadedRows.of(arm, mine)
    if not data.tells:
        raise TooShortRecording('recording', 'neither motion nor a pose', 'one of both')
    parameters, noise = np.zeros(10), np.maximum(_FIRST_NOISE * data.size, 1e-9)
    prior = None
    for k in range(_ROUNDS):
        report(begin + (1.0 - begin) * (k + 1) / (_ROUNDS + 1), 'estimating')
        factor, target = data.regression(parameters, noise)
        if prior is None:
            prior = _prior(factor, target, data.friction_deviation)
        found = estimate(
            Problem(
                factor=factor,
                target=target,
                prior=prior,
                strength=_STRENGTH,
                deviation=data.friction_deviation,
                positive=np.zeros(len(data.friction_deviation), dtype=bool),
            )
        )
        parameters = found.inertial_parameters[0]
        noise = data.noise(parameters, found.others)
    result = _result(arm, data, found, noise)
    report(1.0, 'done')
    return result


def _prior(factor: FloatArray, target: FloatArray, friction: FloatArray) -> FloatArray:
    """Return a round body (1, 4, 4) with the mass and the centre that least squares find."""
    columns = np.r_[6:10, 10 : factor.shape[1]]
    held = np.diag(1.0 / np.concatenate([np.full(4, _LOOSE), friction]))
    matrix = np.vstack([factor[:, columns], held])
    right = np.concatenate([target, np.zeros(len(columns))])
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    mass = max(float(solution[3]), _LEAST_MASS)
    center = solution[:3] / mass
    center *= min(1.0, _REACH / max(float(np.linalg.norm(center)), 1e-12))
    radius = _RADIUS * mass ** (1.0 / 3.0)
    result = np.empty((1, 4, 4))
    result[0, :3, :3] = mass * (radius**2 * np.eye(3) + np.outer(center, center))
    result[0, :3, 3] = result[0, 3, :3] = mass * center
    result[0, 3, 3] = mass
    return result


def _result(
    arm: KnownArm, data: LoadedRows, found: Estimate, noise: FloatArray
) -> PayloadEstimate:
    parameters = found.inertial_parameters[0]
    mass = float(parameters[9])
    center = parameters[6:9] / mass
    own = found.deviation_factor[:10]
    of_center = (own[6:9] - np.outer(center, own[9])) / mass
    about_center = inertia_tensor(parameters) - mass * (
        center @ center * np.eye(3) - np.outer(center, center)
    )
    mass_deviation = float(np.linalg.norm(own[9]))
    center_deviation = np.linalg.norm(of_center, axis=1)
    prior_inertia = _RADIUS**2 * mass ** (5.0 / 3.0)
    inertia_deviation = inertia_tensor(np.concatenate([np.linalg.norm(own[:6], axis=1), 4 * [0]]))
    findings = []
    if mass < _CERTAIN * mass_deviation:
        findings.append(
            Finding(
                'no_payload',
                'warning',
                'payload',
                mass,
                f'the payload of {mass:.3g} kg may as well be nothing',
            )
        )
    elif mass_deviation > _POORLY_KNOWN * mass or center_deviation.max() > _POOR_CENTER:
        findings.append(
            Finding(
                'payload_uncertain',
                'warning',
                'payload',
                float(f'{mass_deviation:.2g}'),
                f'the payload is uncertain, by {mass_deviation:.2g} kg and '
                f'{1e3 * center_deviation.max():.2g} mm of its centre: add the poses, or a motion',
            )
        )
    if np.diagonal(inertia_deviation).max() > prior_inertia:
        findings.append(
            Finding(
                'inertia_from_prior',
                'info',
                'payload',
                float(f'{prior_inertia:.2g}'),
                f"the payload's inertia is a guess of {prior_inertia:.2g} kg m²: the motion "
                'hardly shows it',
            )
        )
    if not found.converged:
        findings.append(
            Finding(
                'not_converged',
                'warning',
                'payload',
                found.steps,
                f'the payload did not settle in {found.steps} steps',
            )
        )
    covariance = own[6:10] @ own[6:10].T
    return PayloadEstimate(
        Payload(mass, center, about_center),
        mass_deviation,
        center_deviation,
        inertia_deviation,
        data.relative_residual(parameters, found.others),
        poses_to_add(arm.model, covariance, np.hypot(noise, arm.stiction)),
        tuple(findings),
    )
