// SPDX-License-Identifier: Apache-2.0
// The arm's state, assembled by joint name from joint states that are bytes or arrays.
#ifndef ROBODYN_ROS__CORE__JOINT_STATES_HPP_
#define ROBODYN_ROS__CORE__JOINT_STATES_HPP_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "settings.hpp"
#include "state_check.hpp"

namespace robodyn
{

// Of a message that is read; two thousand joints take half of these bytes.
constexpr std::size_t kLargestMessage = 200'000, kMostJoints = 2000;

// Numbers in a message, which need not be aligned.
class PackedNumbers
{
public:
  PackedNumbers() = default;
  PackedNumbers(const void * first, std::size_t size) : first_(first), size_(size) {}

  std::size_t size() const { return size_; }
  double operator[](std::size_t i) const
  {
    double value;
    std::memcpy(&value, static_cast<const char *>(first_) + i * sizeof(value), sizeof(value));
    return value;
  }
  void copy(double * to) const
  {
    if (size_ > 0) { std::memcpy(to, first_, size_ * sizeof(*to)); }
  }

private:
  const void * first_ = nullptr;
  std::size_t size_ = 0;
};

// What a sensor_msgs/JointState says; the texts and numbers stay where they are.
struct JointStateMessage
{
  std::int32_t sec = 0;  // of the stamp
  std::uint32_t nanosec = 0;
  std::vector<std::string_view> names;  // of the joints
  PackedNumbers position, velocity, effort;

  double stamp() const { return sec + 1e-9 * nanosec; }
};

// Reads plain CDR, little-endian: alignment counts from behind the encoding. False: the bytes end
// too soon.
class CdrReader
{
public:
  explicit CdrReader(std::string_view bytes) : bytes_(bytes) {}

  bool encoding()
  {
    const char * const found = take(kEncoding, 1);
    return found != nullptr && found[0] == 0 && found[1] == 1;
  }

  template <typename Integer>
  bool integer(Integer & to)
  {
    const char * const found = take(sizeof(to), sizeof(to));
    if (found != nullptr) { std::memcpy(&to, found, sizeof(to)); }
    return found != nullptr;
  }

  bool text(std::string_view & to)
  {
    std::uint32_t size = 0;
    const char * const found = integer(size) ? take(size, 1) : nullptr;
    if (found != nullptr) { to = {found, size > 0 ? size - 1 : 0}; }  // without the zero
    return found != nullptr;
  }

  bool numbers(PackedNumbers & to)
  {
    std::uint32_t count = 0;
    if (!integer(count)) { return false; }
    const char * const found = take(sizeof(double) * std::uint64_t{count}, count > 0 ? 8 : 1);
    to = {found, count};
    return found != nullptr;
  }

private:
  static constexpr std::size_t kEncoding = 4;

  // Return where the next bytes begin; null: there are not as many.
  const char * take(std::uint64_t size, std::size_t alignment)
  {
    const std::size_t left = bytes_.size() - at_;
    const std::size_t padding = (alignment - at_ % alignment + kEncoding) % alignment;
    if (padding > left || size > left - padding) { return nullptr; }
    const char * const found = bytes_.data() + at_ + padding;
    at_ += padding + static_cast<std::size_t>(size);
    return found;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;  // at most their number
};

// Read a message, or return why not. Memory is allocated only where one has more names than any
// before.
inline Fault read_joint_state(std::string_view bytes, JointStateMessage & to)
{
  const auto size = static_cast<double>(bytes.size());
  if (bytes.size() > kLargestMessage) {
    return {Cause::message_size, -1, size, static_cast<double>(kLargestMessage)};
  }
  const Fault none{Cause::no_joint_state, -1, size};
  CdrReader reader(bytes);
  std::string_view text;  // the frame, then names
  std::uint32_t count = 0;
  const bool has_begun = reader.encoding() && reader.integer(to.sec) &&
                         reader.integer(to.nanosec) && reader.text(text) && reader.integer(count);
  if (!has_begun) { return none; }
  if (count > kMostJoints) {
    return {Cause::joint_count, -1, static_cast<double>(count), static_cast<double>(kMostJoints)};
  }
  to.names.clear();
  to.names.reserve(count);
  for (; count > 0; --count) {
    if (!reader.text(text)) { return none; }
    to.names.push_back(text);
  }
  const bool is_whole =
    reader.numbers(to.position) && reader.numbers(to.velocity) && reader.numbers(to.effort);
  return is_whole ? Fault{} : none;
}

// The newest position, velocity and effort of every joint, and when they came.
//
// A position that is not finite counts as that joint missing from the message. A message with a
// position that is not possible is in other units, and nothing of it is used. A message stamped
// before the joint's last one, by less than kLongestDelay, is late and ignored, by less than
// kLongestDelayOfSource for the time of kLongestDelay; by more, or with that last one stale, the
// clock was set back.
//
// A velocity that is missing or not finite is a DifferencedVelocity.
class JointStates
{
public:
  static constexpr double kLongestStep = 1.0;  // s; a simulation without states stands still
  static constexpr std::size_t kMostStrangers = 7;

