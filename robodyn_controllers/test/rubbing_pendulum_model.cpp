// SPDX-License-Identifier: Apache-2.0
// The pendulum with friction as a library.
#include "rubbing_pendulum.hpp"

const robodyn_model * robodyn_model_v5(void)
{
  return &rubbing::model();
}
