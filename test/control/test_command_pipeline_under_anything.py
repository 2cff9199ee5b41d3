# SPDX-License-Identifier: Apache-2.0
"""Whatever hypothesis invents, the command pipeline keeps to the specification."""

from dataclasses import replace

import numpy as np
import pytest
import reference_law as oracle
from control_arm import (
    STIFF_MODES,
    TWO_JOINTS,
    at_middle,
    enabled,
    random_kind,
    terms,
    with_settings,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from robodyn_ros.control.settings import ACTIONS
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import NonFiniteValue, RejectedTrajectory

WATCHDOG_PERIOD = 0.01

number = st.one_of(st.floats(-4.0, 4.0), st.floats(allow_nan=True, allow_infinity=True))
MOST_JOINTS = 3
row = st.lists(number, min_size=MOST_JOINTS, max_size=MOST_JOINTS)
pause = st.one_of(st.just(0.001), st.floats(0.0, 0.02), st.floats(0.0, 2.0))
stamp = st.one_of(st.none(), st.just(0.0), st.floats(0.0, 1e6))
states = st.tuples(
    st.just('state'),
    pause,
    row,
    st.one_of(row, st.just([])),
    stamp,
    st.floats(-1.0, 1.0),
    st.sampled_from([slice(None), slice(None, None, -1), slice(1), slice(1, None)]),
)
regular = st.tuples(st.just('regular'), st.integers(1, 30), st.floats(-2.0, 2.0))
motions = st.tuples(
    st.just('motion'),
    st.floats(-1.5, 1.5),
    st.floats(-0.4, 0.4),
    st.floats(0.05, 0.5),
    st.integers(1, 60),
)
trajectories = st.tuples(
    st.just('trajectory'),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3),
    st.lists(row, min_size=1, max_size=3),
    st.one_of(st.none(), st.floats(-1.0, 1.0)),
)
laws = st.tuples(
    st.just('law'),
    st.sampled_from(STIFF_MODES),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.05, 1.0]),
    st.sampled_from([1.0, 9.0]),
)
changes = st.fixed_dictionaries(
    {},
    optional={
        'effort_limits': st.floats(0.0, 1.0),  # of the arm's own
        'torque_rate_limit': st.sampled_from([10.0, 1000.0, np.inf]),
        'ramp_time': st.floats(0.0, 0.5),
        'on_stale_state': st.sampled_from(ACTIONS),
        'on_stop': st.sampled_from(ACTIONS),
        'state_timeout': st.floats(0.02, 0.5),
        'stale_hold_time': st.floats(0.0, 1.0),
        'max_following_error': st.sampled_from([0.05, np.inf]),
        'damping': st.sampled_from([0.0, 5.0]),
        'braking_acceleration': st.sampled_from([np.full(3, np.inf), np.array([0.5, 2.0, 1.0])]),
    },
).map(lambda values: ('settings', values))
beyond = st.tuples(
    st.just('beyond'), st.floats(-4.0, 4.0), st.floats(-3.0, 3.0), st.integers(1, 30)
)
clocks = st.tuples(
    st.just('clock'), st.sampled_from(['stop', 'run', 'back', 'ahead', 'unstamped'])
)
models = st.tuples(st.just('model'), st.floats(0.0, 3.0))
changes_in_a_row = st.tuples(
    st.just('row'),
    st.floats(-1.5, 1.5),
    st.tuples(models, models, st.one_of(laws, changes), st.one_of(laws, models)),
)
others = st.tuples(st.sampled_from(['enable', 'disable', 'words', 'cancel', 'silence']), pause)
events = st.lists(
    st.one_of(
        regular,
        motions,
        states,
        trajectories,
        laws,
        changes,
        beyond,
        clocks,
        models,
        changes_in_a_row,
        others,
    ),
    min_size=1,
    max_size=25,
)
ramp_times = st.sampled_from([0.3, 0.0])
rate_limits = st.sampled_from([np.inf, 1000.0])
POSITION = np.array([0.1, 0.2, -0.1])
COMPILED_SEEDS = (1, 2, 3)
arms = {
    'two_joints': st.just(TWO_JOINTS),
    'random': st.builds(random_kind, st.integers(0, 10_000), st.integers(1, MOST_JOINTS)),
    'compiled': st.sampled_from(COMPILED_SEEDS).map(lambda seed: compiled_kind(seed)),
}


