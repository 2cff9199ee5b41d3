# SPDX-License-Identifier: Apache-2.0
"""A request without a position is computed at the measured state, if that is of now."""

import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from robodyn_interfaces.srv import ComputeForwardDynamics, GetDynamicsTerms, GetMassMatrix
from robodyn_ros import RobotModel, mass_matrix
from robodyn_ros.control.load import Load
from robodyn_ros.ros.services import callbacks
from robodyn_ros.ros.shared_memory import Cycle

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[3] / 'urdf' / 'jpl_rrp.urdf'
KINDS = {
    'get_mass_matrix': GetMassMatrix,
    'get_dynamics_terms': GetDynamicsTerms,
    'compute_forward_dynamics': ComputeForwardDynamics,
}


@pytest.fixture(scope='module')
def arm():
    return RobotModel.from_urdf(URDF, base_link='base', tip_link='hand')


def ask(arm, name, age=None, longest_age=0.5, velocity=0.2, **fields):
    """Return the response of a service to which this state was measured some time ago [s]."""
    measured = None
    if age is not None:
        q, qd = np.full(arm.n, 0.4), np.full(arm.n, velocity)
        received, none = time.monotonic() - age, np.full(arm.n, np.nan)
        measured = Cycle(received, received, np.nan, q, qd, none, none, none)
    robot = callbacks.Robot.under(Load(arm.gravity), arm, longest_age=longest_age)
    if KINDS[name] is ComputeForwardDynamics:
        fields['effort'] = [0.0] * arm.n
    request, response = KINDS[name].Request(**fields), KINDS[name].Response()
    return getattr(callbacks, name)(robot, request, response, measured)


@pytest.mark.parametrize('name', KINDS)
def test_state_of_now_is_computed_with(arm, name):
    answer = ask(arm, name, age=0.4)
    assert answer.success, answer.message
    if name == 'get_mass_matrix':
        expected = mass_matrix(arm, np.full(arm.n, 0.4)).ravel()
        assert np.array(answer.mass_matrix.data) == pytest.approx(expected)


@pytest.mark.parametrize('name', KINDS)
def test_state_that_is_too_old_is_refused_with_its_age(arm, name):
    answer = ask(arm, name, age=3.0)
    assert not answer.success
    assert 'age of the latest measured state: 3.0' in answer.message
    assert 'at most 0.5 s, or 6 positions in the request' in answer.message


@pytest.mark.parametrize('name', KINDS)
def test_position_that_is_given_needs_no_measured_state(arm, name):
    for age in (None, 3.0):
        assert ask(arm, name, age=age, position=[0.1] * arm.n).success


@pytest.mark.parametrize('name', KINDS)
def test_nothing_measured_is_said_in_words(arm, name):
    answer = ask(arm, name)
    assert not answer.success and 'no joint state came yet' in answer.message


def test_velocity_is_the_measured_one_only_where_the_position_is(arm):
    measured = ask(arm, 'get_dynamics_terms', age=0.1)
    assert list(measured.velocity) == [0.2] * arm.n
    given = ask(arm, 'get_dynamics_terms', age=0.1, position=[0.4] * arm.n)
    assert list(given.velocity) == [0.0] * arm.n


def test_velocity_that_is_not_known_yet_is_refused(arm):
    answer = ask(arm, 'get_dynamics_terms', age=0.1, velocity=np.nan)
    assert 'latest measured velocity of joint' in answer.message