  // Possible positions [rad or m], velocity limits [rad/s or m/s]: a position much further away
  // than they allow gives no velocity. Throws std::invalid_argument for vectors of other sizes.
  JointStates(
    std::vector<std::string> names, double timeout, Vector is_continuous, Vector lowest,
    Vector highest, Vector velocity_limits)
  : timeout_(timeout),
    names_(std::move(names)),
    is_continuous_(std::move(is_continuous)),
    lowest_(std::move(lowest)),
    highest_(std::move(highest)),
    velocity_limits_(std::move(velocity_limits)),
    entry_(names_.size())
  {
    for (const Vector * const each : {&is_continuous_, &lowest_, &highest_, &velocity_limits_}) {
      if (each->size() != joints()) { throw std::invalid_argument("joint states: one a joint"); }
    }
    message_.names.reserve(kMostJoints);
    strangers_.reserve(kMostStrangers);
    forget();
  }

  // Discard all samples.
  void forget()
  {
    const std::size_t n = joints();
    position_.assign(n, kNaN);
    velocity_.assign(n, kNaN);
    effort_.assign(n, kNaN);
    samples_.assign(n, {});
    newest_ = oldest_ = -kInfinity;
    mean_interval_ = stamp_age_ = 0.0;
    strangers_.clear();
  }

  void set_timeout(double timeout) { timeout_ = timeout; }

  // Take a message as bytes that came at a steady time [s]. Stamps are of a clock [s]; NaN: their
  // age does not count. Return what is wrong with it.
  Fault receive(std::string_view bytes, double received, double clock)
  {
    if (const Fault fault = read_joint_state(bytes, message_)) { return fault; }
    const double stamp = message_.stamp();
    const bool has_age = stamp > 0.0 && !std::isnan(clock);
    return receive(message_, received, stamp, has_age ? clock - stamp : 0.0);
  }

  // Take a message with a stamp [s] (0: none) that was so old when it came [s].
  Fault receive(const JointStateMessage & message, double received, double stamp, double age)
  {
    const std::size_t count = message.names.size();
    const Match match = find_joints(message.names);
    // Messages of other joints, of a gripper, share the topic: their faults are not ours.
    const bool is_ours = match != Match::none;
    const auto counted = [count](Cause cause, const PackedNumbers & numbers) -> Fault {
      return {cause, -1, static_cast<double>(numbers.size()), static_cast<double>(count)};
    };
    if (message.position.size() != count) {
      return is_ours || count == 0 ? counted(Cause::position_count, message.position) : Fault{};
    }
    if (message.velocity.size() != count && message.velocity.size() != 0) {
      return is_ours ? counted(Cause::velocity_count, message.velocity) : Fault{};
    }
    if (match == Match::repeated) { return {Cause::repeated_joint}; }
    if (!is_ours) {
      if (!has_begun()) { keep_strangers(message.names); }
      return {};
    }
    stamp_age_ = age;
    if (is_in_other_units(message.position)) { return {}; }
    const bool is_stamped = stamp > 0.0;
    take_in(message, is_stamped ? stamp : received, is_stamped, received, std::max(age, 0.0));
    return {};
  }

  // Whether every joint was refreshed since the last take.
  bool is_complete() const
  {
    return std::all_of(samples_.begin(), samples_.end(), [](const Sample & sample) {
      return sample.is_refreshed;
    });
  }

  // Start to collect the next state.
  void take()
  {
    for (Sample & sample : samples_) { sample.is_refreshed = false; }
  }

