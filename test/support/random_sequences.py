# SPDX-License-Identifier: Apache-2.0
"""
Random sequences of changes, references, disturbances and faults on an arm in MuJoCo.

They are judged by the kinetic energy of the arm: at most 1.1 times that of what is followed and
0.05 J, and the work of those who push, tilt or load it.
"""

from dataclasses import dataclass, replace

import mujoco
import numpy as np
from frictionless_arm import POSITION, TIME_STEP, FrictionlessArm
from hypothesis import strategies as st

from robodyn_ros import Payload, mass_matrix
from robodyn_ros.control.command_pipeline import Command
from robodyn_ros.control.control_stack import apply_change, apply_settings
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.reference import Reference, ReferenceState
from robodyn_ros.control.settings import arm_settings
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.errors import NoSolution, RobodynError

NAMES = tuple(f'panda_joint{i}' for i in range(1, 8))
TILTING = 0.2  # s, that a base takes
SETTLING = 0.4  # s, until the torque of a new load or gravity has come, at the rate limit
BEGIN = 0.05  # s, from the first state on
AFTER_SILENCE = 0.3  # s, until the next one may begin

GAINS = [{'kp': (kp,), 'kd': (kd,)} for kp, kd in ((10.0, 10.0), (100.0, 20.0), (400.0, 40.0))]

MODES = ['computed_torque', 'gravity_compensation', 'joint_impedance', 'cartesian_impedance']


def stiffness(count, usual):
    """Draw so many, up to a usual one, 0 or the largest one."""
    each = st.one_of(st.floats(0.0, usual), st.sampled_from([0.0, 1e5]))
    return st.tuples(*count * [each])


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
        st.fixed_dictionaries({'soft_limit_width': st.sampled_from([0.0, 0.05, 0.3])}),
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
# Of springs; 0 and the largest ones that may be asked for, too.
springs = st.tuples(
    st.just('change'),
    st.one_of(
        st.fixed_dictionaries({'mode': st.sampled_from(MODES[2:])}),
        st.fixed_dictionaries({'mode': st.sampled_from(MODES)}),
        st.fixed_dictionaries({'impedance_stiffness': stiffness(7, 400.0)}),
        st.fixed_dictionaries({'impedance_tip_stiffness': stiffness(6, 2000.0)}),
        st.fixed_dictionaries({'impedance_nullspace_stiffness': stiffness(7, 60.0)}),
        st.fixed_dictionaries({'impedance_damping_ratio': st.sampled_from([0.1, 0.7, 2.0])}),
        st.fixed_dictionaries({'ramp_time': st.sampled_from([0.0, 0.05, 0.5])}),
    ),
)
# Positions alone, at a rate [Hz], so many periods ahead, that come up to a part of one off.
streams = st.tuples(
    st.just('stream'),
    st.lists(st.floats(-0.3, 0.3), min_size=7, max_size=7),
    st.floats(1.0, 2.0),
    st.sampled_from([10.0, 20.0, 50.0, 125.0, 1000.0]),
    st.floats(0.5, 5.0),
    st.floats(0.0, 0.3),
)
# Another publisher of joint states, with other positions, at a rate [Hz], for a time [s].
others = st.tuples(
    st.just('other'),
    st.lists(st.sampled_from([-2.0, -0.3, 0.0, 0.3, 2.0]), min_size=7, max_size=7).filter(any),
    st.sampled_from([1.0, 10.0, 50.0, 250.0]),
    st.floats(0.1, 1.0),
)
payloads = st.tuples(st.just('payload'), st.sampled_from([0.0, 0.5, 2.0]))
tilts = st.tuples(st.just('tilt'), st.tuples(*3 * [st.floats(-5.0, 5.0)]))
pushes = st.tuples(st.just('push'), st.tuples(*3 * [st.floats(-20.0, 20.0)]), st.floats(0.02, 0.5))
disturbances = st.one_of(payloads, tilts, pushes)

wrong_velocities = st.builds(
    lambda joints, factor: tuple(factor if i in joints else 1.0 for i in range(7)),
    st.one_of(st.sets(st.integers(0, 6), min_size=1, max_size=2), st.just(set(range(7)))),
    st.sampled_from([-1.0, -0.5, 0.0, 0.5, 2.0, 57.3, np.nan]),
)


def faults(*outliers):
    """Draw what drivers do wrong beside velocities; outliers are of so many [rad]."""
    return st.one_of(
        st.tuples(st.just('silence'), st.floats(0.01, 0.12)),
        st.tuples(
            st.just('outlier'),
            st.integers(0, 6),
            st.sampled_from([-1.0, 1.0]),
            st.sampled_from(outliers),
        ),
        st.tuples(st.just('clock'), st.sampled_from([-5.0, -0.06, 0.15, 10.0])),
    )


