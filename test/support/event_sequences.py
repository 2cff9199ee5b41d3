# SPDX-License-Identifier: Apache-2.0
"""
Seeded sequences of events for a command pipeline, on six arms.

A sequence is drawn from its arm and seed alone. States follow a smooth random motion that is a
function of time, never of a command, so that whatever implementation is driven sees the same
inputs: joint states, watchdog ticks, trajectories, changes, loads, gaps, stops, contacts, and
states that are wrong. What is drawn is exact: no function but + - * / comes between the generator
and an event. Only measured efforts follow from the arm's model.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from control_arm import STIFF_MODES
from robots import random_chain, two_link_urdf

from robodyn_ros import Payload, RobotModel, inverse_dynamics
from robodyn_ros.control.contact import KnownResidual
from robodyn_ros.control.load import GravityChange
from robodyn_ros.control.settings import ACTIONS, CONTACT_ACTIONS
from robodyn_ros.control.trajectory import Trajectory
from robodyn_ros.dynamics import friction_torque

SEEDS = range(50)
"""Of each arm's sequences."""

TICK = 0.01
"""Period of the watchdog [s]."""

BEGIN = 100.0
"""Steady time at which a sequence begins [s]."""

_URDFS = Path(__file__).parent.parent.parent / 'urdf'


# --- the arms ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StreamArm:
    """
    An arm that sequences are drawn for.

    Parameters
    ----------
    name : str
    model : RobotModel
        With the friction that an identification would say.
    parameters : dict
        Of the node, that every sequence has.
    residual : KnownResidual or None
        As an identification says it.
    """

    name: str
    model: RobotModel
    parameters: dict[str, Any] = field(default_factory=dict)
    residual: KnownResidual | None = None

    @property
    def limits(self) -> np.ndarray:
        """The effort limits that differences are measured by, shape (n,) [N m] or [N]."""
        given = self.parameters.get('effort_limits')
        return self.model.effort_limits if given is None else np.array(given)

    @property
    def speeds(self) -> np.ndarray:
        """How fast the joints are moved at most, shape (n,) [rad/s] or [m/s]."""
        given = self.model.velocity_limits
        return np.where(np.isfinite(given) & (given > 0.0), given, 2.0)


def _published(name: str) -> StreamArm:
    return StreamArm(name, RobotModel.from_urdf(_URDFS / f'{name}.urdf'))


def _turning() -> StreamArm:
    """Two continuous joints without any limit in the URDF."""
    model = RobotModel.from_urdf(two_link_urdf(), gravity=(0.0, -9.81, 0.0))
    return StreamArm('turning', model, {'effort_limits': (60.0, 30.0)})


def _identified() -> StreamArm:
    """Three revolute joints and a prismatic one, with all the friction that is identified."""
    model = RobotModel.from_urdf(
        random_chain(np.random.default_rng(4), 4), base_link='base', tip_link='tip'
    )
    generator = np.random.default_rng(0)
    limits = np.array([200.0, 90.0, 60.0, 60.0])
    share = generator.uniform(0.01, 0.05, (7, model.n))
    model = replace(
        model,
        viscous_friction=share[0] * limits,
        coulomb_friction=share[1] * limits,
        friction_curve=(share[2:4] * limits).T,
        effort_offset=0.5 * share[4] * limits,
        load_friction=share[5],
        rotor_inertia=np.array([0.5, 0.3, 0.2, 1.0]),
    )
    residual = KnownResidual(share[6] * limits, 1e-3)
    return StreamArm('identified', model, {'effort_limits': tuple(limits.tolist())}, residual)


@cache
def arms() -> dict[str, StreamArm]:
    """Return the arms by name."""
    made = (
        _published('two_link_planar'),
        _published('cylindrical'),
        _published('spherical'),
        _turning(),
        _identified(),
        _published('puma560'),
    )
    return {arm.name: arm for arm in made}


# --- what happens ------------------------------------------------------------------------------


class Message(NamedTuple):
    """A joint state as it comes; ``simulated`` is the simulation's time then [s]."""

    names: tuple[str, ...]
    position: list[float]
    velocity: list[float]
    effort: list[float]
    stamp: float
    age: float = 0.0


