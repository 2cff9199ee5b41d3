# SPDX-License-Identifier: Apache-2.0
"""
Run the dynamics node at 1 kHz for ten minutes, and tell whether it grows and what it misses.

    python benchmarks/soak.py [--minutes 10] [--fifo] [--write]

A Panda in computed torque, along one trajectory after another, with all publications subscribed
to. A cycle is missed where a joint state got no command. Memory is the node's resident set; the
first minute is its start. --write puts the result into docs/latency.md.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from latency import (
    DOCUMENT,
    POSITION,
    RATE,
    Driver,
    begin,
    node_arguments,
    process,
    stolen,
)

SETTLING = 60.0  # [s]
SHORTEST_PAUSE = 0.004  # [s]: half of what fills the queue of ten joint states
NEAR = 0.05  # [s] from a pause, while the queue is still full
BETWEEN_MARKS = re.compile(r'(?<=<!-- soak: begin -->\n).*?(?=<!-- soak: end -->)', re.S)


def status(pid: int, key: str) -> int:
    """Return a number of /proc/PID/status."""
    text = Path(f'/proc/{pid}/status').read_text()
    return int(re.search(rf'^{key}:\s+(\d+)', text, re.M).group(1))


class Watch:
    """Takes the node's memory every second, in a thread."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.memory: list[int] = []  # [kB]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while Path(f'/proc/{self.pid}').exists():
            self.memory.append(status(self.pid, 'VmRSS'))
            time.sleep(1.0)


def keep_moving(driver: Driver, is_over: threading.Event) -> None:
    """Send one motion after another."""
    while not is_over.wait(20.0):
        driver.set_out()


def after_pauses(missed: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """Return which missed states lie within `NEAR` of a pause in a stream of times [s]."""
    gaps = np.diff(stream)
    pauses = np.flatnonzero(gaps > SHORTEST_PAUSE)
    near = np.zeros(len(missed), dtype=bool)
    for paused, resumed in zip(stream[pauses], stream[pauses + 1]):
        near |= (missed > paused - NEAR) & (missed < resumed + NEAR)
    return near


def soak(minutes: float, fifo: bool) -> str:
    """Return the result in words."""
    begin(fifo)
    taken = stolen()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'torques.npz'
        program = str(Path(__file__).with_name('latency.py'))
        with process(program, '--listen', str(file)) as listener, \
                process(*node_arguments(), fifo=fifo) as node:
            driver = Driver('/dynamics_node/commands')
            driver.wait_for_peer()
            watch = Watch(node.pid)
            switches = status(node.pid, 'nonvoluntary_ctxt_switches')
            is_over = threading.Event()
            mover = threading.Thread(target=keep_moving, args=(driver, is_over), daemon=True)
            mover.start()
            sent, _ = driver.stream(60.0 * minutes)
            is_over.set()
            switches = status(node.pid, 'nonvoluntary_ctxt_switches') - switches
            driver.close()
            listener.send_signal(2)
            listener.wait(60.0)
        known = np.load(file)
    answered = np.unique(known['stamps'])
    answered = answered[answered >= sent[0]]
    missed = np.setdiff1d(sent, answered)
    # What the listener did not hear was still commanded.
    unheard = len(driver.received) - len(known['stamps'])
    shared = after_pauses(1e-9 * missed, 1e-9 * sent)
    alone = after_pauses(1e-9 * missed, 1e-9 * answered) & ~shared
    unexplained = len(missed) - shared.sum() - alone.sum()
    longest = 1e-6 * np.diff(answered).max()
    memory = np.array(watch.memory) / 1024.0
    settled = memory[min(round(SETTLING), len(memory) - 2):]
    growth = np.median(settled[-10:]) - np.median(settled[:10])
    torques = np.array([np.frombuffer(data) for _, data in driver.received[-1000:]])
    assert np.isfinite(torques).all() and len(POSITION) == torques.shape[1]
    return (
        f'{minutes:g} minutes at {RATE:.0f} Hz, load average {os.getloadavg()[2]:.1f} on '
        f'{os.cpu_count()} cores, {stolen() - taken:.1f} s of processor time taken by the '
        'hypervisor, '
        + ('driver and node at a real-time priority' if fifo else 'no priorities')
        + f': {len(sent)} joint states, {len(missed)} of them missed. {shared.sum()} were '
        'published around pauses in which the driver did not run either: the machine was busy, '
        'and what the driver then made up for at once filled the queue of ten joint states. '
        f'{alone.sum()} came around pauses of the node alone; {unexplained} have no such cause. '
        f'The longest pause was {longest:.0f} ms; the scheduler took the processor from the '
        f"node's main thread {switches} times. "
        f'{max(unheard, 0)} commands were not heard by the listener that '
        f'this is counted from. Memory {np.median(settled[:10]):.1f} MB after the first minute, '
        f'{np.median(settled[-10:]):.1f} MB at the end: {growth:+.2f} MB.\n')


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--minutes', type=float, default=10.0)
    parser.add_argument('--fifo', action='store_true')
    parser.add_argument('--write', action='store_true')
    arguments = parser.parse_args()
    text = soak(arguments.minutes, arguments.fifo)
    print(text)
    if arguments.write:
        document = DOCUMENT.read_text(encoding='utf-8')
        DOCUMENT.write_text(BETWEEN_MARKS.sub(lambda _: text, document), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
