// SPDX-License-Identifier: Apache-2.0
// From a state and a reference to the torque that is sent: the control law, as coefficients in
// which its torque is linear; soft joint limits; effort limit, rate limit, effort limit.
//
// At one measured state and one reference the torque of every mode is a sum of the same parts:
// the gravity torque, the reference's torque evaluated at the reference, the reference's
// torque evaluated at the measured state, and the feedback. A mode, its terms and its gains
// only set the coefficients of these parts. So the torque of a convex combination of
// coefficients is the same combination of the torques: a transition between two laws keeps
// each joint's torque between those of the two laws at the present state, also where a
// transition starts during another one.
//
// With the errors e = q_d - q and ed = qd_d - qd,
// - gravity compensation: g(q);
// - feedforward: M(q_d) qdd_d + C(q_d, qd_d) qd_d + g(q_d) + friction(qd_d) + effort;
// - computed torque: M(q) (qdd_d + K_d ed + K_p e) + C(q, qd) qd + g(q) + friction(qd_d) + effort;
// - impedance: M(q) qdd_d + C(q, qd) qd_d + g(q) + effort, friction as below, and the springs and
//   the damper of impedance.hpp;
// each part only where its term is switched on; the feedback always acts. Of g, each joint's is
// multiplied by its gravity factor. Without a reference
// every mode compensates gravity. Damping adds -d M(q) qd to the feedback. Gravity compensation and
// impedance compensate a fraction c of the friction by the measured velocity, and an impedance the
// rest by the reference's: c friction(qd) + (1 - c) friction(qd_d).
//
// C qd_d, not C qd: with dM/dt - 2 C skew-symmetric an arm in an impedance is passive, 1/2 edT M ed
// and the energy of its springs fall but for what a hand gives (B. Paden and R. Panja, Globally
// asymptotically stable 'PD+' controller for robot manipulators, Int. J. Control 47 (1988)). With
// C qd the law would add the power 1/2 qdT (dM/dt) qd. For the C of Christoffel's symbols and
// h(v) = C(q, v) v, C(q, u) v = h((u + v)/2) - h((u - v)/2).
#ifndef ROBODYN_ROS__CORE__TORQUE_HPP_
#define ROBODYN_ROS__CORE__TORQUE_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "impedance.hpp"
#include "model.hpp"
#include "reference.hpp"
#include "settings.hpp"
#include "weighing.hpp"

namespace robodyn
{

// The parts of a torque, each n numbers. The feedback has gains instead of a coefficient.
namespace part
{
constexpr std::size_t inertial = 0, coriolis = 1, gravity = 2, friction = 3, feedback = 4,
                      effort = 5, count = 6;
}

// Coefficients of the inertial, Coriolis, gravity, friction and effort parts of a reference; that of
// gravity stays 0: each joint has one of its own, below.
using PartCoefficients = std::array<double, 5>;
constexpr std::size_t kEffortCoefficient = 4;

// Bounds of kd T and sqrt(kp) T, T being the period of the states.
//
// Computed torque makes each joint's error a double integrator. With an acceleration that is
// held for T and acts a period late, a = kp T^2 and b = kd T, its characteristic polynomial is
// z^3 - 2 z^2 + (1 + b + a/2) z + a/2 - b. By Jury's criterion it is stable for a < c (1 - c)
// with c = b - a/2. For gains that may be twice as large, a < c (1 - 2 c): then b is below 1/2
// and a below 1/8, whatever the other gain is.
constexpr double kLargestKdT = 0.5, kLargestRootKpT = 0.35355339059327373;

// The coefficients of one law, or of a transition between two.
struct LawCoefficients
{
  double damping = 0.0;                            // 1/s
  double friction_slope = 0.0, limit_slope = 0.0;  // of the smooth sign, of the soft joint limits
  double assistance = 0.0, dead_zone = 0.0;  // of friction at the measured velocity; rad/s or m/s
  // Of a reference's parts, evaluated at the reference and at the measured state.
  PartCoefficients at_reference{}, at_measured{};
  double coriolis_of_reference = 0.0;  // of C(q, qd) qd_d
  // Of g(q), whether there is a reference or not; of gravity at the reference, at the measured state.
  Vector static_gravity, gravity_at_reference, gravity_at_measured;
  Vector kp, kd, limit_damping;
  ImpedanceCoefficients impedance;
  Vector3 wrench_point{};  // in the tip link's frame [m]

  explicit LawCoefficients(std::size_t joints)
  : static_gravity(joints),
    gravity_at_reference(joints),
    gravity_at_measured(joints),
    kp(joints),
    kd(joints),
    limit_damping(joints),
    impedance(joints)
  {
  }

