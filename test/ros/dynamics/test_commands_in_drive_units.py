# SPDX-License-Identifier: Apache-2.0
"""Commands in the drives' unit, over DDS: they alone are scaled, behind limits in N m."""

import re

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import ARM, UNHURRIED

from robodyn_ros.errors import InvalidArgument

pytestmark = pytest.mark.ros

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
# In the order of the commands, which is not that of the chain.
JOINTS = ARM[::-1]
SCALE = np.array([-0.08, 2.5, -1.0, 30.0, 0.4, -7.0, 0.001])


@pytest.fixture
def robot(robot):
    return {**robot, 'joints': JOINTS, 'state_timeout': UNHURRIED}


def shows(messages, field, expected):
    """Return the condition that the last message has these numbers."""
    return lambda: messages and np.allclose(getattr(messages[-1], field), expected)


def test_commands_alone_are_scaled_and_limits_stay_in_newton_metres(rig, robot, gravity):
    rig.start(**robot, command_scale=SCALE.tolist(), ramp_time=0.0)
    limits = 0.2 * np.array([87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0])
    limited = np.clip(gravity, -limits, limits)
    assert (limited != gravity).any()
    for torque in (gravity, limited):
        rig.stream(POSITION, shows(rig.commands, 'data', SCALE * torque[::-1]))
        rig.stream(POSITION, shows(rig.torques, 'effort', torque))
        rig.stream(POSITION, shows(rig.states, 'total', torque))
        assert np.array(rig.states[-1].gravity) == pytest.approx(gravity)
        assert rig.set_parameter('effort_limit_scale', 0.2).successful
    rig.until(lambda: f'command_scale, base to tip: {SCALE[-1]:g}' in rig.log)
    rig.until(lambda: rig.report.get('drive_units', '').startswith('command_scale, base to'))
    refused = rig.set_parameter('command_scale', [1.0])
    assert not refused.successful and 'command_scale' in refused.reason
    assert 'before configure' in refused.reason


def test_impossible_scale_is_refused_by_name(rig, robot):
    for name, value, why in (
        ('command_scale', '[1.0, 0.0]', 'parameter command_scale: 0.0'),
        ('effort_scale', '.nan', 'parameter effort_scale: nan'),
        ('command_scale', '[-.inf]', 'parameter command_scale: -inf'),
    ):
        with pytest.raises(InvalidArgument, match=re.escape(f'{why}; allowed: ')):
            rig.start(**robot, **{name: value})
    for name, value, why in (
        ('effort_scale', '[1.0, 2.0]', 'parameter effort_scale: 2 values'),
        ('command_scale', '[1.0, 2.0, 3.0]', 'parameter command_scale: 3 values'),
    ):
        rig.start(**robot, **{name: value})
        rig.until(lambda why=why: f'{why}; allowed: ' in rig.log)
        rig.end()
    assert not rig.commands
