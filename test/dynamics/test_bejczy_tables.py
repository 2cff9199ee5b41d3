# SPDX-License-Identifier: Apache-2.0
"""
Bejczy 1974, Tables 1 and 2 and Appendix C, row by row, from the JPL arm's URDF.

Each row is printed in kilograms and metres and in ounces and inches. The arm's numbers are those
of the second column, so its results are held to the second: within 0.25 %, the rounding of a third
digit. Against the first, which the paper added up from terms of two digits, 1 % is asked (2 % of
D55: 0.114 there, 15.87 oz in s² = 0.1121 beside it).
"""

from dataclasses import replace

import bejczy
import numpy as np
import pytest
from paper_arms import JPL, JPL_INPUT_INERTIA, JPL_LOAD, OUNCE, OUNCE_INCH

import robodyn_ros as rd

RIGHT = np.pi / 2
LONGEST = 1.1176


@pytest.fixture(scope='module')
def arm():
    return JPL.model().with_rotor_inertia(JPL_INPUT_INERTIA)


@pytest.fixture(scope='module')
def loaded(arm):
    return arm.with_payload(JPL_LOAD)


# Joint, configuration, kg m² or kg, and oz in s² or oz s2/in, both without and with load.
OUTSTRETCHED = (0, RIGHT, LONGEST, 0, 0, 0)
WRIST_BENT = (0, 0, LONGEST, 0, RIGHT, 0)
TABLE_1_MAXIMA = [
    pytest.param(1, OUTSTRETCHED, (6.176, 9.57), (875, 1356), id='row 1'),
    pytest.param(2, OUTSTRETCHED, (6.95, 10.3), (984, 1458), id='row 2'),
    pytest.param(3, OUTSTRETCHED, (7.257, 9.057), (0.663, 0.827), id='row 3'),
    pytest.param(4, WRIST_BENT, (0.123, 0.234), (17.36, 33.21), id='row 4'),
    pytest.param(5, WRIST_BENT, (0.114, 0.225), (15.87, 31.72), id='row 5'),
    pytest.param(6, WRIST_BENT, (0.02, 0.022), (2.86, 3.11), id='row 6'),
]


@pytest.mark.parametrize('joint, q, metric, ounces', TABLE_1_MAXIMA)
def test_table_1_maximum_inertia(arm, loaded, joint, q, metric, ounces):
    unit = OUNCE if joint == 3 else OUNCE_INCH
    for model, kilograms, ounce in zip((arm, loaded), metric, ounces):
        inertia = rd.mass_matrix(model, q)[joint - 1, joint - 1]
        assert inertia == pytest.approx(ounce * unit, rel=2.5e-3)
        assert inertia == pytest.approx(kilograms, rel=2e-2 if joint == 5 else 1e-2)


@pytest.mark.parametrize('joint, q, metric, ounces', TABLE_1_MAXIMA)
def test_table_1_maxima_are_maxima(arm, loaded, joint, q, metric, ounces):
    # Over the wrist angles as the paper varies them, and over the first three joints at large.
    configurations = np.random.default_rng(1).uniform(-np.pi, np.pi, (2000, 6))
    configurations[:, 2] = np.random.default_rng(2).uniform(0.42, LONGEST, 2000)
    configurations[:, 3:] = np.array(q)[3:]
    for model in (arm, loaded):
        largest = rd.mass_matrix(model, configurations)[:, joint - 1, joint - 1].max()
        assert largest <= rd.mass_matrix(model, q)[joint - 1, joint - 1] * (1 + 1e-12)


def test_table_1_minimum_of_joint_1(arm):
    # 196 oz in s² beside it, 1.384 kg m², is a misprint.
    inertia = rd.mass_matrix(arm, (0, 0, LONGEST, 0, RIGHT, 0))[0, 0]
    assert inertia == pytest.approx(1.417, rel=2.5e-3)


def test_table_1_minimum_of_joint_4(arm):
    inertia = rd.mass_matrix(arm, np.zeros(6))[3, 3]
    assert inertia == pytest.approx(15.27 * OUNCE_INCH, rel=2.5e-3)
    assert inertia == pytest.approx(0.108, rel=1e-2)


# Where a joint holds most.
TABLE_2 = {
    2: OUTSTRETCHED,
    3: (0, 0, 1, 0, 0, 0),
    4: (0, RIGHT, 1, 0, RIGHT, 0),
    5: (0, 0, 1, 0, RIGHT, 0),
}


@pytest.mark.parametrize('joint', TABLE_2)
def test_table_2_maximum_gravity_load(arm, loaded, joint):
    for model, in_text, in_table in zip((arm, loaded), *bejczy.TABLE_2[joint]):
        load = abs(rd.gravity_torque(model, TABLE_2[joint])[joint - 1])
        assert load == pytest.approx(in_text, rel=2.5e-3)
        assert load == pytest.approx(in_table, rel=1e-2)


# Joint: gear ratio, stall torque [N m] or largest force [N], load referred to the motor's shaft.
TABLE_2_MOTORS = {
    1: (100, 0.918, 0.0, 0.0), 2: (100, 3.036, 0.451, 0.693), 3: (1, 98.7, 63.94, 81.73),
    4: (72, 0.141, 0.0159, 0.077), 5: (72, 0.141, 0.0159, 0.077), 6: (146, 0.047, 0.0, 0.0),
}  # fmt: skip


@pytest.mark.parametrize('joint', TABLE_2_MOTORS)
def test_table_2_motor_shaft_and_stall_torque(arm, loaded, joint):
    # The columns that the paper adds "to complete the summary"; joint 3 has no gear.
    gear, stall, *shaft = TABLE_2_MOTORS[joint]
    q = TABLE_2.get(joint, np.zeros(6))
    load = [abs(rd.gravity_torque(model, q)[joint - 1]) for model in (arm, loaded)]
    assert np.divide(load, gear) == pytest.approx(shaft, rel=1.1e-2, abs=1e-12)
    assert arm.effort_limits[joint - 1] == pytest.approx(stall * gear, rel=1e-6)
    assert max(load) < arm.effort_limits[joint - 1]


def test_table_2_stall_torque_of_joint_6_is_printed_twice(arm):
    # 0.047 N m beside 7 oz in, which is 0.0494; the URDF's limit takes the first.
    assert 7 * OUNCE_INCH == pytest.approx(0.0494, abs=5e-5)
    assert arm.effort_limits[5] / 146 == pytest.approx(0.047, abs=1e-6)
    # The others are the same in both units.
    for joint, ounces in {1: 130, 2: 430, 4: 20, 5: 20}.items():
        assert TABLE_2_MOTORS[joint][1] == pytest.approx(ounces * OUNCE_INCH, rel=3e-3)


def test_load_off_the_hands_axis_adds_the_terms_of_appendix_c(arm):
    # (C.1)-(C.4) with the sign of the holding torque, which is minus the print's.
    mass, x, y = 1.8, 0.03, -0.02
    q = np.random.default_rng(5).uniform(-3, 3, (20, 6))
    added = rd.gravity_torque(arm.with_payload(rd.Payload(mass, (x, y, 0.01))), q)
    added -= rd.gravity_torque(arm.with_payload(rd.Payload(mass, (0, 0, 0.01))), q)
    zero = np.zeros(6)
    alone = bejczy.Numbers(np.array([0, 0, 0, 0, 0, mass]), zero, zero, np.zeros((6, 3)))
    printed = bejczy.gravity_terms(replace(alone, x6=x, y6=y), q)
    np.testing.assert_allclose(added, bejczy.gravity_terms(alone, q) - printed, atol=1e-12)
