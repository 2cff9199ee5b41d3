# SPDX-License-Identifier: Apache-2.0
"""
Whatever is changed, and whoever pushes, nothing throws an arm.

Random sequences of changes, references and disturbances on an arm in MuJoCo, judged by its kinetic
energy: at most 1.1 times that of what is followed and 0.05 J, and the work of those who push, tilt
or load it.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

pytest.importorskip('mujoco')

import mujoco
from frictionless_arm import POSITION, TIME_STEP, FrictionlessArm
from hypothesis import event, given, settings
from hypothesis import strategies as st

from robodyn_ros import Payload, mass_matrix
from robodyn_ros.control.control_stack import apply_change, apply_settings
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import RobodynError, SimulationDiverged

NAMES = tuple(f'panda_joint{i}' for i in range(1, 8))
TILTING = 0.2  # s, that a base takes
SETTLING = 0.4  # s, until the torque of a new load or gravity has come, at the rate limit
BEGIN = 0.05  # s, from the first state on

GAINS = [{'kp': (kp,), 'kd': (kd,)} for kp, kd in ((10.0, 10.0), (100.0, 20.0), (400.0, 40.0))]

waits = st.tuples(st.just('wait'), st.floats(0.02, 0.6))
modes = st.tuples(
    st.just('change'),
    st.one_of(
        st.fixed_dictionaries(
            {'mode': st.sampled_from(['computed_torque', 'gravity_compensation'])}
        ),
        st.sampled_from(GAINS),
        st.fixed_dictionaries({'ramp_time': st.sampled_from([0.0, 0.05, 0.5, 2.0])}),
        st.fixed_dictionaries({'damping': st.sampled_from([0.0, 1.0, 5.0, 20.0])}),
        st.fixed_dictionaries({'position_guard': st.sampled_from([0.0, 0.05, 0.3])}),
        st.fixed_dictionaries({'state_timeout': st.sampled_from([0.05, 0.1, 0.3])}),
        st.fixed_dictionaries({'max_following_error': st.sampled_from([0.0, 0.05, 0.2])}),
        st.fixed_dictionaries(
            {'torque_rate_limit': st.sampled_from([0.0, 300.0, 1000.0]).map(lambda x: (x,))}
        ),
    ),
)
follows = st.tuples(
    st.just('follow'),
    st.lists(st.floats(-0.5, 0.5), min_size=7, max_size=7),
    st.floats(0.8, 2.0),
    st.sampled_from([0.0, 0.0, 0.3]),
)
gains = st.tuples(st.just('change'), st.sampled_from(GAINS))
plain = st.one_of(
    waits,
    waits,
    modes,
    follows,
    st.just(('cancel',)),
    st.tuples(st.just('contact'), st.sampled_from(['stop', 'float'])),
    st.just(('stop',)),
)
disturbances = st.one_of(
    st.tuples(st.just('payload'), st.sampled_from([0.0, 0.5, 2.0])),
    st.tuples(st.just('tilt'), st.tuples(*3 * [st.floats(-5.0, 5.0)])),
    st.tuples(st.just('push'), st.tuples(*3 * [st.floats(-20.0, 20.0)]), st.floats(0.02, 0.5)),
)
speeds = st.sampled_from([0.0, 0.05, 0.3])
rates = st.sampled_from([2000.0, 1000.0, 500.0, 200.0, 100.0])


@dataclass
class Driver:
    """What a good driver makes of the velocities."""

    delay: float = 0.0  # s
    time_constant: float = 0.0  # s
    position_noise: float = 0.0  # rad
    velocity_noise: float = 0.0  # rad/s


class Arm(FrictionlessArm):
    """An arm whose driver filters, and whose world pushes."""

    def __init__(self, speed=0.0, period=TIME_STEP, driver=None, **settings):
        super().__init__(speed, None, period, **settings)
        self.driver, self.generator = driver or Driver(), np.random.default_rng(1)
        self.planned, self.work = self.energies[0], 0.0  # J
        self.peak = self.last_energy = 0.0
        self.filtered, self.history = self.simulation.velocity, []
        self.disturbed = self.pushed = -np.inf
        self.tilt = None  # begin, from, to
        self.refused = self.followed = 0

    # --- what the driver says ----------------------------------------------------------------

    def measured(self):
        """Return position, velocity and stamp of a state, or None."""
        position, velocity = self.simulation.position, self.simulation.velocity
        driver = self.driver
        if driver.time_constant > 0.0:
            weight = -np.expm1(-TIME_STEP * self.cycles / driver.time_constant)
            self.filtered = self.filtered + weight * (velocity - self.filtered)
            velocity = self.filtered
        self.history.append((self.now, velocity))
        del self.history[:-400]
        late = [each for time, each in self.history if time <= self.now - driver.delay + 1e-9]
        velocity = late[-1] if late else self.history[0][1]
        if driver.position_noise > 0.0:
            position = position + driver.position_noise * self.generator.standard_normal(7)
        if driver.velocity_noise > 0.0:
            velocity = velocity + driver.velocity_noise * self.generator.standard_normal(7)
        return position, velocity, self.now

    # --- the world -----------------------------------------------------------------------------

    def step(self):
        model = self.simulation._model
        if self.tilt is not None:
            begin, old, new = self.tilt
            fraction = min((self.now - begin) / TILTING, 1.0)
            model.opt.gravity[:] = (1.0 - fraction) * old + fraction * new
            if fraction == 1.0:
                self.tilt = None
                self.tell(GravityChange(tuple(new)))
        if self.now > self.pushed:
            self.simulation.push(np.zeros(6))
        pushes = self.simulation.external_torque
        self.work += max(float(pushes @ self.simulation.velocity), 0.0) * TIME_STEP
        self.simulation.step(self.torque)
        energy = self.energy_of(self.simulation.velocity)
        if self.now < self.disturbed:
            self.work += max(energy - self.last_energy, 0.0)
        self.last_energy = energy
        self.peak = max(self.peak, energy)

    @property
    def excess(self):
        """The energy that neither what is followed nor others explain [J]; none: negative."""
        return self.peak - 1.1 * (self.planned + 0.05) - self.work

    def energy_of(self, velocity):
        """Return the kinetic energy of a velocity where the arm is [J]."""
        momentum = np.zeros(7)
        mujoco.mj_mulM(self.simulation._model, self.simulation._data, momentum, velocity)
        return 0.5 * float(velocity @ momentum)

    # --- events ----------------------------------------------------------------------------------

    def tell(self, change):
        """Tell the stack of a load, which may refuse it, and nothing is then to be judged."""
        self.disturbed = self.now + SETTLING
        try:
            apply_change(self.stack, change)
        except RobodynError:
            self.disturbed = np.inf

    def happen(self, what):
        kind, *given = what
        if kind == 'wait':
            self.run(given[0])
        elif kind == 'change':
            self.settings = replace(self.settings, **given[0])
            apply_settings(self.stack, self.settings, set(given[0]))
        elif kind == 'follow':
            self.follow_way(*given)
        elif kind == 'cancel':
            self.pipeline.cancel()
        elif kind == 'contact':
            self.pipeline.react_to_contact(given[0], 'a contact')
        elif kind == 'stop':
            self.stop()
        elif kind == 'payload':
            payload = Payload(given[0], (0.0, 0.0, 0.05), link=self.stack.model.tip_link)
            self.simulation.carry([payload])
            self.tell(payload)
        elif kind == 'tilt':
            if self.tilt is None:
                old = self.simulation._model.opt.gravity.copy()
                self.tilt = self.now, old, np.array([0.0, 0.0, -9.81]) + given[0]
                self.disturbed = self.now + TILTING + SETTLING
        elif kind == 'push':
            self.simulation.push(np.array([*given[0], 0.0, 0.0, 0.0]))
            self.pushed = self.now + given[1]

    def follow_way(self, way, duration, delay):
        goal = [POSITION + np.array(way)]
        start = self.now + delay if delay else None
        points = [duration], goal, [[]], [[]], [[]]
        try:
            self.pipeline.follow(Trajectory.from_points(NAMES, *points, start=start))
            self.followed += 1
            self.planned = max(self.planned, self.planned_energy())
        except RobodynError:
            self.refused += 1

    def planned_energy(self):
        """Return the largest kinetic energy of what is followed [J]."""
        motion = self.pipeline._core.followed
        samples = [
            motion.sample(time) for time in np.linspace(motion.knots[0], motion.knots[-1], 40)
        ]
        return max(
            0.5 * velocity @ mass_matrix(self.stack.model, position) @ velocity
            for position, velocity, *_ in samples
        )

    def stop(self):
        """Stop as the node does, and begin again."""
        self.pipeline.begin_stop()
        end = self.now + 3.0
        while not self.pipeline.has_stopped and self.now < end:
            self.run(0.01)
        while (command := self.pipeline.stop_command(self.now)) is not None:
            self.torque = command.torque
            if not command.rate_limited.any():
                break
            self.pipeline.watchdog(self.now)
            self.now = round(self.now + TIME_STEP, 9)
            self.simulation.step(self.torque)
        self.pipeline.disable()
        self.pipeline.enable(self.now)


def run(arm, sequence, rest=1.5):
    """Let a sequence happen to an arm, and then nothing for a while [s]."""
    try:
        arm.run(BEGIN)
        for what in sequence:
            arm.happen(what)
        arm.run(rest)
    except SimulationDiverged:
        arm.peak = np.inf
    event(f'followed: {min(arm.followed, 3)}, refused: {min(arm.refused, 3)}')
    return arm


def judge(arm):
    assert arm.excess <= 0.0, (
        f'{arm.peak:.3f} J of {arm.planned:.3f} planned and {arm.work:.3f} of others; '
        f'{arm.pipeline.last_fault}'
    )


@pytest.mark.hypothesis
@settings(max_examples=max(1, settings().max_examples // 4))
@given(st.lists(st.one_of(plain, plain, disturbances), max_size=14), speeds)
def test_no_change_throws_an_arm_that_is_pushed_loaded_and_tilted(sequence, speed):
    judge(run(Arm(speed, mode='computed_torque'), sequence))


@pytest.mark.hypothesis
@settings(max_examples=max(1, settings().max_examples // 4))
@given(
    st.lists(st.one_of(waits, follows, gains), max_size=10),
    rates,
    st.floats(0.0, 0.02),
    st.floats(0.0, 0.01),
)
def test_nothing_feasible_is_refused_or_thrown_though_velocities_are_filtered_late_and_noisy(
    sequence, rate, time_constant, delay
):
    driver = Driver(
        delay=delay, time_constant=time_constant, position_noise=2e-4, velocity_noise=5e-3
    )
    arm = run(Arm(0.0, max(TIME_STEP, 1.0 / rate), driver, mode='computed_torque'), sequence)
    assert arm.refused == 0
    judge(arm)
