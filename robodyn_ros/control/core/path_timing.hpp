// SPDX-License-Identifier: Apache-2.0
// The fastest timing of a path on a grid: reachability analysis (Pham and Pham 2018, TOPP-RA).
//
// The path has a parameter s; x is the square of its rate. Between two grid points the path's
// acceleration is constant, so that x is linear in s there, and every limit is a row of numbers
//   alpha x + beta y <= bound,  x at the beginning of an interval, y at its end.
// The backward pass finds for each grid point the interval of x from which the end can be reached,
// by two linear programs in two variables; the forward pass takes the largest y there is. It is no
// part of the control cycle: it allocates.
#ifndef ROBODYN_ROS__CORE__PATH_TIMING_HPP_
#define ROBODYN_ROS__CORE__PATH_TIMING_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace robodyn
{

// alpha x + beta y <= bound.
struct TimingRow
{
  double alpha, beta, bound;

  // Return the row of length one; one that is all zero stays what it is.
  TimingRow normalised() const
  {
    const double length = std::hypot(alpha, beta);
    return length > 0.0 ? TimingRow{alpha / length, beta / length, bound / length} : *this;
  }
};

struct Range
{
  double lowest, highest;
};

constexpr double kTimingRounding = 1e-12;  // of numbers of size one
constexpr double kTimingGap = 1e-7;  // by which a range may be empty for rounding, in parts of x

// Rows of one interval, x and y within ranges.
class TimingStep
{
public:
  TimingStep(const TimingRow * rows, std::size_t count, Range x, Range y)
  : rows_(rows), count_(count), x_(x), y_(y)
  {
  }

  // Return the largest (sign 1) or smallest (sign -1) x; nothing where no x and y keep all rows.
  // A row that the best point of the rows before it does not keep holds the new best point
  // (Seidel 1991).
  std::optional<double> extreme(double sign) const
  {
    double x = sign > 0.0 ? x_.highest : x_.lowest, y = y_.highest;
    for (std::size_t k = 0; k < count_; ++k) {
      const TimingRow & row = rows_[k];
      const double scale = 1.0 + std::abs(x) + std::abs(y);
      if (row.alpha * x + row.beta * y - row.bound <= kTimingRounding * scale) { continue; }
      if (row.alpha == 0.0 && row.beta == 0.0) { return std::nullopt; }
      // On the line of this row, (x, y) = foot + t (-beta, alpha).
      const double foot_x = row.alpha * row.bound, foot_y = row.beta * row.bound;
      Range t{-kFarthest, kFarthest};
      cut(&t, -row.beta, x_.highest - foot_x);
      cut(&t, row.beta, foot_x - x_.lowest);
      cut(&t, row.alpha, y_.highest - foot_y);
      cut(&t, -row.alpha, foot_y - y_.lowest);
      for (std::size_t j = 0; j < k; ++j) {
        const TimingRow & other = rows_[j];
        cut(
          &t, other.beta * row.alpha - other.alpha * row.beta,
          other.bound - other.alpha * foot_x - other.beta * foot_y);
      }
      if (t.lowest > t.highest + kTimingGap * (1.0 + std::abs(t.lowest))) { return std::nullopt; }
      const double best = sign * row.beta < 0.0 ? t.highest : t.lowest;
      x = foot_x - row.beta * best;
      y = foot_y + row.alpha * best;
    }
    return std::clamp(x, x_.lowest, x_.highest);
  }

private:
  static constexpr double kFarthest = 1e30;

  // Keep slope t <= room.
  static void cut(Range * t, double slope, double room)
  {
    if (slope > kTimingRounding) {
      t->highest = std::min(t->highest, room / slope);
    } else if (slope < -kTimingRounding) {
      t->lowest = std::max(t->lowest, room / slope);
    } else if (room < -kTimingGap * (1.0 + std::abs(room))) {
      t->highest = -kFarthest;
      t->lowest = kFarthest;
    }
  }

  const TimingRow * rows_;
  std::size_t count_;
  Range x_, y_;
};

// Timing of a path of some intervals.
struct PathTiming
{
  // The x of each grid point from which the end can be reached; of those before ``failed`` none.
  std::vector<Range> controllable;
  std::vector<double> x;  // of the fastest timing
  // The grid point from which no x leads to the next one, else the number of intervals.
  std::size_t failed;
};

// Return the fastest timing; rows are those of each interval in turn, ``count`` each.
inline PathTiming fastest_timing(
  std::vector<TimingRow> rows, std::size_t count, const std::vector<double> & highest,
  double begin, Range end)
{
  const std::size_t intervals = highest.size() - 1;
  for (TimingRow & row : rows) { row = row.normalised(); }
  PathTiming timing{
    std::vector<Range>(intervals + 1), std::vector<double>(intervals + 1, 0.0), intervals};
  timing.controllable[intervals] = {
    std::min(end.lowest, highest[intervals]), std::min(end.highest, highest[intervals])};
  for (std::size_t i = intervals; i-- > 0;) {
    const TimingRow * const first = rows.data() + i * count;
    const Range & next = timing.controllable[i + 1];
    const TimingStep step(first, count, {0.0, highest[i]}, next);
    const std::optional<double> largest = step.extreme(1.0);
    const bool may_rest = next.lowest == 0.0 && std::all_of(first, first + count, [](auto & row) {
                            return row.bound >= 0.0;
                          });
    const std::optional<double> smallest = may_rest ? 0.0 : step.extreme(-1.0);
    if (!largest || !smallest) {
      timing.failed = i;
      return timing;
    }
    timing.controllable[i] = {std::min(*smallest, *largest), *largest};
  }
  timing.x[0] = std::clamp(begin, timing.controllable[0].lowest, timing.controllable[0].highest);
  for (std::size_t i = 0; i < intervals; ++i) {
    const double x = timing.x[i];
    Range y = timing.controllable[i + 1];
    const Range allowed = y;
    for (std::size_t k = 0; k < count; ++k) {
      const TimingRow & row = rows[i * count + k];
      const double room = row.bound - row.alpha * x;
      if (row.beta > kTimingRounding) { y.highest = std::min(y.highest, room / row.beta); }
    }
    timing.x[i + 1] = std::clamp(y.highest, allowed.lowest, allowed.highest);
  }
  return timing;
}

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__PATH_TIMING_HPP_
