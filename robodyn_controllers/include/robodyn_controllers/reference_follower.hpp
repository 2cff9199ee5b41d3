// SPDX-License-Identifier: Apache-2.0
// Which reference is followed, how it ends, and where it leads; reference_follower.py, for
// references that come with each cycle.
#ifndef ROBODYN_CONTROLLERS__REFERENCE_FOLLOWER_HPP_
#define ROBODYN_CONTROLLERS__REFERENCE_FOLLOWER_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "robodyn_controllers/braking.hpp"
#include "robodyn_controllers/pipeline_state.hpp"
#include "robodyn_controllers/reference.hpp"

namespace robodyn_controllers
{

// What a reference is doing.
enum class Following : std::uint8_t { none, following, braking, holding };

class ReferenceFollower
{
public:
  explicit ReferenceFollower(PipelineState & state)
  : state_(state), n_(state.n), braking_(n_), given_(n_), last_(n_), newest_(n_), fading_(n_),
    scratch_(n_), begin_position_(n_), begin_velocity_(n_) {}

  bool has_reference() const {return is_followed_ || is_braking_;}
  bool is_brake_due() const {return is_brake_due_;}
  bool is_braking() const {return is_braking_;}
  Following following() const
  {
    if (is_followed_) {return Following::following;}
    if (!is_braking_) {return Following::none;}
    return braking_.is_finished(state_.time) ? Following::holding : Following::braking;
  }

  // Begin anew.
  void reset()
  {
    is_refusing_ = false;
    forget();
  }

  void forget() {is_followed_ = is_braking_ = is_brake_due_ = is_fading_ = false;}

  // Follow what is given, end what is given no longer, and keep away what was given up; nothing
  // begins unless it may.
  void take(const robodyn_reference & reference, double now, bool may_begin)
  {
    bool is_given = reference.position != nullptr && reference.velocity != nullptr;
    for (std::size_t i = 0; is_given && i < n_; ++i) {
      is_given = std::isfinite(reference.position[i]) && std::isfinite(reference.velocity[i]);
    }
    if (!is_given) {
      is_refusing_ = false;
      if (is_followed_) {cancel();}
      return;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const auto finite = [i](const double * values) {
          return values != nullptr && std::isfinite(values[i]) ? values[i] : 0.0;
        };
      newest_.position[i] = reference.position[i];
      newest_.velocity[i] = reference.velocity[i];
      newest_.acceleration[i] = finite(reference.acceleration);
      newest_.effort[i] = finite(reference.effort);
    }
    if (is_followed_) {
      if (!is_within_limits(newest_) || !state_.is_near(newest_.position, given_.position)) {
        ++state_.counts.refused_references;
        give_up(Fault::refused_reference);
      }
    } else if (may_begin && !is_brake_due_) {
      begin(now);
    }
    given_ = newest_;
    given_time_ = now;
  }

  // Write what is to be followed at a time [s] and return true; false: nothing is. A reference
  // that is given is known for now; it goes on with its acceleration for the rest of a cycle.
  bool sample(double time, ReferenceState & wanted) const
  {
    if (is_braking_) {
      braking_.sample(time, wanted);
      return true;
    }
    if (!is_followed_) {return false;}
    wanted = given_;
    const double ahead = time - given_time_;
    if (ahead != 0.0) {
      for (std::size_t i = 0; i < n_; ++i) {
        wanted.position[i] += ahead * (given_.velocity[i] + 0.5 * ahead * given_.acceleration[i]);
        wanted.velocity[i] += ahead * given_.acceleration[i];
      }
    }
    return true;
  }

  // Write what was followed in the last valid cycle; something is followed.
  void last(ReferenceState & wanted) const
  {
    if (is_braking_) {braking_.sample(state_.time, wanted);} else {wanted = last_;}
  }

  // Take note that a valid cycle followed what is given.
  void note() {if (is_followed_) {last_ = given_;}}

  // Follow nothing any more, as was asked: brake along what was followed and hold, or fade.
  void cancel()
  {
    state_.fault = Fault::none;
    if (!state_.has_state || is_braking_) {return;}
    const bool was_followed = is_followed_;
    forget();
    if (!was_followed) {return;}
    if (state_.law.latest().has_feedback()) {
      brake(last_.position, last_.velocity, state_.time);
    } else if (state_.law.latest().has_feedforward()) {
      fading_ = last_;
      is_fading_ = true;
      faded_ = 0.0;
    }
  }

