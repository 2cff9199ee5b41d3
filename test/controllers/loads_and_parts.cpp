// SPDX-License-Identifier: Apache-2.0
// Which loads the controller takes, and the parts of its torque.

#include "robodyn_controllers/controller_logic.hpp"

extern "C" int load_is_accepted(
  const robodyn_model * model, const robodyn_payload * payload, const double * gravity)
{
  robodyn::Vector load(static_cast<std::size_t>(model->load_size));
  const std::vector<double> given(gravity, gravity + 3);
  return robodyn_controllers::checked_load(*model, {*payload}, given, load).empty();
}

extern "C" int feedforward(
  const robodyn_model * model, double width, const double * q, const double * qd,
  const double * qdd, double * parts)
{
  const auto n = static_cast<std::size_t>(model->joints);
  const robodyn::Vector load = robodyn_controllers::first_load(*model), zero(n);
  robodyn::LoadedModel arm(robodyn::core_model(*model), load.data());
  robodyn::Settings settings;
  settings.mode = robodyn::Mode::feedforward;
  settings.kp = settings.kd = zero;
  settings.terms.gravity_factor.assign(n, 1.0);
  settings.friction_velocity = width;
  robodyn::LawCoefficients law(n);
  law.set_law(settings);
  robodyn::TorqueParts computed(arm);
  robodyn::Vector found(robodyn::part::count * n), position(q, q + n);
  robodyn::ReferenceState desired(n);
  std::copy_n(q, n, desired.position.begin());
  std::copy_n(qd, n, desired.velocity.begin());
  std::copy_n(qdd, n, desired.acceleration.begin());
  const bool succeeded =
    computed.compute(law, 0.0, 0.0, arm, zero, position, zero, &desired, found);
  std::copy(found.begin(), found.end(), parts);
  return succeeded;
}
