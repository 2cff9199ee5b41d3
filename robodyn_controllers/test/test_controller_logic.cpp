// SPDX-License-Identifier: Apache-2.0
// The controller's logic on a pendulum, with arrays for interfaces.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "robodyn_controllers/controller_logic.hpp"

#include "pendulum.hpp"

using robodyn::Action;
using robodyn::Cause;
using robodyn::kNaN;
using robodyn::Mode;
using robodyn_controllers::ControllerLogic;
using robodyn_controllers::Settings;

static std::atomic<long> allocations{0};

// Inlined, GCC takes free for the wrong counterpart of new.
[[gnu::noinline]] void * operator new(std::size_t size)
{
  ++allocations;
  if (void * const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void * memory) noexcept
{
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void * memory, std::size_t) noexcept
{
  std::free(memory);
}

namespace
{

const std::vector<double> kDown{0.0, 0.0, -9.81};

// The pendulum is static.
std::shared_ptr<const robodyn_model> model()
{
  return {std::shared_ptr<void>(), &pendulum::model()};
}

robodyn_payload payload_of(double mass)
{
  return {mass, {}, {}, 0};
}

// A configured controller and its interfaces.
struct Arm
{
  // A change of load beside the cycles waits for one, however busy the machine is.
  explicit Arm(
    const Settings & settings = pendulum::settings(), double scale = 1.0,
    int longest_wait = 60000)
  : logic(std::chrono::milliseconds(longest_wait))
  {
    logic.configure(model(), settings, {}, {scale});
  }

  // One cycle at a state, with a reference at rest at a position; NaN: none.
  bool cycle(double position, double velocity = 0.0, double desired = kNaN)
  {
    const double reference[] = {desired, 0.0, 0.0};
    return logic.update(0.001, &position, &velocity, reference, &command);
  }

  // A number of cycles; return how many of them had a command.
  int cycles(int count, double position, double desired = kNaN)
  {
    int commands = 0;
    for (int k = 0; k < count; ++k) { commands += cycle(position, 0.0, desired) ? 1 : 0; }
    return commands;
  }

  // A cycle of the simulated pendulum.
  void follow(const double * reference)
  {
    logic.update(0.001, &q, &qd, reference, &command);
    const double torque = command + push - pendulum::held(q, mass);
    qd += 0.001 * torque / (mass * pendulum::kLength * pendulum::kLength);
    q += 0.001 * qd;
  }

  // A number of cycles of it, with a reference at rest at a position; NaN: none.
  void simulate(int count, double desired = kNaN)
  {
    const double reference[] = {desired, 0.0, 0.0};
    for (int k = 0; k < count; ++k) { follow(reference); }
  }

  // Do cycles while another thread makes a request, and return its answer.
  template <typename Function>
  std::string beside(Function && function)
  {
    std::atomic<bool> is_over{false};
    std::string answer;
    std::thread other([&] {
      answer = function();
      is_over = true;
    });
    while (!is_over) {
      cycle(q);
      std::this_thread::yield();
    }
    other.join();
    return answer;
  }

  ControllerLogic logic;
  double q = 0.3, qd = 0.0;
  double push = 0.0, mass = pendulum::kMass;  // N m, kg
  double command = kNaN;                      // on the effort interface
};

template <typename Function>
std::string refusal_of(Function && function)
{
  try {
    function();
  } catch (const std::runtime_error & error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ControllerLogic, CarriesTheArmOnceItIsActive)
{
  Arm arm;
  arm.logic.activate();
  EXPECT_TRUE(arm.cycle(0.3));
  EXPECT_NEAR(arm.command, pendulum::held(0.3), 1e-12);
}

TEST(ControllerLogic, CommandsInTheUnitsOfTheDrive)
{
  Arm arm(pendulum::settings(), -0.5);
  arm.logic.activate();
  arm.cycle(0.3);
  EXPECT_NEAR(arm.command, -0.5 * pendulum::held(0.3), 1e-12);
}

TEST(ControllerLogic, ConfigureRefusesAScaleAndAGravityThatCannotBe)
{
  ControllerLogic logic;
  for (const double scale : {0.0, kNaN}) {
    EXPECT_EQ(
      refusal_of([&] { logic.configure(model(), pendulum::settings(), {}, {scale}); }),
      "parameter command_scale; allowed: each finite, not 0");
  }
  EXPECT_EQ(
    refusal_of(
      [&] { logic.configure(model(), pendulum::settings(), {0.0, 0.0, -981.0}, {1.0}); }),
    "parameter gravity strength: 981.000000 m/s^2; allowed: at most 50.000000 m/s^2");
}

TEST(ControllerLogic, ASetpointThatMovesGoesOnUntilStateTimeoutAndOneAtRestStays)
{
  Arm arm;
  arm.logic.activate();
  arm.simulate(10);
  double reference[3];
  arm.logic.set_setpoint({"swing"}, {0.3}, {0.2}, {0.6});
  arm.logic.sample_setpoint(0.001, reference);
  EXPECT_EQ(reference[0], 0.3);
  arm.logic.sample_setpoint(0.1, reference);
  EXPECT_NEAR(reference[0], 0.323, 1e-15);
  EXPECT_NEAR(reference[1], 0.26, 1e-15);
  arm.logic.sample_setpoint(0.001, reference);
  EXPECT_TRUE(std::isnan(reference[0]));
  arm.logic.set_setpoint({"swing"}, {0.3}, {}, {});
  arm.logic.sample_setpoint(0.001, reference);
  arm.simulate(10, reference[0]);
  arm.logic.sample_setpoint(10.0, reference);
  EXPECT_EQ(reference[0], 0.3);
}

TEST(ControllerLogic, ASetpointWhoseAccelerationWouldThrowTheArmIsDropped)
{
  Arm arm;
  arm.logic.activate();
  arm.simulate(100);
  arm.logic.set_setpoint({"swing"}, {arm.q}, {}, {1000.0});
  double reference[3], fastest = 0.0;
  for (int k = 0; k < 300; ++k) {
    arm.logic.sample_setpoint(0.001, reference);
    arm.follow(reference);
    fastest = std::fmax(fastest, std::fabs(arm.qd));
  }
  EXPECT_TRUE(arm.logic.take_fault().cause == Cause::reference_velocity);
  EXPECT_LT(fastest, 1.5 * pendulum::settings().velocity_limits[0]);
  EXPECT_NEAR(arm.qd, 0.0, 0.01);
}

TEST(ControllerLogic, TimeGoesOnAfterAPeriodThatIsNone)
{
  for (const double period : {kNaN, robodyn::kInfinity, 1e308, -1e308}) {
    Arm arm;
    arm.logic.activate();
    arm.simulate(100, 0.3);
    const double reference[] = {0.3, 0.0, 0.0};
    arm.logic.update(period, &arm.q, &arm.qd, reference, &arm.command);
    const double before = arm.logic.pipeline().state().steady;
    arm.simulate(10, 0.3);
    EXPECT_NEAR(arm.logic.pipeline().state().steady - before, 0.01, 1e-5);
  }
}

TEST(ControllerLogic, RefusesASetpointOfOtherJoints)
{
  Arm arm;
  arm.logic.activate();
  EXPECT_EQ(arm.logic.set_setpoint({"other"}, {0.3}, {}, {}), "a joint is not the arm's");
  EXPECT_EQ(
    arm.logic.set_setpoint({"swing", "swing"}, {0.3, 0.3}, {}, {}), "a joint is named twice");
  const std::string sizes = "allowed: a position of each joint that is named";
  EXPECT_EQ(arm.logic.set_setpoint({}, {}, {}, {}), sizes);
  EXPECT_EQ(arm.logic.set_setpoint({"swing"}, {}, {}, {}), sizes);
  EXPECT_EQ(arm.logic.set_setpoint({"swing"}, {0.3}, {0.0, 0.0}, {}), sizes);
}

TEST(ControllerLogic, TakesAPayloadAndGravityWhileItCommandsAndKeepsBoth)
{
  Arm arm;
  arm.logic.activate();
  arm.cycle(arm.q);
  EXPECT_EQ(arm.beside([&] { return arm.logic.set_payload("bob", payload_of(1.0)); }), "");
  arm.cycles(50, arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q, 3.0), 1e-9);
  EXPECT_EQ(arm.beside([&] { return arm.logic.set_gravity("base", {0.0, 0.0, -4.9}); }), "");
  arm.cycles(50, arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q, 3.0) * 4.9 / 9.81, 1e-9);
}

TEST(ControllerLogic, RefusesALoadOfAnotherLinkOrFrame)
{
  Arm arm;
  EXPECT_EQ(
    arm.logic.set_payload("base", payload_of(1.0)), "payload link 'base'; allowed: 'bob'");
  EXPECT_EQ(
    arm.logic.set_gravity("world", kDown),
    "gravity frame_id: 'world'; allowed: the base link 'base', or empty");
}

TEST(ControllerLogic, TakesALoadWhileItIsInactive)
{
  Arm arm;
  EXPECT_EQ(arm.logic.set_payload("", payload_of(1.0)), "");
  arm.logic.activate();
  arm.cycle(arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q, 3.0), 1e-9);
}

