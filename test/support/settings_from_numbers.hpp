// SPDX-License-Identifier: Apache-2.0
// Settings from the numbers of setting_numbers in controller_core.py.
#ifndef SETTINGS_FROM_NUMBERS_HPP_
#define SETTINGS_FROM_NUMBERS_HPP_

#include <cstddef>
#include <type_traits>

#include "robodyn_ros/core/settings.hpp"

// Read settings from a function that returns one number after the other.
template <typename Next>
robodyn::Settings settings_from_numbers(Next && next)
{
  const auto read = [&next](const char *, auto & to) {
    using To = std::decay_t<decltype(to)>;
    if constexpr (std::is_same_v<To, bool>) {
      to = next() != 0.0;
    } else if constexpr (std::is_arithmetic_v<To>) {
      to = next();
    } else if constexpr (std::is_enum_v<To>) {
      to = static_cast<To>(static_cast<int>(next()));
    } else {
      const auto size = static_cast<std::size_t>(next());
      if constexpr (std::is_same_v<To, robodyn::Vector>) { to.resize(size); }
      for (double & each : to) { each = next(); }
    }
  };
  robodyn::Settings settings;
  robodyn::for_each_setting(read, settings);
  read("", settings.position_limits);
  read("", settings.velocity_limits);
  read("", settings.is_continuous);
  return settings;
}

#endif  // SETTINGS_FROM_NUMBERS_HPP_
