// SPDX-License-Identifier: Apache-2.0
// Reference motions: piecewise polynomials in time that end at rest.
#ifndef ROBODYN_ROS__CORE__REFERENCE_HPP_
#define ROBODYN_ROS__CORE__REFERENCE_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "settings.hpp"

namespace robodyn
{

constexpr std::size_t kCoefficients = 6;  // of a segment, for 1, s, ..., s^5 with s from 0 to 1

// Where the joints should be at one instant.
struct ReferenceState
{
  Vector position, velocity, acceleration, effort;

  explicit ReferenceState(std::size_t joints)
  : position(joints), velocity(joints), acceleration(joints), effort(joints)
  {
  }
};

// Position, velocity and acceleration of one joint.
struct JointState
{
  double position, velocity, acceleration;
};

// Write the six coefficients of the segment between two states of a joint, stride numbers apart: a
// quintic, or a cubic where an acceleration is NaN.
inline void make_segment(
  const JointState & from, const JointState & to, double duration, std::size_t stride,
  double * coefficients)
{
  const double d = to.position - from.position;
  const double va = from.velocity * duration, vb = to.velocity * duration;
  const double aa = from.acceleration * (duration * duration);
  const double ab = to.acceleration * (duration * duration);
  const bool is_cubic = std::isnan(aa) || std::isnan(ab);
  const double values[kCoefficients] = {
    from.position,
    va,
    is_cubic ? 3.0 * d - 2.0 * va - vb : 0.5 * aa,
    is_cubic ? -2.0 * d + va + vb : 10.0 * d - 6.0 * va - 4.0 * vb - 1.5 * aa + 0.5 * ab,
    is_cubic ? 0.0 : -15.0 * d + 8.0 * va + 7.0 * vb + 1.5 * aa - ab,
    is_cubic ? 0.0 : 6.0 * d - 3.0 * va - 3.0 * vb - 0.5 * aa + 0.5 * ab,
  };
  for (std::size_t k = 0; k < kCoefficients; ++k) { coefficients[k * stride] = values[k]; }
}

// The period of a stream of positions without velocities, and how long the reference takes to the
// newest one. The next position must come before the reference has to stop, and replacing a motion
// that ends within a period would amplify its acceleration each time.
class PositionStream
{
public:
  // Arrivals further apart are no stream, and a pause that ends one [s].
  static constexpr double kLongestPeriod = 0.2, kLongestPause = 1.0;

  // Record the arrival of a position at a time [s]; several at the same time are one.
  void take(double now)
  {
    const double since = now - last_;
    if (since == 0.0) { return; }
    last_ = now;
    if (!(since > 0.0 && since <= (is_stream() ? kLongestPause : kLongestPeriod))) {
      period_ = kNaN;
      expected_ = now;
    } else if (std::isnan(period_)) {
      period_ = since;
      expected_ = now;
    } else if (since > kGap * period_) {  // messages are lost, or the period is another
      period_ = std::max(period_, kGapPart * std::min(since, kLongestPeriod));
      expected_ = now;
    } else {
      // A period that falls at once would make up for the delay at a multiple of the speed.
      period_ += std::max(kGain * (since - period_), -kFastestFall * since);
      expected_ += period_;
      expected_ += kCorrection * (now - expected_);
    }
  }

  bool is_stream() const { return !std::isnan(period_); }

  // Smoothed, and not below what acceleration allows [s].
  double period() const
  {
    return is_stream() ? std::max(period_, kShortestPeriod) : 0.5 * kLongestPeriod;
  }

  // How long the reference moves on, and in what time it then comes to rest [s].
  double moving() const { return kPeriods * period(); }
  double stopping() const { return std::max(period(), kShortestStop); }

  // Time to the newest position [s], which is due a time ahead of its arrival [s] and is at a
  // distance from the reference, as a time at the velocity limit [s].
  double horizon(double ahead, double distance) const
  {
    const double late = is_stream() ? last_ - expected_ : 0.0;
    const double asked = std::max(ahead, moving() + 0.5 * stopping());
    return std::max({asked - late, kEarliest * asked, kSpeedReserve * distance});
  }

private:
  static constexpr double kGain = 0.1, kCorrection = 0.5, kFastestFall = 0.1;
  static constexpr double kGap = 1.8, kGapPart = 0.7;                    // in periods
  static constexpr double kShortestPeriod = 0.01, kShortestStop = 0.05;  // s
  static constexpr double kPeriods = 1.8, kEarliest = 0.6, kSpeedReserve = 2.0;

