# SPDX-License-Identifier: Apache-2.0
"""From joint states and trajectories to checked, limited torques; without ROS."""
