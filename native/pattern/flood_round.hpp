// A round of a flood, whatever its transport: when it begins, how its time is divided into windows, when it ends, and
// how it is settled. Windows lie at the same global times on all ranks; each is closed by the first look at the clock
// after its end and has the true time between two such looks. Once the time is over, every sender tells every receiver
// over the control plane what it sent on each path, and receivers take the rest, so that the paths can be used again;
// then each says what its channels carried.
#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "core/report.hpp"
#include "pattern/channels.hpp"
#include "transport/transport.hpp"

namespace fabricbench {

/// The windows of a round, the same on all ranks.
struct FloodSchedule {
  std::uint64_t window_ns = 0;
  std::size_t warmup_windows = 0;
  std::size_t windows = 1;

  std::uint64_t warmup_ns() const { return warmup_windows * window_ns; }
  std::uint64_t measured_ns() const { return windows * window_ns; }
  double measured_seconds() const { return ns_to_seconds(measured_ns()); }
};

inline FloodSchedule flood_schedule(const PlanProbe& probe, std::size_t rounds) {
  // Long enough that a receiver which is held up for a millisecond shows little, short enough for dozens in a cell.
  constexpr double window_seconds = 20e-3;
  const double seconds = probe.stopping.maximum_seconds / static_cast<double>(rounds);
  const std::size_t most = std::max<std::size_t>(1, probe.stopping.maximum_samples / rounds);
  const double wanted = std::clamp(std::round(seconds / window_seconds), 1.0, static_cast<double>(most));
  FloodSchedule schedule;
  schedule.windows = static_cast<std::size_t>(wanted);
  schedule.window_ns = std::max<std::uint64_t>(1, seconds_to_ns(seconds) / schedule.windows);
  schedule.warmup_windows = std::min(probe.warmup_samples, schedule.windows);
  return schedule;
}

/// What a rank knows of a round of a flood when it has measured. All ranks stop at about the same time.
inline Outcome flood_outcome(const Task& task) {
  Outcome outcome;
  const GroupParameters parameters = group_parameters(task.probe);
  outcome.channels = channels_of(task.probe.pattern, task.team.size(), parameters);
  if (task.team.member() == 0) outcome.stop = StopReason::time;
  const double rounds_so_far = static_cast<double>(task.round + 1);
  outcome.seconds = flood_schedule(task.probe, task.rounds).measured_seconds() * rounds_so_far;
  return outcome;
}

inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

class FloodWindows {
 public:
  enum class Phase { warmup, measured, grace, over };

  /// `has_samples`: this rank's windows are samples. A congestor has no windows, it goes on until it is told.
  FloodWindows(Task& task, bool has_samples)
      : task_(task),
        schedule_(flood_schedule(task.probe, task.rounds)),
        has_samples_(has_samples),
        is_congestor_(static_cast<bool>(task.is_over)) {}

  /// Sleep until the common start.
  void wait_for_start() {
    const std::uint64_t start = task_.clock.to_local(task_.start_ns);
    const timespec until{static_cast<time_t>(start / 1'000'000'000), static_cast<long>(start % 1'000'000'000)};
    while (Clock::now() < start) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    phase_begin_ = last_ = start;
    window_ns_ = schedule_.window_ns;
    phase_end_ = start + schedule_.warmup_ns();
    next_ = is_congestor_ ? start : std::min(start + window_ns_, phase_end_);
  }

  /// When to call note() again at the latest.
  std::uint64_t next() const { return next_; }
  bool is_over() const { return phase_ == Phase::over; }

  /// Tell the time and the bytes that have come so far; the phase that begins now, if one does.
  std::optional<Phase> note(std::uint64_t now, std::uint64_t bytes) {
    if (now < next_) [[likely]]
      return std::nullopt;
    if (is_congestor_) return look(now);
    if (phase_ == Phase::grace) return enter(Phase::over, never);
    const bool is_warmup = phase_ == Phase::warmup;
    const std::size_t wanted = is_warmup ? schedule_.warmup_windows : schedule_.windows;
    const std::size_t due = std::min(wanted, static_cast<std::size_t>((now - phase_begin_) / window_ns_));
    close(now, bytes, due - closed_);
    closed_ = due;
    next_ = phase_begin_ + (due + 1) * window_ns_;
    if (due < wanted) return std::nullopt;
    if (is_warmup) return begin_measuring(now, bytes);
    measured_ns_ = now - phase_begin_;
    // Receivers elsewhere may be a little late: their last window is to be full.
    return enter(Phase::grace, std::max(now, phase_end_) + grace_ns);
  }

  /// How long this rank's measured windows lasted.
  std::uint64_t measured_ns() const { return measured_ns_; }

