# SPDX-License-Identifier: Apache-2.0
"""
Compare D-optimal motions with random ones and with the best condition number, on the Panda.

    python benchmarks/excitation.py [ARMS]

All motions take 13.3 s with five harmonics, within the same limits. Arms (six, or as many as
asked for) are drawn whose bodies are a quarter off the URDF's, with rotors and friction; their
efforts have noise of 10 % of each joint's rms at 100 Hz, and `identify`'s estimator is given the
URDF as its prior. The error is that of the identified torques on five random motions that were
not trained with, |identified - true| / |true| [%]. Seconds are processor time of one thread.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import process_time

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from robots import public_urdf
from simulated_recordings import TrueArm

from robodyn_ros.identification import DriveTerms, Recording, motion_limits
from robodyn_ros.identification.exciting_motion.fourier import FourierMotion, Shapes
from robodyn_ros.identification.exciting_motion.information import ArmFunctions, Knowledge
from robodyn_ros.identification.exciting_motion.search import (
    Objective,
    lost_information,
    searched,
    verified,
)
from robodyn_ros.identification.fit import fitted
from robodyn_ros.identification.prior import Prior, prior_pseudo_inertia
from robodyn_ros.identification.rows import TrainingData

DURATION, HARMONICS = 13.3, 5
RATE = 100.0
NOISE = 0.10
PRIOR_DEVIATION = 0.25
RANDOM_MOTIONS = 10
TEST_MOTIONS = 5


def condition_number(information: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the logarithm of the condition number without the prior, and its derivative."""
    values, vectors = np.linalg.eigh(information - np.eye(len(information)))
    least = max(float(values[0]), 1e-9)
    value = float(np.log(values[-1] / least))
    top, bottom = vectors[:, -1], vectors[:, 0]
    return value, np.outer(top, top) / values[-1] - np.outer(bottom, bottom) / least


def main() -> None:
    arms = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    text = public_urdf('panda.urdf').read_text()
    true_arms = [
        TrueArm.of(text, seed, PRIOR_DEVIATION, tip_link='panda_link8') for seed in range(arms)
    ]
    model = true_arms[0].urdf
    limits = motion_limits(model)
    functions = ArmFunctions.of(model)
    shapes = Shapes(limits, DURATION, HARMONICS)
    generator = np.random.default_rng(1)
    typical = [shapes.states(shapes.inside(shapes.random(generator))) for _ in range(10)]
    knowledge = Knowledge.before(
        model, functions, tuple(np.concatenate(typical, axis=1)), PRIOR_DEVIATION, None
    )

    def objective(criterion) -> Objective:
        return Objective(shapes, functions, knowledge, limits, (), criterion)

    def random_motion() -> FourierMotion:
        while True:
            x = shapes.raw(shapes.random(generator, (0.95, 0.95)))
            found, _ = verified(objective(lost_information), x)
            if found is not None:
                return found.motion

    tests = [random_motion() for _ in range(TEST_MOTIONS)]
    motions = {'random': [random_motion() for _ in range(RANDOM_MOTIONS)]}
    seconds = {'random': 0.0}
    for name, criterion in (('condition', condition_number), ('D-optimal', lost_information)):
        begin = process_time()
        motions[name] = [searched(objective(criterion), 0, lambda *_: None).motion]
        seconds[name] = process_time() - begin

    print('| motion | -log det, nat | condition | error, % | of random | seconds |')
    print('|---|---|---|---|---|---|')
    mean = {}
    for name, candidates in motions.items():
        errors = [
            error_of(true, motion, tests, seed)
            for motion in candidates
            for seed, true in enumerate(true_arms)
        ]
        mean[name] = 100 * float(np.mean(errors))
        informations = [objective(lost_information).information(each) for each in candidates]
        lost = np.mean([lost_information(each)[0] for each in informations])
        condition = np.exp(np.mean([condition_number(each)[0] for each in informations]))
        print(
            f'| {name} | {lost:.1f} | {condition:.3g} | {mean[name]:.3f} | '
            f'{mean[name] / mean["random"] - 1:+.1%} | {seconds[name]:.1f} |'
        )


def error_of(true: TrueArm, motion: FourierMotion, tests: list[FourierMotion], seed: int) -> float:
    """Return the relative error of the torques identified from a motion, on other motions."""
    model = true.urdf
    time = np.arange(0.0, DURATION, 1 / RATE)
    q, qd, qdd = motion.position(time), motion.velocity(time), motion.acceleration(time)
    effort = true.torque(q, qd, qdd)
    generator = np.random.default_rng(seed)
    noise = NOISE * np.sqrt((effort**2).mean(axis=0))
    recording = Recording(
        model.joint_names, time, q, qd, effort + noise * generator.normal(size=effort.shape)
    )
    rows = TrainingData.of(model, [recording]).rows(model, np.ones(model.n))
    pseudo, _ = prior_pseudo_inertia(model)
    fit = fitted(model, rows, Prior(pseudo, 1 / (4 * PRIOR_DEVIATION**2)), DriveTerms())
    bodies = model.with_inertial_parameters(fit.inertial_parameters)
    bodies = bodies.with_rotor_inertia(np.zeros(model.n))
    found = TrueArm(
        true.text, model, bodies, *(fit.coefficient(each) for each in ('Ia', 'Fv', 'Fc', 'offset'))
    )
    squares = np.zeros(2)
    for test in tests:
        states = test.position(time), test.velocity(time), test.acceleration(time)
        expected = true.torque(*states)
        squares += ((found.torque(*states) - expected) ** 2).sum(), (expected**2).sum()
    return float(np.sqrt(squares[0] / squares[1]))


if __name__ == '__main__':
    main()
