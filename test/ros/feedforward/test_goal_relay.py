# SPDX-License-Identifier: Apache-2.0
"""Goals, feedback, cancels and results go through once: with rclpy's two sides imitated."""

import asyncio
import random
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from action_msgs.msg import GoalStatus

from robodyn_ros.errors import RejectedTrajectory
from robodyn_ros.ros.feedforward.action_front import GoalRelay, Outgoing

SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)


class Controller:
    """One goal at a time as the joint trajectory controller has it; a new one aborts the old."""

    def __init__(self, chance):
        self.chance = chance
        self.is_there = True
        self.received, self.cancels, self.feedback_sent = [], [], {}
        self.active = None

    def server_is_ready(self):
        return self.is_there

    def send_goal_async(self, goal, feedback_callback=None):
        self.received.append(goal.number)
        future = asyncio.get_running_loop().create_future()
        asyncio.ensure_future(self._decide(goal, feedback_callback, future))
        return future

    async def _decide(self, goal, feedback_callback, future):
        if goal.number == 'hold':
            future.set_result(SimpleNamespace(accepted=True))
            return
        accepted = self.chance.random() > 0.1
        handle = SimpleNamespace(accepted=accepted, number=goal.number)
        if accepted:
            handle.result = asyncio.get_running_loop().create_future()
            handle.get_result_async = lambda: handle.result
            handle.cancel_goal_async = lambda: self._cancel(handle)
            if self.active is not None:
                self.end(self.active, ABORTED)
            self.active = handle
            asyncio.ensure_future(self._work(handle, feedback_callback))
        await self._delay()
        if not future.done():
            future.set_result(handle)

    async def _work(self, handle, feedback_callback):
        self.feedback_sent[handle.number] = 0
        for _ in range(self.chance.randrange(9)):
            if handle.result.done():
                return
            self.feedback_sent[handle.number] += 1
            feedback = SimpleNamespace(of=handle.number)
            if self.chance.random() < 0.7:  # control_msgs 5, Jazzy's, has no index
                feedback.index = self.chance.randrange(-1, 5)
            feedback_callback(SimpleNamespace(feedback=feedback))
            await self._delay()
        self.end(handle, self.chance.choice([SUCCEEDED, SUCCEEDED, ABORTED]))

    def end(self, handle, status):
        if not handle.result.done():
            answer = SimpleNamespace(status=status, result=f'{status} of {handle.number}')
            handle.result.set_result(answer)
        if self.active is handle:
            self.active = None

    def _cancel(self, handle):
        self.cancels.append(handle.number)
        future = asyncio.get_running_loop().create_future()
        asyncio.ensure_future(self._cancelled(handle, future))
        return future

    async def _cancelled(self, handle, future):
        accepted = self.active is handle and self.chance.random() > 0.2
        if accepted:
            self.end(handle, CANCELED)
        await self._delay()
        if not future.done():
            future.set_result(SimpleNamespace(goals_canceling=[1] if accepted else []))

    async def _delay(self):
        for _ in range(self.chance.randrange(4)):
            await asyncio.sleep(0)


class Server:
    """What rclpy's ActionServer does with its callbacks, states and their transitions."""

    def __init__(self, relay):
        self.relay, self.ends, self.feedback, self.cancel_answers = relay, {}, {}, []

    async def goal(self, request):
        """Return the handle of a goal, or None where it is rejected."""
        if not await self.relay.on_goal(request):
            return None
        handle = Handle(self, request)
        self.relay.on_accepted(handle)
        return handle

    async def cancel(self, handle):
        if handle.state not in ('accepted', 'executing'):
            return
        accepted = await self.relay.on_cancel(handle)
        if accepted and handle.state in ('accepted', 'executing'):
            handle.state = 'canceling'
        self.cancel_answers.append((handle.request.number, accepted))


class Handle:
    def __init__(self, server, request):
        self.server, self.request, self.state = server, request, 'accepted'
        server.feedback[request.number] = []

    @property
    def is_cancel_requested(self):
        return self.state == 'canceling'

    def execute(self, callback):
        if self.state == 'accepted':
            self.state = 'executing'
        asyncio.get_running_loop().call_soon(self._end, callback)

    def _end(self, callback):
        result = callback(self)
        assert self.state in (SUCCEEDED, CANCELED, ABORTED)
        assert self.request.number not in self.server.ends
        self.server.ends[self.request.number] = (self.state, result)

    def publish_feedback(self, feedback):
        assert feedback.of == self.request.number
        self.server.feedback[self.request.number].append(getattr(feedback, 'index', None))

    def succeed(self):
        self._to(SUCCEEDED, 'executing', 'canceling')

    def abort(self):
        self._to(ABORTED, 'executing', 'canceling')

    def canceled(self):
        self._to(CANCELED, 'canceling')

    def _to(self, state, *allowed):
        assert self.state in allowed, f'{self.state} to {state}'
        self.state = state


