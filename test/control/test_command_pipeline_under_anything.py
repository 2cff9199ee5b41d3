# SPDX-License-Identifier: Apache-2.0
"""Whatever hypothesis invents, the command pipeline keeps to the specification."""

from dataclasses import replace

import numpy as np
import pytest
from control_arm import NAMES, compiled_step, control_law, enabled, inverse_dynamics
from hypothesis import given
from hypothesis import strategies as st

from robodyn_ros.control.safety_settings import ACTIONS
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RejectedTrajectory

WATCHDOG_PERIOD = 0.01

number = st.one_of(st.floats(-4.0, 4.0), st.floats(allow_nan=True, allow_infinity=True))
pair = st.lists(number, min_size=2, max_size=2)
pause = st.one_of(st.just(0.001), st.floats(0.0, 0.02), st.floats(0.0, 2.0))
stamp = st.one_of(st.none(), st.just(0.0), st.floats(0.0, 1e6))
states = st.tuples(
    st.just('state'),
    pause,
    pair,
    st.one_of(pair, st.just([])),
    stamp,
    st.floats(-1.0, 1.0),
    st.sampled_from([NAMES, NAMES[::-1], NAMES[:1], NAMES[1:]]),
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
    st.lists(pair, min_size=1, max_size=3),
    st.one_of(st.none(), st.floats(-1.0, 1.0)),
)
laws = st.tuples(
    st.just('law'),
    st.sampled_from(['gravity_compensation', 'feedforward', 'computed_torque']),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.05, 1.0]),
)
changes = st.fixed_dictionaries(
    {},
    optional={
        'effort_limits': st.floats(0.0, 1.0).map(lambda scale: scale * np.array([60.0, 30.0])),
        'torque_rate_limits': st.sampled_from([10.0, 1000.0, np.inf]).map(
            lambda r: np.array([r, r])
        ),
        'ramp_time': st.floats(0.0, 0.5),
        'on_stale_state': st.sampled_from(ACTIONS),
        'on_stop': st.sampled_from(ACTIONS),
        'state_timeout': st.floats(0.02, 0.5),
        'stale_hold_time': st.floats(0.0, 1.0),
        'max_following_error': st.sampled_from([0.05, np.inf]),
        'damping': st.sampled_from([0.0, 5.0]),
        'braking_acceleration': st.sampled_from([None, np.array([0.5, 2.0])]),
    },
).map(lambda values: ('settings', values))
beyond = st.tuples(
    st.just('beyond'), st.floats(-4.0, 4.0), st.floats(-3.0, 3.0), st.integers(1, 30)
)
clocks = st.tuples(
    st.just('clock'), st.sampled_from(['stop', 'run', 'back', 'ahead', 'unstamped'])
)
models = st.tuples(st.just('model'), st.floats(0.0, 3.0))
others = st.tuples(st.sampled_from(['enable', 'disable', 'words', 'cancel', 'silence']), pause)
events = st.lists(
    st.one_of(
        regular, motions, states, trajectories, laws, changes, beyond, clocks, models, others
    ),
    min_size=1,
    max_size=25,
)


