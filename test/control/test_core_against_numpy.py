# SPDX-License-Identifier: Apache-2.0
"""The numbers of the compiled core are those of NumPy, on random arms with all their friction."""

from dataclasses import replace

import numpy as np
import pytest
import reference_law as oracle
from control_arm import STIFF_MODES, at_middle, enabled, random_kind, terms, torque_parts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robodyn_ros.control.contact import MomentumObserver
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory

PERIOD, RAMP_TIME = 0.001, 0.01  # s
TOLERANCE = 1e-11  # of the largest torque: parts are differences of torques
COMPILED_SEEDS = (1, 2, 3)

seeds = st.integers(0, 10_000)
gain = st.sampled_from([0.0, 1.0, 3.0])
laws = st.tuples(
    st.sampled_from(STIFF_MODES),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    gain,
    gain,
    st.sampled_from([0.001, 0.01, 0.3]),
    st.sampled_from([0.0, 0.05, 0.5]),
)
few = settings(deadline=None, max_examples=max(1, settings().max_examples // 3))


def kind_of(seed, n, is_compiled):
    """Return a random arm, computed by Newton-Euler or by machine code."""
    if not is_compiled:
        return random_kind(seed, n)
    kind = random_kind(COMPILED_SEEDS[seed % len(COMPILED_SEEDS)], 3, 'compiled')
    return kind or pytest.skip('there is no C compiler')


def law_of(kind, choice):
    return kind.law(**changes_of(kind, choice))


def changes_of(kind, choice):
    mode, given, factor, kp, kd, friction_velocity, width = choice
    return {
        'mode': mode,
        'kp': kp * kind.kp,
        'kd': kd * kind.kd,
        'friction_velocity': friction_velocity,
        'soft_limit_width': width,
        **terms(*given),
        'terms_gravity_factor': np.where(np.arange(kind.n) % 2, 1.0, factor),
    }


def assert_close(found, expected, scale):
    tolerance = TOLERANCE * max(1.0, float(np.abs(scale).max()))
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance)


# --- one torque ---------------------------------------------------------------------------------


@pytest.mark.parametrize('is_compiled', [False, True], ids=['newton_euler', 'machine_code'])
@few
@given(seeds, st.integers(1, 6), laws, st.booleans())
def test_parts_of_a_torque_are_those_of_the_law(is_compiled, seed, n, choice, has_reference):
    kind = kind_of(seed, n, is_compiled)
    generator, n = np.random.default_rng(seed), kind.n
    q, qd = generator.uniform(-4.0, 4.0, n), generator.uniform(-2.0, 2.0, n)
    wanted = None
    if has_reference:  # several turns away
        wanted = ReferenceState(
            generator.uniform(-40.0, 40.0, n), *generator.uniform(-4, 4, (3, n))
        )
    law = law_of(kind, choice)
    expected = oracle.torque_parts(law, q, qd, wanted, kind.continuous)
    found = torque_parts(law, kind.continuous)(q, qd, wanted)
    correction = law.settings.kp * 40.0 + law.settings.kd * 6.0
    scale = oracle.Dynamics(law.inverse_dynamics).torque(q, qd, correction)
    assert_close(found, expected, np.vstack([scale, expected]))


# --- one command after another ------------------------------------------------------------------


class Law:
    """The coefficients in every cycle of a pipeline whose law is changed, and changed again."""

    def __init__(self, choice, law):
        self.choice = choice
        self.origin = self.goal = self.now = oracle.coefficients(law)
        self.elapsed = RAMP_TIME

    def change(self, choice, law):
        self.choice, wanted = choice, oracle.coefficients(law)
        if not wanted.equals(self.goal):  # in gravity compensation other gains change nothing
            self.origin, self.goal, self.elapsed = self.now, wanted, 0.0

    def advance(self):
        self.elapsed += PERIOD
        fraction = min(self.elapsed / RAMP_TIME, 1.0)
        # The rounding of a sum of periods, at the end of a transition.
        fraction = 1.0 if fraction > 1.0 - 1e-9 else fraction
        self.now = self.origin.mixed(self.goal, fraction)


events = st.lists(
    st.tuples(
        st.integers(1, 14),
        st.one_of(
            st.tuples(st.just('law'), laws),
            st.tuples(st.just('follow'), st.booleans()),
            st.tuples(st.just('limits'), st.sampled_from([0.1, 0.4, 1.0])),
        ),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('is_compiled', [True, False], ids=['machine_code', 'newton_euler'])
@few
@given(
    seeds, st.integers(1, 4), laws, events, st.sampled_from([20.0, 1000.0, np.inf]), st.booleans()
)
# Twice the gravity is more than the drives can carry: nothing is commanded until the next law.
@example(
    seed=1,
    n=1,
    choice=('gravity_compensation', (False, False, True, False), 2.0, 0.0, 0.0, 0.001, 0.0),
    sequence=[(1, ('law', ('gravity_compensation', 4 * (False,), 0.0, 0.0, 0.0, 0.001, 0.0)))],
    rate=20.0,
    is_loaded=False,
)
# A reference that is dropped in the cycle in which a law that needs none has come in.
@example(
    seed=0,
    n=3,
    choice=('computed_torque', 4 * (False,), 1.0, 0.0, 0.0, 0.001, 0.0),
    sequence=[
        (
            1,
            (
                'law',
                ('gravity_compensation', (False, False, True, False), 1.0, 0.0, 0.0, 0.001, 0.0),
            ),
        )
    ],
    rate=20.0,
    is_loaded=False,
)
def test_commands_of_laws_in_transition_are_those_of_their_coefficients_within_the_limits(
    is_compiled, seed, n, choice, sequence, rate, is_loaded
):
    kind = kind_of(seed, n, is_compiled)
    n, generator = kind.n, np.random.default_rng(seed)
    rates = np.full(n, rate)
    arm = enabled(choice[0], kind=kind, ramp_time=RAMP_TIME, torque_rate_limit=rates)
    pipeline = arm.pipeline
    arm.change(**changes_of(kind, choice))
    arm.pipeline.disable()
    arm.pipeline.enable(arm.now)  # a law that was changed before the first state applies at once
    # Beyond the position limits and back again.
    amplitude, phase = generator.uniform(1.0, 4.0, n), generator.uniform(0.0, 6.0, n)
    law, last, blend, speed = Law(choice, law_of(kind, choice)), None, None, 3.0
    valid = 0

    def cycle():
        nonlocal last, blend, valid
        arm.now += PERIOD
        angle = phase + speed * (arm.now - 100.0)
        q, qd = amplitude * np.sin(angle), speed * amplitude * np.cos(angle)
        law.advance()
        dynamics = kind.under(0.0)
        if blend is not None:
            # It fades from the next cycle on, where no rate limit shapes the change of torque.
            fraction = min(blend / RAMP_TIME, 1.0) if np.isinf(rate) else 1.0
            dynamics = oracle.blended(dynamics, kind.under(2.0), fraction)
            blend += PERIOD
        before = pipeline._core.followed
        command = arm.receive(q, qd)
        if command is None:
            assert 'gravity torque' in pipeline.last_fault
            return
        qd = pipeline._core.velocity  # what is believed of it
        valid += 1  # the third tells how often states come
        safety = pipeline.settings
        period = PERIOD if valid > 2 else safety.state_timeout
        known = PERIOD if valid > 2 else 0.0
        q, qd, wanted = at_middle(pipeline, q, qd, command.reference, known, before)
        model = replace(law_of(kind, law.choice), inverse_dynamics=dynamics)
        parts = oracle.torque_parts(model, q, qd, wanted, kind.continuous, law.now)
        most = oracle.Dynamics(dynamics).torque(q, qd, 300.0 * np.ones(n))
        assert_close(command.parts, parts, np.vstack([parts, most]))
        limits = kind.position_limits
        beyond = oracle.penetration(q, limits, law.now.limit_slope)
        assert command.position_limited.tolist() == (beyond != 0.0).tolist()
        asked = oracle.soft_limited(
            model, command.parts.total, q, qd, safety.effort_limits, limits, law.now, period
        )
        sent, *flags = oracle.limited(asked, last, PERIOD, safety.effort_limits, rates)
        assert_close(command.torque, sent, np.vstack([parts, most]))
        # Beyond a position limit what was clipped before may be clipped again, by rounding.
        if np.abs(sent - command.torque).max() == 0.0 and not beyond.any():
            assert command.effort_limited.tolist() == flags[0].tolist()
            assert command.rate_limited.tolist() == flags[1].tolist()
        last = command.torque

    cycle()
    for k, (cycles, event) in enumerate(sequence):
        for _ in range(cycles):
            cycle()
        if event[0] == 'law':
            arm.change(**changes_of(kind, event[1]))
            if last is None:  # nothing has been commanded: it applies at once
                law = Law(event[1], law_of(kind, event[1]))
            else:
                law.change(event[1], law_of(kind, event[1]))
        elif event[0] == 'limits':
            limits = event[1] * kind.effort_limits
            pipeline.settings = replace(pipeline.settings, effort_limits=limits)
        elif pipeline.state is not None:
            goal, effort = pipeline.state.position + 0.05, generator.uniform(-5.0, 5.0, n)
            none = [()]
            try:
                pipeline.follow(
                    Trajectory.from_points(
                        kind.names, [0.2], [goal], none, none, [effort if event[1] else ()]
                    )
                )
            except RejectedTrajectory:
                pass
        if is_loaded and k == 1 and pipeline.state is not None:
            blend = 0.0
            pipeline.change_load(kind.under(2.0))
    for _ in range(25):
        cycle()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.001, 0.004, 0.5]),
            st.floats(-90.0, 90.0),
            st.sampled_from([0.2, 0.7, 1.0]),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([100.0, 1000.0, np.inf]),
)
def test_limits_are_those_of_numpy_whatever_was_sent_before(steps, rate):
    rates = np.array([rate, 1000.0])
    arm = enabled('feedforward', terms_gravity=False, torque_rate_limit=rates, state_timeout=2.0)
    q = np.array([0.1, 0.2])
    for elapsed, torque, scale in steps:
        last = arm.run(0.01, q)[-1].torque
        arm.now += elapsed
        limits = scale * arm.kind.effort_limits
        arm.pipeline.settings = replace(arm.pipeline.settings, effort_limits=limits)
        none, efforts = [()], np.array([torque, -0.5 * torque])
        arm.pipeline.follow(
            Trajectory.from_points(arm.kind.names, [0.0], [q], none, none, [efforts])
        )
        command = arm.receive(q)
        wanted = command.parts.total
        sent, *flags = oracle.limited(wanted, last, elapsed, limits, rates)
        np.testing.assert_allclose(command.torque, sent, rtol=0.0, atol=1e-9)
        assert command.effort_limited.tolist() == flags[0].tolist()
        assert command.rate_limited.tolist() == flags[1].tolist()


