# SPDX-License-Identifier: Apache-2.0
"""``make identify-demo`` on an arm nobody chose: the whole loop over DDS, and what it shows."""

import json
from dataclasses import replace

import numpy as np
import pytest
from drawn_figures import examined_figures
from numpy.testing import assert_allclose
from robots import public_urdf, two_link_urdf

from robodyn_ros import RobotModel, gravity_torque
from robodyn_ros.identification import Identification, Recording
from robodyn_ros.identification.exciting_motion import search
from robodyn_ros.motions import MotionSamples
from robodyn_ros.ros.demo import identification_loop, runner
from robodyn_ros.ros.demo.identification_loop import (
    LeastSquares,
    RecordedMotion,
    gravity_error,
    impossible_bodies,
)
from robodyn_ros.ros.demo.runner import Arm
from robodyn_ros.simulation.sampled_arm import random_poses, sampled_arm

KEYS = {
    'torque_error_before',
    'torque_error_after',
    'torque_error_least_squares',
    'tracking_rms_before_rad',
    'tracking_rms_after_rad',
}


def test_the_gravity_error_is_that_of_gravity_torques_in_random_poses():
    model = RobotModel.from_urdf(public_urdf('panda.urdf'), tip_link='panda_link8')
    heavier = model.with_inertial_parameters(1.1 * model.inertial_parameters)
    assert gravity_error(heavier, model) == pytest.approx(0.1)
    q = random_poses(model, np.random.default_rng(0), 100)
    assert (q >= model.position_limits[:, 0]).all() and (q <= model.position_limits[:, 1]).all()


def test_bodies_are_impossible_where_mass_is_negative_or_a_principal_moment_too_large():
    model = RobotModel.from_urdf(public_urdf('ur5_robot.urdf'))
    assert impossible_bodies(model) == 0
    parameters = np.tile([1.0, 0, 0, 1.0, 0, 1.0, 0, 0, 0, 2.0], (6, 1))
    parameters[1, 9] = -1.0
    parameters[2, 5] = 2.1  # no body has a moment beyond the sum of the others
    parameters[3, 5] = 2.0  # a disc has just that
    parameters[4] = 0.0
    assert impossible_bodies(model.with_inertial_parameters(parameters)) == 2


def test_least_squares_finds_the_torques_of_an_arm_without_noise():
    model = RobotModel.from_urdf(public_urdf('ur5_robot.urdf'))
    true = sampled_arm(model, 3)
    time = np.arange(0.0, 12.0, 0.01)
    generator = np.random.default_rng(0)
    rates, phases = generator.uniform(0.5, 2.0, 6), generator.uniform(0, 6, 6)
    phase = rates * time[:, None] + phases
    motion = MotionSamples(time, np.sin(phase), rates * np.cos(phase), -(rates**2) * np.sin(phase))
    recording = recorded(true, motion)
    squares = LeastSquares.fitted(model, recording)
    assert squares.relative_error(model, recording, 5.0) < 0.01
    q = random_poses(model, generator, 20)
    assert_allclose(gravity_torque(squares.bodies(model), q), gravity_torque(true, q), atol=0.1)


def recorded(true, motion):
    from robodyn_ros import inverse_dynamics

    torque = inverse_dynamics(true, motion.q, motion.qd, motion.qdd)
    torque = torque + true.viscous_friction * motion.qd
    torque = torque + true.coulomb_friction * np.tanh(motion.qd / 0.01)
    return Recording(true.joint_names, motion.time, motion.q, motion.qd, torque)


@pytest.mark.longer
def test_the_loop_identifies_by_one_motion_and_is_judged_by_another(tmp_path, monkeypatch):
    """The loop without nodes: what they would record is computed."""
    monkeypatch.setattr(search, '_STARTS', 1)
    monkeypatch.setattr(identification_loop, 'DURATION', 10.0)
    monkeypatch.setattr(identification_loop, 'NEW_DURATION', 5.0)
    runs, bar = [], []

    def run(rig, name, motion, advance, identified=None):
        found = identified and Identification.load(identified)
        runs.append((name, rig.simulated.urdf.name, found))
        advance(0.75)
        true = sampled_arm(RobotModel.from_urdf(rig.arm.urdf), rig.seed)
        limits = np.array(rig.commanding['effort_limits'])
        assert (limits > motion.use[0].effort).all()
        made = recorded(true, motion.trajectory)
        error = 1e-3 if identified else 1e-2
        return RecordedMotion(motion, replace(made, position=made.position + error), 0.0)

    def update(progress, task, *, completed, description):
        bar.append(completed)

    monkeypatch.setattr(identification_loop._Rig, 'recorded', run)
    monkeypatch.setattr(runner.Progress, 'update', update)
    limit = '<limit lower="-2" upper="2" velocity="2" effort="0"/>'
    urdf = two_link_urdf().replace('type="continuous">', f'type="revolute">{limit}')
    (tmp_path / 'arm.urdf').write_text(urdf.replace('xyz="0 0 1"', 'xyz="0 1 0"'))
    arm = Arm(tmp_path / 'arm.urdf', '', '')
    with examined_figures():
        numbers = identification_loop.run_identification_loop(arm, tmp_path, seed=2)
    assert [name for name, *_ in runs] == ['excitation', 'before', 'after']
    assert {urdf for _, urdf, _ in runs} == {'true.urdf'}
    assert [bool(found) for *_, found in runs] == [False, False, True]
    assert bar == sorted(bar) and bar[-1] == 6.0
    assert numbers['torque_error_after'] < 0.1 * numbers['torque_error_before']
    assert numbers['tracking_rms_before_rad'] == pytest.approx(1e-2)
    assert numbers['tracking_rms_after_rad'] == pytest.approx(1e-3)
    assert numbers == json.loads((tmp_path / 'summary.json').read_text())
    assert (tmp_path / 'identification.png').stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.ros
def test_a_wrong_urdf_becomes_a_model_that_tracks(tmp_path, monkeypatch):
    pytest.importorskip('mujoco', reason='needs MuJoCo: pip install mujoco')
    pytest.importorskip('rosbags', reason='needs rosbags: pip install rosbags')
    monkeypatch.setattr(search, '_STARTS', 1)
    monkeypatch.setattr(identification_loop, 'DURATION', 10.0)
    monkeypatch.setattr(identification_loop, 'NEW_DURATION', 5.0)
    urdf = public_urdf('ur5_robot.urdf')
    numbers = identification_loop.run_identification_loop(Arm(urdf, '', ''), tmp_path, seed=2)
    assert numbers == json.loads((tmp_path / 'summary.json').read_text())
    assert KEYS <= set(numbers)
    assert numbers['torque_error_before'] > 0.1
    assert numbers['torque_error_after'] < 0.03
    # Ten seconds are enough for both; only least squares has bodies that cannot exist.
    assert numbers['torque_error_after'] < 1.05 * numbers['torque_error_least_squares']
    assert numbers['gravity_error_after'] < 0.05
    assert numbers['impossible_bodies_after'] == 0 < numbers['impossible_bodies_least_squares']
    assert numbers['tracking_rms_after_rad'] < numbers['tracking_rms_before_rad'] / 4
    assert (tmp_path / 'identification.png').stat().st_size > 10_000
    model = RobotModel.from_urdf(urdf)
    Identification.load(tmp_path / 'identified.yaml').check_kinematics(model)
    assert RobotModel.from_urdf(tmp_path / 'identified.urdf').joint_names == model.joint_names
