// SPDX-License-Identifier: Apache-2.0
// The active law: the coefficients that its torque is linear in, and their transitions. The
// reference for each function is the one of its name in law_weights.py, law_transition.py and
// active_law.py.
#ifndef ROBODYN_CONTROLLERS__ACTIVE_LAW_HPP_
#define ROBODYN_CONTROLLERS__ACTIVE_LAW_HPP_

#include <array>
#include <cmath>
#include <cstddef>

#include "robodyn_controllers/settings.hpp"
#include "robodyn_ros/torque_step.h"

namespace robodyn_controllers
{

constexpr double kRestSpeed = 0.01;  // a joint that is slower is at rest [rad/s or m/s]
constexpr double kStill = 0.0005;    // slower than this a torque may be left behind

// Whether all joints are slower than a speed; unknown velocities are not.
inline bool is_at_rest(const Vector & velocity, double speed = kRestSpeed)
{
  for (const double each : velocity) {
    if (!(std::fabs(each) < speed)) {return false;}
  }
  return true;
}

// The coefficients of one law, or of a law on its way to another.
struct LawWeights
{
  double hold = 0.0, damping = 0.0, friction_slope = 0.0, limit_slope = 0.0;
  std::array<double, ROBODYN_COEFFICIENTS> feedforward{}, computed{};
  Vector kp, kd, limit_damping;

  explicit LawWeights(std::size_t joints)
  : kp(joints), kd(joints), limit_damping(joints) {}

  // Become those of a law, without damping.
  void become(const LawSettings & law)
  {
    const bool is_computed = law.mode == Mode::computed_torque;
    const std::array<double, ROBODYN_COEFFICIENTS> none{}, model{
      static_cast<double>(law.terms.inertial), static_cast<double>(law.terms.coriolis),
      static_cast<double>(law.terms.gravity), static_cast<double>(law.terms.friction), 1.0};
    hold = law.mode == Mode::gravity_compensation && law.terms.gravity ? 1.0 : 0.0;
    feedforward = law.mode == Mode::feedforward ? model : none;
    computed = is_computed ? model : none;
    for (std::size_t i = 0; i < kp.size(); ++i) {
      kp[i] = is_computed ? law.kp[i] : 0.0;
      kd[i] = is_computed ? law.kd[i] : 0.0;
      limit_damping[i] = law.kd[i];
    }
    damping = 0.0;
    friction_slope = 1.0 / law.friction_velocity;
    limit_slope = law.position_guard > 0.0 ? 1.0 / law.position_guard : 0.0;
  }

  bool has_feedforward() const {return robodyn_any(feedforward.data(), ROBODYN_COEFFICIENTS);}
  bool has_feedback() const
  {
    const int n = static_cast<int>(kp.size());
    return robodyn_any(computed.data(), ROBODYN_COEFFICIENTS) || robodyn_any(kp.data(), n) ||
           robodyn_any(kd.data(), n);
  }
  bool follows() const {return has_feedforward() || has_feedback();}

  // The coefficient of g(q) where there is no reference.
  double gravity() const
  {
    return hold + feedforward[ROBODYN_GRAVITY] + computed[ROBODYN_GRAVITY];
  }

  bool operator==(const LawWeights & other) const
  {
    return hold == other.hold && damping == other.damping &&
           friction_slope == other.friction_slope && limit_slope == other.limit_slope &&
           feedforward == other.feedforward && computed == other.computed && kp == other.kp &&
           kd == other.kd && limit_damping == other.limit_damping;
  }

