// SPDX-License-Identifier: Apache-2.0
// What runs an arm, behind the node and the controller: from states to commanded torques, with every
// check and limit, and the answer to every request. Both doors pass messages on as numbers; joint states
// by name are in joint_states.hpp, external torques in contact.hpp, words in words.hpp.
//
// step turns a complete joint state into a command, watchdog commands when states are late or
// missing, and stop_command gives the last commands; update does all that one cycle of a
// controller needs. The order is: control law, soft joint limits (after an effort limit of their
// own), finite check, effort limit, rate limit, effort limit; every torque takes this path.
//
// No change causes a jump of the torque. A change of mode, gains or terms is a transition: each
// joint's torque stays between those of the active laws at the present state. A new reference, a
// payload or gravity, enabling and recovery act at once, and the rate limit smooths the torque.
// A reference that ends early is braked to rest where there is feedback; in feedforward it fades
// to gravity; where gravity compensation takes over a moving arm, damping brings it to rest.
//
// There are two clocks. Steady time measures staleness, the rate limit and transitions. The time
// of the states samples references, while it keeps pace with steady time. Simulated time
// replaces both but for the rate limit: without one a simulation gives the same torques at any
// pace, and while it stands still nothing is stale.
//
// Nothing but the constructor and follow allocates; nothing waits, logs or throws.
#ifndef ROBODYN_ROS__CORE__ARM_RUNTIME_HPP_
#define ROBODYN_ROS__CORE__ARM_RUNTIME_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "midpoint.hpp"
#include "model.hpp"
#include "reference.hpp"
#include "reference_follower.hpp"
#include "settings.hpp"
#include "spring_energy.hpp"
#include "stale_states.hpp"
#include "state_check.hpp"
#include "torque.hpp"
#include "weighing.hpp"

namespace robodyn
{

// Rate of the states from which gravity compensation needs no extrapolation [Hz]. With a gravity
// torque held from state to state, the speed of a Panda without friction grows 1.3 times in a
// second at 100 Hz, 2.6 times at 30 Hz.
constexpr double kGravityRate = 100.0;

class ArmRuntime
{
public:
  // Whatever the model's functions use must outlive it. Every vector of the settings has one
  // number for each joint, the position limits two.
  ArmRuntime(const Model & model, const double * load, const Settings & settings)
  : state_(model, load, settings),
    n_(state_.n),
    follower_(state_),
    plausibility_(n_),
    agreement_(n_),
    agreed_position_(n_),
    agreed_velocity_(n_),
    differenced_(n_),
    velocity_check_(n_),
    soft_limits_(n_),
    limiter_(n_),
    stale_(n_),
    desired_(n_),
    previous_(n_),
    position_(n_),
    velocity_(n_),
    middle_(n_),
    parts_(part::count * n_),
    fading_parts_(parts_.size()),
    torque_(n_),
    gravity_(n_),
    gravity_before_(n_),
    cut_(n_),
    stop_torque_(n_),
    damping_torque_(n_),
    held_(n_),
    compensated_(n_),
    weighing_(n_),
    zero_(n_)
  {
  }

  // Its parts refer to one another.
  ArmRuntime(const ArmRuntime &) = delete;
  ArmRuntime & operator=(const ArmRuntime &) = delete;

  // --- requests --------------------------------------------------------------------------------

  // Start to command with the next valid state.
  void enable(double now)
  {
    if (is_enabled_) { return; }
    now = monotonic(now);
    is_enabled_ = true;
    stale_.reset();
    is_overspeed_ = false;
    has_stop_torque_ = is_stop_command_sent_ = is_handover_ = has_extrapolated_ = false;
    state_.acknowledge_faults();
    state_.has_state = has_damped_ = is_clock_invalid_ = has_been_ready_ = false;
    state_.steady = last_update_ = last_valid_ = now;
    state_.period = last_period_ = hold_duration_ = kNaN;
    elapsed_ = 0.0;
    clock_.reset();
    plausibility_.reset();
    agreement_.begin();
    begun_ = 0;
    differs_since_ = agreed_steady_ = -kInfinity;
    velocity_check_.reset();
    state_.law.switch_now();
    follower_.reset();
    forget_weighed();
  }

  // Command nothing for a first state until a steady time [s]: more than one source sends states,
  // and each may have sent one by then.
  void listen(double until) { listens_until_ = until; }

  // Stop commanding; call stop_command before.
  void disable()
  {
    is_enabled_ = is_stopping_ = false;
    follower_.clear();
  }

  // Change limits and reactions at once; the mode, the gains and the terms by a transition; the
  // sizes stay the same. A reference is kept while an active law follows one; where feedback would
  // begin far from it, the arm is braked where it is instead. The latest law again changes nothing:
  // an arm that a fault let go stays free.
  void change_settings(const Settings & settings)
  {
    state_.settings = settings;
    ActiveLaw & active = state_.law;
    const bool had_feedback = active.goal().has_feedback();
    const bool is_moving = state_.has_state && !is_at_rest(state_.velocity);
    // Damp where damping acts already, or where a moving arm may lose its reference.
    const bool is_damped =
      active.goal().damping != 0.0 || (is_moving && follower_.has_reference());
    const double damping = is_damped ? state_.damping() : 0.0;
    if (!active.change(settings, damping)) { return; }
    if (!had_feedback && active.latest().has_feedback() && follower_.is_far()) {
      follower_.drop_and_brake({Cause::feedback_far_away});
    }
    hold_in_impedance();
    if (state_.has_state) { spring_energy_.pace(state_, follower_.has_reference(), period()); }
  }

  // Return the joint whose gravity torque would exceed its effort limit under another load,
  // though it does not now; none: the load may be taken.
  Fault overload(const double * load) { return overload(state_.model.model(), load); }
  Fault overload(const Model & model, const double * load)
  {
    if (!is_enabled_ || !state_.has_state) { return {}; }
    gravity_under(model, load, state_.position, gravity_);
    state_.parts.gravity(state_.law.latest(), state_.model, state_.position, gravity_before_);
    for (std::size_t i = 0; i < n_; ++i) {
      // fmax ignores NaN: a torque that was not finite before is no limit.
      gravity_before_[i] =
        std::fmax(state_.settings.effort_limits[i], std::fabs(gravity_before_[i]));
    }
    return overload(gravity_, gravity_before_);
  }

