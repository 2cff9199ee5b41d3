# SPDX-License-Identifier: Apache-2.0
"""The documented parameter file and the node's table say the same."""

import sys
from pathlib import Path

import domains
import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
yaml = pytest.importorskip('yaml')

from robodyn_ros.control.parameter_table import PARAMETERS, check_live, checked  # noqa: E402
from robodyn_ros.errors import InvalidNumber, UnknownOption, WrongShape  # noqa: E402
from robodyn_ros.ros.dynamics.node_parameters import declare  # noqa: E402

pytestmark = pytest.mark.ros

CONFIG = Path(__file__).parents[3] / 'config' / 'dynamics_node.yaml'


def defaults(**changes):
    return {**{parameter.name: parameter.default for parameter in PARAMETERS}, **changes}


def flattened(tree, prefix=''):
    result = {}
    for name, value in tree.items():
        if isinstance(value, dict):
            result.update(flattened(value, f'{prefix}{name}.'))
        else:
            result[prefix + name] = value
    return result


def test_parameter_file_holds_the_defaults_of_the_table():
    documented = flattened(
        yaml.safe_load(CONFIG.read_text(encoding='utf-8'))['/**']['ros__parameters']
    )
    for parameter in PARAMETERS:
        if parameter.name in ('joints', 'effort_limits'):
            continue
        value = documented.pop(parameter.name)
        wanted = list(parameter.default) if isinstance(value, list) else parameter.default
        assert value == wanted and type(value) is type(wanted), parameter.name
    assert documented == {'joints': ['']}


def test_parameter_file_mentions_every_parameter():
    text = CONFIG.read_text(encoding='utf-8')
    for parameter in PARAMETERS:
        assert parameter.name.split('.')[-1] + ':' in text


def test_default_values_pass_their_own_check():
    assert checked(defaults()).mode == 'gravity_compensation'


@pytest.mark.parametrize(
    'name, value, error',
    [
        ('mode', 'impedance', UnknownOption),
        ('algorithm', 'magic', UnknownOption),
        ('on_stop', 'drop', UnknownOption),
        ('ramp_time', -0.1, InvalidNumber),
        ('state_timeout', 0.0, InvalidNumber),
        ('watchdog_period', np.nan, InvalidNumber),
        ('effort_limit_scale', 1.5, InvalidNumber),
        ('kp', [100.0, -1.0], InvalidNumber),
        ('kd', [np.inf], InvalidNumber),
        ('effort_limits', [0.0], InvalidNumber),
        ('gravity', [0.0, -9.81], WrongShape),
    ],
)
def test_value_outside_its_bounds_is_named(name, value, error):
    with pytest.raises(error, match=f'parameter {name}'):
        checked(defaults(**{name: value}))


@pytest.fixture(scope='module')
def descriptors():
    """What a node has declared, by name."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domains.claim())
    node = rclpy.create_node('parameters', context=context)
    declare(node)
    yield {p.name: node.describe_parameter(p.name) for p in PARAMETERS}, node
    node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize('parameter', PARAMETERS, ids=lambda p: p.name)
def test_every_parameter_is_declared_with_its_type_range_and_description(parameter, descriptors):
    from rcl_interfaces.msg import ParameterType

    descriptor = descriptors[0][parameter.name]
    types = {
        'bool': ParameterType.PARAMETER_BOOL,
        'string': ParameterType.PARAMETER_STRING,
        'double': ParameterType.PARAMETER_DOUBLE,
        'double[]': ParameterType.PARAMETER_DOUBLE_ARRAY,
        'string[]': ParameterType.PARAMETER_STRING_ARRAY,
    }
    assert descriptor.type == types[parameter.kind]
    assert descriptor.description.endswith(('.', 'off.'))
    assert descriptor.read_only == (parameter.name == 'autostart')
    assert parameter.change in descriptor.additional_constraints
    for choice in parameter.choices:
        assert choice in descriptor.additional_constraints
    if parameter.kind == 'double':
        (allowed,) = descriptor.floating_point_range
        assert (allowed.from_value, allowed.to_value) == parameter.bounds
    if parameter.kind == 'double[]':
        assert 'each' in descriptor.additional_constraints


def test_parameter_that_is_read_only_cannot_be_set(descriptors):
    from rclpy.parameter import Parameter

    _, node = descriptors
    (result,) = node.set_parameters([Parameter('autostart', value=False)])
    assert not result.successful and 'read-only' in result.reason


@pytest.mark.parametrize(
    'parameter', [p for p in PARAMETERS if not p.is_live], ids=lambda p: p.name
)
def test_parameter_that_is_not_live_is_refused_with_the_reason(parameter):
    with pytest.raises(UnknownOption, match=f'{parameter.name}.*configured.*before configure'):
        check_live([parameter.name])


def test_gravity_refused_while_configured_names_the_service():
    with pytest.raises(UnknownOption, match='set_gravity'):
        check_live(['gravity'])


def test_docs_table_is_made_from_the_declarations():
    sys.path.insert(0, str(CONFIG.parents[1] / 'docs'))
    from write_parameter_table import REFERENCE, reference

    written = REFERENCE.read_text(encoding='utf-8')
    assert written == reference(), 'run: python docs/write_parameter_table.py'
