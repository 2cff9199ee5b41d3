// SPDX-License-Identifier: Apache-2.0
// Impedance: springs and dampers at the joints and at the tip, around a reference.
//
// The torque is that of three springs and of one damper.
// - Joints: K_q (q_d - q).
// - Tip: J(q)T w, with the wrench w of a spring between the tip's frame and the reference's: K_p
//   (p_d - p), and for the unit quaternion (eta, eps) of R_d RT the moment 2 (eta K_o eps + (K_o
//   eps) x eps), the gradient of 2 epsT K_o eps: about K_o times the angle, smooth at any angle.
// - Posture: NT K_n (q_d - q), where NT = 1 - JT (J M^-1 JT + rho)^-1 J M^-1 takes away what would
//   accelerate the tip (O. Khatib, A unified approach for motion and force control of robot
//   manipulators, IEEE J. Robotics and Automation 3 (1987), eq. 50). rho keeps it smooth: a
//   direction with an effective mass of over 1 / rho counts as one in which the tip cannot move.
// - Damper: D(q) (qd_d - qd), D = 2 zeta Q sqrt(L) QT, where K = K_q + JT K_x J + NT K_n N and M =
//   Q QT, K = Q L QT: each mode of the arm on its springs has the damping ratio zeta (A.
//   Albu-Schaeffer et al., Cartesian impedance control of redundant robots, ICRA 2003, sec. IV).
//   With K of the joint space, it is the same at the tip, and defined in singular configurations.
//
// A mode that is too fast for the period of the states, or whose swing needs torques that change
// faster than they may, is made slower: the spring's part in it is reduced. Springs that give their energy to an arm that is fast enough give a fraction of it.
#ifndef ROBODYN_ROS__CORE__IMPEDANCE_HPP_
#define ROBODYN_ROS__CORE__IMPEDANCE_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "settings.hpp"

