# SPDX-License-Identifier: Apache-2.0
"""No name reaches the log, diagnostics or an answer with anything in it that cannot be printed."""

import re
import time
from types import SimpleNamespace

import pytest
from robots import two_link_urdf

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')

from rclpy.impl.rcutils_logger import CallerId  # noqa: E402

from robodyn_ros.ros.conversions import diagnostic_status  # noqa: E402
from robodyn_ros.ros.plain_text import (  # noqa: E402
    PlainLogger,
    PlainLoggerMixin,
    plain,
)
from robodyn_ros.ros.rclpy_workarounds import log_exceptions  # noqa: E402

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


def test_traceback_of_a_transition_is_lines_that_belong_together():
    logged = []
    logger = SimpleNamespace(fatal=logged.append)

    def fail(node, state):
        raise ValueError(FORGED)

    with pytest.raises(ValueError):
        log_exceptions(fail)(SimpleNamespace(get_logger=lambda: logger), None)
    (text,) = logged
    assert plain(text) == text and FORGED not in text and 'ValueError' in text


def test_diagnostics_are_plain():
    status = diagnostic_status('n', 'h', b'\0', HOSTILE, {'joints': HOSTILE})
    assert status.message.isprintable() and status.values[0].value.isprintable()


def test_lines_of_a_plain_logger_are_told_apart_by_who_logs():
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


@pytest.mark.slow
@pytest.mark.ros
def test_hostile_names_in_messages_reach_nobodys_terminal(tmp_path, panda_urdf):
    from node_rig import ARM, NodeRig
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters
    from std_msgs.msg import String

    from robodyn_interfaces.msg import Payload
    from robodyn_interfaces.srv import SetGravity, SetPayload

    position = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
    rig = NodeRig(tmp_path / 'node.log')
    (tmp_path / 'node.log').touch()
    try:
        rig.start(
            urdf_file=panda_urdf,
            base_link='panda_link0',
            tip_link='panda_link8',
            mode='computed_torque',
        )
        strangers = [HOSTILE] + ARM[1:4]
        rig.until(
            lambda: 'pwned' in rig.report.get('message', ''),
            lambda: rig.send([0.1], names=[HOSTILE]),
        )
        rig.until(lambda: 'pwned' in rig.log, lambda: rig.send([0.1], names=[HOSTILE]))
        rig.send([0.1] * 3, names=strangers)
        rig.bring_up(position)

        def hold():
            rig.send(position)

        rig.follow([[0.1]], [1.0], names=[HOSTILE])
        rig.until(lambda: 'trajectory rejected' in rig.log, hold)
        rig.until(lambda: 'pwned' in rig.report.get('last_rejection', 'pwned'), hold)
        answers = [
            rig.call(
                SetPayload,
                'set_payload',
                SetPayload.Request(payload=Payload(mass=0.1, link=HOSTILE)),
                hold,
            ).message
        ]
        gravity = SetGravity.Request()
        gravity.gravity.header.frame_id = HOSTILE
        gravity.gravity.vector.z = -9.81
        answers.append(rig.call(SetGravity, 'set_gravity', gravity, hold).message)
        text = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=HOSTILE)
        for name in ('mode', HOSTILE):
            request = SetParameters.Request(parameters=[Parameter(name=name, value=text)])
            answers.append(rig.call(SetParameters, 'set_parameters', request, hold))
        rig.description.publish(String(data=f'<robot name="{HOSTILE}">'))
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            rig.send(position)
            rig.spin(0.01)
        assert rig.end() == 0
        for answer in answers[:3]:
            words = answer if isinstance(answer, str) else answer.results[0].reason
            assert 'pwned' in words and words.isprintable(), repr(words)
        for report in rig.reports:
            for value in report.values():
                assert not isinstance(value, str) or value.isprintable(), repr(value)
        assert 'pwned' in lines_of(rig.log)
    finally:
        rig.close()


@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.parametrize('broken', [False, True], ids=['sound', 'to be refused'])
def test_hostile_names_in_a_description_reach_nobodys_terminal(tmp_path, broken):
    from node_rig import NodeRig
    from std_msgs.msg import String

    rig = NodeRig(tmp_path / 'node.log')
    (tmp_path / 'node.log').touch()
    urdf = two_link_urdf().replace('"continuous"/>', '"continuous">')
    for name in ('joint1', 'joint2', 'link1', 'link2', 'base', 'two_link'):
        urdf = urdf.replace(f'"{name}"', f'"{name}{HOSTILE_XML}"')
    if broken:
        urdf = urdf.replace('mass value="', 'mass value="x', 1)
    try:
        rig.start(autostart='true', effort_limits='[100.0]', torque_rate_limit='[1000.0]')
        rig.until(lambda: 'forged' in rig.log, lambda: rig.description.publish(String(data=urdf)))
        rig.until(lambda: len(rig.reports) > 2)
        names = [f'joint{k}' + HOSTILE.partition(']0')[0] for k in (1, 2)]
        rig.send([0.1, 0.2], names=names)
        rig.spin(0.5)
        assert rig.end() == 0
        for report in rig.reports:
            for value in report.values():
                assert not isinstance(value, str) or value.isprintable(), repr(value)
        lines_of(rig.log)
    finally:
        rig.close()


def test_every_node_that_logs_speaks_plainly():
    from robodyn_ros.ros.dynamics.dynamics_node import DynamicsNode
    from robodyn_ros.ros.feedforward.feedforward_node import FeedforwardNode
    from robodyn_ros.ros.motion_node import MotionNode
    from robodyn_ros.ros.simulator_node import SimulatorNode

    for kind in (DynamicsNode, FeedforwardNode, MotionNode, SimulatorNode):
        assert kind.get_logger is PlainLoggerMixin.get_logger
