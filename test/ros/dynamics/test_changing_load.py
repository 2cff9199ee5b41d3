# SPDX-License-Identifier: Apache-2.0
"""Payload and gravity that change while the arm is held or moves."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from geometry_msgs.msg import Vector3, Vector3Stamped
from loads import carrying
from lockstep_rig import TIME_STEP, LockstepRig
from node_in_process import NodeInProcess
from node_rig import UNHURRIED

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import GetPayload, SetGravity, SetPayload
from robodyn_ros import RobotModel

pytestmark = pytest.mark.ros

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
LONGEST_STEP = 0.01  # the rate limit allows no more than this time's change at once [s]
CUBE = 1.8 * 442e-6 ** (2 / 3) / 6
CENTER = (0.0, 0.0, 0.08)
HEAVY = Payload(mass=1.8, center_of_mass=Vector3(z=0.08), ixx=CUBE, iyy=CUBE, izz=CUBE)
PARTS = ('inertial', 'coriolis', 'gravity', 'friction', 'feedback', 'effort')


@pytest.fixture(scope='module')
def node(panda_urdf, tmp_path_factory):
    result = NodeInProcess(tmp_path_factory.mktemp('node') / 'node.log')
    robot = {'urdf_file': panda_urdf, 'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
    result.start(**robot, state_timeout=UNHURRIED, ramp_time=0.1)
    yield result
    result.close()


@pytest.fixture
def rig(node):
    """A node that holds POSITION without payload, given back in the mode that it was started."""
    node.bring_up(POSITION)
    yield node
    node.follow([], [])
    tell(node, Payload())
    change(node, mode='gravity_compensation', ramp_time=0.1, torque_rate_limit=[1000.0])


def hold(rig):
    """Return what to do meanwhile."""
    return lambda: rig.send(POSITION)


def tell(rig, payload):
    request = SetPayload.Request(payload=payload)
    answer = rig.call(SetPayload, 'set_payload', request, hold(rig))
    assert answer.success, answer.message


def change(rig, **parameters):
    for name, value in parameters.items():
        result = rig.set_parameter(name, value, hold(rig))
        assert result.successful, result.reason


def hold_until(rig, torque):
    rig.stream(
        POSITION, lambda: rig.commands and np.allclose(rig.commands[-1].data, torque, atol=1e-9)
    )


@pytest.fixture
def lockstep(tmp_path):
    pytest.importorskip('mujoco')
    result = LockstepRig(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.fixture
def heavy_urdf(panda_urdf, tmp_path):
    """Path of the Panda with 1.8 kg at its tip."""
    text = carrying(
        Path(panda_urdf).read_text(encoding='utf-8'), 'panda_link8', 1.8, CENTER, CUBE * np.eye(3)
    )
    path = tmp_path / 'heavy.urdf'
    path.write_text(text, encoding='utf-8')
    return str(path)


def gravity_request(vector):
    x, y, z = (float(value) for value in vector)
    return SetGravity.Request(gravity=Vector3Stamped(vector=Vector3(x=x, y=y, z=z)))


def holding_torque(urdf, gravity=(0.0, 0.0, -9.81)):
    """Return the torque that holds POSITION according to Pinocchio."""
    pytest.importorskip('pinocchio')
    from oracles import PinocchioArm

    model = RobotModel.from_urdf(
        urdf, base_link='panda_link0', tip_link='panda_link8', gravity=gravity
    )
    return PinocchioArm.of(urdf, model).torque(np.array(POSITION), np.zeros(7), np.zeros(7))


def test_next_command_after_the_answer_carries_the_payload(rig, robot, heavy_urdf):
    bare, heavy = holding_torque(robot['urdf_file']), holding_torque(heavy_urdf)
    change(rig, ramp_time=0.0, torque_rate_limit=[1e6])
    hold_until(rig, bare)
    assert rig.call(SetPayload, 'set_payload', SetPayload.Request(payload=HEAVY)).success
    rig.spin(0.3)  # what bridges the gap between joint states is over by then
    before = len(rig.commands)
    rig.stream(POSITION, lambda: len(rig.commands) > before)
    assert np.array(rig.commands[before].data) == pytest.approx(heavy, abs=1e-9)


@pytest.mark.longer
def test_change_of_mode_keeps_the_payload(rig, heavy_urdf):
    tell(rig, HEAVY)
    change(rig, mode='computed_torque')
    rig.stream(POSITION, lambda: rig.report.get('mode') == 'computed_torque')
    hold_until(rig, holding_torque(heavy_urdf))
    answer = rig.call(GetPayload, 'get_payload', GetPayload.Request(), hold(rig))
    assert answer.payloads[0].mass == 1.8


def test_gravity_set_while_active_is_in_the_next_torques(rig, robot):
    gravity = (0.0, 5.0, 8.0)
    answer = rig.call(SetGravity, 'set_gravity', gravity_request(gravity), hold(rig))
    assert answer.success and answer.message == '(0, 5, 8) m/s²'
    hold_until(rig, holding_torque(robot['urdf_file'], gravity))
    answer = rig.call(SetGravity, 'set_gravity', gravity_request((0, 0, -9.81)), hold(rig))
    assert answer.success


# --- in closed loop with MuJoCo ----------------------------------------------------------------


@pytest.mark.slow
def test_arm_upside_down_holds_still_with_a_payload_once_the_services_have_set_both(
    lockstep, robot
):
    rig, gravity = lockstep, (0.0, 0.0, 9.81)
    rig.start_simulator(**robot, gravity=list(gravity), initial_position=POSITION)
    rig.start(**robot)
    assert rig.call(SetGravity, 'set_gravity', gravity_request(gravity)).success
    request = SetPayload.Request(payload=HEAVY)
    assert rig.call(SetPayload, 'set_payload', request).success
    client = rig.node.create_client(SetPayload, '/simulator_node/set_payload')
    rig.until(client.service_is_ready)
    future = client.call_async(request)
    rig.until(future.done)
    assert future.result().success, future.result().message
    assert rig.transition('activate')
    rig.run_until(1.0)
    _, position, _ = rig.measured(0.0, 1.0)
    assert np.abs(position - POSITION).max() < 1e-6


@pytest.mark.slow
def test_unknown_payload_set_while_moving_stops_spoiling_the_tracking(lockstep, robot, heavy_urdf):
    # By the wall clock: of the payload's step, 8 N m, it leaves 5 N m in the longest cycle.
    rig, limit = lockstep, 500.0
    period, told_after, end = 2.0, 4.0, 8.0
    rig.start_simulator(**{**robot, 'urdf_file': heavy_urdf}, initial_position=POSITION)
    rig.start(**robot, mode='computed_torque', torque_rate_limit=f'[{limit}]')
    rig.until(lambda: rig.trajectories.get_subscription_count() > 0)
    assert rig.transition('activate')
    rig.until(lambda: rig.states)
    turn = 0.3 * np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    # A turn every second: the reference repeats itself after each period.
    times = np.arange(period / 2, end + 2.0, period / 2)
    ways = [np.array(POSITION) + (i % 2) * turn for i in range(len(times))]
    rig.follow(ways, times)
    rig.until(lambda: len(rig.states[-1].reference_position) == 7)
    start = rig.time
    rig.run_until(start + told_after)
    told = rig.time
    request = SetPayload.Request(payload=HEAVY)
    assert rig.call(SetPayload, 'set_payload', request).success
    known = rig.time
    rig.run_until(known + end - told_after)

    def error(begin):
        _, position, reference = rig.measured(begin, begin + period)
        assert len(position) > 0.9 * period / TIME_STEP
        return np.sqrt(np.mean((position - reference) ** 2))

    before, after = error(told - period), error(known + end - told_after - period)
    print(f'tracking error, root mean square: {before:.2e} rad before, {after:.2e} after')
    assert before > 5.0 * after
    steps = np.abs(rig.torque_steps())
    assert len(steps) > 0.9 * (end - period) / TIME_STEP
    assert steps.max() <= limit * LONGEST_STEP * (1 + 1e-9)
    assert any(any(state.rate_limited) for state in rig.states)
