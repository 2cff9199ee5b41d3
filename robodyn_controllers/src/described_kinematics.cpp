// SPDX-License-Identifier: Apache-2.0
#include "robodyn_controllers/described_kinematics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "urdf/model.h"

namespace robodyn_controllers
{
namespace
{

constexpr int kStates = 5;
constexpr double kTolerance = 1e-6;  // m or rad

// A pose (3, 4), row by row.
using Pose = std::array<double, 12>;

Pose product(const Pose & a, const Pose & b)
{
  Pose result{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      double sum = j == 3 ? a[4 * i + 3] : 0.0;
      for (std::size_t k = 0; k < 3; ++k) { sum += a[4 * i + k] * b[4 * k + j]; }
      result[4 * i + j] = sum;
    }
  }
  return result;
}

Pose of_urdf(const urdf::Pose & pose)
{
  const double x = pose.rotation.x, y = pose.rotation.y, z = pose.rotation.z, w = pose.rotation.w;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
          pose.position.x,         2 * (x * y + z * w),     1 - 2 * (x * x + z * z),
          2 * (y * z - x * w),     pose.position.y,         2 * (x * z - y * w),
          2 * (y * z + x * w),     1 - 2 * (x * x + y * y), pose.position.z};
}

Pose of_motion(const urdf::Joint & joint, double q)
{
  double x = joint.axis.x, y = joint.axis.y, z = joint.axis.z;
  const double length = std::sqrt(x * x + y * y + z * z);
  x /= length;
  y /= length;
  z /= length;
  if (joint.type == urdf::Joint::PRISMATIC) {
    return {1, 0, 0, q * x, 0, 1, 0, q * y, 0, 0, 1, q * z};
  }
  const double c = std::cos(q), s = std::sin(q), v = 1.0 - c;
  return {c + x * x * v,     x * y * v - z * s, x * z * v + y * s, 0,
          y * x * v + z * s, c + y * y * v,     y * z * v - x * s, 0,
          z * x * v - y * s, z * y * v + x * s, c + z * z * v,     0};
}

bool moves(const urdf::Joint & joint)
{
  return joint.type == urdf::Joint::REVOLUTE || joint.type == urdf::Joint::CONTINUOUS ||
         joint.type == urdf::Joint::PRISMATIC;
}

}  // namespace

std::string difference_of_kinematics(const robodyn_model & model, const std::string & urdf_text)
{
  urdf::Model robot;
  if (!robot.initString(urdf_text)) { return "robot_description is no URDF"; }
  const std::vector<std::string> names(model.joint_names, model.joint_names + model.joints);
  std::vector<bool> is_moving(names.size());
  for (int tip = 0; tip < model.tips; ++tip) {
    const std::string name = model.tip_links[tip];
    std::vector<urdf::JointConstSharedPtr> path;
    urdf::LinkConstSharedPtr link = robot.getLink(name);
    if (!link) { return "robot_description has no link '" + name + "'"; }
    while (link->name != model.base_link) {
      if (!link->parent_joint) {
        return "robot_description has no chain from '" + std::string(model.base_link) + "' to '" +
               name + "'";
      }
      path.push_back(link->parent_joint);
      link = robot.getLink(link->parent_joint->parent_link_name);
    }
    std::reverse(path.begin(), path.end());
    std::vector<std::size_t> joints;  // of the model, along the path
    for (const auto & joint : path) {
      if (!moves(*joint)) { continue; }
      const auto found = std::find(names.begin(), names.end(), joint->name);
      if (found == names.end()) {
        return "joint '" + joint->name + "' of robot_description is not the model's";
      }
      joints.push_back(static_cast<std::size_t>(found - names.begin()));
      is_moving[joints.back()] = true;
    }
    std::mt19937 generator(1);
    std::uniform_real_distribution<double> uniform(-2.0, 2.0);
    std::vector<double> q(names.size());
    for (int state = 0; state < kStates; ++state) {
      for (double & each : q) { each = uniform(generator); }
      Pose pose{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
      std::size_t i = 0;
      for (const auto & joint : path) {
        pose = product(pose, of_urdf(joint->parent_to_joint_origin_transform));
        if (moves(*joint)) { pose = product(pose, of_motion(*joint, q[joints[i++]])); }
      }
      std::array<double, 16> expected;
      model.forward_kinematics(tip, q.data(), expected.data());
      for (std::size_t k = 0; k < 12; ++k) {
        if (!(std::fabs(pose[k] - expected[k]) <= kTolerance)) {
          return "the tip of robot_description is elsewhere than the model's '" + name +
                 "': it was exported from another URDF";
        }
      }
    }
  }
  if (std::find(is_moving.begin(), is_moving.end(), false) != is_moving.end()) {
    return "robot_description has fewer joints on the chain than the model";
  }
  return "";
}

std::vector<std::string> moved_links(
  const std::string & urdf_text, const std::vector<std::string> & joints)
{
  urdf::Model robot;
  const bool is_described = !urdf_text.empty() && robot.initString(urdf_text);
  std::vector<std::string> links;
  for (const std::string & name : joints) {
    const auto joint = is_described ? robot.getJoint(name) : nullptr;
    links.push_back(joint ? joint->child_link_name : "");
  }
  return links;
}

}  // namespace robodyn_controllers
