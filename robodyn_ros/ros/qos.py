# SPDX-License-Identifier: Apache-2.0
"""The quality of service of the nodes' topics and services."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

RELIABLE = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
"""Commands, trajectories and whatever else must arrive; the default of ROS 2."""

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""``robot_description``, contacts: a subscriber that comes late is given the last message."""

SENSOR = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Joint states: a late one is worth less than the next; takes publishers of either reliability."""

RECORDING = QoSProfile(depth=20_000, reliability=ReliabilityPolicy.RELIABLE)
"""A slow subscriber that must not lose a message."""

RECORDED_STATES = QoSProfile(depth=20_000, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Joint states that are recorded: as many as possible, of publishers of either reliability."""

# The usual depth of ten would drop requests of fifty simultaneous clients, which would wait
# forever.
SERVICES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
"""Requests of many clients at once."""
