// SPDX-License-Identifier: Apache-2.0
// A load that nobody weighed: what the hand holds, from what the drives hold before and after.
//
// An arm on springs at rest holds with its drives r = tau - g(q): what pulls at it, friction, and what
// is wrong with its model. A mass m that the hand takes, with its centre c from the tip, changes r by
// J(q)T w, w = (-m g, -m c x g): three numbers, m and the part of m c across gravity, fitted to all
// joints' change by least squares, each weighted by the friction that may hide a part of it. The
// change of the model's error is small, as the arm sags little. What the fit leaves is a push.
//
// Joint friction would hold the arm where it sank: for two seconds the friction of joints at rest is
// compensated in the direction of their springs.
//
// A hand that presses straight down looks the same, and may let go: what is carried is given up
// where the arm is lifted faster than its reference, with more than a little energy, and where the
// drives at rest no longer hold half of it. After a motion what they hold first counts as all of it.
#ifndef ROBODYN_ROS__CORE__WEIGHING_HPP_
#define ROBODYN_ROS__CORE__WEIGHING_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "impedance.hpp"
#include "settings.hpp"

namespace robodyn
{

// A mass at the tip, by the force that holds it.
struct HeldMass
{
  Vector3 gravity{};  // in the base link's axes [m/s^2]
  double mass = 0.0;  // kg
  Vector3 moment{};   // mass times the centre, in the tip's axes [kg m]

  // What holds it, in base axes [N, N m].
  Vector6 wrench(const Quaternion & tip) const
  {
    const Vector3 turned = cross(gravity, tip.apply(moment));
    return {-mass * gravity[0], -mass * gravity[1], -mass * gravity[2],
            turned[0],          turned[1],          turned[2]};
  }
};

enum class WeighingState : std::uint8_t { none, weighing, carried, refused, given_up };
constexpr const char * kWeighingNames[] = {"none", "weighing", "carried", "refused", "given_up"};

// What a cycle on springs knows.
struct WeighingCycle
{
  double elapsed;           // s
  const double * held;      // n, by the drives, less gravity [N m or N]
  const double * jacobian;  // (6, n) of the tip, linear rows first
  const Quaternion & tip;   // of the tip
  const Vector & velocity;  // of the arm
  bool is_changing;       // the reference moves, or the gravity that the law compensates changes
  double kinetic_energy;  // of the motion relative to the reference [J]
  double power;           // of what is carried, in that motion [W]
};

// Only the constructor allocates.
class Weighing
{
public:
  explicit Weighing(std::size_t joints)
  : n_(joints),
    speed_(n_),
    mean_(n_),
    before_(n_),
    loaded_(n_),
    rows_(3 * n_),
    torque_(n_),
    tolerance_(n_)
  {
  }

  WeighingState state() const { return state_; }
  const char * state_name() const { return kWeighingNames[static_cast<std::size_t>(state_)]; }
  const Fault & refusal() const { return refusal_; }
  const HeldMass & held() const { return held_; }
  double mass() const { return goal_.mass; }  // that is carried, or will be [kg]
  // How much of their friction compensation the joints at rest get in the springs' direction [0, 1].
  double settling() const { return settling_; }

  // Weigh what the hand takes in the next second; return why not.
  Fault begin(const Vector3 & gravity)
  {
    if (rest_ < kRest) { return {Cause::unsteady}; }
    const double strength = std::sqrt(Quaternion::dot(gravity, gravity));
    if (!(strength >= 1.0 && std::isfinite(strength))) { return {Cause::no_weight}; }
    before_ = mean_;
    if (goal_.mass == 0.0) { held_.gravity = goal_.gravity = gravity; }
    state_ = WeighingState::weighing;
    time_ = 0.0;
    return {};
  }

  // Carry nothing any more: at once where no spring acts.
  void give_up(bool is_at_once)
  {
    const bool is_any = goal_.mass != 0.0 || state_ == WeighingState::weighing;
    if (is_any) { state_ = WeighingState::given_up; }
    goal_.mass = 0.0;
    goal_.moment = {};
    pace_ = kWithdrawn;
    if (is_at_once) {
      held_.mass = 0.0;
      held_.moment = {};
      rest_ = settling_ = 0.0;
    }
  }

