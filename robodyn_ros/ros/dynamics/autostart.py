# SPDX-License-Identifier: Apache-2.0
"""A lifecycle node that configures and activates itself, once."""

from __future__ import annotations

import random

from rclpy.clock import Clock, ClockType
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.timer import Timer

from robodyn_ros.ros.rclpy_workarounds import lifecycle_state

RETRY_PERIOD = 0.5  # between attempts to activate [s]

SUCCESS = TransitionCallbackReturn.SUCCESS


class Autostart:
    """
    Configures and activates a node, where nobody else has configured it before.

    An activation that is refused is tried again, until it succeeds or somebody else makes a
    transition. Two nodes that hinder each other do not try at the same time.

    Parameters
    ----------
    node : LifecycleNode
        To be started.
    is_wanted : bool
        Whether it starts itself at all.
    """

    def __init__(self, node: LifecycleNode, is_wanted: bool) -> None:
        self._node = node
        self._is_wanted = self._is_due = is_wanted
        self._timer: Timer | None = None

    @property
    def is_left_to_others(self) -> bool:
        """Whether the node is never to start itself."""
        return not self._is_wanted

    @property
    def is_due(self) -> bool:
        """Whether it is still to be configured."""
        return self._is_due

    def begin_soon(self) -> None:
        """Configure and activate with the executor's next round."""
        if self._is_due:
            self._set_timer(0.0)

    def begin(self) -> None:
        """Configure and activate now, if that is still to be done."""
        self._stop_timer()
        if self._is_due and self._node.trigger_configure() == SUCCESS:
            self._activate()

    def forget(self) -> None:
        """Leave it to others from now on."""
        self._is_due = False
        self._stop_timer()

    def activate_later(self) -> None:
        """Activate once that is possible, if the node starts itself at all."""
        if self._is_wanted and self._state == 'inactive':
            self._set_timer(RETRY_PERIOD * (1.0 + random.random()))

    def _activate(self) -> None:
        if self._node.trigger_activate() != SUCCESS:
            self.activate_later()

    def _on_timer(self) -> None:
        if self._timer is None:  # it came due while it was being stopped
            return
        self._stop_timer()
        if self._is_due:
            self.begin()
        elif self._state == 'inactive':
            self._activate()

    @property
    def _state(self) -> str:
        return lifecycle_state(self._node)

    def _set_timer(self, period: float) -> None:
        self._stop_timer()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = self._node.create_timer(period, self._on_timer, clock=steady)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None
