# SPDX-License-Identifier: Apache-2.0
"""`robodyn structure`, `ratios` and `split`, and the rotor inertia that commands take."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from paper_arms import JPL_INPUT_INERTIA

import robodyn_ros as rd
from robodyn_ros.analysis import (
    InertialCharacteristics,
    RatioMap,
    TrajectorySplit,
    coupling_ratio_range,
    coupling_ratios,
    gravity_ratio_range,
)
from robodyn_ros.analysis.ratios import LargestRatios, largest_ratios, telling_map
from robodyn_ros.cli import main, robodyn
from robodyn_ros.description.chain import Chain
from robodyn_ros.simulation.arm import ArmSimulation

PUMA, JPL = 'urdf/puma560.urdf', 'urdf/jpl_rrp.urdf'
ROTORS = [
    word
    for k, inertia in enumerate(JPL_INPUT_INERTIA, start=1)
    for word in ('--rotor-inertia', f'joint{k}={float(inertia)!r}')
]


def run(*arguments, code=0):
    result = CliRunner().invoke(robodyn, [str(x) for x in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def geared():
    return rd.RobotModel.from_urdf(JPL).with_rotor_inertia(JPL_INPUT_INERTIA)


def test_structure_prints_tables_2_and_3_for_the_puma():
    # Tourassis and Neuman 1985: 97 independent coefficients, 88 of them not zero, 0.907.
    text = run('structure', PUMA)
    (total,) = (line.split() for line in text.splitlines() if line.startswith('total'))
    assert total[1:] == ['97', '88']
    assert 'sparsity 0.907' in text
    assert 'c_13(2)' in text.partition('zero everywhere')[2]
    assert '2. axes in parallel or orthogonal directions: met' in text


def test_structure_as_json_is_the_record():
    record = json.loads(run('structure', PUMA, '--json'))
    found = InertialCharacteristics.from_json(json.dumps(record['structure']))
    assert found.total == 88 and len(found.coefficients) == 97
    assert [x['number'] for x in record['guidelines']] == [1, 2, 3, 4]


def test_structure_sees_through_rounded_angles_where_asked(tmp_path):
    # Table 3 has 8 for the spherical arm; an axis five digits off a right angle makes more.
    text = Path('urdf/spherical.urdf').read_text(encoding='utf-8')
    rounded = tmp_path / 'rounded.urdf'
    rounded.write_text(text.replace('"0 1 0"', '"3e-6 1 4e-6"'), encoding='utf-8')
    strict = json.loads(run('structure', rounded, '--json'))['structure']
    loose = json.loads(run('structure', rounded, '--json', '--tolerance', 1e-4))['structure']
    count = [sum(x['nonzero'] for x in each['counts']) for each in (strict, loose)]
    assert count[0] > count[1] == 8


def test_ratios_stay_under_the_largest_there_are():
    found = LargestRatios.from_json(run('ratios', JPL, *ROTORS, '--json'))
    arm = geared()
    for k, name in enumerate(arm.joint_names):
        largest = abs(gravity_ratio_range(arm, name).peak.value)
        assert 0.85 * largest <= found.gravity[k] <= largest * (1 + 1e-9)
    assert found.gravity_units[2] == 'm/s²'
    assert found.coupling_units[0][2] == '1/m' and found.coupling_units[2][0] == 'm'
    largest = abs(coupling_ratio_range(arm, 'joint3', 'joint1').peak.value)
    assert 0.85 * largest <= found.coupling[2][0] <= largest * (1 + 1e-9)
    assert [row[k] for k, row in enumerate(found.coupling)] == [1] * 6


def test_ratios_are_printed_with_the_joints_that_they_act_on():
    lines = run('ratios', JPL, *ROTORS).splitlines()
    assert lines[0].split() == ['acting', 'on', *geared().joint_names, 'gravity']
    assert lines[3].split()[0] == 'joint3' and lines[3].split()[-1] == 'm/s²'
    # Of gravity joint 3 feels g less the share of its input inertia: Bejczy 1974, (79), (138).
    assert float(lines[3].split()[-2]) == pytest.approx(9.81 * 6.48 / 7.26, rel=1e-2)


def test_rotors_lessen_what_a_joint_feels_of_others():
    bare, heavy = largest_ratios(rd.RobotModel.from_urdf(JPL)), largest_ratios(geared())
    assert (np.array(heavy.coupling) <= np.array(bare.coupling) + 1e-12).all()
    assert (np.array(heavy.gravity) <= np.array(bare.gravity) + 1e-12).all()


def test_map_is_the_ratio_at_its_positions(tmp_path):
    path = tmp_path / 'r2.csv'
    options = ['--map', 'joint1', '--by', 'joint3', '--over', 'joint2', 'joint3']
    said = run('ratios', JPL, *ROTORS, *options, '--resolution', 5, '-o', path)
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
    found = RatioMap.from_json(run('ratios', JPL, '--map', 'joint2', '--json'))
    assert found.symbol == 'K_2' and found.over == ('joint2', 'joint3')


def test_options_of_a_map_need_a_map():
    assert '--map' in CliRunner().invoke(robodyn, ['ratios', JPL, '--by', 'joint3']).output


def test_split_lists_every_element_and_which_part_dominates():
    lines = run('split', PUMA).splitlines()
    found = {line.split()[0]: line.split() for line in lines[1:]}
    assert len(found) == 21 + 6
    # Fu, Gonzalez and Lee 1987, 3.4.1.
    assert found['D_12'][-1] == 'translational' and found['D_46'][-1] == 'rotational'
    assert found['D_66'][1] == '0'


def test_split_as_json_is_the_record():
    found = TrajectorySplit.from_json(run('split', PUMA, '--json', '--fraction', 0.5))
    assert found.fraction == 0.5 and found['D_12'].dominant == 'translational'


def test_torques_take_the_rotors_along(tmp_path):
    motion = tmp_path / 'motion.csv'
    q = np.zeros(6)
    names = rd.RobotModel.from_urdf(JPL).joint_names
    columns = [
        f'{name}{suffix}' for suffix in ('', '.velocity', '.acceleration') for name in names
    ]
    row = [*q, *np.zeros(6), *np.ones(6)]
    lines = [','.join(['time', *columns])]
    lines += [','.join(map(str, [t, *row])) for t in (0.0, 0.1)]
    motion.write_text('\n'.join(lines), encoding='utf-8')
    bare, heavy = (
        np.array(json.loads(run('torque', JPL, motion, '--json', *options))['torque'])
        for options in ((), ROTORS)
    )
    np.testing.assert_allclose(heavy - bare, np.tile(JPL_INPUT_INERTIA, (2, 1)), atol=1e-12)


def test_simulated_arm_has_the_rotors_of_the_model():
    # M(q) qdd = tau - g: MuJoCo's armature is the rotor's inertia.
    arm = geared()
    heavy = ArmSimulation(Chain.from_urdf(JPL), time_step=1e-5, rotor_inertia=JPL_INPUT_INERTIA)
    start = np.array([0.1, 0.4, 0.5, 0.2, 0.6, 0.3])
    heavy.reset(start)
    tau = rd.gravity_torque(arm, start) + [3.0, 2.0, 1.0, 0.1, 0.1, 0.01]
    heavy.step(tau)
    expected = rd.forward_dynamics(arm, start, np.zeros(6), tau)
    np.testing.assert_allclose(heavy.velocity / 1e-5, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    'text, said',
    [
        ('joint9=1', "--rotor-inertia: 'joint9'; allowed: one of 'joint1'"),
        ('joint1=-1', "rotor inertia of joint 'joint1': -1.0; allowed: zero or more"),
    ],
)
def test_rotors_that_cannot_be_are_refused_by_name(text, said, monkeypatch, capsys):
    monkeypatch.setattr('sys.argv', ['robodyn', 'params', JPL, '--rotor-inertia', text])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and said in capsys.readouterr().err


def test_rotor_inertia_that_is_no_number_is_refused():
    result = CliRunner().invoke(robodyn, ['params', JPL, '--rotor-inertia', 'joint1'])
    assert result.exit_code == 2 and "'joint1' is not JOINT=INERTIA" in result.output