def rig(chance, holds=None):
    warnings = []

    def fill(goal):
        if goal.is_heavy:
            raise RejectedTrajectory('torque', goal.number, 'less')
        return Outgoing(SimpleNamespace(number=goal.number), [0, 0, 10, 20])

    def hold():
        return SimpleNamespace(number='hold') if holds is None else holds()

    controller = Controller(chance)
    relay = GoalRelay(controller, fill, hold, lambda text: text, warnings.append)
    return controller, relay, Server(relay), warnings


def request(number, is_heavy=False):
    return SimpleNamespace(number=number, is_heavy=is_heavy)


@pytest.mark.parametrize('seed', range(5))
def test_a_thousand_random_goals_cancels_and_preemptions_without_one_lost_or_doubled(seed):
    chance = random.Random(seed)
    sent, handles, refused, rejected = [], {}, set(), set()

    async def one(server, number):
        goal = request(number, is_heavy=chance.random() < 0.1)
        if goal.is_heavy:
            refused.add(number)
        handle = await server.goal(goal)
        if handle is None:
            rejected.add(number)
        else:
            handles[number] = handle

    async def everything():
        controller, relay, server, _ = rig(chance)
        tasks = []
        for _ in range(1000):
            if handles and chance.random() < 0.4:
                number = chance.choice(list(handles)[-2:])
                tasks.append(asyncio.ensure_future(server.cancel(handles[number])))
            else:
                sent.append(len(sent))
                tasks.append(asyncio.ensure_future(one(server, sent[-1])))
            for _ in range(chance.randrange(12)):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        for _ in range(50):
            await asyncio.sleep(0)
        return controller, relay, server

    controller, relay, server = asyncio.run(everything())
    passed_on = [number for number in controller.received if number != 'hold']
    assert passed_on == [number for number in sent if number not in refused]
    assert set(server.ends) == set(sent) - rejected
    assert not rejected & refused
    assert relay.count == 0
    for number, (state, result) in server.ends.items():
        if number in refused:
            assert state == ABORTED and 'torque' in result
        else:
            status, _, who = result.partition(' of ')
            assert who == str(number)
            assert state == int(status)
            assert len(server.feedback[number]) == controller.feedback_sent[number]
            assert set(server.feedback[number]) <= {None, -1, 0, 10, 20, 4}
    ends = [state for state, _ in server.ends.values()]
    assert min(ends.count(state) for state in (SUCCEEDED, CANCELED, ABORTED)) > 10
    agreed = {number for number, accepted in server.cancel_answers if accepted}
    assert {number for number, (state, _) in server.ends.items() if state == CANCELED} <= agreed
    assert not refused & set(controller.cancels)


def test_goal_that_the_controller_cancels_by_itself_is_aborted_and_the_log_says_so():
    async def everything():
        controller, _, server, warnings = rig(random.Random(3))
        handle = None
        number = 0
        while handle is None or handle.state not in ('accepted', 'executing'):
            number += 1
            handle = await server.goal(request(number))
        controller.end(controller.active, CANCELED)
        await asyncio.sleep(0.01)
        return *server.ends[number], warnings

    state, result, warnings = asyncio.run(everything())
    assert state == ABORTED and result.startswith(f'{CANCELED} of')
    assert 'the controller cancelled it' in warnings[-1]


def test_arm_is_held_when_a_goal_ends_before_its_end_and_no_other_is_there():
    async def everything(status, second):
        controller, _, server, _ = rig(random.Random(1))
        controller._work = lambda handle, feedback: asyncio.sleep(0)
        controller.chance = SimpleNamespace(random=lambda: 1.0, randrange=lambda *_: 0)
        await server.goal(request(1))
        if second:
            await server.goal(request(2))
        else:
            controller.end(controller.active, status)
        await asyncio.sleep(0.01)
        return controller.received

    assert asyncio.run(everything(ABORTED, False)) == [1, 'hold']
    assert asyncio.run(everything(SUCCEEDED, False)) == [1]
    assert asyncio.run(everything(ABORTED, True)) == [1, 2]


def test_controller_that_goes_away_ends_what_it_was_asked():
    async def everything():
        controller, relay, server, warnings = rig(random.Random(1))
        controller._work = lambda handle, feedback: asyncio.sleep(0)
        controller.chance = SimpleNamespace(random=lambda: 1.0, randrange=lambda *_: 0)
        handle = await server.goal(request(1))
        # From here on it answers nothing.
        controller.send_goal_async = lambda *_, **__: asyncio.get_running_loop().create_future()
        silent = asyncio.get_running_loop().create_future()
        relay._relayed[0].theirs.cancel_goal_async = lambda: silent
        cancelling = asyncio.ensure_future(server.cancel(handle))
        asking = asyncio.ensure_future(server.goal(request(2)))
        await asyncio.sleep(0.01)
        controller.is_there = False
        relay.lose_controller()
        assert await asking is None
        await cancelling
        await asyncio.sleep(0.01)
        assert await server.goal(request(3)) is None
        return relay, server, warnings

    relay, server, warnings = asyncio.run(everything())
    assert server.ends == {1: (ABORTED, 'the controller went away')}
    assert server.cancel_answers == [(1, False)]
    assert relay.count == 0
    assert len(warnings) == 3
