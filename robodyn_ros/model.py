# SPDX-License-Identifier: Apache-2.0
"""The robot as immutable arrays, with friction and findings: the input of every formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from robodyn_ros.arguments import checked_array, checked_states, checked_type
from robodyn_ros.description.chain import (
    STANDARD_GRAVITY,
    Chain,
    MimicChoice,
    TipLinks,
    checked_chain,
    serial_chain,
)
from robodyn_ros.description.findings import chain_findings
from robodyn_ros.description.mjcf import InferredInertia
from robodyn_ros.description.records import Finding
from robodyn_ros.description.urdf import description_of_urdfpy
from robodyn_ros.dh.axes_to_dh import dh_table
from robodyn_ros.dh.frames import frame_transforms
from robodyn_ros.dh.table import DHTable
from robodyn_ros.errors import InvalidArgument, NoSuchName, Phrase
from robodyn_ros.payload import Payload, payload_parameters
from robodyn_ros.record import Record, Rows, Table
from robodyn_ros.spatial import (
    FloatArray,
    inertial_parameters,
    inverse_transform,
    moved_parameters,
)

__all__ = ['STANDARD_GRAVITY', 'Payload', 'RobotModel']

# Five times the Earth's: more is a mistake of units or of sign conventions [m/s²].
STRONGEST_GRAVITY = 50.0

_FARTHEST_TURN = 2.0 * np.pi  # beyond its limits a revolute joint has turned once more [rad]
_FARTHEST_TRAVEL = 10.0  # beyond its limits a prismatic joint is, in parts of the range

_JOINT_HEADER = ('joint', 'type', 'positions', 'velocity limit', 'effort limit', 'mass moved')
_A_MODEL = "a RobotModel, as RobotModel.from_urdf('arm.urdf')"
_A_PAYLOAD = 'a Payload, as Payload(1.8, center_of_mass=(0, 0, 0.1))'


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel(Record):
    """
    A serial arm, or a tree of bodies: DH table, ten inertial parameters a link, limits, friction.

    Attributes
    ----------
    joint_names : tuple of n str
        In the order of all arrays: base to tip; of a tree depth first, in the order of the tips.
    dh : DHTable
        Modified; ``dh.standard()`` gives the other convention.
    inertial_parameters : array, shape (n, 10)
        XX XY XZ YY YZ ZZ [kg m²], mX mY mZ [kg m], m [kg] of the body that moves with joint i,
        about the origin of DH frame i, along its axes.
    rotor_inertia : array, shape (n,) [kg m², or kg for a prismatic joint]
        Reflected to the joint; zero unless given, or an MJCF's armature.
    viscous_friction : array, shape (n,) [N m s/rad or N s/m]
    coulomb_friction : array, shape (n,) [N m or N]
    effort_limits : array, shape (n,) [N m or N]
        Infinite where the description has none.
    velocity_limits : array, shape (n,) [rad/s or m/s]
    position_limits : array, shape (n, 2) [rad or m]
        Lower and upper; infinite where there is none.
    gravity : array, shape (3,) [m/s²]
        In the base link's axes.
    findings : tuple of Finding
        What the checker noticed; nothing of it was repaired.
    base_link : str
    tip_links : tuple of k str
        One of a chain; see ``tip_link``.
    link_frames : mapping of link name to (body, transform)
        For every link of the arm: the index of the joint it moves with, -1 for those that stand
        still, and the transform (4, 4) from its frame to DH frame ``body`` or to the base link's.
    effort_offset : array, shape (n,) [N m or N]
        Constant part of what a moving joint's drive has to do; zero unless identified.
    friction_curve : array, shape (n, 2) [N m or N]
        Friction that saturates at 0.1 and at 0.4 rad/s or m/s; zero unless identified.
    load_friction : array, shape (n,)
        Coulomb friction for each N m or N of the rigid body's torque; zero unless identified.
    coupling : array, shape (m, n)
        Velocity of each coupled drive for a unit velocity of each joint: a drive that turns with
        joints 5 and 6 has ones there. It loads its joints by the same numbers. None unless given.
    coupled_rotor_inertia : array, shape (m,) [kg m² or kg]
    coupled_friction : array, shape (m, 4) [N m s/rad, N m; or N s/m, N]
        Viscous, Coulomb and the two of a curve, of the coupled drives.
    name : str
        The robot's, as its description has it.
    unmodelled_joints : tuple of str
        Movable joints of the robot that move nothing of the model, as those of another arm: a
        trajectory may name them, and they are left to whoever moves them.
    """

    joint_names: tuple[str, ...]
    dh: DHTable
    inertial_parameters: FloatArray
    rotor_inertia: FloatArray
    viscous_friction: FloatArray
    coulomb_friction: FloatArray
    effort_limits: FloatArray
    velocity_limits: FloatArray
    position_limits: FloatArray
    gravity: FloatArray
    findings: tuple[Finding, ...]
    base_link: str
    tip_links: tuple[str, ...]
    link_frames: Mapping[str, tuple[int, FloatArray]]
    effort_offset: FloatArray = field(default_factory=lambda: np.zeros(0))
    friction_curve: FloatArray = field(default_factory=lambda: np.zeros((0, 2)))
    load_friction: FloatArray = field(default_factory=lambda: np.zeros(0))
    coupling: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    coupled_rotor_inertia: FloatArray = field(default_factory=lambda: np.zeros(0))
    coupled_friction: FloatArray = field(default_factory=lambda: np.zeros((0, 4)))
    name: str = ''
    unmodelled_joints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ('effort_offset', 'friction_curve', 'load_friction'):
            given = getattr(self, name)
            if not len(given):
                shape = (self.n, 2) if name == 'friction_curve' else (self.n,)
                object.__setattr__(self, name, np.zeros(shape))
        if not len(self.coupling):
            object.__setattr__(self, 'coupling', np.zeros((0, self.n)))
        m = len(self.coupling)
        for name, shape in (('coupled_rotor_inertia', (m,)), ('coupled_friction', (m, 4))):
            given = getattr(self, name)
            if not len(given):
                object.__setattr__(self, name, np.zeros(shape))
            elif given.shape != shape:
                raise InvalidArgument(f'model.{name}', given.tolist(), f'shape {shape}')
        object.__setattr__(self, 'findings', Rows(self.findings))
        super().__post_init__()

    def _tables(self) -> Iterable[Table]:
        yield Table(_JOINT_HEADER, map(self._joint_row, range(self.n)), repr(self))
        if self.findings:
            yield from Rows(self.findings).tables()

    def _joint_row(self, j: int) -> list[str]:
        slides = bool(self.dh.prismatic[j])
        position, force = position_unit(slides), force_unit(slides)
        lower, upper = self.position_limits[j]
        bounded = bool(np.isfinite([lower, upper]).any())
        return [
            self.joint_names[j],
            'prismatic' if slides else 'revolute' if bounded else 'continuous',
            f'{lower:.4g} to {upper:.4g} {position}' if bounded else '',
            _with_unit(self.velocity_limits[j], f'{position}/s'),
            _with_unit(self.effort_limits[j], force),
            _with_unit(self.inertial_parameters[j, 9], 'kg'),
        ]

    def __repr__(self) -> str:
        mass = self.inertial_parameters[:, 9].sum()
        base, *tips = (ascii(link)[1:-1] for link in (self.base_link, *self.tip_links))
        ends = f'{base} → {", ".join(tips)}'
        warnings = sum(finding.level == 'warning' for finding in self.findings)
        counted = f', {warnings} warning{"s" * (warnings > 1)}' if warnings else ''
        what = f'{self.dh.structure}, {mass:.{1 if mass >= 1 else 3}f} kg'
        return f'RobotModel {self.name!r}: {what}, {ends}{counted}'

    @cached_property
    def has_identified_friction(self) -> bool:
        """Whether friction has more than a URDF's viscous and Coulomb terms."""
        more = (self.friction_curve, self.effort_offset, self.load_friction, self.coupled_friction)
        return any(bool(term.any()) for term in more)

    @cached_property
    def rotor_matrix(self) -> FloatArray:
        """What the rotors add to the mass matrix (n, n), the coupled drives' too."""
        coupled = (self.coupling.T * self.coupled_rotor_inertia) @ self.coupling
        return np.diag(self.rotor_inertia) + coupled

    @cached_property
    def dry_friction(self) -> FloatArray:
        """Coulomb friction (n,) of each joint that moves alone, its coupled drives' included."""
        return self.coulomb_friction + np.abs(self.coupling.T) @ self.coupled_friction[:, 1]

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        gravity: ArrayLike | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> RobotModel:
        """
        Return the model of the arm between two links of a URDF, or of a tree to several tips.

        Parameters
        ----------
        source : str or Path
            A path, or XML text: a str whose first character after white space or a byte order
            mark is ``<``. What a topic carries goes to ``from_urdf_text``, which opens no file.
            A str may also name a robot of the package robot_descriptions, as
            ``'panda_description'``, where that is installed and no file has this name; the
            package fetches it by git when it is named first.
        base_link : str, optional
            The link that stands still; the root link where not given.
        tip_link : str or sequence of str, optional
            The link at the end, or those of a tree; where not given, that of the only arm (see
            ``findings`` where one of several was chosen).
        gravity : array-like, shape (3,), optional
            [m/s²], in the base link's axes; where not given, 9.81 m/s² down the z axis of the root
            link, so that the fixed joints above the base link count (see ``findings``).
        locked_positions : mapping of joint name to position, optional
            [rad or m], where joints off the chain are held; zero where not given.
        mimic : 'error' or 'independent'
            Whether a mimic joint on the chain is refused or moves as any other.

        Raises
        ------
        UnreadableSource, MalformedUrdf
            The source is no sound URDF.
        NoSuchName, NoChain, InvalidArgument
            There is no such arm in it.
        UnsupportedJoint
            A floating, planar or mimic joint on the chain.
        """
        chain = Chain.from_urdf(source, base_link, tip_link, locked_positions, mimic)
        return cls.from_chain(chain, gravity=gravity)

    @classmethod
    def from_urdf_text(
        cls,
        text: str,
        *,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        gravity: ArrayLike | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> RobotModel:
        """
        Return the model of an arm in a URDF that is given as text, as a topic carries it.

        No file is opened and no macro expanded, whatever the text says.

        Parameters
        ----------
        text : str
            XML: its first character after white space or a byte order mark is ``<``.
        base_link, tip_link, gravity, locked_positions, mimic
            As in ``from_urdf``.

        Raises
        ------
        MalformedUrdf
            The text does not begin with ``<``, or is not well-formed; else as ``from_urdf``.
        """
        chain = Chain.from_urdf_text(text, base_link, tip_link, locked_positions, mimic)
        return cls.from_chain(chain, gravity=gravity)

    @classmethod
    def from_urdfpy(
        cls,
        robot: Any,
        *,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        gravity: ArrayLike | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
    ) -> RobotModel:
        """
        Return the model of an arm in a ``urdfpy.URDF`` or ``urchin.URDF`` object.

        Those libraries invent 1 kg for links without inertials; see ``findings``. Errors are
        those of ``from_urdf``.

        Parameters
        ----------
        robot : urdfpy.URDF or urchin.URDF
        base_link, tip_link, gravity, locked_positions, mimic
            As in ``from_urdf``.
        """
        chain = serial_chain(
            description_of_urdfpy(robot), base_link, tip_link, locked_positions, mimic
        )
        return cls.from_chain(chain, gravity=gravity)

    @classmethod
    def from_mjcf(
        cls,
        path: str | Path,
        *,
        base_link: str | None = None,
        tip_link: TipLinks = None,
        gravity: ArrayLike | None = None,
        locked_positions: Mapping[str, float] | None = None,
        mimic: MimicChoice = 'error',
        inferred_inertia: InferredInertia = 'finding',
    ) -> RobotModel:
        """
        Return the model of the arm between two links of an MJCF, as MuJoCo compiles it.

        Armature is rotor inertia, frictionloss Coulomb friction. What acts on the arm in MuJoCo
        and is not in the model (springs, tendons, gravcomp) is in ``findings``. Links, frames and
        position zero are those of ``robodyn_ros.description.mjcf.description_of_mjcf``.

        Parameters
        ----------
        path : str or Path
        base_link : str, optional
            ``'world'`` where not given.
        tip_link, gravity, locked_positions, mimic
            As in ``from_urdf``; a joint that an equality ties to another one mimics it.
        inferred_inertia : 'finding' or 'error'
            Whether a link that moves, and whose mass MuJoCo takes from the shapes, is a finding or
            refused.

        Raises
        ------
        NoBackend
            MuJoCo cannot be imported.
        UnreadableSource, MalformedUrdf
            No such file, or none that MuJoCo compiles; or a mass is inferred, where refused.
        NoSuchName, NoChain, InvalidArgument, UnsupportedJoint
            As ``from_urdf``.
        """
        chain = Chain.from_mjcf(
            path, base_link, tip_link, locked_positions, mimic, inferred_inertia
        )
        return cls.from_chain(chain, gravity=gravity)

    @classmethod
    def from_chain(cls, chain: Chain, *, gravity: ArrayLike | None = None) -> RobotModel:
        """
        Return the model of a chain, which several things can be made of from one reading.

        Parameters
        ----------
        chain : Chain
        gravity : array-like, shape (3,), optional
            [m/s²], in the base link's axes; the chain's where not given.

        Raises
        ------
        InvalidArgument, NonFiniteValue
            Of gravity.
        """
        checked_chain(chain)
        # Everything at position zero, in the base link's frame.
        first_links = [np.eye(4)]
        for parent, step in zip(chain.parents, chain.joint_transforms, strict=True):
            first_links.append(first_links[parent + 1] @ step)
        tips = [
            first_links[i + 1] @ placed
            for i, placed in zip(chain.tips, chain.tip_transforms, strict=True)
        ]
        dh = dh_table(
            first_links[1:],
            [joint.axis for joint in chain.joints],
            [joint.kind == 'prismatic' for joint in chain.joints],
            tips,
            chain.parents,
            chain.tips,
        )
        dh_frames = frame_transforms(dh, np.zeros(dh.n))
        link_frames: dict[str, tuple[int, FloatArray]] = {}
        inertias = np.zeros((dh.n, 10))
        for i, body in enumerate(chain.bodies, start=-1):
            to_frame = np.eye(4) if i < 0 else inverse_transform(dh_frames[i]) @ first_links[i + 1]
            for name, link_transform in body.link_transforms.items():
                placed = to_frame @ link_transform
                link_frames[name] = (i, placed)
                inertial = chain.description.links[name].inertial
                if i >= 0 and inertial is not None:
                    about_link = inertial_parameters(
                        inertial.mass, inertial.center_of_mass, inertial.inertia
                    )
                    inertias[i] += moved_parameters(about_link, placed)
        return cls(
            joint_names=chain.joint_names,
            dh=dh,
            inertial_parameters=inertias,
            rotor_inertia=_of_joints(chain, 'rotor_inertia'),
            viscous_friction=_of_joints(chain, 'damping'),
            coulomb_friction=_of_joints(chain, 'friction'),
            effort_limits=_of_limits(chain, 'effort'),
            velocity_limits=_of_limits(chain, 'velocity'),
            position_limits=np.stack([_of_limits(chain, 'lower'), _of_limits(chain, 'upper')], 1),
            gravity=(
                chain.gravity if gravity is None else checked_array('gravity', gravity, (3,))
            ),
            findings=chain_findings(chain),
            base_link=chain.base_link,
            tip_links=chain.tip_links,
            link_frames=link_frames,
            name=chain.description.name,
            unmodelled_joints=chain.unmodelled_joints,
        )

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def parents(self) -> NDArray[np.int_]:
        """Index of the joint before each one, (n,); -1 at the base."""
        return self.dh.parents

    @property
    def ends(self) -> str:
        """Base and tips, as messages name the arm."""
        return f'{self.base_link!r} to {", ".join(map(repr, self.tip_links))}'

    @property
    def tip_link(self) -> str:
        """
        The only tip link.

        Raises
        ------
        InvalidArgument
            There are several: the message lists them. ``with_tip`` chooses one.
        """
        if len(self.tip_links) > 1:
            tips = ', '.join(map(repr, self.tip_links))
            raise InvalidArgument('tip link', Phrase('not given'), f'one of {tips}')
        return self.tip_links[0]

    @property
    def possible_positions(self) -> FloatArray:
        """Lower and upper position (n, 2) that each joint can have; see ``possible_range``."""
        return possible_range(self.position_limits, self.dh.prismatic)

    @property
    def possible_payload(self) -> tuple[float, float]:
        """
        Largest mass [kg] and size [m] of a payload; more is a mistake of units.

        Its size is a radius of gyration, or how far the centre of mass is from the link. At least
        100 kg and 1 m; ten times what moves, and all links of the DH table in a line.
        """
        moving = float(self.inertial_parameters[:, 9].sum())
        dh = self.dh
        reach = float((dh.carries @ (np.abs(dh.a) + np.abs(dh.d) + np.abs(dh.b))).max())
        return max(100.0, 10.0 * moving), max(1.0, reach)

    def with_tip(self, link: str) -> RobotModel:
        """
        Return the same joints and bodies with one tip, which is meant where no link is named.

        What knows one tip works on a tree then: a payload that is estimated, a target of the tip.

        Parameters
        ----------
        link : str
            Any of ``link_frames`` that a joint moves.

        Returns
        -------
        RobotModel

        Raises
        ------
        NoSuchName
            There is no such link, or it stands still.
        """
        body, placed = frame_of_link(self, 'tip link', link)
        if body < 0:
            raise NoSuchName('tip link', link, 'one that a joint moves')
        if link in self.tip_links:
            placed = self.dh.tip_transforms[self.tip_links.index(link)]
        dh = replace(self.dh, tip_transform=placed, tips=np.array([body]))
        return replace(self, tip_links=(link,), dh=dh)

    def with_payload(self, payload: Payload) -> RobotModel:
        """
        Return the model with a body fixed to one of its links; payloads add up.

        Parameters
        ----------
        payload : Payload

        Returns
        -------
        RobotModel

        Raises
        ------
        WrongType
            It is no Payload.
        NoSuchName
            The payload's link is not one of the arm's.
        """
        checked_type('payload', payload, Payload, _A_PAYLOAD)
        link = self.tip_link if payload.link is None else payload.link
        body, placed = frame_of_link(self, 'payload link', link)
        about_link = payload_parameters(payload)
        inertias = self.inertial_parameters.copy()
        if body >= 0:
            inertias[body] += moved_parameters(about_link, placed)
        return replace(self, inertial_parameters=inertias)

    def with_gravity(self, gravity: ArrayLike) -> RobotModel:
        """
        Return the model under another gravity.

        Parameters
        ----------
        gravity : array-like, shape (3,)
            [m/s²], in the base link's axes.

        Returns
        -------
        RobotModel

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        return replace(self, gravity=checked_array('gravity', gravity, (3,)))

    def with_inertial_parameters(self, parameters: ArrayLike) -> RobotModel:
        """
        Return the model with other inertial parameters.

        Parameters
        ----------
        parameters : array-like, shape (n, 10)
            As the attribute ``inertial_parameters``. They need not be those of bodies.

        Returns
        -------
        RobotModel

        Raises
        ------
        InvalidArgument, NonFiniteValue
        """
        checked = checked_array('parameters', parameters, (self.n, 10))
        return replace(self, inertial_parameters=checked)

    def with_rotor_inertia(self, rotor_inertia: ArrayLike) -> RobotModel:
        """
        Return the model with other rotor inertias.

        Parameters
        ----------
        rotor_inertia : array-like, shape (n,)
            Reflected to the joints [kg m², or kg for a prismatic joint].

        Returns
        -------
        RobotModel

        Raises
        ------
        NonFiniteValue, InvalidArgument
            They are not n, or one is negative.
        """
        checked = checked_array('rotor_inertia', rotor_inertia, (self.n,))
        for name, value, slides in zip(
            self.joint_names, checked.tolist(), self.dh.prismatic, strict=True
        ):
            if value < 0:
                unit = 'kg' if slides else 'kg m²'
                raise InvalidArgument(
                    f'rotor inertia of joint {name!r}', value, 'zero or more', unit=unit
                )
        return replace(self, rotor_inertia=checked)


def frame_of_link(model: RobotModel, element: str, link: str) -> tuple[int, FloatArray]:
    """
    Return an entry of ``model.link_frames``.

    Raises
    ------
    NoSuchName
        The message begins with ``element`` and lists those that there are.
    """
    if not isinstance(link, str) or link not in model.link_frames:
        known = ', '.join(map(repr, model.link_frames))
        raise NoSuchName(element, link, f'one of {known}')
    return model.link_frames[link]


def position_unit(prismatic: bool) -> str:
    """Return the unit of a joint position."""
    return 'm' if prismatic else 'rad'


def force_unit(prismatic: bool) -> str:
    """Return the unit of a joint's torque or force."""
    return 'N' if prismatic else 'N m'


def possible_range(position_limits: FloatArray, prismatic: np.ndarray) -> FloatArray:
    """
    Return the lower and upper position, shape (n, 2), that joints can have at all.

    A joint may rest a little beyond its limits, and one of several turns may be counted from
    another turn. What is further away was meant in degrees or millimetres. A joint without limits,
    or whose limits leave no room, may be anywhere.

    Parameters
    ----------
    position_limits : array, shape (n, 2)
        [rad] or [m]; infinite where there is none.
    prismatic : array of bool, shape (n,)
    """
    lower, upper = np.asarray(position_limits, dtype=float).T
    with np.errstate(invalid='ignore', over='ignore'):
        margin = np.where(prismatic, _FARTHEST_TRAVEL * (upper - lower), _FARTHEST_TURN)
        has_room = lower < upper
        lowest = np.where(has_room, lower - margin, -np.inf)
        highest = np.where(has_room, upper + margin, np.inf)
    return np.stack([lowest, highest], axis=1)


def checked_model(model: RobotModel) -> RobotModel:
    """
    Return the argument ``model``.

    Raises
    ------
    WrongType
        It is none: a path, or arguments in each other's place.
    """
    return checked_type('model', model, RobotModel, _A_MODEL)


def model_states(model: RobotModel, **arrays: ArrayLike) -> list[FloatArray]:
    """
    Return arrays (n,) or (N, n) of a model's joints, all of one shape.

    Raises
    ------
    WrongType, InvalidArgument, NonFiniteValue
        Naming the argument.
    """
    return checked_states(checked_model(model).n, **arrays)


def _with_unit(value: float, unit: str) -> str:
    return f'{value:.4g} {unit}' if np.isfinite(value) else ''


def _of_joints(chain: Chain, name: str) -> FloatArray:
    return np.array([getattr(joint, name) for joint in chain.joints], dtype=float)


def _of_limits(chain: Chain, name: str) -> FloatArray:
    return np.array([getattr(joint.limit, name) for joint in chain.joints], dtype=float)
