# SPDX-License-Identifier: Apache-2.0
"""
MJCF -> records, through MuJoCo's own compiler: defaults, units and frames are as MuJoCo has them.

MuJoCo is optional: ``pip install mujoco``. What the compiler is given comes from
``mjcf_source.py``; ``writing.py`` is the way back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from robodyn_ros.description.mjcf_source import mjcf_source
from robodyn_ros.description.records import (
    Finding,
    Inertial,
    Joint,
    JointLimit,
    Level,
    Link,
    Mimic,
    RobotDescription,
    checked_number,
    inertial,
    robot_description,
    unit_axis,
)
from robodyn_ros.description.source import plain_bytes, user_path
from robodyn_ros.description.xml import parsed_xml
from robodyn_ros.errors import InvalidArgument, MalformedUrdf, NoBackend, Phrase
from robodyn_ros.spatial import FloatArray, rotation_about, transform

InferredInertia = Literal['finding', 'error']
INFERRED_INERTIA_CHOICES: tuple[InferredInertia, ...] = get_args(InferredInertia)

WORLD = 'world'
"""The link that stands still in every MJCF; no other may have this name."""

UNBOUNDED = 1e9
"""[rad or m] MuJoCo's ranges are finite: this, or more, stands for no bound."""

MJCF_SUFFIXES = ('.mjcf', '.xml')


def imported_mujoco() -> Any:
    """Return the module; NoBackend where it cannot be imported."""
    try:
        import mujoco
    except ImportError as error:
        raise NoBackend('mujoco', Phrase(str(error)), 'pip install mujoco') from error
    return mujoco


def is_mjcf(source: str | Path) -> bool:
    """
    Return whether a source is a file with a name and a root element that an MJCF has.

    Raises
    ------
    UnreadableSource, MalformedUrdf
        It has such a name, and is no file, too large or no XML.
    """
    if str(source).lstrip().startswith('<') or Path(source).suffix not in MJCF_SUFFIXES:
        return False
    return bool(parsed_xml(plain_bytes(user_path(source)))[0].tag == 'mujoco')


def description_of_mjcf(
    path: str | Path, *, inferred_inertia: InferredInertia = 'finding'
) -> RobotDescription:
    """
    Return the links and joints of an MJCF that the caller names.

    Each body is a link, ``'world'`` the root. A link's frame has the axes of its body, and its
    origin at the anchor (``pos``) of the body's last joint. Of several joints in one body, all but
    the last one move a link of their own, which has no mass. Position zero is MuJoCo's qpos = 0,
    whatever ``ref`` is. Ball and free joints are ``'floating'``. What has no name gets one, as
    ``'body3'``.

    Damping and armature are those of the joint and of the actuators on it, frictionloss is Coulomb
    friction. The effort limit is that of the actuators together, at most the joint's own
    (``actuatorfrcrange``); of two unequal bounds the nearer to zero. MJCF has no velocity limits.

    Parameters
    ----------
    path : str or Path
        It may include other files, and take masses from meshes: in its folder, or below it.
    inferred_inertia : 'finding' or 'error'
        Whether a link that moves, and whose mass MuJoCo takes from the shapes, is a finding or
        refused.

    Raises
    ------
    NoBackend
        MuJoCo cannot be imported, or is older than its ``MjSpec``.
    UnreadableSource, MalformedUrdf
        Of its files: see ``mjcf_source``. MuJoCo does not compile it, a number is not finite, or a
        mass was inferred, where that is refused.
    InvalidArgument
        No such choice of ``inferred_inertia``.
    """
    if inferred_inertia not in INFERRED_INERTIA_CHOICES:
        allowed = ', '.join(map(repr, INFERRED_INERTIA_CHOICES))
        raise InvalidArgument('argument inferred_inertia', inferred_inertia, allowed)
    mujoco = imported_mujoco()
    if not hasattr(mujoco, 'MjSpec'):
        raise NoBackend('mujoco', mujoco.__version__, 'one with MjSpec: pip install -U mujoco')
    spec, model = _compiled(mujoco, user_path(path))
    reading = _Reading(mujoco, spec, model)
    inferred = reading.inferred_links
    if inferred and inferred_inertia == 'error':
        raise MalformedUrdf(
            f'link {inferred[0]!r} mass',
            Phrase('none: MuJoCo infers it from the shapes'),
            'an <inertial>',
            choice=('inferred_inertia', 'finding'),
        )
    return robot_description(
        reading.links(), reading.joints(), tuple(reading.findings()), spec.modelname
    )