  // Set them to those of a law, without damping.
  void set_law(const Settings & law)
  {
    const bool is_computed = law.mode == Mode::computed_torque;
    const bool is_at_tip = law.mode == Mode::cartesian_impedance;
    const bool is_impedance = is_at_tip || law.mode == Mode::joint_impedance;
    const PartCoefficients none{};
    const PartCoefficients model{
      static_cast<double>(law.terms.inertial), static_cast<double>(law.terms.coriolis), 0.0,
      static_cast<double>(law.terms.friction), 1.0};
    at_reference = law.mode == Mode::feedforward ? model : none;
    at_measured = is_computed || is_impedance ? model : none;
    const bool is_assisted = is_impedance || law.mode == Mode::gravity_compensation;
    assistance = is_assisted && law.terms.friction ? law.friction_compensation : 0.0;
    at_measured[part::friction] *= 1.0 - assistance;
    coriolis_of_reference = is_impedance ? at_measured[part::coriolis] : 0.0;
    if (is_impedance) { at_measured[part::coriolis] = 0.0; }
    dead_zone = law.friction_dead_zone;
    wrench_point = law.wrench_point;
    impedance.ratio = is_impedance ? law.impedance.damping_ratio : 0.0;
    impedance.wrench = is_impedance ? 1.0 : 0.0;
    const bool is_in_base = law.impedance.frame == Frame::base;
    Vector6 & axes = is_in_base ? impedance.along_base : impedance.along_reference;
    impedance.along_base.fill(0.0);
    impedance.along_reference.fill(0.0);
    if (is_at_tip) { axes = law.impedance.tip_stiffness; }
    for (std::size_t i = 0; i < kp.size(); ++i) {
      const double weight = law.terms.gravity ? law.terms.gravity_factor[i] : 0.0;
      static_gravity[i] = law.mode == Mode::gravity_compensation ? weight : 0.0;
      gravity_at_reference[i] = law.mode == Mode::feedforward ? weight : 0.0;
      gravity_at_measured[i] = is_computed || is_impedance ? weight : 0.0;
      kp[i] = is_computed ? law.kp[i] : 0.0;
      kd[i] = is_computed ? law.kd[i] : 0.0;
      limit_damping[i] = law.kd[i];
      impedance.joints[i] = is_impedance && !is_at_tip ? law.impedance.stiffness[i] : 0.0;
      impedance.posture[i] = is_at_tip ? law.impedance.nullspace_stiffness[i] : 0.0;
    }
    damping = 0.0;
    friction_slope = 1.0 / law.friction_velocity;
    limit_slope = law.soft_limit_width > 0.0 ? 1.0 / law.soft_limit_width : 0.0;
  }

  bool has_feedforward() const { return has_any(at_reference); }
  bool has_feedback() const { return has_any(at_measured) || any(kp) || any(kd) || yields(); }
  // Whether the arm may be moved away from its reference.
  bool yields() const { return impedance.is_any(); }
  // Whether there is anything that a reference changes.
  bool follows() const { return has_feedforward() || has_feedback(); }

  // The rate of the states that its feedback needs [Hz]; 0: it has no feedback.
  double needed_rate() const
  {
    double rate = 0.0;
    for (std::size_t i = 0; i < kp.size(); ++i) {
      rate = std::max({rate, kd[i] / kLargestKdT, std::sqrt(kp[i]) / kLargestRootKpT});
    }
    return rate;
  }

  // The coefficient of a joint's g(q) where there is no reference.
  double gravity(std::size_t i) const
  {
    return static_gravity[i] + gravity_at_reference[i] + gravity_at_measured[i];
  }
  bool has_gravity() const
  {
    return any(static_gravity) || any(gravity_at_reference) || any(gravity_at_measured);
  }

  bool operator==(const LawCoefficients & other) const
  {
    return static_gravity == other.static_gravity &&
           gravity_at_reference == other.gravity_at_reference &&
           gravity_at_measured == other.gravity_at_measured && damping == other.damping &&
           friction_slope == other.friction_slope && limit_slope == other.limit_slope &&
           at_reference == other.at_reference && at_measured == other.at_measured &&
           coriolis_of_reference == other.coriolis_of_reference && kp == other.kp &&
           kd == other.kd && limit_damping == other.limit_damping &&
           assistance == other.assistance && dead_zone == other.dead_zone &&
           impedance == other.impedance && wrench_point == other.wrench_point;
  }