  // Advance by a cycle. friction(tolerance) writes the friction of each joint at rest; the largest
  // force and moment [N, N m] are those that may be carried.
  template <typename Friction>
  void advance(const WeighingCycle & cycle, const Settings & settings, const Friction & friction)
  {
    average(cycle);
    if (state_ == WeighingState::weighing) {
      time_ += cycle.elapsed;
      if (time_ > kLongest || cycle.is_changing) {
        refuse({Cause::unsteady});
      } else if (time_ >= kWindow && rest_ >= kRest) {
        weigh(cycle, settings, friction);
      }
    }
    if (goal_.mass != 0.0) {
      is_known_ &= !cycle.is_changing;
      bool is_gone = cycle.kinetic_energy > kEnergy && cycle.power > 0.0;  // lifted
      if (rest_ >= kRest && state_ == WeighingState::carried) {
        if (!is_known_) { loaded_ = mean_; }
        is_known_ = true;
        is_gone |= mass_since(cycle) < -0.5 * goal_.mass;
      }
      if (is_gone) { give_up(false); }
    }
    const double step = 1.0 - std::exp(-cycle.elapsed / pace_);
    held_.mass += step * (goal_.mass - held_.mass);
    carried_for_ += cycle.elapsed;
    const bool is_settling = goal_.mass != 0.0 && carried_for_ < kSettling;
    const double change = (is_settling ? cycle.elapsed : -cycle.elapsed) / kTaken;
    settling_ = clamped(settling_ + change, 0.0, 1.0);
    for (std::size_t k = 0; k < 3; ++k) {
      held_.moment[k] += step * (goal_.moment[k] - held_.moment[k]);
    }
  }

private:
  static constexpr double kWindow = 1.0, kLongest = 4.0;    // s
  static constexpr double kRest = 0.3, kSpeedTime = 0.1;    // s
  static constexpr double kTaken = 0.3, kWithdrawn = 0.02;  // s, time constants
  static constexpr double kSettling = 2.0;                  // s, of taking up
  static constexpr double kLeast = 0.05;                    // kg
  static constexpr double kEnergy = 0.05;                   // J
  static constexpr double kLever = 0.1;        // m, that a centre usually is from the tip
  static constexpr double kShare = 0.01;       // of the effort limits, that noise and sag hide
  static constexpr double kUnexplained = 0.3;  // of the change

  void refuse(const Fault & why)
  {
    state_ = goal_.mass != 0.0 ? WeighingState::carried : WeighingState::refused;
    refusal_ = why;
  }

  // Average what the drives hold while the arm rests, and no friction is compensated at rest.
  void average(const WeighingCycle & cycle)
  {
    const double step = 1.0 - std::exp(-cycle.elapsed / kSpeedTime);
    for (std::size_t i = 0; i < n_; ++i) { speed_[i] += step * (cycle.velocity[i] - speed_[i]); }
    if (cycle.is_changing || settling_ > 0.0 || !is_at_rest(speed_)) {
      rest_ = 0.0;
      return;
    }
    rest_ += cycle.elapsed;
    const double share = std::min(cycle.elapsed / std::min(rest_, kRest), 1.0);
    for (std::size_t i = 0; i < n_; ++i) { mean_[i] += share * (cycle.held[i] - mean_[i]); }
  }

