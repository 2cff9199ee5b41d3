# SPDX-License-Identifier: Apache-2.0
"""
A dynamics_node in the process of the test, with its services, and no process started.

The node, the memory that it shares and the services are the real ones, over real DDS. Only
``ChildProcess`` is replaced: the services' node runs in a thread, and the watchdog's where a test
asks for it.
"""

import contextlib
import threading
import time
from types import SimpleNamespace

import pytest
import rclpy
from node_rig import NodeRig
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import LoggingSeverity

from robodyn_ros.ros import watchdog
from robodyn_ros.ros.dynamics.dynamics_node import DynamicsNode
from robodyn_ros.ros.rclpy_workarounds import fastest_executor
from robodyn_ros.ros.services import service_process
from robodyn_ros.ros.shared_memory import SharedMemory
from robodyn_ros.ros.watchdog import WatchdogNode, WatchdogProcess

TURN = 0.002  # of each executor [s]


class NoProcess:
    """In the place of a ChildProcess: it runs nothing, and has ended when a test says so."""

    priority = 'unknown'

    def __init__(self, run):
        self.has_ended = False

    def kill(self):
        """End it."""
        self.has_ended = True

    join = kill


class NodeInProcess(NodeRig):
    """
    Makes the node in this process, talks to it, and remembers what it said.

    Attributes
    ----------
    dynamics_node : DynamicsNode
        From ``start`` to ``end``.
    services, watchdog : ServiceProcess, WatchdogProcess
        The node's.
    """

    def __init__(self, log_path):
        super().__init__(log_path)
        self.dynamics_node = None
        self._lines = []
        self._patch = pytest.MonkeyPatch()
        for module in (service_process, watchdog):
            self._patch.setattr(module, 'ChildProcess', NoProcess)
        self._keep_what_is_logged()

    def start(self, *ros_arguments, **parameters):
        """Make the node with the parameter file and these changes on top."""
        arguments = self.arguments(*ros_arguments, **parameters)
        rclpy.init(args=arguments, domain_id=self.domain)
        shared = SharedMemory()
        self.watchdog = WatchdogProcess(shared, arguments)
        self.services = service_process.ServiceProcess(shared, arguments)
        stop_signal = SimpleNamespace(has_come=False, may_interrupt=contextlib.nullcontext)
        try:
            self.dynamics_node = DynamicsNode(
                shared, self.services, self.watchdog, stop_signal, arguments
            )
        except Exception:
            self.services.close()
            rclpy.shutdown()
            raise
        self._own_executor = fastest_executor()
        self._own_executor.add_node(self.dynamics_node)
        self._shared, self._threads = shared, []
        self._run(answer)
        return self

    def watch(self, late=0.0):
        """Run the watchdog, too, which is always late [s]."""
        self._run(watch, late)

    def _run(self, what, *options):
        self._threads.append(threading.Thread(target=what, args=(self._shared, *options)))
        self._threads[-1].start()

    def end(self):
        """Close the node, and take in what it still sends."""
        self._end(self.take_in)

    def _end(self, then=lambda: None):
        node, self.dynamics_node = self.dynamics_node, None
        if node is not None:
            node.destroy_node()
            then()
            self.services.close()
            for thread in self._threads:
                thread.join()
            self._own_executor.shutdown()
            rclpy.shutdown()

    def close(self):
        """End the node and leave the graph."""
        self._end()
        self._patch.undo()
        super().close()

    def spin(self, duration):
        """Run the node's callbacks and take in messages for a while [s]."""
        deadline = time.monotonic() + duration
        while time.monotonic() < deadline:
            if self.dynamics_node is not None:
                self._own_executor.spin_once(timeout_sec=TURN)
            self.executor.spin_once(timeout_sec=TURN)

    @property
    def is_watched(self):
        """Whether the watchdog knows that the node commands, and its present timeout."""
        settings = self._shared.settings.value
        if settings is None or not self._shared.heartbeat.is_active:
            return False
        present = self.dynamics_node._cycle.stack.pipeline.settings.state_timeout
        return settings.arm.state_timeout == present

    def hang_until(self, condition):
        """Take in messages, while the node does nothing, until a condition holds."""
        deadline = time.monotonic() + self.patience
        while not condition():
            assert time.monotonic() < deadline, 'waited in vain'
            self.executor.spin_once(timeout_sec=TURN)

    @property
    def log(self):
        """What has been logged."""
        return '\n'.join(self._lines)

    def _keep_what_is_logged(self):
        log = rclpy_implementation.rclpy_logging_rcutils_log

        def kept(severity, name, message, *place):
            self._lines.append(f'[{LoggingSeverity(severity).name}] [{name}]: {message}')
            log(severity, name, message, *place)

        self._patch.setattr(rclpy_implementation, 'rclpy_logging_rcutils_log', kept)


def answer(shared):
    """Answer services until the memory is closed, as their process does."""
    node = service_process.ServiceNode(shared)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while not shared.is_closing:
        executor.spin_once(timeout_sec=service_process.WAKE_PERIOD)
        shared.respond()
    executor.shutdown()
    node.destroy_node()


def watch(shared, late):
    """Take over when needed until the memory is closed, as the watchdog's process does."""
    parent = SimpleNamespace(is_alive=True, wait=lambda timeout: time.sleep(timeout + late))
    node = WatchdogNode(shared, parent)
    node.watch()
    node.destroy_node()
