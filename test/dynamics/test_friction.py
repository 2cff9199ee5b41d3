# SPDX-License-Identifier: Apache-2.0
"""Friction: the URDF's, and what an identification adds; smooth where it is commanded."""

from dataclasses import replace

import numpy as np
import pytest
from robots import two_link_urdf

from robodyn_ros import (
    RobotModel,
    forward_dynamics,
    friction_torque,
    inverse_dynamics,
    mass_matrix,
)
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.errors import InvalidArgument

WIDTH = 0.01
ARM = RobotModel.from_urdf(
    two_link_urdf()
    .replace('</joint>', '<dynamics damping="0.5" friction="2"/></end>', 1)
    .replace('</joint>', '<dynamics friction="3"/></joint>')
    .replace('</end>', '</joint>')
)
IDENTIFIED = replace(
    ARM,
    effort_offset=np.array([0.2, -0.1]),
    friction_curve=np.array([[0.3, -0.2], [0.0, 0.4]]),
    load_friction=np.array([0.05, 0.1]),
)
MOVING = np.array([[0.3, -0.2], [-1.0, 0.7]])
RIGID = np.array([[10.0, -4.0], [-3.0, 2.0]])


def test_a_urdf_has_viscous_and_coulomb_friction_alone():
    expected = MOVING * [0.5, 0.0] + np.sign(MOVING) * [2.0, 3.0]
    np.testing.assert_array_equal(friction_torque(ARM, MOVING), expected)
    np.testing.assert_array_equal(friction_torque(ARM, MOVING, rigid_torque=RIGID), expected)


def test_an_identified_arm_has_curve_offset_and_load_too():
    curve = IDENTIFIED.friction_curve
    expected = (
        friction_torque(ARM, MOVING)
        + curve[:, 0] * np.tanh(MOVING / 0.1)
        + curve[:, 1] * np.tanh(MOVING / 0.4)
        + IDENTIFIED.effort_offset
    )
    np.testing.assert_allclose(friction_torque(IDENTIFIED, MOVING), expected)
    load = IDENTIFIED.load_friction * np.abs(RIGID) * np.sign(MOVING)
    np.testing.assert_allclose(
        friction_torque(IDENTIFIED, MOVING, rigid_torque=RIGID), expected + load
    )


@pytest.mark.parametrize('arm', [ARM, IDENTIFIED])
def test_nothing_is_asked_for_at_rest(arm):
    zero = np.zeros(2)
    assert not friction_torque(arm, zero, rigid_torque=[100.0, 100.0]).any()
    assert not smooth_friction_torque(arm, WIDTH, zero, np.full(2, 100.0)).any()


@pytest.mark.parametrize('arm', [ARM, IDENTIFIED])
def test_what_is_commanded_agrees_beyond_three_widths_and_never_jumps(arm):
    for velocity in (np.array([1.0, -1.0]), np.array([0.03, -0.03])):
        smooth = smooth_friction_torque(arm, WIDTH, velocity, RIGID[0])
        exact = friction_torque(arm, velocity, rigid_torque=RIGID[0])
        assert smooth == pytest.approx(exact, rel=7e-3)
    fine = np.linspace(-0.1, 0.1, 2001)
    commanded = smooth_friction_torque(arm, WIDTH, fine[:, None] * np.ones(2), RIGID[[0]])
    steepest = (
        (arm.coulomb_friction + np.abs(arm.effort_offset) + arm.load_friction * np.abs(RIGID[0]))
        / WIDTH
        + arm.viscous_friction
        + np.abs(arm.friction_curve) @ [10.0, 2.5]
    )
    assert (np.abs(np.diff(commanded, axis=0)) <= 1e-4 * steepest * (1 + 1e-6)).all()


def test_three_quarters_of_the_coulomb_friction_act_at_the_width():
    velocity = np.array([WIDTH, -WIDTH])
    share = (np.e - 1 / np.e) / (np.e + 1 / np.e)  # tanh(1)
    expected = ARM.viscous_friction * velocity + ARM.coulomb_friction * share * [1, -1]
    np.testing.assert_allclose(smooth_friction_torque(ARM, WIDTH, velocity), expected, rtol=1e-12)


def test_a_coupled_drive_rubs_at_its_own_velocity_and_loads_its_joints():
    drives = replace(
        ARM,
        coupling=np.array([[-0.5, 1.0]]),
        coupled_friction=np.array([[0.7, 1.5, 0.2, -0.3]]),
    )
    rate = MOVING[:, 1] - 0.5 * MOVING[:, 0]
    own = 0.7 * rate + 1.5 * np.sign(rate) + 0.2 * np.tanh(rate / 0.1) - 0.3 * np.tanh(rate / 0.4)
    expected = friction_torque(ARM, MOVING) + np.stack([-0.5 * own, own], axis=1)
    np.testing.assert_allclose(friction_torque(drives, MOVING), expected)
    smooth = smooth_friction_torque(drives, 1e-6, MOVING)
    np.testing.assert_allclose(smooth, expected)
    np.testing.assert_array_equal(drives.dry_friction, [2.0 + 0.75, 3.0 + 1.5])
    # The work of the drive is that of its torque on the joints: no power is lost between.
    load = friction_torque(drives, MOVING) - friction_torque(ARM, MOVING)
    np.testing.assert_allclose((load * MOVING).sum(axis=1), own * rate)


def test_a_coupled_rotor_has_the_kinetic_energy_of_its_speed():
    coupling, inertia = np.array([[1.0, 1.0]]), np.array([0.4])
    drives = replace(ARM, coupling=coupling, coupled_rotor_inertia=inertia)
    q, qd, qdd = np.array([0.3, -0.7]), np.array([0.5, 2.0]), np.array([1.0, -3.0])
    energy = (qd @ (mass_matrix(drives, q) - mass_matrix(ARM, q)) @ qd) / 2
    assert energy == pytest.approx(0.5 * 0.4 * 2.5**2)
    more = inverse_dynamics(drives, q, qd, qdd) - inverse_dynamics(ARM, q, qd, qdd)
    np.testing.assert_allclose(more, 0.4 * (1.0 - 3.0), atol=1e-12)
    torque = inverse_dynamics(drives, q, qd, qdd)
    np.testing.assert_allclose(forward_dynamics(drives, q, qd, torque), qdd)


def test_coupled_arrays_of_other_shapes_are_refused():
    with pytest.raises(InvalidArgument, match='coupled_friction'):
        replace(ARM, coupling=np.ones((1, 2)), coupled_friction=np.ones((1, 3)))
    with pytest.raises(InvalidArgument, match='coupled_rotor_inertia'):
        replace(ARM, coupled_rotor_inertia=np.ones(1))
