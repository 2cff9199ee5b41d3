# SPDX-License-Identifier: Apache-2.0
"""What leaves the command pipeline is finite, within limits, without jumps, never stale."""

from dataclasses import replace

import numpy as np
import pytest
import reference_law as oracle
from control_arm import (
    GRAVITY,
    MASS,
    NAMES,
    NO_RATE_LIMIT,
    POSITION_LIMITS,
    TWO_JOINTS,
    VISCOUS,
    WATCHDOG_PERIOD,
    WEIGHT,
    Arm,
    Q,
    enabled,
    following,
    inverse_dynamics,
    to,
)
from hypothesis import given
from hypothesis import strategies as st

from robodyn_ros.control.command_pipeline import AddedEffort
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.errors import RejectedTrajectory

ON_ITS_WAY = {'settle': 0.6, 'after': 0.4}


def stop_command(arm, period=0.001):
    """Return the commands of an end of commanding."""
    words = []
    while (word := arm.pipeline.stop_command(arm.now)) is not None:
        words.append(word)
        arm.now += period
    arm.pipeline.disable()
    return words


# --- starting ----------------------------------------------------------------------------------


def test_nothing_is_commanded_while_disabled_nor_before_the_first_complete_state():
    for arm, known in ((Arm(), 2), (enabled(), 1)):
        assert arm.receive(Q[:known], np.zeros(known), names=NAMES[:known]) is None
        assert arm.pipeline.watchdog(arm.now + 9.0) is None
        assert arm.pipeline.stop_command(arm.now) is None
    with pytest.raises(RejectedTrajectory, match='disabled'):
        Arm().pipeline.follow(to([0.3, 0.2]))


def test_until_velocities_are_known_only_gravity_is_commanded():
    arm = enabled()
    assert arm.receive(Q, []) is None  # another state has to agree
    arm.now += 0.001
    assert arm.receive(Q, []).torque == pytest.approx(GRAVITY)
    with pytest.raises(RejectedTrajectory, match='velocities'):
        arm.pipeline.follow(to([0.5, 0.2]))
    for _ in range(20):
        arm.now += 0.001
        arm.receive(Q, [])
    arm.pipeline.follow(to([0.5, 0.2]))


# --- transitions -------------------------------------------------------------------------------


def test_one_wrong_first_state_does_no_harm_for_longer_than_it_is_there():
    arm = enabled(**NO_RATE_LIMIT)
    arm.receive([1.4, 0.2])
    arm.now += 0.001
    assert arm.receive(Q) is None  # which of the two was wrong, the next one tells
    arm.now += 0.001
    assert arm.receive(Q).torque == pytest.approx(GRAVITY)


def test_first_states_that_no_model_takes_are_no_reason_to_stay_silent():
    arm = enabled()
    arm.break_model(True)
    arm.run(0.05)
    arm.break_model(False)
    assert arm.run(0.002)[-1].torque == pytest.approx(GRAVITY)


def test_transition_ends_although_the_clock_of_the_joint_states_jumps_every_time():
    arm = enabled(ramp_time=0.5)
    arm.run(0.1)
    arm.change(mode='computed_torque', terms_gravity=False)
    for i in range(600):
        arm.now += 0.001
        command = arm.receive(Q, stamp=5000.0 + 1000.0 * (i % 2))
    assert command.torque == pytest.approx([0.0, 0.0])


def test_enabling_again_later_gives_gravity_in_full_so_that_the_arm_does_not_drop():
    arm = enabled(on_stop='zero')
    arm.run(0.1)
    assert stop_command(arm)[-1].torque == pytest.approx([0.0, 0.0])
    assert arm.run(0.05) == [None] * 50
    arm.now += 1.0
    arm.pipeline.enable(arm.now)
    for command in arm.run(0.05):
        assert command.torque == pytest.approx(GRAVITY)


