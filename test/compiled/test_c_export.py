# SPDX-License-Identifier: Apache-2.0
"""Exported C: strict C99, tested by itself, free of allocations and of names from the URDF."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from compiled_arms import identified_arm, public_arm, random_arm, tree_arm
from robots import two_link_urdf

import robodyn_ros as rd
from robodyn_ros.compiled import KERNELS, export_c
from robodyn_ros.errors import InvalidArgument

STRICT = ['-std=c99', '-Wall', '-Wextra', '-Werror', '-pedantic', '-O1']
needs_compiler = pytest.mark.skipif(not shutil.which('cc'), reason='there is no C compiler')


def run_self_test(folder, name='arm', flags=()):
    program = folder / 'program'
    files = [folder / f'{name}.c', folder / f'{name}_test.c']
    subprocess.run(['cc', *STRICT, *flags, *files, '-o', program, '-lm'], check=True)
    return subprocess.run([program], capture_output=True, text=True)


@pytest.mark.longer
@needs_compiler
@pytest.mark.parametrize(
    'arm',
    [
        public_arm('panda'),
        public_arm('tiago'),
        random_arm(3, rotors=True),
        identified_arm(4),
        rd.RobotModel.from_urdf(two_link_urdf()),
    ],
    ids=['panda', 'tiago', 'random', 'identified', 'two links'],
)
def test_self_test_passes(arm, tmp_path):
    export_c(arm, tmp_path)
    result = run_self_test(tmp_path)
    assert result.returncode == 0, result.stdout
    assert 'all results agree' in result.stdout


@pytest.mark.longer
@needs_compiler
@pytest.mark.parametrize(
    'arm', [public_arm('ur5'), random_arm(21), tree_arm(2)], ids=['ur5', 'prismatic', 'tree']
)
def test_self_test_of_every_function_passes(arm, tmp_path):
    export_c(arm, tmp_path, kernels=KERNELS)
    result = run_self_test(tmp_path)
    assert result.returncode == 0, result.stdout


@needs_compiler
def test_self_test_notices_a_wrong_number(tmp_path):
    _, source, _ = export_c(public_arm('ur5'), tmp_path, kernels=['gravity_torque'])
    text = source.read_text()
    constant = re.search(r'[1-9]\d+\.\d{5,}', text).group()
    source.write_text(text.replace(constant, str(float(constant) * 1.001), 1))
    result = run_self_test(tmp_path)
    assert result.returncode == 1
    assert 'gravity_torque' in result.stdout


def test_accelerations_may_be_off_by_what_the_mass_matrix_magnifies(tmp_path):
    def allowed(model):
        _, _, test = export_c(model, tmp_path, kernels=['forward_dynamics', 'mass_matrix'])
        found = re.findall(r'(\d), (\S+)\);', test.read_text())
        return [float(tolerance) for _, tolerance in found if 'e' in tolerance]

    assert allowed(rd.RobotModel.from_urdf(two_link_urdf())) == [1e-9, 1e-9]
    light = rd.RobotModel.from_urdf(two_link_urdf(m2=1e-9))
    masses, accelerations = allowed(light)
    assert masses == 1e-9
    condition = np.linalg.cond(rd.mass_matrix(light, [0.0, 1.0]))
    assert accelerations == pytest.approx(1e-14 * condition, rel=3)


def test_same_arm_gives_the_same_text(tmp_path):
    texts = [
        [path.read_text() for path in export_c(public_arm('ur5'), tmp_path / name)]
        for name in ('first', 'second')
    ]
    assert texts[0] == texts[1]


def test_every_link_has_its_part_of_the_code(tmp_path):
    _, source, _ = export_c(public_arm('panda'), tmp_path, kernels=['inverse_dynamics'])
    parts = re.findall(r'/\* (link|joint) (\d): ', source.read_text())
    # Link 1 turns about an axis along gravity: nothing is left to compute.
    assert parts == [
        *(('link', str(k)) for k in range(2, 8)),
        *(('joint', str(k)) for k in range(7, 0, -1)),
    ]


def test_nothing_is_allocated_and_nothing_kept(tmp_path):
    _, source, _ = export_c(identified_arm(4), tmp_path)
    text = source.read_text()
    assert set(re.findall(r'#include (.*)', text)) == {'"arm.h"', '<math.h>'}
    assert not re.search(r'\b(malloc|calloc|static|extern|goto)\b', text)
    assert set(re.findall(r'\b([a-z_]+)\(', text)) - {'sin', 'cos', 'tanh', 'fabs'} <= {
        f'arm_{name}'
        for name in (
            'inverse_dynamics', 'gravity_torque', 'bias_torque', 'mass_matrix',
            'coriolis_matrix', 'forward_dynamics', 'forward_kinematics', 'jacobian',
            'friction_torque', 'smooth_friction_torque',
        )
    }  # fmt: skip


def test_names_of_the_urdf_stay_out(tmp_path):
    text = two_link_urdf().replace('joint1', 'x */ system(1); /*').replace('link2', 'HOSTILE')
    paths = export_c(rd.RobotModel.from_urdf(text), tmp_path)
    for path in paths:
        assert 'system' not in path.read_text()
        assert 'HOSTILE' not in path.read_text()


@pytest.mark.parametrize('name', ['', 'Arm', '1arm', 'a b', '../arm', 'a;b', 'x' * 40, 'arm\n'])
def test_file_name_must_be_an_identifier(tmp_path, name):
    with pytest.raises(InvalidArgument, match='identifier'):
        export_c(public_arm('ur5'), tmp_path, name=name)
    assert list(tmp_path.iterdir()) == []


def test_only_known_functions_are_exported(tmp_path):
    with pytest.raises(InvalidArgument):
        export_c(public_arm('ur5'), tmp_path, kernels=['torque'])
    header, _, _ = export_c(public_arm('ur5'), tmp_path, name='left_arm', kernels=['jacobian'])
    assert header.name == 'left_arm.h'
    assert 'left_arm_jacobian(const double q[6], double jacobian[36]);' in header.read_text()
    assert 'gravity_torque' not in header.read_text()


def test_derivatives_are_written_into_arrays_of_their_own(tmp_path):
    header, _, _ = export_c(
        public_arm('ur5'), tmp_path, kernels=['forward_dynamics_derivatives', 'linearization']
    )
    text = header.read_text()
    assert 'double dqdd_dq[36], double dqdd_dqd[36], double dqdd_dtau[36]);' in text
    assert 'double a[144], double b[72]);' in text


def test_tables_hold_what_the_core_gives(tmp_path):
    arm = rd.RobotModel.from_urdf(two_link_urdf(), gravity=(0, -9.81, 0))
    *_, test = export_c(arm, tmp_path)
    tables = {
        name: np.array(eval(body.replace('{', '[').replace('}', ']')))
        for name, body in re.findall(
            r'static const double (\w+)\[\d+\]\[\d+\] = (\{.*?\n\});', test.read_text(), re.DOTALL
        )
    }
    np.testing.assert_array_equal(
        tables['expected_gravity_torque'], rd.gravity_torque(arm, tables['q'])
    )


@needs_compiler
def test_forward_dynamics_reports_where_the_arm_has_no_inertia(tmp_path):
    # A point mass at the end of two massless links: stretched out, nothing resists.
    parameters = np.zeros((2, 10))
    parameters[1, [3, 5, 6, 9]] = 1.0
    arm = rd.RobotModel.from_urdf(two_link_urdf()).with_inertial_parameters(parameters)
    _, source, _ = export_c(arm, tmp_path, kernels=['forward_dynamics'])
    library = tmp_path / 'arm.so'
    subprocess.run(['cc', *STRICT, '-shared', '-fPIC', source, '-o', library, '-lm'], check=True)
    function = ctypes.CDLL(str(library)).arm_forward_dynamics
    vector = ctypes.c_double * 2
    for angle, state in ((0.0, -1), (1.0, 0)):
        assert function(vector(0.0, angle), vector(), vector(), vector()) == state