TEST(ControllerLogic, DisabledItBrakesAndLeavesTheStopCommandAndEnabledItCommandsAgain)
{
  Settings settings = pendulum::settings();
  settings.on_stop = Action::zero;
  Arm arm(settings);
  arm.logic.activate();
  arm.simulate(10);
  arm.simulate(50, 0.39);
  EXPECT_GT(arm.qd, 0.1);
  arm.logic.set_enabled(false);
  for (int k = 0; k < 3000 && arm.logic.pipeline().is_enabled(); ++k) { arm.simulate(1, 0.39); }
  EXPECT_FALSE(arm.logic.pipeline().is_enabled());
  EXPECT_EQ(arm.command, 0.0);
  EXPECT_EQ(arm.cycles(100, 0.3), 0);
  arm.logic.set_enabled(true);
  EXPECT_EQ(arm.cycles(100, 0.3), 100);
  EXPECT_NEAR(arm.command, pendulum::held(0.3), 1e-9);
}

TEST(ControllerLogic, ConfiguredAnewItHasForgottenTheLoad)
{
  Arm arm;
  EXPECT_EQ(arm.logic.set_payload("", payload_of(1.0)), "");
  arm.logic.cleanup();
  arm.logic.configure(model(), pendulum::settings(), {}, {1.0});
  arm.logic.activate();
  arm.cycle(arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q), 1e-9);
}

