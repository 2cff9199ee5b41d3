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
def test_a_state_is_computed_with_while_it_is_of_now_and_refused_in_words_then(arm, name):
    answer = ask(arm, name, age=0.4)
    assert answer.success, answer.message
    if name == 'get_mass_matrix':
        expected = mass_matrix(arm, np.full(arm.n, 0.4)).ravel()
        assert np.array(answer.mass_matrix.data) == pytest.approx(expected)
    for age, words in (
        (3.0, ('state: 3.0', 'at most 0.5 s, or 6 positions in the request')),
        (None, ('no joint state came yet',)),
    ):
        answer = ask(arm, name, age=age)
        assert not answer.success and all(each in answer.message for each in words)
        # A position that is given needs no measured state.
        assert ask(arm, name, age=age, position=[0.1] * arm.n).success


def test_velocity_is_the_measured_one_only_where_the_position_is(arm):
    measured = ask(arm, 'get_dynamics_terms', age=0.1)
    assert list(measured.velocity) == [0.2] * arm.n
    given = ask(arm, 'get_dynamics_terms', age=0.1, position=[0.4] * arm.n)
    assert list(given.velocity) == [0.0] * arm.n


def test_velocity_that_is_not_known_yet_is_refused(arm):
    answer = ask(arm, 'get_dynamics_terms', age=0.1, velocity=np.nan)
    assert 'latest measured velocity of joint' in answer.message