  // Set them to (1 - fraction) a + fraction b.
  void interpolate(const LawCoefficients & a, const LawCoefficients & b, double fraction)
  {
    const auto between = [fraction](double x, double y) {
      return (1.0 - fraction) * x + fraction * y;
    };
    const auto each = [&between](auto & to, const auto & x, const auto & y) {
      for (std::size_t i = 0; i < to.size(); ++i) { to[i] = between(x[i], y[i]); }
    };
    each(static_gravity, a.static_gravity, b.static_gravity);
    each(gravity_at_reference, a.gravity_at_reference, b.gravity_at_reference);
    each(gravity_at_measured, a.gravity_at_measured, b.gravity_at_measured);
    damping = between(a.damping, b.damping);
    friction_slope = between(a.friction_slope, b.friction_slope);
    limit_slope = between(a.limit_slope, b.limit_slope);
    each(at_reference, a.at_reference, b.at_reference);
    each(at_measured, a.at_measured, b.at_measured);
    coriolis_of_reference = between(a.coriolis_of_reference, b.coriolis_of_reference);
    each(kp, a.kp, b.kp);
    each(kd, a.kd, b.kd);
    each(limit_damping, a.limit_damping, b.limit_damping);
    assistance = between(a.assistance, b.assistance);
    dead_zone = between(a.dead_zone, b.dead_zone);
    wrench_point = b.wrench_point;
    each(impedance.joints, a.impedance.joints, b.impedance.joints);
    each(impedance.posture, a.impedance.posture, b.impedance.posture);
    each(impedance.along_base, a.impedance.along_base, b.impedance.along_base);
    each(impedance.along_reference, a.impedance.along_reference, b.impedance.along_reference);
    impedance.wrench = between(a.impedance.wrench, b.impedance.wrench);
    // A law without springs has no ratio: a spring that comes or goes keeps its own.
    impedance.ratio = !a.yields() ? b.impedance.ratio
                    : !b.yields() ? a.impedance.ratio
                                  : between(a.impedance.ratio, b.impedance.ratio);
  }

private:
  static bool has_any(const PartCoefficients & values)
  {
    return std::any_of(values.begin(), values.end(), [](double x) { return x != 0.0; });
  }
};

// Computes the parts of torques, in memory of its own.
class TorqueParts
{
public:
  explicit TorqueParts(const LoadedModel & model)
  : n_(model.joints()),
    q_(LoadedModel::max_rows(n_) * n_),
    qd_(q_.size()),
    qdd_(q_.size()),
    tau_(q_.size()),
    direction_(model.drives()),
    load_(n_),
    friction_(n_),
    pull_(n_),
    error_(n_),
    rate_(n_),
    jacobian_(6 * n_),
    impedance_(n_)
  {
  }

