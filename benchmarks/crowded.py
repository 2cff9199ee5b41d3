# SPDX-License-Identifier: Apache-2.0
"""
Starve node and driver of an arm in MuJoCo, in lockstep, and print what it does to the arm.

    python benchmarks/crowded.py [--seed 0] [--write]

A Panda with friction, joint states at 1 kHz. It follows a motion in computed torque, or floats at
0.2 rad/s in gravity compensation. A process that is starved stands still now and then, on average
for a fifth of the time, for times of up to the length in the table. While the driver stands, no
state is sent and the last command acts; while the node stands, states wait, and it answers the
newest. Late states or answers alone bear a delay of the same lengths. Of each case: the largest
kinetic energy beside that of a quiet machine, and what the pipeline said. --write puts the table
into docs/latency.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from control_arm import WATCHDOG_PERIOD
from frictionless_arm import TIME_STEP, FrictionlessArm

DOCUMENT = Path(__file__).resolve().parents[1] / 'docs' / 'latency.md'
LENGTHS = (0.005, 0.02, 0.05, 0.1)  # s
SHARE = 0.2  # of the time, that a starved process stands still
WAY = np.array([0.5, 0.4, -0.5, 0.4, 0.5, -0.4, 0.5])
DURATION, END = 1.5, 3.0  # s


class Pauses:
    """When a process stands still: times drawn at random, of up to a length [s]."""

    def __init__(self, generator: np.random.Generator, longest: float) -> None:
        self.generator, self.longest, self.begin, self.end = generator, longest, 0.0, 0.0
        self._next(0.0)

    def _next(self, now: float) -> None:
        length = self.generator.uniform(0.2, 1.0) * self.longest
        work = self.generator.exponential(0.6 * self.longest * (1.0 - SHARE) / SHARE)
        self.begin, self.end = now + work, now + work + length

    def holds(self, now: float) -> bool:
        """Return whether it stands still at a time [s]."""
        if self.longest > 0.0 and now >= self.end:
            self._next(now)
        return self.longest > 0.0 and self.begin <= now


def run(mode: str, who: str, length: float, seed: int) -> float:
    """Return the largest kinetic energy [J]."""
    arm = FrictionlessArm(speed=0.0 if mode == 'computed_torque' else 0.2, mode=mode)
    arm.add_friction()
    generator = np.random.default_rng(seed)
    pauses = {
        each: Pauses(generator, length if each in who else 0.0) for each in ('node', 'driver')
    }
    delays = {each: length if each in who else 0.0 for each in ('states', 'answers')}
    states: list[tuple[float, tuple]] = []
    answers: list[tuple[float, np.ndarray]] = []
    names, buffer = arm.stack.model.joint_names, arm.stack.joint_states
    first, watched, is_sent = arm.now, arm.now, False
    while arm.now < first + END:
        arm.now = round(arm.now + TIME_STEP, 9)
        is_driving = not pauses['driver'].holds(arm.now)
        if is_driving:
            states.append((arm.now + delays['states'], arm.measured()))
        if not pauses['node'].holds(arm.now):
            command, newest = None, None
            while states and states[0][0] <= arm.now:
                newest = states.pop(0)[1]
            if newest is not None:
                position, velocity, stamp = newest
                age = arm.now - stamp
                buffer.receive(names, position, velocity, received=arm.now, stamp=stamp, age=age)
                command = arm.pipeline.step(buffer.take(), arm.now)
            elif arm.now - watched >= WATCHDOG_PERIOD:
                command, watched = arm.pipeline.watchdog(arm.now), arm.now
            if command is not None:
                answers.append((arm.now + delays['answers'], command.torque))
            if mode == 'computed_torque' and not is_sent and arm.now > first + 0.3:
                arm.follow(WAY, DURATION)
                is_sent = True
        while is_driving and answers and answers[0][0] <= arm.now:
            arm.torque = answers.pop(0)[1]
        arm.step()
    return max(arm.energies)


def main(arguments: argparse.Namespace) -> None:
    """Print the table, and write it where that is asked for."""
    cases = [('node',), ('driver',), ('node', 'driver'), ('states',), ('answers',)]
    lines = [
        '| mode | late or starved | '
        + ' | '.join(f'{1e3 * length:g} ms' for length in LENGTHS)
        + ' |',
        '|---|---|' + '--:|' * len(LENGTHS),
    ]
    for mode in ('computed_torque', 'gravity_compensation'):
        quiet = run(mode, (), 0.0, arguments.seed)
        for who in cases:
            rows = [run(mode, who, length, arguments.seed) for length in LENGTHS]
            ratios = ' | '.join(f'{energy / quiet:.2f}' for energy in rows)
            lines.append(f'| {mode}, {quiet:.3f} J | {" and ".join(who)} | {ratios} |')
    table = '\n'.join(lines)
    print(table)
    if arguments.write:
        text = DOCUMENT.read_text(encoding='utf-8')
        begin, end = '<!-- crowded: begin -->\n', '<!-- crowded: end -->'
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        DOCUMENT.write_text(f'{before}{begin}{table}\n{end}{after}', encoding='utf-8')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--write', action='store_true')
    main(parser.parse_args())
