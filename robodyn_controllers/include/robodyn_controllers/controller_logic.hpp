// SPDX-License-Identifier: Apache-2.0
// The ros2_control controller without ROS: its lifecycle, its control cycles, its services and
// changes of its parameters. Interfaces are arrays, one number for each joint; errors are text.
#ifndef ROBODYN_CONTROLLERS__CONTROLLER_LOGIC_HPP_
#define ROBODYN_CONTROLLERS__CONTROLLER_LOGIC_HPP_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "robodyn_controllers/contact_watch.hpp"
#include "robodyn_controllers/mailbox.hpp"
#include "robodyn_ros/core/arm_runtime.hpp"
#include "robodyn_ros/core/words.hpp"
#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

using robodyn::ArmRuntime;
using robodyn::Cause;
using robodyn::Fault;
using robodyn::kNaN;
using robodyn::Mode;
using robodyn::Settings;
using robodyn::Vector;
using robodyn::Vector3;
using robodyn::Vector6;

// Refuse a reaction to contacts without thresholds, or without commands; throws
// std::runtime_error.
inline void check_reaction(const Settings & settings, bool is_commanding = true)
{
  if (!is_commanding && settings.on_contact != robodyn::ContactAction::report) {
    throw std::runtime_error(
      "parameter on_contact; allowed where sensing is 'measured', which commands nothing: "
      "report");
  }
  if (
    settings.on_contact != robodyn::ContactAction::report &&
    settings.contact_threshold_moving.empty()) {
    throw std::runtime_error(
      "parameter on_contact; allowed without contact_threshold_moving and "
      "contact_threshold_stationary: report");
  }
}

// Return the load of no payload under the library's own gravity.
inline Vector first_load(const robodyn_model & library)
{
  Vector load(static_cast<std::size_t>(library.load_size));
  library.make_load(nullptr, nullptr, load.data());
  return load;
}

// Return the tip link that is meant where none is named.
inline const char * tip_link(const robodyn_model & model)
{
  return model.tip_links[model.tip];
}

// Return the index of a tip link, empty: the one that is meant; throws std::runtime_error.
inline int tip_of(
  const robodyn_model & model, const std::string & element, const std::string & link)
{
  if (link.empty()) { return model.tip; }
  std::string allowed;
  for (int tip = 0; tip < model.tips; ++tip) {
    if (link == model.tip_links[tip]) { return tip; }
    allowed += (tip == 0 ? "'" : ", '") + std::string(model.tip_links[tip]) + "'";
  }
  throw std::runtime_error(element + " '" + link + "'; allowed: " + allowed);
}

// Write the load of payloads and gravity; return why they are refused, empty: they are not.
inline std::string checked_load(
  const robodyn_model & model, const std::vector<robodyn_payload> & payloads,
  const std::vector<double> & gravity, Vector & load)
{
  if (gravity.size() != 3) {
    return "gravity: " + std::to_string(gravity.size()) + " numbers; allowed: 3";
  }
  Vector bare(load.size()), one(load.size());
  robodyn_refusal refused = model.make_load(nullptr, gravity.data(), bare.data());
  load = bare;
  for (const robodyn_payload & payload : payloads) {
    if (refused.element != nullptr) { break; }
    refused = model.make_load(&payload, gravity.data(), one.data());
    for (std::size_t i = 0; i < load.size(); ++i) { load[i] += one[i] - bare[i]; }
  }
  if (refused.element == nullptr) { return ""; }
  const auto number = [&refused](double each) {
    return std::to_string(each) + " " + refused.unit;
  };
  const std::string limit = refused.unit == nullptr ? "" : "at most " + number(refused.limit);
  return refused.element + (refused.unit == nullptr ? "" : ": " + number(refused.value)) +
         "; allowed: " + limit + refused.allowed;
}

// A target of the tip: a pose or a wrench, in the base link's axes or in those of its reference.
template <typename Value>
struct TipRequest
{
  Value value{};
  bool is_relative = false;
};

// update, activate and deactivate do not allocate, wait, throw or log. Requests of other threads
// come through mailboxes.
class ControllerLogic
{
public:
  // longest_wait: how long a change of load waits for the control cycle that takes it.
  explicit ControllerLogic(
    std::chrono::milliseconds longest_wait = std::chrono::milliseconds(200))
  : longest_wait_(longest_wait)
  {
  }

