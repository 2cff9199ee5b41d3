// SPDX-License-Identifier: Apache-2.0
// What is followed, a motion or a setpoint that comes with each cycle, and how following ends: at
// its own end, braked, or fading.
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

// What the parts of a command pipeline share.
struct PipelineState
{
  const std::size_t n;
  Settings settings;
  LoadedModel model;
  ActiveLaw law;
  TorqueParts parts;
  // The state of the last valid cycle since enabling, and when that was.
  bool has_state = false;
  Vector position, velocity;
  double time = 0.0;        // that references are sampled with [s]
  bool is_stamped = false;  // whether that is a stamp, not the time of receipt
  double steady = 0.0;      // s
  double period = kNaN;     // s, mean between states; NaN: three have not come since enabling
  double lag = 0.0;         // s, that velocities are late, where they had to be replaced
  Fault fault;              // why a reference was last given up, or commanding refused
  std::array<Fault, 2> further;  // what else was wrong since
  Fault drop;                    // why a reference was last given up though nobody asked for it
  bool is_damping_given_up = false;  // since enabling, a reference or a cancellation
  Counts counts;
  std::uint64_t news = 0;  // how often any of these faults changed

  PipelineState(
    const Model & arm, const double * load, const LawSettings & given_law,
    const Settings & given_settings)
  : n(arm.joints),
    settings(given_settings),
    model(arm, load),
    law(n, given_law),
    parts(n),
    position(n),
    velocity(n)
  {
  }

  // The damping to begin with [1/s].
  double damping() const { return is_damping_given_up ? 0.0 : settings.damping; }

  void set_fault(const Fault & what)
  {
    fault = what;
    further = {};
    ++news;
  }

  // Remember what else was wrong.
  void add_fault(const Fault & what)
  {
    Fault & place = fault.cause == Cause::none      ? fault
                  : further[0].cause == Cause::none ? further[0]
                                                    : further[1];
    place = what;
    ++news;
  }

  // Whether states come too seldom for the gains, by a multiple of the longest period, or their
  // velocities too late; a period that is not known is not.
  bool is_too_slow(double slowness) const
  {
    return law.latest().needed_rate() * (period + lag) > (lag > 0.0 ? 1.0 : slowness);
  }

  // The rate of the states and the one that the gains need, as a fault.
  Fault slowness() const
  {
    return {Cause::slow_states, -1, 1.0 / period, law.latest().needed_rate()};
  }

  // Forget what went wrong: somebody has taken note of it.
  void take_note_of_faults()
  {
    set_fault({});
    is_damping_given_up = false;
  }

  // The way from one position of a joint to another [rad or m].
  double error(double wanted, double from, std::size_t joint) const
  {
    const double difference = wanted - from;
    return settings.is_continuous[joint] != 0.0 ? wrapped(difference) : difference;
  }

  // Whether no joint is further than max_reference_step from another position.
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

// Plans the motion that brings a moving arm to rest, inside what its drives can do: all joints
// decelerate in one time, so that the arm stays on its path, the shortest in which no joint exceeds
// its braking acceleration, nor, at this state, four fifths of its effort limit and half of its
// rate limit. The rest is the feedback's.
class BrakePlanner
{
public:
  explicit BrakePlanner(std::size_t joints) : bias_(joints), momentum_(joints), moving_(joints) {}

  // Make a motion the brake from a position and velocity at a time [s].
  void plan(
    PipelineState & state, const Vector & position, const Vector & velocity, double time,
    Motion & brake)
  {
    moving_.position = position;
    moving_.velocity = velocity;
    brake.become_stop(
      moving_, time, duration(state, position, velocity), state.settings.position_limits);
  }

private:
  static constexpr double kReserve = 0.8, kRateReserve = 0.5;
  static constexpr double kPeak = 1.5;  // largest deceleration of the quintic, in the mean one
  // Bounds [s]: a stop is to be over within four seconds.
  static constexpr double kShortest = 0.1, kLongest = 2.0;

  double duration(PipelineState & state, const Vector & position, const Vector & velocity)
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
      by_rate = std::max(by_rate, 6.0 * size / (kRateReserve * settings.torque_rate_limits[i]));
    }
    if (!(rate > 0.0)) { return kLongest; }  // gravity alone takes all that there is
    return std::min(std::max({kPeak / rate, std::sqrt(by_rate), kShortest}), kLongest);
  }

  Vector bias_, momentum_;
  ReferenceState moving_;  // without acceleration and effort
};

enum class Following : std::uint8_t { none, waiting, moving, braking, holding };

