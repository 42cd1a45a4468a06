// How what the ranks of a cell report is joined; report.cpp has it as messages.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "core/report.hpp"

namespace fabricbench {
namespace {

/// A call lasts as long as on its slowest rank; what not all ranks have is not complete.
void take_slowest(PhaseSamples& merged, const PhaseSamples& other) {
  const std::size_t count = std::min(merged.time_ns.size(), other.time_ns.size());
  merged.time_ns.resize(count);
  for (std::size_t i = 0; i < count; ++i) merged.time_ns[i] = std::max(merged.time_ns[i], other.time_ns[i]);
}

TurnEnds ends_of(const PhaseSamples& samples) {
  TurnEnds ends{.end_ns = {}, .batches = samples.batches};
  ends.end_ns.reserve(samples.time_ns.size());
  auto batch = samples.batches.begin();
  std::int64_t now_ns = 0;
  for (const std::uint64_t time_ns : samples.time_ns) {
    if (batch != samples.batches.end() && batch->first == ends.end_ns.size()) now_ns = (batch++)->start_ns;
    now_ns += static_cast<std::int64_t>(time_ns);
    ends.end_ns.push_back(now_ns);
  }
  return ends;
}

/// All ranks take the same batches; one that has failed has the first of them.
void take_last(TurnEnds& merged, const TurnEnds& other) {
  merged.end_ns.resize(std::min(merged.end_ns.size(), other.end_ns.size()));
  for (std::size_t i = 0; i < merged.end_ns.size(); ++i) {
    merged.end_ns[i] = std::max(merged.end_ns[i], other.end_ns[i]);
  }
  merged.batches.resize(std::min(merged.batches.size(), other.batches.size()));
  for (std::size_t i = 0; i < merged.batches.size(); ++i) {
    merged.batches[i].start_ns = std::max(merged.batches[i].start_ns, other.batches[i].start_ns);
  }
}

void join_turns(std::optional<TurnEnds>& merged, std::optional<TurnEnds> other) {
  if (!other) return;
  if (merged) {
    take_last(*merged, *other);
  } else {
    merged = std::move(other);
  }
}

/// Those of one rank; nothing where it took none.
std::optional<TurnEnds> turns_of(const PhaseSamples& samples) {
  if (samples.time_ns.empty()) return std::nullopt;
  return ends_of(samples);
}

/// A turn lasts from the end of the one before on its last rank to its own end on its last rank.
PhaseSamples turns_between(const TurnEnds& ends) {
  PhaseSamples turns;
  turns.time_ns.reserve(ends.end_ns.size());
  auto batch = ends.batches.begin();
  std::int64_t before_ns = 0;
  for (const std::int64_t end_ns : ends.end_ns) {
    if (batch != ends.batches.end() && batch->first == turns.time_ns.size()) before_ns = (batch++)->start_ns;
    turns.time_ns.push_back(static_cast<std::uint64_t>(end_ns - before_ns));
    before_ns = end_ns;
  }
  return turns;
}

/// A window of a flood holds what arrived everywhere. Ranks that only send have no windows. Times differ by a message
/// or so: they are summed up here, and their mean goes on.
void add_window(PhaseSamples& merged, const PhaseSamples& other) {
  const std::size_t count = std::min(merged.time_ns.size(), other.time_ns.size());
  merged.time_ns.resize(count);
  merged.bytes.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    merged.time_ns[i] += other.time_ns[i];
    merged.bytes[i] += other.bytes[i];
  }
}

void merge_samples(CellReport& merged, CellReport& other, Family family) {
  for (const auto phase : {&CellReport::warmup, &CellReport::measured}) {
    if ((other.*phase).time_ns.empty()) continue;
    if ((merged.*phase).time_ns.empty()) {
      merged.*phase = std::move(other.*phase);
    } else if (family == Family::operation) {
      take_slowest(merged.*phase, other.*phase);
    } else if (family == Family::flood) {
      add_window(merged.*phase, other.*phase);
    } else {
      merged.*phase = std::move(other.*phase);
    }
  }
}

/// Each once, in order.
void deduplicate(std::vector<std::uint32_t>& positions) {
  std::ranges::sort(positions);
  positions.erase(std::ranges::unique(positions).begin(), positions.end());
}

void merge_findings(Findings& merged, const Findings& other) {
  merged.channels.insert(merged.channels.end(), other.channels.begin(), other.channels.end());
  merged.failed_pairs.insert(merged.failed_pairs.end(), other.failed_pairs.begin(), other.failed_pairs.end());
  merged.missed.insert(merged.missed.end(), other.missed.begin(), other.missed.end());
  merged.stages.insert(merged.stages.end(), other.stages.begin(), other.stages.end());
  merged.counters.insert(merged.counters.end(), other.counters.begin(), other.counters.end());
  deduplicate(merged.missed);
  for (const auto& [name, value] : other.values) {
    if (name.ends_with("_buffer_bytes")) {
      note_least(merged.values, name, value);
    } else {
      merged.values.insert({name, value});
    }
  }
}

}  // namespace

