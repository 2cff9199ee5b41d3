# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of serial arms from their URDF: torques, mass matrix, DH table.

>>> model = RobotModel.from_urdf('arm.urdf', base_link='base_link', tip_link='tool0')
>>> inverse_dynamics(model, q, qd, qdd)

Conventions are those of docs/conventions.md: SI units, arrays (n,) in chain order base to tip,
M(q) qdd + C(q, qd) qd + g(q) = tau, modified DH.

Errors are subclasses of ``RobodynError``. What takes longer to import is
imported on first use: ``robodyn_ros.analysis``, ``identification``, ``motions``, ``report``,
``simulation``, ``retime``.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from robodyn_ros.compiled import CompiledModel, compile_model
from robodyn_ros.description.records import Finding
from robodyn_ros.dh.table import DHTable
from robodyn_ros.dynamics import (
    bias_torque,
    christoffel_symbols,
    coriolis_matrix,
    forward_dynamics,
    forward_dynamics_derivatives,
    friction_torque,
    gravity_torque,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    linearization,
    mass_matrix,
)
from robodyn_ros.errors import (
    InsufficientRecording,
    InvalidArgument,
    MalformedData,
    MalformedUrdf,
    ModelMismatch,
    NoBackend,
    NoChain,
    NonFiniteValue,
    NoSolution,
    NoSuchName,
    NotReady,
    Overload,
    RejectedTrajectory,
    RobodynError,
    UnreadableSource,
    UnsupportedJoint,
    WrongType,
)
from robodyn_ros.errors import former_name as _former_name
from robodyn_ros.kinematics import forward_kinematics, jacobian
from robodyn_ros.model import Payload, RobotModel
from robodyn_ros.parameters import BaseParameters, base_parameters, regressor

__all__ = [
    'BaseParameters',
    'CompiledModel',
    'DHTable',
    'Finding',
    'InsufficientRecording',
    'InvalidArgument',
    'MalformedData',
    'MalformedUrdf',
    'ModelMismatch',
    'NoBackend',
    'NoChain',
    'NoSolution',
    'NoSuchName',
    'NonFiniteValue',
    'NotReady',
    'Overload',
    'Payload',
    'RejectedTrajectory',
    'RobodynError',
    'RobotModel',
    'TimedMotion',
    'UnreadableSource',
    'UnsupportedJoint',
    'WrongType',
    'base_parameters',
    'bias_torque',
    'christoffel_symbols',
    'compile_model',
    'coriolis_matrix',
    'forward_dynamics',
    'forward_dynamics_derivatives',
    'forward_kinematics',
    'friction_torque',
    'gravity_torque',
    'inverse_dynamics',
    'inverse_dynamics_derivatives',
    'jacobian',
    'linearization',
    'mass_matrix',
    'regressor',
    'retime',
]

__version__ = '0.5.0'

_IMPORTED_ON_FIRST_USE = ('analysis', 'identification', 'motions', 'report', 'simulation')
_ON_FIRST_USE = {'retime': 'control.retiming', 'TimedMotion': 'control.timed_motion'}
_ROOMS = ('compiled', 'errors', *_IMPORTED_ON_FIRST_USE)


def __getattr__(name: str) -> _Any:
    """Import a room or a function when it is first named; former names of errors still serve."""
    if name in _IMPORTED_ON_FIRST_USE:
        return _import_module(f'robodyn_ros.{name}')
    if name in _ON_FIRST_USE:
        return getattr(_import_module(f'robodyn_ros.{_ON_FIRST_USE[name]}'), name)
    return _former_name(__name__, name)


def __dir__() -> list[str]:
    """Return what users may rely on, for completion: not what this file imports for itself."""
    return sorted([*__all__, *_ROOMS, *(name for name in globals() if name.startswith('__'))])
