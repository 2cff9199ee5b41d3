# SPDX-License-Identifier: Apache-2.0
"""
Time the compiled functions against Pinocchio, MuJoCo and roboticstoolbox, all in one run.

    python benchmarks/compiled.py [--write] [--rounds 40]

Microseconds per call from Python for UR5, Panda and a chain of 30 joints; whole trajectories
against Pinocchio's parallel call on one thread; compile times; growth with the number of joints.
The competitors take turns and the fastest round of each counts, so that the ratios stand whatever
else the machine does. ``--write`` puts the tables into docs/benchmarks.md and a chart beside it.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from timeit import Timer

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'docs'))

import numpy as np
import pinocchio as pin
from draw_compiled import PAGE, PICTURE, draw
from oracles import PinocchioArm, random_states
from robots import public_urdf, random_chain

import robodyn_ros as rd
from robodyn_ros.compiled import RIGID_BODY, CompiledModel, compile_model
from robodyn_ros.control.rigid_body import RigidBodyTorque

SAMPLES = 4000
FUNCTIONS = ('inverse_dynamics', 'gravity_torque', 'mass_matrix', 'forward_dynamics', 'regressor')
PINOCCHIO = {
    'inverse_dynamics': 'pin.rnea(model, data, q, qd, qdd)',
    'gravity_torque': 'pin.computeGeneralizedGravity(model, data, q)',
    'mass_matrix': 'pin.crba(model, data, q)',
    'forward_dynamics': 'pin.aba(model, data, q, qd, tau)',
    'regressor': 'pin.computeJointTorqueRegressor(model, data, q, qd, qdd)',
}
OURS = {
    'inverse_dynamics': 'f(q, qd, qdd)',
    'gravity_torque': 'f(q)',
    'mass_matrix': 'f(q)',
    'forward_dynamics': 'f(q, qd, tau)',
    'regressor': 'f(q, qd, qdd)',
}
OUT = {name: call.replace(')', ', out=out)') for name, call in OURS.items()}


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


def mujoco_calls(source: str | Path, base: str, tip: str) -> dict[str, tuple[str, dict]]:
    """Return MuJoCo's calls for an arm, or nothing where it is not installed."""
    try:
        import mujoco

        from robodyn_ros.simulation.arm import ArmSimulation

        simulation = ArmSimulation.from_urdf(source, base_link=base, tip_link=tip)
    except (ImportError, rd.RobodynError):
        return {}
    scope = {'mujoco': mujoco, 'model': simulation._model, 'data': simulation._data}
    calls = {
        'inverse_dynamics': 'mujoco.mj_inverse(model, data)',
        'forward_dynamics': 'mujoco.mj_forward(model, data)',
    }
    return {name: (call, scope) for name, call in calls.items()}


def toolbox_calls(name: str, state: dict[str, np.ndarray]) -> dict[str, tuple[str, dict]]:
    """
    Return the calls of roboticstoolbox's own DH model of an arm, where it is installed.

    Its inverse dynamics run in C; gravity, mass matrix and forward dynamics call it from Python.
    """
    try:
        from roboticstoolbox.models import DH

        robot = getattr(DH, name)()
    except (ImportError, AttributeError):
        return {}
    calls = {
        'inverse_dynamics': 'robot.rne(q, qd, qdd)',
        'gravity_torque': 'robot.gravload(q)',
        'mass_matrix': 'robot.inertia(q)',
        'forward_dynamics': 'robot.accel(q, qd, tau)',
    }
    if np.linalg.matrix_rank(robot.inertia(state['q'])) < robot.n:
        del calls['forward_dynamics']
    return {name: (call, {'robot': robot}) for name, call in calls.items()}


