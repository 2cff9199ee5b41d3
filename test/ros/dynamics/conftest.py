# SPDX-License-Identifier: Apache-2.0
"""The robot that most tests of the dynamics node command, and nodes to do it with."""

import pytest

from robodyn_ros import RobotModel, gravity_torque

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]


@pytest.fixture
def robot(panda_urdf):
    """Parameters that name the robot, for a test to change."""
    return {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}


@pytest.fixture(scope='module')
def model(panda_urdf):
    """Its model."""
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')


@pytest.fixture(scope='module')
def gravity(model):
    """Torque that holds it where most tests have it."""
    return gravity_torque(model, POSITION)


@pytest.fixture
def rig(tmp_path):
    """A node in this process."""
    from node_in_process import NodeInProcess

    result = NodeInProcess(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.fixture
def own(tmp_path, panda_urdf):
    """A node for one test of a fault, which may end it; what it commands is checked."""
    from fault_rig import rig_in

    result = rig_in(tmp_path / 'node', panda_urdf)
    try:
        yield result
        result.check_stream()
    finally:
        result.close()
