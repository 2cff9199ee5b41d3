# SPDX-License-Identifier: Apache-2.0
"""The documented parameter file and the node's table say the same."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs ROS 2')
yaml = pytest.importorskip('yaml')

from robodyn_ros.errors import InvalidNumber, UnknownOption, WrongShape  # noqa: E402
from robodyn_ros.ros.node_parameters import PARAMETERS, checked  # noqa: E402

pytestmark = pytest.mark.ros

CONFIG = Path(__file__).parents[1] / 'config' / 'dynamics_node.yaml'


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
        yaml.safe_load(CONFIG.read_text(encoding='utf-8'))['/**']['ros__parameters'])
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


@pytest.mark.parametrize('name, value, error', [
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
])
def test_value_outside_its_bounds_is_named(name, value, error):
    with pytest.raises(error, match=f'parameter {name}'):
        checked(defaults(**{name: value}))
