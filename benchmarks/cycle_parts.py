# SPDX-License-Identifier: Apache-2.0
"""
Find where the time of a control cycle goes, in a dynamics node that runs over DDS.

    python benchmarks/cycle_parts.py [--seconds 10] [--fifo]

The driver of latency.py publishes the joint states of a Panda; the node is in computed torque, on
a reference, and the methods that a cycle consists of are wrapped by a stopwatch. Of each part the
median is printed, what it calls of other parts not counted, at 1 kHz, alone and with a third
process that listens to everything, and at 250 Hz. What the main thread spends outside of the
callbacks is rclpy's and the middleware's: waking up, taking the message, calling back. Beside it
is the processor time of the relay of latency.py on the events executor, whose callback only
publishes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import latency
import numpy as np
import rclpy

WAKING = 'wake up, take, call back (rclpy, middleware)'
PARTS = {
    'ros.dynamics.control_cycle:ControlCycle._on_joint_state': "the cycle's own lines",
    'ros.joint_states:StateReception.receive': 'read the message into the buffer',
    'control.joint_state_buffer:JointStateBuffer.take': 'take the state from the buffer',
    'control.command_pipeline:CommandPipeline.step': "the pipeline's lines of Python",
    'control.core_module:ArmRuntime.step': 'reference, law, limits: one call of the core',
    'ros.dynamics.outputs:CycleOutputs.publish_command': 'convert the commands',
    'ros.dynamics.outputs:CycleOutputs.publish_details': 'fill torques and dynamics_state',
    'ros.shared_memory:Cycles.received': 'note the state for the watchdog and the services',
    'ros.shared_memory:Cycles.sent': 'write state and command for them',
    'ros.dynamics.control_cycle:CycleCounts.count': 'count',
}
PUBLISH = 'publish (rclpy, middleware)'
TIMER = 'ros.dynamics.control_cycle:ControlCycle._on_watchdog'
RUNS = {'1 kHz': (1000.0, False), '1 kHz, heard': (1000.0, True), '250 Hz': (250.0, False)}


# --- in the node's process -----------------------------------------------------------------------


class Stopwatch:
    """Keeps how long each call of some functions took, without those among them that it calls."""

    def __init__(self) -> None:
        self.taken: dict[str, list[int]] = defaultdict(list)  # [ns]
        self._inner: list[int] = []

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, timed."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            self._inner.append(0)
            begin = time.perf_counter_ns()
            try:
                return function(*args, **options)
            finally:
                took = time.perf_counter_ns() - begin
                self.taken[name].append(took - self._inner.pop())
                if self._inner:
                    self._inner[-1] += took

        return call


def run_node(where: str) -> int:
    """Run the dynamics node with a stopwatch; at its end write medians [us] to a file."""
    stopwatch = Stopwatch()
    for path in (*PARTS, TIMER):
        module, _, names = path.partition(':')
        kind, _, method = names.partition('.')
        owner = getattr(importlib.import_module(f'robodyn_ros.{module}'), kind)
        setattr(owner, method, stopwatch.timed(path, getattr(owner, method)))
    from rclpy.lifecycle import LifecyclePublisher

    LifecyclePublisher.publish = stopwatch.timed(PUBLISH, LifecyclePublisher.publish)
    from robodyn_ros.ros.dynamics.dynamics_node import main as run

    code = run(['--ros-args', *sys.argv[sys.argv.index('--ros-args') + 1 :]])
    cycles = len(stopwatch.taken[next(iter(PARTS))])
    medians = {
        name: (1e-3 * float(np.median(taken)), len(taken) / max(cycles, 1))
        for name, taken in stopwatch.taken.items()
    }
    Path(where).write_text(json.dumps(medians), encoding='utf-8')
    return code


# --- in the benchmark's --------------------------------------------------------------------------


def main_thread_time(pid: int) -> float:
    """Return what the main thread of a process has used [s]."""
    return 1e-9 * int(Path(f'/proc/{pid}/task/{pid}/schedstat').read_text().split()[0])


def used_per_state(pid: int, is_node: bool, seconds: float) -> tuple[float, float]:
    """Return the processor time of the main thread and of all that a peer runs, per state [us]."""
    driver = latency.Driver()
    try:
        driver.wait_for_peer()
        if is_node:
            driver.set_out()
            time.sleep(0.2)
        driver.stream(latency.WARM_UP, pid)
        before = main_thread_time(pid), latency.processor_time(pid)
        times, _, _ = driver.stream(seconds, pid)
        after = main_thread_time(pid), latency.processor_time(pid)
    finally:
        driver.close()
    main, everything = (1e6 * (a - b) / len(times) for a, b in zip(after, before, strict=True))
    return main, everything


def column(rate: float, has_subscribers: bool, seconds: float, fifo: bool) -> dict[str, float]:
    """Return the parts of a run [us]."""
    latency.RATE = rate
    here = str(Path(__file__).resolve())
    relay = str(Path(latency.__file__).resolve())
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if has_subscribers:
            stack.enter_context(latency.process(relay, '--listen'))
        where = str(Path(folder, 'parts.json'))
        node = [here, '--node', where, *latency.node_arguments()[2:]]
        with latency.process(*node, fifo=fifo) as child:
            main, everything = used_per_state(child.pid, True, seconds)
        medians = json.loads(Path(where).read_text(encoding='utf-8'))
        answer = ['--relay', 'events', str(int(has_subscribers))]
        with latency.process(relay, *answer, fifo=fifo) as child:
            relay_main, relay_everything = used_per_state(child.pid, False, seconds)
    # A part that not every cycle has counts with its share.
    parts = {words: float(np.prod(medians.get(path, (0.0, 0.0)))) for path, words in PARTS.items()}
    parts[PUBLISH] = float(np.prod(medians[PUBLISH]))
    timer = float(np.prod(medians[TIMER]))
    waking = main - sum(parts.values()) - timer
    return {
        WAKING: waking,
        **parts,
        "the watchdog's timer, its share": timer,
        "**main thread** of it, the node's": main,
        "**the node**, with the middleware's threads, watchdog and services": everything,
        'main thread of the relay': relay_main,
        '**the relay**': relay_everything,
    }


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--seconds', type=float, default=10.0)
    parser.add_argument('--fifo', action='store_true')
    options = parser.parse_args()
    load = os.getloadavg()[0]
    latency.begin(options.fifo)
    columns = [column(*run, options.seconds, options.fifo) for run in RUNS.values()]
    rclpy.shutdown()
    lines = [
        f'Medians [µs] of {options.seconds:.0f} s each; {os.cpu_count()} cores, load average '
        f'{load:.2f} before'
        + (', driver, relay and node at a real-time priority.' if options.fifo else '.'),
        '',
        f'| | {" | ".join(RUNS)} |',
        '|---|' + '--:|' * len(RUNS),
        *(
            f'| {words} | {" | ".join(f"{one[words]:.1f}" for one in columns)} |'
            for words in columns[0]
        ),
    ]
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(run_node(sys.argv[2]) if sys.argv[1:2] == ['--node'] else main())
