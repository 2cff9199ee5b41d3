# SPDX-License-Identifier: Apache-2.0
"""
Does a commanded newton metre become one? Scale, sign and order of commands, joint by joint.

``CommandProbe`` makes the commands: on top of what holds the arm, a slow sine on one channel after
another, which grows until a joint moves. ``check_commands`` reads the answer: the model says which
torque the motion took, and that torque is the command times its scale, less friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_number, checked_per_joint
from robodyn_ros.description.records import Finding, note, warning
from robodyn_ros.dynamics import coriolis_matrix, gravity_torque, mass_matrix
from robodyn_ros.dynamics.friction import CURVE_VELOCITIES
from robodyn_ros.errors import InsufficientRecording, InvalidArgument, Phrase
from robodyn_ros.identification.preparation import (
    EvenSamples,
    even_samples,
    low_passed,
)
from robodyn_ros.identification.recording import (
    STANDSTILL,
    Recording,
    checked_recordings,
    findings_of,
)
from robodyn_ros.model import RobotModel, checked_model, position_unit
from robodyn_ros.motions.point_to_point import known_effort_limits
from robodyn_ros.record import Record, quantity
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

# The sine: its first amplitude over the largest, its growth in a period until a joint is seen to
# move, and from then on; how many periods it may last at the largest, and when it moves.
_FIRST, _GROWTH, _SLOW_GROWTH = 0.002, 1.2, 1.04
_PERIODS = 40
# So many periods with motion are enough; a sine that a drift ended before that is made again, as
# often at most, from this part of the amplitude on at which the joint moved.
_PLENTY, _MOST_SINES, _AGAIN = 25, 4, 0.6
# How far an offset moves against a drift in a period, of the amplitude.
_BALANCE = 0.15
# Before each channel, in which the arm comes to rest [s].
_REST = 0.5
# Of the motion that is allowed: where a joint is seen to move, and where the sine fades.
_SEEN, _ENOUGH = 0.03, 0.4

# Direction of motion is that of velocities below this [Hz] and 0.4 of the recording's rate.
_SIGN_CUTOFF, _RATE_PART = 20.0, 0.4
# A joint slides where it keeps its direction for so many samples, and so long [s].
_LEAST_SLIDE, _LEAST_TIME = 6, 0.02
_LEAST_WAY = 0.003
_TEST_FUNCTIONS = 3
_POSITIONS = 200  # of which a joint's mean inertia is taken
# Least number of slides of a joint; a scale with a larger deviation than this is unknown.
_LEAST_SLIDES, _UNKNOWN = 6, 0.1
# Report a scale that differs from one by more than this and this many standard deviations, and
# a deviation above the third.
_OFF, _CERTAIN, _UNCERTAIN = 0.05, 3.0, 0.03


# --- the experiment ------------------------------------------------------------------------------


class CommandProbe:
    """
    The commands of the experiment, from each joint state the next; it ends with what it began.

    One channel after another gets a sine of a growing amplitude. Where a joint has moved most of
    ``most_motion``, the sine fades. Where one has moved all of it, or joint states are late, the
    check is over at once, and ``problem`` says so.

    Parameters
    ----------
    model : RobotModel
    holding : array-like, shape (n,) or float
        Commands under which the arm stays where it is, in the drives' unit.
    largest : array-like, shape (n,) or float, optional
        Amplitudes that are not exceeded, in the drives' unit; where not given, the effort limits.
        They begin at 0.2 % of it.
    most_motion : float
        Of any joint while a channel is probed [rad or m].
    frequency : float
        Of the sine [Hz]: higher for a light joint in a stiff gear, lower for a heavy one.
    longest_pause : float
        Between two joint states [s]: the sine, which goes on meanwhile, jumps.

    Attributes
    ----------
    holding : array, shape (n,)
    is_over : bool
    problem : str
        Why it ended early; empty: it did not.

    Raises
    ------
    InvalidArgument, NonFiniteValue
        A number is not positive, or ``largest`` not given for a joint without an effort limit.
    """

    def __init__(
        self,
        model: RobotModel,
        *,
        holding: ArrayLike = 0.0,
        largest: ArrayLike | None = None,
        most_motion: float = 0.1,
        frequency: float = 2.5,
        longest_pause: float = 0.1,
    ) -> None:
        self._model = checked_model(model)
        self.is_over = False
        self.problem = ''
        self.holding = checked_per_joint('holding', holding, model.n)
        self._largest = _largest(model, largest)
        self._most_motion = checked_number('most_motion', most_motion)
        self._frequency = checked_number('frequency', frequency)
        self._longest_pause = checked_number('longest_pause', longest_pause)
        for name in ('most_motion', 'frequency', 'longest_pause'):
            if not 0 < (value := getattr(self, f'_{name}')) < np.inf:
                raise InvalidArgument(f'argument {name}', value, 'a positive number')
        self._channel = -1
        self._sine: _Sine | None = None
        self._begin = self._last = np.nan
        self._start = np.zeros(model.n)

    def command(self, time: float, position: ArrayLike) -> FloatArray:
        """
        Return the command (n,) in the drives' unit, for a joint state.

        Parameters
        ----------
        time : float
            Its stamp [s].
        position : array-like, shape (n,)
            [rad or m]
        """
        q = checked_array('position', position, (self._model.n,))
        if self._sine is None or self._sine.is_over:
            self._next(time, q)
        result = self.holding.copy()
        if self.is_over or self._sine is None:
            return result
        pause, self._last = time - self._last, time
        if not 0.0 <= pause <= self._longest_pause:
            self.is_over = True
            self.problem = (
                f'joint states are {pause:.3g} s apart; allowed: {self._longest_pause:g} at most, '
                'none that runs backwards'
            )
            return result
        way = q - self._start
        worst = int(np.abs(way).argmax())
        if abs(way[worst]) > self._most_motion:
            self.is_over = True
            unit = position_unit(self._model.dh.prismatic[worst])
            self.problem = (
                f'joint {self._model.joint_names[worst]!r} has moved {abs(way[worst]):.6g} {unit} '
                f'while the command of {self._model.joint_names[self._channel]!r} was probed; '
                f'allowed: {self._most_motion:.6g} {unit}'
            )
            return result
        since = time - self._begin
        if since < 0:
            return result
        part = self._sine.value(since, float(way[worst] / self._most_motion))
        result[self._channel] += self._largest[self._channel] * part
        return result

    def _next(self, time: float, q: FloatArray) -> None:
        again = None if self._sine is None else self._sine.again()
        if again is None:
            self._channel += 1
            self.is_over = self._channel >= self._model.n
            if self.is_over:
                return
        self._begin, self._last, self._start = time + _REST, time, q
        self._sine = again or _Sine(self._frequency)


class _Sine:
    """
    A sine of one channel, from -1 to 1: it grows, keeps the joint where it is, and fades.

    A joint that gravity pulls, and friction holds, moves to one side only, with every period. An
    offset grows against that. Which sign it must have is seen from the work of the command: a
    drive that is not reversed feeds the joint.
    """

    def __init__(self, frequency: float, first: float = _FIRST, offset: float = 0.0) -> None:
        self.is_over = False
        self._frequency, self._first_amplitude = frequency, first
        self._seen = self._fade = np.nan
        self._period = self._moving = 0
        self._count = 1
        self._offsets = (0.0, offset)  # at the begin of this period, and at its end
        self._last = 0.0
        self._new_period(0.0)

    def _new_period(self, way: float) -> None:
        self._first = self._low = self._high = way
        self._work = 0.0

    def again(self) -> _Sine | None:
        """Return the sine that goes on where this one ended too early; None: it did not."""
        if np.isnan(self._seen) or self._moving >= _PLENTY or self._count >= _MOST_SINES:
            return None
        first = _AGAIN * self._first_amplitude * _GROWTH**self._seen
        following = _Sine(self._frequency, min(first, 1.0), self._offsets[1])
        following._moving, following._count = self._moving, self._count + 1
        return following

    def value(self, time: float, way: float) -> float:
        """Return it at a time from its begin [s]; the joint has gone part ``way`` of its bound."""
        periods = time * self._frequency
        if np.isnan(self._seen) and abs(way) > _SEEN:
            self._seen = periods
        search = periods if np.isnan(self._seen) else self._seen
        growth = np.log(self._first_amplitude) + np.log(_GROWTH) * search
        growth += np.log(_SLOW_GROWTH) * (periods - search)
        amplitude = float(np.exp(min(growth, 0.0)))
        longest = (
            -np.log(self._first_amplitude) / np.log(_GROWTH)
            if np.isnan(self._seen)
            else self._seen
        )
        if np.isnan(self._fade) and (abs(way) > _ENOUGH or periods > longest + _PERIODS):
            self._fade = periods
        if int(periods) > self._period:
            self._period = int(periods)
            self._moving += self._high - self._low > _SEEN
            self._offsets = (self._offsets[1], self._offsets[1] - amplitude * self._drift(way))
            self._new_period(way)
        part = periods - int(periods)
        offset = (1.0 - part) * self._offsets[0] + part * self._offsets[1]
        faded = 0.0 if np.isnan(self._fade) else min(periods - self._fade, 1.0)
        self.is_over = faded == 1.0
        wave = float(np.clip(offset + amplitude * np.sin(2.0 * np.pi * periods), -1.0, 1.0))
        self._work += wave * (way - self._last)
        self._last, self._low, self._high = way, min(self._low, way), max(self._high, way)
        return wave * (1.0 - faded**2 * (3.0 - 2.0 * faded))

    def _drift(self, way: float) -> float:
        """Return by which part of the amplitude the offset is too large."""
        reach = self._high - self._low
        if reach < _SEEN:
            return 0.0
        return _BALANCE * float(np.sign(self._work)) * (way - self._first) / reach


def _largest(model: RobotModel, given: ArrayLike | None) -> FloatArray:
    if given is None:
        largest = known_effort_limits(model)
        for name, value in zip(model.joint_names, largest, strict=True):
            if not np.isfinite(value):
                raise InvalidArgument(
                    f'largest command of joint {name!r}',
                    Phrase('not given, and no effort limit'),
                    "a positive number in the drive's unit",
                )
        return largest
    largest = checked_per_joint('largest', given, model.n)
    for name, value in zip(model.joint_names, largest, strict=True):
        if value <= 0:
            raise InvalidArgument(f'largest command of joint {name!r}', value, 'above zero')
    return largest


# --- the answer ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class JointCommand(Record):
    """
    What moves one joint.

    Attributes
    ----------
    joint : str
    channel : str
        The joint whose command moves this one; empty where unknown, and the rest is NaN.
    sign : int
        1, -1 where the drive is reversed, 0 where unknown.
    scale, deviation : float
        Torque for a unit of the command [N m or N], negative where the drive is reversed; NaN
        where it is unknown, as that of a joint is whose rotor's inertia is unknown and matters.
        The deviation holds what a lag of the drive may take from it, as long as the delay; not
        the error of the model's inertia.
    friction : float
        Coulomb friction that was found beside it [N m or N].
    delay : float
        From command to torque, to first order [s].
    """

    joint: str
    channel: str
    sign: int
    scale: float
    deviation: float
    friction: float
    delay: float


@dataclass(frozen=True, eq=False, repr=False)
class CommandCheck(Record):
    """
    What commands do to an arm.

    Attributes
    ----------
    joints : tuple of n JointCommand
    findings : tuple of Finding
        The same as text, with what to do about it, and what the motion does not tell.
    """

    joints: tuple[JointCommand, ...]
    findings: tuple[Finding, ...]

    def __repr__(self) -> str:
        each = ', '.join(
            f'{x.joint}: ?'
            if np.isnan(x.scale)
            else f'{x.joint}: {quantity(x.scale, "", x.deviation)}'
            for x in self.joints
        )
        return f'CommandCheck({each})'

    @property
    def is_complete(self) -> bool:
        """Whether every joint has a channel, and none has another's."""
        channels = {each.channel for each in self.joints}
        return '' not in channels and len(channels) == len(self.joints)

    @property
    def order(self) -> tuple[str, ...]:
        """Joints in the order of the channels, for the parameter ``joints``; empty: unknown."""
        if not self.is_complete:
            return ()
        moved = {each.channel: each.joint for each in self.joints}
        return tuple(moved[each.joint] for each in self.joints)

    @property
    def command_scale(self) -> tuple[float, ...]:
        """
        Command for a unit of torque, in that ``order``, for the parameter of this name.

        Empty: a scale, or the order, is unknown.
        """
        scale = {each.joint: each.scale for each in self.joints}
        if np.isnan([*scale.values()]).any():
            return ()
        return tuple(1.0 / scale[name] for name in self.order)


