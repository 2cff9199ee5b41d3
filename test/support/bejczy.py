# SPDX-License-Identifier: Apache-2.0
"""
The equations of Bejczy 1974 as his pages have them: sections V and VI, Appendices A and C.

Nothing of the package is in here. ``printed=True`` is the print to the letter; without it the
misprints that the docstrings name are put right.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from paper_arms import INCH, JPL

G = 9.81
R2, R6 = 6.375 * INCH, 9.75 * INCH


@dataclass(frozen=True)
class Numbers:
    """
    Appendix B: link j has mass m[j - 1] [kg], its centre at (0, y, z) [m], m k_jii^2 in k [kg m²].

    ``x6``, ``y6`` are the offsets of Appendix C. Radii are about the link frames' origins.
    """

    m: NDArray
    y: NDArray
    z: NDArray
    k: NDArray
    x6: float = 0.0
    y6: float = 0.0

    def pseudo_inertias(self) -> NDArray:
        """Return J_1 to J_6 (6, 4, 4), in the paper's link frames."""
        result = np.zeros((6, 4, 4))
        for j in range(6):
            x = self.x6 if j == 5 else 0.0
            y = self.y6 if j == 5 else self.y[j]
            result[j, :3, :3] = np.diag(self.k[j].sum() / 2 - self.k[j])
            result[j, 3, :3] = result[j, :3, 3] = self.m[j] * np.array([x, y, self.z[j]])
            result[j, 3, 3] = self.m[j]
        return result

    def loaded(self, mass: float = 1.8, volume: float = 442e-6) -> Numbers:
        """Return the numbers with a cube in the hand, its centre at the origin of frame 6."""
        m, z, k = self.m.copy(), self.z.copy(), self.k.copy()
        m[5] += mass
        z[5] *= self.m[5] / m[5]
        k[5] += mass * volume ** (2 / 3) / 6
        return replace(self, m=m, z=z, k=k)


APPENDIX_B = Numbers(
    m=np.array(JPL.mass),
    y=np.array([center[1] for center in JPL.center]),
    z=np.array([center[2] for center in JPL.center]),
    k=np.array(JPL.inertia),
)

# Joint: largest gravity load, without and with load [N m or N], in the text (92a)-(99) and in
# Table 2, which is added up in ounces and rounded on the way: 0.6 to 1 % above the text.
TABLE_2 = {
    2: ((44.75, 68.77), (45.1, 69.3)),
    3: ((63.5, 81.17), (63.94, 81.73)),
    4: ((1.138, 5.503), (1.144, 5.54)),
    5: ((1.138, 5.503), (1.144, 5.54)),
}


def any_numbers(seed: int) -> Numbers:
    """Return numbers of which no two are alike, k611 and k622 neither, where the paper has any."""
    generator = np.random.default_rng(seed)
    y, z = generator.uniform(-0.5, 0.5, (2, 6))
    y[[2, 4, 5]] = 0.0
    return Numbers(generator.uniform(0.5, 5, 6), y, z, generator.uniform(0.5, 2, (6, 3)))


def functions(q: NDArray) -> SimpleNamespace:
    """Return sines, cosines s1 to s6, c1 to c6 and r3 of joint positions q (..., 6)."""
    q = np.asarray(q, dtype=float)
    values = {'r3': q[..., 2], 'one': np.ones(q.shape[:-1])}
    for i in (1, 2, 4, 5, 6):
        values[f's{i}'], values[f'c{i}'] = np.sin(q[..., i - 1]), np.cos(q[..., i - 1])
    return SimpleNamespace(**values)


