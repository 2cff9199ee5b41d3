# SPDX-License-Identifier: Apache-2.0
"""
Identify arms from recordings, and compare with the URDF and plain least squares, held out.

    python benchmarks/identify_recordings.py DIR [NAME ...] [--write]
    python benchmarks/identify_recordings.py --further DIR [NAME ...]

DIR holds recordings of real arms, as its README.md says. The first table is the error on motions
that were not trained with, |predicted - measured| / |measured|, both low-passed at 5 Hz, all
joints and samples from the first motion to the last, in per cent; beside it how much of what was
measured lies within the stated 95 % band, and the processor time of ``identify``, and of one solve
from the prior with the drive terms that were chosen, the median of eleven, on one core. The second
says what was chosen, and how busy the machine was. Names choose rows. Without names, the same
error of the URDFs' bodies on every motion without load comes first. With --write, error and band
of the rows go into docs/recordings_runs.yaml, which docs/write_arms_table.py reads.

With --further, DIR holds a folder for each further arm: arm.urdf, recording.csv and arm.yaml,
which has base_link, tip_link and, where they are known, effort_scale of each joint. Every fifth of
the recording is held out in turn. The table is the error of each joint on all of them, low-passed
likewise, beside the URDF's and that of least squares with the columns of the drive terms that were
chosen; 100 is to predict zero.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from time import process_time

os.environ['OPENBLAS_NUM_THREADS'] = '1'  # read when NumPy is imported: threads add up otherwise

import numpy as np
import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.identification import DriveTerms, Identification, Recording, identify
from robodyn_ros.identification.estimator import estimate
from robodyn_ros.identification.fit import fitted
from robodyn_ros.identification.parameters import bare_base_parameters
from robodyn_ros.identification.prediction import prediction_states
from robodyn_ros.identification.preparation import even_samples, low_passed, motion_band, states_of
from robodyn_ros.identification.prior import Prior, prior_pseudo_inertia
from robodyn_ros.identification.rows import Rows, TrainingData, rows_of
from robodyn_ros.spatial import pseudo_inertia

CUTOFF = 5.0  # Hz
FIFTHS = 5
RUNS = Path(__file__).resolve().parents[1] / 'docs' / 'recordings_runs.yaml'
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by benchmarks/identify_recordings.py --write, read by docs/write_arms_table.py. In per
# cent: errors beside the norm of what was measured; band: 1.96 stated deviations, likewise;
# inside: how much of what was measured lies in the band.
"""
# The UR10e reports amperes; torque constants [N m/A] from a known load on the same arm.
UR10E_SCALE = np.array([11.98, 12.20, 10.06, 10.32, 10.05, 10.26])


@dataclass
class Split:
    name: str
    accept: float
    model: RobotModel
    training: list[Recording]
    held_out: Recording
    scale: np.ndarray | None


def models(folder: Path) -> dict[str, RobotModel]:
    """Return the arms by the folders of their recordings."""
    chains = {
        'panda': (public_urdf('panda.urdf'), 'panda_link0', 'panda_link8'),
        'ur10': (public_urdf('ur10_robot.urdf'), 'base_link', 'tool0'),
        'lwr4': (folder / 'lwr4' / 'arm.urdf', 'lwr_base_link', 'lwr_7_link'),
        'ur10e': (folder / 'ur10e' / 'arm.urdf', 'base_link', 'tool0'),
    }
    found = {
        name: RobotModel.from_urdf(source, base_link=base, tip_link=tip)
        for name, (source, base, tip) in chains.items()
    }
    return {**found, 'fer': found['panda']}


