# SPDX-License-Identifier: Apache-2.0
"""Springs and damper of the impedance modes: their formulas, by NumPy and SciPy, on any arm."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from control_arm import enabled, random_kind, torque_parts
from hypothesis import given, settings
from hypothesis import strategies as st
from impedance import ARMS
from impedance_energy import HEAVIEST, MODES, ShakenArm
from robots import random_chain
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.spatial.transform import Rotation
from soft_arm import Named, SoftArm, displacement, push_loop, released_push, rendered, slow_push

from robodyn_ros import (
    RobotModel,
    coriolis_matrix,
    forward_kinematics,
    gravity_torque,
    mass_matrix,
)
from robodyn_ros.control.control_stack import control_law
from robodyn_ros.control.model_torque import RigidBodyTorque
from robodyn_ros.control.reference import ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.softness import light_joints
from robodyn_ros.kinematics import tip_jacobian

KINDS = ('joint_impedance', 'cartesian_impedance')

few = settings(deadline=None, max_examples=max(1, settings().max_examples // 2))
seeds = st.integers(0, 10_000)


def random_arm(seed, n):
    """Return an arm with rotors, that no joint is too light, its law and a generator."""
    generator = np.random.default_rng(seed)
    model = RobotModel.from_urdf(random_chain(generator, n), base_link='base', tip_link='tip')
    return model.with_rotor_inertia(generator.uniform(0.05, 0.5, n)), generator


def law_of(model, mode, generator, algorithm='newton_euler', **changes):
    """Return a law with random stiffness."""
    given = {
        'impedance_stiffness': generator.uniform(0.0, 500.0, model.n),
        'impedance_nullspace_stiffness': generator.uniform(0.0, 50.0, model.n),
        'impedance_tip_stiffness': np.append(
            generator.uniform(0.0, 800.0, 3), generator.uniform(0.0, 50.0, 3)
        ),
        'impedance_frame': str(generator.choice(['base', 'reference'])),
        'wrench_point': generator.uniform(-0.2, 0.2, 3),
        'impedance_damping_ratio': generator.uniform(0.3, 1.5),
        'effort_limits': (1e3,),
        **changes,
    }
    given = {
        name: tuple(map(float, value)) if isinstance(value, np.ndarray) else value
        for name, value in given.items()
    }
    control = ControlSettings(mode=mode, **given)
    return control_law(model, control, RigidBodyTorque.of(model, algorithm))


def desired(q, qd=None):
    """Return a reference at a position, at rest if no velocity is given."""
    zero = np.zeros_like(q)
    return ReferenceState(q, zero if qd is None else qd, zero, zero)


def held_by_springs(stiffness, ratio=None, rates=3 * (np.inf,), period=0.01):
    """Return an arm of three joints that joint_impedance holds, its model and its law."""
    model, generator = random_arm(3, 3)
    given = {} if ratio is None else {'impedance_damping_ratio': ratio}
    law = law_of(model, 'joint_impedance', generator, impedance_stiffness=(stiffness,), **given)
    kind = replace(random_kind(3, 3), under=lambda load: law.inverse_dynamics)
    arm = enabled(torque_rate_limit=np.array(rates), kind=kind)
    names = ('effort_limits', 'torque_rate_limit', 'max_following_error', 'damping')
    kept = {name: getattr(arm.pipeline.settings, name) for name in names}
    arm.pipeline.settings = replace(law.settings, **kept)
    arm.run(0.7, np.zeros(3), period=period)
    return arm, model, law


class Springs:
    """The springs of a law at a position and around a reference, each from its formula."""

    def __init__(self, model, law, q, reference):
        self.given, self.q = law.settings, q
        self.mass = mass_matrix(model, q)
        pose, goal = forward_kinematics(model, q), forward_kinematics(model, reference)
        lever = pose[:3, :3] @ self.given.wrench_point
        jacobian = tip_jacobian(model, q)
        jacobian[:3] += np.cross(jacobian[3:].T, lever).T
        self.jacobian, self.error = jacobian, reference - q
        self.distance = goal[:3, 3] + goal[:3, :3] @ self.given.wrench_point - pose[:3, 3] - lever
        self.turn = Rotation.from_matrix(goal[:3, :3] @ pose[:3, :3].T).as_quat()
        axes = np.eye(3) if self.given.impedance_frame == 'base' else goal[:3, :3]
        along, about = np.split(self.given.impedance_tip_stiffness, 2)
        self.along, self.about = axes * along @ axes.T, axes * about @ axes.T
        self.is_at_tip = law.settings.mode == 'cartesian_impedance'

    def energy(self):
        """Return what the springs hold but the posture's [J]."""
        if not self.is_at_tip:
            return 0.5 * self.given.impedance_stiffness @ self.error**2
        eps = self.turn[:3]
        return 0.5 * self.distance @ self.along @ self.distance + 2.0 * eps @ self.about @ eps

    def tip(self):
        """Return the torque of the tip's springs."""
        eps, eta = self.turn[:3], self.turn[3]
        bent = self.about @ eps
        moment = 2.0 * (eta * bent + np.cross(bent, eps))
        return self.jacobian.T @ np.append(self.along @ self.distance, moment)

    def projector(self):
        """Return N, that leaves of velocities what does not move the tip."""
        j, inverse = self.jacobian, np.linalg.inv(self.mass)
        core = np.linalg.inv(j @ inverse @ j.T + np.eye(6) / HEAVIEST)
        return np.eye(len(self.q)) - inverse @ j.T @ core @ j

    def stiffness(self):
        """Return the stiffness in the joints' space, (n, n)."""
        if not self.is_at_tip:
            return np.diag(self.given.impedance_stiffness)
        j, n = self.jacobian, self.projector()
        # Of 2 eps, whose rate is -(eta + [eps]x) w at an angular velocity w of the tip.
        rate = self.turn[3] * np.eye(3) + np.cross(self.turn[:3], np.eye(3), axisb=0).T
        about = rate.T @ self.about @ rate
        tip = j[:3].T @ self.along @ j[:3] + j[3:].T @ about @ j[3:]
        return tip + n.T * self.given.impedance_nullspace_stiffness @ n

    def damping(self):
        """Return D, by the generalised eigenvalues of stiffness and mass."""
        values, vectors = eigh(self.stiffness(), self.mass)
        q = self.mass @ vectors
        return (
            2.0 * self.given.impedance_damping_ratio * q * np.sqrt(np.maximum(values, 0.0)) @ q.T
        )

    def torque(self, rate):
        if not self.is_at_tip:
            torque = self.given.impedance_stiffness * self.error
        else:
            n = self.projector()
            torque = self.tip() + n.T @ (self.given.impedance_nullspace_stiffness * self.error)
        return torque + self.damping() @ rate


