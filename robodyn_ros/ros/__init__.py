# SPDX-License-Identifier: Apache-2.0
"""The ROS 2 nodes; the only folder that may import rclpy or a message package."""

from robodyn_ros.errors import NoBackend

try:
    import robodyn_ros.control.core_binding  # noqa: F401
except NoBackend as error:  # no node can run: in words, not as a traceback
    raise SystemExit(str(error)) from error