namespace robodyn
{

using Vector3 = std::array<double, 3>;
using Vector6 = std::array<double, 6>;

inline Vector3 cross(const Vector3 & a, const Vector3 & b)
{
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// By how much the length of a quaternion that is given may differ from one.
constexpr double kQuaternionTolerance = 1e-3;

// A unit quaternion.
struct Quaternion
{
  double w = 1.0;
  Vector3 v{};

  // Of the rotation in the upper left of a row-major (4, 4) pose.
  static Quaternion of(const double * pose)
  {
    const auto r = [pose](std::size_t i, std::size_t j) { return pose[4 * i + j]; };
    // The largest of four squares, so that nothing is divided by a small number.
    const double trace = r(0, 0) + r(1, 1) + r(2, 2);
    Quaternion turn;
    if (trace > 0.0) {
      const double s = std::sqrt(trace + 1.0);
      turn.w = 0.5 * s;
      turn.v = {r(2, 1) - r(1, 2), r(0, 2) - r(2, 0), r(1, 0) - r(0, 1)};
      for (double & each : turn.v) { each *= 0.5 / s; }
      return turn;
    }
    const std::size_t i = r(1, 1) > r(0, 0) ? (r(2, 2) > r(1, 1) ? 2 : 1)
                        : r(2, 2) > r(0, 0) ? 2
                                            : 0;
    const std::size_t j = (i + 1) % 3, k = (i + 2) % 3;
    const double s = std::sqrt(1.0 + r(i, i) - r(j, j) - r(k, k));
    turn.w = 0.5 / s * (r(k, j) - r(j, k));
    turn.v[i] = 0.5 * s;
    turn.v[j] = 0.5 / s * (r(j, i) + r(i, j));
    turn.v[k] = 0.5 / s * (r(k, i) + r(i, k));
    return turn;
  }

  // About a vector, by its length [rad].
  static Quaternion about(const Vector3 & vector)
  {
    const double angle = std::sqrt(dot(vector, vector));
    const double factor = angle > 1e-9 ? std::sin(0.5 * angle) / angle : 0.5;
    return Quaternion{
      std::cos(0.5 * angle), {factor * vector[0], factor * vector[1], factor * vector[2]}};
  }

  // The vector about which, and by whose length, it turns; up to half a turn.
  Vector3 vector() const
  {
    const double size = std::sqrt(dot(v, v)), sign = w < 0.0 ? -1.0 : 1.0;
    const double factor = size > 1e-9 ? 2.0 * std::atan2(size, sign * w) / size : 2.0;
    return {sign * factor * v[0], sign * factor * v[1], sign * factor * v[2]};
  }

  Quaternion inverse() const { return Quaternion{w, {-v[0], -v[1], -v[2]}}; }

  // This turn after another one.
  Quaternion after(const Quaternion & first) const
  {
    const Vector3 c = cross(v, first.v);
    Quaternion turn{w * first.w - dot(v, first.v), {}};
    for (std::size_t k = 0; k < 3; ++k) { turn.v[k] = w * first.v[k] + first.w * v[k] + c[k]; }
    const double size = std::sqrt(turn.w * turn.w + dot(turn.v, turn.v));
    turn.w /= size;
    for (double & each : turn.v) { each /= size; }
    return turn;
  }

  Vector3 apply(const Vector3 & a) const
  {
    const Vector3 c = cross(v, a), d = cross(v, c);
    return {
      a[0] + 2.0 * (w * c[0] + d[0]), a[1] + 2.0 * (w * c[1] + d[1]),
      a[2] + 2.0 * (w * c[2] + d[2])};
  }

  static double dot(const Vector3 & a, const Vector3 & b)
  {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  }
};

// A position [m] and an orientation in the base link's frame.
struct Pose
{
  Vector3 position{};
  Quaternion turn;

  static Pose of(const double * pose)
  {
    return {{pose[3], pose[7], pose[11]}, Quaternion::of(pose)};
  }

  // This pose, given in the frame of another one, in that one's frame.
  Pose after(const Pose & first) const
  {
    const Vector3 away = first.turn.apply(position);
    return {
      {first.position[0] + away[0], first.position[1] + away[1], first.position[2] + away[2]},
      first.turn.after(turn)};
  }
};

// Take a pose of a request, with the quaternion x, y, z, w; return why it is refused.
inline Fault take_pose(const Vector3 & position, const std::array<double, 4> & xyzw, Pose & to)
{
  const auto [x, y, z, w] = xyzw;
  const double norm = std::hypot(std::hypot(x, y), std::hypot(z, w));
  double sum = norm;
  for (const double each : position) { sum += std::fabs(each); }
  if (!std::isfinite(sum)) { return {Cause::not_finite}; }
  if (!(std::fabs(norm - 1.0) <= kQuaternionTolerance)) {
    return {Cause::quaternion, -1, norm, kQuaternionTolerance};
  }
  to = {position, {w / norm, {x / norm, y / norm, z / norm}}};
  return {};
}

// Return why a wrench of a request is refused [N, N m].
inline Fault refusal_of(const Vector6 & wrench, double largest_force, double largest_moment)
{
  const double force = std::hypot(wrench[0], wrench[1], wrench[2]);
  const double moment = std::hypot(wrench[3], wrench[4], wrench[5]);
  for (const double each : wrench) {
    if (!std::isfinite(each)) { return {Cause::not_finite}; }
  }
  if (force > largest_force) { return {Cause::force, -1, force, largest_force}; }
  if (moment > largest_moment) { return {Cause::moment, -1, moment, largest_moment}; }
  return {};
}

// Stiffness and damping of a law; the torque of the springs is linear in them.
struct ImpedanceCoefficients
{
  Vector joints, posture;                   // N m/rad or N/m
  Vector6 along_base{}, along_reference{};  // of the tip, along and about axes [N/m, N m/rad]
  double ratio = 0.0;                       // of the damping
  double wrench = 0.0;                      // of the wrench that is added

  explicit ImpedanceCoefficients(std::size_t n) : joints(n), posture(n) {}

  bool at_tip() const { return has(along_base) || has(along_reference); }
  bool is_any() const { return any(joints) || any(posture) || at_tip(); }

  bool operator==(const ImpedanceCoefficients & other) const
  {
    return joints == other.joints && posture == other.posture && along_base == other.along_base &&
           along_reference == other.along_reference && ratio == other.ratio &&
           wrench == other.wrench;
  }

private:
  static bool has(const Vector6 & values)
  {
    return std::any_of(values.begin(), values.end(), [](double x) { return x != 0.0; });
  }
};

// What the spring at the tip needs to know; without a Jacobian there is none.
struct TipState
{
  Pose tip, reference;
  const double * jacobian = nullptr;  // (6, n), linear rows first
  Vector6 wrench{};                   // to add, in the base link's axes [N, N m]
};

// What the torque towards the posture may give before it can be withdrawn; by default all it can.
struct Allowance
{
  double energy = kInfinity;              // J
  const Vector * torque_rates = nullptr;  // N m/s or N/s
};

// How fast the reference of the tip may leave that of the joints.
struct TipSpeed
{
  double linear = 0.0, angular = 0.0;  // m/s, rad/s
};

// Where the tip shall be beside where the joints' reference has it: a target pose is reached by
// an offset that moves smoothly and no faster than allowed. Also the wrench to add.
class TipReference
{
public:
  // Aim at a pose, until the next target or until nothing is aimed at any more.
  void aim(const Pose & target)
  {
    target_ = target;
    has_target_ = true;
  }

  // Go back to the joints' reference.
  void release() { has_target_ = false; }

  // Stay where the reference is, also on its way back to the joints' one.
  void stop()
  {
    if (has_target_ || is_apart()) { aim(latest_); }
  }

  // Be at the joints' reference at once: it begins anew.
  void reset()
  {
    const Pose latest = latest_;  // until the next advance
    *this = TipReference();
    latest_ = latest;
  }

  void add_wrench(const Vector6 & wrench) { wrench_goal_ = wrench; }

  bool has_target() const { return has_target_; }
  const Vector6 & wrench() const { return wrench_; }
  const Pose & latest() const { return latest_; }  // that was applied last

  // Return the reference, where the joints' one has the tip at a pose.
  const Pose & apply(const Pose & from)
  {
    for (std::size_t k = 0; k < 3; ++k) { latest_.position[k] = from.position[k] + offset_[k]; }
    latest_.turn = turned_.after(from.turn);
    return latest_;
  }

  // Advance by a time [s].
  void advance(double elapsed, const Pose & from, const TipSpeed & speed)
  {
    const double time = std::min(elapsed, kLongest);
    const double follow = 1.0 - std::exp(-4.0 * kPace * time);
    Vector3 away{};  // from the offset to its goal
    for (std::size_t k = 0; k < 3; ++k) {
      away[k] = (has_target_ ? target_.position[k] - from.position[k] : 0.0) - offset_[k];
    }
    const Quaternion goal = has_target_ ? target_.turn.after(from.turn.inverse()) : Quaternion();
    const Vector3 angle = goal.after(turned_.inverse()).vector();
    move(away, speed.linear, follow, velocity_);
    move(angle, speed.angular, follow, rate_);
    Vector3 turn;
    for (std::size_t k = 0; k < 3; ++k) {
      offset_[k] += time * velocity_[k];
      turn[k] = time * rate_[k];
    }
    turned_ = Quaternion::about(turn).after(turned_);
    for (std::size_t k = 0; k < 6; ++k) {
      wrench_[k] += (1.0 - std::exp(-time / kWrenchTime)) * (wrench_goal_[k] - wrench_[k]);
    }
    apply(from);
  }

private:
  static constexpr double kPace = 4.0;         // 1/s, of the critically damped way to the goal
  static constexpr double kLongest = 0.1;      // s
  static constexpr double kWrenchTime = 0.05;  // s, time constant of the added wrench
  static constexpr double kApart = 1e-4;       // m, rad

  bool is_apart() const
  {
    const Vector3 angle = turned_.vector();
    return Quaternion::dot(offset_, offset_) > kApart * kApart ||
           Quaternion::dot(angle, angle) > kApart * kApart;
  }

  static void move(const Vector3 & away, double fastest, double follow, Vector3 & velocity)
  {
    const double size = kPace * std::sqrt(Quaternion::dot(away, away));
    const double factor = size > fastest ? kPace * fastest / size : kPace;
    for (std::size_t k = 0; k < 3; ++k) {
      velocity[k] += follow * (factor * away[k] - velocity[k]);
    }
  }

  bool has_target_ = false;
  Pose target_, latest_;
  Vector3 offset_{}, velocity_{}, rate_{};
  Quaternion turned_;
  Vector6 wrench_{}, wrench_goal_{};
};

// Computes the torque. Only the constructor allocates.
class Impedance
{
public:
  explicit Impedance(std::size_t joints)
  : n_(joints),
    mass_(n_ * n_),
    factor_(n_ * n_),
    inverse_(n_ * n_),
    stiffness_(n_ * n_),
    normals_(n_ * n_),
    projected_(n_ * n_),
    diagonal_(n_),
    beside_(n_),
    factors_(n_),
    spring_(n_),
    posture_(n_),
    damper_(n_),
    speed_(n_),
    rate_(n_),
    direction_(n_),
    left_(n_),
    image_(n_),
    error_(n_),
    jacobian_(6 * n_),
    weighted_(6 * n_)
  {
    rotations_.reserve(kIterations * n_ * n_);
  }

  // The mass matrix (n, n), to be written before compute.
  Vector & mass() { return mass_; }

  // Add the torque at errors q_d - q and qd_d - qd; period [s] of the states. The posture's torque
  // gives no more than is allowed, and springs give a fraction of what they give while they are
  // released. Return whether the mass matrix is positive definite.
  bool compute(
    const ImpedanceCoefficients & law, const Vector & error, const Vector & rate,
    const TipState & tip, double period, const Allowance & allowed, double release_fraction,
    double * torque)
  {
    error_ = error;
    tip_ = tip;
    period_ = period;
    torque_rates_ = allowed.torque_rates;
    is_active_ = true;
    if (!factorize(n_, mass_.data(), factor_.data())) { return false; }
    invert_factor();
    for (std::size_t i = 0; i < n_; ++i) {
      speed_[i] = 0.0;
      for (std::size_t j = i; j < n_; ++j) { speed_[i] += factor_[j * n_ + i] * rate[j]; }
    }
    stiffen(law);
    posture_ = direction_;
    wrench_ = pull_;
    find_modes(law);
    turn_there(posture_);
    // In the modes' coordinates the stiffness is diagonal, too.
    double power = 0.0;  // that springs give
    for (std::size_t k = 0; k < n_; ++k) {
      least_fraction_ = std::min(least_fraction_, left_[k]);
      damper_[k] = 2.0 * law.ratio * std::sqrt(left_[k] * std::max(diagonal_[k], 0.0)) * rate_[k];
      spring_[k] *= left_[k];
      posture_[k] *= left_[k];
      power -= spring_[k] * rate_[k];
    }
    power += limit_posture(allowed);
    const double fraction = power > 0.0 ? release_fraction : 1.0;
    turn_into_torque(spring_);
    turn_into_torque(damper_);
    for (std::size_t i = 0; i < n_; ++i) {
      posture_[i] *= fraction;
      torque[i] += fraction * spring_[i] + posture_[i] + damper_[i];
    }
    if (tip.jacobian == nullptr || law.wrench == 0.0) { return true; }
    for (std::size_t r = 0; r < 6; ++r) {
      const double added = law.wrench * tip.wrench[r];
      wrench_[r] += added;
      add(added, tip.jacobian + r * n_, torque);
    }
    return true;
  }

  // The energy of the springs of a law at the errors of the last compute, as far as its modes are
  // not slowed [J]. Not that of the posture's spring: what acts of it has no potential, and its work
  // is counted.
  double energy(const ImpedanceCoefficients & law)
  {
    stiffen(law);
    find_modes(law);
    double energy = potential(law);
    for (std::size_t k = 0; k < n_; ++k) {
      if (left_[k] < 1.0) {
        energy -= 0.5 * (1.0 - left_[k]) * spring_[k] * spring_[k] / diagonal_[k];
      }
    }
    return energy;
  }

  // Return the largest frequency of a mode with a damping ratio zeta, times the period. A spring and
  // a damper that act a period late are stable, with twice the gains, too, for x < (2 zeta - x / 2)
  // (1 - 4 zeta x + x^2) (see kLargestKdT): up to the first x that is not, sought by bisection.
  static double largest_frequency(double ratio)
  {
    const auto is_stable = [ratio](double x) {
      return x <= (2.0 * ratio - 0.5 * x) * (1.0 - 4.0 * ratio * x + x * x);
    };
    const double high = std::min(kLargestFrequency, kLargestDamping / ratio);
    return is_stable(high) ? high : largest(high, is_stable);
  }

  // Start a cycle: forget what compute said of the last one.
  void begin()
  {
    wrench_.fill(0.0);
    is_active_ = false;
    least_fraction_ = 1.0;
  }

  bool is_active() const { return is_active_; }  // whether compute was called
  // Of the motion relative to the reference [J].
  double kinetic_energy() const
  {
    double square = 0.0;
    for (const double each : speed_) { square += each * each; }
    return 0.5 * square;
  }
  const Vector & damper() const { return damper_; }    // its torque
  const Vector & posture() const { return posture_; }  // the torque towards the posture
  // What the tip's springs give, and what is added, in base axes [N, N m]; before a mode is slowed.
  const Vector6 & wrench() const { return wrench_; }
  // Of the stiffness of its modes, the least that the period of the states and the limits of the
  // torque's rate leave.
  double least_fraction() const { return least_fraction_; }

private:
  static constexpr double kLargestFrequency = 0.3, kLargestDamping = 0.225;
  static constexpr double kHeaviest = 1e4;  // kg or kg m^2: 1 / rho
  static constexpr int kIterations = 30;    // for an eigenvalue; two are usual
  static constexpr int kHalvings = 20;      // of an interval in which a number is sought
  static constexpr double kDiagonal = 1e-16;

  // The energy of the springs of a law, none of it lost.
  double potential(const ImpedanceCoefficients & law) const
  {
    double energy = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      energy += 0.5 * law.joints[i] * error_[i] * error_[i];
    }
    for (std::size_t k = 0; k < 3; ++k) {
      energy += 0.5 * law.along_base[k] * distance_[k] * distance_[k];
      energy += 0.5 * law.along_reference[k] * distance_there_[k] * distance_there_[k];
      energy += 2.0 * law.along_base[k + 3] * turn_[k] * turn_[k];
      energy += 2.0 * law.along_reference[k + 3] * turn_there_[k] * turn_there_[k];
    }
    return energy;
  }

  // Return the largest number that has a property, below one that has it not, by bisection.
  template <typename Property>
  static double largest(double high, const Property & has_it)
  {
    double low = 0.0;
    for (int k = 0; k < kHalvings; ++k) {
      const double middle = 0.5 * (low + high);
      (has_it(middle) ? low : high) = middle;
    }
    return low;
  }

  // Turn the forces of the modes towards the posture into a torque, scaled so that it gives no more
  // energy than allowed until it is withdrawn; return its power.
  double limit_posture(const Allowance & allowed)
  {
    double square = 0.0, power = 0.0;
    for (std::size_t k = 0; k < n_; ++k) {
      square += posture_[k] * posture_[k];
      power -= posture_[k] * rate_[k];
    }
    turn_into_torque(posture_);
    if (square == 0.0 || std::isinf(allowed.energy)) { return power; }
    double withdrawn = 0.0;  // s, in which the rate limit takes it away
    for (std::size_t i = 0; i < n_; ++i) {
      withdrawn = std::max(withdrawn, std::fabs(posture_[i]) / (*allowed.torque_rates)[i]);
    }
    // In the modes' coordinates the mass is one: a force f for a time t gives f v t + (f t)^2 / 2.
    const auto is_allowed = [&](double fraction) {
      const double time = fraction * (period_ + 0.5 * fraction * withdrawn);
      return std::max(power, 0.0) * time + 0.5 * square * time * time <= allowed.energy;
    };
    if (is_allowed(1.0)) { return power; }
    const double fraction = largest(1.0, is_allowed);
    for (double & x : posture_) { x *= fraction; }
    return fraction * power;
  }

  // Find the modes of the stiffness, turn the springs' torque and the speed into them, and find which
  // fraction of its stiffness each mode keeps: of what its frequency allows for the period of the
  // states, and of what the limits of the torque's rate follow.
  void find_modes(const ImpedanceCoefficients & law)
  {
    turn_into_modes();
    rate_ = speed_;
    turn_there(spring_);
    turn_there(rate_);
    const double fastest = largest_frequency(law.ratio) / period_;
    double most = 0.0;  // of 1 / R, R the rate at which the force of a mode may change, or less
    for (std::size_t i = 0; torque_rates_ != nullptr && i < n_; ++i) {
      most = std::max(most, std::sqrt(mass_[i * (n_ + 1)]) / usable_rate(i));
    }
    for (std::size_t k = 0; k < n_; ++k) {
      const double square = diagonal_[k];
      double & left = left_[k];
      left = square > fastest * fastest ? fastest * fastest / square : 1.0;
      if (square > 0.0 && !is_followed(k, left, most)) { left = followed_fraction(k, left); }
    }
  }

  // Whether the torque's rate can follow a mode that keeps a fraction of its stiffness: it swings with
  // the energy (v^2 + w^2 x^2) / 2, and its force changes by w^2 v at most. Then a lower frequency
  // while there is more energy keeps that energy: it is that of a spring.
  bool is_followed(std::size_t k, double fraction, double inverse) const
  {
    const double square = diagonal_[k], speed = square * rate_[k];
    const double most = speed * speed + fraction * square * spring_[k] * spring_[k];
    return fraction * fraction * most * inverse * inverse <= 1.0;
  }

  // The rate at which springs may change the torque of a joint.
  double usable_rate(std::size_t i) const { return kRateReserve * (*torque_rates_)[i]; }

  double followed_fraction(std::size_t k, double highest)
  {
    std::fill(image_.begin(), image_.end(), 0.0);
    image_[k] = 1.0;
    turn_into_torque(image_);
    double inverse = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      inverse = std::max(inverse, std::fabs(image_[i]) / usable_rate(i));
    }
    if (is_followed(k, highest, inverse)) { return highest; }
    return largest(highest, [&](double fraction) { return is_followed(k, fraction, inverse); });
  }

