# SPDX-License-Identifier: Apache-2.0
"""
The numeric step of a control cycle as machine code: law, soft joint limits, effort and rate limit.

Its C is ``c/torque_step.h``, which a controller in C or C++ can include, too. ``computed_torque``,
``soft_joint_limit`` and ``torque_limits`` compute the same in NumPy: they are what it is compared
with, and serve where there is no compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from robodyn_ros.control.computed_torque import ControlLaw, TorqueParts
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.law_weights import LawWeights
from robodyn_ros.control.machine_code import believed_module, module_source
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.soft_joint_limit import soft_limited
from robodyn_ros.control.torque_limits import LONGEST_RATE_STEP, limited_torque
from robodyn_ros.errors import NoBackend

_MODULE, _NAME = 'torque_step_module.c', 'robodyn_torque_step'
_NO_REFERENCE = (None, None, None, None)
_STATES = 10  # that it is compared at
_POINTS = 4  # of the motion along which whole cycles are, one a second
_BEYOND = 0.05  # the position limits, at every other [rad] or [m]
_TOLERANCE = 1e-9  # of the largest torque


@dataclass(frozen=True, eq=False)
class CompiledStep:
    """
    The functions of the machine code; made by ``of``.

    Parameters
    ----------
    limited : callable
        (torque, effort_limits, rate_limits, last or None, elapsed) to the torque to send and which
        joints the effort and the rate limits held back, shape (n,) each.
    plain_cycle : callable
        A whole cycle about which nothing needs a closer look: see ``PlainCycles``.
    """

    limited: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
    plain_cycle: Callable[..., Any]
    _evaluated: Callable[..., Any]

    @classmethod
    def of(cls, law: ControlLaw, effort_limits: np.ndarray, limits: np.ndarray) -> CompiledStep:
        """
        Return the step, from the cache or compiled, after a comparison with NumPy.

        Parameters
        ----------
        law : ControlLaw
            Of the arm that it is compared for.
        effort_limits, limits : array, shape (n,) and (n, 2)
            Effort and position limits.

        Raises
        ------
        NoBackend
            No compiler, or its code computes something else.
        """

        def check(module: Any) -> None:
            step = of(module)
            step._check(law, effort_limits, limits)
            step._check_cycles(law, effort_limits, limits)

        def of(module: Any) -> CompiledStep:
            return cls(module.limited, module.plain_cycle, module.evaluated)

        return of(believed_module(module_source(_MODULE), _NAME, check))

    def evaluated(
        self,
        law: ControlLaw,
        state: MeasuredState,
        reference: ReferenceState | None,
        effort_limits: np.ndarray,
        position_limits: np.ndarray,
    ) -> tuple[np.ndarray, TorqueParts, np.ndarray | None] | None:
        """
        Return what ``law.torque`` and ``soft_limited`` do: a torque, its parts, the penetration.

        None where the torque is not finite.
        """
        wanted = (
            _NO_REFERENCE
            if reference is None
            else (
                reference.position,
                reference.velocity,
                reference.acceleration,
                reference.effort,
            )
        )
        found = self._evaluated(
            law.numbers,
            law.inverse_dynamics,
            law.friction_torque,
            state.position,
            state.velocity,
            *wanted,
            effort_limits,
            position_limits,
        )
        if found is None:
            return None
        torque, parts, penetration = found
        return torque, TorqueParts(*parts), penetration

    def _check(self, law: ControlLaw, effort_limits: np.ndarray, limits: np.ndarray) -> None:
        """Compare with NumPy at random states, laws and references, beyond the limits, too."""
        generator, n = np.random.default_rng(0), len(law.kp)
        low, high = np.clip(limits, -np.pi, np.pi).T
        for k in range(_STATES):
            draw = generator.uniform(-1.0, 1.0, (7, n))
            middle, half = 0.5 * (low + high), 0.5 * (high - low)
            if k % 2:
                position = middle + np.copysign(half + _BEYOND, draw[0])
            else:
                position = middle + half * draw[0]
            state = MeasuredState(position, draw[1], 0.0)
            reference = ReferenceState(position + 0.1 * draw[2], draw[3], draw[4], draw[5])
            one = law.with_weights(_random_weights(generator, law.weights, draw[6]))
            followed = reference if k % 3 else None
            with np.errstate(all='ignore'):
                parts = one.torque(position, draw[1], followed)
                torque, _ = soft_limited(parts.total, one, state, effort_limits, limits)
                found = self.evaluated(one, state, followed, effort_limits, limits)
            if not np.isfinite(torque).all():
                continue
            scale = max(np.abs(parts).max(), np.abs(torque).max(), 1.0)
            given = np.full(n, np.nan) if found is None else found[0]
            if not (np.abs(given - torque) <= _TOLERANCE * scale).all():
                raise NoBackend('compiled step of a cycle', given.tolist(), torque.tolist())

    def _check_cycles(
        self, law: ControlLaw, effort_limits: np.ndarray, limits: np.ndarray
    ) -> None:
        """Compare whole cycles with NumPy along a random motion, after random torques."""
        generator, n = np.random.default_rng(1), len(law.kp)
        low, high = np.clip(limits, -np.pi, np.pi).T
        draw = generator.uniform(-1.0, 1.0, (4, _POINTS, n))
        places = 0.5 * (low + high) + 0.3 * (high - low) * draw[0]
        motion = Reference.through(range(_POINTS), ReferenceState(places, *draw[1:]), 0.5)
        for time in generator.uniform(0.0, _POINTS, _STATES):
            wanted = motion.sample(time)
            draw = generator.uniform(-1.0, 1.0, (4, n))
            state = MeasuredState(wanted.position + 0.05 * draw[0], draw[1], time)
            one = law.with_weights(_random_weights(generator, law.weights, draw[2]))
            last = np.clip(100.0 * draw[3], -effort_limits, effort_limits)
            rate_limits, elapsed = 1e3 * np.abs(draw[0]), generator.uniform() * LONGEST_RATE_STEP
            never = (np.inf, np.inf, np.inf)  # too far, too fast, too far from what it follows
            with np.errstate(all='ignore'):
                parts = one.torque(state.position, state.velocity, wanted)
                torque, _ = soft_limited(parts.total, one, state, effort_limits, limits)
                expected, _, _ = limited_torque(torque, effort_limits, rate_limits, last, elapsed)
                found = self.plain_cycle(
                    cycle_constants(one, effort_limits, limits, rate_limits, *never),
                    motion.arrays,
                    state.position,
                    state.velocity,
                    state.position,
                    time,
                    last,
                    elapsed,
                )
            if not np.isfinite(torque).all():
                continue
            scale = max(np.abs(parts).max(), np.abs(torque).max(), 1.0)
            given = np.full(n, np.nan) if found is None else found[0]
            if not (np.abs(given - expected) <= _TOLERANCE * scale).all():
                raise NoBackend('compiled step of a cycle', given.tolist(), expected.tolist())
            sampled = np.array(
                [wanted.position, wanted.velocity, wanted.acceleration, wanted.effort]
            )
            followed = np.array(found[-1])
            if not np.allclose(followed, sampled, rtol=_TOLERANCE, atol=_TOLERANCE):
                raise NoBackend('compiled reference', followed.tolist(), sampled.tolist())


def cycle_constants(
    law: ControlLaw,
    effort_limits: np.ndarray,
    position_limits: np.ndarray,
    rate_limits: np.ndarray,
    largest_step: float,
    largest_speed: float,
    largest_error: float,
) -> tuple[Any, ...]:
    """Return what ``plain_cycle`` is given beside state and reference, in the module's order."""
    return (
        law.numbers,
        law.inverse_dynamics,
        law.friction_torque,
        effort_limits,
        position_limits,
        rate_limits,
        largest_step,
        largest_speed,
        largest_error,
    )


def _random_weights(
    generator: np.random.Generator, weights: LawWeights, gain: np.ndarray
) -> LawWeights:
    """Return coefficients of a law in transition: of every part some."""
    share = generator.uniform(0.0, 1.0, 13)
    return LawWeights(
        share[0],
        share[1:6],
        share[6:11],
        10.0 * np.abs(gain),
        5.0 * np.abs(gain),
        share[11],
        weights.friction_slope,
        10.0 * share[12],
        np.abs(gain),
    )
