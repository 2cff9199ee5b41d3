// SPDX-License-Identifier: Apache-2.0
// The force and the moment at an arm's tip that explain external joint torques.
#ifndef ROBODYN_ROS__CORE__TIP_WRENCH_HPP_
#define ROBODYN_ROS__CORE__TIP_WRENCH_HPP_

#include <array>
#include <cmath>
#include <cstddef>

#include "settings.hpp"

namespace robodyn
{

// Prior standard deviations of a wrench [N], [N m].
constexpr double kExpectedForce = 100.0, kExpectedMoment = 20.0;

// Least squares of J(q)T w = torque, each joint weighted by its deviation, damped by the prior
// of the wrench: with A = diag(1 / deviation) JT diag(expected), w = expected (AT A + 1)^-1 AT
// (torque / deviation), with the covariance expected (AT A + 1)^-1 expected. A direction is
// undetermined where a singular value of A is below one: there the torques carry less
// information than the prior. An arm of fewer than six joints always has such directions, and so
// has every arm in a singular configuration.
//
// Singular values by Jacobi rotations of A's columns (Hestenes): small ones keep their digits,
// which they would lose in AT A. Only the constructor allocates.
class TipWrench
{
public:
  using Vector6 = std::array<double, 6>;

  explicit TipWrench(std::size_t joints) : n_(joints) { columns_.fill(Vector(joints)); }

  // Force [N], then the moment about the point [N m], in the tip link's axes; and deviations.
  const Vector6 & wrench() const { return wrench_; }
  const Vector6 & deviation() const { return deviation_; }
  // The number of undetermined directions, and their unit vectors (the first entries of the
  // array), forces in units of kExpectedForce, moments in those of kExpectedMoment. A wrench
  // along them hardly shows in the torques, and is left out.
  std::size_t undetermined_count() const { return undetermined_count_; }
  const std::array<Vector6, 6> & undetermined() const { return undetermined_; }

  // Estimate the wrench for torques with positive standard deviations, at the tip's pose (4, 4)
  // and Jacobian (6, n), linear rows first, both in base axes. The force acts at a point (3) in
  // the tip link's frame.
  void update(
    const double * pose, const double * jacobian, const double * point, const double * torque,
    const double * deviation)
  {
    for (std::size_t i = 0; i < n_; ++i) {
      double lever[6];  // a column of the Jacobian in the tip link's axes
      for (std::size_t k = 0; k < 6; ++k) {
        const std::size_t part = k / 3 * 3, axis = k % 3;
        lever[k] = 0.0;
        for (std::size_t j = 0; j < 3; ++j) {
          lever[k] += pose[4 * j + axis] * jacobian[(part + j) * n_ + i];
        }
      }
      const double * const w = lever + 3;
      lever[0] += w[1] * point[2] - w[2] * point[1];
      lever[1] += w[2] * point[0] - w[0] * point[2];
      lever[2] += w[0] * point[1] - w[1] * point[0];
      for (std::size_t k = 0; k < 6; ++k) {
        columns_[k][i] = lever[k] * expected(k) / deviation[i];
      }
    }
    diagonalize();
    // A = U S VT, and the columns are those of U S: w = V (S2 + 1)^-1 (U S)T (torque / deviation).
    wrench_.fill(0.0);
    deviation_.fill(0.0);
    undetermined_count_ = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      const double size = dot(k, k);
      double coefficient = 0.0;
      for (std::size_t i = 0; i < n_; ++i) {
        coefficient += columns_[k][i] * torque[i] / deviation[i];
      }
      coefficient /= size + 1.0;
      for (std::size_t j = 0; j < 6; ++j) {
        wrench_[j] += expected(j) * directions_[k][j] * coefficient;
        deviation_[j] += directions_[k][j] * directions_[k][j] / (size + 1.0);
      }
      if (size < 1.0) { undetermined_[undetermined_count_++] = directions_[k]; }
    }
    for (std::size_t j = 0; j < 6; ++j) {
      deviation_[j] = expected(j) * std::sqrt(deviation_[j]);
    }
  }

private:
  static constexpr int kSweeps = 30;  // a few suffice; numbers that are not finite use all
  static constexpr double kOrthogonal = 1e-15;

  static double expected(std::size_t k) { return k < 3 ? kExpectedForce : kExpectedMoment; }

  double dot(std::size_t a, std::size_t b) const
  {
    double sum = 0.0;
    for (std::size_t i = 0; i < n_; ++i) { sum += columns_[a][i] * columns_[b][i]; }
    return sum;
  }

  // Rotate the columns until each is orthogonal to every other, and the directions with them.
  void diagonalize()
  {
    for (std::size_t k = 0; k < 6; ++k) {
      directions_[k].fill(0.0);
      directions_[k][k] = 1.0;
    }
    bool is_done = false;
    for (int sweep = 0; sweep < kSweeps && !is_done; ++sweep) {
      is_done = true;
      for (std::size_t p = 0; p < 5; ++p) {
        for (std::size_t q = p + 1; q < 6; ++q) {
          const double a = dot(p, p), b = dot(q, q), product = dot(p, q);
          if (product == 0.0 || std::fabs(product) <= kOrthogonal * std::sqrt(a * b)) {
            continue;
          }
          is_done = false;
          const double ratio = 0.5 * (b - a) / product;
          const double t =
            (ratio < 0.0 ? -1.0 : 1.0) / (std::fabs(ratio) + std::hypot(1.0, ratio));
          const double c = 1.0 / std::hypot(1.0, t);
          rotate(columns_[p], columns_[q], c, c * t);
          rotate(directions_[p], directions_[q], c, c * t);
        }
      }
    }
  }

  template <typename Numbers>
  static void rotate(Numbers & one, Numbers & other, double c, double s)
  {
    for (std::size_t i = 0; i < one.size(); ++i) {
      const double first = one[i];
      one[i] = c * first - s * other[i];
      other[i] = s * first + c * other[i];
    }
  }

  const std::size_t n_;
  std::array<Vector, 6> columns_;        // of A, then those of U S
  std::array<Vector6, 6> directions_{};  // the columns of V
  Vector6 wrench_{}, deviation_{};
  std::array<Vector6, 6> undetermined_{};
  std::size_t undetermined_count_ = 0;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__TIP_WRENCH_HPP_
