# SPDX-License-Identifier: Apache-2.0
"""
A motion from which an arm's parameters can be identified, and how well.

It is a Fourier series for each joint; slow strokes that show friction, and poses to stand in,
follow on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from robodyn_ros.arguments import checked_array, checked_number, checked_type
from robodyn_ros.description.records import Finding, note, warning
from robodyn_ros.errors import InvalidArgument, Phrase
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion, Shapes
from robodyn_ros.identification.exciting_motion.information import ArmFunctions, Knowledge
from robodyn_ros.identification.exciting_motion.motion_limits import MotionLimits, motion_limits
from robodyn_ros.identification.exciting_motion.obstacles import (
    Obstacle,
    Region,
    regions,
)
from robodyn_ros.identification.exciting_motion.search import Objective, searched
from robodyn_ros.identification.exciting_motion.verification import LimitUse, limit_use
from robodyn_ros.identification.parameters import IdentifiedParameter
from robodyn_ros.identification.progress import Progress, reporting
from robodyn_ros.model import RobotModel, checked_model
from robodyn_ros.motions.motion_samples import MotionSamples
from robodyn_ros.motions.point_to_point import PointToPoint
from robodyn_ros.record import Record
from robodyn_ros.spatial import FloatArray
from robodyn_ros.threads import one_thread

_MOST_HARMONICS = 20
_LONGEST = 3600.0  # of a series [s]
_SAMPLE_RATE = 100.0  # of ``Excitation.trajectory`` [Hz]
_TYPICAL_MOTIONS = 10
_ROUNDING = 1e-9
_LIMITS = 'MotionLimits, as motion_limits(model) returns'
# Largest speeds of the slow strokes [rad/s or m/s], each there and back.
_SLOW_SPEEDS = (0.02, 0.06, 0.2)
_LONGEST_STROKE = 10.0  # s
_DWELL = 1.0  # in each pose [s]
_TRAVEL_FRACTION = 0.5
# Of the quintic: largest velocity over the mean, largest acceleration.
_MEAN_TO_LARGEST = 15 / 8
_LARGEST_ACCELERATION = 10 / np.sqrt(3)
_SHRINKINGS = 6
_TRIES = 200
# Whether a motion keeps all limits.
_Allowed = Callable[[PointToPoint], bool]


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Record):
    """
    A motion from rest to rest that shows an arm's parameters, and what it will show.

    Attributes
    ----------
    joint_names : tuple of n str
    segments : tuple of FourierMotion, PointToPoint and Rest
        One after the other; the series comes first, and each begins where the last one ends.
    limits : MotionLimits
        What every segment stays within.
    margin : float
        Distance that links keep from obstacles [m].
    use : tuple of LimitUse
        What each segment that moves uses of them, at every time.
    criterion : float
        Information gained by the series: half the logarithm of the determinant of the covariance
        of all parameters before it, divided by that after it [nat].
    parameters : tuple of IdentifiedParameter
        Base parameters, then drive terms, with the URDF's values and the deviations that are
        expected after an identification.
    findings : tuple of Finding
        What was assumed, what was left out, what the motion does not show.
    seed : int
    """

    joint_names: tuple[str, ...]
    segments: tuple[FourierMotion | PointToPoint | Rest, ...]
    limits: MotionLimits
    margin: float
    use: tuple[LimitUse, ...]
    criterion: float
    parameters: tuple[IdentifiedParameter, ...]
    findings: tuple[Finding, ...]
    seed: int

    def __repr__(self) -> str:
        return (
            f'Excitation({len(self.joint_names)} joints, {self.duration:.4g} s, '
            f'{self.criterion:.4g} nat, {len(self.findings)} findings)'
        )

    @property
    def duration(self) -> float:
        """Of all segments together [s]."""
        return float(sum(segment.duration for segment in self.segments))

    @property
    def start(self) -> FloatArray:
        """Where it begins and ends, array, shape (n,) [rad or m]."""
        return self.segments[0].start

    @property
    def expected_deviation(self) -> FloatArray:
        """Of each base parameter after an identification, array, shape (count,)."""
        drive = 4 * len(self.joint_names)
        return np.array([each.deviation for each in self.parameters[:-drive]])

    @property
    def not_excited(self) -> tuple[IdentifiedParameter, ...]:
        """Parameters about which the motion is hardly informative."""
        return tuple(each for each in self.parameters if not each.is_measured)

    @property
    def clearance(self) -> float:
        """Least distance from an obstacle [m]; infinite where there are none."""
        return self.margin + min(each.spare for each in self.use)

    @cached_property
    def trajectory(self) -> MotionSamples:
        """The motion at 100 Hz."""
        return self.sampled(_SAMPLE_RATE)

    def sampled(self, rate: float) -> MotionSamples:
        """
        Return the motion at even times.

        Raises
        ------
        InvalidArgument
            The rate is not positive.
        """
        if not 0 < rate < np.inf:
            raise InvalidArgument('argument rate', rate, 'a positive number [Hz]')
        time = np.linspace(0.0, self.duration, int(np.ceil(self.duration * rate)) + 1)
        return MotionSamples.from_samples(time, *self.states(time))

    def states(self, time: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (N, n) at times (N,) [s]."""
        time = np.asarray(time, dtype=float)
        ends = np.cumsum([segment.duration for segment in self.segments])
        begins = np.concatenate([[0.0], ends[:-1]])
        which = np.minimum(np.searchsorted(ends, time, side='left'), len(ends) - 1)
        result = np.zeros((3, len(time), len(self.joint_names)))
        for k in np.unique(which):
            chosen, segment = which == k, self.segments[k]
            own = time[chosen] - begins[k]
            result[0, chosen] = segment.position(own)
            result[1, chosen] = segment.velocity(own)
            result[2, chosen] = segment.acceleration(own)
        q, qd, qdd = result
        return q, qd, qdd


