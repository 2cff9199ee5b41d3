# SPDX-License-Identifier: Apache-2.0
"""What commands do to an arm: scale, sign and order, from small torques and their answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from commanded_arm import PENDULUM, CommandedArm, sliding

from robodyn_ros import RobotModel
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, NonFiniteValue
from robodyn_ros.identification import CommandProbe, Recording, check_commands

# Its rotor is known, and as good as nothing.
PENDULUM_WITHOUT_GEAR = RobotModel.from_urdf(PENDULUM).with_rotor_inertia([1e-9])
DRAWS = [(name, seed) for seed in range(5) for name in ('panda', 'ur5')]


@pytest.mark.slow
@pytest.mark.parametrize(('name', 'seed'), DRAWS)
def test_scale_sign_and_order_of_drawn_drives_are_found(name, seed):
    arm = CommandedArm.drawn(name, seed, permuted=seed % 2 == 1)
    names = arm.model.joint_names
    probe = CommandProbe(arm.model, largest=arm.model.effort_limits.max())
    recording = arm.probed(probe)
    assert not probe.problem
    found = check_commands(arm.model, recording)
    assert [each.channel for each in found.joints] == [names[k] for k in arm.order]
    assert [each.sign for each in found.joints] == np.sign(arm.scale).tolist()
    np.testing.assert_allclose([each.scale for each in found.joints], arm.scale, rtol=0.03)
    # What is to be copied makes a newton metre one: scale times the command, in the new order.
    moved = [names.index(name) for name in found.order]
    np.testing.assert_allclose(arm.scale[moved] * found.command_scale, 1.0, rtol=0.03)
    np.testing.assert_array_equal(np.array(moved)[arm.order], np.arange(arm.model.n))


@pytest.mark.parametrize('scale', [12.0, -0.05])
def test_the_scale_of_a_pendulum_is_that_of_the_closed_form(scale):
    model = PENDULUM_WITHOUT_GEAR
    (only,) = check_commands(model, sliding(model, scale)).joints
    assert only.scale == pytest.approx(scale, rel=5e-3)
    assert only.friction == pytest.approx(1.5, rel=0.02)
    assert only.sign == np.sign(scale)
    assert abs(only.delay) < 5e-4


def test_a_late_torque_is_distinguished_from_a_wrong_scale():
    model = PENDULUM_WITHOUT_GEAR
    (only,) = check_commands(model, sliding(model, 2.0, late=0.003)).joints
    assert only.scale == pytest.approx(2.0, rel=0.01)
    assert only.delay == pytest.approx(0.003, rel=0.15)


def test_the_findings_have_what_to_copy():
    model = PENDULUM_WITHOUT_GEAR
    found = check_commands(model, sliding(model, -0.5))
    assert {'command_inverted', 'command_scaled'} == {each.code for each in found.findings}
    (scaled,) = (each for each in found.findings if each.code == 'command_scaled')
    assert f'command_scale {found.command_scale[0]:.4g}' in str(scaled)
    good = check_commands(model, sliding(model, 1.0))
    assert not good.findings
    assert good.order == ('j1',)


def test_a_joint_whose_rotor_is_unknown_and_matters_has_no_scale():
    geared = RobotModel.from_urdf(PENDULUM)  # no rotor in it: unknown
    found = check_commands(geared, sliding(geared, -0.5))
    (only,) = found.joints
    assert (only.channel, only.sign) == ('j1', -1)
    assert np.isnan([only.scale, only.deviation]).all()
    assert found.command_scale == ()
    (said,) = found.findings
    assert (said.code, said.level) == ('rotor_unknown', 'warning')
    assert 'wrong sign' in str(said)


@pytest.mark.slow
def test_the_deviation_of_a_scale_holds_what_lag_and_friction_of_the_drive_cause():
    arm = CommandedArm.drawn('panda', 0)
    probe = CommandProbe(arm.model, largest=arm.model.effort_limits.max())
    found = check_commands(arm.model, arm.probed(probe, lag=0.008, breakaway=0.3))
    for each, scale in zip(found.joints, arm.scale, strict=True):
        assert abs(each.scale - scale) < 2.0 * each.deviation
        assert each.deviation < 0.03 * abs(scale)


def test_an_arm_that_stays_where_it_is_shows_nothing():
    model = RobotModel.from_urdf(PENDULUM)
    time = np.arange(0.0, 5.0, 0.01)
    still = Recording(model.joint_names, time, np.zeros((500, 1)), None, np.sin(time)[:, None])
    with pytest.raises(InsufficientRecording, match='slides'):
        check_commands(model, still)


def test_probing_begins_and_ends_with_what_holds_and_is_bounded():
    model = RobotModel.from_urdf(PENDULUM)
    probe = CommandProbe(model, holding=3.0, largest=2.0)
    commands = []
    while not probe.is_over:
        commands.append(probe.command(0.002 * len(commands), np.zeros(1))[0])
    added = np.array(commands) - 3.0
    assert added[0] == added[-1] == 0.0
    assert np.abs(added).max() == pytest.approx(2.0, rel=1e-3)
    assert np.abs(added[: int(1.5 / 0.002)]).max() < 0.01 * 2.0
    # A sine of at most 4 Hz has no steeper slope.
    assert np.abs(np.diff(added)).max() < 2.0 * 2 * np.pi * 4.0 * 0.002 * 1.1


def test_a_joint_that_moves_fades_the_sine_and_one_that_runs_away_ends_it():
    model = RobotModel.from_urdf(PENDULUM)
    probe = CommandProbe(model, largest=2.0, most_motion=0.05)
    time = np.arange(0.0, 3.0, 0.002)
    for t in time:
        probe.command(t, [0.0])
    period = 0.4  # of 2.5 Hz
    fading = [probe.command(t, [0.03])[0] for t in np.arange(3.0, 3.0 + period + 0.1, 0.002)]
    assert max(fading) > 0.01
    np.testing.assert_array_equal(fading[int(period / 0.002) + 2 :], 0.0)
    assert not probe.problem
    probe = CommandProbe(model, largest=2.0, most_motion=0.05)
    for t in time:
        probe.command(t, [0.0])
    np.testing.assert_array_equal(probe.command(3.0, [0.06]), [0.0])
    assert probe.is_over
    assert "'j1'" in probe.problem


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_an_offset_keeps_a_joint_in_place_that_gravity_pulls_and_friction_holds(sign):
    probe = CommandProbe(RobotModel.from_urdf(PENDULUM), largest=2.0)
    positions = [0.0]
    while not probe.is_over:
        torque = sign * probe.command(0.002 * len(positions), positions[-1:])[0] + 0.15
        sliding_speed = 0.3 * np.sign(torque) * max(abs(torque) - 0.4, 0.0)
        positions.append(positions[-1] + 0.002 * sliding_speed)
    # With an offset of the other sign it leaves by 0.2 rad.
    assert 0.01 < np.abs(positions).max() < 0.1
    assert not probe.problem


@pytest.mark.parametrize('late', [0.2, -0.01])
def test_states_that_pause_or_run_backwards_end_it(late):
    probe = CommandProbe(RobotModel.from_urdf(PENDULUM), largest=2.0)
    for t in np.arange(0.0, 3.0, 0.002):
        probe.command(t, [0.0])
    np.testing.assert_array_equal(probe.command(2.998 + late, [0.0]), [0.0])
    assert probe.is_over
    assert 'apart' in probe.problem


def test_an_arm_that_falls_between_two_channels_ends_it():
    probe = CommandProbe(RobotModel.from_urdf(PENDULUM), largest=2.0)
    for k in range(100):
        probe.command(0.002 * k, [0.002 * k])
    assert 'has moved' in probe.problem


def test_what_is_wrong_with_arguments_is_named():
    model = RobotModel.from_urdf(PENDULUM)
    for given in (0.0, [-1.0]):
        with pytest.raises(InvalidArgument, match="'j1'"):
            CommandProbe(model, largest=given)
    with pytest.raises(InvalidArgument, match='most_motion'):
        CommandProbe(model, largest=1.0, most_motion=-1.0)
    with pytest.raises(NonFiniteValue):
        CommandProbe(model, largest=np.nan)
    unlimited = replace(model, effort_limits=np.zeros(1))
    with pytest.raises(InvalidArgument, match='largest'):
        CommandProbe(unlimited)
