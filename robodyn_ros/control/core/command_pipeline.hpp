// SPDX-License-Identifier: Apache-2.0
// Everything that stands between the control law and the wire.
//
// step turns a complete joint state into a command, watchdog says what to do when states are late
// or stop coming, and stop_command what to leave behind; update does all that one cycle of a
// controller needs. The order is: control law, soft joint limits (behind an effort clip of their
// own), finite check, effort clip, rate limit, effort clip; no torque leaves otherwise.
//
// No change throws the arm. A change of mode, gains or terms fades: each joint's torque stays
// between what the active laws ask for at the present state. A new reference, a payload or gravity,
// enabling and recovery act at once, at the pace of the rate limit. A reference that ends early is
// braked to rest where there is feedback; in feedforward it fades to gravity; and where gravity
// compensation takes over a moving arm, damping brings it to rest.
//
// Two clocks are kept apart. Steady time measures staleness, the rate limit and transitions. The
// time of the states moves references, while it keeps pace with the steady one; simulated time
// moves both, so that a simulation gives the same torques at any pace, and while it stands still
// nothing is stale.
//
// Nothing but the constructor and follow allocates; nothing waits, logs or throws.
#ifndef ROBODYN_ROS__CORE__COMMAND_PIPELINE_HPP_
#define ROBODYN_ROS__CORE__COMMAND_PIPELINE_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "model.hpp"
#include "reference.hpp"
#include "reference_follower.hpp"
#include "settings.hpp"
#include "state_check.hpp"
#include "torque.hpp"

namespace robodyn
{

// Of the states, from which on gravity that stays as it is is good enough [Hz]. Under gravity that
// is held, the speed of a Panda without friction grows 1.3 times in a second at 100 Hz, 2.6 times
// at 30 Hz.
constexpr double kGravityRate = 100.0;

// What to do about a contact.
enum class ContactAction { report, stop, release };

class CommandPipeline
{
public:
  // What the model's functions need must outlive it; every vector of the settings has one number
  // for each joint, the position limits two.
  CommandPipeline(
    const Model & model, const double * load, const LawSettings & law, const Settings & settings)
  : state_(model, load, law, settings),
    n_(state_.n),
    follower_(state_),
    plausibility_(n_),
    check_(n_),
    soft_limits_(n_),
    limiter_(n_),
    stale_brake_(n_),
    wanted_(n_),
    before_(n_),
    position_(n_),
    velocity_(n_),
    measured_(n_),
    parts_(part::count * n_),
    other_parts_(parts_.size()),
    torque_(n_),
    gravity_(n_),
    gravity_before_(n_),
    held_(n_),
    rest_(n_),
    stop_torque_(n_),
    damping_torque_(n_),
    zero_(n_)
  {
  }

  // Its parts refer to one another.
  CommandPipeline(const CommandPipeline &) = delete;
  CommandPipeline & operator=(const CommandPipeline &) = delete;

  // --- what is asked of it ---------------------------------------------------------------------

  // Begin to command with the next valid state.
  void enable(double now)
  {
    if (is_enabled_) { return; }
    now = passed(now);
    is_enabled_ = true;
    is_stale_ = has_held_ = has_stale_brake_ = is_too_fast_ = false;
    has_stop_torque_ = is_stop_command_sent_ = continues_ = has_extrapolated_ = false;
    state_.take_note_of_faults();
    state_.has_state = has_damped_ = is_clock_doubted_ = was_ready_ = false;
    state_.steady = last_update_ = last_valid_ = now;
    state_.period = last_period_ = alone_ = kNaN;
    elapsed_ = 0.0;
    clock_.reset();
    plausibility_.reset();
    check_.reset();
    state_.law.jump();
    follower_.reset();
  }

  // Command nothing more; stop_command comes before.
  void disable()
  {
    is_enabled_ = is_stopping_ = false;
    follower_.forget();
  }

  // Take another mode, other gains or other terms; the active law fades into it. A reference is
  // kept while an active law follows one; where feedback begins far from it, the arm is braked
  // where it is instead.
  void change_law(const LawSettings & law)
  {
    ActiveLaw & active = state_.law;
    const bool had_feedback = active.goal().has_feedback();
    const bool is_moving = state_.has_state && !is_at_rest(state_.velocity);
    const bool is_damped =
      active.goal().damping != 0.0 || (is_moving && follower_.has_reference());
    active.change(law, state_.settings.ramp_time, is_damped ? state_.damping() : 0.0);
    if (!had_feedback && active.latest().has_feedback() && follower_.is_far()) {
      follower_.give_up({Cause::feedback_far_away});
    }
  }

  // Take other limits and reactions; the sizes are those of before.
  void change_settings(const Settings & settings) { state_.settings = settings; }