void note_least(std::map<std::string, double>& values, const std::string& name, double value) {
  const auto [place, is_first] = values.insert({name, value});
  if (!is_first) place->second = std::min(place->second, value);
}

void append(PhaseSamples& samples, const PhaseSamples& others) {
  const auto before = static_cast<std::uint32_t>(samples.time_ns.size());
  for (const Batch& batch : others.batches) samples.batches.push_back({before + batch.first, batch.start_ns});
  samples.time_ns.insert(samples.time_ns.end(), others.time_ns.begin(), others.time_ns.end());
  samples.bytes.insert(samples.bytes.end(), others.bytes.begin(), others.bytes.end());
}

CellMerge::CellMerge(Family family, CellReport report) : family_(family), merged_(std::move(report)) {
  ranks_ = {merged_->warmup.time_ns.empty() ? 0U : 1U, merged_->measured.time_ns.empty() ? 0U : 1U};
  deduplicate(merged_->findings.missed);
  if (family_ != Family::lockstep) return;
  warmup_ = turns_of(std::exchange(merged_->warmup, {}));
  measured_ = turns_of(std::exchange(merged_->measured, {}));
}

void CellMerge::join(CellMerge others) {
  pushed_ += others.pushed_;
  keepers_.append(others.keepers_);
  if (!others.merged_) return;
  for (std::size_t phase = 0; phase < ranks_.size(); ++phase) ranks_[phase] += others.ranks_[phase];
  join_turns(warmup_, std::move(others.warmup_));
  join_turns(measured_, std::move(others.measured_));
  if (!merged_) {
    merged_ = std::move(others.merged_);
    return;
  }
  CellReport& report = *others.merged_;
  if (!merged_->failure) merged_->failure = report.failure;
  if (report.outcome.stop && !merged_->outcome.stop) merged_->outcome = report.outcome;
  merged_->counters.add(report.counters);
  merge_samples(*merged_, report, family_);
  if (merged_->interfaces.empty()) merged_->interfaces = report.interfaces;
  merged_->other_hosts.merge(report.other_hosts);
  for (auto& [host, state] : report.port_state) merged_->port_state[host].merge(state);
  for (const RdmaAttachment& one : report.rdma) add_attachment(merged_->rdma, one);
  if (!merged_->span) merged_->span = report.span;
  merge_findings(merged_->findings, report.findings);
  merged_->has_parts = merged_->has_parts || report.has_parts;
}

CellReport CellMerge::finish() {
  CellReport merged = std::move(merged_.value());
  if (family_ == Family::lockstep) {
    merged.warmup = turns_between(warmup_.value_or(TurnEnds{}));
    merged.measured = turns_between(measured_.value_or(TurnEnds{}));
  }
  if (family_ == Family::flood) {
    for (std::uint64_t& time_ns : merged.warmup.time_ns) time_ns /= ranks_[0];
    for (std::uint64_t& time_ns : merged.measured.time_ns) time_ns /= ranks_[1];
  }
  std::erase_if(merged.findings.missed,
                [&](std::uint32_t position) { return position >= merged.measured.time_ns.size(); });
  return merged;
}

void join_windows(CellReport& report, std::uint64_t least_bytes) {
  PhaseSamples& windows = report.measured;
  const std::size_t count = windows.bytes.size();
  if (count == 0) return;
  const std::uint64_t total = std::accumulate(windows.bytes.begin(), windows.bytes.end(), std::uint64_t{0});
  // What all windows together hold, divided by what each is to hold; what is left over is spread, not dropped.
  const std::size_t samples = std::clamp<std::size_t>(total / std::max<std::uint64_t>(least_bytes, 1), 1, count);
  PhaseSamples joined;
  for (std::size_t i = 0; i < samples; ++i) {
    std::uint64_t time_ns = 0;
    std::uint64_t bytes = 0;
    for (std::size_t k = i * count / samples; k < (i + 1) * count / samples; ++k) {
      time_ns += windows.time_ns[k];
      bytes += windows.bytes[k];
    }
    joined.time_ns.push_back(time_ns);
    joined.bytes.push_back(bytes);
  }
  windows = std::move(joined);
  if (total == 0 && !report.failure) {
    report.failure = CellFailure{FailureCode::timeout,
                                 "nothing arrived while it was measured: does a message take longer than the cell's "
                                 "time? Give it more, or smaller messages"};
  }
  report.outcome.bytes_per_sample = std::max<std::uint64_t>(1, total / samples);
}

}  // namespace fabricbench
