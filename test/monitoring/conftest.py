# SPDX-License-Identifier: Apache-2.0
"""A wrong URDF of an arm, and what is identified of it."""

import pytest
from simulated_recordings import TrueArm

from robodyn_ros.identification import DriveTerms, Identification, identify


@pytest.fixture(scope='session')
def arm() -> TrueArm:
    return TrueArm.drawn(3, 3)


@pytest.fixture(scope='session')
def found(arm) -> Identification:
    return identify(arm.urdf, arm.recording(3, 10.0, rate=100.0), friction=DriveTerms())