class Step(NamedTuple):
    """
    One call of the driver.

    Parameters
    ----------
    now : float
        Steady time [s].
    kind : str
        ``state``, ``tick`` or ``stop_command``, which are cycles, or the name of another method
        of ``Driver``.
    given : tuple
        Its arguments beside the time.
    simulated : float
        What time the simulation has, where there is one [s].
    """

    now: float
    kind: str
    given: tuple[Any, ...] = ()
    simulated: float = 0.0

    @property
    def is_cycle(self) -> bool:
        """Whether it may command."""
        return self.kind in ('state', 'tick', 'stop_command')


@dataclass(frozen=True, eq=False)
class EventSequence:
    """
    Everything that happens to one pipeline.

    Parameters
    ----------
    arm : StreamArm
    seed : int
    parameters : dict
        Of the node, at the beginning.
    is_simulated, is_observed : bool
        Whether stamps are of simulated time; whether external torques are estimated.
    steps : list of Step
    """

    arm: StreamArm
    seed: int
    parameters: dict[str, Any]
    is_simulated: bool
    is_observed: bool
    steps: list[Step]

    @property
    def digest(self) -> int:
        """Checksum of what was drawn; other numbers of another NumPy would show here."""
        drawn = [self.parameters, self.is_simulated, self.is_observed]
        for now, kind, given, simulated in self.steps:
            if kind == 'state':  # efforts follow from the model, to rounding
                given = (given[0]._replace(effort=[]),)
            drawn.append((now, kind, given, simulated))
        return zlib.crc32(repr(plain(drawn)).encode())


def plain(value: Any) -> Any:
    """Return a value as lists, dictionaries, numbers and strings."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict) or is_dataclass(value):
        given = value if isinstance(value, dict) else vars(value)
        return {name: plain(each) for name, each in given.items()}
    return value


class _Draw:
    """Draws from a seed; every helper draws equally often, whatever it returns."""

    def __init__(self, *seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def chance(self, probability: float) -> bool:
        return bool(self.generator.random() < probability)

    def among(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.generator.integers(len(choices)))]

    def number(self, low: float, high: float) -> float:
        return float(self.generator.uniform(low, high))

    def numbers(self, low: float, high: float, *shape: int) -> np.ndarray:
        return self.generator.uniform(low, high, shape)

    def whole(self, low: int, high: int) -> int:
        """Return an integer between two, both included."""
        return int(self.generator.integers(low, high + 1))


class _Motion:
    """A smooth motion through drawn knots: cubic between them, at rest for a while here, there."""

    def __init__(self, draw: _Draw, arm: StreamArm, duration: float) -> None:
        n, speeds = arm.model.n, arm.speeds
        lower, upper = np.clip(arm.model.position_limits, -3.0, 3.0).T
        middle, reach = 0.5 * (lower + upper), 0.5 * (upper - lower)
        place = middle + draw.numbers(-0.8, 0.8, n) * np.minimum(reach, 1.5)
        begins_at_limit, joint, side = draw.chance(0.3), draw.whole(0, n - 1), draw.among((-1, 1))
        inside = draw.number(-0.02, 0.05)
        farthest = np.full(n, reach - 0.02)
        if begins_at_limit:
            place[joint] = middle[joint] + side * (reach[joint] - inside)
            farthest[joint] = reach[joint] + 0.1
        slowness = draw.among((0.1, 0.5, 1.0))
        times, places, rests = [-0.1], [place], []
        is_resting = draw.chance(0.6)
        while times[-1] < duration + 1.0:
            length = max(0.02, duration * draw.number(0.05, 0.4))
            way = slowness * speeds * length * draw.numbers(-0.5, 0.5, n)
            way[np.abs(place + way - middle) > farthest] *= -1.0
            place = place if is_resting else place + way
            place = np.clip(place, middle - farthest, middle + farthest)
            times.append(times[-1] + length)
            places.append(place)
            rests.append(is_resting)
            is_resting = draw.chance(0.3)
        self.times, self.places = np.array(times), np.array(places)
        self.rates = slowness * speeds * draw.numbers(-0.3, 0.3, len(times), n)
        stands = np.array([True, *rests]) | np.array([*rests, True])
        self.rates[stands | (draw.numbers(0.0, 1.0, len(times)) < 0.3)] = 0.0

    def at(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return positions, velocities and accelerations at some times (k,), each (k, n)."""
        i = np.clip(np.searchsorted(self.times, times, 'right') - 1, 0, len(self.times) - 2)
        length = (self.times[i + 1] - self.times[i])[:, None]
        s = (times[:, None] - self.times[i][:, None]) / length
        s = np.clip(s, 0.0, 1.0)
        way = self.places[i + 1] - self.places[i]
        first, last = self.rates[i] * length, self.rates[i + 1] * length
        square, cube = 3.0 * way - 2.0 * first - last, first + last - 2.0 * way
        position = self.places[i] + s * (first + s * (square + s * cube))
        velocity = (first + s * (2.0 * square + 3.0 * s * cube)) / length
        return position, velocity, (2.0 * square + 6.0 * s * cube) / (length * length)


