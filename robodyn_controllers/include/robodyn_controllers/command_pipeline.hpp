// SPDX-License-Identifier: Apache-2.0
// Everything between the control law and the effort interfaces, without ROS: CommandPipeline of
// robodyn_ros/control, for references that come with each cycle. The numeric step is the same
// source, torque_step.h; for what is decided here, the Python function of the same name is the
// reference. Nothing but the constructor allocates; nothing waits, logs or throws.
#ifndef ROBODYN_CONTROLLERS__COMMAND_PIPELINE_HPP_
#define ROBODYN_CONTROLLERS__COMMAND_PIPELINE_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "robodyn_controllers/bridging.hpp"
#include "robodyn_controllers/evaluation.hpp"
#include "robodyn_controllers/fallback.hpp"
#include "robodyn_controllers/pipeline_state.hpp"
#include "robodyn_controllers/plausibility.hpp"
#include "robodyn_controllers/reference_follower.hpp"
#include "robodyn_controllers/settings.hpp"

namespace robodyn_controllers
{

class CommandPipeline
{
public:
  // The model must outlive it; every vector of the settings has one number for each joint.
  CommandPipeline(
    const robodyn_model & model, const LawSettings & law, const SafetySettings & settings)
  : state_(model, law, settings), n_(state_.n), follower_(state_), plausibility_(state_),
    evaluation_(state_), bridging_(state_), fallback_(state_, evaluation_), wanted_(n_),
    position_(n_), velocity_(n_), gravity_(n_), gravity_before_(n_), sent_(n_),
    last_torque_(n_), limited_effort_(n_), limited_rate_(n_) {}

  // Its parts refer to one another.
  CommandPipeline(const CommandPipeline &) = delete;
  CommandPipeline & operator=(const CommandPipeline &) = delete;

  // --- what is asked of it -------------------------------------------------------------------

  // Begin to command with the next valid state.
  void enable(double now)
  {
    if (is_enabled_) {return;}
    now = passed(now);
    is_enabled_ = true;
    state_.fault = Fault::none;
    state_.has_state = is_too_fast_ = is_stopping_ = has_clock_ = false;
    state_.time = last_update_ = now;
    elapsed_ = 0.0;
    plausibility_.reset();
    fallback_.reset();
    state_.law.jump();
    follower_.reset();
  }

  // Command nothing more; stop_command comes before.
  void disable()
  {
    is_enabled_ = is_stopping_ = false;
    follower_.forget();
  }

  // Take another mode, other gains or other terms; the active law fades into it.
  void change_law(const LawSettings & law)
  {
    ActiveLaw & active = state_.law;
    const SafetySettings & settings = state_.settings;
    const bool had_feedback = active.goal().has_feedback();
    const bool is_moving = state_.has_state && !is_at_rest(state_.velocity);
    const bool is_damped =
      active.goal().damping != 0.0 || (is_moving && follower_.has_reference());
    active.change(law, settings.ramp_time, is_damped ? settings.damping : 0.0);
    if (!had_feedback && active.latest().has_feedback() && follower_.is_far()) {
      follower_.give_up(Fault::feedback_far_away);
    }
  }

  // Take other limits and reactions; the sizes are those of before.
  void change_settings(const SafetySettings & settings) {state_.settings = settings;}

  // Take another payload or gravity, and return true; false, and nothing has changed, where
  // gravity would exceed an effort limit that it did not exceed before.
  bool change_load(const double * load)
  {
    const SafetySettings & settings = state_.settings;
    if (state_.has_state) {
      state_.model.gravity_under(load, state_.position.data(), gravity_.data());
      const double weight = state_.law.latest().gravity();
      evaluation_.gravity_torque(state_.position, gravity_before_);
      for (std::size_t i = 0; i < n_; ++i) {
        gravity_[i] *= weight;
        const double limit = std::fmax(settings.effort_limits[i], std::fabs(gravity_before_[i]));
        if (is_enabled_ && !(std::fabs(gravity_[i]) <= limit)) {return false;}
      }
      fallback_.change_gravity(gravity_);
    }
    bool is_shaped = true;
    for (const double rate : settings.torque_rate_limits) {is_shaped &= std::isfinite(rate);}
    state_.model.change(load, is_shaped || !state_.has_state ? 0.0 : settings.ramp_time);
    return true;
  }

