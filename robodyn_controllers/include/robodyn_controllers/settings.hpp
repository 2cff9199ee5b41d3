// SPDX-License-Identifier: Apache-2.0
// What a user sets of the command pipeline, with the dynamics node's names, defaults and meaning.
#ifndef ROBODYN_CONTROLLERS__SETTINGS_HPP_
#define ROBODYN_CONTROLLERS__SETTINGS_HPP_

#include <limits>
#include <vector>

namespace robodyn_controllers
{

using Vector = std::vector<double>;  // one number for each joint, in chain order

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

enum class Mode { gravity_compensation, feedforward, computed_torque };
enum class Action { hold_gravity, zero, silent };

// Which parts of the model's torque are commanded; a driver may already add some itself.
struct Terms
{
  bool inertial = true, coriolis = true, gravity = true, friction = true;
};

// The control law; may change while the arm moves.
struct LawSettings
{
  Mode mode = Mode::gravity_compensation;
  Terms terms;
  Vector kp, kd;                   // 1/s^2 and 1/s: they act on accelerations
  double friction_velocity = 0.01;  // rad/s or m/s, the width of the smooth sign
  double position_guard = 0.05;     // rad or m, the width of the soft joint limits; 0: none
};

// What the pipeline never exceeds, and what it does when states or commanding end.
struct SafetySettings
{
  Vector effort_limits;         // N m or N, already multiplied by effort_limit_scale
  Vector torque_rate_limits;    // N m/s or N/s; infinite: none
  Vector braking_acceleration;  // rad/s^2 or m/s^2; infinite: what the effort limits allow
  Vector position_limits;       // lower and upper of each joint; infinite: none
  Vector velocity_limits;       // rad/s or m/s; infinite: none
  Vector is_continuous;         // 1 for a joint that turns without end, else 0
  double ramp_time = 0.5;
  double state_timeout = 0.1;
  Action on_stale_state = Action::hold_gravity;
  double stale_hold_time = 1.0;
  Action on_stop = Action::hold_gravity;
  double max_reference_step = 0.1;
  double max_following_error = 0.2;  // infinite: none
  double damping = 5.0;              // 1/s
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__SETTINGS_HPP_
