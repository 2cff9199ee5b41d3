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
#include <cstdint>
#include <vector>

#include "robodyn_controllers/active_law.hpp"
#include "robodyn_controllers/loaded_model.hpp"
#include "robodyn_controllers/reference.hpp"
#include "robodyn_controllers/settings.hpp"

namespace robodyn_controllers
{

// Why a reference was last given up or refused, or commanding was.
enum class Fault : std::uint8_t
{
  none,
  following_error,       // a joint was further from its reference than max_following_error
  implausible_position,  // a position changed faster than its joint can move
  overspeed,             // a joint moved at over 1.5 times its velocity limit
  overload,              // gravity is beyond an effort limit where the arm is
  unknown_velocity,      // velocities were not known while a reference was followed
  stale_state,           // no valid state for longer than state_timeout
  refused_reference,     // outside position or velocity limits, or too far a step
  feedback_far_away,     // feedback began while the arm was far from the reference
};

// What a reference is doing.
enum class Following : std::uint8_t { none, following, braking, holding };

struct Counts
{
  std::uint64_t refused_torques = 0, implausible_states = 0, following_errors = 0;
  std::uint64_t dropped_references = 0, refused_references = 0;
};

class CommandPipeline
{
public:
  // The model must outlive it; every vector of the settings has one number for each joint.
  CommandPipeline(
    const robodyn_model & model, const LawSettings & law, const SafetySettings & settings)
  : n_(static_cast<std::size_t>(model.joints)), settings_(settings), model_(model),
    law_(n_, law), braking_(n_), stale_braking_(n_), given_(n_), last_wanted_(n_), wanted_(n_),
    before_(n_), fading_(n_), position_(n_), velocity_(n_), last_position_(n_),
    last_velocity_(n_), doubted_(n_), begin_position_(n_), begin_velocity_(n_), torque_(n_), gravity_(n_), held_(n_), stop_torque_(n_),
    sent_(n_), last_torque_(n_), parts_(ROBODYN_PARTS * n_), faded_(ROBODYN_PARTS * n_),
    penetration_(n_), zero_(n_), limited_effort_(n_), limited_rate_(n_),
    workspace_(static_cast<std::size_t>(ROBODYN_WORKSPACE(model.joints))) {}

  // --- what is asked of it -------------------------------------------------------------------

  // Begin to command with the next valid state.
  void enable(double now)
  {
    if (is_enabled_) {return;}
    now = passed(now);
    is_enabled_ = true;
    fault_ = Fault::none;
    is_too_fast_ = has_doubted_ = has_state_ = is_stopping_ = is_refusing_ = false;
    has_clock_ = false;
    last_cycle_ = last_update_ = now;
    elapsed_ = 0.0;
    end_fallback();
    has_held_ = has_stale_braking_ = has_stop_torque_ = is_stop_command_sent_ = false;
    law_.jump();
    forget();
  }

  // Command nothing more; stop_command comes before.
  void disable()
  {
    is_enabled_ = is_stopping_ = false;
    forget();
  }

  // Take another mode, other gains or other terms; the active law fades into it.
  void change_law(const LawSettings & law)
  {
    const bool had_feedback = law_.goal().has_feedback();
    const bool is_moving = has_state_ && !is_at_rest(last_velocity_);
    const bool is_damped = law_.goal().damping != 0.0 || (is_moving && has_reference());
    law_.change(law, settings_.ramp_time, is_damped ? settings_.damping : 0.0);
    if (!had_feedback && law_.latest().has_feedback() && is_far()) {
      give_up(Fault::feedback_far_away);
    }
  }

  // Take other limits and reactions; the sizes are those of before.
  void change_settings(const SafetySettings & settings) {settings_ = settings;}