  // Return which joint would not carry the arm where it is under another load, though it does now;
  // none: the load may be taken.
  Fault overload(const double * load)
  {
    if (!is_enabled_ || !state_.has_state) { return {}; }
    gravity_under(load, state_.position, gravity_);
    state_.parts.gravity(state_.law.latest(), state_.model, state_.position, gravity_before_);
    for (std::size_t i = 0; i < n_; ++i) {
      // As fmax: what was not finite before is no limit.
      gravity_before_[i] =
        std::fmax(state_.settings.effort_limits[i], std::fabs(gravity_before_[i]));
    }
    return overload(gravity_, gravity_before_);
  }

  // Take another payload or gravity; reference and feedback go on. The next cycle commands what the
  // new load asks for, and the rate limit shapes the change of torque. Where a joint has none, the
  // old load fades into the new one.
  void change_load(const double * load)
  {
    if (state_.has_state && has_held_) { gravity_under(load, rest_, held_); }
    bool is_shaped = true;
    for (const double rate : state_.settings.torque_rate_limits) {
      is_shaped &= std::isfinite(rate);
    }
    const double duration = is_shaped || !state_.has_state ? 0.0 : state_.settings.ramp_time;
    state_.model.change(load, duration);
    is_load_new_ = true;
  }

  // Follow a motion from now on; not for the loop. Whoever asks has planned it from what
  // is followed, or from the measured state.
  void follow(std::shared_ptr<const Motion> motion)
  {
    follower_.follow(std::move(motion));
    state_.take_note_of_faults();
    state_.law.end_damping(state_.settings.ramp_time);
  }

  // Whether a motion or a setpoint may begin.
  bool may_follow(double now) const
  {
    return is_enabled_ && !is_stopping_ && mode() != Mode::gravity_compensation &&
           state_.has_state && !is_stale_ && has_velocities(state_.velocity) && is_ready() &&
           clock_.may_be_followed(now);
  }

  // Whether enough states have come since enabling for feedback to act on: their period is known,
  // and where the arm goes, by its positions. Velocities alone may be anything.
  bool is_ready() const { return !std::isnan(state_.period) && check_.is_ready(); }

  // Follow nothing any more: brake to rest and hold, or fade; a fault is taken note of.
  void cancel() { follower_.cancel(); }

  // Bring a moving arm to rest, until has_stopped; no reference is followed any more.
  void begin_stop()
  {
    if (!is_enabled_ || is_stopping_) { return; }
    is_stopping_ = true;
    if (follower_.is_idle()) {
      state_.law.jump(state_.damping());
    } else {
      follower_.cancel();
    }
  }

  // Whether there is nothing to wait for before the stop command: no motion, no load that fades in,
  // as what is left behind is to carry all of it, no states.
  bool has_stopped() const
  {
    if (!state_.has_state || is_stale_) { return true; }
    if (state_.model.is_blending()) { return false; }
    if (mode() == Mode::feedforward) { return true; }
    if (follower_.is_brake_due()) { return false; }
    return !has_velocities(state_.velocity) || follower_.has_settled();
  }

  // Give up what is followed, because of a contact: stop brakes to rest and holds where the law has
  // feedback; in other modes, and with release, gravity is compensated and damping brings the arm
  // to rest. A new reference or a cancellation takes note of it, as of a fault.
  void react_to_contact(ContactAction action)
  {
    if (!is_enabled_ || action == ContactAction::report) { return; }
    const Fault why{Cause::contact};
    state_.set_fault(why);
    follower_.refuse_until_end();
    if (action == ContactAction::stop && state_.law.latest().has_feedback()) {
      // A brake that is under way would begin anew, with no deceleration at first.
      if (follower_.following() != Following::braking) { follower_.give_up(why); }
    } else {
      follower_.drop(why);
      state_.law.jump(state_.damping());
    }
  }

  // Go on from a torque that another commanded in this one's place, sent at a steady time [s]. It
  // is as if states had been stale: what was followed before is given up.
  void continue_from(const double * torque, double sent)
  {
    limiter_.continue_from(torque, sent);
    check_.forget();  // how the arm moved meanwhile is not known
    continues_ = true;
    if (state_.has_state) { become_stale({sent}); }
  }

  // Note that the last command was on the wire by a steady time [s]: the rate limit holds between
  // commands as they are sent, whatever held up a cycle.
  void sent(double now) { limiter_.note_sent(now); }

  // --- what it commands ------------------------------------------------------------------------

  // Do a control cycle for a complete state, whose positions are finite, a velocity that is not
  // known NaN, and return whether there is a torque to command. The time [s] is that of the state,
  // a stamp or when it was received. What somebody else adds to the law's torque may be null.
  bool step(
    const double * position, const double * velocity, double time, bool is_stamped,
    const Now & now, const double * added = nullptr)
  {
    has_command_ = has_parts_ = false;
    if (!is_enabled_) { return false; }
    std::copy_n(position, n_, position_.begin());
    std::copy_n(velocity, n_, velocity_.begin());
    let_pass(clock_.advance(time, now, state_.settings.state_timeout));
    // Until a state is valid: one that is refused must not hide that the clock jumped.
    is_clock_doubted_ |= !clock_.is_believed();
    cycle(time, is_stamped, now, added);
    return has_command_;
  }

