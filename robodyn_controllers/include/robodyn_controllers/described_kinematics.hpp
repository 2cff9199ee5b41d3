// SPDX-License-Identifier: Apache-2.0
// Comparison of a model's kinematics with those of a robot description.
#ifndef ROBODYN_CONTROLLERS__DESCRIBED_KINEMATICS_HPP_
#define ROBODYN_CONTROLLERS__DESCRIBED_KINEMATICS_HPP_

#include <string>
#include <vector>

#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

// Return as text how a model's chain differs from that of a URDF between the same links: in its
// joints, or by more than a micrometre or microradian in the pose of the tip; empty: not at all.
std::string difference_of_kinematics(const robodyn_model & model, const std::string & urdf);

// Return the link that each joint moves; empty: the description has no such joint.
std::vector<std::string> moved_links(
  const std::string & urdf_text, const std::vector<std::string> & joints);

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__DESCRIBED_KINEMATICS_HPP_
