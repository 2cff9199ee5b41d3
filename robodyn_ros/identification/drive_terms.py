# SPDX-License-Identifier: Apache-2.0
"""
Drive torques beside the rigid body's: rotor inertia, friction, offset.

Of each joint

    tau = tau_rigid + Ia qdd + Fv qd + Fc s + offset
        + c1 tanh(qd / 0.1) + c2 tanh(qd / 0.4) + mu |tau_rigid| s

where s is the direction of motion: tanh(qd / 0.01), or the state z of presliding,
dz/dt = (qd / delta) (1 - z sgn qd), which turns over a displacement delta and is kept at rest.
The curve c1, c2 (Stribeck's, and friction that grows less than in proportion to velocity) and the
load term mu are optional.

A coupled drive turns with several joints, at the velocity ``coupling @ qd``. It has the same terms
at that velocity, but for offset and load, and loads the joints by ``coupling.T``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.dynamics.friction import CURVE_VELOCITIES
from robodyn_ros.spatial import FloatArray

# Velocity [rad/s or m/s] over which the sign of the velocity is smoothed.
DIRECTION_VELOCITY = 0.01
_REST_VELOCITY = 0.002
PRESLIDING_DISPLACEMENTS = (1e-4, 1e-3)


@dataclass(frozen=True)
class DriveTerms:
    """
    Which terms every joint's drive has.

    Attributes
    ----------
    presliding : float
        Displacement over which friction turns [rad or m]; 0: the direction is tanh(qd / 0.01).
    curve : bool
        Whether friction follows a curve over velocity.
    load : bool
        Whether Coulomb friction grows with the rigid body's torque.
    """

    presliding: float = 0.0
    curve: bool = False
    load: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of a joint's terms, in the order of their coefficients."""
        return (
            'Ia',
            'Fv',
            'Fc',
            'offset',
            *(('c1', 'c2') if self.curve else ()),
            *(('mu',) if self.load else ()),
        )

    @property
    def coupled_names(self) -> tuple[str, ...]:
        """Names of a coupled drive's terms, in the order of their coefficients."""
        return tuple(name for name in self.names if name not in ('offset', 'mu'))

    @property
    def count(self) -> int:
        """Number of terms of a joint."""
        return len(self.names)

    @property
    def coupled_count(self) -> int:
        """Number of terms of a coupled drive."""
        return len(self.coupled_names)

    @property
    def complexity(self) -> int:
        """How much it asks for beyond the plainest: terms, and a state."""
        return 2 * self.curve + self.load + (self.presliding > 0)

    def __str__(self) -> str:
        parts = ['viscous and Coulomb friction']
        if self.curve:
            parts.append('a curve')
        if self.load:
            parts.append('load')
        if self.presliding:
            parts.append(f'presliding over {self.presliding:g}')
        return ', '.join(parts)


def candidates() -> tuple[DriveTerms, ...]:
    """Return the dozen candidates that a selection chooses from, the plainest first."""
    every = [
        DriveTerms(presliding, curve, load)
        for presliding in (0.0, *PRESLIDING_DISPLACEMENTS)
        for curve in (False, True)
        for load in (False, True)
    ]
    return tuple(sorted(every, key=lambda terms: terms.complexity))


def neighbours(parents: NDArray[np.int_]) -> FloatArray:
    """Return the coupled drives to choose from: sums and differences of neighbours, (2 m, n)."""
    later = np.flatnonzero(parents >= 0)
    first, second = np.eye(len(parents))[parents[later]], np.eye(len(parents))[later]
    return np.concatenate([first + second, second - first])


def presliding_state(qd: FloatArray, step: float, displacement: float) -> FloatArray:
    """
    Return the state z of presliding along a motion, shape (K, n), zero at its beginning.

    Between two samples the velocity keeps its sign, and the differential equation has the solution
    z + (sgn - z) (1 - exp(-|dq| / displacement)), of whatever length in time. A velocity under
    0.002 is noise: at rest the state is kept.

    Parameters
    ----------
    qd : array, shape (K, n)
        [rad/s or m/s]
    step : float
        Between two samples [s].
    displacement : float
        [rad or m]
    """
    displaced = np.where(np.abs(qd) > _REST_VELOCITY, qd, 0.0) * step
    turned = -np.expm1(-np.abs(displaced) / displacement)
    towards = turned * np.sign(displaced)
    kept = 1.0 - turned
    result = np.zeros_like(qd)
    z = np.zeros(qd.shape[1])
    for k in range(len(qd)):
        z = kept[k] * z + towards[k]
        result[k] = z
    return result


def drive_columns(
    terms: DriveTerms,
    qd: FloatArray,
    qdd: FloatArray,
    turned: FloatArray | None = None,
    rigid_torque: FloatArray | None = None,
) -> FloatArray:
    """
    Return each joint's columns of the drive's terms, shape (K, n, terms.count).

    Parameters
    ----------
    terms : DriveTerms
    qd, qdd : array, shape (K, n)
        [rad/s or m/s, and per s]
    turned : array, shape (K, n)
        The state of presliding at the same times, where friction has one.
    rigid_torque : array, shape (K, n)
        Of the rigid body [N m or N], where friction grows with load.
    """
    s = np.tanh(qd / DIRECTION_VELOCITY)
    if terms.presliding:
        if turned is None:
            raise ValueError('friction with presliding needs its state')
        s = turned
    columns = [qdd, qd, s, np.ones_like(qd)]
    if terms.curve:
        columns += [np.tanh(qd / velocity) for velocity in CURVE_VELOCITIES]
    if terms.load:
        if rigid_torque is None:
            raise ValueError('friction that grows with load needs the torque of the rigid body')
        columns.append(np.abs(rigid_torque) * s)
    return np.stack(columns, axis=-1)


def coupled_columns(
    terms: DriveTerms,
    coupling: FloatArray,
    qd: FloatArray,
    qdd: FloatArray,
    turned: FloatArray | None = None,
) -> FloatArray:
    """
    Return the coupled drives' columns in each joint's torque, shape (K, n, m terms.coupled_count).

    Parameters
    ----------
    terms : DriveTerms
    coupling : array, shape (m, n)
    qd, qdd : array, shape (K, n)
        Of the joints [rad/s or m/s, and per s].
    turned : array, shape (K, m)
        The state of presliding of the coupled drives, where friction has one.
    """
    plain = replace(terms, load=False)
    own = drive_columns(plain, qd @ coupling.T, qdd @ coupling.T, turned)
    own = np.delete(own, plain.names.index('offset'), axis=-1)
    loads = coupling.T[:, :, None] * own[:, None]
    return loads.reshape(*qd.shape, -1)
