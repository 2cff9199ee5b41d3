# SPDX-License-Identifier: Apache-2.0
"""An arm with drives in amperes holds 1.8 kg that nobody told the node of, over DDS."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from geometry_msgs.msg import Vector3
from loads import carrying
from lockstep_rig import TIME_STEP, LockstepRig

from robodyn_interfaces.msg import Payload
from robodyn_interfaces.srv import EstimatePayload, GetPayload, SetPayload

pytestmark = [pytest.mark.slow, pytest.mark.ros]

POSITION = np.array([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
# Below the flange: until there is a reference nothing holds what the node does not know of.
MASS, CENTER = 1.8, np.array([0.01, -0.005, 0.08])
INERTIA = MASS * 442e-6 ** (2 / 3) / 6 * np.eye(3)
# What an ampere is worth; two of the drives are reversed. They take what they report.
AMPERE = np.array([12.0, -11.5, 9.8, 10.7, -10.1, 5.3, 4.2])
PERIOD = 2.0  # of the motion [s]


class AmpereRig(LockstepRig):
    """A rig whose simulated drives take and report amperes."""

    command_scale = 1.0 / AMPERE
    takes_turns = False  # minutes of motion, and no moment of it matters
    patience = 240.0  # an estimate takes seconds, of a process that yields to all others


@pytest.fixture
def rig(tmp_path, panda_urdf):
    """Return a rig that moves."""
    robot = {'base_link': 'panda_link0', 'tip_link': 'panda_link8'}
    heavy = tmp_path / 'heavy.urdf'
    text = Path(panda_urdf).read_text(encoding='utf-8')
    heavy.write_text(carrying(text, 'panda_link8', MASS, CENTER, INERTIA), encoding='utf-8')
    result = AmpereRig(tmp_path / 'node.log')
    scales = {'effort_scale': AMPERE.tolist(), 'command_scale': (1.0 / AMPERE).tolist()}
    result.start_simulator(**robot, **scales, urdf_file=str(heavy), initial_position=POSITION)
    result.start(
        **robot,
        **scales,
        urdf_file=panda_urdf,
        mode='computed_torque',
        max_following_error=1.0,  # the wrist sags
        torque_rate_limit='[5000.0]',  # by the wall clock, which lockstep outruns
    )
    result.until(lambda: result.trajectories.get_subscription_count() > 0)
    assert result.transition('activate')
    result.run_until(0.1)
    result.follow([POSITION], [0.2])
    yield result
    result.close()


def ask(rig, **fields):
    answer = rig.call(EstimatePayload, 'estimate_payload', EstimatePayload.Request(**fields))
    assert answer.success, answer.message
    return answer


def center(answer):
    vector = answer.payload.center_of_mass
    return np.array([vector.x, vector.y, vector.z])


def payload_mass(rig):
    return rig.call(GetPayload, 'get_payload', GetPayload.Request()).payload_mass


def swing(rig, duration):
    """Turn back and forth, each joint by 0.3 rad a second."""
    turn = 0.3 * np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    times = np.arange(PERIOD / 2, duration, PERIOD / 2)
    rig.follow([POSITION + (i % 2) * turn for i in range(len(times))], times)
    rig.until(lambda: len(rig.states[-1].reference_position) == 7)


def error_of_next_period(rig):
    """Return the tracking error, root mean square, of a period that begins half a second on."""
    begin = rig.time + 0.5
    rig.run_until(begin + PERIOD)
    _, position, reference = rig.measured(begin, begin + PERIOD)
    assert len(position) > 0.9 * PERIOD / TIME_STEP
    return np.sqrt(np.mean((position - reference) ** 2))


def test_five_seconds_of_motion_determine_what_is_held_and_tracking_is_as_if_it_were_known(rig):
    swing(rig, 600.0)  # time goes on while an estimate is made, on a busy machine for minutes
    unknown = error_of_next_period(rig)
    rig.run_until(rig.time + 5.0 - PERIOD - 0.5)
    found = ask(rig, duration=5.0)
    assert found.payload.mass == pytest.approx(MASS, rel=0.03)
    assert center(found) == pytest.approx(CENTER, abs=5e-3)
    assert not found.applied and payload_mass(rig) == 0.0

    applied = ask(rig, duration=5.0, apply=True)
    assert applied.applied
    # A request without an answer for a while is asked again, of later seconds.
    assert payload_mass(rig) == pytest.approx(applied.payload.mass, rel=0.01)
    estimated = error_of_next_period(rig)

    x, y, z = CENTER
    moment = INERTIA[0, 0]
    told = Payload(
        mass=MASS, center_of_mass=Vector3(x=x, y=y, z=z), ixx=moment, iyy=moment, izz=moment
    )
    request = SetPayload.Request(payload=told)
    assert rig.call(SetPayload, 'set_payload', request).success
    true = error_of_next_period(rig)
    print(
        f'{found.message}; tracking error, root mean square: '
        f'{1e3 * unknown:.2g} mrad without, {1e3 * estimated:.2g} with the estimate, '
        f'{1e3 * true:.2g} with the true payload'
    )
    assert unknown > 0.02
    assert estimated < max(2.0 * true, 0.02 * unknown)