  // Follow nothing any more, though nobody asked for it.
  void drop()
  {
    if (is_followed_) {
      ++state_.counts.dropped_references;
      is_refusing_ = true;
    }
    forget();
  }

  // The same; brake from the measured state, where the law has feedback.
  void give_up(Fault fault)
  {
    state_.fault = fault;
    drop();
    brake_if_it_can();
  }

  // Brake with the next cycle, where the law has feedback.
  void brake_if_it_can() {is_brake_due_ = state_.law.latest().has_feedback();}

  void brake(const Vector & position, const Vector & velocity, double time)
  {
    braking_.plan(state_.model, state_.settings, position, velocity, time);
    forget();
    is_braking_ = true;
  }

  // Whether the arm stands where it was braked, or at all.
  bool has_settled() const
  {
    if (!is_braking_) {return is_at_rest(state_.velocity);}
    const double since = state_.time - braking_.finish();
    if (since < kSettlingTime) {return false;}
    return is_at_rest(state_.velocity, since < kLongestSettling ? kStill : kRestSpeed);
  }

  // Whether the arm is far from what is followed.
  bool is_far()
  {
    if (!state_.has_state || !sample(state_.time, scratch_)) {return false;}
    return !state_.is_near(scratch_.position, state_.position);
  }

  // --- what is left of a reference whose law has no feedback ----------------------------------

  bool is_fading() const {return is_fading_;}
  const ReferenceState & fading() const {return fading_;}
  void end_fading() {is_fading_ = false;}

  // How much is left of it a time [s] after the last valid cycle.
  double share_left(double ahead) const
  {
    const double passed = (faded_ + ahead) / std::max(state_.settings.ramp_time, 1e-9);
    return 1.0 - std::min(passed, 1.0);
  }

  void advance(double elapsed)
  {
    if (!is_fading_) {return;}
    faded_ += elapsed;
    is_fading_ = faded_ < state_.settings.ramp_time;
  }

private:
  static constexpr double kSpeedTolerance = 1.1, kRounding = 1e-9;      // of references
  static constexpr double kSettlingTime = 0.3, kLongestSettling = 0.8;  // s

  // Follow newest_, if it begins where the arm is to be; what was given up once is followed again
  // only after it has ended, or where it rests there.
  void begin(double now)
  {
    if (is_refusing_ && (!is_at_rest(newest_.velocity) || (is_braking_ && !has_settled()))) {
      return;
    }
    if (is_braking_) {braking_.sample(now, scratch_);}
    const Vector & from = is_braking_ ? scratch_.position : state_.position;
    begin_position_ = from;
    begin_velocity_ = is_braking_ ? scratch_.velocity : state_.velocity;
    if (!is_within_limits(newest_) || !state_.is_near(newest_.position, from)) {
      if (!is_refusing_) {
        ++state_.counts.refused_references;
        state_.fault = Fault::refused_reference;
      }
      is_refusing_ = true;
      return;
    }
    forget();
    is_followed_ = true;
    is_refusing_ = false;
    last_ = newest_;
    state_.fault = Fault::none;
    state_.law.end_damping(state_.settings.ramp_time);
  }

  // Whether a reference is within the limits; an arm outside of them may come back.
  bool is_within_limits(const ReferenceState & wanted) const
  {
    const SafetySettings & settings = state_.settings;
    for (std::size_t i = 0; i < n_; ++i) {
      const double p = wanted.position[i], begin = begin_position_[i];
      const double lower = std::min(settings.position_limits[2 * i], begin) - kRounding;
      const double upper = std::max(settings.position_limits[2 * i + 1], begin) + kRounding;
      const double fastest = std::max(
        kSpeedTolerance * settings.velocity_limits[i], std::fabs(begin_velocity_[i]));
      if (p < lower || p > upper || std::fabs(wanted.velocity[i]) > fastest * (1.0 + kRounding)) {
        return false;
      }
    }
    return true;
  }

  PipelineState & state_;
  const std::size_t n_;
  Braking braking_;
  ReferenceState given_, last_, newest_, fading_, scratch_;
  Vector begin_position_, begin_velocity_;
  bool is_followed_ = false, is_braking_ = false, is_brake_due_ = false, is_fading_ = false;
  bool is_refusing_ = false;
  double given_time_ = 0.0, faded_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__REFERENCE_FOLLOWER_HPP_