def print_errors_of_urdfs(folder: Path) -> None:
    """Print how far the URDF's bodies are off each arm's motions without load."""
    for name, model in models(folder).items():
        scale = UR10E_SCALE if name == 'ur10e' else np.ones(model.n)
        bodies = np.asarray(model.inertial_parameters).ravel()
        motions = 'motion_a.csv', 'first_*.csv', 'run_*.csv', '*harm*.csv'
        errors = []
        for path in sorted(path for each in motions for path in (folder / name).glob(each)):
            if 'Load' in path.name:
                continue
            recording = Recording.from_csv(path, model)
            rows = [rows_of(model, s, scale) for s in prediction_states(recording, CUTOFF)[0]]
            left = sum(float(((one.inertial @ bodies - one.effort) ** 2).sum()) for one in rows)
            size = sum(float((one.effort**2).sum()) for one in rows)
            errors.append(100 * np.sqrt(left / size))
        print(f'URDF of {name}: {min(errors):.1f} to {max(errors):.1f} % off ({len(errors)})')


def splits(folder: Path) -> Iterator[Split]:
    arms = models(folder)
    panda, ur10, ur10e = (arms[name] for name in ('panda', 'ur10', 'ur10e'))
    motion_a = Recording.from_csv(folder / 'panda' / 'motion_a.csv', panda)
    fer = Recording.from_csv(folder / 'fer' / 'first_12_s.csv', panda)
    slow = Recording.from_csv(folder / 'ur10' / 'first_19_s.csv', ur10)
    thirty, fifty, harmonics = (
        Recording.from_csv(folder / 'ur10e' / name, ur10e)
        for name in (
            '20_02_10-30sec_12harm.csv',
            '20_02_12-50sec_12harm.csv',
            '20_02_19_14harm50sec.csv',
        )
    )
    lwr4 = Recording.from_csv(folder / 'lwr4' / 'run_1.csv', arms['lwr4'])
    ones = np.ones(7)
    end = np.inf
    yield Split('Panda a -> fer', 4.5, panda, [motion_a], fer, ones)
    yield Split('fer 8 s -> rest', 2.3, panda, [fer.between(0, 8)], fer.between(8, end), ones)
    yield Split(
        'UR10 13 s -> rest', 5.0, ur10, [slow.between(0, 13)], slow.between(13, end), ones[:6]
    )
    yield Split(
        'LWR4+ 17 s -> rest', 5.0, arms['lwr4'], [lwr4.between(0, 17)], lwr4.between(17, end), ones
    )
    yield Split('UR10e 30 s -> 50 s', 2.7, ur10e, [thirty], fifty, UR10E_SCALE)
    yield Split('UR10e 30 s -> 14 h.', 2.7, ur10e, [thirty], harmonics, UR10E_SCALE)


def further(folder: Path) -> Iterator[list[Split]]:
    """Yield the splits of each further arm, by the names of their folders."""
    for known in sorted(folder.glob('*/arm.yaml')):
        arm = yaml.safe_load(known.read_text(encoding='utf-8'))
        model = RobotModel.from_urdf(
            known.with_name('arm.urdf'), base_link=arm['base_link'], tip_link=arm['tip_link']
        )
        whole = Recording.from_csv(known.with_name('recording.csv'), model)
        edges = np.linspace(whole.time[0], whole.time[-1], FIFTHS + 1)
        edges[[0, -1]] = -np.inf, np.inf
        scale = arm.get('effort_scale')
        yield [
            Split(
                known.parent.name,
                np.inf,
                model,
                [
                    whole.between(*part)
                    for part in ((edges[0], edges[k]), (edges[k + 1], edges[-1]))
                    if part[0] < part[1]
                ],
                whole.between(edges[k], edges[k + 1]),
                None if scale is None else np.array(scale, dtype=float),
            )
            for k in range(FIFTHS)
        ]


def identified(split: Split) -> Identification:
    """Return what is identified from the recordings to train with."""
    return identify(
        split.model, split.training, validation=[split.held_out], effort_scale=split.scale
    )