  // Take another payload or gravity, and return true; false, and nothing has changed, where
  // gravity would exceed an effort limit that it did not exceed before.
  bool change_load(const double * load)
  {
    if (has_state_) {
      model_.gravity_under(load, last_position_.data(), gravity_.data());
      const double weight = law_.latest().gravity();
      gravity_torque(last_position_, torque_);
      for (std::size_t i = 0; i < n_; ++i) {
        gravity_[i] *= weight;
        const double limit = std::fmax(settings_.effort_limits[i], std::fabs(torque_[i]));
        if (is_enabled_ && !(std::fabs(gravity_[i]) <= limit)) {return false;}
      }
      if (has_held_) {held_ = gravity_;}
    }
    bool is_shaped = true;
    for (const double rate : settings_.torque_rate_limits) {is_shaped &= std::isfinite(rate);}
    model_.change(load, is_shaped || !has_state_ ? 0.0 : settings_.ramp_time);
    return true;
  }

  // Bring a moving arm to rest, until has_stopped; no reference is followed any more.
  void begin_stop()
  {
    if (!is_enabled_ || is_stopping_) {return;}
    is_stopping_ = true;
    if (!has_reference() && !is_fading_ && !is_brake_due_) {
      law_.jump(settings_.damping);
    } else {
      cancel();
    }
  }

  // Whether there is nothing to wait for before the stop command: no motion, no states.
  bool has_stopped() const
  {
    if (!has_state_ || is_stale() || law_.mode() == Mode::feedforward) {return true;}
    if (!has_velocities(last_velocity_)) {return !is_brake_due_;}
    return !is_brake_due_ && has_settled();
  }

  // --- what it commands ----------------------------------------------------------------------

  // Do one control cycle at a steady time [s], and return whether there is a torque to command;
  // where there is none, what was commanded last goes on to act. A position that is not finite is
  // no valid state, a velocity that is not finite is one that is not known. No reference, or one
  // with a position or velocity that is not finite, ends what is followed; an acceleration or
  // effort that is not finite counts as zero.
  bool update(
    double now, const double * position, const double * velocity,
    const robodyn_reference & reference)
  {
    has_command_ = false;
    now = passed(now);
    if (!is_enabled_) {return false;}
    if (has_state_ && now - last_update_ > settings_.state_timeout) {
      become_stale(now - last_cycle_, now);  // nobody has commanded meanwhile
    }
    last_update_ = now;
    take_reference(reference, now);
    bool is_valid = true;
    for (std::size_t i = 0; i < n_; ++i) {
      position_[i] = position[i];
      velocity_[i] = std::isfinite(velocity[i]) ? velocity[i] : kNaN;
      is_valid &= std::isfinite(position[i]);
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
    if (!is_enabled_ || !has_state_ || is_stop_command_sent_) {return false;}
    if (!has_stop_torque_) {
      if (settings_.on_stop == Action::silent) {
        is_stop_command_sent_ = true;
        return false;
      }
      gravity_torque(last_position_, stop_torque_);
      if (settings_.on_stop == Action::zero) {stop_torque_ = zero_;}
      has_stop_torque_ = true;
    }
    torque_ = stop_torque_;
    limit(now);
    is_stop_command_sent_ = std::none_of(
      limited_rate_.begin(), limited_rate_.end(), [](unsigned char each) {return each != 0;});
    return has_command_;
  }

  // --- what it says about itself -------------------------------------------------------------

  const Vector & torque() const {return last_torque_;}  // the last command
  const Vector & parts() const {return parts_;}         // ROBODYN_PARTS times n, of the last cycle
  const ReferenceState & wanted() const {return wanted_;}  // what is followed, if anything is
  const std::vector<unsigned char> & effort_limited() const {return limited_effort_;}
  const std::vector<unsigned char> & rate_limited() const {return limited_rate_;}
  const Vector & penetration() const {return penetration_;}  // of the position limits, -1 to 1
  const Counts & counts() const {return counts_;}
  Fault last_fault() const {return fault_;}
  Mode mode() const {return law_.mode();}
  bool is_enabled() const {return is_enabled_;}
  bool is_stopping() const {return is_stopping_;}
  bool is_stale() const {return is_stale_;}
  bool is_stop_command_sent() const {return is_stop_command_sent_;}
  LoadedModel & model() {return model_;}
  Following following() const
  {
    if (is_followed_) {return Following::following;}
    if (!is_braking_) {return Following::none;}
    return braking_.is_finished(last_cycle_) ? Following::holding : Following::braking;
  }

private:
  static constexpr double kPlausibleSpeed = 2.0, kPlausibleStep = 0.05, kOverspeed = 1.5;
  static constexpr double kSpeedTolerance = 1.1, kRounding = 1e-9;  // of references
  static constexpr double kSettlingTime = 0.3, kLongestSettling = 0.8;           // s
  static constexpr double kShortestGap = 0.02, kLongestGap = 0.15, kMissed = 3.0;
  static constexpr double kNewestGap = 0.1;  // weight in the mean period

  // Return a time that is finite and never before another one.
  double passed(double now)
  {
    if (std::isfinite(now) && now > now_) {now_ = now;}
    return now_;
  }

  static bool has_velocities(const Vector & velocity)
  {
    return std::none_of(velocity.begin(), velocity.end(), [](double v) {return std::isnan(v);});
  }

  // --- references ----------------------------------------------------------------------------

  bool has_reference() const {return is_followed_ || is_braking_;}

  void forget() {is_followed_ = is_braking_ = is_brake_due_ = is_fading_ = false;}

  // Follow what is given, end what is given no longer, and keep away what was given up.
  void take_reference(const robodyn_reference & reference, double now)
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
      wanted_.position[i] = reference.position[i];
      wanted_.velocity[i] = reference.velocity[i];
      wanted_.acceleration[i] = finite(reference.acceleration);
      wanted_.effort[i] = finite(reference.effort);
    }
    if (is_followed_) {
      if (!may_be_followed(wanted_) || !is_near(wanted_.position, given_.position)) {
        ++counts_.refused_references;
        give_up(Fault::refused_reference);
      }
    } else if (may_follow()) {
      begin_to_follow(now);
    }
    given_ = wanted_;
    given_time_ = now;
  }

