// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/state_message.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace robodyn_controllers
{

State state_message(const std::vector<std::string> & joints)
{
  State state;
  state.joint_names = joints;
  for (auto * const field :
       {&state.position, &state.velocity, &state.reference_position, &state.reference_velocity,
        &state.reference_acceleration, &state.inertial, &state.coriolis, &state.gravity,
        &state.friction, &state.feedback, &state.effort, &state.total, &state.external_torque}) {
    field->assign(joints.size(), 0.0);
  }
  state.effort_limited.assign(joints.size(), false);
  state.rate_limited.assign(joints.size(), false);
  for (const char * const mode : robodyn::kModeNames) {
    state.mode.reserve(std::max(state.mode.capacity(), std::strlen(mode)));
  }
  return state;
}

ExternalTorques torques_message(const std::vector<std::string> & joints)
{
  ExternalTorques message;
  message.name = joints;
  message.effort.assign(joints.size(), 0.0);
  return message;
}

Wrench wrench_message(const std::string & tip_link)
{
  Wrench message;
  message.header.frame_id = tip_link;
  return message;
}

ContactMessage contact_message(
  const std::vector<std::string> & joints, const std::vector<std::string> & links)
{
  const auto is_shorter = [](const std::string & one, const std::string & other) {
    return one.size() < other.size();
  };
  ContactMessage message;
  message.joint_names = joints;
  message.external_torque.assign(joints.size(), 0.0);
  message.joint = *std::max_element(joints.begin(), joints.end(), is_shorter);
  message.link = *std::max_element(links.begin(), links.end(), is_shorter);
  return message;
}

void fill(
  State & state, const robodyn::CommandPipeline & pipeline, const ContactWatch & watch,
  const robodyn::Vector & position, const robodyn::Vector & velocity)
{
  const std::size_t n = position.size();
  const robodyn::Vector & parts = pipeline.parts();
  state.mode = robodyn::kModeNames[static_cast<std::size_t>(pipeline.mode())];
  const bool is_following = pipeline.following() != robodyn::Following::none;
  const robodyn::ReferenceState & desired = pipeline.desired();
  for (auto * const field :
       {&state.reference_position, &state.reference_velocity, &state.reference_acceleration}) {
    field->resize(is_following ? n : 0);  // keeps its memory
  }
  state.external_torque.resize(watch.has_estimate() ? n : 0);
  std::copy_n(
    watch.torque().begin(), state.external_torque.size(), state.external_torque.begin());
  state.in_contact = watch.has_estimate() && watch.is_in_contact();
  const auto part_of = [n, &parts](std::size_t which, std::size_t i) {
    return parts[which * n + i];
  };
  for (std::size_t i = 0; i < n; ++i) {
    state.position[i] = position[i];
    state.velocity[i] = pipeline.has_parts() ? pipeline.state().velocity[i] : velocity[i];
    if (is_following) {
      state.reference_position[i] = desired.position[i];
      state.reference_velocity[i] = desired.velocity[i];
      state.reference_acceleration[i] = desired.acceleration[i];
    }
    state.inertial[i] = part_of(robodyn::part::inertial, i);
    state.coriolis[i] = part_of(robodyn::part::coriolis, i);
    state.gravity[i] = part_of(robodyn::part::gravity, i);
    state.friction[i] = part_of(robodyn::part::friction, i);
    state.feedback[i] = part_of(robodyn::part::feedback, i);
    state.effort[i] = part_of(robodyn::part::effort, i);
    state.total[i] = pipeline.torque()[i];
    state.effort_limited[i] = pipeline.is_effort_limited()[i] != 0;
    state.rate_limited[i] = pipeline.is_rate_limited()[i] != 0;
  }
}

void fill(Wrench & message, const robodyn::TipWrench & found)
{
  auto & force = message.wrench.force;
  auto & moment = message.wrench.torque;
  double * const parts[] = {&force.x, &force.y, &force.z, &moment.x, &moment.y, &moment.z};
  for (std::size_t k = 0; k < 6; ++k) { *parts[k] = found.wrench()[k]; }
}

void fill(
  ContactMessage & message, const ContactWatch & watch, const std::vector<std::string> & links)
{
  const robodyn::Contact & contact = watch.contact();
  message.is_over = !watch.is_in_contact();
  message.joint = message.joint_names[static_cast<std::size_t>(contact.joint)];
  message.link = links[static_cast<std::size_t>(contact.outermost)];
  message.torque = contact.torque;
  message.threshold = contact.threshold;
  message.duration = contact.time - contact.began;
  std::copy(watch.torque().begin(), watch.torque().end(), message.external_torque.begin());
}

}  // namespace robodyn_controllers