def _compiled(mujoco: Any, file: Path) -> tuple[Any, Any]:
    """Return MuJoCo's specification of a file and its model, static links not fused."""
    source = mjcf_source(file)
    try:
        spec = mujoco.MjSpec.from_string(source.text, assets=source.meshes)
        spec.compiler.fusestatic = False
        return spec, spec.compile()
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        said = ' '.join(str(error).split()).removeprefix('Error: ')
        # Of the text that MuJoCo was given, which is not the file's.
        said = re.sub(r',? line \d+$', '', said)
        raise MalformedUrdf(
            f'file {str(file)!r}', Phrase(said), 'an MJCF that MuJoCo compiles'
        ) from error


# --- MuJoCo's model to records -------------------------------------------------------------------


class _Reading:
    """The records of one model, and what was noticed."""

    def __init__(self, mujoco: Any, spec: Any, model: Any) -> None:
        self._mujoco, self._spec, self._model = mujoco, spec, model
        kinds = mujoco.mjtJoint
        self._free, self._ball = int(kinds.mjJNT_FREE), int(kinds.mjJNT_BALL)
        self._slide = int(kinds.mjJNT_SLIDE)
        taken: set[str] = {model.body(i).name for i in range(model.nbody)}
        self._bodies = [
            model.body(i).name or _unused(f'body{i}', taken) for i in range(model.nbody)
        ]
        names = {model.joint(j).name for j in range(model.njnt)}
        self._names = [
            model.joint(j).name or _unused(f'joint{j}', names) for j in range(model.njnt)
        ]
        # The link that each joint moves: the last one of a body moves the body.
        self._children = [
            self._bodies[body]
            if j + 1 == model.njnt or model.jnt_bodyid[j + 1] != body
            else _unused(f'{self._bodies[body]}_{self._names[j]}', taken)
            for j, body in enumerate(model.jnt_bodyid.tolist())
        ]
        self._fixed = [
            '' if model.body_jntnum[i] else _unused(f'{self._bodies[i]}_joint', names)
            for i in range(model.nbody)
        ]
        self._actuators = [
            (a, j)
            for a in range(len(model.actuator_trntype))
            if (j := self._joint_of_actuator(a)) is not None
        ]

    # --- links -----------------------------------------------------------------------------------

    @property
    def inferred_links(self) -> list[str]:
        """Names of the links that move and whose mass comes from shapes."""
        choices = self._mujoco.mjtInertiaFromGeom
        found = []
        for body in self._spec.bodies:
            i = body.id
            choice = getattr(body, 'compiler', self._spec.compiler).inertiafromgeom
            inferred = choice == choices.mjINERTIAFROMGEOM_TRUE or (
                choice == choices.mjINERTIAFROMGEOM_AUTO and not body.explicitinertial
            )
            if inferred and self._moves(i) and self._model.body_mass[i] > 0:
                found.append(self._bodies[i])
        return found

    def _moves(self, i: int) -> bool:
        return bool(self._model.body_weldid[i] != 0)

    def links(self) -> Iterator[Link]:
        model, children = self._model, iter(self._children)
        for i, name in enumerate(self._bodies):
            for _ in range(int(model.body_jntnum[i]) - 1):
                yield Link(next(children), within_body=True)
            if model.body_jntnum[i]:
                next(children)
            yield Link(name, self._inertial(i))

    def _inertial(self, i: int) -> Inertial | None:
        model = self._model
        if not (model.body_mass[i] or model.body_inertia[i].any()):
            return None
        return inertial(
            f'link {self._bodies[i]!r}',
            float(model.body_mass[i]),
            self._rotation(model.body_iquat[i]),
            model.body_ipos[i] - self._anchor(i),
            np.diag(model.body_inertia[i]),
        )

    def _rotation(self, quaternion: FloatArray) -> FloatArray:
        matrix = np.zeros(9)
        self._mujoco.mju_quat2Mat(matrix, quaternion)
        return matrix.reshape(3, 3)

    def _anchor(self, i: int) -> FloatArray:
        """Return where the link's frame is in the body's: the anchor of its last joint."""
        model = self._model
        if not model.body_jntnum[i]:
            return np.zeros(3)
        return model.jnt_pos[model.body_jntadr[i] + model.body_jntnum[i] - 1]

    # --- joints ----------------------------------------------------------------------------------

    def joints(self) -> Iterator[Joint]:
        model, mimics = self._model, dict(self._mimics())
        for i in range(1, model.nbody):
            parent = int(model.body_parentid[i])
            link = self._bodies[parent]
            # The body's frame, while the joints before this one are at zero.
            body = transform(
                self._rotation(model.body_quat[i]), model.body_pos[i] - self._anchor(parent)
            )
            if not model.body_jntnum[i]:
                yield _fixed_joint(self._fixed[i], link, self._bodies[i], body)
            first = int(model.body_jntadr[i])
            for j in range(first, first + int(model.body_jntnum[i])):
                anchor = transform(translation=model.jnt_pos[j])
                at_reference = body @ anchor
                origin = at_reference @ self._to_zero(j)
                yield self._joint(j, link, origin, mimics.get(j))
                link = self._children[j]
                body = self._to_zero_in_link(j)

    def _to_zero_in_link(self, j: int) -> FloatArray:
        """Return the body's frame in that of the link that joint j moves."""
        return transform(translation=-self._model.jnt_pos[j])

    def _to_zero(self, j: int) -> FloatArray:
        """Return the motion of a joint from its reference, where frames are given, to zero."""
        model = self._model
        kind = model.jnt_type[j]
        if kind in (self._free, self._ball):
            return np.eye(4)
        axis, reference = model.jnt_axis[j], self._reference(j)
        if kind == self._slide:
            return transform(translation=-reference * axis)
        return transform(rotation_about(axis, -reference))

    def _reference(self, j: int) -> float:
        reference = float(self._model.qpos0[self._model.jnt_qposadr[j]])
        return checked_number(f'joint {self._names[j]!r} ref', reference)

    def _joint(self, j: int, parent: str, origin: FloatArray, mimic: Mimic | None) -> Joint:
        model = self._model
        name, child = self._names[j], self._children[j]
        if model.jnt_type[j] in (self._free, self._ball):
            axis = np.array([1.0, 0.0, 0.0])
            return Joint(name, 'floating', parent, child, origin, axis)
        axis, _ = unit_axis(f'joint {name!r} axis', model.jnt_axis[j])
        slides = model.jnt_type[j] == self._slide
        lower, upper = -math.inf, math.inf
        if model.jnt_limited[j]:
            lower, upper = (
                math.copysign(math.inf, bound)
                if abs(bound) >= UNBOUNDED
                else checked_number(f'joint {name!r} range', bound)
                for bound in model.jnt_range[j].tolist()
            )
        bounded = math.isfinite(lower) or math.isfinite(upper)
        dof, effort = int(model.jnt_dofadr[j]), _within(*self._effort_range(j))
        if math.isnan(effort):
            raise MalformedUrdf(f'joint {name!r} effort limit', effort, 'a number')
        return Joint(
            name=name,
            kind='prismatic' if slides else 'revolute' if bounded else 'continuous',
            parent=parent,
            child=child,
            origin=origin,
            axis=axis,
            limit=JointLimit(lower, upper, effort=effort),
            damping=checked_number(
                f'joint {name!r} damping',
                float(model.dof_damping[dof]) + self._of_actuators(j, 'actuator_damping'),
            ),
            friction=checked_number(
                f'joint {name!r} frictionloss', float(model.dof_frictionloss[dof])
            ),
            mimic=mimic,
            rotor_inertia=self._armature(j),
        )

    def _armature(self, j: int) -> float:
        """Return the inertia of a joint's rotors [kg m² or kg]."""
        element = f'joint {self._names[j]!r} armature'
        own = float(self._model.dof_armature[int(self._model.jnt_dofadr[j])])
        armature = checked_number(element, own + self._of_actuators(j, 'actuator_armature'))
        if armature < 0.0:
            raise MalformedUrdf(element, armature, 'zero or more')
        return armature

    # --- actuators -------------------------------------------------------------------------------

    def _joint_of_actuator(self, a: int) -> int | None:
        """Return the joint that turns or slides and that an actuator acts on; None for others."""
        model, kinds = self._model, self._mujoco.mjtTrn
        on_joints = (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT))
        if int(model.actuator_trntype[a]) not in on_joints:
            return None
        j = int(model.actuator_trnid[a, 0])
        return None if model.jnt_type[j] in (self._free, self._ball) else j

    def _of_actuators(self, j: int, name: str) -> float:
        """Return what the actuators on a joint add to it, reflected by their gear squared."""
        model = self._model
        values = getattr(model, name, np.zeros(len(model.actuator_trntype)))  # MuJoCo 4
        return float(
            sum(model.actuator_gear[a, 0] ** 2 * values[a] for a, at in self._actuators if at == j)
        )

    def _gain(self, a: int) -> float | None:
        """Return the force for one unit of control of a plain motor; None for other actuators."""
        model, mujoco = self._model, self._mujoco
        plain = (
            model.actuator_gaintype[a] == mujoco.mjtGain.mjGAIN_FIXED
            and model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_NONE
            and model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE
        )
        return float(model.actuator_gainprm[a, 0]) if plain else None

    def _effort_range(self, j: int) -> tuple[float, float]:
        """Return the least and the greatest effort in a joint; infinite where nothing bounds."""
        model = self._model
        lower, upper = [], []
        for a, at in self._actuators:
            if at != j:
                continue
            low, high = -math.inf, math.inf
            if model.actuator_forcelimited[a]:
                low, high = model.actuator_forcerange[a].tolist()
            gain = self._gain(a)
            control = int(model.actuator_ctrladr[a]) if hasattr(model, 'actuator_ctrladr') else a
            if gain is not None and model.actuator_ctrllimited[control]:
                ends = sorted(gain * end for end in model.actuator_ctrlrange[control].tolist())
                low, high = max(low, ends[0]), min(high, ends[1])
            gear = float(model.actuator_gear[a, 0])
            ends = sorted([gear * low, gear * high]) if gear else [0.0, 0.0]
            lower.append(ends[0])
            upper.append(ends[1])
        low, high = (sum(lower), sum(upper)) if lower else (-math.inf, math.inf)
        if model.jnt_actfrclimited[j]:
            own = model.jnt_actfrcrange[j].tolist()
            low, high = max(low, own[0]), min(high, own[1])
        return low, high

    # --- what couples joints ---------------------------------------------------------------------

    def _mimics(self) -> Iterator[tuple[int, Mimic]]:
        """Yield follower and rule of each equality of two joints that is a line; the first one."""
        seen = set()
        for e, follower, leader in self._joint_equalities():
            if follower in seen or not self._is_line(e, leader):
                continue
            seen.add(follower)
            constant, slope = self._model.eq_data[e, :2].tolist()
            # MuJoCo's polynomial is of the ways from the references.
            offset = self._reference(follower) + constant - slope * self._reference(leader)
            yield follower, Mimic(self._names[leader], slope, offset)

    def _joint_equalities(self) -> Iterator[tuple[int, int, int]]:
        model = self._model
        for e in range(model.neq):
            if model.eq_active0[e] and model.eq_type[e] == self._mujoco.mjtEq.mjEQ_JOINT:
                yield e, int(model.eq_obj1id[e]), int(model.eq_obj2id[e])

    def _is_line(self, e: int, leader: int) -> bool:
        return leader >= 0 and not self._model.eq_data[e, 2:5].any()

    # --- findings --------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        yield from self._option_findings()
        for i, name in enumerate(self._bodies):
            factor = float(self._model.body_gravcomp[i])
            if factor:
                yield _finding(
                    'gravcomp',
                    f'link {name!r}',
                    factor,
                    f'has gravcomp {factor:g}: MuJoCo carries that part of its weight, the model '
                    'does not',
                )
        for name in self.inferred_links:
            mass = float(self._model.body_mass[self._bodies.index(name)])
            yield _finding(
                'inferred_inertia',
                f'link {name!r}',
                mass,
                f'has no <inertial>: {mass:g} kg and its inertia are inferred from the shapes, of '
                'one density',
            )
        for j, name in enumerate(self._names):
            if self._model.jnt_type[j] not in (self._free, self._ball):
                yield from self._joint_findings(j, f'joint {name!r}')
        yield from self._gear_findings()
        yield from self._equality_findings()
        yield from self._tendon_findings()

    def _option_findings(self) -> Iterator[Finding]:
        gravity = tuple(self._model.opt.gravity.tolist())
        if gravity != tuple(self._mujoco.MjOption().gravity.tolist()):
            shown = ' '.join(f'{component:g}' for component in gravity)
            message = f"has gravity {shown} m/s²; the model's is the one that it is given"
            yield _finding('gravity', 'option', gravity, message, 'info')
        for name in ('density', 'viscosity'):
            value = float(getattr(self._model.opt, name))
            if value:
                message = f'has the {name} {value:g} of a fluid: its forces are not in the model'
                yield _finding('fluid', 'option', value, message)

    def _joint_findings(self, j: int, element: str) -> Iterator[Finding]:
        model, dof = self._model, int(self._model.jnt_dofadr[j])
        stiffness = float(model.jnt_stiffness[j])
        if stiffness or _polynomial(model, 'jnt_stiffnesspoly', j):
            message = f'has a spring, of stiffness {stiffness:g}: it is not in the model'
            yield _finding('stiffness', element, stiffness, message)
        further = _polynomial(model, 'dof_dampingpoly', dof)
        if further:
            message = f'has damping beyond the viscous, {further}: it is not in the model'
            yield _finding('damping', element, further, message)
        low, high = self._effort_range(j)
        if low != -high:
            message = (
                f'can be driven from {low:g} to {high:g}: its effort limit is '
                f'{_within(low, high):g}'
            )
            yield _finding('effort_range', element, (low, high), message, 'info')

    def _gear_findings(self) -> Iterator[Finding]:
        for a, j in self._actuators:
            gear, gain = float(self._model.actuator_gear[a, 0]), self._gain(a)
            if gear == 1.0:
                continue
            unit = 'N' if self._model.jnt_type[j] == self._slide else 'N m'
            message = f'is driven by an actuator of gear {gear:g}'
            if gain is not None:
                message += f': one unit of its control is {gear * gain:g} {unit}'
            yield _finding('gear', f'joint {self._names[j]!r}', gear, message, 'info')

    def _equality_findings(self) -> Iterator[Finding]:
        model, kinds = self._model, self._mujoco.mjtEq
        mimics = {follower: rule.joint for follower, rule in self._mimics()}
        for e, follower, leader in self._joint_equalities():
            if self._is_line(e, leader) and mimics[follower] == self._names[leader]:
                continue
            other = f'with joint {self._names[leader]!r}' if leader >= 0 else 'with no other joint'
            values = tuple(model.eq_data[e, :5].tolist())
            message = f'is held by an equality {other}: it is not in the model'
            yield _finding('equality', f'joint {self._names[follower]!r}', values, message)
        held = (int(kinds.mjEQ_CONNECT), int(kinds.mjEQ_WELD))
        for e in range(model.neq):
            if not model.eq_active0[e] or int(model.eq_type[e]) not in held:
                continue
            first, second = (
                self._body_of(e, int(i)) for i in (model.eq_obj1id[e], model.eq_obj2id[e])
            )
            for i, end in ((first, second), (second, first)):
                if self._moves(i):
                    name = self._bodies[end]
                    message = f'is held to link {name!r} by an equality: it is not in the model'
                    yield _finding('equality', f'link {self._bodies[i]!r}', name, message)

    def _body_of(self, e: int, i: int) -> int:
        if self._model.eq_objtype[e] == self._mujoco.mjtObj.mjOBJ_SITE:
            return int(self._model.site_bodyid[i])
        return i

    def _tendon_findings(self) -> Iterator[Finding]:
        model, kinds = self._model, self._mujoco.mjtWrap
        of_tendon = ('stiffness', 'damping', 'frictionloss', 'armature', 'limited')
        for t in range(model.ntendon):
            acting = [name for name in of_tendon if _value(model, f'tendon_{name}', t)]
            level: Level = 'warning' if acting or self._ties(t) else 'info'
            why = f', with {", ".join(acting)}' if acting else ''
            message = f'is acted on by a tendon{why}: it is not in the model'
            start, value = int(model.tendon_adr[t]), model.tendon(t).name or f'tendon{t}'
            elements = set()
            for w in range(start, start + int(model.tendon_num[t])):
                at = int(model.wrap_objid[w])
                if model.wrap_type[w] == kinds.mjWRAP_JOINT:
                    elements.add(f'joint {self._names[at]!r}')
                elif model.wrap_type[w] == kinds.mjWRAP_SITE:
                    elements.add(f'link {self._bodies[int(model.site_bodyid[at])]!r}')
            for element in sorted(elements):
                yield _finding('tendon', element, value, message, level)

    def _ties(self, t: int) -> bool:
        """Return whether an equality holds a tendon's length."""
        model, kind = self._model, self._mujoco.mjtEq.mjEQ_TENDON
        return any(
            model.eq_active0[e]
            and model.eq_type[e] == kind
            and t
            in (
                model.eq_obj1id[e],
                model.eq_obj2id[e],
            )
            for e in range(model.neq)
        )


def _finding(
    code: str, element: str, value: Any, predicate: str, level: Level = 'warning'
) -> Finding:
    return Finding(code, level, element, value, f'{element} {predicate}')


def _fixed_joint(name: str, parent: str, child: str, origin: FloatArray) -> Joint:
    return Joint(name, 'fixed', parent, child, origin, np.array([1.0, 0.0, 0.0]))


def _unused(name: str, taken: set[str]) -> str:
    """Return a name that nothing has yet, and take it."""
    while name in taken:
        name += '_'
    taken.add(name)
    return name


def _within(low: float, high: float) -> float:
    """Return an effort limit out of a range: the nearer bound, or the only one beside zero."""
    nearer = min(-low, high)
    return nearer if nearer > 0 else max(-low, high, 0.0)


def _value(model: Any, name: str, i: int) -> float:
    """Return a number of MuJoCo's model that older versions lack: zero there."""
    values = getattr(model, name, None)
    return 0.0 if values is None else float(values[i])


def _polynomial(model: Any, name: str, i: int) -> tuple[float, ...]:
    """Return the coefficients beyond the linear one, empty where all are zero; MuJoCo 4."""
    values = getattr(model, name, None)
    return () if values is None or not values[i].any() else tuple(values[i].tolist())