@pytest.mark.parametrize('mode', KINDS)
@few
@given(seeds, st.integers(1, 9), st.sampled_from([0.01, 0.3, 3.0]))
def test_the_torque_is_that_of_springs_and_a_damper_by_double_diagonalisation(
    mode, seed, n, distance
):
    model, generator = random_arm(seed, n)
    law = law_of(model, mode, generator)
    q, qd, wanted_rate = generator.uniform(-2.0, 2.0, (3, model.n))
    reference = q + generator.uniform(-distance, distance, model.n)
    parts = torque_parts(law, np.zeros(n))(q, qd, desired(reference, wanted_rate))
    expected = Springs(model, law, q, reference).torque(wanted_rate - qd)
    # The square root of an eigenvalue near zero has half of the digits.
    np.testing.assert_allclose(parts.feedback, expected, atol=2e-6 * np.abs(expected).max())
    np.testing.assert_allclose(parts.gravity, gravity_torque(model, q), atol=1e-9)
    led = coriolis_matrix(model, q, qd) @ wanted_rate
    np.testing.assert_allclose(parts.coriolis, led, atol=1e-9 * (1.0 + np.abs(led).max()))


@pytest.mark.parametrize('mode', KINDS)
@few
@given(seeds, st.integers(1, 8))
def test_the_springs_torque_is_the_slope_of_their_energy(mode, seed, n):
    model, generator = random_arm(seed, n)
    law = law_of(model, mode, generator, impedance_nullspace_stiffness=(0.0,))
    q = generator.uniform(-2.0, 2.0, n)
    reference = q + generator.uniform(-1.5, 1.5, n)
    parts = torque_parts(law, np.zeros(n))(q, np.zeros(n), desired(reference))
    step, slope = 1e-6, np.zeros(n)
    for i, unit in enumerate(np.eye(n)):
        ahead, behind = (
            Springs(model, law, q + side * step * unit, reference).energy() for side in (1, -1)
        )
        slope[i] = (ahead - behind) / (2.0 * step)
    scale = max(1.0, np.abs(slope).max())
    np.testing.assert_allclose(parts.feedback, -slope, atol=1e-6 * scale)


