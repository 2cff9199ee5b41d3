// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/inverse_dynamics_controller.hpp"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

#include "robodyn_controllers/described_kinematics.hpp"
#include "robodyn_controllers/model_library.hpp"

namespace robodyn_controllers
{
namespace
{

constexpr std::chrono::milliseconds kMonitorPeriod{200};  // of subscribers and faults

double value_or_nan(const std::optional<double> & value)
{
  return value.value_or(kNaN);
}

// Give a real-time publisher's own message the memory of another. From realtime_tools 5 on nothing
// reaches it, and the first message that is published allocates.
template <typename Publisher, typename Message>
auto preallocate(Publisher & publisher, const Message & message, int)
  -> decltype(static_cast<void>(publisher.msg_ = message))
{
  publisher.lock();
  publisher.msg_ = message;
  publisher.unlock();
}

template <typename Publisher, typename Message>
void preallocate(Publisher &, const Message &, long)
{
}

template <typename Message>
std::unique_ptr<realtime_tools::RealtimePublisher<Message>> realtime_publisher(
  const typename rclcpp::Publisher<Message>::SharedPtr & publisher, const Message & message)
{
  auto result = std::make_unique<realtime_tools::RealtimePublisher<Message>>(publisher);
  preallocate(*result, message, 0);
  return result;
}

}  // namespace

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_init()
{
  try {
    own_parameters_ = std::make_shared<inverse_dynamics_controller::ParamListener>(get_node());
    shared_parameters_ = std::make_shared<command_pipeline::ParamListener>(get_node());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "cannot begin: %s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

controller_interface::InterfaceConfiguration
InverseDynamicsController::command_interface_configuration() const
{
  controller_interface::InterfaceConfiguration configuration{
    controller_interface::interface_configuration_type::INDIVIDUAL, {}};
  if (is_observing()) { return configuration; }
  for (const std::string & joint : params_.joints) {
    configuration.names.push_back(joint + "/" + hardware_interface::HW_IF_EFFORT);
  }
  return configuration;
}

controller_interface::InterfaceConfiguration
InverseDynamicsController::state_interface_configuration() const
{
  controller_interface::InterfaceConfiguration configuration{
    controller_interface::interface_configuration_type::INDIVIDUAL, {}};
  for (const char * const kind :
       {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
        hardware_interface::HW_IF_EFFORT}) {
    if (kind == hardware_interface::HW_IF_EFFORT && !is_observing()) { continue; }
    for (const std::string & joint : params_.joints) {
      configuration.names.push_back(joint + "/" + kind);
    }
  }
  return configuration;
}

// --- configure and clean up --------------------------------------------------------------------

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_configure(
  const rclcpp_lifecycle::State &)
{
  try {
    params_ = own_parameters_->get_params();
    n_ = params_.joints.size();
    const auto library = std::make_shared<ModelLibrary>(params_.model_library, params_.joints);
    library->choose_tip(tip_of(library->model(), "tip_link", params_.tip_link));
    const robodyn_model & model = library->model();
    if (params_.check_description) {
      const std::string difference = difference_of_kinematics(model, get_robot_description());
      if (!difference.empty()) { throw std::runtime_error("model_library: " + difference); }
    }
    const command_pipeline::Params shared = shared_parameters_->get_params();
    const Settings settings = checked_settings(shared, params_.joints, model);
    state_period_ = 1.0 / shared.state_publish_rate;  // infinite for a rate of 0
    logic_.configure(
      {library, &model}, settings, params_.gravity,
      each_joint("command_scale", params_.command_scale, n_), is_observing());
    position_.assign(n_, kNaN);
    velocity_.assign(n_, kNaN);
    reference_.assign(3 * n_, kNaN);
    command_.assign(n_, kNaN);
    state_ = state_message(params_.joints);
    links_ = moved_links(get_robot_description(), params_.joints);
    torques_.message = torques_message(params_.joints);
    wrench_.message = wrench_message(tip_link(model));
    contact_.message = contact_message(params_.joints, links_);
    make_services(settings);
    if (!is_observing()) { take_commands(); }
    RCLCPP_INFO(
      get_node()->get_logger(), "model of %zu joints to '%s' by %s, kinematics %.12s", n_,
      tip_link(model), model.generator, model.kinematics);
    if (model.unmodelled > 0) {
      RCLCPP_INFO(
        get_node()->get_logger(), "left out of setpoints: %s, which move nothing of the model",
        library->unmodelled_joints().c_str());
    }
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "cannot configure: %s", error.what());
    return CallbackReturn::FAILURE;
  }
  return CallbackReturn::SUCCESS;
}

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_cleanup(
  const rclcpp_lifecycle::State &)
{
  parameters_checked_.reset();
  parameters_taken_.reset();
  subscription_.reset();
  target_pose_.reset();
  target_wrench_.reset();
  set_payload_.reset();
  set_gravity_.reset();
  enable_.reset();
  weigh_payload_.reset();
  monitor_timer_.reset();
  state_publisher_.reset();
  publisher_.reset();
  close(torques_);
  close(wrench_);
  close(contact_);
  logic_.cleanup();
  return CallbackReturn::SUCCESS;
}

template <typename Message>
void InverseDynamicsController::open(
  Output<Message> & output, const std::string & name, const rclcpp::QoS & qos)
{
  output.publisher = get_node()->template create_publisher<Message>(name, qos);
  output.realtime = realtime_publisher<Message>(output.publisher, output.message);
}

template <typename Message>
void InverseDynamicsController::close(Output<Message> & output)
{
  output.realtime.reset();
  output.publisher.reset();
  output.has_subscribers = false;
}

void InverseDynamicsController::make_services(const Settings & settings)
{
  // Another thread may still answer a request from before the last cleanup: the callbacks
  // capture copies of what configure changes.
  const auto node = get_node();
  const std::vector<std::string> joints = params_.joints;
  parameters_checked_ =
    node->add_on_set_parameters_callback([settings, is_commanding = !is_observing()](
                                           const std::vector<rclcpp::Parameter> & parameters) {
      return checked_parameters(parameters, settings, is_commanding);
    });
  parameters_taken_ = node->add_post_set_parameters_callback(
    [this, joints](const std::vector<rclcpp::Parameter> &) {
      try {
        logic_.change_settings([this, &joints](const robodyn_model & model) {
          return checked_settings(shared_parameters_->get_params(), joints, model);
        });
      } catch (const std::exception & error) {
        RCLCPP_ERROR(get_node()->get_logger(), "parameters are not applied: %s", error.what());
      }
    });
  set_payload_ = node->create_service<SetPayload>(
    "~/set_payload",
    [this, joints](
      const SetPayload::Request::SharedPtr request, SetPayload::Response::SharedPtr response) {
      const auto & given = request->payload;
      const robodyn_payload payload{
        given.mass,
        {given.center_of_mass.x, given.center_of_mass.y, given.center_of_mass.z},
        {given.ixx, given.ixy, given.ixz, given.iyy, given.iyz, given.izz},
        0};
      const std::string wrong = logic_.set_payload(given.link, payload);
      response->success = wrong.empty();
      response->message = wrong.empty() ? std::to_string(given.mass) + " kg are taken" : wrong;
      response->joint_names = joints;
    });
  set_gravity_ = node->create_service<SetGravity>(
    "~/set_gravity",
    [this, joints](
      const SetGravity::Request::SharedPtr request, SetGravity::Response::SharedPtr response) {
      const auto & vector = request->gravity.vector;
      const std::string wrong =
        logic_.set_gravity(request->gravity.header.frame_id, {vector.x, vector.y, vector.z});
      response->success = wrong.empty();
      response->message = wrong.empty() ? "gravity is taken" : wrong;
      response->joint_names = joints;
    });
  publisher_ = node->create_publisher<State>("~/dynamics_state", rclcpp::SystemDefaultsQoS());
  open(torques_, "~/external_torques", rclcpp::SystemDefaultsQoS());
  open(wrench_, "~/tip_wrench", rclcpp::SystemDefaultsQoS());
  open(contact_, "~/contact", rclcpp::QoS(1).transient_local());
  is_contact_pending_ = false;
  monitor_timer_ = node->create_wall_timer(
    kMonitorPeriod, [this, is_sensing = params_.sensing != "none", logger = node->get_logger(),
                     states = publisher_, torques = torques_.publisher,
                     wrench = wrench_.publisher, contact = contact_.publisher]() {
      if (const robodyn::Fault fault = logic_.take_fault()) {
        RCLCPP_ERROR(logger, "fault: %s", logic_.text_of(fault).c_str());
      }
      const auto warn_of = [this, &logger](const char * topic, const robodyn::Fault & refusal) {
        if (!refusal) { return; }
        RCLCPP_WARN(logger, "%s refused: %s", topic, logic_.text_of(refusal).c_str());
      };
      warn_of("reference", logic_.take_refused_setpoint());
      warn_of("target_pose", logic_.take_refused_target());
      warn_of("target_wrench", logic_.take_refused_wrench());
      is_watched_ = states->get_subscription_count() > 0;
      torques_.has_subscribers = torques->get_subscription_count() > 0;
      wrench_.has_subscribers = wrench->get_subscription_count() > 0;
      const bool has_contact_subscribers = contact->get_subscription_count() > 0;
      logic_.set_watched(
        is_sensing || is_watched_ || torques_.has_subscribers || wrench_.has_subscribers ||
        has_contact_subscribers);
    });
  state_publisher_ = realtime_publisher<State>(publisher_, state_);
}

void InverseDynamicsController::take_commands()
{
  const auto node = get_node();
  subscription_ = node->create_subscription<Trajectory>(
    "~/reference", rclcpp::SystemDefaultsQoS(),
    [this](const Trajectory::ConstSharedPtr message) { take_setpoint(*message); });
  target_pose_ = node->create_subscription<Pose>(
    "~/target_pose", rclcpp::SystemDefaultsQoS(),
    [this](const Pose::ConstSharedPtr message) { take_target_pose(*message); });
  target_wrench_ = node->create_subscription<Wrench>(
    "~/target_wrench", rclcpp::SystemDefaultsQoS(),
    [this](const Wrench::ConstSharedPtr message) { take_target_wrench(*message); });
  enable_ = node->create_service<std_srvs::srv::SetBool>(
    "~/enable", [this](
                  const std_srvs::srv::SetBool::Request::SharedPtr request,
                  std_srvs::srv::SetBool::Response::SharedPtr response) {
      const std::string wrong = logic_.set_enabled(request->data);
      response->success = wrong.empty();
      response->message = !wrong.empty() ? wrong
                        : request->data  ? "it commands while it is active"
                                         : "it brakes, and leaves the stop command";
    });
  weigh_payload_ = node->create_service<std_srvs::srv::Trigger>(
    "~/weigh_payload", [this](
                         const std_srvs::srv::Trigger::Request::SharedPtr,
                         std_srvs::srv::Trigger::Response::SharedPtr response) {
      const std::string wrong = logic_.weigh();
      response->success = wrong.empty();
      response->message = wrong.empty() ? "weighing what the hand takes within a second" : wrong;
    });
}

void InverseDynamicsController::take_setpoint(const Trajectory & trajectory)
{
  std::string wrong;
  if (is_in_chained_mode()) {
    wrong = "another controller is chained to this one";
  } else if (trajectory.points.empty()) {
    wrong = logic_.cancel();
  } else if (trajectory.points.size() != 1) {
    wrong =
      "allowed: one point, or none to cancel; for a trajectory chain "
      "joint_trajectory_controller";
  } else {
    const auto & point = trajectory.points.front();
    wrong = logic_.set_setpoint(
      trajectory.joint_names, point.positions, point.velocities, point.accelerations);
  }
  warn<Trajectory>("reference", wrong);
}

void InverseDynamicsController::take_target_pose(const Pose & message)
{
  const auto & at = message.pose.position;
  const auto & turned = message.pose.orientation;
  warn<Pose>(
    "target_pose",
    logic_.set_target_pose(
      message.header.frame_id, {at.x, at.y, at.z}, {turned.x, turned.y, turned.z, turned.w}));
}

void InverseDynamicsController::take_target_wrench(const Wrench & message)
{
  const auto & force = message.wrench.force;
  const auto & moment = message.wrench.torque;
  warn<Wrench>(
    "target_wrench",
    logic_.set_target_wrench(
      message.header.frame_id, {force.x, force.y, force.z, moment.x, moment.y, moment.z}));
}

template <typename Message>
void InverseDynamicsController::warn(const char * topic, const std::string & why)
{
  if (why.empty()) { return; }
  RCLCPP_WARN_THROTTLE(
    get_node()->get_logger(), *get_node()->get_clock(), 1000, "%s refused: %s", topic,
    why.c_str());
}

// --- activate and deactivate -------------------------------------------------------------------

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_activate(
  const rclcpp_lifecycle::State &)
{
  for (const auto & reference : ordered_exported_reference_interfaces_) {
    (void)reference->set_value(kNaN);
  }
  logic_.activate();
  return CallbackReturn::SUCCESS;
}

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_deactivate(
  const rclcpp_lifecycle::State &)
{
  if (logic_.deactivate(command_.data())) { write_commands(); }
  for (const auto & estimate : ordered_exported_state_interfaces_) {
    (void)estimate->set_value(kNaN);
  }
  return CallbackReturn::SUCCESS;
}

// --- the real-time loop ------------------------------------------------------------------------

std::vector<hardware_interface::CommandInterface::SharedPtr>
InverseDynamicsController::on_export_reference_interfaces_list()
{
  std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
  if (is_observing()) { return interfaces; }
  for (const char * const kind :
       {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
        hardware_interface::HW_IF_ACCELERATION}) {
    for (const std::string & joint : params_.joints) {
      interfaces.push_back(std::make_shared<hardware_interface::CommandInterface>(
        std::string(get_node()->get_name()) + "/" + joint, kind));
      (void)interfaces.back()->set_value(kNaN);
    }
  }
  return interfaces;
}

std::vector<hardware_interface::StateInterface::SharedPtr>
InverseDynamicsController::on_export_state_interfaces_list()
{
  std::vector<hardware_interface::StateInterface::SharedPtr> interfaces;
  if (params_.sensing == "none") { return interfaces; }
  const auto add = [&interfaces](const std::string & prefix, const char * kind) {
    interfaces.push_back(std::make_shared<hardware_interface::StateInterface>(prefix, kind));
    (void)interfaces.back()->set_value(kNaN);
  };
  const std::string name = get_node()->get_name();
  for (const char * const axis :
       {"force.x", "force.y", "force.z", "torque.x", "torque.y", "torque.z"}) {
    add(name, axis);  // the names of ros2_control's semantic component of a force-torque sensor
  }
  for (const std::string & joint : params_.joints) { add(name + "/" + joint, "external_torque"); }
  return interfaces;
}

bool InverseDynamicsController::on_set_chained_mode(bool)
{
  return true;
}

InverseDynamicsController::return_type
InverseDynamicsController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  if (is_observing()) { return return_type::OK; }
  logic_.sample_setpoint(period.seconds(), reference_.data());
  for (std::size_t k = 0; k < 3 * n_; ++k) {
    (void)ordered_exported_reference_interfaces_[k]->set_value(reference_[k]);
  }
  return return_type::OK;
}

InverseDynamicsController::return_type InverseDynamicsController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  for (std::size_t i = 0; i < n_; ++i) {
    position_[i] = value_or_nan(state_interfaces_[i].get_optional());
    velocity_[i] = value_or_nan(state_interfaces_[n_ + i].get_optional());
    if (is_observing()) {
      command_[i] = value_or_nan(state_interfaces_[2 * n_ + i].get_optional());
    }
  }
  const double step = period.seconds();
  if (is_observing()) {
    logic_.observe(step, position_.data(), velocity_.data(), command_.data());
  } else {
    for (std::size_t k = 0; k < 3 * n_; ++k) {
      reference_[k] =
        value_or_nan(ordered_exported_reference_interfaces_[k]->get_optional<double>());
    }
    const bool has_command =
      logic_.update(step, position_.data(), velocity_.data(), reference_.data(), command_.data());
    if (has_command) { write_commands(); }
  }
  export_estimate();
  publish_contacts(time);
  publish_state(time, period);
  return return_type::OK;
}

