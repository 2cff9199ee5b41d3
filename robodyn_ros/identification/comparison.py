# SPDX-License-Identifier: Apache-2.0
"""Torque errors of the URDF, of the URDF with friction, and of the identified model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.spatial import cKDTree

from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.noise import rms
from robodyn_ros.identification.prediction import DriveModel, prediction_states
from robodyn_ros.identification.preparation import EvenSamples, States, band_with_cutoff, states_of
from robodyn_ros.identification.recording import Recording
from robodyn_ros.identification.regression import least_squares
from robodyn_ros.identification.rows import Rows, rows_of
from robodyn_ros.model import RobotModel
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

Role = Literal['training', 'validation']
PredictingModel = Literal['urdf', 'urdf_friction', 'identified']
MODELS: tuple[PredictingModel, ...] = get_args(PredictingModel)
# Motions are compared at this cut-off [Hz].
_CUTOFF = 2.0
# States closer than this, in units of their own spread, are the same state of the motion.
_SAME = 0.1
_MOST = 0.5  # of the states: more, and the motion is repeated


@dataclass(frozen=True)
class CandidateError:
    """
    What cross-validation says of a kind of friction.

    Attributes
    ----------
    terms : DriveTerms
    relative_error : float
        On blocks that were left out of the training, all joints together.
    """

    terms: DriveTerms
    relative_error: float


@dataclass(frozen=True, eq=False, repr=False)
class RecordingErrors(Record):
    """
    Rms errors on one recording, low-passed as a prediction is.

    Attributes
    ----------
    role : 'training' or 'validation'
    repeats_training : bool
        Whether the motion is one that was trained with.
    joint_names : tuple of n str
    torque : array, shape (n,)
        Rms of the measured torque [N m or N].
    urdf, urdf_friction, identified : array, shape (n,)
        Rms error of each joint, all rows [N m or N].
    moving_torque, urdf_moving, urdf_friction_moving, identified_moving : array, shape (n,)
        The same of the rows where the joint moves [N m or N].
    """

    role: Role
    repeats_training: bool
    joint_names: tuple[str, ...]
    torque: FloatArray
    urdf: FloatArray
    urdf_friction: FloatArray
    identified: FloatArray
    moving_torque: FloatArray
    urdf_moving: FloatArray
    urdf_friction_moving: FloatArray
    identified_moving: FloatArray

    _columns = ('torque', 'urdf', 'urdf_friction', 'identified', 'identified_moving')
    _headings = {
        'urdf': 'URDF',
        'urdf_friction': 'URDF + friction',
        'identified_moving': 'while it moves',
    }

    def relative(self, model: PredictingModel) -> float:
        """
        Return a model's error over the measured torque, all joints and rows together.

        Parameters
        ----------
        model : 'urdf', 'urdf_friction' or 'identified'
        """
        return float(np.linalg.norm(getattr(self, model)) / np.linalg.norm(self.torque))


@dataclass(frozen=True, eq=False)
class UrdfWithFriction:
    """
    The URDF's bodies with viscous and Coulomb friction and offset fitted to recordings.

    Attributes
    ----------
    model : RobotModel
    coefficients : array, shape (n, 4)
        Of the plainest drive terms; the rotor inertia is zero.
    """

    model: RobotModel
    coefficients: FloatArray

    @classmethod
    def fitted(cls, model: RobotModel, rows: Sequence[Rows]) -> UrdfWithFriction:
        """Return the fit by least squares, joint by joint, to rows that are used."""
        coefficients = np.zeros((model.n, DriveTerms().count))
        columns = np.concatenate([each.drive(DriveTerms()) for each in rows])
        rest = np.concatenate(
            [each.effort - each.inertial @ model.inertial_parameters.ravel() for each in rows]
        )
        used = np.concatenate([each.used for each in rows])
        for joint in range(model.n):
            mine = used[:, joint]
            if mine.any():
                friction = columns[mine, joint, 1:]
                coefficients[joint, 1:] = least_squares(friction, rest[mine, joint])[0]
        return cls(model, coefficients)


def recording_errors(
    recording: Recording,
    urdf: UrdfWithFriction,
    drive_model: DriveModel,
    cutoff: float,
    *,
    role: Role,
    repeats_training: bool = False,
) -> RecordingErrors:
    """
    Return the errors of all models on one recording.

    Parameters
    ----------
    recording : Recording
    urdf : UrdfWithFriction
    drive_model : DriveModel
        The identified one.
    cutoff : float
        That it was trained with [Hz].
    role : 'training' or 'validation'
    repeats_training : bool
    """
    measured, moving, known = [], [], []
    errors: dict[str, list[FloatArray]] = {name: [] for name in MODELS}
    for states in prediction_states(recording, cutoff)[0]:
        rows = rows_of(urdf.model, states, drive_model.effort_scale)
        rigid = rows.inertial @ urdf.model.inertial_parameters.ravel()
        friction = (rows.drive(DriveTerms()) * urdf.coefficients).sum(axis=-1)
        own = rows_of(drive_model.model, states, drive_model.effort_scale)
        measured.append(rows.effort)
        moving.append(rows.moving)
        known.append(~states.row_clipped)
        errors['urdf'].append(rigid - rows.effort)
        errors['urdf_friction'].append(rigid + friction - rows.effort)
        errors['identified'].append(drive_model.torques(own)[0] - rows.effort)
    everywhere = np.concatenate(known)
    where = np.concatenate(moving) & everywhere
    together = {name: np.concatenate(parts) for name, parts in errors.items()}
    effort = np.concatenate(measured)
    return RecordingErrors(
        role=role,
        repeats_training=repeats_training,
        joint_names=recording.joint_names,
        torque=rms(effort, everywhere),
        moving_torque=rms(effort, where),
        **{name: rms(error, everywhere) for name, error in together.items()},
        **{f'{name}_moving': rms(error, where) for name, error in together.items()},
    )


def repeats(validation: Sequence[EvenSamples], training: Sequence[EvenSamples]) -> bool:
    """
    Return whether more than half of a motion's states, moving, occur in another motion.

    States are positions and velocities; when in the motion they occur does not matter.
    """
    known = np.concatenate([_points(stretch) for stretch in training])
    new = np.concatenate([_points(stretch) for stretch in validation])
    spread = known.std(axis=0)
    varying = spread > 1e-6 * spread.max()
    scale = 1.0 / (spread[varying] * np.sqrt(varying.sum()))
    distance, _ = cKDTree(known[:, varying] * scale).query(new[:, varying] * scale)
    return bool(np.mean(distance < _SAME) > _MOST)


def _points(stretch: EvenSamples) -> FloatArray:
    states: States = states_of(stretch, band_with_cutoff(_CUTOFF, [stretch]))
    speed = np.abs(states.qd).max(axis=1)
    moving = speed > 0.2 * speed.max()
    return np.hstack([states.q, states.qd])[moving]