@one_thread()
def check_commands(model: RobotModel, recordings: Recording | Sequence[Recording]) -> CommandCheck:
    """
    Return which command moves which joint, by which torque for a unit, from recorded motion.

    Parameters
    ----------
    model : RobotModel
        The arm with its load and its rotors' inertia; without gravity
        (``model.with_gravity((0, 0, 0))``) where the drives compensate that themselves.
    recordings : Recording or sequence of Recording
        Of ``CommandProbe``: positions, and **commands as efforts**, in the drives' unit, those of
        a joint under its name. Measured efforts and velocities are not used.

    Raises
    ------
    NoSuchName
        A recording lacks a joint of the model.
    InsufficientRecording
        No joint slides.

    Notes
    -----
    While a joint slides one way, its momentum p = M qd obeys dp/dt = s (u - d du/dt) + C^T qd - g
    - Fc sign(qd) - Fv qd + c. Multiplied by functions that vanish where the slide begins and ends,
    and integrated by parts, this needs no acceleration, and nothing of where the joint stuck. The
    scale s, the delay d, Fc, Fv, a curve of friction and c are those of least squares; the channel
    is the one that leaves the smallest residual. If the delay is a lag, it takes (w d)² of a sine.

    References
    ----------
    Shinbrot 1957, modulating functions.
    """
    checked_model(model)
    given = [
        each.of_joints(model.joint_names) for each in checked_recordings('recordings', recordings)
    ]
    slides: list[list[FloatArray]] = [[] for _ in range(model.n)]
    for stretch in (part for each in given for part in even_samples(each, standing=True)):
        for j, mine in enumerate(_slides(model, stretch)):
            slides[j].extend(mine)
    if not any(slides):
        raise InsufficientRecording(
            'recording', Phrase('no joint that slides'), 'a larger command'
        )
    rate = np.max([_rates(each) for each in given], axis=0)
    own = np.concatenate([_own_inertia(model, each) for each in given]).mean(axis=0)
    joints = tuple(
        _joint_command(model, j, mine, rate, float(own[j])) for j, mine in enumerate(slides)
    )
    return CommandCheck(
        joints,
        (*findings_of(given), *_findings(model, joints)),
    )


