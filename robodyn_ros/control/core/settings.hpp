// SPDX-License-Identifier: Apache-2.0
// Settings of the command pipeline.
#ifndef ROBODYN_ROS__CORE__SETTINGS_HPP_
#define ROBODYN_ROS__CORE__SETTINGS_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "faults.hpp"

namespace robodyn
{

using Vector = std::vector<double>;  // one number for each joint, in chain order, base to tip

// Of a limit of the torque's rate, what brakes and springs plan with; gravity and dampers need it, too.
constexpr double kRateReserve = 0.5;

enum class Mode : std::uint8_t {
  gravity_compensation,
  feedforward,
  computed_torque,
  joint_impedance,
  cartesian_impedance
};
// The stale-state policy, and the policy for the last command (on_stop).
enum class Action : std::uint8_t { hold_gravity, zero, silent };
// The reaction to a contact.
enum class ContactAction : std::uint8_t { report, stop, release };
// Whose axes the stiffness of the tip has: the base link's, or those of the tip's reference.
enum class Frame : std::uint8_t { base, reference };

// In the order of the values; the words are those of the parameters.
inline constexpr const char * kModeNames[] = {
  "gravity_compensation", "feedforward", "computed_torque", "joint_impedance",
  "cartesian_impedance"};
inline constexpr const char * kActionNames[] = {"hold_gravity", "zero", "silent"};
inline constexpr const char * kContactActionNames[] = {"report", "stop", "float"};
inline constexpr const char * kFrameNames[] = {"base", "reference"};
inline const auto & names_of(Mode)
{
  return kModeNames;
}
inline const auto & names_of(Action)
{
  return kActionNames;
}
inline const auto & names_of(ContactAction)
{
  return kContactActionNames;
}
inline const auto & names_of(Frame)
{
  return kFrameNames;
}

// Set a parameter to the value that has a name; throws std::invalid_argument.
template <typename Named>
void set_named(const char * parameter, Named & to, const std::string & name)
{
  const auto & names = names_of(to);
  const auto found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) {
    std::string allowed;
    for (const char * const each : names) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(each);
    }
    throw std::invalid_argument(
      "parameter " + std::string(parameter) + ": '" + name + "'; allowed: " + allowed);
  }
  to = static_cast<Named>(found - std::begin(names));
}

// The parameters of the command pipeline for an arm, under their names: what each means, its unit
// and its default are written only in ros_parameters/command_pipeline.yaml. Vectors are in chain
// order. Every one must be given, with a number for each joint; contact thresholds may be missing.
struct Settings
{
  Mode mode = Mode::gravity_compensation;
  Vector kp, kd;
  struct
  {
    bool inertial = true, coriolis = true, gravity = true, friction = true;
    Vector gravity_factor;
  } terms;
  double friction_velocity = 0.0, friction_compensation = 0.0, friction_dead_zone = 0.0;
  struct
  {
    Vector stiffness, nullspace_stiffness;
    std::array<double, 6> tip_stiffness{};
    Frame frame = Frame::base;
    double damping_ratio = 0.0, tip_speed = 0.0, tip_turn_rate = 0.0;
    double largest_force = 0.0, largest_moment = 0.0;
  } impedance;
  double ramp_time = 0.0, state_timeout = 0.0;
  Action on_stale_state = Action::hold_gravity;
  double stale_hold_time = 0.0;
  Action on_stop = Action::hold_gravity;
  Vector effort_limits;      // those that may be used
  Vector torque_rate_limit;  // infinite: none
  double max_reference_step = 0.0;
  double max_following_error = 0.0;  // infinite: none
  Vector braking_acceleration;       // infinite: what the effort limits allow
  double damping = 0.0, soft_limit_width = 0.0;
  ContactAction on_contact = ContactAction::report;
  Vector contact_threshold_moving, contact_threshold_stationary;
  double contact_dwell = 0.0;
  Vector observer_gain;
  std::array<double, 3> wrench_point{};  // not to change in motion

  // What follows is no parameter.

  Vector position_limits;  // lower and upper of each joint [rad or m]; infinite: none
  Vector velocity_limits;  // rad/s or m/s; infinite: none
  Vector is_continuous;    // 1 for a joint that turns without end, else 0
  // Whether damping alone brakes the arm. It then acts whenever the arm moves, respects
  // braking_acceleration, and is scaled as one vector to fit the effort limits: clipped joint
  // by joint, a damping torque can accelerate a joint.
  bool is_braked_by_damping = false;
};