def restricted(n: Numbers, q: NDArray) -> tuple[NDArray, NDArray]:
    """
    Return D* (..., 3, 3) and the gravity terms D_i* (..., 3), (29)-(44), at theta4..6 = 0.

    Link 3 has its starred values: the wrist as a straight extension, which neglects z4.
    """
    f = functions(q)
    m3 = n.m[2:].sum()
    z3 = (n.m[2] * n.z[2] - n.m[3] * n.y[3] + n.m[4] * n.z[4] + n.m[5] * (n.z[5] + R6)) / m3
    tip = n.m[5] * R6 * (2 * n.z[5] + R6)
    k311 = n.k[2, 0] + n.k[3, 0] + n.k[4, 0] + n.k[5, 0] + tip
    k322 = n.k[2, 1] + n.k[3, 2] + n.k[4, 1] + n.k[5, 1] + tip
    k333 = n.k[2, 2] + n.k[3, 1] + n.k[4, 2] + n.k[5, 2]
    s2, c2, r3 = f.s2, f.c2, f.r3
    zero = 0 * f.one
    d11 = (
        n.k[0, 1]
        + n.k[1, 0] * s2**2 + n.k[1, 2] * c2**2 + n.m[1] * R2 * (2 * n.y[1] + R2)
        + k322 * s2**2 + k333 * c2**2 + m3 * (r3 * s2**2 * (2 * z3 + r3) + R2**2)
    )  # fmt: skip
    d22 = n.k[1, 1] + k311 + m3 * r3 * (2 * z3 + r3)
    d12 = -(n.m[1] * n.z[1] * R2 + m3 * R2 * (z3 + r3)) * c2
    d13 = -m3 * R2 * s2
    inertia = [[d11, d12, d13], [d12, d22, zero], [d13, zero, m3 * f.one]]
    gravity = [zero, G * (n.m[1] * n.z[1] + m3 * (z3 + r3)) * s2, -m3 * G * c2]
    return np.moveaxis(np.array(inertia), (0, 1), (-2, -1)), np.stack(gravity, axis=-1)


def gravity_terms(n: Numbers, q: NDArray) -> NDArray:
    """Return D_1 to D_6 (..., 6) of (46)-(56) with (C.1)-(C.4): minus the holding torque."""
    f = functions(q)
    s2, c2, s4, c4, s5, c5, s6, c6 = f.s2, f.c2, f.s4, f.c4, f.s5, f.c5, f.s6, f.c6
    m, y, z, r3 = n.m, n.y, n.z, f.r3
    swung = c2 * s4 * s5 + s2 * c5
    d2 = (
        m[1] * z[1] * s2 + m[2] * (z[2] + r3) * s2
        + m[3] * (r3 * s2 - y[3] * s2 + z[3] * c2 * c4)
        + m[4] * (z[4] * swung + r3 * s2) + m[5] * ((z[5] + R6) * swung + r3 * s2)
        + m[5] * n.x6 * (c2 * s4 * c5 * c6 - s2 * s5 * c6 + c2 * c4 * s6)
        + m[5] * n.y6 * (-c2 * s4 * c5 * s6 + s2 * s5 * s6 + c2 * c4 * c6)
    )  # fmt: skip
    d3 = -m[2:].sum() * c2
    d4 = s2 * (
        -m[3] * z[3] * s4 + m[4] * z[4] * c4 * s5 + m[5] * (z[5] + R6) * c4 * s5
        + m[5] * n.x6 * (c4 * c5 * c6 - s4 * s6) - m[5] * n.y6 * (c4 * c5 * s6 + s4 * c6)
    )  # fmt: skip
    bent = -s2 * s4 * s5 + c2 * c5
    d5 = (m[4] * z[4] + m[5] * (z[5] + R6)) * (s2 * s4 * c5 + c2 * s5) + m[5] * (
        n.x6 * c6 * bent - n.y6 * s6 * bent
    )
    d6 = -m[5] * (
        n.x6 * (s2 * s4 * c5 * s6 + c2 * s5 * s6 - s2 * c4 * c6)
        + n.y6 * (s2 * s4 * c5 * c6 + c2 * s5 * c6 + s2 * c4 * s6)
    )
    return G * np.stack([0 * d2, d2, d3, d4, d5, d6], axis=-1)