  // Change the payload or gravity; reference and feedback go on. The next cycle commands the
  // torque under the new load, and the rate limit smooths the change. Where a joint has no rate
  // limit, the old load blends into the new one.
  void change_load(const double * load) { change_load(state_.model.model(), load); }
  void change_load(const Model & model, const double * load)
  {
    if (state_.has_state && stale_.is_holding_gravity()) {
      gravity_under(model, load, stale_.rest(), stale_.held());
    }
    bool are_all_limited = true;
    for (const double rate : state_.settings.torque_rate_limit) {
      are_all_limited &= std::isfinite(rate);
    }
    const double duration =
      are_all_limited || !state_.has_state ? 0.0 : state_.settings.ramp_time;
    state_.model.change(model, load, duration);
    is_load_new_ = true;
    weighing_.give_up(false);  // it may be a part of the load
  }

  // Let the tip of an impedance go to a pose of its own, beside the joints' reference; relative: in
  // the frame of the tip's reference. It is held until another one, or until the joints' reference
  // is a new one. Return why it is refused.
  Fault aim_tip(const Pose & given, bool is_relative = false)
  {
    if (const Fault refusal = target_refusal(true)) { return refusal; }
    if (is_relative && !has_tip_reference()) { return {Cause::not_followed}; }
    const Pose target = in_base(given, is_relative);
    if (const Fault refusal = reach_refusal(target)) { return refusal; }
    if (!state_.law.latest().impedance.at_tip()) { return {Cause::no_spring}; }
    state_.parts.tip().aim(target);
    return {};
  }

  // Return a pose in the base link's frame that is given there, or in that of the tip's reference.
  Pose in_base(const Pose & given, bool is_relative) const
  {
    return is_relative ? given.after(tip_reference()) : given;
  }

  // Whether the tip's reference is known: not before the first cycle of an impedance.
  bool has_tip_reference() const
  {
    const auto is_set = [](const Vector3 & each) { return each != Vector3{}; };
    return is_set(tip_reference().position) || is_set(tip_reference().turn.v);
  }
  // Where the tip of an impedance shall be, in the base link's frame.
  const Pose & tip_reference() const { return state_.parts.tip().latest(); }

  // Why a pose in the base link's frame is beyond the reach of the arm.
  Fault reach_refusal(const Pose & target) const
  {
    const Vector3 & at = target.position;
    if (is_within(reach(), at)) { return {}; }
    return {Cause::reach, -1, std::hypot(at[0], at[1], at[2]), reach()};
  }

  // Add a wrench at the tip, in base axes [N, N m], or in those of the tip's reference, in an
  // impedance; it fades in, and is gone state_timeout after this steady time [s], or when the arm is
  // braked or stopped, or touches something. Return why it is refused.
  Fault add_wrench(const Vector6 & given, double now, bool is_relative = false)
  {
    const auto & impedance = state_.settings.impedance;
    const Fault wrong = refusal_of(given, impedance.largest_force, impedance.largest_moment);
    if (wrong) { return wrong; }
    if (const Fault refusal = target_refusal(false)) { return refusal; }
    if (is_relative && !has_tip_reference()) { return {Cause::not_followed}; }
    Vector6 wrench = given;
    if (is_relative) {
      const Quaternion & axes = tip_reference().turn;
      const Vector3 force = axes.apply({given[0], given[1], given[2]});
      const Vector3 moment = axes.apply({given[3], given[4], given[5]});
      std::copy(force.begin(), force.end(), wrench.begin());
      std::copy(moment.begin(), moment.end(), wrench.begin() + 3);
    }
    state_.parts.tip().add_wrench(wrench);
    wrench_time_ = now;
    return {};
  }

  // Weigh what the hand takes in the next second, on springs at rest, and carry it until the springs
  // end, the load changes, or it is gone; gravity in the base link's axes [m/s^2]. Return why not.
  Fault weigh(const Vector3 & gravity)
  {
    if (const Fault refusal = target_refusal(false)) { return refusal; }
    return state_.model.has_tip() ? weighing_.begin(gravity) : Fault{Cause::no_spring};
  }

  // Why no target of the tip is taken at present, whatever it is; poses need other springs than
  // wrenches.
  Fault target_refusal(bool is_pose) const
  {
    if (!is_enabled_ || is_stopping_) { return {Cause::inactive}; }
    const bool is_soft = mode() == Mode::joint_impedance && !is_pose;
    if (!is_soft && mode() != Mode::cartesian_impedance) {
      return {is_pose ? Cause::mode_without_tip : Cause::mode_without_springs};
    }
    if (state_.faults.first()) { return {Cause::unacknowledged}; }
    const bool is_followed = state_.has_state && !stale_.are_stale() && follower_.has_reference();
    return {is_followed ? Cause::none : Cause::not_followed};
  }

  // Farthest from the base link's origin that a target of the tip may be [m].
  double reach() const
  {
    return reach_of(state_.model.model(), state_.law.latest().wrench_point);
  }

  // Why no trajectory is followed at present, whatever it is.
  Fault reference_refusal() const
  {
    if (!is_enabled_ || is_stopping_) { return {Cause::inactive}; }
    return {state_.law.latest().follows() ? Cause::none : Cause::no_following_mode};
  }

  // Why no setpoint, or not this one, is followed at present.
  Fault setpoint_refusal(const Setpoint & setpoint)
  {
    if (const Fault refusal = reference_refusal()) { return refusal; }
    if (!state_.has_state || stale_.are_stale()) { return {Cause::not_followed}; }
    return follower_.refusal_of(setpoint, now_);
  }

  // Follow a motion from now on; not for the real-time loop. The caller planned it from the
  // motion that is followed, or from the measured state.
  void follow(std::shared_ptr<const Motion> motion)
  {
    follower_.follow(std::move(motion));
    state_.parts.tip().release();
    state_.acknowledge_faults();
    state_.law.end_damping(state_.settings.ramp_time);
  }

  // Whether a motion or a setpoint may start.
  bool may_follow(double now) const
  {
    return is_enabled_ && !is_stopping_ && state_.law.latest().follows() && state_.has_state &&
           !stale_.are_stale() && has_velocities(state_.velocity) && is_ready() &&
           clock_.is_reliable(now);
  }

  // Whether enough states have come since enabling for feedback: their period is known, and so
  // is the slope of the positions, by which velocities are checked.
  bool is_ready() const { return !std::isnan(state_.period) && velocity_check_.is_ready(); }

  // Cancel the reference: brake to rest and hold, or fade. Acknowledges faults. An impedance
  // without a reference gets one where the arm is.
  void cancel()
  {
    state_.parts.tip().stop();
    state_.parts.tip().add_wrench({});
    follower_.cancel();
    hold_in_impedance();
  }

