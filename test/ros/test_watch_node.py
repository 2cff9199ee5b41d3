# SPDX-License-Identifier: Apache-2.0
"""watch_node beside a node that reports an arm: what reaches a browser, and when it subscribes."""

from __future__ import annotations

import contextlib
import json
import time

import domains
import numpy as np
import pytest
from graph_rig import GraphRig
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import public_urdf, two_link_urdf

pytest.importorskip('websockets', reason='websockets is not installed: pip install websockets')
from std_msgs.msg import String
from websockets.sync.client import connect

from robodyn_interfaces.msg import Contact, DynamicsState
from robodyn_ros import RobotModel, jacobian
from robodyn_ros.errors import RobodynError
from robodyn_ros.report.watch_page import JOINT_NUMBERS, PARTS
from robodyn_ros.ros.conversions import floats
from robodyn_ros.ros.qos import LATCHED
from robodyn_ros.ros.watch_node import WatchNode, main

pytestmark = pytest.mark.ros

PATIENCE = 60.0


class Rig(GraphRig):
    """A reporting node, and watch_node, in one process and domain."""

    def __init__(self, path, **parameters):
        super().__init__('dynamics_node')
        self.states = self.node.create_publisher(DynamicsState, '~/dynamics_state', 10)
        self.contacts = self.node.create_publisher(Contact, '~/contact', LATCHED)
        self.description = self.node.create_publisher(String, 'robot_description', LATCHED)
        given = {'port': 0, 'rate': 60.0, 'tip_link': 'link2', **parameters}
        if path is not None:
            given['urdf_file'] = str(path)
        self.watch = WatchNode(
            context=self.context,
            parameter_overrides=[Parameter(name, value=value) for name, value in given.items()],
        )

    def browser(self):
        server = self.watch.server
        return connect(
            f'ws://127.0.0.1:{server.port}/live',
            origin=f'http://127.0.0.1:{server.port}',
            open_timeout=20,
        )

    def close(self):
        self.watch.destroy_node()
        self.watch.destroy_node()
        super().close()


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
    n = len(q)
    values = {name: floats(np.arange(1.0, n + 1.0)) for name, _, _ in PARTS}
    values |= {'position': floats(np.array(q)), 'velocity': floats(np.zeros(n))}
    values |= {'total': floats(6.0 * np.arange(1.0, n + 1.0))}
    return DynamicsState(joint_names=list(names), mode='feedforward', **values, **changes)


def read(frame):
    """Return what a frame says, as watch.js reads it."""
    start = 4 + int.from_bytes(frame[:4], 'little')
    *joints, x, y, z = np.frombuffer(frame[start:]).tolist()
    n = len(joints) // len(JOINT_NUMBERS)
    told = {name: joints[k * n : (k + 1) * n] for k, name in enumerate(JOINT_NUMBERS)}
    return {**json.loads(frame[4:start]), **told, 'force': [x, y, z]}


def test_a_browser_receives_pose_torques_and_contact(rig):
    assert rig.node.count_subscribers('/dynamics_node/dynamics_state') == 0
    with rig.browser() as browser:
        rig.until_subscribed(rig.states)
        rig.until_subscribed(rig.contacts)
        rig.contacts.publish(Contact(link='link2'))
        told = {}
        deadline = time.monotonic() + PATIENCE
        while not told.get('link'):
            assert time.monotonic() < deadline
            rig.states.publish(state(in_contact=True, external_torque=floats(np.ones(2))))
            time.sleep(0.02)
            try:
                told = read(browser.recv(timeout=0.05))
            except TimeoutError:
                continue
    assert told['position'] == [0.3, 0.7] and told['total'] == [6.0, 12.0]
    assert told['gravity'] == [1.0, 2.0] and told['external_torque'] == [1.0, 1.0]
    assert told['contact'] is True and told['link'] == 'link2' and told['mode'] == 'feedforward'
    # Without a browser it costs the node nothing: it is not even subscribed.
    rig.until(lambda: rig.states.get_subscription_count() == 0)


