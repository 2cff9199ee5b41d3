# SPDX-License-Identifier: Apache-2.0
"""
Time Pinocchio, the code that it generates, and ours, all called from C++.

    python benchmarks/cpp_calls.py [--program FILE] [--rounds 200]

cpp_calls.cpp is compiled against Pinocchio's headers, those of CasADi (``pip install casadi``) and
of Debian's libeigen3-dev and liburdfdom-headers-dev: some minutes, for FILE, if that is not there.
It writes Pinocchio's algorithms as C by CasADi, which is compiled with the flags of our library.
All read the same URDF, each call has another state, results are compared before they are timed,
and of many rounds the fastest counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import casadi
import peers
import pinocchio as pin
from compiled import machine, sources
from controller_core import cpp_compiler, headers

import robodyn_ros as rd
from robodyn_ros.compiled import export_c, export_shared
from robodyn_ros.compiled.c.compiler import c_compiler

SOURCE = Path(__file__).with_suffix('.cpp')
ARMS = ('UR5', 'Panda')
FUNCTIONS = ('inverse_dynamics', 'gravity_torque', 'mass_matrix')
# Pinocchio's variant of joints has more members than Boost's lists by default.
OPTIONS = ('-std=c++17', '-O3', '-DNDEBUG', '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS')
OPTIONS += ('-DBOOST_MPL_LIMIT_LIST_SIZE=30', '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30')
OPTIONS += ('-DBOOST_FUSION_INVOKE_MAX_ARITY=12',)
FLAGS = ('-O2', '-shared', '-fPIC', '-ffp-contract=off')  # of our library
CALLED = {
    'pinocchio': f'Pinocchio {pin.__version__}, its headers at -O3',
    'code': f'its C, by CasADi {casadi.__version__}',
    'export_c': 'C of `export_c`',
    'library': 'library of `export_shared`, for any payload and gravity',
}


def compiled_program(program: Path, folder: Path) -> None:
    """Compile the program."""
    prefix = next(parent for parent in Path(pin.__file__).parents if parent.name == 'cmeel.prefix')
    own = Path(casadi.__file__).parent
    folders = (prefix / 'include', Path('/usr/include/eigen3'), own / 'include')
    libraries = (prefix / 'lib', own)
    command = [cpp_compiler(), *OPTIONS, *headers(folder)]
    command += [word for each in folders for word in ('-isystem', str(each))]
    command += [str(SOURCE), '-o', str(program)]
    command += [word for each in libraries for word in (f'-L{each}', f'-Wl,-rpath,{each}')]
    subprocess.run(
        [*command, '-lpinocchio_parsers', '-lpinocchio_default', '-lcasadi', '-ldl'], check=True
    )


def library(source: Path) -> Path:
    """Compile C with the flags of our library."""
    made = source.with_suffix('.so')
    subprocess.run([*c_compiler(), *FLAGS, str(source), '-o', str(made), '-lm'], check=True)
    return made


def timed(program: Path, label: str, rounds: int, folder: Path) -> list[str]:
    """Return the rows of an arm [ns]."""
    source, base, tip = sources()[label]
    arm = rd.RobotModel.from_urdf(source, base_link=base, tip_link=tip)
    urdf = folder / 'arm.urdf'
    urdf.write_text(peers.plain_urdf(arm), encoding='utf-8')
    plain = rd.RobotModel.from_urdf(urdf)
    subprocess.run([program, 'generate', urdf, 'pinocchio_code'], check=True, cwd=folder)
    _, exported, _ = export_c(plain, folder / 'c', kernels=FUNCTIONS)
    shared = export_shared(plain, folder / 'shared')[0]
    files = [shared, library(folder / 'pinocchio_code.c'), library(exported)]
    command = [program, 'time', urdf, *files, rounds]
    done = subprocess.run(
        [str(word) for word in command], check=True, capture_output=True, text=True
    )
    taken: dict[str, dict[str, float]] = {key: {} for key in CALLED}
    for line in done.stdout.splitlines():
        function, key, nanoseconds = line.split(',')
        taken[key][function] = float(nanoseconds)
    names = [name.replace('_', ' ') for name in FUNCTIONS]
    rows = [f'| {label}, called from C++ | {" | ".join(names)} |', '|---|' + '--:|' * len(names)]
    for key, what in CALLED.items():
        cells = []
        for name in names:
            ratio = taken['pinocchio'][name] / taken[key][name]
            cells.append(
                f'{taken[key][name]:.0f}' + ('' if key == 'pinocchio' else f' (×{ratio:.1f})')
            )
        rows.append(f'| {what} | {" | ".join(cells)} |')
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n')[0])
    parser.add_argument('--program', type=Path)
    parser.add_argument('--rounds', type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = (arguments.program or folder / 'cpp_calls').resolve()
        if not program.exists():
            compiled_program(program, folder)
        before = os.getloadavg()[0]
        tables = [timed(program, label, arguments.rounds, folder) for label in ARMS]
    load = f'{before:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end'
    print(f'Nanoseconds per call. {machine()}. Load average of the machine: {load}.')
    for rows in tables:
        print('\n'.join(['', *rows]))


if __name__ == '__main__':
    main()
