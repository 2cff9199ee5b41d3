// SPDX-License-Identifier: Apache-2.0
// Which states are believed; plausibility.py and possible_positions.py.
#ifndef ROBODYN_CONTROLLERS__PLAUSIBILITY_HPP_
#define ROBODYN_CONTROLLERS__PLAUSIBILITY_HPP_

#include <cmath>
#include <cstddef>

#include "robodyn_controllers/pipeline_state.hpp"

namespace robodyn_controllers
{

enum class Verdict { plausible, jump, outlier };

class Plausibility
{
public:
  explicit Plausibility(const PipelineState & state)
  : state_(state), doubted_(state.n), lowest_(state.n), highest_(state.n)
  {
    const Vector & limits = state.settings.position_limits;
    for (std::size_t i = 0; i < state.n; ++i) {
      const double lower = limits[2 * i], upper = limits[2 * i + 1];
      const bool is_prismatic = state.model.model().is_prismatic[i] != 0;
      const double margin = is_prismatic ? kFarthestTravel * (upper - lower) : kFarthestTurn;
      const bool has_room = lower < upper;
      lowest_[i] = has_room ? lower - margin : -kInfinity;
      highest_[i] = has_room ? upper + margin : kInfinity;
    }
  }

  // Whether the joints can have a position at all; one that is not finite is none.
  bool is_possible(const double * position) const
  {
    for (std::size_t i = 0; i < state_.n; ++i) {
      if (!(lowest_[i] <= position[i] && position[i] <= highest_[i])) {return false;}
    }
    return true;
  }

  void reset() {has_doubted_ = false;}

  // Whether the joints can have come to a position by now: from the last one, or, as a jump that
  // did happen, from one that was doubted.
  Verdict verdict(const Vector & position, double now)
  {
    const double elapsed = now - state_.time;
    if (is_reachable(position, state_.position, elapsed)) {
      has_doubted_ = false;
      return Verdict::plausible;
    }
    const bool agrees = has_doubted_ && is_reachable(position, doubted_, elapsed);
    doubted_ = position;
    has_doubted_ = !agrees;
    return agrees ? Verdict::jump : Verdict::outlier;
  }

  // Whether a joint is faster than it can be driven.
  bool is_too_fast(const Vector & velocity) const
  {
    for (std::size_t i = 0; i < state_.n; ++i) {
      if (std::fabs(velocity[i]) > kOverspeed * state_.settings.velocity_limits[i]) {return true;}
    }
    return false;
  }

private:
  static constexpr double kPlausibleSpeed = 2.0, kPlausibleStep = 0.05, kOverspeed = 1.5;
  static constexpr double kFarthestTurn = 6.283185307179586, kFarthestTravel = 10.0;

  bool is_reachable(const Vector & position, const Vector & from, double elapsed) const
  {
    bool is_near = true;
    for (std::size_t i = 0; i < state_.n; ++i) {
      is_near &= std::fabs(position[i] - from[i]) <= kPlausibleStep;
    }
    if (is_near) {return true;}
    for (std::size_t i = 0; i < state_.n; ++i) {
      const double reach =
        kPlausibleSpeed * state_.settings.velocity_limits[i] * elapsed + kPlausibleStep;
      if (!(std::fabs(state_.error(position[i], from[i], i)) <= reach)) {return false;}
    }
    return true;
  }

  const PipelineState & state_;
  Vector doubted_, lowest_, highest_;
  bool has_doubted_ = false;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__PLAUSIBILITY_HPP_
