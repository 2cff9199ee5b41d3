# SPDX-License-Identifier: Apache-2.0
"""What a user gives as parameters: taken as it is meant, or refused with the right name."""

import re

import domains
import pytest
from refusals import refusal
from robots import two_link_urdf

rclpy = pytest.importorskip('rclpy', reason='needs ROS 2')
pytest.importorskip('mujoco')

from rcl_interfaces.msg import ParameterType  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from robodyn_ros import RobotModel  # noqa: E402
from robodyn_ros.control.settings import PARAMETERS  # noqa: E402
from robodyn_ros.errors import InvalidArgument, UnsupportedJoint  # noqa: E402
from robodyn_ros.ros import parameter_overrides  # noqa: E402
from robodyn_ros.ros.parameter_overrides import declare, similar_name  # noqa: E402
from robodyn_ros.ros_parameters import parameters_of  # noqa: E402

pytestmark = pytest.mark.ros

NAMES = [parameter.name for parameter in PARAMETERS]


@pytest.fixture(scope='module')
def context():
    result, domain = rclpy.Context(), domains.claim()
    rclpy.init(context=result, domain_id=domain)
    yield result
    rclpy.shutdown(context=result)
    domains.release(domain)


@pytest.fixture
def node_with(context):
    """Return a function that makes a node with these parameters on its command line."""
    nodes = []

    def make(*rules):
        words = ['--ros-args']
        for rule in rules:
            words += ['-p', rule]
        nodes.append(Node('dynamics_node', context=context, cli_args=words))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()


@pytest.fixture
def values(node_with):
    """Return a function that gives the dynamics node's parameters with these on top."""

    def of(*rules):
        node = node_with(*rules)
        declare(node, PARAMETERS, is_lifecycle=True)
        return parameter_overrides.values(node, PARAMETERS)

    return of


# --- as it is meant ----------------------------------------------------------------------------


def test_value_is_taken_as_it_is_meant(values):
    for rule, value in (
        ('kp:=100.0', [100.0]),
        ('kp:=100', [100.0]),
        ('kp:=[100,50]', [100.0, 50.0]),
        ('kp:=[1.5]', [1.5]),
        ('effort_limits:=50', [50.0]),
        ('gravity:=[0,0,-9]', [0.0, 0.0, -9.0]),
        ('ramp_time:=1', 1.0),
        ('max_following_error:=0', 0.0),
        ('joints:=shoulder', ['shoulder']),
        ('joints:=[]', ['']),
        ('effort_limits:=[]', []),
        ('mode:=feedforward', 'feedforward'),
        ('terms.gravity:=false', False),
    ):
        found = values(rule)[rule.partition(':=')[0]]
        found = list(found) if isinstance(value, list) else found
        # repr: 100 is not 100.0, and 0 is not false.
        assert repr(found) == repr(value), rule


def test_value_of_another_type_is_refused_with_what_is_meant(values):
    for rule, wanted in (
        ('kp:=fast', 'parameter kp.*fast.*a number, or a list of numbers'),
        ('ramp_time:=[1.0]', 'parameter ramp_time.*a number'),
        ('terms.gravity:=0', 'parameter terms.gravity.*true or false'),
        ('autostart:=maybe', 'parameter autostart.*true or false'),
        ('kp:=[]', 'parameter kp.*a number'),
        ('mode:=3', 'parameter mode.*text'),
    ):
        assert re.search(wanted, refusal(InvalidArgument, values, rule)), rule


# --- names -------------------------------------------------------------------------------------


def test_name_that_is_almost_one_of_ours_is_known():
    for name, meant in (
        ('kpp', 'kp'),
        ('KP', 'kp'),
        ('k_d', 'kd'),
        ('effort_limits_scale', 'effort_limit_scale'),
        ('effort-limit-scale', 'effort_limit_scale'),
        ('torque_rate_limits', 'torque_rate_limit'),
        ('joint', 'joints'),
        (
            'terms',
            'terms.inertial, terms.coriolis, terms.gravity, terms.friction, terms.gravity_factor',
        ),
        ('terms.gravty', 'terms.gravity'),
        ('term.gravity', 'terms.gravity'),
        ('terms_gravity', 'terms.gravity'),
        (
            'terms.x',
            'terms.inertial, terms.coriolis, terms.gravity, terms.friction, terms.gravity_factor',
        ),
        ('kp.panda_joint1', 'kp'),
        ('max_follow_error', 'max_following_error'),
        ('on_stale', ''),
        ('gain_p', ''),
        ('robot_description', ''),
        ('update_rate', ''),
        ('qos', ''),
        ('terms.' + 'x' * 100_000, ''),
    ):
        assert similar_name(name, NAMES) == meant, name


def test_every_slip_of_one_letter_is_known():
    for name in NAMES:
        for k in range(len(name)):
            for slip in (name[:k] + name[k + 1 :], name[:k] + 'x' + name[k:]):
                if len(slip) >= 3 and slip not in NAMES:
                    assert similar_name(slip, NAMES), slip


# --- declared ----------------------------------------------------------------------------------


def test_every_parameter_is_declared_as_its_file_says(node_with):
    node = node_with()
    declare(node, PARAMETERS, is_lifecycle=True)
    for parameter in PARAMETERS:
        descriptor = node.describe_parameter(parameter.name)
        assert descriptor.description == parameter.description
        assert f'may change {parameter.change}' in descriptor.additional_constraints
        assert parameter.allowed in descriptor.additional_constraints
        ranges = [(r.from_value, r.to_value) for r in descriptor.floating_point_range]
        assert ranges == ([parameter.bounds] if parameter.kind == 'double' else [])


def test_lifecycle_node_declares_read_only_what_is_read_at_start(node_with):
    node = node_with()
    declare(node, PARAMETERS, is_lifecycle=True)
    for name, kind, is_read_only in (
        ('kp', 'DOUBLE_ARRAY', False),
        ('effort_limits', 'DOUBLE_ARRAY', False),
        ('joints', 'STRING_ARRAY', False),
        ('ramp_time', 'DOUBLE', False),
        ('mode', 'STRING', False),
        ('autostart', 'BOOL', True),
    ):
        descriptor = node.describe_parameter(name)
        assert descriptor.type == getattr(ParameterType, f'PARAMETER_{kind}'), name
        assert descriptor.read_only is is_read_only, name
    (result,) = node.set_parameters([Parameter('autostart', value=False)])
    assert not result.successful and 'read-only' in result.reason


def test_plain_node_lets_no_parameter_change(node_with):
    node = node_with()
    declare(node, parameters_of('feedforward'))
    assert all(node.describe_parameter(p.name).read_only for p in parameters_of('feedforward'))


# --- what the library lets a caller choose ------------------------------------------------------


def test_what_a_caller_of_the_library_may_choose_is_said_as_what_a_user_of_the_node_can_do():
    mimic = two_link_urdf().replace('<axis', '<mimic joint="joint2"/><axis', 1)
    with pytest.raises(UnsupportedJoint) as refused:
        RobotModel.from_urdf(mimic)
    # Told by its data: whatever else the sentence says.
    refused.value.allowed = 'another sentence'
    text = parameter_overrides.in_parameters(refused.value)
    assert text.endswith(
        'allowed: another sentence, a tip_link before it, or a URDF without its <mimic> where it '
        'has a drive of its own'
    )
