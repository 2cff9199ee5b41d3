// SPDX-License-Identifier: Apache-2.0
// What a user sets of the command pipeline, and how it tells what was wrong: as numbers, no words.
#ifndef ROBODYN_ROS__CORE__SETTINGS_HPP_
#define ROBODYN_ROS__CORE__SETTINGS_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace robodyn
{

using Vector = std::vector<double>;  // one number for each joint, in chain order, base to tip

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

enum class Mode : std::uint8_t { gravity_compensation, feedforward, computed_torque };
// What to command while states are stale, and what to leave behind at the end.
enum class Action : std::uint8_t { hold_gravity, zero, silent };

// Which parts of the model's torque are commanded; a driver may already add some itself.
struct Terms
{
  bool inertial = true, coriolis = true, gravity = true, friction = true;
};

// Every number of the settings must be given: their defaults are those of the parameters, in
// ros_parameters/command_pipeline.yaml, and written there alone.

// The control law; it may change while the arm moves.
struct LawSettings
{
  Mode mode = Mode::gravity_compensation;
  Terms terms;
  Vector kp, kd;                   // 1/s^2 and 1/s: they act on accelerations
  double friction_velocity = 0.0;  // rad/s or m/s, the width of the smooth sign
  double position_guard = 0.0;     // rad or m, the width of the soft joint limits; 0: none
};

// What the pipeline never exceeds, and what it does when states or commanding end.
struct Settings
{
  Vector effort_limits;         // N m or N
  Vector torque_rate_limits;    // N m/s or N/s; infinite: none
  Vector braking_acceleration;  // rad/s^2 or m/s^2; infinite: what the effort limits allow
  Vector position_limits;       // lower and upper of each joint [rad or m]; infinite: none
  Vector velocity_limits;       // rad/s or m/s; infinite: none
  Vector is_continuous;         // 1 for a joint that turns without end, else 0
  double ramp_time = 0.0;       // s, that a change of law takes
  double state_timeout = 0.0;   // s
  Action on_stale_state = Action::hold_gravity;
  double stale_hold_time = 0.0;  // s
  Action on_stop = Action::hold_gravity;
  double max_reference_step = 0.0;   // rad or m
  double max_following_error = 0.0;  // rad or m; infinite: none
  double damping = 0.0;              // 1/s, of an arm that moves when it is to float
  // Whether damping is all that brakes the arm. Then it acts whenever the arm moves, obeys
  // braking_acceleration, and shrinks as one vector where the effort limits would clip it: clipped
  // joint by joint it may push.
  bool is_braked_by_damping = false;
};

// Why a reference was last given up or refused, or commanding was.
enum class Cause : std::uint8_t {
  none,
  following_error,       // a joint is further from its reference than max_following_error
  implausible_position,  // a position changed faster than its joint can move
  overspeed,             // a joint moves faster than kOverspeed times its velocity limit
  overload,              // gravity is beyond an effort limit where the arm is
  unknown_velocity,      // velocities are not known while a reference is followed
  stale_state,           // no valid state for longer than state_timeout
  refused_reference,     // a setpoint outside position or velocity limits, or too far a step
  feedback_far_away,     // feedback began while the arm was far from the reference
  impossible_position,   // a position so far beyond its limits that it is in another unit
  clock,                 // the states' stamps jumped, stopped or do not keep pace with time
  no_following_mode,     // a mode that follows nothing took over
  contact,               // a contact that is to be reacted to
  slow_states,           // at a rate [Hz] that is too low for the gains, which need the limit
  damping_feeds,         // damping was given up: the energy [J] grew over its least, the limit
  wrong_velocity,        // a joint's velocity is not that of its positions, but so many times it
};

// In the order of Cause.
constexpr const char * kCauseNames[] = {
  "none",
  "following_error",
  "implausible_position",
  "overspeed",
  "overload",
  "unknown_velocity",
  "stale_state",
  "refused_reference",
  "feedback_far_away",
  "impossible_position",
  "clock",
  "no_following_mode",
  "contact",
  "slow_states",
  "damping_feeds",
  "wrong_velocity"};
static_assert(
  sizeof(kCauseNames) / sizeof(*kCauseNames) ==
    static_cast<std::size_t>(Cause::wrong_velocity) + 1,
  "one name for each cause");

struct Fault
{
  Cause cause = Cause::none;
  int joint = -1;  // in chain order; -1: none in particular
  double value = kNaN, limit = kNaN;

  const char * name() const { return kCauseNames[static_cast<std::size_t>(cause)]; }
};

// Why the last state gave no command.
enum class Refusal : std::uint8_t { none, implausible, overload, not_finite };

struct Counts
{
  std::uint64_t refused_torques = 0, implausible_states = 0, following_errors = 0;
  std::uint64_t dropped_references = 0, refused_references = 0;
};

// Clip; NaN stays NaN.
inline double clamped(double value, double lowest, double highest)
{
  return value < lowest ? lowest : value > highest ? highest : value;
}

// Return an angle with whole turns taken away, in [-pi, pi].
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

// Return what of a damping [1/s] velocities allow that come once in a period [s].
//
// A velocity under damping d that is held for T, and a period late, obeys
// v[k+1] = v[k] - d T v[k-1]. It falls for d T < 1, and without swinging up to 1/4.
inline double allowed_damping(double damping, double period)
{
  constexpr double margin = 0.2;
  return damping * period <= margin ? damping : margin / period;
}

constexpr double kRestSpeed = 0.01;  // a joint that is slower is at rest [rad/s or m/s]
constexpr double kStill = 0.0005;    // slower than this a torque that stays as it is may be left

// Whether all joints are slower than a speed; unknown velocities are not.
inline bool is_at_rest(const Vector & velocity, double speed = kRestSpeed)
{
  return std::all_of(
    velocity.begin(), velocity.end(), [speed](double v) { return std::fabs(v) < speed; });
}

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__SETTINGS_HPP_