@dataclass(frozen=True)
class Driver:
    """What a driver makes of the velocities; a good one filters, and is late."""

    delay: float = 0.0  # s
    time_constant: float = 0.0  # s
    position_noise: float = 0.0  # rad
    velocity_noise: float = 0.0  # rad/s
    factors: tuple[float, ...] = 7 * (1.0,)  # NaN: missing
    begins: float = 0.0  # s, when the factors do


@dataclass(frozen=True)
class Case:
    """A sequence, and the arm that it happens to."""

    sequence: list
    speed: float = 0.0  # rad/s, of all joints at the beginning
    rate: float = 1000.0  # Hz, of the joint states
    driver: Driver = Driver()
    has_friction: bool = False
    is_friction_compensated: bool = False  # 0.8 of it, by a model that has it
    is_controller: bool = False  # whose setpoints come with each cycle
    mount: tuple[float, float, float] | None = None  # roll, pitch, yaw of the base [rad]

    def run(self, rest=1.5):
        """Return the arm after all of it has happened, and then nothing for a while [s]."""
        arm = Arm(self)
        try:
            arm.run(BEGIN)
            for what in self.sequence:
                arm.happen(what)
            arm.run(rest)
        except NoSolution:
            arm.peak = np.inf
        return arm


WRONG = st.builds(
    Driver,
    factors=wrong_velocities,
    delay=st.sampled_from([0.0, 0.0, 0.02, 0.05, 0.1]),
    begins=st.sampled_from([0.0, 0.0, 0.4, 1.0]),
)
GOOD = st.builds(
    Driver,
    delay=st.floats(0.0, 0.01),
    time_constant=st.floats(0.0, 0.02),
    position_noise=st.just(2e-4),
    velocity_noise=st.just(5e-3),
)
FAST = st.sampled_from([2000.0, 1000.0, 500.0, 200.0, 100.0])
SLOW = st.sampled_from([100.0, 50.0, 30.0, 20.0, 10.0, 5.0])
# Of a controller manager: between its cycles nothing is commanded.
CYCLES = st.sampled_from([100.0, 50.0])
SPEEDS = st.sampled_from([0.0, 0.05, 0.3])
ANY = st.one_of(st.just(Driver()), WRONG)
# Whoever tilts the base or pushes the arm between two slow states is seen too late, joints can
# have gone by 0.3 rad within a period, and for so long an outlier is where the arm is.
SEEN_LATE = st.lists(st.one_of(plain, plain, payloads, faults(0.02, 3.0)), max_size=12)
ANYTHING = st.lists(st.one_of(plain, plain, disturbances, faults(0.04, 0.3, 3.0)), max_size=12)

KINDS = {
    'changes': st.builds(
        Case, st.lists(st.one_of(plain, plain, disturbances), max_size=14), SPEEDS
    ),
    'good drivers': st.builds(
        Case,
        st.lists(st.one_of(waits, follows, gains), max_size=10),
        rate=FAST,
        driver=GOOD,
        is_controller=st.booleans(),
    ),
    'wrong velocities': st.builds(
        Case, ANYTHING, SPEEDS, FAST, WRONG, is_controller=st.booleans()
    ),
    'slow states': st.one_of(
        st.builds(Case, SEEN_LATE, SPEEDS, SLOW, ANY, st.just(True)),
        st.builds(Case, SEEN_LATE, SPEEDS, CYCLES, ANY, st.just(True), st.just(True)),
    ),
}
"""What is drawn; ``slow states`` come to an arm with friction, from 5 Hz (controller: 50) on."""


STREAMS = st.builds(
    Case,
    st.lists(st.one_of(waits, streams, streams, others, plain, payloads), max_size=8),
    rate=st.sampled_from([1000.0, 500.0, 200.0]),
    has_friction=st.just(True),
    mount=st.one_of(st.none(), st.tuples(*3 * [st.floats(-np.pi, np.pi)])),
)
"""Streams of positions, another source of states, mounts: an arm with friction, seconds each."""


SPRINGS = st.builds(
    Case,
    st.lists(
        st.one_of(waits, springs, springs, springs, follows, pushes, st.just(('cancel',))),
        max_size=14,
    ),
    rate=st.sampled_from([1000.0, 250.0, 100.0, 50.0]),
    has_friction=st.just(True),
)
"""Changes of springs, motions and pushes of an arm with friction; it begins in computed torque."""


def _on_springs(mode, events):
    return [('change', {'mode': mode}), ('wait', 0.6), *events]