  // Bring a moving arm to rest, until has_stopped; no reference is accepted until then.
  void begin_stop()
  {
    if (!is_enabled_ || is_stopping_) { return; }
    is_stopping_ = true;
    state_.parts.tip().stop();
    state_.parts.tip().add_wrench({});
    if (follower_.is_idle()) {
      state_.law.switch_now(state_.damping());
    } else {
      follower_.cancel();
    }
  }

  // Whether stop_command may follow: there is no motion, no load that still blends in (the last
  // torque must carry all of it), or there are no states.
  bool has_stopped() const
  {
    if (!state_.has_state || stale_.are_stale()) { return true; }
    if (state_.model.is_blending()) { return false; }
    // In feedforward the drive's own loop moves the arm, and goes on after the stop command.
    if (mode() == Mode::feedforward) { return true; }
    if (follower_.is_brake_due()) { return false; }
    return !has_velocities(state_.velocity) || follower_.has_settled();
  }

  // Drop the reference because of a contact. With stop the arm brakes to rest and holds where
  // the law has feedback; in other modes, and with release, gravity is compensated and damping
  // brings the arm to rest. A new reference or a cancellation acknowledges it, like a fault.
  void react_to_contact(ContactAction action)
  {
    if (!is_enabled_ || action == ContactAction::report) { return; }
    const Fault why{Cause::contact};
    state_.faults.set(why);
    state_.parts.tip().add_wrench({});
    follower_.refuse_until_end();
    if (action == ContactAction::stop && state_.law.latest().yields()) {
      // The springs yield: only a motion ends, where its reference is.
      state_.parts.tip().stop();
      follower_.end_motion();
      return;
    }
    if (action == ContactAction::stop && state_.law.latest().has_feedback()) {
      // A brake under way goes on: a new one would start without deceleration.
      if (follower_.following() != Following::braking) { follower_.drop_and_brake(why); }
    } else {
      follower_.drop(why);
      state_.law.switch_now(state_.damping());
    }
  }

  // Continue from a torque that another process (the watchdog) commanded instead, sent at a
  // steady time [s]. As after stale states, the reference is dropped.
  void continue_from(const double * torque, double sent)
  {
    limiter_.continue_from(torque, sent);
    velocity_check_.restart_history();  // the arm's motion meanwhile is not known
    is_handover_ = state_.has_state;    // else the first state may be long in coming
    if (state_.has_state) { become_stale({sent}); }
  }

  // Record that the last command was sent by a steady time [s]: the rate limit then counts from
  // one sent command to the next, also where a cycle was delayed.
  void sent(double now) { limiter_.record_sent(now); }

  // --- commands --------------------------------------------------------------------------------

  // Do a control cycle for a complete state, with finite positions, and NaN for an unknown
  // velocity. Return whether there is a torque to command. The time [s] is that of the state:
  // its stamp, or when it was received; velocities are of a time by a lag [s] before. The added
  // efforts of another node may be null.
  bool step(
    const double * position, const double * velocity, double time, bool is_stamped,
    const Now & now, const double * added = nullptr, double lag = 0.0)
  {
    has_command_ = has_parts_ = false;
    std::copy_n(position, n_, position_.begin());
    if (!is_enabled_) {
      agreement_.take(position_, now.of_motion(), state_.settings);
      return false;
    }
    std::copy_n(velocity, n_, velocity_.begin());
    update_period(clock_.advance(time, now, state_.settings.state_timeout));
    // Kept until a state is valid: a refused state must not hide that the clock jumped.
    is_clock_invalid_ |= !clock_.is_valid();
    cycle(time, is_stamped, now, added, lag);
    has_other_velocity_ = !std::equal(state_.velocity.begin(), state_.velocity.end(), velocity);
    return has_command_;
  }

  // Return whether there is a command for a late or a stale state; call it periodically. A state
  // is stale when the caller, who collects the joints' samples, says so, or when no cycle gave a
  // valid torque for state_timeout; until then it is extrapolated.
  bool watchdog(const Now & now, bool has_stale_joint, const double * added = nullptr)
  {
    has_command_ = has_parts_ = false;
    if (!is_enabled_ || !state_.has_state) { return false; }
    const double stamp = state_.is_stamped ? state_.time : kNaN;
    const double waited = now.since(state_.steady, stamp);
    const bool is_fresh = !has_stale_joint && !(waited > state_.settings.state_timeout);
    if (is_fresh && !agreement_.is_contradicted()) {
      extrapolate(now, added);
      return has_command_;
    }
    become_stale(now);
    if (stale_torque(now.steady)) { limit(torque_, now.steady); }
    return has_command_;
  }

  // Do one cycle of a controller at a steady time [s], and return whether there is a torque to
  // command; without one the last command stays in effect. A state with a position that is not
  // finite, or not possible for the joint, is not valid. No setpoint, or one with a position or
  // velocity that is not finite, ends the reference.
  bool update(
    double time, const double * position, const double * velocity, const Setpoint & setpoint,
    const double * possible_positions)
  {
    has_command_ = has_parts_ = false;
    const Now now{monotonic(time)};
    if (!is_enabled_) {
      std::copy_n(position, n_, position_.begin());
      if (is_finite(position_)) { agreement_.take(position_, now.of_motion(), state_.settings); }
      return false;
    }
    if (state_.has_state && now.steady - last_update_ > state_.settings.state_timeout) {
      become_stale(now);  // update was not called meanwhile
    }
    last_update_ = now.steady;
    bool is_valid = true;
    Fault impossible;
    for (std::size_t i = 0; i < n_; ++i) {
      position_[i] = position[i];
      is_valid &= std::isfinite(position[i]);
      const bool is_in_range =
        possible_positions[2 * i] <= position[i] && position[i] <= possible_positions[2 * i + 1];
      if (impossible.cause == Cause::none && !is_in_range) {
        impossible = {Cause::impossible_position, static_cast<int>(i), position[i]};
      }
    }
    const bool is_possible = impossible.cause == Cause::none;
    if (is_valid && is_possible) {
      update_period(now.steady - last_valid_);
      last_valid_ = now.steady;
    }
    const bool is_led = follower_.take(setpoint, now.steady, may_follow(now.steady));
    if (is_led) { state_.parts.tip().release(); }
    if (is_valid && !is_possible) { state_.faults.keep(impossible); }
    if (is_valid && is_possible) {
      if (state_.faults.first().cause == Cause::impossible_position) {
        state_.faults.acknowledge();
      }
      cycle(now.steady, false, now, nullptr, difference_velocities(velocity, now.steady));
    }
    return has_command_ || watchdog(now, false);
  }

