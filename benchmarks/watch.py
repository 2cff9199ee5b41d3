# SPDX-License-Identifier: Apache-2.0
"""
Measure what the live page costs, and what it and the monitor cost the node beside them.

    python benchmarks/watch.py page [--seconds 30] [--base FOLDER]
    python benchmarks/watch.py node [--seconds 10] [--rounds 4] [--base FOLDER]

``page``: the dynamics node and MuJoCo hold a Panda at 200 Hz and at 1 kHz; the processor time of
watch_node while a browser takes 30 frames a second, and in Chromium the first paint and the first
arm that is drawn.
``node``: a driver sends joint states at 1 kHz to the dynamics node, as in benchmarks/latency.py,
in turns with nobody beside it, with the page, and with the page and the monitor; latency and
processor time per state of the node, and both over those of the turn before, with nobody.

--base is another checkout, built, whose page takes turns with this one's: two commits compared.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import latency
import numpy as np
from ageing_arms import AgeingArm
from browser import chromium
from robots import public_urdf
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

ROOT = Path(__file__).resolve().parents[1]
CHAIN = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
PORT = 18_765
STARTING, SETTLING = 120.0, 3.0  # until a node serves; until a figure counts [s]
NODE = 'robodyn_ros.ros.dynamics.dynamics_node'


def arguments_of(module: str, **parameters: object) -> list[str]:
    """Return the command line of a node with an arm's parameters and these."""
    given = {'urdf_file': public_urdf('panda.urdf'), **CHAIN, **parameters}
    command = [sys.executable, '-m', module, '--ros-args']
    for name, value in given.items():
        command += ['-p', f'{name}:={value}']
    return command


class Browser:
    """Takes the frames of a page, in a thread, as a browser would."""

    def __init__(self, port: int) -> None:
        address, deadline = f'127.0.0.1:{port}', time.monotonic() + STARTING
        while True:
            try:
                self._socket = connect(f'ws://{address}/live', origin=f'http://{address}')
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        self.frames = self.characters = 0
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(ConnectionClosed):
            for text in self._socket:
                self.frames += 1
                self.characters += len(text)

    def close(self) -> None:
        self._socket.close()
        self._thread.join()


@contextmanager
def page(tree: Path, port: int, node: str = 'dynamics_node') -> Iterator[int]:
    """Run a checkout's watch_node until the block ends; yields its process's number."""
    module = 'robodyn_ros.ros.watch_node'
    command = arguments_of(module, port=port, watched_node=node)
    with latency.process(*command, tree=tree) as child:
        yield child.pid


def load() -> str:
    return ' '.join(f'{value:.1f}' for value in os.getloadavg())


def measure_page(trees: list[Path], seconds: float) -> None:
    """Print what the page costs beside a node of 200 Hz and one of 1 kHz."""
    for rate in (200, 1000):
        with ExitStack() as stack:
            simulator = arguments_of(
                'robodyn_ros.ros.simulator_node',
                time_step=1.0 / rate,
                initial_position='[0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]',
            )
            simulator += ['-r', 'commands:=dynamics_node/commands']
            stack.enter_context(latency.process(*simulator, tree=ROOT))
            stack.enter_context(latency.process(*arguments_of(NODE), tree=ROOT))
            for tree in trees:
                with page(tree, PORT) as pid:
                    browser = Browser(PORT)
                    deadline = time.monotonic() + STARTING
                    while not browser.frames:
                        if time.monotonic() > deadline:
                            raise SystemExit('no frame came')
                        time.sleep(0.1)
                    time.sleep(SETTLING)
                    used, frames = latency.processor_time(pid), browser.frames
                    began = time.monotonic()
                    time.sleep(seconds)
                    elapsed = time.monotonic() - began
                    used = latency.processor_time(pid) - used
                    frames = browser.frames - frames
                    print(
                        f'node of {rate} Hz, {tree.name}: {frames / elapsed:.1f} frames a second '
                        f'of {browser.characters / browser.frames:.0f} characters take '
                        f'{100 * used / elapsed:.2f} % of a core (load {load()})',
                        flush=True,
                    )
                    browser.close()
                    if rate == 200:
                        paint(tree.name)


