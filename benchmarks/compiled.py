# SPDX-License-Identifier: Apache-2.0
"""
Time the compiled functions against other libraries, all in one run.

    python benchmarks/compiled.py [--write] [--rounds 40]

Microseconds per call from Python for UR5, Panda and a chain of 30 joints, beside Pinocchio, Drake
and iDynTree (C++), MuJoCo (C), frax (JAX) and roboticstoolbox, as far as they are installed
(``make bench`` does it); whole trajectories against Pinocchio's parallel call on one thread;
compile times; growth with the number of joints. The competitors take turns and the fastest round
of each counts, so that the ratios hold under any load of the machine; its load is printed beside.
``--write`` puts the tables into docs/benchmarks.md and a chart beside it. What cpp_calls.py and
frax_versions.py print stands below them, and stays.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time
from timeit import Timer

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'docs'))

import numpy as np
import peers
import pinocchio as pin
from draw_compiled import PAGE, PICTURE, draw
from oracles import PinocchioArm, random_states
from robots import public_urdf, random_chain

import robodyn_ros as rd
from robodyn_ros.compiled import KERNELS, CompiledModel, compile_model
from robodyn_ros.control.model_torque import RigidBodyTorque

SAMPLES = 4000
OTHERS = '\n## Called from C++\n'
"""Begins what other benchmarks print."""

OURS = {
    'inverse_dynamics': 'f(q, qd, qdd)',
    'gravity_torque': 'f(q)',
    'mass_matrix': 'f(q)',
    'coriolis_matrix': 'f(q, qd)',
    'forward_dynamics': 'f(q, qd, tau)',
    'inverse_dynamics_derivatives': 'f(q, qd, qdd); m(q)',
    'forward_dynamics_derivatives': 'f(q, qd, tau)',
    'regressor': 'f(q, qd, qdd)',
}
"""By function. The derivatives come with the mass matrix, as Pinocchio's do."""
FUNCTIONS = tuple(OURS)
DERIVATIVES = ('inverse_dynamics_derivatives', 'forward_dynamics_derivatives')
OF_LONG_CHAINS = tuple(name for name in FUNCTIONS if name not in DERIVATIVES)
OUT = {
    name: call.replace('; m(q)', '; m(q, out=mass)').replace(')', ', out=out)', 1)
    for name, call in OURS.items()
}


def sources() -> dict[str, tuple[str | Path, str, str]]:
    """Return URDF, base and tip link of the arms."""
    chain = random_chain(np.random.default_rng(30), 30, prismatic_fraction=0.0, fixed_links=False)
    return {
        'UR5': (public_urdf('ur5_robot.urdf'), 'base_link', 'tool0'),
        'Panda': (public_urdf('panda.urdf'), 'panda_link0', 'panda_link8'),
        '30 joints': (chain, 'base', 'tip'),
    }


def fastest(timers: dict[str, Timer], rounds: int, shortest: float = 2e-3) -> dict[str, float]:
    """Return microseconds per call: the fastest round of each, the timers taking turns."""
    numbers, best = {}, {}
    for name, timer in timers.items():
        timer.timeit(20)
        numbers[name] = max(1, int(shortest / (min(timer.repeat(5, 20)) / 20)))
        best[name] = np.inf
    for _ in range(rounds):
        for name, timer in timers.items():
            best[name] = min(best[name], timer.timeit(numbers[name]) / numbers[name] * 1e6)
    return best


def our_function(compiled: CompiledModel, name: str) -> Callable:
    return compiled.base_regressor if name == 'regressor' else getattr(compiled, name)


def time_arm(
    label: str, source: str | Path, base: str, tip: str, rounds: int
) -> tuple[dict[str, dict[str, float]], rd.RobotModel]:
    """Return microseconds per call by function and competitor."""
    arm = rd.RobotModel.from_urdf(source, base_link=base, tip_link=tip)
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=1))
    state = {'q': q, 'qd': qd, 'qdd': qdd, 'tau': 5.0 * qdd}
    expected = expected_results(arm, state)
    competitors = {
        'Pinocchio': peers.pinocchio_calls(source, arm, state),
        'Drake': peers.drake_calls(arm, state, expected),
        'iDynTree': peers.idyntree_calls(arm, state, expected),
        'MuJoCo': peers.mujoco_calls(source, base, tip),
        'frax': peers.frax_calls(arm, state, expected),
        'roboticstoolbox': peers.toolbox_calls(label, state),
    }
    compiled = compile_model(arm)
    table = {}
    for name in OF_LONG_CHAINS if arm.n > 10 else FUNCTIONS:
        timers = {
            library: Timer(calls[name][0], globals=calls[name][1])
            for library, calls in competitors.items()
            if name in calls
        }
        timers['C'] = our_timer(OURS[name], compiled, name, state)
        timers['C, out='] = our_timer(OUT[name], compiled, name, state)
        table[name] = fastest(timers, rounds)
    return table, arm


