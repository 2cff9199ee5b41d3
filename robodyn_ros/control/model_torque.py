# SPDX-License-Identifier: Apache-2.0
"""The torque of an arm's model: the code that computes it, and along a reference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np

from robodyn_ros.compiled import CompiledModel, compile_model
from robodyn_ros.compiled.c.shared import MODEL_KERNELS
from robodyn_ros.compiled.verification import check_functions, largest_difference
from robodyn_ros.control.core_binding import LoadedLibrary
from robodyn_ros.control.law import Friction, InverseDynamics, OfPosition, Terms
from robodyn_ros.control.settings import ControlSettings, each_joint
from robodyn_ros.dynamics import (
    Method,
    forward_dynamics,
    friction_torque,
    gravity_torque,
    inverse_dynamics,
    mass_matrix,
    smooth_friction_torque,
)
from robodyn_ros.dynamics.friction import friction_of
from robodyn_ros.errors import NoBackend, Phrase
from robodyn_ros.kinematics import forward_kinematics, jacobian
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

Algorithm = Literal['compiled', 'newton_euler', 'kane']
# Fast enough for a control cycle, the fastest first.
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)


# Those that services call beside the model's own.
_OF_SERVICES = ('forward_dynamics', 'friction_torque', 'tip_wrench_torque')


def why_not_compiled(error: Exception) -> str:
    """Return what failed in compiling, with the kind of a foreign error."""
    if isinstance(error, NoBackend):
        return str(error)
    return f'compiling failed: {type(error).__name__}: {error}'


@dataclass(frozen=True, eq=False)
class RigidBodyTorque:
    """
    An arm's inverse dynamics, ready for any payload and gravity; made by ``of``.

    Parameters
    ----------
    algorithm : str
        The current one.
    notes : tuple of str
        Why it is not the requested algorithm, or what failed in preparing it.
    """

    algorithm: Algorithm
    notes: tuple[str, ...] = ()
    _compiled: CompiledModel | None = None

    @classmethod
    def of(cls, model: RobotModel, algorithm: Algorithm) -> RigidBodyTorque:
        """
        Return an arm's inverse dynamics by one of ``ALGORITHMS``.

        ``'compiled'`` falls back to Newton-Euler without a C compiler, where the code does not
        compute what Newton-Euler does, and any other failure in preparing it. Compiling takes
        seconds, from the cache milliseconds; nothing compiles after this.
        """
        if algorithm != 'compiled':
            return cls(algorithm)
        links = [name for name, (body, _) in model.link_frames.items() if body >= 0]
        try:
            compiled = compile_model(
                model,
                kernels=(*MODEL_KERNELS, *_OF_SERVICES),
                runtime=('gravity', 'payload'),
                payload_links=links,
            )
        except Exception as error:
            # Catch everything: an arm without torque is worse than any fault of the compiler.
            return cls('newton_euler', notes=(why_not_compiled(error),))
        return cls('compiled', compiled.notes, compiled)

    @property
    def is_fallback(self) -> bool:
        """Whether it is not the requested algorithm."""
        return self.algorithm != 'compiled' and bool(self.notes)

    def checked(self, model: RobotModel) -> RigidBodyTorque:
        """
        Return this, or Newton-Euler where the compiled code is not the same under another load.

        It compares at random states, which takes a millisecond or two.
        """
        if self._compiled is None:
            return self
        functions = {'inverse_dynamics': self.under(model)}
        try:
            check_functions(functions, model, 'the C compiler')
        except NoBackend as error:
            return RigidBodyTorque('newton_euler', notes=(str(error),))
        return self

    def checked_at(
        self, position: FloatArray, active: InverseDynamics, model: RobotModel
    ) -> RigidBodyTorque:
        """
        Return this, or Newton-Euler where the active gravity is not the same at one position.

        Parameters
        ----------
        position : array, shape (n,)
            [rad] or [m]
        active : callable
            What ``under`` returned for the model, at the time.
        model : RobotModel
        """
        if self._compiled is None:
            return self
        zero = np.zeros((1, model.n))
        given = active(position[None], zero, zero)
        difference = largest_difference(given, gravity_torque(model, position[None]))
        if not difference:
            return self
        error = NoBackend('compiled gravity torque', Phrase(difference), 'what Newton-Euler gives')
        return RigidBodyTorque('newton_euler', notes=(str(error),))

    def under(self, model: RobotModel) -> InverseDynamics:
        """Return the inverse dynamics of the arm under another payload or gravity."""
        if self._compiled is not None:
            compiled = self._compiled.with_model(model)
            return LoadedLibrary(compiled.inverse_dynamics, *compiled.library())
        method: Method = 'newton_euler' if self.algorithm == 'compiled' else self.algorithm
        return partial(inverse_dynamics, model, method=method)

    def functions(self, model: RobotModel) -> Any:
        """
        Return functions of ``robodyn_ros`` for the arm under another payload or gravity.

        They are attributes without the argument ``model``: inverse and forward dynamics, gravity
        and friction torque, mass matrix.
        """
        if self._compiled is not None:
            return self._compiled.with_model(model)
        numpy = inverse_dynamics, forward_dynamics, gravity_torque, friction_torque, mass_matrix
        return SimpleNamespace(**{each.__name__: partial(each, model) for each in numpy})

    def friction(self, model: RobotModel) -> Friction:
        """Return the arm's friction torque, which does not depend on payload and gravity."""
        if self._compiled is None:
            return partial(friction_of, model)
        return self._compiled.directed_friction_torque

    def forward_kinematics(self, model: RobotModel) -> OfPosition:
        """Return the tip's pose as a function of positions."""
        if self._compiled is None:
            return partial(forward_kinematics, model)
        return self._compiled.forward_kinematics

    def jacobian(self, model: RobotModel) -> OfPosition:
        """Return the tip's Jacobian as a function of positions."""
        return partial(jacobian, model) if self._compiled is None else self._compiled.jacobian


