# SPDX-License-Identifier: Apache-2.0
"""Parameters of the dynamics node for a simulation that waits for each of its torques."""

from __future__ import annotations

from typing import Any

IN_LOCKSTEP: dict[str, Any] = {'torque_rate_limit': [0.0], 'state_timeout': 60.0}
"""
Parameters that are about real time, which means nothing in lockstep.

No state is stale while simulated time stands still; the timeout is for the watchdog, which would
take over from a node that a loaded machine lets wait.
"""
