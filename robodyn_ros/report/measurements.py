# SPDX-License-Identifier: Apache-2.0
"""What an arm's functions cost on this machine: operation counts, and times of a call."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from robodyn_ros.compiled import RIGID_BODY, CompiledModel, compile_model
from robodyn_ros.dynamics import METHODS, Method, inverse_dynamics
from robodyn_ros.errors import NoBackend, SingularMassMatrix
from robodyn_ros.model import RobotModel

_SEED = 5
_ROUNDS = 5
_LEAST_TIME = 0.01
_ARGUMENTS = {
    'inverse_dynamics': ('q', 'qd', 'qdd'),
    'bias_torque': ('q', 'qd'),
    'coriolis_matrix': ('q', 'qd'),
    'forward_dynamics': ('q', 'qd', 'tau'),
}


@dataclass(frozen=True)
class CallTimes:
    """
    Operation counts of an arm's functions, and the times of a call on this machine.

    Attributes
    ----------
    operations : dict of function to (multiplications, additions)
        Of compiled code.
    microseconds : dict of function to time [µs]
        Of one call from Python for one state: 'compiled <function>', and the methods of
        ``inverse_dynamics`` in NumPy under their names. The fastest of a few rounds. Without
        forward dynamics where a link that moves has no inertia.
    missing : str
        Why nothing was compiled; empty otherwise.
    machine : str
    """

    operations: dict[str, tuple[int, int]]
    microseconds: dict[str, float]
    missing: str
    machine: str


def measured_call_times(model: RobotModel) -> CallTimes:
    """Return operation counts and times of an arm's functions, measured now."""
    generator = np.random.default_rng(_SEED)
    state = dict(zip(('q', 'qd', 'qdd'), generator.uniform(-1, 1, (3, model.n)), strict=True))
    state['tau'] = inverse_dynamics(model, *state.values())
    times: dict[str, float] = {}
    operations: dict[str, tuple[int, int]] = {}
    missing = ''
    compiled: CompiledModel | None = None
    try:
        compiled = compile_model(model, kernels=RIGID_BODY)
        operations = dict(compiled.operation_counts)
    except NoBackend as error:
        missing = str(error)
    for name in operations:
        arguments = [state[key] for key in _ARGUMENTS.get(name, ('q',))]
        function = getattr(compiled, name)
        try:
            out = np.empty_like(function(*arguments))
        except SingularMassMatrix:
            continue
        times[f'compiled {name}'] = _microseconds(_bound(function, arguments, out))
    for method in METHODS:
        times[method] = _microseconds(_method(model, method, state))
    return CallTimes(operations, times, missing, _machine())


def _bound(function: Callable[..., Any], arguments: list[Any], out: Any) -> Callable[[], Any]:
    return lambda: function(*arguments, out=out)


def _method(model: RobotModel, method: Method, state: dict[str, Any]) -> Callable[[], Any]:
    q, qd, qdd = state['q'], state['qd'], state['qdd']
    return lambda: inverse_dynamics(model, q, qd, qdd, method=method)


def _microseconds(call: Callable[[], Any]) -> float:
    timer, number = Timer(call), 1
    while timer.timeit(number) < _LEAST_TIME:
        number *= 4
    return 1e6 * min(timer.repeat(_ROUNDS, number)) / number


def _machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith('model name'):
            processor = line.partition(':')[2].strip()
            break
    python = f'{platform.python_implementation()} {platform.python_version()}'
    return f'{processor}, {platform.system()}, {python}, NumPy {np.__version__}'
