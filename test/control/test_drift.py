# SPDX-License-Identifier: Apache-2.0
"""A weightless arm that drifts in MuJoCo, which was told other gravity or mass than the model."""

from pathlib import Path

import numpy as np
import pytest
import xacro

pytest.importorskip('mujoco')

from robodyn_ros import Payload, RobotModel, compile_model
from robodyn_ros.control.drift import DriftSample, DriftWatch
from robodyn_ros.simulation.arm import ArmSimulation

ARM = xacro.process_file(
    str(Path(__file__).parents[2] / 'urdf' / 'arm.urdf.xacro'), mappings={}
).toxml()
MODEL = RobotModel.from_urdf(ARM)
carrying = compile_model(MODEL).gravity_torque
BENT = np.array([0.5, 0.5, -0.5, 0.5, 0.5, 0.0])
STRETCHED = np.array([0.0, 0.3, 0.4, 0.0, 0.2, 0.0])
STEP = 0.002


def told(
    position,
    *,
    gravity=(0.0, 0.0, -9.81),
    payload=None,
    push=None,
    noise=0.0,
    seconds=8,
    sticks=False,
):
    """Return what is said, second by second, of an arm that the model's gravity is to carry."""
    simulation = ArmSimulation.from_urdf(
        ARM, gravity=gravity, time_step=STEP, initial_position=position
    )
    if payload is not None:
        simulation.carry([payload])
    watch, generator, words = DriftWatch(), np.random.default_rng(2), []
    for i in range(round(seconds / STEP)):
        q, qd = simulation.position, simulation.velocity
        torque = carrying(q)
        if i % 10 == 0:
            measured = qd + noise * generator.normal(size=MODEL.n)
            words.append(watch.look(MODEL, DriftSample(i * STEP, q, measured, torque)))
        acting = torque if push is None else torque + push(simulation.time)
        if not sticks:
            simulation.step(acting)
    return words


@pytest.mark.repeats(check=2)
@pytest.mark.parametrize('position', [BENT, STRETCHED])
@pytest.mark.parametrize('true', [9.80, 9.83, 9.6])
def test_gravity_that_differs_is_named_with_its_value(position, true):
    *_, words = [each for each in told(position, gravity=(0.0, 0.0, -true), seconds=6) if each]
    found = float(words.partition('gravity of ')[2].split()[0])
    assert found == pytest.approx(true, abs=0.1 * abs(9.81 - true))
    assert 'in place of 9.81 m/s^2' in words
    assert ('% less' if true < 9.81 else '% more') in words


def test_arm_at_9_80_is_explained_by_gazebo_s_default():
    words = next(each for each in told(BENT, gravity=(0.0, 0.0, -9.80)) if each)
    assert 'the arm drifts, joint2 by -' in words
    assert 'gravity of 9.8 in place of 9.81 m/s^2 (0.10 % less)' in words


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('mass', [0.02, 0.2])
def test_payload_that_nobody_set_is_named_with_its_mass(mass):
    words = next(each for each in told(BENT, payload=Payload(mass, link='tool0')) if each)
    found = words.rpartition(' or by ')[2].rpartition('explained by ')[2].split()[0]
    assert float(found) == pytest.approx(mass, rel=0.02)
    assert 'kg more at the tip' in words


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('noise', [0.0, 1e-3])
def test_arm_that_does_not_drift_is_not_reported(noise):
    assert not any(told(BENT, noise=noise))


@pytest.mark.longer
def test_arm_that_a_hand_leads_is_not_reported():
    def hand(time):
        return np.array([3.0, 4.0, -2.0, 0.3, 0.2, 0.0]) * np.sin(1.3 * time)

    assert not any(told(BENT, push=hand, seconds=12))


@pytest.mark.longer
def test_arm_that_coasts_is_not_reported():
    def push(time):
        return np.array([0.0, 2.0, 1.0, 0.0, 0.0, 0.0]) * (time < 0.02)

    assert not any(told(STRETCHED, push=push))


@pytest.mark.longer
def test_arm_that_is_pushed_sideways_is_not_explained_by_weight():
    assert not any(told(BENT, push=lambda time: np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])))


def test_arm_that_sticks_is_not_reported():
    assert not any(told(BENT, gravity=(0.0, 0.0, -9.80), noise=1e-3, sticks=True))
