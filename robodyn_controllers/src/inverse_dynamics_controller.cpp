// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/inverse_dynamics_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>

#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"

#include "robodyn_controllers/described_kinematics.hpp"

namespace robodyn_controllers
{
namespace
{

constexpr std::chrono::milliseconds kLongestWait{200};
constexpr std::chrono::milliseconds kWatching{200};  // between looks for subscribers

double value_or_nan(const std::optional<double> & value) {return value.value_or(kNaN);}

}  // namespace

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_init()
{
  try {
    param_listener_ = std::make_shared<ParamListener>(get_node());
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
    {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY})
  {
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
    params_ = param_listener_->get_params();
    n_ = params_.joints.size();
    library_ = std::make_unique<ModelLibrary>(params_.model_library, params_.joints);
    const robodyn_model & model = library_->model();
    if (params_.check_description) {
      const std::string difference = difference_of_kinematics(model, get_robot_description());
      if (!difference.empty()) {throw std::runtime_error("model_library: " + difference);}
    }
    const Settings changes = checked_settings(params_, model);
    scale_ = each_joint("command_scale", params_.command_scale, n_);
    for (const double scale : scale_) {
      if (!std::isfinite(scale) || scale == 0.0) {
        throw std::runtime_error("parameter command_scale; allowed: each finite, not 0");
      }
    }
    pipeline_ = std::make_unique<CommandPipeline>(model, changes.law, changes.safety);
    setpoint_timeout_ = changes.safety.state_timeout;
    payload_ = {};
    gravity_ = params_.gravity.empty() ?
      std::vector<double>(model.gravity, model.gravity + 3) : params_.gravity;
    const std::string wrong = change_load(payload_, gravity_);
    if (!wrong.empty()) {throw std::runtime_error("parameter " + wrong);}
    position_.assign(n_, kNaN);
    velocity_.assign(n_, kNaN);
    reference_.assign(3 * n_, kNaN);
    setpoint_.assign(3 * n_, kNaN);
    state_ = state_message(params_.joints);
    make_services();
    RCLCPP_INFO(
      get_node()->get_logger(), "model of %zu joints to '%s' by %s, kinematics %.12s", n_,
      model.tip_link, model.generator, model.kinematics);
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
  set_payload_.reset();
  set_gravity_.reset();
  enable_.reset();
  watching_.reset();
  state_publisher_.reset();
  publisher_.reset();
  pipeline_.reset();
  library_.reset();
  return CallbackReturn::SUCCESS;
}

void InverseDynamicsController::make_services()
{
  const auto node = get_node();
  parameters_checked_ = node->add_on_set_parameters_callback(
    [this](const std::vector<rclcpp::Parameter> & parameters) {
      return checked_parameters(parameters, n_);
    });
  parameters_taken_ = node->add_post_set_parameters_callback(
    [this](const std::vector<rclcpp::Parameter> &) {
      const std::lock_guard<std::mutex> lock(changing_);
      const Params params = param_listener_->get_params();
      try {
        changes_.put(checked_settings(params, library_->model()));
      } catch (const std::exception & error) {
        RCLCPP_ERROR(get_node()->get_logger(), "parameters are not applied: %s", error.what());
      }
    });
  subscription_ = node->create_subscription<Trajectory>(
    "~/reference", rclcpp::SystemDefaultsQoS(),
    [this](const Trajectory::ConstSharedPtr message) {take_setpoint(*message);});
  set_payload_ = node->create_service<SetPayload>(
    "~/set_payload",
    [this](
      const SetPayload::Request::SharedPtr request, SetPayload::Response::SharedPtr response) {
      const auto & given = request->payload;
      const robodyn_payload payload{given.mass,
        {given.center_of_mass.x, given.center_of_mass.y, given.center_of_mass.z},
        {given.ixx, given.ixy, given.ixz, given.iyy, given.iyz, given.izz}};
      const std::lock_guard<std::mutex> lock(changing_);
      const std::string tip = library_->model().tip_link;
      std::string wrong = given.link.empty() || given.link == tip ?
        change_load(payload, gravity_) : "payload link '" + given.link + "'; allowed: '" + tip + "'";
      response->success = wrong.empty();
      response->message = wrong.empty() ? std::to_string(given.mass) + " kg on " + tip : wrong;
      response->joint_names = params_.joints;
    });
  set_gravity_ = node->create_service<SetGravity>(
    "~/set_gravity",
    [this](
      const SetGravity::Request::SharedPtr request, SetGravity::Response::SharedPtr response) {
      const auto & vector = request->gravity.vector;
      const std::string & frame = request->gravity.header.frame_id;
      const std::lock_guard<std::mutex> lock(changing_);
      const std::string base = library_->model().base_link;
      const std::string wrong = frame.empty() || frame == base ?
        change_load(payload_, {vector.x, vector.y, vector.z}) :
        "gravity frame_id '" + frame + "'; allowed: the base link '" + base + "', or empty";
      response->success = wrong.empty();
      response->message = wrong.empty() ? "gravity is taken" : wrong;
      response->joint_names = params_.joints;
    });
  enable_ = node->create_service<std_srvs::srv::SetBool>(
    "~/enable",
    [this](
      const std_srvs::srv::SetBool::Request::SharedPtr request,
      std_srvs::srv::SetBool::Response::SharedPtr response) {
      is_enabled_ = request->data;
      response->success = true;
      response->message = request->data ?
        "it commands while it is active" : "it brakes, and leaves the stop command";
    });
  publisher_ = node->create_publisher<State>("~/dynamics_state", rclcpp::SystemDefaultsQoS());
  watching_ = node->create_wall_timer(
    kWatching, [this]() {is_watched_ = publisher_->get_subscription_count() > 0;});
  state_publisher_ = std::make_unique<realtime_tools::RealtimePublisher<State>>(publisher_);
  state_publisher_->lock();
  state_publisher_->msg_ = state_;  // so that its memory is there
  state_publisher_->unlock();
}

std::string InverseDynamicsController::change_load(
  const robodyn_payload & payload, const std::vector<double> & gravity)
{
  Vector load(pipeline_->model().load_size());
  const std::string wrong = checked_load(library_->model(), payload, gravity, load);
  if (!wrong.empty()) {return wrong;}
  // While it is inactive, the next activation takes it.
  bool is_taken = true;
  const std::uint64_t before = load_.results();
  load_.put(load);
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (is_active_ && load_.results() / 2 == before / 2) {
    if (std::chrono::steady_clock::now() > until) {
      return "no control cycle has taken the change in 0.2 s; the next one will";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (is_active_) {is_taken = load_.results() % 2 == 1;}
  if (!is_taken) {return "gravity would be beyond the effort limits where the arm is";}
  payload_ = payload;
  gravity_ = gravity;
  return "";
}

void InverseDynamicsController::take_setpoint(const Trajectory & trajectory)
{
  const auto refused = [this](const char * why) {
      RCLCPP_WARN_THROTTLE(
        get_node()->get_logger(), *get_node()->get_clock(), 1000, "reference refused: %s", why);
    };
  if (is_in_chained_mode()) {return refused("another controller is chained to this one");}
  if (trajectory.points.size() != 1) {
    return refused("allowed: one point; for a trajectory chain joint_trajectory_controller");
  }
  const auto & point = trajectory.points.front();
  const auto is_sized = [this](const std::vector<double> & values, bool may_be_empty) {
      return values.size() == n_ || (may_be_empty && values.empty());
    };
  if (trajectory.joint_names.size() != n_ || !is_sized(point.positions, false) ||
    !is_sized(point.velocities, true) || !is_sized(point.accelerations, true))
  {
    return refused("allowed: positions of every joint of the arm");
  }
  Vector setpoint(3 * n_, 0.0);
  std::vector<bool> is_named(n_, false);
  for (std::size_t i = 0; i < n_; ++i) {
    const auto found = std::find(
      params_.joints.begin(), params_.joints.end(), trajectory.joint_names[i]);
    if (found == params_.joints.end()) {return refused("a joint is not the arm's");}
    const auto joint = static_cast<std::size_t>(found - params_.joints.begin());
    if (is_named[joint]) {return refused("a joint is named twice");}
    is_named[joint] = true;
    setpoint[joint] = point.positions[i];
    if (!point.velocities.empty()) {setpoint[n_ + joint] = point.velocities[i];}
    if (!point.accelerations.empty()) {setpoint[2 * n_ + joint] = point.accelerations[i];}
  }
  const std::lock_guard<std::mutex> lock(changing_);
  new_setpoint_.put(setpoint);
}

// --- activate and deactivate -------------------------------------------------------------------

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_activate(
  const rclcpp_lifecycle::State &)
{
  new_setpoint_.take([](const Vector &) {return true;});
  has_setpoint_ = false;
  take_changes();
  for (const auto & reference : ordered_exported_reference_interfaces_) {
    (void)reference->set_value(kNaN);
  }
  is_active_ = true;
  return CallbackReturn::SUCCESS;
}

InverseDynamicsController::CallbackReturn InverseDynamicsController::on_deactivate(
  const rclcpp_lifecycle::State &)
{
  // One command: nothing may take time here. Whoever wants the arm braked first deactivates what
  // is chained to this controller, or disables it, and waits.
  if (pipeline_->is_enabled() && pipeline_->stop_command(now_)) {write_commands();}
  pipeline_->disable();
  is_active_ = false;
  return CallbackReturn::SUCCESS;
}

// --- the loop ----------------------------------------------------------------------------------

std::vector<hardware_interface::CommandInterface::SharedPtr>
InverseDynamicsController::on_export_reference_interfaces_list()
{
  std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
  for (const char * const kind :
    {hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
      hardware_interface::HW_IF_ACCELERATION})
  {
    for (const std::string & joint : params_.joints) {
      interfaces.push_back(
        std::make_shared<hardware_interface::CommandInterface>(
          std::string(get_node()->get_name()) + "/" + joint, kind));
      (void)interfaces.back()->set_value(kNaN);
    }
  }
  return interfaces;
}

bool InverseDynamicsController::on_set_chained_mode(bool) {return true;}

InverseDynamicsController::return_type InverseDynamicsController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  setpoint_age_ += period.seconds();
  new_setpoint_.take(
    [this](const Vector & setpoint) {
      std::copy(setpoint.begin(), setpoint.end(), setpoint_.begin());
      is_setpoint_at_rest_ = std::all_of(
        setpoint.begin() + static_cast<std::ptrdiff_t>(n_), setpoint.end(),
        [](double value) {return value == 0.0;});
      setpoint_age_ = 0.0;
      has_setpoint_ = true;
      return true;
    });
  // One that moves and is not followed by another has lost its publisher.
  const bool is_ended = !is_setpoint_at_rest_ && setpoint_age_ > setpoint_timeout_;
  for (std::size_t k = 0; k < 3 * n_; ++k) {
    // Until the next one it goes on at its velocity: it may come less often than the cycles do.
    const double ahead = k < n_ ? setpoint_age_ * setpoint_[n_ + k] : 0.0;
    (void)ordered_exported_reference_interfaces_[k]->set_value(
      has_setpoint_ && !is_ended ? setpoint_[k] + ahead : kNaN);
  }
  return return_type::OK;
}

InverseDynamicsController::return_type InverseDynamicsController::update_and_write_commands(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  now_ += std::max(period.seconds(), 0.0);
  take_changes();
  for (std::size_t i = 0; i < n_; ++i) {
    position_[i] = value_or_nan(state_interfaces_[i].get_optional());
    velocity_[i] = value_or_nan(state_interfaces_[n_ + i].get_optional());
  }
  for (std::size_t k = 0; k < 3 * n_; ++k) {
    reference_[k] = value_or_nan(ordered_exported_reference_interfaces_[k]->get_optional<double>());
  }
  bool has_command = false;
  if (pipeline_->is_stopping() && pipeline_->has_stopped()) {
    has_command = pipeline_->stop_command(now_);
    if (pipeline_->is_stop_command_sent()) {pipeline_->disable();}
  } else {
    const robodyn_reference reference{
      reference_.data(), reference_.data() + n_, reference_.data() + 2 * n_, nullptr};
    has_command = pipeline_->update(now_, position_.data(), velocity_.data(), reference);
  }
  if (has_command) {write_commands();}
  publish_state(time, period);
  return return_type::OK;
}

void InverseDynamicsController::take_changes()
{
  changes_.take(
    [this](const Settings & changes) {
      pipeline_->change_settings(changes.safety);
      pipeline_->change_law(changes.law);
      setpoint_timeout_ = changes.safety.state_timeout;
      return true;
    });
  load_.take([this](const Vector & load) {return pipeline_->change_load(load.data());});
  if (!is_enabled_) {
    pipeline_->begin_stop();
  } else if (!pipeline_->is_enabled()) {
    pipeline_->enable(now_);
  }
}

void InverseDynamicsController::write_commands()
{
  for (std::size_t i = 0; i < n_; ++i) {
    (void)command_interfaces_[i].set_value(scale_[i] * pipeline_->torque()[i]);
  }
}

void InverseDynamicsController::publish_state(
  const rclcpp::Time & time, const rclcpp::Duration & period)
{
  since_published_ += period.seconds();
  if (!is_watched_ || params_.state_publish_rate <= 0.0 ||
    since_published_ < 1.0 / params_.state_publish_rate)
  {
    return;
  }
  since_published_ = 0.0;
  state_.header.stamp = time;
  state_.cycle_time = period.seconds();
  fill(state_, *pipeline_, position_, velocity_);
  (void)state_publisher_->try_publish(state_);
}

}  // namespace robodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  robodyn_controllers::InverseDynamicsController,
  controller_interface::ChainableControllerInterface)
