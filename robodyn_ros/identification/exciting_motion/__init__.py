# SPDX-License-Identifier: Apache-2.0
"""
Motions to identify an arm by.

A line imports only lines above it: motion_limits, obstacles; fourier, verification; information;
search; excitation.
"""
