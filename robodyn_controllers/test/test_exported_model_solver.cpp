// SPDX-License-Identifier: Apache-2.0
// The plugin of inverse_dynamics_solver, loaded as pluginlib does, with pendulums as models.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "inverse_dynamics_solver/inverse_dynamics_solver.h"
#include "pluginlib/class_loader.hpp"
#include "rclcpp/rclcpp.hpp"

#include "rubbing_pendulum.hpp"

using inverse_dynamics_solver::InverseDynamicsSolver;

namespace
{

constexpr char kName[] = "robodyn_controllers::ExportedModelSolver";
constexpr char kDescription[] =
  "<robot name='pendulum'><link name='base'/><link name='arm'/><link name='bob'/>"
  "<joint name='swing' type='revolute'><parent link='base'/><child link='arm'/>"
  "<axis xyz='0 -1 0'/><limit lower='-3' upper='3' effort='40' velocity='4'/></joint>"
  "<joint name='end' type='fixed'><parent link='arm'/><child link='bob'/>"
  "<origin xyz='0.5 0 0'/></joint></robot>";

// A solver and a node with its parameters, below the namespace dynamics.
struct Solver
{
  explicit Solver(std::vector<rclcpp::Parameter> parameters = {})
  {
    parameters.insert(parameters.begin(), {"dynamics.model_library", PENDULUM_LIBRARY});
    rclcpp::NodeOptions options;
    options.parameter_overrides(parameters).automatically_declare_parameters_from_overrides(true);
    node = std::make_shared<rclcpp::Node>("solver", options);
  }

  void initialize(const std::string & description = kDescription)
  {
    solver->initialize(node->get_node_parameters_interface(), "dynamics", description);
  }

  class_loader::ClassLoader loader{SOLVER_LIBRARY};
  std::shared_ptr<InverseDynamicsSolver> solver =
    loader.createInstance<InverseDynamicsSolver>(kName);
  rclcpp::Node::SharedPtr node;
};

struct Ros
{
  Ros() { rclcpp::init(0, nullptr); }
  ~Ros() { rclcpp::shutdown(); }
};

// Return the words of an exception; empty: there is none.
std::string refusal(const std::function<void()> & call)
{
  try {
    call();
  } catch (const std::exception & error) {
    return error.what();
  }
  return "";
}

std::string refusal_of(
  std::vector<rclcpp::Parameter> parameters, const std::string & description = kDescription)
{
  const Ros ros;
  Solver arm(std::move(parameters));
  return refusal([&] { arm.initialize(description); });
}

bool says(const std::string & text, const std::string & part)
{
  return text.find(part) != std::string::npos;
}

Eigen::VectorXd vector(double value)
{
  return Eigen::VectorXd::Constant(1, value);
}

}  // namespace

TEST(ExportedModelSolver, TermsAreThoseOfTheModel)
{
  const Ros ros;
  Solver arm({{"dynamics.model_library", RUBBING_LIBRARY}, {"dynamics.friction_velocity", 0.2}});
  arm.initialize();
  const Eigen::VectorXd q = vector(0.3), qd = vector(0.4), qdd = vector(0.5);
  const double pushed = rubbing::of_speed(0.4), held = pendulum::held(0.3);
  EXPECT_NEAR(arm.solver->getInertiaMatrix(q)(0, 0), pendulum::kInertia, 1e-12);
  EXPECT_NEAR(arm.solver->getCoriolisVector(q, qd)(0), pushed, 1e-12);
  EXPECT_NEAR(arm.solver->getGravityVector(q)(0), held, 1e-12);
  EXPECT_NEAR(
    arm.solver->getFrictionVector(qd)(0), rubbing::friction(0.4, std::tanh(0.4 / 0.2)), 1e-12);
  EXPECT_NEAR(
    arm.solver->getTorques(q, qd, qdd)(0), pendulum::kInertia * 0.5 + pushed + held, 1e-12);
}

TEST(ExportedModelSolver, GravityOfTheParameterIsTaken)
{
  const Ros ros;
  Solver moon({{"dynamics.gravity", std::vector<double>{0.0, 0.0, -1.62}}});
  moon.initialize();
  const double share = 1.62 / pendulum::kGravity;
  EXPECT_NEAR(moon.solver->getGravityVector(vector(0.3))(0), share * pendulum::held(0.3), 1e-12);
}

TEST(ExportedModelSolver, DescriptionOfTheNodeServesWhereNoneIsGiven)
{
  EXPECT_EQ(refusal_of({{"robot_description", kDescription}}, ""), "");
  EXPECT_TRUE(says(refusal_of({}, ""), "'robot_description' is not initialized"));
  EXPECT_EQ(refusal_of({{"dynamics.check_description", false}}, ""), "");
}

TEST(ExportedModelSolver, AnotherRobotIsRefused)
{
  std::string longer = kDescription;
  longer.replace(longer.find("0.5 0 0"), 7, "0.6 0 0");
  const std::string wrong = refusal_of({}, longer);
  EXPECT_TRUE(says(wrong, "parameter dynamics.model_library: the tip of robot_description"));
}

TEST(ExportedModelSolver, AnotherChainIsRefusedByItsParameter)
{
  EXPECT_EQ(refusal_of({{"dynamics.root", "base"}, {"dynamics.tip", "bob"}}), "");
  EXPECT_EQ(
    refusal_of({{"dynamics.tip", "tool0"}}),
    "parameter dynamics.tip: 'tool0'; allowed: that of model_library, 'bob'");
  EXPECT_TRUE(says(refusal_of({{"dynamics.root", "world"}}), "dynamics.root: 'world'"));
}

TEST(ExportedModelSolver, ParametersThatItCannotUseAreNamed)
{
  EXPECT_TRUE(says(
    refusal_of({{"dynamics.model_library", "/no/arm.so"}}), "dynamics.model_library '/no/a"));
  EXPECT_TRUE(says(
    refusal_of({{"dynamics.gravity", std::vector<double>{9.81}}}),
    "dynamics.gravity: 1 numbers; allowed: 3"));
  EXPECT_TRUE(says(
    refusal_of({{"dynamics.friction_velocity", 0.0}}),
    "dynamics.friction_velocity: 0.000000; allowed: above 0"));
  EXPECT_TRUE(says(refusal_of({{"dynamics.friction_velocity", "fast"}}), "friction_velocity"));
  const Ros ros;
  Solver arm;
  EXPECT_TRUE(says(
    refusal([&] { arm.solver->initialize(nullptr, "dynamics", kDescription); }),
    "dynamics.model_library"));
}

TEST(ExportedModelSolver, AnswersBeforeInitializationAndOfOtherSizesAreRefused)
{
  const Ros ros;
  Solver arm;
  EXPECT_EQ(
    refusal([&] { arm.solver->getGravityVector(vector(0.0)); }), "Solver is not initialized");
  arm.initialize();
  EXPECT_EQ(
    refusal([&] { arm.solver->getCoriolisVector(vector(0.0), Eigen::VectorXd::Zero(2)); }),
    "joint_velocities: 2 numbers; allowed: 1, one for each joint of model_library");
}

TEST(ExportedModelSolver, ARefusalLeavesTheSolverAsItWas)
{
  const Ros ros;
  Solver arm;
  arm.initialize();
  EXPECT_NE(refusal([&] { arm.initialize("no URDF"); }), "");
  EXPECT_NEAR(arm.solver->getGravityVector(vector(0.3))(0), pendulum::held(0.3), 1e-12);
}