@few
@given(seeds, st.integers(2, 9))
def test_every_mode_of_the_arm_on_its_springs_has_the_damping_ratio(seed, n):
    model, generator = random_arm(seed, n)
    ratio = generator.uniform(0.3, 0.9)
    law = law_of(
        model,
        KINDS[seed % 2],
        generator,
        impedance_damping_ratio=ratio,
        impedance_stiffness=generator.uniform(10.0, 500.0, n),
        impedance_nullspace_stiffness=(0.0,),
    )
    q = generator.uniform(-2.0, 2.0, n)
    at, mass = torque_parts(law, np.zeros(n)), mass_matrix(model, q)
    damping = -np.column_stack([
        at(q, unit, desired(q)).feedback for unit in np.eye(n)
    ])  # fmt: skip
    np.testing.assert_allclose(damping, damping.T, atol=1e-5 * np.abs(damping).max())
    stiffness = Springs(model, law, q, q).stiffness()
    system = np.block([
        [np.zeros((n, n)), np.eye(n)],
        [-np.linalg.solve(mass, stiffness), -np.linalg.solve(mass, damping)],
    ])  # fmt: skip
    roots = np.linalg.eigvals(system)
    roots = roots[np.abs(roots) > 1.0]  # others belong to what no spring holds
    np.testing.assert_allclose(-roots.real / np.abs(roots), ratio, atol=1e-3)


@few
@given(seeds)
def test_the_postures_spring_does_not_accelerate_the_tip(seed):
    model, generator = random_arm(seed, 7)
    law = law_of(
        model,
        'cartesian_impedance',
        generator,
        impedance_nullspace_stiffness=(50.0,),
        impedance_tip_stiffness=np.zeros(6),
    )
    q = generator.uniform(-2.0, 2.0, 7)
    torque = torque_parts(law, np.zeros(7))(q, np.zeros(7), desired(q + 0.3)).feedback
    springs = Springs(model, law, q, q)
    inverse = np.linalg.inv(springs.mass)
    moved = springs.jacobian @ inverse @ torque
    unprojected = springs.jacobian @ inverse @ np.full(7, 15.0)
    mobility = np.linalg.eigvalsh(springs.jacobian @ inverse @ springs.jacobian.T)[0]
    # All but rho of it is taken away in the direction in which the tip moves least.
    left = 1.0 / (1.0 + HEAVIEST * mobility)
    assert np.linalg.norm(moved) <= 10.0 * left * np.linalg.norm(unprojected) + 1e-9


def test_a_straight_arm_is_passed_without_a_jump(ur5_urdf):
    model = RobotModel.from_urdf(ur5_urdf, base_link='base_link', tip_link='tool0')
    generator = np.random.default_rng(0)
    given = {'impedance_nullspace_stiffness': (10.0,), 'impedance_damping_ratio': 0.7}
    law = law_of(model, 'cartesian_impedance', generator, 'compiled', **given)
    at = torque_parts(law, np.zeros(6))
    stretched = np.array([0.2, -1.0, 0.0, -1.2, 0.0, 0.4])  # elbow and wrist are singular
    way = np.array([0.0, 0.1, 1.0, -0.5, 1.0, 0.2])
    reference, qd = desired(stretched + 0.2), np.full(6, 0.3)
    found = [
        at(stretched + s * way, qd, reference).feedback for s in np.linspace(-0.05, 0.05, 2001)
    ]
    steps = np.abs(np.diff(found, axis=0)).max()
    assert np.isfinite(found).all()
    assert steps < 0.02 * np.abs(found).max()


