# SPDX-License-Identifier: Apache-2.0
"""No name reaches the log, diagnostics or an answer with anything in it that cannot be printed."""

import re

import pytest
from robots import two_link_urdf

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import ARM, NodeRig  # noqa: E402
from rclpy.impl.rcutils_logger import CallerId  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from robodyn_interfaces.msg import Payload  # noqa: E402
from robodyn_interfaces.srv import SetGravity, SetPayload  # noqa: E402
from robodyn_ros.ros.plain_text import (  # noqa: E402
    PlainLogger,
    PlainLoggerMixin,
    plain,
)

ESCAPES = '\x1b]0;pwned\x07\x1b[2J\u009b31m'
FORGED = '\n[FATAL] [1.0] [dynamics_node]: forged'
HOSTILE = f'{ESCAPES}{FORGED}\r\t\u2028\u202e'
# XML takes no escape, but line breaks and the one-character introducer of a sequence.
HOSTILE_XML = '&#x9b;31m&#10;[FATAL] [1.0] [dynamics_node]: forged&#13;&#9;&#x2028;&#x202e;'
NODE = re.compile(r'\[(INFO|WARN|ERROR|FATAL)\] \[\d+\.\d+\] \[[\w.]+\]: ')


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('°, m s², q̇ and ñ', '°, m s², q̇ and ñ'),
        ('\x1b[31m\x07', r'\x1b[31m\x07'),
        ('a\nb\n c', r'a\nb\n c'),
        ('allowed:\n  this\n  that', 'allowed:\n  this\n  that'),
        ('\u009b2J\u2028\u202e\r\t', r'\x9b2J\u2028\u202e\r\t'),
        ('', ''),
    ],
)
def test_what_cannot_be_printed_is_spelled_out(text, said):
    assert plain(text) == said


def test_lines_of_a_plain_logger_are_distinguished_by_who_logs():
    """Repetitions are counted by the caller's line: a wrapper must not be it."""
    logger, seen = PlainLogger('told_apart'), []

    class Seen(dict):
        def __contains__(self, caller):
            seen.append(caller)
            return super().__contains__(caller)

    logger.contexts = Seen()
    logger.info('one')
    logger.info('two', once=True)
    assert len(set(seen)) == 2
    assert all(isinstance(caller, CallerId) for caller in seen)
    assert {caller.file_path for caller in seen} == {__file__}


# --- over DDS ----------------------------------------------------------------------------------


def lines_of(log):
    """Return a log's lines; each belongs to an entry, or is an indented part of one."""
    for line in log.split('\n'):
        assert line.isprintable(), repr(line)
        assert not line or NODE.match(line) or line.startswith('  '), repr(line)
        assert not line.startswith('[FATAL] [1.0]')
    return log


@pytest.fixture
def rig(tmp_path):
    result = NodeRig(tmp_path / 'node.log')
    (tmp_path / 'node.log').touch()
    yield result
    result.close()


def ended_plainly(rig):
    """End a node, and return its log; all that it said can be printed."""
    assert rig.end() == 0
    for report in rig.reports:
        for value in report.values():
            assert not isinstance(value, str) or value.isprintable(), repr(value)
    return lines_of(rig.log)


@pytest.mark.slow
@pytest.mark.ros
def test_hostile_names_in_messages_reach_nobodys_terminal(rig, panda_urdf):
    position = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
    rig.start(
        urdf_file=panda_urdf,
        base_link='panda_link0',
        tip_link='panda_link8',
        mode='computed_torque',
    )
    rig.until(
        lambda: 'pwned' in rig.report.get('message', '') and 'pwned' in rig.log,
        lambda: rig.send([0.1], names=[HOSTILE]),
    )
    rig.send([0.1] * 3, names=[HOSTILE] + ARM[1:4])
    rig.bring_up(position)

    def hold():
        rig.send(position)

    rig.follow([[0.1]], [1.0], names=[HOSTILE])
    rig.until(lambda: 'trajectory rejected' in rig.log, hold)
    rig.until(lambda: 'pwned' in rig.report.get('last_rejection', ''), hold)
    payload = SetPayload.Request(payload=Payload(mass=0.1, link=HOSTILE))
    gravity = SetGravity.Request()
    gravity.gravity.header.frame_id = HOSTILE
    gravity.gravity.vector.z = -9.81
    answers = [
        rig.call(SetPayload, 'set_payload', payload, hold).message,
        rig.call(SetGravity, 'set_gravity', gravity, hold).message,
        rig.set_parameter('mode', HOSTILE, hold).reason,
    ]
    rig.set_parameter(HOSTILE, HOSTILE, hold)
    rig.description.publish(String(data=f'<robot name="{HOSTILE}">'))
    reports = len(rig.reports)
    rig.until(lambda: len(rig.reports) > reports + 1, hold)
    for words in answers:
        assert 'pwned' in words and words.isprintable(), repr(words)
    assert 'pwned' in ended_plainly(rig)


@pytest.mark.slow
@pytest.mark.ros
def test_hostile_names_in_a_description_reach_nobodys_terminal(rig):
    urdf = two_link_urdf().replace('"continuous"/>', '"continuous">')
    for name in ('joint1', 'joint2', 'link1', 'link2', 'base', 'two_link'):
        urdf = urdf.replace(f'"{name}"', f'"{name}{HOSTILE_XML}"')
    to_be_refused = urdf.replace('mass value="', 'mass value="x', 1)
    rig.start(autostart='true', effort_limits='[100.0]', torque_rate_limit='[1000.0]')
    for text in (to_be_refused, urdf):
        before = rig.log.count('forged')
        rig.until(
            lambda before=before: rig.log.count('forged') > before,
            lambda text=text: rig.description.publish(String(data=text)),
        )
    rig.until(lambda: len(rig.reports) > 2)
    names = [f'joint{k}' + HOSTILE.partition(']0')[0] for k in (1, 2)]
    rig.send([0.1, 0.2], names=names)
    rig.spin(0.5)
    ended_plainly(rig)


def test_every_node_that_logs_speaks_plainly():
    from robodyn_ros.ros.dynamics.dynamics_node import DynamicsNode
    from robodyn_ros.ros.feedforward.feedforward_node import FeedforwardNode
    from robodyn_ros.ros.motion_node import MotionNode
    from robodyn_ros.ros.simulator_node import SimulatorNode

    for kind in (DynamicsNode, FeedforwardNode, MotionNode, SimulatorNode):
        assert kind.get_logger is PlainLoggerMixin.get_logger