  // Return whether there is another command toward the torque that on_stop asks for. Call it
  // repeatedly to end commanding, after begin_stop where the arm moves, and before disable. The
  // torque changes at the rate limit, to a final value that the first call computes for the last
  // valid state. With is_last no cycle follows: the command is that value, without the rate
  // limit.
  bool stop_command(double time, bool is_last = false)
  {
    has_command_ = has_parts_ = false;
    const double now = monotonic(time);
    if (!is_enabled_ || !state_.has_state || is_stop_command_sent_) { return false; }
    if (!has_stop_torque_) {
      state_.parts.gravity(state_.law.latest(), state_.model, state_.position, gravity_);
      has_stop_torque_ = torque_of(state_.settings.on_stop, true, gravity_, stop_torque_);
    }
    if (!has_stop_torque_) { return false; }
    if (is_last) { limiter_.reset(); }
    limit(stop_torque_, now);
    is_stop_command_sent_ = !limiter_.is_any_rate_limited();
    return true;
  }

  // --- its state -------------------------------------------------------------------------------

  std::size_t joints() const { return n_; }
  bool has_torque() const { return limiter_.has_torque(); }
  const Vector & torque() const { return limiter_.torque(); }  // the last command
  bool has_parts() const { return has_parts_; }  // whether the command is that of a control cycle
  const Vector & parts() const { return parts_; }  // part::count times n
  bool has_desired() const { return has_desired_; }
  const ReferenceState & desired() const { return desired_; }  // that the last cycle followed
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
  const RuntimeState & state() const { return state_; }
  const ReferenceFollower & follower() const { return follower_; }
  const StampClock & clock() const { return clock_; }
  const Counts & counts() const { return state_.faults.counts(); }
  // Ratio of a joint's velocity to that of its positions, where it is wrong; NaN: it is not.
  const Vector & wrong_velocities() const { return velocity_check_.ratio(); }
  // Whether states come too seldom for gravity compensation; 10 % are jitter.
  bool is_slow() const { return state_.period * kGravityRate > 1.1; }
  bool is_contradicted() const { return agreement_.is_contradicted(); }
  Refusal refusal() const { return refusal_; }  // of the last state
  const Weighing & weighing() const { return weighing_; }
  // Whether the law used another velocity than that of the last state.
  bool has_other_velocity() const { return has_other_velocity_; }
  const Fault & last_fault() const { return state_.faults.first(); }
  const Fault & last_drop() const { return state_.faults.last_drop(); }
  Mode mode() const { return state_.law.mode(); }
  bool is_enabled() const { return is_enabled_; }
  bool is_stopping() const { return is_stopping_; }
  bool is_stale() const { return stale_.are_stale(); }
  // The springs in effect: a transition may wait for energy.
  const ImpedanceCoefficients & springs() { return state_.law.at(0.0).impedance; }
  Stiffening stiffening() const { return spring_energy_.stiffening(state_); }
  // Of the stiffness of the modes, the least that the rates of states and torques leave.
  double least_stiffness() const { return state_.parts.impedance().least_fraction(); }
  // Whether gravity is still held while states are stale (stale_hold_time).
  bool is_holding_gravity() const { return stale_.is_holding_gravity(); }
  bool is_stop_command_sent() const { return is_stop_command_sent_; }
  Following following() const
  {
    return state_.has_state ? follower_.following() : Following::none;
  }

private:
  // Gaps that are extrapolated [s]: shorter ones only where a rate limit or a new load makes the
  // torque change on, longer ones not, as a prediction is too uncertain.
  static constexpr double kShortestGap = 0.02, kUnfinishedGap = 0.005, kLongestGap = 0.15;
  // Up to this period gravity is taken at the measured position: a free arm gains a tenth of its
  // energy in a second [s].
  static constexpr double kQuickPeriod = 0.0045;
  static constexpr int kBegun = 2;  // agreeing states from which on the first is relied on
  static constexpr double kMissedStates = 3.0;  // a state is late after this number of periods
  // Multiple of the longest period for the gains at which feedback under way ends: a pause makes
  // the mean period longer.
  static constexpr double kToleratedSlowness = 1.5;
  static constexpr double kPeriodWeight = 0.1;  // weight in the mean period

  // Return the latest finite time: time never goes back.
  double monotonic(double now)
  {
    if (std::isfinite(now) && now > now_) { now_ = now; }
    return now_;
  }

  // Write velocities, of which those that are not finite are taken from the positions, and return
  // the longest lag of those [s].
  double difference_velocities(const double * velocity, double now)
  {
    double lag = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      DifferencedVelocity & differenced = differenced_[i];
      velocity_[i] = velocity[i];
      if (std::isfinite(velocity[i])) {
        differenced.take(position_[i], velocity[i], now, true);
        continue;
      }
      const Settings & settings = state_.settings;
      velocity_[i] = differenced.difference(
        position_[i], now, true, false,
        {settings.state_timeout, settings.velocity_limits[i], settings.is_continuous[i] != 0.0});
      lag = std::max(lag, differenced.lag());
    }
    return lag;
  }

  // --- a cycle with a state: position_ and velocity_ -------------------------------------------

  // Add a time [s] since the last state, and update the mean period.
  void update_period(double elapsed)
  {
    elapsed_ += elapsed;
    // A simulation that waits repeats a state.
    if (!state_.has_state || elapsed == 0.0) { return; }
    const double last = last_period_;
    last_period_ = elapsed;
    if (std::isnan(last)) { return; }
    double & mean = state_.period;
    if (std::isnan(mean)) { mean = std::min(last, elapsed); }
    // A gap of more than three periods is a pause and counts as three, unless the previous one
    // was as long.
    mean += kPeriodWeight * (std::min(elapsed, std::max(last, kMissedStates * mean)) - mean);
  }