  // Return whether a late or a stale state asks for a command at this time; call it once in a
  // while. A state is stale when whoever collects the joints' samples says so, or when no cycle
  // gave a valid torque for as long; until then it is extrapolated.
  bool watchdog(const Now & now, bool has_stale_joint, const double * added = nullptr)
  {
    has_command_ = has_parts_ = false;
    if (!is_enabled_ || !state_.has_state) { return false; }
    const double stamp = state_.is_stamped ? state_.time : kNaN;
    const double waited = now.since(state_.steady, stamp);
    if (!has_stale_joint && !(waited > state_.settings.state_timeout)) {
      extrapolate(now, added);
      return has_command_;
    }
    become_stale(now);
    if (stale_torque(now.steady)) { limit(torque_, now.steady); }
    return has_command_;
  }

  // Do one cycle of a controller at a steady time [s], and return whether there is a torque to
  // command; where there is none, what was commanded last goes on to act. A position that is not
  // finite, or that the joint cannot have at all, is no valid state. No setpoint, or one with a
  // position or velocity that is not finite, ends what is followed.
  bool update(
    double time, const double * position, const double * velocity, const Setpoint & setpoint,
    const double * possible_positions)
  {
    has_command_ = has_parts_ = false;
    const Now now{passed(time)};
    if (!is_enabled_) { return false; }
    if (state_.has_state && now.steady - last_update_ > state_.settings.state_timeout) {
      become_stale(now);  // nobody has commanded meanwhile
    }
    last_update_ = now.steady;
    bool is_valid = true;
    Fault impossible;
    for (std::size_t i = 0; i < n_; ++i) {
      position_[i] = position[i];
      velocity_[i] = std::isfinite(velocity[i]) ? velocity[i] : kNaN;
      is_valid &= std::isfinite(position[i]);
      const bool is_in_range =
        possible_positions[2 * i] <= position[i] && position[i] <= possible_positions[2 * i + 1];
      if (impossible.cause == Cause::none && !is_in_range) {
        impossible = {Cause::impossible_position, static_cast<int>(i), position[i]};
      }
    }
    const bool is_possible = impossible.cause == Cause::none;
    if (is_valid && is_possible) {
      let_pass(now.steady - last_valid_);
      last_valid_ = now.steady;
    }
    follower_.take(setpoint, now.steady, may_follow(now.steady));
    if (is_valid && !is_possible) { state_.set_fault(impossible); }
    if (is_valid && is_possible) {
      if (state_.fault.cause == Cause::impossible_position) { state_.set_fault({}); }
      cycle(now.steady, false, now, nullptr);
    }
    return has_command_ || watchdog(now, false);
  }

  // Return whether there is a next command on the way to what on_stop says. Call it again and again
  // when commanding is to end, with begin_stop before, where the arm moves, and disable behind. The
  // way there obeys the rate limit like any other. Where it leads is decided at the first call, for
  // the last valid state. The last one, behind which no cycle comes, is the whole of it, whatever
  // the rate limit.
  bool stop_command(double time, bool is_last = false)
  {
    has_command_ = has_parts_ = false;
    const double now = passed(time);
    if (!is_enabled_ || !state_.has_state || is_stop_command_sent_) { return false; }
    if (!has_stop_torque_) {
      state_.parts.gravity(state_.law.latest(), state_.model, state_.position, gravity_);
      has_stop_torque_ = torque_of(state_.settings.on_stop, true, gravity_, stop_torque_);
    }
    if (!has_stop_torque_) { return false; }
    if (is_last) { limiter_.forget(); }
    limit(stop_torque_, now);
    is_stop_command_sent_ = !limiter_.is_any_rate_limited();
    return true;
  }

  // --- what it says about itself ---------------------------------------------------------------