  TipReference & tip() { return tip_; }
  const TipReference & tip() const { return tip_; }
  const Impedance & impedance() const { return impedance_; }
  Impedance & impedance() { return impedance_; }
  // Where the joints' reference had the tip in the last compute.
  const Pose & tip_of_reference() const { return from_; }
  // What the posture's torque may give [J], with the limits of the torque's rate.
  void allow_posture(double energy, const Vector & torque_rates)
  {
    allowed_ = {energy, &torque_rates};
  }
  // What the hand holds beside the model's load; it acts where springs do. And how much of their
  // friction compensation joints at rest get in the direction of their springs [0, 1].
  void hold(const HeldMass & held, double settling)
  {
    held_ = held;
    settling_ = settling;
  }
  // What a cycle on springs weighs with, beside what the drives hold; of the last compute.
  WeighingCycle weighing_cycle(double elapsed, const Vector & held, const Vector & velocity) const
  {
    const Vector6 wrench = held_.wrench(turn_);
    double power = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t r = 0; r < 6; ++r) {
        power -= jacobian_[r * n_ + i] * wrench[r] * rate_[i];
      }
    }
    return {
      elapsed, held.data(), jacobian_.data(), turn_, velocity, false, impedance_.kinetic_energy(),
      power};
  }
  // Write the friction of the joints that stand still, without a load.
  void stiction(const LoadedModel & model, Vector & to)
  {
    std::fill(to.begin(), to.end(), 0.0);
    std::fill(load_.begin(), load_.end(), 0.0);
    for (const double sign : {1.0, -1.0}) {
      std::fill(direction_.begin(), direction_.end(), sign);
      std::fill(error_.begin(), error_.end(), 0.0);
      model.friction_torque(error_.data(), direction_.data(), load_.data(), friction_.data());
      for (std::size_t i = 0; i < n_; ++i) { to[i] += 0.5 * sign * friction_[i]; }
    }
  }
  // How much springs give of their torque while they give energy [0, 1].
  void scale_release(double fraction) { release_fraction_ = fraction; }

  // Write the parts, part::count times n, at a measured state, with damping [1/s]; a velocity
  // that is not known (NaN) is not damped. Springs are no faster than the period [s] of the states
  // allows. Gravity is that of an expected position, if one is given. Return whether the model
  // succeeded.
  bool compute(
    const LawCoefficients & law, double damping, double period, LoadedModel & model,
    const Vector & is_continuous, const Vector & q, const Vector & qd,
    const ReferenceState * reference, Vector & parts, const Vector * expected = nullptr)
  {
    const bool has_gravity = law.has_gravity();
    const bool has_feedforward = reference != nullptr && law.has_feedforward();
    const bool has_feedback = reference != nullptr && law.has_feedback();
    const bool has_damping = damping != 0.0 && has_velocities(qd);
    const bool is_assisted = law.assistance != 0.0 && has_velocities(qd);
    const bool has_impedance = reference != nullptr && law.yields();
    impedance_.begin();
    std::fill(parts.begin(), parts.end(), 0.0);
    if (reference != nullptr) {
      const double weight =
        law.at_reference[kEffortCoefficient] + law.at_measured[kEffortCoefficient];
      for (std::size_t i = 0; i < n_; ++i) {
        parts[part::effort * n_ + i] = weight * reference->effort[i];
      }
    }
    if (!has_damping && !has_feedback && !has_feedforward && !is_assisted && !has_gravity) {
      return true;
    }

    // One batch of rows for the model: at rest, where expected; damping; three of computed torque (Coriolis,
    // inertial, feedback); two for C(q, qd) qd_d; three of feedforward (gravity, Coriolis, inertial);
    // one for each column of the mass matrix, where the model does not have it. An impedance has the
    // mass matrix: it gives the inertial and the feedback row.
    begin();
    const std::size_t at_rest = row(q);
    const std::size_t there = expected != nullptr ? row(*expected) : at_rest;
    std::size_t damped = 0, at_measured = 0, accelerated = 0, halves = 0, at_desired = 0;
    if (has_damping) {
      damped = row(q);
      set(qdd_, damped, qd);
    }
    if (has_feedback) {
      at_measured = row(q);
      set(qd_, at_measured, qd);
      for (std::size_t i = 0; i < n_; ++i) {
        const double difference = reference->position[i] - q[i];
        error_[i] = is_continuous[i] != 0.0 ? wrapped(difference) : difference;
        rate_[i] = reference->velocity[i] - qd[i];
      }
      if (!has_impedance) { accelerated = add_accelerations(law, q, *reference); }
    }
    const bool has_halves =
      has_feedback && law.coriolis_of_reference != 0.0 && any(reference->velocity);
    if (has_halves) {
      halves = row(q);
      row(q);
      for (std::size_t i = 0; i < n_; ++i) {
        qd_[halves * n_ + i] = 0.5 * (qd[i] + reference->velocity[i]);
        qd_[(halves + 1) * n_ + i] = 0.5 * (qd[i] - reference->velocity[i]);
      }
    }
    if (has_feedforward) {
      at_desired = row(reference->position);
      set(qd_, row(reference->position), reference->velocity);
      set(qdd_, row(reference->position), reference->acceleration);
    }
    const std::size_t columns = rows_;
    const bool has_columns = has_impedance && !model.has_mass_matrix();
    for (std::size_t i = 0; has_columns && i < n_; ++i) { qdd_[row(q) * n_ + i] = 1.0; }
    if (!run(model)) { return false; }
    if (has_impedance) {
      if (!find_mass(model, q, at_rest, columns)) { return false; }
      accelerated = add_accelerations(law, q, *reference);
      multiply_mass(accelerated, at_rest);
      multiply_mass(accelerated + 1, at_rest);
    }

    for (std::size_t i = 0; i < n_; ++i) {
      const double weight = reference == nullptr ? law.gravity(i) : law.static_gravity[i];
      parts[part::gravity * n_ + i] += weight * tau_[there * n_ + i];
    }
    if (has_damping) { add(parts, part::feedback, -damping, damped, at_rest); }
    bool succeeded = true;
    if (has_impedance) { succeeded &= add_impedance(law, period, model, q, *reference, parts); }
    if (is_assisted) {
      const bool is_settling = has_impedance && settling_ > 0.0;
      if (is_settling) { find_pull(law, model, parts); }
      succeeded &= add_friction_of(
        law, model, law.assistance, qd, law.dead_zone, tau_.data() + at_rest * n_, parts,
        is_settling ? &pull_ : nullptr);
    }
    if (has_feedback) {
      const PartCoefficients & c = law.at_measured;
      add(parts, part::coriolis, c[part::coriolis], at_measured, at_rest);
      if (has_halves) {
        add(parts, part::coriolis, law.coriolis_of_reference, halves, halves + 1);
      }
      add(parts, part::inertial, c[part::inertial], accelerated, at_rest);
      add(parts, part::feedback, 1.0, accelerated + 1, at_rest);
      add_gravity(parts, law.gravity_at_measured, there);
      succeeded &= add_friction(
        law, model, c, reference->velocity, at_rest, at_measured, accelerated, parts);
    }
    if (has_feedforward) {
      const PartCoefficients & c = law.at_reference;
      add(parts, part::coriolis, c[part::coriolis], at_desired + 1, at_desired);
      add(parts, part::inertial, c[part::inertial], at_desired + 2, at_desired);
      add_gravity(parts, law.gravity_at_reference, at_desired);
      succeeded &= add_friction(
        law, model, c, reference->velocity, at_desired, at_desired + 1, at_desired + 2, parts);
    }
    return succeeded;
  }

  // Write the gravity that a law compensates at a position, and return whether the model
  // succeeded.
  bool gravity(
    const LawCoefficients & law, LoadedModel & model, const Vector & q, Vector & torque)
  {
    std::fill(torque.begin(), torque.end(), 0.0);
    if (!law.has_gravity()) { return true; }
    begin();
    row(q);
    if (!run(model)) { return false; }
    for (std::size_t i = 0; i < n_; ++i) { torque[i] = law.gravity(i) * tau_[i]; }
    return true;
  }

  // Write g(q) and M_jj of the joints that are marked, else zero.
  bool gravity_and_inertia(
    LoadedModel & model, const Vector & q, const Vector & is_marked, Vector & gravity,
    Vector & inertia)
  {
    begin();
    row(q);
    for (std::size_t i = 0; i < n_; ++i) {
      if (is_marked[i] != 0.0) { qdd_[row(q) * n_ + i] = 1.0; }
    }
    if (!run(model)) { return false; }
    for (std::size_t i = 0, k = 0; i < n_; ++i) {
      gravity[i] = tau_[i];
      inertia[i] = is_marked[i] != 0.0 ? tau_[++k * n_ + i] - tau_[i] : 0.0;
    }
    return true;
  }

  // Write C(q, qd) qd + g(q) and M(q) qd, independent of the law.
  bool bias_and_momentum(
    LoadedModel & model, const Vector & q, const Vector & qd, Vector & bias, Vector & momentum)
  {
    begin();
    row(q);
    set(qd_, row(q), qd);
    set(qdd_, row(q), qd);
    if (!run(model)) { return false; }
    for (std::size_t i = 0; i < n_; ++i) {
      bias[i] = tau_[n_ + i];
      momentum[i] = tau_[2 * n_ + i] - tau_[i];
    }
    return true;
  }