  void cycle(
    double time, bool is_stamped, const Now & now, const double * added, double velocity_lag)
  {
    const double damping = state_.damping();
    refusal_ = Refusal::none;
    if (contradicts(now)) {
      refusal_ = Refusal::contradicting;
      return;
    }
    if (!state_.has_state) {
      if (!may_begin(now.steady)) {
        refusal_ = Refusal::overload;
        return;
      }
      // Without a transition, as no law acted before; a brake needs no damping.
      state_.law.switch_now(follower_.is_brake_due() ? 0.0 : damping);
    } else if (!is_plausible(time, now.steady)) {
      refusal_ = Refusal::implausible;
      return;
    } else if (stale_.are_stale()) {  // recovery: only the rate limit smooths the torque
      state_.law.switch_now(follower_.is_brake_due() ? 0.0 : damping);
      damping_monitor_.reset();  // energy gained meanwhile is not due to the damping
    }
    state_.lag = velocity_lag;
    check_velocities(time, is_stamped, now);
    if (begins_overspeed()) { state_.law.switch_now(damping); }
    velocity_check_.bound(velocity_);  // after the overspeed check, which it would hide
    check_state_rate();
    resume_damping();
    advance_tip(now.steady);
    check_damping();
    if (!has_extrapolated_) { hold_duration_ = kNaN; }
    has_extrapolated_ = is_load_new_ = false;
    has_desired_ = update_reference(time, !is_clock_invalid_, now.is_simulated());
    if (!stale_.are_stale() && !follower_.is_fading()) {
      spring_energy_.balance(state_, position_, elapsed_, middle_.reference.velocity, cut_);
    }
    const double half = predict_midpoint(time), elapsed = elapsed_;
    if (!evaluate(
          elapsed_, middle_.position, middle_.velocity,
          has_desired_ ? &middle_.reference : nullptr, time + half, added, middle_.coasted())) {
      refusal_ = Refusal::not_finite;
      state_.faults.count_refused_torque();
      return;
    }
    spring_energy_.take(state_, elapsed_);
    has_damped_ = state_.law.is_damping();
    std::copy_n(&parts_[part::feedback * n_], n_, damping_torque_.begin());
    advance();
    spring_energy_.pace(state_, follower_.has_reference(), period());
    state_.position = position_;
    state_.velocity = velocity_;
    state_.time = time;
    state_.is_stamped = is_stamped;
    state_.steady = now.steady;
    state_.has_state = true;
    begun_ = std::min(begun_ + 1, kBegun);
    agreement_.follow();
    stale_.recover();
    is_clock_invalid_ = false;
    follower_.record_followed();
    limit(torque_, now.steady);
    weigh_on(elapsed);
    for (std::size_t i = 0; i < n_; ++i) { cut_[i] += limiter_.torque()[i] - torque_[i]; }
    has_parts_ = true;
  }

  // Whether sources contradict each other, or may, before the first torque. The arm is braked from
  // the last state before they did.
  bool contradicts(const Now & now)
  {
    const bool is_contradicted = agreement_.take(position_, now.of_motion(), state_.settings);
    if (agreement_.has_left() && begun_ < kBegun && !stale_.are_stale()) {
      state_.has_state = false;
    }
    if (!state_.has_state) {
      return now.steady < listens_until_ ||
             !agreement_.may_begin(now.of_motion(), has_velocities(velocity_));
    }
    if (agreement_.has_left()) {
      if (now.steady - differs_since_ > kShortestGap) {
        agreed_position_ = state_.position;
        agreed_velocity_ = state_.velocity;
        agreed_time_ = state_.time;
        agreed_steady_ = state_.steady;
      }
      differs_since_ = now.steady;
    }
    if (is_contradicted && !stale_.are_stale()) {
      if (now.steady - agreed_steady_ <= 2.0 * kShortestGap) {
        state_.position = agreed_position_;
        state_.velocity = agreed_velocity_;
        state_.time = agreed_time_;
        state_.steady = agreed_steady_;
      }
      velocity_check_.restart_history();
      become_stale(now);
    }
    if (is_contradicted && stale_torque(now.steady)) { limit(torque_, now.steady); }
    return is_contradicted;
  }

  // Whether to command for a first state: the drives can carry the arm there.
  bool may_begin(double now)
  {
    state_.parts.gravity(state_.law.latest(), state_.model, position_, gravity_);
    const Fault fault = overload(gravity_, state_.settings.effort_limits);
    if (fault.cause != Cause::none) {
      state_.faults.keep(fault);
      state_.faults.count_refused_torque();
      return false;
    }
    // Another node may have commanded since, or brakes hold the arm: the rate limit must not
    // start from the last torque.
    const bool is_old = now - limiter_.sent() >= state_.settings.state_timeout;
    if (is_old && !is_handover_) { limiter_.reset(); }
    is_handover_ = false;
    if (has_velocities(velocity_) && !is_at_rest(velocity_, kSettledSpeed)) {
      follower_.request_brake();
    }
    spring_energy_.reset();
    hold_in_impedance();
    return true;
  }

  // Give an impedance a reference where the arm is, if it has none.
  void hold_in_impedance()
  {
    if (is_enabled_ && !is_stopping_ && state_.law.latest().yields() && follower_.is_idle()) {
      follower_.request_brake();
    }
  }

  // Move the tip's own reference towards its target, and end a wrench that is not renewed.
  void advance_tip(double now)
  {
    TipReference & tip = state_.parts.tip();
    if (!(now - wrench_time_ <= state_.settings.state_timeout)) { tip.add_wrench({}); }
    if (!follower_.has_reference()) {
      tip.reset();
      return;
    }
    const TipSpeed speed{
      state_.settings.impedance.tip_speed, state_.settings.impedance.tip_turn_rate};
    tip.advance(elapsed_, state_.parts.tip_of_reference(), speed);
  }

  void forget_weighed()
  {
    weighing_.give_up(true);
    state_.parts.hold(weighing_.held(), weighing_.settling());
  }

  // Go on weighing what the hand holds; only springs carry it.
  void weigh_on(double elapsed)
  {
    const Vector3 before = tip_place_;
    tip_place_ = tip_reference().position;
    if (!has_desired_ || !state_.parts.impedance().is_active() || !state_.model.has_tip()) {
      forget_weighed();
      return;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      held_[i] = limiter_.torque()[i] - parts_[part::gravity * n_ + i];
    }
    WeighingCycle cycle = state_.parts.weighing_cycle(elapsed, held_, velocity_);
    const Vector3 way{
      tip_place_[0] - before[0], tip_place_[1] - before[1], tip_place_[2] - before[2]};
    cycle.is_changing = !is_at_rest(desired_.velocity, kSettledSpeed) ||
                        std::sqrt(Quaternion::dot(way, way)) > kSettledSpeed * elapsed;
    const LawCoefficients & law = state_.law.at(0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      cycle.is_changing |= law.gravity(i) != compensated_[i];
      compensated_[i] = law.gravity(i);
    }
    weighing_.advance(
      cycle, state_.settings, [this](Vector & to) { state_.parts.stiction(state_.model, to); });
    state_.parts.hold(weighing_.held(), weighing_.settling());
  }