  ControllerLogic(const ControllerLogic &) = delete;
  ControllerLogic & operator=(const ControllerLogic &) = delete;

  // --- life cycle ----------------------------------------------------------------------------

  // Take a model, settings, gravity [m/s^2] in the base link's axes (empty: the model's own),
  // and for each joint a factor from torque to command, or to what is measured where the arm is
  // only observed; throws std::runtime_error.
  void configure(
    std::shared_ptr<const robodyn_model> model, const Settings & settings,
    const std::vector<double> & gravity, const Vector & command_scale, bool is_observed = false)
  {
    for (const double scale : command_scale) {
      if (!std::isfinite(scale) || scale == 0.0) {
        throw std::runtime_error("parameter command_scale; allowed: each finite, not 0");
      }
    }
    check_reaction(settings, !is_observed);
    auto arm = std::make_unique<Arm>(std::move(model), settings, command_scale, is_observed);
    if (!gravity.empty()) { arm->gravity = gravity; }
    Vector load = first_load(*arm->model);
    const std::string wrong = checked_load(*arm->model, arm->payloads, arm->gravity, load);
    if (!wrong.empty()) { throw std::runtime_error("parameter " + wrong); }
    arm->pipeline.change_load(load.data());
    arm->watch.change_load(load.data());
    const std::lock_guard<std::mutex> lock(changing_);
    arm_ = std::move(arm);
  }

  // A service that is being answered in another thread is waited for.
  void cleanup()
  {
    const std::lock_guard<std::mutex> lock(changing_);
    arm_.reset();
  }

  void activate()
  {
    is_active_ = true;  // first: a load put before is taken below
    is_enabled_ = true;
    is_cancelled_ = false;
    const auto forget = [](const auto &) { return true; };
    arm_->new_setpoint.take(forget);
    arm_->new_target.take(forget);
    arm_->new_wrench.take(forget);
    arm_->new_weighing.take([this](const Vector3 &) {
      arm_->refused_change = {Cause::inactive};
      return false;
    });
    has_setpoint_ = false;
    reported_changes_ = arm_->pipeline.state().faults.changes();
    reported_drops_ = arm_->pipeline.counts().dropped_references;
    arm_->watch.reset();
    arm_->has_applied = false;
    take_changes();
  }

  // Return whether there is a last command, that of on_stop, and write it. No cycle follows, so
  // the rate limit does not apply. To brake the arm first, deactivate the controller chained to
  // this one, or disable this one, and wait.
  bool deactivate(double * command)
  {
    ArmRuntime & pipeline = arm_->pipeline;
    const bool has_command = pipeline.stop_command(now_, true);
    if (has_command) { write(command); }
    pipeline.disable();
    is_active_ = false;
    return has_command;
  }

  // --- the real-time loop --------------------------------------------------------------------

  // Write the setpoint to follow, 3 n numbers, a time [s] after the last one; NaN: none.
  void sample_setpoint(double period, double * reference)
  {
    Arm & arm = *arm_;
    setpoint_age_ += elapsed(period);
    arm.new_setpoint.take([this, &arm](const Vector & setpoint) {
      Vector & next = arm.next_setpoint;
      std::copy(setpoint.begin(), setpoint.end(), next.begin());
      keep_unnamed_joints();
      const double * const positions = next.data();
      const double * const velocities = positions + arm.n;
      const bool is_cancellation = std::isnan(setpoint[0]);
      const Fault refusal = arm.pipeline.setpoint_refusal({positions, velocities});
      if (refusal && !is_cancellation) {
        refused_setpoint_.put(refusal);
        return false;
      }
      arm.setpoint.swap(next);
      is_setpoint_at_rest_ = std::all_of(
        setpoint.begin() + static_cast<std::ptrdiff_t>(arm.n), setpoint.end(),
        [](double value) { return value == 0.0; });
      setpoint_age_ = 0.0;
      has_setpoint_ = true;
      return true;
    });
    // The publisher of a moving setpoint is lost if no other setpoint follows; one that was dropped
    // must not begin again by itself.
    const bool is_held = is_setpoint_at_rest_ && arm.pipeline.follower().is_following_setpoint();
    has_setpoint_ &= is_held || setpoint_age_ <= arm.settings().state_timeout;
    if (!has_setpoint_) {
      std::fill_n(reference, 3 * arm.n, kNaN);
      return;
    }
    // Extrapolated: setpoints may come less often than cycles.
    std::copy(arm.setpoint.begin(), arm.setpoint.end(), reference);
    for (std::size_t i = 0; i < arm.n; ++i) {
      const double gained = setpoint_age_ * reference[2 * arm.n + i];
      reference[i] += setpoint_age_ * (reference[arm.n + i] + 0.5 * gained);
      reference[arm.n + i] += gained;
    }
  }