def least_squares_residuals(
    split: Split, found: Identification, terms: DriveTerms, coupling: np.ndarray
) -> np.ndarray:
    """Return what weighted least squares leaves of what is held out, shape (K, n) [N m or N]."""
    stretches = [stretch for each in split.training for stretch in even_samples(each)]
    band = motion_band(stretches)
    model, n = split.model, split.model.n
    bodies = found.model.inertial_parameters
    columns = list(bare_base_parameters(model).columns)

    def matrix(rows: Rows) -> np.ndarray:
        drive = rows.drive(terms, rows.rigid_torque(model, bodies) if terms.load else None)
        wide = (drive[..., None, :] * np.eye(n)[None, :, :, None]).reshape(*drive.shape[:2], -1)
        return np.concatenate(
            [rows.inertial[..., columns], wide, rows.coupled(terms, coupling)], axis=-1
        )

    training = [rows_of(model, states_of(each, band), found.effort_scale) for each in stretches]
    used = np.concatenate([each.used for each in training])
    regressor = np.concatenate([matrix(each) for each in training])
    effort = np.concatenate([each.effort for each in training])
    weight = np.ones(n)
    for _ in range(3):
        scaled = (regressor * weight[:, None])[used]
        x = np.linalg.lstsq(scaled, (effort * weight)[used], rcond=1e-10)[0]
        residual = np.where(used, effort - regressor @ x, 0.0)
        weight = np.sqrt(used.sum(axis=0) / np.maximum((residual**2).sum(axis=0), 1e-12))
    held_out = held_out_rows(split, model, found)
    return np.concatenate([matrix(each) @ x - each.effort for each in held_out])


def held_out_rows(split: Split, model: RobotModel, found: Identification) -> list[Rows]:
    """Return the rows of what is held out."""
    return [
        rows_of(model, states, found.effort_scale)
        for states in prediction_states(split.held_out, CUTOFF)[0]
    ]


def solve_time(split: Split, terms: DriveTerms) -> float:
    """Return the median processor time of one solve from the prior [ms]."""
    rows = TrainingData.of(split.model, split.training).rows(split.model, split.scale)
    prior = Prior(prior_pseudo_inertia(split.model)[0], 4.0)
    fit = fitted(split.model, rows, prior, terms, rounds=1)
    problem = fit.estimate.point.problem
    times = []
    for _ in range(11):
        start = process_time()
        estimate(problem)
        times.append(process_time() - start)
    return 1e3 * median(times)


def print_tables(chosen: list[Split]) -> dict[str, dict[str, object]]:
    """Print a row for each split, and return what is written of each."""
    heads = (
        'accept',
        'URDF',
        '+ friction',
        'WLS',
        'identified',
        'in band',
        'time [s]',
        'solve [ms]',
    )
    print('held out [%]'.ljust(22) + ''.join(f'{head:>12}' for head in heads))
    notes = []
    written: dict[str, dict[str, object]] = {}
    for split in chosen:
        start = process_time()
        found = identified(split)
        seconds = process_time() - start
        errors = found.errors[-1]
        least = least_squares_residuals(split, found, DriveTerms(), np.zeros((0, split.model.n)))
        torque = np.concatenate([each.effort for each in held_out_rows(split, split.model, found)])
        expected = found.predict(split.held_out)
        rate = (len(expected.time) - 1) / (expected.time[-1] - expected.time[0])
        effort, measured = (
            low_passed(values * split.scale, CUTOFF, rate)
            for values in (expected.effort, expected.measured)
        )
        figures = (
            split.accept,
            100 * errors.relative('urdf'),
            100 * errors.relative('urdf_friction'),
            100 * np.linalg.norm(least) / np.linalg.norm(torque),
            100 * np.linalg.norm(effort - measured) / np.linalg.norm(measured),
            100
            * (np.abs(expected.measured - expected.effort) <= 1.96 * expected.deviation).mean(),
            seconds,
            solve_time(split, found.terms),
        )
        print(split.name.ljust(22) + ''.join(f'{figure:12.1f}' for figure in figures), flush=True)
        band = 1.96 * np.linalg.norm(expected.deviation) / np.linalg.norm(expected.measured)
        shown = {'urdf': figures[1], 'error': figures[4], 'band': 100 * band, 'inside': figures[5]}
        written[split.name] = {
            **{key: float(f'{figure:.2g}') for key, figure in shown.items()},
            'date': date.today(),
        }
        smallest = np.linalg.eigvalsh(pseudo_inertia(found.model.inertial_parameters)).min()
        measured_count = sum(each.is_measured for each in found.parameters)
        notes.append(
            f'{split.name}: {found.terms}; compared up to {found.cutoff:.1f} Hz; '
            f'{measured_count} of {len(found.parameters)} parameters measured; '
            f'tilt {np.degrees(np.linalg.norm(found.base_tilt)):.1f} deg; '
            f'smallest eigenvalue of a pseudo-inertia {smallest:.1e}; '
            f'{"converged" if found.converged else "NOT converged"}'
        )
    print('\n' + '\n'.join(notes))
    print(f'load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors')
    return written


