// SPDX-License-Identifier: Apache-2.0
// What the parts of a command pipeline share; PipelineState of pipeline_state.py.
#ifndef ROBODYN_CONTROLLERS__PIPELINE_STATE_HPP_
#define ROBODYN_CONTROLLERS__PIPELINE_STATE_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "robodyn_controllers/active_law.hpp"
#include "robodyn_controllers/loaded_model.hpp"
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
  impossible_position,   // a position is so far beyond its limits that it is in another unit
};

struct Counts
{
  std::uint64_t refused_torques = 0, implausible_states = 0, following_errors = 0;
  std::uint64_t dropped_references = 0, refused_references = 0;
};

inline bool has_velocities(const Vector & velocity)
{
  return std::none_of(velocity.begin(), velocity.end(), [](double v) {return std::isnan(v);});
}

inline bool is_finite(const Vector & values)
{
  return std::all_of(values.begin(), values.end(), [](double x) {return std::isfinite(x);});
}

struct PipelineState
{
  const std::size_t n;
  SafetySettings settings;
  LoadedModel model;
  ActiveLaw law;
  Vector position, velocity;  // of the last valid cycle since enabling
  double time = 0.0;          // when it was, by the steady clock [s]
  bool has_state = false;     // whether there was one
  Fault fault = Fault::none;
  Counts counts;

  // The model must outlive it.
  PipelineState(
    const robodyn_model & given_model, const LawSettings & given_law,
    const SafetySettings & given_settings)
  : n(static_cast<std::size_t>(given_model.joints)), settings(given_settings),
    model(given_model), law(n, given_law), position(n), velocity(n) {}

  // The way from a position of one joint to another [rad] or [m].
  double error(double wanted, double from, std::size_t joint) const
  {
    const double difference = wanted - from;
    return settings.is_continuous[joint] != 0.0 ? robodyn_wrapped(difference) : difference;
  }

  // Whether no joint is further than max_reference_step from another position.
  bool is_near(const Vector & one, const Vector & other) const
  {
    for (std::size_t i = 0; i < n; ++i) {
      if (!(std::fabs(error(one[i], other[i], i)) <= settings.max_reference_step)) {return false;}
    }
    return true;
  }
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__PIPELINE_STATE_HPP_
