// SPDX-License-Identifier: Apache-2.0
// Comparison of a model with its robot description.
#include <gtest/gtest.h>

#include <string>

#include "robodyn_controllers/described_kinematics.hpp"

#include "pendulum.hpp"

namespace
{

std::string urdf(const std::string & joint, const std::string & axis, double length)
{
  return "<robot name='pendulum'><link name='base'/><link name='rod'/><link name='bob'/>"
         "<joint name='" +
         joint +
         "' type='revolute'><parent link='base'/><child link='rod'/>"
         "<axis xyz='" +
         axis +
         "'/>"
         "<limit lower='-3' upper='3' effort='40' velocity='4'/></joint>"
         "<joint name='end' type='fixed'><parent link='rod'/><child link='bob'/>"
         "<origin xyz='" +
         std::to_string(length) + " 0 0'/></joint></robot>";
}

}  // namespace

TEST(DescribedKinematics, TheSameArmIsFound)
{
  EXPECT_EQ(
    robodyn_controllers::difference_of_kinematics(
      pendulum::model(), urdf("swing", "0 -1 0", 0.5)),
    "");
}

TEST(DescribedKinematics, EveryTipIsCompared)
{
  static const char * const tips[] = {"bob", "rod"};
  robodyn_model two = pendulum::model();  // both at the bob
  two.tips = 2;
  two.tip_links = tips;
  const std::string found =
    robodyn_controllers::difference_of_kinematics(two, urdf("swing", "0 -1 0", 0.5));
  EXPECT_NE(found.find("'rod'"), std::string::npos) << found;
}

TEST(DescribedKinematics, AnotherArmIsRefused)
{
  const auto difference = [](const std::string & text) {
    return robodyn_controllers::difference_of_kinematics(pendulum::model(), text);
  };
  EXPECT_NE(difference(urdf("swing", "0 -1 0", 0.501)), "");
  EXPECT_NE(difference(urdf("swing", "0 1 0", 0.5)), "");
  EXPECT_NE(difference(urdf("other", "0 -1 0", 0.5)), "");
  EXPECT_NE(difference("<robot name='x'><link name='base'/></robot>"), "");
  EXPECT_NE(difference("no URDF"), "");
}
