# SPDX-License-Identifier: Apache-2.0
"""
Push arms in MuJoCo under the dynamics node over DDS, and count the detected contacts.

    python benchmarks/contact_over_dds.py [--pushes 100] [--minutes 10] [--arm panda]

Node and simulator are processes in lockstep, so that all times are simulated ones. The arm has the
friction of drives, 1 % of their effort limits, noisy sensors and efforts, and sways along sines.
Thresholds are those of 80 s of such motions. Then, while it sways along others, the tip is pushed
with 15 N for 0.3 s in random directions, once a second: printed are the number of pushes reported
within 0.35 s, and the delay. Last it sways without contact, and every contact is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import domains
import numpy as np
from contact_rig import SwayingRig, thresholds_of_free_motion
from pushed_arm import ARMS

FORCE, DURATION, PATIENCE = 15.0, 0.3, 0.35


def measure(name: str, folder: Path, pushes: int, minutes: float) -> None:
    """Print what is found on one arm."""
    thresholds = thresholds_of_free_motion(name, folder)
    for parameter, values in thresholds.items():
        print(f'{name}: {parameter} {np.round(values, 3)} N m', flush=True)
    rig = SwayingRig(folder / 'node.log')
    try:
        rig.begin(name, folder, seed=0, **thresholds)
        if pushes:
            delays = rig.delays(pushes, FORCE, DURATION, PATIENCE)
            found = [1e3 * delay for delay in delays if delay is not None]
            print(
                f'{name}: {len(found)} of {len(delays)} pushes of {FORCE:g} N found, median '
                f'{np.median(found):.0f} ms, worst {max(found):.0f} ms '
                f'(load {os.getloadavg()[0]:.1f})',
                flush=True,
            )
        if minutes:
            count = rig.alarms(60.0 * minutes)
            print(f'{name}: {count} false alarms in {minutes:g} min of free motion', flush=True)
    finally:
        rig.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--pushes', type=int, default=100)
    parser.add_argument('--minutes', type=float, default=10.0)
    parser.add_argument('--arm', choices=sorted(ARMS), action='append')
    options = parser.parse_args()
    domains.stay_on_loopback()
    for name in options.arm or sorted(ARMS):
        with tempfile.TemporaryDirectory() as folder:
            measure(name, Path(folder), options.pushes, options.minutes)


if __name__ == '__main__':
    main()
