// SPDX-License-Identifier: Apache-2.0
// The core for Python: arrays in, arrays out; the arm's model as its library or Python callables.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../compiled/c/robodyn_model.h"
#include "arm_runtime.hpp"
#include "contact.hpp"
#include "joint_states.hpp"
#include "path_timing.hpp"
#include "tip_wrench.hpp"
#include "words.hpp"

#ifndef ROBODYN_SOURCES
#error "setup.py defines the digest of the sources"
#endif

namespace py = pybind11;
namespace rd = robodyn;

namespace
{

using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Numbers = const double *;
using Xyzw = std::array<double, 4>;  // x, y, z, w

rd::Quaternion turn_of(const Xyzw & xyzw)
{
  return {xyzw[3], {xyzw[0], xyzw[1], xyzw[2]}};
}

Xyzw quaternion_of(const rd::Pose & pose)
{
  return {pose.turn.v[0], pose.turn.v[1], pose.turn.v[2], pose.turn.w};
}

constexpr const char * kModel = "robodyn_ros.model";  // of a capsule of the wrapper

py::array_t<double> array_of(const rd::Vector & values)
{
  return py::array_t<double>(static_cast<py::ssize_t>(values.size()), values.data());
}

py::array_t<double> rows_of(const rd::Vector & values, std::size_t rows)
{
  const auto shape = std::vector<std::size_t>{rows, values.size() / rows};
  return py::array_t<double>(shape, values.data());
}

py::array_t<bool> flags_of(const std::vector<unsigned char> & flags)
{
  py::array_t<bool> array(static_cast<py::ssize_t>(flags.size()));
  std::copy(flags.begin(), flags.end(), array.mutable_data());
  return array;
}

Numbers numbers_of(const Array & array, std::size_t size, const char * name)
{
  if (static_cast<std::size_t>(array.size()) != size) {
    throw py::value_error(
      std::string(name) + ": " + std::to_string(array.size()) +
      " numbers; allowed: " + std::to_string(size));
  }
  return array.data();
}

// --- joint states -------------------------------------------------------------------------------

py::array_t<double> array_of(const rd::PackedNumbers & numbers)
{
  py::array_t<double> array(static_cast<py::ssize_t>(numbers.size()));
  numbers.copy(array.mutable_data());
  return array;
}

// Return a text of anybody.
py::object decoded(std::string_view text)
{
  const auto size = static_cast<py::ssize_t>(text.size());
  return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(text.data(), size, "replace"));
}

// Return what is wrong as text, or None.
py::object text_of(const rd::Fault & fault)
{
  return fault ? py::object(py::str(rd::words_of(fault, {}, {}).text())) : py::none();
}

// Return the stamp, names, positions, velocities and efforts of a serialized joint state, or why it
// is none.
py::object read_joint_state(const py::bytes & content)
{
  rd::JointStateMessage message;
  const rd::Fault fault = rd::read_joint_state(content, message);
  if (fault) { return py::cast(fault); }
  py::tuple names(message.names.size());
  for (std::size_t k = 0; k < names.size(); ++k) { names[k] = decoded(message.names[k]); }
  return py::make_tuple(
    message.sec, message.nanosec, names, array_of(message.position), array_of(message.velocity),
    array_of(message.effort));
}

// Take a message as arrays; what is wrong with it as text, or None.
py::object receive(
  rd::JointStates & states, const py::sequence & joints, const Array & position,
  const Array & velocity, double received, double stamp, double age, const Array & effort)
{
  const auto packed = [](const Array & array) {
    return rd::PackedNumbers(array.data(), static_cast<std::size_t>(array.size()));
  };
  rd::JointStateMessage message;
  message.position = packed(position);
  message.velocity = packed(velocity);
  message.effort = packed(effort);
  const py::tuple names(joints);
  for (const py::handle name : names) { message.names.push_back(name.cast<std::string_view>()); }
  return text_of(states.receive(message, received, stamp, age));
}

// Return the complete state as position, velocity, time, whether that is a stamp, effort or None,
// and the velocity's lag; start to collect the next one.
py::tuple take(rd::JointStates & states)
{
  states.take();
  return py::make_tuple(
    array_of(states.position()), array_of(states.velocity()), states.time(), states.is_stamped(),
    states.has_effort() ? py::object(array_of(states.effort())) : py::none(), states.lag());
}

// --- the arm ------------------------------------------------------------------------------------

// An arm under a load: its library and the load's numbers, or functions of Python, which have a
// load of their own.
class Arm
{
public:
  Arm(const py::capsule & library, const rd::Vector & load)
  : model_(rd::core_model(*static_cast<const robodyn_model *>(library.get_pointer<void>()))),
    load_(load)
  {
    if (std::string(library.name()) != kModel || load.size() != model_.load_size) {
      throw py::value_error("an arm: a library, and as many numbers as its load has");
    }
  }

