// SPDX-License-Identifier: Apache-2.0
// The controller as ros2_control runs it, with interfaces of this test: the wiring to its logic,
// which is tested without ROS.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "hardware_interface/handle.hpp"
#include "hardware_interface/loaned_command_interface.hpp"
#include "hardware_interface/loaned_state_interface.hpp"
#include "lifecycle_msgs/msg/state.hpp"
#include "rclcpp/rclcpp.hpp"
#include "semantic_components/force_torque_sensor.hpp"

#include "robodyn_controllers/inverse_dynamics_controller.hpp"

#include "pendulum.hpp"

using hardware_interface::CommandInterface;
using hardware_interface::StateInterface;
using lifecycle_msgs::msg::State;
using robodyn_interfaces::srv::SetGravity;
using robodyn_interfaces::srv::SetPayload;
using std_srvs::srv::SetBool;
using trajectory_msgs::msg::JointTrajectory;

namespace
{

constexpr auto kPatience = std::chrono::seconds(60);  // a loaded machine may take long
constexpr double kNaN = robodyn_controllers::kNaN;
constexpr char kName[] = "pendulum_controller";
constexpr char kDescription[] =
  "<robot name='pendulum'><link name='base'/><link name='arm'/><link name='bob'/>"
  "<joint name='swing' type='revolute'><parent link='base'/><child link='arm'/>"
  "<axis xyz='0 -1 0'/><limit lower='-3' upper='3' effort='40' velocity='4'/></joint>"
  "<joint name='end' type='fixed'><parent link='arm'/><child link='bob'/>"
  "<origin xyz='0.5 0 0'/></joint></robot>";

struct Ros
{
  Ros() { rclcpp::init(0, nullptr); }
  ~Ros() { rclcpp::shutdown(); }
};

// The controller, its interfaces, and a client beside it.
struct Arm
{
  Arm() : Arm(std::initializer_list<rclcpp::Parameter>()) {}

  Arm(std::initializer_list<rclcpp::Parameter> changes)
  {
    std::vector<rclcpp::Parameter> parameters{
      {"joints", std::vector<std::string>{"swing"}}, {"model_library", PENDULUM_LIBRARY}};
    parameters.insert(parameters.end(), changes.begin(), changes.end());
    controller_interface::ControllerInterfaceParams given;
    given.controller_name = kName;
    given.robot_description = kDescription;
    given.controller_manager_update_rate = 1000;
    given.node_options = controller.define_custom_node_options().parameter_overrides(parameters);
    is_made = controller.init(given) == controller_interface::return_type::OK;
    other = std::make_shared<rclcpp::Node>("tester");
    executor.add_node(controller.get_node()->get_node_base_interface());
    executor.add_node(other);
    spinning = std::thread([this] { executor.spin(); });
  }

  ~Arm()
  {
    while (!executor.is_spinning()) { std::this_thread::yield(); }  // else it forgets the cancel
    executor.cancel();
    spinning.join();
    controller.release_interfaces();
  }

  bool configure()
  {
    if (controller.configure().id() != State::PRIMARY_STATE_INACTIVE) { return false; }
    estimates = controller.export_state_interfaces();
    references = controller.export_reference_interfaces();
    return true;
  }

  bool activate(bool is_chained = true)
  {
    const bool is_commanding = !controller.command_interface_configuration().names.empty();
    std::vector<hardware_interface::LoanedCommandInterface> commands;
    if (is_commanding) { commands.emplace_back(effort, nullptr); }
    std::vector<hardware_interface::LoanedStateInterface> states;
    states.emplace_back(position, nullptr);
    states.emplace_back(velocity, nullptr);
    if (!is_commanding) { states.emplace_back(measured, nullptr); }
    controller.assign_interfaces(std::move(commands), std::move(states));
    controller.set_chained_mode(is_chained);
    return controller.get_node()->activate().id() == State::PRIMARY_STATE_ACTIVE;
  }

  bool deactivate()
  {
    return controller.get_node()->deactivate().id() == State::PRIMARY_STATE_INACTIVE;
  }

