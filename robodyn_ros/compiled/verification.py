# SPDX-License-Identifier: Apache-2.0
"""Compiled functions are used where they agree with NumPy at random states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from robodyn_ros.compiled.symbolic.kernels import KINDS
from robodyn_ros.dynamics import inverse_dynamics
from robodyn_ros.dynamics.friction import drive_velocity
from robodyn_ros.errors import NoBackend, Phrase
from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray

# How many random states are compared.
STATES = 20

# Tolerances, of the largest value over the states: of the same element (the two agree to 1e-10
# and better), and of the largest element.
RELATIVE_TOLERANCE = 1e-6
ABSOLUTE_TOLERANCE = 1e-9

# Of the largest torque, for what has torques as its terms: where they cancel, as the Coriolis
# torques of one joint do, the result is rounding alone.
ROUNDING = 1e-13

_LARGEST_ANGLE = 2.0 * np.pi  # of a joint that turns without end, or whose limits say nothing
_LARGEST_SPEED = 5.0  # where the URDF names no velocity limit [rad/s] or [m/s]
_LARGEST_ACCELERATION = 10.0  # [rad/s²] or [m/s²]

_WIDTH = 0.1  # of the smooth sign of friction [rad/s] or [m/s]
_WRENCH = 20.0  # [N] and [N m]

_TORQUES = ('inverse_dynamics', 'gravity_torque', 'bias_torque', 'mass_matrix')
_MADE_OF_LENGTHS = ('forward_kinematics', 'jacobian', 'regressor', 'base_regressor')
# What the mass matrix's condition magnifies the rounding of.
_ACCELERATIONS = ('forward_dynamics', 'forward_dynamics_derivatives', 'linearization')


def check_functions(
    functions: Mapping[str, Callable[..., FloatArray]], model: RobotModel, made_by: str
) -> None:
    """
    Check compiled functions at random states.

    Each is called with all states at once, and with each alone: these are different code.

    Parameters
    ----------
    functions : mapping of name to callable
        Those of a ``CompiledModel``.
    model : RobotModel
        What they were bound to.
    made_by : str
        The compiler, for the message.

    Raises
    ------
    NoBackend
        One gives something else than NumPy does.
    """
    states = random_states(model)
    torques = np.abs(states['tau'])
    rounding = ROUNDING * torques.max(initial=0.0, where=np.isfinite(torques))
    for name in functions.keys() - {*_ACCELERATIONS}:
        arguments = [states[key] for key in KINDS[name].inputs.split()]
        with np.errstate(all='ignore'):
            wanted = as_tuple(KINDS[name].reference(model, *arguments))
            together = as_tuple(functions[name](*arguments))
            rows = [as_tuple(functions[name](*row)) for row in zip(*arguments)]
        alone = [np.array(parts) for parts in zip(*rows)]
        for given, expected in [*zip(together, wanted), *zip(alone, wanted)]:
            by = 'Newton-Euler' if name in _TORQUES else 'NumPy'
            floor = 0.0 if name in _MADE_OF_LENGTHS else rounding
            difference = largest_difference(given, expected, by, floor)
            if difference:
                raise NoBackend(
                    f'compiled {name} by {made_by}', Phrase(difference), f'what {by} gives'
                )


def as_tuple(results: NDArray | Sequence[NDArray]) -> Sequence[NDArray]:
    """Return the results of a function that has one, or several."""
    return (results,) if isinstance(results, np.ndarray) else results


def random_states(model: RobotModel) -> dict[str, FloatArray]:
    """Return the same inputs (STATES, ...) each time, by the names that kernels give them."""
    generator = np.random.default_rng(0)
    low, high = np.clip(model.position_limits, -_LARGEST_ANGLE, _LARGEST_ANGLE).T
    speed = np.where(model.velocity_limits > 0.0, model.velocity_limits, _LARGEST_SPEED)
    speed = np.minimum(speed, _LARGEST_SPEED)
    unit = generator.uniform(-1.0, 1.0, (2, STATES, model.n))
    q = generator.uniform(np.minimum(low, high), np.maximum(low, high), (STATES, model.n))
    qd, qdd = speed * unit[0], _LARGEST_ACCELERATION * unit[1]
    with np.errstate(all='ignore'):
        tau = inverse_dynamics(model, q, qd, qdd)
    return {
        'q': q,
        'qd': qd,
        'qdd': qdd,
        'tau': tau,
        'rigid_torque': tau,
        'width': np.full((STATES, 1), _WIDTH),
        'direction': np.tanh(drive_velocity(model, qd) / _WIDTH),
        'tip_wrench': generator.uniform(-_WRENCH, _WRENCH, (STATES, 6 * len(model.tip_links))),
    }


def largest_difference(
    given: NDArray, wanted: NDArray, by: str = 'Newton-Euler', floor: float = 0.0
) -> str:
    """
    Return in words where the two differ most, beyond the tolerance; empty: nowhere.

    Parameters
    ----------
    given, wanted : array, shape (N, ...)
        Where what is wanted is not finite, nothing is compared.
    by : str
        What computed what is wanted.
    floor : float
        Differences up to here are none.
    """
    with np.errstate(all='ignore'):
        comparable = np.isfinite(wanted)
        largest = np.abs(np.where(comparable, wanted, 0.0)).max(axis=0)
        tolerance = (
            RELATIVE_TOLERANCE * largest + ABSOLUTE_TOLERANCE * largest.max(initial=0.0) + floor
        )
        difference = np.abs(given - wanted)
        is_wrong = comparable & ~(difference <= tolerance)
        if not is_wrong.any():
            return ''
        worst = np.where(comparable, np.nan_to_num(difference, nan=np.inf), 0.0)
    k = np.unravel_index(int(worst.argmax()), worst.shape)
    return f'{float(given[k]):.6g} where {by} gives {float(wanted[k]):.6g}'
