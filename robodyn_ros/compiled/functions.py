# SPDX-License-Identifier: Apache-2.0
"""
Signatures of compiled functions.

Every argument is an array of one sample, or of N samples with a leading axis N; ``out`` is a
C-contiguous float64 array of the result's shape, or a tuple of them where there are several
results, which makes the call free of allocations.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from robodyn_ros.errors import NotCompiledFor
from robodyn_ros.spatial import FloatArray


class OfPosition(Protocol):
    """A function of joint positions q (n,) [rad or m]."""

    def __call__(self, q: ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfVelocity(Protocol):
    """A function of joint positions and velocities, (n,) each."""

    def __call__(self, q: ArrayLike, qd: ArrayLike, out: FloatArray | None = None) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfAcceleration(Protocol):
    """A function of joint positions, velocities and accelerations, (n,) each."""

    def __call__(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfAccelerationAndWrench(Protocol):
    """A function of a motion and of the wrench (6,) that the tip exerts on the world."""

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        out: FloatArray | None = None,
        *,
        tip_wrench: ArrayLike | None = None,
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfTorque(Protocol):
    """A function of joint positions, velocities and torques, (n,) each."""

    def __call__(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class DerivativesOfAcceleration(Protocol):
    """Derivatives of a function of positions, velocities and accelerations, (n,) each."""

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        out: tuple[FloatArray, ...] | None = None,
    ) -> tuple[FloatArray, ...]:
        """Return them, in ``out`` where given; see ``CompiledModel``."""


class DerivativesOfTorque(Protocol):
    """Derivatives of a function of positions, velocities and torques, (n,) each."""

    def __call__(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        out: tuple[FloatArray, ...] | None = None,
    ) -> tuple[FloatArray, ...]:
        """Return them, in ``out`` where given; see ``CompiledModel``."""


class OfWrench(Protocol):
    """A function of joint positions (n,) and of a wrench (6,) at the tip."""

    def __call__(
        self, q: ArrayLike, tip_wrench: ArrayLike, out: FloatArray | None = None
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfVelocityAndTorque(Protocol):
    """A function of joint velocities (n,) and, if load counts, of the rigid body's torque (n,)."""

    def __call__(
        self,
        qd: ArrayLike,
        rigid_torque: ArrayLike | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfVelocityWidthAndTorque(Protocol):
    """A function of velocities (n,), of the width (1,) of their smooth sign, and of a torque."""

    def __call__(
        self,
        qd: ArrayLike,
        width: ArrayLike,
        rigid_torque: ArrayLike | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class OfVelocityDirectionAndTorque(Protocol):
    """A function of velocities (n,), of directions of motion (n,), and of a torque."""

    def __call__(
        self,
        qd: ArrayLike,
        direction: ArrayLike,
        rigid_torque: ArrayLike | None = None,
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return its value, in ``out`` where given; see ``CompiledModel``."""


class NotCompiled:
    """
    Stands in place of a function that ``compile_model(kernels=...)`` left out.

    Parameters
    ----------
    name : str
        The function's.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *arguments: Any, **keywords: Any) -> FloatArray:
        """
        Raise ``NotCompiledFor``.

        Raises
        ------
        NotCompiledFor
            Always; it names the function.
        """
        raise NotCompiledFor(
            f'function {self.name}',
            'not compiled',
            f'compile_model with {self.name!r} among its kernels',
        )

    def __repr__(self) -> str:
        return f'NotCompiled({self.name!r})'
