# SPDX-License-Identifier: Apache-2.0
"""The joint space of an analysis: the box between the joint limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution, minimize
from scipy.stats import qmc

from robodyn_ros.arguments import checked_type, float_array
from robodyn_ros.errors import InvalidArgument, NoSuchName
from robodyn_ros.model import RobotModel, checked_model, position_unit
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray

Limits = Mapping[str, tuple[float, float]]
Function = Callable[[NDArray], NDArray]

_SEED = 20
_MEMBERS_PER_JOINT = 8
_SCATTERED = 2048
_STARTS = 12
_EVALUATIONS = 2000
_COMPLEX_STEP = 1e-30


@dataclass(frozen=True, eq=False, repr=False)
class Extreme(Record):
    """
    A smallest or largest value, and where it occurs.

    ``position`` [rad or m] is of all joints in chain order; those that the value does not depend
    on stand in the middle of their limits.
    """

    value: float
    position: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class JointSpace(Record):
    """The box lower <= q <= upper, arrays (n,) [rad or m]."""

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of(cls, model: RobotModel, limits: Limits | None = None) -> JointSpace:
        """
        Return the box of a model's position limits.

        Parameters
        ----------
        model : RobotModel
        limits : mapping of joint name to (lower, upper), optional
            [rad or m], in place of the model's. A revolute joint without limits makes one turn,
            from -pi to pi.

        Raises
        ------
        NoSuchName
        InvalidArgument
            A prismatic joint has no limits, or a lower one lies above the upper one.
        """
        box = checked_model(model).position_limits.copy()
        allowed = "a mapping, as {'joint1': (-1.0, 1.0)}"
        for name, pair in checked_type('limits', limits or {}, Mapping, allowed).items():
            if name not in model.joint_names:
                known = ', '.join(map(repr, model.joint_names))
                raise NoSuchName('argument limits', name, f'one of {known}')
            bounds = float_array(f'limits[{name!r}]', pair)
            if bounds.shape != (2,):
                raise InvalidArgument(
                    f'argument limits[{name!r}]', pair, 'a lower and an upper one'
                )
            box[model.joint_names.index(name)] = bounds
        turn = np.array([-np.pi, np.pi])
        box = np.where(np.isfinite(box) | model.dh.prismatic[:, None], box, turn)
        for name, (lower, upper), slides in zip(
            model.joint_names, box, model.dh.prismatic, strict=True
        ):
            if not (np.isfinite([lower, upper]).all() and lower <= upper):
                raise InvalidArgument(
                    f'position limits of joint {name!r}',
                    (float(lower), float(upper)),
                    'finite ones, the lower not above the upper; see the argument limits',
                    unit=position_unit(slides),
                )
        return cls(box[:, 0], box[:, 1])

    @property
    def center(self) -> FloatArray:
        """The middle of the box (n,)."""
        return (self.lower + self.upper) / 2

    def sample(self, count: int, seed: int = _SEED) -> FloatArray:
        """Return evenly scattered positions (count, n), always the same for one seed."""
        points = qmc.Sobol(len(self.lower), seed=seed).random_base2((count - 1).bit_length())
        return self.lower + points[:count] * (self.upper - self.lower)

    def extremes(self, function: Function, joints: Sequence[int]) -> tuple[Extreme, Extreme]:
        """
        Return the smallest and the largest value of a function of the joint positions.

        Parameters
        ----------
        function : callable
            Takes positions (N, n) to values (N,), for complex positions too.
        joints : sequence of int
            Those that the function depends on; the others stand in the middle.

        Notes
        -----
        Differential evolution (Storn and Price 1997) and, beside it, truncated Newton descents
        with exact gradients from the best of many scattered positions; from the best of all, one
        more descent down to rounding. Seeded: the same every time. Nothing proves that it is the
        global extreme.
        """
        return self._smallest(function, joints, 1.0), self.largest(function, joints)

    def largest(self, function: Function, joints: Sequence[int]) -> Extreme:
        """Return the largest value alone, as ``extremes`` does."""
        return self._smallest(function, joints, -1.0)

    def _smallest(self, function: Function, joints: Sequence[int], sign: float) -> Extreme:
        free = [j for j in joints if self.lower[j] < self.upper[j]]
        if not free:
            return self._at(function, self.center[None])
        count = len(free)
        lower, upper = self.lower[free], self.upper[free]

        def placed(x: NDArray) -> NDArray:
            q = np.empty((len(x), len(self.lower)), dtype=x.dtype)
            q[:] = self.center
            q[:, free] = x
            return q

        def values(x: NDArray) -> NDArray:
            return sign * function(placed(x.T))

        def sum_and_gradient(x: NDArray) -> tuple[float, NDArray]:
            # The sum over any number of positions, which so descend together.
            starts = x.reshape(-1, 1, count)
            steps = starts + 1j * _COMPLEX_STEP * np.eye(count)
            found = sign * function(placed(steps.reshape(-1, count)))
            total = float(found[::count].real.sum())
            return total, found.imag / _COMPLEX_STEP

        def descended(starts: NDArray, change: float) -> NDArray:
            """Return where descents from positions (k, count) end."""
            bounds = Bounds(np.tile(lower, len(starts)), np.tile(upper, len(starts)))
            result = minimize(
                sum_and_gradient,
                starts.ravel(),
                jac=True,
                bounds=bounds,
                method='TNC',
                options={'ftol': change, 'gtol': change, 'maxfun': _EVALUATIONS},
            )
            return result.x.reshape(-1, count)

        evolved = differential_evolution(
            values,  # type: ignore[arg-type]  # vectorised: a value for each column
            Bounds(lower, upper),
            popsize=_MEMBERS_PER_JOINT,
            init='sobol',
            updating='deferred',
            vectorized=True,
            polish=False,
            seed=_SEED,
        ).x
        scattered = self.sample(_SCATTERED)[:, free]
        order = np.argsort(values(scattered.T))[: _STARTS * _STARTS]
        starts = _far_apart(scattered[order] / (upper - lower), scattered[order])
        ends = descended(np.vstack([evolved[None], starts]), 1e-9)
        best = ends[[np.argmin(values(ends.T))]]
        ends = np.vstack([best, descended(best, 1e-16)])
        return self._at(function, placed(ends[[np.argmin(values(ends.T))]]))

    @staticmethod
    def _at(function: Function, q: NDArray) -> Extreme:
        return Extreme(float(function(q)[0]), tuple(map(float, q[0])))


def _far_apart(scaled: NDArray, positions: NDArray) -> NDArray:
    """Return a few positions: the first, and each time the one furthest from those before."""
    kept = [0]
    distance = np.full(len(scaled), np.inf)
    while len(kept) < min(_STARTS, len(scaled)):
        distance = np.minimum(distance, np.linalg.norm(scaled - scaled[kept[-1]], axis=1))
        kept.append(int(distance.argmax()))
    return positions[kept]
