# SPDX-License-Identifier: Apache-2.0
"""What computes the torque in each control cycle, whichever algorithm was asked for."""

import re
from dataclasses import replace

import numpy as np
import pytest
from compilers import MANY_SAMPLES_WRONG, ONE_SAMPLE_WRONG, REAL, SINE_WRONG, miscompiler
from oracles import PinocchioArm, random_states, relative_difference
from robots import public_urdf

import robodyn_ros as rd
from robodyn_ros.compiled.symbolic.run_time_inputs import RunTime
from robodyn_ros.control import model_torque
from robodyn_ros.control.control_stack import apply_change, build_control_stack, check_torque
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.model_torque import ALGORITHMS, RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import NoBackend

PATH = public_urdf('panda.urdf')
POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])


@pytest.fixture(scope='module')
def arm():
    return rd.RobotModel.from_urdf(PATH, base_link='panda_link0', tip_link='panda_link8')


@pytest.mark.parametrize('algorithm', ALGORITHMS)
def test_every_algorithm_gives_pinocchio_s_torque(arm, algorithm):
    torque = RigidBodyTorque.of(arm, algorithm)
    assert torque.algorithm == algorithm
    oracle, states = PinocchioArm.of(PATH, arm), random_states(arm, 5, seed=3)
    for value, *state in zip(torque.under(arm)(*states), *states):
        assert relative_difference(value, oracle.torque(*state)) < 1e-9


@pytest.mark.parametrize('algorithm', ALGORITHMS)
@pytest.mark.parametrize('link', ['panda_link8', 'panda_link4', 'panda_hand'])
def test_payload_on_any_link_and_gravity_change_without_compiling(arm, algorithm, link):
    torque = RigidBodyTorque.of(arm, algorithm)
    payload = rd.Payload(1.8, (0.02, 0.0, 0.05), 0.002 * np.eye(3), link)
    loaded = arm.with_payload(payload).with_gravity((3.0, 0.0, -9.0))
    states = random_states(arm, 5, seed=4)
    np.testing.assert_allclose(
        torque.under(loaded)(*states), rd.inverse_dynamics(loaded, *states), atol=1e-10
    )


@pytest.mark.parametrize(
    'fault',
    [
        NoBackend('C compiler', 'no compiler', 'one that works'),
        FileNotFoundError('no compiler: vectors.h'),
        MemoryError('no compiler'),
    ],
)
def test_compiled_falls_back_to_newton_euler_and_says_why(arm, fault, monkeypatch):
    def nothing_works(*_, **__):
        raise fault

    monkeypatch.setattr(model_torque, 'compile_model', nothing_works)
    torque = RigidBodyTorque.of(arm, 'compiled')
    assert torque.algorithm == 'newton_euler'
    assert 'no compiler' in torque.notes[0]
    assert isinstance(fault, NoBackend) or type(fault).__name__ in torque.notes[0]
    states = random_states(arm, 2, seed=5)
    np.testing.assert_array_equal(torque.under(arm)(*states), rd.inverse_dynamics(arm, *states))


# --- compiled code is compared -----------------------------------------------------------------

needs_compiler = pytest.mark.skipif(not REAL, reason='there is no C compiler')


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'cache'))
    return tmp_path / 'cache'


@pytest.fixture
def stack(own_cache, monkeypatch):
    """Return a function that configures a node's stack with a compiler, at work at POSITION."""

    def configured(compiler):
        monkeypatch.setenv('CC', compiler)
        settings = ControlSettings(
            urdf_file=str(PATH), base_link='panda_link0', tip_link='panda_link8'
        )
        result = build_control_stack(settings, None)
        result.pipeline.enable(0.0)
        step(result, 0.0)
        return result

    return configured


def step(stack, now):
    """Run one control cycle with the arm at rest, and return the torque."""
    stack.joint_states.receive(
        stack.model.joint_names, POSITION, np.zeros(7), received=now, stamp=0.0, age=0.0
    )
    return stack.pipeline.step(stack.joint_states.take(), now).torque