TEST(ControllerLogic, DisabledBeforeTheFirstStateItCommandsOnceItIsEnabled)
{
  for (const Action on_stop : {Action::hold_gravity, Action::zero, Action::silent}) {
    Settings settings = pendulum::settings();
    settings.on_stop = on_stop;
    Arm arm(settings);
    arm.logic.activate();
    EXPECT_EQ(arm.cycles(10, kNaN), 0);
    arm.logic.set_enabled(false);
    EXPECT_EQ(arm.cycles(10, kNaN), 0);
    EXPECT_EQ(arm.cycles(10, 0.3), 0);
    arm.logic.set_enabled(true);
    EXPECT_EQ(arm.cycles(100, 0.3), 100);
    EXPECT_NEAR(arm.command, pendulum::held(0.3), 1e-9);
  }
}

TEST(ControllerLogic, EnabledAgainWhileItStillBrakesItCommandsAfterTheStop)
{
  Arm arm;
  arm.logic.activate();
  arm.simulate(10);
  arm.simulate(50, 0.39);
  arm.logic.set_enabled(false);
  arm.simulate(10);
  arm.logic.set_enabled(true);
  arm.simulate(3000);
  EXPECT_TRUE(arm.logic.pipeline().is_enabled());
  EXPECT_FALSE(arm.logic.pipeline().is_stopping());
  EXPECT_NEAR(arm.qd, 0.0, 1e-6);
}

TEST(ControllerLogic, DeactivatedItLeavesTheWholeStopCommandOnTheInterface)
{
  const double q = 0.3, last = pendulum::held(q) + 100.0 * 0.05 * pendulum::kInertia;
  for (const Action on_stop : {Action::hold_gravity, Action::zero, Action::silent}) {
    Settings settings = pendulum::settings();
    settings.on_stop = on_stop;
    settings.torque_rate_limit = {100.0};
    Arm arm(settings, -2.0);
    arm.logic.activate();
    arm.cycles(100, q);
    arm.cycles(100, q, q + 0.05);
    EXPECT_NEAR(arm.command, -2.0 * last, 1e-9);
    EXPECT_EQ(arm.logic.deactivate(&arm.command), on_stop != Action::silent);
    const double left = on_stop == Action::silent ? last
                      : on_stop == Action::zero   ? 0.0
                                                  : pendulum::held(q);
    EXPECT_NEAR(arm.command, -2.0 * left, 1e-9);
    // From there on the rate limit holds again.
    arm.logic.activate();
    arm.cycle(q);
    EXPECT_LE(std::fabs(arm.command / -2.0 - left), 100.0 * 0.001 + 1e-9);
  }
}

TEST(ControllerLogic, AFaultIsToldOnceWithItsNumbersUntilItIsOver)
{
  Arm arm;
  std::vector<robodyn::Fault> told;
  const auto look = [&] {
    if (const robodyn::Fault fault = arm.logic.take_fault()) { told.push_back(fault); }
  };
  arm.logic.activate();
  for (int round = 1; round <= 2; ++round) {
    arm.cycles(300, 0.3);
    arm.cycles(10, 0.3, 0.3);
    look();
    ASSERT_EQ(told.size(), static_cast<std::size_t>(round - 1));
    for (int k = 0; k < 400; ++k) {
      arm.cycle(0.3, 0.0, 0.3 + 0.001 * k);
      look();
    }
    ASSERT_EQ(told.size(), static_cast<std::size_t>(round));
    EXPECT_EQ(std::string(told.back().name()), "following_error");
    EXPECT_EQ(told.back().joint, 0);
    EXPECT_GT(std::fabs(told.back().value), told.back().limit);
  }
}

TEST(ControllerLogic, DeactivatedWithoutAStateItLeavesWhatWasThere)
{
  Settings settings = pendulum::settings();
  settings.on_stop = Action::zero;
  Arm arm(settings);
  arm.command = 3.0;
  arm.logic.activate();
  arm.cycles(10, kNaN);
  EXPECT_FALSE(arm.logic.deactivate(&arm.command));
  EXPECT_EQ(arm.command, 3.0);
}

