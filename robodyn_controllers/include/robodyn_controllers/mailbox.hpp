// SPDX-License-Identifier: Apache-2.0
// What a thread that may wait hands to one that may not: the latest value, without a lock.
#ifndef ROBODYN_CONTROLLERS__MAILBOX_HPP_
#define ROBODYN_CONTROLLERS__MAILBOX_HPP_

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace robodyn_controllers
{

// Of three values one is written, one is read, and one lies between the two, for one thread that
// puts and one that takes. Taking neither allocates nor waits.
template<typename Value>
class Mailbox
{
public:
  explicit Mailbox(const Value & value = Value())
  : values_{value, value, value} {}

  // Put a value; it replaces one that was not taken.
  void put(const Value & value)
  {
    values_[written_] = value;
    written_ = between_.exchange(written_ | kNew, std::memory_order_acq_rel) & kIndex;
  }

  // Call a function with the value, if there is a new one, and keep what it returns.
  template<typename Function>
  void take(Function && function)
  {
    if ((between_.load(std::memory_order_acquire) & kNew) == 0) {return;}
    read_ = between_.exchange(read_, std::memory_order_acq_rel) & kIndex;
    const bool result = function(std::as_const(values_[read_]));
    results_.store(2 * (results_.load(std::memory_order_relaxed) / 2 + 1) + (result ? 1 : 0),
      std::memory_order_release);
  }

  // How many values were taken, times two, plus one where the last call returned true.
  std::uint64_t results() const {return results_.load(std::memory_order_acquire);}

private:
  static constexpr unsigned kIndex = 3, kNew = 4;

  std::array<Value, 3> values_;
  unsigned written_ = 0, read_ = 2;
  std::atomic<unsigned> between_{1};
  std::atomic<std::uint64_t> results_{0};
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MAILBOX_HPP_
