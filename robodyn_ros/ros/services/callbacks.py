# SPDX-License-Identifier: Apache-2.0
"""The service callbacks: convert the request, call one core function, convert the response."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from typing import Any

import numpy as np

from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    GetPayload,
    SetGravity,
    SetPayload,
)
from robodyn_ros.control.load import GravityChange, Load, gravity_text
from robodyn_ros.control.model_torque import Algorithm, RigidBodyTorque
from robodyn_ros.errors import InvalidArgument, NonFiniteValue, NotReady, Phrase, RobodynError
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.parameters import BaseParameters, base_parameters
from robodyn_ros.ros import conversions
from robodyn_ros.ros.plain_text import plain
from robodyn_ros.ros.shared_memory import Cycle

LONGEST_AGE = 1.0  # of a measured state that is the present one, unless another is given [s]


@dataclass(frozen=True, eq=False)
class Robot:
    """
    The robot's data for the services.

    Parameters
    ----------
    arm : RobotModel
        As configured, without payloads.
    load : Load
        Payloads and gravity that apply.
    model : RobotModel
        The arm under the load.
    longest_age : float
        Of a measured state that a request without a position is computed at [s].
    parameter_deviation : array, shape (count,), or None
        Of the base parameters, where the arm was identified.
    effort_scale : array, shape (n,), or None
        Torque for a unit of measured effort; None: 1.
    configured : float
        When, by the steady clock [s]: what was measured before is another robot's.
    algorithm : str
        Of the node: compiled functions answer where it commands by them.
    """

    arm: RobotModel
    load: Load
    model: RobotModel
    longest_age: float = LONGEST_AGE
    parameter_deviation: np.ndarray | None = None
    effort_scale: np.ndarray | None = None
    configured: float = 0.0
    algorithm: Algorithm = 'newton_euler'

    @classmethod
    def under(cls, load: Load, arm: RobotModel, **known: Any) -> Robot:
        """Return an arm under a load."""
        return cls(arm, load, load.applied_to(arm), **known)

    @cached_property
    def minimal_parameters(self) -> BaseParameters:
        """The base (minimal) parameters of the arm under the load."""
        return base_parameters(self.model)

    @cached_property
    def functions(self) -> Any:
        """Functions of the arm under the load, as ``RigidBodyTorque.functions`` has them."""
        return _torque_of(self.arm, self.algorithm).functions(self.model)


# Read from the cache, where the node's own left it: milliseconds at the first request.
_torque_of = lru_cache(maxsize=1)(RigidBodyTorque.of)


def responding(service: Callable[..., str | None]) -> Callable[..., Any]:
    """Return the service with its errors as ``success`` and ``message`` of the response."""

    @wraps(service)
    def respond(robot: Robot | None, request: Any, response: Any, *rest: Any) -> Any:
        response.success = False
        if robot is None:
            response.message = 'no robot: the node is not configured'
            return response
        try:
            response.message = service(robot, request, response, *rest) or ''
        except RobodynError as error:
            response.message = plain(str(error))
        else:
            response.success = True
            response.joint_names = list(robot.arm.joint_names)
        return response

    return respond


# --- what the arm is ---------------------------------------------------------------------------


@responding
def get_dh_parameters(
    robot: Robot, request: GetDHParameters.Request, response: GetDHParameters.Response
) -> None:
    """Fill in the DH table in the requested convention."""
    dh = robot.arm.dh
    tables = {'': lambda: dh, 'modified': lambda: dh, 'standard': dh.standard}
    if request.convention not in tables:
        raise InvalidArgument('request convention', request.convention, 'modified, standard')
    table = tables[request.convention]()
    response.prismatic = [bool(value) for value in table.prismatic]
    for name in ('alpha', 'a', 'beta', 'd', 'theta'):
        setattr(response, name, conversions.floats(getattr(table, name)))
    response.base_transform = conversions.transform(table.base_transform)
    response.tip_transform = conversions.transform(table.tip_transform)


@responding
def get_minimal_parameters(
    robot: Robot, request: GetMinimalParameters.Request, response: GetMinimalParameters.Response
) -> None:
    """Fill in the base (minimal) parameters of the arm under its load."""
    minimal = robot.minimal_parameters
    deviation = robot.parameter_deviation
    if deviation is None or len(deviation) != len(minimal.expressions):
        deviation = np.full(len(minimal.expressions), np.nan)
    response.parameters = [
        conversions.minimal_parameter(expression, float(each))
        for expression, each in zip(minimal.expressions, deviation, strict=True)
    ]
    response.no_effect = list(minimal.no_effect)
    response.classical_count = minimal.standard_count


# --- what it would do --------------------------------------------------------------------------


@responding
def get_mass_matrix(
    robot: Robot,
    request: GetMassMatrix.Request,
    response: GetMassMatrix.Response,
    measured: Cycle | None,
) -> None:
    """Fill in M(q) at the given position or at the measured one."""
    position = _position(robot, request.position, measured)
    response.mass_matrix = conversions.matrix(robot.functions.mass_matrix(position))


@responding
def get_dynamics_terms(
    robot: Robot,
    request: GetDynamicsTerms.Request,
    response: GetDynamicsTerms.Response,
    measured: Cycle | None,
) -> None:
    """Fill in M, C qd, g and friction at one state."""
    q, qd = _state(robot, request, measured)
    of_arm = robot.functions
    gravity = of_arm.gravity_torque(q)
    coriolis = of_arm.inverse_dynamics(q, qd, np.zeros_like(q)) - gravity
    response.position = conversions.floats(q)
    response.velocity = conversions.floats(qd)
    response.mass_matrix = conversions.matrix(of_arm.mass_matrix(q))
    response.coriolis = conversions.floats(coriolis)
    response.gravity = conversions.floats(gravity)
    friction = of_arm.friction_torque(qd, rigid_torque=coriolis + gravity)
    response.friction = conversions.floats(friction)


@responding
def compute_inverse_dynamics(
    robot: Robot,
    request: ComputeInverseDynamics.Request,
    response: ComputeInverseDynamics.Response,
    measured: Cycle | None,
) -> None:
    """Fill in the torques for an acceleration and a wrench at the tip."""
    q, qd = _state(robot, request, measured)
    qdd = _each_joint(robot, 'request acceleration', request.acceleration, np.zeros(robot.arm.n))
    wrench = conversions.wrench(request.tip_wrench)
    torque = robot.functions.inverse_dynamics(q, qd, qdd, tip_wrench=wrench)
    response.effort = conversions.floats(torque)
    friction = robot.functions.friction_torque(qd, rigid_torque=torque)
    response.friction = conversions.floats(friction)


@responding
def compute_forward_dynamics(
    robot: Robot,
    request: ComputeForwardDynamics.Request,
    response: ComputeForwardDynamics.Response,
    measured: Cycle | None,
) -> None:
    """Fill in the accelerations that torques cause."""
    q, qd = _state(robot, request, measured)
    effort = _each_joint(robot, 'request effort', request.effort)
    response.acceleration = conversions.floats(robot.functions.forward_dynamics(q, qd, effort))


# --- what it carries ---------------------------------------------------------------------------


@responding
def get_payload(robot: Robot, request: GetPayload.Request, response: GetPayload.Response) -> str:
    """Fill in the payloads."""
    load = robot.load
    response.payloads = [conversions.payload_message(payload) for payload in load.payloads]
    response.payload_mass = load.payload_mass
    response.moving_mass = float(robot.model.inertial_parameters[:, 9].sum())
    return str(load)


@responding
def set_payload(
    robot: Robot,
    request: SetPayload.Request,
    response: SetPayload.Response,
    apply: Callable[[Payload], Load],
) -> str:
    """Apply a payload between two control cycles."""
    return str(apply(conversions.payload(request.payload)))


@responding
def set_gravity(
    robot: Robot,
    request: SetGravity.Request,
    response: SetGravity.Response,
    apply: Callable[[GravityChange], Load],
) -> str:
    """Apply a gravity between two control cycles."""
    return gravity_text(apply(conversions.gravity(request.gravity)).gravity)


# --- the state asked about ----------------------------------------------------------------------


def _state(robot: Robot, request: Any, measured: Cycle | None) -> tuple[np.ndarray, np.ndarray]:
    """Return position and velocity, with the defaults in the requests' comments."""
    if len(request.position) == 0 and len(request.velocity) == 0:
        state = _current(robot, measured)
        velocity = _each_joint(robot, 'latest measured velocity', state.velocity)
        return state.position, velocity
    position = _position(robot, request.position, measured)
    at_rest = np.zeros(robot.arm.n)
    return position, _each_joint(robot, 'request velocity', request.velocity, at_rest)


