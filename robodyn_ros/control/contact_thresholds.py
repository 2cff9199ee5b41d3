# SPDX-License-Identifier: Apache-2.0
"""Contact thresholds from recordings without contact: the momentum observer along a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.control.contact import ContactThresholds, MomentumObserver
from robodyn_ros.control.core_binding import core
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.errors import InsufficientRecording, Phrase
from robodyn_ros.identification import Recording
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

# A threshold is this many times the quantile of the torques of contact-free motions.
MARGIN, QUANTILE = 1.25, 0.999

# Of each joint, moving and stationary; fewer give no threshold.
FEWEST_SAMPLES = 200

_SETTLING = 5.0  # time constants of the observer after which its beginning is forgotten


@dataclass(frozen=True, eq=False, repr=False)
class ObservedRecording(Record):
    """
    External torques along a recording, where the observer has settled.

    Attributes
    ----------
    time : array, shape (K,)
        [s], the recording's.
    velocity : array, shape (K, n)
        [rad/s] or [m/s]
    torque : array, shape (K, n)
        Estimated [N m] or [N].
    stationary : array of bool, shape (K, n)
        Which joints are stationary, or were recently.
    """

    time: FloatArray
    velocity: FloatArray
    torque: FloatArray
    stationary: np.ndarray


def observed_recording(
    model: RobotModel,
    recording: Recording,
    gain: ArrayLike,
    *,
    effort_scale: ArrayLike = 1.0,
    presliding: float = 0.0,
    longest: float = 0.1,
) -> ObservedRecording:
    """
    Return the external torques that an observer estimates along a recording.

    Parameters
    ----------
    model : RobotModel
        Identified, as a rule: a URDF's friction is zero, and its masses are the maker's.
    recording : Recording
        With or without velocities; those that are not recorded are differences of positions.
    gain : array-like, shape (n,) or one for all
        Of the observer [1/s].
    effort_scale : array-like, shape (n,) or one for all
        [N m] or [N] for a unit of the recorded effort.
    presliding, longest : float
        As ``MomentumObserver`` takes them.

    Raises
    ------
    NoSuchName
        A joint of the model is not recorded.
    InvalidArgument
        A gain is not positive.
    """
    recording = recording.of_joints(model.joint_names)
    velocity = recording.velocity
    if velocity is None:
        velocity = np.gradient(recording.position, recording.time, axis=0)
    observer = MomentumObserver(
        partial(inverse_dynamics, model),
        partial(friction_of, model),
        np.broadcast_to(np.asarray(gain, dtype=float), (model.n,)),
        is_held=False,
        longest=longest,
        presliding=presliding,
        coupling=model.coupling,
    )
    effort = recording.effort * np.asarray(effort_scale, dtype=float)
    settling = _SETTLING / float(observer.gain.min())
    joints, began = core.StationaryJoints(model.n), -np.inf
    kept, torques, stationary = [], [], []
    for k, time in enumerate(recording.time.tolist()):
        torque = observer.update(recording.position[k], velocity[k], effort[k], time)
        is_stationary = joints.at(velocity[k], time)
        if torque is None:
            began = time
        elif time - began >= settling:
            kept.append(k)
            torques.append(torque)
            stationary.append(is_stationary)
    shape = (-1, model.n)
    return ObservedRecording(
        recording.time[kept],
        velocity[kept],
        np.array(torques, dtype=float).reshape(shape),
        np.array(stationary, dtype=bool).reshape(shape),
    )


def contact_thresholds(
    model: RobotModel, observed: Sequence[ObservedRecording]
) -> ContactThresholds:
    """
    Return thresholds that motions without contact hardly ever exceed.

    Parameters
    ----------
    model : RobotModel
        Names its joints.
    observed : sequence of ObservedRecording
        Of contact-free motions like the later ones: as fast, as far, as loaded, and with stops.

    Raises
    ------
    InsufficientRecording
        A joint hardly moves, or hardly ever stands or turns round.
    """
    torque = np.abs(np.concatenate([each.torque for each in observed]))
    stationary = np.concatenate([each.stationary for each in observed])
    return ContactThresholds(
        _threshold(model, torque, ~stationary, 'moving'),
        _threshold(model, torque, stationary, 'stationary or turning round'),
    )


def _threshold(model: RobotModel, torque: FloatArray, chosen: np.ndarray, what: str) -> FloatArray:
    """Return a threshold for each joint from its selected samples, shape (n,)."""
    counts = chosen.sum(axis=0)
    if (counts < FEWEST_SAMPLES).any():
        worst = int(np.argmin(counts))
        raise InsufficientRecording(
            'free motion',
            Phrase(f'joint {model.joint_names[worst]!r} has {counts[worst]} samples {what}'),
            f'{FEWEST_SAMPLES} at least of each joint',
        )
    quantiles = [
        float(np.quantile(column[mine], QUANTILE)) for column, mine in zip(torque.T, chosen.T)
    ]
    # A joint that shows nothing at all is one whose torque is not measured.
    return MARGIN * np.maximum(quantiles, 1e-9)