private:
  // --- a batch of states for one call of the model ---------------------------------------------

  void begin() { rows_ = 0; }

  // Add a state at rest at a position, and return its row.
  std::size_t row(const Vector & position)
  {
    set(q_, rows_, position);
    const auto first = static_cast<std::ptrdiff_t>(rows_ * n_);
    std::fill_n(qd_.begin() + first, n_, 0.0);
    std::fill_n(qdd_.begin() + first, n_, 0.0);
    return rows_++;
  }

  void set(Vector & array, std::size_t row, const Vector & values)
  {
    std::copy(
      values.begin(), values.end(), array.begin() + static_cast<std::ptrdiff_t>(row * n_));
  }

  bool run(LoadedModel & model)
  {
    return model.inverse_dynamics(rows_, q_.data(), qd_.data(), qdd_.data(), tau_.data());
  }

  // Add a row's gravity, each joint's by its own weight.
  void add_gravity(Vector & parts, const Vector & weights, std::size_t row) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      parts[part::gravity * n_ + i] += weights[i] * tau_[row * n_ + i];
    }
  }

  // Add a weighted difference of two rows.
  void add(
    Vector & parts, std::size_t which, double weight, std::size_t row, std::size_t less) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      parts[which * n_ + i] += weight * (tau_[row * n_ + i] - tau_[less * n_ + i]);
    }
  }

  // Add two rows: the reference's acceleration, and the one of the feedback; return the first.
  std::size_t add_accelerations(
    const LawCoefficients & law, const Vector & q, const ReferenceState & reference)
  {
    const std::size_t first = row(q);
    set(qdd_, first, reference.acceleration);
    double * const corrected = qdd_.data() + row(q) * n_;
    for (std::size_t i = 0; i < n_; ++i) {
      corrected[i] = law.kd[i] * rate_[i] + law.kp[i] * error_[i];
    }
    return first;
  }

  // Write the mass matrix for the impedance, and return whether the model succeeded.
  bool find_mass(LoadedModel & model, const Vector & q, std::size_t at_rest, std::size_t columns)
  {
    Vector & mass = impedance_.mass();
    if (model.has_mass_matrix()) { return model.mass_matrix(q.data(), mass.data()); }
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        mass[i * n_ + j] = tau_[(columns + j) * n_ + i] - tau_[at_rest * n_ + i];
      }
    }
    return true;
  }

  // Write the torque of a row at rest but for its acceleration.
  void multiply_mass(std::size_t row, std::size_t at_rest)
  {
    const Vector & mass = impedance_.mass();
    for (std::size_t i = 0; i < n_; ++i) {
      double sum = tau_[at_rest * n_ + i];
      for (std::size_t j = 0; j < n_; ++j) { sum += mass[i * n_ + j] * qdd_[row * n_ + j]; }
      tau_[row * n_ + i] = sum;
    }
  }

  // Add the friction at the desired velocity. Its load is the rigid body's torque: the sum of
  // the rows with velocity and with acceleration, less the row at rest, whose gravity both
  // contain.
  bool add_friction(
    const LawCoefficients & law, const LoadedModel & model, const PartCoefficients & c,
    const Vector & velocity, std::size_t at_rest, std::size_t moving, std::size_t accelerated,
    Vector & parts)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      load_[i] = tau_[moving * n_ + i] + tau_[accelerated * n_ + i] - tau_[at_rest * n_ + i];
    }
    return add_friction_of(law, model, c[part::friction], velocity, 0.0, load_.data(), parts);
  }

  // Write the direction in which the springs, and the damper, pull each joint [-1, 1]: whole where
  // they are a part of its friction. What the hand holds is none of them.
  void find_pull(const LawCoefficients & law, const LoadedModel & model, const Vector & parts)
  {
    stiction(model, pull_);
    const Vector6 weight = held_.wrench(turn_);
    for (std::size_t i = 0; i < n_; ++i) {
      double springs = parts[part::feedback * n_ + i];
      for (std::size_t r = 0; r < 6; ++r) {
        springs -= law.impedance.wrench * jacobian_[r * n_ + i] * weight[r];
      }
      const double friction = std::fabs(pull_[i]);
      pull_[i] =
        friction > 0.0 ? settling_ * std::tanh(springs / (kPullingPart * friction)) : 0.0;
    }
  }

  // Add the friction at a velocity, none in its dead zone, under a rigid body's torque; where the
  // velocity gives no direction, in that of a pull.
  bool add_friction_of(
    const LawCoefficients & law, const LoadedModel & model, double weight,
    const Vector & velocity, double dead_zone, const double * load, Vector & parts,
    const Vector * pull = nullptr)
  {
    if (weight == 0.0) { return true; }
    for (std::size_t k = 0; k < model.drives(); ++k) {
      const double of_drive = model.drive_velocity(k, velocity.data());
      // Three quarters at twice the dead zone; without one at friction_velocity.
      const double beyond = std::max(std::fabs(of_drive) - dead_zone, 0.0);
      const double size = dead_zone > 0.0 ? beyond / dead_zone : beyond * law.friction_slope;
      direction_[k] = std::copysign(std::tanh(size), of_drive);
      if (pull != nullptr) {
        const double pulled = clamped(model.drive_velocity(k, pull->data()), -1.0, 1.0);
        direction_[k] += (1.0 - std::fabs(direction_[k])) * pulled;
      }
    }
    const bool succeeded =
      model.friction_torque(velocity.data(), direction_.data(), load, friction_.data());
    for (std::size_t i = 0; i < n_; ++i) {
      parts[part::friction * n_ + i] += weight * friction_[i];
    }
    return succeeded;
  }

  // Add the torque of the springs and of the damper at error_ and rate_.
  bool add_impedance(
    const LawCoefficients & law, double period, LoadedModel & model, const Vector & q,
    const ReferenceState & reference, Vector & parts)
  {
    TipState tip;
    if (model.has_tip()) {
      std::array<double, 16> pose, desired;
      const bool succeeded = model.forward_kinematics(q.data(), pose.data()) &&
                             model.jacobian(q.data(), jacobian_.data()) &&
                             model.forward_kinematics(reference.position.data(), desired.data());
      if (!succeeded) { return false; }
      tip.tip = at_point(Pose::of(pose.data()), law.wrench_point);
      from_ = at_point(Pose::of(desired.data()), law.wrench_point);
      tip.reference = tip_.apply(from_);
      turn_ = tip.tip.turn;
      tip.wrench = tip_.wrench();
      const Vector6 weight = held_.wrench(turn_);
      for (std::size_t k = 0; k < 6; ++k) { tip.wrench[k] += weight[k]; }
      tip.jacobian = jacobian_.data();
      const Vector3 lever = tip.tip.turn.apply(law.wrench_point);
      for (std::size_t i = 0; i < n_; ++i) {
        const Vector3 axis{jacobian_[3 * n_ + i], jacobian_[4 * n_ + i], jacobian_[5 * n_ + i]};
        const Vector3 moved = cross(axis, lever);
        for (std::size_t k = 0; k < 3; ++k) { jacobian_[k * n_ + i] += moved[k]; }
      }
    }
    return impedance_.compute(
      law.impedance, error_, rate_, tip, period, allowed_, release_fraction_,
      parts.data() + part::feedback * n_);
  }

  static Pose at_point(Pose pose, const Vector3 & point)
  {
    const Vector3 lever = pose.turn.apply(point);
    for (std::size_t k = 0; k < 3; ++k) { pose.position[k] += lever[k]; }
    return pose;
  }

  static constexpr double kPullingPart = 0.25;  // of a joint's friction

  const std::size_t n_;
  std::size_t rows_ = 0;
  Vector q_, qd_, qdd_, tau_;  // position, velocity, acceleration, torque of each row
  Vector direction_, load_, friction_, pull_;
  Vector error_, rate_, jacobian_;
  Impedance impedance_;
  TipReference tip_;
  Pose from_;
  Quaternion turn_;  // of the tip
  HeldMass held_;
  double settling_ = 0.0;  // [0, 1]
  Allowance allowed_;
  double release_fraction_ = 1.0;
};

