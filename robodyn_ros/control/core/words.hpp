// SPDX-License-Identifier: Apache-2.0
// Faults and refused requests in words, the same at every door. Not for the real-time loop.
#ifndef ROBODYN_ROS__CORE__WORDS_HPP_
#define ROBODYN_ROS__CORE__WORDS_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "settings.hpp"
#include "state_check.hpp"

namespace robodyn
{

// The joints' names, in chain order, and which of them slide.
struct Joints
{
  std::vector<std::string> names;
  std::vector<bool> slide;
};

// What is wrong, and what would be accepted, if a request may ask for it.
struct Words
{
  std::string is, allowed;

  std::string text() const { return allowed.empty() ? is : is + "; allowed: " + allowed; }
};

// Fill numbers into a format of printf, and their texts before.
template <typename... Values>
std::string written(const char * format, const Values &... values)
{
  std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, values...)), ' ');
  std::snprintf(text.data(), text.size() + 1, format, values...);
  return text;
}

inline Words words_of(const Fault & what, const Joints & joints, const Settings & settings)
{
  const bool has_joint = what.joint >= 0;
  const auto joint = static_cast<std::size_t>(std::max(what.joint, 0));
  const std::string named = has_joint ? "joint '" + joints.names[joint] + "'" : "";
  const bool slides = has_joint && joints.slide[joint];
  const char * const name = named.c_str();
  const char * const unit = slides ? "m" : "rad";
  const char * const force = slides ? "N" : "N m";
  const char * const mode = kModeNames[static_cast<std::size_t>(settings.mode)];
  const double value = what.value, limit = what.limit;
  const auto greatest = [](const Vector & values) {
    return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
  };
  switch (what.cause) {
    case Cause::none:
      return {};
    case Cause::following_error:
      return {
        written("%s is %.6g %s from its reference", name, value, unit),
        written("max_following_error = %g", limit)};
    case Cause::implausible_position:
      return {"a position changed faster than its joint can move", ""};
    case Cause::impossible_position:
      return {
        written("position of %s: %.6g %s", name, value, unit),
        "positions near its limits, in radians or metres"};
    case Cause::overspeed:
      return {
        written("%s moves at %.6g %s/s", name, value, unit),
        written("%g times its velocity limit of %g", kOverspeed, limit)};
    case Cause::overload:
      return {
        written("gravity torque of %s here: %.6g %s", name, value, force),
        written("at most its effort limit, %.6g %s", limit, force)};
    case Cause::unknown_velocity:
      return {"velocities are no longer known", ""};
    case Cause::stale_state:
      return {"no fresh joint state", ""};
    case Cause::far_reference:
      return {
        written("reference of %s begins %.6g %s from where it is", name, value, unit),
        written("max_reference_step = %g", limit)};
    case Cause::reference_position:
      return {
        written("reference of %s: %.6g %s", name, value, unit),
        written(
          "%s %.6g %s, its position limit", value < limit ? "at least" : "at most", limit, unit)};
    case Cause::reference_velocity:
      return {
        written("reference of %s: %.6g %s/s", name, value, unit),
        written("at most its velocity limit of %.6g %s/s", limit, unit)};
    case Cause::feedback_far_away:
      return {"feedback began while the arm was far from the reference", ""};
    case Cause::clock:
      return {"the joint states' stamps jumped, stopped or do not keep pace with time", ""};
    case Cause::no_following_mode:
      return {
        written("the mode is %s, which follows none", mode),
        "set parameter mode to feedforward, computed_torque, joint_impedance or "
        "cartesian_impedance"};
    case Cause::contact:
      return {"a contact", ""};
    case Cause::slow_states:
      return {
        written(
          "joint states come at %.3g Hz: kp = %g and kd = %g need %.3g Hz", value,
          greatest(settings.kp), greatest(settings.kd), limit),
        ""};
    case Cause::damping_adds_energy:
      return {
        written(
          "damping was switched off: it added energy to the arm, from %.2g to %.2g J; "
          "are all velocities right, and their signs?",
          limit, value),
        ""};
    case Cause::wrong_velocity:
      return {
        written(
          "velocity of %s is %.2g times the change of its position: taken from positions instead",
          name, value),
        ""};
    case Cause::inactive:
      return {
        "nothing is commanded",
        "activate the node or the controller, or call ~/enable where it was disabled"};
    case Cause::mode_without_tip:
      return {written("the mode is %s", mode), "set parameter mode to cartesian_impedance"};
    case Cause::mode_without_springs:
      return {
        written("the mode is %s", mode),
        "set parameter mode to joint_impedance or cartesian_impedance"};
    case Cause::unacknowledged:
      return {"after a fault", "an empty or a new joint trajectory first, which acknowledges it"};
    case Cause::not_followed:
      return {"nothing is followed", "send it once the arm is held (reference: holding)"};
    case Cause::no_spring:
      return {"there is no spring at the tip", "set parameter impedance.tip_stiffness"};
    case Cause::not_finite:
      return {"a number that is not finite", "finite numbers"};
    case Cause::quaternion:
      return {
        written("norm of the quaternion x, y, z, w: %.6g", value), written("1 within %g", limit)};
    case Cause::reach:
      return {
        written("distance from the base link: %.6g m", value),
        written("at most %.6g m, the reach of the arm", limit)};
    case Cause::force:
      return {
        written("force: %.6g N", value),
        written("at most impedance.largest_force = %g N", limit)};
    case Cause::moment:
      return {
        written("moment: %.6g N m", value),
        written("at most impedance.largest_moment = %g N m", limit)};
    case Cause::unsteady:
      return {"the arm moves", "an arm and a reference at rest, before and after"};
    case Cause::no_weight:
      return {"what pulls at the arm is no weight", "a mass that hangs at the tip"};
    case Cause::message_size:
      return {written("message: %.0f bytes", value), written("at most %.0f", limit)};
    case Cause::joint_count:
      return {written("message: %.0f names", value), written("at most %.0f", limit)};
    case Cause::no_joint_state:
      return {written("message: %.0f bytes", value), "a sensor_msgs/JointState"};
    case Cause::position_count:
      return {written("%.0f names but %.0f positions", limit, value), ""};
    case Cause::velocity_count:
      return {written("%.0f names but %.0f velocities", limit, value), ""};
    case Cause::repeated_joint:
      return {"a joint is named twice", ""};
  }
  return {};
}

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__WORDS_HPP_
