# SPDX-License-Identifier: Apache-2.0
"""
An arm in MuJoCo, read from the URDF by MuJoCo itself: physics that owes nothing to our formulas.

What both sides share is the choice of the chain: which joints move, and which are welded. MuJoCo
is optional: ``pip install mujoco``.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import ArrayLike

from robodyn_ros.description.chain import Chain, serial_chain
from robodyn_ros.description.urdf import description_of_urdf, sanitized_urdf
from robodyn_ros.errors import InvalidNumber, NonFiniteValue, RobodynError, WrongShape
from robodyn_ros.spatial import FloatArray, inverse_transform

_HARDEST = 0.9999  # impedance of a constraint; MuJoCo allows no more


class MujocoMissing(RobodynError):
    """MuJoCo is not installed."""


class CannotSimulate(RobodynError):
    """MuJoCo refuses the arm, for a reason it gives: a moving link without mass, for instance."""


class ArmSimulation:
    """
    A serial arm on a fixed base, driven by joint torques and free otherwise.

    Viscous friction (``damping``) and Coulomb friction (``friction``) act as the URDF gives them.
    At a position limit the joint meets a stop. Torques are applied as they come: effort limits are
    the controller's to keep. Links do not collide. Between two steps the torque is constant.

    The arm is held by its brakes until the first ``step``.

    Parameters
    ----------
    source : str or Path
        A URDF, as ``RobotModel.from_urdf`` takes it.
    base_link, tip_link : str, optional
        Ends of the chain; movable joints off the chain are welded as in the model.
    gravity : array-like, shape (3,)
        [m/s²], in the base link's axes.
    time_step : float
        [s]
    initial_position : array-like, shape (n,), optional
        [rad] or [m]; zero where not given.

    Raises
    ------
    MujocoMissing
        MuJoCo cannot be imported.
    CannotSimulate
        MuJoCo refuses the arm.
    InvalidNumber
        The time step is not positive.
    RobodynError
        Whatever reading a URDF raises.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        base_link: str | None = None,
        tip_link: str | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        time_step: float = 1e-3,
        initial_position: ArrayLike | None = None,
    ) -> None:
        if not 0 < time_step < np.inf:
            raise InvalidNumber('argument time_step', time_step, 'a positive number [s]')
        mujoco = _imported_mujoco()
        chain = serial_chain(description_of_urdf(source), base_link=base_link, tip_link=tip_link)
        self._mujoco = mujoco
        self._model = _compiled_arm(mujoco, welded_urdf(source, chain))
        self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self._model.opt.timestep = time_step
        # Coulomb friction is a soft constraint in MuJoCo; by default it is so soft that it acts as
        # viscous friction on light links. This is as hard as the time step allows.
        self._model.dof_solref[:] = 2 * time_step, 1.0
        self._model.dof_solimp[:, :2] = _HARDEST
        self._model.opt.gravity = _vector('argument gravity', gravity, 3)
        self._data = mujoco.MjData(self._model)
        self.joint_names: tuple[str, ...] = tuple(joint.name for joint in chain.joints)
        joints = [self._model.joint(name) for name in self.joint_names]
        self._position_index = np.array([joint.qposadr[0] for joint in joints])
        self._velocity_index = np.array([joint.dofadr[0] for joint in joints])
        self.n = len(joints)
        self.reset(np.zeros(self.n) if initial_position is None else initial_position)

    def reset(self, position: ArrayLike) -> None:
        """Stand still at ``position`` (n,) [rad or m] held by the brakes, at time zero."""
        self._mujoco.mj_resetData(self._model, self._data)
        self._data.qpos[self._position_index] = _vector('position', position, self.n)
        self._mujoco.mj_forward(self._model, self._data)
        self.brakes_engaged = True

    def step(self, torque: ArrayLike) -> None:
        """
        Release the brakes and advance one time step under ``torque`` (n,) [N m or N].

        Raises
        ------
        WrongShape, NonFiniteValue
            The torque is not one finite number per joint; the arm has not moved.
        """
        self._data.qfrc_applied[self._velocity_index] = _vector('torque', torque, self.n)
        self.brakes_engaged = False
        self._mujoco.mj_step(self._model, self._data)

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
        return float(self._model.opt.timestep)

    @property
    def position(self) -> FloatArray:
        """Joint positions (n,) [rad or m]."""
        return self._data.qpos[self._position_index]

    @property
    def velocity(self) -> FloatArray:
        """Joint velocities (n,) [rad/s or m/s]."""
        return self._data.qvel[self._velocity_index]


