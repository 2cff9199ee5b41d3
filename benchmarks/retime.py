# SPDX-License-Identifier: Apache-2.0
"""
Time random paths of four public arms as fast as their drives allow, beside toppra.

    python benchmarks/retime.py [--paths 200] [--simulated 20] [ARM ...]

Durations beside those under the acceleration limits that the arms' MoveIt packages bring, and
beside toppra's under torque limits without friction; torque at 1 kHz in parts of the limits;
tracking in MuJoCo by computed torque with the true friction, and how many cycles ran at a limit;
processor time beside toppra's with the same torque from the same compiled model, growth with
points and joints, and memory. toppra: ``pip install toppra``.

The descriptions have no friction but xArm7's: the others get Coulomb friction of 5 % of the effort
limits, viscous friction of 5 % at the velocity limits, and load friction of 5 %; MuJoCo has no
load friction, and there the arm and its model go without.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import toppra
from robots import public_urdf, random_chain
from toppra.algorithm import TOPPRA
from toppra.constraint import JointTorqueConstraint, JointVelocityConstraint

import robodyn_ros as rd
from robodyn_ros.control.timed_motion import TimedMotion
from robodyn_ros.description.chain import Chain
from robodyn_ros.dynamics import smooth_friction_torque
from robodyn_ros.motions import MotionSamples
from robodyn_ros.simulation import ArmSimulation, simulated_motion

# File, tip, and the accelerations of the MoveIt package: moveit_resources_panda_moveit_config,
# ur_moveit_config, xarm_moveit_config [rad/s²].
ARMS: dict[str, tuple[str, str, Any]] = {
    'Panda': ('panda.urdf', 'panda_link8', (3.75, 1.875, 2.5, 3.125, 3.75, 5.0, 5.0)),
    'UR5': ('ur5_robot.urdf', 'tool0', 5.0),
    'UR10': ('ur10_robot.urdf', 'tool0', 5.0),
    'xArm7': ('xarm7.urdf', 'link7', 20.0),
}
WAYPOINTS, STEP, RANGE = 5, 1.0, 0.35  # of a path; radians; parts of the position range
PART = 0.05  # friction in parts of the limits
RATE = 1e-3  # [s]
MARGIN = 0.05
ROUNDS = 3


def with_friction(model: rd.RobotModel, load: float = PART) -> rd.RobotModel:
    """Return the arm with friction, where its description has none."""
    if not model.coulomb_friction.any():
        model = replace(
            model,
            coulomb_friction=PART * model.effort_limits,
            viscous_friction=PART * model.effort_limits / model.velocity_limits,
        )
    return replace(model, load_friction=np.full(model.n, load))


def without_friction(model: rd.RobotModel) -> rd.RobotModel:
    """Return the arm without any."""
    zero = np.zeros(model.n)
    return replace(model, coulomb_friction=zero, viscous_friction=zero, load_friction=zero)


def random_path(model: rd.RobotModel, generator: np.random.Generator) -> np.ndarray:
    """Return waypoints (K, n) well inside the position limits."""
    low, high = np.clip(model.position_limits.T, -3.0, 3.0)
    middle, half = 0.5 * (low + high), RANGE * (high - low)
    points = [generator.uniform(middle - half, middle + half)]
    for _ in range(WAYPOINTS - 1):
        step = generator.uniform(-STEP, STEP, model.n)
        points.append(np.clip(points[-1] + step, middle - half, middle + half))
    return np.array(points)


def by_toppra(compiled: rd.CompiledModel, points: np.ndarray, count: int = 200) -> float:
    """Return toppra's duration of a path without friction [s]."""
    model = compiled.model
    ways = np.linalg.norm(np.diff(points, axis=0), axis=1)
    places = np.concatenate([[0.0], np.cumsum(ways)])
    path = toppra.SplineInterpolator(places, points)
    both = np.array([-1.0, 1.0])
    torque = JointTorqueConstraint(
        compiled.inverse_dynamics, np.outer(model.effort_limits, both), np.zeros(model.n)
    )
    speed = JointVelocityConstraint(np.outer(model.velocity_limits, both))
    grid = np.linspace(0.0, places[-1], count + 1)
    instance = TOPPRA([speed, torque], path, gridpoints=grid, solver_wrapper='seidel')
    _, rate, _ = instance.compute_parameterization(0.0, 0.0)
    return float((2.0 * np.diff(grid) / (rate[1:] + rate[:-1])).sum())


