// SPDX-License-Identifier: Apache-2.0
// External torques of an arm, from its momentum, and when they are a contact.
#ifndef ROBODYN_ROS__CORE__CONTACT_HPP_
#define ROBODYN_ROS__CORE__CONTACT_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "model.hpp"
#include "settings.hpp"

namespace robodyn
{

struct ObserverSettings
{
  Vector gain;  // K of each joint [1/s]: a step of the torque is followed to 95 % within 3 / K
  // Whether the torque of a sample is that of the whole step before it, as one's own commands are.
  // Otherwise it is of the sample's instant, and the mean of two is that of the step.
  bool is_held = true;
  double longest = 0.1;             // s; a longer step tells nothing
  double friction_velocity = 0.01;  // rad/s or m/s, the width of the smooth sign
  double presliding = 0.0;          // rad or m, over which friction turns; 0: with the velocity
};

// Estimates external torques from one sample to the next.
//
// With the momentum p = M(q) qd and the torque tau of the drives the outside's torque is
//
//     tau_ext = dp/dt - C(q, qd)T qd + g(q) + friction - tau,
//
// and the observer of De Luca and Mattone returns its low-pass, K / (s + K) tau_ext, joint by
// joint. Here the balance is that of one step between two samples, by the midpoint rule. In it
// dp/dt = M dqd/dt + dM/dt qd and C(q, qd)T qd = dM/dt qd - C(q, qd) qd, so that dM/dt cancels: what
// is left is the inverse dynamics at the middle of the step, under the step's change of velocity.
//
// The low-pass is solved exactly over a step of whatever length, so that nothing depends on the
// rate but how well a midpoint stands for the step; forward Euler, the usual choice, overshoots
// from K dt = 1 on and diverges from 2 on. An acceleration is never formed but inside the low-pass,
// where noise of the velocity has the finite gain K M.
//
// A. De Luca and R. Mattone, "Sensorless robot collision detection and hybrid force/motion
// control", ICRA 2005, eqs. 8 to 10; A. De Luca et al., "Collision detection and safe reaction with
// the DLR-III lightweight manipulator arm", IROS 2006.
class MomentumObserver
{
public:
  MomentumObserver(std::size_t joints, const ObserverSettings & settings)
  : n_(joints),
    settings_(settings),
    velocity_(n_),
    effort_(n_),
    turned_(n_),
    torque_(n_),
    middle_(n_),
    half_(n_),
    change_(n_),
    rigid_(n_),
    direction_(n_),
    friction_(n_),
    next_(n_)
  {
  }

  // The estimate [N m or N]: what the outside adds to the drives' torques, and zero after a reset.
  const Vector & torque() const { return torque_; }
  // Samples with a number that is not finite, which count as samples that never came.
  std::uint64_t passed_over() const { return passed_over_; }
  void change_longest(double longest) { settings_.longest = longest; }

  // Forget everything, as if no sample had come.
  void reset()
  {
    for (Vector * const each : {&velocity_, &effort_, &turned_, &torque_}) {
      std::fill(each->begin(), each->end(), 0.0);
    }
    time_ = kNaN;
  }

  // Take in a sample: positions, velocities, the drives' torques and the time [s]. Return whether
  // there is an estimate: the first sample gives none, nor does one that is not finite. A time that
  // goes back, or that is too far ahead, is a first sample again; one that stands still changes
  // nothing.
  bool update(
    LoadedModel & model, const double * q, const double * qd, const double * torque, double time)
  {
    const double step = time - time_;
    if (!(0.0 <= step && step <= settings_.longest)) {
      reset();
      double sum = time;
      for (std::size_t i = 0; i < n_; ++i) { sum += q[i] + qd[i] + torque[i]; }
      if (std::isfinite(sum)) {
        keep(qd, torque, time);
      } else {
        ++passed_over_;
      }
      return false;
    }
    if (step == 0.0) { return true; }
    if (!estimate(model, q, qd, torque, step)) {
      ++passed_over_;
      return false;
    }
    torque_.swap(next_);
    turned_ = direction_;
    keep(qd, torque, time);
    return true;
  }

private:
  static constexpr double kRestVelocity = 0.002;  // a slower joint's velocity is noise

  void keep(const double * qd, const double * torque, double time)
  {
    std::copy_n(qd, n_, velocity_.begin());
    std::copy_n(torque, n_, effort_.begin());
    time_ = time;
  }