 private:
  static constexpr std::uint64_t grace_ns = 10'000'000;
  static constexpr std::uint64_t look_every_ns = 2'000'000;

  std::optional<Phase> enter(Phase phase, std::uint64_t next) {
    phase_ = phase;
    next_ = next;
    return phase;
  }

  std::optional<Phase> look(std::uint64_t now) {
    if (task_.is_over()) return enter(Phase::over, never);
    next_ = now + look_every_ns;
    return std::nullopt;
  }

  /// The measured windows begin where the last one of the warm-up really ended.
  std::optional<Phase> begin_measuring(std::uint64_t now, std::uint64_t bytes) {
    phase_end_ += schedule_.measured_ns();
    phase_begin_ = last_ = now;
    last_bytes_ = bytes;
    closed_ = 0;
    const std::uint64_t left = phase_end_ > now ? phase_end_ - now : 0;
    window_ns_ = std::max(left / schedule_.windows, schedule_.window_ns / 2);
    return enter(Phase::measured, now + window_ns_);
  }

  /// A rank that was held up past the ends of several windows knows only what came in all of them together.
  void close(std::uint64_t now, std::uint64_t bytes, std::size_t count) {
    if (count == 0) return;
    Series& series = phase_ == Phase::warmup ? task_.samples.warmup : task_.samples.measured;
    const std::uint64_t ns = now - last_;
    const std::uint64_t came = bytes - last_bytes_;
    for (std::size_t i = 0; i < count && has_samples_ && series.room() > 0; ++i) {
      const std::uint64_t part_ns = ns * (i + 1) / count - ns * i / count;
      series.push(part_ns, came * (i + 1) / count - came * i / count);
    }
    last_ = now;
    last_bytes_ = bytes;
  }

  Task& task_;
  const FloodSchedule schedule_;
  const bool has_samples_;
  const bool is_congestor_;
  Phase phase_ = Phase::warmup;
  std::uint64_t window_ns_ = 0;
  std::uint64_t phase_begin_ = 0;
  std::uint64_t phase_end_ = 0;  // as planned
  std::uint64_t last_ = 0;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t measured_ns_ = 0;
  std::size_t closed_ = 0;
};

/// In a congestor: ask for the end as those who flood do, who say by it that they have begun, and pass the end on.
inline void wait_until_over(const Task& task) {
  for (Pause pause; !task.is_over();) pause.sleep();
}

/// The part of a rank that has no links in a round. Its windows, where there are several rounds: nothing came, for as
/// long as the others measured, so that windows of all ranks and rounds stay side by side. In a congestor it asks for
/// the end as the others do: whoever starts one hears from each of its ranks that it has begun.
inline Outcome rest_from_flood(Task& task) {
  if (task.is_over) {
    wait_until_over(task);
    return {};
  }
  if (task.rounds == 1) return flood_outcome(task);
  const FloodSchedule schedule = flood_schedule(task.probe, task.rounds);
  for (std::size_t i = 0; i < schedule.warmup_windows; ++i) task.samples.warmup.push(schedule.window_ns, 0);
  for (std::size_t i = 0; i < schedule.windows; ++i) task.samples.measured.push(schedule.window_ns, 0);
  return flood_outcome(task);
}

/// How long what is under way at the end of a flood may take to come. Without a bound a rank would wait for ever for
/// messages that a queue pair in trouble sends again and again, or that nobody tells of, until the whole launch is
/// ended.
class Settling {
 public:
  /// From now on, of this cell: 10 s and the time of the launch's longest cell, which is half the patience of its
  /// ranks. Those who are done sooner wait for less than the whole of it.
  explicit Settling(const Task& task) : begin_ns_(Clock::now()), bound_seconds_(bound_seconds(task)) {}

  /// Throws the Failure once it has taken longer.
  void look() const {
    const double seconds = ns_to_seconds(Clock::now() - begin_ns_);
    if (seconds < bound_seconds_) return;
    throw Failure(FailureCode::timeout,
                  "what was under way at the end of the measured time had not all come " +
                      std::to_string(static_cast<int>(seconds)) +
                      " s later: does the network lose packets, or is more under way than is acknowledged in time "
                      "(`depth`, `timeout`)?");
  }

  static double bound_seconds(const Task& task) {
    return task.patience_seconds ? *task.patience_seconds / 2
                                 : reliable_bound_seconds + task.probe.stopping.maximum_seconds;
  }

