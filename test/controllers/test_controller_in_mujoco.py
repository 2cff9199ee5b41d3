# SPDX-License-Identifier: Apache-2.0
"""The controller's command pipeline on a Panda in MuJoCo, 1 kHz, no friction."""

import numpy as np
import pytest

pytest.importorskip('mujoco')

from frictionless_arm import POSITION, TIME_STEP
from random_sequences import Arm, Case

from robodyn_ros import gravity_torque
from robodyn_ros.control.core_binding import core
from robodyn_ros.kinematics import forward_kinematics

TURN = np.array([0.5, -0.3, 0.4, 0.5, -0.4, 0.3, 0.5])
DURATION = 2.0
PEAK = 0.8  # J, of the motion
STIFFNESS = 400.0  # N/m
FORCE = 20.0  # N


@pytest.fixture
def arm():
    """Return an arm whose setpoints come with each cycle of a controller."""
    result = Arm(Case([], is_controller=True))
    result.run(0.1)
    return result


def move(arm, duration):
    """Let an arm follow a quintic through one radian or so, for a time [s]."""
    arm.give(POSITION + TURN, DURATION, 0.0)
    arm.run(duration)


def pause(arm, duration):
    """Let time pass [s] without updates by the manager: what was sent last acts."""
    for _ in range(round(duration / TIME_STEP)):
        arm.now, arm.steps = round(arm.now + TIME_STEP, 9), arm.steps + 1
        arm.step()


def test_it_tracks_within_half_a_milliradian(arm):
    move(arm, 0.0)
    errors = []
    for _ in range(2300):
        arm.run(0.001)
        errors.append(arm.setpoints.sample(arm.now).position - arm.simulation.position)
    assert np.sqrt(np.mean(np.square(errors))) < 0.5e-3
    assert arm.peak == pytest.approx(PEAK, rel=0.1)
    assert arm.pipeline.reference_status == 'moving'


def test_switched_forty_times_at_rest_it_does_not_move(arm):
    for _ in range(40):
        arm.pipeline.disable()
        pause(arm, 0.002)
        arm.pipeline.enable(arm.now)
        arm.run(0.05)
    assert np.abs(arm.simulation.position - POSITION).max() < 1e-4


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('at', [0.5, 1.0, 1.4])
def test_a_reference_that_ends_in_motion_is_braked(arm, at):
    move(arm, at)
    moving = arm.peak
    arm.setpoints = None
    arm.run(3.0)
    assert arm.pipeline.reference_status == 'holding'
    assert arm.peak < 1.3 * moving
    assert arm.last_energy < 1e-6


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('at', [0.5, 1.0, 1.4])
@pytest.mark.parametrize('gap', [0.12, 0.6])
def test_states_that_are_missing_in_motion_leave_hardly_any_energy(arm, at, gap):
    move(arm, at)
    arm.silent_until = arm.now + gap
    arm.run(gap)
    left = arm.last_energy
    arm.setpoints = None
    arm.run(2.0)
    assert arm.peak < 1.3 * PEAK
    assert arm.last_energy < 1e-5
    if gap > 0.5:
        assert left < 0.02  # J, where the motion has 0.8


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('duration', [0.05, 0.12])
def test_a_pause_of_the_manager_in_motion_is_recovered_from(arm, duration):
    move(arm, 1.0)
    moving = arm.peak
    pause(arm, duration)
    arm.run(3.0)
    assert arm.peak < 3.0 * moving
    assert arm.last_energy < 1e-5


def test_an_arm_that_is_blocked_is_not_forced(arm):
    move(arm, 0.0)
    for _ in range(2000):
        arm.now += TIME_STEP
        command = arm.cycle((POSITION, np.zeros(7), arm.now))
    assert arm.pipeline._core.faults[0].cause == core.Cause.following_error
    assert arm.pipeline.reference_status == 'holding'
    held = command.torque - gravity_torque(arm.stack.model, POSITION)
    assert np.abs(held).max() < 0.5


# --- impedance -----------------------------------------------------------------------------------


def tip(arm):
    return forward_kinematics(arm.stack.model, arm.simulation.position)[:3, 3]


def displacement(arm, axis, force, duration, start):
    """Push along an axis for a time [s], and return how far the tip is from its start [m]."""
    arm.simulation.push(force * np.eye(6)[axis])
    arm.pushed = np.inf
    arm.run(duration)
    return (tip(arm) - start)[axis]


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('axis', range(3))
def test_an_impedance_yields_as_a_spring_and_comes_back_as_a_damped_one(arm, axis):
    tip_stiffness = (*3 * (STIFFNESS,), 30.0, 30.0, 30.0)
    settings = {'mode': 'cartesian_impedance', 'impedance_tip_stiffness': tip_stiffness}
    arm.happen(('change', settings))
    arm.run(1.0)
    start = tip(arm)
    np.testing.assert_allclose(arm.simulation.position, POSITION, atol=1e-4)
    forces = np.linspace(0.0, FORCE, 200)
    found = np.array([displacement(arm, axis, force, 0.01, start) for force in forces])
    is_steady = found > 0.1 * found[-1]
    slope = np.polyfit(found[is_steady], forces[is_steady], 1)[0]
    assert slope == pytest.approx(STIFFNESS, rel=0.05)
    pushed = displacement(arm, axis, FORCE, 1.0, start)
    assert pushed == pytest.approx(FORCE / STIFFNESS, rel=0.01)
    released = [displacement(arm, axis, 0.0, 0.002, start) for _ in range(600)]
    logarithm = np.log(-min(released) / pushed)  # of the overshoot
    assert -logarithm / np.hypot(np.pi, logarithm) == pytest.approx(0.7, abs=0.1)
    assert abs(released[-1]) < 0.02 * pushed