@pytest.mark.parametrize('mode', KINDS)
def test_a_quarter_turn_and_more_has_a_finite_moment_without_a_jump(mode, panda_urdf):
    model = RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')
    law = law_of(model, mode, np.random.default_rng(1), 'compiled')
    at = torque_parts(law, np.zeros(7))
    q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    found = []
    for angle in np.linspace(0.0, 2.0 * np.pi, 4001):
        goal = q + angle * np.eye(7)[6]
        found.append(at(q, np.zeros(7), desired(goal)).feedback)
    steps = np.abs(np.diff(found, axis=0)).max(axis=1)
    assert steps.max() < 0.01 * np.abs(found).max()


def test_modes_that_are_too_fast_for_the_joint_states_become_slower():
    arm, model, law = held_by_springs(20000.0, 0.7)
    assert arm.pipeline._core.following.name == 'holding'
    q = np.array([0.002, 0.0, -0.001])
    arm.now += 0.01
    torque = arm.receive(q, np.zeros(3)).parts.feedback
    mass = mass_matrix(model, q)
    values, vectors = eigh(np.diag(law.settings.impedance_stiffness), mass)
    fastest = 0.3 / arm.pipeline._core.period
    limited = (mass @ vectors) * np.minimum(values, fastest**2) @ (mass @ vectors).T
    assert values.max() > 4.0 * fastest**2
    assert arm.pipeline._core.is_stiffness_limited
    np.testing.assert_allclose(torque, -limited @ q, rtol=1e-6, atol=1e-6 * np.abs(torque).max())


@pytest.mark.parametrize('ratio', [0.02, 0.1, 0.2, 0.27, 0.7, 0.75, 1.0, 2.0])
def test_modes_of_any_damping_ratio_are_stable_a_period_late_with_twice_the_gains(ratio):
    arm, model, _ = held_by_springs(1e5, ratio)
    arm.now += 0.01
    q = np.array([0.002, 0.0, -0.001])
    torque, mass = arm.receive(q, np.zeros(3)).parts.feedback, mass_matrix(model, q)
    assert arm.pipeline._core.is_stiffness_limited
    # All modes are at the largest frequency: an acceleration of -x^2 q / T^2.
    squares = -np.linalg.solve(mass, torque)[[0, 2]] / q[[0, 2]] * arm.pipeline._core.period**2
    assert squares[0] == pytest.approx(squares[1], rel=1e-3)
    frequency = np.sqrt(squares[0])
    for gain in (1.0, 2.0):
        a, b = gain * frequency**2, gain * 2.0 * ratio * frequency
        # A double integrator with an acceleration that is held, and acts a period late.
        roots = np.roots([1.0, -2.0, 1.0 + b + 0.5 * a, 0.5 * a - b])
        assert np.abs(roots).max() < 1.0
    assert ratio < 0.1 or frequency > 0.1  # and no slower than that takes


RATES = np.array([300.0, 100.0, 1000.0])


