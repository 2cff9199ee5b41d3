// SPDX-License-Identifier: Apache-2.0
// The command pipeline on a pendulum, against closed forms and a simulation of it.
#include <gtest/gtest.h>

#include <cmath>

#include "robodyn_controllers/controller_logic.hpp"

#include "pendulum.hpp"

using robodyn::Action;
using robodyn::ArmRuntime;
using robodyn::Cause;
using robodyn::Following;
using robodyn::kInfinity;
using robodyn::kNaN;
using robodyn::Mode;
using robodyn::Settings;

namespace
{

Settings settings_of(Mode mode)
{
  Settings settings = pendulum::settings();
  settings.mode = mode;
  return settings;
}

struct Arm
{
  explicit Arm(Mode mode) : Arm(settings_of(mode)) {}
  explicit Arm(const Settings & settings)
  : pipeline(
      robodyn::core_model(pendulum::model()),
      robodyn_controllers::first_load(pendulum::model()).data(), settings)
  {
    pipeline.enable(now);
  }

  // One cycle at a state, with a reference at rest at a position; NaN: none.
  bool cycle(double position, double velocity = 0.0, double desired = kNaN)
  {
    now += 0.001;
    const double zero = 0.0;
    return pipeline.update(
      now, &position, &velocity, {&desired, &zero, &zero, nullptr},
      pendulum::model().possible_positions);
  }

  // A number of cycles of the simulated pendulum.
  void simulate(int cycles, double desired = kNaN)
  {
    for (int k = 0; k < cycles; ++k) {
      cycle(q, qd, desired);
      qd += 0.001 * (torque() + push - pendulum::held(q)) / pendulum::kInertia;
      q += 0.001 * qd;
    }
  }

  // Take a load that the drives can carry.
  bool takes(const double * load)
  {
    if (pipeline.overload(load).cause != Cause::none) { return false; }
    pipeline.change_load(load);
    return true;
  }

  double torque() const { return pipeline.torque()[0]; }

  double now = 1.0, q = 0.3, qd = 0.0;
  double push = 0.0;  // N m
  ArmRuntime pipeline;
};

constexpr Mode kSoftModes[] = {Mode::joint_impedance, Mode::cartesian_impedance};

Arm soft_arm(Mode mode)
{
  return Arm(pendulum::soft_settings(mode));
}

}  // namespace

TEST(ArmRuntime, BeginsWithGravityWhereTheArmIs)
{
  for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque}) {
    Arm arm(mode);
    ASSERT_TRUE(arm.cycle(0.7));
    EXPECT_NEAR(arm.torque(), pendulum::held(0.7), 1e-12);
  }
}

TEST(ArmRuntime, CommandsNothingBeforeAValidState)
{
  Arm arm(Mode::computed_torque);
  EXPECT_FALSE(arm.cycle(kNaN));
  EXPECT_FALSE(arm.cycle(kInfinity));
  EXPECT_TRUE(arm.cycle(0.1));
}

TEST(ArmRuntime, CommandsNothingThatTheDrivesCannotCarry)
{
  Settings settings = settings_of(Mode::gravity_compensation);
  settings.effort_limits = {5.0};
  Arm arm(settings);
  EXPECT_FALSE(arm.cycle(0.0));
  EXPECT_TRUE(arm.pipeline.last_fault().cause == Cause::overload);
}

TEST(ArmRuntime, FollowsAReferenceAndKeepsTheRateLimit)
{
  Arm arm(Mode::computed_torque);
  for (int k = 0; k < 8; ++k) { arm.cycle(0.3); }  // until the period of the states is known
  arm.cycle(0.3, 0.0, 0.35);
  // kp e on the pendulum's inertia is 2.5 N m, of which the rate limit allows one.
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) + 1.0, 1e-9);
  arm.simulate(1500, 0.35);
  EXPECT_NEAR(arm.q, 0.35, 1e-6);
  EXPECT_TRUE(arm.pipeline.following() == Following::moving);
}

TEST(ArmRuntime, HoldsWhereAReferenceEnds)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(10);
  arm.simulate(50, 0.39);  // it ends in motion
  const double before = arm.q;
  EXPECT_GT(arm.qd, 0.1);
  arm.simulate(3000);
  EXPECT_TRUE(arm.pipeline.following() == Following::holding);
  EXPECT_NEAR(arm.qd, 0.0, 1e-6);
  EXPECT_LT(std::fabs(arm.q - before), 0.15);
}

