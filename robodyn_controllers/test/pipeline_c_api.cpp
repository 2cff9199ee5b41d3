// SPDX-License-Identifier: Apache-2.0
// The command pipeline for a test in Python, which compares it with the Python pipeline; and a
// run of it on random inputs.
#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>

#include "robodyn_controllers/command_pipeline.hpp"

namespace rc = robodyn_controllers;

static std::uint64_t allocations = 0;

void * operator new(std::size_t size)
{
  ++allocations;
  if (void * const memory = std::malloc(size)) {return memory;}
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept {std::free(memory);}
void operator delete(void * memory, std::size_t) noexcept {std::free(memory);}

namespace
{

// Numbers one after the other, for each joint where it has several.
rc::LawSettings law_of(int n, int mode, const unsigned char * terms, const double * numbers)
{
  rc::LawSettings law;
  law.mode = static_cast<rc::Mode>(mode);
  law.terms = {terms[0] != 0, terms[1] != 0, terms[2] != 0, terms[3] != 0};
  law.friction_velocity = numbers[0];
  law.position_guard = numbers[1];
  law.kp.assign(numbers + 2, numbers + 2 + n);
  law.kd.assign(numbers + 2 + n, numbers + 2 + 2 * n);
  return law;
}

rc::SafetySettings safety_of(
  int n, int on_stale_state, int on_stop, const double * numbers, const double * vectors)
{
  rc::SafetySettings settings;
  settings.on_stale_state = static_cast<rc::Action>(on_stale_state);
  settings.on_stop = static_cast<rc::Action>(on_stop);
  settings.ramp_time = numbers[0];
  settings.state_timeout = numbers[1];
  settings.stale_hold_time = numbers[2];
  settings.max_reference_step = numbers[3];
  settings.max_following_error = numbers[4];
  settings.damping = numbers[5];
  settings.effort_limits.assign(vectors, vectors + n);
  settings.torque_rate_limits.assign(vectors + n, vectors + 2 * n);
  settings.braking_acceleration.assign(vectors + 2 * n, vectors + 3 * n);
  settings.velocity_limits.assign(vectors + 3 * n, vectors + 4 * n);
  settings.is_continuous.assign(vectors + 4 * n, vectors + 5 * n);
  settings.position_limits.assign(vectors + 5 * n, vectors + 7 * n);
  return settings;
}

rc::CommandPipeline * of(void * pipeline) {return static_cast<rc::CommandPipeline *>(pipeline);}

}  // namespace

extern "C" {

void * pipeline_new(
  const robodyn_model * model, int mode, const unsigned char * terms, const double * law,
  int on_stale_state, int on_stop, const double * safety, const double * vectors)
{
  const int n = model->joints;
  return new rc::CommandPipeline(
    *model, law_of(n, mode, terms, law),
    safety_of(n, on_stale_state, on_stop, safety, vectors));
}
void pipeline_delete(void * pipeline) {delete of(pipeline);}
void pipeline_enable(void * pipeline, double now) {of(pipeline)->enable(now);}
void pipeline_disable(void * pipeline) {of(pipeline)->disable();}
void pipeline_begin_stop(void * pipeline) {of(pipeline)->begin_stop();}
int pipeline_has_stopped(void * pipeline) {return of(pipeline)->has_stopped();}
int pipeline_fault(void * pipeline) {return static_cast<int>(of(pipeline)->last_fault());}
int pipeline_following(void * pipeline) {return static_cast<int>(of(pipeline)->following());}
int pipeline_is_stale(void * pipeline) {return of(pipeline)->is_stale();}
int pipeline_change_load(void * pipeline, const double * load)
{
  return of(pipeline)->change_load(load);
}
void pipeline_change_law(
  void * pipeline, int mode, const unsigned char * terms, const double * numbers)
{
  const int n = of(pipeline)->model().joints();
  of(pipeline)->change_law(law_of(n, mode, terms, numbers));
}

// No reference: NULL; else position, velocity, acceleration, effort one after the other.
int pipeline_update(
  void * pipeline, double now, const double * q, const double * qd, const double * wanted,
  double * torque)
{
  const int n = of(pipeline)->model().joints();
  robodyn_reference reference{nullptr, nullptr, nullptr, nullptr};
  if (wanted != nullptr) {
    reference = {wanted, wanted + n, wanted + 2 * n, wanted + 3 * n};
  }
  const bool has_command = of(pipeline)->update(now, q, qd, reference);
  for (int i = 0; i < n; ++i) {torque[i] = of(pipeline)->torque()[static_cast<std::size_t>(i)];}
  return has_command;
}

int pipeline_stop_command(void * pipeline, double now, double * torque)
{
  const int n = of(pipeline)->model().joints();
  const bool has_command = of(pipeline)->stop_command(now);
  for (int i = 0; i < n; ++i) {torque[i] = of(pipeline)->torque()[static_cast<std::size_t>(i)];}
  return has_command;
}

// Run it on so many random inputs; return how many commands there were, or minus one plus minus
// the number of the input after which a torque was not finite, past its limit, or further from
// the last one than the rate limit allows, or at which memory was allocated.
std::int64_t pipeline_random_inputs(
  void * given, std::int64_t count, std::uint64_t seed, const double * effort_limits,
  const double * rate_limits, double state_timeout, double * largest_step)
{
  rc::CommandPipeline & pipeline = *of(given);
  const auto n = static_cast<std::size_t>(pipeline.model().joints());
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const double wild[] = {
    rc::kNaN, rc::kInfinity, -rc::kInfinity, 1e308, -1e308, 1e9, -1e9, 5e-324, 0.0, 3.0, -3.0};
  const auto pick = [&](int sides) {return static_cast<int>(generator() % sides);};
  std::vector<double> q(n), qd(n), wanted(4 * n), last(n);
  std::vector<rc::LawSettings> laws;
  for (int mode = 0; mode < 3; ++mode) {
    rc::LawSettings law;
    law.mode = static_cast<rc::Mode>(mode);
    law.kp.assign(n, 100.0 * (mode + 1));
    law.kd.assign(n, 20.0 * (mode + 1));
    law.terms.friction = mode != 1;
    laws.push_back(law);
  }
  std::vector<std::vector<double>> loads(3, std::vector<double>(pipeline.model().load_size()));
  const robodyn_payload payloads[] = {{0.0, {}, {}}, {1.0, {0.1, 0.0, 0.0}, {}}, {60.0, {}, {}}};
  for (std::size_t k = 0; k < 3; ++k) {
    pipeline.model().model().make_load(&payloads[k], nullptr, loads[k].data());
  }
  double given_time = 1.0, now = 1.0, sent = -rc::kInfinity;  // time may go back, and now does not
  bool has_last = false, may_begin_anew = true;
  std::int64_t commands = 0;
  *largest_step = 0.0;
  const std::uint64_t before = allocations;
  for (std::int64_t k = 0; k < count; ++k) {
    given_time += pick(200) == 0 ? uniform(generator) : 0.001 * (1.0 + uniform(generator));
    now = std::fmax(now, given_time);
    if (pick(500) == 0) {
      for (double & each : q) {each = 3.0 * uniform(generator);}
      std::fill(qd.begin(), qd.end(), 0.0);
    }
    const double restless = pick(3) == 0 ? 3.0 : 0.1;
    for (std::size_t i = 0; i < n; ++i) {
      if (!std::isfinite(q[i]) || std::fabs(q[i]) > 4.0) {q[i] = uniform(generator);}
      if (!std::isfinite(qd[i]) || std::fabs(qd[i]) > 4.0) {qd[i] = 0.0;}
      qd[i] += 0.05 * restless * uniform(generator);
      q[i] += 0.001 * qd[i];
      wanted[i] = q[i] + 0.05 * restless * uniform(generator);
      for (std::size_t part = 1; part < 4; ++part) {
        wanted[part * n + i] = restless * uniform(generator);
      }
    }
    if (pick(20) == 0) {q[static_cast<std::size_t>(pick(static_cast<int>(n)))] = wild[pick(11)];}
    if (pick(20) == 0) {qd[static_cast<std::size_t>(pick(static_cast<int>(n)))] = wild[pick(11)];}
    if (pick(20) == 0) {
      wanted[static_cast<std::size_t>(pick(4 * static_cast<int>(n)))] = wild[pick(11)];
    }
    robodyn_reference reference{
      wanted.data(), wanted.data() + n, wanted.data() + 2 * n, wanted.data() + 3 * n};
    if (pick(300) == 0 || (k / 700) % 3 == 0) {reference = {nullptr, nullptr, nullptr, nullptr};}
    if ((k / 400) % 5 == 0) {std::fill(q.begin(), q.end(), rc::kNaN);}  // stale
    if (pick(300) == 0) {
      const auto law = static_cast<std::size_t>(pick(3));
      const std::uint64_t here = allocations;
      pipeline.change_law(laws[law]);
      if (allocations != here) {return -1 - k;}
    }
    if (pick(300) == 0) {pipeline.change_load(loads[static_cast<std::size_t>(pick(3))].data());}
    if (pick(2000) == 0) {
      pipeline.disable();
      may_begin_anew = true;
    }
    if (pick(50) == 0) {pipeline.enable(given_time);}
    if (pick(5000) == 0) {pipeline.begin_stop();}
    const bool is_stop = pipeline.is_stopping() && pipeline.has_stopped();
    const bool has_command = is_stop ?
      pipeline.stop_command(given_time) : pipeline.update(given_time, q.data(), qd.data(), reference);
    const bool is_over = is_stop && pipeline.is_stop_command_sent();
    if (is_over) {pipeline.disable();}
    if (!has_command) {
      may_begin_anew |= is_over;
      continue;
    }
    ++commands;
    const double elapsed = std::fmin(std::fmax(now - sent, 1e-9), 0.01);
    const bool is_new = !has_last || (may_begin_anew && now - sent >= state_timeout);
    for (std::size_t i = 0; i < n; ++i) {
      const double torque = pipeline.torque()[i];
      if (!(std::fabs(torque) <= effort_limits[i])) {return -1 - k;}
      const double step = std::fabs(torque - last[i]);
      if (!is_new && !(step <= rate_limits[i] * elapsed + 1e-9)) {return -1 - k;}
      if (!is_new && step > *largest_step) {*largest_step = step;}
      last[i] = torque;
    }
    has_last = true;
    may_begin_anew = is_over;
    sent = now;
  }
  return allocations == before ? commands : -1;
}

}  // extern "C"