@dataclass(frozen=True, eq=False)
class ReferenceTorque:
    """
    The torque of the dynamics node's mode feedforward, for N states.

    Parameters
    ----------
    model : RobotModel
        The arm with what it carries.
    inverse_dynamics : callable
        The model's: (q, qd, qdd), each of shape (N, n), to torques of shape (N, n).
    terms : Terms
        What is commanded of the model's torque.
    friction_velocity : float
        Width of the smooth sign of Coulomb friction [rad/s] or [m/s].
    gravity_factor : array, shape (n,), or float
        Multiple of the model's gravity that is commanded, in chain order.
    """

    model: RobotModel
    inverse_dynamics: InverseDynamics
    terms: Terms
    friction_velocity: float
    gravity_factor: np.ndarray | float = 1.0

    @classmethod
    def of(
        cls,
        model: RobotModel,
        settings: ControlSettings | None = None,
        torque: RigidBodyTorque | None = None,
    ) -> ReferenceTorque:
        """Return that of a model under some settings; not given: the defaults, Newton-Euler."""
        settings = settings or ControlSettings()
        torque = torque or RigidBodyTorque('newton_euler')
        terms = Terms(
            settings.terms_inertial,
            settings.terms_coriolis,
            settings.terms_gravity,
            settings.terms_friction,
        )
        factor = each_joint(model, settings, 'terms_gravity_factor')
        return cls(model, torque.under(model), terms, settings.friction_velocity, factor)

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torque at N states, shape (N, n) like each argument [N m] or [N]."""
        terms, zero = self.terms, np.zeros_like(q)
        total = self.inverse_dynamics(q, qd, qdd)
        torque = total.copy()
        factor = terms.gravity * self.gravity_factor
        if not (terms.inertial and terms.coriolis and np.all(factor == 1.0)):
            resting = self.inverse_dynamics(q, zero, zero)
            moving = self.inverse_dynamics(q, qd, zero)
            torque -= (not terms.inertial) * (total - moving)
            torque -= (not terms.coriolis) * (moving - resting)
            torque -= (1.0 - factor) * resting
        if terms.friction:
            torque += smooth_friction_torque(self.model, self.friction_velocity, qd, total)
        return torque
