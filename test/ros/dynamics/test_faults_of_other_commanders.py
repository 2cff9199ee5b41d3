# SPDX-License-Identifier: Apache-2.0
"""Somebody else publishes on the node's command topic."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from fault_rig import POSITION, fault, rig_in
from std_msgs.msg import Float64MultiArray

pytestmark = [pytest.mark.slow, pytest.mark.ros]

COMMANDS = '/dynamics_node/commands'
ERROR, WARN = 2, 1


@pytest.fixture
def rig(tmp_path, panda_urdf):
    result = rig_in(tmp_path, panda_urdf)
    try:
        yield result
    finally:
        result.close()


def rival(rig):
    """Return a function that publishes one command from another participant."""
    publisher = rig.stranger().create_publisher(Float64MultiArray, COMMANDS, 10)
    return lambda: publisher.publish(Float64MultiArray(data=[0.0] * 7))


@fault(
    'another node commands before activation',
    'Activation is refused with its name.',
)
def test_node_is_not_activated_while_somebody_else_commands(rig):
    command = rival(rig)
    rig.launch(autostart='false')
    assert rig.transition('configure')
    rig.until(lambda: rig.report.get('other_commanders') == '/stranger', command)
    assert not rig.transition('activate', command)
    rig.until(lambda: f'cannot activate: /stranger commands on {COMMANDS}' in rig.log)
    assert rig.report['level'] == ERROR and '/stranger' in rig.report['message']
    rig.until(lambda: rig.report['lifecycle'] == 'inactive')
    assert not rig.states
    rig.spin(1.0)
    assert rig.transition('activate')
    rig.bring_up(POSITION)
    there = f'/stranger has a publisher on {COMMANDS}, too'
    rig.stream(POSITION, lambda: rig.report['message'] == there)
    assert rig.report['level'] == WARN


@fault(
    'another node begins to command',
    'ERROR with its name; WARN while it could. The node continues.',
)
def test_command_of_another_is_an_error_while_it_comes(rig):
    rig.launch()
    rig.bring_up(POSITION)
    rig.stream(POSITION, lambda: rig.report.get('level') == 0)
    command = rival(rig)

    def both():
        command()
        rig.send_home()

    rig.until(lambda: rig.report['level'] == ERROR, both)
    assert f'/stranger commands on {COMMANDS}, too' in rig.report['message']
    assert int(rig.report['commands_of_others']) > 0
    rig.until(lambda: '/stranger commands' in rig.log)
    rig.stream(POSITION, lambda: rig.report['level'] == WARN)
    node, context = rig.strangers[0]
    node.destroy_node()
    rig.stream(POSITION, lambda: rig.report['level'] == 0)


@fault(
    'another node commands while the node is disabled',
    'Enabling is refused with its name.',
)
def test_node_is_not_enabled_while_somebody_else_commands(rig):
    rig.launch()
    rig.bring_up(POSITION)
    command = rival(rig)

    def both():
        command()
        rig.send_home()

    there = f'/stranger has a publisher on {COMMANDS}, too'
    rig.stream(POSITION, lambda: rig.report.get('message') == there)
    assert rig.enable(False, rig.send_home).success
    rig.until(lambda: int(rig.report['commands_of_others']) > 0, both)
    refused = rig.enable(True, both)
    assert not refused.success
    assert f'cannot enable: /stranger commands on {COMMANDS}' in refused.message
    rig.stream(POSITION, lambda: rig.report['enabled'] == 'False')
    rig.spin(1.0)
    assert rig.enable(True, rig.send_home).success
    rig.bring_up(POSITION)


@fault(
    'two dynamics nodes on one topic',
    'The second one is refused activation, or deactivated without a stop command; it '
    'activates itself when the first one has ended.',
)
def test_second_node_takes_over_when_the_first_one_has_ended(rig):
    rig.launch()
    rig.bring_up(POSITION)
    first = rig.process
    rig.stream(POSITION, lambda: rig.report.get('level') == 0)
    rig.launch()
    rig.stream(POSITION, lambda: 'activate' in rig.log)
    rig.spin(0.5)
    first.terminate()
    rig.stream(POSITION, lambda: first.poll() is not None)
    rig.bring_up(POSITION)
    count = len(rig.states)
    rig.stream(POSITION, lambda: len(rig.states) > count)
    rig.stream(POSITION, lambda: rig.report['level'] == 0)


@fault(
    'node killed, a new one configured but not active',
    "The predecessor's watchdog compensates gravity until the new node commands.",
)
def test_watchdog_of_a_killed_node_carries_until_the_next_one_commands(rig):
    # A watchdog that misses the joint states, as on a busy machine, would end.
    rig.launch(stale_hold_time=60.0, state_timeout=2.0)
    rig.driver(rate=100.0)
    rig.until_commanded()
    rig.until(lambda: rig.node.count_publishers(COMMANDS) == 2)
    rig.kill()
    rig.launch(autostart='false')
    assert rig.transition('configure')
    rig.until_commanded()  # by the watchdog
    assert rig.transition('activate')
    count = len(rig.states)
    rig.until(lambda: len(rig.states) > count)
    rig.spin(0.5)
    rig.check_stream()