  bool may_follow() const
  {
    return !is_stopping_ && has_state_ && !is_stale() && has_velocities(last_velocity_) &&
           !is_brake_due_ && law_.mode() != Mode::gravity_compensation;
  }

  // Follow wanted_, if it begins where the arm is to be; what was given up once is followed again
  // only after it has ended, or where it rests there.
  void begin_to_follow(double now)
  {
    if (is_refusing_ && (!is_at_rest(wanted_.velocity) || (is_braking_ && !has_settled()))) {
      return;
    }
    if (is_braking_) {braking_.sample(now, before_);}
    const Vector & from = is_braking_ ? before_.position : last_position_;
    begin_position_ = from;
    begin_velocity_ = is_braking_ ? before_.velocity : last_velocity_;
    if (!may_be_followed(wanted_) || !is_near(wanted_.position, from)) {
      if (!is_refusing_) {
        ++counts_.refused_references;
        fault_ = Fault::refused_reference;
      }
      is_refusing_ = true;
      return;
    }
    forget();
    is_followed_ = true;
    is_refusing_ = false;
    last_wanted_ = wanted_;
    fault_ = Fault::none;
    law_.end_damping(settings_.ramp_time);
  }

  // Whether a reference is within the limits; an arm outside of them may come back.
  bool may_be_followed(const ReferenceState & state) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      const double p = state.position[i], begin = begin_position_[i];
      const double lower = std::min(settings_.position_limits[2 * i], begin) - kRounding;
      const double upper = std::max(settings_.position_limits[2 * i + 1], begin) + kRounding;
      const double fastest = std::max(
        kSpeedTolerance * settings_.velocity_limits[i], std::fabs(begin_velocity_[i]));
      if (p < lower || p > upper || std::fabs(state.velocity[i]) > fastest * (1.0 + kRounding)) {
        return false;
      }
    }
    return true;
  }

  bool is_near(const Vector & position, const Vector & from) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      if (!(std::fabs(error(position[i], from[i], i)) <= settings_.max_reference_step)) {
        return false;
      }
    }
    return true;
  }

  double error(double wanted, double position, std::size_t i) const
  {
    const double difference = wanted - position;
    return settings_.is_continuous[i] != 0.0 ? robodyn_wrapped(difference) : difference;
  }

  // Write what is to be followed at a time [s] and return true; false: nothing is. A reference
  // that is given is known for now; it goes on with its acceleration for the rest of a cycle.
  bool sample(double time, ReferenceState & state) const
  {
    if (is_braking_) {
      braking_.sample(time, state);
      return true;
    }
    if (!is_followed_) {return false;}
    state = given_;
    const double ahead = time - given_time_;
    if (ahead != 0.0) {
      for (std::size_t i = 0; i < n_; ++i) {
        state.position[i] += ahead * (given_.velocity[i] + 0.5 * ahead * given_.acceleration[i]);
        state.velocity[i] += ahead * given_.acceleration[i];
      }
    }
    return true;
  }

  // Follow nothing any more, as was asked: brake along what was followed and hold, or fade.
  void cancel()
  {
    fault_ = Fault::none;
    if (!has_state_ || is_braking_) {return;}
    const bool was_followed = is_followed_;
    forget();
    if (!was_followed) {return;}
    if (law_.latest().has_feedback()) {
      brake(last_wanted_.position, last_wanted_.velocity, last_cycle_);
    } else if (law_.latest().has_feedforward()) {
      fading_ = last_wanted_;
      is_fading_ = true;
      fade_ = 0.0;
    }
  }

  // Follow nothing any more, though nobody asked for it.
  void drop()
  {
    if (is_followed_) {
      ++counts_.dropped_references;
      is_refusing_ = true;
    }
    forget();
  }

  // The same; brake from the measured state, where the law has feedback.
  void give_up(Fault fault)
  {
    fault_ = fault;
    drop();
    is_brake_due_ = law_.latest().has_feedback();
  }

  void brake(const Vector & position, const Vector & velocity, double time)
  {
    braking_.plan(model_, settings_, position, velocity, time);
    forget();
    is_braking_ = true;
  }

  bool has_settled() const
  {
    if (!is_braking_) {return is_at_rest(last_velocity_);}
    const double since = last_cycle_ - braking_.finish();
    if (since < kSettlingTime) {return false;}
    return is_at_rest(last_velocity_, since < kLongestSettling ? kStill : kRestSpeed);
  }

  bool is_far()
  {
    if (!has_state_ || !sample(last_cycle_, before_)) {return false;}
    return !is_near(before_.position, last_position_);
  }

  // --- cycles --------------------------------------------------------------------------------

  void cycle(double now)
  {
    if (has_state_ && !is_stale() && !is_believed(now)) {return;}
    if (!has_state_) {
      if (is_overloaded()) {
        ++counts_.refused_torques;
        return;
      }
      if (now - last_sent_ >= settings_.state_timeout) {has_last_torque_ = false;}
      if (has_velocities(velocity_) && !is_at_rest(velocity_, kStill)) {
        is_brake_due_ = law_.latest().has_feedback();
      }
      law_.jump(is_brake_due_ ? 0.0 : settings_.damping);
    } else if (is_stale()) {
      law_.jump(is_brake_due_ ? 0.0 : settings_.damping);
    }
    if (is_too_fast()) {law_.jump(settings_.damping);}
    const bool has_wanted = supervise(now);
    const bool is_finite = evaluate(
      law_.at(elapsed_), position_, velocity_, has_wanted ? &wanted_ : nullptr, elapsed_);
    if (!is_finite) {
      ++counts_.refused_torques;
      return;
    }
    advance();
    if (!is_stale()) {period_ += kNewestGap * (now - last_cycle_ - period_);}
    last_position_ = position_;
    last_velocity_ = velocity_;
    has_state_ = true;
    last_cycle_ = now;
    if (is_followed_) {last_wanted_ = given_;}
    end_fallback();
    limit(now);
  }

  bool is_overloaded()
  {
    gravity_torque(position_, gravity_);
    for (std::size_t i = 0; i < n_; ++i) {
      if (!(std::fabs(gravity_[i]) <= settings_.effort_limits[i])) {
        fault_ = Fault::overload;
        return true;
      }
    }
    return false;
  }

  // Whether the joints can have come to a state from the last one, or from a doubted one.
  bool is_believed(double now)
  {
    const double elapsed = now - last_cycle_;
    if (is_reachable(last_position_, elapsed)) {
      has_doubted_ = false;
      return true;
    }
    ++counts_.implausible_states;
    const bool agrees = has_doubted_ && is_reachable(doubted_, elapsed);
    doubted_ = position_;
    has_doubted_ = !agrees;
    if (agrees && has_reference()) {give_up(Fault::implausible_position);}
    return agrees;
  }

  bool is_reachable(const Vector & from, double elapsed) const
  {
    bool is_near = true;
    for (std::size_t i = 0; i < n_; ++i) {
      is_near &= std::fabs(position_[i] - from[i]) <= kPlausibleStep;
    }
    if (is_near) {return true;}
    for (std::size_t i = 0; i < n_; ++i) {
      const double reach =
        kPlausibleSpeed * settings_.velocity_limits[i] * elapsed + kPlausibleStep;
      if (!(std::fabs(error(position_[i], from[i], i)) <= reach)) {return false;}
    }
    return true;
  }

  bool is_too_fast()
  {
    bool is_fast = false;
    for (std::size_t i = 0; i < n_; ++i) {
      is_fast |= std::fabs(velocity_[i]) > kOverspeed * settings_.velocity_limits[i];
    }
    if (is_fast) {
      if (!is_too_fast_) {fault_ = Fault::overspeed;}
      drop();
    }
    is_too_fast_ = is_fast;
    return is_fast;
  }

  // Write what is to be followed now to wanted_, and return whether anything is. Before, what
  // cannot be followed on is given up, and braked where it is due.
  bool supervise(double now)
  {
    bool has_wanted = sample(now, wanted_);
    if (has_wanted && !has_velocities(velocity_)) {
      give_up(Fault::unknown_velocity);
      has_wanted = false;
    } else if (has_wanted && law_.latest().follows()) {
      for (std::size_t i = 0; i < n_ && has_wanted; ++i) {
        const double distance = std::fabs(error(wanted_.position[i], position_[i], i));
        if (distance > settings_.max_following_error) {
          ++counts_.following_errors;
          give_up(Fault::following_error);
          has_wanted = false;
        }
      }
    }
    if (is_brake_due_ && has_velocities(velocity_)) {
      brake(position_, velocity_, now);
      has_wanted = sample(now, wanted_);
    }
    return has_wanted;
  }

  // Compute torque_ and parts_, and return whether the torque is finite.
  bool evaluate(
    const LawWeights & weights, const Vector & position, const Vector & velocity,
    const ReferenceState * wanted, double ahead)
  {
    const robodyn_law law = weights.law(settings_.is_continuous);
    const robodyn_arm arm = model_.arm();
    const robodyn_reference none{nullptr, nullptr, nullptr, nullptr};
    const robodyn_reference reference = wanted != nullptr ? wanted->view() : none;
    const double * const q = position.data(), * const qd = velocity.data();
    int failed = robodyn_parts(&law, &arm, q, qd, &reference, workspace_.data(), parts_.data());
    if (is_fading_) {
      const double passed = (fade_ + ahead) / std::max(settings_.ramp_time, 1e-9);
      const double rest = 1.0 - std::min(passed, 1.0);
      const robodyn_reference faded = fading_.view();
      failed |= robodyn_parts(&law, &arm, q, qd, &faded, workspace_.data(), faded_.data());
      for (std::size_t k = 0; k < parts_.size(); ++k) {
        parts_[k] = rest * faded_[k] + (1.0 - rest) * parts_[k];
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      torque_[i] = 0.0;
      for (std::size_t part = 0; part < ROBODYN_PARTS; ++part) {torque_[i] += parts_[part * n_ + i];}
    }
    robodyn_soft_limited(
      &law, &arm, q, qd, settings_.position_limits.data(), settings_.effort_limits.data(),
      workspace_.data(), torque_.data(), penetration_.data(), &failed);
    return failed == 0 && is_finite(torque_);
  }

  static bool is_finite(const Vector & values)
  {
    return std::all_of(values.begin(), values.end(), [](double x) {return std::isfinite(x);});
  }

  // Let the time since the last valid cycle pass, for all that fades.
  void advance()
  {
    const double elapsed = elapsed_;
    elapsed_ = 0.0;
    law_.advance(elapsed, velocity_, settings_.ramp_time);
    model_.advance(elapsed, settings_.ramp_time);
    if (is_fading_) {
      fade_ += elapsed;
      is_fading_ = fade_ < settings_.ramp_time;
    }
    if (!law_.follows()) {drop();}
  }

  // Limit torque_; the result counts as sent.
  void limit(double now)
  {
    const double * const last = has_last_torque_ ? last_torque_.data() : nullptr;
    robodyn_limited(
      static_cast<int>(n_), torque_.data(), settings_.effort_limits.data(),
      settings_.torque_rate_limits.data(), last, now - last_sent_, sent_.data(),
      limited_effort_.data(), limited_rate_.data());
    last_torque_ = sent_;
    has_last_torque_ = true;
    last_sent_ = now;
    has_command_ = true;
  }

  void gravity_torque(const Vector & position, Vector & torque)
  {
    const double weight = law_.latest().gravity();
    model_.inverse_dynamics(1, position.data(), zero_.data(), zero_.data(), torque.data());
    for (double & each : torque) {each = weight == 0.0 ? 0.0 : weight * each;}
  }

  // --- without states ------------------------------------------------------------------------

  void watchdog(double now)
  {
    if (!is_enabled_ || !has_state_) {return;}
    const double gap = now - last_cycle_;
    if (gap <= settings_.state_timeout) {
      bridge(gap, now);
      return;
    }
    become_stale(gap, now);
    if (stale_torque(now)) {limit(now);}
  }

  double half_a_step(double now) const
  {
    return 0.5 * std::min(now - last_sent_, ROBODYN_LONGEST_RATE_STEP);
  }

  // Command for where the arm should be by now, if its state is late.
  void bridge(double gap, double now)
  {
    const bool is_due = has_velocities(last_velocity_) &&
      std::max(kShortestGap, kMissed * period_) < gap && gap <= kLongestGap;
    if (is_stale() || is_brake_due_ || !is_due) {return;}
    gap += half_a_step(now);
    expect(gap);
    const double elapsed = elapsed_ + gap;
    const double time = last_cycle_ + std::min(gap, kLongestGap);
    const bool has_wanted = sample(time, wanted_);
    if (evaluate(
        law_.at(elapsed), position_, velocity_, has_wanted ? &wanted_ : nullptr, elapsed))
    {
      limit(now);
    }
  }

  // Write where the arm should be a time [s] after its last valid state to position_ and
  // velocity_: its errors move on as they last moved; without a reference it coasts.
  void expect(double gap)
  {
    position_ = last_position_;
    velocity_ = last_velocity_;
    if (!has_velocities(last_velocity_)) {return;}
    const double ahead = std::min(gap, kLongestGap);
    const bool has_wanted = sample(last_cycle_ + ahead, wanted_);
    if (is_braking_) {braking_.sample(last_cycle_, before_);} else {before_ = last_wanted_;}
    for (std::size_t i = 0; i < n_; ++i) {
      position_[i] += ahead * last_velocity_[i];
      if (!has_wanted) {continue;}
      position_[i] +=
        wanted_.position[i] - before_.position[i] - ahead * before_.velocity[i];
      velocity_[i] += wanted_.velocity[i] - before_.velocity[i];
    }
  }

  // Give up what is followed, once.
  void become_stale(double gap, double now)
  {
    if (is_stale_) {return;}
    expect(gap);
    if (has_reference()) {give_up(Fault::stale_state);}
    is_fading_ = false;
    has_stale_braking_ = false;
    gravity_ = position_;
    if (is_brake_due_ && has_velocities(last_velocity_) && !is_at_rest(velocity_)) {
      stale_braking_.plan(model_, settings_, position_, velocity_, now);
      has_stale_braking_ = true;
      gravity_ = stale_braking_.end_position();
    }
    gravity_torque(gravity_, held_);
    has_held_ = true;
    is_stale_ = true;
    stale_since_ = now;
  }

  // Write what stale states ask for to torque_, and return true; false: silence.
  bool stale_torque(double now)
  {
    if (now - stale_since_ >= settings_.stale_hold_time) {has_held_ = false;}
    if (settings_.on_stale_state == Action::zero) {
      torque_ = zero_;
      return true;
    }
    if (settings_.on_stale_state == Action::silent || !has_held_ || !is_finite(held_)) {
      return false;
    }
    const double time = now + half_a_step(now);
    if (has_stale_braking_ && !stale_braking_.is_finished(time)) {
      stale_braking_.sample(time, before_);
      const robodyn_law law = law_.latest().law(settings_.is_continuous);
      const robodyn_arm arm = model_.arm();
      const robodyn_reference reference = before_.view();
      robodyn_parts(
        &law, &arm, before_.position.data(), before_.velocity.data(), &reference,
        workspace_.data(), parts_.data());
      for (std::size_t i = 0; i < n_; ++i) {
        torque_[i] = 0.0;
        for (std::size_t k = 0; k < ROBODYN_PARTS; ++k) {torque_[i] += parts_[k * n_ + i];}
      }
      if (is_finite(torque_)) {return true;}
    }
    torque_ = held_;
    return true;
  }

  void end_fallback() {is_stale_ = false;}

  const std::size_t n_;
  SafetySettings settings_;
  LoadedModel model_;
  ActiveLaw law_;
  Braking braking_, stale_braking_;
  ReferenceState given_, last_wanted_, wanted_, before_, fading_;
  Vector position_, velocity_, last_position_, last_velocity_, doubted_;
  Vector begin_position_, begin_velocity_;
  Vector torque_, gravity_, held_, stop_torque_, sent_, last_torque_, parts_, faded_;
  Vector penetration_, zero_;
  std::vector<unsigned char> limited_effort_, limited_rate_;
  Vector workspace_;
  Counts counts_;
  Fault fault_ = Fault::none;
  bool is_enabled_ = false, is_stopping_ = false, has_state_ = false, has_command_ = false;
  bool is_followed_ = false, is_braking_ = false, is_brake_due_ = false, is_fading_ = false;
  bool is_refusing_ = false, is_too_fast_ = false, has_doubted_ = false, has_clock_ = false;
  bool is_stale_ = false, has_held_ = false, has_stale_braking_ = false;
  bool has_last_torque_ = false, has_stop_torque_ = false, is_stop_command_sent_ = false;
  double now_ = 0.0, last_update_ = 0.0, clock_ = 0.0, elapsed_ = 0.0, last_cycle_ = 0.0, last_sent_ = -kInfinity;
  double given_time_ = 0.0, fade_ = 0.0, period_ = 0.0, stale_since_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__COMMAND_PIPELINE_HPP_
