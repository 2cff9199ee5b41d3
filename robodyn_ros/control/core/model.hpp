// SPDX-License-Identifier: Apache-2.0
// The arm's model under its load, and on its way from one load to another.
#ifndef ROBODYN_ROS__CORE__MODEL_HPP_
#define ROBODYN_ROS__CORE__MODEL_HPP_

#include <algorithm>
#include <cstddef>

#include "settings.hpp"

namespace robodyn
{

// What the core asks of an arm. A load is what a payload and a gravity are for it: load_size
// numbers, whatever they mean. Both functions return whether they could; a result may hold
// numbers that are not finite.
struct Model
{
  std::size_t joints = 0, load_size = 0;
  void * self = nullptr;
  // M(q) qdd + C(q, qd) qd + g(q) [N m or N], rows times n like each argument.
  bool (*inverse_dynamics)(
    void * self, const double * load, std::size_t rows, const double * q, const double * qd,
    const double * qdd, double * tau) = nullptr;
  // What the drives do beside the rigid body's torque, under a direction of motion, -1 to 1.
  bool (*friction_torque)(
    void * self, const double * qd, const double * direction, const double * rigid_torque,
    double * tau) = nullptr;
};

// Computes with a load; where a joint has no rate limit, two loads are blended after a change:
// every torque is linear in the inverse dynamics, so that it stays between the two. Nothing but the
// constructor allocates.
class LoadedModel
{
public:
  // The first load is of model.load_size numbers.
  LoadedModel(const Model & model, const double * load)
  : model_(model),
    load_(load, load + model.load_size),
    goal_(load_),
    awaited_(load_),
    other_(most_rows(model.joints) * model.joints)
  {
  }

  // Rows that one call may have: the parts of a torque take 8, the soft joint limits n + 1.
  static std::size_t most_rows(std::size_t joints)
  {
    return std::max<std::size_t>(8, joints + 1);
  }

  std::size_t joints() const { return model_.joints; }
  std::size_t load_size() const { return load_.size(); }
  bool is_blending() const { return is_blending_; }
  const Vector & load() const { return load_; }        // that a blend begins at
  const Vector & goal() const { return goal_; }        // that it leads to
  const Vector & awaited() const { return awaited_; }  // that waits for its end

  // Take another load, in a duration [s]; one that waits for the end of a blend replaces another,
  // and so does one that comes before the blend has begun.
  void change(const double * load, double duration)
  {
    if (duration <= 0.0) {
      std::copy_n(load, goal_.size(), goal_.begin());
      load_ = goal_;
      is_blending_ = has_awaited_ = false;
    } else if (is_blending_ && elapsed_ > 0.0) {
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
    if (!is_blending_) { return; }
    elapsed_ += elapsed;
    if (elapsed_ < duration_) { return; }
    load_ = goal_;
    is_blending_ = false;
    if (has_awaited_) {
      has_awaited_ = false;
      change(awaited_.data(), duration);
    }
  }

  bool inverse_dynamics(
    std::size_t rows, const double * q, const double * qd, const double * qdd, double * tau)
  {
    const auto under = [&](const Vector & load, double * to) {
      return model_.inverse_dynamics(model_.self, load.data(), rows, q, qd, qdd, to);
    };
    if (!under(load_, tau)) { return false; }
    if (!is_blending_) { return true; }
    if (!under(goal_, other_.data())) { return false; }
    const double fraction = elapsed_ / duration_;
    for (std::size_t i = 0; i < rows * joints(); ++i) {
      tau[i] = (1.0 - fraction) * tau[i] + fraction * other_[i];
    }
    return true;
  }

  // The same for one row, under a load that is not taken yet.
  bool inverse_dynamics_under(
    const double * load, const double * q, const double * qd, const double * qdd,
    double * tau) const
  {
    return model_.inverse_dynamics(model_.self, load, 1, q, qd, qdd, tau);
  }

  bool friction_torque(
    const double * qd, const double * direction, const double * rigid_torque, double * tau) const
  {
    return model_.friction_torque(model_.self, qd, direction, rigid_torque, tau);
  }

private:
  const Model model_;
  Vector load_, goal_, awaited_, other_;
  bool is_blending_ = false, has_awaited_ = false;
  double elapsed_ = 0.0, duration_ = 0.0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__MODEL_HPP_
