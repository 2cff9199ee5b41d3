// SPDX-License-Identifier: Apache-2.0
// Which states are believed: whether their stamps tell the time, whether joints can have come to
// them, and whether their velocities are those of their positions.
#ifndef ROBODYN_ROS__CORE__STATE_CHECK_HPP_
#define ROBODYN_ROS__CORE__STATE_CHECK_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

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
    // States that are just so far apart are in time, however their stamps were rounded.
    const bool has_jumped = !(0.0 <= elapsed && elapsed <= longest + kRounding);
    is_believed_ = !has_jumped && !is_stopped_;
    if (has_jumped) { begin_window(difference, now.steady, false); }
    if (now.is_simulated()) { return is_believed_ ? elapsed : steady; }
    if (is_believed_) { is_believed_ = keeps_pace(difference, now.steady, longest); }
    return steady;
  }

private:
  static constexpr double kTolerance = 0.1, kWindow = 1.0;  // s
  static constexpr double kRounding = 1e-6;                 // s, of a stamp

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

// A position may change by so many times its velocity limit, and by so much more, for noise [rad or
// m]; what is further is an outlier.
constexpr double kFastestWay = 2.0, kFarthestStep = 0.05;

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
  static bool is_reachable(
    const Vector & position, const Vector & from, double elapsed, const Settings & settings)
  {
    for (std::size_t i = 0; i < position.size(); ++i) {
      const double moved = position[i] - from[i];
      if (std::fabs(moved) <= kFarthestStep) { continue; }
      const double way = settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved;
      if (!(std::fabs(way) <=
            kFastestWay * settings.velocity_limits[i] * elapsed + kFarthestStep)) {
        return false;
      }
    }
    return true;
  }

  Vector doubted_;
  bool has_doubted_ = false;
};

// Holds each joint's velocity against its positions.
//
// A driver's velocity may be filtered and late. So its integral over a window of time is compared
// with every change of position over as long a window that lay up to kLatest, or a period, before:
// an integral outside all of them is no integral of that motion, whatever the filter. kNoise is for
// encoders and quick changes, kShare for a scale that does no harm, and half a period times the
// changes of the velocity for what it may have been between two states: slow ones say little of an
// arm that accelerates. Windows of several lengths see what is far off within milliseconds, and what is a
// little off where the arm is slow. Over gaps nothing is judged: an arm may swing between two
// states. Nor is what came within a window whose stamps say another time than their receipt, or a
// position that no joint can have come to since the last one: neither is about the velocity.
//
// Where one is wrong, all are replaced by the slopes of the positions until the next reset: a driver
// whose velocity was wrong once is not asked again, and an arm of which some joints alone are damped
// may be driven, as the mass matrix couples them.
class VelocityCheck
{
public:
  explicit VelocityCheck(std::size_t joints)
  : n_(joints),
    time_(kEntries),
    received_(kEntries),
    way_(kEntries * joints),
    integral_(kEntries * joints),
    unknown_(kEntries * joints),
    position_(joints),
    velocity_(joints),
    way_now_(joints),
    integral_now_(joints),
    unknown_now_(joints),
    least_(joints),
    most_(joints),
    slope_(joints),
    slope_before_(joints),
    doubts_(joints),
    is_out_(joints),
    is_wrong_(joints),
    ratio_(joints, kNaN)
  {
  }

  // Begin anew: nothing is known of any joint.
  void reset()
  {
    forget();
    is_any_wrong_ = is_missing_ = false;
    std::fill(is_wrong_.begin(), is_wrong_.end(), 0);
    std::fill(ratio_.begin(), ratio_.end(), kNaN);
  }

  // Forget how the arm came to where it is, not which velocities are wrong.
  void forget()
  {
    count_ = 0;
    is_ready_ = is_forgone_ = false;
  }

  // Forget that, and do without: of this state nothing can be said.
  void forgo()
  {
    forget();
    is_forgone_ = true;
  }

  // Whether what moves an arm may act on its velocities: its positions have told for a while where
  // it goes, or they cannot.
  bool is_ready() const { return is_ready_ || is_forgone_; }

  // How many times the velocity of a joint was that of its positions, where it was wrong; NaN: it
  // was right.
  const Vector & ratio() const { return ratio_; }