@one_thread()
def excitation(
    model: RobotModel,
    duration: float,
    *,
    harmonics: int = 5,
    limits: MotionLimits | None = None,
    obstacles: Sequence[Obstacle] = (),
    margin: float = 0.05,
    tip_height: float | None = None,
    friction_motion: bool = False,
    poses: int = 0,
    seed: int = 0,
    prior_deviation: float = 0.25,
    noise: ArrayLike | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """
    Return a motion from which ``identify`` can tell an arm's parameters.

    A Fourier series for each joint, from rest to rest, that gains the most information about base
    parameters and drive terms together (D-optimality), with every limit kept at every time, not
    only at samples. Links are not kept from one another: look at the motion before it is run.

    Parameters
    ----------
    model : RobotModel
        As the URDF has it: efforts are expected by its masses.
    duration : float
        Of the series [s].
    harmonics : int
        Of the series, 2 to 20.
    limits : MotionLimits, optional
        From ``motion_limits``, whose defaults hold where not given.
    obstacles : sequence of HalfSpace and Box
        What the arm stays out of, in base link axes.
    margin : float
        How far they stay out [m].
    tip_height : float, optional
        Least height of the tip's origin against gravity, above the base link's origin [m].
    friction_motion : bool
        Append slow strokes, which show friction at low speeds.
    poses : int
        Append so many random poses, in each of which the arm stands for a second.
    seed : int
        The same seed gives the same motion.
    prior_deviation : float
        How far the URDF's bodies are thought to be off, relative; see ``identify``.
    noise : array-like, shape (n,), optional
        Deviation of measured efforts [N m or N]; 2 % of typical torques where not given.
    progress : callable, optional
        Called with the fraction done, 0 to 1, and what is done; ``print`` shows both.

    Raises
    ------
    InvalidArgument, NonFiniteValue, NoSuchName
        An argument is none that is allowed.
    NoSolution
        No motion keeps the limits: the message says which are in the way.

    Notes
    -----
    L-BFGS from three of sixty random motions, over numbers of which every value is a motion within
    the limits of position, velocity and acceleration; efforts and distances are held by a penalty,
    and then exactly by making the amplitudes smaller.

    References
    ----------
    Swevers, Ganseman, Tükel, De Schutter and Van Brussel 1997 (Fourier series, D-optimality).
    """
    checked_model(model)
    _check(duration, harmonics, margin, poses, prior_deviation)
    report = reporting(progress)
    report(0.0, 'preparing')
    if limits is None:
        limits = motion_limits(model)
    elif len(checked_type('limits', limits, MotionLimits, _LIMITS).velocity) != model.n:
        raise InvalidArgument(
            'argument limits', Phrase(f'of {len(limits.velocity)} joints'), f'of {model.n}'
        )
    kept_out = regions(model, obstacles, margin, tip_height)
    functions = ArmFunctions.of(model)
    shapes = Shapes(limits, duration, harmonics)
    generator = np.random.default_rng(seed)
    typical = np.concatenate(
        [shapes.states(shapes.inside(shapes.random(generator))) for _ in range(_TYPICAL_MOTIONS)],
        axis=1,
    )
    deviation = None if noise is None else checked_array('noise', noise, (model.n,))
    if deviation is not None and (deviation <= 0).any():
        raise InvalidArgument('argument noise', tuple(deviation), 'positive numbers [N m or N]')
    knowledge = Knowledge.before(
        model, functions, (typical[0], typical[1], typical[2]), prior_deviation, deviation
    )
    objective = Objective(shapes, functions, knowledge, limits, kept_out)
    found = searched(objective, seed, lambda fraction, what: report(0.95 * fraction, what))

    report(0.95, 'verifying')
    segments: list[FourierMotion | PointToPoint | Rest] = [found.motion]
    uses = [found.use]

    def allowed(motion: PointToPoint) -> bool:
        return use_of(motion).excess(limits) <= _ROUNDING

    def use_of(motion: PointToPoint) -> LimitUse:
        return limit_use(model, motion, functions.torque, limits, kept_out)

    start = found.motion.start
    appended: list[PointToPoint] = []
    if friction_motion:
        strokes = _slow_strokes(start, limits, allowed)
        appended += strokes
        segments += strokes
    if poses:
        between = _static_poses(start, poses, limits, allowed, generator)
        appended += between
        segments += _with_rests(between, _DWELL)
    uses += [use_of(each) for each in appended]
    parameters = knowledge.expected(objective.information(found.motion))
    findings = [
        *limits.findings,
        *_findings(model, functions.note, parameters, kept_out),
        *_left_out(friction_motion, poses, segments),
    ]
    report(1.0, 'done')
    return Excitation(
        joint_names=model.joint_names,
        segments=tuple(segments),
        limits=limits,
        margin=margin,
        use=tuple(uses),
        criterion=-0.5 * found.lost,
        parameters=parameters,
        findings=tuple(findings),
        seed=seed,
    )


def _check(
    duration: float, harmonics: int, margin: float, poses: int, prior_deviation: float
) -> None:
    if not 0 < checked_number('duration', duration) <= _LONGEST:
        raise InvalidArgument('argument duration', duration, f'above 0, to {_LONGEST:g} s')
    if not 0 < checked_number('prior_deviation', prior_deviation) < np.inf:
        raise InvalidArgument('argument prior_deviation', prior_deviation, 'a positive number')
    if not 2 <= checked_number('harmonics', harmonics) <= _MOST_HARMONICS or harmonics % 1:
        raise InvalidArgument('argument harmonics', harmonics, f'2 to {_MOST_HARMONICS}')
    if not 0 <= checked_number('margin', margin) < np.inf:
        raise InvalidArgument('argument margin', margin, 'zero or more [m]')
    if not 0 <= checked_number('poses', poses) <= 1000 or poses % 1:
        raise InvalidArgument('argument poses', poses, '0 to 1000')


def _findings(
    model: RobotModel,
    why_numpy: str,
    parameters: Sequence[IdentifiedParameter],
    kept_out: Sequence[Region],
) -> Iterator[Finding]:
    if not kept_out:
        message = 'no obstacle was named: nothing keeps the arm out of its table'
        yield warning('no_obstacles', model.name or 'arm', 0, message)
    message = 'links are not kept from one another: look at the motion before it is run'
    yield note('self_collision', model.name or 'arm', 0, message)
    if why_numpy:
        message = f'the regressor is computed in NumPy, which is slower: {why_numpy}'
        yield note('not_compiled', 'regressor', why_numpy, message)
    unknown = [f'{each.name} of {each.element}' for each in parameters if not each.is_measured]
    if unknown:
        element = f'{len(unknown)} of {len(parameters)} parameters'
        message = (
            f'{element} remain what the URDF says, as the motion does not show them: '
            f'{", ".join(unknown)}'
        )
        yield note('not_excited', element, tuple(unknown), message)


def _left_out(
    friction_motion: bool, poses: int, segments: Sequence[FourierMotion | PointToPoint | Rest]
) -> Iterator[Finding]:
    stood = sum(isinstance(each, Rest) for each in segments)
    moved = sum(isinstance(each, PointToPoint) for each in segments)
    if friction_motion and moved - stood < 2 * len(_SLOW_SPEEDS):
        message = (
            f'limits or obstacles left room for {moved - stood} of {2 * len(_SLOW_SPEEDS)} '
            'slow strokes'
        )
        yield warning('fewer_strokes', 'slow strokes', moved - stood, message)
    if stood < poses:
        message = f'{stood} of the {poses} poses that were asked for were found'
        yield warning('fewer_poses', 'poses', stood, message)


# --- what follows the series on request ----------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Rest(Record):
    """
    Standing still.

    Attributes
    ----------
    start : array, shape (n,)
        Where [rad or m].
    duration : float
        [s]
    """

    start: FloatArray
    duration: float

    @property
    def goal(self) -> FloatArray:
        """Where it ends: where it began."""
        return self.start

    def position(self, time: FloatArray) -> FloatArray:
        """Return the positions (N, n)."""
        return np.tile(self.start, (len(time), 1))

    def velocity(self, time: FloatArray) -> FloatArray:
        """Return the velocities (N, n): zero."""
        return np.zeros((len(time), len(self.start)))

    def acceleration(self, time: FloatArray) -> FloatArray:
        """Return the accelerations (N, n): zero."""
        return self.velocity(time)


def _slow_strokes(
    start: FloatArray, limits: MotionLimits, allowed: _Allowed
) -> list[PointToPoint]:
    """
    Return strokes from a position and back to it, at each of ``_SLOW_SPEEDS``.

    All joints move at the same time, neighbours in opposite directions, each towards the middle of
    its range. A quintic passes all speeds up to its largest one.

    Parameters
    ----------
    start : array, shape (n,)
    limits : MotionLimits
    allowed : callable
        Strokes are made shorter until it agrees, and left out where it never does.
    """
    middle = limits.position.mean(axis=1)
    inwards = np.where(start <= middle, 1.0, -1.0)
    room = np.maximum(limits.position[:, 1] - start, start - limits.position[:, 0])
    result: list[PointToPoint] = []
    for speed in _SLOW_SPEEDS:
        speeds = np.minimum(speed, limits.velocity)
        travel = np.minimum(speeds * _LONGEST_STROKE / _MEAN_TO_LARGEST, _TRAVEL_FRACTION * room)
        for shrinking in range(_SHRINKINGS):
            goal = start + inwards * travel * 0.5**shrinking
            duration = float(max(0.5, (_MEAN_TO_LARGEST * np.abs(goal - start) / speeds).max()))
            there, back = (PointToPoint(a, b, duration) for a, b in ((start, goal), (goal, start)))
            if allowed(there) and allowed(back):
                result += [there, back]
                break
    return result


def _static_poses(
    start: FloatArray,
    count: int,
    limits: MotionLimits,
    allowed: _Allowed,
    generator: np.random.Generator,
) -> list[PointToPoint]:
    """
    Return motions from a position through random poses and back to it.

    Parameters
    ----------
    start : array, shape (n,)
    count : int
        Of poses; fewer are visited where limits allow no more.
    limits : MotionLimits
    allowed : callable
        Whether a motion keeps all limits.
    generator : numpy.random.Generator
    """
    result: list[PointToPoint] = []
    here = start
    for _ in range(_TRIES):
        if len(result) >= count:
            break
        goal = generator.uniform(limits.position[:, 0], limits.position[:, 1])
        there, back = _unhurried(here, goal, limits), _unhurried(goal, start, limits)
        if allowed(there) and allowed(back):
            result.append(there)
            here = goal
    if result:
        result.append(_unhurried(here, start, limits))
    return result


def _with_rests(motions: Sequence[PointToPoint], dwell: float) -> list[PointToPoint | Rest]:
    """Return motions with a rest after each."""
    return [part for motion in motions for part in (motion, Rest(motion.goal, dwell))]


def _unhurried(start: FloatArray, goal: FloatArray, limits: MotionLimits) -> PointToPoint:
    """Return the motion between two positions at half the limits."""
    travel = np.abs(goal - start)
    slowest = (_MEAN_TO_LARGEST * travel / (0.5 * limits.velocity)).max()
    growth = np.sqrt((_LARGEST_ACCELERATION * travel / (0.5 * limits.acceleration)).max())
    return PointToPoint(start, goal, float(max(0.5, slowest, growth)))
