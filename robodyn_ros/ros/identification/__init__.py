# SPDX-License-Identifier: Apache-2.0
"""A motion run on an arm over ROS 2, watched, and recorded."""