def welded_urdf(source: str | Path, chain: Chain) -> str:
    """
    Return a URDF of the chain alone: its links, all joints but the chain's fixed, no geometry.

    Links without mass, and those that stand still with the base, have no ``<inertial>`` in it.

    Parameters
    ----------
    source : str or Path
        The URDF that ``chain`` was found in.
    chain : Chain
        Its ``link_transforms`` say which links belong to the arm, and where welded ones stand.
    """
    robot = copy.deepcopy(sanitized_urdf(source))
    moving = {joint.name for joint in chain.joints}
    placed = {name: t for body in chain.bodies for name, t in body.link_transforms.items()}
    standing = chain.bodies[0].link_transforms
    for element in list(robot):
        name = element.get('name')
        if element.tag == 'link':
            if name not in placed:
                robot.remove(element)
            elif name in standing or _massless(element):
                etree.strip_elements(element, 'inertial')
            continue
        parent = element.find('parent').get('link')
        child = element.find('child').get('link')
        if child not in placed or parent not in placed:
            robot.remove(element)
        elif name not in moving:
            if element.get('type') != 'fixed':
                _weld(element, inverse_transform(placed[parent]) @ placed[child])
        else:
            _name_axis(element)
    return etree.tostring(robot, encoding='unicode')


def _massless(link: Any) -> bool:
    return all(
        float(number) == 0
        for part in link.iterfind('inertial/*')
        if part.tag in ('mass', 'inertia')
        for number in part.attrib.values()
    )


def _weld(joint: Any, child_to_parent: FloatArray) -> None:
    """Make a movable joint a fixed one that holds its child link at the given place."""
    joint.set('type', 'fixed')
    for part in list(joint):
        if part.tag not in ('parent', 'child'):
            joint.remove(part)
    r = child_to_parent[:3, :3]
    rpy = (
        np.arctan2(r[2, 1], r[2, 2]),
        np.arctan2(-r[2, 0], np.hypot(r[0, 0], r[1, 0])),
        np.arctan2(r[1, 0], r[0, 0]),
    )
    etree.SubElement(joint, 'origin', xyz=_numbers(child_to_parent[:3, 3]), rpy=_numbers(rpy))


def _name_axis(joint: Any) -> None:
    """Write the axis that the URDF specification gives to a joint which names none."""
    if joint.find('axis') is None:
        etree.SubElement(joint, 'axis', xyz='1 0 0')


def _numbers(values: ArrayLike) -> str:
    return ' '.join(repr(float(value)) for value in np.asarray(values))


def _compiled_arm(mujoco: Any, urdf: str) -> Any:
    """Compile a URDF with every mass and inertia left as it is."""
    try:
        spec = mujoco.MjSpec.from_string(urdf)
        spec.compiler.fusestatic = True
        spec.compiler.balanceinertia = False
        spec.compiler.boundmass = 0
        spec.compiler.boundinertia = 0
        return spec.compile()
    except ValueError as error:
        raise CannotSimulate('robot', str(error), 'an arm that MuJoCo accepts') from error


def _imported_mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise MujocoMissing('mujoco', str(error), 'pip install mujoco') from error
    return mujoco


def _vector(element: str, values: ArrayLike, n: int) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if array.shape != (n,):
        raise WrongShape(element, array.shape, f'({n},)')
    if not np.all(np.isfinite(array)):
        raise NonFiniteValue(element, array.tolist(), 'finite numbers')
    return array
