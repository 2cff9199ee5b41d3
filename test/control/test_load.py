# SPDX-License-Identifier: Apache-2.0
"""What somebody says that the arm carries is believed only where an arm can carry such a thing."""

import numpy as np
import pytest
from robots import two_link_urdf

from robodyn_ros import Payload, RobotModel
from robodyn_ros.control.control_stack import apply_change, build_control_stack
from robodyn_ros.control.load import GravityChange, Load
from robodyn_ros.control.settings import ControlSettings
from robodyn_ros.errors import InvalidArgument, NoSuchName, Overload

GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope='module')
def panda(panda_urdf):
    return RobotModel.from_urdf(panda_urdf, base_link='panda_link0', tip_link='panda_link8')


@pytest.mark.parametrize(
    'payload, reason',
    [
        ({'mass': 1000.0}, r'payload mass.*at most .* kg'),
        ({'mass': 1e300}, r'payload mass.*at most .* kg'),
        ({'inertia': np.diag([1700.0, 1700.0, 1700.0])}, 'radius of gyration'),
        ({'inertia': np.diag([1.0, 1000.0, 1000.0])}, 'radius of gyration'),
        ({'center_of_mass': (0.0, 0.0, 100.0)}, r'centre of mass.*at most .* m'),
        ({'center_of_mass': (1e308, 1e308, 0.0)}, r'centre of mass.*at most .* m'),
    ],
)
@pytest.mark.filterwarnings('error')
def test_payload_in_other_units_is_refused(panda, payload, reason):
    with pytest.raises(InvalidArgument, match=reason):
        Load(GRAVITY).changed(Payload(**{'mass': 1.8, **payload}), panda)


def test_what_a_hand_holds_is_taken_and_replaced_on_its_link(panda):
    box = Payload(1.8, (0.0, 0.0, 0.1), np.diag([0.0017, 0.0017, 0.003]))
    load, model = Load(GRAVITY).changed(box, panda)
    assert load.payload_mass == 1.8 and model == load.applied_to(panda) != panda
    load, _ = load.changed(Payload(0.5), panda)
    assert load.payload_mass == 0.5
    heaviest, _ = panda.possible_payload
    assert load.changed(Payload(heaviest), panda)[0].payload_mass == heaviest
    assert load.changed(Payload(0.0), panda) == (Load(GRAVITY), panda)
    with pytest.raises(NoSuchName, match='nowhere'):
        load.changed(Payload(0.0, link='nowhere'), panda)


def test_gravity_of_other_units_or_another_frame_is_refused(panda):
    load = Load(GRAVITY)
    with pytest.raises(InvalidArgument, match='gravity strength'):
        load.changed(GravityChange(np.array([0.0, 0.0, -9810.0]), ''), panda)
    with pytest.raises(InvalidArgument, match='panda_link0'):
        load.changed(GravityChange(GRAVITY, 'world'), panda)
    tilted, _ = load.changed(GravityChange(np.array([3.0, 0.0, -9.0]), 'panda_link0'), panda)
    assert tilted.gravity == pytest.approx([3.0, 0.0, -9.0])


def test_load_that_a_joint_cannot_carry_is_refused_by_its_name_whatever_that_is(tmp_path):
    name = 'first: the shoulder; allowed: at most 7'
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(two_link_urdf().replace('"joint1"', f'"{name}"'))
    settings = ControlSettings(
        urdf_file=str(urdf),
        base_link='base',
        tip_link='link2',
        gravity=(0.0, -9.81, 0.0),
        effort_limits=(50.0,),
        effort_limit_scale=1.0,
    )
    stack = build_control_stack(settings, None)
    stack.pipeline.enable(0.0)
    stack.joint_states.receive(stack.model.joint_names, [0.0, 0.0], [0.0, 0.0], received=0.0)
    assert stack.pipeline.step(stack.joint_states.take(), 0.0) is not None
    with pytest.raises(Overload) as refused:
        apply_change(stack, Payload(3.0, (1.0, 0.0, 0.0)))
    error = refused.value
    assert error.element == f'gravity torque of joint {name!r} here'
    assert error.value == pytest.approx(9.81 * (0.5 + 1.5 + 3.0 * 2.0), rel=1e-3)
    assert error.allowed == 'at most its effort limit, 50 N m'
    assert stack.load.payload_mass == 0.0
