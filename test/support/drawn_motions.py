# SPDX-License-Identifier: Apache-2.0
"""Motions of three joints drawn from a seed: wear, warm-up, payload and offset as asked."""

from __future__ import annotations

import numpy as np

from robodyn_ros.monitoring.ageing import MotionEntry
from robodyn_ros.monitoring.motion_terms import MotionTerms

NAN = float('nan')


def motions(
    count: int,
    *,
    seed: int = 0,
    scatter: float = 0.02,
    wear: float = 1.0,
    since: int = 20,
    term: str = 'all',
    warm_up: float = 0.0,
    clock: bool = True,
    thermometer: bool = False,
    mass: float = 0.0,
    offset: float = 0.0,
) -> list[MotionEntry]:
    """Return drawn motions of three joints, the second of which wears; days of ten motions."""
    generator = np.random.default_rng(seed)
    made = []
    for k in range(count):
        on = 60.0 + 300.0 * (k % 10)
        cold = np.exp(-on / 900.0)
        worn = k >= since
        ratio = np.full((3, 2), 1.0 + warm_up * cold)
        if worn:
            ratio[1, {'all': slice(None), 'viscous': 0, 'coulomb': 1}[term]] *= wear
        ratio *= 1.0 + scatter * generator.normal(size=(3, 2))
        terms = MotionTerms(
            friction=ratio.mean(axis=1) - 1.0,
            friction_deviation=np.full(3, 0.01),
            terms=np.column_stack([ratio - 1.0, np.full(3, NAN)]),
            term_deviation=np.column_stack([np.full((3, 2), 0.03), np.full(3, NAN)]),
            level=np.full(3, 2.0),
            offset=np.array([0.0, offset * worn, 0.0]) + 0.02 * generator.normal(size=3),
            offset_deviation=np.full(3, 0.02),
            payload=np.array([mass * worn, 0.0, 0.0, 0.05 * mass * worn])
            + 0.003 * generator.normal(size=4),
            payload_deviation=np.full(4, 0.003),
            residual=np.full(3, 0.1),
            left_out=0.0,
            duration=10.0,
            digest=f'{seed}-{k}',
        )
        made.append(
            MotionEntry(
                terms,
                f'motion {k}',
                86_400.0 * (k // 10 + 1) + on,
                on if clock else NAN,
                45.0 - 25.0 * cold if thermometer else NAN,
            )
        )
    return made
