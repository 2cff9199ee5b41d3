# SPDX-License-Identifier: Apache-2.0
"""The documented parameter file and the node's table say the same."""

import re
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


# What users may rely on: type, what is allowed, and when it may change.
MANY = 1e9
ACTIONS = 'one of hold_gravity, zero, silent'
DECLARED = {
    'urdf_file': ('STRING',),
    'identified_model': ('STRING',),
    'base_link': ('STRING',),
    'tip_link': ('STRING',),
    'joints': ('STRING_ARRAY',),
    'algorithm': ('STRING', 'one of compiled, newton_euler, kane'),
    'gravity': ('DOUBLE_ARRAY', 'each finite'),
    'mode': ('STRING', 'one of gravity_compensation, feedforward, computed_torque'),
    'kp': ('DOUBLE_ARRAY', 'each at least 0'),
    'kd': ('DOUBLE_ARRAY', 'each at least 0'),
    'terms.inertial': ('BOOL',),
    'terms.coriolis': ('BOOL',),
    'terms.gravity': ('BOOL',),
    'terms.friction': ('BOOL',),
    'friction_velocity': ('DOUBLE', 1e-6, MANY),
    'ramp_time': ('DOUBLE', 0.0, 60.0),
    'state_timeout': ('DOUBLE', 0.001, 60.0),
    'watchdog_period': ('DOUBLE', 0.001, 1.0),
    'on_stale_state': ('STRING', ACTIONS),
    'stale_hold_time': ('DOUBLE', 0.0, 3600.0),
    'on_stop': ('STRING', ACTIONS),
    'effort_limits': ('DOUBLE_ARRAY', 'each positive'),
    'effort_limit_scale': ('DOUBLE', 0.0, 1.0),
    'torque_rate_limit': ('DOUBLE_ARRAY', 'each at least 0'),
    'max_reference_step': ('DOUBLE', 1e-6, MANY),
    'max_following_error': ('DOUBLE', 0.0, MANY),
    'braking_acceleration': ('DOUBLE_ARRAY', 'each positive'),
    'damping': ('DOUBLE', 0.0, 1000.0),
    'position_guard': ('DOUBLE', 0.0, MANY),
    'effort_scale': ('DOUBLE_ARRAY', 'each finite, not 0'),
    'command_scale': ('DOUBLE_ARRAY', 'each finite, not 0'),
    'controller_manager': ('STRING',),
    'controller': ('STRING',),
    'on_contact': ('STRING', 'one of report, stop, float'),
    'contact_threshold_moving': ('DOUBLE_ARRAY', 'each positive'),
    'contact_threshold_standing': ('DOUBLE_ARRAY', 'each positive'),
    'contact_dwell': ('DOUBLE', 0.0, 10.0),
    'observer_gain': ('DOUBLE_ARRAY', 'each 0.001 to 10000'),
    'observed_effort': ('STRING', 'one of commanded, measured'),
    'wrench_point': ('DOUBLE_ARRAY', 'each finite'),
    'external_effort_topic': ('STRING',),
    'external_effort_scale': ('DOUBLE_ARRAY', 'each finite'),
    'external_effort_limit': ('DOUBLE_ARRAY', 'each at least 0'),
    'autostart': ('BOOL',),
}
BEFORE_CONFIGURE = (
    'urdf_file identified_model base_link tip_link joints algorithm gravity watchdog_period'
    ' effort_limits effort_scale command_scale controller_manager controller'
    ' contact_threshold_moving'
    ' contact_threshold_standing contact_dwell observer_gain observed_effort wrench_point'
    ' external_effort_topic external_effort_scale external_effort_limit'.split()
)
WHEN = {
    **dict.fromkeys(DECLARED, 'at any time'),
    **dict.fromkeys(BEFORE_CONFIGURE, 'before configure'),
    'autostart': 'never',
}


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
        if parameter.name == 'joints' or parameter.default == ():
            continue
        value = documented.pop(parameter.name)
        wanted = list(parameter.default) if isinstance(value, list) else parameter.default
        assert value == wanted and type(value) is type(wanted), parameter.name
    assert documented == {'joints': ['']}