def _slides(model: RobotModel, stretch: EvenSamples) -> list[list[FloatArray]]:
    """
    Return the equations of each joint's slides, each array, shape (functions, 1 + n + 4 + n + 1).

    The change of momentum that is not C^T qd - g; then the integrals of the commands, of minus the
    direction, of minus the velocity, of minus friction's curve, of one, of minus the commands'
    slope, and of what a rotor of 1 kg m² or kg adds to the first.
    """
    step, n = 1.0 / stretch.rate, model.n
    cutoff = min(_SIGN_CUTOFF, _RATE_PART * stretch.rate)
    q = low_passed(stretch.position, cutoff, stretch.rate)
    qd = np.gradient(q, step, axis=0)
    raw = np.gradient(stretch.position, step, axis=0)  # its integrals are the positions' own
    direction = np.where(np.abs(qd) > STANDSTILL, np.sign(qd), 0.0)
    result: list[list[FloatArray]] = [[] for _ in range(n)]
    for j in range(n):
        ends = np.flatnonzero(np.diff(direction[:, j])) + 1
        for part in np.split(np.arange(len(q)), ends):
            duration = (len(part) - 1) * step
            if not direction[part[0], j] or len(part) < _LEAST_SLIDE or duration < _LEAST_TIME:
                continue
            if abs(q[part[-1], j] - q[part[0], j]) < _LEAST_WAY:
                continue
            momentum = np.einsum('kj,kj->k', mass_matrix(model, q[part])[:, j], raw[part])
            own = coriolis_matrix(model, q[part], qd[part])
            other = np.einsum('ki,ki->k', own[:, :, j], qd[part])
            other -= gravity_torque(model, q[part])[:, j]
            columns = np.column_stack(
                [
                    stretch.effort[part],
                    -direction[part, j],
                    -qd[part, j],
                    -np.tanh(qd[part, j] / CURVE_VELOCITIES[0]),
                    np.ones(len(part)),
                ]
            )
            at = np.pi * np.linspace(0.0, 1.0, len(part))
            rows = []
            for m in range(1, _TEST_FUNCTIONS + 1):
                value = np.sin(at) * np.sin(m * at)
                slope = np.cos(at) * np.sin(m * at) + m * np.sin(at) * np.cos(m * at)
                slope *= np.pi / duration
                left = -(slope @ momentum) - value @ other
                late = slope @ stretch.effort[part]  # minus the integral of the commands' slope
                row = np.array([left, *(value @ columns), *late, -(slope @ raw[part, j])])
                rows.append(step / np.sqrt(duration) * row)
            result[j].append(np.array(rows))
    return result