  std::size_t joints() const { return n_; }
  bool has_torque() const { return limiter_.has_torque(); }
  const Vector & torque() const { return limiter_.torque(); }  // the last command
  bool has_parts() const { return has_parts_; }    // whether it is that of a control cycle
  const Vector & parts() const { return parts_; }  // part::count times n
  bool has_wanted() const { return has_wanted_; }
  const ReferenceState & wanted() const { return wanted_; }  // what the last cycle followed
  const std::vector<unsigned char> & is_effort_limited() const
  {
    return limiter_.is_effort_limited();
  }
  const std::vector<unsigned char> & is_rate_limited() const
  {
    return limiter_.is_rate_limited();
  }
  bool is_any_limited() const
  {
    const auto & clipped = limiter_.is_effort_limited();
    return limiter_.is_any_rate_limited() ||
           std::find(clipped.begin(), clipped.end(), 1) != clipped.end();
  }
  const Vector & penetration() const { return soft_limits_.penetration(); }
  const PipelineState & state() const { return state_; }
  const ReferenceFollower & follower() const { return follower_; }
  const StampClock & clock() const { return clock_; }
  const Counts & counts() const { return state_.counts; }
  // How many times that of its positions a joint's velocity is, where it is wrong; NaN: it is not.
  const Vector & wrong_velocities() const { return check_.ratio(); }
  // Whether states come too seldom for gravity compensation; a tenth is jitter.
  bool is_slow() const { return state_.period * kGravityRate > 1.1; }
  Refusal refusal() const { return refusal_; }  // of the last state
  const Fault & last_fault() const { return state_.fault; }
  const Fault & last_drop() const { return state_.drop; }
  Mode mode() const { return state_.law.mode(); }
  bool is_enabled() const { return is_enabled_; }
  bool is_stopping() const { return is_stopping_; }
  bool is_stale() const { return is_stale_; }
  // Whether gravity is still held while states are stale.
  bool has_held() const { return has_held_; }
  bool is_stop_command_sent() const { return is_stop_command_sent_; }
  Following following() const
  {
    return state_.has_state ? follower_.following() : Following::none;
  }

private:
  // Over shorter gaps nothing is extrapolated, but where something is unfinished; over longer ones
  // a prediction is worth nothing [s].
  static constexpr double kShortestGap = 0.02, kUnfinishedGap = 0.005, kLongestGap = 0.15;
  // Until then the gravity of a cycle's first state serves: a floating arm gains a tenth of its
  // energy in a second [s].
  static constexpr double kQuickPeriod = 0.0045;
  static constexpr double kMissedStates = 3.0;  // a state is late after so many periods
  // Of the longest period, until what feedback does already is given up: a pause makes the mean
  // longer.
  static constexpr double kToleratedSlowness = 1.5;
  static constexpr double kNewestGap = 0.1;  // weight in the mean period

  // Return a time that is finite and never before another one.
  double passed(double now)
  {
    if (std::isfinite(now) && now > now_) { now_ = now; }
    return now_;
  }

  // --- with a state: position_ and velocity_ ---------------------------------------------------

  // Let time pass [s] since the last state.
  void let_pass(double elapsed)
  {
    elapsed_ += elapsed;
    if (!state_.has_state) { return; }
    const double last = last_period_;
    last_period_ = elapsed;
    if (std::isnan(last)) { return; }
    double & mean = state_.period;
    if (std::isnan(mean)) { mean = std::min(last, elapsed); }
    // One that is longer than three periods is a silence, unless the one before was as long.
    mean += kNewestGap * (std::min(elapsed, std::max(last, kMissedStates * mean)) - mean);
  }

  void cycle(double time, bool is_stamped, const Now & now, const double * added)
  {
    const double damping = state_.damping();
    refusal_ = Refusal::none;
    if (!state_.has_state) {
      if (!may_begin(now.steady)) {
        refusal_ = Refusal::overload;
        return;
      }
      state_.law.jump(follower_.is_brake_due() ? 0.0 : damping);
    } else if (!is_believed(time, now.steady)) {
      refusal_ = Refusal::implausible;
      return;
    } else if (is_stale_) {
      state_.law.jump(follower_.is_brake_due() ? 0.0 : damping);
      guard_.forget();  // what the arm gained meanwhile is not of the damping
    }
    look_at_velocities(time, is_stamped, now);
    if (becomes_too_fast()) { state_.law.jump(damping); }
    check_.bound(velocity_);
    look_at_feedback();
    damp_again();
    look_at_damping();
    if (!has_extrapolated_) { alone_ = kNaN; }
    has_extrapolated_ = is_load_new_ = false;
    measured_ = position_;
    has_wanted_ = supervise(time, !is_clock_doubted_, now.is_simulated());
    if (!has_wanted_) { look_ahead(); }
    if (!evaluate(elapsed_, position_, velocity_, has_wanted_, time, added)) {
      refusal_ = Refusal::not_finite;
      ++state_.counts.refused_torques;
      return;
    }
    has_damped_ = state_.law.is_damping();
    std::copy_n(&parts_[part::feedback * n_], n_, damping_torque_.begin());
    advance();
    state_.position = measured_;
    state_.velocity = velocity_;
    state_.time = time;
    state_.is_stamped = is_stamped;
    state_.steady = now.steady;
    state_.has_state = true;
    is_stale_ = is_clock_doubted_ = false;
    follower_.note();
    limit(torque_, now.steady);
    has_parts_ = true;
  }

