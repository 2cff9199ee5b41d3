// SPDX-License-Identifier: Apache-2.0
// From a state and a reference to the torque that is sent: the control law, as coefficients that
// its torque is linear in; soft joint limits; effort clip, rate limit, effort clip.
//
// At one measured state and one reference the torque of every mode is a sum of the same parts: the
// gravity torque, what the reference asks for where it is, what it asks for where the arm is, and
// the feedback. A mode, its terms and its gains are nothing but the coefficients of these parts.
// So the torque of a convex combination of coefficients is the convex combination of the torques:
// whatever changes one law into another by way of it keeps each joint's torque between what the
// two laws ask for at the present state, however often the change is changed on its way.
//
// With the errors e = q_d - q and ed = qd_d - qd,
// - gravity compensation: g(q);
// - feedforward: M(q_d) qdd_d + C(q_d, qd_d) qd_d + g(q_d) + friction(qd_d) + effort;
// - computed torque: M(q) (qdd_d + K_d ed + K_p e) + C(q, qd) qd + g(q) + friction(qd_d) + effort;
// each part only where its term is switched on; the feedback always is. Without a reference every
// mode compensates gravity. Damping adds -d M(q) qd to the feedback.
#ifndef ROBODYN_ROS__CORE__TORQUE_HPP_
#define ROBODYN_ROS__CORE__TORQUE_HPP_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "model.hpp"
#include "reference.hpp"
#include "settings.hpp"

namespace robodyn
{

// The parts of a torque, each n numbers; the coefficients of a reference's parts leave out the
// feedback's, which has gains.
namespace part
{
constexpr std::size_t inertial = 0, coriolis = 1, gravity = 2, friction = 3, feedback = 4,
                      effort = 5, count = 6;
}

// Of the inertial, Coriolis, gravity, friction and effort parts of a reference.
using PartCoefficients = std::array<double, 5>;
constexpr std::size_t kEffortCoefficient = 4;

// Bounds of kd T and sqrt(kp) T, T being the period of the states.
//
// Computed torque makes each joint's error a double integrator. With an acceleration that is held
// for T and acts a period late, a = kp T^2 and b = kd T, its characteristic polynomial is
// z^3 - 2 z^2 + (1 + b + a/2) z + a/2 - b. By Jury's criterion it is stable for a < c (1 - c) with
// c = b - a/2. For gains that may be twice as large, a < c (1 - 2 c): then b is below 1/2 and a
// below 1/8, whatever the other gain is.
constexpr double kLargestKdT = 0.5, kLargestRootKpT = 0.35355339059327373;

// The coefficients of one law, or of a law on its way to another.
struct LawCoefficients
{
  double hold = 0.0;                               // of g(q), whether there is a reference or not
  double damping = 0.0;                            // 1/s
  double friction_slope = 0.0, limit_slope = 0.0;  // of the smooth sign, of the soft joint limits
  // Of a reference's parts where the reference is, and where the arm is measured.
  PartCoefficients feedforward{}, computed{};
  Vector kp, kd, limit_damping;

  explicit LawCoefficients(std::size_t joints) : kp(joints), kd(joints), limit_damping(joints) {}

  // Become those of a law, without damping.
  void become(const LawSettings & law)
  {
    const bool is_computed = law.mode == Mode::computed_torque;
    const PartCoefficients none{};
    const PartCoefficients model{
      static_cast<double>(law.terms.inertial), static_cast<double>(law.terms.coriolis),
      static_cast<double>(law.terms.gravity), static_cast<double>(law.terms.friction), 1.0};
    hold = law.mode == Mode::gravity_compensation && law.terms.gravity ? 1.0 : 0.0;
    feedforward = law.mode == Mode::feedforward ? model : none;
    computed = is_computed ? model : none;
    for (std::size_t i = 0; i < kp.size(); ++i) {
      kp[i] = is_computed ? law.kp[i] : 0.0;
      kd[i] = is_computed ? law.kd[i] : 0.0;
      limit_damping[i] = law.kd[i];
    }
    damping = 0.0;
    friction_slope = 1.0 / law.friction_velocity;
    limit_slope = law.position_guard > 0.0 ? 1.0 / law.position_guard : 0.0;
  }

