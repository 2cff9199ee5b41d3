// SPDX-License-Identifier: Apache-2.0
//
// Publish the position of every joint state, as one message or as the node's three: the relay of
// benchmarks/latency.py in C++.
//
//     relay 0|1        1: publish a JointState and a DynamicsState, too

#include <memory>
#include <string>

#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#include <rclcpp/rclcpp.hpp>
#include <robodyn_interfaces/msg/dynamics_state.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <std_msgs/msg/float64_multi_array.hpp>

using robodyn_interfaces::msg::DynamicsState;
using sensor_msgs::msg::JointState;
using std_msgs::msg::Float64MultiArray;

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const bool publishes_all = argc > 1 && std::string(argv[1]) == "1";
  const auto node = std::make_shared<rclcpp::Node>("relay");
  const auto commands = node->create_publisher<Float64MultiArray>("/peer/commands", 10);
  const auto torques = node->create_publisher<JointState>("/peer/torques", 10);
  const auto states = node->create_publisher<DynamicsState>("/peer/dynamics_state", 10);
  const auto answer = [&](const JointState & message) {
    Float64MultiArray command;
    command.data = message.position;
    commands->publish(command);
    if (!publishes_all) { return; }
    JointState torque;
    torque.header = message.header;
    torque.name = message.name;
    torque.effort = message.position;
    torques->publish(torque);
    DynamicsState state;
    state.header = message.header;
    state.joint_names = message.name;
    state.mode = "computed_torque";
    for (auto * field :
         {&state.position, &state.velocity, &state.total, &state.reference_position,
          &state.reference_velocity, &state.reference_acceleration, &state.inertial,
          &state.coriolis, &state.gravity, &state.friction, &state.feedback, &state.effort}) {
      field->assign(message.position.begin(), message.position.end());
    }
    states->publish(state);
  };
  const auto subscription =
    node->create_subscription<JointState>("/joint_states", rclcpp::QoS(10).best_effort(), answer);
  rclcpp::experimental::executors::EventsExecutor executor;
  executor.add_node(node);
  executor.spin();
  rclcpp::shutdown();
  return 0;
}
