// SPDX-License-Identifier: Apache-2.0
// The processor time of update in a controller's loop, mode by mode; run by controller_update.py.
//
//     controller_update LIBRARY ROUNDS TICK
//
// Each tick [us] one controller has a cycle of 1 ms, along a motion with 1 mrad of error, or fixed
// arithmetic takes its turn. Prints a line for each: its name, then nanoseconds.
#include <dlfcn.h>
#include <time.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "robodyn_controllers/controller_logic.hpp"

namespace
{

constexpr double kPeriod = 0.001;  // s, of a cycle
constexpr long kWarmUp = 1000;     // rounds that do not count

// The defaults of the parameters, and friction compensation.
robodyn::Settings settings_of(const robodyn_model & arm, robodyn::Mode mode)
{
  const auto n = static_cast<std::size_t>(arm.joints);
  robodyn::Settings settings;
  settings.mode = mode;
  settings.kp.assign(n, 100.0);
  settings.kd.assign(n, 20.0);
  settings.terms.gravity_factor.assign(n, 1.0);
  settings.friction_velocity = 0.01;
  settings.soft_limit_width = 0.05;
  settings.impedance.stiffness.assign(n, 100.0);
  settings.impedance.nullspace_stiffness.assign(n, 10.0);
  settings.impedance.tip_stiffness = {400.0, 400.0, 400.0, 30.0, 30.0, 30.0};
  settings.impedance.damping_ratio = 0.7;
  settings.friction_compensation = 0.8;
  settings.friction_dead_zone = 0.002;
  settings.effort_limits.assign(arm.effort_limits, arm.effort_limits + n);
  settings.torque_rate_limit.assign(n, 1000.0);
  settings.braking_acceleration.assign(n, robodyn::kInfinity);
  settings.position_limits.assign(arm.position_limits, arm.position_limits + 2 * n);
  settings.velocity_limits.assign(arm.velocity_limits, arm.velocity_limits + n);
  settings.is_continuous.assign(n, 0.0);
  settings.ramp_time = 0.5;
  settings.state_timeout = 0.1;
  settings.stale_hold_time = 1.0;
  settings.max_reference_step = 0.1;
  settings.max_following_error = 0.2;
  settings.damping = 5.0;
  settings.impedance.tip_speed = 0.25;
  settings.impedance.tip_turn_rate = 0.5;
  settings.observer_gain.assign(n, 30.0);
  return settings;
}

double thread_time()
{
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double fixed_arithmetic(double x)
{
  for (int k = 0; k < 1500; ++k) { x = std::sqrt(x * x + 1.0) - 0.4; }
  return x;
}

}  // namespace

int main(int count, char ** words)
{
  if (count != 4) { return 2; }
  void * const handle = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  using Function = const robodyn_model * (*)();
  const auto function =
    handle ? reinterpret_cast<Function>(dlsym(handle, ROBODYN_MODEL_SYMBOL)) : nullptr;
  if (function == nullptr) { return 2; }
  const std::shared_ptr<const robodyn_model> arm(std::shared_ptr<void>(), function());
  const auto n = static_cast<std::size_t>(arm->joints);
  const long rounds = std::atol(words[2]), tick = 1000 * std::atol(words[3]);  // ns
  constexpr std::size_t modes = std::size(robodyn::kModeNames);
  std::vector<std::unique_ptr<robodyn_controllers::ControllerLogic>> controllers;
  for (std::size_t k = 0; k < modes; ++k) {
    controllers.push_back(std::make_unique<robodyn_controllers::ControllerLogic>());
    controllers[k]->configure(
      arm, settings_of(*arm, static_cast<robodyn::Mode>(k)), {}, robodyn::Vector(n, 1.0));
    controllers[k]->activate();
  }
  std::vector<std::vector<double>> taken(modes + 1);
  robodyn::Vector q(n), qd(n), reference(3 * n), command(n);
  double kept = 1.0;
  timespec wake;
  clock_gettime(CLOCK_MONOTONIC, &wake);
  for (long round = 0; round < kWarmUp + rounds; ++round) {
    for (std::size_t i = 0; i < n; ++i) {
      const double pace = 1.0 + 0.1 * static_cast<double>(i);  // rad/s
      const double phase = pace * kPeriod * static_cast<double>(round);
      const double middle = 0.5 * (arm->position_limits[2 * i] + arm->position_limits[2 * i + 1]);
      reference[i] = middle + 0.3 * std::sin(phase);
      reference[n + i] = 0.3 * pace * std::cos(phase);
      reference[2 * n + i] = -0.3 * pace * pace * std::sin(phase);
      q[i] = reference[i] - 0.001;
      qd[i] = reference[n + i];
    }
    for (std::size_t k = 0; k <= modes; ++k) {
      wake.tv_nsec += tick;
      wake.tv_sec += wake.tv_nsec / 1000000000;
      wake.tv_nsec %= 1000000000;
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, nullptr);
      const double begin = thread_time();
      if (k < modes) {
        controllers[k]->update(kPeriod, q.data(), qd.data(), reference.data(), command.data());
      } else {
        kept = fixed_arithmetic(kept);
      }
      const double end = thread_time();
      if (round >= kWarmUp) { taken[k].push_back(end - begin); }
    }
  }
  for (std::size_t k = 0; k <= modes; ++k) {
    const bool follows = k > 0 && k < modes;
    const auto & pipeline = controllers[k < modes ? k : 0]->pipeline();
    if (follows && pipeline.following() != robodyn::Following::moving) { return 3; }
    std::printf("%s", k < modes ? robodyn::kModeNames[k] : "fixed_arithmetic");
    for (const double each : taken[k]) { std::printf(" %.0f", each); }
    std::printf("\n");
  }
  return std::isfinite(kept) ? 0 : 1;
}
