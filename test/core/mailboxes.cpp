// SPDX-License-Identifier: Apache-2.0
// Threads that change an arm's load and settings while its cycles run, for the thread sanitizer.
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "robodyn_controllers/mailbox.hpp"

namespace
{

constexpr int kRounds = 20000;
constexpr std::size_t kSize = 8;

}  // namespace

int main()
{
  using Value = std::vector<long>;
  robodyn_controllers::Mailbox<Value> mailbox;
  std::atomic<bool> is_over{false};
  long torn = 0, back = 0, taken = 0;
  std::thread taking([&] {
    long last = -1;
    while (!is_over) {
      mailbox.take([&](const Value & value) {
        ++taken;
        for (const long each : value) { torn += each != value.front(); }
        back += value.front() <= last;
        last = value.front();
        return last % 2 == 0;
      });
    }
  });
  long withdrawn = 0, wrong = 0;
  for (long k = 0; k < kRounds; ++k) {
    const std::uint64_t number = mailbox.put(Value(kSize, k));
    if (k % 3 == 0 && mailbox.withdraw()) {
      ++withdrawn;
    } else if (k % 5 == 0) {
      while (!mailbox.is_taken(number)) { std::this_thread::yield(); }
      wrong += mailbox.result() != (k % 2 == 0);
    }
  }
  is_over = true;
  taking.join();
  std::printf(
    "%ld taken, %ld withdrawn, %ld torn, %ld back, %ld wrong results\n", taken, withdrawn, torn,
    back, wrong);
  return torn == 0 && back == 0 && wrong == 0 && taken > 0 ? 0 : 1;
}
