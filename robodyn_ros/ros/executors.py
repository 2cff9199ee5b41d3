# SPDX-License-Identifier: Apache-2.0
"""What runs the nodes' callbacks."""

from __future__ import annotations

from rclpy.executors import Executor, SingleThreadedExecutor


def fastest_executor() -> Executor:
    """
    Return an executor for one thread, to be driven by ``spin_once`` with a timeout.

    Notes
    -----
    The single-threaded executor builds a wait set of everything a node owns before each callback,
    which takes longer than computing a torque. The events executor is told what is ready. It is
    experimental: where rclpy does not have it yet (Jazzy before 7.1.4) the usual one serves. Its
    ``spin()`` never ran a callback in rclpy 7.1.6; ``spin_once(timeout)`` has no such fault.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor()
    return EventsExecutor()
