# SPDX-License-Identifier: Apache-2.0
"""The services over real DDS: every answer against Pinocchio."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('pinocchio')

from geometry_msgs.msg import Vector3, Wrench
from loads import carrying
from node_rig import NodeRig
from rclpy.qos import QoSProfile
from service_rig import started

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import (
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    GetDHParameters,
    GetDynamicsTerms,
    GetMassMatrix,
    GetMinimalParameters,
    GetPayload,
)
from robodyn_ros import base_parameters, friction_torque

pytestmark = pytest.mark.ros

WARN = 1
CUBE = 1.8 * 442e-6 ** (2 / 3) / 6  # Bejczy's load: 1.8 kg in 442 cm3 [kg m²]
LOAD = {'mass': 1.8, 'ixx': CUBE, 'iyy': CUBE, 'izz': CUBE}
TOOL = {
    'mass': 0.7,
    'center_of_mass': Vector3(x=0.02, y=-0.03, z=0.08),
    'ixx': 3e-3,
    'ixy': 2e-4,
    'ixz': -1e-4,
    'iyy': 2.5e-3,
    'iyz': 3e-4,
    'izz': 1.5e-3,
}
TOOL_INERTIA = [[3e-3, 2e-4, -1e-4], [2e-4, 2.5e-3, 3e-4], [-1e-4, 3e-4, 1.5e-3]]


@pytest.fixture(scope='module', params=['panda', 'jpl_rrp'])
def arm(request, tmp_path_factory):
    """Return a node that carries nothing, for questions."""
    yield from started(request, tmp_path_factory, request.param)


@pytest.fixture
def unloaded(arm):
    """Return an arm that is given back without payload and upright."""
    yield arm
    for payload in arm.ask(GetPayload).payloads:
        assert arm.carry(link=payload.link).success
    assert arm.feel(0.0, 0.0, -9.81).success


def matrix(message):
    return np.reshape(message.data, [dimension.size for dimension in message.layout.dim])


def check_terms(arm, pinocchio):
    """Compare everything that the node answers about dynamics with Pinocchio."""
    still = np.zeros(arm.model.n)
    for q, qd, qdd in arm.states():
        answer = arm.ask(GetMassMatrix, position=q)
        assert answer.success, answer.message
        close = {'rel': 1e-9, 'abs': 1e-9}
        assert matrix(answer.mass_matrix) == pytest.approx(pinocchio.mass_matrix(q), **close)
        answer = arm.ask(GetDynamicsTerms, position=q, velocity=qd)
        assert answer.success and answer.joint_names == list(arm.model.joint_names)
        gravity = pinocchio.torque(q, still, still)
        coriolis = pinocchio.torque(q, qd, still) - gravity
        assert matrix(answer.mass_matrix) == pytest.approx(pinocchio.mass_matrix(q), **close)
        assert np.array(answer.coriolis) == pytest.approx(coriolis, **close)
        assert np.array(answer.gravity) == pytest.approx(gravity, **close)
        assert np.array(answer.friction) == pytest.approx(friction_torque(arm.model, qd))
        torque = pinocchio.torque(q, qd, qdd)
        answer = arm.ask(ComputeInverseDynamics, position=q, velocity=qd, acceleration=qdd)
        assert np.array(answer.effort) == pytest.approx(torque, **close)
        answer = arm.ask(ComputeForwardDynamics, position=q, velocity=qd, effort=torque)
        assert np.array(answer.acceleration) == pytest.approx(qdd, rel=1e-7, abs=1e-7)


# --- answers -----------------------------------------------------------------------------------


def test_dynamics_are_those_of_pinocchio(arm):
    check_terms(arm, arm.pinocchio())


def test_dynamics_with_the_load_of_appendix_c_are_those_of_pinocchio(unloaded):
    arm = unloaded
    answer = arm.carry(**LOAD)
    assert answer.success and answer.message == f'1.8 kg on {arm.tip_link}'
    text = carrying(arm.text, arm.tip_link, 1.8, inertia=CUBE * np.eye(3))
    check_terms(arm, arm.pinocchio(text))


def test_payloads_on_two_links_add_and_each_is_replaced_alone(unloaded):
    arm = unloaded
    other = [name for name, (body, _) in arm.model.link_frames.items() if body == 2][0]
    assert arm.carry(link=other, mass=3.0).success
    assert arm.carry(**LOAD).success
    assert arm.carry(link=arm.tip_link, **TOOL).success
    answer = arm.ask(GetPayload)
    assert {p.link: p.mass for p in answer.payloads} == {other: 3.0, arm.tip_link: 0.7}
    assert answer.payloads[1] == Payload(link=arm.tip_link, **TOOL)
    own = float(arm.model.inertial_parameters[:, 9].sum())
    assert answer.payload_mass == pytest.approx(3.7)
    assert answer.moving_mass == pytest.approx(own + 3.7)
    text = carrying(arm.text, other, 3.0)
    text = carrying(text, arm.tip_link, 0.7, (0.02, -0.03, 0.08), TOOL_INERTIA)
    check_terms(arm, arm.pinocchio(text))


def test_payload_of_no_mass_takes_the_payload_away(unloaded):
    arm = unloaded
    assert arm.carry(**LOAD).success
    answer = arm.carry(link=arm.tip_link)
    assert answer.success and answer.message == 'no payload'
    assert not arm.ask(GetPayload).payloads
    check_terms(arm, arm.pinocchio())


@pytest.mark.repeats(check=3)
@pytest.mark.parametrize(
    'gravity',
    [
        (9.81 * np.sin(np.pi / 6), 0.0, -9.81 * np.cos(np.pi / 6)),
        (0.0, 0.0, 9.81),
        (3.0, -4.0, 5.0),
        (0.0, 0.0, 0.0),
    ],
)
def test_gravity_turns_with_the_base(unloaded, gravity):
    arm = unloaded
    assert arm.feel(*gravity, frame=arm.model.base_link).success
    check_terms(arm, arm.pinocchio(gravity=gravity))


def test_inverse_dynamics_with_a_tip_wrench_is_that_of_pinocchio(arm):
    pinocchio = arm.pinocchio()
    force, moment = np.array([10.0, -20.0, 5.0]), np.array([1.0, 0.5, -2.0])
    wrench = Wrench(force=Vector3(x=10.0, y=-20.0, z=5.0), torque=Vector3(x=1.0, y=0.5, z=-2.0))
    for q, qd, qdd in arm.states():
        answer = arm.ask(
            ComputeInverseDynamics, position=q, velocity=qd, acceleration=qdd, tip_wrench=wrench
        )
        expected = pinocchio.torque(q, qd, qdd)
        expected += pinocchio.tip_jacobian(q).T @ np.concatenate([force, moment])
        assert np.array(answer.effort) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_velocity_and_acceleration_that_are_not_given_are_zero(arm):
    q, _, _ = next(iter(arm.states()))
    still = np.zeros(arm.model.n)
    holding = arm.pinocchio().torque(q, still, still)
    answer = arm.ask(ComputeInverseDynamics, position=q)
    assert np.array(answer.effort) == pytest.approx(holding, rel=1e-9, abs=1e-9)
    answer = arm.ask(ComputeForwardDynamics, position=q, effort=holding)
    assert np.array(answer.acceleration) == pytest.approx(still, abs=1e-7)


def test_minimal_parameters_reproduce_the_torque_of_pinocchio(unloaded):
    arm = unloaded
    assert arm.carry(**LOAD).success
    answer = arm.ask(GetMinimalParameters)
    assert answer.success, answer.message
    assert answer.classical_count == 10 * arm.model.n
    minimal = base_parameters(arm.model)
    assert [p.name for p in answer.parameters] == list(minimal.names)
    assert list(answer.no_effect) == list(minimal.no_effect)
    values = np.array([p.value for p in answer.parameters])
    text = carrying(arm.text, arm.tip_link, 1.8, inertia=CUBE * np.eye(3))
    pinocchio = arm.pinocchio(text)
    for q, qd, qdd in arm.states():
        torque = minimal.regressor(q, qd, qdd) @ values
        assert torque == pytest.approx(pinocchio.torque(q, qd, qdd), rel=1e-7, abs=1e-7)
    for parameter in answer.parameters:
        assert parameter.expression.startswith(f'{parameter.name} = ')
        assert parameter.unit in ('kg m²', 'kg m', 'kg')
        assert parameter.link


def test_dh_parameters_place_the_tip_where_pinocchio_does(arm):
    q, _, _ = next(iter(arm.states()))
    answer = arm.ask(GetDHParameters)
    assert answer.success and answer.joint_names == list(arm.model.joint_names)
    pose = homogeneous(answer.base_transform)
    for i in range(arm.model.n):
        theta = answer.theta[i] + (0.0 if answer.prismatic[i] else q[i])
        d = answer.d[i] + (q[i] if answer.prismatic[i] else 0.0)
        pose = pose @ turned('x', answer.alpha[i]) @ moved(x=answer.a[i])
        pose = pose @ turned('y', answer.beta[i]) @ turned('z', theta) @ moved(z=d)
    pose = pose @ homogeneous(answer.tip_transform)
    assert pose == pytest.approx(arm.pinocchio().tip_pose(q), abs=1e-9)


def homogeneous(transform):
    x, y, z, w = (getattr(transform.rotation, axis) for axis in 'xyzw')
    result = np.eye(4)
    result[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    result[:3, 3] = [getattr(transform.translation, axis) for axis in 'xyz']
    return result


def turned(axis, angle):
    i, j = {'x': (1, 2), 'y': (2, 0), 'z': (0, 1)}[axis]
    result = np.eye(4)
    result[i, i] = result[j, j] = np.cos(angle)
    result[i, j], result[j, i] = -np.sin(angle), np.sin(angle)
    return result


def moved(x=0.0, z=0.0):
    result = np.eye(4)
    result[0, 3], result[2, 3] = x, z
    return result


@pytest.mark.slow
@pytest.mark.parametrize('arm', ['panda'], indirect=True)
def test_fifty_clients_at_once_all_get_their_own_answer(arm):
    node, count = arm.rig.node, 50
    positions = np.random.default_rng(3).uniform(-1.0, 1.0, (count, arm.model.n))
    # Each of them hears the answers to all, and the usual depth of ten would drop its own.
    clients = [
        node.create_client(
            GetMassMatrix, '/dynamics_node/get_mass_matrix', qos_profile=QoSProfile(depth=100)
        )
        for _ in range(count)
    ]
    arm.rig.until(lambda: all(client.service_is_ready() for client in clients))
    futures = [
        client.call_async(GetMassMatrix.Request(position=position))
        for client, position in zip(clients, positions)
    ]
    arm.rig.until(lambda: all(future.done() for future in futures))
    for client in clients:
        node.destroy_client(client)
    pinocchio = arm.pinocchio()
    for future, q in zip(futures, positions):
        answer = matrix(future.result().mass_matrix)
        assert answer == pytest.approx(pinocchio.mass_matrix(q), rel=1e-9, abs=1e-9)


@pytest.mark.longer
@pytest.mark.repeats(check=1)
def test_payload_and_gravity_are_seen_in_the_diagnostics(unloaded):
    arm = unloaded
    upright = '(0, 0, -9.81) m/s²'  # an old report may tell of the test before
    arm.rig.until(
        lambda: (
            arm.rig.report.get('gravity') == upright and arm.rig.report['payload'] == 'no payload'
        )
    )
    before = arm.rig.report
    assert arm.carry(**LOAD).success
    assert arm.feel(0.0, 0.0, 9.81).success
    arm.rig.until(lambda: arm.rig.report['gravity'] == '(0, 0, 9.81) m/s²')
    report = arm.rig.report
    assert report['payload'] == f'1.8 kg on {arm.tip_link}'
    gained = float(report['moving_mass_kg']) - float(before['moving_mass_kg'])
    assert gained == pytest.approx(1.8, abs=1e-4)
    assert report['model_hash'] != before['model_hash']
    assert arm.carry().success and arm.feel(0.0, 0.0, -9.81).success
    arm.rig.until(
        lambda: (
            arm.rig.report['payload'] == 'no payload'
            and arm.rig.report['gravity'] == before['gravity']
        )
    )
    assert arm.rig.report['model_hash'] == before['model_hash']


# --- what was measured -------------------------------------------------------------------------


def test_terms_without_a_position_are_those_of_the_measured_state(arm):
    names = arm.model.joint_names
    position, velocity, _ = (state.tolist() for state in next(iter(arm.states())))

    answers = []

    def has_come():
        answers.append(arm.ask(GetDynamicsTerms))
        return answers[-1].success and list(answers[-1].position) == position

    arm.rig.until(has_come, lambda: arm.rig.send(position, velocity, names))
    answer = answers[-1]
    assert list(answer.velocity) == velocity
    pinocchio, still = arm.pinocchio(), np.zeros(arm.model.n)
    gravity = pinocchio.torque(position, still, still)
    coriolis = pinocchio.torque(position, velocity, still) - gravity
    assert np.array(answer.coriolis) == pytest.approx(coriolis, rel=1e-9, abs=1e-9)
    assert np.array(answer.gravity) == pytest.approx(gravity, rel=1e-9, abs=1e-9)


@pytest.mark.longer
def test_control_goes_on_when_the_service_process_dies_and_that_is_logged_once(
    request, tmp_path_factory
):
    for arm in started(request, tmp_path_factory, 'panda', NodeRig):
        rig = arm.rig
        os.kill(service_process(rig.process.pid), 9)
        assert rig.transition('activate')
        rig.bring_up([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
        rig.until(lambda rig=rig: rig.report.get('services') == 'ended')
        assert rig.report['model_level'] == WARN
        assert 'restart the node' in rig.report['model_message']
        del rig.reports[:-1]
        rig.until(lambda rig=rig: len(rig.reports) > 2)
        assert rig.log.count('[dynamics_node]: the service process has ended') == 1
        assert rig.end() == 0


def service_process(parent):
    """Return a node's child that talks over DDS, but for the watchdog in its own session."""
    children = Path(f'/proc/{parent}/task/{parent}/children').read_text().split()
    (child,) = (int(pid) for pid in children if talks(pid) and os.getsid(int(pid)) != int(pid))
    return child


def talks(pid):
    files = Path(f'/proc/{pid}/fd').iterdir()
    return any(os.readlink(file).startswith('socket:') for file in files)
