// SPDX-License-Identifier: Apache-2.0
// Faults and answers to requests: numbers only; words.hpp has their words.
#ifndef ROBODYN_ROS__CORE__FAULTS_HPP_
#define ROBODYN_ROS__CORE__FAULTS_HPP_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace robodyn
{

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Why a reference was dropped, nothing is commanded, or a request is refused.
enum class Cause : std::uint8_t {
  none,
  following_error,       // a joint is further from its reference than max_following_error
  implausible_position,  // a position changed faster than its joint can move
  overspeed,             // a joint moves faster than kOverspeed times its velocity limit
  overload,              // gravity is beyond an effort limit where the arm is
  unknown_velocity,      // velocities are not known while a reference is followed
  stale_state,           // no valid state for longer than state_timeout
  far_reference,         // a setpoint that begins, or steps, further than max_reference_step
  reference_position,    // a setpoint beyond a position limit
  reference_velocity,    // a setpoint beyond a velocity limit
  feedback_far_away,     // feedback would begin far from the reference
  impossible_position,   // a position so far beyond its limits that it is in another unit
  clock,                 // the states' stamps jumped, stopped or do not keep pace with time
  no_following_mode,     // the new mode follows no reference
  contact,               // a contact, and a reaction is set
  slow_states,           // at a rate [Hz] below what the gains need, the limit
  damping_adds_energy,   // damping is off: kinetic energy [J] grew over its minimum, the limit
  wrong_velocity,        // of a joint, not that of its positions; value: their ratio
  // What follows refuses requests.
  inactive,              // nothing is commanded, or commanding ends
  mode_without_tip,      // it has no springs for a pose
  mode_without_springs,  // nor for a wrench
  unacknowledged,        // a fault that no reference and no cancellation has acknowledged
  not_followed,          // there is no reference, or no fresh state
  no_spring,             // the tip has no stiffness
  not_finite,
  quaternion,  // its norm is not 1
  reach,       // a pose beyond what the arm can reach
  force,
  moment,
  unsteady,   // the arm or its reference moves, or did just now
  no_weight,  // what changed is none that hangs at the tip
  // What follows refuses joint states.
  message_size,    // more bytes than are read
  joint_count,     // more names
  no_joint_state,  // bytes that are none
  position_count,  // positions, names
  velocity_count,  // velocities, names
  repeated_joint,
};

// In the order of Cause.
constexpr const char * kCauseNames[] = {
  "none",
  "following_error",
  "implausible_position",
  "overspeed",
  "overload",
  "unknown_velocity",
  "stale_state",
  "far_reference",
  "reference_position",
  "reference_velocity",
  "feedback_far_away",
  "impossible_position",
  "clock",
  "no_following_mode",
  "contact",
  "slow_states",
  "damping_adds_energy",
  "wrong_velocity",
  "inactive",
  "mode_without_tip",
  "mode_without_springs",
  "unacknowledged",
  "not_followed",
  "no_spring",
  "not_finite",
  "quaternion",
  "reach",
  "force",
  "moment",
  "unsteady",
  "no_weight",
  "message_size",
  "joint_count",
  "no_joint_state",
  "position_count",
  "velocity_count",
  "repeated_joint"};
static_assert(
  sizeof(kCauseNames) / sizeof(*kCauseNames) ==
    static_cast<std::size_t>(Cause::repeated_joint) + 1,
  "one name for each cause");

// Also the answer to a request; no cause: it is accepted.
struct Fault
{
  Cause cause = Cause::none;
  int joint = -1;  // in chain order; -1: none
  double value = kNaN, limit = kNaN;

  explicit operator bool() const { return cause != Cause::none; }
  const char * name() const { return kCauseNames[static_cast<std::size_t>(cause)]; }
};

// Why the last state gave no command.
enum class Refusal : std::uint8_t { none, implausible, overload, not_finite, contradicting };

struct Counts
{
  std::uint64_t refused_torques = 0, implausible_states = 0, following_errors = 0;
  std::uint64_t dropped_references = 0, refused_references = 0;
};

// The faults since a request acknowledged the last ones, and how often what happened.
class FaultBook
{
public:
  // The first, why a reference was last dropped or commanding refused, and further ones since.
  const std::array<Fault, 3> & all() const { return all_; }
  const Fault & first() const { return all_[0]; }
  const Fault & newest() const { return newest_; }        // no cause: they are acknowledged
  const Fault & last_drop() const { return last_drop_; }  // without a request
  const Counts & counts() const { return counts_; }
  std::uint64_t changes() const { return changes_; }  // one began, or all were acknowledged

  void set(const Fault & what)
  {
    all_ = {what};
    newest_ = what;
    ++changes_;
    counts_.following_errors += what.cause == Cause::following_error;
  }

  // Set a fault that may go on from cycle to cycle: it begins once.
  void keep(const Fault & what)
  {
    if (what.cause == all_[0].cause && what.joint == all_[0].joint) {
      all_[0] = what;
    } else {
      set(what);
    }
  }

  // Add a fault to those that are not acknowledged; the last place is written again.
  void add(const Fault & what)
  {
    all_[!all_[0] ? 0 : !all_[1] ? 1 : 2] = newest_ = what;
    ++changes_;
  }

  void acknowledge() { set({}); }

  // A reference is dropped, or one that is asked for is refused.
  void drop(const Fault & why)
  {
    last_drop_ = why;
    ++counts_.dropped_references;
  }
  void refuse_reference(const Fault & why)
  {
    set(why);
    ++counts_.refused_references;
  }
  void count_refused_torque() { ++counts_.refused_torques; }
  void count_implausible_state() { ++counts_.implausible_states; }

private:
  std::array<Fault, 3> all_;
  Fault newest_, last_drop_;
  Counts counts_;
  std::uint64_t changes_ = 0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__FAULTS_HPP_