// The latest law, the transition to it, and the damping of an arm that moves when the
// transition begins.
class ActiveLaw
{
public:
  ActiveLaw(std::size_t joints, const Settings & law)
  : mode_(law.mode),
    latest_(joints),
    origin_(joints),
    goal_(joints),
    blended_(joints),
    next_(joints)
  {
    latest_.set_law(law);
    goal_ = latest_;
  }

  Mode mode() const { return mode_; }
  const LawCoefficients & latest() const { return latest_; }
  const LawCoefficients & goal() const { return goal_; }  // the latest, with the damping

  // Whether a reference affects the torque, if only until the transition is over.
  bool follows() const { return is_in_transition_ || goal_.follows(); }

  // Whether damping acts, and nothing else changes the energy.
  bool is_damping() const { return goal_.damping != 0.0 && !is_in_transition_; }

  // The active coefficients a time [s] ahead.
  const LawCoefficients & at(double ahead) { return after(step(ahead)); }

  // The coefficients after a further fraction of the transition.
  const LawCoefficients & after(double step)
  {
    if (!is_in_transition_) { return goal_; }
    const double fraction = duration_ > 0.0 ? elapsed_ / duration_ + step : 1.0;
    if (fraction >= 1.0) { return goal_; }
    blended_.interpolate(origin_, goal_, fraction);
    return blended_;
  }