@dataclass
class JointErrors:
    """
    Relative errors of n joints, (n,) each, on all that an arm's splits hold out, and the results.

    Least squares has the drive terms and the coupled drives of the results.
    """

    urdf: np.ndarray
    least_squares: np.ndarray
    identified: np.ndarray
    results: list[Identification]

    @classmethod
    def of(cls, splits: list[Split]) -> JointErrors:
        """Return what is left where each split is identified."""
        parts: list[np.ndarray] = []
        results = [identified(split) for split in splits]
        for split, found in zip(splits, results, strict=True):
            rows = held_out_rows(split, split.model, found)
            own = held_out_rows(split, found.model, found)
            measured = np.concatenate([each.effort for each in rows])
            bodies = split.model.inertial_parameters.ravel()
            left = (
                measured,
                np.concatenate([each.inertial @ bodies for each in rows]) - measured,
                least_squares_residuals(split, found, found.terms, found.model.coupling),
                np.concatenate([found.drive_model.torques(each)[0] for each in own]) - measured,
            )
            parts.append(np.stack(left) / found.effort_scale)
        size, *left = np.linalg.norm(np.concatenate(parts, axis=1), axis=1)
        return cls(*(each / size for each in left), results)


def print_errors_of_joints(splits: list[Split]) -> None:
    """Print the held-out error of each joint of a further arm."""
    errors = JointErrors.of(splits)
    heads = ('URDF', 'LS', 'identified')
    name = f'{splits[0].name}, held out [%]'
    print(name.ljust(26) + ''.join(f'{head:>12}' for head in heads))
    table = 100 * np.stack([errors.urdf, errors.least_squares, errors.identified], axis=1)
    for joint, row in zip(splits[0].model.joint_names, table, strict=True):
        print(joint.ljust(26) + ''.join(f'{figure:12.1f}' for figure in row))
    for found in errors.results:
        drives = [found.model.joint_names[j] for j in np.flatnonzero(found.model.coupling.any(0))]
        print(f'{found.terms}; coupled: {", ".join(drives) or "none"}')
    print(flush=True)


def main() -> None:
    words = [word for word in sys.argv[1:] if word not in ('--write', '--further')]
    if not words or words[0] in ('-h', '--help'):
        sys.exit(__doc__)
    folder, names = Path(words[0]), words[1:]

    def is_chosen(split: Split) -> bool:
        return not names or any(name.lower() in split.name.lower() for name in names)

    if '--further' in sys.argv:
        for arm in further(folder):
            if is_chosen(arm[0]):
                print_errors_of_joints(arm)
        return
    if not names:
        print_errors_of_urdfs(folder)
    written = print_tables([split for split in splits(folder) if is_chosen(split)])
    if '--write' in sys.argv:
        before = yaml.safe_load(RUNS.read_text(encoding='utf-8')) if RUNS.exists() else {}
        text = yaml.safe_dump({**before, **written}, sort_keys=False)
        RUNS.write_text(HEAD + text, encoding='utf-8')


if __name__ == '__main__':
    main()