  bool has_feedforward() const { return has_any(feedforward); }
  bool has_feedback() const { return has_any(computed) || any(kp) || any(kd); }
  bool follows() const { return has_feedforward() || has_feedback(); }

  // How many states in a second its feedback needs [Hz]; 0: it has none.
  double needed_rate() const
  {
    double rate = 0.0;
    for (std::size_t i = 0; i < kp.size(); ++i) {
      rate = std::max({rate, kd[i] / kLargestKdT, std::sqrt(kp[i]) / kLargestRootKpT});
    }
    return rate;
  }

  // The coefficient of g(q) where there is no reference.
  double gravity() const { return hold + feedforward[part::gravity] + computed[part::gravity]; }

  bool operator==(const LawCoefficients & other) const
  {
    return hold == other.hold && damping == other.damping &&
           friction_slope == other.friction_slope && limit_slope == other.limit_slope &&
           feedforward == other.feedforward && computed == other.computed && kp == other.kp &&
           kd == other.kd && limit_damping == other.limit_damping;
  }

  // Become the combination of two that has a fraction, 0 to 1, of the second.
  void mix(const LawCoefficients & a, const LawCoefficients & b, double fraction)
  {
    const auto between = [fraction](double x, double y) {
      return (1.0 - fraction) * x + fraction * y;
    };
    const auto each = [&between](auto & to, const auto & x, const auto & y) {
      for (std::size_t i = 0; i < to.size(); ++i) { to[i] = between(x[i], y[i]); }
    };
    hold = between(a.hold, b.hold);
    damping = between(a.damping, b.damping);
    friction_slope = between(a.friction_slope, b.friction_slope);
    limit_slope = between(a.limit_slope, b.limit_slope);
    each(feedforward, a.feedforward, b.feedforward);
    each(computed, a.computed, b.computed);
    each(kp, a.kp, b.kp);
    each(kd, a.kd, b.kd);
    each(limit_damping, a.limit_damping, b.limit_damping);
  }

private:
  static bool has_any(const PartCoefficients & values)
  {
    return std::any_of(values.begin(), values.end(), [](double x) { return x != 0.0; });
  }
};

// Computes the parts of torques, with room for it.
class TorqueParts
{
public:
  explicit TorqueParts(std::size_t joints)
  : n_(joints),
    at_(LoadedModel::most_rows(joints) * joints),
    with_(at_.size()),
    under_(at_.size()),
    tau_(at_.size()),
    direction_(joints),
    load_(joints),
    friction_(joints)
  {
  }

