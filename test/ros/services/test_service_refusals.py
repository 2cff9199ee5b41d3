# SPDX-License-Identifier: Apache-2.0
"""Every kind of bad request to the services is refused with words."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('pinocchio')

from geometry_msgs.msg import Vector3, Wrench
from service_rig import started
from std_srvs.srv import SetBool

from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    EstimatePayload,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    GetPayload,
    SetGravity,
    SetPayload,
)

pytestmark = pytest.mark.ros

NAN, INF = float('nan'), float('inf')
SEVEN = [0.1] * 7
PAYLOADS = {
    'negative mass': ({'mass': -1.0}, 'payload mass: -1.0'),
    'mass that is no number': ({'mass': NAN}, 'payload.mass: nan'),
    'infinite mass': ({'mass': INF}, 'payload.mass: inf'),
    'centre of mass that is no number': (
        {'mass': 1.0, 'center_of_mass': Vector3(y=NAN)},
        'payload.center_of_mass[1]: nan',
    ),
    'inertia that is no number': ({'mass': 1.0, 'ixy': NAN}, 'payload.inertia[0][1]: nan'),
    'inertia without mass': ({'ixx': 1.0, 'iyy': 1.0, 'izz': 1.0}, 'mass is zero'),
    'negative moment of inertia': (
        {'mass': 1.0, 'ixx': -0.01, 'iyy': 0.01, 'izz': 0.01},
        'principal moments',
    ),
    'moment above the sum of the others': (
        {'mass': 1.0, 'ixx': 0.1, 'iyy': 0.01, 'izz': 0.01},
        'sum of the other two',
    ),
    'unknown link': ({'mass': 1.0, 'link': 'gripper'}, "'gripper'; allowed: one of"),
}
GRAVITIES = {
    'no number': ((NAN, 0.0, -9.81), '', 'gravity[0]: nan'),
    'infinite': ((0.0, 0.0, -INF), '', 'gravity[2]: -inf'),
    'millimetres': ((0.0, 0.0, -9810.0), '', 'strength: 9810.0'),
    'in the frame of the tip': ((0.0, 0.0, -9.81), 'panda_link8', "the base link 'panda_link0'"),
}
MODEL_SERVICES = {
    'mass matrix at too few positions': (
        GetMassMatrix,
        {'position': [0.0] * 3},
        '3 values; allowed: 7, one for each of panda',
    ),
    'mass matrix at too many positions': (
        GetMassMatrix,
        {'position': [0.0] * 14},
        '14 values; allowed: 7',
    ),
    'mass matrix at no number': (
        GetMassMatrix,
        {'position': [0.0] * 6 + [NAN]},
        "position of joint 'panda_joint7': nan",
    ),
    'mass matrix where nothing was measured': (GetMassMatrix, {}, 'no joint state came yet'),
    'terms at too few positions': (GetDynamicsTerms, {'position': [0.0]}, 'position: 1 values'),
    'terms at too few velocities': (
        GetDynamicsTerms,
        {'position': SEVEN, 'velocity': [1.0]},
        'velocity: 1 values',
    ),
    'terms at an infinite velocity': (
        GetDynamicsTerms,
        {'position': SEVEN, 'velocity': [INF] * 7},
        "velocity of joint 'panda_joint1': inf",
    ),
    'terms where nothing was measured': (GetDynamicsTerms, {}, 'no joint state came yet'),
    'inverse dynamics at no number': (
        ComputeInverseDynamics,
        {'position': [NAN] * 7},
        "position of joint 'panda_joint1': nan",
    ),
    'inverse dynamics for too few accelerations': (
        ComputeInverseDynamics,
        {'position': SEVEN, 'acceleration': [0.0] * 6},
        'acceleration: 6 values',
    ),
    'inverse dynamics for no number': (
        ComputeInverseDynamics,
        {'position': SEVEN, 'acceleration': [NAN] * 7},
        "acceleration of joint 'panda_joint1': nan",
    ),
    'inverse dynamics under an infinite wrench': (
        ComputeInverseDynamics,
        {'position': SEVEN, 'tip_wrench': Wrench(force=Vector3(x=INF))},
        'request tip_wrench',
    ),
    'forward dynamics without torques': (
        ComputeForwardDynamics,
        {'position': SEVEN},
        'effort: 0 values',
    ),
    'forward dynamics for no number': (
        ComputeForwardDynamics,
        {'position': SEVEN, 'effort': [NAN] * 7},
        "effort of joint 'panda_joint1': nan",
    ),
    'forward dynamics at too few velocities': (
        ComputeForwardDynamics,
        {'position': SEVEN, 'velocity': [0.0], 'effort': SEVEN},
        'velocity: 1 values',
    ),
    'DH table in an unknown convention': (
        GetDHParameters,
        {'convention': 'craig'},
        "'craig'; allowed: modified, standard",
    ),
}


@pytest.fixture(scope='module')
def panda(request, tmp_path_factory):
    """Return another node, for requests that are refused."""
    yield from started(request, tmp_path_factory, 'panda')


@pytest.mark.parametrize('payload', PAYLOADS, ids=str)
def test_impossible_payload_is_refused_with_its_value(panda, payload):
    fields, words = PAYLOADS[payload]
    answer = panda.carry(**fields)
    assert not answer.success and words in answer.message
    assert not panda.ask(GetPayload).payloads


@pytest.mark.parametrize('gravity', GRAVITIES, ids=str)
def test_impossible_gravity_is_refused_with_its_value(panda, gravity):
    vector, frame, words = GRAVITIES[gravity]
    answer = panda.feel(*vector, frame=frame)
    assert not answer.success and words in answer.message


@pytest.mark.parametrize('question', MODEL_SERVICES, ids=str)
def test_impossible_question_is_refused_with_its_value(panda, question):
    kind, fields, words = MODEL_SERVICES[question]
    answer = panda.ask(kind, **fields)
    assert not answer.success and words in answer.message


def test_enabling_an_inactive_node_is_refused(panda):
    answer = panda.rig.call(SetBool, 'enable', SetBool.Request(data=True))
    assert not answer.success and 'inactive, not active' in answer.message


def test_node_without_a_robot_says_so(unconfigured):
    for kind in (
        ComputeForwardDynamics,
        ComputeInverseDynamics,
        EstimatePayload,
        GetDHParameters,
        GetDynamicsTerms,
        GetMassMatrix,
        GetMinimalParameters,
        GetPayload,
        SetGravity,
        SetPayload,
    ):
        answer = unconfigured.ask(kind)
        assert not answer.success, kind
        assert answer.message == 'no robot: the node is not configured', kind


@pytest.fixture
def unconfigured(panda):
    """Return the node cleaned up, after it had a payload; it is configured again at the end."""
    assert panda.carry(mass=1.0).success
    assert panda.rig.transition('cleanup')
    yield panda
    if panda.rig.lifecycle() == 'unconfigured':
        assert panda.rig.transition('configure')


def test_cleaned_up_node_has_forgotten_its_payload(unconfigured):
    assert unconfigured.rig.transition('configure')
    assert not unconfigured.ask(GetPayload).payloads
