# SPDX-License-Identifier: Apache-2.0
"""
Read damaged URDF text, by default 100 000 seeded mutations: models and RobodynErrors only.

    python benchmarks/fuzz_urdf.py [count]
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
from mutations import mutated
from robots import public_urdf, random_chain, two_link_urdf

import robodyn_ros as rd


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    sources = [
        two_link_urdf(),
        random_chain(np.random.default_rng(1), 4),
        random_chain(np.random.default_rng(2), 2),
        public_urdf('double_pendulum.urdf').read_text(),
    ]
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    memory = peak_megabytes()
    for seed in range(count):
        text = mutated(sources[seed % len(sources)], seed)
        start = time.perf_counter()
        try:
            rd.RobotModel.from_urdf(text)
            outcomes['a model'] += 1
        except rd.RobodynError as error:
            outcomes[type(error).__name__] += 1
        slowest = max(slowest, time.perf_counter() - start)
    for name, number in outcomes.most_common():
        print(f'{number:8d}  {name}')
    print(
        f'{count} mutations; slowest {slowest * 1e3:.0f} ms; '
        f'memory grew by {peak_megabytes() - memory:.0f} MB'
    )


def peak_megabytes() -> float:
    """Return the most memory this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == '__main__':
    main()