TEST(ArmRuntime, RefusesAReferenceThatIsFarAway)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(10);
  arm.simulate(100, 0.45);
  EXPECT_TRUE(arm.pipeline.last_fault().cause == Cause::far_reference);
  EXPECT_NEAR(arm.q, 0.3, 1e-9);
}

TEST(ArmRuntime, HoldsGravityWhileStatesAreStaleThenIsSilent)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(200);
  for (int k = 0; k < 500; ++k) { arm.cycle(kNaN); }
  EXPECT_TRUE(arm.pipeline.is_stale());
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
  for (int k = 0; k < 1000; ++k) { arm.cycle(kNaN); }
  EXPECT_FALSE(arm.cycle(kNaN));
}

TEST(ArmRuntime, StopsAMovingArmBeforeTheStopCommand)
{
  Settings settings = settings_of(Mode::computed_torque);
  settings.on_stop = Action::zero;
  Arm arm(settings);
  arm.simulate(10);
  arm.simulate(50, 0.39);
  arm.pipeline.begin_stop();
  int cycles = 0;
  while (!arm.pipeline.has_stopped()) {
    arm.simulate(1, 0.39);
    ASSERT_LT(++cycles, 3000);
  }
  EXPECT_LT(std::fabs(arm.qd), robodyn::kRestSpeed);
  cycles = 0;
  while (!arm.pipeline.is_stop_command_sent()) {
    arm.pipeline.stop_command(arm.now += 0.001);
    ASSERT_LT(++cycles, 60);
  }
  EXPECT_EQ(arm.torque(), 0.0);
}

TEST(ArmRuntime, TakesAPayloadAtTheRateLimitAndRefusesOneTooHeavy)
{
  Arm arm(Mode::gravity_compensation);
  arm.simulate(10);
  const double heavy[] = {3.0, pendulum::kGravity}, too_heavy[] = {9.0, pendulum::kGravity};
  EXPECT_TRUE(arm.takes(heavy));
  arm.cycle(0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) + 1.0, 1e-9);
  for (int k = 0; k < 20; ++k) { arm.cycle(0.3); }
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3, heavy[0]), 1e-9);
  EXPECT_FALSE(arm.takes(too_heavy));
}

TEST(ArmRuntime, SwitchedOffAndOnAtRestItDoesNotMove)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(50);
  for (int k = 0; k < 40; ++k) {
    arm.pipeline.disable();
    arm.now += 0.002;
    arm.pipeline.enable(arm.now);
    arm.simulate(50);
  }
  EXPECT_NEAR(arm.q, 0.3, 1e-9);
}

TEST(ArmRuntime, RefusesAReferenceWhereStatesComeTooSeldomForTheGains)
{
  // kd T is at most one half: 40 Hz for kd = 20.
  for (const double period : {0.02, 0.03}) {
    Settings settings = settings_of(Mode::computed_torque);
    settings.state_timeout = 0.25;
    Arm arm(settings);
    for (int k = 0; k < 5; ++k) {
      arm.now += period - 0.001;
      arm.cycle(0.3, 0.0, 0.3);
    }
    const bool is_slow = period > 0.025;
    EXPECT_TRUE(arm.pipeline.last_fault().cause == (is_slow ? Cause::slow_states : Cause::none));
    EXPECT_TRUE(arm.pipeline.following() == (is_slow ? Following::none : Following::moving));
  }
}

TEST(ArmRuntime, DampsByThePositionsWhereAVelocityHasTheWrongSign)
{
  Arm arm(Mode::gravity_compensation);
  arm.qd = 0.5;
  for (int k = 0; k < 2000; ++k) {
    arm.cycle(arm.q, -arm.qd);
    arm.qd += 0.001 * (arm.torque() - pendulum::held(arm.q)) / pendulum::kInertia;
    arm.q += 0.001 * arm.qd;
    ASSERT_LT(arm.qd, 0.6);
  }
  EXPECT_TRUE(arm.pipeline.last_fault().cause == Cause::wrong_velocity);
  EXPECT_NEAR(arm.pipeline.wrong_velocities()[0], -1.0, 0.3);
  EXPECT_NEAR(arm.qd, 0.0, 1e-3);
}