def _rates(recording: Recording) -> FloatArray:
    """Return how fast the commands change (n,), as the angular frequency of a sine [rad/s]."""
    size = np.maximum(recording.effort.std(axis=0), 1e-300)
    return np.gradient(recording.effort, recording.time, axis=0).std(axis=0) / size


def _own_inertia(model: RobotModel, recording: Recording) -> FloatArray:
    """Return what each joint turns in some of the positions, shape (K, n) [kg m² or kg]."""
    every = max(1, len(recording.time) // _POSITIONS)
    return np.diagonal(mass_matrix(model, recording.position[::every]), axis1=1, axis2=2)


def _joint_command(
    model: RobotModel,
    joint: int,
    slides: Sequence[FloatArray],
    rate: FloatArray,
    own_inertia: float,
) -> JointCommand:
    name, nan = model.joint_names[joint], float('nan')
    unknown = JointCommand(name, '', 0, nan, nan, nan, nan)
    if len(slides) < _LEAST_SLIDES:
        return unknown
    fits = [_fit(slides, channel, model.n) for channel in range(model.n)]
    channel = int(np.argmin([residual for *_, residual in fits]))
    (scale, deviation), friction, late, residual = fits[channel]
    if not np.isfinite(residual) or deviation > _UNKNOWN * abs(scale):
        return unknown
    found = JointCommand(name, model.joint_names[channel], int(np.sign(scale)), nan, nan, nan, nan)
    if model.rotor_inertia[joint] == 0.0:
        # A rotor as heavy as what it turns is usual behind a gear.
        heavier = _fit(slides, channel, model.n, rotor=own_inertia)[0][0]
        if abs(heavier - scale) > _OFF * abs(scale):
            return found
    delay = late / scale
    lag = abs(scale) * (float(rate[channel]) * delay) ** 2
    return replace(
        found,
        scale=scale,
        deviation=float(np.hypot(deviation, lag)),
        friction=friction,
        delay=delay,
    )


def _fit(
    slides: Sequence[FloatArray], channel: int, n: int, rotor: float = 0.0
) -> tuple[tuple[float, float], float, float, float]:
    """
    Return scale and deviation, Coulomb friction, scale times delay, and the residual.

    As if this channel moved the joint, and its rotor were heavier than the model has it. The
    deviation is robust: the equations of one slide share what the model lacks there.
    """
    rows = np.concatenate(slides)
    own = [1 + channel, *range(n + 1, n + 5), n + 5 + channel]
    matrix, target = rows[:, own], rows[:, 0] + rotor * rows[:, -1]
    size = np.linalg.norm(matrix, axis=0)
    if not size.all() or len(slides) <= matrix.shape[1]:
        return (np.nan, np.nan), np.nan, np.nan, np.inf
    inverse = np.linalg.pinv(matrix / size, rcond=1e-6)
    solution = (inverse @ target) / size
    errors = target - matrix @ solution
    pieces = np.split(np.arange(len(rows)), np.cumsum([len(each) for each in slides])[:-1])
    of_slides = np.stack([inverse[:, piece] @ errors[piece] for piece in pieces])
    count = len(slides) / (len(slides) - matrix.shape[1])
    deviation = np.sqrt(count * (of_slides**2).sum(axis=0)) / size
    return (
        (float(solution[0]), float(deviation[0])),
        float(solution[1]),
        float(solution[5]),
        float(np.linalg.norm(errors)),
    )


# --- in words ------------------------------------------------------------------------------------


def _findings(model: RobotModel, joints: Sequence[JointCommand]) -> Iterator[Finding]:
    """Yield as text what the commands do, and what to do about it."""
    for each, prismatic in zip(joints, model.dh.prismatic, strict=True):
        element = f'command of joint {each.joint!r}'
        if not each.channel:
            message = (
                f'{element} is not known: no command moved the joint often enough, or its '
                'friction hides its inertia; allow a larger command or motion, and give the rotor '
                'inertia'
            )
            yield note('command_undecided', element, _rounded(each.deviation), message)
            continue
        if each.channel != each.joint:
            message = f'{element} is that of {each.channel!r}: the order of the commands is wrong'
            message += '; parameter joints'
            yield warning('command_order', element, _rounded(each.scale), message)
        if np.isnan(each.scale):
            message = f'{element} has the wrong sign, and' if each.sign < 0 else element
            message += (
                ' has an unknown scale: the inertia of the rotor, behind a gear a large part of '
                'what moves, is not in the model; give the rotor inertia'
            )
            yield warning('rotor_unknown', element, each.sign, message)
            continue
        scale, unit = _rounded(each.scale), 'N' if prismatic else 'N m'
        size = quantity(each.scale, unit, each.deviation)
        if each.scale < 0:
            message = f'{element} has the wrong sign: 1 unit = {size}'
            message += '; a negative command_scale'
            yield warning('command_inverted', element, scale, message)
        if abs(abs(each.scale) - 1.0) > max(_OFF, _CERTAIN * each.deviation):
            message = (
                f'{element} is not in {unit}: 1 unit = {size}, if the inertia of the model is '
                f'right; command_scale {1.0 / each.scale:.4g}'
            )
            yield warning('command_scaled', element, scale, message)
        if each.deviation > _UNCERTAIN * abs(each.scale):
            part = each.deviation / abs(each.scale)
            message = (
                f'{element} has a scale that is known to {part:.0%} only: allow a larger motion, '
                'or join several recordings'
            )
            yield note('command_uncertain', element, _rounded(part), message)


def _rounded(value: float) -> float:
    return float(f'{value:.4g}')
