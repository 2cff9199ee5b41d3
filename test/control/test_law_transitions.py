# SPDX-License-Identifier: Apache-2.0
"""No change throws the arm: what fades, what is braked, what is damped, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import (
    GRAVITY,
    MASS,
    NO_RATE_LIMIT,
    WEIGHT,
    Q,
    enabled,
    following,
    inverse_dynamics,
    to,
)

from robodyn_ros.control.command_pipeline import NotFollowing
from robodyn_ros.control.law import FOLLOWING, MODES
from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros_parameters import parameters_of


def test_modes_are_the_same_in_core_library_and_parameters():
    (mode,) = [each for each in parameters_of('dynamics_node') if each.name == 'mode']
    assert tuple(mode.rules['one_of'][0]) == MODES
    for name in MODES:
        arm = enabled(name)
        assert arm.pipeline._core.follows == (name in FOLLOWING)
        arm.run(0.01)
        if name not in FOLLOWING:
            with pytest.raises(NotFollowing, match=name):
                arm.pipeline.follow(to([0.3, 0.2]))


# --- fading ------------------------------------------------------------------------------------


def test_law_that_does_not_change_changes_nothing():
    arm, untouched = enabled(ramp_time=0.5), enabled(ramp_time=0.5)
    for each in (arm, untouched):
        each.run(0.1)
        each.pipeline.follow(to([0.3, 0.2]))
    for _ in range(20):
        arm.change(mode='computed_torque', terms_gravity=True)
        for mine, other in zip(arm.run(0.05), untouched.run(0.05)):
            assert mine.torque == pytest.approx(other.torque, abs=1e-12)


def test_refused_cycles_do_not_hurry_a_transition():
    arm = enabled(ramp_time=0.5, **NO_RATE_LIMIT)
    arm.break_model(False)
    arm.run(0.2, Q)
    arm.change(terms_gravity=False)
    arm.break_model(True)
    assert arm.run(0.05, Q) == [None] * 50
    arm.break_model(False)
    # 51 ms of 500: a tenth of the way.
    assert arm.run(0.001, Q)[-1].torque == pytest.approx(GRAVITY * (1.0 - 0.051 / 0.5))


def test_transition_under_way_keeps_its_time():
    arm = enabled(ramp_time=0.5, **NO_RATE_LIMIT)
    arm.run(0.2, Q)
    arm.change(mode='computed_torque', terms_gravity=False)
    arm.run(0.25, Q)
    arm.change(ramp_time=0.0)
    assert arm.run(0.001, Q)[-1].torque == pytest.approx(GRAVITY * (1.0 - 0.251 / 0.5))


def carrying(times):
    """Return the inverse dynamics of an arm whose joints carry several times their weight."""

    def loaded(q, qd, qdd):
        return inverse_dynamics(q, qd, qdd) + (times - 1.0) * WEIGHT * np.cos(q)

    return loaded


def test_another_model_fades_in_where_no_rate_limit_protects_from_a_step():
    arm = enabled(ramp_time=0.5, **NO_RATE_LIMIT)
    arm.run(0.1, Q)

    arm.pipeline.change_load(carrying(2.0))
    assert arm.run(0.251, Q)[-1].torque == pytest.approx(1.5 * GRAVITY)
    arm.pipeline.change_load(carrying(1.2))  # waits for its turn
    assert arm.run(0.250, Q)[-1].torque == pytest.approx(2.0 * GRAVITY)
    assert arm.run(0.250, Q)[-1].torque == pytest.approx(1.6 * GRAVITY, rel=0.01)
    assert arm.run(0.500, Q)[-1].torque == pytest.approx(1.2 * GRAVITY)


def test_load_that_was_replaced_before_it_began_is_never_carried():
    arm = enabled(ramp_time=0.5, **NO_RATE_LIMIT)
    arm.run(0.1, Q)
    arm.pipeline.change_load(carrying(2.0))
    arm.pipeline.change_load(inverse_dynamics)
    for command in arm.run(1.2, Q):
        assert command.torque == pytest.approx(GRAVITY)


def test_load_that_waits_is_forgotten_when_another_takes_effect_at_once():
    arm = enabled(ramp_time=0.5, **NO_RATE_LIMIT)
    for times in (2.0, 1.2):
        arm.run(0.05)
        arm.pipeline.change_load(carrying(times))
    arm.run(0.05)
    unlimited = arm.pipeline.settings
    arm.pipeline.settings = replace(unlimited, torque_rate_limit=np.array([1000.0, 1000.0]))
    arm.pipeline.change_load(inverse_dynamics)
    assert arm.run(0.6, Q)[-1].torque == pytest.approx(GRAVITY)
    arm.pipeline.settings = unlimited
    arm.pipeline.change_load(carrying(1.1))
    assert arm.run(1.2, Q)[-1].torque == pytest.approx(1.1 * GRAVITY)


def test_reference_is_kept_through_a_short_excursion_into_gravity_compensation():
    arm = following(ramp_time=0.5, goal=[0.15, 0.2], time=2.0, after=0.1)
    arm.change(mode='gravity_compensation')
    arm.run(0.1)
    arm.change(mode='computed_torque', terms_gravity=True)
    arm.run(0.6)
    assert arm.pipeline.reference_status == 'moving'
    arm.change(mode='gravity_compensation')
    arm.run(0.6)
    assert arm.pipeline.reference_status == 'none'


# --- references that end early -----------------------------------------------------------------


def test_cancelled_reference_is_braked_to_rest_and_held():
    arm = following(ramp_time=0.2, goal=[0.3, 0.2], settle=0.3)
    before = arm.run(0.5)[-1].reference
    arm.pipeline.cancel()
    assert arm.pipeline.reference_status == 'braking'
    references = [command.reference for command in arm.run(0.3)]
    speeds = np.array([reference.velocity[0] for reference in references])
    assert speeds[0] == pytest.approx(before.velocity[0], rel=0.01)
    assert (np.diff(speeds) <= 1e-12).all() and (speeds >= 0.0).all()
    assert speeds[-1] == 0.0
    assert arm.pipeline.reference_status == 'holding'
    arm.pipeline.cancel()  # which changes nothing any more
    assert arm.run(0.1)[-1].reference.position == pytest.approx(references[-1].position)


def test_braking_keeps_to_its_acceleration():
    arm = following(braking_acceleration=np.array([0.5, 0.5]), goal=[0.3, 0.2], after=0.5)
    arm.pipeline.cancel()
    decelerations = [command.reference.acceleration[0] for command in arm.run(2.0)]
    assert min(decelerations) == pytest.approx(-0.5, rel=1e-3)


@pytest.mark.parametrize('other', [0.2, 0.0, 0.05, 60.0])
def test_feedforward_that_is_cancelled_fades_in_its_time_even_if_the_ramp_time_is_changed(other):
    arm = enabled('feedforward', terms_friction=False, ramp_time=0.2, **NO_RATE_LIMIT)
    arm.run(0.3)
    arm.pipeline.follow(to(Q, 0.0, effort=[5.0, 0.0]))
    assert arm.run(0.01)[-1].torque == pytest.approx(GRAVITY + [5.0, 0.0])
    arm.pipeline.cancel()
    assert arm.run(0.1)[-1].torque == pytest.approx(GRAVITY + [2.5, 0.0])
    arm.run(0.05)
    arm.change(ramp_time=other)
    torques = np.array([command.torque for command in arm.run(0.1)]) - GRAVITY
    assert torques[9] == pytest.approx([1.0, 0.0])  # 160 ms of 200
    assert torques[-1] == pytest.approx([0.0, 0.0])
    assert arm.pipeline.reference_status == 'none'


def test_arm_that_does_not_follow_is_braked_where_it_is():
    arm = following(max_following_error=0.05, goal=[0.2, 0.2], time=2.0)
    commands = arm.run(2.0)
    assert arm.pipeline.following_errors == 1
    assert 'shoulder' in arm.pipeline.last_fault and '0.05' in arm.pipeline.last_fault
    assert commands[-1].reference.position == pytest.approx(Q)
    assert commands[-1].parts.feedback == pytest.approx([0.0, 0.0])
    arm.pipeline.follow(to([0.12, 0.2]))
    assert arm.pipeline.last_fault == ''


# --- damping -----------------------------------------------------------------------------------


def test_moving_arm_is_damped_from_enabling_until_it_rests_and_then_moves_freely():
    arm = enabled('gravity_compensation', damping=5.0)
    speed = np.array([0.4, -0.2])
    drag = -5.0 * MASS * speed
    assert arm.run(0.1, Q, speed)[-1].parts.feedback == pytest.approx(drag)
    arm.run(1.0, Q)
    assert arm.run_elsewhere(0.1, Q, speed)[-1].torque == pytest.approx(GRAVITY)


def test_arm_without_friction_does_not_coast_when_its_damping_has_ended():
    arm = enabled('gravity_compensation', damping=5.0, **NO_RATE_LIMIT)
    position, velocity, torque = Q.copy(), np.array([0.06, -0.08]), WEIGHT * np.cos(Q)
    for _ in range(3000):
        bias = inverse_dynamics(position, velocity, np.zeros(2))
        velocity = velocity + 0.001 * (torque - bias) / MASS
        position = position + 0.001 * velocity
        arm.now += 0.001
        torque = arm.receive(position, velocity).torque
    assert torque == pytest.approx(inverse_dynamics(position, velocity, np.zeros(2)), abs=1e-5)
    assert np.abs(velocity).max() < 2e-5  # 1.2 mrad a minute


def test_damping_ends_although_somebody_keeps_the_arm_moving():
    arm = enabled('gravity_compensation', damping=5.0)
    assert arm.run(3.0, Q, [0.4, 0.0])[-1].torque == pytest.approx(GRAVITY)


def test_gravity_compensation_that_takes_over_a_moving_arm_damps_it():
    arm = following(damping=5.0, ramp_time=0.1, goal=[0.15, 0.2], settle=0.1)
    arm.run(0.5, Q, [0.3, 0.0])
    arm.change(mode='gravity_compensation')
    torque = arm.run(0.2, Q, [0.3, 0.0])[-1].torque
    assert torque == pytest.approx(GRAVITY - 5.0 * MASS * [0.3, 0.0])


def test_arm_that_moves_when_states_come_back_is_brought_to_rest():
    arm = enabled('gravity_compensation', damping=5.0)
    arm.run(0.2, Q)
    arm.watch(0.3)
    assert arm.pipeline.is_stale
    position, velocity, torque = Q.copy(), np.array([0.3, -0.2]), GRAVITY
    for _ in range(3000):  # without friction: nothing but the commands brakes it
        arm.now += 0.001
        command = arm.receive(position, velocity)
        torque = torque if command is None else command.torque
        velocity += 0.001 * (torque - inverse_dynamics(position, velocity, np.zeros(2))) / MASS
        position += 0.001 * velocity
    assert np.abs(velocity).max() < 0.01
    assert np.abs(position - Q).max() < 0.3


# --- states and loads that are not believed ----------------------------------------------------


def test_state_that_no_joint_can_have_come_to_is_not_accepted():
    arm = enabled()
    arm.run(0.05)
    arm.now += 0.001
    assert arm.receive(Q + [3.1, 0.0]) is None
    assert arm.run(0.01)[0].torque == pytest.approx(GRAVITY)
    assert arm.pipeline.implausible_states == 1


def test_joint_that_wraps_ends_the_reference_and_is_held_where_it_says_it_is():
    arm = following(goal=[0.15, 0.2], settle=0.05, after=0.1, **NO_RATE_LIMIT)
    commands = arm.run(0.5, Q - [2.0 * np.pi, 0.0])
    assert commands[0] is None
    assert max(np.abs(command.parts.feedback).max() for command in commands[1:]) < 1e-9
    assert 'faster' in arm.pipeline.last_fault


def test_arm_that_the_drives_cannot_carry_is_left_to_its_brakes():
    arm = enabled(effort_limits=np.array([5.0, 30.0]))
    assert arm.run(0.1) == [None] * 100
    assert 'shoulder' in arm.pipeline.last_fault and '19.9' in arm.pipeline.last_fault
    assert arm.run(0.01, [1.5, 0.2])[-1] is not None


# --- stopping in motion ------------------------------------------------------------------------


def test_stopped_in_motion_it_brakes_before_the_stop_command():
    arm = following(goal=[0.3, 0.2])
    moving = arm.run(0.5)[-1].reference
    arm.pipeline.begin_stop()
    assert not arm.pipeline.has_stopped
    assert arm.run(0.001)[0].reference.velocity[0] == pytest.approx(moving.velocity[0], rel=0.05)
    with pytest.raises(RejectedTrajectory):
        arm.pipeline.follow(to([0.5, 0.2]))
    arm.run(0.5)
    assert arm.pipeline.has_stopped
    while (command := arm.pipeline.stop_command(arm.now)) is not None:
        last = command.torque
        arm.now += 0.001
    assert last == pytest.approx(GRAVITY)


def test_arm_at_rest_has_nothing_to_brake():
    arm = enabled('gravity_compensation', damping=5.0)
    arm.run(0.1)
    arm.pipeline.begin_stop()
    assert arm.pipeline.has_stopped


def test_load_that_fades_in_is_carried_whole_before_the_arm_counts_as_stopped():
    arm = enabled('gravity_compensation', ramp_time=0.5, **NO_RATE_LIMIT)
    arm.run(0.1)
    arm.pipeline.change_load(carrying(2.0))
    arm.run(0.1)
    arm.pipeline.begin_stop()
    assert not arm.pipeline.has_stopped
    arm.run(0.5)
    assert arm.pipeline.has_stopped
    assert arm.pipeline.stop_command(arm.now).torque == pytest.approx(2.0 * GRAVITY)


def test_last_errors_of_a_brake_fade_before_the_arm_counts_as_stopped():
    arm = following(settle=0.2)
    wanted = arm.run(0.001)[-1].reference

    def go_on():
        arm.now += 0.001
        return arm.receive(wanted.position, wanted.velocity).reference

    for _ in range(400):
        wanted = go_on()
    arm.pipeline.begin_stop()
    while arm.pipeline.reference_status == 'braking':
        wanted = go_on()
        assert not arm.pipeline.has_stopped
    for _ in range(290):
        wanted = go_on()
        assert not arm.pipeline.has_stopped
    arm.run(0.02, position=wanted.position)
    assert arm.pipeline.has_stopped
