# SPDX-License-Identifier: Apache-2.0
"""`robodyn structure`, `ratios` and `split`, and the rotor inertia that commands take."""

import numpy as np
import pytest
from command_line import error_of, invoked, json_of, output_of
from paper_arms import JPL_INPUT_INERTIA

import robodyn_ros as rd
from robodyn_ros.analysis import (
    RatioMap,
    coupling_ratio_range,
    coupling_ratios,
    gravity_ratio_range,
)
from robodyn_ros.analysis.ratios import LargestRatios, largest_ratios, telling_map
from robodyn_ros.motions import table_as_csv

PUMA, JPL = 'urdf/puma560.urdf', 'urdf/jpl_rrp.urdf'
ROTORS = [
    word
    for k, inertia in enumerate(JPL_INPUT_INERTIA, start=1)
    for word in ('--rotor-inertia', f'joint{k}={float(inertia)!r}')
]


def geared():
    return rd.RobotModel.from_urdf(JPL).with_rotor_inertia(JPL_INPUT_INERTIA)


def test_structure_prints_tables_2_and_3_for_the_puma():
    # Tourassis and Neuman 1985: 97 independent coefficients, 88 of them not zero, 0.907.
    text = output_of('structure', PUMA)
    (total,) = (line.split() for line in text.splitlines() if line.startswith('total'))
    assert total[1:] == ['97', '88']
    assert 'sparsity 0.907' in text
    assert 'c_13(2)' in text.partition('zero everywhere')[2]
    assert '2. axes in parallel or orthogonal directions: met' in text


@pytest.mark.slow
def test_ratios_stay_under_the_largest_there_are():
    found = LargestRatios.from_json(output_of('ratios', JPL, *ROTORS, '--json'))
    arm = geared()
    for k, name in enumerate(arm.joint_names):
        largest = abs(gravity_ratio_range(arm, name).peak.value)
        assert 0.85 * largest <= found.gravity[k] <= largest * (1 + 1e-9)
    assert found.gravity_units[2] == 'm/s²'
    assert found.coupling_units[0][2] == '1/m' and found.coupling_units[2][0] == 'm'
    largest = abs(coupling_ratio_range(arm, 'joint3', 'joint1').peak.value)
    assert 0.85 * largest <= found.coupling[2][0] <= largest * (1 + 1e-9)
    assert [row[k] for k, row in enumerate(found.coupling)] == [1] * 6
    # Rotors lessen what a joint feels of others.
    bare = largest_ratios(rd.RobotModel.from_urdf(JPL))
    assert (np.array(found.coupling) <= np.array(bare.coupling) + 1e-12).all()
    assert (np.array(found.gravity) <= np.array(bare.gravity) + 1e-12).all()


def test_ratios_are_printed_with_the_joints_that_they_act_on():
    lines = output_of('ratios', JPL, *ROTORS).splitlines()
    assert lines[0].split() == ['acting', 'on', *geared().joint_names, 'gravity']
    assert lines[3].split()[0] == 'joint3' and lines[3].split()[-1] == 'm/s²'
    # Of gravity joint 3 feels g less the share of its input inertia: Bejczy 1974, (79), (138).
    assert float(lines[3].split()[-2]) == pytest.approx(9.81 * 6.48 / 7.26, rel=1e-2)


def test_map_is_the_ratio_at_its_positions(tmp_path):
    path = tmp_path / 'r2.csv'
    options = ['--map', 'joint1', '--by', 'joint3', '--over', 'joint2', 'joint3']
    said = output_of('ratios', JPL, *ROTORS, *options, '--resolution', 5, '-o', path)
    assert said == f'R_13 over joint2, joint3 in {path}\n'
    head, *rows = path.read_text(encoding='utf-8').splitlines()
    assert head == 'joint2 [rad],joint3 [m],R_13 [1/m]'
    table = np.array([[float(x) for x in row.split(',')] for row in rows])
    assert table.shape == (25, 3)
    rest = telling_map(geared(), 'joint1', 'joint3', ('joint2', 'joint3'), resolution=2).position
    q = np.tile(rest, (25, 1))
    q[:, 1:3] = table[:, :2]
    np.testing.assert_allclose(coupling_ratios(geared(), q)[:, 0, 2], table[:, 2], atol=1e-12)


def test_map_moves_the_joints_that_matter_where_none_are_named():
    # K_2 of the JPL arm, (133): the boom's angle and its length.
    found = RatioMap.from_json(output_of('ratios', JPL, '--map', 'joint2', '--json'))
    assert found.symbol == 'K_2' and found.over == ('joint2', 'joint3')


def test_options_of_a_map_need_a_map():
    assert '--map' in invoked('ratios', JPL, '--by', 'joint3').output


def test_split_lists_every_element_and_which_part_dominates():
    lines = output_of('split', PUMA).splitlines()
    found = {line.split()[0]: line.split() for line in lines[1:]}
    assert len(found) == 21 + 6
    # Fu, Gonzalez and Lee 1987, 3.4.1.
    assert found['D_12'][-1] == 'translational' and found['D_46'][-1] == 'rotational'
    assert found['D_66'][1] == '0'


def test_torques_take_the_rotors_along(tmp_path):
    motion = tmp_path / 'motion.csv'
    suffixes = ('', '.velocity', '.acceleration')
    names = [f'{name}{suffix}' for suffix in suffixes for name in geared().joint_names]
    still = np.zeros((2, 6))
    motion.write_text(table_as_csv(names, np.array([0.0, 0.1]), still, still, still + 1))
    bare, heavy = (
        np.array(json_of('torque', JPL, motion, *options)['torque']) for options in ((), ROTORS)
    )
    np.testing.assert_allclose(heavy - bare, np.tile(JPL_INPUT_INERTIA, (2, 1)), atol=1e-12)


@pytest.mark.parametrize(
    'text, said',
    [
        ('joint9=1', "--rotor-inertia: 'joint9'; allowed: one of 'joint1'"),
        ('joint1=-1', "rotor inertia of joint 'joint1': -1.0 kg m²; allowed: zero or more"),
        ('joint1', "'joint1' is not JOINT=VALUE"),
    ],
)
def test_rotors_that_cannot_be_are_refused_by_name(text, said):
    assert said in error_of('params', JPL, '--rotor-inertia', text)
