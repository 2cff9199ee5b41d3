// SPDX-License-Identifier: Apache-2.0
// The core without Python on random inputs. Each command is checked: its torque is finite, within
// the effort limits and the rate limits. An allocation in a cycle ends the program.
//
//     random_inputs LIBRARY COUNT SEED ACTION
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <new>
#include <random>
#include <vector>

#include "robodyn_controllers/controller_logic.hpp"
#include "robodyn_ros/core/contact.hpp"
#include "robodyn_ros/core/tip_wrench.hpp"

namespace rd = robodyn;

static bool may_allocate = true;

// Inlined, GCC takes free for the wrong counterpart of new.
[[gnu::noinline]] void * operator new(std::size_t size)
{
  if (!may_allocate) {
    std::fputs("memory is allocated in a cycle\n", stderr);
    std::abort();
  }
  if (void * const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void * memory) noexcept
{
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void * memory, std::size_t) noexcept
{
  std::free(memory);
}

namespace
{

// Nothing may allocate while one of these lives.
struct Cycle
{
  Cycle() { may_allocate = false; }
  ~Cycle() { may_allocate = true; }
};

// --- checks of a command ------------------------------------------------------------------------

class Judge
{
public:
  explicit Judge(std::size_t joints) : last_(joints) {}

  // A stream of commands ends: after a pause the next one need not continue it.
  void end() { may_begin_anew_ = true; }

  void judge(const rd::Vector & torque, const rd::Settings & settings, double now)
  {
    const bool is_new = !has_last_ || (may_begin_anew_ && now - sent_ >= settings.state_timeout);
    const double elapsed = std::min(std::max(now - sent_, 1e-9), 0.01);
    for (std::size_t i = 0; i < torque.size(); ++i) {
      // Where limits were lowered, a torque beyond them may only shrink.
      const double before = is_new ? 0.0 : std::fabs(last_[i]);
      check(i, "limit", std::fabs(torque[i]), std::max(settings.effort_limits[i], before));
      const double step = is_new ? 0.0 : std::fabs(torque[i] - last_[i]);
      check(i, "rate limit", step, settings.torque_rate_limit[i] * elapsed + 1e-9);
    }
    last_ = torque;
    has_last_ = true;
    may_begin_anew_ = false;
    sent_ = std::max(sent_, now);
    ++commands_;
  }

  long commands() const { return commands_; }

private:
  void check(std::size_t joint, const char * what, double value, double limit) const
  {
    if (value <= limit) { return; }  // false for NaN
    std::fprintf(
      stderr, "command %ld, joint %zu: %.17g is beyond the %s, %.17g\n", commands_, joint, value,
      what, limit);
    std::exit(1);
  }

  rd::Vector last_;
  bool has_last_ = false, may_begin_anew_ = true;
  double sent_ = -rd::kInfinity;
  long commands_ = 0;
};

// --- inputs -------------------------------------------------------------------------------------

struct Chance
{
  std::mt19937_64 generator;
  std::uniform_real_distribution<double> distribution{-1.0, 1.0};

  double uniform() { return distribution(generator); }
  std::size_t among(std::size_t count) { return generator() % count; }
  bool one_in(std::size_t count) { return among(count) == 0; }
};

rd::Settings settings_of(const robodyn_model & library, rd::Action action)
{
  const auto n = static_cast<std::size_t>(library.joints);
  rd::Settings settings;
  settings.effort_limits.assign(library.effort_limits, library.effort_limits + n);
  settings.torque_rate_limit.assign(n, 1000.0);
  settings.braking_acceleration.assign(n, rd::kInfinity);
  settings.velocity_limits.assign(library.velocity_limits, library.velocity_limits + n);
  settings.position_limits.assign(library.position_limits, library.position_limits + 2 * n);
  settings.is_continuous.assign(n, 0.0);
  settings.ramp_time = 0.5;
  settings.state_timeout = 0.1;
  settings.stale_hold_time = 1.0;
  settings.max_reference_step = 0.1;
  settings.max_following_error = 0.2;
  settings.damping = 5.0;
  settings.impedance.tip_speed = 0.25;
  settings.impedance.tip_turn_rate = 0.5;
  settings.on_stale_state = settings.on_stop = action;
  for (double & limit : settings.effort_limits) {
    if (!std::isfinite(limit)) { limit = 50.0; }
  }
  return settings;
}

long run_random(const robodyn_model & library, long count, std::uint64_t seed, rd::Action action)
{
  const auto n = static_cast<std::size_t>(library.joints);
  Chance chance{std::mt19937_64(seed)};
  const double wild[] = {
    rd::kNaN, rd::kInfinity, -rd::kInfinity, 1e308, -1e308, 1e9, -1e9, 5e-324, 0.0, 3.0, -3.0};
  constexpr std::size_t modes = std::size(rd::kModeNames);
  const rd::Settings settings = settings_of(library, action);
  std::vector<rd::Settings> laws(modes, settings);
  for (std::size_t k = 0; k < modes; ++k) {
    laws[k].mode = static_cast<rd::Mode>(k);
    laws[k].kp.assign(n, 100.0 * static_cast<double>(k + 1));
    laws[k].kd.assign(n, 20.0 * static_cast<double>(k + 1));
    laws[k].terms.friction = k != 1;
    laws[k].terms.gravity_factor.assign(n, k == 3 ? 0.5 : 1.0);
    laws[k].friction_velocity = 0.01;
    laws[k].soft_limit_width = 0.05;
    laws[k].impedance.stiffness.assign(n, 50.0);
    laws[k].impedance.nullspace_stiffness.assign(n, 5.0);
    laws[k].impedance.tip_stiffness = {400.0, 400.0, 800.0, 20.0, 0.0, 30.0};
    laws[k].wrench_point = {0.0, 0.1, 0.0};
    laws[k].impedance.damping_ratio = 0.7;
    laws[k].friction_compensation = 0.8;
    laws[k].friction_dead_zone = 0.002;
  }
  const robodyn_payload payloads[] = {
    {0.0, {}, {}, 0}, {1.0, {0.1, 0.0, 0.0}, {}, 0}, {60.0, {}, {}, 0}};
  std::vector<rd::Vector> loads(3, robodyn_controllers::first_load(library));
  for (std::size_t k = 0; k < 3; ++k) {
    library.make_load(&payloads[k], nullptr, loads[k].data());
  }
  const rd::Model model = robodyn::core_model(library);
  rd::ArmRuntime pipeline(model, loads[0].data(), laws[2]);
  rd::ObserverSettings observed;
  observed.gain.assign(n, 30.0);
  rd::LoadedModel observed_model(model, loads[0].data());
  rd::MomentumObserver observer(observed_model, observed);
  rd::ContactDetector detector(n, {rd::Vector(n, 1.0), rd::Vector(n, 2.0)});
  rd::TipWrench wrench(n);
  Judge judge(n);
  rd::Vector q(n), qd(n), desired(4 * n), jacobian(6 * n), pose(16);
  const rd::Vector deviation(n, 0.1);
  const double point[] = {0.0, 0.0, 0.1};
  double given_time = 1.0, now = 1.0;  // time may go back, and now does not
  for (long k = 0; k < count; ++k) {
    const Cycle cycle;
    given_time += chance.one_in(200) ? chance.uniform() : 0.001 * (1.0 + chance.uniform());
    now = std::fmax(now, given_time);
    if (chance.one_in(500)) {
      for (double & each : q) { each = 3.0 * chance.uniform(); }
      std::fill(qd.begin(), qd.end(), 0.0);
    }
    const double restless = chance.one_in(3) ? 3.0 : 0.1;
    for (std::size_t i = 0; i < n; ++i) {
      if (!(std::fabs(q[i]) <= 4.0)) { q[i] = chance.uniform(); }
      if (!(std::fabs(qd[i]) <= 4.0)) { qd[i] = 0.0; }
      qd[i] += 0.05 * restless * chance.uniform();
      q[i] += 0.001 * qd[i];
      desired[i] = q[i] + 0.05 * restless * chance.uniform();
      for (std::size_t part = 1; part < 4; ++part) {
        desired[part * n + i] = restless * chance.uniform();
      }
    }
    if (chance.one_in(20)) { q[chance.among(n)] = wild[chance.among(11)]; }
    if (chance.one_in(20)) { qd[chance.among(n)] = wild[chance.among(11)]; }
    if (chance.one_in(20)) { desired[chance.among(4 * n)] = wild[chance.among(11)]; }
    const bool has_desired = !chance.one_in(300) && (k / 700) % 3 != 0;
    if ((k / 400) % 5 == 0) { std::fill(q.begin(), q.end(), rd::kNaN); }  // stale
    if (chance.one_in(300)) { pipeline.change_settings(laws[chance.among(modes)]); }
    if (chance.one_in(100)) {
      const rd::Quaternion turn =
        rd::Quaternion::about({chance.uniform(), chance.uniform(), 3.0 * chance.uniform()});
      pipeline.aim_tip({{chance.uniform(), chance.uniform(), chance.uniform()}, turn});
    }
    if (chance.one_in(100)) {
      pipeline.add_wrench({20.0 * chance.uniform(), 0.0, 5.0}, given_time);
    }
    if (chance.one_in(300)) {
      const rd::Vector & load = loads[chance.among(3)];
      if (pipeline.overload(load.data()).cause == rd::Cause::none) {
        pipeline.change_load(load.data());
        observed_model.change(model, load.data(), 0.0);
      }
    }
    if (chance.one_in(1000)) {
      pipeline.react_to_contact(static_cast<rd::ContactAction>(chance.among(3)));
    }
    if (chance.one_in(2000)) {
      pipeline.disable();
      judge.end();
    }
    if (chance.one_in(50)) { pipeline.enable(given_time); }
    if (chance.one_in(5000)) { pipeline.begin_stop(); }
    const double * const w = desired.data();
    const rd::Setpoint setpoint =
      has_desired ? rd::Setpoint{w, w + n, w + 2 * n, w + 3 * n} : rd::Setpoint{};
    const bool is_stop = pipeline.is_stopping() && pipeline.has_stopped();
    const bool has_command =
      is_stop
        ? pipeline.stop_command(given_time)
        : pipeline.update(given_time, q.data(), qd.data(), setpoint, library.possible_positions);
    if (has_command) { judge.judge(pipeline.torque(), settings, now); }
    if (is_stop && (!has_command || pipeline.is_stop_command_sent())) {
      pipeline.disable();
      judge.end();
    }
    const double * const torque = pipeline.torque().data();
    if (observer.update(observed_model, q.data(), qd.data(), torque, given_time)) {
      detector.update(qd.data(), observer.torque().data(), given_time);
      library.forward_kinematics(0, q.data(), pose.data());
      library.jacobian(0, q.data(), jacobian.data());
      wrench.update(
        pose.data(), jacobian.data(), point, observer.torque().data(), deviation.data());
    }
  }
  return judge.commands();
}

}  // namespace

int main(int count, char ** words)
{
  if (count != 5) { return 2; }
  void * const handle = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  using Function = const robodyn_model * (*)();
  const auto function =
    handle ? reinterpret_cast<Function>(dlsym(handle, ROBODYN_MODEL_SYMBOL)) : nullptr;
  if (function == nullptr) {
    std::fputs(dlerror(), stderr);
    return 2;
  }
  const auto action = static_cast<rd::Action>(std::atoi(words[4]));
  const std::uint64_t seed = std::strtoull(words[3], nullptr, 10);
  std::printf("%ld\n", run_random(*function(), std::atol(words[2]), seed, action));
  return 0;
}
