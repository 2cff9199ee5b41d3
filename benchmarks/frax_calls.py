# SPDX-License-Identifier: Apache-2.0
"""
Time frax in the interpreter that runs this: microseconds per call, as JSON.

    PYTHON benchmarks/frax_calls.py arm.urdf state.npz ROUNDS

For benchmarks/frax_versions.py, with interpreters that have different versions of JAX: it imports
frax, JAX and NumPy alone. The file holds q, qd, qdd and the expected results.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from timeit import Timer

os.environ['JAX_ENABLE_X64'] = '1'
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false'

import frax
import jax
import numpy as np


def main() -> None:
    robot = frax.Robot(sys.argv[1])
    given = np.load(sys.argv[2])
    rounds = int(sys.argv[3])
    q, qd, qdd = (given[name] for name in ('q', 'qd', 'qdd'))
    # Gravity as the base's acceleration: linear first, as its own gravity_vector has it.
    field = np.array([0.0, 0.0, 9.81, 0.0, 0.0, 0.0])
    calls = {
        'inverse_dynamics': (
            jax.jit(lambda *state: robot.rnea(*state, field, None)),
            (q, qd, qdd),
        ),
        'gravity_torque': (jax.jit(robot.gravity_vector), (q,)),
        'mass_matrix': (jax.jit(robot.mass_matrix), (q,)),
    }
    taken = {}
    for name, (function, arguments) in calls.items():
        result, wanted = np.asarray(function(*arguments)), given[f'expected_{name}']
        if not np.allclose(result, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max()):
            raise RuntimeError(f'{name}: {result} where we have {wanted}')
        # As NumPy arrays from Python, and on the device already.
        for where, on in (('', arguments), (', on the device', jax.device_put(arguments))):
            scope = {'f': function, 'x': on, 'ready': jax.block_until_ready}
            timer = Timer('ready(f(*x))', globals=scope)
            timer.timeit(200)
            taken[name + where] = min(timer.repeat(rounds, 200)) / 200 * 1e6
    print(json.dumps({'taken': taken, 'jax': version('jax'), 'frax': version('frax')}))


if __name__ == '__main__':
    main()