# A hand presses so long [s] after a weighing begins, for so long, and lets go within it or later.
weighings = st.tuples(
    st.just('weigh'),
    st.floats(0.0, 1.2),
    st.tuples(*2 * [st.one_of(st.just(0.0), st.floats(-10.0, 10.0))], st.floats(-20.0, 5.0)),
    st.floats(0.2, 4.0),
)
WEIGHED = st.builds(
    Case,
    st.builds(
        _on_springs,
        st.sampled_from(MODES[2:]),
        st.lists(
            st.one_of(waits, weighings, weighings, weighings, pushes, springs, follows, payloads),
            max_size=10,
        ),
    ),
    rate=st.sampled_from([1000.0, 250.0]),
    has_friction=st.just(True),
    is_friction_compensated=st.booleans(),
)
"""An arm on springs that weighs what it holds at any time; changes, motions, hands that press."""


class Arm(FrictionlessArm):
    """An arm whose driver filters, and whose world pushes."""

    def __init__(self, case):
        period = max(TIME_STEP, 1.0 / case.rate)
        timeout = max(0.1, 2.5 * period)
        super().__init__(
            case.speed,
            None,
            period,
            case.mount,
            case.is_friction_compensated,
            mode='computed_torque',
            state_timeout=timeout,
            friction_compensation=0.8 if case.is_friction_compensated else 0.0,
        )
        if case.has_friction:
            self.add_friction()
        self.period = period
        self.driver, self.generator = case.driver, np.random.default_rng(1)
        self.is_controller, self.setpoints = case.is_controller, None
        self.motion = None  # that was followed last, and is no brake
        self.offered = None  # what setpoints lead along, until it is followed
        self.silent_until, self.outlier, self.ahead = -np.inf, None, 0.0
        self.was_outlier, self.outliers = False, 0
        self.planned, self.work = self.energies[0], 0.0  # J
        self.peak = self.last_energy = 0.0
        self.filtered, self.history = self.simulation.velocity, []
        self.disturbed = self.pushed = -np.inf
        self.tilt = None  # begin, from, to
        self.refusals = self.followed = 0
        self.other, self.is_streaming = None, False

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
        if self.steps * TIME_STEP >= driver.begins:
            velocity = velocity * np.array(driver.factors)
        # What is wrong in a first state nobody can tell, nor in two that agree.
        may_be_wrong = self.pipeline._core.is_ready and not self.was_outlier
        self.was_outlier = self.outlier is not None and may_be_wrong
        if self.was_outlier:
            position = position + self.outlier
            self.outlier = None
        return (
            None if self.now < self.silent_until else (position, velocity, self.now + self.ahead)
        )

    def cycle(self, state):
        """Return the command of a joint state, or None."""
        if not self.is_controller:
            return self.beside_other(state)
        nothing = np.full(7, np.nan)
        position, velocity, _ = state or (nothing, nothing, 0.0)
        setpoint = None
        if self.setpoints is not None:
            wanted = self.setpoints.sample(self.now)
            setpoint = np.stack(
                [wanted.position, wanted.velocity, wanted.acceleration, np.zeros(7)]
            )
        pipeline = self.pipeline._core
        possible = self.stack.model.possible_positions
        found = pipeline.update(self.now, position, velocity, setpoint, possible)
        if self.offered is not None and pipeline.following == core.Following.moving:
            self.take_up(self.offered)
        return None if found is None else Command(*found, None)

    def beside_other(self, state):
        """Return the last command of a joint state, and of what another publisher says."""
        if self.other is None:
            return super().cycle(state)
        position, period, due, end = self.other
        command = super().cycle(state)
        if self.now >= end:
            self.other = None
        elif self.now >= due:
            self.other = position, period, due + period, end
            return super().cycle((position, np.full(7, np.nan), self.now)) or command
        return command

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
        if self.pipeline._core.is_model_blending:  # with the next state its torque has come
            self.disturbed = max(self.disturbed, self.now + self.period)
        if self.now < self.disturbed:
            self.work += max(energy - self.last_energy, 0.0)
        self.last_energy = energy
        if not np.any(self.torque):  # it falls until states agree
            self.planned = max(self.planned, energy)
        self.peak = max(self.peak, energy)

    @property
    def refused(self):
        """How many motions and streams of setpoints were."""
        return self.refusals + self.pipeline._core.counts[4]

    @property
    def excess(self):
        """The energy that neither what is followed nor others explain [J]; none: negative."""
        # The joints of a stream may be faster by a fifth than what it leads along.
        allowed = 1.2**2 if self.is_streaming else 1.1
        return self.peak - allowed * (self.planned + 0.05) - self.work

    def energy_of(self, velocity):
        """Return the kinetic energy of a velocity where the arm is [J]."""
        momentum = np.zeros(7)
        mujoco.mj_mulM(self.simulation._model, self.simulation._data, momentum, velocity)
        return 0.5 * float(velocity @ momentum)

    # --- events ----------------------------------------------------------------------------------

    def tell(self, change):
        """Tell the stack of a load, which may refuse it, and nothing is then to be judged."""
        self.disturbed = self.now + SETTLING + self.period
        try:
            apply_change(self.stack, change)
        except RobodynError:
            self.disturbed = np.inf
        self.keep_what_is_planned()  # what is followed carries the load, too

    def happen(self, what):
        kind, *given = what
        if kind == 'wait':
            self.run(given[0])
        elif kind == 'change':
            self.settings = replace(self.settings, **given[0])
            apply_settings(self.stack, arm_settings(self.stack.model, self.settings))
        elif kind == 'follow':
            self.follow_way(*given)
        elif kind == 'stream':
            self.stream(*given)
        elif kind == 'other':
            offset, rate, duration = given
            position = self.simulation.position + offset
            self.other = position, 1.0 / rate, self.now, self.now + duration
            self.run(duration + AFTER_SILENCE)
        elif kind == 'cancel':
            self.setpoints = self.offered = None
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
        elif kind == 'weigh':
            try:
                self.pipeline.weigh(self.simulation._model.opt.gravity)
            except RobodynError:
                self.refusals += 1
            self.run(given[0])
            self.happen(('push', *given[1:]))
            self.run(given[2])
        elif kind == 'silence':
            # Without friction nobody holds an arm for longer by what it did before.
            self.silent_until = self.now + given[0]
            self.run(given[0] + AFTER_SILENCE)
        elif kind == 'outlier':
            # The same one again would be a second source of states.
            self.outlier = given[1] * (given[2] + 0.1 * self.outliers) * (np.arange(7) == given[0])
            self.outliers += 1
        elif kind == 'clock':
            self.ahead += given[0]

    def follow_way(self, way, duration, delay):
        goal = [POSITION + np.array(way)]
        if self.is_controller:
            self.give(goal[0], duration, delay)
            return
        start = self.now + delay if delay else None
        points = [duration], goal, [[]], [[]], [[]]
        try:
            self.pipeline.follow(Trajectory.from_points(NAMES, *points, start=start))
        except RobodynError:
            self.refusals += 1
        else:
            self.take_up(self.pipeline._core.followed)

    def stream(self, way, duration, rate, ahead, jitter):
        """Send points of a smooth motion from rest to rest, one by one, without velocities."""
        begin, followed = self.simulation.position, self.pipeline._core.followed
        if followed is not None and self.pipeline.reference_status == 'holding':
            begin = Reference(followed).sample(self.now).position
        ends, zero = np.array([begin, begin + np.array(way)]), np.zeros((2, 7))
        motion = Reference.through([0.0, duration], ReferenceState(ends, zero, zero, zero), 0.0)
        first, due, period = self.now, self.now, 1.0 / rate
        while self.now < first + duration + ahead * period:
            if self.now >= due:
                due += period * (1.0 + self.generator.uniform(-jitter, jitter))
                at = self.now - first + ahead * period
                points = [ahead * period], [motion.sample(at).position], [[]], [[]], [[]]
                try:
                    self.pipeline.follow(Trajectory.from_points(NAMES, *points))
                except RobodynError:
                    self.refusals += 1
                else:
                    self.is_streaming = True
                    self.take_up(motion.motion)
            self.run(TIME_STEP)

    def give(self, goal, duration, delay):
        """Give setpoints to a goal, from where the last ones rest or the arm is."""
        begin = self.simulation.position
        if self.setpoints is not None:
            last = self.setpoints.sample(self.now)
            if last.velocity.any():
                return
            begin = last.position
        ends, zero = np.array([begin, goal]), np.zeros((2, 7))
        times = [self.now + delay, self.now + delay + duration]
        self.setpoints = Reference.through(times, ReferenceState(ends, zero, zero, zero), 0.0)
        self.offered = self.setpoints.motion

    def take_up(self, motion):
        """Note what is followed."""
        self.followed += 1
        self.motion, self.offered = motion, None
        self.keep_what_is_planned()

    def keep_what_is_planned(self):
        """Keep the largest kinetic energy of the motions, the last one under its present load."""
        if self.motion is None:
            return
        times = np.linspace(self.motion.knots[0], self.motion.knots[-1], 40)
        for position, velocity, *_ in map(self.motion.sample, times):
            mass = mass_matrix(self.stack.model, position)
            self.planned = max(self.planned, 0.5 * velocity @ mass @ velocity)

    def stop(self):
        """Stop as the node does, and begin again; who gave setpoints ends with it."""
        self.setpoints = self.offered = None
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
