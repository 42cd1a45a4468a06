// What a rank reports to rank 0 when it has done its part of a cell.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/failure.hpp"
#include "core/measurement.hpp"
#include "core/message.hpp"
#include "core/port_state.hpp"
#include "core/rank_list.hpp"
#include "core/rdma_attachment.hpp"
#include "core/traffic.hpp"

namespace fabricbench {

/// The samples of one phase in nanoseconds; `bytes` is empty unless losses made some sample smaller, `batches` unless
/// ranks take turns together.
struct PhaseSamples {
  std::vector<std::uint64_t> time_ns;
  std::vector<std::uint64_t> bytes;
  std::vector<Batch> batches{};
};

struct CellFailure {
  FailureCode code = FailureCode::error;
  std::string reason;
};

/// What the ranks of a cell agree on: whether it failed on any of them, and how.
struct Verdict {
  static constexpr MessageType message_type = MessageType::verdict;
  std::optional<CellFailure> failure;

  std::string pack() const;
  static Verdict unpack(std::string_view payload);
};

struct TimeSpan {
  std::int64_t begin_unix_ns = 0;
  std::int64_t end_unix_ns = 0;
};

struct CellReport {
  std::optional<CellFailure> failure;
  Outcome outcome;
  Counters counters;
  Receive receive = Receive::blocking;
  PhaseSamples warmup;
  PhaseSamples measured;
  Traffic interfaces;       // on the host of ranks[0]
  HostTraffic other_hosts;  // on the members' other hosts, from before messages were verified until it was over
  /// When it was measured, warm-up included, by the first member's host; nothing on the other members.
  std::optional<TimeSpan> span;
  PortStates port_state;  // what changed at the fabric's ports meanwhile, verification included, on the members' hosts
  std::vector<RdmaAttachment> rdma;  // how the members were attached, of cells over layer rdma
  Findings findings;
  bool has_parts = false;

  std::string pack() const;
  static CellReport unpack(std::string_view payload);
};

/// What of a rank's report nothing is to be joined with: it is written as it comes, rank by rank, so that rank 0 holds
/// some ranks' channels at a time and not those of all.
struct CellParts {
  static constexpr MessageType message_type = MessageType::parts;
  PhaseSamples warmup;
  PhaseSamples measured;
  std::vector<ChannelReport> channels;
  std::vector<PairFailure> failed_pairs{};
  std::vector<StageReport> stages{};
  std::vector<CounterReport> counters{};

  std::string pack() const;
  static CellParts unpack(std::string_view payload);
};

/// Take the parts out of a report: its channels, failed pairs, stages and counters, and of a matrix its samples too,
/// which are those of its own pairs.
CellParts take_parts(CellReport& report, Family family);

/// Keep the least of what a rank or a path has of something: `receive_buffer_bytes`, `send_buffer_bytes`.
void note_least(std::map<std::string, double>& values, const std::string& name, double value);

/// Put samples behind others of the same phase.
void append(PhaseSamples& samples, const PhaseSamples& others);

/// Turns whose times are global: that of a turn is when it ended.
struct TurnEnds {
  std::vector<std::int64_t> end_ns;
  std::vector<Batch> batches;
};

/// What some ranks of a cell report, joined; ranks join what comes from below with their own and pass it on. Of ranks
/// in their order it is the same in whichever groups they are joined: one failure is the cell's, counters add up.
/// Samples come from whoever took them. Where all ranks did, a call lasts as long as on its slowest rank; a turn from
/// the time at which the last rank was done with the one before until the last is done with it, so that turns add up to
/// the time that passed; and a window of a flood holds what arrived everywhere.
class CellMerge {
 public:
  static constexpr MessageType message_type = MessageType::report;

  /// Of no rank yet.
  explicit CellMerge(Family family) : family_(family) {}
  CellMerge(Family family, CellReport report);

  /// Add the next rank's, or those of the ranks that follow.
  void add(CellReport report) { join(CellMerge(family_, std::move(report))); }
  void join(CellMerge others);

  /// Send parts of the rank that this is of along, where all ranks' together stay small: not more than some bytes of
  /// each. Those that are larger the rank keeps until it is asked. Returns whether it does.
  bool push_parts(int rank, CellParts& parts, std::size_t most_bytes);
  /// In the order of the ranks.
  void for_each_pushed(const std::function<void(const CellParts&)>& act) const;
  /// Who keeps parts.
  const RankList& keepers() const { return keepers_; }

  /// What all of them say together; at least one must have been added.
  CellReport finish();

  std::string pack() const;
  static CellMerge unpack(std::string_view payload);

 private:
  Family family_;
  std::optional<CellReport> merged_;      // of a flood with the sums of times, of a lockstep without samples
  std::array<std::uint64_t, 2> ranks_{};  // that had samples in the warm-up and measured
  std::optional<TurnEnds> warmup_;
  std::optional<TurnEnds> measured_;
  std::string pushed_;  // packed, one after the other: whoever passes them on has no need to read them
  RankList keepers_;
};

/// Join so many windows of a flood's measured phase to one sample that it holds at least this much on average: a window
/// in which hardly a message was complete tells more of the messages' ends than of the rate. Sets the mean bytes of a
/// sample. A cell in which nothing arrived has failed.
void join_windows(CellReport& report, std::uint64_t least_bytes);

}  // namespace fabricbench