  // The fraction of the transition that a time [s] takes.
  double step(double elapsed) const
  {
    return duration_ > 0.0 ? std::min(pace_ * elapsed, duration_ - elapsed_) / duration_ : 1.0;
  }

  // Take no more than a fraction of the transition in a time [s].
  void pace(double fraction, double time)
  {
    pace_ = 1.0;
    const double whole = step(time);
    if (fraction < whole) { pace_ = fraction * duration_ / time; }
  }

  bool is_slowed() const { return is_in_transition_ && pace_ < 1.0; }
  // What of the transition is to come [0, 1], and how long it takes if nothing slows it [s].
  double left() const { return is_in_transition_ ? 1.0 - elapsed_ / duration_ : 0.0; }
  double duration() const { return duration_; }
  bool is_in_transition() const { return is_in_transition_; }

  // Start a transition to another law over its ramp time, with damping [1/s] in gravity
  // compensation; return false where it is the latest.
  bool change(const Settings & law, double damping)
  {
    next_.set_law(law);
    mode_ = law.mode;
    if (next_ == latest_) { return false; }
    latest_ = next_;
    if (damping != 0.0 && !latest_.follows()) {
      next_.damping = damping;
      damping_time_ = 0.0;
    }
    begin(law.ramp_time);
    return true;
  }

  // Switch to the latest law at once, with damping [1/s]; only the rate limit smooths the
  // torque.
  void switch_now(double damping = 0.0)
  {
    goal_ = latest_;
    is_in_transition_ = false;
    // In feedforward the drive's own loop damps the arm.
    if (damping != 0.0 && mode_ != Mode::feedforward) {
      goal_.damping = damping;
      damping_time_ = kNaN;
    }
  }

  // Fade the damping out in a duration [s].
  void end_damping(double duration)
  {
    if (goal_.damping == 0.0) { return; }
    next_ = goal_;
    next_.damping = 0.0;
    begin(duration);
  }

  // Advance by a time [s], at a velocity; a transition that this starts takes the duration
  // [s].
  void advance(double elapsed, const Vector & velocity, double duration)
  {
    if (is_in_transition_) {
      elapsed_ += pace_ * elapsed;
      is_in_transition_ = elapsed_ < duration_;
    }
    if (goal_.damping != 0.0 && !is_in_transition_) {
      damping_time_ = std::isnan(damping_time_) ? 0.0 : damping_time_ + elapsed;
      if (
        is_at_rest(velocity, kCoastSpeed) ||
        damping_time_ * goal_.damping > kDampingTimeConstants) {
        end_damping(duration);
      }
    }
  }

private:
  static constexpr double kDampingTimeConstants = 10.0;  // after which damping ends
  // Damping ends below this speed [rad/s or m/s]. Without friction the arm then coasts: at a
  // higher speed the drift would be visible within a minute.
  static constexpr double kCoastSpeed = 1e-5;
  static constexpr double kShortest = 1e-4;  // s, of a transition of springs

  // Move from the active coefficients to next_.
  void begin(double duration)
  {
    if (next_ == goal_) { return; }
    origin_ = at(0.0);
    goal_ = next_;
    is_in_transition_ = true;
    elapsed_ = 0.0;
    pace_ = 1.0;
    // Springs become stiffer step by step, however short it is: each step takes energy.
    duration_ = origin_.yields() || goal_.yields() ? std::max(duration, kShortest) : duration;
  }

  Mode mode_;
  LawCoefficients latest_, origin_, goal_, blended_, next_;
  bool is_in_transition_ = false;
  double elapsed_ = 0.0, duration_ = 0.0;  // of the transition [s]
  double pace_ = 1.0;                      // of the transition, where springs need energy
  // s, since damping began; NaN: it begins with the next cycle, since the time before, without
  // measurements, does not count
  double damping_time_ = kNaN;
};

// Longest time for which the rate limit allows a step, however long nothing was sent [s].
constexpr double kLongestRateStep = 0.01;

// Limits the torque of a joint that is measured beyond its position limits.
//
// Beyond a limit, the part of the torque in excess of gravity that points outward fades out
// over the width of the soft joint limit, and outward motion is damped in proportion: with the
// penetration p, tau' = g + (1 - |p|) (tau - g) where tau - g points outward, and -|p| K_d
// M_jj qd where the joint moves outward. Gravity compensation stays in full, so that the arm
// does not drop. Torques that point back inside pass unchanged, and nothing pulls the arm
// back. A soft joint limit only takes energy out of a joint, is continuous in position and
// velocity, and has no memory: it ends where the arm is back inside. Each joint is damped with
// its own inertia M_jj, not the coupled matrix, so that the power of the damping is never
// positive.
class SoftJointLimits
{
public:
  explicit SoftJointLimits(std::size_t joints)
  : penetration_(joints), gravity_(joints), inertia_(joints)
  {
  }

