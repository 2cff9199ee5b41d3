// SPDX-License-Identifier: Apache-2.0
// What is held while no valid state comes: an open-loop brake, then gravity where it ends.
#ifndef ROBODYN_ROS__CORE__STALE_STATES_HPP_
#define ROBODYN_ROS__CORE__STALE_STATES_HPP_

#include <cstddef>

#include "reference.hpp"
#include "reference_follower.hpp"
#include "settings.hpp"

namespace robodyn
{

class StaleStates
{
public:
  explicit StaleStates(std::size_t joints) : brake_(joints), rest_(joints), held_(joints) {}

  bool are_stale() const { return are_stale_; }
  // Whether gravity is still held (stale_hold_time).
  bool is_holding_gravity() const { return is_holding_gravity_; }
  const Vector & rest() const { return rest_; }  // position where gravity is held
  Vector & held() { return held_; }              // its torque there

  void reset() { are_stale_ = is_holding_gravity_ = has_brake_ = false; }
  void recover() { are_stale_ = false; }

  // Begin at a steady time [s] with an arm that is expected at a position and a velocity; braked from
  // there, by the model without feedback, or at rest.
  void begin(
    RuntimeState & state, ReferenceFollower & follower, const Vector & position,
    const Vector & velocity, double now, bool is_braked)
  {
    has_brake_ = is_braked;
    if (is_braked) { follower.plan_brake(position, velocity, now, brake_); }
    rest_ = is_braked ? brake_.end.position : position;
    state.parts.gravity(state.law.latest(), state.model, rest_, held_);
    are_stale_ = is_holding_gravity_ = true;
    since_ = now;
  }

  // Give up holding gravity after a time [s]: for good, also if that is changed.
  void end_holding(double now, double longest)
  {
    if (now - since_ >= longest) { is_holding_gravity_ = false; }
  }

  // Write the reference of the brake at a steady time [s] and return true; false: it has ended.
  bool sample_brake(double time, ReferenceState & to) const
  {
    if (!has_brake_ || brake_.is_finished(time)) { return false; }
    brake_.sample(time, to);
    return true;
  }

private:
  Motion brake_;  // by the steady clock
  Vector rest_, held_;
  bool are_stale_ = false, is_holding_gravity_ = false, has_brake_ = false;
  double since_ = 0.0;  // s
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__STALE_STATES_HPP_