  // Do one cycle, a period [s] after the last one, and return whether there is a command; the
  // reference has 3 n numbers: positions, velocities, accelerations.
  bool update(
    double period, const double * position, const double * velocity, const double * reference,
    double * command)
  {
    now_ += elapsed(period);
    take_changes();
    take_target_and_wrench();
    ArmRuntime & pipeline = arm_->pipeline;
    const std::size_t n = arm_->n;
    bool has_command = false;
    if (pipeline.is_stopping() && pipeline.has_stopped()) {
      has_command = pipeline.stop_command(now_);
      // Without a command the stop is over, too: there was no state, or on_stop is silent.
      if (!has_command || pipeline.is_stop_command_sent()) { pipeline.disable(); }
    } else {
      arm_->applied = pipeline.torque();
      has_command = pipeline.update(
        now_, position, velocity, {reference, reference + n, reference + 2 * n, nullptr},
        arm_->model->possible_positions);
      watch();
    }
    report_faults();
    if (has_command) { write(command); }
    return has_command;
  }

  // Do one cycle of an arm that others command: only estimate, from its state and efforts.
  void observe(
    double period, const double * position, const double * velocity, const double * effort)
  {
    now_ += elapsed(period);
    take_changes();
    Arm & arm = *arm_;
    for (std::size_t i = 0; i < arm.n; ++i) { arm.applied[i] = effort[i] / arm.scale[i]; }
    contact_event_ = arm.watch.update(arm.settings(), position, velocity, arm.applied, now_);
  }

  // The last fault, or the last reason for which a reference was dropped, if it is new, and why the
  // control cycle refused a setpoint, a target pose, or a wrench since the last call; no cause: there
  // is none. From one other thread.
  Fault take_fault() { return taken(faults_); }
  Fault take_refused_setpoint() { return taken(refused_setpoint_); }
  Fault take_refused_target() { return taken(refused_target_); }
  Fault take_refused_wrench() { return taken(refused_wrench_); }