  // Pose and Jacobian of the tip are functions of the position; both, or neither.
  Arm(
    std::size_t joints, py::object inverse_dynamics, py::object friction, py::object not_finite,
    std::optional<py::object> pose, std::optional<py::object> jacobian, double reach,
    const std::optional<Array> & coupling)
  : inverse_dynamics_(std::move(inverse_dynamics)),
    friction_(std::move(friction)),
    not_finite_(std::move(not_finite))
  {
    if (coupling) {
      if (coupling->ndim() != 2 || static_cast<std::size_t>(coupling->shape(1)) != joints) {
        throw py::value_error("coupling: one number for each joint in each row");
      }
      coupling_.assign(coupling->data(), coupling->data() + coupling->size());
    }
    if (joints == 0) { throw py::value_error("an arm has joints"); }
    model_.joints = joints;
    model_.self = this;
    model_.reach = reach;
    model_.coupled = coupling_.size() / joints;
    model_.coupling = coupling_.data();
    model_.inverse_dynamics = [](
                                void * self, Numbers, std::size_t rows, Numbers q, Numbers qd,
                                Numbers qdd, double * tau) {
      Arm & arm = *static_cast<Arm *>(self);
      const std::size_t n = arm.joints();
      const std::array in{q, qd, qdd};
      return arm.call(arm.inverse_dynamics_, rows, in, {n, n, n}, tau, rows * n);
    };
    model_.friction_torque =
      [](void * self, Numbers qd, Numbers direction, Numbers rigid_torque, double * tau) {
        Arm & arm = *static_cast<Arm *>(self);
        const std::size_t n = arm.joints(), drives = n + arm.model_.coupled;
        const std::array in{qd, direction, rigid_torque};
        return arm.call(arm.friction_, 1, in, {n, drives, n}, tau, n);
      };
    if (!pose || !jacobian) { return; }
    pose_ = std::move(*pose);
    jacobian_ = std::move(*jacobian);
    model_.forward_kinematics = [](void * self, Numbers q, double * to) {
      Arm & arm = *static_cast<Arm *>(self);
      return arm.call(arm.pose_, 1, std::array{q}, {arm.joints()}, to, 16);
    };
    model_.jacobian = [](void * self, Numbers q, double * to) {
      Arm & arm = *static_cast<Arm *>(self);
      return arm.call(arm.jacobian_, 1, std::array{q}, {arm.joints()}, to, 6 * arm.joints());
    };
  }

  Arm(const Arm &) = delete;
  Arm & operator=(const Arm &) = delete;

  std::size_t joints() const { return model_.joints; }
  bool is_of_python() const { return model_.self == this; }
  const rd::Model & model() const { return model_; }
  Numbers load() const { return load_.data(); }

  // Raise the exception that a callable raised in a call of the core.
  void raise()
  {
    if (error_) { std::rethrow_exception(std::exchange(error_, nullptr)); }
  }

private:
  // Call a function of some rows of so many numbers, whose result has a size.
  template <std::size_t count>
  bool call(
    const py::object & function, std::size_t rows, const std::array<Numbers, count> & in,
    const std::array<std::size_t, count> & widths, double * result, std::size_t size)
  {
    if (error_) { return false; }
    try {
      py::tuple arguments(count);
      for (std::size_t k = 0; k < count; ++k) {
        arguments[k] = Array(std::vector<std::size_t>{rows, widths[k]}, in[k]);
      }
      const Array given = function(*arguments);
      std::copy_n(numbers_of(given, size, "a result of the model"), size, result);
      return true;
    } catch (py::error_already_set & error) {
      if (!error.matches(not_finite_)) { error_ = std::current_exception(); }
    } catch (...) {
      error_ = std::current_exception();
    }
    return false;
  }

  rd::Model model_;
  rd::Vector load_;
  py::object inverse_dynamics_, friction_, pose_, jacobian_;
  py::object not_finite_;  // the exception for numbers that are not finite
  rd::Vector coupling_;
  std::exception_ptr error_;
};

// --- the pipeline -------------------------------------------------------------------------------

// Return the name that a parameter has as a member of a record in Python.
std::string member_name(std::string name)
{
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

// Return the settings that a record has as members, and what the arm gives.
rd::Settings settings_of(
  const py::object & record, const rd::Vector & position_limits,
  const rd::Vector & velocity_limits, const rd::Vector & is_continuous)
{
  rd::Settings settings;
  const auto read = [&record](const char * name, auto & to) {
    const py::object value = record.attr(member_name(name).c_str());
    using To = std::decay_t<decltype(to)>;
    if constexpr (std::is_enum_v<To>) {
      rd::set_named(name, to, value.cast<std::string>());
    } else {
      to = value.cast<To>();
    }
  };
  rd::for_each_setting(read, settings);
  read("is_braked_by_damping", settings.is_braked_by_damping);
  settings.position_limits = position_limits;
  settings.velocity_limits = velocity_limits;
  settings.is_continuous = is_continuous;
  return settings;
}

rd::ReferenceState reference_of(const Array & rows, std::size_t joints)
{
  Numbers const values = numbers_of(rows, 4 * joints, "a state of a reference");
  rd::ReferenceState state(joints);
  rd::Vector * const parts[] = {
    &state.position, &state.velocity, &state.acceleration, &state.effort};
  for (std::size_t k = 0; k < 4; ++k) {
    std::copy_n(values + k * joints, joints, parts[k]->begin());
  }
  return state;
}

py::array_t<double> rows_of(const rd::ReferenceState & state)
{
  const std::size_t n = state.position.size();
  py::array_t<double> rows(std::vector<std::size_t>{4, n});
  const rd::Vector * const parts[] = {
    &state.position, &state.velocity, &state.acceleration, &state.effort};
  for (std::size_t k = 0; k < 4; ++k) {
    std::copy(parts[k]->begin(), parts[k]->end(), rows.mutable_data(static_cast<py::ssize_t>(k)));
  }
  return rows;
}

std::shared_ptr<rd::Motion> motion_of(
  const rd::Vector & knots, const Array & coefficients, const Array & efforts,
  const Array & start, const Array & end, std::shared_ptr<rd::Motion> before)
{
  const std::size_t joints = static_cast<std::size_t>(start.size()) / 4;
  if (knots.empty() || joints == 0) { throw py::value_error("a motion has a knot and joints"); }
  auto motion = std::make_shared<rd::Motion>(joints);
  const std::size_t size = (knots.size() - 1) * rd::kCoefficients * joints;
  Numbers const c = numbers_of(coefficients, size, "coefficients of a motion");
  Numbers const e = numbers_of(efforts, knots.size() * joints, "efforts of a motion");
  motion->knots = knots;
  motion->coefficients.assign(c, c + size);
  motion->efforts.assign(e, e + efforts.size());
  motion->start = reference_of(start, joints);
  motion->end = reference_of(end, joints);
  motion->before = std::move(before);
  return motion;
}

py::array_t<double> sample(const rd::Motion & motion, double time)
{
  rd::ReferenceState state(motion.joints());
  motion.sample(time, state);
  return rows_of(state);
}

// Return the motion that applies at a time, without motions that are over by then.
std::shared_ptr<rd::Motion> followed_at(const std::shared_ptr<rd::Motion> & motion, double time)
{
  if (!motion->before) { return motion; }
  if (time < motion->knots.front()) {
    return followed_at(std::const_pointer_cast<rd::Motion>(motion->before), time);
  }
  auto later = std::make_shared<rd::Motion>(*motion);
  later->before.reset();
  return later;
}

// Return the coefficients (k - 1, 6, n) between k states (3, k, n) of position, velocity and
// acceleration.
py::array_t<double> segments(const Array & states, const Array & durations)
{
  if (states.ndim() != 3 || states.shape(0) != 3 || durations.size() != states.shape(1) - 1) {
    throw py::value_error("segments: allowed: states (3, k, n) and k - 1 durations");
  }
  const auto count = static_cast<std::size_t>(durations.size());
  const auto n = static_cast<std::size_t>(states.shape(2));
  py::array_t<double> result(std::vector<std::size_t>{count, rd::kCoefficients, n});
  Numbers const p = states.data(), v = p + (count + 1) * n, a = v + (count + 1) * n;
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t from = k * n + i, to = from + n;
      rd::make_segment(
        {p[from], v[from], a[from]}, {p[to], v[to], a[to]}, durations.data()[k], n,
        result.mutable_data() + k * rd::kCoefficients * n + i);
    }
  }
  return result;
}