  // Write the next estimate and the direction of motion, and return whether they are finite.
  bool estimate(
    LoadedModel & model, const double * q, const double * qd, const double * torque, double step)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      half_[i] = 0.5 * (qd[i] + velocity_[i]);
      // Half a step back from here, not the mean of two: positions may jump by whole turns.
      middle_[i] = q[i] - 0.5 * step * half_[i];
      change_[i] = (qd[i] - velocity_[i]) / step;
      direction_[i] = direction(i, step);
    }
    const bool could =
      model.inverse_dynamics(1, middle_.data(), half_.data(), change_.data(), rigid_.data()) &&
      model.friction_torque(half_.data(), direction_.data(), rigid_.data(), friction_.data());
    if (!could) { return false; }
    double size = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double driven = settings_.is_held ? torque[i] : 0.5 * (torque[i] + effort_[i]);
      const double external = rigid_[i] + friction_[i] - driven;
      next_[i] = torque_[i] - std::expm1(-step * settings_.gain[i]) * (external - torque_[i]);
      size += external * external;
    }
    return std::isfinite(size);
  }

  // The direction of motion of a joint after a step at half_, -1 to 1: with presliding it turns
  // over a displacement.
  double direction(std::size_t i, double step) const
  {
    if (settings_.presliding == 0.0) { return std::tanh(half_[i] / settings_.friction_velocity); }
    const double moved = std::fabs(half_[i]) > kRestVelocity ? half_[i] * step : 0.0;
    if (moved == 0.0) { return turned_[i]; }
    const double sign = moved > 0.0 ? 1.0 : -1.0;
    return sign + std::exp(-std::fabs(moved) / settings_.presliding) * (turned_[i] - sign);
  }

  const std::size_t n_;
  ObserverSettings settings_;
  Vector velocity_, effort_;  // of the last sample
  Vector turned_;             // the direction of motion
  Vector torque_;             // the estimate
  double time_ = kNaN;
  std::uint64_t passed_over_ = 0;
  Vector middle_, half_, change_, rigid_, direction_, friction_, next_;
};

constexpr double kStandstill = 0.02;  // a slower joint stands: stiction decides what is needed

// A threshold, in standard deviations of what the observer says without contact; and the deviation
// where nothing is known of it, as a fraction of an effort limit.
constexpr double kDeviations = 4.0, kUnknownDeviation = 0.01;

// Return the deviation of an external torque at a velocity, of which one is known from motion: a
// joint that stands may hide as much as its Coulomb friction.
inline double torque_deviation(double known, double coulomb, double velocity)
{
  return std::hypot(known, std::fabs(velocity) < kStandstill ? coulomb / std::sqrt(3.0) : 0.0);
}

// Says which joints stand, or have stood or turned round of late.
class StationaryJoints
{
public:
  explicit StationaryJoints(std::size_t joints) : stood_(joints), velocity_(joints) { reset(); }

  std::size_t joints() const { return stood_.size(); }

  // Begin anew, every joint taken to move on as it does.
  void reset()
  {
    std::fill(stood_.begin(), stood_.end(), -kInfinity);
    std::fill(velocity_.begin(), velocity_.end(), 0.0);
  }

  // Return it of a joint for the next sample, once each; times [s] do not go back.
  bool update(std::size_t joint, double velocity, double time)
  {
    if (std::fabs(velocity) < kStandstill || velocity * velocity_[joint] <= 0.0) {
      stood_[joint] = time;
    }
    velocity_[joint] = velocity;
    return stood_[joint] >= time - kReversalTime - kTimeRounding;
  }

  static constexpr double kTimeRounding = 1e-6;  // of differences of stamps [s]

private:
  // So long after it stood, or turned round, a joint's friction is not what it will be [s].
  static constexpr double kReversalTime = 0.3;

  Vector stood_;     // when each joint stood or turned round last [s]
  Vector velocity_;  // of the last sample
};

struct ContactThresholds
{
  Vector moving;        // of a joint that moves [N m or N]
  Vector stationary;    // of one that stands, or stood or turned round of late
  double dwell = 0.02;  // s beyond a threshold until it is a contact, and below until it is over
};

struct Contact
{
  int joint = -1;      // that showed it first, or most clearly
  int outermost = -1;  // that shows it: likely it is on the link that this one moves, or beyond
  double torque = 0.0, threshold = 0.0;  // of that joint [N m or N]
  double began = 0.0, time = 0.0;        // when it exceeded the threshold, when this is said [s]
};

enum class ContactEvent : std::uint8_t { none, begins, ends };