  // --- the state -------------------------------------------------------------------------------

  std::size_t joints() const { return names_.size(); }
  const std::vector<std::string> & names() const { return names_; }
  double timeout() const { return timeout_; }  // age from which on a joint is stale [s]
  const Vector & position() const { return position_; }
  const Vector & velocity() const { return velocity_; }  // NaN: unknown
  const Vector & effort() const { return effort_; }      // NaN: unknown
  double lag() const  // the longest of a velocity that is differenced [s]
  {
    double longest = 0.0;
    for (const Sample & sample : samples_) {
      longest = std::max(longest, sample.differenced.lag());
    }
    return longest;
  }
  const JointStateMessage & message() const { return message_; }  // the last one as bytes
  bool has_effort() const { return any(&Sample::has_effort); }    // any joint's sample
  bool is_stamped() const { return any(&Sample::is_stamped); }
  bool has_begun() const { return any(&Sample::has_come); }
  // The newest stamp, or receipt where none is stamped [s].
  double time() const
  {
    const bool stamped = is_stamped();
    double newest = -kInfinity;
    for (const Sample & sample : samples_) {
      if (sample.is_stamped == stamped) { newest = std::max(newest, sample.time); }
    }
    return newest;
  }

  // When the oldest joint's sample came [s]; minus infinity: one never came.
  double received() const { return oldest_; }
  double age(double now) const { return now - oldest_; }
  double stamp_age() const { return stamp_age_; }  // of the last message, when it came [s]
  bool is_stale(std::size_t joint, const Now & now) const
  {
    const Sample & sample = samples_[joint];
    return now.since(sample.received, sample.is_stamped ? sample.time : kNaN) > timeout_;
  }
  // For how long a simulation has stood still [s]; 0: not, or not for long.
  double standstill(const Now & now) const
  {
    if (!now.is_simulated() || !(age(now.steady) > kLongestStep)) { return 0.0; }
    for (std::size_t i = 0; i < joints(); ++i) {
      if (is_stale(i, now)) { return 0.0; }
    }
    return age(now.steady);
  }
  // Whether a joint's newest position cannot be used, and which it is.
  bool is_unusable(std::size_t joint) const { return samples_[joint].is_unusable; }
  double unusable(std::size_t joint) const { return samples_[joint].newest; }
  // Some joints in the last message before the first of the arm's, cut.
  const std::vector<std::string> & strangers() const { return strangers_; }

private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr std::size_t kLongestName = 160;  // bytes of a stranger
  // By how much a message may be late and come after a newer one [s]; by more where that newer one
  // has only just come: another source sends what is newer, and no clock was set back.
  static constexpr double kLongestDelay = 0.05, kLongestDelayOfSource = 0.15;
  static constexpr double kBurst = 0.25;           // of the mean interval without stamps
  static constexpr double kNewestInterval = 0.02;  // weight in it

  enum class Match { none, some, repeated };

  struct Sample  // of a joint
  {
    double received = -kInfinity;  // less the age of the stamp [s]
    double time = -kInfinity;      // the stamp, or the receipt [s]
    double newest = kNaN;          // position
    bool has_come = false, is_refreshed = false, is_stamped = false, has_effort = false;
    bool is_unusable = false;  // the newest position
    DifferencedVelocity differenced;
  };

  bool any(bool Sample::*is) const
  {
    return std::any_of(
      samples_.begin(), samples_.end(), [is](const Sample & sample) { return sample.*is; });
  }

  // Find each joint's entry in a message.
  Match find_joints(const std::vector<std::string_view> & names)
  {
    const std::size_t n = joints();
    std::fill(entry_.begin(), entry_.end(), kNone);
    Match match = Match::none;
    std::size_t joint = 0;  // most probably the next
    for (std::size_t k = 0; k < names.size(); ++k) {
      for (std::size_t tried = 0; tried < n; ++tried, joint = joint + 1 < n ? joint + 1 : 0) {
        if (names[k] != names_[joint]) { continue; }
        const bool is_repeated = entry_[joint] != kNone || match == Match::repeated;
        match = is_repeated ? Match::repeated : Match::some;
        entry_[joint] = k;
        joint = joint + 1 < n ? joint + 1 : 0;
        break;
      }
    }
    return match;
  }

