# SPDX-License-Identifier: Apache-2.0
"""Goals by the hundred at the action in front of a controller."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import fault
from feedforward_rig import POSITION, trajectory

pytestmark = [pytest.mark.slow, pytest.mark.ros]


@pytest.fixture
def rig():
    pytest.importorskip('control_msgs', reason='needs control_msgs')
    from action_rig import ActionRig

    rig = ActionRig()
    yield rig
    rig.close()


@fault(
    'three hundred goals at once at the action of feedforward, some of them cancelled',
    'Each ends once, preempted or cancelled, and the next goal is followed.',
)
def test_storm_of_goals_ends_each_of_them_once(rig):
    from action_rig import ABORTED, CANCELED, SUCCEEDED

    asked, ended, awaited = [], [], []

    def take_in():
        """Await the end of what was accepted, and cancel every fifth."""
        rig.tell_state()
        for future in [future for future in asked if future.done()]:
            asked.remove(future)
            if not future.result().accepted:
                continue
            result = future.result().get_result_async()
            result.add_done_callback(lambda done: ended.append(done.result().status))
            awaited.append(result)
            if len(awaited) % 5 == 0:
                future.result().cancel_goal_async()

    for k in range(30):  # ten at once: the middleware keeps no more
        message = trajectory(POSITION + 1e-3 * k)
        asked += [rig.client.send_goal_async(rig.goal(message)) for _ in range(10)]
        take_in()
        rig.spin(0.05)
    rig.until(lambda: len(ended) > 30, take_in)
    for _ in range(100):
        take_in()
        rig.spin(0.02)
    last = rig.ask()
    assert last.accepted
    result = last.get_result_async()
    rig.controller.finish(SUCCEEDED)
    assert rig.answer(result).status == SUCCEEDED
    rig.until(lambda: len(ended) == len(awaited), rig.tell_state)
    assert set(ended) <= {ABORTED, CANCELED}
    rig.until(lambda: rig.node._front.relay.count == 0)