  // Bring a moving arm to rest, until has_stopped; no reference is followed any more.
  void begin_stop()
  {
    if (!is_enabled_ || is_stopping_) {return;}
    is_stopping_ = true;
    const bool is_following =
      follower_.has_reference() || follower_.is_fading() || follower_.is_brake_due();
    if (is_following) {
      follower_.cancel();
    } else {
      state_.law.jump(state_.settings.damping);
    }
  }

  // Whether there is nothing to wait for before the stop command: no motion, no states.
  bool has_stopped() const
  {
    if (!state_.has_state || is_stale() || mode() == Mode::feedforward) {return true;}
    if (!has_velocities(state_.velocity)) {return !follower_.is_brake_due();}
    return !follower_.is_brake_due() && follower_.has_settled();
  }

  // --- what it commands ----------------------------------------------------------------------

  // Do one control cycle at a steady time [s], and return whether there is a torque to command;
  // where there is none, what was commanded last goes on to act. A position that is not finite,
  // or that the joint cannot have at all, is no valid state, a velocity that is not finite is one
  // that is not known. No reference, or one with a position or velocity that is not finite, ends
  // what is followed; an acceleration or effort that is not finite counts as zero.
  bool update(
    double now, const double * position, const double * velocity,
    const robodyn_reference & reference)
  {
    has_command_ = false;
    now = passed(now);
    if (!is_enabled_) {return false;}
    if (state_.has_state && now - last_update_ > state_.settings.state_timeout) {
      become_stale(now - state_.time, now);  // nobody has commanded meanwhile
    }
    last_update_ = now;
    follower_.take(reference, now, may_follow());
    bool is_valid = true;
    for (std::size_t i = 0; i < n_; ++i) {
      position_[i] = position[i];
      velocity_[i] = std::isfinite(velocity[i]) ? velocity[i] : kNaN;
      is_valid &= std::isfinite(position[i]);
    }
    if (is_valid && !plausibility_.is_possible(position)) {
      state_.fault = Fault::impossible_position;
      is_valid = false;
    } else if (is_valid && state_.fault == Fault::impossible_position) {
      state_.fault = Fault::none;
    }
    if (is_valid) {
      elapsed_ += has_clock_ ? now - clock_ : 0.0;
      clock_ = now;
      has_clock_ = true;
      cycle(now);
    }
    if (!has_command_) {watchdog(now);}
    return has_command_;
  }

  // Return whether there is a next command on the way to what on_stop says. Call it instead of
  // update once has_stopped, and until is_stop_command_sent.
  bool stop_command(double now)
  {
    has_command_ = false;
    now = passed(now);
    if (!is_enabled_ || !state_.has_state || is_stop_command_sent()) {return false;}
    if (!fallback_.stop_torque()) {return false;}
    limit(fallback_.torque(), now);
    fallback_.note_stop_command(
      std::none_of(
        limited_rate_.begin(), limited_rate_.end(), [](unsigned char each) {return each != 0;}));
    return has_command_;
  }

  // --- what it says about itself -------------------------------------------------------------

