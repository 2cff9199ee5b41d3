# SPDX-License-Identifier: Apache-2.0
"""Exported C and the kernels that Python calls on ARM, under an emulator."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compiled_arms import core, identified_arm, public_arm, random_arm, states

import robodyn_ros as rd
from robodyn_ros.compiled import KERNELS, export_c
from robodyn_ros.compiled.c.library import library_source
from robodyn_ros.compiled.symbolic.kernels import build_kernel
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime

COMPILER = shutil.which('aarch64-linux-gnu-gcc')
EMULATOR = shutil.which('qemu-aarch64') or shutil.which('qemu-aarch64-static')
MISSING = [
    package
    for package, found in (('gcc-aarch64-linux-gnu', COMPILER), ('qemu-user', EMULATOR))
    if not found
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f'not installed: {" and ".join(MISSING)}'),
]
STRICT = ['-std=c99', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O2']
AS_THE_NODE_S = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-O2', '-fno-math-errno']
ELF_AARCH64 = 183  # e_machine
COUNT = 11  # samples: several times the lanes of a vector, and some that are left


def run_on_arm(sources, flags, program):
    """Return what a program prints, and assert that it ends with 0."""
    subprocess.run([COMPILER, *flags, '-static', *sources, '-o', program, '-lm'], check=True)
    assert int.from_bytes(program.read_bytes()[18:20], 'little') == ELF_AARCH64
    result = subprocess.run([EMULATOR, program], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout
    return result.stdout


@pytest.mark.parametrize(
    'arm',
    [public_arm('panda'), random_arm(2), identified_arm(4)],
    ids=['panda', 'prismatic', 'identified'],
)
def test_self_test_of_exported_c_passes(arm, tmp_path):
    _, source, test = export_c(arm, tmp_path, kernels=KERNELS)
    assert 'all results agree' in run_on_arm([source, test], STRICT, tmp_path / 'program')


def test_self_test_of_exported_c_notices_a_wrong_number(tmp_path):
    _, source, test = export_c(public_arm('ur5'), tmp_path, kernels=['gravity_torque'])
    other = export_c(public_arm('ur5').with_gravity((0, 0, -9.8)), tmp_path / 'other',
                     kernels=['gravity_torque'])[1]  # fmt: skip
    source.write_text(other.read_text())
    with pytest.raises(AssertionError, match='gravity_torque'):
        run_on_arm([source, test], STRICT, tmp_path / 'program')


@pytest.mark.parametrize(
    'arm',
    [public_arm('panda'), public_arm('ur5'), random_arm(2)],
    ids=['panda', 'ur5', 'prismatic'],
)
def test_kernels_of_the_node_give_what_numpy_gives(arm, tmp_path):
    links = [name for name, (body, _) in arm.link_frames.items() if body >= 0]
    run_time = RunTime.of(arm, ('gravity', 'payload'), links)
    payload = rd.Payload(2.0, (0.05, 0.1, -0.1), np.diag([0.02, 0.03, 0.04]))
    loaded = arm.with_gravity((1.0, 2.0, -9.0)).with_payload(payload)
    source = tmp_path / 'kernels.c'
    source.write_text(driver(run_time, loaded, ('inverse_dynamics', 'tip_wrench_torque')))
    run_on_arm([source], AS_THE_NODE_S, tmp_path / 'program')


@pytest.mark.parametrize('name', ['ur5', 'panda'])
def test_kernels_of_all_functions_give_what_numpy_gives(name, tmp_path):
    arm = public_arm(name)
    names = ('mass_matrix', 'coriolis_matrix', 'forward_dynamics', 'inverse_dynamics_derivatives',
             'forward_kinematics', 'jacobian', 'base_regressor')  # fmt: skip
    source = tmp_path / 'kernels.c'
    source.write_text(driver(RunTime.of(arm, ()), arm, names))
    run_on_arm([source], AS_THE_NODE_S, tmp_path / 'program')


def driver(run_time, arm, names):
    """Return a program that compares kernels, one sample and many, with the core's results."""
    kernels = [build_kernel(name, run_time) for name in names]
    given = states(arm, COUNT)
    parts = [library_source(kernels), '#include <stdio.h>']
    parts.append(table('parameters', run_time.values(arm)))
    read = {key for kernel in kernels for key, _ in kernel.inputs}
    parts += [table(f'in_{key}', given[key]) for key in sorted(read)]
    calls = []
    for kernel in kernels:
        expected = core(kernel.name, arm, *(given[key] for key, _ in kernel.inputs))
        results = [f'expected_{kernel.name}_{k}' for k in range(len(expected))]
        parts += [table(*pair) for pair in zip(results, expected, strict=True)]
        inputs = ', '.join(f'in_{key}' for key, _ in kernel.inputs)
        calls.append(
            f'    wrong += compared(&{kernel.name}_kernel, (const double *[]){{{inputs}}},'
            f' (const double *[]){{{", ".join(results)}}});'
        )
    return '\n'.join([*parts, COMPARISON, 'int main(void)\n{\n    int wrong = 0;', *calls,
                      '    return wrong != 0;\n}\n'])  # fmt: skip


def table(name, values):
    numbers = ', '.join(repr(float(x)) for x in np.ravel(values))
    return f'static const double {name}[] = {{{numbers or "0.0"}}};'


COMPARISON = Path(__file__).with_name('comparison.c').read_text().replace('COUNT', str(COUNT))