def time_arm(
    label: str, source: str | Path, base: str, tip: str, rounds: int
) -> tuple[dict[str, dict[str, float]], rd.RobotModel]:
    """Return microseconds per call by function and competitor."""
    arm = rd.RobotModel.from_urdf(source, base_link=base, tip_link=tip)
    oracle = PinocchioArm.of(source, arm)
    q, qd, qdd = (x[0] for x in random_states(arm, 1, seed=1))
    compiled = compile_model(arm)
    changeable = compile_model(arm, kernels=RIGID_BODY, runtime=('gravity', 'payload'))
    state = {'q': q, 'qd': qd, 'qdd': qdd, 'tau': 5.0 * qdd}
    theirs = {**state, 'q': oracle.configuration(q), 'pin': pin, 'model': oracle.model}
    theirs['data'] = oracle.data
    mujoco = mujoco_calls(source, base, tip)
    toolbox = toolbox_calls(label, state)
    table = {}
    for name in FUNCTIONS:
        timers = {'Pinocchio': Timer(PINOCCHIO[name], globals=theirs)}
        function = our_function(compiled, name)
        timers['C'] = Timer(OURS[name], globals={**state, 'f': function})
        scope = {**state, 'f': function, 'out': eval(OURS[name], {**state, 'f': function})}
        timers['C, out='] = Timer(OUT[name], globals=scope)
        if name != 'regressor':
            timers['C, run-time payload'] = Timer(
                OURS[name], globals={**state, 'f': our_function(changeable, name)}
            )
        for competitor, calls in (('MuJoCo', mujoco), ('roboticstoolbox', toolbox)):
            if name in calls:
                call, scope = calls[name]
                timers[competitor] = Timer(call, globals={**state, **scope})
        table[name] = fastest(timers, rounds)
    return table, arm


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


def compile_times(arm: rd.RobotModel) -> list[tuple[float, float]]:
    """Return seconds, on the clock and of processors, of the node's code: new, and cached."""
    known = os.environ.get('ROBODYN_CACHE_DIR')
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ['ROBODYN_CACHE_DIR'] = str(Path(folder, 'cache'))
        for _ in range(2):
            start, used = perf_counter(), sum(os.times()[:4])
            RigidBodyTorque.of(arm, 'compiled')
            seconds.append((perf_counter() - start, sum(os.times()[:4]) - used))
    if known is None:
        del os.environ['ROBODYN_CACHE_DIR']
    else:
        os.environ['ROBODYN_CACHE_DIR'] = known
    return seconds


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


def markdown(tables: dict, batches: dict, times: list, rows: list[tuple]) -> str:
    lines = [
        '# How fast the compiled functions are',
        '',
        'Made by `python benchmarks/compiled.py --write`, in one run;',
        'the fastest of many rounds counts, in which the competitors take turns.',
        '',
        f'{machine()}.',
        '',
        '![Microseconds per call](images/compiled.png)',
        '',
        '## Microseconds per call from Python, and how many times Pinocchio takes',
        '',
        'One state, arguments and result NumPy arrays, the result allocated by the call but for',
        '`out=`. MuJoCo takes its state from its data structure; its forward dynamics includes',
        'kinematics and the search for contacts, of which there are none. roboticstoolbox',
        'computes its own DH models of these arms. Our regressor is that of the base parameters,',
        "Pinocchio's has ten columns a link. *Run-time payload* are functions that take gravity",
        "and the payload as inputs, as the node's inverse dynamics does.",
    ]
    for arm, table in tables.items():
        labels = sorted({label for row in table.values() for label in row}, key=_order)
        lines += ['', f'### {arm}', '', '| | ' + ' | '.join(labels) + ' |']
        lines.append('|---' * (len(labels) + 1) + '|')
        for name, row in table.items():
            cells = (_cell(row, label) for label in labels)
            lines.append(f'| {name.replace("_", " ")} | ' + ' | '.join(cells) + ' |')
    lines += [
        '',
        f'## Trajectories of {SAMPLES} samples: microseconds per sample of inverse dynamics',
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
        '## Compiling what a node needs, Panda',
        '',
        'Its inverse dynamics, for any gravity and a payload on any link.',
        '',
        '| | first time | from the cache |',
        '|---|---|---|',
        '| on the clock | ' + ' | '.join(f'{clock:.3f} s' for clock, _ in times) + ' |',
        '| of processors | ' + ' | '.join(f'{used:.2f} s' for _, used in times) + ' |',
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
    'MuJoCo',
    'roboticstoolbox',
    'C',
    'C, out=',
    'C, run-time payload',
)


def _order(label: str) -> int:
    return _LABELS.index(label)


def _cell(row: dict[str, float], label: str) -> str:
    if label not in row:
        return ''
    if label == 'Pinocchio':
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
    for name, (source, base, tip) in sources().items():
        tables[name], arm = time_arm(name, source, base, tip, arguments.rounds)
        batches[name] = time_batches(source, base, tip, arguments.rounds)
        panda = arm if name == 'Panda' else panda
    rows = growth(arguments.rounds)
    text = markdown(tables, batches, compile_times(panda), rows)
    print(text)
    if arguments.write:
        PAGE.write_text(text, encoding='utf-8')
        draw(text, PICTURE)


if __name__ == '__main__':
    main()