  const Vector & torque() const {return last_torque_;}  // the last command
  const Vector & parts() const {return evaluation_.parts();}  // ROBODYN_PARTS times n
  const ReferenceState & wanted() const {return wanted_;}  // what is followed, if anything is
  const std::vector<unsigned char> & effort_limited() const {return limited_effort_;}
  const std::vector<unsigned char> & rate_limited() const {return limited_rate_;}
  const Vector & penetration() const {return evaluation_.penetration();}  // of limits, -1 to 1
  const Counts & counts() const {return state_.counts;}
  Fault last_fault() const {return state_.fault;}
  Mode mode() const {return state_.law.mode();}
  bool is_enabled() const {return is_enabled_;}
  bool is_stopping() const {return is_stopping_;}
  bool is_stale() const {return fallback_.is_stale();}
  bool is_stop_command_sent() const {return fallback_.is_stop_command_sent();}
  Following following() const {return follower_.following();}
  LoadedModel & model() {return state_.model;}

private:
  // Return a time that is finite and never before another one.
  double passed(double now)
  {
    if (std::isfinite(now) && now > now_) {now_ = now;}
    return now_;
  }

  bool may_follow() const
  {
    return !is_stopping_ && state_.has_state && !is_stale() &&
           has_velocities(state_.velocity) && mode() != Mode::gravity_compensation;
  }

  // --- with a valid state: position_ and velocity_ -------------------------------------------

  void cycle(double now)
  {
    const double damping = state_.settings.damping;
    if (!state_.has_state) {
      if (!may_begin(now)) {return;}
      state_.law.jump(follower_.is_brake_due() ? 0.0 : damping);
    } else if (is_stale()) {
      state_.law.jump(follower_.is_brake_due() ? 0.0 : damping);
    } else if (!is_believed(now)) {
      return;
    }
    if (is_too_fast()) {state_.law.jump(damping);}
    const bool has_wanted = supervise(now);
    const LawWeights & law = state_.law.at(elapsed_);
    const ReferenceState * const wanted = has_wanted ? &wanted_ : nullptr;
    if (!evaluation_.evaluate(law, position_, velocity_, wanted, elapsed_, follower_)) {
      ++state_.counts.refused_torques;
      return;
    }
    advance();
    if (!is_stale()) {bridging_.note(now - state_.time);}
    state_.position = position_;
    state_.velocity = velocity_;
    state_.has_state = true;
    state_.time = now;
    follower_.note();
    fallback_.end();
    limit(evaluation_.torque(), now);
  }

  // Whether to command for a first state: one in which the drives can carry the arm.
  bool may_begin(double now)
  {
    evaluation_.gravity_torque(position_, gravity_);
    for (std::size_t i = 0; i < n_; ++i) {
      if (!(std::fabs(gravity_[i]) <= state_.settings.effort_limits[i])) {
        state_.fault = Fault::overload;
        ++state_.counts.refused_torques;
        return false;
      }
    }
    if (now - last_sent_ >= state_.settings.state_timeout) {has_last_torque_ = false;}
    if (has_velocities(velocity_) && !is_at_rest(velocity_, kStill)) {
      follower_.brake_if_it_can();
    }
    return true;
  }

  bool is_believed(double now)
  {
    const Verdict verdict = plausibility_.verdict(position_, now);
    state_.counts.implausible_states += verdict != Verdict::plausible;
    if (verdict == Verdict::jump && follower_.has_reference()) {
      follower_.give_up(Fault::implausible_position);
    }
    return verdict != Verdict::outlier;
  }

  bool is_too_fast()
  {
    const bool is_fast = plausibility_.is_too_fast(velocity_);
    if (is_fast) {
      if (!is_too_fast_) {state_.fault = Fault::overspeed;}
      follower_.drop();
    }
    is_too_fast_ = is_fast;
    return is_fast;
  }

  // Write what is to be followed now to wanted_, and return whether anything is. Before, what
  // cannot be followed on is given up, and braked where it is due.
  bool supervise(double now)
  {
    bool has_wanted = follower_.sample(now, wanted_);
    if (has_wanted && !has_velocities(velocity_)) {
      follower_.give_up(Fault::unknown_velocity);
      has_wanted = false;
    } else if (has_wanted && state_.law.latest().follows() && !is_followed_closely()) {
      ++state_.counts.following_errors;
      follower_.give_up(Fault::following_error);
      has_wanted = false;
    }
    if (follower_.is_brake_due() && has_velocities(velocity_)) {
      follower_.brake(position_, velocity_, now);
      has_wanted = follower_.sample(now, wanted_);
    }
    return has_wanted;
  }