  // Write the parts, part::count times n, at a measured state, with damping [1/s]; a velocity that
  // is not known (NaN) is not damped. Return whether the model could.
  bool compute(
    const LawCoefficients & law, double damping, LoadedModel & model,
    const Vector & is_continuous, const Vector & q, const Vector & qd,
    const ReferenceState * reference, Vector & parts)
  {
    const double resting = law.gravity();
    const bool has_feedforward = reference != nullptr && law.has_feedforward();
    const bool has_feedback = reference != nullptr && law.has_feedback();
    const bool has_damping = damping != 0.0 && has_velocities(qd);
    std::fill(parts.begin(), parts.end(), 0.0);
    if (reference != nullptr) {
      const double weight =
        law.feedforward[kEffortCoefficient] + law.computed[kEffortCoefficient];
      for (std::size_t i = 0; i < n_; ++i) {
        parts[part::effort * n_ + i] = weight * reference->effort[i];
      }
    }
    if (!has_damping && !has_feedback && !has_feedforward && resting == 0.0) { return true; }

    // One batch: at rest; damping; feedback's three; feedforward's three.
    begin();
    const std::size_t here = row(q);
    std::size_t damped = 0, near = 0, far = 0;
    if (has_damping) {
      damped = row(q);
      set(under_, damped, qd);
    }
    if (has_feedback) {
      near = row(q);
      set(with_, near, qd);
      set(under_, row(q), reference->acceleration);
      double * const corrected = under_.data() + row(q) * n_;
      for (std::size_t i = 0; i < n_; ++i) {
        const double difference = reference->position[i] - q[i];
        const double error = is_continuous[i] != 0.0 ? wrapped(difference) : difference;
        corrected[i] = law.kd[i] * (reference->velocity[i] - qd[i]) + law.kp[i] * error;
      }
    }
    if (has_feedforward) {
      far = row(reference->position);
      set(with_, row(reference->position), reference->velocity);
      set(under_, row(reference->position), reference->acceleration);
    }
    if (!run(model)) { return false; }

    const double held = reference != nullptr ? law.hold : resting;
    add(parts, part::gravity, held, here);
    if (has_damping) { add(parts, part::feedback, -damping, damped, here); }
    bool could = true;
    if (has_feedback) {
      const PartCoefficients & c = law.computed;
      add(parts, part::coriolis, c[part::coriolis], near, here);
      add(parts, part::inertial, c[part::inertial], near + 1, here);
      add(parts, part::feedback, 1.0, near + 2, here);
      add(parts, part::gravity, c[part::gravity], here);
      could &= add_friction(law, model, c, reference->velocity, here, near, parts);
    }
    if (has_feedforward) {
      const PartCoefficients & c = law.feedforward;
      add(parts, part::coriolis, c[part::coriolis], far + 1, far);
      add(parts, part::inertial, c[part::inertial], far + 2, far);
      add(parts, part::gravity, c[part::gravity], far);
      could &= add_friction(law, model, c, reference->velocity, far, far + 1, parts);
    }
    return could;
  }

  // Write the gravity that a law compensates at a position, and return whether the model could.
  bool gravity(
    const LawCoefficients & law, LoadedModel & model, const Vector & q, Vector & torque)
  {
    std::fill(torque.begin(), torque.end(), 0.0);
    const double weight = law.gravity();
    if (weight == 0.0) { return true; }
    begin();
    row(q);
    if (!run(model)) { return false; }
    for (std::size_t i = 0; i < n_; ++i) { torque[i] = weight * tau_[i]; }
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
      if (is_marked[i] != 0.0) { under_[row(q) * n_ + i] = 1.0; }
    }
    if (!run(model)) { return false; }
    for (std::size_t i = 0, k = 0; i < n_; ++i) {
      gravity[i] = tau_[i];
      inertia[i] = is_marked[i] != 0.0 ? tau_[++k * n_ + i] - tau_[i] : 0.0;
    }
    return true;
  }

  // Write C(q, qd) qd + g(q) and M(q) qd, whatever is commanded.
  bool bias_and_momentum(
    LoadedModel & model, const Vector & q, const Vector & qd, Vector & bias, Vector & momentum)
  {
    begin();
    row(q);
    set(with_, row(q), qd);
    set(under_, row(q), qd);
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

  // Add a state at a position, at rest, and return its row.
  std::size_t row(const Vector & position)
  {
    set(at_, rows_, position);
    const auto first = static_cast<std::ptrdiff_t>(rows_ * n_);
    std::fill_n(with_.begin() + first, n_, 0.0);
    std::fill_n(under_.begin() + first, n_, 0.0);
    return rows_++;
  }

  void set(Vector & array, std::size_t row, const Vector & values)
  {
    std::copy(
      values.begin(), values.end(), array.begin() + static_cast<std::ptrdiff_t>(row * n_));
  }

  bool run(LoadedModel & model)
  {
    return model.inverse_dynamics(rows_, at_.data(), with_.data(), under_.data(), tau_.data());
  }

  // Add a weighted row of torques to a part.
  void add(Vector & parts, std::size_t which, double weight, std::size_t row) const
  {
    for (std::size_t i = 0; i < n_; ++i) { parts[which * n_ + i] += weight * tau_[row * n_ + i]; }
  }

  // The same of the difference of two.
  void add(
    Vector & parts, std::size_t which, double weight, std::size_t row, std::size_t less) const
  {
    for (std::size_t i = 0; i < n_; ++i) {
      parts[which * n_ + i] += weight * (tau_[row * n_ + i] - tau_[less * n_ + i]);
    }
  }

  // Add the friction at the desired velocity. Its load is the rigid body's torque, from that at
  // rest and the two rows of a motion and its acceleration.
  bool add_friction(
    const LawCoefficients & law, const LoadedModel & model, const PartCoefficients & c,
    const Vector & velocity, std::size_t resting, std::size_t moving, Vector & parts)
  {
    const double weight = c[part::friction];
    if (weight == 0.0) { return true; }
    for (std::size_t i = 0; i < n_; ++i) {
      direction_[i] = std::tanh(velocity[i] * law.friction_slope);
      load_[i] = tau_[moving * n_ + i] + tau_[(moving + 1) * n_ + i] - tau_[resting * n_ + i];
    }
    const bool could =
      model.friction_torque(velocity.data(), direction_.data(), load_.data(), friction_.data());
    for (std::size_t i = 0; i < n_; ++i) {
      parts[part::friction * n_ + i] += weight * friction_[i];
    }
    return could;
  }

  const std::size_t n_;
  std::size_t rows_ = 0;
  Vector at_, with_, under_, tau_;  // position, velocity, acceleration, torque of each row
  Vector direction_, load_, friction_;
};

// The latest law, and the transition to it, with the damping of an arm that moves when it begins.
class ActiveLaw
{
public:
  ActiveLaw(std::size_t joints, const LawSettings & law)
  : mode_(law.mode),
    latest_(joints),
    origin_(joints),
    goal_(joints),
    mixed_(joints),
    wanted_(joints)
  {
    latest_.become(law);
    goal_ = latest_;
  }

