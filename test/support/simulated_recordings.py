# SPDX-License-Identifier: Apache-2.0
"""Recordings of arms whose true bodies, drives and noise are known, drawn from seeds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from robots import random_chain

from robodyn_ros import RobotModel, inverse_dynamics
from robodyn_ros.identification import Recording
from robodyn_ros.identification.prior import prior_pseudo_inertia
from robodyn_ros.spatial import parameters_of_pseudo_inertia

DIRECTION_VELOCITY = 0.01


@dataclass
class TrueArm:
    """An arm whose URDF is wrong: ``urdf`` is the model of it, the rest is true."""

    text: str
    urdf: RobotModel
    bodies: RobotModel
    rotor_inertia: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    offset: np.ndarray

    @classmethod
    def drawn(cls, seed: int, n: int, off: float = 0.3) -> TrueArm:
        """Return a random arm of n joints, prismatic ones too, bodies off by a fraction."""
        generator = np.random.default_rng(seed)
        text = random_chain(generator, n)
        return cls.of(text, seed, off, base_link='base', tip_link='tip')

    @classmethod
    def of(cls, text: str, seed: int, off: float = 0.3, **links: str | list[str]) -> TrueArm:
        """Return an arm with the kinematics of a URDF and other bodies."""
        generator = np.random.default_rng(seed)
        urdf = RobotModel.from_urdf(text, **links)
        n = urdf.n
        prior, _ = prior_pseudo_inertia(urdf)
        # Masses and inertias off by the fraction, centres of mass by that of the body's own
        # radius: a root of the pseudo-inertia changes by half as much.
        roots = np.linalg.cholesky(prior) @ (
            np.eye(4) + off / 2 * generator.normal(size=(n, 4, 4))
        )
        true = parameters_of_pseudo_inertia(roots @ np.swapaxes(roots, -1, -2))
        bodies = urdf.with_inertial_parameters(true).with_rotor_inertia(np.zeros(n))
        q, qd, qdd = motion(urdf, seed, 2.0, 50.0)[1:]
        size = np.sqrt((inverse_dynamics(bodies, q, qd, qdd) ** 2).mean(axis=0))
        size = np.maximum(size, 0.05 * size.max())
        speed = np.sqrt((qd**2).mean(axis=0))
        acceleration = np.sqrt((qdd**2).mean(axis=0))
        return cls(
            text,
            urdf,
            bodies,
            rotor_inertia=generator.uniform(0.05, 0.2, n) * size / acceleration,
            viscous=generator.uniform(0.05, 0.2, n) * size / speed,
            coulomb=generator.uniform(0.05, 0.2, n) * size,
            offset=generator.uniform(-0.05, 0.05, n) * size,
        )

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return what the drives have to do, (N, n)."""
        return (
            inverse_dynamics(self.bodies, q, qd, qdd)
            + self.rotor_inertia * qdd
            + self.viscous * qd
            + self.coulomb * np.tanh(qd / DIRECTION_VELOCITY)
            + self.offset
        )

    def recording(
        self, seed: int, duration: float = 20.0, *, rate: float = 200.0, noise: float = 0.02
    ) -> Recording:
        """Return a recording with noise on the efforts, relative to each joint's rms."""
        time, q, qd, qdd = motion(self.urdf, seed, duration, rate)
        effort = self.torque(q, qd, qdd)
        size = np.sqrt((effort**2).mean(axis=0))
        generator = np.random.default_rng(seed + 1000)
        effort = effort + noise * size * generator.normal(size=effort.shape)
        return Recording(self.urdf.joint_names, time, q, qd, effort)


def motion(
    model: RobotModel, seed: int, duration: float, rate: float, harmonics: int = 5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return times and a Fourier series' q, qd, qdd, (N, n), through a good part of the range."""
    generator = np.random.default_rng(seed + 77)
    time = np.arange(0.0, duration, 1.0 / rate)
    n = model.n
    reach = np.where(model.dh.prismatic, 0.3, 1.5)
    frequency = 2 * np.pi * 0.1 * (1 + np.arange(harmonics))
    cosine, sine = generator.normal(size=(2, harmonics, n)) / frequency[:, None] ** 0.7
    scale = reach / np.sqrt((cosine**2 + sine**2).sum(axis=0))
    cosine, sine = cosine * scale, sine * scale
    c, s = np.cos(np.outer(time, frequency)), np.sin(np.outer(time, frequency))
    q = generator.uniform(-1, 1, n) * reach / 2 + c @ cosine + s @ sine
    qd = (-s * frequency) @ cosine + (c * frequency) @ sine
    qdd = (-c * frequency**2) @ cosine + (-s * frequency**2) @ sine
    return time, q, qd, qdd


def as_csv(path: Path, recording: Recording, *, leave_out: str = ' ') -> Path:
    """Write a recording in the columns that commands read, but for those that end so."""
    columns = {'time': recording.time}
    for suffix, array in (
        ('', recording.position),
        ('.velocity', recording.velocity),
        ('.effort', recording.effort),
    ):
        columns |= {f'{name}{suffix}': x for name, x in zip(recording.joint_names, array.T)}
    kept = [name for name in columns if not name.endswith(leave_out)]
    table = np.column_stack([columns[name] for name in kept])
    np.savetxt(path, table, delimiter=',', header=','.join(kept), comments='')
    return path


def recorded_folder(folder: Path) -> Path:
    """Write a wrong URDF and two recordings of its true arm into a folder; return that."""
    arm = TrueArm.drawn(1, 3)
    (folder / 'arm.urdf').write_text(arm.text)
    for name, seed in (('motion', 1), ('other', 40)):
        as_csv(folder / f'{name}.csv', arm.recording(seed, 12.0, rate=100.0))
    return folder
