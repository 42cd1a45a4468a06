// What a pattern works with and what it hands back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "core/channel.hpp"
#include "core/clock_sync.hpp"
#include "core/counters.hpp"
#include "core/message_buffer.hpp"
#include "core/plan.hpp"
#include "core/stages.hpp"

namespace fabricbench {

/// What unreliable layers lost and what verification found; counts messages.
struct Counters {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t verified = 0;

  void add(const Counters& other) {
    sent += other.sent;
    lost += other.lost;
    reordered += other.reordered;
    duplicated += other.duplicated;
    corrupted += other.corrupted;
    verified += other.verified;
  }
};

/// Turns that follow each other without a pause: where the first lies in its series, and the global time of its begin.
struct Batch {
  std::uint32_t first = 0;
  std::int64_t start_ns = 0;
};

/// Samples of one phase in the order they were taken. Memory is taken and touched beforehand; `push` never allocates.
class Series {
 public:
  /// Make room. `with_bytes`: also note how many bytes each sample held.
  void prepare(std::size_t capacity, bool with_bytes) {
    count_ = 0;
    batches_.clear();
    if (times_ns_.size() < capacity) times_ns_.resize(capacity);
    if (with_bytes && bytes_.size() < capacity) bytes_.resize(capacity);
    has_bytes_ = with_bytes;
  }
  std::span<const std::uint64_t> times_ns() const { return std::span(times_ns_).first(count_); }
  std::span<const std::uint64_t> bytes() const { return std::span(bytes_).first(has_bytes_ ? count_ : 0); }
  std::size_t size() const { return count_; }
  std::size_t room() const { return times_ns_.size() - count_; }

  /// The samples from now on follow each other without a pause, from this global time on.
  void begin_batch(std::int64_t start_ns) { batches_.push_back({static_cast<std::uint32_t>(count_), start_ns}); }
  const std::vector<Batch>& batches() const { return batches_; }

  void push(std::uint64_t time_ns) { times_ns_[count_++] = time_ns; }
  void push(std::uint64_t time_ns, std::uint64_t bytes) {
    bytes_[count_] = bytes;
    times_ns_[count_++] = time_ns;
  }

 private:
  std::vector<std::uint64_t> times_ns_;
  std::vector<std::uint64_t> bytes_;
  std::vector<Batch> batches_;
  std::size_t count_ = 0;
  bool has_bytes_ = false;
};

/// Both phases of a cell; kept from cell to cell so that memory is touched once.
struct Samples {
  Series warmup;
  Series measured;
  std::vector<std::uint64_t> scratch;  // of the stopping rule: room for all samples of either phase

  /// Make room for so many of each phase.
  void prepare(std::size_t warmups, std::size_t most_measured, bool with_bytes) {
    warmup.prepare(warmups, with_bytes);
    measured.prepare(most_measured, with_bytes);
    if (const std::size_t most = std::max(warmups, most_measured); scratch.size() < most) scratch.resize(most);
  }
};

/// What the numbers of a channel are (record/lines.py, Quantity).
enum class Quantity { transfer, round_trip, one_way };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Quantity>{"transfer", "round_trip", "one_way"};

/// What one logical channel did; ranks of the launch, not members. `bytes` is empty where the numbers are mere times.
struct ChannelReport {
  int source = 0;
  int destination = 0;
  std::size_t flow = 0;
  std::size_t round = 0;
  Quantity quantity = Quantity::transfer;
  std::vector<std::int64_t> time_ns;
  std::vector<std::uint64_t> bytes;
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
};

/// A pair of a matrix that could not be measured; ranks of the launch.
struct PairFailure {
  int source = 0;
  int destination = 0;
  FailureCode code = FailureCode::error;
  std::string reason;
};

/// Messages that a rank sent and received, untimed ones and those of the warm-up among them: what its counters are
/// divided by. Of a pattern that does not tell, none.
struct MessagesPassed {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  void add(const MessagesPassed& other) {
    sent += other.sent;
    received += other.received;
  }
};

/// What a pattern found beside its samples. `missed` are positions of measured samples whose start this rank missed.
struct Findings {
  std::vector<ChannelReport> channels;
  std::vector<PairFailure> failed_pairs;
  std::vector<std::uint32_t> missed;
  std::map<std::string, double> values;
  std::vector<StageReport> stages;  // of a cell that asks for them, by rank
  std::vector<CounterReport> counters{};
  MessagesPassed passed{};  // stays on its rank
};

/// What a pattern is asked to do on one rank of a cell.
struct Task {
  const PlanProbe& probe;
  const CellTeam& team;
  double clock_overhead_ns;
  std::uint32_t token;
  std::uint32_t& sequence;  // of the next message on the path of two, unreliable layers only; goes on from cell to cell
  Samples& samples;
  Counters& counters;
  Findings& findings;
  const ClockModel& clock;                // of this rank against the launch's rank 0
  std::int64_t start_ns = 0;              // global time at which a flood or the first call begins on all ranks
  std::size_t round = 0;                  // of patterns that change partners
  std::size_t rounds = 1;                 // they share the cell's time
  std::function<bool()> is_over;          // set for a congestor, which goes on until then and keeps no samples
  Allocate allocate = plain_memory;       // lends what messages lie in: memory of the device that the paths come from
  MemoryKind memory = MemoryKind::plain;  // what the cell asks for
  std::optional<double> patience_seconds{};  // how long ranks of the launch may be silent within a cell
};

/// What a pattern knows after it has measured. `stop` is there on the rank that applied the stopping rule.
struct Outcome {
  std::optional<StopReason> stop;
  double seconds = 0;
  std::size_t operations_per_sample = 1;
  std::size_t bytes_per_sample = 0;
  std::size_t channels = 1;  // logical channels in use at once
};

/// A pattern over the paths of one rank, with all buffers that it needs: built on every rank before any begins, so that
/// one which gets no memory keeps nobody waiting. It ends before its paths and its task do.
class Prepared {
 public:
  Prepared() = default;
  virtual ~Prepared() = default;
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  /// Take this rank's part, the others run theirs at the same time.
  virtual Outcome run() = 0;
};

}  // namespace fabricbench