  // Whether to command for a first state: one in which the drives can carry the arm.
  bool may_begin(double now)
  {
    state_.parts.gravity(state_.law.latest(), state_.model, position_, gravity_);
    const Fault fault = overload(gravity_, state_.settings.effort_limits);
    if (fault.cause != Cause::none) {
      state_.set_fault(fault);
      ++state_.counts.refused_torques;
      return false;
    }
    // Others may have commanded since, or brakes hold the arm.
    const bool is_old = now - limiter_.sent() >= state_.settings.state_timeout;
    if (is_old && !continues_) { limiter_.forget(); }
    continues_ = false;
    if (has_velocities(velocity_) && !is_at_rest(velocity_, kStill)) {
      follower_.brake_if_it_can();
    }
    return true;
  }

  // Return which gravity torque is furthest beyond its limit; none: none is.
  static Fault overload(const Vector & gravity, const Vector & limits)
  {
    Fault worst;
    double most = -kInfinity;
    for (std::size_t i = 0; i < gravity.size(); ++i) {
      const double size = std::fabs(gravity[i]);
      if (size <= limits[i]) { continue; }
      // NaN as if it were nothing beyond: a joint that is known to be too weak is told first.
      const double beyond = std::isnan(size) ? -limits[i] : size - limits[i];
      if (worst.cause == Cause::none || beyond > most) {
        worst = {Cause::overload, static_cast<int>(i), size, limits[i]};
        most = beyond;
      }
    }
    return worst;
  }

  // Whether the joints can have come to a state from the last one; a reference is given up where
  // the arm is suddenly elsewhere.
  bool is_believed(double time, double now)
  {
    // A simulation may run ahead of steady time.
    const double stamped = time - state_.time;
    double elapsed = now - state_.steady;
    if (elapsed < stamped && stamped <= state_.settings.state_timeout) { elapsed = stamped; }
    const Verdict verdict =
      plausibility_.verdict(position_, state_.position, elapsed, state_.settings);
    state_.counts.implausible_states += verdict != Verdict::plausible;
    if (verdict == Verdict::jump) { check_.forget(); }
    if (verdict == Verdict::jump && follower_.has_reference()) {
      state_.set_fault({Cause::implausible_position});
      follower_.give_up(state_.fault);
    }
    return verdict != Verdict::outlier;
  }

  // Whether a joint is faster than it may be, and none was in the last state; a reference is
  // dropped while one is.
  bool becomes_too_fast()
  {
    const Fault fault = overspeed(velocity_, state_.settings);
    const bool was_too_fast = is_too_fast_;
    is_too_fast_ = fault.cause != Cause::none;
    if (is_too_fast_) { follower_.drop(fault); }
    if (!is_too_fast_ || was_too_fast) { return false; }  // told once, not with each speed
    state_.set_fault(fault);
    return true;
  }

  // Give up what is followed where states come too seldom for the gains.
  void look_at_feedback()
  {
    const bool is_wanted = follower_.has_reference() || follower_.is_brake_due();
    if (!is_wanted || !state_.is_too_slow(kToleratedSlowness)) { return; }
    const Fault fault = state_.slowness();
    state_.add_fault(fault);
    follower_.drop(fault);
    state_.law.jump(state_.damping());
  }

  // Let damping go on, or begin anew, where it alone brakes an arm that moves.
  void damp_again()
  {
    const bool is_due = state_.settings.is_braked_by_damping && !state_.law.is_damping() &&
                        has_velocities(velocity_) && !is_at_rest(velocity_);
    if (is_due && follower_.is_idle()) { state_.law.jump(state_.damping()); }
  }

  // Give damping up that feeds the arm.
  void look_at_damping()
  {
    if (!state_.law.is_damping()) {
      guard_.forget();
      return;
    }
    if (!has_velocities(velocity_)) { return; }
    double work = 0.0;
    for (std::size_t i = 0; has_damped_ && i < n_; ++i) {
      work += damping_torque_[i] * state_.error(position_[i], state_.position[i], i);
    }
    const double energy = kinetic_energy();
    if (!guard_.is_fed(energy, work)) { return; }
    state_.add_fault({Cause::damping_feeds, -1, energy, guard_.least()});
    state_.is_damping_given_up = true;
    state_.law.jump();
  }

  // Return it [J]; infinite where it is beyond all numbers.
  double kinetic_energy()
  {
    double energy = 0.0;
    if (!state_.parts.bias_and_momentum(
          state_.model, position_, velocity_, gravity_, gravity_before_)) {
      return kInfinity;
    }
    for (std::size_t i = 0; i < n_; ++i) { energy += 0.5 * velocity_[i] * gravity_before_[i]; }
    return std::isfinite(energy) ? energy : kInfinity;
  }