@pytest.mark.parametrize('speed', [0.0, 0.3])
def test_modes_swing_no_faster_than_the_rate_limit_of_the_torque_follows(speed):
    arm, model, law = held_by_springs(3000.0, rates=RATES, period=0.001)
    q, qd = np.array([0.005, -0.01, 0.001]), speed * np.array([1.0, -2.0, 0.2])
    for to_go in range(round(0.005 / speed / 0.001) if speed else 1, -1, -1):
        arm.now += 0.001
        torque = arm.receive(q - 0.001 * to_go * qd, qd).parts.feedback
    mass = mass_matrix(model, q)
    squares, modes = eigh(np.diag(law.settings.impedance_stiffness), mass)
    forces = mass @ modes  # of the joints, by those of the modes
    bent, moved = -modes.T @ (law.settings.impedance_stiffness * q), -forces.T @ qd
    follow = (np.abs(forces) / (0.5 * RATES[:, None])).max(axis=0)

    def needed(left):  # rate of the torque, of a swing with the energy that there is
        return left * np.sqrt((squares * moved) ** 2 + left * squares * bent**2) * follow

    whole = needed(np.ones(3)) <= 1.0
    left = np.ones(3)
    for k in np.flatnonzero(~whole):
        left[k] = brentq(lambda x, k=k: needed(x)[k] - 1.0, 0.0, 1.0)
    assert left.min() < 0.8 and left.max() > 0.8
    damper = 2.0 * law.settings.impedance_damping_ratio * np.sqrt(left * squares) * moved
    np.testing.assert_allclose(torque, forces @ (left * bent + damper), rtol=1e-4, atol=1e-6)


# --- a pushed arm in MuJoCo ---------------------------------------------------------------------


PANDA = Named('panda.urdf', 'panda_link0', 'panda_link8')
STIFFNESS = np.array([400.0] * 3 + [30.0] * 3)
TIP = {'mode': 'cartesian_impedance'}
SOFT = {
    **TIP,
    'friction_compensation': 0.8,
    'impedance_tip_stiffness': STIFFNESS,
    'impedance_damping_ratio': 0.7,
}


def plain_arm(rate=500.0, named=PANDA, given=SOFT, **settings):
    """Return an arm without friction, noise and errors of its model, that its springs hold."""
    arm = SoftArm(named, rate, error=0.0, friction=0.0, noise=0.0, **{**given, **settings})
    arm.run(0.5)
    return arm