// A setpoint of one cycle; no position: there is none.
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
  explicit ReferenceFollower(PipelineState & state)
  : state_(state),
    planner_(state.n),
    brake_(state.n),
    given_(state.n),
    last_(state.n),
    newest_(state.n),
    scratch_(state.n),
    begin_position_(state.n),
    begin_velocity_(state.n)
  {
  }

  bool has_reference() const { return source_ != Source::none; }
  bool is_braking() const { return source_ == Source::brake; }
  bool is_brake_due() const { return is_brake_due_; }  // once the velocities are known
  bool is_fading() const { return is_fading_; }
  // Whether nothing is followed, and nothing of it is left.
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

  // Return the motion that is followed, a brake included; a setpoint is none.
  const Motion * followed_motion() const
  {
    const bool is_motion = source_ == Source::motion || source_ == Source::brake;
    return is_motion ? &motion() : nullptr;
  }

  // Begin anew.
  void reset()
  {
    is_refusing_ = is_refusing_at_rest_ = false;
    forget();
  }

  // Follow nothing any more.
  void forget()
  {
    source_ = Source::none;
    is_brake_due_ = is_fading_ = false;
  }

  // Follow a motion; not for the loop.
  void follow(std::shared_ptr<const Motion> motion)
  {
    forget();
    motion_ = std::move(motion);
    source_ = Source::motion;
  }

  // Follow a setpoint, end what is given no longer, and keep away what was given up; nothing
  // begins unless it may. One with a position or velocity that is not finite is none, an
  // acceleration or effort that is not finite counts as zero.
  void take(const Setpoint & setpoint, double now, bool may_begin)
  {
    if (!is_given(setpoint)) {
      is_refusing_ = is_refusing_at_rest_ = false;
      if (source_ == Source::setpoint) { cancel(); }
      return;
    }
    for (std::size_t i = 0; i < state_.n; ++i) {
      const auto finite = [i](const double * values) {
        return values != nullptr && std::isfinite(values[i]) ? values[i] : 0.0;
      };
      newest_.position[i] = setpoint.position[i];
      newest_.velocity[i] = setpoint.velocity[i];
      newest_.acceleration[i] = finite(setpoint.acceleration);
      newest_.effort[i] = finite(setpoint.effort);
    }
    if (source_ == Source::setpoint) {
      if (!is_within_limits(newest_) || !state_.is_near(newest_.position, given_.position)) {
        ++state_.counts.refused_references;
        state_.set_fault({Cause::refused_reference});
        give_up(state_.fault);
      }
    } else if (may_begin && !is_brake_due_) {
      begin(now);
    }
    given_ = newest_;
    given_time_ = now;
  }

  // Write what is to be followed at a time [s] and return true; false: nothing is. A setpoint is
  // known for its own time, and goes on with its acceleration from there.
  bool sample(double time, ReferenceState & to) const
  {
    if (source_ == Source::none) { return false; }
    if (source_ != Source::setpoint) {
      motion().sample(time, to);
      return true;
    }
    to = given_;
    const double ahead = time - given_time_;
    if (ahead != 0.0) {
      for (std::size_t i = 0; i < state_.n; ++i) {
        to.position[i] += ahead * (given_.velocity[i] + 0.5 * ahead * given_.acceleration[i]);
        to.velocity[i] += ahead * given_.acceleration[i];
      }
    }
    return true;
  }

  // Write what was followed in the last valid cycle and return true; false: nothing is followed.
  bool last(ReferenceState & to) const
  {
    if (source_ != Source::setpoint) { return sample(state_.time, to); }
    to = last_;
    return true;
  }

  // Take note that a valid cycle followed the setpoint.
  void note()
  {
    if (source_ == Source::setpoint) { last_ = given_; }
  }

  // Follow nothing any more, as was asked: brake along what was followed and hold where the law
  // has feedback, or let it fade.
  void cancel()
  {
    state_.take_note_of_faults();
    if (!state_.has_state || is_braking()) { return; }
    const Source source = source_;
    const bool was_followed = last(scratch_);
    forget();
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

  // Follow nothing any more, though nobody asked for it.
  void drop(const Fault & why)
  {
    if (has_reference() && !is_braking()) {
      ++state_.counts.dropped_references;
      state_.drop = why;
      ++state_.news;
      is_refusing_ = true;
    }
    forget();
  }

  // The same; brake from the measured state, where the law has feedback.
  void give_up(const Fault & why)
  {
    drop(why);
    brake_if_it_can();
  }

  // Follow no setpoint before the one that is given has ended, not even where it rests.
  void refuse_until_end() { is_refusing_at_rest_ = true; }

  // Brake with the next cycle, where the law has feedback.
  void brake_if_it_can() { is_brake_due_ = state_.law.latest().has_feedback(); }

  // Follow a brake to rest from a position and velocity at a time [s], and hold there.
  void brake(const Vector & position, const Vector & velocity, double time)
  {
    plan_brake(position, velocity, time, brake_);
    forget();
    source_ = Source::brake;
  }

  // Make a motion the brake from a position and velocity at a time [s].
  void plan_brake(const Vector & position, const Vector & velocity, double time, Motion & brake)
  {
    planner_.plan(state_, position, velocity, time, brake);
  }

  // Whether no brake is under way, or its last errors have faded: without friction what is left of
  // a motion grows tenfold in a quarter of a second under a torque that stays as it is.
  bool has_settled() const
  {
    if (!is_braking()) { return is_at_rest(state_.velocity); }
    const double since = state_.time - brake_.knots.back();
    if (since < kSettlingTime) { return false; }
    return is_at_rest(state_.velocity, since < kLongestSettling ? kStill : kRestSpeed);
  }

  // Whether the arm is too far from what is followed for feedback to begin.
  bool is_far()
  {
    if (!state_.has_state || !sample(state_.time, scratch_)) { return false; }
    return !state_.is_near(scratch_.position, state_.position);
  }

  // --- what is left of a reference whose law has no feedback ----------------------------------

  // Write it as of a time [s].
  void sample_fading(double time, ReferenceState & to) const
  {
    if (fading_ == Source::setpoint) {
      to = last_;
    } else {
      (fading_ == Source::brake ? brake_ : *motion_).sample(time, to);
    }
  }

  // How much is left of it a time [s] after the last valid cycle.
  double share_left(double ahead) const
  {
    return 1.0 - std::min((faded_ + ahead) / std::max(fade_time_, 1e-9), 1.0);
  }

  // Let nothing be left of it; the rate limit shapes what that does.
  void end_fading() { is_fading_ = false; }

  void advance(double elapsed)
  {
    if (!is_fading_) { return; }
    faded_ += elapsed;
    is_fading_ = faded_ < fade_time_;
  }

private:
  enum class Source : std::uint8_t { none, motion, setpoint, brake };

  static constexpr double kSpeedTolerance = 1.1, kRounding = 1e-9;      // of setpoints
  static constexpr double kSettlingTime = 0.3, kLongestSettling = 0.8;  // s

  const Motion & motion() const { return source_ == Source::brake ? brake_ : *motion_; }

  bool is_given(const Setpoint & setpoint) const
  {
    if (setpoint.position == nullptr || setpoint.velocity == nullptr) { return false; }
    for (std::size_t i = 0; i < state_.n; ++i) {
      if (!std::isfinite(setpoint.position[i]) || !std::isfinite(setpoint.velocity[i])) {
        return false;
      }
    }
    return true;
  }

  // Follow newest_, if it begins where the arm is to be. What was given up once is followed again
  // only after it has ended, or where it rests there.
  void begin(double now)
  {
    if (is_refusing_at_rest_) { return; }
    if (is_refusing_ && (!is_at_rest(newest_.velocity) || (is_braking() && !has_settled()))) {
      return;
    }
    begin_position_ = state_.position;
    begin_velocity_ = state_.velocity;
    if (has_reference()) {  // a brake, or a motion
      motion().sample(now, scratch_);
      begin_position_ = scratch_.position;
      begin_velocity_ = scratch_.velocity;
    }
    const bool is_slow = state_.is_too_slow(1.0);
    const bool is_near =
      is_within_limits(newest_) && state_.is_near(newest_.position, begin_position_);
    if (is_slow || !is_near) {
      if (!is_refusing_) {
        ++state_.counts.refused_references;
        state_.set_fault(is_slow ? state_.slowness() : Fault{Cause::refused_reference});
      }
      is_refusing_ = true;
      return;
    }
    forget();
    source_ = Source::setpoint;
    is_refusing_ = false;
    last_ = newest_;
    state_.take_note_of_faults();
    state_.law.end_damping(state_.settings.ramp_time);
  }

  // Whether a setpoint is within the limits; an arm outside of them may come back.
  bool is_within_limits(const ReferenceState & wanted) const
  {
    const Settings & settings = state_.settings;
    for (std::size_t i = 0; i < state_.n; ++i) {
      const double p = wanted.position[i], begin = begin_position_[i];
      const double lower = std::min(settings.position_limits[2 * i], begin) - kRounding;
      const double upper = std::max(settings.position_limits[2 * i + 1], begin) + kRounding;
      const double fastest =
        std::max(kSpeedTolerance * settings.velocity_limits[i], std::fabs(begin_velocity_[i]));
      if (p < lower || p > upper || std::fabs(wanted.velocity[i]) > fastest * (1.0 + kRounding)) {
        return false;
      }
    }
    return true;
  }

  PipelineState & state_;
  BrakePlanner planner_;
  Source source_ = Source::none, fading_ = Source::none;
  std::shared_ptr<const Motion> motion_;  // kept until the next one: nothing is freed in a cycle
  Motion brake_;
  ReferenceState given_, last_, newest_, scratch_;
  Vector begin_position_, begin_velocity_;
  bool is_brake_due_ = false, is_fading_ = false;
  bool is_refusing_ = false, is_refusing_at_rest_ = false;  // setpoints, since one was given up
  double given_time_ = 0.0, faded_ = 0.0, fade_time_ = 0.0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__REFERENCE_FOLLOWER_HPP_
