# SPDX-License-Identifier: Apache-2.0
"""The commands `robodyn float` and `robodyn soft`, and the numbers that they choose."""

import json
import os
import signal
import sys
from dataclasses import replace

import numpy as np
import pytest
from command_line import error_of
from robots import public_urdf, two_link_urdf

from robodyn_ros import RobotModel, gravity_torque, jacobian
from robodyn_ros.cli import robodyn
from robodyn_ros.control.settings import checked
from robodyn_ros.control.softness import bent_posture, floating, soft
from robodyn_ros.errors import InvalidArgument


@pytest.fixture(autouse=True)
def signals_as_before():
    """A command that starts nodes lets SIGTERM end them."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def started(monkeypatch):
    """Return what a command would have become, in place of becoming it."""
    pytest.importorskip('rclpy', reason='needs ROS 2')
    found = []
    monkeypatch.setattr(os, 'execv', lambda path, arguments: found.append(arguments))
    return found


@pytest.fixture(scope='module')
def panda(panda_urdf):
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')


def test_the_numbers_of_an_arm_are_parameters_of_the_node(panda):
    for chosen in (soft(panda), soft(panda, 150.0), floating(panda)):
        assert checked(chosen.parameters).mode == chosen.parameters['mode']
    assert soft(panda, 150.0).parameters['impedance.tip_stiffness'][:3] == [150.0] * 3
    assert floating(panda).parameters['friction_compensation'] == 0.8


def test_the_springs_leave_half_of_every_drive_at_a_tenth_of_the_reach(panda):
    stiffness = np.array(soft(panda).parameters['impedance.tip_stiffness'])
    force = stiffness[:3] * 0.1 * 1.4
    for position in np.random.default_rng(1).uniform(-2.0, 2.0, (50, 7)):
        rows = jacobian(panda, position)[:3]
        for axis in range(3):
            torque = np.abs(rows[axis] * force[axis])
            assert (torque <= 0.55 * panda.effort_limits).all()


def test_an_arm_with_fewer_than_six_joints_gets_springs_at_its_joints():
    model = RobotModel.from_urdf(two_link_urdf())
    with pytest.raises(InvalidArgument, match="'joint1' effort limit"):
        soft(model)
    parameters = soft(replace(model, effort_limits=np.array([20.0, 1000.0]))).parameters
    assert parameters['mode'] == 'joint_impedance'
    assert parameters['impedance.stiffness'] == [25.0, 100.0]  # half of 20 N m at 0.4 rad


@pytest.mark.parametrize('stiffness', [0.0, -1.0, np.nan, np.inf])
def test_a_stiffness_that_is_not_positive_is_refused(panda, stiffness):
    with pytest.raises(InvalidArgument, match='stiffness'):
        soft(panda, stiffness)


def test_the_posture_to_begin_with_is_carried_and_not_singular(panda):
    posture = bent_posture(panda)
    assert np.linalg.svd(jacobian(panda, posture), compute_uv=False)[5] > 0.1
    assert (np.abs(gravity_torque(panda, posture)) < 0.5 * panda.effort_limits).all()
    lower, upper = panda.position_limits.T
    assert ((posture > lower + 0.1) & (posture < upper - 0.1)).all()


def test_soft_becomes_the_node_with_what_it_says(started, panda_urdf):
    robodyn.main(
        ['soft', '--urdf', panda_urdf, '--tip', 'panda_link8', '--', '-p', 'ramp_time:=2.0'],
        standalone_mode=False,
    )
    (arguments,) = started
    assert arguments[:3] == [sys.executable, '-m', 'robodyn_ros.ros.dynamics.dynamics_node']
    assert arguments[3] == '--ros-args' and arguments[-2:] == ['-p', 'ramp_time:=2.0']
    assert 'mode:="cartesian_impedance"' in arguments
    assert 'tip_links:=["panda_link8"]' in arguments


def test_names_of_a_urdf_are_quoted_and_reach_no_shell(started, tmp_path):
    name = 'tool $(touch x); "y"'
    text = public_urdf('ur5_robot.urdf').read_text(encoding='utf-8')
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(text.replace('"tool0"', f"'{name}'"), encoding='utf-8')
    robodyn.main(['float', '--urdf', str(urdf), '--tip', name], standalone_mode=False)
    (arguments,) = started
    assert f'tip_links:={json.dumps([name])}' in arguments


def test_options_that_do_not_go_together_are_refused():
    assert '--urdf is the arm' in error_of('soft')
    assert '--simulate' in error_of('soft', '--urdf', 'arm.urdf', '--push', '1', '0', '0')


@pytest.mark.ros
@pytest.mark.slow
def test_a_simulated_arm_is_pushed_and_comes_back(panda_urdf, capfd):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('mujoco')
    arm = ['--urdf', panda_urdf, '--base', 'panda_link0', '--tip', 'panda_link8']
    more = ['--stiffness', '200', '--simulate', '--push', '10', '0', '0', '--duration', '4']
    robodyn.main(['soft', *arm, *more], standalone_mode=False)
    told = capfd.readouterr().out
    line = next(line for line in told.splitlines() if line.startswith('pushed with 10 N'))
    moved = float(line.split('moved ')[1].split()[0])
    assert moved == pytest.approx(50.0, rel=0.05)
    assert float(line.split('it is ')[1].split()[0]) < 1.0