  Mode mode() const { return mode_; }
  const LawCoefficients & latest() const { return latest_; }
  const LawCoefficients & goal() const { return goal_; }  // the latest, with the damping

  // Whether a reference makes a difference, or does until the transition is over.
  bool follows() const { return is_under_way_ || goal_.follows(); }

  // Whether damping acts, and is all that changes the energy.
  bool is_damping() const { return goal_.damping != 0.0 && !is_under_way_; }

  // The active coefficients a time [s] ahead.
  const LawCoefficients & at(double ahead)
  {
    const double elapsed = elapsed_ + ahead;
    if (!is_under_way_ || elapsed >= duration_) { return goal_; }
    mixed_.mix(origin_, goal_, elapsed / duration_);
    return mixed_;
  }

  // Fade into another law in a duration [s], with damping [1/s] where that lets the arm float.
  void change(const LawSettings & law, double duration, double damping)
  {
    wanted_.become(law);
    mode_ = law.mode;
    if (wanted_ == latest_) { return; }
    latest_ = wanted_;
    if (damping != 0.0 && law.mode == Mode::gravity_compensation) {
      wanted_.damping = damping;
      damped_ = 0.0;
    }
    begin(duration);
  }

  // Apply the latest law at once, with damping [1/s]; the rate limit shapes what that does.
  void jump(double damping = 0.0)
  {
    goal_ = latest_;
    is_under_way_ = false;
    if (damping != 0.0 && mode_ != Mode::feedforward) {
      goal_.damping = damping;
      damped_ = kNaN;
    }
  }

  // Fade the damping out in a duration [s].
  void end_damping(double duration)
  {
    if (goal_.damping == 0.0) { return; }
    wanted_ = goal_;
    wanted_.damping = 0.0;
    begin(duration);
  }

  // Let time pass [s], at a velocity; what begins by it takes the duration [s].
  void advance(double elapsed, const Vector & velocity, double duration)
  {
    if (is_under_way_) {
      elapsed_ += elapsed;
      is_under_way_ = elapsed_ < duration_;
    }
    if (goal_.damping != 0.0 && !is_under_way_) {
      damped_ = std::isnan(damped_) ? 0.0 : damped_ + elapsed;
      if (is_at_rest(velocity, kCoasting) || damped_ * goal_.damping > kDampingTimes) {
        end_damping(duration);
      }
    }
  }

private:
  static constexpr double kDampingTimes = 10.0;  // time constants, and it ends at the latest
  // Slower than this [rad/s or m/s] an arm is damped no more. Without friction it coasts on:
  // faster, it would be a drift to be seen within a minute.
  static constexpr double kCoasting = 1e-5;