TEST(ControllerLogic, AChangeThatNoCycleTakesIsRefusedAndNeverApplied)
{
  const std::string refusal = "no control cycle has taken the change in 5 ms: nothing is changed";
  Arm arm(pendulum::settings(), 1.0, 5);
  arm.logic.activate();
  arm.cycles(10, arm.q);
  EXPECT_EQ(arm.logic.set_payload("", payload_of(1.0)), refusal);
  EXPECT_EQ(arm.logic.set_gravity("", {0.0, 0.0, -4.9}), refusal);
  arm.cycles(50, arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q), 1e-9);
}

TEST(ControllerLogic, ARefusedChangeLeavesThePayloadThatWasTakenBefore)
{
  Arm arm(pendulum::settings(), 1.0, 5);
  EXPECT_EQ(arm.logic.set_payload("", payload_of(1.0)), "");
  arm.logic.activate();
  arm.cycles(10, arm.q);
  EXPECT_NE(arm.logic.set_payload("", payload_of(0.0)), "");
  arm.logic.deactivate(&arm.command);
  EXPECT_EQ(arm.logic.set_gravity("", kDown), "");
  arm.logic.activate();
  arm.cycles(50, arm.q);
  EXPECT_NEAR(arm.command, pendulum::held(arm.q, 3.0), 1e-9);
}

// Half of the payloads are too heavy: the answer always tells the load that then applies.
TEST(ControllerLogic, EveryAnswerIsTrueWhileTheControllerComesAndGoes)
{
  Arm arm;
  arm.logic.activate();
  double mass = pendulum::kMass;
  for (int k = 0; k < 200; ++k) {
    const double asked = k % 2 == 0 ? 0.01 * k : 20.0;
    std::atomic<bool> is_over{false};
    std::string answer;
    std::thread other([&] {
      answer = arm.logic.set_payload("", payload_of(asked));
      is_over = true;
    });
    for (int cycle = 0; !is_over; ++cycle) {
      arm.cycle(arm.q);
      if (cycle % 3 == 2) {
        arm.logic.deactivate(&arm.command);
        std::this_thread::yield();
        arm.logic.activate();
      }
    }
    other.join();
    if (answer.empty()) { mass = pendulum::kMass + asked; }
    if (asked == 20.0 && answer.empty()) {  // taken by an activation, which commands nothing then
      arm.cycle(arm.q);
      EXPECT_TRUE(arm.logic.pipeline().last_fault().cause == robodyn::Cause::overload);
      EXPECT_EQ(arm.beside([&] { return arm.logic.set_payload("", payload_of(0.0)); }), "");
      mass = pendulum::kMass;
    }
    arm.cycles(150, arm.q);
    EXPECT_NEAR(arm.command, pendulum::held(arm.q, mass), 1e-9);
  }
}

// --- external torques ----------------------------------------------------------------------------

Settings with_contacts(robodyn::ContactAction action)
{
  Settings settings = pendulum::settings();
  settings.contact_threshold_moving = {1.0};
  settings.contact_threshold_stationary = {1.0};
  settings.on_contact = action;
  return settings;
}

TEST(ControllerLogic, EstimatesAPushWhileSomebodyListensAndNothingElse)
{
  Arm arm;
  arm.logic.activate();
  arm.simulate(20);
  arm.push = 0.5;
  arm.simulate(20);
  EXPECT_FALSE(arm.logic.contact_watch().has_estimate());
  arm.logic.set_watched(true);
  arm.simulate(150);
  EXPECT_TRUE(arm.logic.contact_watch().has_estimate());
  EXPECT_NEAR(arm.logic.contact_watch().torque()[0], 0.5, 0.02);
  EXPECT_FALSE(arm.logic.contact_watch().is_in_contact());
  arm.logic.set_watched(false);
  arm.simulate(2);
  EXPECT_FALSE(arm.logic.contact_watch().has_estimate());
  EXPECT_EQ(arm.logic.contact_watch().torque()[0], 0.0);
}

TEST(ControllerLogic, ExplainsAPushByAForceAtTheTip)
{
  Arm arm;
  arm.logic.set_watched(true);
  arm.logic.activate();
  arm.simulate(20);
  arm.push = 0.5;
  arm.simulate(150);
  const auto & found = arm.logic.tip_wrench();
  // One joint: the wrench is along its row of the Jacobian, weighted by the prior.
  const double force = 100.0 * 100.0 * pendulum::kLength, moment = -20.0 * 20.0;
  const double total = force * pendulum::kLength - moment;
  EXPECT_NEAR(found.wrench()[2], 0.5 * force / total, 0.05);
  EXPECT_NEAR(found.wrench()[4], 0.5 * moment / total, 0.01);
  EXPECT_EQ(found.undetermined_count(), 5u);
}

