# SPDX-License-Identifier: Apache-2.0
"""Observer and detector as machine code say what they say in Python, and are believed then."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import two_link_urdf

from robodyn_ros import RobotModel
from robodyn_ros.compiled.c import backend
from robodyn_ros.compiled.c import cache as code_cache
from robodyn_ros.control import compiled_contact as module
from robodyn_ros.control import contact, momentum_observer
from robodyn_ros.control.compiled_contact import CompiledContactStep
from robodyn_ros.control.contact_monitor import ContactMonitor, KnownResidual
from robodyn_ros.control.control_stack import build_control_stack, control_law
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.rigid_body import RigidBodyTorque
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.dynamics import friction
from robodyn_ros.errors import NoBackend, NonFiniteValue

TOLERANCE = 1e-12
PERIOD = 0.01
NAN, INF = float('nan'), float('inf')


@cache
def arm(is_heavy=False):
    """Return an arm with every kind of friction."""
    masses = (2.0, 3.0) if is_heavy else ()
    model = RobotModel.from_urdf(two_link_urdf(*masses), gravity=(0.0, -9.81, 0.0))
    return replace(
        model,
        viscous_friction=np.array([1.0, 0.3]),
        coulomb_friction=np.array([2.0, 0.7]),
        load_friction=np.array([0.05, 0.02]),
        friction_curve=np.array([[0.4, -0.2], [0.1, 0.0]]),
        effort_offset=np.array([0.3, -0.4]),
    )


@cache
def dynamics(is_heavy=False):
    return RigidBodyTorque.of(arm(is_heavy), 'compiled').under(arm(is_heavy))


@cache
def compiled():
    """Return the machine code, or skip the test."""
    try:
        return CompiledContactStep.of(arm(), dynamics())
    except NoBackend as error:
        pytest.skip(str(error))


def monitor(step, **given):
    """Return a monitor of the arm, by machine code or without."""
    chosen = ControlSettings(
        **{
            'contact_threshold_moving': (4.0, 2.0),
            'contact_threshold_standing': (6.0, 3.0),
            'contact_dwell': 0.02,
            **given,
        }
    )
    scale, limits = np.array([1.0, -2.0]), np.array([50.0, 30.0])
    residual = KnownResidual(np.ones(2), given.get('friction_velocity', 0.0) and 1e-3)
    return ContactMonitor(arm(), chosen, dynamics(), scale, limits, residual, step)


LAW = control_law(arm(), ControlSettings(mode='computed_torque'), dynamics())
SPEED = st.sampled_from([0.0, 1e-3, -1e-3, 0.015, 0.3, -0.3, 2.0])
PUSH = st.sampled_from([0.0, 0.1, 0.5, 0.8, 1.2, 3.0, -3.0])
NUMBER = st.sampled_from([0.0] * 20 + [NAN, INF, -INF, 1e200])
STEP = st.sampled_from([PERIOD] * 20 + [0.001, 0.0, -0.005, -3.0, 0.09, 0.3, NAN])
SAMPLE = st.tuples(
    st.sampled_from(['take'] * 30 + ['reset', 'load', 'timeout']),
    STEP,
    st.tuples(SPEED, SPEED),
    st.tuples(PUSH, PUSH),
    NUMBER,
    st.integers(0, 5),
    st.integers(1, 8),
)
SETTINGS = st.sampled_from(
    [
        {},
        {'observed_effort': 'measured'},
        {'friction_velocity': 0.02},
        {'friction_velocity': 0.02, 'observed_effort': 'measured', 'contact_dwell': 0.0},
        {'contact_threshold_moving': (1e9,), 'contact_threshold_standing': (1e9,)},
    ]
)


@settings(max_examples=150, deadline=None)
@given(given=SETTINGS, samples=st.lists(SAMPLE, min_size=5, max_size=40))
def test_machine_code_and_python_say_the_same_of_anything(given, samples):
    pair = monitor(None, **given), monitor(compiled(), **given)
    time, position, is_heavy = 5.0, np.array([0.3, -0.7]), False
    for what, step, speed, push, strange, where, times in samples:
        for each in pair:
            if what == 'reset':
                each.reset()
            elif what == 'load':
                each.change_model(arm(not is_heavy), dynamics(not is_heavy))
            elif what == 'timeout':
                each.observer.longest = 0.5
        is_heavy ^= what == 'load'
        for k in range(times):
            time = time + (PERIOD if k else 0.0 if np.isnan(step) else step)
            velocity, zero = np.array(speed), np.zeros((1, 2))
            position = position + PERIOD * velocity
            rigid = dynamics(is_heavy)(position[None], velocity[None], zero)[0]
            torque = rigid - np.array(push) * [4.0, 2.0]
            sample = np.array([position, velocity, torque])
            if not k and strange:
                sample[where // 2, where % 2] = strange
            effort = sample[2] / [1.0, -2.0]
            now = NAN if np.isnan(step) and not k else time
            state = MeasuredState(sample[0], sample[1], now, effort=effort)
            with np.errstate(all='ignore'):
                said = [each.update(state, sample[2], LAW) for each in pair]
            compare(*pair, *said)


def compare(python, machine, said, machine_said):
    scale = max(1.0, float(np.abs(np.nan_to_num(python.torque)).max()))
    for a, b in ((python.observer, machine.observer), (python.detector, machine.detector)):
        np.testing.assert_allclose(b.state, a.state, rtol=TOLERANCE, atol=TOLERANCE * scale)
    assert machine.observer.passed_over == python.observer.passed_over
    assert machine.detector.count == python.detector.count
    assert np.isfinite(machine.torque).all()
    for a, b in ((said, machine_said), (python.contact, machine.contact)):
        assert (a is None) == (b is None)
        if a is not None:
            assert a[:3] == b[:3]
            assert b[3:] == pytest.approx(a[3:], rel=TOLERANCE, abs=TOLERANCE * scale)


class Counting:
    """The machine code, with how many samples it took and how many it left."""

    def __init__(self):
        self.taken = self.left = 0

    def takes(self, *arguments):
        done = compiled().takes(*arguments)
        self.taken, self.left = self.taken + done, self.left + (not done)
        return done


def test_of_a_push_the_machine_code_leaves_three_samples_to_python():
    step, zero = Counting(), np.zeros(2)
    watched, said = monitor(step), []
    for k in range(200):
        push = np.array([20.0, 0.0]) if 50 <= k < 100 else zero
        torque = dynamics()(zero[None], zero[None], zero[None])[0] - push
        said.append(watched.update(MeasuredState(zero, zero, PERIOD * k), torque, LAW))
    assert [each.is_over for each in said if each] == [False, True]
    assert (step.taken, step.left) == (197, 3)  # the first, and the contact's two ends


def test_without_thresholds_the_observer_alone_runs():
    settings = ControlSettings()
    pair = [
        ContactMonitor(arm(), settings, dynamics(), np.ones(2), np.ones(2), None, step)
        for step in (None, compiled())
    ]
    assert pair[1].detector is None
    for k in range(50):
        state = MeasuredState(np.full(2, 0.01 * k), np.ones(2), PERIOD * k)
        assert [each.update(state, np.ones(2), LAW) for each in pair] == [None, None]
    np.testing.assert_allclose(pair[1].torque, pair[0].torque, rtol=TOLERANCE)
    assert pair[1].torque.any()


def test_an_error_of_the_model_is_a_sample_that_never_came():
    def refusing(q, qd, qdd):
        raise NonFiniteValue('argument q', 'nan', 'finite numbers')

    watched, zero = monitor(compiled()), np.zeros(2)
    for k in range(10):
        watched.update(MeasuredState(zero, zero, PERIOD * k), zero, LAW)
    before = watched.torque
    watched.change_model(arm(), refusing)
    for k in range(10, 20):
        assert watched.update(MeasuredState(zero, zero, PERIOD * k), zero, LAW) is None
    assert watched.observer.passed_over == 9
    assert before.any() and not watched.torque.any()


@pytest.mark.parametrize('size', [1, 3])
def test_arrays_of_another_size_are_refused_and_nothing_is_read_beyond_them(size):
    watched, zero = monitor(compiled()), np.zeros(2)
    watched.update(MeasuredState(zero, zero, 0.0), zero, LAW)
    with pytest.raises(ValueError, match='an argument must have 2 numbers'):
        watched.update(MeasuredState(np.zeros(size), zero, PERIOD), zero, LAW)
    watched.observer.state = np.zeros(4 * size + 1)
    with pytest.raises(ValueError, match='a state must be an array of 9 doubles'):
        watched.update(MeasuredState(zero, zero, PERIOD), zero, LAW)


@pytest.mark.parametrize(
    ('right', 'wrong'),
    [
        ('0.5 * (qd[i] + last_qd[i])', '(qd[i] + last_qd[i])'),
        ('- 0.5 * step * half[i]', '+ 5.0 * step * half[i]'),
        ('observer->is_held ? torque[i]', '!observer->is_held ? torque[i]'),
        ('before - expm1(', 'before + expm1('),
        ('+ of[ROBODYN_COULOMB * n] * direction', '- of[ROBODYN_COULOMB * n] * direction'),
        ('tanh(velocity / ROBODYN_FLAT', 'sin(velocity / ROBODYN_FLAT'),
        ('* fabs(rigid_torque)', '* rigid_torque'),
        ('* fabs(direction)', '* direction'),
        ('sign + exp(', 'sign - exp('),
        ('stiction += followed', 'stiction -= followed'),
        ('stood >= lately ?', 'stood < lately ?'),
        ('<= 0.0) stood = time', '< -9.0) stood = time'),
        ('ratio > 1.0', 'ratio > 2.0'),
        ('time - detector->dwell', 'time - 2.0 * detector->dwell'),
        ('#define ROBODYN_RELEASE 0.7', '#define ROBODYN_RELEASE 0.1'),
        ('return !is_contact', 'return 1'),
        ('return !(*free_since <= latest)', 'return 1'),
        ('qd[i];\n        next[ROBODYN_STICTION', '0.0;\n        next[ROBODYN_STICTION'),
    ],
)
def test_code_that_computes_something_else_is_neither_used_nor_kept(
    right, wrong, monkeypatch, tmp_path
):
    compiled()  # skipped without a compiler
    monkeypatch.setenv('ROBODYN_CACHE_DIR', str(tmp_path / 'cache'))
    source = module.module_source('contact_step_module.c')
    assert right in source
    monkeypatch.setattr(module, 'module_source', lambda name: source.replace(right, wrong))
    with pytest.raises(NoBackend, match='compiled step of contact'):
        CompiledContactStep.of(arm(), dynamics())
    assert not list((tmp_path / 'cache').glob('*'))


def test_a_model_whose_torques_are_not_finite_is_none_to_compare_with():
    compiled()
    with pytest.raises(NoBackend, match='finite torques'):
        CompiledContactStep.of(arm(), lambda q, qd, qdd: np.full_like(q, INF))


def test_the_constants_are_those_of_python():
    text = files('robodyn_ros.control.c').joinpath('contact_step.h').read_text()
    found = dict(re.findall(r'#define ROBODYN_(\w+) ([\d.e-]+)', text))
    steep, flat = friction.CURVE_VELOCITIES
    assert {name: float(value) for name, value in found.items()} == {
        'REST_VELOCITY': momentum_observer.REST_VELOCITY,
        'STANDSTILL': contact.STANDSTILL,
        'REVERSAL_TIME': contact.REVERSAL_TIME,
        'RELEASE': contact.RELEASE,
        'ACCUSTOMING_TIME': contact.ACCUSTOMING_TIME,
        'ACCUSTOMING_TIME_IN_CONTACT': contact.ACCUSTOMING_TIME_IN_CONTACT,
        'TIME_ROUNDING': contact._ROUNDING,
        'STEEP_VELOCITY': steep,
        'FLAT_VELOCITY': flat,
    }


def test_a_node_without_the_machine_code_observes_by_python_and_notes_why(monkeypatch, panda_urdf):
    compiled()

    def refusing(source, longer=0.0):
        if 'contact' in source:
            raise NoBackend('C compiler', 'none', 'one')
        return before(source, longer)

    before = backend.compiled_source
    monkeypatch.setattr(backend, 'compiled_source', refusing)
    monkeypatch.setattr(code_cache, 'stored', lambda key: None)
    given = {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
    stack = build_control_stack(ControlSettings(**given), None)
    assert 'C compiler' in '; '.join(stack.torque.notes)
    zero = np.zeros(7)
    for k in range(10):
        stack.monitor.update(MeasuredState(zero, zero, PERIOD * k), zero, stack.pipeline.law)
    assert stack.monitor.torque.any()