def test_enabling_again_at_once_rises_from_the_stop_command_at_the_rate_limit():
    arm = enabled(on_stop='zero')
    arm.run(0.1)
    stop_command(arm)
    arm.pipeline.enable(arm.now)
    torques = np.array([command.torque for command in arm.run(0.1)])
    assert torques[0] == pytest.approx([2.0, 2.0])  # 1000 N m/s since the last command
    assert np.diff(torques[:19, 0]) == pytest.approx(np.minimum(1.0, GRAVITY[0] - torques[:18, 0]))
    assert torques[-1] == pytest.approx(GRAVITY)


# --- following ---------------------------------------------------------------------------------


def test_trajectory_begins_without_a_jump_and_is_followed_to_its_end():
    arm = enabled(ramp_time=0.0)
    before = arm.run(0.01)[-1]
    arm.pipeline.follow(to([0.5, 0.2]))
    commands = arm.run(0.5)
    assert commands[0].torque == pytest.approx(before.torque, abs=0.1)
    assert commands[-1].reference.position == pytest.approx([0.3, 0.2], abs=1e-3)
    assert arm.pipeline.reference_status == 'moving'
    arm.run(0.6)
    assert arm.pipeline.reference_status == 'holding'


def test_refused_trajectory_leaves_what_is_followed():
    arm = following(goal=[0.3, 0.2])
    with pytest.raises(RejectedTrajectory):
        arm.pipeline.follow(to([9.0, 0.2]))
    assert arm.pipeline.reference_status == 'moving'


def test_feedback_is_not_switched_on_far_from_the_reference():
    arm = following('feedforward', goal=[0.9, 0.2], time=0.5, after=0.4)
    arm.change(mode='computed_torque')
    assert arm.pipeline.reference_status == 'none'


# --- limits ------------------------------------------------------------------------------------


def test_rate_limit_counts_from_when_the_last_command_was_sent():
    arm = enabled(ramp_time=0.0, torque_rate_limit=np.array([100.0, 100.0]))
    arm.receive(Q)
    arm.change(mode='computed_torque', terms_gravity=False)
    arm.now += 0.009  # that the cycle was held up
    arm.receive(Q)
    arm.pipeline.sent(arm.now + 0.004)
    arm.now += 0.005
    before = arm.pipeline.last_torque
    step = np.abs(arm.receive(Q).torque - before)
    assert step == pytest.approx([0.1, 0.1])


def test_gravity_of_a_heavy_arm_in_motion_is_not_held_back_unless_it_is_asked_for():
    weight, limits = np.array([1e4, 4.0]), np.array([15e3, 30.0])
    heavy = replace(
        TWO_JOINTS,
        under=lambda load: lambda q, qd, qdd: MASS * qdd + weight * np.cos(q),
        effort_limits=limits,
    )
    given = {'kind': heavy, 'mode': 'gravity_compensation', 'ramp_time': 0.0}

    def turning(limit):
        rates = np.array(core.torque_rate_limits(limit, limits))
        return enabled(**given, torque_rate_limit=rates).run(0.3, velocity=np.array([2.0, 0.0]))

    for k, command in enumerate(turning(())):
        assert not command.rate_limited.any()
        position = Q[0] - 2e-3 * (299 - k)
        assert command.torque[0] == pytest.approx(1e4 * np.cos(position), abs=11.0)  # half a cycle
    assert turning([1000.0, 0.0])[-1].rate_limited[0]


def test_largest_change_is_a_tenth_of_a_second_to_the_effort_limit_or_what_is_given():
    limits = [15e3, 100.0, 12.0]
    assert core.torque_rate_limits((), limits) == [150e3, 1000.0, 1000.0]
    assert core.torque_rate_limits([5.0, 0.0, 2e3], limits) == [5.0, np.inf, 2e3]


def test_torque_that_is_not_finite_is_never_sent_and_becomes_stale():
    arm = enabled()
    arm.run(0.01)
    arm.break_model(True)
    for _ in range(200):
        arm.now += 0.001
        assert arm.receive(Q) is None
    assert arm.pipeline.refused_torques == 200
    assert arm.pipeline.watchdog(arm.now) is None  # even gravity is not finite: silence
    assert arm.pipeline.is_stale


# --- stale states ------------------------------------------------------------------------------


