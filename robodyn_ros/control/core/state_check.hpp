// SPDX-License-Identifier: Apache-2.0
// Checks of the states: whether their stamps tell the time, whether the joints can have reached
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

constexpr double kOverspeed = 1.5;  // of a velocity limit: no reference is planned as fast

// Steady time, and simulated time if there is one: that may stand still or run at any pace.
struct Now
{
  double steady;            // s
  double simulated = kNaN;  // s; NaN: time is not simulated

  bool is_simulated() const { return !std::isnan(simulated); }
  double of_motion() const { return is_simulated() ? simulated : steady; }

  // The time [s] since a message came at a steady time, with a stamp (NaN: without). A stamp
  // ahead of simulated time is from another clock, or from before the clock was set back: then
  // steady time counts alone.
  double since(double received, double stamp) const
  {
    constexpr double tolerance = 0.05;  // s, by which a stamp may be ahead of simulated time
    const double elapsed = steady - received, moved = simulated - stamp;
    return moved > -tolerance ? std::min(elapsed, std::max(moved, 0.0)) : elapsed;
  }
};

// Measures the time between cycles, and checks whether the stamps tell it.
//
// Stamps are valid while they neither jump, nor stand still, nor run faster or slower than the
// steady clock by more than kTolerance within kWindow. They may lag behind it for as long as
// states may be late. Simulated time may run at any pace and stand still: only its jumps are
// detected, and stamps that stand still while it does not.
//
// Messages come late by some milliseconds, never early. So the clocks' difference is compared
// with that of the least delayed message of the previous window, and, if it falls behind, of
// this one. The first window has no previous one: its first messages may have waited in a queue,
// so that the next ones seem to run ahead of them.
class StampClock
{
public:
  // Start again with the next cycle.
  void reset() { *this = StampClock(); }

  bool is_stopped() const { return is_stopped_; }
  bool is_valid() const { return is_valid_; }

  // Whether the stamps move, and were not wrong twice within the last kWindow.
  bool is_reliable(double now) const { return !is_stopped_ && now >= unreliable_until_; }

  // Return the time since the last cycle [s]: by the stamps where they are valid and time is
  // simulated, else by the steady clock. Stamps further apart than the longest time [s], by
  // which messages may be late, have jumped; stamps that do not change for as long stand still.
  double advance(double stamp, const Now & now, double longest)
  {
    const double difference = stamp - now.steady;
    if (!has_begun_) {
      has_begun_ = true;
      stamp_ = stamp;
      steady_ = last_change_ = now.steady;
      begin_window(difference, now.steady, false);
      return 0.0;
    }
    const double elapsed = stamp - stamp_, steady = now.steady - steady_;
    stamp_ = stamp;
    steady_ = now.steady;
    if (elapsed != 0.0) { last_change_ = now.steady; }
    is_stopped_ = now.since(last_change_, stamp) > longest;
    // With rounding: states exactly the longest time apart are in time.
    const bool has_jumped = !(0.0 <= elapsed && elapsed <= longest + kRounding);
    is_valid_ = !has_jumped && !is_stopped_;
    if (has_jumped) { begin_window(difference, now.steady, false); }
    if (now.is_simulated()) { return is_valid_ ? elapsed : steady; }
    if (is_valid_) { is_valid_ = keeps_pace(difference, now.steady, longest); }
    return steady;
  }

private:
  static constexpr double kTolerance = 0.1, kWindow = 1.0;  // s
  static constexpr double kRounding = 1e-6;                 // s, of a stamp