  // Write what a wrench takes of the joints to a row.
  void write_row(const WeighingCycle & cycle, const Vector6 & wrench, std::size_t row)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      double sum = 0.0;
      for (std::size_t r = 0; r < 6; ++r) { sum += cycle.jacobian[r * n_ + i] * wrench[r]; }
      rows_[row * n_ + i] = sum;
    }
  }

  // The sum of a row times another one, or the change, over the squares of the tolerance.
  double product(const double * a, const double * b) const
  {
    double sum = 0.0;
    for (std::size_t i = 0; i < n_; ++i) { sum += a[i] * b[i] / (tolerance_[i] * tolerance_[i]); }
    return sum;
  }

  // Return the mass that the drives at rest hold beside what they did with all of it [kg].
  double mass_since(const WeighingCycle & cycle)
  {
    const Vector3 & g = goal_.gravity;
    write_row(cycle, {-g[0], -g[1], -g[2], 0.0, 0.0, 0.0}, 0);
    for (std::size_t i = 0; i < n_; ++i) { torque_[i] = mean_[i] - loaded_[i]; }
    const double square = product(rows_.data(), rows_.data());
    return square > 0.0 ? product(rows_.data(), torque_.data()) / square : 0.0;
  }

  template <typename Friction>
  void weigh(const WeighingCycle & cycle, const Settings & settings, const Friction & friction)
  {
    friction(tolerance_);
    for (std::size_t i = 0; i < n_; ++i) {
      tolerance_[i] = std::fabs(tolerance_[i]) + kShare * settings.effort_limits[i];
      torque_[i] = mean_[i] - before_[i];
    }
    const Vector3 & g = goal_.gravity;
    const double strength = std::sqrt(Quaternion::dot(g, g));
    const std::array<Vector3, 2> across = across_of(g);
    write_row(cycle, {-g[0], -g[1], -g[2], 0.0, 0.0, 0.0}, 0);
    for (std::size_t k = 0; k < 2; ++k) {
      const Vector3 & e = across[k];
      write_row(cycle, {0.0, 0.0, 0.0, e[0], e[1], e[2]}, k + 1);
    }
    // Normal equations, the moments with the prior of a kilogram at the usual lever.
    double m[3][4];
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) {
        m[a][b] = product(rows_.data() + a * n_, rows_.data() + b * n_);
      }
      m[a][3] = product(rows_.data() + a * n_, torque_.data());
      if (a > 0) { m[a][a] += 1.0 / (kLever * kLever * strength * strength); }
    }
    const Vector3 x = solution(m);
    double left = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      double rest = torque_[i];
      for (std::size_t k = 0; k < 3; ++k) { rest -= x[k] * rows_[k * n_ + i]; }
      left += rest * rest / (tolerance_[i] * tolerance_[i]);
    }
    const double whole = std::sqrt(product(torque_.data(), torque_.data()));
    const double allowed = 0.5 * std::sqrt(static_cast<double>(n_)) + kUnexplained * whole;
    HeldMass found = goal_;
    const Vector3 moment{
      x[1] * across[0][0] + x[2] * across[1][0], x[1] * across[0][1] + x[2] * across[1][1],
      x[1] * across[0][2] + x[2] * across[1][2]};
    // Of m c, the part across gravity: g x (m c) is the moment.
    Vector3 lever = cross(moment, g);
    for (double & each : lever) { each /= strength * strength; }
    lever = cycle.tip.inverse().apply(lever);
    found.mass += x[0];
    for (std::size_t k = 0; k < 3; ++k) { found.moment[k] += lever[k]; }
    if (!(std::sqrt(left) <= allowed)) { return refuse({Cause::no_weight}); }
    if (goal_.mass != 0.0 && found.mass < kLeast) { return give_up(false); }
    if (!(found.mass >= kLeast)) { return refuse({Cause::no_weight}); }
    const Vector6 wrench = found.wrench(cycle.tip);
    const Fault beyond =
      refusal_of(wrench, settings.impedance.largest_force, settings.impedance.largest_moment);
    if (beyond) { return refuse(beyond); }
    goal_ = found;
    loaded_ = mean_;
    carried_for_ = 0.0;
    pace_ = kTaken;
    is_known_ = true;
    refusal_ = {};
    state_ = WeighingState::carried;
  }

  // Two unit vectors across a vector.
  static std::array<Vector3, 2> across_of(const Vector3 & g)
  {
    const double x = std::fabs(g[0]), y = std::fabs(g[1]), z = std::fabs(g[2]);
    const Vector3 axis{
      x <= y && x <= z ? 1.0 : 0.0, y < x && y <= z ? 1.0 : 0.0, z < x && z < y ? 1.0 : 0.0};
    std::array<Vector3, 2> result{cross(g, axis), {}};
    result[1] = cross(g, result[0]);
    for (Vector3 & each : result) {
      const double size = std::sqrt(Quaternion::dot(each, each));
      for (double & value : each) { value /= size; }
    }
    return result;
  }

  // Solve three equations by elimination; the matrix is positive definite.
  static Vector3 solution(double (&m)[3][4])
  {
    for (std::size_t k = 0; k < 3; ++k) {
      for (std::size_t a = k + 1; a < 3; ++a) {
        const double factor = m[a][k] / m[k][k];
        for (std::size_t b = k; b < 4; ++b) { m[a][b] -= factor * m[k][b]; }
      }
    }
    Vector3 x{};
    for (std::size_t k = 3; k-- > 0;) {
      double sum = m[k][3];
      for (std::size_t b = k + 1; b < 3; ++b) { sum -= m[k][b] * x[b]; }
      x[k] = sum / m[k][k];
    }
    return x;
  }

  const std::size_t n_;
  WeighingState state_ = WeighingState::none;
  Fault refusal_;
  HeldMass held_, goal_;
  double pace_ = kTaken;            // s
  double time_ = 0.0, rest_ = 0.0;  // s, since it began, since the arm rests
  double settling_ = 0.0;
  double carried_for_ = 0.0;  // s, what was weighed last
  bool is_known_ = false;     // what the drives hold with all of it, since the last change
  Vector speed_, mean_;       // of the arm, of what the drives hold
  Vector before_, loaded_;    // of that before, and with all of the mass
  Vector rows_, torque_, tolerance_;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__WEIGHING_HPP_
