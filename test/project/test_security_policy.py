# SPDX-License-Identifier: Apache-2.0
"""The SROS2 policy allows the dynamics node what it does, and nothing else."""

from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import etree

POLICY = Path(__file__).parents[2] / 'sros2' / 'robodyn.policy.xml'
NODE = '/dynamics_node'
RULES = ('publish', 'subscribe', 'reply', 'request')

# What a node is allowed, though it does not do it without remapping or use_sim_time, or always.
ON_REQUEST = {
    'publish': {'/forward_effort_controller/commands'},
    'subscribe': {
        '/forward_effort_controller/commands',
        f'{NODE}/commands',
        '/clock',
        '/controller_manager/activity',
    },
    'reply': set(),
    'request': {'/controller_manager/switch_controller'},
}


def allowed(enclave):
    """Return the names that an enclave may publish, subscribe to, answer and ask, by rule."""
    result = {rule: set() for rule in RULES}
    profile = etree.parse(str(POLICY)).find(f'.//enclave[@path="/robodyn/{enclave}"]//profile')
    node = f'/{profile.get("node")}'
    for group in profile:
        for rule in RULES:
            if group.get(rule) == 'ALLOW':
                result[rule] |= {absolute(element.text, node) for element in group.iterfind('*')}
    return result


def absolute(name, node):
    if name.startswith('~'):
        return node + name[1:]
    return name if name.startswith('/') else f'/{name}'


@pytest.mark.longer
@pytest.mark.ros
def test_node_does_all_that_it_may_and_may_all_that_it_does(tmp_path, panda_urdf):
    pytest.importorskip('rclpy', reason='needs ROS 2')
    from node_rig import NodeRig

    policy = allowed('dynamics_node').items()
    rig = NodeRig(tmp_path / 'node.log')
    try:
        rig.start(urdf_file=panda_urdf, base_link='panda_link0', tip_link='panda_link8')
        rig.bring_up([0.1, -0.4, 0.2, -1.9, 0.3, 1.6, 0.7])
        # The graph is told of a node, and of the process that answers, in its own time.
        rig.until(lambda: NODE[1:] in rig.node.get_node_names())
        wanted = [(rule, may - ON_REQUEST[rule]) for rule, may in policy]
        rig.until(lambda: all(may <= done(rig.node)[rule] for rule, may in wanted))
        found = done(rig.node)
    finally:
        rig.close()
    for rule, may in policy:
        assert found[rule] - may == set(), rule


def done(node):
    """Return what the dynamics node is seen to do, by the policy's words."""
    return {
        'publish': names(node.get_publisher_names_and_types_by_node),
        'subscribe': names(node.get_subscriber_names_and_types_by_node),
        'reply': replies(node),
        'request': names(node.get_client_names_and_types_by_node),
    }


def replies(node):
    return {name for name, _ in node.get_service_names_and_types() if name.startswith(f'{NODE}/')}


def names(question):
    return {name for name, _ in question(NODE[1:], '/')}


@pytest.mark.ros
def test_feedforward_does_all_that_it_may_and_may_all_that_it_does():
    pytest.importorskip('rclpy', reason='needs ROS 2')
    from feedforward_rig import Rig

    rig = Rig(urdf_file='')  # it listens for the description where it is given no file
    try:
        found = done_by(rig.node)
    finally:
        rig.close()
    assert_done(found, 'feedforward')


@pytest.mark.ros
def test_monitor_does_all_that_it_may_and_may_all_that_it_does(tmp_path):
    rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
    from simulated_recordings import TrueArm

    from robodyn_ros.identification import DriveTerms, identify
    from robodyn_ros.ros.monitor_node import MonitorNode

    arm = TrueArm.drawn(2, 3)
    found = identify(arm.urdf, arm.recording(3, 12.0, rate=100.0), friction=DriveTerms())
    found.save(tmp_path / 'found.yaml')
    given = {'model': str(tmp_path / 'found.yaml'), 'efforts': 'torques'}
    with in_context(rclpy) as options:
        node = MonitorNode(**options(given))
        found = done_by(node)
        node.destroy_node()
    assert_done(found, 'monitor_node')


@pytest.mark.ros
def test_watch_does_all_that_it_may_and_may_all_that_it_does(tmp_path):
    rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
    pytest.importorskip('websockets', reason='websockets is not installed')
    from robots import two_link_urdf

    from robodyn_ros.ros.watch_node import WatchNode

    (tmp_path / 'arm.urdf').write_text(two_link_urdf())
    found = {rule: set() for rule in RULES}
    # It listens for the description where it is given no file, and to the node for a browser.
    with in_context(rclpy) as options:
        for path in ('', str(tmp_path / 'arm.urdf')):
            node = WatchNode(**options({'urdf_file': path, 'tip_link': 'link2', 'port': 0}))
            if path:
                node._on_browsers(1)
            for rule, names in done_by(node).items():
                found[rule] |= names
            node.destroy_node()
    assert_done(found, 'watch_node')


@contextmanager
def in_context(rclpy):
    """Yield what makes a node's arguments of its parameters, in a domain of its own."""
    import domains
    from rclpy.parameter import Parameter

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domains.claim())

    def options(parameters):
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        return {'context': context, 'parameter_overrides': overrides}

    try:
        yield options
    finally:
        rclpy.shutdown(context=context)


def done_by(node):
    """Return what a node of this process does, by the policy's words."""
    questions = (
        node.get_publisher_names_and_types_by_node,
        node.get_subscriber_names_and_types_by_node,
        node.get_service_names_and_types_by_node,
        node.get_client_names_and_types_by_node,
    )
    name = node.get_name()
    return {rule: {each for each, _ in ask(name, '/')} for rule, ask in zip(RULES, questions)}


def assert_done(found, enclave):
    for rule, may in allowed(enclave).items():
        # Topics and services of actions are allowed with them.
        is_done = {each for each in found[rule] if '/_action/' not in each}
        assert is_done == may - {'/clock'}, rule


@pytest.mark.parametrize(
    'enclave', ['driver', 'operator', 'observer', 'monitor_node', 'watch_node']
)
def test_others_may_only_what_the_nodes_take_and_give(enclave):
    filler, other = allowed('feedforward'), allowed(enclave)
    node = {rule: names | filler[rule] for rule, names in allowed('dynamics_node').items()}
    shared = {'/parameter_events', '/rosout', '/diagnostics'}
    assert other['publish'] - node['subscribe'] <= shared | {'/clock'}
    fed_by_the_driver = {'/joint_states', '/robot_description', '/clock'}
    assert other['subscribe'] - node['publish'] <= shared | fed_by_the_driver
    assert other['request'] <= node['reply']
    assert {name for name in other['reply'] if not name.startswith(f'/{enclave}/')} == set()


def test_only_the_driver_publishes_where_the_joints_are_and_only_the_node_commands():
    for enclave in ('operator', 'observer', 'monitor_node', 'watch_node'):
        published = allowed(enclave)['publish']
        assert '/joint_states' not in published
        assert not any('commands' in name or 'torques' in name for name in published)


def test_observer_changes_nothing():
    asked = allowed('observer')['request']
    assert not any(word in name for name in asked for word in ('/set_', 'enable', 'change_state'))
