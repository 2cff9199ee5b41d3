# SPDX-License-Identifier: Apache-2.0
"""The node's process with parameters that are wrong, misspelt, or written as users write them."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import NodeRig

pytestmark = pytest.mark.ros


@pytest.fixture
def rig(tmp_path):
    result = NodeRig(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.mark.parametrize(
    'name, value, named',
    [
        ('kp', '[-1.0]', 'parameter kp: -1.0; allowed: each at least 0'),
        ('mode', 'impedance', 'parameter mode'),
        ('effort_limit_scale', '2.0', 'effort_limit_scale'),
        ('effort_limits_scale', '0.1', 'allowed: effort_limit_scale'),
        ('term__gravity', 'false', 'allowed: terms.gravity'),
    ],
)
def test_node_ends_and_names_what_is_wrong(rig, name, value, named):
    rig.start(**{name: value})
    rig.until(lambda: rig.process.poll() is not None)
    assert rig.process.returncode == 1
    assert '[FATAL]' in rig.log and named in rig.log and 'Traceback' not in rig.log


def test_numbers_are_taken_as_they_are_meant_and_others_are_named(rig):
    rig.start(kp=50, ramp_time=1, gain_p=3)
    assert rig.set_parameter('kd', 7).successful
    assert rig.set_parameter('position_guard', 0).successful
    result = rig.set_parameter('kpp', 1.0)
    assert not result.successful and 'kpp; meant is perhaps kp' in result.reason
    assert 'has no parameter gain_p: ignored' in rig.log
    assert rig.end() == 0