  void keep_strangers(const std::vector<std::string_view> & names)
  {
    strangers_.resize(std::min(names.size(), kMostStrangers));
    for (std::size_t k = 0; k < strangers_.size(); ++k) {
      strangers_[k].assign(names[k].substr(0, kLongestName));
    }
  }

  // Whether a message holds a position that is not possible; note which positions are unusable.
  bool is_in_other_units(const PackedNumbers & position)
  {
    bool is_any_impossible = false;
    for (std::size_t i = 0; i < joints(); ++i) {
      if (entry_[i] == kNone) { continue; }
      const double at = position[entry_[i]];
      const bool is_finite = std::isfinite(at),
                 is_possible = lowest_[i] <= at && at <= highest_[i];
      samples_[i].newest = at;
      samples_[i].is_unusable = !is_finite || !is_possible;
      is_any_impossible |= is_finite && !is_possible;
    }
    return is_any_impossible;
  }

  bool is_late(const Sample & last, double time, bool is_stamped, double received) const
  {
    const double behind = last.time - time, since = received - last.received;
    const bool is_delayed = behind < std::min(kLongestDelay, timeout_) && since <= timeout_;
    const bool is_overtaken = behind < kLongestDelayOfSource && since <= kLongestDelay;
    return last.is_stamped == is_stamped && behind > 0.0 && (is_delayed || is_overtaken);
  }

  void take_in(
    const JointStateMessage & message, double time, bool is_stamped, double received, double age)
  {
    const bool has_velocity = message.velocity.size() > 0;
    const bool has_effort = message.effort.size() == message.names.size();
    const bool is_older = time < newest_;
    double interval = kInfinity;  // of what is differenced
    for (std::size_t i = 0; i < joints(); ++i) {
      Sample & sample = samples_[i];
      const std::size_t k = entry_[i];
      if (k == kNone || sample.is_unusable) { continue; }
      if (is_older && is_late(sample, time, is_stamped, received)) { continue; }
      const double velocity = has_velocity ? message.velocity[k] : kNaN;
      if (std::isfinite(velocity)) {
        velocity_[i] = velocity;
        sample.differenced.take(sample.newest, velocity, time, is_stamped);
      } else {
        velocity_[i] = difference(i, time, is_stamped, interval);
      }
      position_[i] = sample.newest;
      effort_[i] = has_effort ? message.effort[k] : kNaN;
      sample.has_effort = has_effort;
      sample.received = received - age;
      sample.time = time;
      sample.is_stamped = is_stamped;
      sample.has_come = sample.is_refreshed = true;
    }
    newest_ = std::max(newest_, time);
    oldest_ = kInfinity;
    for (const Sample & sample : samples_) { oldest_ = std::min(oldest_, sample.received); }
    if (!is_stamped && interval < kInfinity) {
      const double change = kNewestInterval * (interval - mean_interval_);
      mean_interval_ = mean_interval_ > 0.0 ? mean_interval_ + change : interval;
    }
  }

  // Return the velocity of a joint that came without one. The interval becomes the shortest of those
  // since the last samples [s].
  double difference(std::size_t i, double time, bool is_stamped, double & interval)
  {
    Sample & sample = samples_[i];
    const double since = sample.differenced.since(time, is_stamped, timeout_);
    if (since > 0.0) { interval = std::min(interval, since); }
    // Times of receipt are not times of measurement: what comes in a burst was held up.
    const bool is_burst = !is_stamped && since < kBurst * mean_interval_;
    return sample.differenced.difference(
      sample.newest, time, is_stamped, is_burst,
      {timeout_, velocity_limits_[i], is_continuous_[i] != 0.0});
  }

  double timeout_;
  const std::vector<std::string> names_;
  const Vector is_continuous_, lowest_, highest_, velocity_limits_;
  JointStateMessage message_;
  std::vector<std::size_t> entry_;  // of each joint in the message; kNone: it is not there
  Vector position_, velocity_, effort_;
  std::vector<Sample> samples_;
  double newest_ = -kInfinity;                    // of the times of the samples
  double oldest_ = -kInfinity;                    // of the receipts
  double mean_interval_ = 0.0, stamp_age_ = 0.0;  // s
  std::vector<std::string> strangers_;
};

}  // namespace robodyn

#endif  // ROBODYN_ROS__CORE__JOINT_STATES_HPP_
