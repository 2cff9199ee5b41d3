# SPDX-License-Identifier: Apache-2.0
"""
Feedforward for servos that take positions alone: the command is offset by torque over gain.

Inside, such a servo is a spring, tau = kp (q_cmd - q): it moves off by tau / kp. The command

    q_cmd = q_d + tau(q_d, qd_d, qdd_d) / kp

has it at q_d. ``servo_gains`` measures kp of each joint, in poses at rest. A servo's damping is
viscous friction to the model: in the URDF's ``<dynamics damping>``, or identified with
kp (q_cmd - q) as the effort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_gains, checked_states
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import gravity_torque
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NoSuchName, Phrase
from robodyn_ros.model import RobotModel, force_unit, position_unit
from robodyn_ros.record import Record
from robodyn_ros.ros_parameters import parameters_of
from robodyn_ros.spatial import FloatArray

_DEFAULTS = {p.name: p.default for p in parameters_of('feedforward')}

# Of an encoder with 4096 counts a turn, as small servos have [rad].
ENCODER_RESOLUTION = 2.0 * np.pi / 4096

# A gain that is known no better is refused; an offset by it errs by the same fraction.
LARGEST_DEVIATION = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class ServoGains(Record):
    """
    The measured gains of servos.

    Attributes
    ----------
    joint_names : tuple of str, length n
    gain : array, shape (n,)
        Torque per position error [N m/rad] or [N/m]; 0: not measured, and not to be offset.
    deviation : array, shape (n,)
        Standard deviation of the gain; 0 where it was not measured.
    """

    joint_names: tuple[str, ...]
    gain: FloatArray
    deviation: FloatArray


def servo_gains(
    model: RobotModel,
    position: ArrayLike,
    commanded: ArrayLike,
    *,
    joints: Sequence[str] | None = None,
    resolution: float = ENCODER_RESOLUTION,
) -> ServoGains:
    """
    Return the gain of each joint's servo, from poses at rest: its gravity torque over its error.

    Parameters
    ----------
    model : RobotModel
        With what the arm carries.
    position, commanded : array-like, shape (N, n)
        Where each joint rests, and where it was told to be, in N poses of at least two [rad or m].
    joints : sequence of str, optional
        The joints to measure; not given: all. A joint that gravity does not turn cannot be.
    resolution : float
        Step of the encoders [rad or m]: an error is not known better.

    Raises
    ------
    InsufficientRecording
        Less than two poses, or a joint whose gain is not known within ``LARGEST_DEVIATION``:
        gravity turns it too little, or its error is not its gravity torque's.
    NoSuchName
        No such joint.
    InvalidArgument, NonFiniteValue
        Of an array; a resolution that is negative.

    Notes
    -----
    Least squares of the error over the torque, without a constant. The deviation is that of what
    is left, at least that of the encoder's step and of the model's Coulomb friction. Dry friction
    holds a joint off its place: approach poses from both sides, or it is in the gain.
    """
    measured, wanted = checked_states(model.n, position=position, commanded=commanded)
    if measured.ndim != 2 or len(measured) < 2:
        raise InsufficientRecording('poses at rest', len(np.atleast_2d(measured)), 'two or more')
    if not 0.0 <= resolution < np.inf:
        raise InvalidArgument('argument resolution', resolution, 'zero or more')
    names = model.joint_names
    chosen = names if joints is None else tuple(joints)
    for name in chosen:
        if name not in names:
            raise NoSuchName('argument joints', name, 'one of ' + ', '.join(names))
    torque, error = gravity_torque(model, measured), wanted - measured
    gain, deviation = np.zeros((2, model.n))
    for i in map(names.index, chosen):
        gain[i], deviation[i] = _gain(
            names[i],
            torque[:, i],
            error[:, i],
            resolution,
            float(model.dry_friction[i]),
            bool(model.dh.prismatic[i]),
        )
    return ServoGains(names, gain, deviation)


def _gain(
    name: str,
    torque: FloatArray,
    error: FloatArray,
    resolution: float,
    coulomb: float,
    slides: bool,
) -> tuple[float, float]:
    """Return a joint's gain and its deviation: error = torque / gain, with errors of its own."""
    squares = float(torque @ torque)
    compliance = float(torque @ error) / squares if squares > 0.0 else 0.0
    left = error - compliance * torque
    # Dry friction holds the joint anywhere within so much, and may look like a softer servo.
    held = abs(compliance) * coulomb
    # A product, for ** of a large number raises.
    noise = max(
        float(left @ left) / (len(error) - 1), resolution * resolution / 12.0, held**2 / 3.0
    )
    relative = np.sqrt(noise / squares) / abs(compliance) if compliance else np.inf
    size = np.sqrt(squares / len(torque))
    if relative > LARGEST_DEVIATION:
        raise InsufficientRecording(
            f'joint {name!r} servo gain',
            Phrase(
                f'known within {100 * relative:.3g} %, by {size:.3g} {force_unit(slides)} of '
                'gravity, rms'
            ),
            f'{100 * LARGEST_DEVIATION:g} %: poses in which gravity turns it more, approached '
            'from both sides, or leave it out of joints',
        )
    if compliance < 0.0:
        raise InsufficientRecording(
            f'joint {name!r} servo gain',
            1.0 / compliance,
            'a positive one: position and command with the sign and the unit of the URDF',
            unit=f'{force_unit(slides)}/{position_unit(slides)}',
        )
    return 1.0 / compliance, float(relative / compliance)