  // Return a fault or a refusal in words; empty: there is none.
  std::string text_of(const Fault & fault)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    return arm_ == nullptr ? "" : words(fault);
  }

  // Whether external torques are estimated though on_contact is report; from any thread.
  void set_watched(bool is_watched) { is_watched_ = is_watched; }

  // Results of the last cycle; while configured.
  const ArmRuntime & pipeline() const { return arm_->pipeline; }
  const ContactWatch & contact_watch() const { return arm_->watch; }
  robodyn::ContactEvent contact_event() const { return contact_event_; }
  const robodyn::TipWrench & tip_wrench() { return arm_->watch.tip_wrench(); }

  // --- services, from any thread at any time; each returns why it refuses, empty: it is done ---

  // It is enabled anew whenever it is activated.
  std::string set_enabled(bool is_enabled)
  {
    if (!is_active_) { return "the controller is not active"; }
    is_enabled_ = is_enabled;
    return "";
  }

  // End what set_setpoint began, and acknowledge faults.
  std::string cancel()
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    arm_->new_setpoint.put(Vector(3 * arm_->n, kNaN));
    is_cancelled_ = true;
    return "";
  }

  std::string set_payload(const std::string & link, const robodyn_payload & payload)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    const robodyn_model & model = *arm_->model;
    try {
      const int tip = tip_of(model, "payload link", link);
      std::vector<robodyn_payload> payloads = arm_->payloads;
      payloads[static_cast<std::size_t>(tip)] = payload;
      payloads[static_cast<std::size_t>(tip)].tip = tip;
      return change_load(payloads, arm_->gravity);
    } catch (const std::runtime_error & error) {
      return error.what();
    }
  }

  std::string set_gravity(const std::string & frame, const std::vector<double> & gravity)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    const std::string base = arm_->model->base_link;
    if (!frame.empty() && frame != base) {
      return "gravity frame_id: '" + frame + "'; allowed: the base link '" + base + "', or empty";
    }
    return change_load(arm_->payloads, gravity);
  }

  // Change the settings to what a function returns for the model; its exceptions pass through.
  void change_settings(const std::function<Settings(const robodyn_model &)> & settings_of)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return; }  // configure reads them all
    arm_->asked = settings_of(*arm_->model);
    arm_->changes.put(arm_->asked);
  }

  // Take a setpoint of named joints; the others stay where they are. Missing velocities or
  // accelerations are zero.
  std::string set_setpoint(
    const std::vector<std::string> & names, const std::vector<double> & positions,
    const std::vector<double> & velocities, const std::vector<double> & accelerations)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    if (!is_active_ || !is_enabled_) { return words({Cause::inactive}); }
    const std::size_t n = arm_->n;
    const auto is_sized = [&names](const std::vector<double> & values, bool may_be_empty) {
      return values.size() == names.size() || (may_be_empty && values.empty());
    };
    if (
      names.empty() || !is_sized(positions, false) || !is_sized(velocities, true) ||
      !is_sized(accelerations, true)) {
      return "allowed: a position of each joint that is named";
    }
    for (const auto * const values : {&positions, &velocities, &accelerations}) {
      for (const double value : *values) {
        if (!std::isfinite(value)) { return words({Cause::not_finite}); }
      }
    }
    Vector setpoint(3 * n, 0.0);
    std::fill_n(setpoint.begin(), n, kUnnamed);
    const std::vector<std::string> & joints = arm_->joints.names;
    const char * const * const others = arm_->model->unmodelled_joints;
    const char * const * const end = others + arm_->model->unmodelled;
    bool is_one_modelled = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(names.begin(), before, names[i]) != before) {
        return "a joint is named twice";
      }
      if (std::find(others, end, names[i]) != end) { continue; }
      const auto joint = static_cast<std::size_t>(
        std::find(joints.begin(), joints.end(), names[i]) - joints.begin());
      if (joint == n) { return "a joint is not the arm's"; }
      is_one_modelled = true;
      setpoint[joint] = positions[i];
      if (!velocities.empty()) { setpoint[n + joint] = velocities[i]; }
      if (!accelerations.empty()) { setpoint[2 * n + joint] = accelerations[i]; }
    }
    if (!is_one_modelled) { return "allowed: at least one joint of the arm"; }
    arm_->new_setpoint.put(setpoint);
    return "";
  }

  // Let the tip of a Cartesian impedance go to a pose in a frame; orientation: x, y, z, w. What the
  // state of the arm refuses is said by take_refused_target.
  std::string set_target_pose(
    const std::string & frame, const Vector3 & position,
    const std::array<double, 4> & orientation)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    if (!is_active_) { return words({Cause::inactive}); }
    TipRequest<robodyn::Pose> request;
    std::string wrong = wrong_frame(frame, request.is_relative);
    if (wrong.empty()) {
      wrong = words(robodyn::take_pose(position, orientation, request.value));
    }
    if (wrong.empty()) { arm_->new_target.put(request); }
    return wrong;
  }

  // Add a wrench at the tip of an impedance, in a frame, for state_timeout.
  std::string set_target_wrench(const std::string & frame, const Vector6 & wrench)
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    if (!is_active_) { return words({Cause::inactive}); }
    TipRequest<Vector6> request{wrench, false};
    const std::string wrong = wrong_frame(frame, request.is_relative);
    if (wrong.empty()) { arm_->new_wrench.put(request); }
    return wrong;
  }

  // Weigh what the hand takes in the next second, and carry it; what becomes of it is said by
  // pipeline().weighing().
  std::string weigh()
  {
    const std::lock_guard<std::mutex> lock(changing_);
    if (arm_ == nullptr) { return kNotConfigured; }
    if (!is_active_) { return words({Cause::inactive}); }
    const std::vector<double> & gravity = arm_->gravity;
    const std::string refused = waited_for(
      arm_->new_weighing, arm_->new_weighing.put({gravity[0], gravity[1], gravity[2]}));
    return refused.empty() && !is_active_ ? words({Cause::inactive}) : refused;
  }

