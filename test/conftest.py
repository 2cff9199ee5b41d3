# SPDX-License-Identifier: Apache-2.0
"""What several tests share: robots, and a two-joint arm that needs no URDF."""

import importlib.util
from pathlib import Path

import pytest


def robot_path(relative: str) -> str:
    """Return the path of a file of PyPI's example-robot-data, or skip."""
    found = importlib.util.find_spec('cmeel')
    for root in (found.submodule_search_locations if found else ()) or ():
        path = (
            Path(root).parent
            / 'cmeel.prefix'
            / 'share'
            / 'example-robot-data'
            / 'robots'
            / relative
        )
        if path.is_file():
            return str(path)
    pytest.skip(f'example-robot-data is not installed: no {relative}')


@pytest.fixture(scope='session')
def panda_urdf() -> str:
    """Path of the Panda: base panda_link0, tip panda_link8, seven revolute joints, fingers."""
    return robot_path('panda_description/urdf/panda.urdf')


@pytest.fixture(scope='session')
def ur5_urdf() -> str:
    """Path of the UR5: six revolute joints."""
    return robot_path('ur_description/urdf/ur5_robot.urdf')