  bool is_followed_closely() const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      const double distance = std::fabs(state_.error(wanted_.position[i], position_[i], i));
      if (distance > state_.settings.max_following_error) {return false;}
    }
    return true;
  }

  // Let the time since the last valid cycle pass, for all that fades.
  void advance()
  {
    const double elapsed = elapsed_;
    elapsed_ = 0.0;
    state_.law.advance(elapsed, velocity_, state_.settings.ramp_time);
    state_.model.advance(elapsed, state_.settings.ramp_time);
    follower_.advance(elapsed);
    if (!state_.law.follows()) {follower_.drop();}
  }

  // Limit a torque; the result counts as sent.
  void limit(const Vector & torque, double now)
  {
    const double * const last = has_last_torque_ ? last_torque_.data() : nullptr;
    robodyn_limited(
      static_cast<int>(n_), torque.data(), state_.settings.effort_limits.data(),
      state_.settings.torque_rate_limits.data(), last, now - last_sent_, sent_.data(),
      limited_effort_.data(), limited_rate_.data());
    last_torque_ = sent_;
    has_last_torque_ = true;
    last_sent_ = now;
    has_command_ = true;
  }

  // --- without one ---------------------------------------------------------------------------

  void watchdog(double now)
  {
    if (!state_.has_state) {return;}
    const double gap = now - state_.time;
    if (gap <= state_.settings.state_timeout) {
      bridge(gap, now);
      return;
    }
    become_stale(gap, now);
    if (fallback_.stale_torque(now, half_a_step(now))) {limit(fallback_.torque(), now);}
  }

  // Commands that come now and then are for the middle of the time for which they act [s].
  double half_a_step(double now) const
  {
    return 0.5 * std::min(now - last_sent_, ROBODYN_LONGEST_RATE_STEP);
  }

  // Command for where the arm should be by now, if its state is late.
  void bridge(double gap, double now)
  {
    if (is_stale() || follower_.is_brake_due() || !bridging_.is_due(gap)) {return;}
    gap += half_a_step(now);
    bridging_.expect(follower_, gap);
    const double elapsed = elapsed_ + gap;
    const double time = state_.time + std::min(gap, Bridging::kLongestGap);
    const bool has_wanted = follower_.sample(time, wanted_);
    if (evaluation_.evaluate(
        state_.law.at(elapsed), bridging_.position(), bridging_.velocity(),
        has_wanted ? &wanted_ : nullptr, elapsed, follower_))
    {
      limit(evaluation_.torque(), now);
    }
  }

  // Give up what is followed, once.
  void become_stale(double gap, double now)
  {
    if (is_stale()) {return;}
    bridging_.expect(follower_, gap);
    if (follower_.has_reference()) {follower_.give_up(Fault::stale_state);}
    follower_.end_fading();
    fallback_.begin(bridging_.position(), bridging_.velocity(), follower_.is_brake_due(), now);
  }

  PipelineState state_;
  const std::size_t n_;
  ReferenceFollower follower_;
  Plausibility plausibility_;
  Evaluation evaluation_;
  Bridging bridging_;
  Fallback fallback_;
  ReferenceState wanted_;
  Vector position_, velocity_;  // of this cycle
  Vector gravity_, gravity_before_, sent_, last_torque_;
  std::vector<unsigned char> limited_effort_, limited_rate_;
  bool is_enabled_ = false, is_stopping_ = false, is_too_fast_ = false, has_clock_ = false;
  bool has_command_ = false, has_last_torque_ = false;
  double now_ = 0.0, last_update_ = 0.0, clock_ = 0.0, elapsed_ = 0.0;
  double last_sent_ = -kInfinity;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__COMMAND_PIPELINE_HPP_