  bool cleanup()
  {
    return controller.get_node()->cleanup().id() == State::PRIMARY_STATE_UNCONFIGURED;
  }

  // A number of cycles at rest at a position; NaN: the hardware has none.
  void cycles(int count, double q)
  {
    (void)position->set_value(q);
    (void)velocity->set_value(0.0);
    for (int k = 0; k < count; ++k) {
      controller.update(controller.get_node()->now(), rclcpp::Duration::from_seconds(0.001));
    }
  }

  // Cycles at rest until a condition holds; false: it never did.
  bool until(double q, const std::function<bool()> & condition)
  {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) { return false; }
      cycles(1, q);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  // The answer of a service during cycles; none: nullptr.
  template <typename Service>
  typename Service::Response::SharedPtr call(
    const std::string & name, typename Service::Request::SharedPtr request)
  {
    const auto client = other->create_client<Service>(std::string(kName) + "/" + name);
    if (!until(0.3, [&] { return client->service_is_ready(); })) { return nullptr; }
    auto answer = client->async_send_request(request).share();
    const auto is_there = [&] {
      return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    return until(0.3, is_there) ? answer.get() : nullptr;
  }

  // What it exports under a name; NaN: nothing.
  double estimate(const std::string & name) const
  {
    for (const auto & each : estimates) {
      if (each->get_name() == kName + ("/" + name)) {
        return each->get_optional().value_or(kNaN);
      }
    }
    return kNaN;
  }

  double torque() const { return effort->get_optional().value_or(kNaN); }

  const Ros ros;  // first: the others need it
  robodyn_controllers::InverseDynamicsController controller;
  bool is_made = false;
  CommandInterface::SharedPtr effort = std::make_shared<CommandInterface>("swing", "effort");
  StateInterface::SharedPtr position = std::make_shared<StateInterface>("swing", "position");
  StateInterface::SharedPtr velocity = std::make_shared<StateInterface>("swing", "velocity");
  StateInterface::SharedPtr measured = std::make_shared<StateInterface>("swing", "effort");
  std::vector<CommandInterface::SharedPtr> references;
  std::vector<StateInterface::ConstSharedPtr> estimates;
  std::shared_ptr<rclcpp::Node> other;
  rclcpp::executors::SingleThreadedExecutor executor;
  std::thread spinning;
};

}  // namespace

TEST(InverseDynamicsController, ClaimsTheEffortAndExportsReferencesOfEachJoint)
{
  Arm arm;
  ASSERT_TRUE(arm.is_made);
  ASSERT_TRUE(arm.configure());
  EXPECT_EQ(arm.controller.command_interface_configuration().names.at(0), "swing/effort");
  const std::vector<std::string> states = arm.controller.state_interface_configuration().names;
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0] + " " + states[1], "swing/position swing/velocity");
  EXPECT_TRUE(arm.estimates.empty());
  ASSERT_EQ(arm.references.size(), 3u);
  EXPECT_EQ(arm.references[2]->get_name(), std::string(kName) + "/swing/acceleration");
}

