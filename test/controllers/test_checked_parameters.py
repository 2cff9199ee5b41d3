# SPDX-License-Identifier: Apache-2.0
"""The controller's conversion of parameters against the node's, without ros2_control."""

import ctypes
import subprocess

import numpy as np
import pytest
from controller_core import (
    STRICT,
    cpp_compiler,
    exported,
    headers,
    pointer,
    setting_numbers,
    shared_model,
)
from controllers_package import controllers_package
from urdf_parts import joint, link, robot

import robodyn_ros as rd
from robodyn_ros import ros_parameters
from robodyn_ros.control.control_stack import reference_limits
from robodyn_ros.control.settings import arm_settings, checked

PARAMETERS = ros_parameters.parameters_of('command_pipeline')
KINDS = {'string': 'std::string', 'double[]': 'std::vector<double>'}
# What checked_parameters.hpp takes of rclcpp.
RCLCPP = """
#pragma once
#include <string>
#include <variant>
#include <vector>
namespace rclcpp {
struct Parameter {
  std::string name;
  std::variant<double, std::string, std::vector<double>, bool> value;
  const std::string & get_name() const { return name; }
  template <typename Given> Given get_value() const { return std::get<Given>(value); }
};
}  // namespace rclcpp
"""
RESULT = """
#pragma once
#include <string>
namespace rcl_interfaces::msg {
struct SetParametersResult { bool successful = false; std::string reason; };
}
"""
SOURCE = """
#include <cmath>
#include "SOURCES/checked_parameters.cpp"
extern "C" std::size_t settings(int is_given, const robodyn_model * model, double * to)
{
  command_pipeline::Params params;
  if (is_given != 0) { GIVEN }
  const double * const begin = to;
  const auto write = [&to](const char *, const auto & value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_arithmetic_v<Value> || std::is_enum_v<Value>) {
      *to++ = static_cast<double>(value);
    } else {
      *to++ = static_cast<double>(value.size());
      for (const double each : value) { *to++ = each; }
    }
  };
  const auto result =
    robodyn_controllers::checked_settings(params, {"turn", "spin", "slide"}, *model);
  robodyn::for_each_setting(write, result);
  write("", result.position_limits);
  write("", result.velocity_limits);
  write("", result.is_continuous);
  return static_cast<std::size_t>(to - begin);
}
extern "C" const char * refusal(const robodyn_model * model, int number)
{
  static std::string reason;
  const auto configured =
    robodyn_controllers::checked_settings({}, {"turn", "spin", "slide"}, *model);
  const std::vector<rclcpp::Parameter> parameters{REFUSED};
  reason = robodyn_controllers::checked_parameters(
    {parameters.at(static_cast<std::size_t>(number))}, configured).reason;
  return reason.c_str();
}
"""
NUMBERS = 'std::vector<double>'
CHANGES = [
    (f'"kp", {NUMBERS}{{1.0, 2.0}}', 'parameter kp: 2 values; allowed: 1 or 3'),
    (f'"kp", {NUMBERS}{{1.0, NAN, 3.0}}', 'parameter kp; allowed: finite'),
    (f'"kp", {NUMBERS}{{}}', 'parameter kp: 0 values'),
    (f'"impedance.tip_stiffness", {NUMBERS}{{1.0}}', 'tip_stiffness; allowed: 6 finite numbers'),
    ('"damping", double{NAN}', 'parameter damping; allowed: finite'),
    ('"effort_limit_scale", double{NAN}', 'parameter effort_limit_scale; allowed: finite'),
    ('"mode", std::string("none")', "parameter mode: 'none'; allowed: gravity_compensation, "),
    ('"on_contact", std::string("stop")', 'allowed without contact_threshold_moving'),
    (f'"kp", {NUMBERS}{{1.0}}', ''),
    (f'"torque_rate_limit", {NUMBERS}{{}}', ''),
    ('"mode", std::string("feedforward")', ''),
    ('"use_sim_time", true', ''),
]


