// SPDX-License-Identifier: Apache-2.0
// The arm's model under its load, and on its way from one load to another.
#ifndef ROBODYN_CONTROLLERS__LOADED_MODEL_HPP_
#define ROBODYN_CONTROLLERS__LOADED_MODEL_HPP_

#include <algorithm>
#include <cstddef>

#include "robodyn_controllers/settings.hpp"
#include "robodyn_ros/robodyn_model.h"
#include "robodyn_ros/torque_step.h"

namespace robodyn_controllers
{

// Computes with a load; where a joint has no rate limit, two torques are blended after a change,
// as BlendedDynamics does. Nothing but the constructor allocates.
class LoadedModel
{
public:
  explicit LoadedModel(const robodyn_model & model)
  : model_(model),
    load_(static_cast<std::size_t>(model.load_size)),
    goal_(load_), awaited_(load_),
    other_(static_cast<std::size_t>(ROBODYN_ROWS(model.joints) * model.joints))
  {
    model_.make_load(nullptr, nullptr, load_.data());
    goal_ = load_;
  }

  const robodyn_model & model() const {return model_;}
  int joints() const {return model_.joints;}
  std::size_t load_size() const {return load_.size();}
  bool is_blending() const {return is_blending_;}

  // Take another load, in a duration [s]; one that waits for the end of a blend replaces another.
  void change(const double * load, double duration)
  {
    if (duration <= 0.0) {
      std::copy_n(load, goal_.size(), goal_.begin());
      load_ = goal_;
      is_blending_ = has_awaited_ = false;
    } else if (is_blending_) {
      std::copy_n(load, awaited_.size(), awaited_.begin());
      has_awaited_ = true;
    } else {
      std::copy_n(load, goal_.size(), goal_.begin());
      is_blending_ = true;
      elapsed_ = 0.0;
      duration_ = duration;
    }
  }

  // Let time pass [s]; a load that has waited takes the duration [s].
  void advance(double elapsed, double duration)
  {
    if (!is_blending_) {return;}
    elapsed_ += elapsed;
    if (elapsed_ < duration_) {return;}
    load_ = goal_;
    is_blending_ = false;
    if (has_awaited_) {
      has_awaited_ = false;
      change(awaited_.data(), duration);
    }
  }

  void inverse_dynamics(
    int rows, const double * q, const double * qd, const double * qdd, double * tau)
  {
    const int n = joints();
    evaluate(load_.data(), rows, q, qd, qdd, tau);
    if (!is_blending_) {return;}
    evaluate(goal_.data(), rows, q, qd, qdd, other_.data());
    const double fraction = elapsed_ / duration_;
    for (int i = 0; i < rows * n; ++i) {
      tau[i] = (1.0 - fraction) * tau[i] + fraction * other_[static_cast<std::size_t>(i)];
    }
  }

  // Gravity under a load that is not taken yet.
  void gravity_under(const double * load, const double * q, double * tau) const
  {
    model_.gravity_torque(load, q, tau);
  }

  // What torque_step.h computes with.
  robodyn_arm arm()
  {
    return {this,
      [](void * self, int rows, const double * q, const double * qd, const double * qdd,
      double * tau) {
        static_cast<LoadedModel *>(self)->inverse_dynamics(rows, q, qd, qdd, tau);
        return 0;
      },
      [](void * self, double width, const double * qd, const double * rigid, double * tau) {
        static_cast<LoadedModel *>(self)->model_.friction_torque(width, qd, rigid, tau);
        return 0;
      }};
  }

private:
  void evaluate(
    const double * load, int rows, const double * q, const double * qd, const double * qdd,
    double * tau) const
  {
    for (int row = 0; row < rows; ++row) {
      const int at = row * joints();
      model_.inverse_dynamics(load, q + at, qd + at, qdd + at, tau + at);
    }
  }

  const robodyn_model & model_;
  Vector load_, goal_, awaited_, other_;
  bool is_blending_ = false, has_awaited_ = false;
  double elapsed_ = 0.0, duration_ = 0.0;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__LOADED_MODEL_HPP_
