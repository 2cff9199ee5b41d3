// SPDX-License-Identifier: Apache-2.0
// Joint states as bytes, cut and spoilt at random, for the sanitizers: what is taken is finite, and
// nothing allocates. Prints how many complete states there were.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "robodyn_ros/core/joint_states.hpp"

namespace rd = robodyn;

static bool may_allocate = true;

void * operator new(std::size_t size)
{
  if (!may_allocate) {
    std::fputs("memory is allocated\n", stderr);
    std::abort();
  }
  if (void * const memory = std::malloc(size)) { return memory; }
  throw std::bad_alloc();
}
void operator delete(void * memory) noexcept
{
  std::free(memory);
}
void operator delete(void * memory, std::size_t) noexcept
{
  std::free(memory);
}

namespace
{

template <typename Value>
void append(std::string & to, const Value & value)
{
  while ((to.size() - 4) % sizeof(value) != 0) { to += '\0'; }
  to.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

std::string message(
  const std::vector<std::string> & names, std::uint32_t sec, bool has_velocity, double position)
{
  std::string bytes("\0\1\0\0", 4);
  for (const std::uint32_t each : {sec, 5u, 1u}) { append(bytes, each); }
  bytes += '\0';  // the frame
  append(bytes, static_cast<std::uint32_t>(names.size()));
  for (const std::string & name : names) {
    append(bytes, static_cast<std::uint32_t>(name.size() + 1));
    bytes += name + '\0';
  }
  for (const bool is_there : {true, has_velocity, true}) {
    const std::size_t count = is_there ? names.size() : 0;
    append(bytes, static_cast<std::uint32_t>(count));
    for (std::size_t k = 0; k < count; ++k) { append(bytes, position); }
  }
  return bytes;
}

}  // namespace

int main()
{
  const std::vector<std::string> ours{"joint_a", "joint_b", "joint_c"};
  const rd::Vector none(3, 0.0), least(3, -3.0), most(3, 3.0), speed(3, 2.0);
  rd::JointStates states(ours, 0.1, none, least, most, speed);
  std::vector<std::string> many(rd::kMostJoints, "a_gripper_with_a_long_name");
  many.back() = "joint_b";
  const std::string given[] = {
    message(ours, 0, true, 0.5), message(ours, 7, false, 0.6),
    message({"joint_c", "x", "joint_a"}, 7, true, 0.7), message(many, 7, false, 0.5)};
  std::mt19937 random(1);
  const auto below = [&random](std::size_t size) { return random() % size; };
  long complete = 0;
  double now = 0.0;
  // In memory of just their size, so that what is read behind the end is noticed.
  const auto receive = [&](const std::string & bytes, std::size_t size) {
    const std::unique_ptr<char[]> memory(new char[size + 1]);
    std::copy_n(bytes.begin(), size, memory.get() + 1);
    now += 0.001;
    may_allocate = false;
    const rd::Fault fault = states.receive({memory.get() + 1, size}, now, 7.0);
    bool is_wrong = false;
    if (states.is_complete()) {
      states.take();
      ++complete;
      for (std::size_t i = 0; i < 3; ++i) {
        is_wrong |= !(std::fabs(states.position()[i]) <= 3.0) || std::isinf(states.velocity()[i]);
      }
    }
    may_allocate = true;
    if (is_wrong) { std::fputs("a state that cannot be\n", stderr); }
    if (is_wrong) { std::exit(1); }
    return fault;
  };
  for (const std::string & bytes : given) {
    if (receive(bytes, bytes.size())) { return 2; }
    for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 1000) {
      if (!receive(bytes, size)) { return 3; }
    }
  }
  for (int k = 0; k < 200'000; ++k) {
    std::string bytes = given[below(3)];
    for (std::size_t flips = below(4); flips > 0; --flips) {
      bytes[below(bytes.size())] = static_cast<char>(below(2) != 0 ? below(256) : 255);
    }
    receive(bytes, bytes.size());
  }
  std::printf("%ld\n", complete);
  return 0;
}