void InverseDynamicsController::write_commands()
{
  for (std::size_t i = 0; i < n_; ++i) { (void)command_interfaces_[i].set_value(command_[i]); }
}

void InverseDynamicsController::export_estimate()
{
  if (ordered_exported_state_interfaces_.empty()) { return; }
  const bool has_estimate = logic_.contact_watch().has_estimate();
  robodyn::Vector6 wrench;
  wrench.fill(kNaN);
  if (has_estimate) { wrench = logic_.tip_wrench().wrench(); }
  for (std::size_t k = 0; k < 6 + n_; ++k) {
    const double torque = k < 6 || !has_estimate ? kNaN : logic_.contact_watch().torque()[k - 6];
    (void)ordered_exported_state_interfaces_[k]->set_value(k < 6 ? wrench[k] : torque);
  }
}

void InverseDynamicsController::publish_state(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  since_published_ += period.seconds();
  if (!is_watched_ || since_published_ < state_period_) { return; }
  since_published_ = 0.0;
  state_.header.stamp = time;
  state_.cycle_time = period.seconds();
  fill(state_, logic_.pipeline(), logic_.contact_watch(), position_, velocity_);
  (void)state_publisher_->try_publish(state_);
}

void InverseDynamicsController::publish_contacts(const rclcpp::Time & time)
{
  const ContactWatch & watch = logic_.contact_watch();
  if (logic_.contact_event() != robodyn::ContactEvent::none) {
    contact_.message.header.stamp = time;
    fill(contact_.message, watch, links_);
    is_contact_pending_ = true;
  }
  // A contact is published once: try again where the previous message is still being sent.
  if (is_contact_pending_) {
    is_contact_pending_ = !contact_.realtime->try_publish(contact_.message);
  }
  if (!watch.has_estimate()) { return; }
  if (torques_.has_subscribers) {
    torques_.message.header.stamp = time;
    torques_.message.effort = watch.torque();  // same size: allocates nothing
    (void)torques_.realtime->try_publish(torques_.message);
  }
  if (wrench_.has_subscribers) {
    wrench_.message.header.stamp = time;
    fill(wrench_.message, logic_.tip_wrench());
    (void)wrench_.realtime->try_publish(wrench_.message);
  }
}

}  // namespace robodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  robodyn_controllers::InverseDynamicsController,
  controller_interface::ChainableControllerInterface)
