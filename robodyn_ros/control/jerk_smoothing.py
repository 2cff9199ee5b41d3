# SPDX-License-Identifier: Apache-2.0
"""Jerk limits, by a moving average of the time law."""
def smoothed(*a): raise NotImplementedError