 private:
  std::uint64_t begin_ns_;
  double bound_seconds_;
};

/// What a sender tells of one path. What one that has failed tells its peers says so.
struct FloodTally {
  static constexpr MessageType message_type = MessageType::flood_tally;
  bool has_failed = true;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  // Of these the ones from `measured_first` to before `measured_end` were sent while the sender measured, by its clock.
  std::uint64_t measured_first = 0;
  std::uint64_t measured_end = 0;
};

/// Tells each sending link's tally once. However the flood ends, nobody is left waiting: neither a receiver for a
/// tally, nor a sender whose messages nobody takes any more.
template <PeerTransport T>
class FloodTallies {
 public:
  FloodTallies(std::span<LinkOver<T>> links, const CellTeam& team)
      : links_(links), team_(team), awaited_before_(links.size()) {
    std::map<std::size_t, std::size_t> last_of_peers;
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links[i].link.receives) last_of_peers[links[i].link.peer] = i + 1;
    }
    for (std::size_t i = 0; i < links.size(); ++i) {
      const auto last = last_of_peers.find(links[i].link.peer);
      if (last != last_of_peers.end()) awaited_before_[i] = last->second;
    }
  }
  ~FloodTallies() {
    if (has_ended_well_) return;
    for (const LinkOver<T>& link : links_) team_.send(link.link.peer, FloodTally{});
  }
  FloodTallies(const FloodTallies&) = delete;
  FloodTallies& operator=(const FloodTallies&) = delete;

  /// `tally_of(i)` is that of link i.
  template <class TallyOf>
  void tell_all(TallyOf tally_of) {
    for (; told_ < links_.size(); ++told_) tell(tally_of(told_));
  }

  /// All has been sent and has come: nobody needs to hear of a failure here.
  void end_well() { has_ended_well_ = true; }

  /// Look whether the launch has ended, or a peer has failed of which no tally is awaited: those of the links from
  /// `heard` on are.
  void look_for_failed(std::size_t heard) const {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (awaited_before_[i] > heard) continue;
      const auto told = team_.try_receive<FloodTally>(links_[i].link.peer);
      if (told && told->has_failed) throw_peer_failed();
    }
  }

  /// The tally of a link that receives if it has come, without waiting. To be asked for in the order of the links.
  std::optional<FloodTally> try_receive(std::size_t link) const {
    const auto tally = team_.try_receive<FloodTally>(links_[link].link.peer);
    if (tally && tally->has_failed) throw_peer_failed();
    return tally;
  }

  /// The tallies of all links that receive, in their order; empty ones in between.
  std::vector<FloodTally> receive_all() const {
    std::vector<FloodTally> tallies(links_.size());
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].link.receives) continue;
      tallies[i] = team_.receive<FloodTally>(links_[i].link.peer);
      if (tallies[i].has_failed) throw_peer_failed();  // another may hang, and would be waited for in vain
    }
    return tallies;
  }

 private:
  /// What failed is said by the rank that it happened to.
  [[noreturn]] static void throw_peer_failed() {
    throw Failure(FailureCode::timeout, "a peer gave up in the middle: see what it reports");
  }

  void tell(const FloodTally& tally) {
    const Link& link = links_[told_].link;
    if (link.sends) team_.send(link.peer, tally);
  }

  std::span<LinkOver<T>> links_;
  const CellTeam& team_;
  // Of each link: before which number of tallies heard one of its peer is awaited. Looked at while it is measured.
  std::vector<std::size_t> awaited_before_;
  std::size_t told_ = 0;
  bool has_ended_well_ = false;
};

/// What came over one link that receives: all of it, and what of it in the measured phase.
struct FloodReceipt {
  std::uint64_t all_bytes = 0;
  std::uint64_t bytes = 0;
  Counters counters;
};

/// Note what the links of this rank carried. Failure: nothing came at all, before, while or after it was measured.
template <PeerTransport T>
void report_channels(std::span<LinkOver<T>> links, std::span<const FloodReceipt> receipts, std::uint64_t measured_ns,
                     Task& task) {
  std::uint64_t bytes = 0;
  bool has_receiving = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!links[i].link.receives) continue;
    has_receiving = true;
    bytes += receipts[i].all_bytes;
    task.counters.add(receipts[i].counters);
    ChannelReport channel;
    channel.source = links[i].peer_rank;
    channel.destination = task.team.world_rank(task.team.member());
    channel.flow = links[i].link.flow;
    channel.round = task.round;
    channel.time_ns = {static_cast<std::int64_t>(measured_ns)};
    channel.bytes = {receipts[i].bytes};
    channel.sent = receipts[i].counters.sent;
    channel.lost = receipts[i].counters.lost;
    task.findings.channels.push_back(std::move(channel));
  }
  if (has_receiving && bytes == 0) {
    throw Failure(
        FailureCode::timeout,
        "nothing arrived while all sent as much as they could: is something filtering this protocol on the way?");
  }
}

template <PeerTransport T>
bool has_receiving_link(std::span<LinkOver<T>> links) {
  return std::ranges::any_of(links, [](const LinkOver<T>& link) { return link.link.receives; });
}

}  // namespace fabricbench
