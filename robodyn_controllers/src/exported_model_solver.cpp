// SPDX-License-Identifier: Apache-2.0
// An exported model as a plugin of inverse_dynamics_solver, for what is written against that
// interface. Vectors are in the order of the library's joints, base to tip.
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "inverse_dynamics_solver/exceptions.h"
#include "inverse_dynamics_solver/inverse_dynamics_solver.h"
#include "pluginlib/class_list_macros.hpp"
#include "rclcpp/parameter.hpp"

#include "robodyn_controllers/command_pipeline_parameters.hpp"
#include "robodyn_controllers/controller_logic.hpp"
#include "robodyn_controllers/described_kinematics.hpp"
#include "robodyn_controllers/model_library.hpp"

namespace robodyn_controllers
{
namespace
{

using inverse_dynamics_solver::InvalidParameterValueException;
using inverse_dynamics_solver::ParameterUninitializedException;
using NodeParameters = rclcpp::node_interfaces::NodeParametersInterface;

// A node's parameters below a prefix. One of another type is refused by rclcpp, with its name.
struct Given
{
  template <typename Value>
  std::optional<Value> find(const std::string & name) const
  {
    rclcpp::Parameter found;
    if (parameters == nullptr || !parameters->get_parameter(prefix + name, found)) {
      return std::nullopt;
    }
    return found.get_value<Value>();
  }

  std::string required(const std::string & name) const
  {
    if (const auto found = find<std::string>(name)) { return *found; }
    throw ParameterUninitializedException(prefix + name);
  }

  // What is wrong begins with the name of the parameter.
  [[noreturn]] void refuse(const std::string & wrong) const
  {
    throw InvalidParameterValueException("parameter " + prefix + wrong);
  }

  void check_link(const std::string & name, const std::string & link) const
  {
    const std::string found = find<std::string>(name).value_or(link);
    if (found != link) {
      refuse(name + ": '" + found + "'; allowed: that of model_library, '" + link + "'");
    }
  }

  NodeParameters::ConstSharedPtr parameters;
  std::string prefix;
};

struct Arm
{
  std::unique_ptr<const ModelLibrary> library;
  Vector load, weightless;
  double friction_velocity;
};

Arm checked_arm(const Given & given, const std::string & robot_description)
{
  Arm arm;
  const std::string path = given.required("model_library");
  try {
    arm.library = std::make_unique<ModelLibrary>(path);
  } catch (const std::runtime_error & error) {
    given.refuse(error.what());
  }
  const robodyn_model & model = arm.library->model();
  // As the plugin with KDL calls the ends of the chain.
  given.check_link("root", model.base_link);
  given.check_link("tip", model.tip_links[0]);
  if (given.find<bool>("check_description").value_or(true)) {
    const Given of_node{given.parameters, ""};
    const std::string difference = difference_of_kinematics(
      model,
      robot_description.empty() ? of_node.required("robot_description") : robot_description);
    if (!difference.empty()) { given.refuse("model_library: " + difference); }
  }
  arm.load = arm.weightless = first_load(model);
  checked_load(model, {}, {0.0, 0.0, 0.0}, arm.weightless);
  if (const auto gravity = given.find<std::vector<double>>("gravity")) {
    const std::string wrong = checked_load(model, {}, *gravity, arm.load);
    if (!wrong.empty()) { given.refuse(wrong); }
  }
  arm.friction_velocity = given.find<double>("friction_velocity")
                            .value_or(command_pipeline::Params().friction_velocity);
  if (!(arm.friction_velocity > 0.0)) {
    given.refuse(
      "friction_velocity: " + std::to_string(arm.friction_velocity) + "; allowed: above 0");
  }
  return arm;
}

}  // namespace

class ExportedModelSolver : public inverse_dynamics_solver::InverseDynamicsSolver
{
public:
  // Throws, with the name of a parameter; the solver is then as it was.
  void initialize(
    NodeParameters::ConstSharedPtr parameters, const std::string & param_namespace,
    const std::string & robot_description) override
  {
    const std::string prefix = param_namespace.empty() ? "" : param_namespace + ".";
    arm_ = checked_arm({std::move(parameters), prefix}, robot_description);
  }