  // Look at a state of a time [s], change its velocities to what is believed of them, and return
  // which joint's is found wrong by it, the first of all; none: none is. States come once in a
  // period [s]. Where the times are no stamps, or jumped, those of receipt are taken, which may be
  // those of a burst.
  Fault look(
    const Vector & position, Vector & velocity, double time, bool is_stamped, const Now & now,
    double period, const Settings & settings)
  {
    // A simulation has a pace of its own.
    const double received = now.is_simulated() ? time : now.steady;
    const double elapsed = is_stamped ? time - stamp_ : received - received_now_;
    const double usual = std::isnan(period) ? 0.0 : period;
    stamp_ = time;
    received_now_ = received;
    is_forgone_ = false;
    const bool is_burst = !is_stamped && elapsed < kBurst * usual;
    const bool is_gap = elapsed > std::clamp(kLate * usual, kShortestGap, kLongestGap);
    // Such a number says nothing, and behind it a sum would be none.
    if (is_beyond_all(velocity)) { std::fill(velocity.begin(), velocity.end(), kNaN); }
    const bool was_missing = is_missing_;
    is_missing_ = !has_velocities(velocity);
    if (count_ > 0 && elapsed == 0.0) {  // the same state again
      replace(velocity);
      return {};
    }
    const bool is_next = count_ > 0 && 0.0 < elapsed && elapsed <= kLongest;
    if (!is_next || is_burst || has_jumped(position, elapsed, settings)) {
      begin(position, velocity);
      replace(velocity);
      return {};
    }
    const bool is_known = !is_gap && !is_missing_ && !was_missing;
    for (std::size_t i = 0; i < n_; ++i) {
      const double moved = position[i] - position_[i];
      const double way = settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved;
      way_now_[i] += way;
      // Over a gap the velocity says nothing of the way.
      integral_now_[i] += is_known ? 0.5 * elapsed * (velocity[i] + velocity_[i]) : way;
      unknown_now_[i] += is_known ? 0.5 * elapsed * std::fabs(velocity[i] - velocity_[i]) : 0.0;
    }
    position_ = position;
    velocity_ = velocity;
    now_ += elapsed;
    period_ = usual;
    Fault fault;
    if (now_ - time_[at(count_ - 1)] >= kSpacing) {
      fault = judge(usual);
      keep();
    }
    take_slopes();
    replace(velocity);
    return fault;
  }

  // How late the velocities are that the slopes replace [s].
  double lag() const
  {
    const bool is_replaced = is_any_wrong_ || is_missing_;
    return is_replaced && count_ > 0 ? 0.5 * std::max(slope_length(), period_) : 0.0;
  }

  // Let no velocity be far off the slope of the positions, which is nothing as long as it is not
  // known: until a verdict a velocity may be in degrees, reversed, or an outlier. As positions have
  // outliers, too, none grows by it, unless states are so slow that two slopes have but one state
  // in common: what an outlier adds to one it takes from the other.
  void bound(Vector & velocity) const
  {
    if (is_forgone_) { return; }
    const bool may_grow = is_ready_ && period_ >= kSlope;
    for (std::size_t i = 0; i < n_; ++i) {
      const double slope = is_ready_ ? slope_[i] : 0.0;
      const double off = kShare * std::fabs(slope) + kQuickly;
      double & v = velocity[i];  // NaN stays
      if (v > slope + off) { v = std::max(slope + off, std::min(v, 0.0)); }
      if (v < slope - off) { v = std::min(slope - off, std::max(v, 0.0)); }
      if (!may_grow) { continue; }
      const double way = lesser_slope(i);
      const double least = (1.0 - kShare) * std::fabs(way) - kQuickly;
      if (least > 0.0 && std::copysign(1.0, way) * v < least) { v = std::copysign(least, way); }
    }
  }

private:
  static constexpr std::size_t kEntries = 64, kWindows = 4, kLags = 9;
  static constexpr double kSpacing =
    0.0024;  // s, of entries: all of them span the longest window
  static constexpr double kWindow[kWindows] = {0.0125, 0.025, 0.05, 0.1};  // s
  static constexpr double kLatest = 0.035;                                 // s, of a velocity
  static constexpr double kNoise = 0.002, kShare = 0.2;                    // rad or m; of the way
  static constexpr int kDoubts = 2;        // entries in a row that make a verdict; slow ones, one
  static constexpr double kMoved = 0.001;  // rad or m, that are a way
  static constexpr double kFastest = 1e4;  // rad/s or m/s, that an arm may say
  // Of a period, and s at least and at most: over longer ones nothing is judged.
  static constexpr double kLate = 1.5, kShortestGap = 0.03, kLongestGap = 0.12;
  static constexpr double kLongest = 0.5;  // s, after which it is begun anew
  static constexpr double kBurst = 0.25;   // of a period, that no states are apart
  static constexpr double kSlope = 0.02,
                          kShortestSlope = 0.0045;  // s, that a slope is taken over
  static constexpr double kQuickly = 0.1;  // rad/s or m/s, that a velocity may change within it
  static constexpr double kPeriods = 2.0;  // in a window, at least
  static constexpr double kFarthest =
    4.0;  // times the velocity limit, that a joint may have moved
  static constexpr double kPace = 0.25,
                          kJitter = 0.002;  // of a window, and s, that clocks differ by