  // Move from the active coefficients to wanted_.
  void begin(double duration)
  {
    if (wanted_ == goal_) { return; }
    origin_ = at(0.0);
    goal_ = wanted_;
    is_under_way_ = true;
    elapsed_ = 0.0;
    duration_ = duration;
  }

  Mode mode_;
  LawCoefficients latest_, origin_, goal_, mixed_, wanted_;
  bool is_under_way_ = false;
  double elapsed_ = 0.0, duration_ = 0.0;  // of the transition [s]
  // s, since damping began; NaN: it begins with the next cycle, and what passed before, in which
  // nobody measured, does not count
  double damped_ = kNaN;
};

// However long nothing was sent, the rate limit allows no more than this time's step [s].
constexpr double kLongestRateStep = 0.01;

// What happens to a torque while a joint is measured beyond its position limits.
//
// Beyond a limit, what the torque has over gravity and points further out fades to nothing over the
// width of the soft joint limit, and outward motion is braked as much as the fading has grown: with
// the penetration p, tau' = g + (1 - |p|) (tau - g) where tau - g points outward, and
// -|p| K_d M_jj qd where the joint moves outward. Gravity itself stays in full, so that the arm
// never drops; torques that lead back pass; nothing pulls. It only ever takes energy out of a
// joint, is continuous in position and velocity, and has no memory: it ends where the arm is back
// inside. Each joint is braked with its own inertia, not the coupled matrix, so that the brake's
// power is never positive.
class SoftJointLimits
{
public:
  explicit SoftJointLimits(std::size_t joints)
  : penetration_(joints), gravity_(joints), inertia_(joints)
  {
  }

  // Of each joint: 0 inside its limits, 1 or -1 far beyond the upper or the lower one.
  const Vector & penetration() const { return penetration_; }

  // Change a torque at a measured state to what it may be; a velocity that is not known (NaN) is
  // not braked, others as much as a period [s] of the states allows. Return whether the model
  // could.
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
      const double gravity = law.gravity() * gravity_[i];
      const double limit = settings.effort_limits[i];
      // Clipped first: of a torque far beyond the effort limits the fading would leave too much.
      const double more = clamped(torque[i], -limit, limit) - gravity;
      const double kept = side * more > 0.0 ? (1.0 - depth) * more : more;
      const double outward = side * qd[i] > 0.0 ? qd[i] : 0.0;
      const double damping = depth * allowed_damping(law.limit_damping[i], period);
      torque[i] = gravity + kept - damping * inertia_[i] * outward;
    }
    return true;
  }

private:
  Vector penetration_, gravity_, inertia_;
};

// Limits torques, and remembers the last one as sent.
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

  // Begin a new stream of commands, which continues nothing.
  void forget() { has_torque_ = false; }

  // Go on from a torque that another has sent at a time [s].
  void continue_from(const double * torque, double sent)
  {
    std::copy_n(torque, torque_.size(), torque_.begin());
    has_torque_ = true;
    sent_ = sent;
  }

  // Note that the last torque was on the wire by a time [s].
  void note_sent(double now) { sent_ = std::max(sent_, now); }

  // The time [s] to the middle of that for which a command will act, if as before.
  double half_a_step(double now) const { return 0.5 * std::min(now - sent_, kLongestRateStep); }

  // Limit a finite torque; the result counts as sent at a steady time [s]. Effort limits that were
  // lowered take effect at the pace of the rate limit: a torque beyond them may only shrink.
  void apply(const Vector & torque, const Settings & settings, double now)
  {
    constexpr double shortest = 1e-9;  // s, for two commands in one instant: no limit stays none
    const double time = clamped(now - sent_, shortest, kLongestRateStep);
    for (std::size_t i = 0; i < torque_.size(); ++i) {
      double largest = settings.effort_limits[i];
      const double clipped = clamped(torque[i], -largest, largest);
      double allowed = clipped;
      if (has_torque_) {
        const double last = torque_[i], step = settings.torque_rate_limits[i] * time;
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