// Tells contacts from what an arm shows without any.
//
// Of a joint that stands the change counts: what lasts is stiction, or a contact that nothing tells
// from it. So a lasting contact with a stationary arm is over after some seconds.
class ContactDetector
{
public:
  ContactDetector(std::size_t joints, const ContactThresholds & thresholds)
  : n_(joints),
    thresholds_(thresholds),
    stationary_(n_),
    stiction_(n_),
    since_(n_),
    ratio_(n_),
    threshold_(n_)
  {
    reset();
  }

  bool is_in_contact() const { return is_in_contact_; }
  const Contact & contact() const { return contact_; }  // the one that lasts, or the last one
  std::uint64_t count() const { return count_; }

  // Begin anew, with no contact, every joint taken to have just stood.
  void reset()
  {
    stationary_.reset();
    std::fill(stiction_.begin(), stiction_.end(), 0.0);
    std::fill(since_.begin(), since_.end(), kInfinity);
    free_since_ = kInfinity;
    time_ = -kInfinity;
    is_in_contact_ = false;
  }

  // Take in a sample, of velocities, the observer's torques and the time [s], and return whether a
  // contact begins or ends with it. Where time goes back, everything begins anew.
  ContactEvent update(const double * qd, const double * torque, double time)
  {
    if (time < time_) { reset(); }
    const double slowness = is_in_contact_ ? kAccustomingInContact : kAccustoming;
    const double followed = time_ == -kInfinity ? 0.0 : -std::expm1((time_ - time) / slowness);
    const double latest = time - thresholds_.dwell + StationaryJoints::kTimeRounding;
    int clearest = -1;
    for (std::size_t i = 0; i < n_; ++i) {
      const bool is_slow = std::fabs(qd[i]) < kStandstill;
      double change = torque[i];
      if (!is_slow) {
        stiction_[i] = 0.0;
      } else if (std::isfinite(change)) {
        change -= stiction_[i];
        stiction_[i] += followed * change;
      }
      const bool is_stationary = stationary_.update(i, qd[i], time);
      threshold_[i] = is_stationary ? thresholds_.stationary[i] : thresholds_.moving[i];
      ratio_[i] = std::fabs(change) / threshold_[i];
      since_[i] = ratio_[i] > 1.0 ? std::min(since_[i], time) : kInfinity;
      const bool is_clearer =
        clearest < 0 || ratio_[i] > ratio_[static_cast<std::size_t>(clearest)];
      if (since_[i] <= latest && is_clearer) { clearest = static_cast<int>(i); }
    }
    time_ = time;
    if (is_in_contact_) { return ended(latest); }
    if (clearest < 0) { return ContactEvent::none; }
    const auto joint = static_cast<std::size_t>(clearest);
    contact_ = {clearest, clearest, torque[joint], threshold_[joint], since_[joint], time};
    for (std::size_t i = 0; i < n_; ++i) {
      if (ratio_[i] > kSuspicion) { contact_.outermost = static_cast<int>(i); }
    }
    is_in_contact_ = true;
    ++count_;
    free_since_ = kInfinity;
    return ContactEvent::begins;
  }

private:
  // A contact is over when every torque is under this fraction of its threshold.
  static constexpr double kRelease = 0.7;
  // A joint beyond this fraction says that a contact lies on its link or beyond.
  static constexpr double kSuspicion = 0.5;
  // Time constants with which a stationary joint's torque is taken for stiction [s]: drives wind up
  // against it slowly, and a push leaves some of it behind.
  static constexpr double kAccustoming = 1.0, kAccustomingInContact = 5.0;

  ContactEvent ended(double latest)
  {
    const bool is_free =
      std::none_of(ratio_.begin(), ratio_.end(), [](double ratio) { return ratio >= kRelease; });
    free_since_ = is_free ? std::min(free_since_, time_) : kInfinity;
    if (!(free_since_ <= latest)) { return ContactEvent::none; }
    is_in_contact_ = false;
    contact_.time = time_;
    return ContactEvent::ends;
  }

  const std::size_t n_;
  const ContactThresholds thresholds_;
  StationaryJoints stationary_;
  Vector stiction_;  // what its torque is taken for while it stands
  Vector since_;     // when it exceeded its threshold [s]
  Vector ratio_, threshold_;
  bool is_in_contact_ = false;
  Contact contact_;
  std::uint64_t count_ = 0;
  double time_ = -kInfinity, free_since_ = kInfinity;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__CONTACT_HPP_
