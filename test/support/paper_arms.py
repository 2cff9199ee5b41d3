# SPDX-License-Identifier: Apache-2.0
"""The papers' arms as the papers print them, for comparison with the files in urdf/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import robodyn_ros as rd

URDF = Path(__file__).resolve().parents[2] / 'urdf'


@dataclass(frozen=True)
class PaperArm:
    """
    A DH table in degrees and metres, and inertias in the paper's link frames where it has any.

    ``inertia`` is about the centre of mass, or about the frame's origin where the paper says so.
    """

    file: str
    kinds: str
    alpha: tuple[float, ...]
    a: tuple[float, ...]
    d: tuple[float, ...]
    modified: bool
    theta: tuple[float, ...] = ()
    mass: tuple[float, ...] = ()
    center: tuple[tuple[float, float, float], ...] = ()
    inertia: tuple[tuple[float, float, float], ...] = ()
    about_origin: bool = False
    upright: np.ndarray | None = None

    def model(self) -> rd.RobotModel:
        return rd.RobotModel.from_urdf(URDF / self.file)

    def frames(self, q: np.ndarray) -> list[np.ndarray]:
        """Return the paper's frames 1 to n in the base link's."""
        frame = np.eye(4) if self.upright is None else self.upright
        frames = []
        theta = np.radians(self.theta or [0.0] * len(self.kinds))
        for i, kind in enumerate(self.kinds):
            joint = (theta[i] + q[i], self.d[i]) if kind == 'R' else (theta[i], self.d[i] + q[i])
            constant = _rx(np.radians(self.alpha[i])), _tx(self.a[i])
            motion = _rz(joint[0]) @ _tz(joint[1])
            if self.modified:
                frame = frame @ constant[0] @ constant[1] @ motion
            else:
                frame = frame @ motion @ constant[1] @ constant[0]
            frames.append(frame)
        return frames

    def modified_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return alpha [rad], a, theta [rad], d; a standard table's half rows regrouped."""
        alpha, a = np.radians(self.alpha), np.array(self.a, dtype=float)
        if not self.modified:
            alpha, a = np.roll(alpha, 1), np.roll(a, 1)
        theta = np.radians(self.theta or [0.0] * len(self.kinds))
        return alpha, a, theta, np.array(self.d, dtype=float)

    def pseudo_inertias(self) -> list[np.ndarray]:
        """Return the integrals of x xT dm, x = (x, y, z, 1), (4, 4), in the paper's frames."""
        result = []
        for mass, center, inertia in zip(self.mass, self.center, self.inertia):
            c = np.array(center)
            second_moments = np.diag(sum(inertia) / 2 - np.array(inertia))
            if not self.about_origin:
                second_moments = second_moments + mass * np.outer(c, c)
            result.append(
                np.block([[second_moments, mass * c[:, None]], [mass * c[None], np.array(mass)]])
            )
        return result


def _rx(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])


def _rz(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def _tx(a: float) -> np.ndarray:
    return np.array([[1, 0, 0, a], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def _tz(d: float) -> np.ndarray:
    return np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, d], [0, 0, 0, 1]])


# Bejczy 1974, Appendix B, the ounce-inch column: ozf s2/in, in, and ozf in s2.
OUNCE = 0.278013851 / 0.0254
INCH = 0.0254
OUNCE_INCH = 0.278013851 * 0.0254

JPL = PaperArm(
    'jpl_rrp.urdf',
    'RRPRRR',
    alpha=(-90, 90, 0, -90, 90, 0),
    a=(0,) * 6,
    d=(0, 6.375 * INCH, 0, 0, 0, 9.75 * INCH),
    modified=False,
    theta=(0, 0, -90, 0, 0, 0),
    mass=tuple(m * OUNCE for m in (0.849, 0.513, 0.388, 0.099, 0.058, 0.047)),
    center=tuple(
        (0.0, y * INCH, z * INCH)
        for y, z in (
            (0.69, -4.35),
            (-4.15, -0.31),
            (0, -25.38),
            (0.364, -0.212),
            (0, 2.23),
            (0, -3.63),
        )
    ),
    inertia=tuple(
        (x * OUNCE_INCH, y * OUNCE_INCH, z * OUNCE_INCH)
        for x, y, z in (
            (39.1, 36.15, 10.03),
            (15.28, 2.49, 14.13),
            (355.5, 355.5, 0.854),
            (0.253, 0.167, 0.156),
            (0.385, 0.360, 0.057),
            (0.667, 0.667, 0.049),
        )
    ),
    about_origin=True,
)
JPL_INPUT_INERTIA = (
    np.array([135.0, 310.6, 0, 15.0, 13.7, 2.81]) * OUNCE_INCH
    + np.array([0, 0, 0.07143, 0, 0, 0]) * OUNCE
)