def assert_gravity_is_commanded_within_the_rate_limit(stack, before):
    wanted, now = rd.gravity_torque(stack.model, POSITION), 0.0
    for _ in range(200):
        now += 0.001
        torque = step(stack, now)
        assert np.abs(torque - before).max() <= 1000.0 * 0.001 + 1e-9
        before = torque
    np.testing.assert_allclose(before, wanted, atol=1e-9)


@pytest.mark.repeats(check=1)
@needs_compiler
@pytest.mark.parametrize('wrong', [ONE_SAMPLE_WRONG, MANY_SAMPLES_WRONG, SINE_WRONG])
def test_miscompiled_torque_is_not_commanded(stack, own_cache, tmp_path, wrong):
    compiler = miscompiler(tmp_path, *wrong)
    configured = stack(compiler)
    assert configured.torque.algorithm == 'newton_euler' and configured.torque.is_fallback
    (note,) = configured.torque.notes
    # By the torque, or by the Jacobian, whose sines are wrong, too.
    assert compiler in note and re.search('where (Newton-Euler|NumPy) gives', note)
    assert list(own_cache.iterdir()) == []
    wanted = rd.gravity_torque(configured.model, POSITION)
    np.testing.assert_allclose(configured.pipeline.last_torque, wanted, rtol=1e-12)


def run_time_inputs(arm):
    links = [name for name, (body, _) in arm.link_frames.items() if body >= 0]
    return RunTime.of(arm, ('gravity', 'payload'), links)


PAYLOAD = rd.Payload(1.0, (0.0, 0.1, 0.0), 0.01 * np.eye(3))


@pytest.mark.repeats(check=1)
@needs_compiler
@pytest.mark.parametrize('change', [GravityChange(np.array([5.0, 0.0, -8.0])), PAYLOAD])
def test_torque_that_a_changed_load_shows_to_be_miscompiled_is_not_commanded(
    stack, tmp_path, arm, change
):
    # An input that the code takes for the constant that it is at configure.
    inputs = run_time_inputs(arm)
    loaded = arm.with_payload(change) if change is PAYLOAD else arm.with_gravity(change.vector)
    values = inputs.values(arm)
    k = int(np.argmax(np.abs(inputs.values(loaded) - values)))
    configured = stack(miscompiler(tmp_path, rf'parameters\[{k}\];', f'{float(values[k])!r};'))
    assert configured.torque.algorithm == 'compiled'
    before = configured.pipeline.last_torque
    apply_change(configured, change)
    assert configured.torque.algorithm == 'newton_euler'
    assert 'where Newton-Euler gives' in configured.torque.notes[0]
    assert_gravity_is_commanded_within_the_rate_limit(configured, before)


@needs_compiler
def test_torque_that_goes_wrong_while_it_runs_is_replaced(stack):
    configured = stack(REAL)
    check_torque(configured)
    assert configured.torque.algorithm == 'compiled'
    right = configured.pipeline.law.inverse_dynamics
    configured.pipeline.change_load(lambda *state: 1.01 * right(*state))
    before = step(configured, 0.0001)
    check_torque(configured)
    assert configured.torque.algorithm == 'newton_euler' and configured.torque.is_fallback
    assert 'where Newton-Euler gives' in configured.torque.notes[0]
    assert_gravity_is_commanded_within_the_rate_limit(configured, before)


@needs_compiler
def test_load_on_its_way_is_no_error_of_the_compiler(stack):
    configured = stack(REAL)
    configured.pipeline.settings = replace(
        configured.pipeline.settings, torque_rate_limit=np.full(7, np.inf)
    )
    apply_change(configured, rd.Payload(2.0))
    for now in np.arange(0.001, 0.8, 0.01):
        step(configured, now)
        check_torque(configured)
        assert configured.torque.algorithm == 'compiled'
    wanted = rd.gravity_torque(configured.model, POSITION)
    np.testing.assert_allclose(configured.pipeline.last_torque, wanted, atol=1e-9)
