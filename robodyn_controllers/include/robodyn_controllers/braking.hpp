// SPDX-License-Identifier: Apache-2.0
// The motion that brings the arm to rest, as braking.py and reference.py plan it.
#ifndef ROBODYN_CONTROLLERS__BRAKING_HPP_
#define ROBODYN_CONTROLLERS__BRAKING_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "robodyn_controllers/loaded_model.hpp"
#include "robodyn_controllers/reference.hpp"
#include "robodyn_controllers/settings.hpp"

namespace robodyn_controllers
{

constexpr double kShortestBraking = 0.1, kLongestBraking = 2.0;  // s

// The motion from a state to rest, held from its end on.
class Braking
{
public:
  explicit Braking(std::size_t joints)
  : coefficients_(6 * joints), start_(joints), end_(joints), states_(9 * joints),
    torques_(3 * joints) {}

  // Lead from a position and velocity at a time [s] to rest, as braking_reference does.
  void plan(
    LoadedModel & model, const SafetySettings & settings, const Vector & position,
    const Vector & velocity, double now)
  {
    const std::size_t n = position.size();
    start_.position = position;
    start_.velocity = velocity;
    end_.position = position;
    begin_ = finish_ = now;
    if (!robodyn_any(velocity.data(), static_cast<int>(n))) {return;}
    const double T = duration(model, settings, position, velocity);
    finish_ = now + T;
    for (std::size_t i = 0; i < n; ++i) {
      const double rest = std::min(
        std::max(
          position[i] + 0.5 * T * velocity[i], std::min(settings.position_limits[2 * i],
          position[i])),
        std::max(settings.position_limits[2 * i + 1], position[i]));
      const double displacement = rest - position[i], v = velocity[i] * T;
      end_.position[i] = rest;
      coefficients_[i] = position[i];
      coefficients_[n + i] = v;
      coefficients_[2 * n + i] = 0.0;
      coefficients_[3 * n + i] = 10.0 * displacement - 6.0 * v;
      coefficients_[4 * n + i] = -15.0 * displacement + 8.0 * v;
      coefficients_[5 * n + i] = 6.0 * displacement - 3.0 * v;
    }
  }

  double finish() const {return finish_;}
  bool is_finished(double time) const {return time >= finish_;}
  const Vector & end_position() const {return end_.position;}

  void sample(double time, ReferenceState & state) const
  {
    if (time <= begin_ && begin_ < finish_) {
      state = start_;
    } else if (time >= finish_) {
      state = end_;
    } else {
      const double T = finish_ - begin_;
      robodyn_sample(
        static_cast<int>(end_.position.size()), coefficients_.data(), (time - begin_) / T, T,
        state.position.data(), state.velocity.data(), state.acceleration.data());
      std::fill(state.effort.begin(), state.effort.end(), 0.0);
    }
  }

private:
  // As braking_time: four fifths of the effort limits, half of the rate limits.
  double duration(
    LoadedModel & model, const SafetySettings & settings, const Vector & position,
    const Vector & velocity)
  {
    const std::size_t n = position.size();
    double * const q = states_.data(), * const qd = q + 3 * n, * const qdd = qd + 3 * n;
    std::fill(states_.begin(), states_.end(), 0.0);
    for (std::size_t row = 0; row < 3; ++row) {
      std::copy(position.begin(), position.end(), q + row * n);
    }
    std::copy(velocity.begin(), velocity.end(), qd + n);
    std::copy(velocity.begin(), velocity.end(), qdd + 2 * n);
    model.inverse_dynamics(3, q, qd, qdd, torques_.data());
    double rate = kInfinity, by_rate = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const double bias = torques_[n + i], inertial = torques_[2 * n + i] - torques_[i];
      const double limit = 0.8 * settings.effort_limits[i];
      if (inertial != 0.0) {
        rate = std::min(rate, (inertial > 0.0 ? limit + bias : limit - bias) / std::fabs(inertial));
      }
      if (velocity[i] != 0.0) {
        rate = std::min(rate, settings.braking_acceleration[i] / std::fabs(velocity[i]));
      }
      by_rate = std::max(
        by_rate, 6.0 * std::fabs(inertial) / (0.5 * settings.torque_rate_limits[i]));
    }
    if (!(rate > 0.0)) {return kLongestBraking;}
    const double shortest = std::max({1.5 / rate, std::sqrt(by_rate), kShortestBraking});
    return std::min(shortest, kLongestBraking);
  }

  Vector coefficients_;
  ReferenceState start_, end_;
  Vector states_, torques_;
  double begin_ = 0.0, finish_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__BRAKING_HPP_