def compiled_kind(seed):
    """Return a random arm of three joints as machine code, or skip."""
    return random_kind(seed, 3, 'compiled') or pytest.skip('there is no C compiler')


def gravity_of(law, position):
    """Return the gravity that a law compensates; NaN where the model has none."""
    try:
        return oracle.gravity_torque(law, position)
    except NonFiniteValue:
        return np.full(len(position), np.nan)


class Witness:
    """Runs events against an arm and checks the specification at every command."""

    def __init__(self, kind, torque_rate_limit=1000.0, **settings):
        rates = np.full(kind.n, torque_rate_limit)
        self.arm, self.kind = enabled(kind=kind, torque_rate_limit=rates, **settings), kind
        self.arm.pipeline.watchdog(self.arm.now)
        self.last = None
        self.is_first = True
        self.watched = self.arm.now
        self.clock, self.offset = 'run', 0.0
        self.stale_since, self.is_hold_over = None, False
        self.was_asked = False  # for a stop command before; it is decided once
        self.law = self.arm.pipeline.law  # that was asked for last, for the load of now
        self.commands = []

    @property
    def stamp(self):
        """The driver's stamp at this moment."""
        if self.clock == 'run':
            return self.arm.now + self.offset
        return 0.0 if self.clock == 'unstamped' else self.stopped

    def turn(self, how):
        """Stop, start or set the driver's clock."""
        if how == 'stop':
            self.stopped = self.arm.now + self.offset
        if how in ('back', 'ahead'):
            self.offset += -50.0 if how == 'back' else 5000.0
            how = 'run'
        self.clock = how

    def check(self, command):
        self.commands.append(command)
        if command is None:
            return
        safety = self.arm.pipeline.settings
        torque = command.torque
        assert np.isfinite(torque).all()
        timeout = safety.state_timeout
        if self.is_first and self.last is not None and self.arm.now - self.last[1] >= timeout:
            self.last = None  # nothing is continued that long after disabling
        self.is_first = False
        largest = safety.effort_limits
        if self.last is not None:
            sent, when = self.last
            elapsed = max(min(self.arm.now - when, 0.01), 1e-9)
            allowed = safety.torque_rate_limit * elapsed
            assert (np.abs(torque - sent) <= allowed * (1 + 1e-9) + 1e-9).all()
            # Where limits were lowered below the last torque, it shrinks as fast as it may.
            largest = np.maximum(largest, np.abs(sent) - allowed * (1 - 1e-9))
        assert (np.abs(torque) <= largest + 1e-9).all()
        self.last = (torque, self.arm.now)

    def wait(self, duration):
        """Let time pass; the watchdog runs once per period, as its timer does."""
        until = self.arm.now + duration
        while self.watched + WATCHDOG_PERIOD <= until:
            self.watched += WATCHDOG_PERIOD
            self.arm.now = max(self.arm.now, self.watched)
            self.check(self.watch())
        self.arm.now = until

    def watch(self):
        pipeline, now = self.arm.pipeline, self.arm.now
        command = pipeline.watchdog(now)
        stale = bool(self.arm.buffer.stale_joints(now))
        if not pipeline.is_stale:
            self.stale_since, self.is_hold_over = None, False
        elif self.stale_since is None:
            self.stale_since = now
        if self.stale_since is not None:
            self.is_hold_over |= now - self.stale_since >= pipeline.settings.stale_hold_time
        if pipeline.is_enabled and pipeline.state is not None and stale:
            assert pipeline.is_stale
            action = pipeline.settings.on_stale_state
            if action == 'hold_gravity':
                # The hold, once over, is over for good.
                assert command is None or not self.is_hold_over
                gravity = gravity_of(pipeline.law, pipeline.state.position)
                assert command is not None or self.is_hold_over or not np.isfinite(gravity).all()
            else:
                assert (command is not None) == (action == 'zero')
        return command

    def check_law(self):
        """Whatever fades or waits, the law is the one that was asked for last."""
        given, asked = self.arm.pipeline.settings, self.law.settings
        for name in ('mode', *terms(), 'soft_limit_width'):
            assert getattr(given, name) == getattr(asked, name)
        assert (given.kp == asked.kp).all() and (given.kd == asked.kd).all()

    def check_torque(self, command):
        """Long after the last change a torque is what the law asks for, with the latest load."""
        q, safety, law = POSITION[: self.kind.n], self.arm.pipeline.settings, self.law
        limits, zero = self.kind.position_limits, np.zeros(self.kind.n)
        period = self.arm.pipeline._core.period
        q, qd, reference = at_middle(self.arm.pipeline, q, zero, command.reference, period)
        parts = oracle.torque_parts(law, q, qd, reference, self.kind.continuous)
        asked = oracle.soft_limited(law, parts.total, q, qd, safety.effort_limits, limits)
        wanted = np.clip(asked, -safety.effort_limits, safety.effort_limits)
        near = np.abs(command.torque - wanted) <= 1e-9 * np.maximum(1.0, np.abs(wanted))
        assert (near | command.rate_limited).all()

    def run(self, event):
        self.happen(event)
        self.check_law()

    def happen(self, event):
        arm, n, ones = self.arm, self.kind.n, np.ones(self.kind.n)
        kind = event[0]
        if kind == 'regular':
            for _ in range(event[1]):
                self.wait(0.001)
                self.check(arm.receive(event[2] * ones, 0.1 * ones, stamp=self.stamp))
        elif kind == 'beyond':
            for i in range(event[3]):
                self.wait(0.001)
                q = event[1] + 0.001 * i * event[2]
                self.check(arm.receive(q * ones, event[2] * ones, stamp=self.stamp))
        elif kind == 'clock':
            self.turn(event[1])
        elif kind == 'model':
            self.law = replace(self.law, inverse_dynamics=self.kind.under(event[1]))
            arm.pipeline.change_load(self.law.inverse_dynamics)
        elif kind == 'state':
            _, elapsed, position, velocity, at, age, names = event
            self.wait(elapsed)
            names, position, velocity = (
                list(each)[:n][names] for each in (self.kind.names, position, velocity)
            )
            if names:
                self.check(arm.receive(position, velocity, names=names, age=age, stamp=at))
        elif kind == 'motion':
            _, position, way, duration, cycles = event
            self.run(('regular', 2, position))
            self.follow([duration], [position + way * np.array([1.0, -1.0, 1.0])], None)
            self.run(('regular', cycles, position))
        elif kind == 'row':  # each before what the one before began is over
            _, position, rows = event
            for change in rows:
                self.run(('regular', 2, position))
                self.run(change)
        elif kind == 'trajectory':
            self.follow(*event[1:])
        elif kind == 'law':
            _, mode, gravity, inertial, width, stiffness = event
            changes = {
                'mode': mode,
                'soft_limit_width': width,
                'kp': stiffness * self.kind.kp,
                **terms(gravity=gravity, inertial=inertial),
            }
            self.law = with_settings(self.law, **changes)
            arm.change(**changes)
        elif kind == 'settings':
            arm.pipeline.settings = replace(arm.pipeline.settings, **self.of_arm(event[1]))
            arm.buffer.timeout = arm.pipeline.settings.state_timeout
        elif kind == 'enable':
            if not arm.pipeline.is_enabled:
                self.is_first, self.was_asked = True, False
            arm.pipeline.enable(arm.now)
        elif kind == 'disable':
            self.stop()
        elif kind == 'words':  # an end of commanding that was broken off
            self.was_asked = True
            self.check(arm.pipeline.stop_command(arm.now))
        elif kind == 'cancel':
            arm.pipeline.cancel()
        else:
            self.wait(event[1])

    def of_arm(self, values):
        """Return settings with those that are of joints as this arm has them."""
        values = dict(values)
        if 'effort_limits' in values:
            values['effort_limits'] = values['effort_limits'] * self.kind.effort_limits
        if 'torque_rate_limit' in values:
            values['torque_rate_limit'] = np.full(self.kind.n, values['torque_rate_limit'])
        if 'braking_acceleration' in values:
            values['braking_acceleration'] = values['braking_acceleration'][: self.kind.n]
        return values

    def stop(self):
        """End commanding as the node does, and check the stop command."""
        pipeline = self.arm.pipeline
        asked_for = pipeline.is_enabled and pipeline.state is not None
        commanded = False
        for _ in range(100000):
            word = pipeline.stop_command(self.arm.now)
            if word is None:
                break
            commanded = True
            self.check(word)
            self.arm.now += 0.01
        self.watched = self.arm.now
        if commanded:
            gravity = gravity_of(pipeline.law, pipeline.state.position)
            wanted = np.zeros_like(gravity) if pipeline.settings.on_stop == 'zero' else gravity
            limits = pipeline.settings.effort_limits
            kept = np.abs(self.last[0] - np.clip(wanted, -limits, limits)).max() < 1e-9
            assert kept or self.was_asked or pipeline.is_model_blending
        elif asked_for and pipeline.settings.on_stop == 'zero':
            assert self.was_asked
        pipeline.disable()
        assert pipeline.stop_command(self.arm.now) is None

    def follow(self, times, positions, start):
        pipeline = self.arm.pipeline
        count = min(len(times), len(positions))
        none = [()] * count
        if start is not None and pipeline.state is not None:
            start += pipeline.state.time
        try:
            pipeline.follow(
                Trajectory.from_points(
                    self.kind.names,
                    np.cumsum(times[:count]),
                    [position[: self.kind.n] for position in positions[:count]],
                    none,
                    none,
                    none,
                    start=start,
                )
            )
        except RejectedTrajectory:
            pass


