// SPDX-License-Identifier: Apache-2.0
// The command pipeline as a chainable controller of ros2_control.
#ifndef ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_
#define ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_lifecycle/state.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "robodyn_interfaces/srv/set_gravity.hpp"
#include "robodyn_interfaces/srv/set_payload.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

#include "robodyn_controllers/checked_parameters.hpp"
#include "robodyn_controllers/command_pipeline.hpp"
#include "robodyn_controllers/mailbox.hpp"
#include "robodyn_controllers/model_library.hpp"
#include "robodyn_controllers/state_message.hpp"

namespace robodyn_controllers
{

using inverse_dynamics_controller::ParamListener;

// In update nothing allocates, waits, throws or logs; what other threads want comes by mailboxes.
class InverseDynamicsController : public controller_interface::ChainableControllerInterface
{
public:
  using CallbackReturn = controller_interface::CallbackReturn;
  using return_type = controller_interface::return_type;

  CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  CallbackReturn on_configure(const rclcpp_lifecycle::State & previous_state) override;
  CallbackReturn on_activate(const rclcpp_lifecycle::State & previous_state) override;
  CallbackReturn on_deactivate(const rclcpp_lifecycle::State & previous_state) override;
  CallbackReturn on_cleanup(const rclcpp_lifecycle::State & previous_state) override;

protected:
  std::vector<hardware_interface::CommandInterface::SharedPtr>
  on_export_reference_interfaces_list() override;
  bool on_set_chained_mode(bool chained_mode) override;
  return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  using SetPayload = robodyn_interfaces::srv::SetPayload;
  using SetGravity = robodyn_interfaces::srv::SetGravity;
  using Trajectory = trajectory_msgs::msg::JointTrajectory;

  void make_services();
  void take_setpoint(const Trajectory & trajectory);
  // Return what is wrong with a change of load; empty: it applies.
  std::string change_load(const robodyn_payload & payload, const std::vector<double> & gravity);

  // In the loop:
  void take_changes();
  void write_commands();
  void publish_state(const rclcpp::Time & time, const rclcpp::Duration & period);

  std::size_t n_ = 0;
  std::shared_ptr<ParamListener> param_listener_;
  Params params_;
  std::unique_ptr<ModelLibrary> library_;
  std::unique_ptr<CommandPipeline> pipeline_;
  Vector position_, velocity_, reference_, scale_, setpoint_;
  double now_ = 0.0, setpoint_age_ = 0.0, setpoint_timeout_ = 0.0, since_published_ = 0.0;
  bool has_setpoint_ = false, is_setpoint_at_rest_ = false;
  std::atomic<bool> is_active_{false}, is_enabled_{true}, is_watched_{false};

  std::mutex changing_;  // held by those who put into the mailboxes; update takes no lock
  robodyn_payload payload_{};
  std::vector<double> gravity_;
  Mailbox<Settings> changes_;
  Mailbox<Vector> load_, new_setpoint_;

  rclcpp::Subscription<Trajectory>::SharedPtr subscription_;
  rclcpp::Service<SetPayload>::SharedPtr set_payload_;
  rclcpp::Service<SetGravity>::SharedPtr set_gravity_;
  rclcpp::Service<std_srvs::srv::SetBool>::SharedPtr enable_;
  rclcpp::node_interfaces::PostSetParametersCallbackHandle::SharedPtr parameters_taken_;
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr parameters_checked_;
  rclcpp::Publisher<State>::SharedPtr publisher_;
  rclcpp::TimerBase::SharedPtr watching_;  // whether anybody subscribes
  std::unique_ptr<realtime_tools::RealtimePublisher<State>> state_publisher_;
  State state_;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_