@pytest.mark.slow
def test_without_friction_a_pushed_arm_has_the_stiffness_and_the_damping_asked_for():
    arm = plain_arm()
    for axis, largest in ((0, 15.0), (4, 3.0)):
        found = rendered(*push_loop(arm, axis, largest, duration=6.0))
        assert found.stiffness == pytest.approx(STIFFNESS[axis], rel=0.01)
    assert released_push(arm, STIFFNESS, 1) == pytest.approx(0.7, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize('rate', [250.0, 1000.0])
def test_with_friction_noise_and_a_wrong_model_stiffness_is_within_five_percent(rate):
    arm, plain = (
        SoftArm(PANDA, rate=rate, **{**SOFT, 'friction_compensation': part}) for part in (0.8, 0.0)
    )
    for each in (arm, plain):
        each.run(0.5)
    for axis in (0, 2):
        found = slow_push(arm, axis, 20.0)
        assert found.stiffness == pytest.approx(400.0, rel=0.05)
    slow_push(plain, 0, 20.0)
    assert found.hysteresis < 0.5 * slow_push(plain, 2, 20.0).hysteresis


@pytest.mark.slow
@pytest.mark.parametrize('name', ['KR 210', 'Panda'])
def test_contacts_changes_and_jumps_give_no_energy_but_what_is_put_in_and_the_tanks(name):
    arm = ShakenArm(name, 250.0, seed=0)
    arm.shake(80)
    assert 0.2 < arm.rise < 1.0  # in a contact; the tank lends 0.4 J
    assert (arm.beyond < 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize(('rate', 'seed', 'contacts'), [(100.0, 1, 80), (250.0, 0, 10)])
def test_springs_of_the_largest_stiffness_give_no_more_than_the_tank(rate, seed, contacts):
    arm = ShakenArm('Panda', rate, seed, stiffest=1e5)
    arm.shake(contacts)
    # In one contact, the tank's 0.4 J and what a period's motion adds; 5.7 J where the work of a
    # posture's spring was taken for that of one that is not slowed, 180 J where no rate limit
    # slowed a swing.
    assert arm.rise < 1.1 and arm.highest < 0.5
    assert np.isfinite(arm.core.stiffness[2]).all()
    assert (arm.beyond < 1e-9).all()


ENDS = {
    'impedance_stiffness': [np.zeros(7), np.full(7, 1e5)],
    'impedance_tip_stiffness': [
        np.zeros(6),
        np.full(6, 1e5),
        np.array([0, 1e5, 1e3, 1e5, 0, 50.0]),
    ],
    'impedance_nullspace_stiffness': [np.zeros(7), np.full(7, 1e5)],
    'impedance_damping_ratio': [0.1, 2.0],
    'impedance_tip_speed': [0.0, 10.0],
    'impedance_tip_turn_rate': [0.0, 20.0],
    'friction_compensation': [0.0, 0.95],
    'friction_dead_zone': [0.0, 1.0],
    'friction_velocity': [1e-6, 1e6],
    'ramp_time': [0.0, 60.0],
    'state_timeout': [0.001, 60.0],
    'stale_hold_time': [0.0, 3600.0],
    'torque_rate_limit': [[0.0], [1e9]],
    'max_reference_step': [1e-6, 1e6],
    'max_following_error': [0.0, 1e9],
    'braking_acceleration': [[1e-6], [1e9]],
    'damping': [0.0, 1000.0],
    'soft_limit_width': [0.0, 1e3],
}


@pytest.mark.slow
@pytest.mark.parametrize('name', ENDS)
def test_no_setting_at_an_end_of_its_range_gives_an_arm_on_springs_energy(name):
    for value, mode in product(ENDS[name], MODES):
        is_pushed = mode == 'cartesian_impedance'  # else it follows setpoints
        arm = ShakenArm('Panda', 50.0, seed=0)
        arm.change(mode=mode, ramp_time=0.0)
        arm.run_on(0.4)

        def move(arm=arm, is_pushed=is_pushed):
            if is_pushed:
                arm.wrench = np.append(
                    0.5 * arm.strength() * np.array([0.6, -0.6, 0.5]), np.zeros(3)
                )
                arm.run_on(0.4)
                return
            for _ in range(20):
                arm.setpoint = arm.setpoint + 0.3 * arm.period * np.resize([1.0, -1.0], 7)
                arm.cycle()

        move()
        arm.rise, arm.least = 0.0, arm.balance
        arm.change(**{name: value})
        move()
        arm.wrench = np.zeros(6)
        arm.run_on(0.6)
        assert arm.rise < 0.6 and (arm.beyond < 1e-9).all(), (value, mode, is_pushed)
        assert arm.pipeline.refused_torques == 0


@pytest.mark.longer
def test_a_bent_spring_stiffens_no_faster_than_there_is_energy_for_and_fully_once_let_go():
    arm = plain_arm()
    arm.change(impedance_tip_stiffness=np.array([100.0] * 3 + [30.0] * 3))
    arm.run(1.0)
    wrench = np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
    arm.run(3.0, lambda t: wrench * min(t / 2.0, 1.0))
    start = arm.pose()
    bent = 0.5 * 100.0 * 0.2**2
    arm.change(impedance_tip_stiffness=np.array([3000.0] * 3 + [30.0] * 3))
    hand, most, before = 0.0, 0.0, start
    for _ in range(round(2.0 / arm.period)):
        arm.run(arm.period, lambda t: wrench)
        now = arm.pose()
        hand += wrench @ displacement(now, before)
        before, most = now, max(most, arm.energy() - hand)
    # As much as the spring held, and the tank; a sudden spring of thirty times gives 60 J.
    assert most < bent + 1.0
    arm.run(2.0)
    assert np.linalg.norm(displacement(arm.pose(), start)[:3]) > 0.15  # and stiffens once let go


def test_a_change_without_a_ramp_while_the_springs_are_bent_is_commanded_at_once():
    arm = plain_arm(ramp_time=0.0)
    start, wrench = arm.pose(), np.array([0.0, 15.0, 0.0, 0.0, 0.0, 0.0])
    for factor in (1.0, 2.0):
        arm.change(impedance_tip_stiffness=factor * STIFFNESS)
        refusals = arm.run(1.0, lambda t: wrench, lambda: arm.core.refusal.name)
        assert set(refusals) == {'none'}
        moved = displacement(arm.pose(), start)[1]
        assert moved == pytest.approx(15.0 / (factor * STIFFNESS[1]), rel=0.1)


@pytest.mark.longer
@pytest.mark.repeats(test=2)
@pytest.mark.parametrize('rate', [1000.0, 250.0, 100.0, 50.0, 20.0])
def test_an_arm_that_is_pushed_where_no_spring_holds_it_keeps_its_energy(rate):
    free = {
        'tip along z': {
            'impedance_tip_stiffness': np.array([400.0, 400.0, 0.0, 30.0, 30.0, 30.0])
        },
        'joints 2 and 4': {
            'mode': 'joint_impedance',
            'impedance_stiffness': np.array([100.0, 0.0, 100.0, 0.0, 100.0, 100.0, 100.0]),
        },
    }
    for which, springs in free.items():
        arm = plain_arm(rate, **springs)
        arm.run(0.3, lambda t: np.array([0.0, 0.0, 6.0, 0.0, 0.0, 0.0]))
        put_in = arm.energy()
        arm.run(1.0)
        assert 0.8 < arm.energy() / put_in < 1.1, which


@pytest.mark.parametrize('rate', [1000.0, 100.0])
def test_a_tip_that_is_turned_about_a_soft_axis_is_not_thrown_by_the_stiff_one(rate):
    # A turn about one axis moves the two others: of 1e5 N m/rad about y, K eps x eps is 20 N m.
    stiffness = np.array([800.0, 800.0, 800.0, 30.0, 1e5, 30.0])
    arm = plain_arm(rate, impedance_tip_stiffness=stiffness, impedance_damping_ratio=0.3)
    start, work = arm.pose(), []
    wrench, before = np.array([0.0, 0.0, 0.0, 4.0, 0.0, 5.0]), start
    for _ in range(round(1.0 / arm.period)):
        arm.run(arm.period, lambda t: wrench)
        work.append(wrench @ displacement(arm.pose(), before))
        before = arm.pose()
    assert np.linalg.norm(displacement(before, start)[3:]) > 0.1
    energy = arm.run(2.0, each=arm.energy)
    assert energy.max() < sum(work) and energy[-1] < 0.05 * sum(work)
    assert not arm.core.faults


@pytest.mark.longer
@pytest.mark.repeats(test=1)
@pytest.mark.parametrize('rate', [500.0, 50.0])
def test_springs_that_stiffen_without_a_ramp_take_no_energy_past_the_tank(rate):
    arm = ShakenArm('Panda', rate, seed=0)
    arm.change(mode='joint_impedance', impedance_stiffness=np.full(7, 20.0), ramp_time=0.0)
    arm.run_on(0.5)
    arm.wrench = np.array([0.0, 25.0, 0.0, 0.0, 0.0, 0.0])
    arm.run_on(1.0)
    arm.change(ramp_time=0.0)
    arm.least, arm.rise = np.inf, 0.0
    arm.change(impedance_stiffness=np.full(7, 2000.0))
    arm.run_on(0.08)
    arm.wrench = np.zeros(6)
    arm.run_on(0.5)
    # The tank's 0.4 J; at once it were 160 J. A period's motion is known once it is over.
    assert arm.rise < 0.55
    assert (arm.beyond < 1e-9).all()


def test_a_spring_that_stiffens_while_a_hand_holds_it_is_in_effect_within_the_time_shown():
    given = {'impedance_tip_stiffness': np.array([100.0] * 3 + [30.0] * 3)}
    # With a rate limit 400 N may not change as fast as a swing needs.
    arm = plain_arm(250.0, torque_rate_limit=[0.0], **given)
    start, wrench = arm.pose(), np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0])
    arm.run(3.0, lambda t: wrench * min(t / 2.0, 1.0))
    assert displacement(arm.pose(), start)[1] == pytest.approx(0.2, rel=0.05)
    arm.change(impedance_tip_stiffness=np.array([2000.0] * 3 + [30.0] * 3))
    arm.run(2.0 * arm.period, lambda t: wrench)
    *_, energy, longest, going_back = arm.core.stiffening
    # Of a spring that is bent by 0.2 m, less the steps that have been made.
    assert energy == pytest.approx(0.5 * 1900.0 * 0.2**2, rel=0.1)
    waits = arm.run(1.0, lambda t: wrench, lambda: arm.pipeline.stiffening)
    assert any('J, of dampers or of 1 W: for' in text for text in waits)
    assert 'tip 100 N/m' not in arm.pipeline.stiffness_in_effect
    # A hand that goes on takes (20 N)^2 / 2 (1 / K0 - 1 / K1) = 1.9 J, less the tank's 0.4.
    assert longest > 5.0 and 2.0 < going_back < 4.0
    arm.run(going_back - 1.0, lambda t: wrench)
    assert arm.core.stiffness[2][1] == 2000.0 and arm.pipeline.stiffening == ''
    assert displacement(arm.pose(), start)[1] == pytest.approx(0.01, abs=0.001)
    assert arm.pipeline.stiffness_in_effect == arm.pipeline.settings.stiffness


