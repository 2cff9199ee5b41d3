# SPDX-License-Identifier: Apache-2.0
"""
Run the dynamics node at 1 kHz for ten minutes, and report memory growth and missed cycles.

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
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from latency import (
    POSITION,
    RATE,
    Driver,
    begin,
    node_arguments,
    process,
    put_into_page,
    stolen,
)

SETTLING = 60.0  # [s]
SHORTEST_PAUSE = 0.01  # [s]: what fills the queue of ten joint states
NEAR = 0.05  # [s] from a pause, while what it held up is made up for


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
        driver.set_out(0.2)


def pauses(stream: np.ndarray) -> list[tuple[float, float]]:
    """Return begin and end of the pauses in a stream of times [s]."""
    at = np.flatnonzero(np.diff(stream) > SHORTEST_PAUSE)
    return list(zip(stream[at].tolist(), stream[at + 1].tolist()))


def overlap(pause: tuple[float, float], other: tuple[float, float]) -> bool:
    return pause[0] < other[1] + NEAR and other[0] < pause[1] + NEAR


def described(found: list[tuple[float, float]]) -> str:
    longest = max((end - begin for begin, end in found), default=0.0)
    return (
        f'{len(found)} times for more than {1e3 * SHORTEST_PAUSE:.0f} ms, '
        f'{1e3 * longest:.0f} ms at most'
    )


def soak(minutes: float, fifo: bool) -> str:
    """Return the result as text."""
    begin(fifo)
    taken = stolen()
    program = str(Path(__file__).with_name('latency.py'))
    with process(program, '--listen'), process(*node_arguments(), fifo=fifo) as node:
        driver = Driver()
        driver.wait_for_peer()
        watch = Watch(node.pid)
        switches = status(node.pid, 'nonvoluntary_ctxt_switches')
        is_over = threading.Event()
        mover = threading.Thread(target=keep_moving, args=(driver, is_over), daemon=True)
        mover.start()
        sent, _, _ = driver.stream(60.0 * minutes, node.pid)
        is_over.set()
        switches = status(node.pid, 'nonvoluntary_ctxt_switches') - switches
        driver.close()
    # Behind the last state the node goes on for a while, which is no answer and no pause.
    end = sent[-1] + 1e9 * SHORTEST_PAUSE
    commanded = np.array([at for at, _ in driver.received if sent[0] < at < end])
    missed = max(len(sent) - len(commanded), 0)  # a state has one command, a long pause some, too
    drivers, nodes = pauses(1e-9 * sent), pauses(1e-9 * commanded)
    alone = [pause for pause in nodes if not any(overlap(pause, other) for other in drivers)]
    memory = np.array(watch.memory) / 1024.0
    settled = memory[min(round(SETTLING), len(memory) - 2) :]
    growth = np.median(settled[-10:]) - np.median(settled[:10])
    torques = np.array([np.frombuffer(data) for _, data in driver.received[-1000:]])
    assert np.isfinite(torques).all() and len(POSITION) == torques.shape[1]
    print(
        f'Load average {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores, '
        f'{stolen() - taken:.1f} s of processor time taken by the hypervisor. The driver paused '
        f'{described(drivers)}, commands alone {described(alone)}. The scheduler took the '
        f"processor from the node's main thread {switches} times.\n"
    )
    return (
        f'In {minutes:g} minutes at {RATE:.0f} Hz on {os.cpu_count()} cores'
        + (', driver and node at a real-time priority' if fifo else '')
        + f', {missed} of {len(sent)} joint states had no command: a pause of more than ten '
        'cycles overflows the queue of ten joint states. Memory grew by '
        f'{growth:.2f} MB after the first minute.\n'
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--minutes', type=float, default=10.0)
    parser.add_argument('--fifo', action='store_true')
    parser.add_argument('--write', action='store_true')
    arguments = parser.parse_args()
    text = soak(arguments.minutes, arguments.fifo)
    print(text)
    if arguments.write:
        put_into_page('soak', text)
    return 0


if __name__ == '__main__':
    sys.exit(main())