// Return controllable ranges (N + 1, 2) and x (N + 1) of the fastest timing under the rows (N, m)
// of N intervals, and the grid point that leads nowhere, N where there is none.
py::tuple fastest_timing(
  const Array & alpha, const Array & beta, const Array & bound, const rd::Vector & highest,
  double begin, std::pair<double, double> end)
{
  if (alpha.ndim() != 2 || highest.size() != static_cast<std::size_t>(alpha.shape(0)) + 1) {
    throw py::value_error("fastest_timing: allowed: rows (N, m) and N + 1 numbers");
  }
  const auto size = static_cast<std::size_t>(alpha.size());
  Numbers const a = alpha.data();
  Numbers const b = numbers_of(beta, size, "beta");
  Numbers const most = numbers_of(bound, size, "bound");
  std::vector<rd::TimingRow> rows(size);
  for (std::size_t k = 0; k < size; ++k) { rows[k] = {a[k], b[k], most[k]}; }
  const auto count = static_cast<std::size_t>(alpha.shape(1));
  rd::PathTiming timing;
  {
    const py::gil_scoped_release released;
    timing = rd::fastest_timing(std::move(rows), count, highest, begin, {end.first, end.second});
  }
  rd::Vector ranges;
  for (const rd::Range & range : timing.controllable) {
    ranges.push_back(range.lowest);
    ranges.push_back(range.highest);
  }
  return py::make_tuple(
    rows_of(ranges, timing.controllable.size()), array_of(timing.x), timing.failed);
}

class Runtime
{
public:
  Runtime(std::shared_ptr<Arm> arm, const rd::Settings & settings)
  : arm_(std::move(arm)), core_(arm_->model(), arm_->load(), checked(settings))
  {
  }

  rd::ArmRuntime & core() { return core_; }

  void change_settings(const rd::Settings & settings)
  {
    core_.change_settings(checked(settings));
    raise();
  }

  // Change the load, unless gravity under it would exceed an effort limit; return that fault. The
  // load may be in other code of the same arm.
  rd::Fault change_load(const std::shared_ptr<Arm> & arm, bool is_checked)
  {
    if (arm->joints() != core_.joints()) { throw py::value_error("an arm of other joints"); }
    const rd::Fault fault = is_checked ? core_.overload(arm->model(), arm->load()) : rd::Fault{};
    if (fault.cause == rd::Cause::none) {
      core_.change_load(arm->model(), arm->load());
      others_.push_back(std::exchange(arm_, arm));
      const rd::LoadedModel & model = core_.state().model;
      others_.erase(
        std::remove_if(
          others_.begin(), others_.end(),
          [&model](const std::shared_ptr<Arm> & other) {
            return !other->is_of_python() || !model.uses(other->model());
          }),
        others_.end());
    }
    raise();
    arm->raise();
    return fault;
  }

  void continue_from(const Array & torque, double sent)
  {
    core_.continue_from(numbers_of(torque, core_.joints(), "torque"), sent);
    raise();
  }

  py::object step(
    const Array & position, const Array & velocity, double time, bool is_stamped, double now,
    double simulated, const std::optional<Array> & added, double lag)
  {
    const std::size_t n = core_.joints();
    const bool has_command = core_.step(
      numbers_of(position, n, "position"), numbers_of(velocity, n, "velocity"), time, is_stamped,
      {now, simulated}, added ? numbers_of(*added, n, "added effort") : nullptr, lag);
    return command(has_command);
  }

  py::object watchdog(
    double now, bool has_stale_joint, double simulated, const std::optional<Array> & added)
  {
    return command(core_.watchdog(
      {now, simulated}, has_stale_joint,
      added ? numbers_of(*added, core_.joints(), "added effort") : nullptr));
  }

  py::object update(
    double now, const Array & position, const Array & velocity,
    const std::optional<Array> & desired, const Array & possible)
  {
    const std::size_t n = core_.joints();
    rd::Setpoint setpoint;
    if (desired) {
      Numbers const rows = numbers_of(*desired, 4 * n, "setpoint");
      setpoint = {rows, rows + n, rows + 2 * n, rows + 3 * n};
    }
    return command(core_.update(
      now, numbers_of(position, n, "position"), numbers_of(velocity, n, "velocity"), setpoint,
      numbers_of(possible, 2 * n, "possible positions")));
  }

