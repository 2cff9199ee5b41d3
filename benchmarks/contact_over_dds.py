# SPDX-License-Identifier: Apache-2.0
"""
Push arms in MuJoCo under the dynamics node over DDS, and count the detected contacts.

    python benchmarks/contact_over_dds.py [--pushes 100] [--minutes 10] [--arm panda]

Node and simulator are processes in lockstep, so that all times are simulated ones. The arm has the
friction of drives, 1 % of their effort limits, noisy sensors and efforts, and sways along sines.
Thresholds are those of 80 s of such motions. Then, while it sways along others, the tip is pushed
with 15 N for 0.3 s in random directions, once a second: printed are the number of pushes reported
within 0.35 s, and the delay. Last it sways without contact, and every contact is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import domains
import numpy as np
from contact_rig import ContactRig, set_friction
from lockstep_rig import seconds
from pushed_arm import ARMS, EFFORT_NOISE, VELOCITY_NOISE, random_force
from robots import public_urdf

from robodyn_ros import RobotModel
from robodyn_ros.control.contact_thresholds import ObservedRecording, contact_thresholds
from robodyn_ros.control.core_binding import core

FORCE, DURATION, LONGEST_DELAY = 15.0, 0.3, 0.35
PIECE = 20.0  # of a swaying motion [s]


def urdf_with_friction(name, path):
    """Write an arm's URDF with friction as drives have it: a hundredth of their effort limits."""
    tree = ElementTree.parse(public_urdf(ARMS[name][0]))
    for joint in tree.iter('joint'):
        if (limit := joint.find('limit')) is not None:
            coulomb = 0.01 * float(limit.get('effort'))
            set_friction(joint, coulomb, 0.5 * coulomb)
    tree.write(path)
    return str(path)


class SwayingRig(ContactRig):
    """An arm with friction and noise that sways along sines in computed torque."""

    takes_turns = False  # minutes of motion; pushes are sent well before their time
    DEPTH = 50  # so it keeps up by missing some
    NOISE_OF_POSITION = 1e-5  # [rad]
    PERIOD_OF_POINTS = 0.1  # of its trajectories [s]

    def begin(self, name, folder, seed, **parameters):
        """Hold an arm of ``ARMS`` in the middle of its motion."""
        _, base, tip, middle = ARMS[name]
        urdf = urdf_with_friction(name, folder / 'arm.urdf')
        self.model = model = RobotModel.from_urdf(urdf, base_link=base, tip_link=tip)
        self.base, self.middle = base, np.array(middle, dtype=float)
        self.random = np.random.default_rng(seed)
        noise = {
            'position_resolution': self.NOISE_OF_POSITION,
            'velocity_noise': VELOCITY_NOISE,
            'effort_noise': EFFORT_NOISE * model.effort_limits,
            'sensor_seed': seed,
            'time_step': 0.002,
        }
        robot = {'urdf_file': urdf, 'base_link': base, 'tip_link': tip}
        self.listen_to_contacts()
        # A push bends a light wrist by more than it may be away: that would end the motion.
        given = {'kp': [400.0], 'kd': [40.0], 'max_following_error': 0.0}
        given |= {'observed_effort': 'measured', **parameters}
        self.hold(robot, middle, model.joint_names, noise, **given)

    def sway(self, duration):
        """Send sines of another size, pace and phase that end after so long [s]; they fade in."""
        n = self.model.n
        size = self.random.uniform(0.15, 0.35, n)
        rate = self.random.uniform(0.8, 1.6, n)
        phase = self.random.uniform(0.0, 6.0, n)
        times = np.arange(1, round(duration / self.PERIOD_OF_POINTS) + 1) * self.PERIOD_OF_POINTS
        fade = np.clip(np.minimum(times, duration - times) / 1.0, 0.0, 1.0)
        fade = fade**3 * (10.0 - 15.0 * fade + 6.0 * fade**2)
        angle = rate * times[:, np.newaxis] + phase
        self.follow(
            self.middle + fade[:, np.newaxis] * size * np.sin(angle),
            times,
            self.model.joint_names,
        )

    def observed(self):
        """Return what was observed since the last time of this call, which is dropped."""
        joints, rows = core.StationaryJoints(self.model.n), []
        for state in self.states:
            time, velocity = seconds(state.header.stamp), np.array(state.velocity)
            stationary = joints.at(velocity.tolist(), time)
            if len(state.external_torque):
                rows.append((time, velocity, np.array(state.external_torque), stationary))
        self.forget()
        return ObservedRecording(*(np.array(part) for part in zip(*rows)))

    def forget(self):
        """Forget all but the newest of what came."""
        for kept in (self.states, self.commands, self.torques):
            del kept[:-1]

    def sways(self, duration, push=None):
        """
        Sway one piece after the other for so long [s], and drop what was received.

        Parameters
        ----------
        duration : float
        push : callable, optional
            Takes the simulated times [s] between which the arm will be in motion.
        """
        end = self.time + duration
        while self.time < end - 0.1:
            begin = self.time
            self.sway(PIECE)
            if push is not None:
                push(begin + 3.0, begin + PIECE - 2.0)
            self.run_until(begin + PIECE + 0.5)
            self.forget()

    def alarms(self, duration):
        """Return how many contacts so long [s] of motion without a push raise."""
        known = len(self.contacts)
        self.sways(duration)
        return sum(not each.is_over for each in self.contacts[known:])

    def delays(self, count, size, duration, longest):
        """
        Push the tip in random directions while it sways, once a second.

        Parameters
        ----------
        count : int
        size, duration : float
            Of the force [N] and [s].
        longest : float
            How long after its begin a contact counts [s].

        Returns
        -------
        list of float or None
            Simulated time [s] from the begin of a push to the stamp of its contact; None: it was
            not found.
        """
        begins = []

        def push(first, last):
            for begin in np.arange(first, last - 1.0, 1.0)[: count - len(begins)]:
                self.run_until(begin - 3.0)  # not all at once: some would be lost
                self.pushed(random_force(self.random, size)[:3], self.base, begin)
                self.pushed(np.zeros(3), self.base, begin + duration)
                begins.append(begin)

        while len(begins) < count:
            self.sways(PIECE, push)
        found = np.array(
            [seconds(each.header.stamp) for each in self.contacts if not each.is_over]
        )
        return [
            next(iter(found[(begin < found) & (found <= begin + longest)] - begin), None)
            for begin in begins
        ]


