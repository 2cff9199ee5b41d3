// SPDX-License-Identifier: Apache-2.0
// What is followed at one time; ReferenceState of reference.py.
#ifndef ROBODYN_CONTROLLERS__REFERENCE_HPP_
#define ROBODYN_CONTROLLERS__REFERENCE_HPP_

#include <cstddef>

#include "robodyn_controllers/settings.hpp"
#include "robodyn_ros/torque_step.h"

namespace robodyn_controllers
{

struct ReferenceState
{
  Vector position, velocity, acceleration, effort;

  explicit ReferenceState(std::size_t joints)
  : position(joints), velocity(joints), acceleration(joints), effort(joints) {}

  // For torque_step.h.
  robodyn_reference view() const
  {
    return {position.data(), velocity.data(), acceleration.data(), effort.data()};
  }
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__REFERENCE_HPP_
