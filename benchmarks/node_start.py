# SPDX-License-Identifier: Apache-2.0
"""
What the dynamics node imports, how long it takes to start, and how much memory it has.

    python benchmarks/node_start.py [--repetitions 5] [--base FOLDER]

A node is started for a Panda, configures and commands. Printed are the modules and the third-party
packages that its process has imported by then, seconds and processor seconds from the start of the
process until it has configured, and the memory of the node, its services and its watchdog:
resident, and in parts (what processes share counts in parts of each). --base is another checkout,
whose node runs in turns with this one's. The first start of each is left out: it compiles the arm.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test' / 'support'))

import numpy as np
import rclpy
from rclpy.node import Node
from robots import public_urdf
from scene import CHAIN, PATIENCE, POSITION
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

HERE = Path(__file__).resolve().parents[1]
JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
PROBE = """
import json, os, signal, sys, time
from pathlib import Path
folder, begun = Path(os.environ['PROBE_FOLDER']), float(os.environ['PROBE_BEGUN'])
def dump(number, frame):
    files = {name: getattr(m, '__file__', None) for name, m in list(sys.modules.items())}
    path = folder / f'{os.getpid()}.tmp'
    path.write_text(json.dumps(files))
    path.rename(path.with_suffix('.json'))
signal.signal(signal.SIGUSR1, dump)
from robodyn_ros.ros.dynamics import dynamics_node
configure = dynamics_node.DynamicsNode.on_configure
def timed(self, state):
    result = configure(self, state)
    (folder / 'configured').write_text(f'{time.time() - begun} {time.process_time()}')
    return result
dynamics_node.DynamicsNode.on_configure = timed
sys.exit(dynamics_node.main())
"""


def parts_of_memory(pid: int) -> dict[str, float]:
    """Return resident and proportional memory of a process [MB]."""
    lines = Path(f'/proc/{pid}/smaps_rollup').read_text().splitlines()[1:]
    sizes = {line.split(':')[0]: int(line.split()[1]) / 1024 for line in lines}
    return {'resident': sizes['Rss'], 'in parts': sizes['Pss']}


def processes_of(pid: int) -> dict[str, int]:
    """Return the node and its children by what they do."""
    children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    found = {'node': pid}
    for child in map(int, children):
        found['watchdog' if os.getsid(child) == child else 'services'] = child
    return found


def third_party(files: dict[str, str | None]) -> list[str]:
    """Return the packages outside the standard library, robodyn_ros and ROS's own apart."""
    library = sysconfig.get_path('stdlib')
    found = set()
    for name, path in files.items():
        is_library = path is None or path.startswith(library) and 'site-packages' not in path
        if not is_library and name.split('.')[0] not in sys.stdlib_module_names:
            found.add(name.split('.')[0])
    return sorted(found)


def one_start(base: Path, listener: Node) -> dict[str, Any]:
    """Start a node, let it command, and return what it has."""
    commands: list[Float64MultiArray] = []
    subscription = listener.create_subscription(
        Float64MultiArray, '/dynamics_node/commands', commands.append, 10
    )
    states = listener.create_publisher(JointState, '/joint_states', 10)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = [f'urdf_file:={public_urdf("panda.urdf")}']
        words += [f'{key}:={value}' for key, value in CHAIN.items()]
        arguments = [word for each in words for word in ('-p', each)]
        environment = {
            **os.environ,
            'PROBE_FOLDER': name,
            'PROBE_BEGUN': str(time.time()),
            'PYTHONPATH': os.pathsep.join([str(base), os.environ.get('PYTHONPATH', '')]),
        }
        node = subprocess.Popen(
            [sys.executable, '-c', PROBE, '--ros-args', *arguments],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while len(commands) < 100:
            if node.poll() is not None or time.monotonic() > deadline:
                raise SystemExit('the node does not command')
            message = JointState(name=JOINTS, position=POSITION.tolist(), velocity=[0.0] * 7)
            message.header.stamp = listener.get_clock().now().to_msg()
            states.publish(message)
            rclpy.spin_once(listener, timeout_sec=0.005)
        processes = processes_of(node.pid)
        result: dict[str, Any] = {
            'configured': [float(x) for x in (folder / 'configured').read_text().split()],
            'memory': {what: parts_of_memory(pid) for what, pid in processes.items()},
        }
        node.send_signal(signal.SIGUSR1)
        dumped = folder / f'{node.pid}.json'
        while not dumped.exists():
            if node.poll() is not None or time.monotonic() > deadline:
                raise SystemExit('the node does not say what it has imported')
            states.publish(message)
            time.sleep(0.01)
        result['files'] = json.loads(dumped.read_text())
        node.send_signal(signal.SIGINT)
        node.wait(PATIENCE)
    listener.destroy_subscription(subscription)
    listener.destroy_publisher(states)
    return result


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').strip().split('\n')[0])
    parser.add_argument('--repetitions', type=int, default=5)
    parser.add_argument('--base', type=Path)
    arguments = parser.parse_args()
    bases = [each.resolve() for each in (arguments.base, HERE) if each is not None]
    rclpy.init()
    listener = rclpy.create_node('listener')
    found: dict[Path, list[dict[str, Any]]] = {base: [] for base in bases}
    for k in range(arguments.repetitions + 1):
        for base in bases:
            each = one_start(base, listener)
            found[base] += [each] if k else []
    for base, starts in found.items():
        files = starts[-1]['files']
        packages = third_party(files)
        print(f'{base}: {len(files)} modules, of {len(packages)} packages: {" ".join(packages)}')
        seconds, busy = zip(*(each['configured'] for each in starts), strict=True)
        print(
            f'configured after {np.median(seconds):.2f} s '
            f'({min(seconds):.2f}-{max(seconds):.2f}), '
            f'{np.median(busy):.2f} s of the processor ({min(busy):.2f}-{max(busy):.2f})'
        )
        for what in starts[-1]['memory']:
            sizes = [each['memory'][what] for each in starts]
            parts = (f'{part} {np.median([s[part] for s in sizes]):.1f} MB' for part in sizes[0])
            print(f'  {what}: {", ".join(parts)}')
    rclpy.shutdown()


if __name__ == '__main__':
    main()
