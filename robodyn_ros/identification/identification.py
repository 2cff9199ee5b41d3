# SPDX-License-Identifier: Apache-2.0
"""The result: the identified model, its uncertainty, and what the recordings do not show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from robodyn_ros.description.records import Finding
from robodyn_ros.identification.comparison import CandidateError, RecordingErrors
from robodyn_ros.identification.drive_terms import DriveTerms
from robodyn_ros.identification.parameters import IdentifiedParameter
from robodyn_ros.identification.prediction import (
    DriveModel,
    Prediction,
    base_parameter_deviation,
    effort_before,
    prediction,
)
from robodyn_ros.identification.recording import Recording
from robodyn_ros.identification.rows import tilted
from robodyn_ros.identification.storage import read_fields, write_fields
from robodyn_ros.identification.urdf_output import (
    check_kinematics,
    identified_mjcf,
    identified_urdf,
)
from robodyn_ros.model import RobotModel
from robodyn_ros.parameters import BaseParameters
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class JointFriction(Record):
    """
    Friction of n joints beside the rigid body's torque.

    Attributes
    ----------
    viscous : array, shape (n,)
        [N m s/rad or N s/m]
    coulomb : array, shape (n,)
        [N m or N]
    curve : array, shape (n, 2)
        Factors of tanh(qd / 0.1) and tanh(qd / 0.4) [N m or N]; zero where there is no curve.
    load : array, shape (n,)
        Friction per torque of the rigid body; zero where it does not grow with load.
    presliding : float
        Displacement over which friction turns [rad or m]; 0: where the velocity changes its sign.
    """

    viscous: FloatArray
    coulomb: FloatArray
    curve: FloatArray
    load: FloatArray
    presliding: float


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Record):
    """
    What ``identify`` found.

    Attributes
    ----------
    model : RobotModel
        Every link a body that can exist, with rotor inertia, friction and the tilt's gravity.
    drive_model : DriveModel
        The same with all drive terms and their covariance: what predictions are made with.
    parameters : tuple of IdentifiedParameter
        Base parameters, then the drives' coefficients, joint by joint.
    covariance : array, shape (len(parameters),) * 2
        Of their values.
    base_tilt : array, shape (2,)
        Turn of the base about its two axes that gravity shows [rad]; zero unless it was worth it.
    base_tilt_deviation : array, shape (2,)
        [rad]
    delay, delay_deviation : float
        How much later the efforts are stamped than the motion [s]: advisory, not compensated.
    errors : tuple of RecordingErrors
        Of the recordings trained with, then of those to validate with.
    candidates : tuple of CandidateError
        The kinds of friction that were compared; empty where one was asked for.
    findings : tuple of Finding
        What to distrust.
    cutoff : float
        Of what was compared [Hz].
    converged : bool
        Whether the optimum was reached.
    kinematics : str
        Digest of the kinematics that it belongs to.
    command_scale : array, shape (n,), or None
        The drives' unit per torque in commands, for the node: no recording determines it, but
        ``dataclasses.replace(found, command_scale=...)`` or a line in the YAML may.
    """

    model: RobotModel
    drive_model: DriveModel
    parameters: tuple[IdentifiedParameter, ...]
    covariance: FloatArray
    base_tilt: FloatArray
    base_tilt_deviation: FloatArray
    delay: float
    delay_deviation: float
    errors: tuple[RecordingErrors, ...]
    candidates: tuple[CandidateError, ...]
    findings: tuple[Finding, ...]
    cutoff: float
    converged: bool
    kinematics: str
    command_scale: FloatArray | None = None

    def __repr__(self) -> str:
        held_out = [each for each in self.errors if each.role == 'validation']
        shown = ''.join(f', {each.relative("identified"):.2%} held out' for each in held_out)
        return (
            f'Identification({self.model.n} joints, {self.terms}{shown}, '
            f'{len(self.findings)} findings)'
        )

    @property
    def terms(self) -> DriveTerms:
        """The kind of friction that was chosen."""
        return self.drive_model.terms

    @property
    def rotor_inertia(self) -> FloatArray:
        """Reflected to the joints, array, shape (n,) [kg m² or kg]."""
        return self.model.rotor_inertia

    @property
    def offset(self) -> FloatArray:
        """Constant part of each joint's torque, array, shape (n,) [N m or N]."""
        return self.model.effort_offset

    @property
    def friction(self) -> JointFriction:
        """Friction of the joints."""
        return JointFriction(
            viscous=self.model.viscous_friction,
            coulomb=self.model.coulomb_friction,
            curve=self.model.friction_curve,
            load=self.model.load_friction,
            presliding=self.terms.presliding,
        )

    @property
    def effort_scale(self) -> FloatArray:
        """Torque for a unit of the recordings' effort, array, shape (n,) [N m or N]."""
        return self.drive_model.effort_scale

    def base_parameter_deviation(self, base: BaseParameters) -> FloatArray:
        """
        Return the standard deviations of base parameters, shape (base.count,).

        Parameters
        ----------
        base : BaseParameters
            Of the identified model, rotor inertia and friction counted or not.
        """
        return base_parameter_deviation(self.drive_model, base)

    def predict(self, recording: Recording, *, standing: bool = False) -> Prediction:
        """
        Return what the drives are expected to report for a motion, with its band.

        Parameters
        ----------
        recording : Recording
        standing : bool
            Whether what comes before the first motion and after the last is predicted, too:
            there stiction decides, and the band is as wide as Coulomb friction.

        Raises
        ------
        NoSuchName
            A joint of the model is not recorded.
        InsufficientRecording
            There is hardly any motion.
        """
        mine = recording.of_joints(self.model.joint_names)
        return prediction(self.drive_model, mine, self.cutoff, standing=standing)

    def effort_before(self, urdf: RobotModel, recording: Recording) -> FloatArray:
        """
        Return what the URDF's bodies alone expect, without friction: the prediction before
        identification.

        Parameters
        ----------
        urdf : RobotModel
            That the model was identified from.
        recording : Recording

        Returns
        -------
        array, shape (K, n)
            At the times of ``predict``, in the recording's unit.

        Raises
        ------
        NoSuchName
            A joint of the model is not recorded.
        InsufficientRecording
            There is hardly any motion.
        """
        mine = recording.of_joints(self.model.joint_names)
        return effort_before(self.drive_model, urdf, mine, self.cutoff)

    def save(self, path: str | Path) -> None:
        """Write it as YAML; ``load`` reads it back."""
        write_fields(Path(path), vars(self))

    @classmethod
    def load(cls, path: str | Path) -> Identification:
        """
        Return the identification in a YAML file, its model included.

        Raises
        ------
        UnreadableSource
            There is no such file.
        MalformedData
            It holds no identification.
        """
        return cls(**read_fields(Path(path)))

    def applied_to(self, model: RobotModel) -> RobotModel:
        """
        Return a model of the same robot with the bodies, drives and base tilt identified.

        Its limits and its gravity, turned by the tilt, stay its own.

        Raises
        ------
        ModelMismatch
            The model's kinematics are not those that it was made for.
        """
        self.check_kinematics(model)
        return replace(
            tilted(model, self.base_tilt),
            inertial_parameters=self.model.inertial_parameters,
            rotor_inertia=self.model.rotor_inertia,
            viscous_friction=self.model.viscous_friction,
            coulomb_friction=self.model.coulomb_friction,
            effort_offset=self.model.effort_offset,
            friction_curve=self.model.friction_curve,
            load_friction=self.model.load_friction,
            coupling=self.model.coupling,
            coupled_rotor_inertia=self.model.coupled_rotor_inertia,
            coupled_friction=self.model.coupled_friction,
        )

    def check_kinematics(self, model: RobotModel) -> None:
        """
        Refuse a model of another robot.

        Raises
        ------
        ModelMismatch
            The model's kinematics are not those that it was made for.
        """
        check_kinematics(self.kinematics, self.model, model)

    def to_urdf(self, source: str | Path, path: str | Path) -> None:
        """
        Write the URDF with the identified bodies and friction, everything else byte for byte.

        Of an MJCF it is a URDF without shapes.

        Parameters
        ----------
        source : str or Path
            The URDF or MJCF that the model was made of: a path, or a URDF's text.
        path : str or Path
            Where to write it.

        Raises
        ------
        UnreadableSource, MalformedUrdf
            The source is no sound URDF.
        ModelMismatch
            It is not the robot that was identified.
        """
        Path(path).write_bytes(identified_urdf(self.model, source))

    def to_mjcf(self, source: str | Path, path: str | Path) -> None:
        """
        Write an MJCF with the identified bodies, friction and rotor inertia, without shapes.

        Parameters
        ----------
        source : str or Path
            The URDF or MJCF that the model was made of: a path, or a URDF's text.
        path : str or Path
            Where to write it.

        Raises
        ------
        UnreadableSource, MalformedUrdf, ModelMismatch
            As ``to_urdf``.
        UnsupportedJoint, InvalidArgument
            The robot has a planar joint, or what else MJCF has not.
        """
        Path(path).write_bytes(identified_mjcf(self.model, source))