def d11(n: Numbers, q: NDArray, *, printed: bool = False) -> NDArray:
    """
    Return D_11 of (58) with (C.7).

    Misprints: in m4's terms k411, k422, k433 have to go with s2² s4², c2², s2² c4², and z4 with
    2 (r2 s4 + r3 s2 c2 c4); in m5's, z5 r3 with s2 c2 s4 s5 instead of s2 s4 c5; in m6's, the
    first square is of r6 c2 s4 s5 + (r6 c5 + r3) s2. (C.7) has - r3 s2 with x6, which is +, and
    c4 c5 c6 with y6, which is c4 c5 s6.
    """
    f = functions(q)
    s2, c2, s4, c4, s5, c5, s6, c6 = f.s2, f.c2, f.s4, f.c4, f.s5, f.c5, f.s6, f.c6
    m, y, z, k, r3 = n.m, n.y, n.z, n.k, f.r3
    total = k[0, 1] + k[1, 0] * s2**2 + k[1, 2] * c2**2 + m[1] * R2 * (2 * y[1] + R2)
    total = total + k[2, 1] * s2**2 + k[2, 2] * c2**2
    total = total + m[2] * (r3 * (2 * z[2] + r3) * s2**2 + R2**2)
    if printed:
        turned = (
            k[3, 0] * (s2**2 * (2 * s4**2 - 1) + s4**2) / 2
            + k[3, 1] * (1 + c2**2 + s4**2) / 2
            + k[3, 2] * (s2**2 * (1 - 2 * s4**2) - s4**2) / 2
        )
        lever = R2 * s4**2 + r3 * s2**2 * c4**2
        bent = s2 * s4 * c5
        square = (R6 * c2 * s4 * s5 + (R6 * c5 + r3) * s2**2) ** 2
    else:
        turned = k[3, 0] * s2**2 * s4**2 + k[3, 1] * c2**2 + k[3, 2] * s2**2 * c4**2
        lever = R2 * s4 + r3 * s2 * c2 * c4
        bent = s2 * c2 * s4 * s5
        square = (R6 * c2 * s4 * s5 + (R6 * c5 + r3) * s2) ** 2
    total = total + turned + m[3] * (r3**2 * s2**2 + R2**2 - 2 * y[3] * r3 * s2**2)
    total = total + 2 * m[3] * z[3] * lever
    total = total + (k[4].sum() / 2 - k[4, 0]) * ((s2 * s5 - c2 * s4 * c5) ** 2 + c4**2 * c5**2)
    total = total + (k[4].sum() / 2 - k[4, 1]) * (s4**2 + c2**2 * c4**2)
    total = total + (k[4].sum() / 2 - k[4, 2]) * ((s2 * c5 + c2 * s4 * s5) ** 2 + c4**2 * s5**2)
    total = total + m[4] * (r3**2 * s2**2 + R2**2)
    total = total + 2 * m[4] * z[4] * (r3 * (s2**2 * c5 + bent) - R2 * c4 * s5)
    total = total + (k[5].sum() / 2 - k[5, 0]) * (
        (s2 * s5 * c6 - c2 * s4 * c5 * c6 - c2 * c4 * s6) ** 2 + (c4 * c5 * c6 - s4 * s6) ** 2
    )
    total = total + (k[5].sum() / 2 - k[5, 1]) * (
        (c2 * s4 * c5 * s6 - s2 * s5 * s6 - c2 * c4 * c6) ** 2 + (c4 * c5 * s6 + s4 * c6) ** 2
    )
    total = total + (k[5].sum() / 2 - k[5, 2]) * ((c2 * s4 * s5 + s2 * c5) ** 2 + c4**2 * s5**2)
    total = total + m[5] * (square + (R6 * c4 * s5 - R2) ** 2)
    total = total + 2 * m[5] * z[5] * (
        R6 * (s2**2 * c5**2 + c4**2 * s5**2 + c2**2 * s4**2 * s5**2 + 2 * s2 * c2 * s4 * s5 * c5)
        + r3 * (s2 * c2 * s4 * s5 + s2**2 * c5)
        - R2 * c4 * s5
    )
    tip = R6 * (c2 * s4 * s5 + s2 * c5)
    x6 = (tip + (-1 if printed else 1) * r3 * s2) * (
        c2 * s4 * c5 * c6 - s2 * s5 * c6 + c2 * c4 * s6
    ) + (R6 * c4 * s5 - R2) * (c4 * c5 * c6 - s4 * s6)
    y6 = (tip + r3 * s2) * (s2 * s5 * s6 + c2 * c4 * c6 - c2 * s4 * c5 * s6) + (
        R2 - R6 * c4 * s5
    ) * (c4 * c5 * (c6 if printed else s6) + s4 * c6)
    return total + 2 * m[5] * (n.x6 * x6 + n.y6 * y6)


