// SPDX-License-Identifier: Apache-2.0
// The controller manager finds the plugin and makes one of it.
#include <gtest/gtest.h>

#include <memory>

#include "controller_manager/controller_manager.hpp"
#include "hardware_interface/resource_manager.hpp"
#include "rclcpp/rclcpp.hpp"
#include "ros2_control_test_assets/descriptions.hpp"

TEST(LoadInverseDynamicsController, ThePluginIsFound)
{
  rclcpp::init(0, nullptr);
  {
    const auto executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    // Without them its parameters are refused when it is made.
    rclcpp::NodeOptions options = controller_manager::get_cm_node_options();
    options.arguments(
      {"--ros-args", "-p", "inverse_dynamics_controller:joints:=[joint1]", "-p",
       "inverse_dynamics_controller:model_library:=arm.so"});
    controller_manager::ControllerManager manager(
      executor, ros2_control_test_assets::minimal_robot_urdf, true, "controller_manager", "",
      options);
    EXPECT_TRUE(
      manager.load_controller(
        "inverse_dynamics_controller", "robodyn_controllers/InverseDynamicsController") !=
      nullptr);
  }
  rclcpp::shutdown();
}
