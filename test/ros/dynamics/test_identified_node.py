# SPDX-License-Identifier: Apache-2.0
"""The node with an identified model, over DDS: it commands and answers what was identified."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from node_rig import UNHURRIED
from simulated_recordings import TrueArm

from robodyn_interfaces.srv import GetMinimalParameters
from robodyn_ros import base_parameters, gravity_torque
from robodyn_ros.identification import identify

pytestmark = pytest.mark.ros

POSITION = [0.2, -0.1, 0.3]


@pytest.fixture(scope='module')
def arm():
    return TrueArm.drawn(1, 3)


@pytest.fixture(scope='module')
def found(arm):
    return identify(arm.urdf, [arm.recording(1, 12.0, rate=100.0)])


@pytest.fixture
def robot(arm, found, tmp_path):
    (tmp_path / 'arm.urdf').write_text(arm.text)
    found.save(tmp_path / 'identified.yaml')
    return {
        'urdf_file': str(tmp_path / 'arm.urdf'),
        'identified_model': str(tmp_path / 'identified.yaml'),
        'base_link': 'base',
        'tip_link': 'tip',
        'effort_limits': '[10000.0]',
    }


@pytest.mark.longer
def test_gravity_is_the_identified_one_and_parameters_have_deviations(rig, robot, arm, found):
    rig.start(**robot, state_timeout=UNHURRIED, ramp_time=0.0)
    expected = gravity_torque(found.model, POSITION)
    names = arm.urdf.joint_names
    rig.until(
        lambda: rig.commands and np.allclose(rig.commands[-1].data, expected, atol=1e-6),
        lambda: rig.send(POSITION, names=names),
    )
    answer = rig.call(
        GetMinimalParameters, 'get_minimal_parameters', GetMinimalParameters.Request()
    )
    assert answer.success, answer.message
    base = base_parameters(found.model)
    assert [each.name for each in answer.parameters] == list(base.names)
    assert [each.value for each in answer.parameters] == pytest.approx(list(base.values))
    deviations = [each.deviation for each in answer.parameters]
    assert deviations == pytest.approx(list(found.base_parameter_deviation(base)))
    assert min(deviations) > 0.0


def test_another_robots_model_is_refused_by_name(rig, robot, tmp_path):
    (tmp_path / 'arm.urdf').write_text(TrueArm.drawn(9, 3).text)
    rig.start(**robot)
    rig.until(lambda: 'those identified' in rig.log or 'DH table' in rig.log)
    assert not rig.commands
