# SPDX-License-Identifier: Apache-2.0
"""
Kill, crash and stop the dynamics node, and time what its watchdog sends.

    python benchmarks/watchdog.py [--repetitions 100] [--stop-seconds 5] [--energy 5]

A Panda in MuJoCo, in real time, moves under the node in computed torque. Then the node gets
SIGKILL, SIGSEGV or SIGSTOP. Counted is how often the watchdog's first command was on the wire, by
its source time stamp, within ``state_timeout`` plus one ``watchdog_period`` of the signal; the
worst one is printed with the machine's load. After a SIGSTOP the commands that the node sends on
waking and that are not the watchdog's are counted: one may be old.

Then, for --energy repetitions each: speed and kinetic energy 1 s after SIGKILL in motion, with
the watchdog, with one that gets no joint states, and with none; and what the watchdog costs.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import domains
import numpy as np
import rclpy
from rclpy.node import Node
from robots import public_urdf
from scene import BOUND, CHAIN, GOAL, POSITION, Scene

from robodyn_ros import RobotModel

BLIND = (
    'from robodyn_ros.ros.watchdog import WatchdogNode\n'
    'WatchdogNode._subscribe = lambda node, takeover: node.create_timer(1e9, id)\n'
)


def report(name: str, delays: list[float | None], worst_load: float) -> None:
    """Print how many were in time, and the worst."""
    known = np.array([np.inf if delay is None else delay for delay in delays])
    print(
        f'{name}: {np.mean(known <= BOUND):.0%} of {len(known)} within {1e3 * BOUND:.0f} ms; '
        f'median {1e3 * np.median(known):.1f} ms, worst {1e3 * known.max():.1f} ms '
        f'at load {worst_load:.1f} on {os.cpu_count()} processors',
        flush=True,
    )


def ended(listener: Node, name: str, number: int, repetitions: int) -> None:
    """Time the watchdog where the node ends, a new scene each time."""
    delays: list[float | None] = []
    load = 0.0
    for _ in range(repetitions):
        scene = Scene(listener)
        try:
            scene.bring_up()
            scene.move(GOAL)
            delays.append(scene.signal(number))
        finally:
            scene.close()
        if delays[-1] is None or delays[-1] >= max(d or np.inf for d in delays):
            load = os.getloadavg()[0]
    report(name, delays, load)


def stopped(listener: Node, repetitions: int, seconds: float) -> None:
    """Time the watchdog where the node is stopped and continued, in one scene."""
    delays: list[float | None] = []
    strays: list[int] = []
    load = 0.0
    scene = Scene(listener)
    try:
        scene.bring_up()
        for i in range(repetitions):
            scene.move(GOAL if i % 2 == 0 else POSITION)
            delays.append(scene.signal(signal.SIGSTOP))
            if delays[-1] is None or delays[-1] >= max(d or np.inf for d in delays):
                load = os.getloadavg()[0]
            scene.spin(max(seconds - 2.0 * BOUND - 0.3, 0.0))
            strays.append(strays_on_waking(scene))
    finally:
        scene.close()
    report(f'SIGSTOP for {seconds:g} s', delays, load)
    print(f'   commands of the node on waking before it looked: at most {max(strays)}')


def strays_on_waking(scene: Scene) -> int:
    """Continue the node, and return how many commands of it the watchdog's came after."""
    before = len(scene.heard.commands)
    scene.node.send_signal(signal.SIGCONT)
    scene.until(lambda: len(scene.heard.commands) > before + 200)
    since = scene.heard.are_watchdogs[before:]
    last = len(since) - since[::-1].index(True) if True in since else 0
    return since[:last].count(False)


def energies(listener: Node, name: str, patch: str, is_watched: bool, repetitions: int) -> None:
    """Print how the arm moves a second after SIGKILL in motion."""
    model = RobotModel.from_urdf(public_urdf('panda.urdf'), **CHAIN)
    begun, found = [], []
    for _ in range(repetitions):
        scene = Scene(listener, patch)
        try:
            scene.bring_up()
            scene.move(GOAL)
            if not is_watched:
                os.kill(scene.watchdog, signal.SIGKILL)
            begun.append(scene.motion(model))
            scene.node.kill()
            scene.spin(1.0)
            found.append(scene.motion(model))
        finally:
            scene.close()
    speed, energy = np.median(begun, axis=0)
    speed_after, energy_after = np.median(found, axis=0)
    worst_speed, worst_energy = np.max(found, axis=0)
    print(
        f'{name}: {speed:.2f} rad/s, {energy:.2f} J at SIGKILL; 1 s later median '
        f'{speed_after:.3f} rad/s, {energy_after:.4f} J, worst {worst_speed:.3f} rad/s, '
        f'{worst_energy:.4f} J ({repetitions} times)',
        flush=True,
    )


def cost(listener: Node, seconds: float = 20.0) -> None:
    """Print memory and processor time of the processes beside the node."""
    scene = Scene(listener)
    try:
        scene.bring_up()
        scene.spin(2.0)
        pids = {scene.watchdog: 'watchdog'}
        pids |= {pid: 'other' for pid in scene.children() if pid not in pids}
        pids[scene.node.pid] = 'node'
        begin = {pid: processor_time(pid) for pid in pids}
        scene.spin(seconds)
        for pid, name in pids.items():
            fraction = (processor_time(pid) - begin[pid]) / seconds
            rss, pss, private = memory(pid)
            print(
                f'{name}: {100.0 * fraction:.2f} % of a processor, {rss:.1f} MB resident, '
                f'{pss:.1f} MB proportional, {private:.1f} MB its own',
                flush=True,
            )
    finally:
        scene.close()


def processor_time(pid: int) -> float:
    """Return what the threads of a process have used [s]."""
    tasks = Path(f'/proc/{pid}/task').iterdir()
    return 1e-9 * sum(int((task / 'schedstat').read_text().split()[0]) for task in tasks)


def memory(pid: int) -> tuple[float, float, float]:
    """Return the resident, proportional and private memory of a process [MB]."""
    sizes = {}
    for line in Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        sizes[name.rstrip(':')] = int(value) / 1024.0
    return sizes['Rss'], sizes['Pss'], sizes['Private_Clean'] + sizes['Private_Dirty']


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--repetitions', type=int, default=100)
    parser.add_argument('--stop-seconds', type=float, default=5.0)
    parser.add_argument('--energy', type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault('ROS_DOMAIN_ID', str(101 + os.getpid() % 100))
    domains.stay_on_loopback()
    rclpy.init()
    listener = rclpy.create_node('bench')
    cost(listener)
    if options.energy:
        energies(listener, 'with the watchdog', '', True, options.energy)
        energies(listener, 'with one that gets no joint states', BLIND, True, options.energy)
        energies(listener, 'without', '', False, options.energy)
    if options.repetitions:
        ended(listener, 'SIGKILL', signal.SIGKILL, options.repetitions)
        ended(listener, 'SIGSEGV', signal.SIGSEGV, options.repetitions)
        stopped(listener, options.repetitions, options.stop_seconds)
    rclpy.shutdown()


if __name__ == '__main__':
    main()
