# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo, step by step, and its sensors.

MuJoCo's model is made of the URDF's records: physics that owes nothing to our DH conversion. One
body for each joint that moves, placed by the URDF's joint origins, with the inertia of all links
that move with it, summed about their common centre of mass. There is no geometry, and no name of
the URDF is in the XML. MuJoCo is optional: ``pip install mujoco``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array
from robodyn_ros.description.chain import Body, Chain, MimicChoice, TipLinks, checked_chain
from robodyn_ros.description.findings import MASSES
from robodyn_ros.description.mjcf import imported_mujoco
from robodyn_ros.description.records import Inertial
from robodyn_ros.description.writing import (
    add_coupled_drives,
    add_inertial,
    add_joint,
    empty_mjcf,
    placement,
)
from robodyn_ros.errors import InvalidArgument, NoSolution, Phrase
from robodyn_ros.model import RobotModel
from robodyn_ros.payload import Payload
from robodyn_ros.spatial import FloatArray, principal_axes

_HARDEST = 0.9999  # impedance of a constraint; MuJoCo allows no more
_LONGEST = 0.25e-3
"""
[s] A longer time step is taken in equal parts. MuJoCo moves positions by the velocity of the end
of its step, which is an error of half a step times the velocity's change.
"""


class ArmSimulation:
    """
    A serial arm, or a tree of bodies, on a fixed base, driven by joint torques and free otherwise.

    Viscous friction (``damping``) and Coulomb friction (``friction``) act as the URDF gives them.
    At a position limit the joint meets a stop. Torques are applied as they come: effort limits are
    the controller's to keep. Links do not collide; ``push`` lets the world act on the tip. Between
    two steps the torque is constant.

    The arm is held by its brakes until the first ``step``.

    Parameters
    ----------
    chain : Chain
        Joints off the chain are held as in the model.
    gravity : array-like, shape (3,), optional
        [m/s²], in the base link's axes; the chain's where not given.
    time_step : float
        [s], at most 1, for which a torque is held.
    initial_position : array-like, shape (n,), optional
        [rad] or [m]; zero where not given.
    rotor_inertia : array-like, shape (n,), optional
        Reflected to the joints [kg m² or kg]; the joints' own where not given.
    drives : RobotModel, optional
        Of these joints: its coupled drives act on the arm, too, without a friction curve.

    Raises
    ------
    NoBackend
        MuJoCo cannot be imported.
    NoSolution
        MuJoCo refuses the arm.
    NonFiniteValue, InvalidArgument
        The time step is not positive; or of gravity, the initial position or rotor inertia.
    """

    def __init__(
        self,
        chain: Chain,
        *,
        gravity: ArrayLike | None = None,
        time_step: float = 1e-3,
        initial_position: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        drives: RobotModel | None = None,
    ) -> None:
        if not 0 < time_step <= 1.0:
            raise InvalidArgument(
                'argument time_step', time_step, 'positive, at most 1 s', unit='s'
            )
        self._mujoco = imported_mujoco()
        self._model = _compiled_chain(checked_chain(chain), drives)
        self._model.opt.integrator = self._mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._time_step = float(time_step)
        # A whole number of the longest may be more by a rounding error.
        self._parts = max(1, int(np.ceil(time_step / _LONGEST - 1e-9)))
        self._model.opt.timestep = time_step / self._parts
        # Its automatic reset would put the arm back to zero, at time zero, without a word.
        self._model.opt.disableflags |= self._mujoco.mjtDisableBit.mjDSBL_AUTORESET
        # Coulomb friction is a soft constraint in MuJoCo; by default it is so soft that it acts as
        # viscous friction on light links. This is as hard as the time step allows.
        self._model.dof_solref[:] = 2 * self._model.opt.timestep, 1.0
        self._model.dof_solimp[:, :2] = _HARDEST
        self._model.tendon_solref_fri[:] = self._model.dof_solref[0]
        self._model.tendon_solimp_fri[:, :2] = _HARDEST
        self._model.opt.gravity = (
            chain.gravity if gravity is None else checked_array('gravity', gravity, (3,))
        )
        kinds = self._mujoco.mjtWarning
        self._bad = [int(kinds.mjWARN_BADQPOS), int(kinds.mjWARN_BADQVEL)]
        self._bad.append(int(kinds.mjWARN_BADQACC))
        self._chain = chain
        self.joint_names = chain.joint_names
        self.n = len(self.joint_names)
        if rotor_inertia is not None:
            rotors = checked_array('rotor_inertia', rotor_inertia, (self.n,))
            if (rotors < 0.0).any():
                raise InvalidArgument('rotor_inertia', rotors.tolist(), 'zero or more')
            self._model.dof_armature[:] = rotors
        self._data = self._mujoco.MjData(self._model)
        self.reset(np.zeros(self.n) if initial_position is None else initial_position)

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
        gravity: ArrayLike | None = None,
        time_step: float = 1e-3,
        initial_position: ArrayLike | None = None,
        rotor_inertia: ArrayLike | None = None,
        drives: RobotModel | None = None,
    ) -> ArmSimulation:
        """
        Return the simulation of an arm in a URDF that the caller names.

        Parameters
        ----------
        source : str or Path
            As ``RobotModel.from_urdf`` takes it, and so the four arguments after it.

        Raises
        ------
        RobodynError
            Whatever reading a URDF raises, and what the class itself does.
        """
        chain = Chain.from_urdf(source, base_link, tip_link, locked_positions, mimic)
        return cls(
            chain,
            gravity=gravity,
            time_step=time_step,
            initial_position=initial_position,
            rotor_inertia=rotor_inertia,
            drives=drives,
        )

    def reset(self, position: ArrayLike) -> None:
        """Stand still at ``position`` (n,) [rad or m] held by the brakes, at time zero."""
        self._mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[:] = checked_array('position', position, (self.n,))
        self._mujoco.mj_forward(self._model, self._data)
        self.brakes_engaged = True
        self._tip_wrenches = np.zeros((len(self._chain.tips), 6))

    def push(self, tip_wrench: ArrayLike, tip: str | None = None) -> None:
        """
        Let a wrench act on a tip in every step from now on, until the next call or a reset.

        Parameters
        ----------
        tip_wrench : array-like, shape (6,)
            What the world exerts on the arm at the tip link's origin: force [N], then moment
            [N m], in the base link's axes.
        tip : str, optional
            The tip link; the only one where not given.

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        links = self._chain.tip_links
        if tip not in links and (tip is not None or len(links) > 1):
            raise InvalidArgument('argument tip', tip, f'one of {", ".join(map(repr, links))}')
        wrench = checked_array('tip_wrench', tip_wrench, (6,))
        self._tip_wrenches[0 if tip is None else links.index(tip)] = wrench

    def carry(self, payloads: Sequence[Payload]) -> None:
        """
        Carry these bodies from the next step on, in place of those of before; nothing else jumps.

        Parameters
        ----------
        payloads : sequence of Payload
            Each on a link that is named; one on the base link changes nothing.
        """
        mujoco, model = self._mujoco, self._model
        for i, body in enumerate(self._chain.bodies[1:], start=1):
            lumped = _lumped_inertial(self._chain, body, payloads)
            if lumped is None:
                model.body_mass[i], model.body_inertia[i] = 0.0, 0.0
                continue
            moments, axes = principal_axes(lumped.inertia)
            model.body_mass[i], model.body_inertia[i] = lumped.mass, moments
            model.body_ipos[i] = lumped.center_of_mass
            mujoco.mju_mat2Quat(model.body_iquat[i], axes.ravel())
        # What MuJoCo derives from them; it computes in the data that it is given.
        mujoco.mj_setConst(model, mujoco.MjData(model))

    @property
    def external_torque(self) -> FloatArray:
        """What the wrenches on the tips are in the joints where the arm is (n,) [N m or N]."""
        torque = np.zeros(self.n)
        if not self._tip_wrenches.any():
            return torque
        mujoco, model, data = self._mujoco, self._model, self._data
        # After a step the frames are still those of its beginning.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        chain = self._chain
        for i, placed, wrench in zip(chain.tips, chain.tip_transforms, self._tip_wrenches):
            tip = data.xpos[i + 1] + data.xmat[i + 1].reshape(3, 3) @ placed[:3, 3]
            linear, angular = np.zeros((2, 3, self.n))
            mujoco.mj_jac(model, data, linear, angular, tip, i + 1)
            torque += wrench @ np.concatenate([linear, angular])
        return torque

    def step(self, torque: ArrayLike) -> None:
        """
        Release the brakes and advance one time step under ``torque`` (n,) [N m or N].

        Raises
        ------
        InvalidArgument, NonFiniteValue
            The torque is not one finite number per joint; the arm has not moved.
        NoSolution
            The torque moves the arm faster than MuJoCo can count; the arm stands where it was,
            held by the brakes.
        """
        data = self._data
        given = checked_array('torque', torque, (self.n,))
        data.qfrc_applied[:] = given + self.external_torque
        self.brakes_engaged = False
        position, time = data.qpos.copy(), data.time
        self._mujoco.mj_step(self._model, data, self._parts)
        if data.warning.number[self._bad].any():
            self.reset(position)
            data.time = time
            raise NoSolution(
                'torque',
                np.asarray(torque).tolist(),
                'what moves the arm at less than 1e10 rad/s², and a time step short enough',
            )

    def brake(self) -> None:
        """Stand where it is, held by the brakes until the next ``step``."""
        self._data.qvel[:] = 0.0
        self.brakes_engaged = True

    def wait(self) -> None:
        """Advance the time by one step held by the brakes; nothing moves."""
        self._data.time += self.time_step

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._data.time)

    @property
    def time_step(self) -> float:
        """Simulated time per step [s]."""
        return self._time_step

    @property
    def position(self) -> FloatArray:
        """Joint positions (n,) [rad or m]."""
        return self._data.qpos.copy()

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities (n,) [rad/s or m/s]."""
        return self._data.qvel.copy()


