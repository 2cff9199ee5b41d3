# SPDX-License-Identifier: Apache-2.0
"""From joint states and trajectories to torques that are safe to send; no ROS in here."""