  // Of each joint: 0 inside its limits, 1 or -1 a full width beyond the upper or the lower
  // one.
  const Vector & penetration() const { return penetration_; }

  // Limit a torque at a measured state. A velocity that is not known (NaN) is not damped,
  // others as far as the period [s] of the states allows. Return whether the model succeeded.
  bool apply(
    const LawCoefficients & law, LoadedModel & model, TorqueParts & parts,
    const Settings & settings, const Vector & q, const Vector & qd, double period,
    Vector & torque)
  {
    const std::size_t n = q.size();
    bool is_beyond = false;
    for (std::size_t i = 0; i < n; ++i) {
      const double lower = settings.position_limits[2 * i];
      const double upper = settings.position_limits[2 * i + 1];
      const double beyond = q[i] - std::min(std::max(q[i], lower), upper);
      penetration_[i] =
        law.limit_slope > 0.0 ? clamped(law.limit_slope * beyond, -1.0, 1.0) : 0.0;
      is_beyond |= penetration_[i] != 0.0;
    }
    if (!is_beyond) { return true; }
    if (!parts.gravity_and_inertia(model, q, penetration_, gravity_, inertia_)) { return false; }
    for (std::size_t i = 0; i < n; ++i) {
      const double depth = std::fabs(penetration_[i]);
      const double side = penetration_[i] > 0.0 ? 1.0 : penetration_[i] < 0.0 ? -1.0 : 0.0;
      const double gravity = law.gravity(i) * gravity_[i];
      const double limit = settings.effort_limits[i];
      // Saturate first: fading would leave too much of a torque far beyond the effort limits.
      const double excess = clamped(torque[i], -limit, limit) - gravity;
      const double faded = side * excess > 0.0 ? (1.0 - depth) * excess : excess;
      const double outward = side * qd[i] > 0.0 ? qd[i] : 0.0;
      const double damping = depth * allowed_damping(law.limit_damping[i], period);
      torque[i] = gravity + faded - damping * inertia_[i] * outward;
    }
    return true;
  }

private:
  Vector penetration_, gravity_, inertia_;
};

// Applies effort and rate limits, and keeps the last torque that was sent.
class TorqueLimiter
{
public:
  explicit TorqueLimiter(std::size_t joints)
  : torque_(joints), is_effort_limited_(joints), is_rate_limited_(joints)
  {
  }

  bool has_torque() const { return has_torque_; }
  const Vector & torque() const { return torque_; }  // that was sent last [N m or N]
  double sent() const { return sent_; }              // when, by the steady clock [s]
  // Which joints' torque a limit changed.
  const std::vector<unsigned char> & is_effort_limited() const { return is_effort_limited_; }
  const std::vector<unsigned char> & is_rate_limited() const { return is_rate_limited_; }
  bool is_any_rate_limited() const
  {
    return std::any_of(
      is_rate_limited_.begin(), is_rate_limited_.end(), [](unsigned char x) { return x != 0; });
  }

  // Start a new stream of commands, whose first torque has no rate limit.
  void reset() { has_torque_ = false; }

  // Continue from a torque that another process sent at a time [s].
  void continue_from(const double * torque, double sent)
  {
    std::copy_n(torque, torque_.size(), torque_.begin());
    has_torque_ = true;
    sent_ = sent;
  }

  // Record that the last torque was sent by a time [s].
  void record_sent(double now) { sent_ = std::max(sent_, now); }

  // Half the time [s] for which the next command acts, if commands come as before.
  double half_step(double now) const { return 0.5 * std::min(now - sent_, kLongestRateStep); }

  // Limit a finite torque; the result counts as sent at a steady time [s]. Effort limits that were
  // lowered take effect at the pace of the rate limit: a torque beyond them may only shrink.
  void apply(const Vector & torque, const Settings & settings, double now)
  {
    constexpr double shortest = 1e-9;  // s; zero times no limit (infinity) would be NaN
    const double time = clamped(now - sent_, shortest, kLongestRateStep);
    for (std::size_t i = 0; i < torque_.size(); ++i) {
      double largest = settings.effort_limits[i];
      const double clipped = clamped(torque[i], -largest, largest);
      double allowed = clipped;
      if (has_torque_) {
        const double last = torque_[i], step = settings.torque_rate_limit[i] * time;
        allowed = clamped(clipped, last - step, last + step);
        largest = std::max(largest, std::fabs(last));
      }
      torque_[i] = clamped(allowed, -largest, largest);
      is_effort_limited_[i] = clipped != torque[i];
      is_rate_limited_[i] = allowed != clipped;
    }
    has_torque_ = true;
    sent_ = now;
  }

private:
  Vector torque_;
  std::vector<unsigned char> is_effort_limited_, is_rate_limited_;
  bool has_torque_ = false;
  double sent_ = -kInfinity;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__TORQUE_HPP_