// Call a function with the name of each parameter and that member of each record: of Settings, or
// of what generate_parameter_library makes. A new parameter is a field above and a line here.
template <typename Function, typename... Records>
void for_each_setting(Function && function, Records &... records)
{
#define ROBODYN_SETTING(name) function(#name, records.name...)
  ROBODYN_SETTING(mode);
  ROBODYN_SETTING(kp);
  ROBODYN_SETTING(kd);
  ROBODYN_SETTING(terms.inertial);
  ROBODYN_SETTING(terms.coriolis);
  ROBODYN_SETTING(terms.gravity);
  ROBODYN_SETTING(terms.friction);
  ROBODYN_SETTING(terms.gravity_factor);
  ROBODYN_SETTING(friction_velocity);
  ROBODYN_SETTING(friction_compensation);
  ROBODYN_SETTING(friction_dead_zone);
  ROBODYN_SETTING(impedance.stiffness);
  ROBODYN_SETTING(impedance.tip_stiffness);
  ROBODYN_SETTING(impedance.frame);
  ROBODYN_SETTING(impedance.nullspace_stiffness);
  ROBODYN_SETTING(impedance.damping_ratio);
  ROBODYN_SETTING(impedance.tip_speed);
  ROBODYN_SETTING(impedance.tip_turn_rate);
  ROBODYN_SETTING(impedance.largest_force);
  ROBODYN_SETTING(impedance.largest_moment);
  ROBODYN_SETTING(ramp_time);
  ROBODYN_SETTING(state_timeout);
  ROBODYN_SETTING(on_stale_state);
  ROBODYN_SETTING(stale_hold_time);
  ROBODYN_SETTING(on_stop);
  ROBODYN_SETTING(effort_limits);
  ROBODYN_SETTING(torque_rate_limit);
  ROBODYN_SETTING(max_reference_step);
  ROBODYN_SETTING(max_following_error);
  ROBODYN_SETTING(braking_acceleration);
  ROBODYN_SETTING(damping);
  ROBODYN_SETTING(soft_limit_width);
  ROBODYN_SETTING(on_contact);
  ROBODYN_SETTING(contact_threshold_moving);
  ROBODYN_SETTING(contact_threshold_stationary);
  ROBODYN_SETTING(contact_dwell);
  ROBODYN_SETTING(observer_gain);
  ROBODYN_SETTING(wrench_point);
#undef ROBODYN_SETTING
}

// Return the name of a setting that has not one number for each joint; null: all have.
inline const char * wrongly_sized(const Settings & settings, std::size_t joints)
{
  const char * wrong = nullptr;
  const auto look = [&wrong, joints](const char * name, const auto & value) {
    if constexpr (std::is_same_v<decltype(value), const Vector &>) {
      const bool may_be_missing = std::strncmp(name, "contact_threshold", 17) == 0;
      if (value.size() != joints && !(may_be_missing && value.empty())) { wrong = name; }
    }
  };
  for_each_setting(look, settings);
  look("velocity_limits", settings.velocity_limits);
  look("is_continuous", settings.is_continuous);
  return settings.position_limits.size() == 2 * joints ? wrong : "position_limits";
}

// Largest changes of the torque by the parameter, of which 0 is no limit. Empty: from nothing to a
// joint's effort limit in a tenth of a second, so that gravity of a large arm in motion is not held
// back, and no less than 1000 N m/s or N/s.
inline Vector torque_rate_limits(const Vector & given, const Vector & effort_limits)
{
  Vector result;
  for (std::size_t i = 0; i < effort_limits.size(); ++i) {
    const double by_effort = std::max(1000.0, 10.0 * effort_limits[i]);
    const double limit = given.empty() ? by_effort : given[i];
    result.push_back(limit > 0.0 ? limit : kInfinity);
  }
  return result;
}

// Why a reference was last dropped or refused, or commanding refused.

// Saturate; NaN stays NaN.
inline double clamped(double value, double lowest, double highest)
{
  return value < lowest ? lowest : value > highest ? highest : value;
}

// Return an angle modulo whole turns, in [-pi, pi].
inline double wrapped(double angle)
{
  constexpr double pi = 3.14159265358979323846;
  const double rest = std::fmod(angle + pi, 2.0 * pi);
  return (rest < 0.0 ? rest + 2.0 * pi : rest) - pi;
}

inline bool has_velocities(const Vector & velocity)
{
  return std::none_of(velocity.begin(), velocity.end(), [](double v) { return std::isnan(v); });
}

inline bool is_finite(const Vector & values)
{
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

inline bool any(const Vector & values)
{
  return std::any_of(values.begin(), values.end(), [](double x) { return x != 0.0; });
}

// Return the part of a damping [1/s] that is stable with velocities that come once in a period
// [s].
//
// With a damping torque that is held for T and uses the velocity of one period before, v[k+1]
// = v[k] - d T v[k-1]. It decays for d T < 1, and without oscillation up to d T = 1/4.
inline double allowed_damping(double damping, double period)
{
  constexpr double margin = 0.2;
  return damping * period <= margin ? damping : margin / period;
}

constexpr double kSpeedTolerance = 1.1;   // of a velocity limit, that a setpoint may have
constexpr double kRestSpeed = 0.01;       // a slower joint is at rest [rad/s or m/s]
constexpr double kSettledSpeed = 0.0005;  // a slower arm may be left with a constant torque

// Whether all joints are slower than a speed; unknown velocities are not.
inline bool is_at_rest(const Vector & velocity, double speed = kRestSpeed)
{
  return std::all_of(
    velocity.begin(), velocity.end(), [speed](double v) { return std::fabs(v) < speed; });
}

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__SETTINGS_HPP_
