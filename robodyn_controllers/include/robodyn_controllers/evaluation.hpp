// SPDX-License-Identifier: Apache-2.0
// The torque that a law asks for, up to the soft joint limits; evaluation.py.
#ifndef ROBODYN_CONTROLLERS__EVALUATION_HPP_
#define ROBODYN_CONTROLLERS__EVALUATION_HPP_

#include <cstddef>

#include "robodyn_controllers/pipeline_state.hpp"
#include "robodyn_controllers/reference_follower.hpp"

namespace robodyn_controllers
{

class Evaluation
{
public:
  explicit Evaluation(PipelineState & state)
  : state_(state), parts_(ROBODYN_PARTS * state.n), faded_(ROBODYN_PARTS * state.n),
    torque_(state.n), penetration_(state.n), zero_(state.n),
    workspace_(static_cast<std::size_t>(ROBODYN_WORKSPACE(state.model.joints()))) {}

  const Vector & torque() const {return torque_;}
  const Vector & parts() const {return parts_;}  // ROBODYN_PARTS times n
  const Vector & penetration() const {return penetration_;}

  // Compute torque() and its parts a time [s] after the last valid cycle, and return whether the
  // torque is finite.
  bool evaluate(
    const LawWeights & weights, const Vector & position, const Vector & velocity,
    const ReferenceState * wanted, double ahead, const ReferenceFollower & follower)
  {
    const SafetySettings & settings = state_.settings;
    const robodyn_law law = weights.law(settings.is_continuous);
    const robodyn_arm arm = state_.model.arm();
    const robodyn_reference none{nullptr, nullptr, nullptr, nullptr};
    const robodyn_reference reference = wanted != nullptr ? wanted->view() : none;
    const double * const q = position.data(), * const qd = velocity.data();
    int failed = robodyn_parts(&law, &arm, q, qd, &reference, workspace_.data(), parts_.data());
    if (follower.is_fading()) {
      const double left = follower.share_left(ahead);
      const robodyn_reference faded = follower.fading().view();
      failed |= robodyn_parts(&law, &arm, q, qd, &faded, workspace_.data(), faded_.data());
      for (std::size_t k = 0; k < parts_.size(); ++k) {
        parts_[k] = left * faded_[k] + (1.0 - left) * parts_[k];
      }
    }
    add_up();
    robodyn_soft_limited(
      &law, &arm, q, qd, settings.position_limits.data(), settings.effort_limits.data(),
      workspace_.data(), torque_.data(), penetration_.data(), &failed);
    return failed == 0 && is_finite(torque_);
  }

  // The same where nobody measures: at the reference itself, by the model alone.
  bool evaluate_at(const ReferenceState & wanted)
  {
    const robodyn_law law = state_.law.latest().law(state_.settings.is_continuous);
    const robodyn_arm arm = state_.model.arm();
    const robodyn_reference reference = wanted.view();
    robodyn_parts(
      &law, &arm, wanted.position.data(), wanted.velocity.data(), &reference, workspace_.data(),
      parts_.data());
    add_up();
    return is_finite(torque_);
  }

  // Write the gravity that the latest law compensates at a position.
  void gravity_torque(const Vector & position, Vector & torque)
  {
    const double weight = state_.law.latest().gravity();
    state_.model.inverse_dynamics(1, position.data(), zero_.data(), zero_.data(), torque.data());
    for (double & each : torque) {each = weight == 0.0 ? 0.0 : weight * each;}
  }

private:
  void add_up()
  {
    for (std::size_t i = 0; i < state_.n; ++i) {
      torque_[i] = 0.0;
      for (std::size_t k = 0; k < ROBODYN_PARTS; ++k) {torque_[i] += parts_[k * state_.n + i];}
    }
  }

  PipelineState & state_;
  Vector parts_, faded_, torque_, penetration_, zero_, workspace_;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__EVALUATION_HPP_
