# SPDX-License-Identifier: Apache-2.0
"""The step of a cycle as machine code computes what NumPy does, and is believed only then."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import (
    POSITION_LIMITS,
    compiled_step,
    control_law,
    reference_limits,
    safety_settings,
)

from robodyn_ros.compiled.c import backend, cache
from robodyn_ros.control import compiled_step as module
from robodyn_ros.control.compiled_step import CompiledStep
from robodyn_ros.control.computed_torque import wrapped
from robodyn_ros.control.control_stack import build_control_stack
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.law_weights import LawWeights
from robodyn_ros.control.plain_cycles import PlainCycles
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.control.soft_joint_limit import soft_limited
from robodyn_ros.control.torque_limits import TorqueLimiter
from robodyn_ros.errors import NoBackend, NonFiniteValue

LIMITS = np.array([60.0, 30.0])


def laws(seed):
    """Every mode, with and without damping, and a law between two of them."""
    generator = np.random.default_rng(seed)
    modes = [control_law(mode) for mode in ('gravity_compensation', 'feedforward')]
    modes.append(control_law('computed_torque', gravity=bool(seed % 2), friction=bool(seed % 3)))
    damped = [replace(law, damping=3.0) for law in modes]
    first, second = generator.choice(len(modes), 2)
    between = modes[first].weights.mixed(damped[second].weights, generator.uniform())
    return [*modes, *damped, modes[0].with_weights(between)]


def state_and_reference(seed):
    generator = np.random.default_rng(seed)
    position = generator.uniform(-3.0, 3.0, 2)  # the shoulder may be beyond its limits
    velocity = generator.uniform(-2.0, 2.0, 2)
    if seed % 5 == 0:
        velocity[seed % 2] = np.nan
    reference = None if seed % 4 == 0 else ReferenceState(*generator.uniform(-4.0, 4.0, (4, 2)))
    return MeasuredState(position, velocity, 0.0), reference


@pytest.mark.parametrize('seed', range(40))
def test_the_torque_and_each_of_its_parts_are_those_of_numpy(seed):
    state, reference = state_and_reference(seed)
    for law in laws(seed):
        parts = law.torque(state.position, state.velocity, reference)
        torque, penetration = soft_limited(parts.total, law, state, LIMITS, POSITION_LIMITS)
        found = compiled_step().evaluated(law, state, reference, LIMITS, POSITION_LIMITS)
        if not np.isfinite(torque).all():
            assert found is None
            continue
        np.testing.assert_allclose(found[0], torque, rtol=0.0, atol=1e-12 * 100.0)
        np.testing.assert_allclose(found[1], np.array(parts), rtol=0.0, atol=1e-12 * 1000.0)
        assert (found[2] is None) == (penetration is None)
        if penetration is not None:
            np.testing.assert_allclose(found[2], penetration, rtol=1e-15)


def test_a_joint_that_turns_without_end_goes_the_shorter_way_round():
    law = control_law('computed_torque')
    zero = np.zeros(2)
    for wanted in np.linspace(-40.0, 40.0, 41):
        reference = ReferenceState(np.array([0.0, wanted]), zero, zero, zero)
        state = MeasuredState(zero, zero, 0.0)
        _, parts, _ = compiled_step().evaluated(law, state, reference, LIMITS, POSITION_LIMITS)
        # The elbow's mass is 0.5 and its gain 64.
        assert parts.feedback[1] == pytest.approx(0.5 * 64.0 * wrapped(wanted), abs=1e-9)


def test_limits_are_those_of_numpy_whatever_was_sent_before():
    generator = np.random.default_rng(3)
    rates = np.array([1000.0, np.inf])
    by_numpy, by_machine = TorqueLimiter(), TorqueLimiter(compiled_step().limited)
    now = 100.0
    for k in range(300):
        now += (0.001, 0.0, 0.5)[k % 3]
        torque = generator.uniform(-90.0, 90.0, 2)
        limits = LIMITS * generator.uniform(0.2, 1.0)
        if k % 50 == 0:
            by_numpy.forget()
            by_machine.forget()
        for wanted, found in zip(
            by_numpy.limited(torque, limits, rates, now),
            by_machine.limited(torque, limits, rates, now),
            strict=True,
        ):
            np.testing.assert_array_equal(found, wanted)


def test_a_torque_that_is_not_finite_is_none():
    law = replace(control_law(), inverse_dynamics=lambda q, qd, qdd: np.full_like(q, np.nan))
    state = MeasuredState(np.zeros(2), np.zeros(2), 0.0)
    assert compiled_step().evaluated(law, state, None, LIMITS, POSITION_LIMITS) is None


def test_an_error_of_the_model_comes_through():
    def refusing(q, qd, qdd):
        raise NonFiniteValue('argument q', 'nan', 'finite numbers')

    law = replace(control_law(), inverse_dynamics=refusing)
    state = MeasuredState(np.zeros(2), np.zeros(2), 0.0)
    with pytest.raises(NonFiniteValue):
        compiled_step().evaluated(law, state, None, LIMITS, POSITION_LIMITS)


def test_a_model_that_answers_in_another_shape_is_refused_and_nothing_is_read_beyond_it():
    law = replace(control_law(), inverse_dynamics=lambda q, qd, qdd: np.zeros((1, 1)))
    state = MeasuredState(np.zeros(2), np.ones(2), 0.0)
    with pytest.raises(ValueError, match='a result of the model must have'):
        compiled_step().evaluated(law, state, None, LIMITS, POSITION_LIMITS)


@pytest.mark.parametrize('seed', range(20))
def test_a_reference_is_sampled_as_numpy_does_at_every_time(seed):
    generator = np.random.default_rng(seed)
    k = 1 + seed % 4
    points = ReferenceState(*generator.uniform(-0.01, 0.01, (4, k, 2)))
    knots = 10.0 + np.cumsum(generator.uniform(0.1, 1.0, k))
    reference = Reference.through(list(knots), points, 0.0 if seed % 2 else 0.3)
    law, safety, limits = control_law(), safety_settings(), reference_limits()
    cycles = PlainCycles(compiled_step())
    times = [*generator.uniform(knots[0], knots[-1] + 1.0, 20), knots[-1], knots[k // 2]]
    for time in times:
        state = MeasuredState(np.zeros(2), np.zeros(2), time)
        command = cycles.command(
            law,
            safety,
            limits,
            reference,
            state,
            state,
            TorqueLimiter(compiled_step().limited),
            time,
        )
        if time == knots[0]:
            assert command is None  # the reference decides where it begins
            continue
        wanted = reference.sample(time)
        for field, scale in (('position', 1), ('velocity', 10), ('acceleration', 100)):
            found = getattr(command.reference, field)
            np.testing.assert_allclose(found, getattr(wanted, field), rtol=0, atol=1e-13 * scale)
        np.testing.assert_allclose(command.reference.effort, wanted.effort, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ('change', 'what'),
    [
        ({'position': [0.06, 0.0]}, 'a step that the joint may not be able to make'),
        ({'velocity': [0.0, 20.1]}, 'a joint beyond its velocity limit'),
        ({'velocity': [np.nan, 0.0]}, 'a velocity that is not known'),
        ({'wanted': [0.2, 0.0]}, 'a reference too far away'),
    ],
    ids=lambda value: value if isinstance(value, str) else '',
)
def test_what_is_unusual_is_left_to_those_who_decide_it(change, what):
    safety, limits = safety_settings(max_following_error=0.1), reference_limits()
    state = MeasuredState(
        np.array(change.get('position', [0.0, 0.0])),
        np.array(change.get('velocity', [0.0, 0.0])),
        1.0,
    )
    last = MeasuredState(np.zeros(2), np.zeros(2), 0.999)
    reference = Reference.hold(np.array(change.get('wanted', [0.0, 0.0])), 0.0)
    limiter = TorqueLimiter(compiled_step().limited)

    def command(state):
        cycles = PlainCycles(compiled_step())
        return cycles.command(control_law(), safety, limits, reference, state, last, limiter, 1.0)

    assert command(state) is None
    assert limiter.last_torque is None
    if 'wanted' not in change:
        assert command(last._replace(time=1.0)) is not None


@pytest.mark.parametrize(
    ('right', 'wrong'),
    [
        ('coriolis[i] += ct[', 'coriolis[i] -= ct['),
        ('feedback[i] -= law->damping', 'feedback[i] += law->damping'),
        ('(1.0 - depth) * more', '(1.0 + depth) * more'),
        ('gravity[i] += ff[', 'gravity[i] += 0.0 * ff['),
        ('velocity[i] = a * v', 'velocity[i] = v * v'),
        ('(1.0 - s) * efforts', 's * efforts'),
        ('last[i] + step)', 'last[i] + 2.0 * step)'),
    ],
)
def test_code_that_computes_something_else_is_neither_used_nor_kept(
    right, wrong, monkeypatch, tmp_path
):
    compiled_step()  # skipped without a compiler
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'cache'))
    source = module.module_source('torque_step_module.c')
    assert right in source
    monkeypatch.setattr(module, 'module_source', lambda name: source.replace(right, wrong))
    with pytest.raises(NoBackend, match='compiled (step of a cycle|reference)'):
        CompiledStep.of(control_law(), LIMITS, POSITION_LIMITS)
    assert not list((tmp_path / 'cache').glob('*'))


def test_a_node_without_the_machine_code_commands_by_numpy_and_notes_why(monkeypatch, panda_urdf):
    def refusing(source, longer=0.0):
        raise NoBackend('C compiler', 'none', 'one')

    settings = ControlSettings(
        urdf_file=panda_urdf, base_link='panda_link0', tip_link='panda_link8'
    )
    whole = build_control_stack(settings, None)
    if whole.torque.algorithm != 'compiled':
        pytest.skip('; '.join(whole.torque.notes))
    monkeypatch.setattr(backend, 'compiled_source', refusing)
    monkeypatch.setattr(cache, 'stored', lambda key: None)
    stack = build_control_stack(settings, None)
    assert 'C compiler' in '; '.join(stack.torque.notes)
    torques = []
    for each in (whole, stack):
        each.pipeline.enable(1.0)
        position = np.linspace(-0.3, 0.4, 7) + np.array([0, 0, 0, -1.8, 0, 1.5, 0])
        state = MeasuredState(position, np.zeros(7), 1.0)
        names, zeros = each.model.joint_names, np.zeros(7)
        each.joint_states.receive(names, position, zeros, received=1.0, stamp=1.0)
        torques.append(each.pipeline.step(state, 1.0).torque)
    np.testing.assert_allclose(torques[1], torques[0], rtol=0.0, atol=1e-10)


def test_weights_are_read_in_the_order_in_which_they_are_written():
    n = 2
    weights = LawWeights(
        1.0, np.arange(2.0, 7.0), np.arange(7.0, 12.0), *np.arange(12.0, 16.0).reshape(2, n),
        16.0, 17.0, 18.0, np.arange(19.0, 21.0),
    )  # fmt: skip
    numbers = control_law().with_weights(weights).numbers
    expected = [1.0, 16.0, 17.0, 18.0, *range(2, 12), *range(12, 16), 19.0, 20.0, 0.0, 1.0]
    assert numbers.tolist() == expected
