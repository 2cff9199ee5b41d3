# SPDX-License-Identifier: Apache-2.0
"""What somebody says that the arm carries is believed only where an arm can carry such a thing."""

import numpy as np
import pytest

from robodyn_ros import Payload, RobotModel
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.errors import ImplausiblePayload, InvalidNumber, UnknownOption

GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope='module')
def panda(panda_urdf):
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')


@pytest.mark.parametrize('mass', [1000.0, 1e300])
def test_mass_that_no_arm_of_this_size_carries_is_refused(panda, mass):
    with pytest.raises(ImplausiblePayload, match=r'payload mass.*at most .* \[kg\]'):
        Load(GRAVITY).changed(Payload(mass), panda)


@pytest.mark.parametrize('principal', [(1700.0, 1700.0, 1700.0), (1.0, 1000.0, 1000.0)])
def test_inertia_in_other_units_is_refused(panda, principal):
    payload = Payload(1.8, inertia=np.diag(principal))
    with pytest.raises(ImplausiblePayload, match='radius of gyration'):
        Load(GRAVITY).changed(payload, panda)


@pytest.mark.parametrize('center', [(0.0, 0.0, 100.0), (1e308, 1e308, 0.0)])
@pytest.mark.filterwarnings('error')
def test_centre_of_mass_in_other_units_is_refused(panda, center):
    with pytest.raises(ImplausiblePayload, match=r'centre of mass.*at most .* \[m\]'):
        Load(GRAVITY).changed(Payload(1.8, center), panda)


def test_what_a_hand_holds_is_taken_and_replaced_on_its_link(panda):
    box = Payload(1.8, (0.0, 0.0, 0.1), np.diag([0.0017, 0.0017, 0.003]))
    load = Load(GRAVITY).changed(box, panda)
    assert load.payload_mass == 1.8
    load = load.changed(Payload(0.5), panda)
    assert load.payload_mass == 0.5
    assert load.changed(Payload(0.0), panda) == Load(GRAVITY)


def test_gravity_of_other_units_or_another_frame_is_refused(panda):
    load = Load(GRAVITY)
    with pytest.raises(InvalidNumber, match='gravity strength'):
        load.changed(GravityChange(np.array([0.0, 0.0, -9810.0]), ''), panda)
    with pytest.raises(UnknownOption, match='panda_link0'):
        load.changed(GravityChange(GRAVITY, 'world'), panda)
    tilted = load.changed(GravityChange(np.array([3.0, 0.0, -9.0]), 'panda_link0'), panda)
    assert tilted.gravity == pytest.approx([3.0, 0.0, -9.0])