  // Hold the velocities against the positions; where one is wrong, brake by what the positions say.
  // Stamps that jump tell no time: then that of receipt does. Simulated time has none: of states
  // without stamps nothing is said, and after a jump the check begins anew.
  void look_at_velocities(double time, bool is_stamped, const Now & now)
  {
    if (now.is_simulated() && (is_clock_doubted_ || !is_stamped)) {
      if (is_stamped) {
        check_.forget();
      } else {
        check_.forgo();
      }
      return;
    }
    const bool is_told = is_stamped && !is_clock_doubted_;
    const Fault fault =
      check_.look(position_, velocity_, time, is_told, now, state_.period, state_.settings);
    state_.lag = check_.lag();
    if (fault.cause == Cause::none) { return; }
    state_.set_fault(fault);
    if (follower_.has_reference()) { follower_.give_up(fault); }
    // What damping fed by this velocity gained is not of the damping from now on.
    guard_.forget();
    state_.is_damping_given_up = false;
    if (follower_.is_idle()) { state_.law.jump(state_.damping()); }
  }

  // Let gravity be that of the middle of the time until the next command; quick states need none.
  //
  // Gravity g(q) that is held for a time T pushes an arm that moves on: near an upright
  // equilibrium, q'' = w^2 q, its velocity grows by cosh(w T), about 1 + (w T)^2 / 2. Gravity of
  // the middle of the way, q + q' T / 2, leaves cosh(w T) - sinh(w T) w T / 2, about
  // 1 - (w T)^4 / 24: it takes a little, up to w T = 2.4. A hanging one does not swing up either.
  void look_ahead()
  {
    const bool is_quick = state_.period <= kQuickPeriod;
    if (!is_ready() || is_quick || !has_velocities(velocity_)) { return; }
    const double ahead = std::min(0.5 * std::fmin(state_.period, alone_), kLongestGap);
    for (std::size_t i = 0; i < n_; ++i) { position_[i] += ahead * velocity_[i]; }
  }

  // Whether to brake with the next state.
  bool is_brake_next() const { return follower_.is_brake_due() && is_ready(); }

  // Write what is to be followed now to wanted_, and return whether anything is. Before, what
  // cannot be followed on is given up, and braked where it is due.
  bool supervise(double time, bool is_clock_believed, bool is_simulated)
  {
    // What is followed begins, too, once it is known how often states come; a simulation may be held
    // until it does.
    was_ready_ |= is_ready() || is_simulated;
    bool has_wanted = sample(time, wanted_);
    Fault fault;
    if (has_wanted || (!is_clock_believed && follower_.has_reference())) {
      fault = why_not_followed(is_clock_believed);
    }
    if (fault.cause != Cause::none) {
      state_.counts.following_errors += fault.cause == Cause::following_error;
      state_.set_fault(fault);
      follower_.give_up(fault);
      has_wanted = false;
    }
    if (!is_clock_believed) {
      follower_.end_fading();
    } else if (is_brake_next() && has_velocities(velocity_)) {
      follower_.brake(position_, velocity_, time);
      has_wanted = follower_.sample(time, wanted_);
    }
    return has_wanted;
  }

  // Write what is to be followed at a time [s] and return true; false: nothing is, or not yet.
  bool sample(double time, ReferenceState & to) const
  {
    return was_ready_ && follower_.sample(time, to);
  }

  Fault why_not_followed(bool is_clock_believed) const
  {
    if (!is_clock_believed) { return {Cause::clock}; }
    if (!has_velocities(velocity_)) { return {Cause::unknown_velocity}; }
    const double largest = state_.settings.max_following_error;
    if (!state_.law.latest().follows() || largest == kInfinity) { return {}; }
    std::size_t worst = 0;
    double most = -1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double error = std::fabs(state_.error(wanted_.position[i], position_[i], i));
      if (std::isnan(most) || error <= most) { continue; }
      most = error;  // one that is not a number is the largest
      worst = i;
    }
    if (most <= largest) { return {}; }
    return {Cause::following_error, static_cast<int>(worst), most, largest};
  }

  // For how long a command acts on velocities, with their lag [s]; before the period is known, no
  // longer than the timeout.
  double period() const
  {
    return std::isnan(state_.period) ? state_.settings.state_timeout : state_.period + state_.lag;
  }

  // Compute torque_ and parts_ a time [s] after the last valid cycle, up to the soft joint limits,
  // and return whether the torque is finite. What is followed is wanted_.
  bool evaluate(
    double ahead, const Vector & position, const Vector & velocity, bool has_wanted, double time,
    const double * added)
  {
    const LawCoefficients & law = state_.law.at(ahead);
    double damping = allowed_damping(law.damping, period());
    const bool is_braked = state_.settings.is_braked_by_damping && !has_wanted;
    for (std::size_t i = 0; is_braked && i < n_; ++i) {
      const double speed = std::fabs(velocity[i]);
      damping = std::min(damping, state_.settings.braking_acceleration[i] / speed);  // or NaN
    }
    const Vector & is_continuous = state_.settings.is_continuous;
    const ReferenceState * const wanted = has_wanted ? &wanted_ : nullptr;
    bool could = state_.parts.compute(
      law, damping, state_.model, is_continuous, position, velocity, wanted, parts_);
    if (is_braked) { fit_damping(); }
    if (follower_.is_fading()) {
      const double left = follower_.share_left(ahead);
      follower_.sample_fading(time, before_);
      could &= state_.parts.compute(
        law, damping, state_.model, is_continuous, position, velocity, &before_, other_parts_);
      for (std::size_t k = 0; k < parts_.size(); ++k) {
        parts_[k] = left * other_parts_[k] + (1.0 - left) * parts_[k];
      }
    }
    if (added != nullptr && !is_stopping_) {
      for (std::size_t i = 0; i < n_; ++i) { parts_[part::effort * n_ + i] += added[i]; }
    }
    add_up(parts_);
    could &= soft_limits_.apply(
      law, state_.model, state_.parts, state_.settings, position, velocity, period(), torque_);
    return could && is_finite(torque_);
  }