TEST(ArmRuntime, GivesUpDampingThatFeedsTheArmWherePositionsCannotTell)
{
  Arm arm(Mode::gravity_compensation);
  arm.qd = 0.5;
  double least = kInfinity, most = 0.0;
  for (int k = 0; k < 2000; ++k) {
    arm.now += 0.001;
    const double wrong = -arm.qd;
    // Simulated time, and states without stamps: their velocities cannot be checked.
    arm.pipeline.step(&arm.q, &wrong, arm.now, false, {arm.now, arm.now});
    arm.qd += 0.001 * (arm.torque() - pendulum::held(arm.q)) / pendulum::kInertia;
    arm.q += 0.001 * arm.qd;
    const double energy = 0.5 * pendulum::kInertia * arm.qd * arm.qd;
    least = std::fmin(least, energy);
    most = std::fmax(most, energy);
  }
  EXPECT_TRUE(arm.pipeline.last_fault().cause == Cause::damping_adds_energy);
  EXPECT_LT(most, 1.7 * least);
}

// --- impedance -----------------------------------------------------------------------------------

TEST(ArmRuntime, AnImpedanceHoldsTheArmWhereItIsAndYieldsByForceOverStiffness)
{
  for (const Mode mode : kSoftModes) {
    Arm arm = soft_arm(mode);
    arm.simulate(500);
    EXPECT_NEAR(arm.q, 0.3, 1e-9);
    EXPECT_TRUE(arm.pipeline.following() == Following::holding);
    for (const double push : {2.0, -3.0, 0.0}) {
      arm.push = push;
      arm.simulate(3000);
      EXPECT_NEAR(arm.q - 0.3, pendulum::yield_of(mode, push), 1e-6);
      EXPECT_TRUE(arm.pipeline.last_fault().cause == Cause::none);
    }
  }
}

TEST(ArmRuntime, AnImpedanceFollowsAReferenceAndHoldsWhereItEnds)
{
  for (const Mode mode : kSoftModes) {
    Arm arm = soft_arm(mode);
    arm.simulate(100);
    arm.push = 1.0;
    for (int k = 0; k < 2000; ++k) { arm.simulate(1, 0.3 + 0.0001 * k); }
    EXPECT_TRUE(arm.pipeline.following() == Following::moving);
    arm.simulate(3000, 0.5);
    EXPECT_NEAR(arm.q - 0.5, pendulum::yield_of(mode, 1.0), 1e-6);
    arm.simulate(3000);
    EXPECT_TRUE(arm.pipeline.following() == Following::holding);
    EXPECT_NEAR(arm.q - 0.5, pendulum::yield_of(mode, 1.0), 1e-6);
  }
}

TEST(ArmRuntime, ATargetOfTheTipIsHeldUntilTheReferenceMoves)
{
  Arm arm = soft_arm(Mode::cartesian_impedance);
  arm.simulate(100, 0.3);
  const auto [x, y, z, w] = pendulum::orientation(0.5);
  EXPECT_FALSE(arm.pipeline.aim_tip({pendulum::place(0.5), {w, {x, y, z}}}));
  EXPECT_TRUE(arm.pipeline.aim_tip({{0.0, 0.0, robodyn::kNaN}, {}}).cause == Cause::reach);
  arm.simulate(4000, 0.3);
  EXPECT_NEAR(arm.q, 0.5, 1e-4);
  arm.simulate(4000, 0.31);
  EXPECT_NEAR(arm.q, 0.31, 1e-4);
}

TEST(ArmRuntime, ATargetOfTheTipEndsWithTheReference)
{
  Arm arm = soft_arm(Mode::cartesian_impedance);
  arm.simulate(100);
  const auto [x, y, z, w] = pendulum::orientation(0.5);
  EXPECT_FALSE(arm.pipeline.aim_tip({pendulum::place(0.5), {w, {x, y, z}}}));
  arm.simulate(4000);
  arm.pipeline.react_to_contact(robodyn::ContactAction::release);  // gravity compensation
  arm.simulate(100);
  EXPECT_TRUE(arm.pipeline.aim_tip({}).cause == Cause::unacknowledged);
  // What is followed next has the tip where it has the joint.
  const double q = arm.q;
  arm.simulate(10, q);
  EXPECT_TRUE(arm.pipeline.following() == Following::moving);
  arm.simulate(500, q);
  EXPECT_NEAR(arm.q, q, 1e-4);
}