def test_state_that_is_not_late_needs_no_action():
    arm = enabled()
    arm.run(0.01)
    assert arm.watch(0.01) == [None]
    # Of states every 10 ms none is late before three of them are missed.
    arm.run(1.0, period=0.01)
    assert arm.watch(0.02) == [None] * 2
    assert arm.watch(0.02)[-1] is not None


def test_between_slow_states_the_torque_follows_gravity():
    arm = enabled(mode='gravity_compensation', state_timeout=0.5, **NO_RATE_LIMIT)
    speed = np.array([0.4, -0.2])
    arm.run(2.0, velocity=speed, period=0.2)
    commands = arm.watch(0.19)
    assert commands[0] is None  # for 20 ms the state's own command is good enough
    assert commands[15:] == [None] * 4  # nothing is predicted beyond 150 ms
    for k, command in enumerate(commands[2:14], start=3):
        ahead = min((k + 0.5) * WATCHDOG_PERIOD, 0.15)  # the middle of the time for which it acts
        assert command.torque == pytest.approx(WEIGHT * np.cos(Q + ahead * speed), abs=1e-9)


def test_load_is_carried_before_the_next_slow_state_comes():
    arm = enabled(state_timeout=0.5)
    arm.run(2.0, period=0.2)
    arm.watch(0.17)
    arm.pipeline.change_load(lambda q, qd, qdd: 1.5 * inverse_dynamics(q, qd, qdd))
    assert arm.watch(0.02)[0].torque == pytest.approx(1.5 * GRAVITY)


def test_torque_that_the_rate_limit_holds_back_goes_on_between_states():
    arm = enabled(torque_rate_limit=np.array([100.0, 100.0]))
    arm.run(1.0, period=0.02)
    arm.pipeline.change_load(lambda q, qd, qdd: 1.5 * inverse_dynamics(q, qd, qdd))
    arm.now += 0.02
    first = arm.receive(Q)
    assert first.rate_limited.all()
    (second,) = arm.watch(WATCHDOG_PERIOD)
    step = 100.0 * WATCHDOG_PERIOD
    assert second.torque[0] == pytest.approx(first.torque[0] + step)


def test_wait_for_the_first_state_is_not_taken_for_a_period():
    arm = enabled()
    arm.now += 5.0
    arm.run(0.005)
    assert arm.watch(0.03)[-1] is not None


def test_late_state_is_bridged_by_where_the_motion_leads():
    arm = following(time=2.0, settle=0.6, **NO_RATE_LIMIT)
    error_rate = np.array([0.1, 0.05])
    error = 0.3 * error_rate
    # One setpoint: a quintic from rest to rest.
    start, begin, way = arm.now, np.array([0.1, 0.2]), np.array([0.4, 0.0])

    def wanted_at(time):
        s = (time - start) / 2.0
        return ReferenceState(
            begin + way * (10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5),
            way * (30.0 * s**2 - 60.0 * s**3 + 30.0 * s**4) / 2.0,
            way * (60.0 * s - 180.0 * s**2 + 120.0 * s**3) / 4.0,
            np.zeros(2),
        )

    for _ in range(300):
        arm.now += 0.001
        wanted = wanted_at(arm.now)
        drift = (arm.now - start - 0.3) * error_rate
        arm.receive(wanted.position - error - drift, wanted.velocity - error_rate)
    last = arm.now
    arm.now += 0.05
    command = arm.pipeline.watchdog(arm.now)
    middle = arm.now + 0.5 * WATCHDOG_PERIOD  # of the time for which the command acts
    wanted = wanted_at(middle)
    # Critically damped, with kp = w^2 and kd = 2 w, errors fade meanwhile.
    elapsed, w = middle - last, np.array([10.0, 8.0])
    slope = error_rate + w * error
    fading = np.exp(-w * elapsed)
    error, error_rate = (
        (error + slope * elapsed) * fading,
        (error_rate - w * slope * elapsed) * fading,
    )
    q, qd = wanted.position - error, wanted.velocity - error_rate
    feedback = MASS * (w**2 * error + 2.0 * w * error_rate)
    expected = MASS * wanted.acceleration + 0.4 * qd**2 + WEIGHT * np.cos(q)
    expected += VISCOUS * wanted.velocity + feedback
    assert np.abs(command.torque - expected) == pytest.approx([0.0, 0.0], abs=0.1 * feedback.max())
    assert arm.pipeline.reference_status == 'moving'


