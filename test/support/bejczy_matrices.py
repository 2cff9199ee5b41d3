# SPDX-License-Identifier: Apache-2.0
"""
Appendix A of Bejczy 1974: the partial derivatives U_ji of the JPL arm's transforms, (A.1)-(A.21).

Nothing of the package is in here. ``printed=True`` is the print to the letter; four elements of it
are misprinted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bejczy import R2, R6, functions
from numpy.typing import NDArray

MATRICES = [(j, i) for i in range(1, 7) for j in range(i, 7)]
# Matrix j, i; row and column from 1.
MISPRINTS = [(2, 1, 1, 3), (5, 2, 3, 3), (5, 4, 1, 2), (6, 5, 3, 2)]


def partial_derivative(j: int, i: int, q: NDArray, *, printed: bool = False) -> NDArray:
    """Return U_ji (..., 4, 4) at joint positions q (..., 6)."""
    f = functions(q)
    rows = _ROWS[i](f, j, printed)
    zero = 0 * f.one
    full = [[zero + x for x in row] for row in rows]
    full += [[zero] * 4 for _ in range(4 - len(full))]
    return np.moveaxis(np.array(full), (0, 1), (-2, -1))


def _by_1(f: Any, j: int, printed: bool) -> list[list[Any]]:
    s1, c1, s2, c2, s4, c4, s5, c5, s6, c6, r3 = _all(f)
    if j == 1:
        return [[-s1, 0, -c1, 0], [c1, 0, -s1, 0]]
    if j == 2:
        last = s1 * s2 if printed else -s1 * s2
        return [[-s1 * c2, -c1, last, -R2 * c1], [c1 * c2, -s1, c1 * s2, -R2 * s1]]
    reach = [-(r3 * s1 * s2 + R2 * c1), r3 * c1 * s2 - R2 * s1]
    if j == 3:
        return [[c1, -s1 * c2, -s1 * s2, reach[0]], [s1, c1 * c2, c1 * s2, reach[1]]]
    if j == 4:
        return [
            [c1 * c4 - s1 * c2 * s4, s1 * s2, -(c1 * s4 + s1 * c2 * c4), reach[0]],
            [s1 * c4 + c1 * c2 * s4, -c1 * s2, -(s1 * s4 - c1 * c2 * c4), reach[1]],
        ]
    z = [
        c1 * c4 * s5 - s1 * c2 * s4 * s5 - s1 * s2 * c5,
        s1 * c4 * s5 + c1 * c2 * s4 * s5 + c1 * s2 * c5,
    ]
    if j == 5:
        return [
            [
                c1 * c4 * c5 - s1 * c2 * s4 * c5 + s1 * s2 * s5,
                -(c1 * s4 + s1 * c2 * c4),
                z[0],
                reach[0],
            ],
            [
                s1 * c4 * c5 + c1 * c2 * s4 * c5 - c1 * s2 * s5,
                -(s1 * s4 - c1 * c2 * c4),
                z[1],
                reach[1],
            ],
        ]
    return [
        [
            c1 * c4 * c5 * c6 - s1 * c2 * s4 * c5 * c6 + s1 * s2 * s5 * c6
            - c1 * s4 * s6 - s1 * c2 * c4 * s6,
            -c1 * c4 * c5 * s6 + s1 * c2 * s4 * c5 * s6 - s1 * s2 * s5 * s6
            - c1 * s4 * c6 - s1 * c2 * c4 * c6,
            z[0],
            R6 * z[0] + reach[0],
        ],
        [
            s1 * c4 * c5 * c6 + c1 * c2 * s4 * c5 * c6 - c1 * s2 * s5 * c6
            - s1 * s4 * s6 + c1 * c2 * c4 * s6,
            -s1 * c4 * c5 * s6 - c1 * c2 * s4 * c5 * s6 + c1 * s2 * s5 * s6
            - s1 * s4 * c6 + c1 * c2 * c4 * c6,
            z[1],
            R6 * z[1] + reach[1],
        ],
    ]  # fmt: skip


def _by_2(f: Any, j: int, printed: bool) -> list[list[Any]]:
    s1, c1, s2, c2, s4, c4, s5, c5, s6, c6, r3 = _all(f)
    if j == 2:
        return [[-c1 * s2, 0, c1 * c2, 0], [-s1 * s2, 0, s1 * c2, 0], [-c2, 0, -s2, 0]]
    reach = [r3 * c1 * c2, r3 * s1 * c2, -r3 * s2]
    if j == 3:
        return [
            [0, -c1 * s2, c1 * c2, reach[0]],
            [0, -s1 * s2, s1 * c2, reach[1]],
            [0, -c2, -s2, reach[2]],
        ]
    if j == 4:
        return [
            [-c1 * s2 * s4, -c1 * c2, -c1 * s2 * c4, reach[0]],
            [-s1 * s2 * s4, -s1 * c2, -s1 * s2 * c4, reach[1]],
            [-c2 * s4, s2, -c2 * c4, reach[2]],
        ]
    z = [
        -c1 * s2 * s4 * s5 + c1 * c2 * c5,
        -s1 * s2 * s4 * s5 + s1 * c2 * c5,
        -c2 * s4 * s5 - s2 * c5,
    ]
    if j == 5:
        last = -c2 * s4 * s5 + s2 * c5 if printed else z[2]
        return [
            [-(c1 * s2 * s4 * c5 + c1 * c2 * s5), -c1 * s2 * c4, z[0], reach[0]],
            [-(s1 * s2 * s4 * c5 + s1 * c2 * s5), -s1 * s2 * c4, z[1], reach[1]],
            [-c2 * s4 * c5 + s2 * s5, -c2 * c4, last, reach[2]],
        ]
    return [
        [
            -(c1 * s2 * s4 * c5 * c6 + c1 * c2 * s5 * c6 + c1 * s2 * c4 * s6),
            c1 * s2 * s4 * c5 * s6 + c1 * c2 * s5 * s6 - c1 * s2 * c4 * c6,
            z[0],
            R6 * z[0] + reach[0],
        ],
        [
            -(s1 * s2 * s4 * c5 * c6 + s1 * c2 * s5 * c6 + s1 * s2 * c4 * s6),
            s1 * s2 * s4 * c5 * s6 + s1 * c2 * s5 * s6 - s1 * s2 * c4 * c6,
            z[1],
            R6 * z[1] + reach[1],
        ],
        [
            -c2 * s4 * c5 * c6 + s2 * s5 * c6 - c2 * c4 * s6,
            c2 * s4 * c5 * s6 - s2 * s5 * s6 - c2 * c4 * c6,
            z[2],
            R6 * z[2] + reach[2],
        ],
    ]


def _by_3(f: Any, j: int, printed: bool) -> list[list[Any]]:
    return [[0, 0, 0, f.c1 * f.s2], [0, 0, 0, f.s1 * f.s2], [0, 0, 0, f.c2]]


def _by_4(f: Any, j: int, printed: bool) -> list[list[Any]]:
    s1, c1, s2, c2, s4, c4, s5, c5, s6, c6, _ = _all(f)
    if j == 4:
        return [
            [-s1 * s4 + c1 * c2 * c4, 0, -(s1 * c4 + c1 * c2 * s4), 0],
            [c1 * s4 + s1 * c2 * c4, 0, c1 * c4 - s1 * c2 * s4, 0],
            [-s2 * c4, 0, s2 * s4, 0],
        ]
    z = [-s1 * s4 * s5 + c1 * c2 * c4 * s5, c1 * s4 * s5 + s1 * c2 * c4 * s5, -s2 * c4 * s5]
    if j == 5:
        second = -s1 * c4 + c1 * c2 * s4 if printed else -s1 * c4 - c1 * c2 * s4
        return [
            [-s1 * s4 * c5 + c1 * c2 * c4 * c5, second, z[0], 0],
            [c1 * s4 * c5 + s1 * c2 * c4 * c5, c1 * c4 - s1 * c2 * s4, z[1], 0],
            [-s2 * c4 * c5, s2 * s4, z[2], 0],
        ]
    return [
        [
            -s1 * s4 * c5 * c6 + c1 * c2 * c4 * c5 * c6 - s1 * c4 * s6 - c1 * c2 * s4 * s6,
            s1 * s4 * c5 * s6 - c1 * c2 * c4 * c5 * s6 - s1 * c4 * c6 - c1 * c2 * s4 * c6,
            z[0],
            R6 * z[0],
        ],
        [
            c1 * s4 * c5 * c6 + s1 * c2 * c4 * c5 * c6 + c1 * c4 * s6 - s1 * c2 * s4 * s6,
            -c1 * s4 * c5 * s6 - s1 * c2 * c4 * c5 * s6 + c1 * c4 * c6 - s1 * c2 * s4 * c6,
            z[1],
            R6 * z[1],
        ],
        [
            -s2 * c4 * c5 * c6 + s2 * s4 * s6,
            s2 * c4 * c5 * s6 + s2 * s4 * c6,
            z[2],
            R6 * z[2],
        ],
    ]


def _by_5(f: Any, j: int, printed: bool) -> list[list[Any]]:
    s1, c1, s2, c2, s4, c4, s5, c5, s6, c6, _ = _all(f)
    x = [
        -(s1 * c4 * s5 + c1 * c2 * s4 * s5 + c1 * s2 * c5),
        c1 * c4 * s5 - s1 * c2 * s4 * s5 - s1 * s2 * c5,
        s2 * s4 * s5 - c2 * c5,
    ]
    z = [
        s1 * c4 * c5 + c1 * c2 * s4 * c5 - c1 * s2 * s5,
        -c1 * c4 * c5 + s1 * c2 * s4 * c5 - s1 * s2 * s5,
        -(s2 * s4 * c5 + c2 * s5),
    ]
    if j == 5:
        return [[x[k], 0, z[k], 0] for k in range(3)]
    second = [-x[k] * s6 for k in range(3)]
    if printed:
        second[2] = -s2 * s4 * s5 * s6 - c2 * c5 * s6
    return [[x[k] * c6, second[k], z[k], R6 * z[k]] for k in range(3)]


def _by_6(f: Any, j: int, printed: bool) -> list[list[Any]]:
    s1, c1, s2, c2, s4, c4, s5, c5, s6, c6, _ = _all(f)
    return [
        [
            -s1 * c4 * c5 * s6 - c1 * c2 * s4 * c5 * s6 + c1 * s2 * s5 * s6
            - s1 * s4 * c6 + c1 * c2 * c4 * c6,
            -s1 * c4 * c5 * c6 - c1 * c2 * s4 * c5 * c6 + c1 * s2 * s5 * c6
            + s1 * s4 * s6 - c1 * c2 * c4 * s6,
            0,
            0,
        ],
        [
            c1 * c4 * c5 * s6 - s1 * c2 * s4 * c5 * s6 + s1 * s2 * s5 * s6
            + c1 * s4 * c6 + s1 * c2 * c4 * c6,
            c1 * c4 * c5 * c6 - s1 * c2 * s4 * c5 * c6 + s1 * s2 * s5 * c6
            - c1 * s4 * s6 - s1 * c2 * c4 * s6,
            0,
            0,
        ],
        [
            s2 * s4 * c5 * s6 + c2 * s5 * s6 - s2 * c4 * c6,
            s2 * s4 * c5 * c6 + c2 * s5 * c6 + s2 * c4 * s6,
            0,
            0,
        ],
    ]  # fmt: skip


def _all(f: Any) -> tuple[Any, ...]:
    return f.s1, f.c1, f.s2, f.c2, f.s4, f.c4, f.s5, f.c5, f.s6, f.c6, f.r3


_ROWS = {1: _by_1, 2: _by_2, 3: _by_3, 4: _by_4, 5: _by_5, 6: _by_6}