  // Whether stamp minus steady time is unchanged within the tolerance. Updates the windows.
  bool keeps_pace(double difference, double now, double longest)
  {
    const double lateness = std::max(kTolerance, longest);
    const bool is_behind =
      std::max(least_delayed_, least_delayed_before_) - difference > lateness;
    // Not against this window: with a clock that runs fast each message is its least delayed
    // one.
    const bool is_ahead = is_known_ ? difference - least_delayed_before_ > kTolerance
                                    : difference - least_delayed_ > lateness;
    // A single error may be one late message; two within a window are the clock's.
    if (is_behind || is_ahead) {
      if (now - last_invalid_ < kWindow) { unreliable_until_ = now + kWindow; }
      last_invalid_ = now;
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

  bool has_begun_ = false, is_stopped_ = false, is_valid_ = true;
  bool is_known_ = false;  // whether there was a window before
  double stamp_ = 0.0, steady_ = -kInfinity, last_change_ = -kInfinity,
         window_began_ = -kInfinity;
  double least_delayed_ = -kInfinity;         // stamp minus steady time, in this window
  double least_delayed_before_ = -kInfinity;  // and in the one before
  double last_invalid_ = -kInfinity, unreliable_until_ = -kInfinity;
};

// Detects damping that adds energy to an arm: kinetic energy grew, and the damping did positive
// work.
//
// Both conditions are needed. An external push makes the energy grow, too, but against the
// damping. Damping adds energy where a velocity is not the joint's: of the wrong sign, or too
// old. The work is computed from positions, so that it is right even then.
class DampingMonitor
{
public:
  // Start again: energy gained before is not due to the damping.
  void reset() { *this = DampingMonitor(); }

  double least() const { return least_; }  // kinetic energy [J]

  // Whether damping adds energy, at a kinetic energy [J], after the damping's work [J] since the
  // last state.
  bool adds_energy(double energy, double work)
  {
    constexpr double margin = 1.5;  // ratio to the least energy; smaller growth is noise
    constexpr double rest = 0.01;   // J; a slower arm may be damped anyway
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

// A position may change at this multiple of its velocity limit, plus this step for noise [rad or
// m]; further away it is an outlier.
constexpr double kPlausibleSpeedRatio = 2.0, kPlausibleStep = 0.05;

// A position compared with the last accepted one.
enum class Verdict { plausible, jump, outlier };

// Compares each position with the last accepted one. A position that the joints cannot have
// reached is an outlier, and refused. If the next position agrees with it, the arm is there: the
// verdict is a jump, and the position is accepted.
class Plausibility
{
public:
  explicit Plausibility(std::size_t joints) : candidate_(joints) {}

  void reset() { has_candidate_ = false; }

  // The verdict on a position, a time [s] after the last accepted one.
  Verdict verdict(
    const Vector & position, const Vector & last, double elapsed, const Settings & settings)
  {
    if (is_reachable(position, last, elapsed, settings)) {
      has_candidate_ = false;
      return Verdict::plausible;
    }
    const bool agrees = has_candidate_ && is_reachable(position, candidate_, elapsed, settings);
    candidate_ = position;
    has_candidate_ = !agrees;
    return agrees ? Verdict::jump : Verdict::outlier;
  }

private:
  static bool is_reachable(
    const Vector & position, const Vector & from, double elapsed, const Settings & settings)
  {
    for (std::size_t i = 0; i < position.size(); ++i) {
      const double moved = position[i] - from[i];
      if (std::fabs(moved) <= kPlausibleStep) { continue; }
      const double displacement = settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved;
      if (!(std::fabs(displacement) <=
            kPlausibleSpeedRatio * settings.velocity_limits[i] * elapsed + kPlausibleStep)) {
        return false;
      }
    }
    return true;
  }

  Vector candidate_;
  bool has_candidate_ = false;
};

// Detects sources of states that contradict each other: states that alternate between two places,
// each of which no joint can reach from the other.
//
// A place is where a track of states is that follow one another. A state that continues neither
// track begins another one: an outlier, a jump, a restart. A contradiction needs kReturns returns, to
// both tracks, each within kLongest of the track's last state. So outliers that come now and then are
// no contradictions, nor is a source that is late: its states lie on the way of the other.
class Agreement
{
public:
  explicit Agreement(std::size_t joints) : n_(joints), tracks_{Track(joints), Track(joints)} {}

  // Take a state of a time [s], and return whether sources contradict each other.
  bool take(const Vector & position, double now, const Settings & settings)
  {
    if (now < last_return_) { last_return_ = -kInfinity; }  // simulated time was set back
    if (now < last_leave_) { last_leave_ = -kInfinity; }
    if (now - last_return_ > kWindow) { tracks_[0].returns = tracks_[1].returns = 0; }
    has_left_ = false;
    std::size_t to = nearest(position, now, settings);
    if (to == kNone) {
      to = tracks_[current_].count > 0 ? 1 - current_ : current_;
      tracks_[to].begin();
      if (to == followed_) { followed_ = kNone; }
      has_left_ = tracks_[1 - to].count > 0;
      if (has_left_) { last_leave_ = now; }
    } else if (to != current_) {
      has_left_ = true;
      // After longer it may be anywhere: a sensor that fails now and then is no second source.
      const bool is_known = now - tracks_[to].time <= kLongest;
      if (is_known && !has_passed(tracks_[current_], position, now, settings)) {
        ++tracks_[to].returns;
        last_return_ = now;
      }
    }
    run_ = to == current_ && !has_left_ ? run_ + 1 : 1;
    current_ = to;
    tracks_[to].add(position, now);
    const int one = tracks_[0].returns, other = tracks_[1].returns;
    if (one > 0 && other > 0 && one + other >= kReturns) { is_contradicted_ = true; }
    // Over once only one source is left; one that was not followed before must be so for longer.
    const Track & silent = tracks_[1 - current_];
    const bool is_over =
      current_ == followed_ ? is_silent(silent, now) : now - silent.time > kWindow;
    if (is_contradicted_ && is_over) {
      is_contradicted_ = false;
      tracks_[0].returns = tracks_[1].returns = 0;
    }
    return is_contradicted_;
  }

  // Record that the last state was commanded from.
  void follow() { followed_ = current_; }
  // Follow whatever comes from now on; what was seen within kWindow still counts.
  void begin() { followed_ = kNone; }

  bool is_contradicted() const { return is_contradicted_; }
  bool has_left() const { return has_left_; }  // the last state: the track of the one before
  // Whether the last state may be the first that is commanded from. One without velocities, as what
  // displays send, needs another that agrees.
  bool may_begin(double now, bool has_velocities)
  {
    if (is_contradicted_ && now - last_return_ > kWindow) { is_contradicted_ = false; }
    return !is_contradicted_ &&
           (run_ >= kAgreeing || (has_velocities && now - last_leave_ > kWindow));
  }

private:
  static constexpr std::size_t kNone = 2, kEntries = 32;
  static constexpr int kReturns = 5, kAgreeing = 2;
  static constexpr double kWindow = 2.5;    // s, without returns, after which they are forgotten
  static constexpr double kStep = 0.01;     // rad or m, of noise
  static constexpr double kLongest = 0.25;  // s, for which a joint may move unseen
  static constexpr double kSpacing = 0.01;  // s, between entries of a track's way
  // A source is silent after this number of its intervals, at least for a time [s].
  static constexpr double kSilentIntervals = 2.5, kShortestSilence = 0.1;
  static constexpr double kForgotten = 0.9;  // of the longest interval, with each state

  struct Track
  {
    explicit Track(std::size_t joints) : last(joints), way(kEntries * joints) {}

    void begin()
    {
      count = first = 0;
      returns = 0;
      interval = 0.0;
    }

    void add(const Vector & position, double now)
    {
      if (count > 0) { interval = std::max(now - time, kForgotten * interval); }
      last = position;
      time = now;
      if (count > 0 && now - stored < kSpacing) { return; }
      stored = now;
      const std::size_t k = (first + count) % kEntries;
      std::copy(
        position.begin(), position.end(),
        way.begin() + static_cast<std::ptrdiff_t>(k * position.size()));
      if (count < kEntries) {
        ++count;
      } else {
        first = (first + 1) % kEntries;
      }
    }

    Vector last, way;
    std::size_t count = 0, first = 0;
    double time = -kInfinity, stored = -kInfinity;
    double interval = 0.0;  // between its states, at the most of late [s]
    int returns = 0;
  };

  // Whether a source has ended, as far as its rate tells.
  static bool is_silent(const Track & track, double now)
  {
    const double silence = std::max(kSilentIntervals * track.interval, kShortestSilence);
    return now - track.time > std::min(silence, kWindow);
  }

  // The track that a state continues, the nearer one of two; kNone: neither.
  std::size_t nearest(const Vector & position, double now, const Settings & settings) const
  {
    std::size_t found = kNone;
    double least = kInfinity;
    for (const std::size_t k : {current_, 1 - current_}) {
      const Track & track = tracks_[k];
      if (track.count == 0) { continue; }
      // A track that has ended, as that of a bag which begins again, is where it was.
      const bool is_known = k != current_ && track.interval > 0.0;
      const double longest =
        is_known ? std::min(kLongest, kSilentIntervals * track.interval) : kLongest;
      const double elapsed = std::clamp(now - track.time, 0.0, longest);
      double most = 0.0;
      for (std::size_t i = 0; i < n_ && most <= 1.0; ++i) {
        const double way = std::fabs(difference(position[i], track.last[i], i, settings));
        // Without a limit and in no time the product is not a number.
        const double reach = kPlausibleSpeedRatio * settings.velocity_limits[i] * elapsed + kStep;
        if (!(way <= kStep || way <= reach)) {
          most = kInfinity;
        } else {
          most = std::max(most, way);
        }
      }
      if (most == kInfinity || !(most < least)) { continue; }
      found = k;
      least = most;
      if (k == current_ && most <= kStep) { break; }
    }
    return found;
  }

  // Whether a state lies on the way of a track: a late one.
  bool has_passed(
    const Track & track, const Vector & position, double now, const Settings & settings) const
  {
    if (now - track.time > kLongest) { return false; }
    for (std::size_t k = 0; k < track.count; ++k) {
      const double * one = entry(track, k);
      const double * next = k + 1 < track.count ? entry(track, k + 1) : track.last.data();
      bool is_between = true;
      for (std::size_t i = 0; i < n_ && is_between; ++i) {
        const double way = difference(next[i], one[i], i, settings);
        const double here = difference(position[i], one[i], i, settings);
        is_between = std::min(way, 0.0) - kStep <= here && here <= std::max(way, 0.0) + kStep;
      }
      if (is_between) { return true; }
    }
    return false;
  }

  const double * entry(const Track & track, std::size_t k) const
  {
    return &track.way[(track.first + k) % kEntries * n_];
  }

  static double difference(double to, double from, std::size_t i, const Settings & settings)
  {
    return settings.is_continuous[i] != 0.0 ? wrapped(to - from) : to - from;
  }

  std::size_t n_;
  Track tracks_[2];
  std::size_t current_ = 0, followed_ = kNone;
  int run_ = 0;
  bool has_left_ = false, is_contradicted_ = false;
  double last_return_ = -kInfinity, last_leave_ = -kInfinity;
};

// The velocity of one joint whose driver sends none: the filtered difference of its positions.
//
// It is unknown until samples of about two of the filter's time constants exist, again after a gap
// longer than the timeout, and where the position changed while the stamp did not.
class DifferencedVelocity
{
public:
  // Low-pass of differences [s]: five samples at 1 kHz, a lag of 2 degrees at 1 Hz.
  static constexpr double kTimeConstant = 0.005;

  struct Rules
  {
    double timeout;         // s
    double velocity_limit;  // rad/s or m/s; a position much further away gives no velocity
    bool is_continuous;     // the position may jump by whole turns
  };

  // Take a sample that has a velocity.
  void take(double position, double velocity, double time, bool is_stamped)
  {
    base_ = last_ = position;
    based_ = time_ = time;
    is_stamped_ = is_stamped;
    total_ = velocity;
    weight_ = 1.0;
    is_in_use_ = false;
  }

  // Take a sample without one at a time [s], and return its velocity; NaN: not known yet. A sample
  // of a burst came with others that were held up: its time is not that of its measurement.
  double difference(
    double position, double time, bool is_stamped, bool is_burst, const Rules & rules)
  {
    const auto way = [&rules](double from, double to) {
      return rules.is_continuous ? wrapped(to - from) : to - from;
    };
    const double since = time - time_, elapsed = time - based_, moved = way(base_, position);
    const bool is_repeated = since == 0.0 && way(last_, position) != 0.0;
    const bool is_comparable =
      is_stamped_ == is_stamped && 0.0 <= since && since <= rules.timeout && !is_repeated;
    // Without a limit and in no time the product is not a number.
    const double farthest = kPlausibleSpeedRatio * rules.velocity_limit * elapsed;
    const bool is_possible = std::fabs(moved) <= farthest + kPlausibleStep;
    const bool is_due = is_comparable && elapsed >= kShortestInterval && is_possible && !is_burst;
    if (is_due) {
      const double gain = -std::expm1(-elapsed / kTimeConstant);
      total_ += gain * (moved / elapsed - total_);
      weight_ += gain * (1.0 - weight_);
      lag_ = elapsed * (1.0 / gain - 0.5);
    } else if (!is_comparable) {
      total_ = weight_ = 0.0;
    }
    if (is_due || is_burst || !is_comparable) {
      base_ = position;
      based_ = time;
    }
    last_ = position;
    time_ = time;
    is_stamped_ = is_stamped;
    is_in_use_ = weight_ >= kKnown;
    return is_in_use_ ? total_ / weight_ : kNaN;
  }

  // Since the last sample of the same kind that is not older than the timeout [s]; infinite: none.
  double since(double time, bool is_stamped, double timeout) const
  {
    const double found = time - time_;
    return is_stamped_ == is_stamped && 0.0 <= found && found <= timeout ? found : kInfinity;
  }

  // How much later than the position the velocity is [s]: half an interval of the difference, and
  // the filter's delay. 0: the velocity is not of this.
  double lag() const { return is_in_use_ ? lag_ : 0.0; }

private:
  static constexpr double kShortestInterval = 0.0005;  // s, over which positions give a velocity
  static constexpr double kKnown = 0.8;  // of the filter's weight; with less nothing is known

  double base_ = kNaN, based_ = -kInfinity;  // what the next difference is from
  double last_ = kNaN, time_ = -kInfinity;   // the last sample
  double total_ = 0.0, weight_ = 0.0;        // the filter's sum and its weight
  double lag_ = 0.0;
  bool is_stamped_ = false, is_in_use_ = false;
};

// Checks each joint's velocity against its positions.
//
// A driver's velocity may be filtered and late. So its integral over a time window is compared
// with the displacements over windows of the same length that end up to kMaxLag, or one period,
// earlier: an integral outside the range of all of them is not the integral of that motion,
// whatever the filter. The tolerances are kNoise for encoders and quick changes, kScaleTolerance
// for a scale error that does no harm, and half a period times the change of velocity for its
// unknown course between two states: infrequent states say little about an arm that accelerates.
// Several window lengths: short ones detect a large error within milliseconds, long ones a small
// error of a slow arm. Nothing is compared over gaps, as an arm may oscillate between two
// states; nor over a window whose stamps and receipts differ in length; nor across a position
// that no joint can have reached since the last one. None of these is about the velocity.
//
// Where one velocity is wrong, all are replaced by the slopes of the positions until the next
// reset: a driver that was wrong once is not trusted again, and damping only some joints could
// accelerate others, which the mass matrix couples to them.
class VelocityCheck
{
public:
  explicit VelocityCheck(std::size_t joints)
  : n_(joints),
    time_(kEntries),
    received_(kEntries),
    displacement_(kEntries * joints),
    integral_(kEntries * joints),
    uncertainty_(kEntries * joints),
    position_(joints),
    velocity_(joints),
    displacement_now_(joints),
    integral_now_(joints),
    uncertainty_now_(joints),
    least_(joints),
    most_(joints),
    slope_(joints),
    slope_before_(joints),
    last_displacement_(joints),
    last_moving_(joints, kNaN),
    last_moving_time_(joints),
    violations_(joints),
    zeros_(joints),
    is_outside_(joints),
    is_wrong_(joints),
    ratio_(joints, kNaN)
  {
  }

  // Start again: nothing is known of any joint.
  void reset()
  {
    restart_history();
    is_any_wrong_ = is_missing_ = false;
    std::fill(is_wrong_.begin(), is_wrong_.end(), 0);
    std::fill(ratio_.begin(), ratio_.end(), kNaN);
  }

  // Discard the history of the states, but not which velocities are wrong.
  void restart_history()
  {
    count_ = 0;
    is_ready_ = is_suspended_ = false;
  }

  // Discard the history, and skip this state, which cannot be checked.
  void suspend()
  {
    restart_history();
    is_suspended_ = true;
  }

  // Whether a control law that moves the arm may use its velocities: the history is long enough
  // for a slope of the positions, or states cannot be checked.
  bool is_ready() const { return is_ready_ || is_suspended_; }

  // Ratio of a joint's velocity to that of its positions, where it was wrong; NaN: it was right.
  const Vector & ratio() const { return ratio_; }

  // Check a state of a time [s], and replace its velocities where one is wrong or missing.
  // Return a fault with the first state that shows a wrong velocity, with the first such joint;
  // else none. States come once in a period [s]. Where the times are no stamps, or jumped, the
  // times of receipt are taken, which may be those of a burst.
  Fault check(
    const Vector & position, Vector & velocity, double time, bool is_stamped, const Now & now,
    double period, const Settings & settings)
  {
    // A simulation has a pace of its own.
    const double received = now.is_simulated() ? time : now.steady;
    const double elapsed = is_stamped ? time - stamp_ : received - received_now_;
    const double usual = std::isnan(period) ? 0.0 : period;
    stamp_ = time;
    received_now_ = received;
    is_suspended_ = false;
    const bool is_burst = !is_stamped && elapsed < kBurstRatio * usual;
    const bool is_gap = elapsed > std::clamp(kGapPeriods * usual, kShortestGap, kLongestGap);
    // Treat such a number as missing: a sum with it would lose all digits.
    if (is_beyond_all(velocity)) { std::fill(velocity.begin(), velocity.end(), kNaN); }
    const bool was_missing = is_missing_;
    is_missing_ = !has_velocities(velocity);
    if (count_ > 0 && elapsed == 0.0) {  // the same state again
      replace(velocity);
      return {};
    }
    const bool is_next = count_ > 0 && 0.0 < elapsed && elapsed <= kHistoryGap;
    if (!is_next || is_burst || has_jumped(position, elapsed, settings)) {
      begin(position, velocity);
      replace(velocity);
      return {};
    }
    const bool is_known = !is_gap && !is_missing_ && !was_missing;
    for (std::size_t i = 0; i < n_; ++i) {
      const double moved = position[i] - position_[i];
      const double displacement = settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved;
      displacement_now_[i] += displacement;
      // Over a gap the velocity says nothing about the displacement.
      integral_now_[i] += is_known ? 0.5 * elapsed * (velocity[i] + velocity_[i]) : displacement;
      uncertainty_now_[i] +=
        is_known ? 0.5 * elapsed * std::fabs(velocity[i] - velocity_[i]) : 0.0;
    }
    position_ = position;
    velocity_ = velocity;
    now_ += elapsed;
    period_ = usual;
    Fault fault = find_dropout(elapsed);
    if (now_ - time_[at(count_ - 1)] >= kSpacing) {
      const Fault found = compare_windows(usual);
      if (fault.cause == Cause::none) { fault = found; }
      store();
    }
    take_slopes();
    replace(velocity);
    return fault;
  }

  // Lag of the slopes that replace velocities [s].
  double lag() const
  {
    const bool is_replaced = is_any_wrong_ || is_missing_;
    return is_replaced && count_ > 0 ? 0.5 * std::max(slope_length(), period_) : 0.0;
  }

  // Bound each velocity to near the slope of the positions, or to near zero until that is known:
  // before a verdict a velocity may be in degrees, reversed, or an outlier. As positions have
  // outliers, too, no velocity is increased, unless states are so infrequent that two slopes
  // have only one state in common: what an outlier adds to one it takes from the other.
  void bound(Vector & velocity) const
  {
    if (is_suspended_) { return; }
    const bool may_grow = is_ready_ && period_ >= kSlope;
    for (std::size_t i = 0; i < n_; ++i) {
      const double slope = is_ready_ ? slope_[i] : 0.0;
      const double off = kScaleTolerance * std::fabs(slope) + kVelocityChange;
      double & v = velocity[i];  // NaN stays
      if (v > slope + off) { v = std::max(slope + off, std::min(v, 0.0)); }
      if (v < slope - off) { v = std::min(slope - off, std::max(v, 0.0)); }
      if (!may_grow) { continue; }
      const double smaller_slope = smaller_slope_of(i);
      const double least = (1.0 - kScaleTolerance) * std::fabs(smaller_slope) - kVelocityChange;
      if (least > 0.0 && std::copysign(1.0, smaller_slope) * v < least) {
        v = std::copysign(least, smaller_slope);
      }
    }
  }

private:
  static constexpr std::size_t kEntries = 64, kWindows = 4, kLags = 9;
  static constexpr double kSpacing =
    0.0024;  // s, between entries: all of them span the longest window
  static constexpr double kWindow[kWindows] = {0.0125, 0.025, 0.05, 0.1};  // s
  static constexpr double kMaxLag = 0.035;                        // s, lag of a driver's velocity
  static constexpr double kNoise = 0.002, kScaleTolerance = 0.2;  // rad or m; relative
  static constexpr int kViolations =
    2;  // entries in a row for a verdict; of infrequent states one
  static constexpr double kMinDisplacement = 0.001;  // rad or m; less is no motion
  static constexpr double kMaxVelocity = 1e4;  // rad/s or m/s; more is no velocity of an arm
  // A gap, in periods, and its bounds in s: nothing is compared over a longer one.
  static constexpr double kGapPeriods = 1.5, kShortestGap = 0.03, kLongestGap = 0.12;
  static constexpr double kHistoryGap = 0.5;   // s; after a longer gap the history restarts
  static constexpr double kBurstRatio = 0.25;  // of a period; states less apart are a burst
  static constexpr double kSlope = 0.02,
                          kShortestSlope = 0.0045;  // s, length of a slope
  static constexpr double kVelocityChange = 0.1;    // rad/s or m/s, of a velocity within a slope
  static constexpr double kWindowPeriods = 2.0;     // least number in a window
  static constexpr double kMaxSpeedRatio = 4.0;     // times the velocity limit; faster is a jump
  static constexpr double kPaceTolerance = 0.25,
                          kJitter = 0.002;  // of a window, and s: difference of two clocks

  static bool is_beyond_all(const Vector & velocity)
  {
    return std::any_of(
      velocity.begin(), velocity.end(), [](double x) { return std::fabs(x) > kMaxVelocity; });
  }

  // Whether a joint is further from its last position than it can have moved in a time [s].
  bool has_jumped(const Vector & position, double elapsed, const Settings & settings) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      const double moved = position[i] - position_[i];
      const double displacement =
        std::fabs(settings.is_continuous[i] != 0.0 ? wrapped(moved) : moved);
      if (displacement > kMaxSpeedRatio * settings.velocity_limits[i] * elapsed + kNoise) {
        return true;
      }
    }
    return false;
  }

  // Return the index of the k-th entry, oldest first.
  std::size_t at(std::size_t k) const { return (first_ + k) % kEntries; }

  void begin(const Vector & position, const Vector & velocity)
  {
    restart_history();
    first_ = 0;
    now_ = 0.0;
    position_ = position;
    velocity_ = velocity;
    std::fill(displacement_now_.begin(), displacement_now_.end(), 0.0);
    std::fill(integral_now_.begin(), integral_now_.end(), 0.0);
    std::fill(uncertainty_now_.begin(), uncertainty_now_.end(), 0.0);
    std::fill(slope_.begin(), slope_.end(), kNaN);
    std::fill(slope_before_.begin(), slope_before_.end(), kNaN);
    std::fill(violations_.begin(), violations_.end(), 0);
    std::fill(last_displacement_.begin(), last_displacement_.end(), 0.0);
    std::fill(last_moving_.begin(), last_moving_.end(), kNaN);
    std::fill(zeros_.begin(), zeros_.end(), 0);
    store();
  }

  void store()
  {
    if (count_ == kEntries) {
      first_ = at(1);
      --count_;
    }
    const std::size_t k = at(count_++);
    time_[k] = now_;
    received_[k] = received_now_;
    std::copy(displacement_now_.begin(), displacement_now_.end(), displacement_.begin() + row(k));
    std::copy(integral_now_.begin(), integral_now_.end(), integral_.begin() + row(k));
    std::copy(uncertainty_now_.begin(), uncertainty_now_.end(), uncertainty_.begin() + row(k));
  }

  std::ptrdiff_t row(std::size_t k) const { return static_cast<std::ptrdiff_t>(k * n_); }

  // A time between two entries: their indices, and the fraction of the way from the first to the
  // second.
  struct Place
  {
    std::size_t one, next;
    double fraction;
  };

  // Return the place of a time [s] not before the first entry; kEntries as the next one means
  // now.
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

  // Interpolate a joint's values of the entries, and the present one, at a place.
  double value(const Vector & of, const Vector & now, const Place & where, std::size_t i) const
  {
    const double one = of[where.one * n_ + i];
    const double next = where.next == kEntries ? now[i] : of[where.next * n_ + i];
    return one + where.fraction * (next - one);
  }

  // Find a joint whose velocity became zero at once and stays it while the joint moves on, in the
  // time [s] since the last state, too. No filter does that: no lag is to be allowed for.
  Fault find_dropout(double elapsed)
  {
    Fault fault;
    for (std::size_t i = 0; i < n_; ++i) {
      if (velocity_[i] != 0.0) {
        const bool is_fast = std::fabs(velocity_[i]) > kVelocityChange;
        last_moving_[i] = is_fast ? displacement_now_[i] : kNaN;
        last_moving_time_[i] = now_;
        zeros_[i] = 0;
        continue;
      }
      ++zeros_[i];
      const double moved = std::fabs(displacement_now_[i] - last_moving_[i]);  // NaN: was slow
      const double least = std::max(kNoise, kVelocityChange * (now_ - last_moving_time_[i]));
      const double step = std::fabs(displacement_now_[i] - last_displacement_[i]);
      const bool is_moving = moved > least && step > kVelocityChange * elapsed;
      if (zeros_[i] < kViolations || !is_moving || is_wrong_[i] != 0) { continue; }
      is_wrong_[i] = 1;
      ratio_[i] = 0.0;
      if (!is_any_wrong_) { fault = {Cause::wrong_velocity, static_cast<int>(i), 0.0, 1.0}; }
      is_any_wrong_ = true;
    }
    last_displacement_ = displacement_now_;
    return fault;
  }

  // Compare the velocities' integrals over windows that end now with the displacements.
  Fault compare_windows(double period)
  {
    std::fill(is_outside_.begin(), is_outside_.end(), 0);
    const double oldest = time_[at(0)];
    double compared = 0.0;
    for (const double window : kWindow) {
      const double length = std::max(window, kWindowPeriods * period);
      if (length == compared) { continue; }
      if (now_ - length - period < oldest) {
        break;
      }  // and a period: the oldest position may be an outlier
      compared = length;
      if (!is_paced(length)) { continue; }
      compare(length, std::min(std::max(kMaxLag, period), now_ - length - oldest));
    }
    const int needed = period > kViolations * kSpacing ? 1 : kViolations;
    Fault fault;
    for (std::size_t i = 0; i < n_; ++i) {
      violations_[i] = is_outside_[i] != 0 ? std::min(violations_[i] + 1, kViolations) : 0;
      if (is_wrong_[i] == 0 && violations_[i] >= needed) {
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

  // Whether the last time window [s] is as long by the receipts as by the states' times.
  bool is_paced(double length) const
  {
    const Place began = place(now_ - length);
    const double one = received_[began.one];
    const double next = began.next == kEntries ? received_now_ : received_[began.next];
    const double received = received_now_ - (one + began.fraction * (next - one));
    return std::fabs(received - length) <= kPaceTolerance * length + kJitter;
  }

  // Mark joints whose integral over the last window [s] lies outside the displacements over
  // windows of this length that ended up to a lag [s] before, and store the ratio of the two.
  void compare(double length, double latest)
  {
    const Place began = place(now_ - length);
    for (std::size_t k = 0; k < kLags; ++k) {
      const double lag = latest * static_cast<double>(k) / (kLags - 1);
      const Place from = place(now_ - length - lag), to = place(now_ - lag);
      for (std::size_t i = 0; i < n_; ++i) {
        const double displacement = value(displacement_, displacement_now_, to, i) -
                                    value(displacement_, displacement_now_, from, i);
        least_[i] = k == 0 ? displacement : std::min(least_[i], displacement);
        most_[i] = k == 0 ? displacement : std::max(most_[i], displacement);
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      const double integral = integral_now_[i] - value(integral_, integral_now_, began, i);
      const double displacement =
        displacement_now_[i] - value(displacement_, displacement_now_, began, i);
      const double tolerance =
        uncertainty_now_[i] - value(uncertainty_, uncertainty_now_, began, i) + kNoise;
      const double least = least_[i] - kScaleTolerance * std::fabs(least_[i]) - tolerance;
      const double most = most_[i] + kScaleTolerance * std::fabs(most_[i]) + tolerance;
      const bool is_outside = !(least <= integral && integral <= most);
      is_outside_[i] |= is_outside;
      // The ratio over the longest window in which the joint moved.
      const bool has_moved = std::fabs(displacement) > kMinDisplacement;
      if (is_outside || (is_wrong_[i] != 0 && has_moved)) {
        ratio_[i] = has_moved ? integral / displacement : kInfinity;
      }
    }
  }

  bool has_slope() const { return now_ - time_[at(0)] >= kShortestSlope; }
  double slope_length() const { return std::min(now_ - time_[at(0)], kSlope); }

  // Update the slopes of the positions up to now; NaN: there are none yet.
  void take_slopes()
  {
    std::swap(slope_, slope_before_);
    is_ready_ = has_slope();
    const double length = slope_length();
    const Place began = place(now_ - length);
    for (std::size_t i = 0; i < n_; ++i) {
      const double displacement =
        displacement_now_[i] - value(displacement_, displacement_now_, began, i);
      slope_[i] = is_ready_ ? displacement / length : kNaN;
    }
  }

  // Replace the velocities by the slopes of the positions, where one is wrong or missing.
  void replace(Vector & velocity) const
  {
    if (!is_any_wrong_ && !is_missing_) { return; }
    for (std::size_t i = 0; i < n_; ++i) { velocity[i] = smaller_slope_of(i); }
  }

  // Return the smaller of a joint's last two slopes, zero where they differ in sign: a single
  // outlier of a position causes no velocity. NaN: there are none yet.
  double smaller_slope_of(std::size_t i) const
  {
    const double one = slope_[i], other = slope_before_[i];
    return std::isnan(other)                 ? one
         : one * other <= 0.0                ? 0.0
         : std::fabs(one) < std::fabs(other) ? one
                                             : other;
  }

  const std::size_t n_;
  // The entries, a ring buffer: their times and receipts [s], and of each joint since begin the
  // displacement, the velocity's integral and its uncertainty.
  Vector time_, received_, displacement_, integral_, uncertainty_;
  std::size_t first_ = 0, count_ = 0;
  double now_ = 0.0;                         // s, from begin to the last state
  double stamp_ = 0.0, received_now_ = 0.0;  // s, of the last state
  double period_ = 0.0;                      // s, mean between states
  Vector position_, velocity_, displacement_now_, integral_now_,
    uncertainty_now_;  // of the last state
  Vector least_, most_;
  Vector slope_, slope_before_;  // of the positions up to the last state, and the one before
  // Displacements of the last state, and of the last one whose velocity was not zero, with its time;
  // NaN: it was slow.
  Vector last_displacement_, last_moving_, last_moving_time_;
  std::vector<int> violations_;  // entries in a row that were outside
  std::vector<int> zeros_;       // velocities in a row
  std::vector<unsigned char> is_outside_, is_wrong_;
  Vector ratio_;
  bool is_ready_ = false, is_suspended_ = false, is_any_wrong_ = false;
  bool is_missing_ = false;  // whether the last state lacked a velocity
};

// Return the first joint that exceeds kOverspeed times its velocity limit; none: no joint does.
// A velocity that is not known (NaN) does not exceed it.
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