private:
  static constexpr char kNotConfigured[] = "the controller is not configured";
  static constexpr double kUnnamed = robodyn::kInfinity;  // position of a joint that is to stay

  // The state from configure to cleanup.
  struct Arm
  {
    Arm(
      std::shared_ptr<const robodyn_model> given, const Settings & settings,
      const Vector & scales, bool is_observed)
    : model(std::move(given)),
      n(static_cast<std::size_t>(model->joints)),
      pipeline(robodyn::core_model(*model), first_load(*model).data(), settings),
      watch(
        *model, robodyn::core_model(*model), first_load(*model).data(), settings, is_observed),
      asked(settings),
      joints{
        std::vector<std::string>(model->joint_names, model->joint_names + n),
        std::vector<bool>(model->is_prismatic, model->is_prismatic + n)},
      applied(n),
      scale(scales),
      setpoint(3 * n, kNaN),
      next_setpoint(3 * n),
      payloads(static_cast<std::size_t>(model->tips)),
      gravity(model->gravity, model->gravity + 3)
    {
    }

    const Settings & settings() const { return pipeline.state().settings; }  // of the loop

    const std::shared_ptr<const robodyn_model> model;
    const std::size_t n;
    ArmRuntime pipeline;
    ContactWatch watch;
    Settings asked;  // the latest, perhaps before the loop has taken it
    const robodyn::Joints joints;
    Vector applied;                                 // the command that acts since the last cycle
    bool has_applied = false, is_watching = false;  // since activation, in the last cycle
    const Vector scale;
    Vector setpoint, next_setpoint;
    std::vector<robodyn_payload> payloads;  // of each tip; these two: the last that were taken
    std::vector<double> gravity;
    Mailbox<Settings> changes;
    Mailbox<Vector> load, new_setpoint;
    Fault refused_change;  // why the last load or weighing was refused
    Mailbox<TipRequest<robodyn::Pose>> new_target;
    Mailbox<TipRequest<Vector6>> new_wrench;
    Mailbox<Vector3> new_weighing;
  };

  // Return the time of a period [s]: a clock may jump, and one that is no number must not stop time.
  static double elapsed(double period) { return std::min(std::max(0.0, period), 1e9); }

  // Return why the frame of a target is refused; empty: it is the base link's or the tip's.
  std::string wrong_frame(const std::string & frame, bool & is_relative) const
  {
    const std::string base = arm_->model->base_link, tip = tip_link(*arm_->model);
    is_relative = frame == tip;
    if (is_relative || frame.empty() || frame == base) { return ""; }
    return "frame_id: '" + frame + "'; allowed: one of '', '" + tip + "', '" + base + "'";
  }

  std::string words(const Fault & fault) const
  {
    return robodyn::words_of(fault, arm_->joints, arm_->asked).text();
  }

  static Fault taken(Mailbox<Fault> & mailbox)
  {
    Fault found;
    mailbox.take([&found](const Fault & fault) {
      found = fault;
      return true;
    });
    return found;
  }

  std::string change_load(
    const std::vector<robodyn_payload> & payloads, const std::vector<double> & gravity)
  {
    Vector load = first_load(*arm_->model);
    const std::string wrong = checked_load(*arm_->model, payloads, gravity, load);
    if (!wrong.empty()) { return wrong; }
    // No wait while inactive: the next activation takes the load, and refuses none.
    const std::string refused = waited_for(arm_->load, arm_->load.put(load));
    if (!refused.empty()) { return refused; }
    arm_->payloads = payloads;
    arm_->gravity = gravity;
    return "";
  }

  // Wait while active for the control cycle that takes a change; return why there is none, or why it
  // refuses.
  template <typename Value>
  std::string waited_for(Mailbox<Value> & changes, std::uint64_t number)
  {
    const auto until = std::chrono::steady_clock::now() + longest_wait_;
    while (is_active_ && !changes.is_taken(number)) {
      if (std::chrono::steady_clock::now() > until && changes.withdraw()) {
        return "no control cycle has taken the change in " +
               std::to_string(longest_wait_.count()) + " ms: nothing is changed";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return changes.is_taken(number) && !changes.result() ? words(arm_->refused_change) : "";
  }

  void take_changes()
  {
    Arm & arm = *arm_;
    arm.changes.take([&arm](const Settings & changes) {
      arm.pipeline.change_settings(changes);
      arm.watch.change_longest(changes.state_timeout);
      return true;
    });
    arm.load.take([&arm](const Vector & load) {
      arm.refused_change = arm.pipeline.overload(load.data());
      if (arm.refused_change) { return false; }
      arm.pipeline.change_load(load.data());
      arm.watch.change_load(load.data());
      return true;
    });
    if (is_cancelled_.exchange(false)) { arm.pipeline.cancel(); }
    if (!is_enabled_) {
      has_setpoint_ = false;  // enabled again, it holds where the arm is
      arm.pipeline.begin_stop();
    } else if (!arm.pipeline.is_enabled()) {
      arm.pipeline.enable(now_);
    }
  }

  // Have the joints that a setpoint does not name stay at the reference, or where they are.
  void keep_unnamed_joints()
  {
    Arm & arm = *arm_;
    const robodyn::RuntimeState & state = arm.pipeline.state();
    const bool is_following = arm.pipeline.following() != robodyn::Following::none;
    for (std::size_t i = 0; i < arm.n; ++i) {
      if (arm.next_setpoint[i] != kUnnamed) { continue; }
      arm.next_setpoint[i] =
        is_following ? arm.pipeline.desired().position[i] : state.position[i];
    }
  }

  // Pass the tip's target and the wrench on.
  void take_target_and_wrench()
  {
    const auto is_taken = [](const Fault & refusal, Mailbox<Fault> & refused) {
      if (refusal) { refused.put(refusal); }
      return !refusal;
    };
    arm_->new_target.take([this, &is_taken](const TipRequest<robodyn::Pose> & target) {
      return is_taken(arm_->pipeline.aim_tip(target.value, target.is_relative), refused_target_);
    });
    arm_->new_wrench.take([this, &is_taken](const TipRequest<Vector6> & wrench) {
      return is_taken(
        arm_->pipeline.add_wrench(wrench.value, now_, wrench.is_relative), refused_wrench_);
    });
    arm_->new_weighing.take([this](const Vector3 & gravity) {
      arm_->refused_change = arm_->pipeline.weigh(gravity);
      return !arm_->refused_change;
    });
  }

  // Take the state of a control cycle, and react to a contact. Nothing is computed without
  // subscribers while on_contact is report.
  void watch()
  {
    Arm & arm = *arm_;
    contact_event_ = robodyn::ContactEvent::none;
    const bool is_due =
      is_watched_ || arm.settings().on_contact != robodyn::ContactAction::report;
    if (!is_due && arm.is_watching) { arm.watch.reset(); }
    arm.is_watching = is_due;
    if (!is_due || !arm.pipeline.has_parts()) {
      arm.watch.skip();
      return;
    }
    if (arm.has_applied) {
      const robodyn::RuntimeState & state = arm.pipeline.state();
      contact_event_ = arm.watch.update(
        arm.settings(), state.position.data(), state.velocity.data(), arm.applied, now_);
    }
    arm.has_applied = true;
    if (contact_event_ == robodyn::ContactEvent::begins) {
      arm.pipeline.react_to_contact(arm.settings().on_contact);
    }
  }

  void report_faults()
  {
    const robodyn::FaultBook & faults = arm_->pipeline.state().faults;
    if (faults.counts().dropped_references != reported_drops_) {
      reported_drops_ = faults.counts().dropped_references;
      faults_.put(faults.last_drop());
    }
    if (faults.changes() != reported_changes_) {
      reported_changes_ = faults.changes();
      if (faults.newest()) { faults_.put(faults.newest()); }
    }
  }

  void write(double * command) const
  {
    for (std::size_t i = 0; i < arm_->n; ++i) {
      command[i] = arm_->scale[i] * arm_->pipeline.torque()[i];
    }
  }

  const std::chrono::milliseconds longest_wait_;
  std::unique_ptr<Arm> arm_;
  double now_ = 0.0, setpoint_age_ = 0.0;
  bool has_setpoint_ = false, is_setpoint_at_rest_ = false;
  robodyn::ContactEvent contact_event_ = robodyn::ContactEvent::none;
  std::uint64_t reported_changes_ = 0, reported_drops_ = 0;
  Mailbox<Fault> faults_, refused_setpoint_, refused_target_, refused_wrench_;  // from the loop
  std::atomic<bool> is_active_{false}, is_enabled_{true}, is_watched_{false},
    is_cancelled_{false};
  std::mutex changing_;  // guards arm_ and put() of its mailboxes; the loop takes no lock
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__CONTROLLER_LOGIC_HPP_
