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
// A mode that is too fast for the period of the states is made slower: the spring's part in it is
// reduced.
#ifndef ROBODYN_ROS__CORE__IMPEDANCE_HPP_
#define ROBODYN_ROS__CORE__IMPEDANCE_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "settings.hpp"

namespace robodyn
{

using Three = std::array<double, 3>;
using Six = std::array<double, 6>;

inline Three cross(const Three & a, const Three & b)
{
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

// A unit quaternion.
struct Turn
{
  double w = 1.0;
  Three v{};

  // Of the rotation in the upper left of a row-major (4, 4) pose.
  static Turn of(const double * pose)
  {
    const auto r = [pose](std::size_t i, std::size_t j) { return pose[4 * i + j]; };
    // The largest of four squares, so that nothing is divided by a small number.
    const double trace = r(0, 0) + r(1, 1) + r(2, 2);
    Turn turn;
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
  static Turn about(const Three & vector)
  {
    const double angle = std::sqrt(dot(vector, vector));
    const double factor = angle > 1e-9 ? std::sin(0.5 * angle) / angle : 0.5;
    return Turn{
      std::cos(0.5 * angle), {factor * vector[0], factor * vector[1], factor * vector[2]}};
  }

  // The vector about which, and by whose length, it turns; up to half a turn.
  Three vector() const
  {
    const double size = std::sqrt(dot(v, v)), sign = w < 0.0 ? -1.0 : 1.0;
    const double factor = size > 1e-9 ? 2.0 * std::atan2(size, sign * w) / size : 2.0;
    return {sign * factor * v[0], sign * factor * v[1], sign * factor * v[2]};
  }

  Turn inverse() const { return Turn{w, {-v[0], -v[1], -v[2]}}; }

  // This turn after another one.
  Turn after(const Turn & first) const
  {
    const Three c = cross(v, first.v);
    Turn turn{w * first.w - dot(v, first.v), {}};
    for (std::size_t k = 0; k < 3; ++k) { turn.v[k] = w * first.v[k] + first.w * v[k] + c[k]; }
    const double size = std::sqrt(turn.w * turn.w + dot(turn.v, turn.v));
    turn.w /= size;
    for (double & each : turn.v) { each /= size; }
    return turn;
  }

  Three apply(const Three & a) const
  {
    const Three c = cross(v, a), d = cross(v, c);
    return {
      a[0] + 2.0 * (w * c[0] + d[0]), a[1] + 2.0 * (w * c[1] + d[1]),
      a[2] + 2.0 * (w * c[2] + d[2])};
  }

  static double dot(const Three & a, const Three & b)
  {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  }
};

// A position [m] and an orientation in the base link's frame.
struct Pose
{
  Three position{};
  Turn turn;

  static Pose of(const double * pose) { return {{pose[3], pose[7], pose[11]}, Turn::of(pose)}; }
};

// Stiffness and damping of a law; the torque of the springs is linear in them.
struct ImpedanceCoefficients
{
  Vector joints, posture;               // N m/rad or N/m
  Six along_base{}, along_reference{};  // of the tip, along and about axes [N/m, N m/rad]
  double ratio = 0.0;                   // of the damping
  double wrench = 0.0;                  // of the wrench that is added

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
  static bool has(const Six & values)
  {
    return std::any_of(values.begin(), values.end(), [](double x) { return x != 0.0; });
  }
};

// What the spring at the tip needs to know; without a Jacobian there is none.
struct TipState
{
  Pose tip, reference;
  const double * jacobian = nullptr;  // (6, n), linear rows first
  Six wrench{};                       // to add, in the base link's axes [N, N m]
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

  // Stay where the reference is, if there is a target.
  void stop()
  {
    if (has_target_) { target_ = latest_; }
  }

  // Be at the joints' reference at once: it begins anew.
  void reset()
  {
    const Pose latest = latest_;  // until the next advance
    *this = TipReference();
    latest_ = latest;
  }

  void add_wrench(const Six & wrench) { wrench_goal_ = wrench; }

  bool has_target() const { return has_target_; }
  const Six & wrench() const { return wrench_; }
  const Pose & latest() const { return latest_; }  // of the last advance

  // Return the reference, where the joints' one has the tip at a pose.
  Pose applied(const Pose & from) const
  {
    Pose pose;
    for (std::size_t k = 0; k < 3; ++k) { pose.position[k] = from.position[k] + offset_[k]; }
    pose.turn = turned_.after(from.turn);
    return pose;
  }

  // Advance by a time [s].
  void advance(double elapsed, const Pose & from, const TipSpeed & speed)
  {
    const double time = std::min(elapsed, kLongest);
    const double follow = 1.0 - std::exp(-4.0 * kPace * time);
    Three away{};  // from the offset to its goal
    for (std::size_t k = 0; k < 3; ++k) {
      away[k] = (has_target_ ? target_.position[k] - from.position[k] : 0.0) - offset_[k];
    }
    const Turn goal = has_target_ ? target_.turn.after(from.turn.inverse()) : Turn();
    const Three angle = goal.after(turned_.inverse()).vector();
    move(away, speed.linear, follow, velocity_);
    move(angle, speed.angular, follow, rate_);
    Three turn;
    for (std::size_t k = 0; k < 3; ++k) {
      offset_[k] += time * velocity_[k];
      turn[k] = time * rate_[k];
    }
    turned_ = Turn::about(turn).after(turned_);
    for (std::size_t k = 0; k < 6; ++k) {
      wrench_[k] += (1.0 - std::exp(-time / kWrenchTime)) * (wrench_goal_[k] - wrench_[k]);
    }
    latest_ = applied(from);
  }

private:
  static constexpr double kPace = 4.0;         // 1/s, of the critically damped way to the goal
  static constexpr double kLongest = 0.1;      // s
  static constexpr double kWrenchTime = 0.05;  // s, time constant of the added wrench

  static void move(const Three & away, double fastest, double follow, Three & velocity)
  {
    const double size = kPace * std::sqrt(Turn::dot(away, away));
    const double factor = size > fastest ? kPace * fastest / size : kPace;
    for (std::size_t k = 0; k < 3; ++k) {
      velocity[k] += follow * (factor * away[k] - velocity[k]);
    }
  }

  bool has_target_ = false;
  Pose target_, latest_;
  Three offset_{}, velocity_{}, rate_{};
  Turn turned_;
  Six wrench_{}, wrench_goal_{};
};

// Computes the torque. Only the constructor allocates.
class Impedance
{
public:
  explicit Impedance(std::size_t joints)
  : n_(joints),
    mass_(n_ * n_),
    factor_(n_ * n_),
    stiffness_(n_ * n_),
    modes_(n_ * n_),
    projector_(n_ * n_),
    posture_(n_),
    spring_(n_),
    modal_(n_),
    error_(n_),
    inverse_(6 * n_)
  {
  }

  // The mass matrix (n, n), to be written before compute.
  Vector & mass() { return mass_; }

  // Add the torque at errors q_d - q and qd_d - qd; period [s] of the states. The posture's torque
  // is scaled by posture_fraction. Return whether the mass matrix is positive definite.
  bool compute(
    const ImpedanceCoefficients & law, const Vector & error, const Vector & rate,
    const TipState & tip, double period, double posture_fraction, double * torque)
  {
    error_ = error;
    is_active_ = true;
    if (!factorize(mass_, factor_)) { return false; }
    std::fill(stiffness_.begin(), stiffness_.end(), 0.0);
    for (std::size_t i = 0; i < n_; ++i) {
      stiffness_[i * n_ + i] = law.joints[i];
      spring_[i] = law.joints[i] * error[i];
    }
    if (tip.jacobian != nullptr) {
      add_tip(law, tip);
      add_posture(law, tip, posture_fraction);
    }
    find_modes();
    // In the modes' coordinates the mass matrix is one, the stiffness diagonal.
    const double fastest = std::min(kLargestFrequency, kLargestDamping / law.ratio) / period;
    lower_solve(factor_, spring_.data());
    for (std::size_t k = 0; k < n_; ++k) {
      double force = 0.0, velocity = 0.0;
      for (std::size_t i = 0; i < n_; ++i) {
        force += modes_[i * n_ + k] * spring_[i];
        double along = 0.0;
        for (std::size_t j = i; j < n_; ++j) { along += factor_[j * n_ + i] * rate[j]; }
        velocity += modes_[i * n_ + k] * along;
      }
      const double frequency = std::sqrt(std::max(stiffness_[k * n_ + k], 0.0));  // rad/s
      const double slow = frequency > fastest ? fastest / frequency : 1.0;
      is_limited_ |= slow < 1.0;
      const double damped = 2.0 * law.ratio * slow * frequency * velocity;
      modal_[k] = slow * slow * force + damped;
      dissipated_ += damped * velocity;
    }
    for (std::size_t i = 0; i < n_; ++i) {
      spring_[i] = 0.0;
      for (std::size_t k = 0; k < n_; ++k) { spring_[i] += modes_[i * n_ + k] * modal_[k]; }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) { torque[i] += factor_[i * n_ + j] * spring_[j]; }
    }
    return true;
  }

  // Start a cycle: forget what compute said of the last one.
  void begin()
  {
    dissipated_ = 0.0;
    wrench_.fill(0.0);
    is_limited_ = is_active_ = false;
    std::fill(posture_.begin(), posture_.end(), 0.0);
  }

  bool is_active() const { return is_active_; }        // whether compute was called
  double dissipated() const { return dissipated_; }    // by the damper [W]
  const Vector & posture() const { return posture_; }  // the torque towards the posture
  // What the tip's springs give, and what is added, in base axes [N, N m]; before a mode is slowed.
  const Six & wrench() const { return wrench_; }
  bool is_limited() const { return is_limited_; }  // by the period of the states

  // The energy of the springs of a law at the errors of the last compute [J].
  double potential(const ImpedanceCoefficients & law) const
  {
    double energy = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      energy += 0.5 * (law.joints[i] + law.posture[i]) * error_[i] * error_[i];
    }
    for (std::size_t k = 0; k < 3; ++k) {
      energy += 0.5 * law.along_base[k] * distance_[k] * distance_[k];
      energy += 0.5 * law.along_reference[k] * distance_there_[k] * distance_there_[k];
      energy += 2.0 * law.along_base[k + 3] * turn_[k] * turn_[k];
      energy += 2.0 * law.along_reference[k + 3] * turn_there_[k] * turn_there_[k];
    }
    return energy;
  }

private:
  // Of a mode, times the period. A spring and a damper that act a period late are stable, with
  // twice the gains, too, up to these (see kLargestKdT): x < (2 zeta - x / 2) (1 - 4 zeta x + x^2).
  static constexpr double kLargestFrequency = 0.3, kLargestDamping = 0.225;
  static constexpr double kHeaviest = 1e4;  // kg or kg m^2: 1 / rho
  static constexpr int kSweeps = 20;
  static constexpr double kDiagonal = 1e-12;

  void add_tip(const ImpedanceCoefficients & law, const TipState & tip)
  {
    const Turn & axes = tip.reference.turn;
    const Turn difference = axes.after(tip.tip.turn.inverse());
    for (std::size_t k = 0; k < 3; ++k) {
      distance_[k] = tip.reference.position[k] - tip.tip.position[k];
    }
    turn_ = difference.v;
    distance_there_ = axes.inverse().apply(distance_);
    turn_there_ = axes.inverse().apply(turn_);
    // Both stiffnesses in base axes.
    std::array<std::array<Three, 3>, 2> k{};
    std::array<Three, 3> columns;
    for (std::size_t c = 0; c < 3; ++c) {
      Three axis{};
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
    const auto times = [](const std::array<Three, 3> & m, const Three & x) {
      return Three{Turn::dot(m[0], x), Turn::dot(m[1], x), Turn::dot(m[2], x)};
    };
    const Three force = times(k[0], distance_), bent = times(k[1], turn_);
    const Three twist = cross(bent, turn_);
    for (std::size_t r = 0; r < 3; ++r) {
      wrench_[r] = force[r] + law.wrench * tip.wrench[r];
      wrench_[r + 3] = 2.0 * (difference.w * bent[r] + twist[r]) + law.wrench * tip.wrench[r + 3];
    }
    const double * const jacobian = tip.jacobian;
    for (std::size_t i = 0; i < n_; ++i) {
      Three linear, angular;
      for (std::size_t r = 0; r < 3; ++r) {
        linear[r] = jacobian[r * n_ + i];
        angular[r] = jacobian[(r + 3) * n_ + i];
        spring_[i] += linear[r] * wrench_[r] + angular[r] * wrench_[r + 3];
      }
      const Three stiff = times(k[0], linear), turning = times(k[1], angular);
      for (std::size_t j = 0; j < n_; ++j) {
        for (std::size_t r = 0; r < 3; ++r) {
          stiffness_[i * n_ + j] +=
            stiff[r] * jacobian[r * n_ + j] + turning[r] * jacobian[(r + 3) * n_ + j];
        }
      }
    }
  }

  void add_posture(const ImpedanceCoefficients & law, const TipState & tip, double fraction)
  {
    if (!any(law.posture)) { return; }
    const double * const jacobian = tip.jacobian;
    // Rows of J M^-1, then the projector N = 1 - M^-1 JT (J M^-1 JT + rho)^-1 J.
    for (std::size_t r = 0; r < 6; ++r) {
      double * const row = inverse_.data() + r * n_;
      std::copy_n(jacobian + r * n_, n_, row);
      lower_solve(factor_, row);
      upper_solve(factor_, row);
    }
    std::array<double, 36> inertia{};
    for (std::size_t r = 0; r < 6; ++r) {
      for (std::size_t s = 0; s < 6; ++s) {
        for (std::size_t i = 0; i < n_; ++i) {
          inertia[r * 6 + s] += inverse_[r * n_ + i] * jacobian[s * n_ + i];
        }
      }
      inertia[r * 7] += 1.0 / kHeaviest;
    }
    if (!factorize_six(inertia)) { return; }
    for (std::size_t j = 0; j < n_; ++j) {
      Six column;
      for (std::size_t r = 0; r < 6; ++r) { column[r] = jacobian[r * n_ + j]; }
      solve_six(inertia, column);
      for (std::size_t i = 0; i < n_; ++i) {
        double sum = i == j ? 1.0 : 0.0;
        for (std::size_t r = 0; r < 6; ++r) { sum -= inverse_[r * n_ + i] * column[r]; }
        projector_[i * n_ + j] = sum;
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      posture_[i] = 0.0;
      for (std::size_t k = 0; k < n_; ++k) {
        posture_[i] += fraction * projector_[k * n_ + i] * law.posture[k] * error_[k];
      }
      spring_[i] += posture_[i];
      for (std::size_t j = 0; j < n_; ++j) {
        for (std::size_t k = 0; k < n_; ++k) {
          stiffness_[i * n_ + j] +=
            projector_[k * n_ + i] * law.posture[k] * projector_[k * n_ + j];
        }
      }
    }
  }

  // From K to L^-1 K L^-T = U diag UT, with M = L LT: leave the diagonal in stiffness_, U in modes_.
  void find_modes()
  {
    // K is symmetric: solve its rows, and those of the transpose.
    for (int turn = 0; turn < 2; ++turn) {
      for (std::size_t i = 0; i < n_; ++i) { lower_solve(factor_, &stiffness_[i * n_]); }
      for (std::size_t i = 0; i < n_; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          std::swap(stiffness_[i * n_ + j], stiffness_[j * n_ + i]);
        }
      }
    }
    std::fill(modes_.begin(), modes_.end(), 0.0);
    double size = 0.0;
    for (std::size_t i = 0; i < n_; ++i) {
      modes_[i * n_ + i] = 1.0;
      size = std::max(size, stiffness_[i * n_ + i]);
    }
    bool is_done = false;
    for (int sweep = 0; sweep < kSweeps && !is_done; ++sweep) {
      is_done = true;
      for (std::size_t p = 0; p + 1 < n_; ++p) {
        for (std::size_t q = p + 1; q < n_; ++q) {
          const double apq = stiffness_[p * n_ + q];
          if (!(std::fabs(apq) > kDiagonal * size)) { continue; }
          is_done = false;
          rotate(p, q, apq);
        }
      }
    }
  }

  // A Jacobi rotation that makes an element of stiffness_ zero.
  void rotate(std::size_t p, std::size_t q, double apq)
  {
    const double ratio = 0.5 * (stiffness_[q * n_ + q] - stiffness_[p * n_ + p]) / apq;
    const double t =
      (ratio < 0.0 ? -1.0 : 1.0) / (std::fabs(ratio) + std::sqrt(1.0 + ratio * ratio));
    const double c = 1.0 / std::sqrt(1.0 + t * t), s = t * c;
    for (std::size_t k = 0; k < n_; ++k) {
      double & a = stiffness_[k * n_ + p];
      double & b = stiffness_[k * n_ + q];
      const double first = a;
      a = c * first - s * b;
      b = s * first + c * b;
      double & u = modes_[k * n_ + p];
      double & w = modes_[k * n_ + q];
      const double former = u;
      u = c * former - s * w;
      w = s * former + c * w;
    }
    for (std::size_t k = 0; k < n_; ++k) {
      double & a = stiffness_[p * n_ + k];
      double & b = stiffness_[q * n_ + k];
      const double first = a;
      a = c * first - s * b;
      b = s * first + c * b;
    }
  }

  // --- triangular factors ----------------------------------------------------------------------

  // Write L of M = L LT; false where M is not positive definite.
  bool factorize(const Vector & mass, Vector & factor) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = mass[i * n_ + j];
        for (std::size_t k = 0; k < j; ++k) { sum -= factor[i * n_ + k] * factor[j * n_ + k]; }
        if (i != j) {
          factor[i * n_ + j] = sum / factor[j * n_ + j];
        } else {
          if (!(sum > 0.0)) { return false; }
          factor[i * n_ + i] = std::sqrt(sum);
        }
      }
    }
    return true;
  }

  void lower_solve(const Vector & factor, double * x) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) { x[i] -= factor[i * n_ + k] * x[k]; }
      x[i] /= factor[i * n_ + i];
    }
  }

  void upper_solve(const Vector & factor, double * x) const
  {
    for (std::size_t i = n_; i-- > 0;) {
      for (std::size_t k = i + 1; k < n_; ++k) { x[i] -= factor[k * n_ + i] * x[k]; }
      x[i] /= factor[i * n_ + i];
    }
  }

  static bool factorize_six(std::array<double, 36> & a)
  {
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double sum = a[i * 6 + j];
        for (std::size_t k = 0; k < j; ++k) { sum -= a[i * 6 + k] * a[j * 6 + k]; }
        if (i == j && !(sum > 0.0)) { return false; }
        a[i * 6 + j] = i == j ? std::sqrt(sum) : sum / a[j * 6 + j];
      }
    }
    return true;
  }

  static void solve_six(const std::array<double, 36> & a, Six & x)
  {
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t k = 0; k < i; ++k) { x[i] -= a[i * 6 + k] * x[k]; }
      x[i] /= a[i * 7];
    }
    for (std::size_t i = 6; i-- > 0;) {
      for (std::size_t k = i + 1; k < 6; ++k) { x[i] -= a[k * 6 + i] * x[k]; }
      x[i] /= a[i * 7];
    }
  }

  const std::size_t n_;
  Vector mass_, factor_;        // M, and L with M = L LT
  Vector stiffness_, modes_;    // of the springs in joint space, then diagonal; its eigenvectors
  Vector projector_, posture_;  // N, and NT K_n (q_d - q)
  Vector spring_, modal_, error_, inverse_;
  Three distance_{}, distance_there_{}, turn_{}, turn_there_{};  // in base and reference axes
  Six wrench_{};
  double dissipated_ = 0.0;
  bool is_limited_ = false, is_active_ = false;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__IMPEDANCE_HPP_
