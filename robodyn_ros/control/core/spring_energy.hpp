// SPDX-License-Identifier: Apache-2.0
// The energy of an impedance's springs: what they may get, and how fast they become stiffer.
#ifndef ROBODYN_ROS__CORE__SPRING_ENERGY_HPP_
#define ROBODYN_ROS__CORE__SPRING_ENERGY_HPP_

#include <algorithm>
#include <cstddef>

#include "reference_follower.hpp"
#include "settings.hpp"
#include "torque.hpp"

namespace robodyn
{

// What springs get that wait for energy [W].
constexpr double kTankPower = 1.0;

// The energy [J] that springs may get which no motion of the reference and no hand gives them: where
// they become stiffer, and where the posture's spring moves the arm. Dampers fill it up to its
// size. Empty, springs become stiffer no further, and the posture waits; but not for ever: after
// kLongestWait it gets kTankPower up to its reserve, until dampers have filled it.
class EnergyTank
{
public:
  double level() const { return level_; }
  // The longest time until it has given an energy [s].
  double longest(double energy) const
  {
    const double lacking = energy - level_;
    return lacking > 0.0 ? std::max(kLongestWait - waited_, 0.0) + lacking / kTankPower : 0.0;
  }
  // A debt is possible: what springs need is known once they have it.
  void add(double energy) { level_ = clamped(level_ + energy, -kSize, kSize); }
  void reset() { *this = EnergyTank(); }

  void advance(double elapsed)
  {
    if (level_ >= kSize) { waited_ = 0.0; }
    if (level_ >= kReserve) { return; }
    waited_ += elapsed;
    if (waited_ > kLongestWait) { add(kTankPower * elapsed); }
  }

private:
  static constexpr double kSize = 0.4, kReserve = 0.1;  // J
  static constexpr double kLongestWait = 1.0;           // s
  double level_ = kSize;
  double waited_ = 0.0;  // s, below the reserve since it was full
};

// Springs that become stiffer, and wait for energy.
struct Stiffening
{
  bool is_waiting;
  double waited;   // s
  double energy;   // J, that they need where the arm is
  double longest;  // s, until they are in effect if the arm is bent no further
  // s, if it goes back under a load f that stays: stiffness from K to K' then takes f (1/K - 1/K') f / 2,
  // less than what is held now.
  double going_back;
};

// Books what the springs get and give, and paces the transitions that make them stiffer.
class SpringEnergy
{
public:
  double level() const { return tank_.level(); }  // J
  void reset() { tank_.reset(); }

  // Book the energy that damper and posture took since the last cycle: their torque, and what limits
  // took of all torques, along the way since. The damper takes what the reference moves it, too.
  void balance(
    const RuntimeState & state, const Vector & position, double elapsed,
    const Vector & reference_velocity, const Vector & cut)
  {
    const Impedance & springs = state.parts.impedance();
    if (!springs.is_active()) { return; }
    double taken = 0.0;
    for (std::size_t i = 0; i < state.n; ++i) {
      const double way = state.error(position[i], state.position[i], i);
      taken += springs.damper()[i] * (elapsed * reference_velocity[i] - way);
      taken -= (springs.posture()[i] + cut[i]) * way;
    }
    tank_.add(taken);
  }

  // Let springs that become stiffer take their energy from the tank.
  void take(RuntimeState & state, double elapsed)
  {
    ActiveLaw & law = state.law;
    Impedance & springs = state.parts.impedance();
    if (!springs.is_active()) { return; }
    tank_.advance(elapsed);
    waited_ = law.is_slowed() ? waited_ + elapsed : 0.0;
    if (law.is_in_transition()) {
      const double before = springs.energy(law.at(0.0).impedance);
      const double after = springs.energy(law.at(elapsed).impedance);
      tank_.add(std::min(before - after, 0.0));
    }
  }

  // Slow down the next step of a transition in which springs would take more energy than there is.
  void pace(RuntimeState & state, bool has_reference, double period)
  {
    ActiveLaw & law = state.law;
    to_gain_ = 0.0;
    if (!law.is_in_transition()) { return; }
    Impedance & springs = state.parts.impedance();
    if (springs.is_active()) {
      const double now = springs.energy(law.at(0.0).impedance), there = tank_.level();
      held_ = now;
      to_gain_ = std::max(springs.energy(law.goal().impedance) - now, 0.0);
      law.pace(1.0, period);
      double step = law.step(period);
      // Of springs that are slowed the energy is not linear in the step.
      for (int k = 0; k < kTrials; ++k) {
        const double gain = springs.energy(law.after(step).impedance) - now;
        if (gain <= 0.0 || gain <= there) { break; }
        step = k + 1 < kTrials ? step * std::max(there, 0.0) / gain : 0.0;
      }
      law.pace(step, period);
    } else if (law.goal().yields() && has_reference) {
      law.pace(kFirstStep, period);  // how far they will be bent is not known yet
    }
  }

  // What springs in transition wait for.
  Stiffening stiffening(const RuntimeState & state) const
  {
    const ActiveLaw & law = state.law;
    if (!state.parts.impedance().is_active()) { return {}; }
    const double least = law.left() * law.duration();
    const double back = std::min(to_gain_, held_);
    return {
      law.is_slowed(), waited_, to_gain_, least + tank_.longest(to_gain_),
      least + tank_.longest(back)};
  }

private:
  static constexpr double kFirstStep = 0.01;  // of a transition to springs
  static constexpr int kTrials = 6;           // of a step of springs

  EnergyTank tank_;
  double waited_ = 0.0;                // s, for energy
  double held_ = 0.0, to_gain_ = 0.0;  // J, now and in the rest of a transition
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__SPRING_ENERGY_HPP_
