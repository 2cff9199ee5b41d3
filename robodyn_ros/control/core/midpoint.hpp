// SPDX-License-Identifier: Apache-2.0
// What is expected in the middle of the time for which a command acts.
#ifndef ROBODYN_ROS__CORE__MIDPOINT_HPP_
#define ROBODYN_ROS__CORE__MIDPOINT_HPP_

#include <cstddef>

#include "reference.hpp"
#include "settings.hpp"

namespace robodyn
{

// The state and the reference that are expected in the middle of the time until the next command: a
// torque that is held should be that of the middle.
//
// Along a reference the arm is expected to move as it does, with the errors of now, and the
// acceleration is the mean one until the next command: held so long, it gives the reference's
// velocity there. Of now, all would be late by half a period: an error of T / 2 times the jerk
// over kp, most of what a fast motion shows.
//
// Without a reference it is for gravity alone, and frequent states do not need it. A torque g(q)
// that is held for a time T accelerates a moving arm: near an upright equilibrium, q'' = w^2 q,
// its velocity grows by cosh(w T), about 1 + (w T)^2 / 2. With gravity at the middle of the
// motion, q + q' T / 2, the factor is cosh(w T) - sinh(w T) w T / 2, about 1 - (w T)^4 / 24: the
// velocity decreases slightly, up to w T = 2.4. The oscillation of a hanging arm does not grow
// either. An arm on springs does not move as its reference: where these are soft, it coasts, and
// gravity alone is that of coasted().
struct Midpoint
{
  ReferenceState reference;
  Vector position, velocity;

  explicit Midpoint(std::size_t joints)
  : reference(joints), position(joints), velocity(joints), coasted_(joints)
  {
  }

  // The position of an arm that moves on as it moves, if its springs are soft; else null.
  const Vector * coasted() const { return is_coasting_ ? &coasted_ : nullptr; }

  // Expect what follows from a state, and the reference of now, null: there is none.
  void begin(const Vector & q, const Vector & qd, const ReferenceState * desired)
  {
    position = q;
    velocity = qd;
    if (desired != nullptr) { reference = *desired; }
    is_coasting_ = false;
  }

  // Move on along a reference, which is another one a time [s] later.
  void follow(const ReferenceState & desired, const ReferenceState & later, double time)
  {
    for (std::size_t i = 0; i < position.size(); ++i) {
      const double way = 0.5 * (later.position[i] - desired.position[i]);
      const double change = 0.5 * (later.velocity[i] - desired.velocity[i]);
      position[i] += way;
      velocity[i] += change;
      reference.position[i] += way;
      reference.velocity[i] += change;
      reference.acceleration[i] = 2.0 * change / time;
      reference.effort[i] = 0.5 * (desired.effort[i] + later.effort[i]);
    }
  }

  // Move on for half a time [s] as the arm moves: with its springs, or, without a reference, all.
  void coast(const Vector & q, const Vector & qd, double time, bool has_reference, bool yields)
  {
    for (std::size_t i = 0; i < q.size(); ++i) { coasted_[i] = q[i] + 0.5 * time * qd[i]; }
    is_coasting_ = has_reference && yields;
    if (!has_reference) { position = coasted_; }
  }

private:
  Vector coasted_;
  bool is_coasting_ = false;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__MIDPOINT_HPP_
