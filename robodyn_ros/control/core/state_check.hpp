// SPDX-License-Identifier: Apache-2.0
// Which states are believed: whether their stamps tell the time, and whether joints can have come
// to them.
#ifndef ROBODYN_ROS__CORE__STATE_CHECK_HPP_
#define ROBODYN_ROS__CORE__STATE_CHECK_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "settings.hpp"

namespace robodyn
{

constexpr double kOverspeed = 1.5;  // of a velocity limit: no reference of ours drives so fast

// Steady time, and simulated time where there is such: it may stand still or run at any pace.
struct Now
{
  double steady;            // s
  double simulated = kNaN;  // s; NaN: time is not simulated

  bool is_simulated() const { return !std::isnan(simulated); }

  // The time [s] since something came at a steady time, with a stamp, NaN: with none. What is
  // stamped by another clock than the simulation's, or by one that was set back, is not of it.
  double since(double received, double stamp) const
  {
    constexpr double tolerance = 0.05;  // s, by which a stamp may be ahead of simulated time
    const double elapsed = steady - received, moved = simulated - stamp;
    return moved > -tolerance ? std::min(elapsed, std::max(moved, 0.0)) : elapsed;
  }
};

// Says from cycle to cycle how much time passed, and whether the stamps tell it.
//
// Stamps are believed while they neither jump, nor stand still, nor run faster or slower than the
// steady clock by more than kTolerance within kWindow. Behind it they may be for as long as states
// may be late. Simulated time may run at any pace, and stand still: of it only jumps are noticed,
// and stamps that stand still while it does not.
//
// Messages come late by some milliseconds, never early. So the clocks' difference is compared with
// that of the least delayed message of the window before, and, where it falls behind, of this one.
// In the first window nothing is known: its first messages may have waited, and the next ones seem
// to run ahead of them.
class StampClock
{
public:
  // Begin anew with the next cycle.
  void reset() { *this = StampClock(); }

  bool is_stopped() const { return is_stopped_; }
  bool is_believed() const { return is_believed_; }

  // Whether the stamps did not run wrong repeatedly of late, nor stand still.
  bool may_be_followed(double now) const { return !is_stopped_ && now >= distrusted_until_; }

  // Return what passed since the last cycle [s]: by the stamps where they are believed and time is
  // simulated, else by the steady clock. Stamps that are further apart than the longest time [s]
  // jumped, and those that do not move for so long stand still; messages may be so late.
  double advance(double stamp, const Now & now, double longest)
  {
    const double difference = stamp - now.steady;
    if (!has_begun_) {
      has_begun_ = true;
      stamp_ = stamp;
      steady_ = moved_ = now.steady;
      begin_window(difference, now.steady, false);
      return 0.0;
    }
    const double elapsed = stamp - stamp_, steady = now.steady - steady_;
    stamp_ = stamp;
    steady_ = now.steady;
    if (elapsed != 0.0) { moved_ = now.steady; }
    is_stopped_ = now.since(moved_, stamp) > longest;
    const bool has_jumped = !(0.0 <= elapsed && elapsed <= longest);
    is_believed_ = !has_jumped && !is_stopped_;
    if (has_jumped) { begin_window(difference, now.steady, false); }
    if (now.is_simulated()) { return is_believed_ ? elapsed : steady; }
    if (is_believed_) { is_believed_ = keeps_pace(difference, now.steady, longest); }
    return steady;
  }

private:
  static constexpr double kTolerance = 0.1, kWindow = 1.0;  // s

  // Whether stamp minus steady time is where it was; follow where it goes.
  bool keeps_pace(double difference, double now, double longest)
  {
    const double lateness = std::max(kTolerance, longest);
    const bool is_behind =
      std::max(least_delayed_, least_delayed_before_) - difference > lateness;
    // Not of this window: a clock that runs fast is the least delayed one in every cycle.
    const bool is_ahead = is_known_ ? difference - least_delayed_before_ > kTolerance
                                    : difference - least_delayed_ > lateness;
    if (is_behind || is_ahead) {
      if (now - disbelieved_ < kWindow) { distrusted_until_ = now + kWindow; }
      disbelieved_ = now;
    }
    if (is_ahead) {
      begin_window(difference, now, true);
      return false;
    }
    least_delayed_ = std::max(least_delayed_, difference);
    if (now - window_began_ > kWindow) {
      least_delayed_before_ = least_delayed_;
      least_delayed_ = difference;
      window_began_ = now;
      is_known_ = true;
    }
    return !is_behind;
  }