def our_timer(call: str, compiled: CompiledModel, name: str, state: dict) -> Timer:
    scope = {**state, 'f': our_function(compiled, name)}
    if 'm(q' in call:
        scope['m'] = compiled.mass_matrix
        scope['mass'] = scope['m'](state['q'])
    if 'out=out' in call:
        scope['out'] = eval(OURS[name].partition(';')[0], scope)
    return Timer(call, globals=scope)


def expected_results(arm: rd.RobotModel, state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what NumPy gives, to compare other libraries with."""
    q, qd, qdd, tau = (state[key] for key in ('q', 'qd', 'qdd', 'tau'))
    return {
        'inverse_dynamics': rd.inverse_dynamics(arm, q, qd, qdd),
        'gravity_torque': rd.gravity_torque(arm, q),
        'mass_matrix': rd.mass_matrix(arm, q),
        'forward_dynamics': rd.forward_dynamics(arm, q, qd, tau),
        'inverse_dynamics_derivatives': np.array(rd.inverse_dynamics_derivatives(arm, q, qd, qdd)),
    }


def time_batches(source: str | Path, base: str, tip: str, rounds: int) -> dict[str, float]:
    """Return microseconds of processor time per sample of whole trajectories."""
    arm = rd.RobotModel.from_urdf(source, base_link=base, tip_link=tip)
    oracle = PinocchioArm.of(source, arm)
    states = random_states(arm, SAMPLES, seed=2)
    out = np.empty((SAMPLES, arm.n))
    pool = pin.ModelPool(oracle.model, 1)
    configurations = np.array([oracle.configuration(q) for q in states[0]]).T
    columns = [np.asfortranarray(x) for x in (configurations, states[1].T, states[2].T)]
    result = np.empty((arm.n, SAMPLES), order='F')
    timers = {
        'Pinocchio': lambda: pin.rneaInParallel(1, pool, *columns, result),
        'C': partial_call(compile_model(arm).inverse_dynamics, states, out),
    }
    best = dict.fromkeys(timers, np.inf)
    for _ in range(2 * rounds):
        for name, function in timers.items():
            seconds = Timer(function, timer=process_time).timeit(5) / 5
            best[name] = min(best[name], seconds / SAMPLES * 1e6)
    return best


def partial_call(function: Callable, states: tuple[np.ndarray, ...], out: np.ndarray) -> Callable:
    return lambda: function(*states, out=out)


@contextmanager
def empty_cache() -> Iterator[None]:
    """Keep compiled code in a folder of its own that is empty at first."""
    known = os.environ.get('ROBODYN_CACHE_DIR')
    with tempfile.TemporaryDirectory() as folder:
        os.environ['ROBODYN_CACHE_DIR'] = str(Path(folder, 'cache'))
        try:
            yield
        finally:
            del os.environ['ROBODYN_CACHE_DIR']
            if known is not None:
                os.environ['ROBODYN_CACHE_DIR'] = known


def seconds_of(function: Callable) -> tuple[float, float]:
    """Return seconds on the clock, and of processors."""
    start, used = perf_counter(), sum(os.times()[:4])
    function()
    return perf_counter() - start, sum(os.times()[:4]) - used


def compile_times(arm: rd.RobotModel) -> list[tuple[float, float]]:
    """Return seconds of the node's code: new, and cached."""
    with empty_cache():
        return [seconds_of(lambda: RigidBodyTorque.of(arm, 'compiled')) for _ in range(2)]


def compile_times_by_function(arm: rd.RobotModel) -> dict[str, tuple[float, float]]:
    """Return seconds for the code of each function alone, new."""
    with empty_cache():
        return {name: seconds_of(partial(compile_model, arm, kernels=[name])) for name in KERNELS}


def growth(rounds: int, joints: tuple[int, ...] = (2, 5, 10, 15, 20, 25, 30)) -> list[tuple]:
    """Return (joints, microseconds, multiplications, additions) of random revolute chains."""
    rows = []
    for n in joints:
        text = random_chain(np.random.default_rng(n), n, prismatic_fraction=0.0, fixed_links=False)
        arm = rd.RobotModel.from_urdf(text, tip_link='tip')
        compiled = compile_model(arm, kernels=['inverse_dynamics'])
        q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=1))
        scope = {'f': compiled.inverse_dynamics, 'q': q, 'qd': qd, 'qdd': qdd, 'out': np.empty(n)}
        time = fastest({'': Timer('f(q, qd, qdd, out=out)', globals=scope)}, rounds)['']
        rows.append((n, time, *compiled.operation_counts['inverse_dynamics']))
    return rows


def versions() -> str:
    """Return the versions of the competitors that are installed."""
    names = ('drake', 'idyntree', 'mujoco', 'frax', 'jax', 'roboticstoolbox-python')
    found = []
    for name in names:
        with suppress(PackageNotFoundError):
            found.append(f'{name} {version(name)}')
    return ', '.join(found)