TEST(ControllerLogic, EstimatesUnderTheLoadThatItWasGiven)
{
  Arm arm;
  arm.logic.set_watched(true);
  EXPECT_EQ(arm.logic.set_payload("", payload_of(1.0)), "");
  arm.logic.activate();
  arm.mass = 3.0;
  arm.simulate(200);
  EXPECT_NEAR(arm.logic.contact_watch().torque()[0], 0.0, 1e-6);
  EXPECT_EQ(arm.beside([&] { return arm.logic.set_payload("", payload_of(0.0)); }), "");
  arm.cycles(600, arm.q);  // it is held, and 1 kg hangs on it that it does not know of
  EXPECT_NEAR(arm.logic.contact_watch().torque()[0], 0.0, 1e-6);
}

TEST(ControllerLogic, TheDriversGravityIsNoContact)
{
  Settings settings = with_contacts(robodyn::ContactAction::report);
  settings.terms.gravity = false;
  Arm arm(settings);
  arm.logic.set_watched(true);
  arm.logic.activate();
  arm.cycles(200, 0.3);
  EXPECT_NEAR(arm.command, 0.0, 1e-9);
  EXPECT_NEAR(arm.logic.contact_watch().torque()[0], 0.0, 1e-9);
}

TEST(ControllerLogic, EstimatesNothingInFeedforward)
{
  Settings settings = pendulum::settings();
  settings.mode = Mode::feedforward;
  Arm arm(settings);
  arm.logic.set_watched(true);
  arm.logic.activate();
  arm.cycles(200, 0.3);
  EXPECT_FALSE(arm.logic.contact_watch().has_estimate());
}

