# SPDX-License-Identifier: Apache-2.0
"""Run-time inputs of an arm's kernels, so that a new payload needs no compilation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.arguments import checked_sequence
from robodyn_ros.compiled.symbolic.arm import gravity_in_first_frame
from robodyn_ros.compiled.symbolic.equivalent_inertias import EquivalentInertias
from robodyn_ros.compiled.symbolic.expression import Graph, Scalar
from robodyn_ros.errors import InvalidArgument, ModelMismatch, shown
from robodyn_ros.model import RobotModel, frame_of_link
from robodyn_ros.spatial import FloatArray

RUN_TIME = ('gravity', 'payload')
# The model's arrays that are folded into the kernels of friction.
FRICTION = (
    'viscous_friction',
    'coulomb_friction',
    'effort_offset',
    'friction_curve',
    'load_friction',
    'coupling',
    'coupled_friction',
)
# Those that are folded into the kernels of the rigid body, beside its inertias.
ROTORS = ('rotor_inertia', 'coupling', 'coupled_rotor_inertia')
# The table's arrays that are folded into every kernel.
DH = (
    *('alpha', 'a', 'beta', 'theta', 'd', 'prismatic', 'base_transform', 'tip_transform'),
    *('parents', 'gamma', 'b', 'tips'),
)
# The kernels' first input: gravity in frame 0, then the regrouped elements that may vary.
PARAMETERS = 'parameters'


@dataclass(frozen=True)
class RunTime:
    """
    The run-time inputs of an arm's kernels.

    Attributes
    ----------
    model : RobotModel
        What was compiled: all that is not an input is folded.
    equivalent_inertias : EquivalentInertias
    with_gravity : bool
        Whether gravity is an input.
    varying : tuple of (link, row, column)
        The elements of regrouped pseudo-inertias that are inputs.
    """

    model: RobotModel
    equivalent_inertias: EquivalentInertias
    with_gravity: bool = False
    varying: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of(
        cls, model: RobotModel, inputs: Sequence[str], payload_links: Iterable[str] | None = None
    ) -> RunTime:
        """
        Return the run-time inputs for gravity, for payloads on some links, or for both.

        Raises
        ------
        InvalidArgument
            An input is neither ``'gravity'`` nor ``'payload'``.
        NoSuchName
        """
        for name in checked_sequence('runtime', inputs, str, "names, as ['payload']"):
            if name not in RUN_TIME:
                raise InvalidArgument('argument runtime', name, ', '.join(map(repr, RUN_TIME)))
        varying: tuple[tuple[int, int, int], ...] = ()
        parameters = model.inertial_parameters
        equivalent_inertias = EquivalentInertias.fewest_operations(model.dh, parameters)
        if 'payload' in inputs:
            equivalent_inertias = EquivalentInertias(model.dh, equivalent_inertias.length_unit)
            links = model.tip_links
            if payload_links is not None:
                links = checked_sequence('payload_links', payload_links, str, 'names of links')
            varying = _varying(
                model,
                equivalent_inertias,
                {frame_of_link(model, 'payload link', link)[0] for link in links},
            )
        return cls(model, equivalent_inertias, 'gravity' in inputs, varying)

    @property
    def size(self) -> int:
        """Number of run-time inputs."""
        return 3 * self.with_gravity + len(self.varying)

    def gravity(self, graph: Graph) -> list[Scalar] | None:
        """Return gravity's expressions, or None where it is folded."""
        return list(graph.input(PARAMETERS, 3)) if self.with_gravity else None

    def inertias(self, graph: Graph) -> list[list[list[Scalar]]] | None:
        """Return regrouped pseudo-inertias with the inputs among them, or None without inputs."""
        if not self.varying:
            return None
        folded = self.equivalent_inertias.pseudo_inertias(self.model.inertial_parameters)
        result: list[list[list[Scalar]]] = folded.tolist()
        inputs = graph.input(PARAMETERS, self.size)[3 * self.with_gravity :]
        for (j, row, column), expression in zip(self.varying, inputs):
            result[j][row][column] = result[j][column][row] = expression
        return result

    def values(self, model: RobotModel) -> FloatArray:
        """
        Return the run-time inputs for another gravity or payload.

        Raises
        ------
        ModelMismatch
            The model differs in something that was folded.
        """
        self._check(model)
        result = np.empty(self.size)
        if self.with_gravity:
            result[:3] = gravity_in_first_frame(model, self.equivalent_inertias)
        if self.varying:
            inertias = self.equivalent_inertias.pseudo_inertias(model.inertial_parameters)
            result[3 * self.with_gravity :] = inertias[tuple(np.transpose(self.varying))]
        return result

    def _check(self, model: RobotModel) -> None:
        compiled = self.model
        if model.n != compiled.n:
            raise ModelMismatch('model.n', model.n, f'{compiled.n}, as compiled')
        for name in DH:
            self._check_equal(f'dh.{name}', getattr(model.dh, name), getattr(compiled.dh, name))
        for name in (*ROTORS, *FRICTION):
            ours, theirs = getattr(compiled, name), getattr(model, name)
            if len(ours) != len(theirs):
                raise ModelMismatch(f'len(model.{name})', len(theirs), f'{len(ours)}, as compiled')
            self._check_equal(name, theirs, ours)
        if not self.with_gravity:
            self._check_equal('gravity', model.gravity, compiled.gravity, 'gravity')
        ours, theirs = (
            self.equivalent_inertias.pseudo_inertias(m.inertial_parameters)
            for m in (compiled, model)
        )
        scale = np.abs(ours).max(axis=0) + np.abs(theirs).max(axis=0)
        differs = np.abs(ours - theirs) > 1e-12 * scale
        if self.varying:
            j, row, column = np.transpose(self.varying)
            differs[j, row, column] = differs[j, column, row] = False
        for j in np.flatnonzero(differs.any(axis=(1, 2)))[-1:]:
            found, folded = model.inertial_parameters, compiled.inertial_parameters
            # What is regrouped away from a link differs further inside.
            different = np.argwhere(found != folded)
            own = different[different[:, 0] == j]
            raise self._refusal(
                'inertial_parameters',
                found,
                folded,
                (own if len(own) else different)[-1],
                'payload',
            )

    def _check_equal(
        self, name: str, found: NDArray, folded: NDArray, input_: str | None = None
    ) -> None:
        for where in np.argwhere(found != folded)[:1]:
            raise self._refusal(name, found, folded, where, input_)

    def _refusal(
        self, name: str, found: NDArray, folded: NDArray, where: NDArray, input_: str | None
    ) -> ModelMismatch:
        """Return the error that names one entry of a model's array, and what would allow it."""
        entry = tuple(where.tolist())
        element = f'model.{name}[{", ".join(map(str, entry))}]'
        if name != 'gravity' and not name.endswith('_transform') and 'coupl' not in name:
            element += f', of joint {self.model.joint_names[entry[0]]!r}'
        remedy = f'; any with compile_model(model, runtime=({input_!r},))' if input_ else ''
        off = f', {found[entry] - folded[entry]:.2g} away' if folded.dtype == float else ''
        allowed = f'{shown(folded[entry])}, as compiled{off}{remedy}'
        return ModelMismatch(element, found[entry].item(), allowed)


def _varying(
    model: RobotModel, equivalent_inertias: EquivalentInertias, bodies: set[int]
) -> tuple[tuple[int, int, int], ...]:
    """Return the elements of equivalent inertias that the parameters of some bodies reach."""
    reached = np.zeros((model.n, 4, 4), dtype=bool)
    generator = np.random.default_rng(0)
    for body in bodies - {-1}:
        parameters = np.zeros((model.n, 10))
        parameters[body] = generator.uniform(0.5, 1.5, 10)
        reached |= equivalent_inertias.pseudo_inertias(parameters) != 0.0
    return tuple(
        (int(j), int(row), int(column)) for j, row, column in np.argwhere(reached) if row <= column
    )
