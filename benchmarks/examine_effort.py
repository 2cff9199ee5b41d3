# SPDX-License-Identifier: Apache-2.0
"""
Falsify the efforts of recordings of real arms, and count how often that is detected.

    python benchmarks/examine_effort.py DIR [NAME ...]

DIR holds recordings of real arms, as its README.md says. Efforts are brought to N m, then those of
one joint, and of all, multiplied by 0.1, by 10 and by -1, freed from gravity (that of the model
identified from the recording itself), and delayed by 20 ms. Counted are joints of which the rigid
body's torque makes up 30 % of the effort, by that model; gravity is counted where it does so
itself. Names choose rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from identify_recordings import UR10E_SCALE
from robots import public_urdf

from robodyn_ros import Payload, RobotModel, gravity_torque, inverse_dynamics
from robodyn_ros.errors import InsufficientRecording, RobodynError
from robodyn_ros.identification import DriveTerms, Recording, examine_effort, identify
from robodyn_ros.identification.effort_examination import EffortFindings
from robodyn_ros.identification.rows import TrainingData

DELAY = 0.02
COUNTED = 0.3
# What some recordings carry at the tip, as far as their authors say [kg].
LOADS = {'20_01_13-load_2600': 2.6, '20_02_19_14harm50secLoad': 2.805}
FAULTS = ('x 0.1', 'x 10', 'sign', 'gravity', 'delay')


@dataclass
class Case:
    name: str
    model: RobotModel
    recording: Recording


def cases(folder: Path) -> Iterator[Case]:
    panda = RobotModel.from_urdf(
        public_urdf('panda.urdf'), base_link='panda_link0', tip_link='panda_link8'
    )
    ur10 = RobotModel.from_urdf(
        public_urdf('ur10_robot.urdf'), base_link='base_link', tip_link='tool0'
    )
    lwr4 = RobotModel.from_urdf(
        folder / 'lwr4' / 'arm.urdf', base_link='lwr_base_link', tip_link='lwr_7_link'
    )
    ur10e = RobotModel.from_urdf(
        folder / 'ur10e' / 'arm.urdf', base_link='base_link', tip_link='tool0'
    )
    arms = {'panda': panda, 'fer': panda, 'ur10': ur10, 'lwr4': lwr4, 'ur10e': ur10e}
    for place, model in arms.items():
        for path in sorted(folder.joinpath(place).glob('*.csv')):
            recording = Recording.from_csv(path, model)
            if place == 'ur10e':
                recording = replace(recording, effort=recording.effort * UR10E_SCALE)
            carried = Payload(LOADS.get(path.stem, 0.0))
            yield Case(f'{place} {path.stem}', model.with_payload(carried), recording)


@dataclass
class Truth:
    gravity: np.ndarray
    counted: np.ndarray
    has_gravity: np.ndarray


def truth(case: Case) -> Truth:
    """Return gravity's torque at the samples, and which joints count."""
    recording, model = case.recording, case.model
    found = identify(model, [recording], friction=DriveTerms(), base_tilt=False).model
    rows = TrainingData.of(model, [recording]).rows(found, np.ones(model.n))
    used = np.concatenate([each.used for each in rows])
    rigid, gravity, effort = (
        np.sqrt(np.where(used, np.concatenate(parts) ** 2, 0.0).sum(axis=0))
        for parts in (
            [
                each.states.rows(
                    inverse_dynamics(
                        found.with_rotor_inertia(np.zeros(model.n)),
                        each.states.q,
                        each.states.qd,
                        each.states.qdd,
                    )
                )
                for each in rows
            ],
            [each.states.rows(gravity_torque(found, each.states.q)) for each in rows],
            [each.effort for each in rows],
        )
    )
    return Truth(
        gravity_torque(found, recording.position),
        rigid > COUNTED * effort,
        gravity > COUNTED * effort,
    )


def spoilt(recording: Recording, fault: str, joints: list[int], gravity: np.ndarray) -> Recording:
    effort = recording.effort.copy()
    for j in joints:
        if fault == 'gravity':
            effort[:, j] -= gravity[:, j]
        elif fault == 'delay':
            effort[:, j] = np.interp(recording.time - DELAY, recording.time, effort[:, j])
        else:
            effort[:, j] *= {'x 0.1': 0.1, 'x 10': 10.0, 'sign': -1.0}[fault]
    return replace(recording, effort=effort)


def is_recognised(fault: str, j: int, found: EffortFindings, clean: EffortFindings) -> bool:
    joint = found.joints[j]
    if fault == 'gravity':
        return joint.gravity == 'removed'
    if fault == 'delay':
        return abs(joint.delay - clean.joints[j].delay - DELAY) < 0.005
    if joint.gravity == 'removed' or joint.unit == 'undecided':
        return False
    if fault == 'sign':
        return joint.is_inverted
    return joint.unit == 'scaled' and joint.factor > 0


def is_alarm(joint) -> bool:
    return joint.unit == 'scaled' or joint.is_inverted or joint.gravity == 'removed'


def print_table(chosen: list[Case]) -> None:
    heads = ('joints', *(f'{fault} {who}' for fault in FAULTS for who in ('each', 'all')), 'false')
    print(''.ljust(32) + ''.join(f'{head:>13}' for head in heads))
    totals: dict[str, np.ndarray] = {}
    for case in chosen:
        try:
            known = truth(case)
        except InsufficientRecording as error:
            print(case.name[:31].ljust(32) + str(error))
            continue
        clean = examine_effort(case.model, [case.recording])
        alarms = sum(is_alarm(clean.joints[j]) for j in np.flatnonzero(known.counted))
        cells = []
        for fault in FAULTS:
            counts = known.counted & known.has_gravity if fault == 'gravity' else known.counted
            joints = [int(j) for j in np.flatnonzero(counts)]
            every = list(range(case.model.n))
            each = 0
            for j in joints:
                bad = spoilt(case.recording, fault, [j], known.gravity)
                found = examine_effort(case.model, [bad])
                each += is_recognised(fault, j, found, clean)
                alarms += sum(
                    is_alarm(found.joints[k]) for k in np.flatnonzero(known.counted) if k != j
                )
            found = examine_effort(
                case.model, [spoilt(case.recording, fault, every, known.gravity)]
            )
            together = sum(is_recognised(fault, j, found, clean) for j in joints)
            for who, count in (('each', each), ('all', together)):
                key = f'{fault} {who}'
                totals[key] = totals.get(key, np.zeros(2, int)) + (count, len(joints))
                cells.append(f'{count}/{len(joints)}')
        totals['false'] = totals.get('false', np.zeros(2, int)) + (alarms, 0)
        row = (str(int(known.counted.sum())), *cells, str(alarms))
        print(case.name[:31].ljust(32) + ''.join(f'{cell:>13}' for cell in row), flush=True)
    row = ('', *(f'{a}/{b}' for a, b in (totals[head] for head in heads[1:-1])))
    print('all'.ljust(32) + ''.join(f'{cell:>13}' for cell in (*row, str(totals['false'][0]))))


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ('-h', '--help'):
        sys.exit(__doc__)
    names = [name.lower() for name in sys.argv[2:]]
    chosen = []
    for case in cases(Path(sys.argv[1])):
        if not names or any(name in case.name.lower() for name in names):
            chosen.append(case)
    try:
        print_table(chosen)
    except RobodynError as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
