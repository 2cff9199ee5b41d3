# SPDX-License-Identifier: Apache-2.0
"""
Measure the cost of the momentum observer in a control cycle, and the pushes by hand it detects.

    python benchmarks/contact.py [DIR]

The cost is that of the monitor's ``update`` on compiled kernels, observer and detector, the median
of blocks of it, several times over. DIR holds recordings of real arms, as its
README.md says: thresholds come from the UR10e's motions without contact, its model from two others
of them, the pushes are those of push_pose_1. False alarms are counted on each motion with the
thresholds of all others, and so are not those of the motions that they were made of.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from robots import public_urdf

from robodyn_ros import RobotModel, gravity_torque
from robodyn_ros.control.contact import Contact, ContactDetector, ContactThresholds, moved_links
from robodyn_ros.control.contact_thresholds import (
    ObservedRecording,
    contact_thresholds,
    observed_recording,
)
from robodyn_ros.identification import Identification, Recording, identify

# The UR10e reports amperes; torque constants [N m/A] from a known load on the same arm.
UR10E_SCALE = np.array([11.98, 12.20, 10.06, 10.32, 10.05, 10.26])
GAIN = 25.0  # [1/s]: 4 Hz
TRAINING = ('20_02_10-30sec_12harm', '20_02_12-40sec_12harm')
FREE = (
    '20_02_05-20sec_12harm',
    '20_02_05-20sec_8harm',
    '20_02_06-20sec_10harm',
    '20_02_06-20sec_5harm',
    '20_02_10-20sec_7harm',
    '20_02_12-50sec_12harm',
    '20_02_19_14harm50sec',
    '20_01_17-p1',
    '20_01_17-p5',
)
PUSHED = '20_01_22-push_pose_1'
PUSHES = ((1.8, 3.2), (4.5, 6.1), (8.2, 9.7), (11.8, 13.3))
"""When a hand pushes the arm, as its efforts show [s]: onset to release."""

TIMES, BLOCKS, CYCLES = 5, 200, 500


class Pushes:
    """The UR10e's recordings, observed."""

    def __init__(self, folder: Path) -> None:
        folder = folder / 'ur10e'
        self.model = RobotModel.from_urdf(
            folder / 'arm.urdf', base_link='base_link', tip_link='tool0'
        )

        def recording(name: str) -> Recording:
            return Recording.from_csv(folder / f'{name}.csv', self.model)

        self.found: Identification = identify(
            self.model, [recording(name) for name in TRAINING], effort_scale=UR10E_SCALE
        )
        self.observed = {
            name: observed_recording(
                self.found.model,
                recording(name),
                GAIN,
                effort_scale=UR10E_SCALE,
                presliding=self.found.terms.presliding,
            )
            for name in (*FREE, PUSHED)
        }

    def thresholds(self, without: str = '') -> ContactThresholds:
        """Return those of the motions without contact, one of them left out."""
        free = [self.observed[name] for name in FREE if name != without]
        return contact_thresholds(self.model, free)

    def contacts(self, name: str, thresholds: ContactThresholds) -> list[Contact]:
        """Return the contacts that begin in a recording."""
        return contacts_of(self.model, self.observed[name], thresholds)

    @property
    def free_minutes(self) -> float:
        """How long the motions without contact are [min]."""
        spans = [self.observed[name].time for name in FREE]
        return sum(float(time[-1] - time[0]) for time in spans) / 60.0


def contacts_of(
    model: RobotModel, observed: ObservedRecording, thresholds: ContactThresholds
) -> list[Contact]:
    """Return the contacts that begin along what was observed."""
    detector = ContactDetector(
        thresholds, model.joint_names, moved_links(model), model.dh.prismatic.tolist()
    )
    rows = zip(observed.velocity, observed.torque, observed.time.tolist())
    said = [detector.update(*row) for row in rows]
    return [each for each in said if each is not None and not each.is_over]


def costs() -> list[float]:
    """Return the time of an update [s], each the median of some blocks."""
    from robodyn_ros.control.control_stack import build_control_stack
    from robodyn_ros.control.joint_state_buffer import MeasuredState
    from robodyn_ros.control.settings import ControlSettings

    stack = build_control_stack(
        ControlSettings(
            urdf_file=str(public_urdf('panda.urdf')),
            base_link='panda_link0',
            tip_link='panda_link8',
            contact_threshold_moving=(5.0,),
            contact_threshold_stationary=(10.0,),
        ),
        None,
    )
    monitor, settings = stack.monitor, stack.pipeline.settings
    random = np.random.default_rng(0)
    q = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
    states = [
        MeasuredState(q + 1e-3 * random.normal(size=7), 0.1 * random.normal(size=7), 1e-3 * k)
        for k in range(CYCLES)
    ]
    torque = gravity_torque(stack.model, q)
    taken = []
    for _ in range(TIMES * BLOCKS):
        begin = time.perf_counter()
        for state in states:
            monitor.update(state, torque, settings)
        taken.append((time.perf_counter() - begin) / CYCLES)
    return [median(taken[k * BLOCKS : (k + 1) * BLOCKS]) for k in range(TIMES)]


def main(folder: Path | None) -> None:
    """Print the cost, and where recordings are given, what was found in them."""
    found = ', '.join(f'{1e6 * each:.1f}' for each in costs())
    load = ', '.join(f'{each:.1f}' for each in os.getloadavg())
    print(f'observer and detector: {found} us a cycle, Panda, compiled; load average {load}')
    if folder is None:
        return
    pushes = Pushes(folder)
    alarms = [
        (name, contact)
        for name in FREE
        for contact in pushes.contacts(name, pushes.thresholds(name))
    ]
    for name, contact in alarms:
        print(f'  {name}, {contact.time:.2f} s: {contact}')
    print(f'false alarms held out: {len(alarms)} in {pushes.free_minutes:.1f} min')
    found = pushes.contacts(PUSHED, pushes.thresholds())
    for begin, end in PUSHES:
        inside = [contact for contact in found if begin <= contact.time <= end]
        print(f'push from {begin} to {end} s: ' + '; '.join(map(str, inside[:1] or ['not found'])))


if __name__ == '__main__':
    if sys.argv[1:] and sys.argv[1] in ('-h', '--help'):
        sys.exit(__doc__)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
