# SPDX-License-Identifier: Apache-2.0
"""
The formulas of the compiled core in NumPy, without memory: the oracle of its numbers.

Each is written from its equation, one call of the inverse dynamics for each term, where the core
has one batch for all. What remembers something is checked by a specification instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robodyn_ros.control.command_pipeline import ControlLaw
from robodyn_ros.control.law import Friction, InverseDynamics, TorqueParts
from robodyn_ros.control.reference import ReferenceState


def wrapped(angle: np.ndarray) -> np.ndarray:
    """Return an angle [rad] with whole turns taken away, in [-pi, pi]."""
    return np.arctan2(np.sin(angle), np.cos(angle))


@dataclass(frozen=True)
class Dynamics:
    """
    The terms of an inverse dynamics at one state, each of shape (n,).

    Parameters
    ----------
    inverse_dynamics : callable
        (q, qd, qdd), each of shape (N, n), to torques of shape (N, n).
    """

    inverse_dynamics: InverseDynamics

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return M(q) qdd + C(q, qd) qd + g(q)."""
        return self.inverse_dynamics(q[None], qd[None], qdd[None])[0]

    def gravity(self, q: np.ndarray) -> np.ndarray:
        """Return g(q)."""
        return self.torque(q, np.zeros_like(q), np.zeros_like(q))

    def coriolis(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return C(q, qd) qd."""
        return self.torque(q, qd, np.zeros_like(q)) - self.gravity(q)

    def inertial(self, q: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return M(q) qdd."""
        return self.torque(q, np.zeros_like(q), qdd) - self.gravity(q)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return M(q), shape (n, n)."""
        return np.column_stack([self.inertial(q, unit) for unit in np.eye(len(q))])


def blended(first: InverseDynamics, second: InverseDynamics, fraction: float) -> InverseDynamics:
    """Return the inverse dynamics between two, with a fraction, 0 to 1, of the second."""
    return lambda *state: (1.0 - fraction) * first(*state) + fraction * second(*state)


# --- the law ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coefficients:
    """
    What the torque of a law is linear in.

    Parameters
    ----------
    static_gravity : array, shape (n,)
        Of g(q), with a reference or without.
    at_reference, at_measured : array, shape (5, n)
        Of the inertial, Coriolis, gravity, friction and effort parts of a reference: where the
        reference is, and where the arm is measured.
    kp, kd : array, shape (n,)
        [1/s²], [1/s]
    damping : float
        [1/s]
    friction_slope : float
        Of the smooth sign of Coulomb friction [s/rad] or [s/m].
    limit_slope : float
        Penetration per displacement beyond a position limit [1/rad] or [1/m].
    limit_damping : array, shape (n,)
        [1/s]
    """

    static_gravity: np.ndarray
    at_reference: np.ndarray
    at_measured: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    damping: float
    friction_slope: float
    limit_slope: float
    limit_damping: np.ndarray

    @property
    def gravity(self) -> np.ndarray:
        """Of g(q) where there is no reference."""
        return self.static_gravity + self.at_reference[2] + self.at_measured[2]

    def equals(self, other: Coefficients) -> bool:
        """Return whether all of them are the other's."""
        return all(np.array_equal(mine, vars(other)[name]) for name, mine in vars(self).items())

    def mixed(self, other: Coefficients, fraction: float) -> Coefficients:
        """Return the combination that has a fraction, 0 to 1, of the other's."""
        return Coefficients(
            **{
                name: (1.0 - fraction) * mine + fraction * vars(other)[name]
                for name, mine in vars(self).items()
            }
        )


def coefficients(law: ControlLaw, damping: float = 0.0) -> Coefficients:
    """Return the coefficients of a law, with a damping [1/s]."""
    s = law.settings
    of_gravity = s.terms_gravity * s.terms_gravity_factor
    switched = s.terms_inertial, s.terms_coriolis, of_gravity, s.terms_friction, True
    of_terms = np.array([one * np.ones(len(s.kp)) for one in switched])
    is_feedforward, is_computed = s.mode == 'feedforward', s.mode == 'computed_torque'
    return Coefficients(
        static_gravity=(not is_feedforward and not is_computed) * of_gravity,
        at_reference=is_feedforward * of_terms,
        at_measured=is_computed * of_terms,
        kp=is_computed * s.kp,
        kd=is_computed * s.kd,
        damping=damping,
        friction_slope=1.0 / s.friction_velocity,
        limit_slope=1.0 / s.soft_limit_width if s.soft_limit_width else 0.0,
        limit_damping=s.kd,
    )


def torque_parts(
    law: ControlLaw,
    q: np.ndarray,
    qd: np.ndarray,
    reference: ReferenceState | None,
    continuous: np.ndarray,
    chosen: Coefficients | None = None,
) -> TorqueParts:
    """
    Return the parts of a torque, each of shape (n,) [N m] or [N].

    Parameters
    ----------
    law : ControlLaw
        With the model.
    q, qd : array, shape (n,)
        Measured; of velocities that are not all known, none is damped.
    reference : ReferenceState or None
    continuous : array of bool, shape (n,)
        Joints that turn without end.
    chosen : Coefficients, optional
        Not given: those of the law.
    """
    c, arm = chosen or coefficients(law), Dynamics(law.inverse_dynamics)
    parts = TorqueParts(*np.zeros((6, len(q))))
    gravity = c.gravity if reference is None else c.static_gravity
    parts = parts._replace(gravity=gravity * arm.gravity(q))
    if c.damping and np.isfinite(qd).all():
        parts = parts._replace(feedback=-c.damping * arm.inertial(q, qd))
    if reference is None:
        return parts
    wanted = reference
    difference = wanted.position - q
    error = np.where(continuous, wrapped(difference), difference)
    correction = c.kd * (wanted.velocity - qd) + c.kp * error
    if c.kp.any() or c.kd.any():
        parts = parts._replace(feedback=parts.feedback + arm.inertial(q, correction))
    for where, speed, weights in (
        (q, qd, c.at_measured),
        (wanted.position, wanted.velocity, c.at_reference),
    ):
        if not weights.any():
            continue
        inertial = arm.inertial(where, wanted.acceleration)
        coriolis = arm.coriolis(where, speed)
        rigid = inertial + coriolis + arm.gravity(where)
        friction = np.zeros_like(q)
        if weights[3].any():
            direction = np.tanh(c.friction_slope * wanted.velocity)
            friction = _friction(law.friction, wanted.velocity, direction, rigid)
        each = inertial, coriolis, arm.gravity(where), friction, np.zeros_like(q), wanted.effort
        scale = *weights[:4], 0.0, weights[4]
        parts = TorqueParts(*(sum_ + w * x for sum_, w, x in zip(parts, scale, each, strict=True)))
    return parts


def gravity_torque(law: ControlLaw, q: np.ndarray) -> np.ndarray:
    """Return the gravity that a law compensates, shape (n,) [N m] or [N]."""
    return coefficients(law).gravity * Dynamics(law.inverse_dynamics).gravity(q)


def _friction(
    friction: Friction, velocity: np.ndarray, direction: np.ndarray, rigid_torque: np.ndarray
) -> np.ndarray:
    return np.asarray(friction(velocity[None], direction[None], rigid_torque[None]))[0]


# --- the limits ---------------------------------------------------------------------------------


def penetration(q: np.ndarray, limits: np.ndarray, slope: float) -> np.ndarray:
    """Return 0 for joints inside their limits (n, 2), to -1 and 1 far beyond them, shape (n,)."""
    above, below = np.maximum(q - limits[:, 1], 0.0), np.maximum(limits[:, 0] - q, 0.0)
    return np.clip(slope * above, 0.0, 1.0) - np.clip(slope * below, 0.0, 1.0)


def soft_limited(
    law: ControlLaw,
    torque: np.ndarray,
    q: np.ndarray,
    qd: np.ndarray,
    effort_limits: np.ndarray,
    position_limits: np.ndarray,
    chosen: Coefficients | None = None,
    period: float = 0.0,
) -> np.ndarray:
    """
    Return what a torque may be where the arm is, shape (n,) [N m] or [N].

    With the penetration p it is g + (1 - |p|) (tau - g) where tau - g points further out, and
    minus |p| K_d M_jj qd where the joint moves further out, K_d being at most a fifth of the rate
    at which states come [1/s]. Where the arm is inside its limits (n, 2), it is the torque.
    """
    c, arm = chosen or coefficients(law), Dynamics(law.inverse_dynamics)
    p = penetration(q, position_limits, c.limit_slope)
    if not p.any():
        return torque
    gravity, inertia = c.gravity * arm.gravity(q), np.diag(arm.mass_matrix(q))
    # Clipped first: of a torque far beyond the effort limits the fading would leave too much.
    more = np.clip(torque, -effort_limits, effort_limits) - gravity
    fading = np.where(p * more > 0.0, 1.0 - np.abs(p), 1.0)
    with np.errstate(invalid='ignore'):
        outward = np.where(p * qd > 0.0, qd, 0.0)
    most = 0.2 / period if period else np.inf
    return (
        gravity + fading * more - np.abs(p) * np.minimum(c.limit_damping, most) * inertia * outward
    )


LONGEST_RATE_STEP = 0.01
"""However long nothing was sent, the rate limit allows no more than this time's step [s]."""


def limited(
    torque: np.ndarray,
    last: np.ndarray | None,
    elapsed: float,
    effort_limits: np.ndarray,
    rate_limits: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return the torque to send a time [s] after the last one, and which joints each limit changed.

    A torque that is beyond effort limits which were lowered may only shrink.
    """
    clipped = np.clip(torque, -effort_limits, effort_limits)
    if last is None:
        return clipped, clipped != torque, np.zeros(len(torque), dtype=bool)
    step = rate_limits * min(max(elapsed, 1e-9), LONGEST_RATE_STEP)
    allowed = np.clip(clipped, last - step, last + step)
    most = np.maximum(effort_limits, np.abs(last))
    return np.clip(allowed, -most, most), clipped != torque, allowed != clipped


# --- the outside --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Positions, velocities and the drives' torques, each of shape (n,), at a time [s]."""

    q: np.ndarray
    qd: np.ndarray
    torque: np.ndarray
    time: float


def external_torque(
    inverse_dynamics: InverseDynamics,
    friction: Friction,
    before: Sample,
    now: Sample,
    direction: Callable[[np.ndarray], np.ndarray],
    *,
    is_held: bool,
) -> np.ndarray:
    """
    Return the outside's mean torque in the step between two samples, shape (n,) [N m] or [N].

    It is what the inverse dynamics ask for in the middle of the step, with the friction of a
    direction of motion there, less what the drives give.
    """
    step = now.time - before.time
    half = 0.5 * (now.qd + before.qd)
    rigid = Dynamics(inverse_dynamics).torque(
        now.q - 0.5 * step * half, half, (now.qd - before.qd) / step
    )
    driven = now.torque if is_held else 0.5 * (now.torque + before.torque)
    return rigid + _friction(friction, half, direction(half), rigid) - driven


def presliding_direction(
    before: np.ndarray, half: np.ndarray, step: float, displacement: float
) -> np.ndarray:
    """Return the direction of motion, -1 to 1, that turns over a displacement [rad] or [m]."""
    rest_velocity = 0.002  # a slower joint's velocity is noise
    moved = np.where(np.abs(half) > rest_velocity, half * step, 0.0)
    after = np.sign(moved) + np.exp(-np.abs(moved) / displacement) * (before - np.sign(moved))
    return np.where(moved == 0.0, before, after)


def low_pass(
    estimate: np.ndarray, external: np.ndarray, gain: np.ndarray, step: float
) -> np.ndarray:
    """Return the estimate after a step [s] of a first-order low-pass of a gain [1/s]."""
    return external + np.exp(-gain * step) * (estimate - external)
