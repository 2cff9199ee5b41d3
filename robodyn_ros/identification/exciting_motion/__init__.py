# SPDX-License-Identifier: Apache-2.0
"""
Motions to identify an arm by.

A line imports only lines above it: fourier, motion_limits, obstacles, slow_motions;
derivative_bounds, verification; information, shapes; objective; search; excitation.
"""
