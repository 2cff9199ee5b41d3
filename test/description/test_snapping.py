# SPDX-License-Identifier: Apache-2.0
"""Rounded angles are put back by choice, and what that changes is told."""

import math

import numpy as np
import pytest

import robodyn_ros as rd
from robodyn_ros import errors
from robodyn_ros.description.chain import serial_chain
from robodyn_ros.description.snapping import snapped_chain
from robodyn_ros.description.urdf import description_of_urdf_text

INERTIAL = (
    '<inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>'
    '<inertia ixx="0.2" iyy="0.3" izz="0.4" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>'
)


def arm(angle, axis='0 0 1', xyz='0.5 0 0'):
    """Return two joints whose axes are at an angle about x."""
    return (
        f'<robot name="r"><link name="base"/><link name="l1">{INERTIAL}</link>'
        f'<link name="l2">{INERTIAL}</link><link name="tool"/>'
        '<joint name="j1" type="continuous"><parent link="base"/><child link="l1"/>'
        '<axis xyz="0 0 1"/></joint>'
        f'<joint name="j2" type="continuous"><origin xyz="{xyz}" rpy="{angle} 0 0"/>'
        f'<parent link="l1"/><child link="l2"/><axis xyz="{axis}"/></joint>'
        '<joint name="flange" type="fixed"><origin xyz="0 1 0"/><parent link="l2"/>'
        '<child link="tool"/></joint></robot>'
    )


# A third joint, parallel to the second: its first moments reach the first joint's inertia.
THIRD = (
    f'<link name="l3">{INERTIAL}</link><joint name="j3" type="continuous">'
    '<origin xyz="0 0.4 0.2" rpy="1.570796327 0 0"/><parent link="tool"/><child link="l3"/>'
    '<axis xyz="0 0 1"/></joint></robot>'
)


def snapped(text, tolerance=1e-6):
    return snapped_chain(description_of_urdf_text(text), tolerance)


@pytest.mark.parametrize(
    ('written', 'meant'),
    [
        (1.570796327, math.pi / 2),
        (-1.570796, -math.pi / 2),
        (3.1415926, math.pi),
        (0.7853982, math.pi / 4),
        (0.5235988, math.pi / 6),
        (1.0471976, math.pi / 3),
    ],
)
def test_rounded_angle_becomes_what_was_meant(written, meant):
    model = rd.RobotModel.from_chain(snapped(arm(written)))
    exact = rd.RobotModel.from_chain(serial_chain(description_of_urdf_text(arm(repr(meant)))))
    np.testing.assert_allclose(model.dh.alpha, exact.dh.alpha, atol=1e-15)
    np.testing.assert_allclose(model.dh.a, exact.dh.a, atol=1e-15)
    as_given = rd.RobotModel.from_urdf_text(arm(written))
    assert np.abs(as_given.dh.alpha - exact.dh.alpha).max() > 1e-10


def test_formulas_lose_the_terms_that_rounding_made():
    def formulas(chain):
        base = rd.base_parameters(rd.RobotModel.from_chain(chain))
        return ' '.join(map(str, base.expressions))

    text = arm(1.570796327, xyz='0.5 0 0.3').replace('</robot>', THIRD)
    assert 'e-10' in formulas(serial_chain(description_of_urdf_text(text)))
    assert 'e-' not in formulas(snapped(text))


def test_finding_says_how_far_the_tip_moves():
    # The tip is 1 m from the joint whose origin turns by the rounding: an arc of just that length.
    off = 4e-7
    chain = snapped(arm(repr(math.pi / 2 + off)))
    (finding,) = [each for each in chain.findings if each.code == 'snapped']
    assert finding.value == pytest.approx(off, rel=0.01)
    assert '1 joints' in finding.message
    assert finding.level == 'info'


@pytest.mark.parametrize('text', [arm('1.57'), arm('0.3'), arm('0.3', axis='0.6 0 0.8')])
def test_what_was_not_rounded_stays(text):
    given = serial_chain(description_of_urdf_text(text))
    chain = snapped(text)
    np.testing.assert_array_equal(chain.joint_transforms, given.joint_transforms)
    np.testing.assert_array_equal(chain.joints[1].axis, given.joints[1].axis)
    (finding,) = [each for each in chain.findings if each.code == 'snapped']
    assert finding.value == 0.0


def test_axes_and_lengths_that_are_almost_zero_become_zero():
    chain = snapped(arm('0', axis='-2e-7 1e-9 1', xyz='0.5 3e-10 0'))
    assert chain.joints[1].axis.tolist() == [0.0, 0.0, 1.0]
    assert chain.joints[1].origin[:3, 3].tolist() == [0.5, 0.0, 0.0]


@pytest.mark.parametrize('tolerance', [0.0, -1e-6, 0.1, math.nan])
def test_tolerance_is_small_and_positive(tolerance):
    with pytest.raises(errors.InvalidNumber, match='tolerance'):
        snapped(arm('0'), tolerance)


def test_nothing_is_snapped_unless_asked_for():
    model = rd.RobotModel.from_urdf_text(arm('1.570796327'))
    assert 'snapped' not in {each.code for each in model.findings}
    assert model.dh.alpha[1] == pytest.approx(1.570796327, abs=1e-15)