# --- references ---------------------------------------------------------------------------------


@given(seeds, st.integers(1, 4), st.sampled_from([0.0, 0.3]), st.booleans())
def test_a_reference_is_the_polynomial_through_its_states_at_every_time(
    seed, k, settle_time, is_cubic
):
    generator, n = np.random.default_rng(seed), 2
    points = ReferenceState(*generator.uniform(-3.0, 3.0, (4, k, n)))
    if is_cubic:
        points = replace(points, acceleration=np.full((k, n), np.nan))
    knots = 10.0 + np.cumsum(generator.uniform(0.1, 1.0, k))
    reference = Reference.through(list(knots), points, settle_time)
    for i, (begin, end) in enumerate(zip(knots, knots[1:])):
        for time in generator.uniform(begin, end, 5):
            found, s = reference.sample(time), (time - begin) / (end - begin)
            for joint in range(n):
                polynomial = _between(points, i, joint, begin, end)
                for name, order in (('position', 0), ('velocity', 1), ('acceleration', 2)):
                    expected = polynomial.deriv(order)(time - begin)
                    actual = getattr(found, name)[joint]
                    assert actual == pytest.approx(
                        expected, rel=1e-8, abs=1e-8 * 10.0 ** (2 * order)
                    )
            effort = (1.0 - s) * points.effort[i] + s * points.effort[i + 1]
            np.testing.assert_allclose(found.effort, effort, rtol=0.0, atol=1e-12)
    last = reference.sample(knots[-1] + settle_time + 0.001)
    np.testing.assert_array_equal(last.position, points.position[-1])
    assert not last.velocity.any() and not last.acceleration.any()


