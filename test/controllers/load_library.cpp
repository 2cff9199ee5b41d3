// SPDX-License-Identifier: Apache-2.0
// Says the first joint of a library, or why it is not loaded.

#include <cstdio>
#include "robodyn_controllers/model_library.hpp"
int main(int, char ** arguments)
{
  try {
    const robodyn_controllers::ModelLibrary library(arguments[1]);
    std::puts(library.joint_names().front().c_str());
  } catch (const std::runtime_error & error) {
    std::puts(error.what());
  }
}