def test_unknown_velocities_and_simulated_time_are_not_bridged():
    arm = enabled()
    arm.now += 0.001
    arm.receive(Q, ())
    arm.now += 0.001
    assert arm.receive(Q, ()) is not None
    assert arm.watch(0.09) == [None] * 9
    arm = enabled(simulated_time=lambda: 0.0)
    arm.run(0.05)
    assert arm.watch(0.09) == [None] * 9


def test_joint_that_is_faster_than_it_may_be_drops_the_reference_and_is_damped():
    slow = replace(TWO_JOINTS, velocity_limits=np.array([1.0, 2.0]))
    arm = following(kind=slow, settle=0.6, **NO_RATE_LIMIT)
    arm.run(0.01, velocity=(1.4, 0.0))
    assert arm.pipeline.last_fault == ''
    command = arm.run(0.001, velocity=(1.6, 0.0))[0]
    assert "'shoulder' moves at 1.6" in arm.pipeline.last_fault
    assert arm.pipeline.reference_status == 'none'
    damping = arm.pipeline.settings.damping * MASS[0] * 1.6
    assert command.torque == pytest.approx(GRAVITY - [damping, 0.0])


def test_stale_state_holds_gravity_then_is_silent():
    arm = enabled('gravity_compensation', stale_hold_time=0.5)
    arm.run(0.05, velocity=(0.3, 0.3))
    commands = arm.watch(1.0)
    held = commands[11].torque  # of where the arm should be when it becomes stale
    expected = [WEIGHT * np.cos(np.array(Q) + 0.3 * gap) for gap in (0.1, 0.11)]
    assert any(held == pytest.approx(gravity) for gravity in expected)
    assert all((command.torque == held).all() for command in commands[11:59])
    assert commands[62:] == [None] * 38


def test_hold_on_a_stale_state_has_no_feedback():
    arm = following(**ON_ITS_WAY)
    torques = [command.torque for command in arm.watch(0.9) if command]
    assert arm.pipeline.reference_status == 'none'
    assert np.ptp(torques[-30:], axis=0) == pytest.approx([0.0, 0.0])
    # It ends where the brake leads to from the moving reference, by which the arm was expected.
    places = np.arccos(torques[-1] / WEIGHT)
    assert 0.003 < places[0] - Q[0] < 0.2
    assert places[1] == pytest.approx(Q[1])


def test_load_that_is_set_while_states_are_stale_is_carried_where_the_brake_ends():
    arm = following(**ON_ITS_WAY, **NO_RATE_LIMIT)
    held = [command.torque for command in arm.watch(0.9) if command][-1]
    arm.pipeline.change_load(lambda *state: 1.5 * inverse_dynamics(*state))
    carried = [command.torque for command in arm.watch(0.05) if command][-1]
    assert carried == pytest.approx(1.5 * held)


def test_stale_state_goes_to_zero_within_the_rate_limit():
    arm = enabled(on_stale_state='zero')
    arm.run(0.05)
    torques = [command.torque for command in arm.watch(0.3) if command]
    assert torques[0] == pytest.approx(GRAVITY)  # a gap is bridged as long as it is short
    assert np.diff([torque[0] for torque in torques]).min() == pytest.approx(-10.0)
    assert torques[-1] == pytest.approx([0.0, 0.0])


def test_recovery_ramps_into_gravity_and_waits_for_a_new_trajectory():
    arm = following(**ON_ITS_WAY)
    arm.watch(0.3)
    commands = arm.run(0.6)
    assert not arm.pipeline.is_stale
    assert commands[0].reference is None
    assert commands[-1].torque == pytest.approx(GRAVITY)
    arm.pipeline.follow(to([0.5, 0.2]))
    assert arm.pipeline.reference_status == 'moving'


