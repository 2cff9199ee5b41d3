// SPDX-License-Identifier: Apache-2.0
// Messages that the controller publishes of a cycle.
#ifndef ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_
#define ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_

#include <string>
#include <vector>

#include "geometry_msgs/msg/wrench_stamped.hpp"
#include "robodyn_interfaces/msg/contact.hpp"
#include "robodyn_interfaces/msg/dynamics_state.hpp"
#include "sensor_msgs/msg/joint_state.hpp"

#include "robodyn_controllers/contact_watch.hpp"
#include "robodyn_ros/core/arm_runtime.hpp"

namespace robodyn_controllers
{

using State = robodyn_interfaces::msg::DynamicsState;
using ExternalTorques = sensor_msgs::msg::JointState;
using Wrench = geometry_msgs::msg::WrenchStamped;
using ContactMessage = robodyn_interfaces::msg::Contact;

// Return a message with memory for all that fill writes.
State state_message(const std::vector<std::string> & joints);
ExternalTorques torques_message(const std::vector<std::string> & joints);
Wrench wrench_message(const std::string & tip_link);
ContactMessage contact_message(
  const std::vector<std::string> & joints, const std::vector<std::string> & links);

// Write the last cycle's torques and reference, for a measured state; allocates nothing.
void fill(
  State & state, const robodyn::ArmRuntime & pipeline, const ContactWatch & watch,
  const robodyn::Vector & position, const robodyn::Vector & velocity);

void fill(Wrench & message, const robodyn::TipWrench & found);

// Write a contact that begins or ends; the links are those that the joints move.
void fill(
  ContactMessage & message, const ContactWatch & watch, const std::vector<std::string> & links);

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_