# Angeles, Ma and Rojas 1989, Tables 2 and 3; d is minus the paper's b, by its eq. (8).
STANFORD = PaperArm(
    'stanford.urdf',
    'RRPRRR',
    alpha=(0, 90, 90, 0, 90, 90),
    a=(0,) * 6,
    d=(0.1, 0.1, 0, 0.6, 0, 0),
    modified=True,
    mass=(9, 6, 4, 1, 0.6, 0.5),
    center=((0, 0, -0.1), (0, 0, 0), (0, 0, 0), (0, 0, 0.1), (0, 0.06, 0), (0, 0, 0)),
    inertia=(
        (0.02, 0.01, 0.01),
        (0.05, 0.01, 0.06),
        (0.4, 0.4, 0.01),
        (0.001, 0.0005, 0.001),
        (0.0005, 0.0002, 0.0005),
        (0.003, 0.001, 0.002),
    ),
)
SIX_AXIS = PaperArm(
    'six_axis_industrial.urdf',
    'RRRRRR',
    alpha=(0, 90, 0, 0, 90, 90),
    a=(0, 0, 1.02, 1.02, 0.2, 0),
    d=(1.5, 0, 0, 0, 0, 0.41),
    modified=True,
    mass=(680, 360, 180, 55, 36, 68),
    center=(
        (0, -0.33, 0),
        (-0.87, 0, -0.13),
        (-0.64, 0.04, 0),
        (-0.12, 0.04, 0),
        (0, -0.05, -0.08),
        (0, 0, 0),
    ),
    inertia=(
        (0, 62, 0),
        (11, 53, 44),
        (1.1, 44, 44),
        (0.44, 0.91, 0.82),
        (0.47, 0.38, 0.18),
        (0.44, 0.64, 0.73),
    ),
)
# Fu, Gonzalez and Lee 1987, Fig. 3.2: y of the paper is z of the base link.
TWO_LINK = PaperArm(
    'two_link_planar.urdf', 'RR', (0, 0), (1, 1), (0, 0), modified=False, upright=_rx(np.pi / 2)
)
SCEMI = PaperArm(
    'scemi.urdf',
    'RRRRRR',
    (0, 90, 0, -90, 90, -90),
    (0, 0, 0.5, 0, 0, 0),
    (0, 0, 0, 0.4, 0, 0),
    modified=True,
)
PUMA = PaperArm(
    'puma560.urdf',
    'RRRRRR',
    (-90, 0, 90, -90, 90, 0),
    (0, 0.4318, -0.0203, 0, 0, 0),
    (0, 0.1491, 0, 0.4331, 0, 0),
    modified=False,
)
CARTESIAN = PaperArm(
    'cartesian.urdf', 'PPP', (-90, -90, 0), (0,) * 3, (0,) * 3, modified=False, theta=(0, -90, 0)
)
CYLINDRICAL = PaperArm('cylindrical.urdf', 'RPP', (0, -90, 0), (0,) * 3, (0,) * 3, modified=False)
SPHERICAL = PaperArm('spherical.urdf', 'RRP', (-90, 90, 0), (0,) * 3, (0,) * 3, modified=False)
ARTICULATED = PaperArm(
    'articulated.urdf', 'RRR', (-90, 0, 90), (0, 0.4318, -0.0203), (0, 0.1491, 0), modified=False
)

PAPER_ARMS = {
    arm.file.removesuffix('.urdf'): arm
    for arm in (
        JPL,
        STANFORD,
        SIX_AXIS,
        TWO_LINK,
        SCEMI,
        PUMA,
        CARTESIAN,
        CYLINDRICAL,
        SPHERICAL,
        ARTICULATED,
    )
}

JPL_LOAD = rd.Payload(
    mass=1.8,
    inertia=1.8 * 442e-6 ** (2 / 3) / 6 * np.eye(3),  # a cube of 442 cm3
)
"""What the JPL arm carries in Bejczy 1974."""
