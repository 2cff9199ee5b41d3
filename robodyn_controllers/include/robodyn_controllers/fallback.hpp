// SPDX-License-Identifier: Apache-2.0
// What to command while there are no valid states, and what to leave behind at the end;
// fallback.py.
#ifndef ROBODYN_CONTROLLERS__FALLBACK_HPP_
#define ROBODYN_CONTROLLERS__FALLBACK_HPP_

#include <algorithm>

#include "robodyn_controllers/braking.hpp"
#include "robodyn_controllers/evaluation.hpp"
#include "robodyn_controllers/pipeline_state.hpp"

namespace robodyn_controllers
{

class Fallback
{
public:
  Fallback(PipelineState & state, Evaluation & evaluation)
  : state_(state), evaluation_(evaluation), braking_(state.n), braked_(state.n), rest_(state.n),
    held_(state.n), stop_torque_(state.n), torque_(state.n) {}

  bool is_stale() const {return is_stale_;}
  bool is_stop_command_sent() const {return is_stop_command_sent_;}
  const Vector & torque() const {return torque_;}

  // Begin anew.
  void reset()
  {
    is_stale_ = has_held_ = is_braking_ = has_stop_torque_ = is_stop_command_sent_ = false;
  }

  // Take note that states are stale since now, of an arm at a position and velocity: one that is
  // to be braked is braked by the model alone, and gravity is held where this ends.
  void begin(const Vector & position, const Vector & velocity, bool is_brake_due, double now)
  {
    is_braking_ = is_brake_due && has_velocities(state_.velocity) && !is_at_rest(velocity);
    rest_ = position;
    if (is_braking_) {
      braking_.plan(state_.model, state_.settings, position, velocity, now);
      rest_ = braking_.end_position();
    }
    evaluation_.gravity_torque(rest_, held_);
    has_held_ = is_stale_ = true;
    stale_since_ = now;
  }

  // Take note that states are valid again.
  void end() {is_stale_ = false;}

  // Take another model's gravity at the last valid state, where it is still held.
  void change_gravity(const Vector & gravity) {if (has_held_) {held_ = gravity;}}

  // Write what stale states ask for at a time [s], to act for another one, to torque(), and
  // return true; false: silence.
  bool stale_torque(double now, double half_a_step)
  {
    if (now - stale_since_ >= state_.settings.stale_hold_time) {has_held_ = false;}
    const Action action = state_.settings.on_stale_state;
    if (action == Action::zero) {
      std::fill(torque_.begin(), torque_.end(), 0.0);
      return true;
    }
    if (action == Action::silent || !has_held_ || !is_finite(held_)) {return false;}
    const double time = now + half_a_step;
    if (is_braking_ && !braking_.is_finished(time)) {
      braking_.sample(time, braked_);
      if (evaluation_.evaluate_at(braked_)) {
        torque_ = evaluation_.torque();
        return true;
      }
    }
    torque_ = held_;
    return true;
  }

  // Write where the stop command leads to torque(), and return true; false: silence, for good.
  bool stop_torque()
  {
    if (!has_stop_torque_) {
      if (state_.settings.on_stop == Action::silent) {
        is_stop_command_sent_ = true;
        return false;
      }
      if (state_.settings.on_stop == Action::zero) {
        std::fill(stop_torque_.begin(), stop_torque_.end(), 0.0);
      } else {
        evaluation_.gravity_torque(state_.position, stop_torque_);
      }
      has_stop_torque_ = true;
    }
    torque_ = stop_torque_;
    return true;
  }

  // Take note of whether the stop command was sent as it is, not on the way to it.
  void note_stop_command(bool is_whole) {is_stop_command_sent_ = is_whole;}

private:
  PipelineState & state_;
  Evaluation & evaluation_;
  Braking braking_;
  ReferenceState braked_;
  Vector rest_, held_, stop_torque_, torque_;
  bool is_stale_ = false, has_held_ = false, is_braking_ = false;
  bool has_stop_torque_ = false, is_stop_command_sent_ = false;
  double stale_since_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__FALLBACK_HPP_
