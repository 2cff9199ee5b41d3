# SPDX-License-Identifier: Apache-2.0
"""A node runs until a signal ends it: not until a message does, but a bug of ours may."""

import signal

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import NodeRig
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rosgraph_msgs.msg import Clock

pytestmark = pytest.mark.ros

NODE = """
import signal, sys
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from robodyn_ros.ros import conversions
from robodyn_ros.ros.rclpy_workarounds import fastest_executor
from robodyn_ros.ros.spinning import run_until_signal

class Plain(Node):
    def __init__(self):
        super().__init__('dynamics_node')
        self.get_logger().info('ready')
        {more}

    def destroy_node(self):
        print('stop command', flush=True)
        super().destroy_node()

{before}
sys.exit(run_until_signal('dynamics_node', Plain, executor={executor}))
"""
EXECUTORS = ['SingleThreadedExecutor', 'fastest_executor']


@pytest.fixture
def rig(tmp_path):
    made = NodeRig(tmp_path / 'node.log')
    yield made
    made.close()


def start(rig, executor=EXECUTORS[0], more='', before='', **parameters):
    rig.start(program=NODE.format(executor=executor, more=more, before=before), **parameters)
    rig.until(lambda: '] [dynamics_node]: ready' in rig.log)


def answers(rig):
    """Return whether the node still runs its callbacks."""
    request = GetParameters.Request(names=['use_sim_time'])
    return len(rig.call(GetParameters, 'get_parameters', request).values) == 1


# --- signals -----------------------------------------------------------------------------------


@pytest.mark.repeats(check=1)
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_ends_the_node_with_code_0_after_its_stop_command(rig, number):
    start(rig)
    assert rig.end(number) == 0
    assert 'stop command' in rig.log and 'Traceback' not in rig.log


@pytest.mark.longer
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_signal_that_a_script_left_ignored_ends_the_node(rig, number):
    start(rig, before=f'signal.signal({number.value}, signal.SIG_IGN)')
    assert rig.end(number) == 0


@pytest.mark.longer
def test_node_under_nohup_outlives_its_terminal(rig):
    start(rig, before='signal.signal(signal.SIGHUP, signal.SIG_IGN)')
    rig.process.send_signal(signal.SIGHUP)
    rig.spin(0.3)
    assert answers(rig)
    assert rig.end() == 0


# --- what messages hold ------------------------------------------------------------------------


@pytest.mark.longer
@pytest.mark.parametrize('executor', EXECUTORS)
def test_values_that_rclpy_cannot_convert_are_logged_and_survived(rig, executor):
    start(rig, executor)
    client = rig.node.create_client(SetParameters, '/dynamics_node/set_parameters')
    rig.until(client.service_is_ready)
    value = ParameterValue(type=200)
    for _ in range(5):
        client.call_async(
            SetParameters.Request(parameters=[Parameter(name='use_sim_time', value=value)])
        )
    rig.until(lambda: 'a message was not taken in' in rig.log)
    assert answers(rig)
    assert '[ERROR]' in rig.log and '200' in rig.log and 'Traceback' not in rig.log
    assert rig.log.count('a message was not taken in') <= 2
    assert rig.end() == 0


@pytest.mark.longer
@pytest.mark.parametrize('executor', EXECUTORS)
def test_clock_before_zero_is_logged_and_survived(rig, executor):
    start(rig, executor, use_sim_time=True)
    clock = rig.node.create_publisher(Clock, '/clock', 10)
    message = Clock()
    message.clock.sec = -1
    rig.until(
        lambda: 'a message was not taken in' in rig.log, doing=lambda: clock.publish(message)
    )
    assert answers(rig)
    assert rig.end() == 0


@pytest.mark.longer
@pytest.mark.parametrize(
    'executor, bug',
    [
        *((executor, 'conversions.transform(None)') for executor in EXECUTORS),
        (EXECUTORS[1], "conversions.floats('x')"),
        (EXECUTORS[1], '1 / 0'),
    ],
)
def test_bug_in_a_callback_ends_the_node_after_its_stop_command(rig, executor, bug):
    start(rig, executor, more=f'self.create_timer(0.2, lambda: {bug})')
    rig.until(lambda: rig.process.poll() is not None)
    assert rig.process.returncode == 1
    assert 'Traceback' in rig.log and 'stop command' in rig.log