  // Become the combination of two that has a fraction, 0 to 1, of the second.
  void mix(const LawWeights & a, const LawWeights & b, double fraction)
  {
    const auto between = [fraction](double x, double y) {
        return (1.0 - fraction) * x + fraction * y;
      };
    hold = between(a.hold, b.hold);
    damping = between(a.damping, b.damping);
    friction_slope = between(a.friction_slope, b.friction_slope);
    limit_slope = between(a.limit_slope, b.limit_slope);
    for (std::size_t k = 0; k < feedforward.size(); ++k) {
      feedforward[k] = between(a.feedforward[k], b.feedforward[k]);
      computed[k] = between(a.computed[k], b.computed[k]);
    }
    for (std::size_t i = 0; i < kp.size(); ++i) {
      kp[i] = between(a.kp[i], b.kp[i]);
      kd[i] = between(a.kd[i], b.kd[i]);
      limit_damping[i] = between(a.limit_damping[i], b.limit_damping[i]);
    }
  }

  // For torque_step.h.
  robodyn_law law(const Vector & is_continuous) const
  {
    return {static_cast<int>(kp.size()), hold, damping, friction_slope, limit_slope,
      feedforward.data(), computed.data(), kp.data(), kd.data(), limit_damping.data(),
      is_continuous.data()};
  }
};

class ActiveLaw
{
public:
  ActiveLaw(std::size_t joints, const LawSettings & law)
  : mode_(law.mode), latest_(joints), origin_(joints), goal_(joints), mixed_(joints),
    wanted_(joints)
  {
    latest_.become(law);
    goal_ = latest_;
  }

  Mode mode() const {return mode_;}
  const LawWeights & latest() const {return latest_;}
  const LawWeights & goal() const {return goal_;}

  // Whether a reference makes a difference, or does until the transition is over.
  bool follows() const {return is_under_way_ || goal_.follows();}

  // The active weights a time [s] ahead.
  const LawWeights & at(double ahead)
  {
    const double elapsed = elapsed_ + ahead;
    if (!is_under_way_ || elapsed >= duration_) {return goal_;}
    mixed_.mix(origin_, goal_, elapsed / duration_);
    return mixed_;
  }

  // Fade into another law in a duration [s], with damping [1/s].
  void change(const LawSettings & law, double duration, double damping)
  {
    wanted_.become(law);
    mode_ = law.mode;
    if (wanted_ == latest_) {return;}
    latest_ = wanted_;
    if (damping != 0.0 && law.mode == Mode::gravity_compensation) {
      wanted_.damping = damping;
      damped_ = 0.0;
    }
    begin(duration);
  }

  // Apply the latest law at once, with damping [1/s]; the rate limit shapes it.
  void jump(double damping = 0.0)
  {
    goal_ = latest_;
    is_under_way_ = false;
    if (damping != 0.0 && mode_ != Mode::feedforward) {
      goal_.damping = damping;
      damped_ = 0.0;
    }
  }

  // Fade the damping out in a duration [s].
  void end_damping(double duration)
  {
    if (goal_.damping == 0.0) {return;}
    wanted_ = goal_;
    wanted_.damping = 0.0;
    begin(duration);
  }

  // Let time pass [s], at a velocity; what begins by it takes the duration [s].
  void advance(double elapsed, const Vector & velocity, double duration)
  {
    if (is_under_way_) {
      elapsed_ += elapsed;
      is_under_way_ = elapsed_ < duration_;
    }
    if (goal_.damping != 0.0 && !is_under_way_) {
      damped_ += elapsed;
      if (is_at_rest(velocity) || damped_ * goal_.damping > kDampingTimes) {
        end_damping(duration);
      }
    }
  }

private:
  static constexpr double kDampingTimes = 10.0;

  // Move from the active weights to wanted_.
  void begin(double duration)
  {
    if (wanted_ == goal_) {return;}
    origin_ = at(0.0);
    goal_ = wanted_;
    is_under_way_ = true;
    elapsed_ = 0.0;
    duration_ = duration;
  }

  Mode mode_;
  LawWeights latest_, origin_, goal_, mixed_, wanted_;
  bool is_under_way_ = false;
  double elapsed_ = 0.0, duration_ = 0.0, damped_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__ACTIVE_LAW_HPP_
