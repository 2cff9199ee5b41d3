// SPDX-License-Identifier: Apache-2.0
// The reference that is followed, a motion or a setpoint of each cycle, and how it ends: at its
// own end, braked, or faded out.
#ifndef ROBODYN_ROS__CORE__REFERENCE_FOLLOWER_HPP_
#define ROBODYN_ROS__CORE__REFERENCE_FOLLOWER_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "model.hpp"
#include "reference.hpp"
#include "settings.hpp"
#include "torque.hpp"

namespace robodyn
{

// State shared by the parts of a command pipeline.
struct RuntimeState
{
  const std::size_t n;
  Settings settings;
  LoadedModel model;
  ActiveLaw law;
  TorqueParts parts;
  // The state of the last valid cycle since enabling, and when that was.
  bool has_state = false;
  Vector position, velocity;
  double time = 0.0;        // by which references are sampled [s]
  bool is_stamped = false;  // whether that is a stamp, not the time of receipt
  double steady = 0.0;      // s
  double period = kNaN;     // s, mean between states; NaN before the third since enabling
  double lag = 0.0;         // s, of velocities that are taken from positions
  FaultBook faults;
  bool is_damping_off = false;  // since enabling, a reference or a cancellation

  RuntimeState(const Model & arm, const double * load, const Settings & given_settings)
  : n(arm.joints),
    settings(given_settings),
    model(arm, load),
    law(n, given_settings),
    parts(model),
    position(n),
    velocity(n)
  {
  }

  // The damping to begin with [1/s].
  double damping() const { return is_damping_off ? 0.0 : settings.damping; }

  // Whether the period of the states exceeds a multiple of the longest one for the gains, or
  // velocities are too late; an unknown period (NaN) does not.
  bool is_too_slow(double slowness) const
  {
    return law.latest().needed_rate() * (period + lag) > (lag > 0.0 ? 1.0 : slowness);
  }

  // The rate of the states and the one that the gains need, as a fault.
  Fault slowness() const
  {
    return {Cause::slow_states, -1, 1.0 / period, law.latest().needed_rate()};
  }

  // Clear the faults: a request has acknowledged them.
  void acknowledge_faults()
  {
    faults.acknowledge();
    is_damping_off = false;
  }

  // The difference of two positions of a joint, modulo whole turns if continuous [rad or m].
  double error(double desired, double from, std::size_t joint) const
  {
    const double difference = desired - from;
    return settings.is_continuous[joint] != 0.0 ? wrapped(difference) : difference;
  }

  // Whether every joint is within max_reference_step of another position.
  bool is_near(const Vector & one, const Vector & other) const
  {
    for (std::size_t i = 0; i < n; ++i) {
      if (!(std::fabs(error(one[i], other[i], i)) <= settings.max_reference_step)) {
        return false;
      }
    }
    return true;
  }
};

// Plans the motion that brings a moving arm to rest within what its drives can do. All joints
// decelerate in the same time, so that the arm stays on its path: the shortest time in which no
// joint exceeds its braking acceleration, nor, at this state, four fifths of its effort limit
// and half of its rate limit. The remainder is left to the feedback.
class BrakePlanner
{
public:
  explicit BrakePlanner(std::size_t joints) : bias_(joints), momentum_(joints), moving_(joints) {}

  // Plan a brake from a position and velocity at a time [s].
  void plan(
    RuntimeState & state, const Vector & position, const Vector & velocity, double time,
    Motion & brake)
  {
    moving_.position = position;
    moving_.velocity = velocity;
    brake.plan_stop(
      moving_, time, duration(state, position, velocity), state.settings.position_limits);
  }

private:
  static constexpr double kReserve = 0.8;
  static constexpr double kPeak =
    1.5;  // ratio of the quintic's largest deceleration to the mean one
  // Bounds [s]: a stop is to be over within four seconds.
  static constexpr double kShortest = 0.1, kLongest = 2.0;

