// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/checked_parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <stdexcept>

namespace robodyn_controllers
{

using robodyn::Action;
using robodyn::kInfinity;
using robodyn::Mode;

namespace
{

Mode mode_of(const std::string & name)
{
  const auto found =
    std::find(std::begin(robodyn::kModeNames), std::end(robodyn::kModeNames), name);
  if (found == std::end(robodyn::kModeNames)) {
    throw std::invalid_argument("parameter mode: '" + name + "' is none of the core");
  }
  return static_cast<Mode>(found - std::begin(robodyn::kModeNames));
}

robodyn::ContactAction contact_action_of(const std::string & name)
{
  if (name == "stop") { return robodyn::ContactAction::stop; }
  return name == "float" ? robodyn::ContactAction::release : robodyn::ContactAction::report;
}

Action action_of(const std::string & name)
{
  if (name == "zero") { return Action::zero; }
  return name == "silent" ? Action::silent : Action::hold_gravity;
}

bool are_finite(const std::vector<double> & values)
{
  return std::all_of(
    values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

// Copy a parameter with a number of values that is not that of the joints.
template <std::size_t size>
void copy_fixed(
  const std::string & name, const std::vector<double> & values, std::array<double, size> & to)
{
  if (values.size() != size || !are_finite(values)) {
    throw std::runtime_error(
      "parameter " + name + "; allowed: " + std::to_string(size) + " finite numbers");
  }
  std::copy_n(values.begin(), size, to.begin());
}

}  // namespace

Vector each_joint(
  const std::string & name, const std::vector<double> & values, std::size_t joints)
{
  if (values.size() != 1 && values.size() != joints) {
    throw std::runtime_error(
      "parameter " + name + ": " + std::to_string(values.size()) + " values; allowed: 1 or " +
      std::to_string(joints) + ", one for each joint");
  }
  if (!are_finite(values)) {
    throw std::runtime_error("parameter " + name + "; allowed: finite numbers");
  }
  return values.size() == joints ? values : Vector(joints, values.front());
}

Settings checked_settings(
  const command_pipeline::Params & params, const std::vector<std::string> & joints,
  const robodyn_model & model)
{
  const auto n = static_cast<std::size_t>(model.joints);
  const auto each = [n](const std::string & name, const std::vector<double> & values) {
    return each_joint(name, values, n);
  };
  const auto each_or_none = [&each](
                              const std::string & name, const std::vector<double> & values) {
    return values.empty() ? Vector() : each(name, values);
  };
  for (const double number :
       {params.friction_velocity, params.ramp_time, params.state_timeout, params.stale_hold_time,
        params.effort_limit_scale, params.max_reference_step, params.max_following_error,
        params.damping, params.position_guard, params.friction_compensation,
        params.friction_dead_zone, params.impedance.damping_ratio, params.impedance.tip_speed,
        params.impedance.tip_turn_rate, params.impedance.largest_force,
        params.impedance.largest_moment}) {
    if (!std::isfinite(number)) { throw std::runtime_error("a parameter is not finite"); }
  }
  Settings result;
  robodyn::LawSettings & law = result.law;
  law.mode = mode_of(params.mode);
  law.terms = {
    params.terms.inertial, params.terms.coriolis, params.terms.gravity, params.terms.friction};
  law.kp = each("kp", params.kp);
  law.kd = each("kd", params.kd);
  law.friction_velocity = params.friction_velocity;
  law.position_guard = params.position_guard;
  law.stiffness = each("impedance.stiffness", params.impedance.stiffness);
  law.nullspace_stiffness =
    each("impedance.nullspace_stiffness", params.impedance.nullspace_stiffness);
  copy_fixed("impedance.tip_stiffness", params.impedance.tip_stiffness, law.tip_stiffness);
  law.is_tip_stiffness_in_base = params.impedance.frame == "base";
  copy_fixed("wrench_point", params.wrench_point, law.tip_point);
  law.damping_ratio = params.impedance.damping_ratio;
  law.friction_compensation = params.friction_compensation;
  law.friction_dead_zone = params.friction_dead_zone;
  robodyn::Settings & safety = result.safety;
  safety.effort_limits = params.effort_limits.empty()
                         ? Vector(model.effort_limits, model.effort_limits + n)
                         : each("effort_limits", params.effort_limits);
  safety.torque_rate_limits = robodyn::torque_rate_limits(
    each_or_none("torque_rate_limit", params.torque_rate_limit), safety.effort_limits);
  safety.braking_acceleration = params.braking_acceleration.empty()
                                ? Vector(n, kInfinity)
                                : each("braking_acceleration", params.braking_acceleration);
  safety.position_limits.assign(model.position_limits, model.position_limits + 2 * n);
  safety.velocity_limits.assign(model.velocity_limits, model.velocity_limits + n);
  safety.is_continuous.assign(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    double & limit = safety.effort_limits[i];
    if (!std::isfinite(limit) || limit <= 0.0) {
      throw std::runtime_error(
        "joint '" + joints[i] + "' effort limit: " + std::to_string(limit) +
        "; allowed: a positive <limit effort> in the URDF, or parameter effort_limits");
    }
    limit *= params.effort_limit_scale;
    if (!(safety.velocity_limits[i] > 0.0)) { safety.velocity_limits[i] = kInfinity; }
    const bool is_unlimited =
      std::isinf(safety.position_limits[2 * i]) && std::isinf(safety.position_limits[2 * i + 1]);
    safety.is_continuous[i] = is_unlimited && model.is_prismatic[i] == 0 ? 1.0 : 0.0;
  }
  safety.ramp_time = params.ramp_time;
  safety.state_timeout = params.state_timeout;
  safety.on_stale_state = action_of(params.on_stale_state);
  safety.stale_hold_time = params.stale_hold_time;
  safety.on_stop = action_of(params.on_stop);
  safety.max_reference_step = params.max_reference_step;
  safety.max_following_error =
    params.max_following_error > 0.0 ? params.max_following_error : kInfinity;
  safety.damping = params.damping;
  safety.tip_speed = params.impedance.tip_speed;
  safety.tip_turn_rate = params.impedance.tip_turn_rate;
  ContactSettings & contacts = result.contacts;
  contacts.gain = each("observer_gain", params.observer_gain);
  contacts.moving = each_or_none("contact_threshold_moving", params.contact_threshold_moving);
  contacts.stationary =
    each_or_none("contact_threshold_standing", params.contact_threshold_standing);
  contacts.dwell = params.contact_dwell;
  contacts.point = law.tip_point;
  result.largest_wrench = {params.impedance.largest_force, params.impedance.largest_moment};
  result.on_contact = contact_action_of(params.on_contact);
  check_reaction(result);
  return result;
}

rcl_interfaces::msg::SetParametersResult checked_parameters(
  const std::vector<rclcpp::Parameter> & parameters, const Settings & settings)
{
  const std::size_t joints = settings.law.kp.size();
  rcl_interfaces::msg::SetParametersResult result;
  result.successful = true;
  for (const rclcpp::Parameter & parameter : parameters) {
    if (
      parameter.get_type() == rclcpp::ParameterType::PARAMETER_DOUBLE &&
      !std::isfinite(parameter.as_double())) {
      result.successful = false;
      result.reason = "parameter " + parameter.get_name() + "; allowed: a finite number";
    }
    if (parameter.get_name() == "on_contact") {
      Settings changed = settings;
      changed.on_contact = contact_action_of(parameter.as_string());
      try {
        check_reaction(changed);
      } catch (const std::runtime_error & error) {
        result.successful = false;
        result.reason = error.what();
      }
    }
    if (parameter.get_type() != rclcpp::ParameterType::PARAMETER_DOUBLE_ARRAY) { continue; }
    const std::vector<double> values = parameter.as_double_array();
    const bool may_be_empty = parameter.get_name() == "braking_acceleration" ||
                              parameter.get_name() == "torque_rate_limit";
    const bool is_of_tip = parameter.get_name() == "impedance.tip_stiffness";
    const bool is_sized = is_of_tip ? values.size() == settings.law.tip_stiffness.size()
                                    : values.size() == 1 || values.size() == joints ||
                                        (values.empty() && may_be_empty);
    if (!is_sized || !are_finite(values)) {
      result.successful = false;
      result.reason =
        "parameter " + parameter.get_name() + "; allowed: " +
        (is_of_tip ? "6 finite values"
                   : "1 or " + std::to_string(joints) + " finite values, one for each joint");
    }
  }
  return result;
}

}  // namespace robodyn_controllers
