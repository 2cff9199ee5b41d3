// SPDX-License-Identifier: Apache-2.0
// The arm's model under a load, and while one load blends into another.
#ifndef ROBODYN_ROS__CORE__MODEL_HPP_
#define ROBODYN_ROS__CORE__MODEL_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "settings.hpp"

namespace robodyn
{

// What the core needs of an arm. A load represents a payload and a gravity vector: load_size
// numbers that only the model interprets. All functions return whether they succeeded; a
// result may hold numbers that are not finite.
struct Model
{
  std::size_t joints = 0, load_size = 0;
  void * self = nullptr;
  // M(q) qdd + C(q, qd) qd + g(q) [N m or N], rows times n like each argument.
  bool (*inverse_dynamics)(
    void * self, const double * load, std::size_t rows, const double * q, const double * qd,
    const double * qdd, double * tau) = nullptr;
  // M(q), row by row; null: it is taken from rows of inverse_dynamics.
  bool (*mass_matrix)(void * self, const double * load, const double * q, double * mass) =
    nullptr;
  // Velocity of each coupled drive for a unit velocity of each joint, row by row, coupled times
  // joints numbers that outlive the model.
  std::size_t coupled = 0;
  const double * coupling = nullptr;
  // The drives' friction torque, for directions of motion from -1 to 1: of the joints' own drives,
  // then of the coupled ones.
  bool (*friction_torque)(
    void * self, const double * qd, const double * direction, const double * rigid_torque,
    double * tau) = nullptr;
  // The tip link's pose (4, 4) and Jacobian (6, n), linear rows first, in base axes; null: the
  // law has no stiffness at the tip.
  bool (*forward_kinematics)(void * self, const double * q, double * pose) = nullptr;
  bool (*jacobian)(void * self, const double * q, double * jacobian) = nullptr;
  // Farthest that the tip link's origin can be from the base link's [m]; infinite: not known.
  double reach = kInfinity;
};

// Return the model of a library (robodyn_model.h), which must outlive it.
template <typename Library>
Model core_model(const Library & library)
{
  Model model;
  model.joints = static_cast<std::size_t>(library.joints);
  model.load_size = static_cast<std::size_t>(library.load_size);
  model.coupled = static_cast<std::size_t>(library.coupled_drives);
  model.coupling = library.coupling;
  model.reach = library.reach;
  model.self = const_cast<Library *>(&library);  // the core only reads it
  model.inverse_dynamics = [](
                             void * self, const double * load, std::size_t rows, const double * q,
                             const double * qd, const double * qdd, double * tau) {
    static_cast<const Library *>(self)->inverse_dynamics(
      load, static_cast<int>(rows), q, qd, qdd, tau);
    return true;
  };
  model.mass_matrix = [](void * self, const double * load, const double * q, double * mass) {
    static_cast<const Library *>(self)->mass_matrix(load, q, mass);
    return true;
  };
  model.friction_torque = [](
                            void * self, const double * qd, const double * direction,
                            const double * rigid_torque, double * tau) {
    static_cast<const Library *>(self)->friction_torque(qd, direction, rigid_torque, tau);
    return true;
  };
  model.forward_kinematics = [](void * self, const double * q, double * pose) {
    const auto & arm = *static_cast<const Library *>(self);
    arm.forward_kinematics(arm.tip, q, pose);
    return true;
  };
  model.jacobian = [](void * self, const double * q, double * jacobian) {
    const auto & arm = *static_cast<const Library *>(self);
    arm.jacobian(arm.tip, q, jacobian);
    return true;
  };
  return model;
}

// Return how far from the base link's origin a point of the tip link can be at most [m].
inline double reach_of(const Model & model, const std::array<double, 3> & wrench_point)
{
  return model.reach + std::hypot(wrench_point[0], wrench_point[1], wrench_point[2]);
}

// Whether a position is within a reach [m]; one that is not finite is not.
inline bool is_within(double reach, const std::array<double, 3> & position)
{
  double square = 0.0;  // std::hypot of three may hide a NaN
  for (const double each : position) { square += each * each; }
  return std::isfinite(square) && std::sqrt(square) <= reach;
}

// Evaluates the model under a load. Where a joint has no rate limit, a change blends the old
// load into the new one: every torque is linear in the inverse dynamics, so that it stays
// between the two. Only the constructor allocates.
class LoadedModel
{
public:
  // The first load has model.load_size numbers.
  LoadedModel(const Model & model, const double * load)
  : load_{model, Vector(load, load + model.load_size)},
    goal_(load_),
    pending_(load_),
    other_(max_rows(model.joints) * model.joints)
  {
  }