  static bool is_beyond_all(const Vector & velocity)
  {
    return std::any_of(
      velocity.begin(), velocity.end(), [](double x) { return std::fabs(x) > kFastest; });
  }

  // Whether a joint is further from where it was than it can have moved in a time [s].
  bool has_jumped(const Vector & position, double elapsed, const Settings & settings) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      const double moved = position[i] - position_[i];
      const double way = std::fabs(settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved);
      if (way > kFarthest * settings.velocity_limits[i] * elapsed + kNoise) { return true; }
    }
    return false;
  }

  // Return where the k-th of the entries is, oldest first.
  std::size_t at(std::size_t k) const { return (first_ + k) % kEntries; }

  void begin(const Vector & position, const Vector & velocity)
  {
    forget();
    first_ = 0;
    now_ = 0.0;
    position_ = position;
    velocity_ = velocity;
    std::fill(way_now_.begin(), way_now_.end(), 0.0);
    std::fill(integral_now_.begin(), integral_now_.end(), 0.0);
    std::fill(unknown_now_.begin(), unknown_now_.end(), 0.0);
    std::fill(slope_.begin(), slope_.end(), kNaN);
    std::fill(slope_before_.begin(), slope_before_.end(), kNaN);
    std::fill(doubts_.begin(), doubts_.end(), 0);
    keep();
  }

  void keep()
  {
    if (count_ == kEntries) {
      first_ = at(1);
      --count_;
    }
    const std::size_t k = at(count_++);
    time_[k] = now_;
    received_[k] = received_now_;
    std::copy(way_now_.begin(), way_now_.end(), way_.begin() + row(k));
    std::copy(integral_now_.begin(), integral_now_.end(), integral_.begin() + row(k));
    std::copy(unknown_now_.begin(), unknown_now_.end(), unknown_.begin() + row(k));
  }

  std::ptrdiff_t row(std::size_t k) const { return static_cast<std::ptrdiff_t>(k * n_); }

  // A time between two entries: that of the first, and how far it is on to the second.
  struct Place
  {
    std::size_t one, next;
    double share;
  };

  // Return the place of a time [s] that is not before the first entry.
  Place place(double time) const
  {
    std::size_t k = count_ - 1;
    while (k > 0 && time_[at(k)] > time) { --k; }
    const std::size_t one = at(k);
    if (k + 1 == count_) {
      const double since = now_ - time_[one];
      return {one, kEntries, since > 0.0 ? (time - time_[one]) / since : 0.0};
    }
    const std::size_t next = at(k + 1);
    return {one, next, (time - time_[one]) / (time_[next] - time_[one])};
  }

  // Return what a joint has of the entries, or of now, at a place.
  double value(const Vector & of, const Vector & now, const Place & where, std::size_t i) const
  {
    const double one = of[where.one * n_ + i];
    const double next = where.next == kEntries ? now[i] : of[where.next * n_ + i];
    return one + where.share * (next - one);
  }

  // Compare the integrals of the velocities that end now with the ways of before.
  Fault judge(double period)
  {
    std::fill(is_out_.begin(), is_out_.end(), 0);
    const double oldest = time_[at(0)];
    double judged = 0.0;
    for (const double window : kWindow) {
      const double length = std::max(window, kPeriods * period);
      if (length == judged) { continue; }
      if (now_ - length - period < oldest) { break; }  // the last position may be an outlier
      judged = length;
      if (!is_paced(length)) { continue; }
      compare(length, std::min(std::max(kLatest, period), now_ - length - oldest));
    }
    const int needed = period > kDoubts * kSpacing ? 1 : kDoubts;
    Fault fault;
    for (std::size_t i = 0; i < n_; ++i) {
      doubts_[i] = is_out_[i] != 0 ? std::min(doubts_[i] + 1, kDoubts) : 0;
      if (is_wrong_[i] == 0 && doubts_[i] >= needed) {
        is_wrong_[i] = 1;
        if (!is_any_wrong_) {
          fault = {Cause::wrong_velocity, static_cast<int>(i), ratio_[i], 1.0};
        }
        is_any_wrong_ = true;
      } else if (is_wrong_[i] == 0) {
        ratio_[i] = kNaN;
      }
    }
    return fault;
  }

  // Whether the last time [s] by the states' times is as long by their receipt.
  bool is_paced(double length) const
  {
    const Place began = place(now_ - length);
    const double one = received_[began.one];
    const double next = began.next == kEntries ? received_now_ : received_[began.next];
    const double received = received_now_ - (one + began.share * (next - one));
    return std::fabs(received - length) <= kPace * length + kJitter;
  }

  // Mark whose integral over the last time [s] lies outside the ways over as long a time that ended
  // up to a lag [s] before, and note how many times the way it is.
  void compare(double length, double latest)
  {
    const Place began = place(now_ - length);
    for (std::size_t k = 0; k < kLags; ++k) {
      const double lag = latest * static_cast<double>(k) / (kLags - 1);
      const Place from = place(now_ - length - lag), to = place(now_ - lag);
      for (std::size_t i = 0; i < n_; ++i) {
        const double way = value(way_, way_now_, to, i) - value(way_, way_now_, from, i);
        least_[i] = k == 0 ? way : std::min(least_[i], way);
        most_[i] = k == 0 ? way : std::max(most_[i], way);
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const double integral = integral_now_[i] - value(integral_, integral_now_, began, i);
      const double way = way_now_[i] - value(way_, way_now_, began, i);
      const double unknown = unknown_now_[i] - value(unknown_, unknown_now_, began, i) + kNoise;
      const double least = least_[i] - kShare * std::fabs(least_[i]) - unknown;
      const double most = most_[i] + kShare * std::fabs(most_[i]) + unknown;
      const bool is_out = !(least <= integral && integral <= most);
      is_out_[i] |= is_out;
      // Of the longest window over which the joint went somewhere.
      const bool has_moved = std::fabs(way) > kMoved;
      if (is_out || (is_wrong_[i] != 0 && has_moved)) {
        ratio_[i] = has_moved ? integral / way : kInfinity;
      }
    }
  }

  bool has_slope() const { return now_ - time_[at(0)] >= kShortestSlope; }
  double slope_length() const { return std::min(now_ - time_[at(0)], kSlope); }

  // Take the slopes of the positions up to now; NaN: there are none yet.
  void take_slopes()
  {
    std::swap(slope_, slope_before_);
    is_ready_ = has_slope();
    const double length = slope_length();
    const Place began = place(now_ - length);
    for (std::size_t i = 0; i < n_; ++i) {
      const double way = way_now_[i] - value(way_, way_now_, began, i);
      slope_[i] = is_ready_ ? way / length : kNaN;
    }
  }

  // Replace the velocities by the slopes of the positions, where one is wrong or missing.
  void replace(Vector & velocity) const
  {
    if (!is_any_wrong_ && !is_missing_) { return; }
    for (std::size_t i = 0; i < n_; ++i) { velocity[i] = lesser_slope(i); }
  }

  // Return the lesser of the last two slopes of a joint, nothing where they differ in sign: a single
  // outlier of a position makes none. NaN: there are none yet.
  double lesser_slope(std::size_t i) const
  {
    const double one = slope_[i], other = slope_before_[i];
    return std::isnan(other)                 ? one
         : one * other <= 0.0                ? 0.0
         : std::fabs(one) < std::fabs(other) ? one
                                             : other;
  }

  const std::size_t n_;
  // The entries, a ring: their times and receipt [s], and of each joint since begin the way, the
  // integral, and how far that may be off.
  Vector time_, received_, way_, integral_, unknown_;
  std::size_t first_ = 0, count_ = 0;
  double now_ = 0.0;  // s, of the last state, from the first of the entries on
  double stamp_ = 0.0, received_now_ = 0.0;                            // s, of the last state
  double period_ = 0.0;                                                // s, mean between states
  Vector position_, velocity_, way_now_, integral_now_, unknown_now_;  // of the last state
  Vector least_, most_;
  Vector slope_, slope_before_;  // of the positions up to the last state, and the one before
  std::vector<int> doubts_;      // entries in a row that were out
  std::vector<unsigned char> is_out_, is_wrong_;
  Vector ratio_;
  bool is_ready_ = false, is_forgone_ = false, is_any_wrong_ = false;
  bool is_missing_ = false;  // whether the last state had not all velocities
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