  double duration(RuntimeState & state, const Vector & position, const Vector & velocity)
  {
    const Settings & settings = state.settings;
    if (!state.parts.bias_and_momentum(state.model, position, velocity, bias_, momentum_)) {
      return kLongest;
    }
    // tau = bias - rate M qd, with rate [1/s]: how fast may all velocities fall together?
    double rate = kInfinity, by_rate = 0.0;
    for (std::size_t i = 0; i < state.n; ++i) {
      const double limit = kReserve * settings.effort_limits[i], size = std::fabs(momentum_[i]);
      if (momentum_[i] != 0.0) {
        rate = std::min(rate, (momentum_[i] > 0.0 ? limit + bias_[i] : limit - bias_[i]) / size);
      }
      if (velocity[i] != 0.0) {
        rate = std::min(rate, settings.braking_acceleration[i] / std::fabs(velocity[i]));
      }
      // The deceleration rises at 6 |qd| / T² at first.
      by_rate = std::max(by_rate, 6.0 * size / (kRateReserve * settings.torque_rate_limit[i]));
    }
    if (!(rate > 0.0)) { return kLongest; }  // gravity alone needs all of the effort
    return std::min(std::max({kPeak / rate, std::sqrt(by_rate), kShortest}), kLongest);
  }

  Vector bias_, momentum_;
  ReferenceState moving_;  // without acceleration and effort
};

enum class Following : std::uint8_t { none, waiting, moving, braking, holding };

// A setpoint of one cycle; a null position: there is none.
struct Setpoint
{
  const double * position = nullptr;
  const double * velocity = nullptr;
  const double * acceleration = nullptr;
  const double * effort = nullptr;
};

class ReferenceFollower
{
public:
  explicit ReferenceFollower(RuntimeState & state)
  : state_(state),
    planner_(state.n),
    brake_(state.n),
    approach_(state.n, 2),
    setpoint_(state.n),
    asked_(state.n),
    last_(state.n),
    newest_(state.n),
    scratch_(state.n),
    begin_position_(state.n),
    begin_velocity_(state.n)
  {
  }

  bool has_reference() const { return source_ != Source::none; }
  bool is_braking() const { return source_ == Source::brake; }
  bool is_following_setpoint() const { return source_ == Source::setpoint; }
  bool is_brake_due() const { return is_brake_due_; }  // starts once velocities are known
  bool is_fading() const { return is_fading_; }
  // Whether nothing is followed, fading or about to brake.
  bool is_idle() const { return !has_reference() && !is_fading_ && !is_brake_due_; }

  Following following() const
  {
    if (source_ == Source::none) { return Following::none; }
    if (source_ == Source::setpoint) { return Following::moving; }
    const Motion & motion = this->motion();
    if (state_.time < motion.knots.front()) { return Following::waiting; }
    if (motion.is_finished(state_.time)) { return Following::holding; }
    return is_braking() ? Following::braking : Following::moving;
  }

  // Return the motion that is followed, also a brake; null for a setpoint.
  const Motion * followed_motion() const
  {
    const bool is_motion = source_ == Source::motion || source_ == Source::brake;
    return is_motion ? &motion() : nullptr;
  }

  // Start again: accept setpoints, and follow nothing.
  void reset()
  {
    is_refusing_ = is_refusing_at_rest_ = false;
    clear();
  }

  // Drop reference, brake and fading at once.
  void clear()
  {
    source_ = Source::none;
    is_brake_due_ = is_fading_ = is_approaching_ = false;
  }

  // Follow a motion; not for the real-time loop.
  void follow(std::shared_ptr<const Motion> motion)
  {
    clear();
    motion_ = std::move(motion);
    source_ = Source::motion;
  }

