# SPDX-License-Identifier: Apache-2.0
"""What several tests share: two public robots."""

from importlib.metadata import PackageNotFoundError

import pytest
from robots import public_urdf


def path_of(name: str) -> str:
    """Return the path of a public URDF, or skip."""
    try:
        return str(public_urdf(name))
    except PackageNotFoundError as error:
        pytest.skip(f'{error}: no {name}')


@pytest.fixture(scope='session')
def panda_urdf() -> str:
    """Path of the Panda: base panda_link0, tip panda_link8, seven revolute joints, fingers."""
    return path_of('panda.urdf')


@pytest.fixture(scope='session')
def ur5_urdf() -> str:
    """Path of the UR5: six revolute joints."""
    return path_of('ur5_robot.urdf')