JACO = Named('kinova.urdf', 'base', 'j2s6s200_end_effector')


def test_a_model_without_rotors_names_the_joints_that_are_too_light_and_by_how_much(monkeypatch):
    monkeypatch.setattr('soft_arm.ROTOR', 0.0)
    arm = plain_arm(250.0, JACO, TIP, impedance_damping_ratio=0.7)
    found = light_joints(arm.assumed, arm.pipeline.settings, arm.start)
    assert "'j2s6s200_joint_6' is light" in found[-1]
    softer = max(float(text.split('% softer')[0].split()[-1]) for text in found)
    assert softer == pytest.approx(100.0 * (1.0 - arm.core.least_stiffness), abs=1.0)
    known = replace(arm.assumed, rotor_inertia=arm.limits / 300.0)
    assert light_joints(known, arm.pipeline.settings, arm.start) == []


@pytest.mark.slow
@pytest.mark.parametrize('name', ['Jaco 2', 'UR10', 'Panda', 'Z1', 'xArm7'])
def test_twenty_newtons_and_four_newton_metres_let_go_cost_no_springs(name):
    for wrench in (np.array([0.0, 20.0, 0.0, 0.0, 0.0, 0.0]), np.array([0, 0, 0, 0, -4.0, 0])):
        arm = plain_arm(250.0, ARMS[name], TIP)
        start = arm.pose()
        arm.run(2.0, lambda t, wrench=wrench: wrench * min(t, 1.0))
        speeds = arm.run(
            1.5, each=lambda arm=arm: np.abs(arm.simulation.velocity / arm.model.velocity_limits)
        )
        assert speeds.max() < 1.5 and not arm.pipeline.last_fault
        assert arm.core.following.name == 'holding'
        np.testing.assert_allclose(displacement(arm.pose(), start), 0.0, atol=1e-3)


@pytest.mark.longer
@pytest.mark.parametrize('knows_rotors', [True, False])
def test_an_arm_that_a_hand_lets_go_keeps_its_springs(knows_rotors, monkeypatch):
    if not knows_rotors:
        monkeypatch.setattr('soft_arm.ROTOR', 0.0)
    arm = plain_arm(250.0, JACO, TIP, impedance_damping_ratio=0.7)
    start = arm.pose()
    # Its joints may do 0.63 and 0.84 rad/s.
    arm.run(2.0, lambda t: np.array([0.0, 0.0, 0.0, 4.0, 0.0, 0.0]) * min(t, 1.0))
    speeds = arm.run(1.5, each=lambda: np.abs(arm.simulation.velocity / arm.model.velocity_limits))
    assert arm.core.following.name == 'holding'
    assert np.abs(arm.simulation.velocity).max() < 0.01
    if knows_rotors:
        assert speeds.max() < 1.5 and not arm.pipeline.last_fault
        np.testing.assert_allclose(displacement(arm.pose(), start), 0.0, atol=1e-3)
    else:  # its wrist is too light: springs hold it where it was braked
        assert "'j2s6s200_joint_6' moves at" in arm.pipeline.last_fault