  void begin_window(double difference, double now, bool is_known)
  {
    least_delayed_ = least_delayed_before_ = difference;
    window_began_ = now;
    is_known_ = is_known;
  }

  bool has_begun_ = false, is_stopped_ = false, is_believed_ = true;
  bool is_known_ = false;  // whether there was a window before
  double stamp_ = 0.0, steady_ = -kInfinity, moved_ = -kInfinity, window_began_ = -kInfinity;
  double least_delayed_ = -kInfinity;         // stamp minus steady time, in this window
  double least_delayed_before_ = -kInfinity;  // and in the one before
  double disbelieved_ = -kInfinity, distrusted_until_ = -kInfinity;
};

// Notices that damping feeds an arm: its kinetic energy has grown, and the damping did work.
//
// Both are needed. Somebody who pushes makes the energy grow, too, but against the damping. What
// makes damping feed an arm is a velocity that is not the joint's: of the wrong sign, or too old.
// Its work is known nevertheless, from the positions.
class EnergyGuard
{
public:
  // Begin anew: what the arm gained before is not of the damping.
  void forget() { *this = EnergyGuard(); }

  double least() const { return least_; }  // kinetic energy [J]

  // Whether it does, at a kinetic energy [J], after the work [J] of the damping since the last
  // state.
  bool is_fed(double energy, double work)
  {
    constexpr double margin = 1.5;  // growth of the energy that damping does not explain
    constexpr double rest = 0.01;   // J; too little for damping to be given up for it
    work_ += work;
    if (energy < least_) {
      least_ = energy;
      work_ = 0.0;
    }
    return energy > margin * least_ && energy > rest && work_ > 0.0;
  }

private:
  double least_ = kInfinity, work_ = 0.0;
};

// What a position is, beside the last one that was believed.
enum class Verdict { plausible, jump, outlier };

// Holds each position against the last one that was believed. One that the joints cannot have come
// to is an outlier, and not believed. A second one that agrees with it is where the arm is, and
// where it was before is no longer known.
class Plausibility
{
public:
  explicit Plausibility(std::size_t joints) : doubted_(joints) {}

  void reset() { has_doubted_ = false; }

  // The verdict on a position, some time [s] after the last one.
  Verdict verdict(
    const Vector & position, const Vector & last, double elapsed, const Settings & settings)
  {
    if (is_reachable(position, last, elapsed, settings)) {
      has_doubted_ = false;
      return Verdict::plausible;
    }
    const bool agrees = has_doubted_ && is_reachable(position, doubted_, elapsed, settings);
    doubted_ = position;
    has_doubted_ = !agrees;
    return agrees ? Verdict::jump : Verdict::outlier;
  }

private:
  static constexpr double kSpeed = 2.0;  // times its velocity limit a position may change
  static constexpr double kStep = 0.05;  // and by so much more, for noise [rad or m]

  static bool is_reachable(
    const Vector & position, const Vector & from, double elapsed, const Settings & settings)
  {
    for (std::size_t i = 0; i < position.size(); ++i) {
      const double moved = position[i] - from[i];
      if (std::fabs(moved) <= kStep) { continue; }
      const double way = settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved;
      if (!(std::fabs(way) <= kSpeed * settings.velocity_limits[i] * elapsed + kStep)) {
        return false;
      }
    }
    return true;
  }

  Vector doubted_;
  bool has_doubted_ = false;
};

// Return which joint moves faster than it may; none: no joint does. A velocity that is not known
// (NaN) is not too fast.
inline Fault overspeed(const Vector & velocity, const Settings & settings)
{
  for (std::size_t i = 0; i < velocity.size(); ++i) {
    const double limit = settings.velocity_limits[i];
    if (std::fabs(velocity[i]) > kOverspeed * limit) {
      return {Cause::overspeed, static_cast<int>(i), velocity[i], limit};
    }
  }
  return {};
}

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__STATE_CHECK_HPP_