def test_the_force_is_that_of_the_external_torques_in_the_base_links_axes():
    path = public_urdf('panda.urdf')
    model = RobotModel.from_urdf(path, tip_link='panda_link8')
    q, force = np.array([0.3, -0.5, 0.2, -2.0, 0.1, 1.6, 0.8]), np.array([20.0, -10.0, 15.0])
    torque = jacobian(model, q)[:3].T @ force
    rig = Rig(path, tip_link='panda_link8')
    told = []

    def look(**changes):
        told.clear()
        message = state(q, model.joint_names, **changes)
        rig.until(
            lambda: rig.states.publish(message) or told.append(rig.watch.frame()) or told[-1]
        )
        return read(told[-1])

    try:
        rig.watch._on_browsers(1)
        rig.until(lambda: rig.states.get_subscription_count() == 1)
        shown = look(external_torque=floats(torque))['force']
        assert np.isnan(look()['force']).all()  # nothing is estimated
    finally:
        rig.close()
    np.testing.assert_allclose(shown, force, atol=2.0)


def test_another_arms_states_and_what_is_no_state_are_not_shown(rig):
    shown = []
    rig.watch._on_browsers(1)
    rig.until(lambda: rig.states.get_subscription_count() == 1)
    sound = serialize_message(state())
    for message in (
        state(names=('a', 'b')),
        state(names=('joint1',)),
        state(q=(0.1,)),
        sound[:-40],
        sound[:40] + b'\xff' * 40,
        b'',
    ):
        for _ in range(10):
            rig.states.publish(message)
            time.sleep(0.01)
            shown.append(rig.watch.frame())
    assert set(shown) == {None}
    rig.until(lambda: rig.watch.frame() is not None, lambda: rig.states.publish(state()))
    rig.watch._on_browsers(0)


NO_MESSAGES = [b'', b'\0\1\0\0' + b'\xff' * 64, b'\0\1\0\0' + b'\0' * 8 + b'\xff\xff\xff\x0f']


def test_a_contact_that_is_none_ends_no_page(rig):
    with rig.browser() as browser:
        rig.until_subscribed(rig.states)
        rig.until_subscribed(rig.contacts)
        shown = []

        def publish():
            for bad in NO_MESSAGES:
                rig.contacts.publish(bad)
            rig.states.publish(state())
            rig.watch.look()
            with contextlib.suppress(TimeoutError):
                shown.append(browser.recv(timeout=0.05))

        rig.until(lambda: len(shown) >= 3, publish)


def test_a_description_from_the_topic_is_waited_for_past_those_that_are_none():
    rig = Rig(None)
    try:
        rig.until(lambda: rig.description.get_subscription_count() == 1)
        for bad in NO_MESSAGES:
            rig.description.publish(bad)
            for _ in range(10):
                rig.watch.look()
                time.sleep(0.01)
        rig.description.publish(String(data=two_link_urdf()))
        rig.until(lambda: rig.watch.server is not None, rig.watch.look)
        assert rig.watch._model.joint_names == ('joint1', 'joint2')
    finally:
        rig.close()


def test_the_process_ends_where_its_page_has_ended(path, monkeypatch, capfd):
    def broken(node):
        raise ValueError('a bug')

    monkeypatch.setattr(WatchNode, 'frame', broken)
    monkeypatch.setattr(WatchNode, 'look', opening_a_browser(WatchNode.look))
    domain = {'ROS_DOMAIN_ID': str(domains.claim())}
    for name, value in domain.items():
        monkeypatch.setenv(name, value)
    given = [f'urdf_file:={path}', 'tip_link:=link2', 'port:=0']
    assert main(['--ros-args', *(part for each in given for part in ('-p', each))]) == 1
    assert "page: ValueError('a bug')" in capfd.readouterr().err


def opening_a_browser(look):
    """Return a look that opens a browser first."""

    def both(node):
        if not node.browsers:
            port = node.server.port
            live = f'ws://127.0.0.1:{port}/live', f'http://127.0.0.1:{port}'
            node.browsers.append(connect(live[0], origin=live[1], open_timeout=20))
        look(node)

    WatchNode.browsers = []
    return both


def test_a_port_that_is_taken_and_a_host_that_is_a_name_are_refused(rig, path):
    for parameters in ({'port': rig.watch.server.port}, {'host': 'example.com'}):
        with pytest.raises(RobodynError):
            Rig(path, **parameters)
