# SPDX-License-Identifier: Apache-2.0
"""
Let something go wrong in the middle of a motion in Gazebo, and say what was seen.

    python benchmarks/gazebo_faults.py [--faults pause steps slow reset off kill push]
        [--ways forward trajectory chained] [--real-time-factor 0.5] [--factors 0.3 0.05 0.015]

Each fault has a world of its own, with the arm of urdf/ in it, as benchmarks/gazebo.py has. Below
its figures stand the sentences of /diagnostics and of the log that came with it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

from controller_manager_msgs.srv import SwitchController
from gazebo_rig import DOCS_GOAL, WAYS, GazeboRig

SETTLING = 4.0  # [s], as all that follows: of simulated time
LONG = 6.0  # of a motion in whose middle something happens
SHORT = 2.0
BEFORE = 2.0  # of the fault, since the motion began
HANGING = np.zeros(6)
BALL = """<sdf version="1.9"><model name="ball"><pose>{x} {y} {z} 0 0 0</pose><link name="link">
<inertial><mass>0.5</mass><inertia><ixx>2e-4</ixx><iyy>2e-4</iyy><izz>2e-4</izz></inertia></inertial>
<collision name="c"><geometry><sphere><radius>0.03</radius></sphere></geometry></collision>
</link></model></sdf>"""


class Story:
    """A rig that is in a motion, and what is told of it."""

    def __init__(self, way: str, folder: Path, factor: float) -> None:
        self.rig = GazeboRig(folder, factor, way)
        self.arm = self.rig.arm
        try:
            self.rig.bring_up()
            self.rig.simulate(SETTLING)
            if way == 'forward':
                self.rig.set_parameters('/dynamics_node', mode='computed_torque')
            self.rig.simulate(1.0)
        except BaseException:  # what is interrupted, too, is to end Gazebo
            self.rig.close()
            raise
        self.goal = HANGING
        self.begin = self.rig.now
        self.seen, self.heard = len(self.rig.said), len(self.rig.log)

    def set_out(self, goal: np.ndarray = DOCS_GOAL, seconds: float = LONG) -> None:
        """Begin a motion, and wait until it is in its middle."""
        self.goal, self.begin = goal, self.rig.move(goal, seconds)
        self.seen, self.heard = len(self.rig.said), len(self.rig.log)
        if seconds >= LONG:
            self.rig.simulate(BEFORE)

    def end(self) -> str:
        """Wait for the end of the motion; return how far from it the arm is, and the error."""
        times = self.rig.arrive(self.begin, self.goal, self.arm)
        _, desired, actual = self.arm.tracked(*times)
        error = 1e3 * (actual - desired)
        left = 1e3 * np.abs(self.arm.position - self.goal).max()
        rms, most = np.sqrt((error**2).mean()), np.abs(error).max()
        return f'{left:.2f} mrad from its end; error {rms:.2f} mrad rms, {most:.1f} at most'

    def goes(self, goal: np.ndarray = HANGING) -> str:
        """Return how the next motion ends."""
        self.goal, self.begin = goal, self.rig.move(goal, LONG)
        return f'next motion: {self.end()}'

    def sentences(self) -> list[str]:
        """Return what was said since the motion began."""
        said = [f'{when:8.3f} s  {words}' for when, _, _, words in self.rig.said[self.seen :]]
        lines = self.rig.log[self.heard :].splitlines()
        words = ('ERROR', 'WARN', 'dynamics_node', 'feedforward')
        return said + [line[:220] for line in lines if any(word in line for word in words)]

    def processes(self, words: str) -> list[int]:
        """Return the programs of the launch whose command line has some words; no forks."""
        found, parents = [], {}
        for folder in Path('/proc').glob('[0-9]*'):
            try:
                command = (folder / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
                environment = (folder / 'environ').read_bytes()
                parent = int((folder / 'stat').read_text().rpartition(')')[2].split()[1])
            except OSError:
                continue
            ours = f'GZ_PARTITION={self.rig.environment["GZ_PARTITION"]}\0'.encode()
            if ours in environment and words in command and 'ros2 launch' not in command:
                found.append(int(folder.name))
                parents[found[-1]] = parent
        return [each for each in found if parents[each] not in found]


def pause(story: Story, options: Any) -> str:
    story.set_out()
    story.rig.control('pause: true')
    time.sleep(0.5)
    where, when = story.arm.position, story.rig.now
    time.sleep(3.0)
    moved = 1e3 * np.abs(story.arm.position - where).max()
    story.rig.control('pause: false')
    return f'paused at {when:.3f} s for 3.5 s, moved {moved:.3f} mrad meanwhile; {story.end()}'


def steps(story: Story, options: Any) -> str:
    story.set_out()
    story.rig.control('pause: true')
    for _ in range(55):
        story.rig.control('pause: true, multi_step: 1')
    story.rig.control('pause: false')
    return story.end()


def slow(story: Story, options: Any) -> str:
    rows, begin = [], HANGING
    for factor in options.factors:
        story.rig.set_real_time_factor(factor)
        story.rig.simulate(0.2)
        goal = DOCS_GOAL if begin is HANGING else HANGING
        wall, simulated = time.monotonic(), story.rig.now
        story.goal, story.begin = goal, story.rig.move(goal, SHORT)
        row = story.end()
        held = (story.rig.now - simulated) / (time.monotonic() - wall)
        rows.append(f'factor {factor:g} (held {held:.3f}), {SHORT:g} s motion: {row}')
        begin = goal
    return '\n  '.join(rows)


def reset(story: Story, options: Any) -> str:
    story.set_out()
    before, when = len(story.arm.states), story.rig.now
    story.rig.control('reset: {all: true}')
    wall = time.monotonic()
    time.sleep(options.patience)
    states = story.arm.states[before:]
    text = (
        f'reset at {when:.3f} s; in {options.patience:g} s, real time, {len(states)} joint states'
    )
    if len(states) < 10:
        return text
    times, positions, velocities = story.arm.between(0.0)
    fastest = np.abs(velocities[-len(states) :]).max()
    text += f', fastest joint {fastest:.2f} rad/s, now {story.arm.speed:.4f} rad/s'
    return f'{text}; {time.monotonic() - wall:.0f} s; {story.goes()}'


def off(story: Story, options: Any) -> str:
    def switch(**names: list[str]) -> None:
        story.rig.call(
            SwitchController, '/controller_manager/switch_controller', strictness=2, **names
        )

    story.set_out()
    begin = story.rig.now
    switch(deactivate_controllers=[story.rig.controller])
    story.rig.simulate(1.0)
    switch(activate_controllers=[story.rig.controller])
    on = story.rig.now
    story.rig.simulate(4.0)
    fell = np.ptp(story.arm.between(begin, on)[1], axis=0)
    times, energy = story.arm.energy(begin)
    after = energy[times >= on]
    calm = times[times >= on][after < 1e-3]
    return (
        f'fell by {fell.max():.2f} rad (joint {fell.argmax() + 1}), {energy.max():.2f} J at most; '
        f'below 1 mJ {calm[0] - on if len(calm) else np.nan:.2f} s after it was on again; '
        f'{story.goes()}'
    )


def kill(story: Story, options: Any) -> str:
    story.set_out()
    (pid,) = story.processes('dynamics_node')
    command = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')[:-1]
    begin = story.rig.now
    os.kill(pid, signal.SIGKILL)
    story.rig.simulate(2.5)
    times, energy = story.arm.energy(begin)
    speed = story.arm.speed
    text = f'{energy.max():.4f} J at most, {speed:.4f} rad/s after 2.5 s'
    log = (story.rig.folder / 'restarted.log').open('w')
    node = subprocess.Popen(command, env=story.rig.environment, stdout=log, stderr=log)
    wall, again = time.monotonic(), story.rig.now
    try:
        story.rig.until(lambda: 'commanding' in (story.rig.said or [('', '', 0, '')])[-1][3])
        text += f'; commanding {time.monotonic() - wall:.1f} s after it was started again'
        story.rig.simulate(4.0)
        times, energy = story.arm.energy(again)
        text += f', {energy.max():.4f} J at most, {story.arm.speed:.4f} rad/s'
        story.rig.set_parameters('/dynamics_node', mode='computed_torque')
        story.rig.simulate(1.0)
        return f'{text}; {story.goes()}'
    finally:
        node.send_signal(signal.SIGINT)
        node.wait(30.0)
        text = (story.rig.folder / 'restarted.log').read_text()
        print('\n'.join(f'    restarted: {line[:200]}' for line in text.splitlines()[-12:]))


def push(story: Story, options: Any) -> str:
    story.rig.set_parameters('/dynamics_node', mode='gravity_compensation')
    story.rig.simulate(3.0)
    x, y, z = options.ball
    ball = BALL.format(x=x, y=y, z=z).replace('\n', ' ').replace('"', "'")
    begin = story.rig.now
    story.rig.ask('/world/empty/create', 'EntityFactory', 'Boolean', f'sdf: "{ball}"')
    story.rig.simulate(6.0)
    times, energy = story.arm.energy(begin)
    moved = np.ptp(story.arm.between(begin)[1], axis=0)
    times, _, velocities = story.arm.between(begin)
    speeds = np.abs(velocities).max(axis=1)
    hit = times[speeds.argmax()]
    slow = times[(times > hit) & (speeds < 0.05)]
    now = story.rig.now
    story.rig.simulate(5.0)
    stays = 1e3 * np.ptp(story.arm.between(now)[1], axis=0).max()
    calm = slow[0] - hit if len(slow) else np.nan
    return (
        f'{energy.max():.2f} J, joint {moved.argmax() + 1} gives way by {moved.max():.2f} rad, '
        f'slower than 0.05 rad/s {calm:.2f} s after its fastest; '
        f'moves by {stays:.2f} mrad in the next 5 s'
    )


FAULTS = {each.__name__: each for each in (pause, steps, slow, reset, off, kill, push)}


def main() -> None:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('--faults', nargs='+', choices=FAULTS, default=list(FAULTS))
    parser.add_argument('--ways', nargs='+', choices=WAYS, default=['forward'])
    parser.add_argument('--real-time-factor', type=float, default=0.5)
    parser.add_argument('--factors', nargs='+', type=float, default=[0.3, 0.05, 0.015])
    parser.add_argument('--ball', nargs=3, type=float, default=[0.5, 0.03, 1.5], help='[m]')
    parser.add_argument('--patience', type=float, default=40.0, help='[s], of real time')
    options = parser.parse_args()
    for way in options.ways:
        for name in options.faults:
            with tempfile.TemporaryDirectory() as folder:
                story = Story(way, Path(folder), options.real_time_factor)
                try:
                    print(f'{way}, {name}: {FAULTS[name](story, options)}', flush=True)
                    for sentence in story.sentences():
                        print(f'    {sentence}', flush=True)
                finally:
                    story.rig.close()


if __name__ == '__main__':
    main()