def d22(n: Numbers, q: NDArray, *, printed: bool = False) -> NDArray:
    """Return D_22 of (60) with (C.6), whose x6 term ends in s5 c6, not s5 s6."""
    f = functions(q)
    s4, c4, s5, c5, s6, c6 = f.s4, f.c4, f.s5, f.c5, f.s6, f.c6
    m, y, z, k, r3 = n.m, n.y, n.z, n.k, f.r3
    inner = s4**2 * c5**2 + s5**2 - c4**2
    outer = s4**2 * s5**2
    mixed = 4 * s4 * c4 * s6 * c6
    hand = (
        k[5, 0] * ((s6**2 - c6**2) * inner + c5 * (c5 - mixed) + outer) / 2
        + k[5, 1] * ((c6**2 - s6**2) * inner + c5 * (c5 + mixed) + outer) / 2
        + k[5, 2] * c4**2 * s5**2
        + m[5] * (r3 * (2 * R6 * c5 + r3) + R6**2 * (outer + c5**2))
        + 2 * m[5] * z[5] * ((r3 + R6 * c5) * c5 + R6 * outer)
    )
    x6 = R6 * s4 * s5 * (c4 * s6 + s4 * c5 * c6) - (R6 * c5 + r3) * s5 * (s6 if printed else c6)
    y6 = s5 * s6 * (R6 * c5 + r3) - R6 * s4 * s5 * (s4 * c5 * s6 - c4 * c6)
    return (
        k[1, 1] + k[2, 0] + m[2] * r3 * (2 * z[2] + r3)
        + k[3, 0] * c4**2 + k[3, 2] * s4**2 + m[3] * r3 * (r3 - 2 * y[3])
        + k[4, 0] * c4**2 * c5**2 + k[4, 1] * s4**2 + k[4, 2] * c4**2 * s5**2
        + m[4] * r3 * (r3 + 2 * z[4] * c5)
        + hand + 2 * m[5] * (n.x6 * x6 + n.y6 * y6)
    )  # fmt: skip


def d44(n: Numbers, q: NDArray) -> NDArray:
    """Return D_44 of (64) with (C.5)."""
    f = functions(q)
    s5, c5, s6, c6, k, m = f.s5, f.c5, f.s6, f.c6, n.k, n.m
    return (
        k[3, 1] + k[4, 0] * s5**2 + k[4, 2] * c5**2
        + k[5, 0] * s5**2 * c6**2 + k[5, 1] * s5**2 * s6**2 + k[5, 2] * c5**2
        + m[5] * R6 * (2 * n.z[5] + R6) * s5**2
        + 2 * m[5] * R6 * s5 * c5 * (n.x6 * c6 - n.y6 * s6)
    )  # fmt: skip


def d55(n: Numbers, q: NDArray, *, printed: bool = False) -> NDArray:
    """Return D_55 of (66), printed with theta5 and k611 c², k622 s²; it is k611 s6², k622 c6²."""
    f = functions(q)
    first, second = (f.c5, f.s5) if printed else (f.s6, f.c6)
    turned = n.k[5, 0] * first**2 + n.k[5, 1] * second**2
    return n.k[4, 1] + turned + n.m[5] * R6 * (2 * n.z[5] + R6)


def d33(n: Numbers, q: NDArray) -> NDArray:
    """Return D_33 of (62)."""
    return n.m[2:].sum() * functions(q).one


def d66(n: Numbers, q: NDArray) -> NDArray:
    """Return D_66 of (68)."""
    return n.k[5, 2] * functions(q).one