def _between(points, i, joint, begin, end):
    """Return the polynomial that has the states of two points, by its six or four equations."""
    rows = ['position', 'velocity', 'acceleration']
    if np.isnan(points.acceleration).any():
        rows = rows[:2]
    count = 2 * len(rows)
    equations, values = [], []
    for point, time in ((i, 0.0), (i + 1, end - begin)):
        for order, name in enumerate(rows):
            powers = [np.polynomial.Polynomial.basis(m).deriv(order)(time) for m in range(count)]
            equations.append(powers)
            values.append(getattr(points, name)[point, joint])
    return np.polynomial.Polynomial(np.linalg.solve(equations, values))


# --- the outside --------------------------------------------------------------------------------


@pytest.mark.parametrize('is_compiled', [False, True], ids=['newton_euler', 'machine_code'])
@few
@given(
    seeds,
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from([0.0, 1e-3]),
    st.lists(st.sampled_from([0.0005, 0.001, 0.01, 0.05, 0.5]), min_size=1, max_size=25),
)
def test_external_torques_are_the_low_pass_of_each_step_s_balance(
    is_compiled, seed, n, is_held, presliding, steps
):
    kind = kind_of(seed, n, is_compiled)
    n, generator = kind.n, np.random.default_rng(seed)
    dynamics, width = kind.under(0.0), 0.02
    gains = generator.uniform(1.0, 100.0, n)
    observer = MomentumObserver(
        dynamics,
        kind.friction,
        gains,
        is_held=is_held,
        longest=1.0,
        friction_velocity=width,
        presliding=presliding,
    )
    estimate = direction = np.zeros(n)
    before = None
    time = 5.0
    for step in [0.0, *steps]:
        time += step
        q, torque = generator.uniform(-4.0, 4.0, n), generator.uniform(-50.0, 50.0, n)
        # Some joints stand, some are slower than what counts as a motion.
        qd = generator.uniform(-1.0, 1.0, n) * generator.choice([0.0, 1e-3, 1.0], n)
        sample = oracle.Sample(q, qd, torque, time)
        found = observer.update(q, qd, torque, time)
        if before is None:
            assert found is None
        else:
            elapsed = time - before.time

            def directed(half, direction=direction, elapsed=elapsed):
                if presliding:
                    return oracle.presliding_direction(direction, half, elapsed, presliding)
                return np.tanh(half / width)

            external = oracle.external_torque(
                dynamics, kind.friction, before, sample, directed, is_held=is_held
            )
            estimate = oracle.low_pass(estimate, external, gains, elapsed)
            direction = directed(0.5 * (qd + before.qd))
            assert_close(found, estimate, 10.0 * external)
        before = sample