def given():
    """Return a value of each parameter that is not its default, and differs from the others'."""
    values = {}
    for k, parameter in enumerate(PARAMETERS):
        if parameter.choices:
            value = next(each for each in parameter.choices[::-1] if each != parameter.default)
        elif parameter.kind == 'bool':
            value = not parameter.default
        elif parameter.kind == 'double':
            low, high = parameter.bounds
            value = max(low, 0.1) + (min(high, 0.9) - max(low, 0.1)) * (k + 1) / 100.0
        else:
            size = parameter.rules['fixed_size'][0] if 'fixed_size' in parameter.rules else 3
            largest = parameter.bounds[1]
            value = tuple(min(k, 0.5 * largest) + 0.1 * (i + 1) for i in range(size))
        values[parameter.name] = value
    return values


def literal(value):
    if isinstance(value, str):
        return f'"{value}"'
    return f'{{{", ".join(map(repr, value))}}}' if isinstance(value, tuple) else f'{value}'.lower()


def params():
    """Return the struct that generate_parameter_library makes of the parameters."""
    members, groups = [], {}
    for parameter in PARAMETERS:
        *group, name = parameter.name.split('.')
        kind = KINDS.get(parameter.kind, parameter.kind)
        member = f'{kind} {name} = {literal(parameter.default)};'
        (groups.setdefault(group[0], []) if group else members).append(member)
    members += [f'struct {{ {" ".join(those)} }} {name};' for name, those in groups.items()]
    return 'namespace command_pipeline { struct Params { ' + '\n'.join(members) + ' }; }'


TURN = '<limit lower="-2" upper="2.5" effort="60" velocity="3"/>'
SPIN = '<limit effort="250" velocity="2"/>'
SLIDE = '<limit lower="-0.2" upper="0.3" effort="40" velocity="1"/>'
MODEL = rd.RobotModel.from_urdf(
    robot(
        link('base'),
        *(link(f'link{k}', 1.0, (0.1, 0.0, 0.05), (0.02, 0.02, 0.02)) for k in range(3)),
        joint('turn', 'base', 'link0', 'revolute', more=TURN),
        joint('spin', 'link0', 'link1', 'continuous', more=SPIN),
        joint('slide', 'link1', 'link2', 'prismatic', more=SLIDE),
    )
)


@pytest.fixture(scope='module')
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp('parameters')
    files = {
        'include/rclcpp/parameter.hpp': RCLCPP,
        'include/rcl_interfaces/msg/set_parameters_result.hpp': RESULT,
        'include/robodyn_controllers/command_pipeline_parameters.hpp': params(),
        'settings.cpp': SOURCE.replace('SOURCES', str(controllers_package() / 'src'))
        .replace('GIVEN', ' '.join(f'params.{k} = {literal(v)};' for k, v in given().items()))
        .replace('REFUSED', ', '.join(f'{{{change}}}' for change, _ in CHANGES)),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    made = folder / 'settings.so'
    command = [cpp_compiler(), *STRICT, *headers(folder), '-shared', '-fPIC']
    subprocess.run([*command, folder / 'settings.cpp', '-o', made], check=True, timeout=600)
    result = ctypes.CDLL(str(made))
    result.settings.restype, result.refusal.restype = ctypes.c_size_t, ctypes.c_char_p
    result.model = shared_model(exported(MODEL, folder))
    return result


@pytest.mark.parametrize('values', [{}, given()], ids=['defaults', 'each given'])
def test_controller_and_node_take_the_same_settings_from_parameters(library, values):
    expected = setting_numbers(arm_settings(MODEL, checked(values)), reference_limits(MODEL))
    found = np.full(1000, np.nan)
    count = library.settings(int(bool(values)), ctypes.byref(library.model), pointer(found))
    assert found[:count].tolist() == expected.tolist()


@pytest.mark.parametrize('number', range(len(CHANGES)), ids=[change for change, _ in CHANGES])
def test_controller_refuses_a_change_with_what_is_allowed(library, number):
    _, words = CHANGES[number]
    reason = library.refusal(ctypes.byref(library.model), number).decode()
    assert words in reason and bool(words) == bool(reason)
