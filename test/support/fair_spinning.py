# SPDX-License-Identifier: Apache-2.0
"""Waiting for messages so that each subscription has its turn."""

import time

STEP = 0.005  # [s]


def spin_until(executor, deadline, step=STEP):
    """
    Run an executor's callbacks until a steady time [s], or up to a step [s] later.

    The timeout is the same at each turn. rclpy's executors for one thread begin a new round when
    it is another, with what was created first: where that never runs dry, the rest starves.
    """
    while time.monotonic() < deadline:
        executor.spin_once(timeout_sec=step)
