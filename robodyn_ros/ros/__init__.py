# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 nodes; the only folder that may import rclpy or a message package."""
