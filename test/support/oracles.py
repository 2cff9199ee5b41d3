# SPDX-License-Identifier: Apache-2.0
"""Independent implementations that the tests compare with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

import robodyn_ros as rd

_JOINT = 'joint: '


@dataclass
class PinocchioArm:
    """
    The same arm in Pinocchio: all joints off the chain locked at zero or at given positions.

    Positions are (n,) in the model's joint order, poses and wrenches in the base link's frame.
    """

    model: pin.Model
    data: pin.Data
    joint_ids: list[int]
    base_frame: int
    tip_frame: int

    @classmethod
    def of(
        cls,
        source: str | Path,
        arm: rd.RobotModel,
        locked_positions: dict[str, float] | None = None,
    ) -> PinocchioArm:
        text = str(source)
        if not text.lstrip().startswith('<'):
            text = Path(source).read_text(encoding='utf-8')
        full = pin.buildModelFromXML(_with_joints_named_apart(text))
        reference = pin.neutral(full)
        for name, position in {**_mimic_offsets(text), **(locked_positions or {})}.items():
            if not full.existJointName(_JOINT + name):
                continue
            joint = full.joints[full.getJointId(_JOINT + name)]
            if joint.nq == 1:
                reference[joint.idx_q] = position
            else:
                reference[joint.idx_q : joint.idx_q + 2] = np.cos(position), np.sin(position)
        moving = {_JOINT + name for name in arm.joint_names}
        locked = [i for i, name in enumerate(full.names) if i > 0 and name not in moving]
        model = pin.buildReducedModel(full, locked, reference)
        data = model.createData()
        base_frame = _body_frame(model, arm.base_link)
        pin.framesForwardKinematics(model, data, pin.neutral(model))
        model.gravity.linear = data.oMf[base_frame].rotation @ arm.gravity
        return cls(
            model,
            data,
            [model.getJointId(_JOINT + name) for name in arm.joint_names],
            base_frame,
            _body_frame(model, arm.tip_links[0]),
        )

    def configuration(self, q: np.ndarray) -> np.ndarray:
        result = np.zeros(self.model.nq)
        for joint_id, position in zip(self.joint_ids, q, strict=True):
            joint = self.model.joints[joint_id]
            if joint.nq == 1:
                result[joint.idx_q] = position
            else:
                result[joint.idx_q : joint.idx_q + 2] = np.cos(position), np.sin(position)
        return result

    @property
    def order(self) -> list[int]:
        return [self.model.joints[i].idx_v for i in self.joint_ids]

    def _vector(self, values: np.ndarray) -> np.ndarray:
        result = np.zeros(self.model.nv)
        result[self.order] = values
        return result

    def tip_pose(self, q: np.ndarray) -> np.ndarray:
        return self._pose(q, self.tip_frame)

    def tip_jacobian(self, q: np.ndarray) -> np.ndarray:
        return self._jacobian(q, self.tip_frame)

    def link_pose(self, q: np.ndarray, link: str) -> np.ndarray:
        return self._pose(q, _body_frame(self.model, link))

    def link_jacobian(self, q: np.ndarray, link: str) -> np.ndarray:
        return self._jacobian(q, _body_frame(self.model, link))

    def _pose(self, q: np.ndarray, frame: int) -> np.ndarray:
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return (self.data.oMf[self.base_frame].inverse() * self.data.oMf[frame]).homogeneous

    def _jacobian(self, q: np.ndarray, frame: int) -> np.ndarray:
        q = self.configuration(q)
        in_world = pin.computeFrameJacobian(
            self.model, self.data, q, frame, pin.LOCAL_WORLD_ALIGNED
        )[:, self.order]
        pin.framesForwardKinematics(self.model, self.data, q)
        to_base = self.data.oMf[self.base_frame].rotation.T
        return np.vstack([to_base @ in_world[:3], to_base @ in_world[3:]])

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return pin.rnea(
            self.model, self.data, self.configuration(q), self._vector(qd), self._vector(qdd)
        )[self.order]

    def torque_regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return (n, 10 n): XX XY XZ YY YZ ZZ mX mY mZ m of each body, about its URDF joint."""
        full = pin.computeJointTorqueRegressor(
            self.model, self.data, self.configuration(q), self._vector(qd), self._vector(qdd)
        )
        # Pinocchio's order is m mX mY mZ XX XY YY XZ YZ ZZ.
        ours = np.array([4, 5, 7, 6, 8, 9, 1, 2, 3, 0])
        columns = np.concatenate([10 * (joint_id - 1) + ours for joint_id in self.joint_ids])
        return full.reshape(self.model.nv, -1)[np.ix_(self.order, columns)]

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        m = pin.crba(self.model, self.data, self.configuration(q))
        m = np.triu(m) + np.triu(m, 1).T
        return m[np.ix_(self.order, self.order)]

    def coriolis_matrix(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        c = pin.computeCoriolisMatrix(
            self.model, self.data, self.configuration(q), self._vector(qd)
        )
        return c[np.ix_(self.order, self.order)]

    def acceleration(self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pin.aba(
            self.model, self.data, self.configuration(q), self._vector(qd), self._vector(tau)
        )[self.order]

    def torque_derivatives(
        self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the derivatives of the torque by q and qd."""
        by_position, by_velocity, _ = pin.computeRNEADerivatives(
            self.model, self.data, self.configuration(q), self._vector(qd), self._vector(qdd)
        )
        return self._in_order(by_position, by_velocity)

    def acceleration_derivatives(
        self, q: np.ndarray, qd: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the derivatives of the acceleration by q, qd and tau."""
        return self._in_order(
            *pin.computeABADerivatives(
                self.model, self.data, self.configuration(q), self._vector(qd), self._vector(tau)
            )
        )

    def _in_order(self, *matrices: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(matrix[np.ix_(self.order, self.order)] for matrix in matrices)


def _body_frame(model: pin.Model, link: str) -> int:
    matches = [
        i
        for i, frame in enumerate(model.frames)
        if frame.name == link and frame.type == pin.FrameType.BODY
    ]
    return matches[0]


def _with_joints_named_apart(text: str) -> str:
    """Return the text with joint names that no link has: Pinocchio cannot tell them apart."""
    root = ElementTree.fromstring(text)
    for joint in root.findall('joint'):
        joint.set('name', _JOINT + joint.get('name'))
        for mimic in joint.findall('mimic'):
            joint.remove(mimic)
    for element in root.iter('link'):
        for shape in (*element.findall('visual'), *element.findall('collision')):
            element.remove(shape)
    return ElementTree.tostring(root, encoding='unicode')


def _mimic_offsets(text: str) -> dict[str, float]:
    """Return where mimic joints stand when all joints that lead them stand at zero."""
    rules = {}
    for joint in ElementTree.fromstring(text).findall('joint'):
        mimic = joint.find('mimic')
        if mimic is not None:
            rules[joint.get('name')] = (
                mimic.get('joint'),
                float(mimic.get('multiplier', 1)),
                float(mimic.get('offset', 0)),
            )

    def position(name: str) -> float:
        if name not in rules:
            return 0.0
        leader, multiplier, offset = rules[name]
        return multiplier * position(leader) + offset

    return {name: position(name) for name in rules}


def random_states(arm: rd.RobotModel, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return seeded q, qd, qdd (count, n): angles within a turn, lengths within a metre."""
    generator = np.random.default_rng(seed)
    scale = np.where(arm.dh.prismatic, 1.0, np.pi)
    q = generator.uniform(-1, 1, (count, arm.n)) * scale
    qd = generator.uniform(-2, 2, (count, arm.n))
    qdd = generator.uniform(-5, 5, (count, arm.n))
    return q, qd, qdd


def pose_difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Return distance [m] and angle [rad] between poses (4, 4)."""
    distance = float(np.linalg.norm(a[:3, 3] - b[:3, 3]))
    # The norm of R - 1 is 2 sqrt(2) sin(angle / 2), exact where acos would lose its digits.
    chord = float(np.linalg.norm(a[:3, :3] - b[:3, :3]))
    return distance, 2 * np.arcsin(min(1.0, chord / (2 * np.sqrt(2))))


def relative_difference(value: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the largest expected component (at least 1)."""
    scale = max(1.0, float(np.abs(expected).max()))
    return float(np.abs(value - expected).max()) / scale
