# SPDX-License-Identifier: Apache-2.0
"""Every serial chain of every public URDF, root to leaf, against Pinocchio."""

import pytest
from convert_robots import compare_file
from robots import public_urdfs

import robodyn_ros as rd
from robodyn_ros import errors

NO_ROBOTS = {'ur3.urdf': errors.MalformedUrdf, 'test.urdf': errors.MalformedUrdf}


@pytest.mark.longer
@pytest.mark.repeats(check=4, test=8)
@pytest.mark.parametrize('path', public_urdfs(), ids=lambda path: path.name)
def test_chains_of(path):
    if path.name in NO_ROBOTS:
        with pytest.raises(NO_ROBOTS[path.name]):
            rd.RobotModel.from_urdf(path)
        return
    worst = compare_file(path)
    assert worst.distance < 1e-9
    assert worst.angle < 1e-9
    assert worst.torque < 1e-8
    assert set(worst.refused) <= {'NoChain'}


def test_all_public_robots_are_there():
    assert len(public_urdfs()) > 70
