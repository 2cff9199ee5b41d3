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

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import GetPayload, SetPayload

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'jpl_rrp.urdf'
NODE = """
import atexit, sys
from rclpy.node import Node
from robodyn_ros import RobotModel
from robodyn_ros.control.load import Load
from robodyn_ros.errors import Overload
from robodyn_ros.ros.rclpy_workarounds import fastest_executor
from robodyn_ros.ros.services.callbacks import Robot
from robodyn_ros.ros.services.service_process import SERVICES, ServiceProcess
from robodyn_ros.ros.shared_memory import Names, SharedMemory
from robodyn_ros.ros.spinning import run_until_signal

ARM = RobotModel.from_urdf({urdf!r}, base_link='base', tip_link='hand')

class Plain(Node):
    def __init__(self, shared, services):
        super().__init__('dynamics_node')
        self.shared, self.process, self.told = shared, services, None
        names = {{name: self.resolve_service_name(f'~/{{name}}') for name in SERVICES}}
        shared.names.set(Names('dynamics_node', '/', '/commands', '/joint_states', names))
        self.carry(Load(ARM.gravity, ()))
        self.create_timer(0.05, self.tell)
        self.create_timer(0.01, lambda: services.look_for_change(self.apply))

    def carry(self, load):
        self.load = load
        self.shared.robot.set(Robot.under(load, ARM))

    def apply(self, what):
        print(f'asked for {{what.mass}} kg', flush=True)
        {apply}

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
APPLY = 'self.carry(self.load.changed(what, ARM)[0]); return self.load'


class Rig(NodeRig):
    """A node with a service process."""

    def run(self, apply=APPLY, close='services.close()'):
        self.start(program=NODE.format(urdf=str(URDF), apply=apply, close=close))
        self.until_told('answering')
        self.carried()  # it has begun
        (child,) = self.children()
        self.service_process = int(child)
        return self

    def children(self):
        pid = self.process.pid
        return Path(f'/proc/{pid}/task/{pid}/children').read_text().split()

    def until_told(self, status):
        said = re.compile(r'the services are (\w+) now')
        self.until(lambda: said.findall(self.log)[-1:] == [status])

    def until_gone(self):
        self.until(lambda: not is_running(self.service_process))

    def carry(self, mass):
        return self.call(SetPayload, 'set_payload', SetPayload.Request(payload=Payload(mass=mass)))

    def carried(self):
        return self.call(GetPayload, 'get_payload', GetPayload.Request()).payload_mass


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


# --- changes -----------------------------------------------------------------------------------


@pytest.mark.longer
def test_change_that_is_refused_says_why(rig):
    rig.run(apply="raise Overload('payload mass', 1.5, 'at most 1 kg')")
    answer = rig.carry(1.5)
    assert not answer.success and answer.message == 'payload mass: 1.5; allowed: at most 1 kg'
    assert rig.carried() == 0.0
    assert rig.process.poll() is None


@pytest.mark.slow
def test_change_that_was_given_up_is_not_applied(rig):
    rig.run()
    os.kill(rig.process.pid, signal.SIGSTOP)  # busy for as long as the test says
    answer = rig.carry(1.5)
    assert not answer.success and 'no answer in 2.0 s' in answer.message
    os.kill(rig.process.pid, signal.SIGCONT)
    rig.spin(0.5)  # in which it looks for a change
    assert rig.carry(2.5).success
    assert 'asked for 1.5 kg' not in rig.log and rig.carried() == 2.5


# --- whether it responds -----------------------------------------------------------------------


@pytest.mark.slow
def test_process_that_hangs_is_distinguished_from_one_that_responds_and_one_that_has_ended(rig):
    rig.run()
    os.kill(rig.service_process, signal.SIGSTOP)
    rig.until_told('hung')
    os.kill(rig.service_process, signal.SIGCONT)
    rig.until_told('answering')
    assert rig.carry(1.5).success
    os.kill(rig.service_process, signal.SIGKILL)
    rig.until_told('ended')
    assert rig.end() == 0


# --- how it ends -------------------------------------------------------------------------------


@pytest.mark.longer
def test_process_ends_with_the_node_alone_and_runs_none_of_its_exit_handlers(rig):
    rig.run()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # to its group
        os.kill(rig.service_process, number)
    answer = rig.carry(1.5)
    assert answer.success and answer.message == '1.5 kg on hand'
    assert rig.carried() == 1.5
    nodes = os.getpriority(os.PRIO_PROCESS, rig.process.pid)
    assert os.getpriority(os.PRIO_PROCESS, rig.service_process) == min(nodes + 10, 19)
    assert rig.end() == 0
    assert not is_running(rig.service_process)
    assert rig.log.count('the exit of a process') == 1


@pytest.mark.slow
@pytest.mark.parametrize('victim', ['node', 'services'])
def test_process_ends_with_a_node_that_is_killed_and_by_force_where_it_hangs(rig, victim):
    rig.run()
    if victim == 'node':
        rig.process.kill()
        rig.process.wait()
    else:
        os.kill(rig.service_process, signal.SIGSTOP)
        assert rig.end() == 0
    rig.until_gone()


@pytest.mark.slow
def test_process_ends_with_a_node_that_forgets_to_close_it(rig):
    rig.run(close='')
    began = time.monotonic()
    assert rig.end() == 0
    rig.until_gone()
    assert time.monotonic() - began < 20.0
