# SPDX-License-Identifier: Apache-2.0
"""
What a receiver makes of a timed motion, judged by code that is not the package's.

Random paths of three arms; every output of ``retime`` for them; positions, velocities,
accelerations and jerks between two points by polynomials of this file, as the joint trajectory
controller interpolates; torques by Pinocchio; the shortest durations by toppra and by Ruckig.

- ``wrist``: the last three joints of a UR5 move under 2 rad/s and 5 rad/s²: no torque binds.
- ``bare``: a Panda without friction, by torque and velocity.
- ``rough``: a UR10 with Coulomb friction, so large that gravity and friction at rest need 0.8 or
  0.9 of an effort limit somewhere on the path.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import yaml
from command_line import invoked
from oracles import PinocchioArm
from robots import public_urdf
from scipy.interpolate import CubicSpline

import robodyn_ros as rd
from robodyn_ros.control.feedforward_efforts import TrajectoryFeedforward
from robodyn_ros.control.settings import checked
from robodyn_ros.control.trajectory import Trajectory

FILES = {
    'wrist': ('ur5_robot.urdf', 'tool0'),
    'bare': ('panda.urdf', 'panda_link8'),
    'rough': ('ur10_robot.urdf', 'tool0'),
}
NEEDED = (0.8, 0.9)  # of an effort limit, at rest
WRIST_SPEED, WRIST_ACCELERATION = 2.0, 5.0
FRICTION_VELOCITY = 0.01  # at which Coulomb friction is tanh(1) of itself [rad/s]
PERIOD = 1e-3  # of a controller [s]
ROUNDING = 1e-6  # of a limit: files hold times in nanoseconds
OUTPUTS = ('library', 'coarse', 'csv', 'yaml', 'message')


@dataclass(frozen=True)
class Case:
    """A path (K, n) of an arm with its limits, (n,) each, or (n, 2) of positions."""

    name: str
    urdf: Path
    tip: str
    joints: tuple[str, ...]
    points: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    coulomb: np.ndarray
    pinocchio: PinocchioArm

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torque (M, n) with friction."""
        return self.rigid(q, qd, qdd) + self.coulomb * np.tanh(qd / FRICTION_VELOCITY)

    def rigid(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return the torque (M, n) without friction."""
        return _rigid(self.pinocchio, q, qd, qdd)

    @property
    def model(self) -> rd.RobotModel:
        """The package's."""
        return rd.RobotModel.from_urdf(self.urdf, tip_link=self.tip)


class Sent(NamedTuple):
    """Points of a motion: times (N,) and rows (N, n), or None where there are none."""

    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray | None
    effort: np.ndarray | None


def cases(name: str, count: int, folder: Path, seed: int = 67) -> Iterator[Case]:
    """Yield random paths of an arm; descriptions are written into a folder."""
    file, tip = FILES[name]
    source = public_urdf(file)
    model = rd.RobotModel.from_urdf(source, tip_link=tip)
    pinocchio = PinocchioArm.of(source, model)
    generator = np.random.default_rng([seed, len(name)])
    velocity, effort = model.velocity_limits.copy(), model.effort_limits.copy()
    acceleration = np.full(model.n, np.inf)
    if name == 'wrist':
        velocity, acceleration = (
            np.full(model.n, each) for each in (WRIST_SPEED, WRIST_ACCELERATION)
        )
    k = 0
    while k < count:
        points = random_points(name, model, generator)
        coulomb = np.zeros(model.n)
        q = spline(points)(np.linspace(0.0, 1.0, 500))
        low, high = model.position_limits.T
        if (q < low).any() or (q > high).any():
            continue
        resting = np.abs(_rigid(pinocchio, q, 0.0 * q, 0.0 * q)) / effort
        if resting.max() > 0.6:
            continue
        if name == 'rough':
            coulomb = (NEEDED[k % len(NEEDED)] - resting.max()) * effort
        urdf = folder / f'{name}_{k}.urdf'
        urdf.write_text(_description(source, model.joint_names, velocity, coulomb))
        limits = (model.position_limits, velocity, acceleration, effort)
        yield Case(
            f'{name} {k}', urdf, tip, model.joint_names, points, *limits, coulomb, pinocchio
        )
        k += 1


def random_points(name: str, model: rd.RobotModel, generator: np.random.Generator) -> np.ndarray:
    """Return a walk of two to seven points, well inside the position limits."""
    low, high = np.clip(model.position_limits.T, -2.5, 2.5)
    middle, half = 0.5 * (low + high), 0.35 * (high - low)
    moves = np.ones(model.n)
    if name == 'wrist':
        moves[:3] = 0.0
        moves[3 + generator.permutation(3)[: generator.integers(0, 3)]] = 0.0
    points = [generator.uniform(middle - half, middle + half)]
    for _ in range(int(generator.integers(1, 7))):
        step = moves * generator.uniform(-1.2, 1.2, model.n)
        points.append(np.clip(points[-1] + step, middle - half, middle + half))
    return np.array(points)


def spline(points: np.ndarray) -> CubicSpline:
    """Return the spline through points whose parameter is the distance, from 0 to 1."""
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return CubicSpline(way / way[-1], points, bc_type='not-a-knot')


# --- outputs -------------------------------------------------------------------------------------


def sent(case: Case, output: str, folder: Path, *options: Any) -> Sent:
    """
    Return an output of the package for a path; ``options`` are of ``robodyn retime``.

    Raises
    ------
    RobodynError
        The package refuses the path.
    """
    if output in ('library', 'coarse'):
        grid = {'grid_points': 5} if output == 'coarse' else {}
        acceleration = case.acceleration if np.isfinite(case.acceleration).all() else None
        motion = rd.retime(case.model, case.points, acceleration_limits=acceleration, **grid)
        return Sent(motion.time, motion.position, motion.velocity, None, None)
    if output == 'message':
        return passed_on(case, 3.0, retime=1.0)
    path, written = folder / 'given.yaml', folder / f'timed.{output}'
    times = 3.0 * np.arange(len(case.points))
    message = {
        'joint_names': list(case.joints),
        'points': [
            {'positions': q, 'time_from_start': {'sec': int(t), 'nanosec': 0}}
            for q, t in zip(case.points.tolist(), times, strict=True)
        ],
    }
    path.write_text(yaml.safe_dump(message))
    if np.isfinite(case.acceleration).all():
        options = ('--acceleration-limit', case.acceleration[0], *options)
    _command('retime', case.urdf, path, '--tip', case.tip, '-o', written, *options)
    return (_of_csv if output == 'csv' else _of_yaml)(case, written)


def _command(*arguments: Any) -> None:
    result = invoked(*arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output


def _of_csv(case: Case, path: Path) -> Sent:
    with path.open(encoding='utf-8', newline='') as file:
        rows = list(csv.reader(file))
    columns = {name: k for k, name in enumerate(rows[0])}
    table = np.array(rows[1:], dtype=float)
    q, qd = (
        table[:, [columns[name + suffix] for name in case.joints]] for suffix in ('', '.velocity')
    )
    return Sent(table[:, columns['time']], q, qd, None, None)


def _of_yaml(case: Case, path: Path) -> Sent:
    message = yaml.load(path.read_text(encoding='utf-8'), yaml.CSafeLoader)
    columns = [message['joint_names'].index(name) for name in case.joints]
    points = message['points']

    def rows(field: str) -> np.ndarray | None:
        given = [point.get(field) or [] for point in points]
        if not all(len(row) == len(columns) for row in given):
            return None
        return np.array(given, dtype=float)[:, columns]

    time = [p['time_from_start']['sec'] + 1e-9 * p['time_from_start']['nanosec'] for p in points]
    q, qd = rows('positions'), rows('velocities')
    assert q is not None and qd is not None
    return Sent(np.array(time), q, qd, rows('accelerations'), rows('effort'))


def passed_on(case: Case, step: float, fields: int = 1, retime: float = 0.0) -> Sent:
    """
    Return what the node feedforward sends on for a path whose points are so far apart [s].

    Parameters
    ----------
    case : Case
    step : float
        [s]
    fields : int
        1: the points have positions; 2: velocities, too, zero; 3: accelerations, too, zero.
    retime : float
        The node's parameter.

    Raises
    ------
    RobodynError
        It refuses the path.
    """
    settings = checked(
        {'urdf_file': str(case.urdf), 'tip_link': case.tip, 'algorithm': 'newton_euler'}
    )
    node = TrajectoryFeedforward(settings, None, 1e-3, PERIOD, retime=retime)
    first = case.points[0]
    node.joint_states.receive(case.joints, first, 0.0 * first, received=1.0, stamp=50.0)
    node.take_state()
    points = case.points[1:]
    nothing: list[list[float]] = [[]] * len(points)
    zeros = (0.0 * points).tolist()
    rows = [zeros if fields > order else nothing for order in (1, 2)]
    times = (step * np.arange(1, len(case.points))).tolist()
    given = Trajectory.from_points(case.joints, times, points.tolist(), *rows, nothing)
    return _of_trajectory(case, node.with_efforts(given, 1.0).trajectory)


def _of_trajectory(case: Case, found: Trajectory) -> Sent:
    columns = [found.joint_names.index(name) for name in case.joints]
    qdd = found.accelerations[:, columns]
    return Sent(
        found.times,
        found.positions[:, columns],
        found.velocities[:, columns],
        qdd if np.isfinite(qdd).all() else None,
        found.efforts[:, columns],
    )


# --- between the points --------------------------------------------------------------------------


def between(points: Sent, places: int) -> tuple[np.ndarray, ...]:
    """
    Return q, qd, qdd, qddd (N - 1, P, n) at even places between points, both ends with them.

    A quintic where the points have accelerations, else a cubic.
    """
    h = np.diff(points.time)[:, None]
    s = np.linspace(0.0, 1.0, places)
    rows = [points.q, points.qd] + ([] if points.qdd is None else [points.qdd])
    powers = 2 * len(rows)
    # Ends of 1, s, ..., in parts of the interval: values and derivatives by factorials.
    ends = np.zeros((powers, powers))
    wanted = []
    for order, row in enumerate(rows):
        for end in (0, 1):
            for power in range(order, powers):
                factor = np.prod(np.arange(power - order + 1, power + 1))
                ends[2 * order + end, power] = factor * (1.0 if end or power == order else 0.0)
            wanted.append((row[1:] if end else row[:-1]) * h**order)
    coefficients = np.linalg.solve(ends, np.array(wanted).reshape(powers, -1))
    coefficients = coefficients.reshape(powers, *points.q[:-1].shape)
    found = []
    for order in range(4):
        value = np.zeros((len(h), places, points.q.shape[1]))
        for power in range(order, powers):
            factor = np.prod(np.arange(power - order + 1, power + 1))
            value += coefficients[power][:, None] * (factor * s ** (power - order))[:, None]
        found.append(value / h[:, None] ** order)
    return tuple(found)


def shares(case: Case, points: Sent, places: int) -> dict[str, float]:
    """
    Return the largest parts of limits that are used between points.

    ``effort`` is of the points' own effort, ``error`` how far a straight line between those is
    off the torque, in parts of the limits, where the line is longer than two periods.
    ``position`` is 1 plus what is beyond a limit [rad].
    """
    q, qd, qdd, _ = between(points, places)
    n = q.shape[-1]
    torque = case.torque(*(part.reshape(-1, n) for part in (q, qd, qdd))).reshape(q.shape)
    low, high = case.position.T
    found = {
        'position': 1.0 + float(np.maximum(low - q, q - high).max(initial=0.0)),
        'velocity': float((np.abs(qd) / case.velocity).max()),
        'acceleration': float((np.abs(qdd) / case.acceleration).max()),
        'torque': float((np.abs(torque) / case.effort).max()),
    }
    if points.effort is not None:
        found['effort'] = float((np.abs(points.effort) / case.effort).max())
        s = np.linspace(0.0, 1.0, places)[:, None]
        line = points.effort[:-1, None] * (1.0 - s) + points.effort[1:, None] * s
        is_long = np.diff(points.time) > 2.0 * PERIOD
        found['error'] = float((np.abs(line - torque) / case.effort)[is_long].max(initial=0.0))
    return found


def largest_jerk(points: Sent, places: int = 3) -> np.ndarray:
    """Return the largest jerk between points, (n,) [rad/s³]."""
    return np.abs(between(points, places)[3]).max(axis=(0, 1))


# --- others' durations ---------------------------------------------------------------------------


def by_toppra(case: Case, intervals: int = 200) -> float | None:
    """Return toppra's duration of a path under the same limits [s]; None: it finds none."""
    import toppra
    from toppra.algorithm import TOPPRA
    from toppra.constraint import (
        DiscretizationType,
        JointAccelerationConstraint,
        JointTorqueConstraint,
        JointVelocityConstraint,
    )

    toppra.setup_logging('ERROR')
    ways = np.linalg.norm(np.diff(case.points, axis=0), axis=1)
    places = np.concatenate([[0.0], np.cumsum(ways)])
    path = toppra.SplineInterpolator(places, case.points)
    both = np.array([-1.0, 1.0])
    scheme = DiscretizationType.Interpolation

    def rigid(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return case.rigid(*(part[None] for part in (q, qd, qdd)))[0]

    constraints = [
        JointVelocityConstraint(np.outer(case.velocity, both)),
        JointTorqueConstraint(
            rigid, np.outer(case.effort, both), case.coulomb, discretization_scheme=scheme
        ),
    ]
    if np.isfinite(case.acceleration).all():
        limits = np.outer(case.acceleration, both)
        constraints.append(JointAccelerationConstraint(limits, discretization_scheme=scheme))
    grid = np.linspace(0.0, places[-1], intervals + 1)
    instance = TOPPRA(constraints, path, gridpoints=grid, solver_wrapper='seidel')
    _, rate, _ = instance.compute_parameterization(0.0, 0.0)
    if rate is None or not np.isfinite(rate).all():
        return None
    return float((2.0 * np.diff(grid) / (rate[1:] + rate[:-1])).sum())


def by_ruckig(case: Case) -> float:
    """Return Ruckig's duration from the first point to the last, its accelerations tuned [s]."""
    import ruckig

    def motion(acceleration: np.ndarray) -> Any:
        given = ruckig.InputParameter(len(case.joints))
        given.current_position, given.target_position = case.points[[0, -1]].tolist()
        given.max_velocity = case.velocity.tolist()
        given.max_acceleration = acceleration.tolist()
        given.max_jerk = [np.inf] * len(case.joints)
        found = ruckig.Trajectory(len(case.joints))
        ruckig.Ruckig(len(case.joints)).calculate(given, found)
        return found

    def keeps(acceleration: np.ndarray) -> bool:
        found = motion(acceleration)
        times = np.linspace(0.0, found.duration, 400)
        states = [np.array(part) for part in zip(*(found.at_time(t)[:3] for t in times))]
        return bool((np.abs(case.torque(*states)) <= case.effort).all())

    low, high = 0.01, 200.0
    for _ in range(25):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if keeps(_up_to(middle, case)) else (low, middle)
    return float(motion(_up_to(low, case)).duration)


def _up_to(acceleration: float, case: Case) -> np.ndarray:
    return np.minimum(acceleration, case.acceleration)


# --- parts ---------------------------------------------------------------------------------------


def _rigid(arm: PinocchioArm, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    order = arm.order
    states = np.zeros((3, len(q), arm.model.nv))
    for k, part in enumerate((q, qd, qdd)):
        states[k][:, order] = part
    assert arm.model.nq == arm.model.nv  # no continuous joint
    found = [pin.rnea(arm.model, arm.data, *state) for state in zip(*states, strict=True)]
    return np.array(found)[:, order]


def _description(
    source: Path, joints: tuple[str, ...], velocity: np.ndarray, coulomb: np.ndarray
) -> str:
    """Return a URDF with other velocity limits and friction, and no shapes."""
    root = ElementTree.parse(source).getroot()
    for link in root.iter('link'):
        for shape in (*link.findall('visual'), *link.findall('collision')):
            link.remove(shape)
    for joint in root.findall('joint'):
        if joint.get('name') not in joints:
            continue
        k = joints.index(str(joint.get('name')))
        for dynamics in joint.findall('dynamics'):
            joint.remove(dynamics)
        about = {'damping': '0', 'friction': repr(float(coulomb[k]))}
        ElementTree.SubElement(joint, 'dynamics', about)
        limit = joint.find('limit')
        assert limit is not None
        limit.set('velocity', repr(float(velocity[k])))
    return ElementTree.tostring(root, encoding='unicode')