TEST(InverseDynamicsController, CarriesTheArmAndFollowsWhatIsChainedToIt)
{
  Arm arm{{"mode", "computed_torque"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(10, 0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
  const double desired[] = {0.31, 0.0, 0.0};
  for (std::size_t k = 0; k < 3; ++k) { (void)arm.references[k]->set_value(desired[k]); }
  arm.cycles(10, 0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) + 100.0 * 0.01 * pendulum::kInertia, 1e-9);
}

TEST(InverseDynamicsController, RefusesParametersOfAnotherNumberOfJoints)
{
  Arm arm{{"command_scale", std::vector<double>{1.0, 2.0}}};
  EXPECT_FALSE(arm.configure());
}

TEST(InverseDynamicsController, WithoutAChainItFollowsSetpointsOfItsTopic)
{
  Arm arm{{"mode", "computed_torque"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate(false));
  const auto publisher =
    arm.other->create_publisher<JointTrajectory>(std::string(kName) + "/reference", 1);
  ASSERT_TRUE(arm.until(0.3, [&] { return publisher->get_subscription_count() > 0; }));
  JointTrajectory trajectory;
  trajectory.joint_names = {"swing"};
  trajectory.points.resize(1);
  trajectory.points[0].positions = {0.31};
  publisher->publish(trajectory);
  const double expected = pendulum::held(0.3) + 100.0 * 0.01 * pendulum::kInertia;
  EXPECT_TRUE(arm.until(0.3, [&] { return std::fabs(arm.torque() - expected) < 1e-9; }));
}

TEST(InverseDynamicsController, InAnImpedanceTargetPoseAndWrenchReachTheLoop)
{
  Arm arm{{"mode", "cartesian_impedance"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(100, 0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
  const std::string name = std::string(kName) + "/";
  const auto wrenches =
    arm.other->create_publisher<geometry_msgs::msg::WrenchStamped>(name + "target_wrench", 1);
  geometry_msgs::msg::WrenchStamped wrench;
  wrench.header.frame_id = "base";
  wrench.wrench.force.z = 4.0;
  const double pushed = pendulum::held(0.3) + 4.0 * pendulum::kLength * std::cos(0.3);
  EXPECT_TRUE(arm.until(0.3, [&] {
    wrenches->publish(wrench);
    return std::fabs(arm.torque() - pushed) < 1e-3;
  }));
  EXPECT_TRUE(
    arm.until(0.3, [&] { return std::fabs(arm.torque() - pendulum::held(0.3)) < 1e-3; }));
  const auto poses =
    arm.other->create_publisher<geometry_msgs::msg::PoseStamped>(name + "target_pose", 1);
  geometry_msgs::msg::PoseStamped pose;
  const auto place = pendulum::place(0.4);
  const auto turned = pendulum::orientation(0.4);
  pose.pose.position.x = place[0];
  pose.pose.position.z = place[2];
  pose.pose.orientation.y = turned[1];
  pose.pose.orientation.w = turned[3];
  const double stiffness = 400.0 * pendulum::kLength * pendulum::kLength + 30.0;
  const double pulled = pendulum::held(0.3) + stiffness * std::sin(0.1);
  EXPECT_TRUE(arm.until(0.3, [&] {
    poses->publish(pose);
    return std::fabs(arm.torque() - pulled) < 0.01;
  }));
}

TEST(InverseDynamicsController, ItsServicesReachTheLoop)
{
  Arm arm;
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(10, 0.3);
  const auto payload = std::make_shared<SetPayload::Request>();
  payload->payload.mass = 1.0;
  const auto carried = arm.call<SetPayload>("set_payload", payload);
  ASSERT_TRUE(carried != nullptr && carried->success);
  EXPECT_EQ(carried->joint_names.at(0), "swing");
  arm.cycles(50, 0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3, 3.0), 1e-9);
  const auto gravity = std::make_shared<SetGravity::Request>();
  gravity->gravity.vector.z = -4.905;
  const auto tilted = arm.call<SetGravity>("set_gravity", gravity);
  ASSERT_TRUE(tilted != nullptr && tilted->success);
  arm.cycles(50, 0.3);
  EXPECT_NEAR(arm.torque(), 0.5 * pendulum::held(0.3, 3.0), 1e-9);
}

TEST(InverseDynamicsController, EnableStopsItAndHasItCommandAgain)
{
  Arm arm{{"on_stop", "zero"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(10, 0.3);
  for (const bool is_on : {false, true}) {
    const auto request = std::make_shared<SetBool::Request>();
    request->data = is_on;
    const auto answer = arm.call<SetBool>("enable", request);
    ASSERT_TRUE(answer != nullptr && answer->success);
    arm.cycles(50, 0.3);
    EXPECT_NEAR(arm.torque(), is_on ? pendulum::held(0.3) : 0.0, 1e-9);
  }
}

TEST(InverseDynamicsController, ChangedParametersReachTheLoopAndBadOnesDoNot)
{
  Arm arm;
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(10, 0.3);
  const auto node = arm.controller.get_node();
  EXPECT_FALSE(node->set_parameter({"kp", std::vector<double>{1.0, 2.0}}).successful);
  EXPECT_FALSE(node->set_parameter({"damping", kNaN}).successful);
  EXPECT_FALSE(
    node->set_parameter({"impedance.tip_stiffness", std::vector<double>{9.0}}).successful);
  EXPECT_TRUE(
    node->set_parameter({"impedance.tip_stiffness", std::vector<double>(6, 9.0)}).successful);
  EXPECT_TRUE(node->set_parameter({"effort_limit_scale", 0.1}).successful);
  arm.cycles(50, 0.3);
  EXPECT_NEAR(arm.torque(), 4.0, 1e-9);
}

TEST(InverseDynamicsController, DeactivatedItLeavesTheStopCommandOnTheInterface)
{
  Arm arm{{"on_stop", "zero"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  arm.cycles(10, 0.3);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
  ASSERT_TRUE(arm.deactivate());
  EXPECT_EQ(arm.torque(), 0.0);
}

TEST(InverseDynamicsController, TellsOnTopicsWhatTheOutsideDoes)
{
  using robodyn_interfaces::msg::Contact;
  Arm arm{
    {"mode", "computed_torque"},
    {"contact_threshold_moving", std::vector<double>{0.2}},
    {"contact_threshold_stationary", std::vector<double>{0.2}}};
  ASSERT_TRUE(arm.configure());
  ASSERT_TRUE(arm.activate());
  // The newest of each; the executor's thread writes while the test reads.
  std::mutex writing;
  sensor_msgs::msg::JointState torques;
  geometry_msgs::msg::WrenchStamped wrench;
  Contact contact;
  const auto keeps = [&writing](auto & kept) {
    return [&writing, &kept](const std::remove_reference_t<decltype(kept)> & message) {
      const std::lock_guard<std::mutex> lock(writing);
      kept = message;
    };
  };
  const std::string name = std::string(kName) + "/";
  const auto latched = rclcpp::QoS(1).transient_local();
  const auto one = arm.other->create_subscription<sensor_msgs::msg::JointState>(
    name + "external_torques", 1, keeps(torques));
  const auto other = arm.other->create_subscription<geometry_msgs::msg::WrenchStamped>(
    name + "tip_wrench", 1, keeps(wrench));
  const auto third =
    arm.other->create_subscription<Contact>(name + "contact", latched, keeps(contact));
  // The arm is held away from its reference: an external torque balances the drive's.
  const double desired[] = {0.31, 0.0, 0.0}, pushed = -100.0 * 0.01 * pendulum::kInertia;
  for (std::size_t k = 0; k < 3; ++k) { (void)arm.references[k]->set_value(desired[k]); }
  EXPECT_TRUE(arm.until(0.3, [&] {
    const std::lock_guard<std::mutex> lock(writing);
    return !torques.effort.empty() && std::fabs(torques.effort[0] - pushed) < 1e-3 &&
           wrench.wrench.force.z < 0.0 && !contact.joint.empty();
  }));
  EXPECT_EQ(torques.name.at(0), "swing");
  EXPECT_EQ(wrench.header.frame_id, "bob");
  EXPECT_EQ(contact.joint + " " + contact.link, "swing arm");
  EXPECT_FALSE(contact.is_over);
  EXPECT_NEAR(contact.threshold, 0.2, 1e-12);
}

TEST(InverseDynamicsController, ForAnArmThatOthersCommandItIsAForceTorqueSensorOnly)
{
  Arm arm{{"sensing", "measured"}, {"command_scale", std::vector<double>{-2.0}}};
  ASSERT_TRUE(arm.configure());
  EXPECT_TRUE(arm.controller.command_interface_configuration().names.empty());
  EXPECT_TRUE(arm.references.empty());
  EXPECT_EQ(arm.controller.state_interface_configuration().names.at(2), "swing/effort");
  const std::vector<std::string> sensor =
    semantic_components::ForceTorqueSensor(kName).get_state_interface_names();
  ASSERT_EQ(sensor.size(), 6u);
  ASSERT_EQ(arm.estimates.size(), 7u);
  for (std::size_t k = 0; k < 6; ++k) { EXPECT_EQ(arm.estimates[k]->get_name(), sensor[k]); }
  ASSERT_TRUE(arm.activate(false));
  EXPECT_TRUE(std::isnan(arm.estimate("force.z")));
  // At an angle of 0 the tip has the base's axes. A force of 4 N in +z carries the pendulum, and
  // the drive that much less.
  const double pushed = 4.0 * pendulum::kLength;
  (void)arm.measured->set_value(-2.0 * (pendulum::held(0.0) - pushed));
  arm.cycles(1000, 0.0);
  EXPECT_NEAR(arm.estimate("swing/external_torque"), pushed, 1e-9);
  // One joint: the wrench is along its row of the Jacobian, weighted by the prior.
  const double force = 100.0 * 100.0 * pendulum::kLength, moment = -20.0 * 20.0;
  const double total = force * pendulum::kLength - moment;
  EXPECT_NEAR(arm.estimate("force.z"), pushed * force / total, 1e-3);
  EXPECT_NEAR(arm.estimate("torque.y"), pushed * moment / total, 1e-3);
  EXPECT_NEAR(arm.estimate("force.x"), 0.0, 1e-9);
  (void)arm.measured->set_value(kNaN);
  arm.cycles(1, 0.0);
  EXPECT_TRUE(std::isnan(arm.estimate("force.z")));
  (void)arm.measured->set_value(0.0);
  arm.cycles(2, 0.0);
  EXPECT_FALSE(std::isnan(arm.estimate("force.z")));
  ASSERT_TRUE(arm.deactivate());
  EXPECT_TRUE(std::isnan(arm.estimate("force.z")));
}

TEST(InverseDynamicsController, OnlyObservingItTakesNoReactionToContacts)
{
  const std::vector<double> threshold{1.0};
  Arm arm{
    {"sensing", "measured"},
    {"contact_threshold_moving", threshold},
    {"contact_threshold_stationary", threshold}};
  ASSERT_TRUE(arm.configure());
  EXPECT_FALSE(arm.controller.get_node()->set_parameter({"on_contact", "stop"}).successful);
}

TEST(InverseDynamicsController, ExportsWhatItEstimatesFromItsOwnCommands)
{
  Arm arm{{"mode", "computed_torque"}, {"sensing", "commanded"}};
  ASSERT_TRUE(arm.configure());
  ASSERT_EQ(arm.estimates.size(), 7u);
  ASSERT_TRUE(arm.activate());
  // The arm is held away from its reference: an external torque balances the drive's.
  const double desired[] = {0.31, 0.0, 0.0}, pushed = -100.0 * 0.01 * pendulum::kInertia;
  for (std::size_t k = 0; k < 3; ++k) { (void)arm.references[k]->set_value(desired[k]); }
  EXPECT_TRUE(arm.until(
    0.3, [&] { return std::fabs(arm.estimate("swing/external_torque") - pushed) < 1e-3; }));
  EXPECT_LT(arm.estimate("force.z"), 0.0);
  EXPECT_NEAR(arm.torque(), pendulum::held(0.3) - pushed, 1e-9);
}

TEST(InverseDynamicsController, ReactsToNoContactWithoutThresholds)
{
  Arm refused{{"on_contact", "stop"}};
  EXPECT_FALSE(refused.configure());
}

TEST(InverseDynamicsController, TakesNoReactionWithoutThresholdsLater)
{
  Arm arm;
  ASSERT_TRUE(arm.configure());
  EXPECT_FALSE(arm.controller.get_node()->set_parameter({"on_contact", "stop"}).successful);
}

TEST(InverseDynamicsController, LivesMoreThanOneLife)
{
  Arm arm;
  for (int life = 0; life < 3; ++life) {
    ASSERT_TRUE(arm.configure());
    ASSERT_TRUE(arm.activate());
    arm.cycles(10, 0.3);
    EXPECT_NEAR(arm.torque(), pendulum::held(0.3), 1e-9);
    ASSERT_TRUE(arm.deactivate());
    ASSERT_TRUE(arm.cleanup());
  }
}
