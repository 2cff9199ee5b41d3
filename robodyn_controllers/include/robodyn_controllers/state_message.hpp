// SPDX-License-Identifier: Apache-2.0
// What the controller publishes of a cycle.
#ifndef ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_
#define ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_

#include <string>
#include <vector>

#include "robodyn_interfaces/msg/dynamics_state.hpp"

#include "robodyn_controllers/command_pipeline.hpp"

namespace robodyn_controllers
{

using State = robodyn_interfaces::msg::DynamicsState;

// Return a message with room for all that fill writes.
State state_message(const std::vector<std::string> & joints);

// Write what the last cycle did, for a measured state; allocates nothing.
void fill(
  State & state, const CommandPipeline & pipeline, const Vector & position,
  const Vector & velocity);

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__STATE_MESSAGE_HPP_