TEST(ControllerLogic, ObservesAnArmByItsMeasuredEffortsInAnyModeAndNeverCommandsIt)
{
  Settings settings = pendulum::settings();
  settings.mode = Mode::feedforward;
  settings.terms.gravity = false;
  ControllerLogic logic;
  logic.configure(model(), settings, {}, {-2.0}, true);
  EXPECT_EQ(logic.set_payload("", payload_of(1.0)), "");
  logic.activate();
  const double push = 0.5, amplitude = 0.2, rate = 3.0;  // N m, rad, rad/s
  const long before = allocations;
  for (int k = 0; k < 1000; ++k) {
    const double time = 0.001 * k, q = amplitude * std::sin(rate * time);
    const double qd = rate * amplitude * std::cos(rate * time), qdd = -rate * rate * q;
    const double inertia = 3.0 * pendulum::kLength * pendulum::kLength;
    const double effort = -2.0 * (inertia * qdd + pendulum::held(q, 3.0) - push);
    logic.observe(0.001, &q, &qd, &effort);
    logic.tip_wrench();
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_NEAR(logic.contact_watch().torque()[0], push, 1e-4);
  double command = 7.0;
  EXPECT_FALSE(logic.deactivate(&command));
  EXPECT_EQ(command, 7.0);
  settings = with_contacts(robodyn::ContactAction::stop);
  EXPECT_EQ(
    refusal_of([&] { logic.configure(model(), settings, {}, {1.0}, true); }),
    "parameter on_contact; allowed where sensing is 'measured', which commands nothing: report");
}

TEST(ControllerLogic, ReactsToAContactAsItIsTold)
{
  using robodyn::ContactAction;
  for (const ContactAction action :
       {ContactAction::report, ContactAction::stop, ContactAction::release}) {
    Arm arm(with_contacts(action));
    arm.logic.set_watched(true);
    arm.logic.activate();
    arm.simulate(100, 0.3);
    arm.push = 3.0;
    int begun = 0;
    for (int k = 0; k < 200; ++k) {
      arm.simulate(1, 0.3);
      begun += arm.logic.contact_event() == robodyn::ContactEvent::begins ? 1 : 0;
    }
    EXPECT_EQ(begun, 1);
    EXPECT_EQ(arm.logic.contact_watch().contact().joint, 0);
    const robodyn::Following following = arm.logic.pipeline().following();
    EXPECT_EQ(following == robodyn::Following::moving, action == ContactAction::report);
    EXPECT_EQ(
      arm.logic.pipeline().last_fault().cause == robodyn::Cause::contact,
      action != ContactAction::report);
    // Also at rest near the arm, setpoints are followed only once a new stream begins.
    arm.push = 0.0;
    arm.logic.set_watched(false);
    arm.cycles(2000, 0.3, 0.3);
    EXPECT_EQ(
      arm.logic.pipeline().following() == robodyn::Following::moving,
      action == ContactAction::report);
    arm.cycles(500, 0.3);
    arm.cycles(5, 0.3, 0.3);
    EXPECT_TRUE(arm.logic.pipeline().following() == robodyn::Following::moving);
  }
}

TEST(ControllerLogic, ReactsToNothingWithoutThresholds)
{
  const std::string allowed =
    "parameter on_contact; allowed without contact_threshold_moving and "
    "contact_threshold_stationary: report";
  Settings settings = pendulum::settings();
  settings.on_contact = robodyn::ContactAction::stop;
  ControllerLogic logic;
  EXPECT_EQ(refusal_of([&] { logic.configure(model(), settings, {}, {1.0}); }), allowed);
  settings.contact_threshold_moving = {1.0};
  EXPECT_NE(refusal_of([&] { logic.configure(model(), settings, {}, {1.0}); }), "");
}

TEST(ControllerLogic, ACycleAllocatesNothing)
{
  Arm arm(with_contacts(robodyn::ContactAction::stop));
  arm.logic.set_watched(true);
  arm.logic.activate();
  arm.simulate(5);
  arm.logic.change_settings(
    [](const robodyn_model &) { return with_contacts(robodyn::ContactAction::release); });
  arm.logic.set_setpoint({"swing"}, {0.3}, {}, {});
  const long before = allocations;
  double reference[3];
  for (int k = 0; k < 300; ++k) {
    arm.push = k > 100 ? 3.0 : 0.0;
    arm.logic.sample_setpoint(0.001, reference);
    arm.simulate(1, reference[0]);
    arm.logic.tip_wrench();
  }
  EXPECT_EQ(allocations - before, 0);
}

// --- impedance -----------------------------------------------------------------------------------

using pendulum::orientation;
using pendulum::place;
using pendulum::soft_settings;

constexpr Mode kSoftModes[] = {Mode::joint_impedance, Mode::cartesian_impedance};

TEST(ControllerLogic, TheTipGoesToATargetPoseNoFasterThanItMay)
{
  Arm arm(soft_settings(Mode::cartesian_impedance));
  arm.logic.activate();
  arm.simulate(100);
  EXPECT_EQ(arm.logic.set_target_pose("base", place(0.6), orientation(0.6)), "");
  double fastest = 0.0;
  for (int k = 0; k < 4000; ++k) {
    arm.simulate(1);
    fastest = std::fmax(fastest, std::fabs(arm.qd));
  }
  EXPECT_NEAR(arm.q, 0.6, 1e-4);
  EXPECT_LT(fastest, 1.1 * 0.5);
  EXPECT_GT(fastest, 0.8 * 0.5);
  EXPECT_FALSE(arm.logic.take_refused_target());
}

TEST(ControllerLogic, ATargetPoseIsHeldUntilTheReferenceMoves)
{
  Arm arm(soft_settings(Mode::cartesian_impedance));
  arm.logic.activate();
  arm.simulate(100, 0.3);
  EXPECT_EQ(arm.logic.set_target_pose("base", place(0.5), orientation(0.5)), "");
  arm.simulate(4000, 0.3);
  EXPECT_NEAR(arm.q, 0.5, 1e-4);
  arm.simulate(4000, 0.31);
  EXPECT_NEAR(arm.q, 0.31, 1e-4);
}

TEST(ControllerLogic, ATargetThatNothingCanFollowIsToldOfOnce)
{
  Arm arm(soft_settings(Mode::cartesian_impedance));
  arm.logic.activate();
  arm.cycle(0.3);
  EXPECT_EQ(arm.logic.set_target_pose("", place(0.5), orientation(0.5)), "");
  arm.cycle(0.3);
  EXPECT_TRUE(arm.logic.take_refused_target().cause == Cause::not_followed);
  EXPECT_FALSE(arm.logic.take_refused_target());
}

TEST(ControllerLogic, RefusesATargetPoseBeyondTheReachOfTheArm)
{
  Settings settings = soft_settings(Mode::cartesian_impedance);
  settings.wrench_point = {0.1, 0.0, 0.0};
  Arm arm(settings);
  arm.logic.activate();
  arm.simulate(100);
  const double reach = pendulum::kLength + 0.1;
  const auto refusal_of = [&arm](const robodyn::Vector3 & place_of_tip, double q) {
    EXPECT_EQ(arm.logic.set_target_pose("", place_of_tip, orientation(q)), "");
    arm.simulate(1);
    return arm.logic.text_of(arm.logic.take_refused_target());
  };
  EXPECT_EQ(refusal_of({reach, 0.0, 0.0}, 0.0), "");
  EXPECT_EQ(refusal_of(place(0.3), 0.3), "");
  EXPECT_EQ(
    refusal_of({0.0, 0.0, -100.0}, 0.3),
    "distance from the base link: 100 m; allowed: at most 0.6 m, the reach of the arm");
  EXPECT_NE(refusal_of({std::nextafter(reach, 1.0), 0.0, 0.0}, 0.0), "");
  arm.simulate(1000);
  EXPECT_NEAR(arm.q, 0.3, 0.05);
}

TEST(ControllerLogic, ACancellationEndsASetpointAndANewOneIsFollowedAfterAContact)
{
  Arm arm(with_contacts(robodyn::ContactAction::stop));
  arm.logic.activate();
  const auto run = [&arm](int count) {
    double reference[3];
    for (int k = 0; k < count; ++k) {
      arm.logic.sample_setpoint(0.001, reference);
      arm.simulate(1, reference[0]);
    }
  };
  run(100);
  arm.logic.set_setpoint({"swing"}, {0.3}, {}, {});
  run(100);
  EXPECT_TRUE(arm.logic.pipeline().following() == robodyn::Following::moving);
  arm.push = 3.0;
  run(200);
  arm.push = 0.0;
  run(1000);
  EXPECT_TRUE(arm.logic.pipeline().following() != robodyn::Following::moving);
  EXPECT_EQ(arm.logic.cancel(), "");
  arm.logic.set_setpoint({"swing"}, {arm.q}, {}, {});  // in the same cycle
  run(10);
  EXPECT_TRUE(arm.logic.pipeline().following() == robodyn::Following::moving);
  EXPECT_EQ(arm.logic.cancel(), "");
  run(10);
  EXPECT_TRUE(arm.logic.pipeline().following() == robodyn::Following::holding);
}

TEST(ControllerLogic, ANewActivationIsEnabled)
{
  Arm arm;
  EXPECT_EQ(arm.logic.set_enabled(false), "the controller is not active");
  for (const bool is_configured_anew : {false, true}) {
    arm.logic.activate();
    EXPECT_EQ(arm.cycles(10, 0.3), 10);
    EXPECT_EQ(arm.logic.set_enabled(false), "");
    arm.cycles(1000, 0.3);
    EXPECT_FALSE(arm.logic.pipeline().is_enabled());
    arm.logic.deactivate(&arm.command);
    EXPECT_NE(arm.logic.set_enabled(false), "");
    if (is_configured_anew) {
      arm.logic.cleanup();
      arm.logic.configure(model(), pendulum::settings(), {}, {1.0});
    }
  }
  arm.logic.activate();
  EXPECT_EQ(arm.cycles(10, 0.3), 10);
}

TEST(ControllerLogic, ASecondFaultOfTheSameKindIsToldAndOneThatGoesOnIsNot)
{
  Arm arm(with_contacts(robodyn::ContactAction::stop));
  arm.logic.activate();
  arm.simulate(100);
  int told = 0;
  const auto run = [&](int count, double q) {
    for (int k = 0; k < count; ++k) {
      arm.simulate(1);
      if (std::isfinite(q)) { arm.cycle(q); }
      told += static_cast<bool>(arm.logic.take_fault());
    }
  };
  for (int round = 1; round <= 3; ++round) {
    arm.push = 3.0;
    run(200, kNaN);
    arm.push = 0.0;
    run(1000, kNaN);
    EXPECT_EQ(told, round);
  }
  arm.logic.deactivate(&arm.command);
  arm.logic.activate();
  told = 0;
  for (int k = 0; k < 500; ++k) {
    arm.cycle(57.3 * 0.3);  // in degrees
    told += static_cast<bool>(arm.logic.take_fault());
  }
  EXPECT_EQ(told, 1);
}

TEST(ControllerLogic, AContactEndsAStreamOfTargetsAndTheArmStaysSoft)
{
  Settings settings = soft_settings(Mode::cartesian_impedance);
  settings.contact_threshold_moving = settings.contact_threshold_stationary = {1.0};
  settings.on_contact = robodyn::ContactAction::stop;
  Arm arm(settings);
  arm.logic.activate();
  arm.simulate(100);
  const auto send = [&arm](int count, double from, double pace) {
    for (int k = 0; k < count; ++k) {
      const double q = from + pace * k;
      arm.logic.set_target_pose("", place(q), orientation(q));
      arm.simulate(1);
    }
  };
  send(1000, 0.3, 0.0003);
  const double before = arm.q;
  EXPECT_GT(before, 0.4);
  arm.push = -3.0;
  send(2000, 0.6, 0.0003);
  EXPECT_LT(arm.q, before + 0.05);  // it has not gone on
  arm.push = 0.0;
  arm.simulate(2000);
  const double stopped = arm.q;
  EXPECT_NEAR(stopped, before, 0.1);
  arm.push = 0.5;  // below the threshold: it yields
  arm.simulate(2000);
  EXPECT_NEAR(arm.q - stopped, pendulum::yield_of(settings.mode, 0.5), 1e-4);
  arm.push = 0.0;
  arm.simulate(2000);
  send(1000, 0.6, 0.0);
  EXPECT_NEAR(arm.q, stopped, 1e-3);  // nothing has acknowledged the contact
  EXPECT_TRUE(arm.logic.take_refused_target().cause == Cause::unacknowledged);
  EXPECT_EQ(arm.logic.cancel(), "");
  send(4000, 0.6, 0.0);
  EXPECT_NEAR(arm.q, 0.6, 1e-3);
}

TEST(ControllerLogic, DisabledItStopsTheTipOnItsWay)
{
  Arm arm(soft_settings(Mode::cartesian_impedance));
  arm.logic.activate();
  arm.simulate(100);
  const auto send = [&arm] {
    arm.logic.set_target_pose("", place(1.5), orientation(1.5));
    arm.logic.set_target_wrench("", {0.0, 0.0, 2.0, 0.0, 0.0, 0.0});
    arm.simulate(1);
  };
  for (int k = 0; k < 1000; ++k) { send(); }
  EXPECT_GT(arm.qd, 0.4);
  const double before = arm.q;
  arm.logic.set_enabled(false);
  for (int k = 0; k < 3000 && arm.logic.pipeline().is_enabled(); ++k) { send(); }
  EXPECT_FALSE(arm.logic.pipeline().is_enabled());
  EXPECT_LT(std::fabs(arm.q - before), 0.2);
  EXPECT_LT(std::fabs(arm.qd), robodyn::kRestSpeed);
}

TEST(ControllerLogic, ACycleOfAnImpedanceAllocatesNothing)
{
  for (const Mode mode : kSoftModes) {
    Settings settings = soft_settings(mode);
    settings.contact_threshold_moving = settings.contact_threshold_stationary = {1.0};
    settings.on_contact = robodyn::ContactAction::stop;
    Arm arm(settings);
    arm.logic.activate();
    arm.simulate(50);
    settings.impedance = soft_settings(mode, 2.0).impedance;
    arm.logic.change_settings([&settings](const robodyn_model &) { return settings; });
    arm.logic.set_target_pose("", place(0.5), orientation(0.5));
    arm.logic.set_target_wrench("", {1.0, 2.0, 3.0, 0.0, 0.0, 0.0});
    const long before = allocations;
    arm.simulate(300);
    arm.push = 3.0;
    arm.simulate(300);
    EXPECT_EQ(allocations - before, 0);
  }
}

TEST(Mailbox, AValueIsEitherTakenOrWithdrawn)
{
  constexpr std::size_t kCount = 200000;
  robodyn_controllers::Mailbox<std::size_t> mailbox;
  std::vector<char> is_taken(kCount), is_withdrawn(kCount);
  std::atomic<bool> is_over{false};
  std::thread taking([&] {
    while (!is_over) {
      mailbox.take([&](std::size_t value) { return is_taken[value] = 1; });
    }
  });
  for (std::size_t k = 0; k < kCount; ++k) {
    const std::uint64_t number = mailbox.put(k);
    for (std::atomic<std::size_t> wait{k % 50}; wait > 0; --wait) {}  // now earlier, now later
    is_withdrawn[k] = mailbox.withdraw();
    while (is_withdrawn[k] == 0 && !mailbox.is_taken(number)) { std::this_thread::yield(); }
  }
  is_over = true;
  taking.join();
  std::size_t neither_or_both = 0;
  for (std::size_t k = 0; k < kCount; ++k) { neither_or_both += is_taken[k] == is_withdrawn[k]; }
  EXPECT_EQ(neither_or_both, 0u);
}

TEST(ControllerLogic, WhatIsAskedWithoutAConfigurationIsRefused)
{
  ControllerLogic logic;
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(logic.set_payload("", payload_of(1.0)), "the controller is not configured");
    EXPECT_EQ(logic.set_gravity("", kDown), "the controller is not configured");
    EXPECT_EQ(logic.set_setpoint({"swing"}, {0.3}, {}, {}), "the controller is not configured");
    EXPECT_NE(logic.set_target_pose("", {}, {0.0, 0.0, 0.0, 1.0}), "");
    EXPECT_NE(logic.set_target_wrench("", {}), "");
    bool is_asked = false;
    logic.change_settings([&](const robodyn_model &) {
      is_asked = true;
      return pendulum::settings();
    });
    EXPECT_FALSE(is_asked);
    logic.configure(model(), pendulum::settings(), {}, {1.0});
    logic.cleanup();
  }
}

TEST(ControllerLogic, CleanupWaitsForWhatIsBeingAsked)
{
  ControllerLogic logic;
  logic.configure(model(), pendulum::settings(), {}, {1.0});
  std::atomic<bool> is_asked{false}, is_cleaning{false}, is_clean{false};
  std::thread other([&] {
    logic.change_settings([&](const robodyn_model &) {
      is_asked = true;
      while (!is_cleaning) { std::this_thread::yield(); }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // in which it could clean
      EXPECT_FALSE(is_clean);
      return pendulum::settings();
    });
  });
  while (!is_asked) { std::this_thread::yield(); }
  is_cleaning = true;
  logic.cleanup();
  is_clean = true;
  other.join();
}
