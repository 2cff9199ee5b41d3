# SPDX-License-Identifier: Apache-2.0
"""Somebody on the bus whom nobody allowed anything: what SROS2's policies keep out."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import case, fault, rig_in

pytestmark = [pytest.mark.slow, pytest.mark.ros]

POLICY = Path(__file__).parents[3] / 'sros2' / 'robodyn.policy.xml'
# Commands and joint states, for a while, from whoever runs it.
STRANGER = """
import rclpy, time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
rclpy.init()
node = rclpy.create_node('stranger')
commands = node.create_publisher(Float64MultiArray, '/dynamics_node/commands', 10)
states = node.create_publisher(JointState, '/joint_states', 10)
heard = []
node.create_subscription(Float64MultiArray, '/dynamics_node/commands', heard.append, 10)
for _ in range(500):
    commands.publish(Float64MultiArray(data=7 * [80.0]))
    states.publish(JointState(name=[f'panda_joint{k}' for k in range(1, 8)], position=7 * [2.0]))
    rclpy.spin_once(node, timeout_sec=0.01)
print(len(heard))
"""


@pytest.fixture
def rig(tmp_path, panda_urdf):
    result = rig_in(tmp_path / 'node', panda_urdf)
    result.patience = 120.0  # nothing is awaited but the end
    yield result
    result.close()


def secured(keystore, enclave):
    """Return the variables by which a process has an enclave's keys, and speaks to no other."""
    return {
        'ROS_SECURITY_ENABLE': 'true',
        'ROS_SECURITY_STRATEGY': 'Enforce',
        'ROS_SECURITY_KEYSTORE': str(keystore),
        'ROS_SECURITY_ENCLAVE_OVERRIDE': f'/robodyn/{enclave}',
    }


@pytest.mark.parametrize(
    ('made', 'word'),
    [
        case(
            'security enforced, and no keystore',
            'The node ends with code 1 and the reason, before it publishes anything.',
            '',
            'does not exist',
        ),
        case(
            'security enforced, and an enclave without keys',
            'The same.',
            'enclaves/robodyn/dynamics_node',
            '',
        ),
    ],
)
def test_node_that_cannot_be_secured_commands_nothing(rig, tmp_path, made, word):
    (tmp_path / 'keystore' / made).mkdir(parents=True)
    rig.environment.update(secured(tmp_path / 'keystore', 'dynamics_node'))
    rig.launch()
    rig.until(lambda: rig.process.poll() is not None, rig.send_home)
    assert rig.process.returncode == 1
    assert 'dynamics_node' in rig.log and word in rig.log and 'Traceback' not in rig.log
    assert not rig.commands


@fault(
    'a stranger on a secured bus',
    'With the policies in sros2/ its messages reach no node, and it receives none.',
)
def test_stranger_is_neither_received_nor_answered(rig, tmp_path, panda_urdf):
    if not shutil.which('ros2'):
        pytest.skip('needs the command `ros2 security`, which makes the keys')
    keystore = tmp_path / 'keystore'
    made = subprocess.run(
        ['ros2', 'security', 'generate_artifacts', '-k', keystore, '-p', POLICY],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    environment = {**rig.environment, **secured(keystore, 'driver')}
    if subprocess.run([sys.executable, '-c', STRANGER], env=environment).returncode:
        pytest.skip('needs a middleware that is built with security')
    rig.environment.update(secured(keystore, 'dynamics_node'))
    rig.launch()
    rig.environment = environment
    rig.driver()
    stranger = subprocess.run(
        [sys.executable, '-c', STRANGER],
        env={**os.environ, 'ROS_DOMAIN_ID': str(rig.domain)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(stranger.stdout) == 0
    assert 'commanding' in rig.log and 'commands on' not in rig.log
