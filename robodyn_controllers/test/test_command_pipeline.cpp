// SPDX-License-Identifier: Apache-2.0
// The command pipeline on a pendulum, against closed forms and a simulation of it. That it
// commands what the node does, test/controllers of robodyn_ros shows.
#include <gtest/gtest.h>

#include <cmath>

#include "robodyn_controllers/command_pipeline.hpp"

#include "pendulum.hpp"

using robodyn_controllers::Action;
using robodyn_controllers::CommandPipeline;
using robodyn_controllers::Fault;
using robodyn_controllers::Following;
using robodyn_controllers::LawSettings;
using robodyn_controllers::Mode;
using robodyn_controllers::SafetySettings;
using robodyn_controllers::kInfinity;
using robodyn_controllers::kNaN;

namespace
{

LawSettings law_of(Mode mode)
{
  LawSettings law;
  law.mode = mode;
  law.kp = {100.0};
  law.kd = {20.0};
  return law;
}

SafetySettings safety()
{
  SafetySettings settings;
  settings.effort_limits = {40.0};
  settings.torque_rate_limits = {1000.0};
  settings.braking_acceleration = {kInfinity};
  settings.position_limits = {-3.0, 3.0};
  settings.velocity_limits = {4.0};
  settings.is_continuous = {0.0};
  return settings;
}

struct Arm
{
  explicit Arm(Mode mode, const SafetySettings & settings = safety())
  : pipeline(pendulum::model(), law_of(mode), settings) {pipeline.enable(now);}

  // One cycle at a state, with a reference at rest at a position; NaN: none.
  bool cycle(double q, double qd = 0.0, double wanted = kNaN)
  {
    now += 0.001;
    const double zero = 0.0;
    const robodyn_reference reference{&wanted, &zero, &zero, nullptr};
    return pipeline.update(now, &q, &qd, reference);
  }

  // So many cycles of the simulated pendulum.
  void simulate(int cycles, double wanted = kNaN)
  {
    for (int k = 0; k < cycles; ++k) {
      cycle(q, qd, wanted);
      qd += 0.001 * (torque() - pendulum::held(q)) / pendulum::kInertia;
      q += 0.001 * qd;
    }
  }

  double torque() const {return pipeline.torque()[0];}

  double now = 1.0, q = 0.3, qd = 0.0;
  CommandPipeline pipeline;
};

}  // namespace

TEST(CommandPipeline, BeginsWithGravityWhereTheArmIs)
{
  for (const Mode mode : {Mode::gravity_compensation, Mode::feedforward, Mode::computed_torque}) {
    Arm arm(mode);
    ASSERT_TRUE(arm.cycle(0.7));
    EXPECT_NEAR(arm.torque(), pendulum::held(0.7), 1e-12);
  }
}

TEST(CommandPipeline, CommandsNothingBeforeAValidState)
{
  Arm arm(Mode::computed_torque);
  EXPECT_FALSE(arm.cycle(kNaN));
  EXPECT_FALSE(arm.cycle(kInfinity));
  EXPECT_TRUE(arm.cycle(0.1));
}

TEST(CommandPipeline, CommandsNothingThatTheDrivesCannotCarry)
{
  SafetySettings settings = safety();
  settings.effort_limits = {5.0};
  Arm arm(Mode::gravity_compensation, settings);
  EXPECT_FALSE(arm.cycle(0.0));
  EXPECT_EQ(arm.pipeline.last_fault(), Fault::overload);
}

TEST(CommandPipeline, FollowsAReferenceAndKeepsTheRateLimit)
{
  Arm arm(Mode::computed_torque);
  arm.cycle(0.3);
  arm.cycle(0.3, 0.0, 0.35);
  // kp e on the pendulum's inertia is 2.5 N m, of which the rate limit allows one.
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) + 1.0, 1e-9);
  arm.simulate(1500, 0.35);
  EXPECT_NEAR(arm.q, 0.35, 1e-6);
  EXPECT_EQ(arm.pipeline.following(), Following::following);
}

TEST(CommandPipeline, HoldsWhereAReferenceEnds)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(10);
  arm.simulate(50, 0.39);  // on the way, it ends
  const double before = arm.q;
  EXPECT_GT(arm.qd, 0.1);
  arm.simulate(3000);
  EXPECT_EQ(arm.pipeline.following(), Following::holding);
  EXPECT_NEAR(arm.qd, 0.0, 1e-6);
  EXPECT_LT(std::fabs(arm.q - before), 0.15);
}

TEST(CommandPipeline, RefusesAReferenceThatIsFarAway)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(10);
  arm.simulate(100, 0.45);
  EXPECT_EQ(arm.pipeline.last_fault(), Fault::refused_reference);
  EXPECT_NEAR(arm.q, 0.3, 1e-9);
}

TEST(CommandPipeline, HoldsGravityWhileStatesAreStaleThenIsSilent)
{
  Arm arm(Mode::computed_torque);
  arm.simulate(200);
  for (int k = 0; k < 500; ++k) {arm.cycle(kNaN);}
  EXPECT_TRUE(arm.pipeline.is_stale());
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
  for (int k = 0; k < 1000; ++k) {arm.cycle(kNaN);}
  EXPECT_FALSE(arm.cycle(kNaN));
}

TEST(CommandPipeline, StopsAMovingArmBeforeTheStopCommand)
{
  SafetySettings settings = safety();
  settings.on_stop = Action::zero;
  Arm arm(Mode::computed_torque, settings);
  arm.simulate(10);
  arm.simulate(50, 0.39);
  arm.pipeline.begin_stop();
  int cycles = 0;
  while (!arm.pipeline.has_stopped()) {
    arm.simulate(1, 0.39);
    ASSERT_LT(++cycles, 3000);
  }
  EXPECT_LT(std::fabs(arm.qd), robodyn_controllers::kRestSpeed);
  cycles = 0;
  while (!arm.pipeline.is_stop_command_sent()) {
    arm.pipeline.stop_command(arm.now += 0.001);
    ASSERT_LT(++cycles, 60);
  }
  EXPECT_EQ(arm.torque(), 0.0);
}

TEST(CommandPipeline, TakesAPayloadAtTheRateLimitAndRefusesOneTooHeavy)
{
  Arm arm(Mode::gravity_compensation);
  arm.simulate(10);
  const double heavy = 3.0, too_heavy = 9.0;
  EXPECT_TRUE(arm.pipeline.change_load(&heavy));
  arm.cycle(0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) + 1.0, 1e-9);
  for (int k = 0; k < 20; ++k) {arm.cycle(0.3);}
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3, heavy), 1e-9);
  EXPECT_FALSE(arm.pipeline.change_load(&too_heavy));
}

TEST(CommandPipeline, SwitchedOffAndOnAtRestItDoesNotMove)
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