  // Take the setpoint of this cycle: follow it, start following it if that is allowed, or refuse
  // it while a dropped one goes on. No setpoint ends the following of setpoints. One with a
  // position that is not finite is none, or with some velocities that are not; an acceleration or
  // effort that is not finite counts as zero. Positions that come in steps, all of their
  // velocities zero or not finite, are approached as a stream. Return whether the setpoint that is
  // followed is a new reference: the first, or the first that moves after one that did not.
  bool take(const Setpoint & setpoint, double now, bool may_begin)
  {
    const bool was_followed = source_ == Source::setpoint;
    if (!is_given(setpoint)) {
      is_refusing_ = is_refusing_at_rest_ = false;
      if (was_followed) { cancel(); }
      return false;
    }
    const bool is_bare = read(setpoint);
    if (was_followed) {
      if (const Fault refusal = refusal_of_newest(now)) {
        state_.faults.refuse_reference(refusal);
        drop_and_brake(refusal);
      }
    } else if (may_begin && !is_brake_due_) {  // a brake that is due comes first
      begin(now);
    }
    const bool is_new = !was_followed || asked_.position != newest_.position;
    asked_ = newest_;
    if (source_ == Source::setpoint) { approach(now, is_bare, is_new, was_followed); }
    setpoint_ = is_approaching_ ? scratch_ : newest_;
    setpoint_time_ = now;
    const bool is_beginning = is_new && !(was_followed && was_new_);
    was_new_ = is_new;
    return is_beginning && source_ == Source::setpoint;
  }

  // Why a setpoint would be refused at a time [s].
  Fault refusal_of(const Setpoint & setpoint, double now)
  {
    read(setpoint);
    return refusal_of_newest(now);
  }

  // Write the reference at a time [s] and return true; false: there is none. A setpoint is
  // extrapolated from its own time with its velocity and acceleration.
  bool sample(double time, ReferenceState & to) const
  {
    if (source_ == Source::none) { return false; }
    if (source_ != Source::setpoint) {
      motion().sample(time, to);
      return true;
    }
    to = setpoint_;
    const double ahead = time - setpoint_time_;
    if (ahead != 0.0) {
      for (std::size_t i = 0; i < state_.n; ++i) {
        to.position[i] +=
          ahead * (setpoint_.velocity[i] + 0.5 * ahead * setpoint_.acceleration[i]);
        to.velocity[i] += ahead * setpoint_.acceleration[i];
      }
    }
    return true;
  }

  // Write the reference of the last valid cycle and return true; false: there is none.
  bool last(ReferenceState & to) const
  {
    if (source_ != Source::setpoint) { return sample(state_.time, to); }
    to = last_;
    return true;
  }

  // Record that a valid cycle followed the setpoint.
  void record_followed()
  {
    if (source_ == Source::setpoint) { last_ = setpoint_; }
  }

  // End the reference on request: brake from it and hold where the law has feedback, or fade it
  // out. Setpoints are accepted again.
  void cancel()
  {
    state_.acknowledge_faults();
    is_refusing_ = is_refusing_at_rest_ = false;
    end_motion();
  }

  // The same for another reason.
  void end_motion()
  {
    if (!state_.has_state || is_braking()) { return; }  // a brake goes on
    const Source source = source_;
    const bool was_followed = last(scratch_);
    clear();
    if (!was_followed) { return; }
    if (state_.law.latest().has_feedback()) {
      begin_position_ = scratch_.position;
      begin_velocity_ = scratch_.velocity;
      brake(begin_position_, begin_velocity_, state_.time);
    } else if (state_.law.latest().has_feedforward()) {
      fading_ = source;
      is_fading_ = true;
      faded_ = 0.0;
      fade_time_ = state_.settings.ramp_time;
    }
  }

  // End the reference without a request.
  void drop(const Fault & why)
  {
    // A brake is the end of a reference that was counted when it ended.
    if (has_reference() && !is_braking()) {
      state_.faults.drop(why);
      is_refusing_ = true;
    }
    clear();
  }

  // The same, and brake from the measured state where the law has feedback.
  void drop_and_brake(const Fault & why)
  {
    drop(why);
    request_brake();
  }

  // Refuse setpoints until the present stream ends, also where it is at rest.
  void refuse_until_end() { is_refusing_at_rest_ = true; }

  // Brake in the next cycle, where the law has feedback.
  void request_brake() { is_brake_due_ = state_.law.latest().has_feedback(); }

  // Start a brake from a position and velocity at a time [s], and hold where it ends.
  void brake(const Vector & position, const Vector & velocity, double time)
  {
    plan_brake(position, velocity, time, brake_);
    clear();
    source_ = Source::brake;
  }