class _Clock:
    """A clock in pieces: it jumps, stands still, runs at another pace."""

    def __init__(self, begin: float) -> None:
        self.pieces = [(0.0, begin, 0.0, 1.0)]  # time, stamp, way of the arm, pace

    def at(self, time: float) -> tuple[float, float]:
        """Return the stamp, and how long the arm has moved by this clock [s]."""
        began, stamp, way, pace = [piece for piece in self.pieces if piece[0] <= time][-1]
        return stamp + pace * (time - began), way + pace * (time - began)

    def turn(self, time: float, jump: float, pace: float) -> None:
        """Go on otherwise from a time on; later pieces must not exist yet."""
        stamp, way = self.at(time)
        self.pieces.append((time, stamp + jump, way, pace))


class _Drawer:
    """Draws one sequence."""

    def __init__(self, arm: StreamArm, seed: int) -> None:
        self.arm, self.seed, self.n = arm, seed, arm.model.n
        self.draw = draw = _Draw(list(arms()).index(arm.name), seed)
        self.period = draw.among((0.001, 0.001, 0.002, 0.004, 0.008, 0.02))
        self.cycles = draw.whole(200, 600 if self.period < 0.004 else 400)
        self.duration = self.cycles * self.period
        self.is_simulated = draw.chance(0.2)
        self.is_stamped = draw.chance(0.85)
        self.is_observed = draw.chance(0.6)
        self.parameters = self._parameters()
        self.clock = _Clock(draw.number(50.0, 500.0))
        self.motion = _Motion(draw, arm, 4.0 * self.duration)
        self.events: list[tuple[float, str, tuple[Any, ...]]] = []  # time, kind, arguments
        self.silences: list[tuple[float, float]] = []
        self.pushes: list[tuple[float, float, np.ndarray]] = []
        self.faults: list[tuple[float, float, str, int, float]] = []  # of states between times

    # --- the settings ---

    def _parameters(self) -> dict[str, Any]:
        draw, limits = self.draw, self.arm.limits
        given = {
            'gravity': tuple(self.arm.model.gravity.tolist()),
            **self.arm.parameters,
            'mode': draw.among((*STIFF_MODES, 'computed_torque', 'computed_torque')),
        }
        for name in draw.generator.choice(_LIVE, 6, replace=False).tolist():
            given[name] = self._value(name)
        if draw.chance(0.5):
            given['torque_rate_limit'] = self._value('torque_rate_limit')
        if draw.chance(0.35):
            share = draw.among((0.02, 0.2, 1.0))
            # Not in the ratio of the limits: saturated joints would be in contact alike.
            moving = share * limits * draw.numbers(0.7, 1.0, self.n)
            given['contact_threshold_moving'] = tuple(moving.tolist())
            given['contact_threshold_standing'] = tuple((1.5 * moving).tolist())
        self.knows_contacts = self.arm.residual is not None or 'contact_threshold_moving' in given
        if not self.knows_contacts:
            given.pop('on_contact', None)
        given['contact_dwell'] = draw.among((0.0, 0.005, 0.02))
        given['observed_effort'] = draw.among(('commanded', 'measured', 'measured'))
        given['observer_gain'] = draw.among(((30.0,), (5.0,), (200.0,)))
        given['effort_scale'] = draw.among(((), (-0.5,), (2.0,)))
        self.scale = given['effort_scale'][0] if given['effort_scale'] else 1.0
        if draw.chance(0.4):
            given['external_effort_topic'] = 'added'
            given['external_effort_scale'] = draw.among(((1.0,), (-0.3,)))
            if draw.chance(0.5):
                given['external_effort_limit'] = tuple((0.2 * limits).tolist())
        return given

    def _value(self, name: str) -> Any:
        """Return a value of a parameter that may change at any time."""
        draw, limits, period = self.draw, self.arm.limits, self.period
        if name.startswith('terms.'):
            return draw.chance(0.5)
        if name == 'torque_rate_limit':
            rates = draw.among((0.0, 0.5, 2.0, 10.0, 50.0)) * limits
            rates *= draw.numbers(0.7, 1.0, self.n)
            if draw.chance(0.2):
                rates[draw.whole(0, self.n - 1)] = 0.0
            return tuple(rates.tolist())
        if name in ('kp', 'kd'):
            one = draw.among((0.0, 10.0, 100.0, 400.0) if name == 'kp' else (0.0, 5.0, 20.0, 60.0))
            each = tuple((one * draw.numbers(0.5, 1.5, self.n)).tolist())
            return draw.among(((one,), each))
        return {
            'mode': lambda: draw.among((*STIFF_MODES, 'computed_torque')),
            'friction_velocity': lambda: draw.among((0.001, 0.01, 0.1)),
            'ramp_time': lambda: self.duration * draw.among((0.0, 0.02, 0.1, 0.3)),
            'state_timeout': lambda: max(2.5 * period, draw.among((0.0, 0.03, 0.1, 0.3))),
            'on_stale_state': lambda: draw.among((*ACTIONS, 'hold_gravity')),
            'stale_hold_time': lambda: self.duration * draw.among((0.0, 0.05, 0.3)),
            'on_stop': lambda: draw.among(ACTIONS),
            'effort_limit_scale': lambda: draw.among((0.05, 0.5, 0.8, 0.9, 1.0, 1.0)),
            'max_reference_step': lambda: draw.among((0.01, 0.1, 1.0)),
            'max_following_error': lambda: draw.among((0.0, 0.02, 0.1, 0.3)),
            'braking_acceleration': lambda: draw.among(((), (1.0,), (20.0,))),
            'damping': lambda: draw.among((0.0, 2.0, 20.0, 200.0)),
            'position_guard': lambda: draw.among((0.0, 0.01, 0.05, 0.3)),
            'on_contact': lambda: draw.among(CONTACT_ACTIONS),
        }[name]()

    # --- the events ---

    def drawn(self) -> EventSequence:
        """Return the sequence."""
        draw = self.draw
        is_late = draw.chance(0.1)
        self.events.append((draw.number(0.0, 0.3) * self.duration * is_late, 'enable', ()))
        times = np.sort(draw.numbers(0.02, 0.98, draw.whole(5, 18))) * self.duration
        if draw.chance(0.8):  # else often nothing is ever followed
            self._follow(float(draw.number(0.03, 0.3) * self.duration))
        kinds = draw.generator.choice(list(_WEIGHTS), len(times), p=_shares())
        for time, kind in zip(times.tolist(), kinds.tolist()):
            getattr(self, '_' + kind)(time)
        steps = [*self._states(), *self._ticks(), *self._others()]
        steps.sort(key=lambda step: step.now)
        if self.is_simulated:
            steps = [step._replace(simulated=self.clock.at(step.now - BEGIN)[0]) for step in steps]
        return EventSequence(
            self.arm, self.seed, self.parameters, self.is_simulated, self.is_observed, steps
        )

    def _span(self, time: float, shortest: float, longest: float) -> tuple[float, float]:
        """Return a stretch of time from one on, more often a short one."""
        share = self.draw.number(0.0, 1.0)
        return time, time + shortest + (longest - shortest) * share * share * share

    def _change(self, time: float) -> None:
        """Change one parameter or two."""
        names = self.draw.generator.choice(_LIVE, self.draw.among((1, 1, 2)), replace=False)
        given = {name: self._value(name) for name in names.tolist()}
        if not self.knows_contacts:
            given.pop('on_contact', None)
        self.events.append((time, 'change', (given,)))

    def _mode(self, time: float) -> None:
        self.events.append((time, 'change', ({'mode': self._value('mode')},)))

    def _load(self, time: float) -> None:
        draw, arm = self.draw, self.arm.model
        heaviest = 0.5 * float(arm.inertial_parameters[:, 9].sum())
        for _ in range(draw.among((1, 1, 2, 3))):
            mass = draw.among((0.0, 0.1, 0.3, 20.0)) * heaviest * draw.number(0.5, 1.0)
            center = draw.numbers(-0.1, 0.1, 3)
            inertia = mass * 0.01 * np.diag([1.0, 1.2, 0.9])
            payload = Payload(mass, tuple(center.tolist()), inertia)
            self.events.append((time, 'load', (payload,)))
            time += draw.number(0.0, 0.1) * self.duration

    def _tilt(self, time: float) -> None:
        vector = self.draw.among((9.81, 3.0, 60.0)) * self.draw.numbers(-0.577, 0.577, 3)
        self.events.append((time, 'load', (GravityChange(vector),)))

    def _follow(self, time: float, count: int | None = None, error: float | None = None) -> None:
        """Follow the arm's own motion, from where it is, with errors; or something impossible."""
        draw = self.draw
        count = draw.whole(1, 5) if count is None else count
        way = self.duration * draw.number(0.05, 0.5)
        times = np.cumsum(np.maximum(draw.numbers(0.2, 1.0, count) * way / count, 1e-3))
        stamp, moved = self.clock.at(time)
        position, velocity, acceleration = self.motion.at(moved + times)
        error = draw.among((0.0, 0.003, 0.03, 0.3)) if error is None else error
        position = position + error * draw.numbers(-1.0, 1.0, count, self.n)
        turns = draw.among((2.0 * np.pi, 1.0, 1e308)) * draw.chance(0.1)
        joints = self._some_joints()
        names = tuple(self.arm.model.joint_names[i] for i in joints)
        if draw.chance(0.03):
            names = ('stranger', *names[1:])
        rows = [() for _ in range(count)]
        kind = draw.whole(0, 3)
        efforts = draw.numbers(-0.1, 0.1, count, self.n) * self.arm.limits
        has_effort, starts = draw.chance(0.3), draw.chance(0.35)
        delay = draw.among((-0.5, 0.1, 0.5)) * way
        clock = stamp if self.is_stamped else BEGIN + time
        trajectory = Trajectory.from_points(
            names,
            times.tolist(),
            (position[:, joints] + turns).tolist(),
            velocity[:, joints].tolist() if kind > 0 else rows,
            acceleration[:, joints].tolist() if kind > 1 else rows,
            efforts[:, joints].tolist() if has_effort else rows,
            start=clock + delay if starts else None,
        )
        self.events.append((time, 'follow', (trajectory,)))

    def _some_joints(self) -> list[int]:
        """Return all joints, or some in any order."""
        order = self.draw.generator.permutation(self.n).tolist()
        count, are_all = self.draw.whole(1, self.n), self.draw.chance(0.7)
        return list(range(self.n)) if are_all else order[:count]

    def _setpoints(self, time: float) -> None:
        """Send a setpoint each cycle for a while, at the arm's own motion with an error."""
        draw = self.draw
        count, error = draw.whole(1, 30), draw.among((0.0, 0.002, 0.01))
        offset = error * draw.numbers(-1.0, 1.0, self.n)
        has_velocity = draw.chance(0.5)
        for k in range(count):
            now = time + (k + 0.5) * self.period
            position, velocity, _ = self.motion.at(np.array([self.clock.at(now)[1]]))
            point = (position[0] + offset).tolist()
            rate = velocity[0].tolist() if has_velocity else ()
            names = self.arm.model.joint_names
            trajectory = Trajectory.from_points(names, [0.0], [point], [rate], [()], [()])
            self.events.append((now, 'follow', (trajectory,)))

    def _cancel(self, time: float) -> None:
        self.events.append((time, 'cancel', ()))

    def _stop(self, time: float) -> None:
        """Stop as the node does: brake, then the stop command, then nothing; or break it off."""
        draw = self.draw
        _, word = self._span(time, 0.005, 0.6 * self.duration)
        period, count = draw.among((0.002, 0.01)), draw.whole(1, 20)
        self.events.append((time, 'begin_stop', ()))
        for k in range(count):
            self.events.append((word + k * period, 'stop_command', ()))
        end = word + count * period
        if draw.chance(0.7):
            self.silences.append((word - 1e-4, end))
        if draw.chance(0.8):
            self.events.append((end, 'disable', ()))
        self.events.append((self._span(end, 0.001, 0.3)[1], 'enable', ()))

    def _disable(self, time: float) -> None:
        self.events.append((time, 'disable', ()))
        self.events.append((self._span(time, 0.001, 0.3)[1], 'enable', ()))

    def _contact(self, time: float) -> None:
        for _ in range(self.draw.among((1, 1, 3))):
            self.events.append((time, 'react', (self.draw.among(CONTACT_ACTIONS),)))
            time += self.draw.number(0.0, 0.05) * self.duration

    def _push(self, time: float) -> None:
        begin, end = self._span(time, 0.01, 0.5 * self.duration)
        share = self.draw.among((0.05, 0.3, 1.5)) * self.draw.numbers(-1.0, 1.0, self.n)
        self.pushes.append((begin, end, share * self.arm.limits))

    def _silence(self, time: float) -> None:
        longest = max(0.1, min(0.5, 0.4 * self.duration))
        self.silences.append(self._span(time, 0.015, longest))

    def _taken_over(self, time: float) -> None:
        torque = self.draw.numbers(-0.5, 0.5, self.n) * self.arm.limits
        self.events.append((time, 'continue_from', (torque,)))

    def _added(self, time: float) -> None:
        """Add an effort a few times, now and then one that cannot be used."""
        draw, names = self.draw, self.arm.model.joint_names
        for _ in range(draw.whole(1, 12)):
            order = draw.generator.permutation(self.n).tolist()
            joints = order[: draw.whole(1, self.n)]
            effort = (draw.numbers(-0.3, 0.3, self.n) * self.arm.limits)[joints].tolist()
            named = tuple(names[i] for i in joints)
            kind = draw.whole(0, 11)
            if kind == 0:
                effort[0] = float('nan')
            elif kind == 1:
                named = ('stranger', *named[1:])
            elif kind == 2:
                effort = effort[1:]
            elif kind == 3:
                named = tuple(f'other_{name}' for name in names)
                effort = np.resize(effort, self.n).tolist()
            elif kind == 4:
                named, effort = (*names, *names), [*effort, *effort]
            elif kind == 5:
                named, effort = (names[0],) * self.n, [0.0] * self.n
            self.events.append((time, 'add_effort', (named, effort)))
            time += draw.number(0.0, 0.1) * self.duration

    def _listen(self, time: float) -> None:
        """Estimate external torques for a while, or not."""
        self.events.append((time, 'observe', (False,)))
        self.events.append((self._span(time, 0.001, 0.3)[1], 'observe', (True,)))

    def _state_fault(self, time: float) -> None:
        """Let a few joint states be wrong, or many."""
        draw = self.draw
        is_free = not np.isfinite(self.arm.model.velocity_limits).any()
        kinds = (*_STATE_FAULTS, *(('wild',) * 6 if is_free else ()))
        kind, joint = draw.among(kinds), draw.whole(0, self.n - 1)
        size = draw.among((0.03, 0.3, 2.0)) * draw.among((-1.0, 1.0))
        count, is_lasting = draw.whole(1, 3), draw.chance(0.4)
        length = (count - 0.5) * self.period
        if is_lasting:
            length = draw.number(0.02, 0.5) * self.duration
        if kind == 'elsewhere':
            length = self.duration
        self.faults.append((time, time + length, kind, joint, size))

    def _turn_clock(self, time: float) -> None:
        """Let the stamps' clock jump, stand still or run at another pace for a while."""
        draw = self.draw
        kind = draw.among(('back', 'ahead', 'far', 'stop', 'fast', 'fast', 'slow', 'little'))
        jump = {'back': -5.0, 'ahead': 0.15, 'far': 50.0, 'little': 0.06}.get(kind, 0.0)
        pace = {'stop': 0.0, 'fast': 3.0, 'slow': 0.5}.get(kind, 1.0)
        _, end = self._span(time, 0.06, max(0.1, 0.6 * self.duration))
        begin = max(time, self.clock.pieces[-1][0])
        self.clock.turn(begin, jump, pace)
        self.clock.turn(max(end, begin), 0.0, 1.0)

    # --- the steps ---

    def _states(self) -> Iterator[Step]:
        """Yield the joint states."""
        draw, n, names = self.draw, self.n, self.arm.model.joint_names
        times = self.period * np.arange(1, self.cycles + 1)
        moved = times
        if self.is_simulated:
            moved = np.array([self.clock.at(time)[1] for time in times.tolist()])
        q, qd, qdd = self.motion.at(moved)
        noise = draw.among((0.0, 0.0, 1e-6, 1e-5))
        speed_noise = draw.among((0.0, 0.0, 1e-4, 3e-3))
        q = q + noise * draw.numbers(-1.0, 1.0, *q.shape)
        qd = qd + speed_noise * draw.numbers(-1.0, 1.0, *q.shape)
        model = self.arm.model
        rigid = inverse_dynamics(model, q, qd, qdd)
        effort = rigid + friction_torque(model, qd, rigid_torque=rigid)
        for begin, end, push in self.pushes:
            effort[(times >= begin) & (times < end)] -= push
        effort = effort / self.scale
        has_effort = draw.chance(0.8)
        has_velocity = draw.chance(0.9)
        has_order, is_split = draw.chance(0.1), draw.chance(0.06)
        delays = draw.among((1e-4, 1e-4, 0.3)) * draw.numbers(0.0, 1.0, self.cycles)
        delays = np.minimum(delays, 0.5) * self.period
        for k, time in enumerate(times.tolist()):
            if any(begin <= time < end for begin, end in self.silences):
                continue
            position, velocity = q[k].copy(), qd[k].copy()
            stamp = self.clock.at(time)[0] if self.is_stamped else 0.0
            active = [fault for fault in self.faults if fault[0] <= time < fault[1]]
            for fault in active:
                stamp = self._damaged(fault, time, position, velocity, stamp)
            given = velocity.tolist() if has_velocity else []
            efforts = effort[k].tolist() if has_effort else []
            if any(fault[2] == 'no_velocities' for fault in active):
                given = []
            if any(fault[2] == 'no_efforts' for fault in active):
                efforts = []
            now = BEGIN + time + float(delays[k])
            age = float(delays[k])
            if any(fault[2] == 'old' for fault in active):
                age += 0.05
            message = Message(names, position.tolist(), given, efforts, stamp, age)
            if is_split and n > 1:
                yield Step(now, 'state', (_part(message, range(n - 1)),))
                yield Step(now + 1e-5, 'state', (_part(message, range(n - 1, n)),))
            elif has_order:
                yield Step(now, 'state', (_part(message, range(n - 1, -1, -1)),))
            else:
                yield Step(now, 'state', (message,))

    def _damaged(
        self,
        fault: tuple[float, float, str, int, float],
        time: float,
        position: np.ndarray,
        velocity: np.ndarray,
        stamp: float,
    ) -> float:
        """Do to a state what a fault does, and return its stamp."""
        begin, _, kind, joint, size = fault
        if kind in ('outlier', 'elsewhere'):
            position[joint] += size
        elif kind == 'scatter':
            position[joint] += size * (1.0 + round((time - begin) / self.period) % 5)
        elif kind == 'turn':
            position[joint] += 2.0 * np.pi * np.sign(size)
        elif kind == 'overspeed':
            velocity[joint] += 2.0 * np.sign(size) * self.arm.speeds[joint]
        elif kind == 'reversed':
            velocity[joint] *= -1.0
        elif kind == 'wild' and size > 0.0 and not np.isfinite(self.arm.model.velocity_limits[0]):
            velocity[0] = 1.7e308  # feedback and damping of it overflow, whatever the order
        elif kind == 'wild':
            velocity[joint] = 1e200  # its square overflows, what is linear in it does not
        elif kind in ('unknown_velocity', 'frozen', 'burst'):
            velocity[joint] = np.nan
        elif kind == 'hole':
            position[joint] = np.nan
        elif kind == 'degrees':
            position *= 180.0 / np.pi
        if not self.is_stamped or kind == 'unstamped':
            return 0.0
        if kind == 'late':
            return stamp - 0.01
        if kind == 'frozen':
            return self.clock.at(begin)[0]
        if kind == 'burst':
            return self.clock.at(begin)[0] + 1e-6 * round((time - begin) / self.period)
        return stamp

    def _ticks(self) -> Iterator[Step]:
        """Yield the watchdog's ticks, now and then a late one."""
        count = int(self.duration / TICK) + 2
        late = self.draw.numbers(0.0, 1.0, count)
        for k, share in enumerate(late.tolist()):
            lateness = 0.3 * TICK * (share > 0.9) + 2.5e-5
            yield Step(BEGIN + k * TICK + lateness, 'tick')

    def _others(self) -> Iterator[Step]:
        """Yield the events, none of them after the end."""
        for time, kind, given in self.events:
            if time <= self.duration:
                yield Step(BEGIN + time, kind, given)


