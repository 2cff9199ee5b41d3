# SPDX-License-Identifier: Apache-2.0
"""The nodes' parameters are read from their files, checked, and written for users."""

import re
from dataclasses import replace

import numpy as np
import pytest
from control_arm import TWO_JOINTS
from controllers_package import PACKAGE
from refusals import refusal

from robodyn_ros.control.command_pipeline import core_settings
from robodyn_ros.control.core_binding import core
from robodyn_ros.control.settings import PARAMETERS, ControlSettings, check_live, checked
from robodyn_ros.errors import InvalidArgument
from robodyn_ros.ros_parameters import FOLDER, parameters_in, parameters_of

CONTROLLERS = (PACKAGE / 'src').glob('*.yaml') if PACKAGE else ()
FILES = sorted([*FOLDER.glob('*.yaml'), *CONTROLLERS])
TYPES = {'bool': bool, 'integer': int, 'double': float, 'string': str}

FILE = """
node:
  speed:
    type: double
    default_value: 1.0
    description: "Speed [m/s]."
    validation:
      gt<>: [0.0]
"""


@pytest.fixture
def read(tmp_path):
    """Return a function that reads parameters from a text."""

    def parameters(text):
        (tmp_path / 'node.yaml').write_text(text)
        return parameters_in(tmp_path / 'node.yaml')

    return parameters


# --- the files ---------------------------------------------------------------------------------


def test_every_default_is_of_its_type_and_allowed_and_has_one_name():
    for path in FILES:
        parameters = parameters_in(path)
        for parameter in parameters:
            where = (path.stem, parameter.name)
            values = parameter.default if parameter.is_array else (parameter.default,)
            assert {type(v) for v in values} <= {TYPES[parameter.kind.removesuffix('[]')]}, where
            assert parameter.description.endswith('.'), where
            if parameter.rules.keys().isdisjoint({'not_empty', 'fixed_size'}):
                assert parameter.checked(parameter.default) == parameter.default, where
            assert [p.name for p in parameters].count(parameter.name) == 1, where


def test_the_generator_itself_accepts_every_file():
    parser = pytest.importorskip('generate_parameter_library_py.parse_yaml')
    for path in FILES:
        generated = parser.GenerateCode('cpp')
        generated.parse(str(path), 'validators.hpp')
        text = str(generated)
        for parameter in parameters_in(path):
            if parameter.file == path.stem:
                declared = f'declare_parameter(prefix_ + "{parameter.name}"'
                assert declared in text, (path.stem, parameter.name)


def test_what_nodes_share_is_written_once():
    names = {p.name for p in parameters_of('feedforward')}
    assert {'urdf_file', 'terms.gravity', 'terms.friction', 'effort_limits', 'controller'} <= names
    assert not {'kp', 'mode', 'watchdog_period'} & names
    assert [p.name for p in parameters_of('motion_node')][:3] == [
        'urdf_file', 'base_link', 'tip_link',
    ]  # fmt: skip


# --- the reader --------------------------------------------------------------------------------


def test_parameter_is_read_as_it_is_written(read):
    (speed,) = read(FILE)
    assert (speed.name, speed.kind, speed.default) == ('speed', 'double', 1.0)
    assert (speed.allowed, speed.change) == ('positive', 'at any time')


def test_word_that_the_format_does_not_have_is_refused(read):
    for word, other in (('description', 'descripton'), ('gt', 'greater')):
        with pytest.raises(ValueError, match=f'parameter speed has {other}'):
            read(FILE.replace(word, other))


def test_shared_name_that_is_not_there_is_refused(read):
    for names in ('[no_such]', '[term]', '[urdf]'):
        said = refusal(ValueError, read, f'{FILE}---\nshared:\n  robot: {names}\n')
        assert 'robot has no parameter' in said, names


