// Pattern oneway: a ping-pong in which both ranks stamp every message when it leaves and when it has come, on clocks
// that agree (core/clock_sync.hpp). What half a round trip hides, the difference of the two directions, shows. The
// stamps stay where they are taken until the timing is over; messages carry none.
#pragma once

#include <vector>

#include "pattern/round_trip.hpp"

namespace fabricbench {

/// One message's two stamps on one side, global time: on the leader when it left and when its answer came, on the
/// follower when it came and when the answer left.
struct MessageStamps {
  std::uint32_t number = 0;
  std::int64_t first_ns = 0;
  std::int64_t second_ns = 0;
};

/// What the follower hands the leader when all is over: how far its clock may be off, and its stamps.
struct ClockBound {
  static constexpr MessageType message_type = MessageType::clock_bound;
  double error_ns = 0;
};
struct Stamps {
  static constexpr MessageType message_type = MessageType::stamps;
  std::vector<MessageStamps> all;

  std::string pack() const { return pack_values(all); }
  static Stamps unpack(std::string_view payload) { return {unpack_values<MessageStamps>(payload)}; }
};

class StampLog {
 public:
  /// Make room for all there can be, with the untimed message of each batch; none is taken later.
  explicit StampLog(std::size_t capacity) { stamps_.reserve(capacity); }

  void add(std::uint32_t number, std::uint64_t first, std::uint64_t second) {
    if (stamps_.size() < stamps_.capacity()) stamps_.push_back({number, std::int64_t(first), std::int64_t(second)});
  }
  std::vector<MessageStamps>& stamps() { return stamps_; }

 private:
  std::vector<MessageStamps> stamps_;
};

/// Notes the stamps of round trips.
class StampHooks {
 public:
  explicit StampHooks(StampLog& log) : log_(&log) {}

  void before() {}
  void led(std::uint32_t number, std::uint64_t begin, std::uint64_t end) { log_->add(number, begin, end); }
  void arrived(std::uint32_t) { arrival_ = Clock::now(); }
  void departs(std::uint32_t number, std::span<std::byte>) { log_->add(number, arrival_, Clock::now()); }
  void answered() {}
  double seconds_of(double round_trip) const { return round_trip; }

 private:
  StampLog* log_;
  std::uint64_t arrival_ = 0;
};

template <Transport T>
class OnewayOver {
 public:
  OnewayOver(T& path, Task& task)
      : task_(task),
        log_(task.probe.stopping.maximum_samples + task.probe.warmup_samples + batches),
        rounds_(path, task, StampHooks(log_)) {}

  Outcome run() {
    Outcome outcome;
    const bool is_leader = task_.team.member() == leader;
    const bool is_timed = on_both(task_.team, [&] { outcome = run_rounds(rounds_, task_); });
    if (is_timed && is_leader) join(log_.stamps(), receive_stamps(task_), task_);
    if (is_timed && !is_leader) send_stamps(log_.stamps(), task_);
    outcome.bytes_per_sample = 2 * task_.probe.message_bytes;
    return outcome;
  }

 private:
  static constexpr std::size_t batches = 4096;  // at most, each with an untimed message

  /// Do something that may fail on either side; whether it failed on none. Each tells the other however it ends, so
  /// that nobody sends what nobody waits for, or waits for what nobody sends.
  template <class Action>
  static bool on_both(const CellTeam& team, Action action) {
    const std::size_t other = 1 - team.member();
    try {
      action();
    } catch (...) {
      team.send(other, Whether{.holds = false});
      throw;
    }
    team.send(other, Whether{.holds = true});
    return team.receive<Whether>(other).holds;
  }

  static void to_global(std::vector<MessageStamps>& stamps, const ClockModel& clock) {
    for (MessageStamps& each : stamps) {
      each.first_ns = clock.to_global(static_cast<std::uint64_t>(each.first_ns));
      each.second_ns = clock.to_global(static_cast<std::uint64_t>(each.second_ns));
    }
  }

  static void send_stamps(std::vector<MessageStamps>& stamps, const Task& task) {
    to_global(stamps, task.clock);
    task.team.send(leader, ClockBound{.error_ns = task.clock.error_at(Clock::now())});
    task.team.send(leader, Stamps{stamps});
  }

  static std::vector<MessageStamps> receive_stamps(Task& task) {
    task.findings.values["clock_error_ns"] =
        task.clock.error_at(Clock::now()) + task.team.receive<ClockBound>(follower).error_ns;
    return task.team.receive<Stamps>(follower).all;
  }

  /// Put the two sides of each measured message together: both lists are in the order of the messages' numbers.
  static void join(std::vector<MessageStamps>& own, const std::vector<MessageStamps>& others, Task& task) {
    to_global(own, task.clock);
    const std::size_t measured = std::min(own.size(), task.samples.measured.size());
    ChannelReport forth;
    forth.source = task.team.world_rank(leader);
    forth.destination = task.team.world_rank(follower);
    forth.quantity = Quantity::one_way;
    ChannelReport back = forth;
    std::swap(back.source, back.destination);
    auto other = others.begin();
    // What was led before the measurement is the warm-up.
    for (auto each = own.end() - static_cast<std::ptrdiff_t>(measured); each != own.end(); ++each) {
      while (other != others.end() && static_cast<std::int32_t>(other->number - each->number) < 0) ++other;
      if (other == others.end()) break;
      if (other->number != each->number) continue;
      forth.time_ns.push_back(other->first_ns - each->first_ns);
      back.time_ns.push_back(each->second_ns - other->second_ns);
    }
    task.findings.channels.push_back(std::move(forth));
    task.findings.channels.push_back(std::move(back));
  }

  Task& task_;
  StampLog log_;
  Rounds<T, StampHooks> rounds_;
};

struct Oneway {
  static constexpr std::size_t timing_member = leader;

  template <class T>
  static constexpr bool runs_over = Transport<T>;

  template <class T>
  using Over = OnewayOver<T>;
};

}  // namespace fabricbench