def _part(message: Message, joints: Sequence[int]) -> Message:
    """Return a message of some joints only, in their order."""

    def part(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in joints] if len(values) else []

    return message._replace(
        names=tuple(part(message.names)),
        position=part(message.position),
        velocity=part(message.velocity),
        effort=part(message.effort),
    )


_LIVE = (
    'mode',
    'kp',
    'kd',
    'terms.inertial',
    'terms.coriolis',
    'terms.gravity',
    'terms.friction',
    'friction_velocity',
    'ramp_time',
    'state_timeout',
    'on_stale_state',
    'stale_hold_time',
    'on_stop',
    'effort_limit_scale',
    'torque_rate_limit',
    'max_reference_step',
    'max_following_error',
    'braking_acceleration',
    'damping',
    'position_guard',
    'on_contact',
)
_STATE_FAULTS = (
    'outlier',
    'outlier',
    'elsewhere',
    'turn',
    'overspeed',
    'reversed',
    'wild',
    'scatter',
    'unknown_velocity',
    'no_velocities',
    'frozen',
    'burst',
    'no_efforts',
    'hole',
    'degrees',
    'unstamped',
    'late',
    'old',
)
_WEIGHTS = {
    'change': 6,
    'mode': 2,
    'load': 1.5,
    'tilt': 1,
    'follow': 7,
    'setpoints': 1,
    'cancel': 1.5,
    'stop': 1,
    'disable': 0.4,
    'contact': 1,
    'push': 1,
    'silence': 2,
    'taken_over': 0.4,
    'added': 1.5,
    'state_fault': 4,
    'turn_clock': 1.5,
    'listen': 0.3,
}


def _shares() -> np.ndarray:
    weights = np.array(list(_WEIGHTS.values()))
    return weights / weights.sum()


def drawn(arm: str, seed: int) -> EventSequence:
    """Return the sequence of an arm and a seed."""
    return _Drawer(arms()[arm], seed).drawn()


def every_sequence() -> Iterator[tuple[str, int]]:
    """Yield arm and seed of every sequence."""
    for arm in arms():
        for seed in SEEDS:
            yield arm, seed
