# SPDX-License-Identifier: Apache-2.0
"""
Check what every output of ``retime`` promises, between its points, by code of others.

    python benchmarks/timing_promises.py [--paths 20] [--places 1000] [ARM ...]

Random paths of three arms (test/support/timing_oracle.py): a light wrist under limits of velocity
and acceleration, a Panda without friction, a UR10 whose gravity and friction at rest need 0.8 and
0.9 of an effort limit. Of each output: how many paths are beyond a limit at so many places between
each two points, as the joint trajectory controller interpolates, and the largest part of each
limit that is used. Durations beside toppra's under the same limits, with its friction constraint,
and those of ``corners='goal'`` beside Ruckig's with the best acceleration for each path. Last, the
processor time for a thousand waypoints. toppra and Ruckig: ``pip install toppra ruckig``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from timing_oracle import (
    FILES,
    OUTPUTS,
    ROUNDING,
    Case,
    by_ruckig,
    by_toppra,
    cases,
    largest_jerk,
    sent,
    shares,
)

import robodyn_ros as rd

JERK = 500.0  # [rad/s³]
# Other ways to a motion, each of some paths: options of `robodyn retime`.
WAYS = {
    'stop': ('--corners', 'stop'),
    'blend': ('--corners', 'blend', '--tolerance', 0.02),
    'jerk': ('--jerk-limit', JERK),
    'margin': ('--margin', 0.1),
}
PATHS_OF_WAYS = 5
LIMITS = ('position', 'velocity', 'acceleration', 'torque', 'effort')


class Tally:
    """Counts what one output of one arm keeps."""

    def __init__(self) -> None:
        self.worst: dict[str, float] = defaultdict(float)
        self.beyond: list[str] = []
        self.refused: list[str] = []
        self.count = 0
        self.ratios: list[tuple[float, str]] = []

    def add(self, case: Case, output: str, folder: Path, places: int, *options: object) -> float:
        """Judge an output and return its duration [s], NaN where the path is refused."""
        self.count += 1
        try:
            points = sent(case, output, folder, *options)
        except (rd.RobodynError, AssertionError) as error:
            self.refused.append(f'{case.name}: {error}'.replace('\n', ' ')[:150])
            return np.nan
        used = shares(case, points, places)
        if '--margin' in options:
            used = {
                name: value / (0.9 if name == 'torque' else 1.0) for name, value in used.items()
            }
        if '--jerk-limit' in options:
            used['jerk'] = float((largest_jerk(points) / JERK).max())
        if output == 'message':  # the node has no limit of acceleration
            used.pop('acceleration')
        for name, value in used.items():
            self.worst[name] = max(self.worst[name], value)
        if any(value > 1.0 + ROUNDING for name, value in used.items() if name in LIMITS):
            self.beyond.append(case.name)
        return float(points.time[-1] - points.time[0])

    def show(self, name: str) -> None:
        """Print a line, and what was refused."""
        made = self.count - len(self.refused)
        used = ', '.join(f'{limit} {value:.6f}' for limit, value in self.worst.items())
        print(f'  {name:14s} {len(self.beyond)} of {made} beyond a limit; largest: {used}')
        if self.ratios:
            ratios = np.array([ratio for ratio, _ in self.ratios])
            worst = max(self.ratios)
            print(
                f'  {"":14s} beside toppra {np.median(ratios):.4f} ({ratios.min():.4f} to '
                f'{ratios.max():.4f}, {worst[1]}); {(ratios > 1.01).sum()} above 1.01, '
                f'{(ratios > 1.1).sum()} above 1.1'
            )
        for refusal in self.refused[:3]:
            print(f'  {"":14s} refused {refusal}')
        if len(self.refused) > 3:
            print(f'  {"":14s} and {len(self.refused) - 3} more')


def judge(name: str, paths: int, places: int, folder: Path) -> None:
    """Print what an arm's outputs keep, and how long they take."""
    tallies = {output: Tally() for output in (*OUTPUTS, *WAYS)}
    goals = []
    found = list(cases(name, paths, folder))
    for k, case in enumerate(found):
        shortest = by_toppra(case)
        for output in OUTPUTS:
            tally = tallies[output]
            duration = tally.add(case, output, folder, places)
            # The node's messages keep no limit of acceleration: only others compare.
            is_like = output != 'message' or np.isinf(case.acceleration).all()
            if shortest is not None and np.isfinite(duration) and is_like:
                tally.ratios.append((duration / shortest, case.name))
        if k < PATHS_OF_WAYS:
            for way, options in WAYS.items():
                tallies[way].add(case, 'yaml', folder, places, *options)
        try:
            limits = np.minimum(case.acceleration, 50.0)
            ends = case.points[[0, -1]]
            goal = rd.retime(case.model, ends, corners='goal', acceleration_limits=limits)
            goals.append(goal.duration / by_ruckig(case))
        except rd.RobodynError as error:
            print(f'  goal of {case.name}: {error}'[:150])
    print(f'{name}: {len(found)} paths, {places} places between each two points')
    for output, tally in tallies.items():
        tally.show(output)
    if goals:
        spread = f'{np.median(goals):.3f} ({min(goals):.3f} to {max(goals):.3f})'
        print(f'  goal beside Ruckig with the best acceleration {spread}', flush=True)


def thousand() -> None:
    """Print the processor time for a thousand waypoints."""
    generator = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        case = next(cases('bare', 1, Path(folder)))
        model = rd.compile_model(case.model)
        walk = np.cumsum(generator.uniform(-1.0, 1.0, (1000, model.n)), axis=0)
        low, high = model.model.position_limits.T
        # Smooth and within the limits: sums of sines through the middle of each range.
        s = np.linspace(0.0, 40.0, 1000)[:, None]
        points = 0.5 * (low + high) + 0.2 * (high - low) * np.sin(s * (1 + 0.1 * walk[0]))
        times = []
        for _ in range(3):
            begin = process_time()
            rd.retime(model, points)
            times.append(process_time() - begin)
    print(f'1000 waypoints, 7 joints: {min(times):.3f} s of processor')


def main() -> None:
    """Print the figures of the arms that are named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('arms', nargs='*', metavar='ARM')
    parser.add_argument('--paths', type=int, default=20)
    parser.add_argument('--places', type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.arms or FILES:
            judge(name, options.paths, options.places, Path(folder))
    thousand()


if __name__ == '__main__':
    main()
