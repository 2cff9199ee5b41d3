# SPDX-License-Identifier: Apache-2.0
"""
How soon wear is found, how often it is where there is none, and what many bags cost.

    python benchmarks/monitor.py wear        three arms in MuJoCo: 30 % of wear, warm-up, payloads
    python benchmarks/monitor.py healthy [COUNT [ARM ...]]
                                             10,000 motions of healthy arms (Pinocchio and noise)
    python benchmarks/monitor.py recordings  what it says of ../shared/recordings
    python benchmarks/monitor.py fleet       eight bags on two cores, one after the other, on Dask

Without an argument: all of them, the second with 1,000 motions. benchmarks/watch.py: the
live page.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from ageing_arms import ARMS, AgeingArm, MujocoArm, aged
from bags import ros2_bag
from identify_recordings import splits

from robodyn_ros import RobotModel
from robodyn_ros.errors import InsufficientRecording, RobodynError
from robodyn_ros.identification import Identification, Recording, identify
from robodyn_ros.monitoring.ageing import REFERENCE, MotionEntry, condition
from robodyn_ros.monitoring.jobs import run_jobs
from robodyn_ros.monitoring.motions import FileJob, examined, examined_file

RECORDINGS = Path(__file__).resolve().parents[2] / 'shared' / 'recordings'
WORN, SINCE = 2, 20


def wear() -> None:
    print('arm      wear is found after  by            gripper x 1.6')
    for name in ARMS:
        arm = MujocoArm(name)
        found = arm.identified
        motions = aged(arm, SINCE + 20, joint=WORN, since=SINCE)
        after, words = 0, 'not found'
        for k in range(1, len(motions) + 1):
            findings = [x for x in condition(found, motions[:k]).findings if x.code == 'wear']
            if findings and not after:
                after = k - SINCE
        if findings:
            words = '; '.join(str(each) for each in findings)
        changed = condition(found, aged(arm, SINCE + 10, loads=(0.9, 1.1), gripper=1.6)).findings
        print(f'{name:9}{after:2} motions  {words}')
        print(f'{"":9}gripper: {"; ".join(map(str, changed)) or "not found"}', flush=True)


def healthy(count: int | str = 10_000, *names: str) -> None:
    each = int(count) // len(ARMS)
    for seed, name in enumerate(ARMS):
        if names and name not in names:
            continue
        arm = AgeingArm(name, seed=seed)
        found = arm.identified
        began = time.perf_counter()
        motions = aged(arm, each, duration=6.0)
        fitted = time.perf_counter() - began
        false: dict[str, int] = {}
        for k in range(1, each + 1):
            seen = [*motions[: min(k, REFERENCE)], *motions[max(REFERENCE, k - 400) : k]]
            for finding in condition(found, seen).findings:
                false[finding.code] = false.get(finding.code, 0) + 1
        print(
            f'{name:9}{each} healthy motions: findings {false or "none"}; made and refitted in '
            f'{fitted:.0f} s, judged after each in {time.perf_counter() - began - fitted:.0f} s',
            flush=True,
        )


def recordings() -> None:
    if not RECORDINGS.is_dir():
        print(f'no recordings in {RECORDINGS}')
        return
    for split in splits(RECORDINGS):
        found = identify(split.model, split.training, effort_scale=split.scale)
        if split.name == 'UR10e 30 s -> 50 s':
            days = sorted((RECORDINGS / 'ur10e').glob('*.csv'))
            told = [motion for path in days for motion in _told(found, path, split.model)]
            print('UR10e, all days as one history:')
            _print_condition(found, told)
        try:
            told = examined(found, split.held_out, split.name).motions
        except InsufficientRecording as error:
            print(error)
            continue
        print(f'{split.name}:')
        _print_condition(found, told)


def _told(found: Identification, path: Path, model: RobotModel) -> tuple[MotionEntry, ...]:
    try:
        told = examined(found, Recording.from_csv(path, model), path.name)
    except RobodynError as error:
        print(f'   {path.name}: {error}')
        return ()
    for motion in told.motions:
        terms = motion.terms
        friction = [f'{100 * x:+.0f}' for x in terms.friction]
        print(
            f'   {path.name}: friction {" ".join(friction)} %, at the tip {terms.payload[0]:+.2f} '
            f'+- {terms.payload_deviation[0]:.2f} kg, left out {terms.left_out:.0%}'
        )
    for refused in told.refused:
        print(f'   refused: {refused}')
    return told.motions


def _print_condition(found: Identification, motions: Sequence[MotionEntry]) -> None:
    now = condition(found, motions)
    changes = zip(100 * now.friction, 100 * now.friction_deviation)
    print(f'   {len(motions)} motions, friction against the model [%]:', end=' ')
    print(', '.join(f'{value:+.0f} ± {deviation:.0f}' for value, deviation in changes))
    print(f'   at the tip {now.payload:+.2f} ± {now.payload_deviation:.2f} kg')
    for finding in now.findings:
        print(f'   {finding.level}: {finding}')
    if not now.findings:
        print('   nothing is claimed', flush=True)


def fleet() -> None:
    with tempfile.TemporaryDirectory() as folder:
        arm = AgeingArm('ur5')
        model = Path(folder, 'ur5.yaml')
        arm.identified.save(model)
        work = []
        for k in range(8):
            one = arm.motion(k, duration=240.0)
            path = ros2_bag(
                Path(folder, f'bag{k}'),
                {
                    '/joint_states': (
                        (1.7e9 + t, one.joint_names, q, qd, effort)
                        for t, q, qd, effort in zip(
                            one.time, one.position, one.velocity, one.effort
                        )
                    )
                },
            )
            work.append(FileJob(path, model))
        results = {}
        taken: dict[int, list[float]] = {1: [], 2: []}
        for jobs in (1, 2) * 3:
            began = time.perf_counter()
            outcomes = run_jobs(examined_file, work, jobs)
            taken[jobs].append(time.perf_counter() - began)
            load = os.getloadavg()[0]
            print(f'eight bags, {jobs} at a time: {taken[jobs][-1]:.1f} s (load {load:.1f})')
            results[jobs] = [each.result for each in outcomes]
        ratios = np.divide(taken[1], taken[2])
        print(f'one after the other over two at a time: {np.median(ratios):.2f}', flush=True)
        print('the same numbers:', repr(results[1]) == repr(results[2]), results[1] == results[2])
        try:
            from distributed import LocalCluster
        except ImportError:
            print('dask.distributed is not installed')
            return
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            began = time.perf_counter()
            outcomes = run_jobs(examined_file, work, dask=cluster.scheduler_address)
            print(f'eight bags, two Dask workers: {time.perf_counter() - began:.1f} s')
            print('the same numbers:', [each.result for each in outcomes] == results[1])


def main(arguments: list[str]) -> None:
    parts = {'wear': wear, 'healthy': healthy, 'recordings': recordings, 'fleet': fleet}
    if not arguments:
        wear()
        healthy(1000)
        recordings()
        fleet()
        return
    parts[arguments[0]](*arguments[1:])


if __name__ == '__main__':
    np.set_printoptions(precision=3, suppress=True)
    main(sys.argv[1:])
