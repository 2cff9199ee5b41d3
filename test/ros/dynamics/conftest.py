# SPDX-License-Identifier: Apache-2.0
"""The robot that most tests of the dynamics node command."""

import pytest

from robodyn_ros import RobotModel


@pytest.fixture(scope='module')
def robot(panda_urdf):
    """Parameters that name the robot."""
    return {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}


@pytest.fixture(scope='module')
def model(robot):
    """Its model."""
    ends = {name: robot[name] for name in ('base_link', 'tip_link')}
    return RobotModel.from_urdf(robot['urdf_file'], **ends)