class Witness:
    """Runs events against an arm and checks the specification at every command."""

    def __init__(self, **settings):
        self.arm = enabled(**settings)
        self.arm.pipeline.watchdog(self.arm.now)
        self.last = None
        self.is_first = True
        self.watched = self.arm.now
        self.clock, self.offset = 'run', 0.0
        self.stale_since, self.is_hold_over = None, False
        self.was_asked = False  # for a stop command before; it is decided once
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
            allowed = safety.torque_rate_limits * elapsed
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
                gravity = pipeline.law.gravity_torque(pipeline.state.position)
                assert command is not None or self.is_hold_over or not np.isfinite(gravity).all()
            else:
                assert (command is not None) == (action == 'zero')
        return command

    def run(self, event):
        arm = self.arm
        kind = event[0]
        if kind == 'regular':
            for _ in range(event[1]):
                self.wait(0.001)
                self.check(arm.receive([event[2], event[2]], [0.1, 0.1], stamp=self.stamp))
        elif kind == 'beyond':
            for i in range(event[3]):
                self.wait(0.001)
                q = event[1] + 0.001 * i * event[2]
                self.check(arm.receive([q, q], [event[2], event[2]], stamp=self.stamp))
        elif kind == 'clock':
            self.turn(event[1])
        elif kind == 'model':
            law = arm.pipeline.law
            arm.pipeline.change_model(
                replace(
                    law,
                    inverse_dynamics=lambda q, qd, qdd: (
                        event[1] * inverse_dynamics(q, qd, qdd) + 0.1 * q**3
                    ),
                )
            )  # may overflow
        elif kind == 'state':
            _, elapsed, position, velocity, at, age, names = event
            self.wait(elapsed)
            velocity = velocity[: len(names)]
            self.check(
                arm.receive(position[: len(names)], velocity, names=names, age=age, stamp=at)
            )
        elif kind == 'motion':
            _, position, way, duration, cycles = event
            self.run(('regular', 2, position))
            self.follow([duration], [[position + way, position - way]], None)
            self.run(('regular', cycles, position))
        elif kind == 'trajectory':
            self.follow(*event[1:])
        elif kind == 'law':
            _, mode, gravity, inertial, width = event
            arm.pipeline.change_law(control_law(mode, width, gravity=gravity, inertial=inertial))
        elif kind == 'settings':
            arm.pipeline.settings = replace(arm.pipeline.settings, **event[1])
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
            gravity = pipeline.law.gravity_torque(pipeline.state.position)
            wanted = np.zeros(2) if pipeline.settings.on_stop == 'zero' else gravity
            limits = pipeline.settings.effort_limits
            kept = np.abs(self.last[0] - np.clip(wanted, -limits, limits)).max() < 1e-9
            assert kept or self.was_asked
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
                    NAMES,
                    np.cumsum(times[:count]),
                    positions[:count],
                    none,
                    none,
                    none,
                    start=start,
                )
            )
        except RejectedTrajectory:
            pass


@pytest.mark.parametrize('is_compiled', [False, True], ids=['numpy', 'compiled'])
@given(events, st.sampled_from([0.0, 0.3]))
def test_no_sequence_of_events_violates_the_specification(is_compiled, sequence, ramp_time):
    witness = Witness(ramp_time=ramp_time, compiled=compiled_step() if is_compiled else None)
    for event in sequence:
        witness.run(event)
    limits = np.array([60.0, 30.0])  # with which the arm can be carried
    pipeline = witness.arm.pipeline
    pipeline.settings = replace(pipeline.settings, effort_limits=limits)
    witness.wait(0.3)
    for _ in range(150):
        witness.wait(0.001)
        witness.check(witness.arm.receive([0.1, 0.2]))
    if pipeline.is_enabled:  # whatever happened, it recovers without a restart
        assert not pipeline.is_stale
        assert pipeline.state is not None


@given(events, st.sampled_from([0.0, 0.3]))
def test_machine_code_commands_what_numpy_does_in_every_sequence_of_events(sequence, ramp_time):
    runs = []
    for compiled in (None, compiled_step()):
        witness = Witness(ramp_time=ramp_time, compiled=compiled)
        for event in sequence:
            witness.run(event)
        runs.append(witness.commands)
    for by_numpy, by_machine in zip(*runs, strict=True):
        assert (by_numpy is None) == (by_machine is None)
        if by_numpy is None:
            continue
        largest = 60.0
        np.testing.assert_allclose(
            by_machine.torque, by_numpy.torque, rtol=0.0, atol=1e-12 * largest
        )
        np.testing.assert_array_equal(by_machine.position_limited, by_numpy.position_limited)
        assert (by_machine.parts is None) == (by_numpy.parts is None)
        if by_numpy.parts is not None:
            parts = np.array(by_numpy.parts)
            scale = np.abs(parts).max()
            np.testing.assert_allclose(by_machine.parts, parts, rtol=0.0, atol=1e-12 * scale)
