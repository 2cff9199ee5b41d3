// SPDX-License-Identifier: Apache-2.0
// External torques of an arm by a momentum observer, and the detection of contacts.
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
  // Whether the torque of a sample acted during the whole step before it, as commands do.
  // Otherwise it is that of the sample's instant, and the mean of two is that of the step.
  bool is_held = true;
  double longest = 0.1;             // s; a longer step gives no estimate
  double friction_velocity = 0.01;  // rad/s or m/s, the width of the smooth sign
  double presliding = 0.0;  // rad or m, over which friction reverses; 0: with the velocity
};

// Estimates external torques from one sample to the next.
//
// With the momentum p = M(q) qd and the torque tau of the drives the external torque is
//
//     tau_ext = dp/dt - C(q, qd)T qd + g(q) + friction - tau,
//
// and the observer of De Luca and Mattone returns its low-pass, K / (s + K) tau_ext, joint by
// joint. Here the balance is that of one step between two samples, by the midpoint rule. In it
// dp/dt = M dqd/dt + dM/dt qd and C(q, qd)T qd = dM/dt qd - C(q, qd) qd, so that dM/dt cancels: what
// is left is the inverse dynamics at the middle of the step, under the step's change of velocity.
//
// The low-pass is solved exactly over a step of any length, so that only the error of the
// midpoint rule depends on the rate; forward Euler, the usual choice, overshoots from K dt = 1
// on and diverges from 2 on. The acceleration only enters through the low-pass, where noise of
// the velocity has the finite gain K M.
//
// A. De Luca and R. Mattone, "Sensorless robot collision detection and hybrid force/motion
// control", ICRA 2005, eqs. 8 to 10; A. De Luca et al., "Collision detection and safe reaction with
// the DLR-III lightweight manipulator arm", IROS 2006.
class MomentumObserver
{
public:
  MomentumObserver(const LoadedModel & model, const ObserverSettings & settings)
  : n_(model.joints()),
    settings_(settings),
    velocity_(n_),
    last_torque_(n_),
    last_direction_(model.drives()),
    torque_(n_),
    mid_position_(n_),
    mid_velocity_(n_),
    acceleration_(n_),
    rigid_(n_),
    direction_(model.drives()),
    friction_(n_),
    next_(n_)
  {
  }

  // The estimate [N m or N]: torques on the joints beside those of the drives; zero after a
  // reset.
  const Vector & torque() const { return torque_; }
  // Number of samples that were skipped: one of their numbers is not finite.
  std::uint64_t skipped() const { return skipped_; }
  void change_longest(double longest) { settings_.longest = longest; }

  // Discard all samples.
  void reset()
  {
    for (Vector * const each : {&velocity_, &last_torque_, &last_direction_, &torque_}) {
      std::fill(each->begin(), each->end(), 0.0);
    }
    time_ = kNaN;
  }

  // Take a sample: positions, velocities, the drives' torques and the time [s]. Return whether
  // there is an estimate: the first sample gives none, nor does one that is not finite. A time
  // that goes back, or that is too far ahead, is a first sample again; one that stands still
  // changes nothing.
  bool update(
    LoadedModel & model, const double * q, const double * qd, const double * torque, double time)
  {
    const double step = time - time_;
    if (!(0.0 <= step && step <= settings_.longest)) {
      reset();
      double sum = time;
      for (std::size_t i = 0; i < n_; ++i) { sum += q[i] + qd[i] + torque[i]; }
      if (std::isfinite(sum)) {
        store(qd, torque, time);
      } else {
        ++skipped_;
      }
      return false;
    }
    if (step == 0.0) { return true; }
    if (!estimate(model, q, qd, torque, step)) {
      ++skipped_;
      return false;
    }
    torque_.swap(next_);
    last_direction_ = direction_;
    store(qd, torque, time);
    return true;
  }

private:
  static constexpr double kRestVelocity =
    0.002;  // below it a joint's velocity is noise [rad/s or m/s]

  void store(const double * qd, const double * torque, double time)
  {
    std::copy_n(qd, n_, velocity_.begin());
    std::copy_n(torque, n_, last_torque_.begin());
    time_ = time;
  }