def thresholds_of_free_motion(name, folder, motions=4):
    """Return the thresholds that so many pieces of swaying show, as parameters."""
    rig = SwayingRig(folder / 'calibration.log')
    try:
        rig.begin(name, folder, seed=100)
        observed = []
        rig.sways(
            motions * (PIECE + 0.5),
            lambda first, last: (rig.run_until(last), observed.append(rig.observed())),
        )
        found = contact_thresholds(rig.model, observed)
    finally:
        rig.close()
    return {
        'contact_threshold_moving': list(map(float, found.moving)),
        'contact_threshold_stationary': list(map(float, found.stationary)),
    }


def measure(name: str, folder: Path, pushes: int, minutes: float) -> None:
    """Print what is found on one arm."""
    thresholds = thresholds_of_free_motion(name, folder)
    for parameter, values in thresholds.items():
        print(f'{name}: {parameter} {np.round(values, 3)} N m', flush=True)
    rig = SwayingRig(folder / 'node.log')
    try:
        rig.begin(name, folder, seed=0, **thresholds)
        if pushes:
            delays = rig.delays(pushes, FORCE, DURATION, LONGEST_DELAY)
            found = [1e3 * delay for delay in delays if delay is not None]
            print(
                f'{name}: {len(found)} of {len(delays)} pushes of {FORCE:g} N found, median '
                f'{np.median(found):.0f} ms, worst {max(found):.0f} ms '
                f'(load {os.getloadavg()[0]:.1f})',
                flush=True,
            )
        if minutes:
            count = rig.alarms(60.0 * minutes)
            print(f'{name}: {count} false alarms in {minutes:g} min of free motion', flush=True)
    finally:
        rig.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--pushes', type=int, default=100)
    parser.add_argument('--minutes', type=float, default=10.0)
    parser.add_argument('--arm', choices=sorted(ARMS), action='append')
    options = parser.parse_args()
    domains.stay_on_loopback()
    for name in options.arm or sorted(ARMS):
        with tempfile.TemporaryDirectory() as folder:
            measure(name, Path(folder), options.pushes, options.minutes)


if __name__ == '__main__':
    main()