  // Write the stiffness of a law in the coordinates LT q, in which the mass matrix is one (its lower
  // triangle), the torque of its springs to spring_, and that towards the posture to direction_.
  void stiffen(const ImpedanceCoefficients & law)
  {
    std::fill(stiffness_.begin(), stiffness_.end(), 0.0);
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (std::size_t i = 0; i < n_; ++i) { spring_[i] = law.joints[i] * error_[i]; }
    if (any(law.joints)) { add_springs(law.joints, inverse_); }
    pull_.fill(0.0);
    if (tip_.jacobian != nullptr) { add_tip(law, tip_); }
    lower_solve(n_, factor_.data(), spring_.data(), 1);
    if (tip_.jacobian != nullptr) { add_posture(law); }
  }

  void add_tip(const ImpedanceCoefficients & law, const TipState & tip)
  {
    const Quaternion & axes = tip.reference.turn;
    const Quaternion difference = axes.after(tip.tip.turn.inverse());
    for (std::size_t k = 0; k < 3; ++k) {
      distance_[k] = tip.reference.position[k] - tip.tip.position[k];
    }
    turn_ = difference.v;
    distance_there_ = axes.inverse().apply(distance_);
    turn_there_ = axes.inverse().apply(turn_);
    // Both stiffnesses in base axes.
    std::array<std::array<Vector3, 3>, 2> k{};
    std::array<Vector3, 3> columns;
    for (std::size_t c = 0; c < 3; ++c) {
      Vector3 axis{};
      axis[c] = 1.0;
      columns[c] = axes.apply(axis);
    }
    for (std::size_t part = 0; part < 2; ++part) {
      for (std::size_t i = 0; i < 3; ++i) {
        k[part][i][i] += law.along_base[3 * part + i];
        for (std::size_t j = 0; j < 3; ++j) {
          for (std::size_t c = 0; c < 3; ++c) {
            k[part][i][j] += columns[c][i] * law.along_reference[3 * part + c] * columns[c][j];
          }
        }
      }
    }
    const auto times = [](const std::array<Vector3, 3> & m, const Vector3 & x) {
      return Vector3{
        Quaternion::dot(m[0], x), Quaternion::dot(m[1], x), Quaternion::dot(m[2], x)};
    };
    const Vector3 bent = times(k[1], turn_), twist = cross(bent, turn_);
    const Vector3 force = times(k[0], distance_);
    for (std::size_t r = 0; r < 3; ++r) {
      pull_[r] = force[r];
      pull_[r + 3] = 2.0 * (difference.w * bent[r] + twist[r]);
    }
    for (std::size_t r = 0; r < 6; ++r) { add(pull_[r], tip.jacobian + r * n_, spring_.data()); }
    if (!law.at_tip() && !any(law.posture)) { return; }
    // 2 eps moves with E w at an angular velocity w, E = eta + [eps]x: the moment is ET K_o 2 eps.
    // Where stiffness about the axes differs much, ET K_o E is not K_o even at small angles.
    const Vector3 & e = turn_;
    const std::array<Vector3, 3> rate{
      {{difference.w, -e[2], e[1]}, {e[2], difference.w, -e[0]}, {-e[1], e[0], difference.w}}};
    std::array<Vector3, 3> half{}, about{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t c = 0; c < 3; ++c) { half[i][j] += k[1][i][c] * rate[c][j]; }
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        for (std::size_t c = 0; c < 3; ++c) { about[i][j] += rate[c][i] * half[c][j]; }
      }
    }
    k[1] = about;
    // J L^-T (6, n), and the stiffness times it.
    for (std::size_t r = 0; r < 6; ++r) {
      const double * const row = tip.jacobian + r * n_;
      for (std::size_t i = 0; i < n_; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j <= i; ++j) { sum += inverse_[i * n_ + j] * row[j]; }
        jacobian_[r * n_ + i] = sum;
      }
    }
    std::fill(weighted_.begin(), weighted_.end(), 0.0);
    for (std::size_t r = 0; r < 6; ++r) {
      const std::size_t part = r / 3;
      for (std::size_t c = 0; c < 3; ++c) {
        add(k[part][r % 3][c], &jacobian_[(3 * part + c) * n_], &weighted_[r * n_]);
      }
    }
    for (std::size_t r = 0; r < 6; ++r) {
      for (std::size_t i = 0; i < n_; ++i) {
        add(jacobian_[r * n_ + i], &weighted_[r * n_], &stiffness_[i * n_], i + 1);
      }
    }
  }

  // With B = L^-1 JT, LT N L^-T = 1 - B (BT B + rho)^-1 BT: in the coordinates LT q the projector is
  // symmetric.
  void add_posture(const ImpedanceCoefficients & law)
  {
    if (!any(law.posture)) { return; }
    std::array<double, 36> mobility{}, root{};
    for (std::size_t r = 0; r < 6; ++r) {
      for (std::size_t c = 0; c <= r; ++c) {
        for (std::size_t i = 0; i < n_; ++i) {
          mobility[r * 6 + c] += jacobian_[r * n_ + i] * jacobian_[c * n_ + i];
        }
      }
      mobility[r * 7] += 1.0 / kHeaviest;
    }
    if (!factorize(6, mobility.data(), root.data())) { return; }
    std::copy(jacobian_.begin(), jacobian_.end(), weighted_.begin());
    lower_solve(6, root.data(), weighted_.data(), n_);
    // The projector times L^-1.
    for (std::size_t i = 0; i < n_; ++i) {
      double * const row = &projected_[i * n_];
      std::copy_n(&inverse_[i * n_], n_, row);
      for (std::size_t j = 0; j < n_; ++j) {
        double product = 0.0;
        for (std::size_t r = 0; r < 6; ++r) {
          product += weighted_[r * n_ + i] * weighted_[r * n_ + j];
        }
        add(-product, &inverse_[j * n_], row, j + 1);
      }
    }
    add_springs(law.posture, projected_);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < n_; ++k) {
        direction_[i] += projected_[i * n_ + k] * law.posture[k] * error_[k];
      }
    }
  }

  // Add X diag(k) XT to the stiffness.
  void add_springs(const Vector & k, const Vector & x)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t m = 0; m < n_; ++m) { image_[m] = k[m] * x[i * n_ + m]; }
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = 0.0;
        for (std::size_t m = 0; m < n_; ++m) { sum += image_[m] * x[j * n_ + m]; }
        stiffness_[i * n_ + j] += sum;
      }
    }
  }

  // Add a multiple of some numbers to others.
  static void add(double factor, const double * values, double * to, std::size_t count)
  {
    for (std::size_t j = 0; j < count; ++j) { to[j] += factor * values[j]; }
  }

  void add(double factor, const double * values, double * to) const
  {
    add(factor, values, to, n_);
  }

  // --- modes -----------------------------------------------------------------------------------

  // Diagonalise the stiffness, by Householder reflections to a tridiagonal matrix, then implicit QL
  // (Golub and Van Loan, Matrix Computations, sec. 8.3). The eigenvectors themselves are not needed.
  void turn_into_modes()
  {
    double size = 0.0;
    for (std::size_t i = 0; i < n_; ++i) { size = std::max(size, stiffness_[i * n_ + i]); }
    for (std::size_t k = 0; k + 2 < n_; ++k) { reflect_stiffness(k); }
    for (std::size_t i = 0; i < n_; ++i) { diagonal_[i] = stiffness_[i * n_ + i]; }
    if (n_ > 1) { beside_[n_ - 2] = stiffness_[n_ * n_ - 2]; }
    beside_[n_ - 1] = 0.0;
    rotations_.clear();
    const auto is_coupled = [this, size](std::size_t i) {
      return std::fabs(beside_[i]) > kDiagonal * size;
    };
    for (std::size_t first = 0; first < n_; ++first) {
      for (int k = 0; k < kIterations && is_coupled(first); ++k) {
        std::size_t last = first + 1;
        while (is_coupled(last)) { ++last; }
        iterate(first, last);
      }
    }
  }

  // Turn a vector into the coordinates of the modes.
  void turn_there(Vector & x) const
  {
    for (std::size_t k = 0; k + 2 < n_; ++k) { reflect(k, x); }
    for (const Rotation & each : rotations_) {
      const double above = x[each.row], below = x[each.row + 1];
      x[each.row] = each.c * above - each.s * below;
      x[each.row + 1] = each.s * above + each.c * below;
    }
  }

  // Turn a force of the modes into a torque of the joints.
  void turn_into_torque(Vector & x)
  {
    direction_ = x;
    turn_back(direction_);
    for (std::size_t i = 0; i < n_; ++i) {
      x[i] = 0.0;
      for (std::size_t j = 0; j <= i; ++j) { x[i] += factor_[i * n_ + j] * direction_[j]; }
    }
  }

  // Turn a vector back from the coordinates of the modes.
  void turn_back(Vector & x) const
  {
    for (std::size_t k = rotations_.size(); k-- > 0;) {
      const Rotation & each = rotations_[k];
      const double above = x[each.row], below = x[each.row + 1];
      x[each.row] = each.c * above + each.s * below;
      x[each.row + 1] = each.c * below - each.s * above;
    }
    for (std::size_t k = n_; k-- > 0;) {
      if (k + 2 < n_) { reflect(k, x); }
    }
  }

  // A plane rotation of a row and the next one.
  struct Rotation
  {
    std::size_t row;
    double c, s;
  };

  // Reflect stiffness_ so that its column k has nothing below the element beside the diagonal.
  void reflect_stiffness(std::size_t k)
  {
    double * const normal = &normals_[k * n_];
    double square = 0.0;
    for (std::size_t i = k + 1; i < n_; ++i) {
      normal[i] = stiffness_[i * n_ + k];
      square += normal[i] * normal[i];
      image_[i] = 0.0;
    }
    const double length = std::copysign(std::sqrt(square), normal[k + 1]);
    const double half = square + length * normal[k + 1];  // of the square of the normal
    beside_[k] = -length;
    factors_[k] = half > 0.0 ? 1.0 / half : 0.0;
    if (!(half > 0.0)) { return; }
    normal[k + 1] += length;
    double along = 0.0;
    for (std::size_t i = k + 1; i < n_; ++i) {
      const double * const row = &stiffness_[i * n_];
      double sum = row[i] * normal[i];
      for (std::size_t j = k + 1; j < i; ++j) {
        sum += row[j] * normal[j];
        image_[j] += row[j] * normal[i];
      }
      image_[i] += sum;
    }
    for (std::size_t i = k + 1; i < n_; ++i) {
      image_[i] *= factors_[k];
      along += image_[i] * normal[i];
    }
    for (std::size_t i = k + 1; i < n_; ++i) {
      image_[i] -= 0.5 * factors_[k] * along * normal[i];
    }
    for (std::size_t i = k + 1; i < n_; ++i) {
      double * const row = &stiffness_[i * n_];
      for (std::size_t j = k + 1; j <= i; ++j) {
        row[j] -= normal[i] * image_[j] + image_[i] * normal[j];
      }
    }
  }

  // Reflect a vector as that did with column k.
  void reflect(std::size_t k, Vector & x) const
  {
    const double * const normal = &normals_[k * n_];
    double along = 0.0;
    for (std::size_t i = k + 1; i < n_; ++i) { along += normal[i] * x[i]; }
    along *= factors_[k];
    for (std::size_t i = k + 1; i < n_; ++i) { x[i] -= along * normal[i]; }
  }

  // Do a QL iteration with the implicit shift for the first of some rows of the tridiagonal matrix.
  void iterate(std::size_t first, std::size_t last)
  {
    const double ratio = 0.5 * (diagonal_[first + 1] - diagonal_[first]) / beside_[first];
    const double root = std::copysign(std::sqrt(1.0 + ratio * ratio), ratio);
    double g = diagonal_[last] - diagonal_[first] + beside_[first] / (ratio + root);
    double s = 1.0, c = 1.0, p = 0.0;
    for (std::size_t i = last; i-- > first;) {
      const double f = s * beside_[i], b = c * beside_[i];
      const double r = std::sqrt(f * f + g * g);
      beside_[i + 1] = r;
      if (!(r > 0.0)) {
        diagonal_[i + 1] -= p;
        beside_[last] = 0.0;
        return;
      }
      const double inverse = 1.0 / r;
      s = f * inverse;
      c = g * inverse;
      g = diagonal_[i + 1] - p;
      const double t = (diagonal_[i] - g) * s + 2.0 * c * b;
      p = s * t;
      diagonal_[i + 1] = g + p;
      g = c * t - b;
      rotations_.push_back({i, c, s});
    }
    diagonal_[first] -= p;
    beside_[first] = g;
    beside_[last] = 0.0;
  }

  // --- triangular factors ----------------------------------------------------------------------

  // Write L of a matrix L LT, both (size, size); false where it is not positive definite.
  static bool factorize(std::size_t size, const double * matrix, double * factor)
  {
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = matrix[i * size + j];
        for (std::size_t k = 0; k < j; ++k) {
          sum -= factor[i * size + k] * factor[j * size + k];
        }
        if (i == j && !(sum > 0.0)) { return false; }
        factor[i * size + j] = i == j ? std::sqrt(sum) : sum / factor[j * size + j];
      }
    }
    return true;
  }

  // Turn X, (size, columns), into L^-1 X.
  static void lower_solve(
    std::size_t size, const double * factor, double * x, std::size_t columns)
  {
    for (std::size_t i = 0; i < size; ++i) {
      double * const row = x + i * columns;
      const double inverse = 1.0 / factor[i * size + i];
      for (std::size_t k = 0; k < i; ++k) {
        const double * const other = x + k * columns;
        for (std::size_t c = 0; c < columns; ++c) { row[c] -= factor[i * size + k] * other[c]; }
      }
      for (std::size_t c = 0; c < columns; ++c) { row[c] *= inverse; }
    }
  }

  // Write L^-1 to inverse_.
  void invert_factor()
  {
    for (std::size_t i = 0; i < n_; ++i) {
      double * const row = &inverse_[i * n_];
      const double inverse = 1.0 / factor_[i * n_ + i];
      std::fill_n(row, i, 0.0);
      for (std::size_t k = 0; k < i; ++k) {
        add(-inverse * factor_[i * n_ + k], &inverse_[k * n_], row, k + 1);
      }
      row[i] = inverse;
    }
  }

  const std::size_t n_;
  Vector mass_, factor_, inverse_;  // M, L with M = L LT, and L^-1
  Vector stiffness_, normals_;      // L^-1 K L^-T; the reflections that make it tridiagonal
  Vector projected_;                // LT N L^-T L^-1
  Vector diagonal_, beside_;  // of the tridiagonal matrix; then the first has its eigenvalues
  Vector factors_;            // of the reflections
  std::vector<Rotation> rotations_;   // after them
  Vector spring_, posture_, damper_;  // torques: in joint space, LT q, the modes, joint space
  Vector speed_, rate_, direction_;   // LT (qd_d - qd); that in the modes; scratch
  Vector left_;                       // of the stiffness of each mode [0, 1]
  Vector image_, error_;
  Vector jacobian_, weighted_;  // J L^-T, and times K or a root of the mobility: (6, n)
  Vector3 distance_{}, distance_there_{}, turn_{}, turn_there_{};  // in base and reference axes
  Vector6 pull_{}, wrench_{};
  TipState tip_;
  const Vector * torque_rates_ = nullptr;
  double period_ = kNaN, least_fraction_ = 1.0;
  bool is_active_ = false;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__IMPEDANCE_HPP_
