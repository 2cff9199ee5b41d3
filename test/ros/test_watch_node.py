# SPDX-License-Identifier: Apache-2.0
"""watch_node beside a node that reports an arm: what reaches a browser, and when it subscribes."""

from __future__ import annotations

import json
import time

import domains
import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from robots import two_link_urdf

pytest.importorskip('websockets', reason='websockets is not installed: pip install websockets')
from geometry_msgs.msg import WrenchStamped
from std_msgs.msg import String
from websockets.sync.client import connect

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros import RobotModel, forward_kinematics
from robodyn_ros.errors import RobodynError
from robodyn_ros.report.watch_page import PARTS
from robodyn_ros.ros.conversions import floats
from robodyn_ros.ros.qos import LATCHED
from robodyn_ros.ros.watch_node import WatchNode

pytestmark = pytest.mark.ros

PATIENCE = 60.0


class Rig:
    """A reporting node, and watch_node, in one process and domain."""

    def __init__(self, path, **parameters):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domains.claim())
        self.node = rclpy.create_node('dynamics_node', context=self.context)
        self.states = self.node.create_publisher(DynamicsState, '~/dynamics_state', 10)
        self.wrenches = self.node.create_publisher(WrenchStamped, '~/tip_wrench', 10)
        self.contacts = self.node.create_publisher(Contact, '~/contact', LATCHED)
        self.description = self.node.create_publisher(String, 'robot_description', LATCHED)
        given = {'port': 0, 'rate': 60.0, 'tip_link': 'link2', **parameters}
        if path is not None:
            given['urdf_file'] = str(path)
        self.watch = WatchNode(
            context=self.context,
            parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
        )
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def browser(self):
        server = self.watch.server
        return connect(
            f'ws://127.0.0.1:{server.port}/live',
            origin=f'http://127.0.0.1:{server.port}',
            open_timeout=20,
        )

    def until(self, condition, action=lambda: None):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, 'waited in vain'
            action()
            self.executor.spin_once(timeout_sec=0.01)

    def close(self):
        self.watch.close()
        self.watch.destroy_node()
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def path(tmp_path):
    (tmp_path / 'arm.urdf').write_text(two_link_urdf())
    return tmp_path / 'arm.urdf'


@pytest.fixture
def rig(path):
    made = Rig(path)
    yield made
    made.close()


def state(q=(0.3, 0.7), names=('joint1', 'joint2'), **changes):
    values = {name: floats(np.array([1.0, 2.0])) for name, _, _ in PARTS}
    values |= {'position': floats(np.array(q)), 'total': floats(np.array([6.0, 12.0]))}
    return DynamicsState(joint_names=list(names), mode='feedforward', **values, **changes)


def test_a_browser_hears_pose_torques_force_and_contact(rig):
    model = rig.watch._model
    assert rig.node.count_subscribers('/dynamics_node/dynamics_state') == 0
    with rig.browser() as browser:
        rig.until(
            lambda: rig.states.get_subscription_count() and rig.contacts.get_subscription_count()
        )
        wrench = WrenchStamped()
        wrench.wrench.force.x = 10.0
        rig.contacts.publish(Contact(link='link2'))

        def publish():
            rig.wrenches.publish(wrench)
            rig.states.publish(state(in_contact=True, external_torque=floats(np.ones(2))))
            time.sleep(0.02)

        told = {}
        deadline = time.monotonic() + PATIENCE
        while not (told.get('force') and told.get('link')):
            assert time.monotonic() < deadline
            publish()
            try:
                told = json.loads(browser.recv(timeout=0.05))
            except TimeoutError:
                continue
    assert told['q'] == [0.3, 0.7] and told['total'] == [6.0, 12.0]
    assert told['contact'] is True and told['link'] == 'link2' and told['mode'] == 'feedforward'
    # The force comes in the tip's axes and is shown in the base's.
    turn = forward_kinematics(model, [0.3, 0.7])[:3, :3]
    np.testing.assert_allclose(told['force'], turn @ [10.0, 0.0, 0.0], atol=1e-4)
    # Without a browser it costs the node nothing: it is not even subscribed.
    rig.until(lambda: rig.states.get_subscription_count() == 0)


def test_another_arms_states_and_numbers_that_are_not_finite_are_not_shown(rig):
    shown = []
    rig.watch._on_browsers(1)
    rig.until(lambda: rig.states.get_subscription_count() == 1)
    for message in (
        state(names=('a', 'b')),
        state(names=('joint1',)),
        state(q=(np.nan, 0.0)),
        state(q=(0.1,)),
        state(external_torque=floats(np.array([np.inf, 0.0]))),
    ):
        for _ in range(10):
            rig.states.publish(message)
            time.sleep(0.01)
            shown.append(rig.watch.frame())
    assert set(shown) == {None}
    rig.until(lambda: rig.watch.frame() is not None, lambda: rig.states.publish(state()))
    rig.watch._on_browsers(0)


def test_the_description_comes_from_its_topic_where_no_file_is_named():
    rig = Rig(None)
    try:
        assert rig.watch.server is None
        rig.description.publish(String(data=two_link_urdf()))
        rig.until(lambda: rig.watch.server is not None, rig.watch.look)
        assert rig.watch._model.joint_names == ('joint1', 'joint2')
    finally:
        rig.close()


def test_a_port_that_is_taken_and_a_host_that_is_a_name_are_refused(rig, path):
    for parameters in ({'port': rig.watch.server.port}, {'host': 'example.com'}):
        with pytest.raises(RobodynError):
            Rig(path, **parameters)


def test_the_model_is_that_of_the_file(rig, path):
    assert rig.watch._model.n == RobotModel.from_urdf(path, tip_link='link2').n