def test_torque_follows_the_arm_even_if_every_state_comes_too_late():
    arm = enabled(**NO_RATE_LIMIT)
    for i in range(20):
        arm.receive([0.05 * i, 0.2], [0.05 / 0.15, 0.0])
        arm.watch(0.15)
    # Where it is when the state becomes stale, or up to a watchdog period later.
    held = np.arccos(arm.pipeline.watchdog(arm.now).torque[0] / 20.0)
    assert 0.1 <= (held - 0.95) / (0.05 / 0.15) <= 0.1 + 1.001 * WATCHDOG_PERIOD


# --- stopping ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    'on_stop, wanted', [('hold_gravity', GRAVITY), ('zero', [0.0, 0.0]), ('silent', None)]
)
def test_stop_command_is_what_on_stop_asks_for(on_stop, wanted):
    arm = following(on_stop=on_stop, **ON_ITS_WAY, **NO_RATE_LIMIT)
    words = [word.torque for word in stop_command(arm)]  # a single one without a rate limit
    assert words == ([] if wanted is None else [pytest.approx(wanted)])
    assert arm.run(0.01) == [None] * 10
    assert arm.pipeline.stop_command(arm.now) is None
    assert arm.watch(0.5) == [None] * 50


# --- position limits ---------------------------------------------------------------------------


LIMIT = POSITION_LIMITS[0, 1]


def test_unknown_velocity_is_not_braked_and_makes_nothing_that_is_not_finite():
    arm = enabled('gravity_compensation')
    arm.receive([2.5, 0.2], [])
    arm.now += 0.001
    command = arm.receive([2.5, 0.2], [])
    assert command.torque == pytest.approx(WEIGHT * np.cos([2.5, 0.2]))


