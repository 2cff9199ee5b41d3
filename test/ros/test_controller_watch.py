# SPDX-License-Identifier: Apache-2.0
"""The node follows nothing while its controller is inactive, and deactivates it when it stops."""

import signal

import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
from control_arm import MASS, WEIGHT, enabled
from node_in_process import NodeInProcess
from node_rig import NodeRig
from rclpy.qos import DurabilityPolicy, QoSProfile

from robodyn_ros.ros.controller_activity import ControllerWatch

pytestmark = pytest.mark.ros

POSITION = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7]
TARGET = [0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.75]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
INACTIVE, ACTIVE = 2, 3
LABELS = {INACTIVE: 'inactive', ACTIVE: 'active'}
needs_messages = pytest.mark.skipif(
    find_spec('controller_manager_msgs') is None, reason='needs controller_manager_msgs'
)


class Manager:
    """What a node hears of a controller manager: its topic of activity, and its switch."""

    def __init__(self, rig):
        from controller_manager_msgs.msg import ControllerManagerActivity
        from controller_manager_msgs.srv import SwitchController

        self.asked, self.ok = [], True
        self.commands = lambda: len(rig.commands)
        self.publisher = rig.node.create_publisher(
            ControllerManagerActivity, '/controller_manager/activity', LATCHED
        )
        rig.node.create_service(
            SwitchController, '/controller_manager/switch_controller', self.on_switch
        )

    def on_switch(self, request, response):
        self.asked.append((list(request.deactivate_controllers), self.commands()))
        assert list(request.activate_controllers) == []
        response.ok = self.ok
        return response

    def tell(self, **states):
        from controller_manager_msgs.msg import ControllerManagerActivity, NamedLifecycleState

        message = ControllerManagerActivity()
        for name, state in states.items():
            each = NamedLifecycleState(name=name)
            each.state.id, each.state.label = state, LABELS[state]
            message.controllers.append(each)
        self.publisher.publish(message)


