// SPDX-License-Identifier: Apache-2.0
// The controller's logic as a chainable controller of ros2_control.
#ifndef ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_
#define ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "geometry_msgs/msg/pose_stamped.hpp"
#include "geometry_msgs/msg/wrench_stamped.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_lifecycle/state.hpp"
#include "realtime_tools/realtime_publisher.hpp"
#include "robodyn_interfaces/srv/set_gravity.hpp"
#include "robodyn_interfaces/srv/set_payload.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "std_srvs/srv/trigger.hpp"
#include "trajectory_msgs/msg/joint_trajectory.hpp"

#include "robodyn_controllers/checked_parameters.hpp"
#include "robodyn_controllers/controller_logic.hpp"
#include "robodyn_controllers/inverse_dynamics_controller_parameters.hpp"
#include "robodyn_controllers/state_message.hpp"

namespace robodyn_controllers
{

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
  std::vector<hardware_interface::StateInterface::SharedPtr> on_export_state_interfaces_list()
    override;
  bool on_set_chained_mode(bool chained_mode) override;
  return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  using SetPayload = robodyn_interfaces::srv::SetPayload;
  using SetGravity = robodyn_interfaces::srv::SetGravity;
  using Trajectory = trajectory_msgs::msg::JointTrajectory;
  using Pose = geometry_msgs::msg::PoseStamped;

  // Whether others command the arm, and this one only estimates.
  bool is_observing() const { return params_.sensing == "measured"; }
  void make_services(const Settings & settings);
  void take_commands();
  void take_setpoint(const Trajectory & trajectory);
  void take_target_pose(const Pose & message);
  void take_target_wrench(const Wrench & message);
  // Warn of a message that is refused; why is empty: it is not. Each type is throttled by itself.
  template <typename Message>
  void warn(const char * topic, const std::string & why);
  void write_commands();
  void publish_state(const rclcpp::Time & time, const rclcpp::Duration & period);
  void export_estimate();
  void publish_contacts(const rclcpp::Time & time);

  std::size_t n_ = 0;
  std::shared_ptr<inverse_dynamics_controller::ParamListener> own_parameters_;
  std::shared_ptr<command_pipeline::ParamListener> shared_parameters_;
  inverse_dynamics_controller::Params params_;  // its own, read at configure
  ControllerLogic logic_;
  Vector position_, velocity_, reference_, command_;
  double state_period_ = robodyn::kInfinity, since_published_ = 0.0;  // of state_ [s]
  std::atomic<bool> is_watched_{false};

  rclcpp::Subscription<Trajectory>::SharedPtr subscription_;
  rclcpp::Subscription<Pose>::SharedPtr target_pose_;
  rclcpp::Subscription<Wrench>::SharedPtr target_wrench_;
  rclcpp::Service<SetPayload>::SharedPtr set_payload_;
  rclcpp::Service<SetGravity>::SharedPtr set_gravity_;
  rclcpp::Service<std_srvs::srv::SetBool>::SharedPtr enable_;
  rclcpp::Service<std_srvs::srv::Trigger>::SharedPtr weigh_payload_;
  rclcpp::node_interfaces::PostSetParametersCallbackHandle::SharedPtr parameters_taken_;
  rclcpp::node_interfaces::OnSetParametersCallbackHandle::SharedPtr parameters_checked_;
  rclcpp::Publisher<State>::SharedPtr publisher_;
  rclcpp::TimerBase::SharedPtr monitor_timer_;  // looks for subscribers and faults
  std::unique_ptr<realtime_tools::RealtimePublisher<State>> state_publisher_;
  State state_;

  // A topic that the real-time loop publishes, with a preallocated message.
  template <typename Message>
  struct Output
  {
    typename rclcpp::Publisher<Message>::SharedPtr publisher;
    std::unique_ptr<realtime_tools::RealtimePublisher<Message>> realtime;
    Message message;
    std::atomic<bool> has_subscribers{false};
  };

  template <typename Message>
  void open(Output<Message> & output, const std::string & name, const rclcpp::QoS & qos);
  template <typename Message>
  static void close(Output<Message> & output);

  Output<ExternalTorques> torques_;
  Output<Wrench> wrench_;
  Output<ContactMessage> contact_;
  std::vector<std::string> links_;  // that the joints move
  bool is_contact_pending_ = false;
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__INVERSE_DYNAMICS_CONTROLLER_HPP_
