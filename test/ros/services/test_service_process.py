# SPDX-License-Identifier: Apache-2.0
"""The service process beside a node that does nothing else, over real DDS, whatever goes wrong."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import NodeRig

from robodyn_interfaces.srv import EstimatePayload, GetMinimalParameters

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'jpl_rrp.urdf'
NODE = """
import atexit, sys, time
import numpy as np
from rclpy.node import Node
from robodyn_interfaces.srv import SetPayload
from robodyn_ros import Payload, RobotModel, inverse_dynamics
from robodyn_ros.control.joint_state_buffer import MeasuredState
from robodyn_ros.control.load import Load
from robodyn_ros.ros.services.callbacks import Robot
from robodyn_ros.ros.services.service_process import SERVICES, ServiceProcess
from robodyn_ros.ros.shared_memory import Names, SharedMemory
from robodyn_ros.ros.rclpy_workarounds import fastest_executor
from robodyn_ros.ros.spinning import run_until_signal

ARM = RobotModel.from_urdf({urdf!r}, base_link='base', tip_link='hand')

def move(cycles):
    loaded = ARM.with_payload(Payload(1.8, (0.0, 0.0, 0.1), 0.01 * np.eye(3)))
    rates = 1.0 + 0.7 * np.arange(ARM.n)
    now = time.monotonic()
    for t in np.arange(0.0, 8.0, 0.01):
        q, qd, qdd = (f(t) for f in (
            lambda t: 0.4 * np.sin(rates * t),
            lambda t: 0.4 * rates * np.cos(rates * t),
            lambda t: -0.4 * rates**2 * np.sin(rates * t),
        ))
        effort = inverse_dynamics(loaded, q, qd, qdd)
        cycles.received(MeasuredState(q, qd, 1.0 + t, True, effort), now + t - 8.0)
        cycles.write()

class Plain(Node):
    def __init__(self, shared, services):
        super().__init__('dynamics_node')
        self.process, self.told = services, None
        names = {{name: self.resolve_service_name(f'~/{{name}}') for name in SERVICES}}
        shared.names.set(Names('dynamics_node', '/', '/commands', '/joint_states', names))
        shared.cycles.begin(ARM.n)
        move(shared.cycles)
        load = Load(ARM.gravity, ())
        shared.robot.set(Robot.under(load, ARM, longest_age=1e3, configured=1.0))
        if {is_asked}:
            self.create_service(SetPayload, '~/set_payload', self.on_set_payload)
        self.create_timer(0.05, self.tell)

    def on_set_payload(self, request, response):
        print(f'asked for {{request.payload.mass:.2f}} kg', flush=True)
        {answer}
        return response

    def tell(self):
        if self.process.status != self.told:
            self.told = self.process.status
            print(f'the services are {{self.told}} now', flush=True)

shared = SharedMemory()
services = ServiceProcess(shared)
atexit.register(print, 'the exit of a process', flush=True)
code = run_until_signal(
    'dynamics_node', lambda: Plain(shared, services), executor=fastest_executor
)
{close}
sys.exit(code)
"""
ANSWER = "response.success, response.message = True, '1.8 kg on hand'"


class Rig(NodeRig):
    """A node with a service process."""

    def run(self, answer=ANSWER, close='services.close()', is_asked=True):
        program = NODE.format(urdf=str(URDF), answer=answer, close=close, is_asked=is_asked)
        self.start(program=program)
        self.until_told('answering')
        self.until(lambda: self.asks(GetMinimalParameters, 'get_minimal_parameters').success)
        (child,) = self.children()
        self.service_process = int(child)
        return self

    def asks(self, kind, name, **fields):
        return self.call(kind, name, kind.Request(**fields))

    def children(self):
        pid = self.process.pid
        return Path(f'/proc/{pid}/task/{pid}/children').read_text().split()

    def until_told(self, status):
        said = re.compile(r'the services are (\w+) now')
        self.until(lambda: said.findall(self.log)[-1:] == [status])

    def until_gone(self):
        self.until(lambda: not is_running(self.service_process))

    def estimate(self):
        return self.asks(EstimatePayload, 'estimate_payload', duration=8.0, apply=True)


def is_running(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().split()[2] != 'Z'
    except OSError:
        return False


@pytest.fixture
def rig(tmp_path):
    made = Rig(tmp_path / 'node.log')
    yield made
    made.close()


# --- an estimated payload is set by the node's own service --------------------------------------


def test_estimated_payload_is_set(rig):
    answer = rig.run().estimate()
    assert answer.success and answer.applied, answer.message
    assert answer.message.endswith('; applied: 1.8 kg on hand')
    assert answer.payload.mass == pytest.approx(1.8, rel=0.01)
    assert 'asked for 1.80 kg' in rig.log


def test_payload_that_the_node_refuses_is_refused_in_its_words(rig):
    why = 'payload mass: 1.8; allowed: at most 1 kg'
    answer = rig.run(answer=f'response.message = {why!r}').estimate()
    assert not answer.success and not answer.applied and answer.message == why
    assert answer.payload.mass == pytest.approx(1.8, rel=0.01)


def test_node_that_does_not_answer_is_given_up_and_the_others_are_answered_meanwhile(rig):
    rig.run(answer='time.sleep(4.0)')
    client = rig._client(EstimatePayload, 'estimate_payload')
    rig.until(client.service_is_ready)
    future = client.call_async(EstimatePayload.Request(duration=8.0, apply=True))
    rig.until(lambda: 'asked for' in rig.log)
    assert rig.asks(GetMinimalParameters, 'get_minimal_parameters').success
    assert not future.done()
    rig.until(future.done)
    answer = future.result()
    assert not answer.success and not answer.applied
    assert 'no answer in 2.0 s' in answer.message


def test_node_that_does_not_offer_to_set_a_payload_is_no_end_of_the_services(rig):
    rig.run(is_asked=False)
    assert 'no answer in 2.0 s' in rig.estimate().message
    assert rig.asks(GetMinimalParameters, 'get_minimal_parameters').success


# --- whether it responds -----------------------------------------------------------------------


def test_process_that_hangs_is_told_from_one_that_responds_and_one_that_has_ended(rig):
    rig.run()
    os.kill(rig.service_process, signal.SIGSTOP)
    rig.until_told('hung')
    os.kill(rig.service_process, signal.SIGCONT)
    rig.until_told('answering')
    os.kill(rig.service_process, signal.SIGKILL)
    rig.until_told('ended')
    assert rig.end() == 0


# --- how it ends -------------------------------------------------------------------------------


def test_signals_to_its_group_are_for_the_node_alone(rig):
    rig.run()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(rig.service_process, number)
    assert rig.asks(GetMinimalParameters, 'get_minimal_parameters').success
    nodes = os.getpriority(os.PRIO_PROCESS, rig.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, rig.service_process) == min(nodes + 10, 19)


def test_process_ends_with_the_node_and_runs_none_of_its_exit_handlers(rig):
    rig.run()
    assert rig.end() == 0
    assert not is_running(rig.service_process)
    assert rig.log.count('the exit of a process') == 1


def test_process_ends_with_a_node_that_forgets_to_close_it(rig):
    rig.run(close='')
    began = time.monotonic()
    assert rig.end() == 0
    rig.until_gone()
    assert time.monotonic() - began < 20.0


def test_process_ends_with_a_node_that_is_killed(rig):
    rig.run()
    rig.process.kill()
    rig.process.wait()
    rig.until_gone()


def test_process_that_hangs_is_ended_by_force(rig):
    rig.run()
    os.kill(rig.service_process, signal.SIGSTOP)
    assert rig.end() == 0
    assert not is_running(rig.service_process)