  // Return the gravity torque furthest beyond its limit; none: all are within.
  static Fault overload(const Vector & gravity, const Vector & limits)
  {
    Fault worst;
    double most = -kInfinity;
    for (std::size_t i = 0; i < gravity.size(); ++i) {
      const double size = std::fabs(gravity[i]);
      if (size <= limits[i]) { continue; }
      // NaN ranks last: a joint that is known to be too weak is reported first.
      const double beyond = std::isnan(size) ? -limits[i] : size - limits[i];
      if (worst.cause == Cause::none || beyond > most) {
        worst = {Cause::overload, static_cast<int>(i), size, limits[i]};
        most = beyond;
      }
    }
    return worst;
  }

  // Whether the joints can have reached a state from the last one; a reference is dropped where
  // the arm has jumped.
  bool is_plausible(double time, double now)
  {
    // A simulation may run faster than steady time: then the stamps' difference counts.
    const double stamped = time - state_.time;
    double elapsed = now - state_.steady;
    if (elapsed < stamped && stamped <= state_.settings.state_timeout) { elapsed = stamped; }
    const Verdict verdict =
      plausibility_.verdict(position_, state_.position, elapsed, state_.settings);
    if (verdict != Verdict::plausible) { state_.faults.count_implausible_state(); }
    if (verdict == Verdict::jump) { velocity_check_.restart_history(); }
    if (verdict == Verdict::jump && follower_.has_reference()) {
      state_.faults.set({Cause::implausible_position});
      follower_.drop_and_brake(state_.faults.first());
    }
    return verdict != Verdict::outlier;
  }

  // Whether a joint exceeds its velocity limit, and none did in the last state, so that damping is to
  // brake the arm; references are dropped while one does. Springs stay: they brake it, and hold it
  // where that ends.
  bool begins_overspeed()
  {
    const Fault fault = overspeed(velocity_, state_.settings);
    const bool was_overspeed = is_overspeed_;
    is_overspeed_ = fault.cause != Cause::none;
    const bool is_soft = state_.law.latest().yields() && is_ready() && has_velocities(velocity_);
    const bool is_braked = is_soft && (follower_.is_braking() || follower_.is_brake_due());
    if (is_overspeed_ && !(is_braked && was_overspeed)) { follower_.drop(fault); }
    if (is_overspeed_ && is_soft && follower_.is_idle()) { follower_.request_brake(); }
    if (!is_overspeed_ || was_overspeed) { return false; }  // reported once, not in each cycle
    state_.faults.set(fault);
    return !is_soft;
  }

  // Drop the reference where states come too seldom for the gains.
  void check_state_rate()
  {
    const bool is_needed = follower_.has_reference() || follower_.is_brake_due();
    if (!is_needed || !state_.is_too_slow(kToleratedSlowness)) { return; }
    const Fault fault = state_.slowness();
    state_.faults.add(fault);
    follower_.drop(fault);
    state_.law.switch_now(state_.damping());
  }

  // Restart damping where it alone brakes a moving arm, and has ended.
  void resume_damping()
  {
    const bool is_due = state_.settings.is_braked_by_damping && !state_.law.is_damping() &&
                        has_velocities(velocity_) && !is_at_rest(velocity_);
    if (is_due && follower_.is_idle()) { state_.law.switch_now(state_.damping()); }
  }

  // Switch off damping that adds energy to the arm.
  void check_damping()
  {
    if (!state_.law.is_damping()) {
      damping_monitor_.reset();
      return;
    }
    if (!has_velocities(velocity_)) { return; }
    double work = 0.0;
    for (std::size_t i = 0; has_damped_ && i < n_; ++i) {
      work += damping_torque_[i] * state_.error(position_[i], state_.position[i], i);
    }
    const double energy = kinetic_energy();
    if (!damping_monitor_.adds_energy(energy, work)) { return; }
    state_.faults.add({Cause::damping_adds_energy, -1, energy, damping_monitor_.least()});
    state_.is_damping_off = true;
    state_.law.switch_now();
  }

  // Return the kinetic energy [J]; infinite where it is not finite. Uses gravity_ and
  // gravity_before_ as scratch memory.
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

  // Check the velocities against the positions; where one is wrong, brake with the slopes of the
  // positions. After a jump of the stamps the times of receipt are used. In simulated time these
  // mean nothing: states without stamps are not checked, and after a jump the history restarts.
  void check_velocities(double time, bool is_stamped, const Now & now)
  {
    if (now.is_simulated() && (is_clock_invalid_ || !is_stamped)) {
      if (is_stamped) {
        velocity_check_.restart_history();
      } else {
        velocity_check_.suspend();
      }
      return;
    }
    const bool has_stamp = is_stamped && !is_clock_invalid_;
    const Fault fault = velocity_check_.check(
      position_, velocity_, time, has_stamp, now, state_.period, state_.settings);
    state_.lag = std::max(state_.lag, velocity_check_.lag());
    if (fault.cause == Cause::none) { return; }
    state_.faults.set(fault);
    if (follower_.has_reference()) { follower_.drop_and_brake(fault); }
    // Energy that damping added by this wrong velocity is not due to the damping from now on.
    damping_monitor_.reset();
    state_.is_damping_off = false;
    if (follower_.is_idle()) { state_.law.switch_now(state_.damping()); }
  }

  // Write what is expected in the middle of the time until the next command, and return half of that
  // time [s].
  double predict_midpoint(double time)
  {
    middle_.begin(position_, velocity_, has_desired_ ? &desired_ : nullptr);
    // An unknown duration (NaN) is ignored; without a period there is none.
    const double held = std::min(std::fmin(state_.period, hold_duration_), kLongestGap);
    if (std::isnan(state_.period) || !(held > 0.0)) { return 0.0; }
    if (has_desired_ && sample(time + held, previous_)) {
      middle_.follow(desired_, previous_, held);
    }
    if (is_ready() && state_.period > kQuickPeriod && has_velocities(velocity_)) {
      middle_.coast(position_, velocity_, held, has_desired_, state_.law.latest().yields());
    }
    return 0.5 * held;
  }

  // Whether the next state starts a brake.
  bool is_brake_next() const { return follower_.is_brake_due() && is_ready(); }

  // Write the reference of now to desired_, and return whether there is one. First drop a
  // reference that cannot be followed any more, and start a brake that is due.
  bool update_reference(double time, bool is_clock_valid, bool is_simulated)
  {
    // References start only once the period of the states is known; in simulated time at once,
    // as a simulation may wait for the reference.
    has_been_ready_ |= is_ready() || is_simulated;
    bool has_desired = sample(time, desired_);
    Fault fault;
    if (has_desired || (!is_clock_valid && follower_.has_reference())) {
      fault = following_fault(is_clock_valid);
    }
    if (fault.cause != Cause::none) {
      state_.faults.set(fault);
      follower_.drop_and_brake(fault);
      has_desired = false;
    }
    if (!is_clock_valid) {
      follower_.end_fading();
    } else if (is_brake_next() && has_velocities(velocity_)) {
      follower_.brake(position_, velocity_, time);
      state_.parts.tip().reset();
      has_desired = follower_.sample(time, desired_);
    }
    return has_desired;
  }