  // Shrink the feedback, which is damping, to what the effort limits leave.
  void fit_damping()
  {
    add_up(parts_);
    double fraction = 1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double damped = parts_[part::feedback * n_ + i], held = torque_[i] - damped;
      if (damped == 0.0) { continue; }
      const double limit = std::copysign(state_.settings.effort_limits[i], damped);
      fraction = std::min(fraction, std::max((limit - held) / damped, 0.0));
    }
    for (std::size_t i = 0; i < n_; ++i) { parts_[part::feedback * n_ + i] *= fraction; }
  }

  void add_up(const Vector & parts)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      torque_[i] = 0.0;
      for (std::size_t k = 0; k < part::count; ++k) { torque_[i] += parts[k * n_ + i]; }
    }
  }

  // Let the time since the last valid cycle pass, for all that fades.
  void advance()
  {
    const double elapsed = elapsed_;
    elapsed_ = 0.0;
    const double ramp_time = state_.settings.ramp_time;
    state_.law.advance(elapsed, velocity_, ramp_time);
    state_.model.advance(elapsed, ramp_time);
    follower_.advance(elapsed);
    if (!state_.law.follows()) { follower_.drop({Cause::no_following_mode}); }
  }

  // Limit a torque; the result is the command, and counts as sent.
  void limit(const Vector & torque, double now)
  {
    limiter_.apply(torque, state_.settings, now);
    has_command_ = true;
  }

  // --- without one ------------------------------------------------------------------------------

  // Whether it is known where the arm goes from the last state.
  bool predicts(const Now & now) const
  {
    return !now.is_simulated() && has_velocities(state_.velocity);
  }

  // Command for where the arm should be by now, if its state is late. A torque that stays as it is
  // soon fits neither the motion nor gravity, and an arm without friction runs away from where it
  // was to go.
  void extrapolate(const Now & now, const double * added)
  {
    double gap = now.steady - state_.steady;
    const bool is_unfinished =
      limiter_.is_any_rate_limited() || state_.model.is_blending() || is_load_new_;
    // A torque for 20 ms fits slow states no better than late ones; no period (NaN) is none.
    double late =
      is_slow() ? kShortestGap : std::fmax(kShortestGap, kMissedStates * state_.period);
    if (is_unfinished) { late = kUnfinishedGap; }
    const bool is_due = predicts(now) && late < gap && (gap <= kLongestGap || is_unfinished);
    if (is_stale_ || !is_due || (is_brake_next() && !is_load_new_)) { return; }
    if (!has_extrapolated_) { alone_ = gap; }
    has_extrapolated_ = true;
    is_load_new_ = false;
    // Commands that come now and then are for the middle of the time for which they act.
    gap += limiter_.half_a_step(now.steady);
    const double time = expect(gap, now);
    const bool has_wanted = sample(time, wanted_);
    if (evaluate(elapsed_ + gap, position_, velocity_, has_wanted, time, added)) {
      limit(torque_, now.steady);
    }
  }

  // Write where the arm should be a time [s] after its last valid state to position_ and velocity_,
  // and return the time that is of. Its errors from the reference fade as the feedback makes them,
  // e'' = -kd e' - kp e: errors that were to go on as they were would be corrected again with each
  // command. Without a reference it coasts. Where nothing is predicted, it is the last state.
  double expect(double gap, const Now & now)
  {
    position_ = state_.position;
    velocity_ = state_.velocity;
    if (!predicts(now)) { return state_.time; }
    constexpr int steps = 10;
    const double ahead = std::min(gap, kLongestGap), time = state_.time + ahead;
    const double h = ahead / steps;
    const bool has_wanted = follower_.last(before_) && sample(time, wanted_);
    const LawCoefficients & law = state_.law.at(elapsed_);
    for (std::size_t i = 0; i < n_; ++i) {
      double & p = position_[i];
      double & v = velocity_[i];
      if (!has_wanted) {
        p += ahead * v;
        continue;
      }
      const double kp = law.kp[i], kd = law.kd[i];
      const double begin = state_.error(p, before_.position[i], i);
      double error = begin;
      v -= before_.velocity[i];
      for (int k = 0; k < steps; ++k) {  // implicit: stable for any gains
        v = (v - h * kp * error) / (1.0 + h * kd + h * h * kp);
        error += h * v;
      }
      p += error - begin + wanted_.position[i] - before_.position[i];
      v += wanted_.velocity[i];
    }
    return time;
  }

  // Give up what is followed, once. What followed a reference is braked from where it should be, by
  // the model alone, and gravity is held where this ends.
  void become_stale(const Now & now)
  {
    if (is_stale_) { return; }
    expect(now.steady - state_.steady, now);
    if (follower_.has_reference()) { follower_.give_up({Cause::stale_state}); }
    follower_.end_fading();
    has_stale_brake_ = follower_.is_brake_due() && predicts(now) && !is_at_rest(velocity_);
    if (has_stale_brake_) {
      follower_.plan_brake(position_, velocity_, now.steady, stale_brake_);
    }
    rest_ = has_stale_brake_ ? stale_brake_.end.position : position_;
    state_.parts.gravity(state_.law.latest(), state_.model, rest_, held_);
    is_stale_ = has_held_ = true;
    stale_since_ = now.steady;
  }

  // Write what stale states ask for to torque_, first of all a brake that nobody measures, and
  // return true; false: silence.
  bool stale_torque(double now)
  {
    if (now - stale_since_ >= state_.settings.stale_hold_time) {
      has_held_ = false;  // for good, whatever the hold time becomes
    }
    const Action action = state_.settings.on_stale_state;
    if (!torque_of(action, has_held_, held_, torque_)) { return false; }
    const double time = now + limiter_.half_a_step(now);
    if (action != Action::hold_gravity || !has_stale_brake_ || stale_brake_.is_finished(time)) {
      return true;
    }
    stale_brake_.sample(time, wanted_);
    const bool could = state_.parts.compute(
      state_.law.latest(), 0.0, state_.model, state_.settings.is_continuous, wanted_.position,
      wanted_.velocity, &wanted_, other_parts_);
    add_up(other_parts_);
    if (!could || !is_finite(torque_)) { torque_ = held_; }
    return true;
  }

  // Write the torque of an action and return true; false: silence.
  bool torque_of(Action action, bool has_gravity, const Vector & gravity, Vector & torque) const
  {
    if (action == Action::zero) {
      std::fill(torque.begin(), torque.end(), 0.0);
      return true;
    }
    if (action == Action::silent || !has_gravity || !is_finite(gravity)) { return false; }
    torque = gravity;
    return true;
  }

  // Write the gravity that the latest law would compensate under another load.
  void gravity_under(const double * load, const Vector & position, Vector & gravity)
  {
    const double weight = state_.law.latest().gravity();
    const bool could = state_.model.inverse_dynamics_under(
      load, position.data(), zero_.data(), zero_.data(), gravity.data());
    for (double & each : gravity) { each = weight == 0.0 ? 0.0 : could ? weight * each : kNaN; }
  }

  PipelineState state_;
  const std::size_t n_;
  ReferenceFollower follower_;
  StampClock clock_;
  EnergyGuard guard_;
  Plausibility plausibility_;
  VelocityCheck check_;
  SoftJointLimits soft_limits_;
  TorqueLimiter limiter_;
  Motion stale_brake_;  // by the steady clock
  ReferenceState wanted_, before_;
  Vector position_, velocity_;  // of this cycle, or where they are expected
  Vector measured_;             // where they are in it
  Vector parts_, other_parts_, torque_, gravity_, gravity_before_, held_;
  Vector rest_;  // where held_ is of
  Vector stop_torque_;
  Vector damping_torque_;  // of the last cycle
  const Vector zero_;
  bool is_enabled_ = false, is_stopping_ = false, is_stale_ = false, is_too_fast_ = false;
  bool has_command_ = false, has_parts_ = false, has_wanted_ = false, has_held_ = false;
  bool has_stale_brake_ = false, has_stop_torque_ = false, is_stop_command_sent_ = false;
  bool has_damped_ = false;
  bool was_ready_ = false;         // since enabling
  bool is_clock_doubted_ = false;  // since the last valid cycle
  bool continues_ = false;         // what another commanded, however long ago
  Refusal refusal_ = Refusal::none;
  double now_ = 0.0, last_update_ = 0.0, last_valid_ = 0.0;  // s, of a controller's cycles
  double last_period_ = kNaN;                                // s, between the last two states
  bool has_extrapolated_ = false;                            // since the last valid cycle
  bool is_load_new_ = false;                                 // since the last command
  double alone_ = kNaN;       // s, from a state's command to the next one; NaN: none came before
  double elapsed_ = 0.0;      // s, since the last valid cycle
  double stale_since_ = 0.0;  // s
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__COMMAND_PIPELINE_HPP_
