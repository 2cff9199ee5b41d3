# SPDX-License-Identifier: Apache-2.0
"""The public names, and what models promise about themselves."""

import inspect

import numpy as np
import pytest
from robots import public_urdf, two_link_urdf

import robodyn_ros as rd


def test_every_public_name_exists_and_explains_itself():
    for name in rd.__all__:
        assert inspect.getdoc(getattr(rd, name)), name


def test_arrays_of_a_model_cannot_be_written():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    for name in ('inertial_parameters', 'gravity', 'effort_limits', 'position_limits'):
        with pytest.raises(ValueError, match='read-only'):
            getattr(arm, name)[0] = 1.0
    with pytest.raises(ValueError, match='read-only'):
        arm.dh.a[0] = 1.0


def test_with_methods_return_new_models():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    assert arm.with_gravity((0, 1, 0)).gravity.tolist() == [0, 1, 0]
    assert arm.gravity.tolist() == [0, 0, -9.81]
    parameters = np.arange(20.0).reshape(2, 10)
    assert arm.with_inertial_parameters(parameters).inertial_parameters.tolist() == (
        parameters.tolist()
    )


def test_arrays_that_are_passed_in_stay_the_callers():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    gravity = np.array([0.0, 0.0, -1.62])
    on_the_moon = arm.with_gravity(gravity)
    gravity[2] = 5.0
    assert on_the_moon.gravity[2] == -1.62


def test_limits_and_friction_are_read():
    arm = rd.RobotModel.from_urdf(
        public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
    )
    assert arm.joint_names == tuple(f'panda_joint{i}' for i in range(1, 8))
    assert arm.effort_limits.tolist() == [87, 87, 87, 87, 12, 12, 12]
    np.testing.assert_array_equal(arm.position_limits[3], [-3.0718, -0.0698])
    assert arm.velocity_limits.shape == (7,)
    assert arm.viscous_friction.shape == arm.coulomb_friction.shape == (7,)


def test_limits_that_are_missing_are_infinite():
    arm = rd.RobotModel.from_urdf(two_link_urdf())
    assert np.isinf(arm.effort_limits).all()
    assert np.isinf(arm.velocity_limits).all()
    assert arm.position_limits.tolist() == [[-np.inf, np.inf]] * 2


def test_text_may_follow_white_space_or_a_byte_order_mark_and_declare_an_encoding():
    text = two_link_urdf()
    for variant in (
        f'\n  {text}',
        f'\ufeff{text}',
        f'<?xml version="1.0" encoding="utf-8"?>{text}',
        f'<?xml version="1.0" encoding="ascii"?>{text.replace("link2", "línk2")}',
    ):
        assert rd.RobotModel.from_urdf(variant).n == 2


def test_path_may_be_a_str_or_a_path(tmp_path):
    path = tmp_path / 'arm.urdf'
    path.write_bytes(two_link_urdf().encode('utf-16'))
    assert rd.RobotModel.from_urdf(path).n == 2
    assert rd.RobotModel.from_urdf(str(path)).n == 2
