// SPDX-License-Identifier: Apache-2.0
// External torques of an arm, the wrench at its tip, and contacts.
#ifndef ROBODYN_CONTROLLERS__CONTACT_WATCH_HPP_
#define ROBODYN_CONTROLLERS__CONTACT_WATCH_HPP_

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>

#include "robodyn_ros/core/contact.hpp"
#include "robodyn_ros/core/model.hpp"
#include "robodyn_ros/core/settings.hpp"
#include "robodyn_ros/core/tip_wrench.hpp"
#include "robodyn_ros/core/torque.hpp"
#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

// Only the constructor allocates. The rules are those of control/contact.py.
class ContactWatch
{
public:
  // The library must outlive it; the model is the core's view of it. Torques are those that the
  // drives measure, or those that are commanded.
  ContactWatch(
    const robodyn_model & library, const robodyn::Model & model, const double * load,
    const robodyn::Settings & settings, bool is_measured)
  : is_measured_(is_measured),
    library_(library),
    n_(model.joints),
    point_(settings.wrench_point),
    model_(model, load),
    observer_(model_, observer_settings(settings, !is_measured)),
    wrench_(n_),
    moving_deviation_(n_),
    coulomb_(n_),
    deviation_(n_),
    applied_(n_),
    position_(n_),
    velocity_(n_),
    zero_(n_),
    jacobian_(6 * n_)
  {
    if (
      settings.contact_threshold_moving.empty() !=
      settings.contact_threshold_stationary.empty()) {
      throw std::runtime_error(
        "parameters contact_threshold_moving and contact_threshold_stationary; allowed: "
        "both, or neither");
    }
    if (!settings.contact_threshold_moving.empty()) {
      detector_.emplace(
        n_, robodyn::ContactThresholds{
              settings.contact_threshold_moving, settings.contact_threshold_stationary,
              settings.contact_dwell});
    }
    // Coulomb friction is half the difference of the friction torques in both directions of a
    // joint that moves alone.
    robodyn::Vector direction(model_.drives()), resistance(n_), alone(n_);
    for (std::size_t i = 0; i < n_; ++i) {
      for (const double way : {1.0, -1.0}) {
        alone[i] = way;
        for (std::size_t k = 0; k < direction.size(); ++k) {
          const double rate = model_.drive_velocity(k, alone.data());
          direction[k] = static_cast<double>(rate > 0.0) - static_cast<double>(rate < 0.0);
        }
        alone[i] = 0.0;
        model.friction_torque(
          model.self, zero_.data(), direction.data(), zero_.data(), resistance.data());
        coulomb_[i] += 0.5 * way * resistance[i];
      }
      moving_deviation_[i] = detector_
                             ? settings.contact_threshold_moving[i] / robodyn::kDeviations
                             : robodyn::kUnknownDeviation * settings.effort_limits[i];
    }
  }

  bool has_estimate() const { return has_estimate_; }  // whether the last state gave one
  const robodyn::Vector & torque() const { return observer_.torque(); }  // external [N m or N]
  bool is_in_contact() const { return detector_ && detector_->is_in_contact(); }
  // The present or the last contact; only with thresholds.
  const robodyn::Contact & contact() const { return detector_->contact(); }

  // Start again, as after a pause.
  void reset()
  {
    has_estimate_ = false;
    observer_.reset();
    if (detector_) { detector_->reset(); }
  }

  // Skip a cycle whose command is not that of a control cycle.
  void skip() { has_estimate_ = false; }

  // Start again with another load.
  void change_load(const double * load)
  {
    model_.change(model_.model(), load, 0.0);
    reset();
  }

  void change_longest(double longest) { observer_.change_longest(longest); }

  // Take a state at a time [s], and the measured torque, or the command under settings that acted
  // until then. Return whether a contact begins or ends with it. In feedforward the drives add a
  // torque of their own to the command, which is not known: there is no estimate.
  robodyn::ContactEvent update(
    const robodyn::Settings & settings, const double * position, const double * velocity,
    const robodyn::Vector & torque, double time)
  {
    has_estimate_ = false;
    if (!is_measured_ && settings.mode == robodyn::Mode::feedforward) {
      return robodyn::ContactEvent::none;
    }
    std::copy_n(position, n_, position_.begin());
    std::copy_n(velocity, n_, velocity_.begin());
    std::fill(applied_.begin(), applied_.end(), 0.0);
    const bool succeeded =
      is_measured_ || settings.terms.gravity ||  // else the driver adds the gravity torque itself
      model_.inverse_dynamics(1, position, zero_.data(), zero_.data(), applied_.data());
    for (std::size_t i = 0; i < n_; ++i) { applied_[i] += torque[i]; }
    has_estimate_ =
      succeeded && observer_.update(model_, position, velocity, applied_.data(), time);
    if (!has_estimate_ || !detector_) { return robodyn::ContactEvent::none; }
    return detector_->update(velocity, observer_.torque().data(), time);
  }

  // Return the wrench on the tip that explains the external torques of the last state.
  const robodyn::TipWrench & tip_wrench()
  {
    for (std::size_t i = 0; i < n_; ++i) {
      deviation_[i] = robodyn::torque_deviation(moving_deviation_[i], coulomb_[i], velocity_[i]);
    }
    library_.forward_kinematics(library_.tip, position_.data(), pose_.data());
    library_.jacobian(library_.tip, position_.data(), jacobian_.data());
    wrench_.update(
      pose_.data(), jacobian_.data(), point_.data(), observer_.torque().data(),
      deviation_.data());
    return wrench_;
  }

private:
  static robodyn::ObserverSettings observer_settings(
    const robodyn::Settings & settings, bool is_held)
  {
    robodyn::ObserverSettings observer;
    observer.is_held = is_held;
    observer.gain = settings.observer_gain;
    observer.longest = settings.state_timeout;
    observer.friction_velocity = settings.friction_velocity;
    return observer;
  }

  const bool is_measured_;
  const robodyn_model & library_;
  const std::size_t n_;
  const std::array<double, 3> point_;
  robodyn::LoadedModel model_;
  robodyn::MomentumObserver observer_;
  std::optional<robodyn::ContactDetector> detector_;
  robodyn::TipWrench wrench_;
  robodyn::Vector moving_deviation_,
    coulomb_;  // deviation of a moving joint, friction [N m or N]
  robodyn::Vector deviation_, applied_, position_, velocity_;
  const robodyn::Vector zero_;
  robodyn::Vector jacobian_;
  std::array<double, 16> pose_{};
  bool has_estimate_ = false;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__CONTACT_WATCH_HPP_