def constants(n: Numbers, rotors: NDArray) -> tuple[dict[int, float], ...]:
    """
    Return a_1..a_9, b_1..b_20 and d_1..d_4 by their formulas, rotors the input inertias (6,).

    a under (107), with the starred values of (36)-(44); b under (119)-(126); d under (127).
    """
    m, y, z, k = n.m, n.y, n.z, n.k
    tip = m[5] * (z[5] + R6)
    moment = m[2] * z[2] - m[3] * y[3] + m[4] * z[4] + tip
    b9 = m[5] * R6 * (R6 + 2 * z[5])
    fixed = rotors[0] + k[0, 1] + 2 * m[1] * y[1] * R2 + m[1:5].sum() * R2**2
    a = {
        1: fixed + m[5] * R2**2,
        2: k[1, 0] + k[2, 1] + k[3, 2] + k[4, 1] + k[5, 1] + b9,
        3: 2 * moment,
        4: m[2:].sum(),
        5: k[1, 2] + k[2, 2] + k[3, 1] + k[4, 2] + k[5, 2],
        6: m[1] * z[1] * R2 + R2 * moment,
        7: m[2:].sum() * R2,
        8: rotors[1] + k[1, 1] + k[2, 0] + k[3, 0] + k[4, 0] + k[5, 0] + b9,
        9: rotors[2] + m[2:].sum(),
    }
    b = {
        1: fixed + (k[1, 0] + k[1, 2]) / 2,
        2: k[2, 1],
        3: 2 * (m[2] * z[2] - m[3] * y[3]),
        4: m[2:].sum(),
        5: 2 * m[4] * z[4] + 2 * tip,
        6: tip,
        7: m[3] * z[3],
        8: m[4] * z[4],
        9: b9,
        10: 2 * R2 * (m[4] * z[4] + tip),
        11: 2 * m[3] * z[3] * R2,
        12: m[5] * R2**2,
        13: rotors[1] + k[1, 1] + k[2, 0],
        14: rotors[3] + k[3, 1],
        15: k[4, 0] + k[5, 0] + b9,
        16: k[4, 2] + k[5, 2],
        17: rotors[4] + k[4, 1],
        18: k[5, 0] + b9,
        19: rotors[5],
        20: k[5, 2],
    }
    d = {
        1: m[1] * z[1] + m[2] * z[2] - m[3] * y[3],
        2: m[2:].sum(),
        3: m[4] * z[4] + tip,
        4: m[3] * z[3],
    }
    return a, b, d


def long_d11(b: dict[int, float], q: NDArray, *, printed: bool = False) -> NDArray:
    """
    Return D_11 of (119), with a plus after b1.

    Misprints: b8 goes with sin(2 theta2) s4 s5, printed sin(2 theta4) s5; b10 with minus.
    """
    f = functions(q)
    s2, c2, s4, c4, s5, c5, r3 = f.s2, f.c2, f.s4, f.c4, f.s5, f.c5, f.r3
    twice = 2 * s2 * c2
    eighth = 2 * s4 * c4 * s5 if printed else twice * s4 * s5
    return (
        b[1] + (b[2] + b[3] * r3 + b[4] * r3**2) * s2**2
        + r3 * (b[5] * s2**2 * c5 + b[6] * twice * s4 * s5 + b[7] * twice * c4 + b[8] * eighth)
        + b[9] * (c4**2 * s5**2 + s2**2 * c5**2 + c2**2 * s4**2 * s5**2 + twice * s4 * s5 * c5)
        + (1 if printed else -1) * b[10] * c4 * s5 + b[11] * s4 + b[12]
    )  # fmt: skip


def simplified_inertias(b: dict[int, float], q: NDArray) -> dict[str, NDArray]:
    """Return the simplified total inertias by the number of their equation, (120)-(126)."""
    f = functions(q)
    s5, c5, r3 = f.s5, f.c5, f.r3
    boom = (b[3] + b[5] * c5) * r3 + b[4] * r3**2
    return {
        '(120)': b[1] + (b[2] + boom) * f.s2**2,
        '(121)': b[13] + boom + b[9] * (f.s4**2 * s5**2 + c5**2),
        '(122)': b[13] + boom,
        '(123)': b[14] + b[15] * s5**2 + b[16] * c5**2,
        '(124)': b[14] + b[15] * s5**2,
        '(125)': (b[17] + b[18]) * f.one,
        '(126)': (b[19] + b[20]) * f.one,
    }


def simplified_gravity(d: dict[int, float], q: NDArray) -> dict[str, NDArray]:
    """Return the gravity terms by the number of their equation, (127)-(132)."""
    f = functions(q)
    swung = f.s2 * f.c5 + f.c2 * f.s4 * f.s5
    d2 = G * (d[1] + d[2] * f.r3) * f.s2 + G * d[3] * swung
    d4 = G * d[3] * f.s2 * f.c4 * f.s5
    return {
        '(127)': d2 + G * d[4] * f.c2 * f.c4,
        '(128)': d2,
        '(129)': d4 - G * d[4] * f.s2 * f.s4,
        '(130)': d4,
        '(131)': -G * d[2] * f.c2,
        '(132)': G * d[3] * (f.s2 * f.s4 * f.c5 + f.c2 * f.s5),
    }