  // Most rows of one call: the parts of a torque take 11, and n with an impedance.
  static std::size_t max_rows(std::size_t joints) { return joints + 11; }

  const Model & model() const { return load_.model; }
  std::size_t joints() const { return model().joints; }
  std::size_t load_size() const { return model().load_size; }
  bool is_blending() const { return is_blending_; }

  // Whether an arm's code is in use, or will be after a blend.
  bool uses(const Model & model) const
  {
    return model.self == load_.model.self || model.self == goal_.model.self ||
           model.self == pending_.model.self;
  }

  // Change to another load over a duration [s]. During a blend the load is queued, and
  // replaces one that was queued before. Before the first step of a blend it replaces the
  // goal. Another model is that of the same arm in other code: nothing is allocated for the same.
  void change(const Model & model, const double * load, double duration)
  {
    if (duration <= 0.0) {
      goal_.set(model, load);
      load_ = pending_ = goal_;
      is_blending_ = has_pending_ = false;
    } else if (is_blending_ && elapsed_ > 0.0) {
      pending_.set(model, load);
      has_pending_ = true;
    } else {
      goal_.set(model, load);
      is_blending_ = true;
      elapsed_ = 0.0;
      duration_ = duration;
    }
  }

  // Advance by a time [s]; a queued load is then blended in over the duration [s].
  void advance(double elapsed, double duration)
  {
    if (!is_blending_) { return; }
    elapsed_ += elapsed;
    if (elapsed_ < duration_) { return; }
    load_ = goal_;
    is_blending_ = false;
    if (has_pending_) {
      has_pending_ = false;
      change(pending_.model, pending_.numbers.data(), duration);
    }
  }

  bool inverse_dynamics(
    std::size_t rows, const double * q, const double * qd, const double * qdd, double * tau)
  {
    const auto evaluate = [&](const Load & load, double * to) {
      const Model & model = load.model;
      return model.inverse_dynamics(model.self, load.numbers.data(), rows, q, qd, qdd, to);
    };
    return blended(evaluate, rows * joints(), tau);
  }

  bool has_mass_matrix() const
  {
    return load_.model.mass_matrix != nullptr && goal_.model.mass_matrix != nullptr;
  }

  bool mass_matrix(const double * q, double * mass)
  {
    const auto evaluate = [&](const Load & load, double * to) {
      return load.model.mass_matrix(load.model.self, load.numbers.data(), q, to);
    };
    return blended(evaluate, joints() * joints(), mass);
  }

  // Number of the joints' own drives and the coupled ones.
  std::size_t drives() const { return model().joints + model().coupled; }

  // The velocity of a drive, at velocities of the joints.
  double drive_velocity(std::size_t drive, const double * qd) const
  {
    if (drive < model().joints) { return qd[drive]; }
    const double * const gears = model().coupling + (drive - model().joints) * model().joints;
    double velocity = 0.0;
    for (std::size_t i = 0; i < model().joints; ++i) {
      if (gears[i] != 0.0) { velocity += gears[i] * qd[i]; }
    }
    return velocity;
  }

  bool friction_torque(
    const double * qd, const double * direction, const double * rigid_torque, double * tau) const
  {
    return model().friction_torque(model().self, qd, direction, rigid_torque, tau);
  }

  bool has_tip() const
  {
    return model().forward_kinematics != nullptr && model().jacobian != nullptr;
  }

  bool forward_kinematics(const double * q, double * pose) const
  {
    return model().forward_kinematics(model().self, q, pose);
  }

  bool jacobian(const double * q, double * to) const
  {
    return model().jacobian(model().self, q, to);
  }

private:
  // Evaluate what is linear in the load: some numbers.
  template <typename Function>
  bool blended(const Function & evaluate, std::size_t count, double * to)
  {
    if (!evaluate(load_, to)) { return false; }
    if (!is_blending_) { return true; }
    if (!evaluate(goal_, other_.data())) { return false; }
    const double fraction = elapsed_ / duration_;
    for (std::size_t i = 0; i < count; ++i) {
      to[i] = (1.0 - fraction) * to[i] + fraction * other_[i];
    }
    return true;
  }

  struct Load
  {
    Model model;
    Vector numbers;

    void set(const Model & other, const double * load)
    {
      model = other;
      numbers.assign(load, load + other.load_size);
    }
  };

  Load load_, goal_, pending_;  // at the start of a blend, at its end, to be taken after it
  Vector other_;
  bool is_blending_ = false, has_pending_ = false;
  double elapsed_ = 0.0, duration_ = 0.0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__MODEL_HPP_