@dataclass(frozen=True, eq=False, repr=False)
class ServoOffset(Record):
    """
    Offsets of the position commands of an arm's servos; arrays are in chain order.

    Parameters
    ----------
    gains : array, shape (n,)
        [N m/rad] or [N/m]; 0: this joint is not offset.
    position_limits : array, shape (n, 2)
        [rad or m]; an offset leads no command out of them.
    largest_offset : array, shape (n,)
        [rad or m]
    """

    gains: FloatArray
    position_limits: FloatArray
    largest_offset: FloatArray

    @classmethod
    def of(
        cls,
        model: RobotModel,
        gains: ArrayLike,
        largest_offset: ArrayLike = _DEFAULTS['largest_offset'],
    ) -> ServoOffset:
        """
        Return that of an arm, with one gain and one largest offset for all, or n of them.

        Raises
        ------
        InvalidArgument, NonFiniteValue
            One is negative or not finite, or there are neither one nor n of them.
        """
        return cls(
            checked_gains('gains', gains, model.n),
            model.position_limits,
            checked_gains('largest_offset', largest_offset, model.n),
        )

    def wanted(self, torque: FloatArray) -> FloatArray:
        """Return the offset that a torque (n,) or (N, n) needs, unbounded [rad or m]."""
        stiff = np.where(self.gains > 0.0, self.gains, np.inf)
        return torque / stiff

    def command(self, position: FloatArray, torque: FloatArray) -> FloatArray:
        """
        Return the positions to command.

        Parameters
        ----------
        position, torque : array, shape (n,) or (N, n)
            Where the arm should be [rad or m], and the model's torque there [N m or N].
        """
        offset = np.clip(self.wanted(torque), -self.largest_offset, self.largest_offset)
        # Where the motion itself is past a limit, the offset leads no further.
        lower = np.minimum(self.position_limits[:, 0], position)
        upper = np.maximum(self.position_limits[:, 1], position)
        return np.clip(position + offset, lower, upper)

    def in_trajectory(
        self, trajectory: Trajectory, columns: FloatArray, torque: FloatArray
    ) -> Trajectory:
        """
        Return a trajectory with offset positions, and no effort; all else stays.

        Between two points the offset runs from one to the other as the controller interpolates
        positions, monotonically; the points are those of ``effort_knots``, close together.

        Parameters
        ----------
        trajectory : Trajectory
            Of all joints.
        columns : array of int, shape (n,)
            Which joint of the arm each of its columns is.
        torque : array, shape (N, n)
            The model's at its points, in the order of its columns [N m or N].
        """
        chain = np.argsort(columns)
        positions = self.command(trajectory.positions[:, chain], torque[:, chain])[:, columns]
        return replace(trajectory, positions=positions, efforts=np.zeros_like(positions))