  // Write the next estimate and the direction of motion, and return whether they are finite.
  bool estimate(
    LoadedModel & model, const double * q, const double * qd, const double * torque, double step)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      mid_velocity_[i] = 0.5 * (qd[i] + velocity_[i]);
      // Half a step back from here, not the mean of two: positions may jump by whole turns.
      mid_position_[i] = q[i] - 0.5 * step * mid_velocity_[i];
      acceleration_[i] = (qd[i] - velocity_[i]) / step;
    }
    for (std::size_t k = 0; k < direction_.size(); ++k) {
      direction_[k] =
        direction(model.drive_velocity(k, mid_velocity_.data()), last_direction_[k], step);
    }
    const bool succeeded =
      model.inverse_dynamics(
        1, mid_position_.data(), mid_velocity_.data(), acceleration_.data(), rigid_.data()) &&
      model.friction_torque(
        mid_velocity_.data(), direction_.data(), rigid_.data(), friction_.data());
    if (!succeeded) { return false; }
    double size = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double drive_torque =
        settings_.is_held ? torque[i] : 0.5 * (torque[i] + last_torque_[i]);
      const double external = rigid_[i] + friction_[i] - drive_torque;
      next_[i] = torque_[i] - std::expm1(-step * settings_.gain[i]) * (external - torque_[i]);
      size += external * external;
    }
    return std::isfinite(size);
  }

  // The direction of motion of a drive after a step at a velocity, -1 to 1: with presliding it
  // reverses over a displacement.
  double direction(double velocity, double last, double step) const
  {
    if (settings_.presliding == 0.0) { return std::tanh(velocity / settings_.friction_velocity); }
    const double moved = std::fabs(velocity) > kRestVelocity ? velocity * step : 0.0;
    if (moved == 0.0) { return last; }
    const double sign = moved > 0.0 ? 1.0 : -1.0;
    return sign + std::exp(-std::fabs(moved) / settings_.presliding) * (last - sign);
  }

  const std::size_t n_;
  ObserverSettings settings_;
  Vector velocity_, last_torque_;  // of the last sample
  Vector last_direction_;          // of the drives' motion, after the last sample
  Vector torque_;                  // the estimate
  double time_ = kNaN;
  std::uint64_t skipped_ = 0;
  Vector mid_position_, mid_velocity_, acceleration_, rigid_, direction_, friction_, next_;
};

constexpr double kStandstill = 0.02;  // a slower joint is stationary: stiction is unknown

// A threshold, in standard deviations of the observer's estimate without contact; and the
// deviation where it is not known, as a fraction of an effort limit.
constexpr double kDeviations = 4.0, kUnknownDeviation = 0.01;

// Return the standard deviation of an external torque at a velocity, given that of a moving
// joint: the stiction of a stationary joint may hide up to its Coulomb friction, taken as
// uniformly distributed.
inline double torque_deviation(double known, double coulomb, double velocity)
{
  return std::hypot(known, std::fabs(velocity) < kStandstill ? coulomb / std::sqrt(3.0) : 0.0);
}

// Tells which joints are stationary, or were, or reversed, within the last kReversalTime.
class StationaryJoints
{
public:
  explicit StationaryJoints(std::size_t joints) : last_stationary_(joints), velocity_(joints)
  {
    reset();
  }

  std::size_t joints() const { return last_stationary_.size(); }

  // Start again; the first sample of each joint counts as a reversal.
  void reset()
  {
    std::fill(last_stationary_.begin(), last_stationary_.end(), -kInfinity);
    std::fill(velocity_.begin(), velocity_.end(), 0.0);
  }

  // Return it for a joint's next sample, to be called once for each; times [s] must not
  // decrease.
  bool update(std::size_t joint, double velocity, double time)
  {
    if (std::fabs(velocity) < kStandstill || velocity * velocity_[joint] <= 0.0) {
      last_stationary_[joint] = time;
    }
    velocity_[joint] = velocity;
    return last_stationary_[joint] >= time - kReversalTime - kTimeRounding;
  }

  static constexpr double kTimeRounding = 1e-6;  // of differences of stamps [s]

private:
  // After a stop or a reversal a joint's friction settles for this time [s].
  static constexpr double kReversalTime = 0.3;

  Vector last_stationary_;  // when each joint was stationary, or reversed, last [s]
  Vector velocity_;         // of the last sample
};

struct ContactThresholds
{
  Vector moving;        // of a joint that moves [N m or N]
  Vector stationary;    // of one that StationaryJoints reports
  double dwell = 0.02;  // s, above a threshold to begin a contact, below to end it
};

struct Contact
{
  int joint = -1;      // with the largest ratio of torque to threshold
  int outermost = -1;  // that shows it: it is likely on this joint's link, or further out
  double torque = 0.0, threshold = 0.0;  // of that joint [N m or N]
  double began = 0.0, time = 0.0;        // of exceeding the threshold, of this report [s]
};

enum class ContactEvent : std::uint8_t { none, begins, ends };