  // Plan a brake from a position and velocity at a time [s].
  void plan_brake(const Vector & position, const Vector & velocity, double time, Motion & brake)
  {
    planner_.plan(state_, position, velocity, time, brake);
  }

  // Whether the arm is at rest, and errors after a brake have settled: without friction a
  // remaining velocity grows tenfold in a quarter of a second under a constant torque.
  bool has_settled() const
  {
    if (!is_braking()) { return is_at_rest(state_.velocity); }
    const double since = state_.time - brake_.knots.back();
    if (since < kSettlingTime) { return false; }
    return is_at_rest(state_.velocity, since < kLongestSettling ? kSettledSpeed : kRestSpeed);
  }

  // Whether the arm is too far from the reference for feedback to start.
  bool is_far()
  {
    if (!state_.has_state || !sample(state_.time, scratch_)) { return false; }
    return !state_.is_near(scratch_.position, state_.position);
  }

  // --- a reference that fades out, of a law without feedback -----------------------------------

  // Write the fading reference at a time [s].
  void sample_fading(double time, ReferenceState & to) const
  {
    if (fading_ == Source::setpoint) {
      to = last_;
    } else {
      (fading_ == Source::brake ? brake_ : *motion_).sample(time, to);
    }
  }

  // Its remaining fraction a time [s] after the last valid cycle.
  double remaining_fraction(double ahead) const
  {
    return 1.0 - std::min((faded_ + ahead) / std::max(fade_time_, 1e-9), 1.0);
  }

  // End the fading at once; only the rate limit smooths the torque.
  void end_fading() { is_fading_ = false; }

  void advance(double elapsed)
  {
    if (!is_fading_) { return; }
    faded_ += elapsed;
    is_fading_ = faded_ < fade_time_;
  }

private:
  enum class Source : std::uint8_t { none, motion, setpoint, brake };

  static constexpr double kRounding = 1e-9;                             // of setpoints
  static constexpr double kSettlingTime = 0.3, kLongestSettling = 0.8;  // s

  const Motion & motion() const { return source_ == Source::brake ? brake_ : *motion_; }

  bool is_given(const Setpoint & setpoint) const
  {
    if (setpoint.position == nullptr || setpoint.velocity == nullptr) { return false; }
    std::size_t velocities = 0;
    for (std::size_t i = 0; i < state_.n; ++i) {
      if (!std::isfinite(setpoint.position[i])) { return false; }
      velocities += std::isfinite(setpoint.velocity[i]);
    }
    return velocities == 0 || velocities == state_.n;
  }

  // Write a setpoint to newest_, and return whether all of its velocities are zero or not finite.
  bool read(const Setpoint & setpoint)
  {
    bool is_bare = true;
    for (std::size_t i = 0; i < state_.n; ++i) {
      const auto finite = [i](const double * values) {
        return values != nullptr && std::isfinite(values[i]) ? values[i] : 0.0;
      };
      newest_.position[i] = setpoint.position[i];
      newest_.velocity[i] = finite(setpoint.velocity);
      is_bare &= newest_.velocity[i] == 0.0;
      newest_.acceleration[i] = finite(setpoint.acceleration);
      newest_.effort[i] = finite(setpoint.effort);
    }
    return is_bare;
  }

  // Start to follow newest_, if it starts near the present reference, else near the arm. After a
  // drop setpoints are followed again only once their stream has ended, or is at rest near the
  // arm.
  void begin(double now)
  {
    if (is_refusing_at_rest_) { return; }
    if (is_refusing_ && (!is_at_rest(newest_.velocity) || (is_braking() && !has_settled()))) {
      return;
    }
    if (const Fault refusal = refusal_of_newest(now)) {
      if (!is_refusing_) {  // reported once, not in each cycle
        state_.faults.refuse_reference(refusal);
      }
      is_refusing_ = true;
      return;
    }
    clear();
    source_ = Source::setpoint;
    is_refusing_ = false;
    last_ = newest_;
    state_.acknowledge_faults();
    state_.law.end_damping(state_.settings.ramp_time);
  }