  // Write the reference at a time [s] and return true; false: there is none, or not yet.
  bool sample(double time, ReferenceState & to) const
  {
    return has_been_ready_ && follower_.sample(time, to);
  }

  Fault following_fault(bool is_clock_valid) const
  {
    if (!is_clock_valid) { return {Cause::clock}; }
    if (!has_velocities(velocity_)) { return {Cause::unknown_velocity}; }
    const double largest = state_.settings.max_following_error;
    // In a transition to a law without a reference the error no longer counts.
    // Springs yield.
    const LawCoefficients & law = state_.law.latest();
    if (!law.follows() || law.yields() || largest == kInfinity) { return {}; }
    std::size_t worst = 0;
    double most = -1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double error = std::fabs(state_.error(desired_.position[i], position_[i], i));
      if (std::isnan(most) || error <= most) { continue; }
      most = error;  // NaN counts as the largest
      worst = i;
    }
    if (most <= largest) { return {}; }
    return {Cause::following_error, static_cast<int>(worst), most, largest};
  }

  // Delay between velocities and the command's effect: a period and their lag [s]; state_timeout
  // before the period is known.
  double period() const
  {
    return std::isnan(state_.period) ? state_.settings.state_timeout : state_.period + state_.lag;
  }

  // Compute torque_ and parts_ a time [s] after the last valid cycle, including the soft joint
  // limits, and return whether the torque is finite. A reference that fades is that of the time.
  bool evaluate(
    double ahead, const Vector & position, const Vector & velocity,
    const ReferenceState * desired, double time, const double * added,
    const Vector * expected = nullptr)
  {
    const LawCoefficients & law = state_.law.at(ahead);
    double damping = allowed_damping(law.damping, period());
    const bool is_braked = state_.settings.is_braked_by_damping && desired == nullptr;
    for (std::size_t i = 0; is_braked && i < n_; ++i) {
      const double speed = std::fabs(velocity[i]);
      // A quotient that is NaN is ignored.
      damping = std::min(damping, state_.settings.braking_acceleration[i] / speed);
    }
    const Vector & is_continuous = state_.settings.is_continuous;
    state_.parts.scale_release(release_fraction(velocity));
    state_.parts.allow_posture(spring_energy_.level(), state_.settings.torque_rate_limit);
    bool succeeded = state_.parts.compute(
      law, damping, period(), state_.model, is_continuous, position, velocity, desired, parts_,
      expected);
    std::fill(cut_.begin(), cut_.end(), 0.0);
    if (is_braked || law.yields()) { saturate_feedback(); }
    if (follower_.is_fading()) {
      const double left = follower_.remaining_fraction(ahead);
      follower_.sample_fading(time, previous_);
      succeeded &= state_.parts.compute(
        law, damping, period(), state_.model, is_continuous, position, velocity, &previous_,
        fading_parts_);
      for (std::size_t k = 0; k < parts_.size(); ++k) {
        parts_[k] = left * fading_parts_[k] + (1.0 - left) * parts_[k];
      }
    }
    if (added != nullptr && !is_stopping_) {
      for (std::size_t i = 0; i < n_; ++i) { parts_[part::effort * n_ + i] += added[i]; }
    }
    add_up(parts_);
    succeeded &= soft_limits_.apply(
      law, state_.model, state_.parts, state_.settings, position, velocity, period(), torque_);
    return succeeded && is_finite(torque_);
  }

  // How much springs may give of their torque to an arm at a velocity: all, and nothing where a joint
  // would be too fast for a reference. An arm that a hand lets go returns at that speed.
  double release_fraction(const Vector & velocity) const
  {
    double fraction = 1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double speed = std::fabs(velocity[i]) / state_.settings.velocity_limits[i];
      fraction = std::min(fraction, (kOverspeed - speed) / (kOverspeed - kSpeedTolerance));
    }
    return std::max(fraction, 0.0);
  }

  // Scale the feedback, of damping or of springs, to what the effort limits leave: clipped joint by
  // joint it would act in another direction.
  void saturate_feedback()
  {
    add_up(parts_);
    double fraction = 1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double damped = parts_[part::feedback * n_ + i], held = torque_[i] - damped;
      if (damped == 0.0) { continue; }
      const double limit = std::copysign(state_.settings.effort_limits[i], damped);
      fraction = std::min(fraction, std::max((limit - held) / damped, 0.0));
    }
    for (std::size_t i = 0; i < n_; ++i) {
      double & damped = parts_[part::feedback * n_ + i];
      cut_[i] = (fraction - 1.0) * damped;
      damped *= fraction;
    }
  }

  void add_up(const Vector & parts)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      torque_[i] = 0.0;
      for (std::size_t k = 0; k < part::count; ++k) { torque_[i] += parts[k * n_ + i]; }
    }
  }

  // Advance all transitions by the time since the last valid cycle.
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

  // Limit a torque; the result is the command, and counts as sent now.
  void limit(const Vector & torque, double now)
  {
    limiter_.apply(torque, state_.settings, now);
    has_command_ = true;
  }

  // --- without a state -------------------------------------------------------------------------

  // Whether the motion from the last state on can be predicted. Not in simulated time: it may
  // stand still.
  bool can_predict(const Now & now) const
  {
    return !now.is_simulated() && has_velocities(state_.velocity);
  }

  // State extrapolation: command for the expected state, if the measured one is late. A constant
  // torque soon fits neither the reference nor gravity, and an arm without friction drifts off.
  void extrapolate(const Now & now, const double * added)
  {
    double gap = now.steady - state_.steady;
    const bool is_unfinished =
      limiter_.is_any_rate_limited() || state_.model.is_blending() || is_load_new_;
    // Slow states are extrapolated after 20 ms, like late ones; fmax ignores an unknown period
    // (NaN).
    double late =
      is_slow() ? kShortestGap : std::fmax(kShortestGap, kMissedStates * state_.period);
    if (is_unfinished) { late = kUnfinishedGap; }
    const bool is_due = can_predict(now) && late < gap && (gap <= kLongestGap || is_unfinished);
    // A brake that is due starts from a measured state: until then the last torque stays.
    if (stale_.are_stale() || !is_due || (is_brake_next() && !is_load_new_)) { return; }
    if (!has_extrapolated_) { hold_duration_ = gap; }
    has_extrapolated_ = true;
    is_load_new_ = false;
    // Aim at the middle of the time for which this command acts.
    gap += limiter_.half_step(now.steady);
    const double time = predict_state(gap, now);
    const ReferenceState * const desired = sample(time, desired_) ? &desired_ : nullptr;
    if (evaluate(elapsed_ + gap, position_, velocity_, desired, time, added)) {
      limit(torque_, now.steady);
    }
  }

  // Write the expected state, a time [s] after the last valid one, to position_ and velocity_,
  // and return its time. Errors from the reference decay by the feedback, e'' = -kd e' - kp e:
  // if they were held constant, each command would correct them again. Without a reference the
  // arm coasts. Where nothing can be predicted, it is the last state.
  double predict_state(double gap, const Now & now)
  {
    position_ = state_.position;
    velocity_ = state_.velocity;
    if (!can_predict(now)) { return state_.time; }
    constexpr int steps = 10;
    const double ahead = std::min(gap, kLongestGap), time = state_.time + ahead;
    const double h = ahead / steps;
    const bool has_desired = follower_.last(previous_) && sample(time, desired_);
    const LawCoefficients & law = state_.law.at(elapsed_);
    for (std::size_t i = 0; i < n_; ++i) {
      double & p = position_[i];
      double & v = velocity_[i];
      if (!has_desired) {
        p += ahead * v;
        continue;
      }
      const double kp = law.kp[i], kd = law.kd[i];
      const double begin = state_.error(p, previous_.position[i], i);
      double error = begin;
      v -= previous_.velocity[i];
      for (int k = 0; k < steps; ++k) {  // implicit: stable for any gains
        v = (v - h * kp * error) / (1.0 + h * kd + h * h * kp);
        error += h * v;
      }
      p += error - begin + desired_.position[i] - previous_.position[i];
      v += desired_.velocity[i];
    }
    return time;
  }

  // Drop the reference, once. An arm that followed one is braked from its expected state, by the
  // model without feedback, and gravity is held where this brake ends.
  void become_stale(const Now & now)
  {
    if (stale_.are_stale()) { return; }
    forget_weighed();
    predict_state(now.steady - state_.steady, now);
    if (follower_.has_reference()) { follower_.drop_and_brake({Cause::stale_state}); }
    follower_.end_fading();
    const bool is_braked = follower_.is_brake_due() && can_predict(now) && !is_at_rest(velocity_);
    stale_.begin(state_, follower_, position_, velocity_, now.steady, is_braked);
  }

  // Write the torque of the stale-state policy to torque_, first that of an open-loop brake, and
  // return true; false: command nothing.
  bool stale_torque(double now)
  {
    stale_.end_holding(now, state_.settings.stale_hold_time);
    const Action action = state_.settings.on_stale_state;
    const bool is_held = stale_.is_holding_gravity();
    if (!torque_of(action, is_held, stale_.held(), torque_)) { return false; }
    const double time = now + limiter_.half_step(now);
    if (action != Action::hold_gravity || !stale_.sample_brake(time, desired_)) { return true; }
    const bool succeeded = state_.parts.compute(
      state_.law.latest(), 0.0, period(), state_.model, state_.settings.is_continuous,
      desired_.position, desired_.velocity, &desired_, fading_parts_);
    add_up(fading_parts_);
    if (!succeeded || !is_finite(torque_)) { torque_ = stale_.held(); }
    return true;
  }

  // Write the torque of a policy and return true; false: command nothing.
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

  // Write the gravity torque of the latest law under another load.
  void gravity_under(
    const Model & model, const double * load, const Vector & position, Vector & gravity)
  {
    const LawCoefficients & law = state_.law.latest();
    const bool succeeded = model.inverse_dynamics(
      model.self, load, 1, position.data(), zero_.data(), zero_.data(), gravity.data());
    for (std::size_t i = 0; i < n_; ++i) {
      const double weight = law.gravity(i);
      gravity[i] = weight == 0.0 ? 0.0 : succeeded ? weight * gravity[i] : kNaN;
    }
  }

  RuntimeState state_;
  const std::size_t n_;
  ReferenceFollower follower_;
  StampClock clock_;
  DampingMonitor damping_monitor_;
  Plausibility plausibility_;
  Agreement agreement_;
  Vector agreed_position_, agreed_velocity_;  // of the last state before sources differed
  int begun_ = 0;  // states that were commanded from since enabling, to kBegun
  double agreed_time_ = 0.0, agreed_steady_ = -kInfinity, differs_since_ = -kInfinity;  // s
  double listens_until_ = -kInfinity;                                                   // s
  std::vector<DifferencedVelocity> differenced_;  // of a controller's cycles
  VelocityCheck velocity_check_;
  SoftJointLimits soft_limits_;
  TorqueLimiter limiter_;
  SpringEnergy spring_energy_;
  StaleStates stale_;
  ReferenceState desired_, previous_;
  Vector position_, velocity_;  // of this cycle, or expected
  Midpoint middle_;             // of the time for which the command acts
  Vector parts_, fading_parts_, torque_, gravity_, gravity_before_;
  Vector cut_;  // what limits took of the torque of the last cycle
  Vector stop_torque_;
  Vector damping_torque_;  // of the last cycle
  Vector held_;            // by the drives, beside gravity
  Vector compensated_;     // of each joint's gravity, the fraction in the last cycle
  Weighing weighing_;
  Vector3 tip_place_{};  // of the tip's reference, in the last cycle
  const Vector zero_;
  bool is_enabled_ = false, is_stopping_ = false, is_overspeed_ = false;
  bool has_command_ = false, has_parts_ = false, has_desired_ = false;
  bool has_stop_torque_ = false, is_stop_command_sent_ = false;
  bool has_damped_ = false;
  bool has_been_ready_ = false;    // since enabling
  bool is_clock_invalid_ = false;  // since the last valid cycle
  bool is_handover_ = false;       // the last torque is another process's
  Refusal refusal_ = Refusal::none;
  bool has_other_velocity_ = false;
  double now_ = 0.0, last_update_ = 0.0, last_valid_ = 0.0;  // s, of a controller's cycles
  double last_period_ = kNaN;                                // s, between the last two states
  bool has_extrapolated_ = false;                            // since the last valid cycle
  bool is_load_new_ = false;                                 // since the last command
  double hold_duration_ =
    kNaN;  // s, that a state's command acts until an extrapolated one; NaN: there was none
  double elapsed_ = 0.0;      // s, since the last valid cycle
  double wrench_time_ = 0.0;  // s, when the added wrench came
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__ARM_RUNTIME_HPP_
