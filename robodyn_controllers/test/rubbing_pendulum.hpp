// SPDX-License-Identifier: Apache-2.0
// What the pendulum lacks of an arm's torques: friction, and one that grows with the speed's
// square, in the place of the Coriolis torques that a single joint has none of.
#ifndef RUBBING_PENDULUM_HPP_
#define RUBBING_PENDULUM_HPP_

#include "pendulum.hpp"

namespace rubbing
{

inline double of_speed(double qd)
{
  return 0.7 * qd * qd;
}

inline double friction(double qd, double direction)
{
  return 0.5 * qd + 2.0 * direction;
}

inline const robodyn_model & model()
{
  static const robodyn_model model = [] {
    robodyn_model rubbing = pendulum::model();
    rubbing.inverse_dynamics = [](
                                 const double * load, int rows, const double * q,
                                 const double * qd, const double * qdd, double * tau) {
      pendulum::model().inverse_dynamics(load, rows, q, qd, qdd, tau);
      for (int i = 0; i < rows; ++i) { tau[i] += of_speed(qd[i]); }
    };
    rubbing.friction_torque =
      [](const double * qd, const double * direction, const double * rigid_torque, double * tau) {
        tau[0] = friction(qd[0], direction[0]) + 0.1 * std::fabs(rigid_torque[0]);
      };
    return rubbing;
  }();
  return model;
}

}  // namespace rubbing

#endif  // RUBBING_PENDULUM_HPP_