  // Approach the positions of a stream without velocities, from the reference of now, and write
  // it to scratch_. The first one is followed as it is. One with velocities ends the approach once
  // that has come to rest.
  void approach(double now, bool is_bare, bool is_new, bool was_followed)
  {
    if (!was_followed) { stream_ = PositionStream(); }
    is_approaching_ = is_approaching_ && (is_bare || !approach_.is_finished(now));
    if (is_approaching_) { approach_.sample(now, scratch_); }
    if (!is_new || !(is_bare || is_approaching_)) { return; }
    stream_.take(now);
    if (!is_approaching_) {
      if (!stream_.is_stream()) { return; }
      scratch_ = setpoint_;
      std::fill(scratch_.acceleration.begin(), scratch_.acceleration.end(), 0.0);
    }
    double distance = 0.0;
    for (std::size_t i = 0; i < state_.n; ++i) {
      // The shorter way round, from where a continuous joint is.
      const double ahead = state_.error(newest_.position[i], scratch_.position[i], i);
      newest_.position[i] = scratch_.position[i] + ahead;
      distance = std::max(distance, std::fabs(ahead) / state_.settings.velocity_limits[i]);
    }
    approach_.plan_approach(
      scratch_, newest_, now, stream_.horizon(0.0, distance), stream_.stopping());
    is_approaching_ = true;
  }

  // Return why newest_ is refused after the setpoint that is followed, else as the first one.
  Fault refusal_of_newest(double now)
  {
    if (is_following_setpoint()) { return refusal_of(newest_, asked_.position); }
    begin_position_ = state_.position;
    begin_velocity_ = state_.velocity;
    if (has_reference()) {  // a brake, or a motion: start from its desired state
      motion().sample(now, scratch_);
      begin_position_ = scratch_.position;
      begin_velocity_ = scratch_.velocity;
    }
    return state_.is_too_slow(1.0) ? state_.slowness() : refusal_of(newest_, begin_position_);
  }

  // Return why a setpoint is refused: beyond the limits, widened to where an arm outside of them
  // starts, or too far from a position.
  Fault refusal_of(const ReferenceState & desired, const Vector & from) const
  {
    const Settings & settings = state_.settings;
    for (std::size_t i = 0; i < state_.n; ++i) {
      const int joint = static_cast<int>(i);
      const double p = desired.position[i], speed = std::fabs(desired.velocity[i]);
      const double begin = begin_position_[i];
      const double lower = settings.position_limits[2 * i];
      const double upper = settings.position_limits[2 * i + 1];
      const double fastest =
        std::max(kSpeedTolerance * settings.velocity_limits[i], std::fabs(begin_velocity_[i]));
      if (p < std::min(lower, begin) - kRounding || p > std::max(upper, begin) + kRounding) {
        return {Cause::reference_position, joint, p, p < lower ? lower : upper};
      }
      if (speed > fastest * (1.0 + kRounding)) {
        return {Cause::reference_velocity, joint, speed, settings.velocity_limits[i]};
      }
      const double step = std::fabs(state_.error(p, from[i], i));
      if (!(step <= settings.max_reference_step)) {
        return {Cause::far_reference, joint, step, settings.max_reference_step};
      }
    }
    return {};
  }

  RuntimeState & state_;
  BrakePlanner planner_;
  Source source_ = Source::none, fading_ = Source::none;
  std::shared_ptr<const Motion> motion_;  // kept until the next one: a cycle must free no memory
  Motion brake_, approach_;
  PositionStream stream_;  // of setpoints without velocities
  ReferenceState setpoint_, asked_, last_, newest_, scratch_;
  Vector begin_position_, begin_velocity_;
  bool is_brake_due_ = false, is_fading_ = false, is_approaching_ = false;
  bool is_refusing_ = false, is_refusing_at_rest_ = false;  // setpoints, since one was dropped
  bool was_new_ = false;                                    // the last setpoint
  double setpoint_time_ = 0.0, faded_ = 0.0, fade_time_ = 0.0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__REFERENCE_FOLLOWER_HPP_