@pytest.fixture
def rig(tmp_path):
    result = NodeRig(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.fixture
def started(rig, panda_urdf):
    """Return the rig and a manager, the node up and its controller not yet heard of."""
    manager = Manager(rig)
    rig.start(
        urdf_file=panda_urdf,
        base_link='panda_link0',
        tip_link='panda_link8',
        state_timeout=0.5,
        ramp_time=0.1,
        mode='computed_torque',
        controller_manager='/controller_manager',
        controller='arm_effort',
    )
    rig.bring_up(POSITION)
    return rig, manager


def said(rig, words):
    return lambda: words in rig.log


@pytest.mark.parametrize('before, is_damped', [('inactive', True), ('active', False)])
def test_arm_that_was_let_go_by_its_controller_is_damped(before, is_damped):
    arm = enabled('gravity_compensation', damping=5.0)
    arm.run(1.0)
    watch = ControllerWatch.__new__(ControllerWatch)  # without a node
    watch.controller, watch.state = 'arm_effort', before
    watch._has_begun = watch._follows = False
    watch._on_begin = watch._begin
    state = SimpleNamespace(id=ACTIVE, label='active')
    each = SimpleNamespace(name='arm_effort', state=state)
    watch._on_activity(SimpleNamespace(controllers=[each]))
    watch.keep_from_following(arm.pipeline, arm.now)
    velocity = np.array([0.2, 0.3])
    command = arm.run_elsewhere(0.1, velocity=velocity)[-1]
    gravity = WEIGHT * np.cos([0.1, 0.2])
    assert command.torque == pytest.approx(gravity - is_damped * 5.0 * MASS * velocity)


@needs_messages
def test_no_trajectory_is_followed_while_the_controller_is_not_active(started):
    rig, manager = started
    rig.follow([TARGET], [3.0])
    rig.stream(POSITION, said(rig, 'while controller arm_effort is of unknown state'))
    manager.tell(other=ACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or 'is not loaded' in rig.log)
    manager.tell(other=ACTIVE, arm_effort=INACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or 'is inactive' in rig.log)
    assert 'reference dropped' not in rig.log
    manager.tell(arm_effort=ACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or is_followed(rig))


def is_followed(rig):
    return bool(rig.states) and len(rig.states[-1].reference_position) > 0


@needs_messages
def test_reference_is_dropped_when_the_controller_becomes_inactive(started):
    rig, manager = started
    manager.tell(arm_effort=ACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or is_followed(rig))
    manager.tell(arm_effort=INACTIVE)
    rig.stream(POSITION, said(rig, 'reference dropped: arm_effort is inactive'))
    count = len(rig.states)
    rig.stream(POSITION, lambda: len(rig.states) > count + 10)
    # Gravity is what is commanded again, and nothing runs after it is switched on again.
    assert not is_followed(rig)
    manager.tell(arm_effort=ACTIVE)
    count = len(rig.states)
    rig.stream(POSITION, lambda: len(rig.states) > count + 20)
    assert not is_followed(rig)


@needs_messages
@pytest.mark.parametrize('ok', [True, False])
def test_controller_is_deactivated_when_the_node_stops_and_carried_until_then(started, ok):
    rig, manager = started
    manager.ok = ok
    manager.tell(arm_effort=ACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or is_followed(rig))
    rig.process.send_signal(signal.SIGINT)
    rig.stream(POSITION, lambda: rig.process.poll() is not None)
    assert rig.process.returncode == 0
    ((names, commands_before),) = manager.asked
    assert names == ['arm_effort']
    rig.spin(0.2)
    assert len(rig.commands) > commands_before > 0
    assert ('arm_effort was not deactivated' in rig.log) == (not ok)


@needs_messages
def test_controller_that_is_inactive_is_left_alone(started):
    rig, manager = started
    manager.tell(arm_effort=INACTIVE)
    rig.follow([TARGET], [3.0])
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or 'is inactive' in rig.log)
    assert rig.end() == 0
    assert manager.asked == []


@needs_messages
def test_arm_that_nothing_commanded_can_brake_is_not_braked_when_the_node_stops(started):
    rig, manager = started
    position, velocity = list(POSITION), [0.2] + 6 * [0.0]
    manager.tell(arm_effort=INACTIVE)
    rig.stream(POSITION, lambda: rig.follow([TARGET], [3.0]) or 'is inactive' in rig.log)

    def fall():
        position[0] += 0.001
        rig.send(position, velocity=velocity)

    rig.until(lambda: bool(rig.states) and rig.states[-1].velocity[0] > 0.1, fall)
    rig.process.send_signal(signal.SIGINT)
    rig.until(lambda: 'stop requested' in rig.log, fall)  # from here on no executor answers
    told = position[0]
    rig.until(lambda: rig.process.poll() is not None, fall)
    rig.spin(0.5)
    assert rig.process.returncode == 0
    assert position[0] > told
    assert max(state.position[0] for state in rig.states) <= told


@pytest.fixture
def here(tmp_path):
    result = NodeInProcess(tmp_path / 'node.log')
    yield result
    result.close()


@pytest.mark.longer
@pytest.mark.parametrize('name', ['controller_manager', 'controller', 'messages'])
def test_what_cannot_be_watched_fails_configure_by_name(here, panda_urdf, name):
    given = {'controller_manager': '/controller_manager', 'controller': 'arm_effort'}
    if name != 'messages':
        given[name] = 'not a name'
        words = f"parameter {name}: 'not a name'"
    elif find_spec('controller_manager_msgs') is None:
        words = 'controller_manager_msgs is not installed'
    else:
        del given['controller']
        words = 'parameter controller'
    here.start(urdf_file=panda_urdf, tip_link='panda_link8', **given)
    here.until(lambda: 'cannot configure' in here.log)
    assert words in here.log
