# SPDX-License-Identifier: Apache-2.0
"""
Draw random sequences of events for an arm in MuJoCo, and print which exceed an energy bound.

    python benchmarks/sequences.py [--sequences 1000] [--seed 0] [--write]

A frictionless Panda (with friction where states are slow) under the command pipeline, in lockstep:
modes, gains, limits, references, contacts, stops, payloads, pushes, a base that tilts, gaps,
outliers of positions, clocks that are set, velocities that are reversed, zero, scaled, in degrees,
late or missing; half of the sequences of drivers come in as the controller's. Then streams of
positions, a second source of states, mounted bases; and an arm on springs that weighs what it
holds at any time, while hands press and let go. The largest kinetic energy is compared with 1.1
times that of the reference plus 0.05 J (of streams 1.44 times) and the work of external forces.
Printed of each kind are how many sequences exceed that, by how much the
worst, how many motions were followed and refused, and in how many sequences velocities were found
wrong. Then the largest kinetic energy of an arm that begins with 0.2 rad/s in gravity
compensation, over the rate of its joint states. --write puts both tables into docs/safety.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from frictionless_arm import FrictionlessArm
from hypothesis import HealthCheck, Phase, given, seed, settings
from random_sequences import KINDS, STREAMS, WEIGHED

from robodyn_ros.control.core_binding import core

DOCUMENT = Path(__file__).resolve().parents[1] / 'docs' / 'safety.md'
RATES = (5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 1000.0)  # Hz
DURATION = 8.0  # s
ALL = {**KINDS, 'streams, sources, mounts': STREAMS, 'loads that are weighed': WEIGHED}


def row(kind: str, count: int, first: int) -> str:
    """Return what a number of sequences of a kind did."""
    arms = []

    @seed(first)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ALL[kind])
    def draw(case):
        arm = case.run()
        found_wrong = bool(arm.pipeline.wrong_velocities)
        arms.append((arm.excess, arm.followed, arm.refused, found_wrong))

    draw()
    excesses, followed, refused, found_wrong = zip(*arms, strict=True)
    beyond = [excess for excess in excesses if excess > 0.0]
    worst = f'{max(beyond):.3f}' if beyond else '–'
    numbers = f'{sum(followed)} | {sum(refused)} | {sum(found_wrong)}'
    return f'| {kind} | {len(arms)} | {len(beyond)} | {worst} | {numbers} |'


def growth(rate: float) -> str:
    """Return by how much the energy of an arm grows where joint states come at a rate [Hz]."""
    arm = FrictionlessArm(speed=0.2, period=1.0 / rate, state_timeout=max(0.1, 2.5 / rate))
    arm.run(DURATION)
    grown, left = max(arm.energies) / arm.energies[0], arm.energies[-1] / arm.energies[0]
    is_told = 'yes' if arm.pipeline.slow_rate is not None else 'no'
    return f'| {rate:g} | {grown:.2f} | {left:.1e} | {is_told} |'


def main(arguments: argparse.Namespace) -> None:
    sequences = [
        '| events | sequences | beyond the bound | worst [J] | motions | refused '
        '| wrong velocities |',
        '|---|--:|--:|--:|--:|--:|--:|',
        *(row(kind, arguments.sequences, arguments.seed) for kind in ALL),
    ]
    rates = [
        f'| states [Hz] | largest energy, of the first | after {DURATION:g} s | WARN |',
        '|--:|--:|--:|---|',
        *(growth(rate) for rate in RATES),
    ]
    print(*sequences, '', *rates, f'(a WARN below {core.GRAVITY_RATE:g} Hz)', sep='\n')
    if arguments.write:
        text = DOCUMENT.read_text(encoding='utf-8')
        for name, lines in (('sequences', sequences), ('rates', rates)):
            begin, end = f'<!-- {name}: begin -->\n', f'<!-- {name}: end -->'
            before, rest = text.split(begin)
            text = before + begin + '\n'.join(lines) + '\n' + end + rest.split(end)[1]
        DOCUMENT.write_text(text, encoding='utf-8')


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--sequences', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--write', action='store_true')
    main(parser.parse_args())