  double last_ = -kInfinity, expected_ = 0.0, period_ = kNaN;  // s
};

// A motion of several segments. Before its first knot the previous motion goes on, if there
// was one; from the last knot on it holds its end.
struct Motion
{
  Vector knots;         // s, one more than segments
  Vector coefficients;  // segments times 6 times n
  Vector efforts;       // knots times n, linear in between [N m or N]
  ReferenceState start, end;
  std::shared_ptr<const Motion> before;

  // One with memory for a brake: planning that allocates nothing.
  explicit Motion(std::size_t joints, std::size_t segments = 1)
  : coefficients(segments * kCoefficients * joints),
    efforts((segments + 1) * joints),
    start(joints),
    end(joints)
  {
    knots.reserve(segments + 1);
    knots.assign(1, 0.0);
  }

  std::size_t joints() const { return end.position.size(); }
  bool is_finished(double time) const { return time >= knots.back(); }

  void sample(double time, ReferenceState & to) const
  {
    if (time < knots.front()) {
      if (before) {
        before->sample(time, to);
      } else {
        to = start;
      }
      return;
    }
    if (time == knots.front()) {
      to = start;
      return;
    }
    if (is_finished(time)) {
      to = end;
      return;
    }
    const auto after = std::upper_bound(knots.begin(), knots.end(), time);
    const auto segment = static_cast<std::size_t>(after - knots.begin()) - 1;
    const double duration = knots[segment + 1] - knots[segment];
    const double s = (time - knots[segment]) / duration;
    const double a = 1.0 / duration, b = a * a;
    const std::size_t n = joints();
    const double * const of = coefficients.data() + segment * kCoefficients * n;
    const double * const effort = efforts.data() + segment * n;
    for (std::size_t i = 0; i < n; ++i) {
      const auto c = [of, n, i](std::size_t k) { return of[k * n + i]; };
      to.position[i] = c(0) + s * (c(1) + s * (c(2) + s * (c(3) + s * (c(4) + s * c(5)))));
      to.velocity[i] =
        a * (c(1) + s * (2.0 * c(2) + s * (3.0 * c(3) + s * (4.0 * c(4) + s * 5.0 * c(5)))));
      to.acceleration[i] =
        b * (2.0 * c(2) + s * (6.0 * c(3) + s * (12.0 * c(4) + s * 20.0 * c(5))));
      to.effort[i] = (1.0 - s) * effort[i] + s * effort[n + i];
    }
  }

  // Plan the approach to a position of a stream in a time [s]: along the straight line to it, and
  // in the time to stop [s] to rest, without passing it. Needs memory for two segments.
  void plan_approach(
    const ReferenceState & from, const ReferenceState & to, double now, double horizon,
    double stop)
  {
    const std::size_t n = joints();
    const double moving = horizon - 0.5 * stop;
    before.reset();
    knots.assign({now, now + moving, now + moving + stop});
    start = from;
    end = to;
    for (std::size_t i = 0; i < n; ++i) {
      const double p = to.position[i], v = (p - from.position[i]) / horizon;
      const JointState line{p - 0.5 * stop * v, v, 0.0};
      end.velocity[i] = end.acceleration[i] = 0.0;
      double * const first = &coefficients[i];
      make_segment(
        {from.position[i], from.velocity[i], from.acceleration[i]}, line, moving, n, first);
      make_segment(line, {p, 0.0, 0.0}, stop, n, first + kCoefficients * n);
      efforts[i] = from.effort[i];
      efforts[n + i] = efforts[2 * n + i] = to.effort[i];
    }
  }

  // Plan a stop that brings a state to rest within a duration [s] from now on, without
  // reversing, and then holds: half a duration times the velocity ahead, within the position
  // limits if it begins within them.
  void plan_stop(
    const ReferenceState & from, double now, double duration, const Vector & position_limits)
  {
    const std::size_t n = joints();
    for (ReferenceState * const each : {&start, &end}) {
      each->position = from.position;
      for (Vector * const part : {&each->velocity, &each->acceleration, &each->effort}) {
        std::fill(part->begin(), part->end(), 0.0);
      }
    }
    before.reset();
    knots.assign(1, now);
    if (!(duration > 0.0) || !(any(from.velocity) || any(from.acceleration))) { return; }
    knots.push_back(now + duration);
    start = from;
    for (std::size_t i = 0; i < n; ++i) {
      const double p = from.position[i], v = from.velocity[i];
      end.position[i] = clamped(
        p + 0.5 * duration * v, std::min(position_limits[2 * i], p),
        std::max(position_limits[2 * i + 1], p));
      make_segment(
        {p, v, from.acceleration[i]}, {end.position[i], 0.0, 0.0}, duration, n, &coefficients[i]);
      efforts[i] = from.effort[i];
      efforts[n + i] = 0.0;
    }
  }
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__REFERENCE_HPP_
