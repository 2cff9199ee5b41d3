// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/state_message.hpp"

#include <cstddef>

namespace robodyn_controllers
{
namespace
{

const char * name_of(Mode mode)
{
  switch (mode) {
    case Mode::feedforward: return "feedforward";
    case Mode::computed_torque: return "computed_torque";
    default: return "gravity_compensation";
  }
}

}  // namespace

State state_message(const std::vector<std::string> & joints)
{
  State state;
  state.joint_names = joints;
  for (auto * const field : {&state.position, &state.velocity, &state.reference_position,
      &state.reference_velocity, &state.reference_acceleration, &state.inertial,
      &state.coriolis, &state.gravity, &state.friction, &state.feedback, &state.effort,
      &state.total})
  {
    field->assign(joints.size(), 0.0);
  }
  state.effort_limited.assign(joints.size(), false);
  state.rate_limited.assign(joints.size(), false);
  state.mode.reserve(sizeof("gravity_compensation"));
  return state;
}

void fill(
  State & state, const CommandPipeline & pipeline, const Vector & position, const Vector & velocity)
{
  const std::size_t n = position.size();
  const Vector & parts = pipeline.parts();
  state.mode = name_of(pipeline.mode());
  const bool is_following = pipeline.following() != Following::none;
  const ReferenceState & wanted = pipeline.wanted();
  for (auto * const field : {&state.reference_position, &state.reference_velocity,
      &state.reference_acceleration})
  {
    field->resize(is_following ? n : 0);  // its memory stays
  }
  const auto part = [n, &parts](std::size_t which, std::size_t i) {
      return parts[which * n + i];
    };
  for (std::size_t i = 0; i < n; ++i) {
    state.position[i] = position[i];
    state.velocity[i] = velocity[i];
    if (is_following) {
      state.reference_position[i] = wanted.position[i];
      state.reference_velocity[i] = wanted.velocity[i];
      state.reference_acceleration[i] = wanted.acceleration[i];
    }
    state.inertial[i] = part(ROBODYN_INERTIAL, i);
    state.coriolis[i] = part(ROBODYN_CORIOLIS, i);
    state.gravity[i] = part(ROBODYN_GRAVITY, i);
    state.friction[i] = part(ROBODYN_FRICTION, i);
    state.feedback[i] = part(ROBODYN_FEEDBACK, i);
    state.effort[i] = part(ROBODYN_EFFORT, i);
    state.total[i] = pipeline.torque()[i];
    state.effort_limited[i] = pipeline.effort_limited()[i] != 0;
    state.rate_limited[i] = pipeline.rate_limited()[i] != 0;
  }
}

}  // namespace robodyn_controllers
