// SPDX-License-Identifier: Apache-2.0
// The pendulum as a library, as robodyn export --shared makes one of an arm.
#include "pendulum.hpp"

const robodyn_model * robodyn_model_v5(void)
{
  return &pendulum::model();
}