def machine() -> str:
    name = platform.processor() or platform.machine()
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines()
        name = next(line.split(':')[1].strip() for line in lines if line.startswith('model name'))
    except (OSError, StopIteration):
        pass
    return (
        f'{name}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, '
        f'Python {platform.python_version()}, NumPy {np.__version__}, Pinocchio {pin.__version__}'
    )


def markdown(
    tables: dict,
    batches: dict,
    times: list,
    by_function: dict,
    rows: list[tuple],
    samples: int,
    load: str,
) -> str:
    lines = [
        '# Benchmarks: compiled functions, compliance',
        '',
        'Made by `python benchmarks/compiled.py --write` in one run; the competitors take turns,',
        'and the fastest of many rounds counts.',
        '',
        f'{machine()}. {versions()}. Load average of the machine: {load}.',
        '',
        '![Microseconds per call](images/compiled.png)',
        '',
        '## Microseconds per call from Python',
        '',
        "In brackets, how many times as long Pinocchio's function takes through its bindings.",
        'Arguments and result are NumPy arrays, and each call but `out=` allocates its result.',
        '',
        '- MuJoCo reads its state from its data structure; its forward dynamics includes',
        '  kinematics and the search for contacts, of which there are none.',
        '- Drake and iDynTree are timed with the setting of their state. frax is compiled by JAX.',
        '- roboticstoolbox computes its own DH models of these arms.',
        "- Our regressor is that of the base parameters, Pinocchio's has ten columns a link.",
        '- The derivatives include the mass matrix (inverse dynamics) or its inverse (forward',
        "  dynamics), as Pinocchio's `computeRNEADerivatives` and `computeABADerivatives` do.",
    ]
    for arm, table in tables.items():
        timed = {label for row in table.values() for label in row}
        labels = [label for label in _LABELS if label in timed]
        lines += ['', f'### {arm}', '', '| | ' + ' | '.join(labels) + ' |']
        lines.append('|---|' + '--:|' * len(labels))
        for name, row in table.items():
            cells = (_cell(row, label) for label in labels)
            lines.append(f'| {name.replace("_", " ")} | ' + ' | '.join(cells) + ' |')
    lines += [
        '',
        f'## Trajectories of {samples} samples: microseconds per sample of inverse dynamics',
        '',
        "Processor time, one thread; Pinocchio's is `rneaInParallel`.",
        '',
        '| | Pinocchio | C |',
        '|---|---|---|',
    ]
    for arm, row in batches.items():
        cells = (_cell(row, label) for label in ('Pinocchio', 'C'))
        lines.append(f'| {arm} | ' + ' | '.join(cells) + ' |')
    lines += [
        '',
        '## Compilation for a node, Panda',
        '',
        'Its inverse dynamics, for any gravity and a payload on any link: '
        f'{times[0][0]:.2f} s the first time, {times[1][0]:.3f} s from the cache.',
        f'Each function alone takes {_extreme(min, by_function)} to {_extreme(max, by_function)};',
        'those not named to `compile_model` are compiled when they are first read.',
        '',
        '## Growth with the number of joints',
        '',
        'Inverse dynamics of random revolute chains, their constants folded in.',
        '',
        '| joints | µs per call, `out=` | multiplications | additions |',
        '|---|---|---|---|',
        *(f'| {n} | {time:.3f} | {m} | {a} |' for n, time, m, a in rows),
        '',
    ]
    return '\n'.join(lines)


_LABELS = (
    'Pinocchio',
    'C',
    'C, out=',
    'Drake',
    'iDynTree',
    'MuJoCo',
    'frax',
    'roboticstoolbox',
)


def _extreme(which: Callable, by_function: dict[str, tuple[float, float]]) -> str:
    name, (clock, _) = which(by_function.items(), key=lambda item: item[1][0])
    return f'{clock:.1f} s ({name.replace("_", " ")})'


def _cell(row: dict[str, float], label: str) -> str:
    if label not in row:
        return ''
    if label != 'C':
        return f'{row[label]:.3f}'
    return f'{row[label]:.3f} (×{_two_digits(row["Pinocchio"] / row[label])})'


def _two_digits(ratio: float) -> str:
    return f'{ratio:.1f}' if ratio >= 1.0 else f'{ratio:.2g}'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--rounds', type=int, default=40)
    arguments = parser.parse_args()
    tables, batches, panda = {}, {}, None
    before = os.getloadavg()
    for name, (source, base, tip) in sources().items():
        tables[name], arm = time_arm(name, source, base, tip, arguments.rounds)
        batches[name] = time_batches(source, base, tip, arguments.rounds)
        panda = arm if name == 'Panda' else panda
    rows = growth(arguments.rounds)
    load = f'{before[0]:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end'
    by_function = compile_times_by_function(panda)
    text = markdown(tables, batches, compile_times(panda), by_function, rows, SAMPLES, load)
    print(text)
    if arguments.write:
        _, heading, others = PAGE.read_text(encoding='utf-8').partition(OTHERS)
        PAGE.write_text(text + heading + others, encoding='utf-8')
        draw(text, PICTURE)


if __name__ == '__main__':
    main()
