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
from robodyn_ros import RobotModel
from robodyn_ros.control.load import Load
from robodyn_ros.ros.services import exchange, service_process

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'jpl_rrp.urdf'
NODE = """
import atexit, sys, time
from rclpy.node import Node
from robodyn_ros import RobotModel
from robodyn_ros.control.load import Load
from robodyn_ros.ros.spinning import fastest_executor
from robodyn_ros.errors import TooHeavy
from robodyn_ros.ros.services.exchange import NewRobot, Outcome
from robodyn_ros.ros.services.service_process import ServiceProcess
from robodyn_ros.ros.spinning import run_until_signal

ARM = RobotModel.from_urdf({urdf!r}, base_link='base', tip_link='hand')

def load_after(change):
    return Load(ARM.gravity, ()).changed(change.what, ARM)

def apply(change):
    print(f'asked for {{change.what.mass}} kg', flush=True)
    {apply}

class Plain(Node):
    def __init__(self, services):
        super().__init__('dynamics_node')
        self.process, self.told = services, None
        services.open(self, apply)
        services.take(ARM, Load(ARM.gravity, ()))
        self.create_timer(0.05, self.tell)
        {more}

    def tell(self):
        if self.process.status != self.told:
            self.told = self.process.status
            print(f'the services are {{self.told}} now', flush=True)

services = ServiceProcess()
atexit.register(print, 'the exit of a process', flush=True)
code = run_until_signal('dynamics_node', lambda: Plain(services), executor=fastest_executor)
{close}
sys.exit(code)
"""
APPLY = 'return Outcome(change.number, load_after(change))'


class Rig(NodeRig):
    """A node with a service process."""

    def run(self, apply=APPLY, more='', close='services.close()'):
        self.start(program=NODE.format(urdf=str(URDF), apply=apply, more=more, close=close))
        self.until_told('answering')
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


def test_change_is_applied_and_known_to_the_services_afterwards(rig):
    rig.run()
    answer = rig.carry(1.5)
    assert answer.success and answer.message == '1.5 kg on hand'
    assert rig.carried() == 1.5


def test_change_that_is_refused_says_why(rig):
    too_heavy = "TooHeavy('payload mass', 1.5, 'at most 1 kg')"
    rig.run(apply=f'return Outcome(change.number, Load(ARM.gravity, ()), {too_heavy})')
    answer = rig.carry(1.5)
    assert not answer.success and answer.message == 'payload mass: 1.5; allowed: at most 1 kg'
    assert rig.carried() == 0.0


def test_impossible_change_is_refused_before_the_node_is_asked(rig):
    rig.run()
    assert 'payload mass: -1.0' in rig.carry(-1.0).message
    assert 'asked for' not in rig.log


def test_change_that_was_given_up_is_not_applied(rig):
    # The node is busy for longer than a client is made to wait.
    busy = 'self.busy = self.create_timer(1.0, lambda: (self.busy.cancel(), time.sleep(5.0)))'
    rig.run(more=busy)
    rig.spin(1.0)
    answer = rig.carry(1.5)
    assert not answer.success and 'no answer in 2.0 s' in answer.message
    rig.spin(4.0)
    assert 'asked for' not in rig.log
    assert rig.carry(2.5).success
    assert 'asked for 1.5 kg' not in rig.log and rig.carried() == 2.5


def test_exception_is_logged_and_refused_and_ends_nothing(rig):
    rig.run(apply="raise ZeroDivisionError('of all things')")
    answer = rig.carry(1.5)
    assert not answer.success and 'it failed; see the log' in answer.message
    assert '[ERROR]' in rig.log and 'ZeroDivisionError: of all things' in rig.log
    assert rig.process.poll() is None
    assert rig.carried() == 0.0


# --- whether it responds -----------------------------------------------------------------------


def test_process_that_hangs_is_told_from_one_that_responds_and_one_that_has_ended(rig):
    rig.run()
    os.kill(rig.service_process, signal.SIGSTOP)
    rig.until_told('hung')
    os.kill(rig.service_process, signal.SIGCONT)
    rig.until_told('answering')
    assert rig.carry(1.5).success
    os.kill(rig.service_process, signal.SIGKILL)
    rig.until_told('ended')
    rig.until(lambda: 'the service process has ended' in rig.log)
    assert rig.end() == 0


class LoggedErrors:
    """Stands for a node without ROS: its names, and what it logs."""

    executor = None

    def __init__(self):
        self.errors = []

    def get_name(self):
        return 'dynamics_node'

    def get_namespace(self):
        return '/'

    def resolve_service_name(self, name):
        return name

    def get_logger(self):
        return self

    def error(self, text):
        self.errors.append(text)


@pytest.mark.parametrize('which, patience, errors', [(0, 1.0, 2), (1, 30.0, 1)])
def test_a_robot_is_taken_when_it_is_acknowledged_itself_and_not_one_before(
    monkeypatch, which, patience, errors
):
    def answer_late(connection, *_):
        """Acknowledge one of two robots, once both have come."""
        robots = []
        while (message := connection.recv()) is not None:
            if isinstance(message, exchange.NewRobot):
                robots.append(message)
                if len(robots) == 2:
                    connection.send(exchange.Acknowledgement(robots[which].number))

    monkeypatch.setattr(service_process.service_node, 'run', answer_late)
    arm = RobotModel.from_urdf(URDF, base_link='base', tip_link='hand')
    node, services = LoggedErrors(), service_process.ServiceProcess()
    try:
        services.open(node, apply=None)
        for timeout in (0.0, patience):
            monkeypatch.setattr(service_process, 'READY_TIMEOUT', timeout)
            services.take(arm, Load(arm.gravity))
        assert node.errors == errors * ['the services are not ready: nobody answers']
    finally:
        services.close()


def test_node_is_not_held_up_by_a_process_that_reads_nothing(rig):
    # Far more than fits between the two; the latest message is what counts when it reads again.
    more = (
        'self.flood = self.create_timer(1.0, lambda: (self.flood.cancel(), '
        "[services._outbox.put(NewRobot()) for _ in range(20_000)], print('flooded', flush=True)))"
    )
    rig.run(more=more)
    os.kill(rig.service_process, signal.SIGSTOP)
    rig.until(lambda: 'flooded' in rig.log)
    os.kill(rig.service_process, signal.SIGCONT)
    rig.until(
        lambda: (
            rig.call(GetPayload, 'get_payload', GetPayload.Request()).message
            == 'no robot: the node is not configured'
        )
    )


def test_robot_is_forgotten_once_the_services_have_forgotten_it(rig, tmp_path):
    asked = tmp_path / 'asked'
    more = f"""
        import os
        from robodyn_ros.ros.services import service_process
        service_process.END_TIMEOUT = 30.0

        def forget():
            if os.path.exists({str(asked)!r}):
                poll.cancel()
                print('is told to', flush=True)
                services.forget()
                print('has forgotten', flush=True)

        poll = self.create_timer(0.05, forget)
"""
    rig.run(more=more)
    os.kill(rig.service_process, signal.SIGSTOP)
    asked.touch()
    rig.until(lambda: 'is told to' in rig.log)
    rig.spin(0.5)
    assert 'has forgotten' not in rig.log
    os.kill(rig.service_process, signal.SIGCONT)
    rig.until(lambda: 'has forgotten' in rig.log)
    assert rig.end() == 0


# --- how it ends -------------------------------------------------------------------------------


def test_signals_to_its_group_are_for_the_node_alone(rig):
    rig.run()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(rig.service_process, number)
    assert rig.carry(1.5).success
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
    assert not is_running(rig.service_process)
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