def sampled(motion: TimedMotion) -> MotionSamples:
    """Return the motion at 1 kHz."""
    time = np.arange(0.0, motion.duration + RATE, RATE)
    return MotionSamples(time, *motion.at(time))


def largest_share(compiled: rd.CompiledModel, motion: TimedMotion) -> float:
    """Return the largest torque at 1 kHz in parts of the limits."""
    samples = sampled(motion)
    rigid = compiled.inverse_dynamics(samples.q, samples.qd, samples.qdd)
    torque = rigid + smooth_friction_torque(compiled.model, 0.01, samples.qd, rigid)
    return float((np.abs(torque) / compiled.model.effort_limits).max())


def fastest(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least processor time of some rounds [ms]."""
    times = []
    for _ in range(rounds):
        begin = process_time()
        function()
        times.append(process_time() - begin)
    return 1e3 * min(times)


def spread(values: list[float]) -> str:
    """Return median and range."""
    return f'{np.median(values):.3f} ({min(values):.3f} to {max(values):.3f})'


def durations(name: str, count: int) -> None:
    """Print durations, torque and time per path of an arm."""
    file, tip, accelerations = ARMS[name]
    bare = rd.RobotModel.from_urdf(public_urdf(file), tip_link=tip)
    rough = rd.compile_model(with_friction(bare))
    smooth = rd.compile_model(without_friction(bare))
    generator = np.random.default_rng(0)
    shipped, toppras, cost, shares = [], [], [], []
    ours, theirs = [], []
    refused = 0
    while len(shipped) < count:
        points = random_path(bare, generator)
        try:
            motion = rd.retime(rough, points)
        except rd.RobodynError:  # beyond position limits, or too heavy on the way
            refused += 1
            continue
        slow = rd.retime(rough, points, acceleration_limits=accelerations)
        free = rd.retime(smooth, points)
        shipped.append(motion.duration / slow.duration)
        toppras.append(free.duration / by_toppra(smooth, points))
        cost.append(motion.duration / free.duration)
        shares += [largest_share(rough, motion), largest_share(smooth, free)]
        if len(ours) < 30:
            ours.append(fastest(lambda points=points: rd.retime(rough, points)))
            theirs.append(fastest(lambda points=points: by_toppra(smooth, points)))
    print(f'{name}: {count} paths, {refused} more refused')
    print(f'  duration beside shipped accelerations   {spread(shipped)}')
    print(f'  beside toppra, no friction              {spread(toppras)}')
    print(f'  with friction beside without            {spread(cost)}')
    print(f'  largest torque at 1 kHz in its limit    {max(shares):.6f}')
    print(f'  paths above the limit                   {sum(x > 1.0 + 1e-9 for x in shares)}')
    print(f'  ms of processor, friction included      {spread(ours)}')
    print(f'  toppra, no friction                     {spread(theirs)}')
    print(
        f"  times toppra's                          {spread(np.divide(ours, theirs).tolist())}",
        flush=True,
    )


def tracking(name: str, count: int) -> None:
    """Print how an arm in MuJoCo follows its motions."""
    file, tip, accelerations = ARMS[name]
    chain = Chain.from_urdf(public_urdf(file), tip_link=tip)
    model = with_friction(rd.RobotModel.from_chain(chain), load=0.0)
    joints = tuple(
        replace(joint, damping=float(viscous), friction=float(dry))
        for joint, viscous, dry in zip(
            chain.joints, model.viscous_friction, model.coulomb_friction, strict=True
        )
    )
    arm = ArmSimulation(replace(chain, joints=joints), time_step=RATE)
    compiled = rd.compile_model(model)
    generator = np.random.default_rng(1)
    errors: dict[str, list[float]] = {'shipped': [], 'margin': [], 'none': []}
    saturated, cycles = {'margin': 0, 'none': 0}, {'margin': 0, 'none': 0}
    while len(errors['none']) < count:
        points = random_path(model, generator)
        try:
            motions = {
                'shipped': rd.retime(compiled, points, acceleration_limits=accelerations),
                'margin': rd.retime(compiled, points, effort_margin=MARGIN),
                'none': rd.retime(compiled, points),
            }
        except rd.RobodynError:
            continue
        for kind, motion in motions.items():
            did = simulated_motion(arm, model, sampled(motion), algorithm='compiled')
            errors[kind].append(1e3 * float(np.sqrt(np.mean(did.error**2))))
            if kind in saturated:
                at_limit = (np.abs(did.torque) >= model.effort_limits).any(axis=1)
                saturated[kind] += int(at_limit.sum())
                cycles[kind] += len(did.time)
    print(f'{name} in MuJoCo, {count} paths: RMS error [mrad]')
    for kind, words in (
        ('shipped', 'under shipped accelerations'),
        ('margin', f'retimed, margin {MARGIN:g}'),
        ('none', 'retimed, no margin'),
    ):
        at_limit = ''
        if kind in saturated:
            at_limit = f'; {saturated[kind]} of {cycles[kind]} cycles at a limit'
        print(f'  {words:<28} {spread(errors[kind])}{at_limit}')
    parts = np.divide(errors['margin'], errors['shipped']).tolist()
    larger = sum(part > 1.2 for part in parts)
    print(f'  error beside shipped         {spread(parts)}; {larger} paths above 1.2', flush=True)


def growth() -> None:
    """Print time by points and joints, and memory."""
    generator = np.random.default_rng(2)
    model = with_friction(rd.RobotModel.from_urdf(public_urdf('ur5_robot.urdf'), tip_link='tool0'))
    compiled = rd.compile_model(model)
    points = random_path(model, generator)
    for count in (200, 400, 800, 1600, 3200):
        needed = fastest(lambda count=count: rd.retime(compiled, points, grid_points=count))
        print(f'{count} points: {needed:.1f} ms, {1e3 * needed / count:.1f} us a point')
    for n in (2, 4, 6, 8):
        text = random_chain(np.random.default_rng(n), n, prismatic_fraction=0.0)
        arm = rd.RobotModel.from_urdf(text, base_link='base', tip_link='tip')
        gravity = np.abs(rd.gravity_torque(arm, generator.uniform(-1, 1, (500, n)))).max(0)
        # A joint that no gravity loads needs a drive, too.
        arm = replace(arm, effort_limits=3.0 * gravity + 5.0, velocity_limits=np.full(n, 3.0))
        chain = rd.compile_model(with_friction(arm))
        times = [
            fastest(lambda way=way: rd.retime(chain, way))  # noqa: B023
            for way in 0.3 * generator.uniform(-1, 1, (20, 5, n))
        ]
        print(
            f'{n} joints, 20 paths: {np.mean(times):.1f} ms, {np.mean(times) / n:.2f} ms a joint'
        )
    tracemalloc.start()
    rd.retime(compiled, points, grid_points=19_900)
    print(f'19900 points: {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MB at most')


def main() -> None:
    """Print the figures of the arms that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('arms', nargs='*', metavar='ARM')
    parser.add_argument('--paths', type=int, default=200)
    parser.add_argument('--simulated', type=int, default=20)
    options = parser.parse_args()
    logging.getLogger('toppra').setLevel(logging.ERROR)
    load = ' '.join(f'{x:.1f}' for x in os.getloadavg())
    print(f'load of the machine {load}, {os.cpu_count()} processors')
    for name in options.arms or ARMS:
        durations(name, options.paths)
    growth()
    for name in options.arms or ARMS:
        tracking(name, options.simulated)
    print('load of the machine ' + ' '.join(f'{x:.1f}' for x in os.getloadavg()))


if __name__ == '__main__':
    main()
