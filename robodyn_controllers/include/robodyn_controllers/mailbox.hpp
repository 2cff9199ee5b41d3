// SPDX-License-Identifier: Apache-2.0
// What a thread that may wait hands to one that may not: one value at a time, without a lock.
#ifndef ROBODYN_CONTROLLERS__MAILBOX_HPP_
#define ROBODYN_CONTROLLERS__MAILBOX_HPP_

#include <atomic>
#include <utility>

namespace robodyn_controllers
{

// One thread puts, another takes; each of the two is always the same or held apart by its caller.
template<typename Value>
class Mailbox
{
public:
  explicit Mailbox(Value value = Value())
  : value_(std::move(value)) {}

  // Put a value, and return true; false: the last one was not taken yet.
  bool put(const Value & value)
  {
    if (is_full_.load(std::memory_order_acquire)) {return false;}
    value_ = value;
    is_full_.store(true, std::memory_order_release);
    return true;
  }

  // Call a function with the value, if there is one, and keep what it returns.
  template<typename Function>
  void take(Function && function)
  {
    if (!is_full_.load(std::memory_order_acquire)) {return;}
    result_.store(function(value_), std::memory_order_relaxed);
    is_full_.store(false, std::memory_order_release);
  }

  // Empty it, while nobody takes.
  void clear() {is_full_.store(false, std::memory_order_release);}

  bool is_full() const {return is_full_.load(std::memory_order_acquire);}
  bool result() const {return result_.load(std::memory_order_relaxed);}

private:
  Value value_;
  std::atomic<bool> is_full_{false}, result_{false};
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MAILBOX_HPP_
