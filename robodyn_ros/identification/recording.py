# SPDX-License-Identifier: Apache-2.0
"""What an arm did and what its drives reported: the samples that a model is identified from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_type, float_array
from robodyn_ros.array_record import ArrayRecord
from robodyn_ros.description.records import Finding
from robodyn_ros.errors import NoSuchJoint, WrongShape
from robodyn_ros.identification.bag_recording import samples_of_bag
from robodyn_ros.identification.cleaning import usable_samples
from robodyn_ros.identification.csv_recording import samples_of_csv
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.spatial import FloatArray

_A_RECORDING = "a Recording, as Recording.from_bag('motion.mcap', model), or several"


@dataclass(frozen=True, eq=False, repr=False)
class Recording(ArrayRecord):
    """
    Positions, velocities and efforts of n joints at N times.

    Samples that cannot be believed are dropped when it is made, and counted in ``findings``.

    Parameters
    ----------
    joint_names : sequence of n str
    time : array-like, shape (N,)
        Stamps [s]; they may jitter.
    position : array-like, shape (N, n)
        [rad or m]
    velocity : array-like, shape (N, n), or None
        [rad/s or m/s]; None, or NaN throughout, where the driver reports none.
    effort : array-like, shape (N, n)
        In the drives' unit: N m or N where nobody says otherwise.
    findings : tuple of Finding
        What was wrong with the samples.

    Raises
    ------
    WrongShape
        Naming the array.
    NoEffort
        There is no effort, or nothing but zeros.
    MalformedRecording
        Too few samples are left, stamps run backwards, or positions jump.
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None
    effort: FloatArray
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        names = tuple(self.joint_names)
        time = _array('time', self.time, (None,))
        shape = (len(time), len(names))
        position = _array('position', self.position, shape)
        effort = _array('effort', self.effort, shape)
        velocity = None if self.velocity is None else _array('velocity', self.velocity, shape)
        if velocity is not None and not np.isfinite(velocity).any(axis=0).all():
            velocity = None
        sound, findings = usable_samples(names, time, position, velocity, effort)
        arrays = {
            'time': time[sound],
            'position': position[sound],
            'velocity': None if velocity is None else velocity[sound],
            'effort': effort[sound],
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
        object.__setattr__(self, 'joint_names', names)
        object.__setattr__(self, 'findings', (*self.findings, *findings))
        super().__post_init__()

    def __repr__(self) -> str:
        return (
            f'Recording({len(self.joint_names)} joints, {len(self.time)} samples, '
            f'{self.duration:.3g} s)'
        )

    @property
    def duration(self) -> float:
        """From the first to the last sample [s]."""
        return float(self.time[-1] - self.time[0])

    @classmethod
    def from_csv(cls, path: str | Path, model: RobotModel) -> Recording:
        """
        Return the recording of the model's joints in a CSV file.

        Columns ``time`` [s], ``<joint>`` [rad or m], ``<joint>.effort`` and, where the driver
        reports it, ``<joint>.velocity`` [rad/s or m/s], in any order; others are passed over.

        Raises
        ------
        UnreadableSource
            No such file, or no text.
        NoSuchJoint
            A joint of the model has no column: another robot's recording.
        NoEffort
            No column of efforts, or nothing but zeros.
        MalformedRecording
            A column is repeated, or too few samples are sound.
        """
        names = checked_model(model).joint_names
        return cls(names, *samples_of_csv(_path(path), names))

    @classmethod
    def from_bag(cls, path: str | Path, model: RobotModel, topic: str | None = None) -> Recording:
        """
        Return the recording of the model's joints in a ROS bag, sqlite3 or MCAP.

        Parameters
        ----------
        path : str or Path
            A bag's folder or file; read by rosbags, no ROS is needed.
        model : RobotModel
        topic : str, optional
            Of its joint states; where not given, the only one that names the model's joints.

        Raises
        ------
        UnreadableSource
            No such bag, or rosbags is not installed.
        NoSuchJoint
            No topic names all of the model's joints.
        NoEffort
            Its messages have no efforts, or nothing but zeros.
        MalformedRecording
            Several topics name the joints, as with two robots, or too few samples are sound.
        """
        names = checked_model(model).joint_names
        return cls(names, *samples_of_bag(_path(path), names, topic))

    def of_joints(self, joint_names: tuple[str, ...]) -> Recording:
        """
        Return the recording with these joints only, in this order.

        Raises
        ------
        NoSuchJoint
            One is not recorded.
        """
        if joint_names == self.joint_names:
            return self
        for name in joint_names:
            if name not in self.joint_names:
                known = ', '.join(map(repr, self.joint_names))
                raise NoSuchJoint('recording', f'no joint {name!r}', f'it has {known}')
        order = [self.joint_names.index(name) for name in joint_names]
        velocity = None if self.velocity is None else self.velocity[:, order]
        return Recording(
            joint_names,
            self.time,
            self.position[:, order],
            velocity,
            self.effort[:, order],
            self.findings,
        )

    def between(self, start: float, end: float) -> Recording:
        """Return the samples with stamps from ``start`` to before ``end`` [s]."""
        chosen = (self.time >= start) & (self.time < end)
        velocity = None if self.velocity is None else self.velocity[chosen]
        return Recording(
            self.joint_names,
            self.time[chosen],
            self.position[chosen],
            velocity,
            self.effort[chosen],
            self.findings,
        )


def checked_recordings(name: str, given: Recording | Sequence[Recording]) -> list[Recording]:
    """
    Return an argument that is one recording or several, as a list.

    Raises
    ------
    WrongType, WrongShape
        It is something else, or none.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        given = [checked_type(name, given, Recording, _A_RECORDING)]
    recordings = list(given)
    if not recordings:
        raise WrongShape(f'argument {name}', 'none', 'one recording at least')
    for each in recordings:
        checked_type(name, each, Recording, _A_RECORDING)
    return recordings


def _path(path: str | Path) -> Path:
    return Path(checked_type('path', path, (str, Path), 'a path'))


def _array(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> FloatArray:
    array = float_array(name, values)
    if array.ndim != len(shape) or any(b not in (None, a) for a, b in zip(array.shape, shape)):
        allowed = f'shape {shape}' if None not in shape else 'shape (N,)'
        raise WrongShape(f'argument {name}', f'shape {array.shape}', allowed)
    return array
