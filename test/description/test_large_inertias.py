# SPDX-License-Identifier: Apache-2.0
"""A radius of gyration far beyond what hangs between a link's neighbours is found."""

import math
import re

import numpy as np
import pytest
from robots import public_urdf
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros.description.chain import serial_chain
from robodyn_ros.description.urdf import description_of_urdf

ARMS = {
    # Arms whose inertias fit their links, and the tip that is taken.
    'ur10_robot.urdf': 'tool0',
    'ur3_robot.urdf': 'tool0',
    'panda.urdf': 'panda_link8',
    'xarm7.urdf': None,
    'z1.urdf': None,
    'kr16_2.urdf': None,
    'puma560_robot.urdf': None,
}


def chain_of_rods(lengths, radii=None, mass=2.0, unit=1.0):
    """Return an arm of slender rods along x; ``radii`` of gyration where they are not theirs."""
    parts = [link('l0')]
    at = 0.0
    for i, length in enumerate(lengths, start=1):
        radius = (radii or {}).get(i, length / math.sqrt(12))
        moment = mass * (radius * unit) ** 2
        parts += [
            joint(f'j{i}', f'l{i - 1}', f'l{i}', xyz=(at * unit, 0, 0)),
            link(f'l{i}', mass, (length / 2 * unit, 0, 0), (0, moment, moment)),
        ]
        at = length
    return robot(*parts)


def large(text, **options):
    """Return the links whose inertia is too large, and their radii of gyration."""
    found = rd.RobotModel.from_urdf_text(text, **options).findings
    return {f.element: f.value for f in found if f.code == 'large_inertia'}


RODS = (0.4, 0.3, 0.2)


@pytest.mark.parametrize('i', [1, 2, 3])
def test_rod_with_the_inertia_of_one_eight_times_as_long_is_found(i):
    # The last rod hangs on one of 0.3 m, and may be as long.
    radius = 8 * (0.3 if i == 3 else RODS[i - 1]) / math.sqrt(12)
    found = large(chain_of_rods(RODS, {i: radius}))
    assert found == {f"link 'l{i}'": pytest.approx(radius)}


def test_up_to_twice_its_length_nothing_is_said():
    assert large(chain_of_rods(RODS, {2: 1.99 * 0.3})) == {}
    assert len(large(chain_of_rods(RODS, {2: 2.01 * 0.3}))) == 1


@pytest.mark.parametrize('unit', [0.01, 1.0, 30.0])
@pytest.mark.parametrize('mass', [1e-3, 2.0, 500.0])
def test_neither_lengths_nor_masses_have_a_scale(unit, mass):
    assert large(chain_of_rods(RODS, mass=mass, unit=unit)) == {}
    found = large(chain_of_rods(RODS, {2: 0.7}, mass=mass, unit=unit))
    assert found == {"link 'l2'": pytest.approx(0.7 * unit)}


def test_what_is_lumped_on_a_link_makes_it_larger():
    pole = (
        '<link name="pole"/><joint name="p" type="fixed"><origin xyz="0 0 2"/>'
        '<parent link="l2"/><child link="pole"/></joint>'
    )
    text = chain_of_rods(RODS, {2: 0.7})
    assert large(text)
    assert large(text.replace('</robot>', f'{pole}</robot>'), tip_link='l3') == {}


def test_slide_is_as_long_as_its_stroke():
    text = chain_of_rods(RODS, {2: 0.7})
    slide = text.replace(
        '<joint name="j2" type="continuous">', '<joint name="j2" type="prismatic">'
    )
    limit = '<limit lower="0" upper="1.5" effort="1" velocity="1"/></joint>'
    head, tail = slide.split('<joint name="j2"')
    assert large(head + '<joint name="j2"' + tail.replace('</joint>', limit, 1)) == {}
    assert large(slide) == {}  # a slide without limits tells no length


def test_link_that_begins_along_its_axis_is_as_long_as_that():
    # Frames lie at the far end of a column of 0.8 m: no joint shows its length, but its axis does.
    column = chain_of_rods(RODS, {1: 1.0}).replace('xyz="0.0 0.0 0.0"', 'xyz="0 0 0.8"', 1)
    assert large(column) == {}
    beside = column.replace('xyz="0 0 0.8"', 'xyz="0 0.8 0"', 1)
    assert set(large(beside)) == {"link 'l1'"}


def test_inertia_of_a_drive_about_the_joints_axis_is_another_finding():
    # Reflected through a gear of 100, a rotor weighs more than the arm, about one axis.
    text = chain_of_rods(RODS)
    moment = 2.0 * (0.3 / math.sqrt(12)) ** 2
    assert f'izz="{moment}"' in text
    geared = text.replace(f'iyy="{moment}" izz="{moment}"', f'iyy="{moment}" izz="{moment + 3}"')
    found = {f.code for f in rd.RobotModel.from_urdf_text(geared).findings}
    assert 'triangle_inequality' in found
    assert 'large_inertia' not in found


def test_rings_on_axes_that_meet_and_a_wheel_without_neighbours_show_no_size():
    rings = chain_of_rods((1e-9, 1e-9, 1e-9), {1: 0.3, 2: 0.25, 3: 0.2})
    assert large(rings) == {}
    assert large(chain_of_rods((1e-9,), {1: 0.4})) == {}


@pytest.mark.filterwarnings('error')
def test_inertia_of_next_to_no_mass_is_found_without_a_word_of_numpy():
    text = chain_of_rods(RODS, mass=1.0).replace('mass value="1.0"', 'mass value="5e-324"', 1)
    assert large(text)["link 'l1'"] == math.inf


def test_cost_is_torque_of_the_joint_that_feels_it_most():
    # By the mass matrix, with the tensor as it is and with one that fits its size.
    text = chain_of_rods(RODS, {2: 0.9})
    (finding,) = [
        f for f in rd.RobotModel.from_urdf_text(text).findings if f.code == 'large_inertia'
    ]
    size, whole, excess = map(
        float,
        re.search(
            r"size of (\S+) m: .* the (\S+) N m .* 'j2' takes, (\S+) N m", finding.message
        ).groups(),
    )
    as_given, fitting = (
        rd.mass_matrix(rd.RobotModel.from_urdf_text(each), np.zeros(3))[1, 1]
        for each in (text, chain_of_rods(RODS, {2: size}))
    )
    assert size == pytest.approx(0.3)
    assert whole == pytest.approx(as_given, rel=1e-2)
    assert excess == pytest.approx(as_given - fitting, rel=1e-2)


def test_ur5_of_example_robot_data_has_three_such_wrists():
    chain = serial_chain(description_of_urdf(public_urdf('ur5_robot.urdf')), tip_link='tool0')
    found = [f for f in rd.RobotModel.from_chain(chain).findings if f.code == 'large_inertia']
    assert {f.element for f in found} == {f"link 'wrist_{i}_link'" for i in (1, 2, 3)}
    for finding in found:
        assert finding.level == 'warning'
        inertial = chain.description.links[finding.element[6:-1]].inertial
        largest = np.linalg.eigvalsh(inertial.inertia)[-1]
        assert finding.value == pytest.approx(math.sqrt(largest / inertial.mass))
        assert 0.42 < finding.value < 0.43


@pytest.mark.parametrize('name', ARMS)
def test_well_behaved_public_arms_are_not_named(name):
    model = rd.RobotModel.from_urdf(public_urdf(name), tip_link=ARMS[name])
    assert not [f for f in model.findings if f.code == 'large_inertia']