// Detects contacts: external torques beyond those estimated without contact.
//
// Of a stationary joint the change of the torque counts: a lasting torque is stiction, or a
// contact that cannot be told from it. So a lasting contact with a stationary arm ends after
// some seconds.
class ContactDetector
{
public:
  ContactDetector(std::size_t joints, const ContactThresholds & thresholds)
  : n_(joints),
    thresholds_(thresholds),
    stationary_(n_),
    stiction_(n_),
    exceeded_since_(n_),
    ratio_(n_),
    threshold_(n_)
  {
    reset();
  }

  bool is_in_contact() const { return is_in_contact_; }
  const Contact & contact() const { return contact_; }  // the present or the last one
  std::uint64_t count() const { return count_; }

  // Start again, without contact or stiction; each joint's first sample counts as a reversal.
  void reset()
  {
    stationary_.reset();
    std::fill(stiction_.begin(), stiction_.end(), 0.0);
    std::fill(exceeded_since_.begin(), exceeded_since_.end(), kInfinity);
    below_since_ = kInfinity;
    time_ = -kInfinity;
    is_in_contact_ = false;
  }

  // Take a sample of velocities, the observer's torques and the time [s], and return whether a
  // contact begins or ends with it. Where time goes back, start again.
  ContactEvent update(const double * qd, const double * torque, double time)
  {
    if (time < time_) { reset(); }
    const double time_constant = is_in_contact_ ? kStictionTimeInContact : kStictionTime;
    const double adaptation =
      time_ == -kInfinity ? 0.0 : -std::expm1((time_ - time) / time_constant);
    const double latest = time - thresholds_.dwell + StationaryJoints::kTimeRounding;
    int clearest = -1;
    for (std::size_t i = 0; i < n_; ++i) {
      const bool is_slow = std::fabs(qd[i]) < kStandstill;
      double change = torque[i];
      // Only a stationary joint's lasting torque counts as stiction.
      if (!is_slow) {
        stiction_[i] = 0.0;
      } else if (std::isfinite(change)) {
        change -= stiction_[i];
        stiction_[i] += adaptation * change;
      }
      const bool is_stationary = stationary_.update(i, qd[i], time);
      threshold_[i] = is_stationary ? thresholds_.stationary[i] : thresholds_.moving[i];
      ratio_[i] = std::fabs(change) / threshold_[i];
      exceeded_since_[i] = ratio_[i] > 1.0 ? std::min(exceeded_since_[i], time) : kInfinity;
      const bool is_clearer =
        clearest < 0 || ratio_[i] > ratio_[static_cast<std::size_t>(clearest)];
      if (exceeded_since_[i] <= latest && is_clearer) { clearest = static_cast<int>(i); }
    }
    time_ = time;
    if (is_in_contact_) { return ended(latest); }
    if (clearest < 0) { return ContactEvent::none; }
    const auto joint = static_cast<std::size_t>(clearest);
    contact_ = {clearest, clearest, torque[joint], threshold_[joint], exceeded_since_[joint],
                time};
    for (std::size_t i = 0; i < n_; ++i) {
      if (ratio_[i] > kLocationFraction) { contact_.outermost = static_cast<int>(i); }
    }
    is_in_contact_ = true;
    ++count_;
    below_since_ = kInfinity;
    return ContactEvent::begins;
  }

private:
  // A contact ends when every torque is below this fraction of its threshold.
  static constexpr double kEndFraction = 0.7;
  // A joint above this fraction shows that the contact is on its link or further out.
  static constexpr double kLocationFraction = 0.5;
  // Time constants with which a stationary joint's torque becomes its stiction estimate [s]:
  // drives wind up against stiction slowly, and a push leaves some of it behind.
  static constexpr double kStictionTime = 1.0, kStictionTimeInContact = 5.0;

  ContactEvent ended(double latest)
  {
    const bool is_below = std::none_of(
      ratio_.begin(), ratio_.end(), [](double ratio) { return ratio >= kEndFraction; });
    below_since_ = is_below ? std::min(below_since_, time_) : kInfinity;
    if (!(below_since_ <= latest)) { return ContactEvent::none; }
    is_in_contact_ = false;
    contact_.time = time_;
    return ContactEvent::ends;
  }

  const std::size_t n_;
  const ContactThresholds thresholds_;
  StationaryJoints stationary_;
  Vector stiction_;        // estimate for a stationary joint [N m or N]
  Vector exceeded_since_;  // when it exceeded its threshold [s]
  Vector ratio_, threshold_;
  bool is_in_contact_ = false;
  Contact contact_;
  std::uint64_t count_ = 0;
  double time_ = -kInfinity, below_since_ = kInfinity;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__CONTACT_HPP_
