// SPDX-License-Identifier: Apache-2.0
// A pendulum as a model library: simple enough for closed forms.
#ifndef PENDULUM_HPP_
#define PENDULUM_HPP_

#include <algorithm>
#include <array>
#include <cmath>

#include "robodyn_controllers/controller_logic.hpp"
#include "robodyn_ros/robodyn_model.h"

namespace pendulum
{

constexpr double kMass = 2.0, kLength = 0.5, kGravity = 9.81;  // kg, m, m/s^2
constexpr double kInertia = kMass * kLength * kLength;

// The load is the mass at the end, and gravity along z.
inline const robodyn_model & model()
{
  static const char * const names[] = {"swing"};
  static const unsigned char is_prismatic[] = {0};
  static const char * const tips[] = {"bob"};
  static const double positions[] = {-3.0, 3.0}, velocities[] = {4.0}, efforts[] = {40.0};
  static const double possible[] = {-9.28, 9.28};  // a turn beyond the limits
  static const double gravity[] = {0.0, 0.0, -kGravity};
  static const robodyn_model model = {
    ROBODYN_MODEL_ABI,
    1,
    0,
    nullptr,
    2,
    "the test",
    names,
    0,
    nullptr,
    "base",
    1,
    tips,
    0,
    "none",
    is_prismatic,
    positions,
    velocities,
    efforts,
    possible,
    gravity,
    kLength,
    [](const robodyn_payload * payload, const double * other, double * load) {
      const double * const applied = other != nullptr ? other : gravity;
      const robodyn_refusal refusal = robodyn_check_load(payload, applied, 100.0, 1.0);
      if (refusal.element != nullptr) { return refusal; }
      load[0] = kMass + (payload != nullptr ? payload->mass : 0.0);
      load[1] = -applied[2];
      return refusal;
    },
    [](
      const double * load, int rows, const double * q, const double *, const double * qdd,
      double * tau) {
      for (int i = 0; i < rows; ++i) {
        tau[i] = load[0] * kLength * (kLength * qdd[i] + load[1] * std::cos(q[i]));
      }
    },
    [](const double * load, const double * q, double * tau) {
      tau[0] = load[0] * kLength * load[1] * std::cos(q[0]);
    },
    [](const double * load, const double *, double * mass) {
      mass[0] = load[0] * kLength * kLength;
    },
    [](const double *, const double *, const double *, double * tau) { tau[0] = 0.0; },
    [](int, const double * q, double * pose) {
      const double c = std::cos(q[0]), s = std::sin(q[0]);
      const double turned[16] = {c, 0, -s, kLength * c, 0, 1, 0, 0,
                                 s, 0, c,  kLength * s, 0, 0, 0, 1};
      for (int k = 0; k < 16; ++k) { pose[k] = turned[k]; }
    },
    [](int, const double * q, double * jacobian) {  // about -y
      const double of_tip[] = {
        -kLength * std::sin(q[0]), 0.0, kLength * std::cos(q[0]), 0.0, -1.0, 0.0};
      std::copy_n(of_tip, 6, jacobian);
    },
    [] { return 0; }};
  return model;
}

inline double held(double q, double mass = kMass)
{
  return mass * kLength * kGravity * std::cos(q);
}

// Computed torque on it, within its limits.
inline robodyn::Settings settings()
{
  robodyn::Settings settings;
  settings.mode = robodyn::Mode::computed_torque;
  settings.kp = {100.0};
  settings.kd = {20.0};
  settings.terms.gravity_factor = {1.0};
  settings.friction_velocity = 0.01;
  settings.impedance.stiffness = settings.impedance.nullspace_stiffness = {0.0};
  settings.soft_limit_width = 0.05;
  settings.effort_limits = {40.0};
  settings.torque_rate_limit = {1000.0};
  settings.braking_acceleration = {robodyn::kInfinity};
  settings.position_limits = {-3.0, 3.0};
  settings.velocity_limits = {4.0};
  settings.is_continuous = {0.0};
  settings.ramp_time = 0.5;
  settings.state_timeout = 0.1;
  settings.stale_hold_time = 1.0;
  settings.max_reference_step = 0.1;
  settings.max_following_error = 0.2;
  settings.damping = 5.0;
  settings.observer_gain = {30.0};
  settings.contact_dwell = 0.02;
  return settings;
}

// The same in an impedance mode.
inline robodyn::Settings soft_settings(robodyn::Mode mode, double factor = 1.0)
{
  robodyn::Settings soft = settings();
  soft.mode = mode;
  soft.impedance.stiffness = {50.0 * factor};
  const double along = 200.0 * factor, about = 10.0 * factor;
  soft.impedance.tip_stiffness = {along, along, along, about, about, about};
  soft.impedance.damping_ratio = 0.7;
  soft.impedance.tip_speed = 0.25;
  soft.impedance.tip_turn_rate = 0.5;
  soft.impedance.largest_force = 50.0;
  soft.impedance.largest_moment = 5.0;
  return soft;
}

// How far it yields to a torque then.
inline double yield_of(robodyn::Mode mode, double torque, double factor = 1.0)
{
  const robodyn::Settings soft = soft_settings(mode, factor);
  if (mode == robodyn::Mode::joint_impedance) { return torque / soft.impedance.stiffness[0]; }
  // Along the chord, and about the axis: both go with the sine.
  return std::asin(
    torque /
    (soft.impedance.tip_stiffness[0] * kLength * kLength + soft.impedance.tip_stiffness[4]));
}

// The pose of the bob at an angle: position, and orientation x, y, z, w.
inline robodyn::Vector3 place(double q)
{
  return {kLength * std::cos(q), 0.0, kLength * std::sin(q)};
}
inline std::array<double, 4> orientation(double q)
{
  return {0.0, -std::sin(0.5 * q), 0.0, std::cos(0.5 * q)};
}

}  // namespace pendulum

#endif  // PENDULUM_HPP_
