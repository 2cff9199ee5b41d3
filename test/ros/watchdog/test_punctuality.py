# SPDX-License-Identifier: Apache-2.0
"""The watchdog says how late its checks are, and how long it waits then."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_ros.ros.shared_memory import WatchdogCheck
from robodyn_ros.ros.watchdog import GracePeriod, LatenessWindow


def test_worst_lateness_of_the_last_window_and_of_the_one_before_is_reported():
    punctuality = LatenessWindow(window=1.0)
    assert punctuality.look(10.0, np.inf) == WatchdogCheck(
        10.0, 0.0
    )  # the first: nothing was planned
    assert punctuality.look(10.35, 10.05).lateness == pytest.approx(0.3)
    assert punctuality.look(10.4, 10.39).lateness == pytest.approx(0.3)
    assert punctuality.look(11.1, 11.0).lateness == pytest.approx(0.3)
    assert punctuality.look(12.15, 12.15).lateness == pytest.approx(0.1)
    assert punctuality.look(20.0, 20.0) == WatchdogCheck(20.0, 0.0)


def test_early_check_is_not_late():
    assert LatenessWindow().look(10.0, 10.5).lateness == 0.0


def test_a_node_gets_a_grace_period_once_for_each_beat_and_no_longer():
    grace = GracePeriod()
    assert [grace.is_active(5.0, now, 0.1) for now in (6.0, 6.05, 6.15, 9.0)] == [
        True,
        True,
        False,
        False,
    ]
    assert grace.is_active(9.0, 9.2, 0.1)
    assert not grace.is_active(9.0, 9.4, 0.1)