  py::object stop_command(double now) { return command(core_.stop_command(now)); }

  // Call a method without arguments and result, and raise what a callable raised in it.
  template <void (rd::ArmRuntime::*Function)()>
  void call()
  {
    (core_.*Function)();
    raise();
  }

  void react_to_contact(rd::ContactAction action)
  {
    core_.react_to_contact(action);
    raise();
  }

private:
  // Return settings, if their sizes are what the core relies on.
  const rd::Settings & checked(const rd::Settings & settings) const
  {
    if (const char * const name = rd::wrongly_sized(settings, arm_->joints())) {
      throw py::value_error(std::string(name) + " of another number of joints");
    }
    return settings;
  }

  // Return the command as a tuple: the torque; which joints' torque the effort, the rate and the
  // position limits changed; whether any did; the parts (6, n) and the reference (4, n), or None
  // for these two.
  py::object command(bool has_command)
  {
    raise();
    if (!has_command) { return py::none(); }
    const std::size_t n = core_.joints();
    const bool has_parts = core_.has_parts();
    bool is_limited = core_.is_any_limited();
    py::array_t<bool> is_beyond(static_cast<py::ssize_t>(n));
    for (std::size_t i = 0; i < n; ++i) {
      const bool is_here = has_parts && core_.penetration()[i] != 0.0;
      is_beyond.mutable_data()[i] = is_here;
      is_limited |= is_here;
    }
    py::object parts = py::none(), desired = py::none();
    if (has_parts) { parts = rows_of(core_.parts(), rd::part::count); }
    if (has_parts && core_.has_desired()) { desired = rows_of(core_.desired()); }
    return py::make_tuple(
      array_of(core_.torque()), flags_of(core_.is_effort_limited()),
      flags_of(core_.is_rate_limited()), is_beyond, is_limited, parts, desired);
  }

  // Raise what a function of Python raised in a call of the core.
  void raise()
  {
    arm_->raise();
    for (const auto & other : others_) { other->raise(); }
  }

  std::shared_ptr<Arm> arm_;
  std::vector<std::shared_ptr<Arm>> others_;  // whose code a blend uses, too
  rd::ArmRuntime core_;
};

// --- external torques ---------------------------------------------------------------------------

class Observer
{
public:
  Observer(const std::shared_ptr<Arm> & arm, const rd::ObserverSettings & settings)
  : n_(arm->joints()),
    arm_(arm),
    model_(std::make_unique<rd::LoadedModel>(arm->model(), arm->load())),
    observer_(*model_, settings)
  {
    if (settings.gain.size() != n_) {
      throw py::value_error("observer gain: one for each joint");
    }
  }

  void change_arm(const std::shared_ptr<Arm> & arm)
  {
    auto model = std::make_unique<rd::LoadedModel>(arm->model(), arm->load());
    if (arm->joints() != n_ || model->drives() != model_->drives()) {
      throw py::value_error("an arm of another number of joints or drives");
    }
    arm_ = arm;
    model_ = std::move(model);
    observer_.reset();
  }

  py::object update(
    const Array & position, const Array & velocity, const Array & torque, double time)
  {
    const bool has_estimate = observer_.update(
      *model_, numbers_of(position, n_, "position"), numbers_of(velocity, n_, "velocity"),
      numbers_of(torque, n_, "torque"), time);
    arm_->raise();
    return has_estimate ? py::object(array_of(observer_.torque())) : py::none();
  }

  rd::MomentumObserver & core() { return observer_; }

private:
  const std::size_t n_;
  std::shared_ptr<Arm> arm_;
  std::unique_ptr<rd::LoadedModel> model_;
  rd::MomentumObserver observer_;
};

class Detector
{
public:
  Detector(const rd::ContactThresholds & thresholds)
  : n_(thresholds.moving.size()), detector_(n_, thresholds)
  {
    if (thresholds.stationary.size() != n_) { throw py::value_error("thresholds of two sizes"); }
  }

  rd::ContactEvent update(const Array & velocity, const Array & torque, double time)
  {
    return detector_.update(
      numbers_of(velocity, n_, "velocity"), numbers_of(torque, n_, "torque"), time);
  }

  rd::ContactDetector & core() { return detector_; }

private:
  const std::size_t n_;
  rd::ContactDetector detector_;
};

// Return the wrench (6) at a point of the tip link that explains torques, its deviation (6), and
// the directions (k, 6) that they do not determine.
py::tuple tip_wrench(
  const Array & pose, const Array & jacobian, const Array & point, const Array & torque,
  const Array & deviation)
{
  const auto n = static_cast<std::size_t>(torque.size());
  rd::TipWrench found(n);
  found.update(
    numbers_of(pose, 16, "pose"), numbers_of(jacobian, 6 * n, "jacobian"),
    numbers_of(point, 3, "point"), torque.data(), numbers_of(deviation, n, "deviation"));
  return py::make_tuple(
    py::array_t<double>(6, found.wrench().data()),
    py::array_t<double>(6, found.deviation().data()),
    py::array_t<double>(
      std::vector<std::size_t>{found.undetermined_count(), 6}, found.undetermined()[0].data()));
}

// Return the parts (6, n) of a torque, or None where the model fails.
py::object torque_parts(
  const std::shared_ptr<Arm> & arm, const rd::Settings & settings, const rd::Vector & position,
  const rd::Vector & velocity, const std::optional<Array> & reference)
{
  const std::size_t n = arm->joints();
  if (position.size() != n || velocity.size() != n || rd::wrongly_sized(settings, n)) {
    throw py::value_error("a state, or settings, of another number of joints");
  }
  rd::LoadedModel model(arm->model(), arm->load());
  rd::LawCoefficients law(n);
  law.set_law(settings);
  rd::TorqueParts computed(model);
  rd::Vector parts(rd::part::count * n);
  std::unique_ptr<rd::ReferenceState> desired;
  if (reference) { desired = std::make_unique<rd::ReferenceState>(reference_of(*reference, n)); }
  const bool succeeded = computed.compute(
    law, 0.0, 0.0, model, settings.is_continuous, position, velocity, desired.get(), parts);
  arm->raise();
  return succeeded ? py::object(rows_of(parts, rd::part::count)) : py::none();
}

}  // namespace