def _position(robot: Robot, given: Sequence[float], measured: Cycle | None) -> np.ndarray:
    if len(given) > 0:
        return _each_joint(robot, 'request position', given)
    return _current(robot, measured).position


def _current(robot: Robot, measured: Cycle | None) -> Cycle:
    """Return the measured state, if it is recent enough to be the present one."""
    if measured is None:
        raise NotReady(
            'request position',
            Phrase('not given, and no joint state came yet'),
            f'{robot.arm.n} positions',
        )
    age = time.monotonic() - measured.received
    if age > robot.longest_age:
        raise NotReady(
            'age of the latest measured state',
            round(float(age), 3),
            f'at most {robot.longest_age:g} s, or {robot.arm.n} positions in the request',
            unit='s',
        )
    return measured


def _each_joint(
    robot: Robot,
    element: str,
    given: Sequence[float] | np.ndarray,
    default: np.ndarray | None = None,
) -> np.ndarray:
    """Return values of shape (n,), checked; where none are given, the default."""
    names = robot.arm.joint_names
    if len(given) == 0 and default is not None:
        return default
    if len(given) != len(names):
        raise InvalidArgument(
            element,
            Phrase(f'{len(given)} values'),
            f'{len(names)}, one for each of ' + ', '.join(names),
        )
    values = np.array(given, dtype=float)
    for joint, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise NonFiniteValue(f'{element} of joint {joint!r}', float(value), 'a finite number')
    return values
