// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/checked_parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <stdexcept>
#include <type_traits>

namespace robodyn_controllers
{

using robodyn::kInfinity;
using robodyn::Vector;

namespace
{

// Refuse a parameter; throws std::runtime_error.
[[noreturn]] void refuse(const std::string & name, const std::string & allowed)
{
  throw std::runtime_error("parameter " + name + "; allowed: " + allowed);
}

void check_finite(const char * name, const std::vector<double> & values)
{
  const bool are_finite =
    std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (!are_finite) { refuse(name, "finite numbers"); }
}

// Converts a parameter to what the core takes; throws std::exception.
struct Conversion
{
  const std::size_t joints;

  void operator()(const char *, bool & to, bool from, bool) const { to = from; }
  void operator()(const char * name, double & to, double from, double) const
  {
    check_finite(name, {from});
    to = from;
  }
  template <typename Named>
  void operator()(
    const char * name, Named & to, const std::string & from, const std::string &) const
  {
    robodyn::set_named(name, to, from);
  }
  // One value for each joint; none where that is the default.
  void operator()(
    const char * name, Vector & to, const std::vector<double> & from,
    const std::vector<double> & by_default) const
  {
    const bool is_none = from.empty() && by_default.empty();
    to = is_none ? Vector() : each_joint(name, from, joints);
  }
  template <std::size_t size>
  void operator()(
    const char * name, std::array<double, size> & to, const std::vector<double> & from,
    const std::vector<double> &) const
  {
    if (from.size() != size) { refuse(name, std::to_string(size) + " finite numbers"); }
    check_finite(name, from);
    std::copy_n(from.begin(), size, to.begin());
  }
};

}  // namespace

Vector each_joint(
  const std::string & name, const std::vector<double> & values, std::size_t joints)
{
  if (values.size() != 1 && values.size() != joints) {
    throw std::runtime_error(
      "parameter " + name + ": " + std::to_string(values.size()) + " values; allowed: 1 or " +
      std::to_string(joints) + ", one for each joint");
  }
  check_finite(name.c_str(), values);
  return values.size() == joints ? values : Vector(joints, values.front());
}

Settings checked_settings(
  const command_pipeline::Params & params, const std::vector<std::string> & joints,
  const robodyn_model & model)
{
  const auto n = static_cast<std::size_t>(model.joints);
  const Conversion convert{n};
  Settings result;
  const command_pipeline::Params defaults;
  robodyn::for_each_setting(convert, result, params, defaults);
  double scale = 1.0;
  convert("effort_limit_scale", scale, params.effort_limit_scale, scale);
  if (result.effort_limits.empty()) {
    result.effort_limits.assign(model.effort_limits, model.effort_limits + n);
  }
  result.torque_rate_limit =
    robodyn::torque_rate_limits(result.torque_rate_limit, result.effort_limits);
  if (result.braking_acceleration.empty()) { result.braking_acceleration.assign(n, kInfinity); }
  if (!(result.max_following_error > 0.0)) { result.max_following_error = kInfinity; }
  result.position_limits.assign(model.position_limits, model.position_limits + 2 * n);
  result.velocity_limits.assign(model.velocity_limits, model.velocity_limits + n);
  result.is_continuous.assign(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    double & limit = result.effort_limits[i];
    if (!std::isfinite(limit) || limit <= 0.0) {
      throw std::runtime_error(
        "joint '" + joints[i] + "' effort limit: " + std::to_string(limit) +
        "; allowed: a positive <limit effort> in the URDF, or parameter effort_limits");
    }
    limit *= scale;
    if (!(result.velocity_limits[i] > 0.0)) { result.velocity_limits[i] = kInfinity; }
    const bool is_unlimited =
      std::isinf(result.position_limits[2 * i]) && std::isinf(result.position_limits[2 * i + 1]);
    result.is_continuous[i] = is_unlimited && model.is_prismatic[i] == 0 ? 1.0 : 0.0;
  }
  check_reaction(result);
  return result;
}

rcl_interfaces::msg::SetParametersResult checked_parameters(
  const std::vector<rclcpp::Parameter> & parameters, const Settings & settings,
  bool is_commanding)
{
  Settings changed = settings;
  const command_pipeline::Params defaults;
  const Conversion convert{settings.kp.size()};
  rcl_interfaces::msg::SetParametersResult result;
  result.successful = true;
  for (const rclcpp::Parameter & parameter : parameters) {
    const auto take = [&](const std::string & name, auto & to, const auto & by_default) {
      using Given = std::decay_t<decltype(by_default)>;
      if (parameter.get_name() != name) { return; }
      convert(name.c_str(), to, parameter.get_value<Given>(), by_default);
    };
    double scale = 1.0;
    try {
      robodyn::for_each_setting(take, changed, defaults);
      take("effort_limit_scale", scale, defaults.effort_limit_scale);
      check_reaction(changed, is_commanding);
    } catch (const std::exception & error) {
      result.successful = false;
      result.reason = error.what();
    }
  }
  return result;
}

}  // namespace robodyn_controllers