def paint(name: str) -> None:
    """Print when Chromium paints first, and when the first arm is drawn."""
    with chromium() as browser:
        paints, arms = [], []
        for _ in range(5):
            tab = browser.new_page(viewport={'width': 1280, 'height': 900})
            began = time.monotonic()
            tab.goto(f'http://127.0.0.1:{PORT}/')
            while not int(tab.evaluate('document.body.dataset.frames || 0')):
                time.sleep(0.01)
            arms.append(1e3 * (time.monotonic() - began))
            entry = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            paints.append(tab.evaluate(entry))
            tab.close()
    first, arm = (f'{np.median(x):.0f} (worst {max(x):.0f}) ms' for x in (paints, arms))
    print(f'{name}: first paint after {first}, first arm after {arm} (load {load()})', flush=True)


def measure_node(trees: list[Path], seconds: float, rounds: int) -> None:
    """Print what the page and the monitor cost the node, in turns."""
    latency.WARM_UP = SETTLING
    runs: dict[str, list[list[float]]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        AgeingArm('panda').identified.save(folder / 'panda.yaml')
        monitor = [sys.executable, '-m', 'robodyn_ros.ros.monitor_node', '--ros-args']
        for name, value in (
            ('model', folder / 'panda.yaml'),
            ('watched_node', 'peer'),
            ('efforts', 'torques'),
        ):
            monitor += ['-p', f'{name}:={value}']
        kinds = {f'page of {tree.name}': (tree, False) for tree in trees}
        kinds['page and monitor'] = trees[-1], True
        node = stack.enter_context(latency.process(*latency.node_arguments(50.0), tree=ROOT))
        latency.measured(1.0, node.pid, True)  # the node listens for others first
        for _ in range(rounds):
            for kind, (tree, is_monitored) in kinds.items():
                alone = latency.measured(seconds, node.pid, True)
                with ExitStack() as beside:
                    beside.enter_context(page(tree, PORT, 'peer'))
                    if is_monitored:
                        beside.enter_context(latency.process(*monitor, tree=ROOT))
                    beside.callback(Browser(PORT).close)
                    time.sleep(SETTLING)
                    watched = latency.measured(seconds, node.pid, True)
                if not (len(alone.latency) and len(watched.latency)):
                    print(f'{kind}: the node gave its reference up (load {load()})', flush=True)
                    continue
                figures = [figure(each) for each in (alone, watched) for figure in FIGURES]
                runs.setdefault(kind, []).append(figures)
                print(
                    f'{kind}: median {figures[0]:.0f} and {figures[3]:.0f} us, 99 % '
                    f'{figures[1]:.0f} and {figures[4]:.0f} us, processor {figures[2]:.0f} and '
                    f'{figures[5]:.0f} us; lost {alone.sent - alone.answered} and '
                    f'{watched.sent - watched.answered} (load {load()})',
                    flush=True,
                )
    for kind, table in runs.items():
        rows = np.array(table)
        ratios = np.median(rows[:, 3:] / rows[:, :3], axis=0)
        print(
            f'with {kind}, over the turn before with nobody, median of {len(rows)}: latency '
            f'{ratios[0]:.3f}, its 99 % {ratios[1]:.3f}, processor {ratios[2]:.3f}'
        )


FIGURES = (
    lambda run: run.percentile(50),
    lambda run: run.percentile(99),
    lambda run: run.processor_time,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('what', choices=('page', 'node'), nargs='?')
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--rounds', type=int, default=4)
    parser.add_argument('--base', type=Path)
    options = parser.parse_args()
    trees = [options.base.resolve()] if options.base is not None else []
    trees.append(ROOT)
    latency.begin(fifo=False)
    if options.what in ('page', None):
        measure_page(trees, options.seconds or 30.0)
    if options.what in ('node', None):
        measure_node(trees, options.seconds or 10.0, options.rounds)


if __name__ == '__main__':
    main()
