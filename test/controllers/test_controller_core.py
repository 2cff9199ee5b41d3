# SPDX-License-Identifier: Apache-2.0
"""The core in the cycles of a controller, and which payloads the controller takes."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from compiled_arms import coupled_arm, public_arm, random_arm
from controller_core import (
    ROOT,
    STRICT,
    Cycles,
    cpp_compiler,
    exported,
    headers,
    pointer,
    shared_model,
)
from scipy.spatial.transform import Rotation

import robodyn_ros as rd
from robodyn_ros.compiled.c.shared import SharedPayload
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.dynamics import smooth_friction_torque

MIDDLE = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.6, 0.4])


@cache
def panda():
    return public_arm('panda')


@pytest.fixture(scope='module')
def controller(tmp_path_factory):
    folder = tmp_path_factory.mktemp('controller')
    source = Path(__file__).with_name('loads_and_parts.cpp')
    library = folder / 'loads_and_parts.so'
    command = [cpp_compiler(), *STRICT, *headers(folder), '-shared', '-fPIC', source]
    subprocess.run([*command, '-o', library], check=True, timeout=600)
    return ctypes.CDLL(str(library))


# --- which payloads and gravities are taken ----------------------------------------------------


def python_takes(arm, mass, center, inertia, gravity):
    try:
        payload = rd.Payload(mass, center, inertia)
        Load(arm.gravity).changed(payload, arm)[0].changed(GravityChange(gravity), arm)
    except rd.RobodynError:
        return False
    return True


def controller_takes(controller, library, mass, center, inertia, gravity):
    given = SharedPayload(mass, (*center,), (*inertia[np.triu_indices(3)],))
    return bool(
        controller.load_is_accepted(
            ctypes.byref(library), ctypes.byref(given), pointer(np.array(gravity, dtype=float))
        )
    )


def moments_around_what_a_body_has(generator):
    """Return three moments: of a body, of a plate or a rod, or of none; the largest is 1."""
    smaller = generator.uniform(0.0, 1.0)
    kind = generator.integers(4)
    sum_of_smaller = (generator.uniform(0.5, 2.0), 1.0, 1.0 - 5e-7, 1.0 - 5e-6)[kind]
    if generator.random() < 0.2:
        smaller = generator.choice([0.0, -1e-10, -1e-3])
    return np.array([1.0, smaller, sum_of_smaller - smaller])


@pytest.mark.repeats(check=1, test=1)
@pytest.mark.parametrize('seed', range(3))
def test_both_take_the_same_payloads_and_gravities(controller, tmp_path, seed):
    arm = (panda(), rd.RobotModel.from_urdf(ROOT / 'urdf' / 'puma560.urdf'), random_arm(3))[seed]
    library = shared_model(exported(arm, tmp_path))
    generator = np.random.default_rng(seed)
    _, largest = arm.possible_payload
    taken = []
    for _ in range(1000):
        mass = generator.choice([0.0, -1.0, 1.0, 95.0, 105.0]) * generator.uniform(0.9, 1.1)
        radius = largest * generator.choice([0.01, generator.uniform(0.5, 1.5)])
        axes = Rotation.random(random_state=generator).as_matrix()
        moments = abs(mass) * radius**2 * moments_around_what_a_body_has(generator)
        inertia = axes @ np.diag(moments) @ axes.T
        inertia = 0.5 * (inertia + inertia.T)
        if generator.random() < 0.2:
            inertia = np.diag(moments)
        direction = generator.normal(size=3)
        center = largest * generator.choice([0.1, 0.99, 1.01]) * direction
        center /= np.linalg.norm(direction)
        gravity = generator.choice([9.81, 49.0, 51.0]) * axes[0]
        if generator.random() < 0.02:
            center[1] = generator.choice([np.nan, np.inf, 1e30])
        if generator.random() < 0.02:
            inertia[0, 0] = generator.choice([np.nan, np.inf, 1e308])
        given = mass, center, inertia, gravity
        taken.append(python_takes(arm, *given))
        assert controller_takes(controller, library, *given) == taken[-1], given
    assert 0.1 < np.mean(taken) < 0.9


def test_the_controller_commands_the_friction_of_coupled_drives(controller, tmp_path):
    arm, width = coupled_arm(4), 0.2
    library = shared_model(exported(arm, tmp_path))
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, arm.n))
    parts = np.empty((6, arm.n))
    given = ctypes.c_double(width), *map(pointer, (q, qd, qdd, parts))
    assert controller.feedforward(ctypes.byref(library), *given)
    rigid = rd.inverse_dynamics(arm, q, qd, qdd)
    np.testing.assert_allclose(parts.sum(axis=0) - parts[3], rigid, atol=1e-9)
    expected = smooth_friction_torque(arm, width, qd, rigid)
    np.testing.assert_allclose(parts[3], expected, atol=1e-9)


# --- references that come with each cycle ------------------------------------------------------


def given(position, velocity=0.0):
    zero = np.zeros(7)
    state = ReferenceState(np.array(position), zero + velocity, zero, zero)

    class Given:
        def sample(self, time):
            return state

    return Given()


@pytest.fixture
def alone():
    arm = Cycles(panda())
    for _ in range(10):
        arm.cycle(MIDDLE, np.zeros(7))
    return arm


@pytest.mark.parametrize(
    ('position', 'velocity', 'cause'),
    [
        (MIDDLE + 0.11, 0.0, 'far_reference'),
        (MIDDLE + [0, 0, 0, 0, 0, 0, 9.0], 0.0, 'reference_position'),
        (MIDDLE, 5.0, 'reference_velocity'),
    ],
    ids=['far away', 'outside the limits', 'too fast'],
)
def test_a_reference_that_may_not_be_followed_is_not(alone, position, velocity, cause):
    alone.given = given(position, velocity)
    at_rest = alone.cycle(MIDDLE, np.zeros(7))
    np.testing.assert_allclose(at_rest, rd.gravity_torque(panda(), MIDDLE), atol=1e-9)
    assert (alone.fault, alone.following) == (cause, 'none')


def test_a_reference_that_jumps_is_given_up_until_it_rests_where_the_arm_is(alone):
    alone.given = given(MIDDLE + 0.02)
    alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'moving'
    alone.given = given(MIDDLE + 0.2)
    for _ in range(700):
        alone.cycle(MIDDLE, np.zeros(7))
    assert (alone.fault, alone.following) == ('far_reference', 'holding')
    alone.given = given(MIDDLE + 0.05, 0.1)
    for _ in range(100):
        alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'holding'
    alone.given = given(MIDDLE + 0.05)
    alone.cycle(MIDDLE, np.zeros(7))
    assert (alone.fault, alone.following) == ('none', 'moving')


def test_a_reference_at_rest_is_not_followed_before_the_brake_has_settled(alone):
    speed = np.full(7, 0.2)
    for k in range(300):
        place = MIDDLE + 0.001 * k * speed
        alone.given = given(place, 0.2)
        alone.cycle(place, speed)
    alone.given = given(place + 0.2)
    alone.cycle(place, speed)
    assert alone.following == 'braking'
    alone.given, seen = given(place), []
    while 'moving' not in seen:
        alone.cycle(place, np.zeros(7))
        seen.append(alone.following)
    assert seen.count('braking') >= 100  # the shortest brake, 0.1 s
    assert seen.count('holding') >= 299


def test_an_arm_that_is_being_stopped_follows_no_reference(alone):
    alone.given = given(MIDDLE + 0.01)
    alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'moving'
    alone.pipeline.begin_stop()
    seen = []
    for _ in range(1000):
        alone.cycle(MIDDLE, np.zeros(7))
        seen.append(alone.following)
    assert 'moving' not in seen and alone.pipeline.has_stopped


def test_a_pause_of_the_manager_ends_what_is_followed(alone):
    alone.given = given(MIDDLE + 0.01)
    alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following == 'moving'
    alone.cycle(MIDDLE, np.zeros(7), period=1.0)
    assert alone.pipeline.last_drop.cause.name == 'stale_state'
    for _ in range(10):
        alone.cycle(MIDDLE, np.zeros(7))
    assert alone.following in ('braking', 'holding')


def test_time_that_stands_still_goes_back_or_is_no_number_harms_nothing(alone):
    before = alone.cycle(MIDDLE, np.zeros(7))
    for period in (0.0, -5.0, np.nan):
        torque = alone.cycle(MIDDLE, np.zeros(7), period=period)
        np.testing.assert_allclose(torque, before, atol=1e-9)
        alone.now = 20.0


@pytest.mark.parametrize(
    ('kp', 'kd', 'rate', 'is_followed'),
    [
        (100.0, 20.0, 50.0, True),
        (100.0, 20.0, 39.0, False),
        (100.0, 20.0, 10.0, False),
        # Little damping: it is sqrt(kp) T that is bounded.
        (400.0, 1.0, 60.0, True),
        (400.0, 1.0, 50.0, False),
    ],
)
def test_a_reference_begins_only_where_states_come_often_enough(kp, kd, rate, is_followed):
    arm = Cycles(panda(), kp=kp, kd=kd, settings={'state_timeout': 0.25})
    arm.given = given(MIDDLE)
    for _ in range(4):
        arm.cycle(MIDDLE, np.zeros(7), period=1.0 / rate)
    assert arm.fault == ('none' if is_followed else 'slow_states')
    assert arm.following == ('moving' if is_followed else 'none')


def test_positions_in_degrees_are_commanded_nothing_for():
    arm = Cycles(panda())
    for _ in range(20):
        assert arm.cycle(np.degrees(MIDDLE), np.zeros(7)) is None
    assert arm.fault == 'impossible_position'
    assert arm.cycle(MIDDLE, np.zeros(7)) is not None
    assert arm.fault == 'none'


@pytest.mark.parametrize('beyond', [-0.01, 0.01])
def test_a_joint_may_be_a_turn_beyond_its_limits_and_no_further(beyond):
    arm = Cycles(panda(), mode='gravity_compensation')
    farthest = panda().position_limits[1, 1] + 2.0 * np.pi + beyond
    place = np.where(np.arange(7) == 1, farthest, MIDDLE)
    assert (arm.cycle(place, np.zeros(7)) is None) == (beyond > 0.0)


@pytest.mark.parametrize('is_known', [False, True])
def test_neither_the_wait_for_the_first_state_nor_a_silence_uses_up_damping(is_known):
    arm = Cycles(panda(), mode='gravity_compensation')
    if is_known:
        for _ in range(10):
            arm.cycle(MIDDLE, np.zeros(7))
        # As long as the damping may last, from its begin: ten time constants of 0.2 s.
        arm.cycle(np.full(7, np.nan), np.full(7, np.nan), period=3.0)
    else:
        arm.now += 5.0
    speed = np.full(7, 0.02)
    for k in range(1000):
        place = MIDDLE + 0.001 * k * speed
        torque = arm.cycle(place, speed)
    full = -5.0 * rd.mass_matrix(panda(), place) @ speed
    damping = torque - rd.gravity_torque(panda(), place)
    assert damping @ full / (full @ full) == pytest.approx(1.0)


@pytest.mark.parametrize('joint', [0, 6])
def test_a_reference_that_is_no_number_in_one_joint_is_given_up(alone, joint):
    state = np.array([MIDDLE, *np.zeros((3, 7))])
    coefficients = np.zeros((1, 6, 7))
    coefficients[0, 0] = MIDDLE
    coefficients[0, 0, joint] = np.nan
    knots = [alone.now, alone.now + 1.0]
    alone.pipeline.follow(core.Motion(knots, coefficients, np.zeros((2, 7)), state, state))
    torque = alone.cycle(MIDDLE, np.zeros(7))
    np.testing.assert_allclose(torque, rd.gravity_torque(panda(), MIDDLE), atol=1e-9)
    (fault,) = alone.pipeline.faults
    assert (fault.cause.name, fault.joint) == ('following_error', joint)
    assert alone.following == 'holding'