def test_rule_refuses_what_it_excludes(read):
    for rule, bad in (
        ('gt<>: [0.0]', 0.0),
        ('gt_eq<>: [0.5]', 0.4),
        ('gt_eq<>: [0.5]', 2e9),
        ('bounds<>: [0.0, 2.0]', 2.1),
        ('bounds<>: [0.0, 2.0]', np.nan),
        ('robodyn::not_zero: null', -0.0),
        ('robodyn::not_zero: null', np.inf),
        ('robodyn::not_zero: null', 2e9),
    ):
        (parameter,) = read(FILE.replace('gt<>: [0.0]', rule))
        assert parameter.checked(1.0) == 1.0, rule
        wanted = f'parameter speed: .*allowed: {parameter.allowed}'
        assert re.search(wanted, refusal(InvalidArgument, parameter.checked, bad)), (rule, bad)


def test_text_that_must_be_given_is_refused_where_it_is_empty():
    (motion,) = [p for p in parameters_of('motion_node') if p.name == 'motion_file']
    assert motion.checked('a.csv') == 'a.csv'
    with pytest.raises(InvalidArgument, match='parameter motion_file.*not empty'):
        motion.checked('')


# --- the dynamics node's -----------------------------------------------------------------------


def test_the_core_takes_each_parameter_of_the_pipeline_by_its_name():
    given = {parameter.name.replace('.', '_') for parameter in parameters_of('command_pipeline')}
    # Beside a factor of the effort limits, and the rate of a topic.
    assert {*core.SETTINGS, 'effort_limit_scale', 'state_publish_rate'} == given


def test_the_core_takes_each_choice_and_refuses_others():
    def take(name, value):
        settings = replace(TWO_JOINTS.settings(), **{name.replace('.', '_'): value})
        core_settings(settings, TWO_JOINTS.reference_limits)

    chosen = [each for each in parameters_of('command_pipeline') if each.choices]
    assert len(chosen) == 5
    for parameter in chosen:
        for choice in parameter.choices:
            take(parameter.name, choice)
        with pytest.raises(ValueError, match=f"{parameter.name}: 'other'; allowed: .*") as raised:
            take(parameter.name, 'other')
        assert str(raised.value).endswith('allowed: ' + ', '.join(parameter.choices))


def test_settings_are_the_defaults_where_nothing_is_given():
    assert checked({}) == ControlSettings()
    assert checked({p.name: p.default for p in PARAMETERS}) == ControlSettings()
    assert ControlSettings().terms_gravity is True and ControlSettings().kp == (100.0,)


def test_arrays_become_tuples_without_the_empty_text_of_ros():
    settings = checked({'joints': [''], 'kp': [1.0, 2.0], 'effort_limits': None})
    assert (settings.joints, settings.kp, settings.effort_limits) == ((), (1.0, 2.0), ())


def test_value_outside_its_bounds_is_named():
    for name, value in (
        ('mode', 'impedance'),
        ('algorithm', 'magic'),
        ('on_stop', 'drop'),
        ('ramp_time', -0.1),
        ('state_timeout', 0.0),
        ('watchdog_period', np.nan),
        ('effort_limit_scale', 1.5),
        ('kp', [100.0, -1.0]),
        ('kd', [np.inf]),
        ('effort_limits', [0.0]),
        ('wrench_point', [np.nan, 0.0, 0.0]),
        ('gravity', [0.0, -9.81]),
        ('command_scale', [1.0, 0.0]),
        ('effort_scale', [1.0, -np.inf]),
    ):
        assert f'parameter {name}' in refusal(InvalidArgument, checked, {name: value}), name


def test_negative_scale_is_a_reversed_drive():
    assert checked({'command_scale': [-12.0]}).command_scale == (-12.0,)


def test_parameter_that_is_not_live_is_refused_with_the_reason():
    for name in ('urdf_file', 'effort_limits', 'observer_gain', 'autostart'):
        said = refusal(InvalidArgument, check_live, ['kp', name])
        assert re.search(f'{name}.*configured.*before configure', said), name


def test_parameters_that_are_live_may_change_while_configured():
    check_live([p.name for p in PARAMETERS if p.change == 'at any time'])
    check_live(['kp', 'mode', 'terms.gravity', 'on_contact', 'damping', 'unknown'])


def test_gravity_refused_while_configured_names_the_service():
    with pytest.raises(InvalidArgument, match='set_gravity'):
        check_live(['gravity'])