class Sensors:
    """
    Encoders, their velocities, and efforts; zero means without fault.

    Parameters
    ----------
    position_resolution : float
        Step of the encoders [rad or m].
    velocity_noise : float
        Deviation [rad/s or m/s].
    effort_noise : array, shape (n,) or float
        Deviation [N m or N].
    seed : int

    Raises
    ------
    InvalidArgument
        One is negative or not finite.
    """

    def __init__(
        self,
        position_resolution: float = 0.0,
        velocity_noise: float = 0.0,
        effort_noise: FloatArray | float = 0.0,
        seed: int = 0,
    ) -> None:
        for name, value in (
            ('position_resolution', position_resolution),
            ('velocity_noise', velocity_noise),
            ('effort_noise', float(np.min(effort_noise))),
        ):
            if not 0 <= value < np.inf:
                raise InvalidArgument(f'parameter {name}', value, 'zero or more')
        self._resolution = position_resolution
        self._velocity_noise = velocity_noise
        self._effort_noise = effort_noise
        self._generator = np.random.default_rng(seed)

    def measured(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position, velocity and effort (n,) as they are reported."""
        if self._resolution:
            position = self._resolution * np.round(position / self._resolution)
        if self._velocity_noise:
            velocity = velocity + self._velocity_noise * self._generator.normal(size=len(velocity))
        if np.any(self._effort_noise):
            effort = effort + self._effort_noise * self._generator.normal(size=len(effort))
        return position, velocity, effort


# --- MuJoCo's model ------------------------------------------------------------------------------


def _compiled_chain(chain: Chain, drives: RobotModel | None) -> Any:
    """
    Return MuJoCo's model of a chain.

    Raises
    ------
    NoBackend
        MuJoCo cannot be imported.
    NoSolution
        MuJoCo refuses a body of the chain.
    """
    mujoco = imported_mujoco()
    if all(_lumped_inertial(chain, body) is None for body in chain.bodies[1:]):
        raise NoSolution('chain', Phrase('no link that moves has a mass'), MASSES)
    try:
        return mujoco.MjModel.from_xml_string(_mjcf(chain, drives))
    except ValueError as error:
        raise NoSolution(
            'chain',
            Phrase(_in_links(str(error), chain)),
            'a mass and an inertia that a body can have for each part that moves: '
            '`robodyn check` lists what is odd, and the URDF is where to put it right',
        ) from error


def _mjcf(chain: Chain, drives: RobotModel | None) -> str:
    """Return a chain in MuJoCo's XML: ``body0`` with ``joint0`` inside the world, and so on."""
    root, world = empty_mjcf('arm')
    elements = [world]
    for i, (joint, parent) in enumerate(zip(chain.joints, chain.parents, strict=True)):
        placed = placement(chain.joint_transforms[i])
        before = elements[parent + 1]
        element = etree.SubElement(before, 'body', {'name': f'body{i}', **placed})
        elements.append(element)
        lumped = _lumped_inertial(chain, chain.bodies[i + 1])
        if lumped is not None:
            add_inertial(element, lumped)
        add_joint(element, f'joint{i}', joint)
    if drives is not None:
        add_coupled_drives(
            root,
            [f'joint{i}' for i in range(len(chain.joints))],
            drives.coupling,
            drives.coupled_rotor_inertia,
            drives.coupled_friction,
        )
    return etree.tostring(root, encoding='unicode')


def _lumped_inertial(
    chain: Chain, body: Body, payloads: Sequence[Payload] = ()
) -> Inertial | None:
    """
    Return the inertial of all links of a body, in the frame of its first; None: no mass at all.

    Payloads on its links, whose link is named, are part of it. The centre of mass is the masses'
    mean; each part adds R I RT + m (dT d 1 - d dT), where d leads from there to its own centre of
    mass (the parallel axis theorem).
    """
    parts: list[tuple[float, FloatArray, FloatArray]] = []
    for name, placed in body.link_transforms.items():
        carried = [payload for payload in payloads if payload.link == name]
        for inertial in (chain.description.links[name].inertial, *carried):
            if inertial is None:
                continue
            rotation = placed[:3, :3]
            center = rotation @ np.asarray(inertial.center_of_mass) + placed[:3, 3]
            tensor = rotation @ np.asarray(inertial.inertia) @ rotation.T
            parts.append((inertial.mass, center, tensor))
    mass = sum(mass for mass, _, _ in parts)
    if mass == 0.0 and not any(tensor.any() for _, _, tensor in parts):
        return None
    center = sum((m * c for m, c, _ in parts), np.zeros(3)) / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for m, c, tensor in parts:
        d = c - center
        inertia += tensor + m * (d @ d * np.eye(3) - np.outer(d, d))
    return Inertial(mass, center, inertia)


def _in_links(message: str, chain: Chain) -> str:
    """Return what MuJoCo said in one line, about a link of the URDF."""
    said, _, where = ' '.join(message.split()).partition(' Element name ')
    body = re.search(r'\bbody(\d+)\b', where)
    said = said.removeprefix('Error: ').partition('; use ')[0]
    return said if body is None else f'link {chain.joints[int(body[1])].child!r}: {said}'
