// SPDX-License-Identifier: Apache-2.0
// What a short gap between states is bridged with: the state that the motion leads to; bridging.py.
#ifndef ROBODYN_CONTROLLERS__BRIDGING_HPP_
#define ROBODYN_CONTROLLERS__BRIDGING_HPP_

#include <algorithm>
#include <cstddef>

#include "robodyn_controllers/pipeline_state.hpp"
#include "robodyn_controllers/reference_follower.hpp"

namespace robodyn_controllers
{

class Bridging
{
public:
  static constexpr double kShortestGap = 0.02, kLongestGap = 0.15;  // s

  explicit Bridging(const PipelineState & state)
  : state_(state), wanted_(state.n), before_(state.n), position_(state.n), velocity_(state.n) {}

  // Take note of the time between two states [s].
  void note(double elapsed) {period_ += kNewestGap * (elapsed - period_);}

  // Whether a time [s] since the last state is to be bridged.
  bool is_due(double gap) const
  {
    return has_velocities(state_.velocity) && std::max(kShortestGap, kMissed * period_) < gap &&
           gap <= kLongestGap;
  }

  // Compute where the arm should be a time [s] after its last valid state: its errors move on as
  // they last moved; without a reference it coasts.
  void expect(const ReferenceFollower & follower, double gap)
  {
    position_ = state_.position;
    velocity_ = state_.velocity;
    if (!has_velocities(velocity_)) {return;}
    const double ahead = std::min(gap, kLongestGap);
    const bool has_wanted = follower.sample(state_.time + ahead, wanted_);
    if (has_wanted) {follower.last(before_);}
    for (std::size_t i = 0; i < state_.n; ++i) {
      position_[i] += ahead * state_.velocity[i];
      if (!has_wanted) {continue;}
      position_[i] += wanted_.position[i] - before_.position[i] - ahead * before_.velocity[i];
      velocity_[i] += wanted_.velocity[i] - before_.velocity[i];
    }
  }

  const Vector & position() const {return position_;}
  const Vector & velocity() const {return velocity_;}

private:
  static constexpr double kMissed = 3.0;     // a state is late after so many periods
  static constexpr double kNewestGap = 0.1;  // weight in the mean period

  const PipelineState & state_;
  ReferenceState wanted_, before_;
  Vector position_, velocity_;
  double period_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__BRIDGING_HPP_
