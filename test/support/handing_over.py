# SPDX-License-Identifier: Apache-2.0
"""What a watchdog does that hands over."""

import time

from node_rig import PATIENCE


def hand_over(handover, torque):
    """Answer the next node with a torque that was just sent."""
    end = time.monotonic() + PATIENCE
    while not handover.hand_over(time.monotonic(), torque):
        assert time.monotonic() < end, 'nobody asked'
        time.sleep(0.001)