  Eigen::MatrixXd getInertiaMatrix(const Eigen::VectorXd & q) const override
  {
    const robodyn_model & model = checked({{"joint_positions", q}});
    Eigen::MatrixXd mass(q.size(), q.size());  // by columns, the model's by rows: symmetric
    model.mass_matrix(arm_->load.data(), q.data(), mass.data());
    return mass;
  }

  // Of the arm without gravity: no difference of large torques.
  Eigen::VectorXd getCoriolisVector(
    const Eigen::VectorXd & q, const Eigen::VectorXd & qd) const override
  {
    const robodyn_model & model = checked({{"joint_positions", q}, {"joint_velocities", qd}});
    const Eigen::VectorXd at_rest = Eigen::VectorXd::Zero(q.size());
    Eigen::VectorXd tau(q.size());
    model.inverse_dynamics(
      arm_->weightless.data(), 1, q.data(), qd.data(), at_rest.data(), tau.data());
    return tau;
  }

  Eigen::VectorXd getGravityVector(const Eigen::VectorXd & q) const override
  {
    const robodyn_model & model = checked({{"joint_positions", q}});
    Eigen::VectorXd tau(q.size());
    model.gravity_torque(arm_->load.data(), q.data(), tau.data());
    return tau;
  }

  // Friction that grows with the transmitted torque is that of none, which the interface lacks.
  Eigen::VectorXd getFrictionVector(const Eigen::VectorXd & qd) const override
  {
    const robodyn_model & model = checked({{"joint_velocities", qd}});
    const Eigen::Index n = qd.size(), m = model.coupled_drives;
    Eigen::VectorXd velocity(n + m);
    velocity.head(n) = qd;
    for (Eigen::Index k = 0; k < m; ++k) {
      velocity[n + k] = Eigen::Map<const Eigen::VectorXd>(model.coupling + k * n, n).dot(qd);
    }
    const Eigen::VectorXd direction = (velocity / arm_->friction_velocity).array().tanh();
    const Eigen::VectorXd no_torque = Eigen::VectorXd::Zero(qd.size());
    Eigen::VectorXd tau(qd.size());
    model.friction_torque(qd.data(), direction.data(), no_torque.data(), tau.data());
    return tau;
  }

  Eigen::VectorXd getTorques(
    const Eigen::VectorXd & q, const Eigen::VectorXd & qd,
    const Eigen::VectorXd & qdd) const override
  {
    const robodyn_model & model =
      checked({{"joint_positions", q}, {"joint_velocities", qd}, {"joint_accelerations", qdd}});
    Eigen::VectorXd tau(q.size());
    model.inverse_dynamics(arm_->load.data(), 1, q.data(), qd.data(), qdd.data(), tau.data());
    return tau;
  }

private:
  struct Argument
  {
    const char * name;
    const Eigen::VectorXd & values;
  };

  // Return the model; refuse arguments of another size than its joints.
  const robodyn_model & checked(std::initializer_list<Argument> arguments) const
  {
    if (!arm_) { throw inverse_dynamics_solver::UninitializedException(); }
    const robodyn_model & model = arm_->library->model();
    for (const auto & [name, values] : arguments) {
      if (values.size() != model.joints) {
        throw std::invalid_argument(
          std::string(name) + ": " + std::to_string(values.size()) + " numbers; allowed: " +
          std::to_string(model.joints) + ", one for each joint of model_library");
      }
    }
    return model;
  }

  std::optional<Arm> arm_;
};

}  // namespace robodyn_controllers

PLUGINLIB_EXPORT_CLASS(
  robodyn_controllers::ExportedModelSolver, inverse_dynamics_solver::InverseDynamicsSolver)
