# SPDX-License-Identifier: Apache-2.0
"""The robot that most tests of the dynamics node command."""

import pytest

from robodyn_ros import RobotModel


@pytest.fixture
def robot(panda_urdf):
    """Parameters that name the robot, for a test to change."""
    return {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}


@pytest.fixture(scope='module')
def model(panda_urdf):
    """Its model."""
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')
