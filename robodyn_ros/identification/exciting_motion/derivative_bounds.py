# SPDX-License-Identifier: Apache-2.0
"""
How fast torques and points of an arm can change at most, from bounds on its joints' derivatives.

What lies between two samples of a function f is no further from both than h² max |f''| / 8. The
bounds of |f''| here hold for every motion whose derivatives stay within those given. They come
from the Newton-Euler equations with every sum of vectors replaced by the sum of lengths: far from
tight, but h² makes them small.

A *jet* is an array of bounds of a quantity's length and those of its derivatives, orders 0, 1, ...
The derivatives of a product follow Leibniz's rule; those of a vector v fixed to a body that turns
with w follow from v' = w x v.
"""

from __future__ import annotations

from math import comb

import numpy as np

from robodyn_ros.model import RobotModel
from robodyn_ros.spatial import FloatArray, inertia_tensor


def second_derivative_bounds(
    model: RobotModel, positions: FloatArray, derivatives: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """
    Return bounds of the second derivatives in time of joint torques and of points.

    Parameters
    ----------
    model : RobotModel
    positions : array, shape (n,)
        Bounds of the prismatic joints' distance from zero [m]; others' are not used.
    derivatives : array, shape (4, n)
        Bounds of the derivatives of q of order 1 to 4.

    Returns
    -------
    torque : array, shape (n,)
        [N m/s² or N/s²], rotors' part included.
    frames : array, shape (n, 2)
        Of the acceleration of a point of body i: this of the frame's origin [m/s²], and for each
        metre that the point is away from it [1/s²].
    """
    n, prismatic = model.n, model.dh.prismatic
    gravity = float(np.linalg.norm(model.gravity))
    turning = np.zeros((n, 4))  # jets of each joint's angular velocity, relative to the one before
    turning[~prismatic] = derivatives.T[~prismatic]
    sliding = np.zeros((n, 5))
    sliding[:, 0], sliding[:, 1:] = positions, derivatives.T

    w = np.zeros(4)  # of the body before
    steps, axes, spins = [], [], []
    for j in range(n):
        axis = _fixed(1.0, w, 5)
        step = _fixed(float(abs(model.dh.a[j]) + abs(model.dh.d[j])), w, 5)
        if prismatic[j]:
            step = step + _product(sliding[j], axis)
        w = w + _product(turning[j], axis[:4])
        axes.append(axis)
        steps.append(step)
        spins.append(w)

    torque = model.rotor_inertia * derivatives[3]
    frames = np.zeros((n, 2))
    origin = np.zeros(5)
    for i in range(n):
        origin = origin + steps[i]
        acceleration = origin[2:].copy()
        frames[i] = acceleration[0], _fixed(1.0, spins[i], 3)[2]
        acceleration[0] += gravity
        body = model.inertial_parameters[i]
        tensor = float(np.linalg.norm(inertia_tensor(body), ord=2))
        mass, moment = abs(float(body[9])), float(np.linalg.norm(body[6:9]))
        momentum = _product(_turned_tensor(tensor, spins[i]), spins[i])
        first = _fixed(moment, spins[i], 5)
        force = mass * acceleration + first[2:]
        couple = momentum[1:] + _product(first[:3], acceleration)
        lever = np.zeros(3)
        for j in range(i, -1, -1):
            felt = force if prismatic[j] else couple + _product(lever, force)
            torque[j] += _product(axes[j][:3], felt)[2]
            lever = lever + steps[j][:3]
    return torque, frames


def _product(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the jet of a product, of as many orders as the shorter factor."""
    orders = min(len(one), len(other))
    return np.array(
        [sum(comb(r, s) * one[s] * other[r - s] for s in range(r + 1)) for r in range(orders)]
    )


def _fixed(length: float, w: FloatArray, orders: int, factor: float = 1.0) -> FloatArray:
    """Return the jet of what is fixed to a body that turns with the jet w."""
    jet = np.zeros(orders)
    jet[0] = length
    for r in range(orders - 1):
        jet[r + 1] = factor * sum(comb(r, s) * w[s] * jet[r - s] for s in range(r + 1))
    return jet


def _turned_tensor(norm: float, w: FloatArray) -> FloatArray:
    """Return the jet of an inertia tensor fixed to a body: J' = S(w) J - J S(w)."""
    return _fixed(norm, w, 4, factor=2.0)