PYBIND11_MODULE(core_module, module)
{
  module.attr("SOURCES") = ROBODYN_SOURCES;
  module.attr("REST_SPEED") = rd::kRestSpeed;
  module.attr("SETTLED_SPEED") = rd::kSettledSpeed;
  module.attr("PLAUSIBLE_SPEED_RATIO") = rd::kPlausibleSpeedRatio;
  module.attr("PLAUSIBLE_STEP") = rd::kPlausibleStep;
  module.attr("LONGEST_RATE_STEP") = rd::kLongestRateStep;
  module.attr("GRAVITY_RATE") = rd::kGravityRate;
  module.def("largest_frequency", &rd::Impedance::largest_frequency);
  module.attr("TANK_POWER") = rd::kTankPower;
  module.attr("RATE_RESERVE") = rd::kRateReserve;
  module.attr("LARGEST_KD_T") = rd::kLargestKdT;
  module.attr("LARGEST_ROOT_KP_T") = rd::kLargestRootKpT;
  module.attr("STANDSTILL") = rd::kStandstill;
  module.attr("DEVIATIONS") = rd::kDeviations;
  module.attr("UNKNOWN_DEVIATION") = rd::kUnknownDeviation;
  module.def("torque_deviation", py::vectorize(&rd::torque_deviation));
  module.attr("EXPECTED_FORCE") = rd::kExpectedForce;
  module.attr("EXPECTED_MOMENT") = rd::kExpectedMoment;

  py::enum_<rd::ContactAction>(module, "ContactAction")
    .value("report", rd::ContactAction::report)
    .value("stop", rd::ContactAction::stop)
    .value("float", rd::ContactAction::release);
  py::enum_<rd::ContactEvent>(module, "ContactEvent")
    .value("none", rd::ContactEvent::none)
    .value("begins", rd::ContactEvent::begins)
    .value("ends", rd::ContactEvent::ends);
  py::enum_<rd::Following>(module, "Following")
    .value("none", rd::Following::none)
    .value("waiting", rd::Following::waiting)
    .value("moving", rd::Following::moving)
    .value("braking", rd::Following::braking)
    .value("holding", rd::Following::holding);
  py::enum_<rd::Cause> causes(module, "Cause");
  std::uint8_t cause = 0;
  for (const char * const name : rd::kCauseNames) {
    causes.value(name, static_cast<rd::Cause>(cause++));
  }

  py::enum_<rd::Refusal>(module, "Refusal")
    .value("none", rd::Refusal::none)
    .value("implausible", rd::Refusal::implausible)
    .value("overload", rd::Refusal::overload)
    .value("not_finite", rd::Refusal::not_finite)
    .value("contradicting", rd::Refusal::contradicting);
  py::class_<rd::Fault>(module, "Fault")
    .def_readonly("cause", &rd::Fault::cause)
    .def_readonly("joint", &rd::Fault::joint)
    .def_readonly("value", &rd::Fault::value)
    .def_readonly("limit", &rd::Fault::limit);
  module.attr("MOST_JOINTS") = rd::kMostJoints;
  module.attr("LARGEST_MESSAGE") = rd::kLargestMessage;
  module.def("read_joint_state", &read_joint_state, py::arg("content"));
  using States = rd::JointStates;
  py::class_<States> states(module, "JointStates");
  states.attr("TIME_CONSTANT") = rd::DifferencedVelocity::kTimeConstant;
  states.attr("LONGEST_STEP") = States::kLongestStep;
  states
    .def(
      py::init<
        std::vector<std::string>, double, rd::Vector, rd::Vector, rd::Vector, rd::Vector>(),
      py::arg("joint_names"), py::arg("timeout"), py::arg("is_continuous"), py::arg("lowest"),
      py::arg("highest"), py::arg("velocity_limits"))
    .def("forget", &States::forget)
    .def(
      "receive", &receive, py::arg("names"), py::arg("position"), py::arg("velocity"),
      py::kw_only(), py::arg("received"), py::arg("stamp") = 0.0, py::arg("age") = 0.0,
      py::arg("effort") = Array(0))
    .def(
      "receive_bytes",
      [](States & self, const py::bytes & content, double received, double clock) {
        return text_of(self.receive(content, received, clock));
      },
      py::arg("content"), py::arg("received"), py::arg("clock"))
    .def("take", &take)
    .def(
      "stale_at",
      [](const States & self, double now, double simulated) {
        std::vector<std::string> stale;
        for (std::size_t i = 0; i < self.joints(); ++i) {
          if (self.is_stale(i, {now, simulated})) { stale.push_back(self.names()[i]); }
        }
        return py::tuple(py::cast(stale));
      },
      py::arg("now"), py::arg("simulated"))
    .def("age", &States::age, py::arg("now"))
    .def(
      "standstill_at",
      [](const States & self, double now, double simulated) {
        return self.standstill({now, simulated});
      },
      py::arg("now"), py::arg("simulated"))
    .def_property("timeout", &States::timeout, &States::set_timeout)
    .def_property_readonly(
      "joint_names", [](const States & self) { return py::tuple(py::cast(self.names())); })
    .def_property_readonly("is_complete", &States::is_complete)
    .def_property_readonly("has_begun", &States::has_begun)
    .def_property_readonly("received", &States::received)
    .def_property_readonly("stamp_age", &States::stamp_age)
    .def_property_readonly(
      "stamp",
      [](const States & self) {
        return py::make_tuple(self.message().sec, self.message().nanosec);
      })
    .def_property_readonly(
      "unusable",
      [](const States & self) {
        py::dict positions;
        for (std::size_t i = 0; i < self.joints(); ++i) {
          if (self.is_unusable(i)) { positions[py::cast(i)] = self.unusable(i); }
        }
        return positions;
      })
    .def_property_readonly("strangers", [](const States & self) {
      std::vector<py::object> names;
      for (const std::string & name : self.strangers()) { names.push_back(decoded(name)); }
      return py::tuple(py::cast(names));
    });
  py::class_<rd::Settings>(module, "Settings")
    .def(
      py::init(&settings_of), py::arg("record"), py::arg("position_limits"),
      py::arg("velocity_limits"), py::arg("is_continuous"));
  std::vector<std::string> settings;
  rd::for_each_setting([&settings](const char * name) { settings.push_back(member_name(name)); });
  module.attr("SETTINGS") = py::tuple(py::cast(settings));

  py::class_<Arm, std::shared_ptr<Arm>>(module, "Arm")
    .def(
      py::init<
        std::size_t, py::object, py::object, py::object, std::optional<py::object>,
        std::optional<py::object>, double, std::optional<Array>>(),
      py::arg("joints"), py::arg("inverse_dynamics"), py::arg("friction"), py::arg("not_finite"),
      py::arg("pose") = std::nullopt, py::arg("jacobian") = std::nullopt,
      py::arg("reach") = rd::kInfinity, py::arg("coupling") = std::nullopt)
    .def(
      py::init<const py::capsule &, const rd::Vector &>(), py::arg("library"), py::arg("load"));

  py::class_<rd::Motion, std::shared_ptr<rd::Motion>>(module, "Motion")
    .def(
      py::init(&motion_of), py::arg("knots"), py::arg("coefficients"), py::arg("efforts"),
      py::arg("start"), py::arg("end"), py::arg("before") = nullptr)
    .def_readonly("knots", &rd::Motion::knots)
    .def_property_readonly(
      "efforts",
      [](const rd::Motion & motion) {
        // A brake at rest keeps memory for more efforts than it has knots.
        const std::vector<std::size_t> shape{motion.knots.size(), motion.joints()};
        return py::array_t<double>(shape, motion.efforts.data());
      })
    .def_property_readonly(
      "before",
      [](const rd::Motion & motion) {
        return std::const_pointer_cast<rd::Motion>(motion.before);
      })
    .def_property_readonly(
      "start", [](const rd::Motion & motion) { return rows_of(motion.start); })
    .def_property_readonly("end", [](const rd::Motion & motion) { return rows_of(motion.end); })
    .def_property_readonly(
      "coefficients",
      [](const rd::Motion & motion) {
        const std::size_t n = motion.joints();
        return py::array_t<double>(
          std::vector<std::size_t>{motion.knots.size() - 1, rd::kCoefficients, n},
          motion.coefficients.data());
      })
    .def("sample", &sample, py::arg("time"))
    .def(
      "followed_at",
      [](const std::shared_ptr<rd::Motion> & motion, double time) {
        return followed_at(motion, time);
      },
      py::arg("time"));
  module.def(
    "fastest_timing", &fastest_timing, py::arg("alpha"), py::arg("beta"), py::arg("bound"),
    py::arg("highest"), py::arg("begin"), py::arg("end"));
  module.def("segments", &segments, py::arg("states"), py::arg("durations"));
  py::class_<rd::PositionStream>(module, "PositionStream")
    .def(py::init<>())
    .def("take", &rd::PositionStream::take)
    .def("horizon", &rd::PositionStream::horizon)
    .def_property_readonly("is_stream", &rd::PositionStream::is_stream)
    .def_property_readonly("period", &rd::PositionStream::period)
    .def_property_readonly("moving", &rd::PositionStream::moving)
    .def_property_readonly("stopping", &rd::PositionStream::stopping);
  module.def(
    "approach",
    [](const Array & from, const Array & to, double now, double horizon, double stop) {
      const auto joints = static_cast<std::size_t>(from.size()) / 4;
      auto motion = std::make_shared<rd::Motion>(joints, 2);
      motion->plan_approach(
        reference_of(from, joints), reference_of(to, joints), now, horizon, stop);
      return motion;
    },
    py::arg("from_state"), py::arg("to"), py::arg("now"), py::arg("horizon"), py::arg("stop"));
  module.def(
    "stop",
    [](const Array & state, double now, double duration, const rd::Vector & position_limits) {
      const std::size_t joints = position_limits.size() / 2;
      auto motion = std::make_shared<rd::Motion>(joints);
      motion->plan_stop(reference_of(state, joints), now, duration, position_limits);
      return motion;
    },
    py::arg("state"), py::arg("now"), py::arg("duration"), py::arg("position_limits"));
  module.def(
    "torque_parts", &torque_parts, py::arg("arm"), py::arg("settings"), py::arg("position"),
    py::arg("velocity"), py::arg("reference"));

  module.def(
    "torque_rate_limits", &rd::torque_rate_limits, py::arg("given"), py::arg("effort_limits"));
  module.def(
    "take_pose",
    [](const rd::Vector3 & position, const Xyzw & xyzw) {
      rd::Pose pose;
      const rd::Fault refusal = rd::take_pose(position, xyzw, pose);
      return py::make_tuple(refusal, position, quaternion_of(pose));
    },
    py::arg("position"), py::arg("xyzw"));
  module.def(
    "words",
    [](const rd::Fault & fault) {
      const rd::Words words = rd::words_of(fault, {}, {});
      return std::make_pair(words.is, words.allowed);
    },
    py::arg("fault"));
  module.def(
    "tip_wrench", &tip_wrench, py::arg("pose"), py::arg("jacobian"), py::arg("point"),
    py::arg("torque"), py::arg("deviation"));

  using Core = rd::ArmRuntime;
  py::class_<Runtime>(module, "ArmRuntime")
    .def(
      py::init<std::shared_ptr<Arm>, const rd::Settings &>(), py::arg("arm"), py::arg("settings"))
    .def("enable", [](Runtime & self, double now) { self.core().enable(now); })
    .def("listen", [](Runtime & self, double until) { self.core().listen(until); })
    .def_property_readonly(
      "is_contradicted", [](Runtime & self) { return self.core().is_contradicted(); })
    .def_property_readonly(
      "has_state", [](Runtime & self) { return self.core().state().has_state; })
    .def("disable", &Runtime::call<&Core::disable>)
    .def("change_settings", &Runtime::change_settings)
    .def("change_load", &Runtime::change_load, py::arg("arm"), py::arg("is_checked"))
    .def(
      "follow",
      [](Runtime & self, std::shared_ptr<rd::Motion> motion) {
        if (motion->joints() != self.core().joints()) {
          throw py::value_error("a motion of another number of joints");
        }
        self.core().follow(std::move(motion));
      })
    .def("cancel", &Runtime::call<&Core::cancel>)
    .def(
      "aim_tip",
      [](Runtime & self, const rd::Vector3 & position, const Xyzw & xyzw, bool is_relative) {
        rd::Pose pose;
        const rd::Fault refusal = rd::take_pose(position, xyzw, pose);
        return refusal ? refusal : self.core().aim_tip(pose, is_relative);
      },
      py::arg("position"), py::arg("xyzw"), py::arg("is_relative") = false)
    .def(
      "add_wrench",
      [](Runtime & self, const rd::Vector6 & wrench, double now, bool is_relative) {
        return self.core().add_wrench(wrench, now, is_relative);
      },
      py::arg("wrench"), py::arg("now"), py::arg("is_relative") = false)
    .def(
      "weigh",
      [](Runtime & self, const rd::Vector3 & gravity) { return self.core().weigh(gravity); },
      py::arg("gravity"))
    .def_property_readonly(
      "weighing",
      [](Runtime & self) {
        const rd::Weighing & weighing = self.core().weighing();
        return py::make_tuple(weighing.state_name(), weighing.mass(), weighing.refusal());
      })
    .def(
      "target_refusal",
      [](Runtime & self, bool is_pose) { return self.core().target_refusal(is_pose); },
      py::arg("is_pose"))
    .def_property_readonly(
      "reference_refusal", [](Runtime & self) { return self.core().reference_refusal(); })
    .def(
      "pose_in_base",
      [](Runtime & self, const rd::Vector3 & position, const Xyzw & xyzw, bool is_relative) {
        const rd::ArmRuntime & core = self.core();
        const rd::Pose pose = core.in_base({position, turn_of(xyzw)}, is_relative);
        const bool is_known = !is_relative || core.has_tip_reference();
        const rd::Fault refusal =
          is_known ? core.reach_refusal(pose) : rd::Fault{rd::Cause::not_followed};
        return py::make_tuple(refusal, pose.position, quaternion_of(pose));
      },
      py::arg("position"), py::arg("xyzw"), py::arg("is_relative"))
    .def(
      "words",
      [](
        Runtime & self, const rd::Fault & fault, const std::vector<std::string> & names,
        const std::vector<bool> & slide) {
        const rd::Words words = rd::words_of(fault, {names, slide}, self.core().state().settings);
        return std::make_pair(words.is, words.allowed);
      },
      py::arg("fault"), py::arg("joint_names"), py::arg("slide"))
    .def_property_readonly(
      "tip_reference",
      [](Runtime & self) {
        const rd::Pose & pose = self.core().tip_reference();
        return py::make_tuple(pose.position, quaternion_of(pose));
      })
    .def_property_readonly(
      "has_tip_reference", [](Runtime & self) { return self.core().has_tip_reference(); })
    .def_property_readonly(
      "has_tip_target",
      [](Runtime & self) { return self.core().state().parts.tip().has_target(); })
    .def_property_readonly(
      "spring_wrench",
      [](Runtime & self) { return self.core().state().parts.impedance().wrench(); })
    .def_property_readonly(
      "stiffness",
      [](Runtime & self) {
        const rd::ImpedanceCoefficients & springs = self.core().springs();
        return py::make_tuple(
          array_of(springs.joints), array_of(springs.posture), springs.along_base,
          springs.along_reference);
      })
    .def_property_readonly(
      "damping_ratio", [](Runtime & self) { return self.core().springs().ratio; })
    .def_property_readonly(
      "is_stiffness_limited", [](Runtime & self) { return self.core().least_stiffness() < 1.0; })
    .def_property_readonly(
      "least_stiffness", [](Runtime & self) { return self.core().least_stiffness(); })
    .def_property_readonly(
      "stiffening",
      [](Runtime & self) {
        const rd::Stiffening found = self.core().stiffening();
        return py::make_tuple(
          found.is_waiting, found.waited, found.energy, found.longest, found.going_back);
      })
    .def("begin_stop", &Runtime::call<&Core::begin_stop>)
    .def("react_to_contact", &Runtime::react_to_contact)
    .def("continue_from", &Runtime::continue_from)
    .def("sent", [](Runtime & self, double now) { self.core().sent(now); })
    .def(
      "step", &Runtime::step, py::arg("position"), py::arg("velocity"), py::arg("time"),
      py::arg("is_stamped"), py::arg("now"), py::arg("simulated"), py::arg("added"),
      py::arg("lag") = 0.0)
    .def("watchdog", &Runtime::watchdog)
    .def("update", &Runtime::update)
    .def("stop_command", &Runtime::stop_command)
    .def(
      "is_clock_reliable",
      [](Runtime & self, double now) { return self.core().clock().is_reliable(now); })
    .def_property_readonly(
      "is_clock_stopped", [](Runtime & self) { return self.core().clock().is_stopped(); })
    .def_property_readonly("is_enabled", [](Runtime & self) { return self.core().is_enabled(); })
    .def_property_readonly(
      "is_stopping", [](Runtime & self) { return self.core().is_stopping(); })
    .def_property_readonly(
      "follows", [](Runtime & self) { return self.core().state().law.latest().follows(); })
    .def_property_readonly("is_stale", [](Runtime & self) { return self.core().is_stale(); })
    .def_property_readonly(
      "is_holding_gravity", [](Runtime & self) { return self.core().is_holding_gravity(); })
    .def_property_readonly(
      "has_stopped", [](Runtime & self) { return self.core().has_stopped(); })
    .def_property_readonly(
      "is_model_blending", [](Runtime & self) { return self.core().state().model.is_blending(); })
    .def_property_readonly("following", [](Runtime & self) { return self.core().following(); })
    .def_property_readonly("refusal", [](Runtime & self) { return self.core().refusal(); })
    .def_property_readonly(
      "faults",
      [](Runtime & self) {
        const rd::RuntimeState & state = self.core().state();
        std::vector<rd::Fault> faults;
        for (const rd::Fault & fault : state.faults.all()) {
          if (fault.cause != rd::Cause::none) { faults.push_back(fault); }
        }
        return faults;
      })
    .def_property_readonly(
      "needed_rate",
      [](Runtime & self) { return self.core().state().law.latest().needed_rate(); })
    .def_property_readonly(
      "velocity", [](Runtime & self) { return array_of(self.core().state().velocity); })
    .def_property_readonly("is_ready", [](Runtime & self) { return self.core().is_ready(); })
    .def_property_readonly("is_slow", [](Runtime & self) { return self.core().is_slow(); })
    .def_property_readonly("period", [](Runtime & self) { return self.core().state().period; })
    .def_property_readonly(
      "has_other_velocity", [](Runtime & self) { return self.core().has_other_velocity(); })
    .def_property_readonly("lag", [](Runtime & self) { return self.core().state().lag; })
    .def_property_readonly(
      "wrong_velocities", [](Runtime & self) { return array_of(self.core().wrong_velocities()); })
    .def_property_readonly(
      "fault_changes", [](Runtime & self) { return self.core().state().faults.changes(); })
    .def_property_readonly("last_drop", [](Runtime & self) { return self.core().last_drop(); })
    .def_property_readonly(
      "torque",
      [](Runtime & self) {
        return self.core().has_torque() ? py::object(array_of(self.core().torque())) : py::none();
      })
    .def_property_readonly(
      "last_cycle", [](Runtime & self) { return self.core().state().steady; })
    .def_property_readonly(
      "followed",
      [](Runtime & self) -> std::shared_ptr<rd::Motion> {
        const rd::Motion * const motion = self.core().follower().followed_motion();
        return motion == nullptr ? nullptr : std::make_shared<rd::Motion>(*motion);
      })
    .def_property_readonly("counts", [](Runtime & self) {
      const rd::Counts & counts = self.core().counts();
      return py::make_tuple(
        counts.refused_torques, counts.implausible_states, counts.following_errors,
        counts.dropped_references, counts.refused_references);
    });

  py::class_<rd::ObserverSettings>(module, "ObserverSettings")
    .def(py::init<>())
    .def_readwrite("gain", &rd::ObserverSettings::gain)
    .def_readwrite("is_held", &rd::ObserverSettings::is_held)
    .def_readwrite("longest", &rd::ObserverSettings::longest)
    .def_readwrite("friction_velocity", &rd::ObserverSettings::friction_velocity)
    .def_readwrite("presliding", &rd::ObserverSettings::presliding);
  py::class_<Observer>(module, "Observer")
    .def(py::init<const std::shared_ptr<Arm> &, const rd::ObserverSettings &>())
    .def("update", &Observer::update)
    .def("change_arm", &Observer::change_arm)
    .def("reset", [](Observer & self) { self.core().reset(); })
    .def(
      "change_longest",
      [](Observer & self, double longest) { self.core().change_longest(longest); })
    .def_property_readonly(
      "torque", [](Observer & self) { return array_of(self.core().torque()); })
    .def_property_readonly("skipped", [](Observer & self) { return self.core().skipped(); });
  py::class_<rd::ContactThresholds>(module, "ContactThresholds")
    .def(py::init<>())
    .def_readwrite("moving", &rd::ContactThresholds::moving)
    .def_readwrite("stationary", &rd::ContactThresholds::stationary)
    .def_readwrite("dwell", &rd::ContactThresholds::dwell);
  py::class_<rd::StationaryJoints>(module, "StationaryJoints")
    .def(py::init<std::size_t>())
    .def("at", [](rd::StationaryJoints & self, const rd::Vector & velocity, double time) {
      if (velocity.size() != self.joints()) { throw py::value_error("velocity: one a joint"); }
      std::vector<bool> stationary;
      for (std::size_t i = 0; i < velocity.size(); ++i) {
        stationary.push_back(self.update(i, velocity[i], time));
      }
      return stationary;
    });
  py::class_<rd::Contact>(module, "Contact")
    .def_readonly("joint", &rd::Contact::joint)
    .def_readonly("outermost", &rd::Contact::outermost)
    .def_readonly("torque", &rd::Contact::torque)
    .def_readonly("threshold", &rd::Contact::threshold)
    .def_readonly("began", &rd::Contact::began)
    .def_readonly("time", &rd::Contact::time);
  py::class_<Detector>(module, "Detector")
    .def(py::init<const rd::ContactThresholds &>())
    .def("update", &Detector::update)
    .def("reset", [](Detector & self) { self.core().reset(); })
    .def_property_readonly("count", [](Detector & self) { return self.core().count(); })
    .def_property_readonly(
      "is_in_contact", [](Detector & self) { return self.core().is_in_contact(); })
    .def_property_readonly("contact", [](Detector & self) { return self.core().contact(); });
}
