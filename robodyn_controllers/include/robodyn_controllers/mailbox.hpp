// SPDX-License-Identifier: Apache-2.0
// Hands the latest value from a thread that may wait to the real-time thread, without a lock.
#ifndef ROBODYN_CONTROLLERS__MAILBOX_HPP_
#define ROBODYN_CONTROLLERS__MAILBOX_HPP_

#include <array>
#include <atomic>
#include <cstdint>

namespace robodyn_controllers
{

// A triple buffer for one thread that puts and one that takes: one value is written, one is
// read, one lies between. Taking neither allocates nor waits.
template <typename Value>
class Mailbox
{
public:
  // Put a value, replacing one that was not taken, and return its sequence number.
  std::uint64_t put(const Value & value)
  {
    Numbered & written = values_[written_];
    written.value = value;
    written.number = ++last_number_;
    written_ = between_.exchange(written_ | kNew) & kIndex;
    return last_number_;
  }

  // Withdraw the last value; false: it was taken, or is being taken now.
  bool withdraw()
  {
    unsigned between = between_.load();
    while ((between & kNew) != 0) {
      if (between_.compare_exchange_weak(between, between & kIndex)) { return true; }
    }
    return false;
  }

  // Call a function with the value, if there is a new one, and store the result.
  template <typename Function>
  void take(Function && function)
  {
    if ((between_.load() & kNew) == 0) { return; }
    const unsigned between = between_.exchange(read_);
    read_ = between & kIndex;
    if ((between & kNew) == 0) { return; }  // withdrawn in between
    const Numbered & read = values_[read_];
    const bool result = function(read.value);
    result_.store(2 * read.number + (result ? 1 : 0));
  }

  // Whether the value of a sequence number was taken.
  bool is_taken(std::uint64_t number) const { return result_.load() / 2 == number; }

  // The result of the last call.
  bool result() const { return result_.load() % 2 == 1; }

private:
  static constexpr unsigned kIndex = 3, kNew = 4;

  struct Numbered
  {
    Value value;
    std::uint64_t number = 0;
  };

  std::array<Numbered, 3> values_{};
  unsigned written_ = 0, read_ = 2;
  std::uint64_t last_number_ = 0;
  std::atomic<unsigned> between_{1};
  std::atomic<std::uint64_t> result_{1};  // number of the last value taken, doubled, and result
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MAILBOX_HPP_
