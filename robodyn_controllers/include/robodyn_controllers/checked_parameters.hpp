// SPDX-License-Identifier: Apache-2.0
// The controller's parameters, checked and converted.
#ifndef ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_
#define ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_

#include <cstddef>
#include <string>
#include <vector>

#include "rcl_interfaces/msg/set_parameters_result.hpp"
#include "rclcpp/parameter.hpp"

#include "robodyn_controllers/command_pipeline_parameters.hpp"
#include "robodyn_controllers/controller_logic.hpp"
#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

// Return one value for each joint from a parameter with one value, or one for each joint; throws
// std::runtime_error.
Vector each_joint(
  const std::string & name, const std::vector<double> & values, std::size_t joints);

// Return parameters in the order of the model's joints, which have these names; throws
// std::runtime_error.
Settings checked_settings(
  const command_pipeline::Params & params, const std::vector<std::string> & joints,
  const robodyn_model & model);

// Refuse what the declared bounds cannot: numbers that are not finite, arrays of another size,
// and a reaction to contacts without thresholds in the settings of configure, or without commands.
rcl_interfaces::msg::SetParametersResult checked_parameters(
  const std::vector<rclcpp::Parameter> & parameters, const Settings & settings,
  bool is_commanding = true);

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__CHECKED_PARAMETERS_HPP_
