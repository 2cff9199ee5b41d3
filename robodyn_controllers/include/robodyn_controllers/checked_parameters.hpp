// SPDX-License-Identifier: Apache-2.0
// What a user gives the controller, checked: parameters, payload and gravity.
#ifndef ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_
#define ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_

#include <cstddef>
#include <string>
#include <vector>

#include "rcl_interfaces/msg/set_parameters_result.hpp"
#include "rclcpp/parameter.hpp"

#include "robodyn_controllers/inverse_dynamics_controller_parameters.hpp"
#include "robodyn_controllers/settings.hpp"
#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

using inverse_dynamics_controller::Params;

struct Settings
{
  LawSettings law;
  SafetySettings safety;
};

// Return one value for each joint of a parameter that has one for all or one for each; throws
// std::runtime_error.
Vector each_joint(
  const std::string & name, const std::vector<double> & values, std::size_t joints);

// Return parameters in the order of the model's joints; throws std::runtime_error.
Settings checked_settings(const Params & params, const robodyn_model & model);

// Refuse what no declared range does: numbers that are not finite, and arrays of another size.
rcl_interfaces::msg::SetParametersResult checked_parameters(
  const std::vector<rclcpp::Parameter> & parameters, std::size_t joints);

// Write the load of a payload and gravity, and return what is wrong with them; empty: nothing.
std::string checked_load(
  const robodyn_model & model, const robodyn_payload & payload, const std::vector<double> & gravity,
  Vector & load);

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_