@pytest.mark.parametrize('which', arms)
@settings(deadline=None)
@given(st.data())
def test_no_sequence_of_events_violates_the_specification(which, data):
    kind = data.draw(arms[which])
    witness = Witness(kind, data.draw(rate_limits), ramp_time=data.draw(ramp_times))
    for event in data.draw(events):
        witness.run(event)
    pipeline = witness.arm.pipeline
    # With its own limits the arm can be carried.
    pipeline.settings = replace(pipeline.settings, effort_limits=kind.effort_limits)
    witness.wait(0.3)
    command = None
    for periods in (150 * [0.001] + 70 * [0.015], 200 * [0.015]):
        for period in periods:  # longer than two changes of load take
            witness.wait(period)
            command = witness.arm.receive(POSITION[: kind.n])
            witness.check(command)
        # Of two places that contradict each other one counts once it has been alone for long.
        if not pipeline.is_contradicted:
            break
    witness.check_law()
    if pipeline.is_enabled:  # whatever happened, it recovers without a restart
        assert not pipeline.is_stale
        assert pipeline.state is not None
        witness.check_torque(command)


@given(st.sampled_from(COMPILED_SEEDS), events, ramp_times)
def test_machine_code_and_callables_command_the_same_in_every_sequence_of_events(
    seed, sequence, ramp_time
):
    compiled = compiled_kind(seed)

    def called(load):
        function = compiled.under(load)
        return lambda q, qd, qdd: function(q, qd, qdd)

    by_callables = replace(
        compiled, under=called, friction=lambda qd, way, tau: compiled.friction(qd, way, tau)
    )
    runs = []
    for kind in (compiled, by_callables):
        witness = Witness(kind, ramp_time=ramp_time)
        for event in sequence:
            witness.run(event)
        runs.append(witness.commands)
    for one, other in zip(*runs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            scale = compiled.effort_limits
            assert (np.abs(one.torque - other.torque) <= 1e-9 * scale).all()
            np.testing.assert_array_equal(one.position_limited, other.position_limited)
            assert (one.parts is None) == (other.parts is None)