def test_parameter_file_says_of_every_parameter_when_it_may_change():
    # What stands there commented out, as an example, counts too.
    given_or_not = (
        '# (effort_limits|braking_acceleration|effort_scale|command_scale|external_effort_limit|'
        'contact_threshold_moving|contact_threshold_standing):'
    )
    text = re.sub(given_or_not, r'\1:', CONFIG.read_text(encoding='utf-8'))
    entries = re.findall(r'^ +(\w+):(.*\n(?: *#.*\n|\n)*)', text.partition('parameters:')[2], re.M)
    comments = iter(entries)
    for name in flattened(yaml.safe_load(text)['/**']['ros__parameters']):
        key, comment = next(comments)
        if key == 'terms':
            key, comment = next(comments)
        assert key == name.split('.')[-1]
        when = re.findall(r'\[(configure|start)\]', comment)
        assert when == {'before configure': ['configure'], 'never': ['start']}.get(
            WHEN[name], []
        ), name
    assert next(comments, None) is None
    assert set(flattened(yaml.safe_load(text)['/**']['ros__parameters'])) == set(WHEN)


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
        *(
            (name, [1.0, value], InvalidNumber)
            for name in ('effort_scale', 'command_scale')
            for value in (0.0, -0.0, np.nan, np.inf, -np.inf)
        ),
    ],
)
def test_value_outside_its_bounds_is_named(name, value, error):
    with pytest.raises(error, match=f'parameter {name}'):
        checked(defaults(**{name: value}))


def test_negative_scale_is_a_reversed_drive():
    assert checked(defaults(command_scale=[-12.0])).command_scale == (-12.0,)


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


@pytest.mark.parametrize('name', WHEN)
def test_every_parameter_is_declared_with_its_type_range_and_description(name, descriptors):
    from rcl_interfaces.msg import ParameterType

    descriptor = descriptors[0][name]
    kind, *allowed = DECLARED[name]
    assert descriptor.type == getattr(ParameterType, f'PARAMETER_{kind}')
    assert descriptor.description.endswith('.')
    assert descriptor.read_only == (WHEN[name] == 'never')
    assert descriptor.additional_constraints.split('; ', 1)[-1].startswith(
        f'may change {WHEN[name]}'
    )
    ranges = [(r.from_value, r.to_value) for r in descriptor.floating_point_range]
    if kind == 'DOUBLE':
        assert ranges == [tuple(allowed)]
    else:
        assert ranges == []
        constraints = descriptor.additional_constraints.rpartition('may change')[0]
        assert constraints.rstrip('; ') == ''.join(allowed)


def test_no_other_parameter_is_declared(descriptors):
    assert {parameter.name for parameter in PARAMETERS} == set(WHEN)


def test_parameter_that_is_read_only_cannot_be_set(descriptors):
    from rclpy.parameter import Parameter

    _, node = descriptors
    (result,) = node.set_parameters([Parameter('autostart', value=False)])
    assert not result.successful and 'read-only' in result.reason


@pytest.mark.parametrize('name', [*BEFORE_CONFIGURE, 'autostart'])
def test_parameter_that_is_not_live_is_refused_with_the_reason(name):
    with pytest.raises(UnknownOption, match=f'{name}.*configured.*before configure'):
        check_live([name])


def test_parameters_that_are_live_may_change_while_configured():
    check_live([name for name, when in WHEN.items() if when == 'at any time'])


def test_gravity_refused_while_configured_names_the_service():
    with pytest.raises(UnknownOption, match='set_gravity'):
        check_live(['gravity'])


def test_docs_table_is_made_from_the_declarations():
    sys.path.insert(0, str(CONFIG.parents[1] / 'docs'))
    from write_parameter_table import PAGE, with_table

    written = PAGE.read_text(encoding='utf-8')
    assert '`effort_limit_scale`' in with_table(written)
    assert with_table(written) == written, 'run: python docs/write_parameter_table.py'