@given(
    st.sampled_from([-1.0, 1.0]),
    st.floats(1.5, 3.0),
    st.floats(-5.0, 5.0),
    st.floats(-300.0, 300.0),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_guard_only_takes_energy_out_and_is_continuous(side, distance, velocity, effort, width):
    position = side * distance
    torque, asked, expected = guarded(position, velocity, effort, width)
    assert torque == pytest.approx(expected, abs=1e-9)
    change = torque - np.clip(asked, -60.0, 60.0)
    if distance <= LIMIT or width == 0.0:
        assert change == pytest.approx(0.0, abs=1e-9)
    else:
        assert side * change <= 1e-9  # never further out than asked for
        if side * velocity > 0.0:
            assert change * velocity <= 1e-9
    step = 1e-7
    for near in (
        (position + step, velocity, effort),
        (position, velocity + step, effort),
        (position, velocity, effort + step),
    ):
        assert guarded(*near, width)[0] == pytest.approx(torque, abs=1e-3)


def test_torque_beyond_the_effort_limit_fades_like_one_within():
    for fraction in (0.0, 0.25, 0.5, 0.75, 1.0):
        position = LIMIT + 0.1 * fraction
        gravity = WEIGHT[0] * np.cos(position)
        wanted = gravity + (1.0 - fraction) * (60.0 - gravity)
        assert guarded(position, 0.0, 300.0, 0.1)[0] == pytest.approx(wanted)


def guarded(position, velocity, effort, width):
    """Return the shoulder's torque, what is asked for by an added effort, and what NumPy gives."""
    arm = enabled('gravity_compensation', soft_limit_width=width, **NO_RATE_LIMIT)
    arm.pipeline.added = AddedEffort(NAMES, np.ones(2), np.full(2, np.inf), 1.0)
    arm.pipeline.added.receive(NAMES, [effort, 0.0], arm.now)
    q, limits = np.array([position, 0.2]), arm.kind.effort_limits
    command = arm.receive(q, [velocity, 0.0])
    asked, believed = command.parts.total, arm.pipeline._core.velocity
    expected = oracle.soft_limited(
        arm.pipeline.law, asked, q, believed, limits, arm.kind.position_limits, period=0.1
    )
    return command.torque[0], asked[0], np.clip(expected, -limits, limits)[0]


# --- clocks ------------------------------------------------------------------------------------


def test_stamps_that_stand_still_drop_the_reference_and_the_ramp_goes_on():
    arm = following(ramp_time=0.5, settle=0.6)
    stopped = arm.now + 0.001
    for i in range(800):
        arm.now += 0.001
        command = arm.receive(Q, stamp=stopped)
        assert command is not None
        if i == 50:
            assert arm.pipeline.reference_status == 'moving'  # for so long it may be a pause
    assert arm.pipeline.reference_status == 'none'
    assert command.torque == pytest.approx(GRAVITY)
    with pytest.raises(RejectedTrajectory, match='stand still'):
        arm.pipeline.follow(to([0.5, 0.2]))
    arm.run(0.01)
    arm.pipeline.follow(to([0.5, 0.2]))
    assert arm.pipeline.reference_status == 'moving'


def test_torque_follows_the_arm_under_a_stopped_clock():
    arm = enabled('gravity_compensation', ramp_time=0.2)
    for i in range(400):
        arm.now += 0.001
        command = arm.receive([0.1 + 0.001 * i, 0.2], stamp=50.0)
    assert command.torque == pytest.approx(WEIGHT * np.cos([0.1 + 0.001 * i, 0.2]))


def test_clock_that_jumps_in_a_state_that_is_refused_is_not_accepted_in_the_next():
    arm = enabled()

    def receive(position, ahead=0.0):
        arm.now += 0.001
        return arm.receive(position, [0.0, 0.0], stamp=arm.now + ahead)

    for _ in range(600):
        receive(Q)
    arm.pipeline.follow(to([0.5, 0.2]))
    for _ in range(10):
        receive(Q)
    assert receive([1.9, 0.2], ahead=5.0) is None
    receive(Q, ahead=5.0)
    assert 'stamps jumped' in arm.pipeline.last_fault
    for _ in range(8):
        receive(Q, ahead=5.0)
    assert arm.pipeline.reference_status == 'holding'


def test_soft_joint_limit_brakes_no_harder_than_slow_states_allow():
    arm = enabled('gravity_compensation', damping=0.0, state_timeout=0.25, **NO_RATE_LIMIT)
    place, velocity = np.array([LIMIT + 0.05, 0.2]), np.array([0.1, 0.0])
    command = arm.run(1.0, place, velocity, period=0.1)[-1]
    middle = place + 0.05 * velocity
    damping = 0.2 / 0.1 * (middle[0] - LIMIT) / 0.1  # of kd = 20, as far beyond as that is
    expected = WEIGHT * np.cos(middle) - [damping * MASS[0] * velocity[0], 0.0]
    assert command.torque == pytest.approx(expected)


def test_positions_that_change_under_one_stamp_have_no_known_velocity():
    arm = enabled()
    for i in range(5):
        arm.now += 0.001
        command = arm.receive([0.1 + 0.001 * i, 0.2], [], stamp=50.0)
    assert np.isnan(command.state.velocity[0])
    with pytest.raises(RejectedTrajectory, match='velocities'):
        arm.pipeline.follow(to([0.5, 0.2]))


@pytest.mark.parametrize('speed, status', [(0.0, 'none'), (0.3, 'braking')])
def test_arm_that_moves_when_it_is_enabled_is_braked_and_held(speed, status):
    arm = enabled()
    arm.run(0.01, velocity=(speed, 0.0))
    assert arm.pipeline.reference_status == status
    arm.run(2.5)
    assert arm.pipeline.reference_status == ('holding' if speed else 'none')


def test_joint_that_is_too_fast_is_logged_once_and_not_with_the_speed_of_every_cycle():
    arm = enabled()
    arm.run(0.05)
    told = []
    for speed in (0.0, 40.0, 41.0, 42.0, 41.0, 0.0, 43.0):
        arm.now += 0.001
        arm.receive(Q, velocity=[speed, 0.0], stamp=arm.now)
        told.append(arm.pipeline.last_fault)
    assert told[0] == '' and '40' in told[1]
    assert set(told[1:6]) == {told[1]}
    assert '43' in told[6]


@pytest.mark.parametrize('is_set_again', [False, True])
def test_damping_of_an_arm_that_stays_too_fast_ends(is_set_again):
    arm = enabled('gravity_compensation', damping=5.0, ramp_time=0.2)
    arm.run(0.3)
    spinning = [0.0, 28.0 * np.pi / 2.2]  # rad/s, 14 turns in 2.2 s
    damped = arm.run(0.1, velocity=spinning)[-1].torque
    assert damped[1] < GRAVITY[1] - 10.0
    for _ in range(22):
        if is_set_again:
            arm.change(mode='gravity_compensation')
        last = arm.run(0.1, velocity=spinning)[-1].torque
    assert last == pytest.approx(GRAVITY)


@pytest.mark.parametrize(
    'period, damping, ahead',
    [
        (0.001, 5.0, 0.0),
        (0.004, 5.0, 0.0),
        (0.01, 5.0, 0.005),
        (0.03, 5.0, 0.015),
        (0.05, 4.0, 0.025),
        (0.1, 2.0, 0.05),
    ],
)
def test_slow_states_bound_damping_and_gravity_is_that_of_the_middle(period, damping, ahead):
    arm = enabled('gravity_compensation', damping=5.0, state_timeout=0.25)
    velocity = np.array([0.1, -0.2])
    command = arm.run(0.4, velocity=velocity, period=period)[-1]
    gravity = WEIGHT * np.cos(np.array(Q) + ahead * velocity)
    assert command.torque == pytest.approx(gravity - damping * MASS * velocity)


def test_until_the_period_is_known_damping_is_what_the_timeout_allows():
    arm = enabled('gravity_compensation', damping=5.0, state_timeout=0.1)
    velocity = np.array([0.1, -0.05])
    command = arm.run(0.001, velocity=velocity)[-1]
    assert command.torque == pytest.approx(GRAVITY - 2.0 * MASS * velocity)


def test_slow_states_of_a_simulation_are_those_of_simulated_time():
    arm = enabled('gravity_compensation', damping=5.0, simulated_time=lambda: 0.0)
    velocity = np.array([0.1, -0.05])
    for _ in range(20):
        arm.now += 0.05
        command = arm.receive(Q, velocity, stamp=1.0 + 0.01 * (arm.now - 100.0))
    assert command.torque == pytest.approx(GRAVITY - 5.0 * MASS * velocity)


def test_a_silence_does_not_make_states_slow():
    arm = enabled(damping=5.0)
    arm.run(0.1, period=0.005)
    for _ in range(2):
        arm.pipeline.follow(to([0.1, 0.2]))
        arm.now += 1.0
        arm.pipeline.watchdog(arm.now)
        arm.run(0.05, period=0.005)
        assert arm.pipeline.last_fault == ''
        assert arm.pipeline.reference_status in ('braking', 'holding')


def test_a_velocity_that_is_zero_now_and_then_is_no_wrong_one():
    # A driver that rounds, or loses one; the joint moves 4 mrad from state to state.
    arm, speed = enabled(mode='gravity_compensation'), np.array([1.0, 0.0])
    for k in range(500):
        arm.now += 0.004
        arm.receive(Q + 0.004 * k * speed, speed * (k % 25 > 0))
        assert arm.pipeline.wrong_velocities == []


def test_damping_that_adds_energy_where_velocities_cannot_be_checked_is_given_up():
    # In simulated time, and without stamps, positions cannot say that velocities are wrong.
    arm = Arm('gravity_compensation', lambda: arm.now - 50.0, damping=5.0, **NO_RATE_LIMIT)
    arm.pipeline.enable(arm.now)
    q, qd, energies = Q.copy(), np.array([0.5, 0.0]), []
    for _ in range(2000):
        arm.now += 0.001
        torque = arm.receive(q, -qd, stamp=0.0).torque
        qd = qd + 0.001 * (torque - WEIGHT * np.cos(q)) / MASS
        q = q + 0.001 * qd
        energies.append(0.5 * MASS @ qd**2)
    assert 'damping was switched off: it added energy' in arm.pipeline.last_fault
    assert max(energies) < 1.7 * min(energies)
