# SPDX-License-Identifier: Apache-2.0
"""The controller's command pipeline commands what the node's does, and never past a limit."""

import ctypes
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from compiled_arms import public_arm, random_arm
from controller_core import Alone, Both, compiled_core, pointer, shared_model

import robodyn_ros as rd
from robodyn_ros.control.reference import Reference, ReferenceState

TOLERANCE = 1e-12  # of the largest effort limit
MIDDLE = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.6, 0.4])
PAYLOAD = rd.Payload(1.0, (0.0, 0.0, 0.1), np.diag([0.01, 0.01, 0.02]))


@cache
def panda():
    return public_arm('panda')


@pytest.fixture(scope='module')
def core(tmp_path_factory):
    return compiled_core(tmp_path_factory.mktemp('core'))


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    return shared_model(panda(), tmp_path_factory.mktemp('library'))


@pytest.fixture
def both(core, library):
    made = []

    def make(**options):
        made.append(Both(core, library, panda(), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def motion(begin, seed=0, duration=1.0, size=0.3):
    """Return a smooth motion of three waypoints from a time [s] on."""
    generator = np.random.default_rng(seed)
    places = MIDDLE + size * np.cumsum(generator.uniform(-0.5, 0.5, (3, 7)), axis=0)
    positions = np.vstack([MIDDLE, places])
    rates = np.vstack([np.zeros(7), 0.2 * generator.uniform(-1, 1, (2, 7)), np.zeros(7)])
    times = begin + duration * np.arange(4) / 3.0
    points = ReferenceState(positions, rates, np.zeros((4, 7)), generator.uniform(-1, 1, (4, 7)))
    return Reference.through(list(times), points, 0.5)


class Recorded:
    """States that a motion with errors would give: deterministic, whatever is commanded."""

    def __init__(self, reference, seed=0, error=0.01):
        self.reference, self.error = reference, error
        self.phase = np.random.default_rng(seed).uniform(0, 6, 7)

    def at(self, time):
        sampled = self.reference.sample(time)
        angle = 7.0 * time + self.phase
        return (
            sampled.position + self.error * np.sin(angle),
            sampled.velocity + 7.0 * self.error * np.cos(angle),
        )


def assert_same(both, commands=50):
    assert len(both.differences) >= commands
    assert max(both.differences) <= TOLERANCE * panda().effort_limits.max()


@pytest.mark.parametrize(
    ('mode', 'terms'),
    [
        ('gravity_compensation', {}),
        ('feedforward', {'inertial': False}),
        ('feedforward', {}),
        ('computed_torque', {}),
        ('computed_torque', {'gravity': False}),
        ('computed_torque', {'coriolis': False, 'friction': False}),
    ],
)
def test_a_motion_is_commanded_as_in_python(both, mode, terms):
    arm = both(mode=mode, terms=terms)
    reference = motion(arm.now + 0.05, seed=1, duration=0.4)
    recorded = Recorded(reference)
    for k in range(600):
        if k == 49 and mode != 'gravity_compensation':
            arm.follow(reference)
        arm.cycle(*recorded.at(arm.now + 0.001))
    assert arm.following == ('none' if mode == 'gravity_compensation' else 'following')
    assert_same(arm, 600)


@pytest.mark.parametrize('at', [300, 620])
def test_a_reference_that_ends_is_braked_along_itself_and_held(both, at):
    arm = both()
    reference = motion(arm.now + 0.05, seed=2)
    recorded = Recorded(reference, error=0.002)
    for k in range(at + 900):
        if k == 49:
            arm.follow(reference)
        if k == at:
            arm.cancel()
        state = recorded.at(arm.now + 0.001)
        if k >= at:  # as if the arm stood
            state = recorded.at(10.0 + 0.001 * at)[0], np.zeros(7)
        arm.cycle(*state)
    assert arm.following == 'holding'
    assert_same(arm, at + 900)


@pytest.mark.parametrize(
    'settings',
    [
        {'effort_limits': 1.3 * np.abs(rd.gravity_torque(panda(), MIDDLE)) + 0.5},
        {'braking_acceleration': np.full(7, 0.5)},
        {'torque_rate_limits': np.full(7, 20.0)},
    ],
    ids=['effort', 'acceleration', 'rate'],
)
def test_a_brake_takes_the_time_that_its_limits_ask_for_as_in_python(both, settings):
    arm = both(settings={'max_following_error': np.inf, **settings})
    reference = motion(arm.now + 0.05, seed=10, duration=0.6, size=0.4)
    recorded = Recorded(reference, error=0.002)
    for k in range(700):
        if k == 49:
            arm.follow(reference)
        if k == 250:
            arm.cancel()
        arm.cycle(*recorded.at(arm.now + 0.001))
    assert_same(arm, 700)


def test_damping_ends_although_the_arm_is_kept_moving_as_in_python(both):
    arm = both(mode='gravity_compensation', settings={'damping': 20.0, 'ramp_time': 0.2})
    for k in range(1200):
        arm.cycle(MIDDLE + 0.0002 * k, np.full(7, 0.2))
    assert arm.python._law.goal.damping == 0.0
    assert_same(arm, 1200)


def test_a_gap_is_bridged_after_three_periods_as_in_python(both):
    arm = both()
    recorded = Recorded(Reference.hold(MIDDLE, 0.0), error=0.001)
    nothing, times = np.full(7, np.nan), []
    for _ in range(12):
        arm.cycle(*recorded.at(arm.now + 0.012), period=0.012)
    for k in range(60):
        if arm.cycle(nothing, nothing) is not None:
            times.append(k)
    assert 25 <= times[0] <= 37
    assert_same(arm, 30)


def test_a_feedforward_that_has_ended_fades(both):
    arm = both(mode='feedforward')
    reference = Reference.hold(MIDDLE + 0.05, arm.now)
    for k in range(1100):
        if k == 50:
            arm.follow(reference)
        if k == 500:
            arm.cancel()
        arm.cycle(MIDDLE + 0.01 * np.sin(0.01 * k), 0.01 * np.cos(0.01 * k) * np.ones(7))
    assert_same(arm, 1100)


def test_every_change_of_law_fades_as_in_python(both):
    arm = both(settings={'ramp_time': 0.25})
    reference = motion(arm.now + 0.05, seed=3, duration=1.6)
    recorded = Recorded(reference)
    changes = {
        100: {'kp': 200.0},
        200: {'kd': 30.0},  # on the way of the first
        500: {'terms': {'friction': False}},
        800: {'mode': 'feedforward'},
        850: {'mode': 'computed_torque'},
        1300: {'mode': 'gravity_compensation'},
        1350: {'position_guard': 0.1},
        1700: {'kp': 50.0},
    }
    for k in range(2200):
        if k == 49:
            arm.follow(reference)
        if k in changes:
            arm.change_law(**changes[k])
        if k == 1600:
            arm.given = None
        arm.cycle(*recorded.at(arm.now + 0.001))
    assert_same(arm, 2200)


@pytest.mark.parametrize('rate_limit', [1000.0, np.inf])
def test_payload_and_gravity_change_as_in_python(both, rate_limit):
    arm = both(rate_limit=rate_limit, settings={'ramp_time': 0.3})
    recorded = Recorded(Reference.hold(MIDDLE, 0.0))
    for k in range(1300):
        if k == 100:
            arm.change_load(PAYLOAD)
        if k == 200:
            arm.change_load(PAYLOAD, (1.0, 0.0, -9.6))  # on the way of the first
        if k == 900:
            arm.change_load(rd.Payload(0.0))
        arm.cycle(*recorded.at(arm.now + 0.001))
    assert_same(arm, 1300)


@pytest.mark.parametrize('mode', ['gravity_compensation', 'computed_torque'])
@pytest.mark.parametrize('speed', [0.0, 0.0003, 0.3])
def test_an_arm_that_moves_at_the_beginning_is_brought_to_rest_as_in_python(both, mode, speed):
    arm = both(mode=mode)
    for k in range(700):
        time = 0.001 * k
        moved = speed * (1.0 - np.exp(-3.0 * time)) / 3.0
        arm.cycle(MIDDLE + moved, speed * np.exp(-3.0 * time) * np.ones(7))
    assert_same(arm, 700)


def test_a_following_error_brakes_and_holds_as_in_python(both):
    arm = both()
    reference = motion(arm.now + 0.05, seed=4, duration=2.0, size=0.7)
    held = MIDDLE
    for k in range(1700):
        if k == 49:
            arm.follow(reference)
        arm.cycle(held, 0.0001 * np.cos(0.3 * k) * np.ones(7))  # it is blocked
        if k == 1600:
            assert arm.fault == 'following error'
    assert arm.following == 'holding'
    assert_same(arm, 1700)


@pytest.mark.parametrize(
    ('action', 'gap'),
    [
        ('hold_gravity', 90),
        ('hold_gravity', 250),
        ('hold_gravity', 500),
        ('zero', 250),
        ('silent', 250),
    ],
)
@pytest.mark.parametrize('is_moving', [False, True])
def test_states_that_are_missing_are_bridged_or_fallen_back_from_as_in_python(
    both, action, gap, is_moving
):
    arm = both(settings={'on_stale_state': action, 'stale_hold_time': 0.3})
    reference = motion(arm.now + 0.05, seed=5) if is_moving else Reference.hold(MIDDLE, 0.0)
    recorded = Recorded(reference, error=0.001)
    nothing = np.full(7, np.nan)
    for k in range(200 + gap + 400):
        if k == 49 and is_moving:
            arm.follow(reference)
        if 200 <= k < 200 + gap:
            arm.cycle(nothing, nothing)
        else:
            arm.cycle(*recorded.at(arm.now + 0.001 if k < 200 else 10.2))
    if not is_moving:
        assert_same(arm, 400)
        return
    # Of a reference that comes with each cycle the rest is not known: half a command's time ahead
    # the acceleration is that of now. From the measured states on, all is the same again.
    differences = np.array(arm.differences)
    tolerance = TOLERANCE * panda().effort_limits.max()
    assert differences[:200].max() <= tolerance
    assert differences[-300:].max() <= tolerance
    assert differences.max() < 1.0


def test_one_position_that_cannot_be_is_not_believed_and_two_are_a_jump_as_in_python(both):
    arm = both()
    reference = motion(arm.now + 0.05, seed=6)
    recorded = Recorded(reference, error=0.001)
    for k in range(1500):
        if k == 49:
            arm.follow(reference)
        q, qd = recorded.at(arm.now + 0.001)
        if k in (200, 210):
            q = q + 1.0
        if k >= 600:
            q, qd = MIDDLE + 0.5, np.zeros(7)
        arm.cycle(q, qd)
        if k == 500:
            assert (arm.fault, arm.following) == ('none', 'following')
    assert arm.fault == 'implausible position'
    assert_same(arm, 1400)


def test_positions_in_degrees_are_commanded_nothing_for_as_in_python(both):
    arm = both()
    recorded = Recorded(Reference.hold(MIDDLE, 0.0), error=0.001)
    degrees = np.degrees(MIDDLE)
    for _ in range(20):
        assert arm.cycle(degrees, np.zeros(7)) is None
    assert arm.fault == 'impossible position'
    for k in range(900):
        is_in_degrees = 300 <= k < 500
        if is_in_degrees:
            arm.cycle(degrees, np.zeros(7))  # gravity is held where the arm was
        else:
            arm.cycle(*recorded.at(arm.now + 0.001))
        if k == 310:
            assert arm.fault == 'impossible position'
        elif not is_in_degrees and k < 300:
            assert arm.fault == 'none'
    assert_same(arm, 800)


@pytest.mark.parametrize('beyond', [-0.01, 0.01])
def test_a_joint_may_be_a_turn_beyond_its_limits_and_no_further_as_in_python(both, beyond):
    arm = both(mode='gravity_compensation')
    farthest = panda().position_limits[1, 1] + 2.0 * np.pi + beyond
    place = np.where(np.arange(7) == 1, farthest, MIDDLE)
    assert (arm.cycle(place, np.zeros(7)) is None) == (beyond > 0.0)


def test_infinite_limits_that_leave_no_room_allow_every_position_as_in_python(core, library):
    limits = panda().position_limits.copy()
    limits[1] = np.inf, -np.inf
    arm = Both(
        core, library, replace(panda(), position_limits=limits), mode='gravity_compensation'
    )
    given = arm.cycle(MIDDLE, np.zeros(7))
    arm.close()
    assert given is not None and np.isfinite(given).all()


def test_an_arm_that_is_too_fast_is_damped_until_it_follows_again_as_in_python(both):
    arm = both()
    reference = motion(arm.now + 0.05, seed=7)
    recorded = Recorded(reference, error=0.001)
    for k in range(900):
        if k == 49:
            arm.follow(reference)
        q, qd = recorded.at(arm.now + 0.001)
        if 400 <= k < 420:
            qd = qd + 6.0
        if k == 420:
            assert (arm.fault, arm.following) == ('overspeed', 'none')
            arm.given = None
        if k == 450:  # it is still damped
            arm.follow(reference)
        arm.cycle(q, qd)
    assert (arm.fault, arm.following) == ('none', 'following')
    assert_same(arm, 900)


def test_velocities_that_are_not_known_end_what_is_followed_as_in_python(both):
    arm = both()
    reference = motion(arm.now + 0.05, seed=8)
    recorded = Recorded(reference, error=0.001)
    for k in range(700):
        if k == 49:
            arm.follow(reference)
        q, qd = recorded.at(arm.now + 0.001)
        if 400 <= k < 450:
            qd[2] = np.nan
        arm.cycle(q, qd)
    assert_same(arm, 700)


def test_an_arm_beyond_its_limits_is_held_back_as_in_python(both):
    arm = both(position_guard=0.1)
    outside = MIDDLE.copy()
    outside[3] = panda().position_limits[3, 1] + 0.06
    for k in range(400):
        arm.cycle(outside + 0.02 * np.sin(0.02 * k), 0.4 * np.cos(0.02 * k) * np.ones(7))
    assert_same(arm, 400)


def test_an_arm_that_the_drives_cannot_carry_is_not_commanded(both):
    arm = both(settings={'effort_limits': np.full(7, 5.0)})
    stretched = np.zeros(7)
    stretched[1] = 1.5
    for _ in range(20):
        assert arm.cycle(stretched, np.zeros(7)) is None
    assert arm.fault == 'overload'


@pytest.mark.parametrize('on_stop', ['hold_gravity', 'zero', 'silent'])
@pytest.mark.parametrize('is_moving', [False, True])
@pytest.mark.parametrize('left', [0.0, 0.002])
def test_a_stop_brakes_and_leaves_the_stop_command_as_in_python(both, on_stop, is_moving, left):
    arm = both(settings={'on_stop': on_stop})
    reference = motion(arm.now + 0.05, seed=9)
    recorded = Recorded(reference, error=0.001)
    for k in range(400):
        if k == 49 and is_moving:
            arm.follow(reference)
        arm.cycle(*(recorded.at(arm.now + 0.001) if is_moving else (MIDDLE, np.zeros(7))))
    arm.begin_stop()
    arm.given = None
    standing = recorded.at(arm.now)[0] if is_moving else MIDDLE
    cycles = 0
    while not arm.python.has_stopped:
        assert not arm.core.pipeline_has_stopped(arm.pipeline)
        arm.cycle(standing, np.full(7, left))
        cycles += 1
        assert cycles < 3300
    assert arm.core.pipeline_has_stopped(arm.pipeline)
    while arm.stop_command() is not None:
        cycles += 1
        assert cycles < 4000
    assert_same(arm, 400)


# --- what Python has no counterpart of: references that come with each cycle ------------------


def given(position, velocity=0.0):
    zero = np.zeros(7)
    state = ReferenceState(np.array(position), zero + velocity, zero, zero)

    class Given:
        def sample(self, time):
            return state

    return Given()


@pytest.fixture
def alone(core, library):
    arm = Alone(core, library, panda())
    for _ in range(10):
        arm.cycle(MIDDLE, np.zeros(7))
    yield arm
    arm.close()


@pytest.mark.parametrize(
    ('position', 'velocity'),
    [(MIDDLE + 0.11, 0.0), (MIDDLE + [0, 0, 0, 0, 0, 0, 9.0], 0.0), (MIDDLE, 5.0)],
    ids=['far away', 'outside the limits', 'too fast'],
)
def test_a_reference_that_may_not_be_followed_is_not(alone, position, velocity):
    alone.given = given(position, velocity)
    at_rest = alone.cycle(MIDDLE, np.zeros(7))
    np.testing.assert_allclose(at_rest, rd.gravity_torque(panda(), MIDDLE), atol=1e-9)
    assert (alone.fault, alone.following) == ('refused reference', 'none')


def test_a_reference_that_jumps_is_given_up_until_it_rests_where_the_arm_is(alone):
    alone.given = given(MIDDLE + 0.02)
    alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'following'
    alone.given = given(MIDDLE + 0.2)
    for _ in range(700):
        alone.cycle(MIDDLE, np.zeros(7))
    assert (alone.fault, alone.following) == ('refused reference', 'holding')
    alone.given = given(MIDDLE + 0.05, 0.1)
    for _ in range(100):
        alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'holding'
    alone.given = given(MIDDLE + 0.05)
    alone.cycle(MIDDLE, np.zeros(7))
    assert (alone.fault, alone.following) == ('none', 'following')


def test_a_pause_of_the_manager_ends_what_is_followed(alone):
    alone.given = given(MIDDLE + 0.01)
    alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'following'
    alone.cycle(MIDDLE, np.zeros(7), period=1.0)
    assert alone.fault == 'stale state'
    assert alone.following in ('braking', 'holding')


def test_time_that_stands_still_goes_back_or_is_no_number_harms_nothing(alone):
    before = alone.cycle(MIDDLE, np.zeros(7))
    for period in (0.0, -5.0, np.nan):
        torque = alone.cycle(MIDDLE, np.zeros(7), period=period)
        np.testing.assert_allclose(torque, before, atol=1e-9)
        alone.now = 20.0


def random_inputs(core, library, arm, count, seed, **settings):
    """Return the number of commands on random inputs; negative: one of them was wrong."""
    both = Both(core, library, arm, settings=settings)
    limits = np.ascontiguousarray(both.safety.effort_limits)
    rates = np.ascontiguousarray(both.safety.torque_rate_limits)
    step = ctypes.c_double()
    both.core.pipeline_disable(both.pipeline)
    try:
        return core.pipeline_random_inputs(
            both.pipeline,
            ctypes.c_int64(count),
            ctypes.c_uint64(seed),
            pointer(limits),
            pointer(rates),
            ctypes.c_double(both.safety.state_timeout),
            ctypes.byref(step),
        )
    finally:
        both.close()


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('action', ['hold_gravity', 'zero', 'silent'])
def test_no_random_input_leads_past_a_limit_or_allocates(core, library, seed, action):
    commands = random_inputs(
        core, library, panda(), 5000, seed, on_stale_state=action, on_stop=action
    )
    assert commands > 1000


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(5))
def test_a_million_random_inputs_lead_past_no_limit_and_allocate_nothing(core, library, seed):
    assert random_inputs(core, library, panda(), 200_000, 100 + seed) > 40_000


@pytest.mark.parametrize('seed', range(5))
def test_an_arm_of_any_kind_is_kept_within_its_limits(core, tmp_path, seed):
    arm = random_arm(seed)
    generator = np.random.default_rng(seed)
    limits = generator.uniform(5, 200, arm.n)
    library = shared_model(arm, tmp_path)
    assert random_inputs(core, library, arm, 3000, seed, effort_limits=limits) >= 0


@pytest.mark.parametrize(
    ('right', 'wrong'),
    [
        ('last_torque_ = sent_;', 'last_torque_ = torque;'),
        ('has_last_torque_ ? last_torque_.data() : nullptr', 'nullptr'),
        ('failed == 0 && is_finite(torque_)', 'failed == 0'),
    ],
)
def test_a_pipeline_that_leaves_a_limit_is_noticed(tmp_path, library, right, wrong):
    core = compiled_core(tmp_path, change=(right, wrong))
    assert min(random_inputs(core, library, panda(), 20_000, seed) for seed in range(3)) < 0
