#include "mpi_operation/conductor.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "core/control.hpp"
#include "core/failure.hpp"
#include "mpi_operation/mpi_error.hpp"

namespace fabricbench {
namespace {

// From an order until the last rank has it and waits for the first call; grows where that is not enough.
constexpr std::int64_t least_lead_ns = 1'000'000;
constexpr std::int64_t lead_per_member_ns = 50'000;
constexpr std::int64_t longest_lead_ns = 100'000'000;

// Between the end of a call and the next start a rank falls asleep and wakes up again.
constexpr std::int64_t window_margin_ns = 100'000;
// A window holds what nearly all calls take, and a quarter more.
constexpr double window_quantile = 0.95;
constexpr double window_factor = 1.25;
// More calls than that outlast their window, and windows are widened at once: the next start would be missed.
constexpr double most_overruns = 0.02;
constexpr double widening = 1.5;

// The first looks at an operation: some calls back to back, then some with windows that are surely wide enough.
constexpr std::size_t first_calls = 3;
constexpr std::int64_t generous = 4;
constexpr double look_ns = 20e6;
constexpr std::size_t most_look_calls = 20;

// Who begins this late has surely not missed the start: a few readings of the clock and an interrupt.
constexpr std::int64_t least_tolerance_ns = 2'000;
// Ranks that share a processor begin one after the other: what nine of ten starts keep is usual there, and half more is
// no miss yet. The tolerance is recorded, so that a reader sees how well the ranks could begin together.
constexpr double usual_share = 0.9;
constexpr double tolerance_factor = 1.5;
// With fewer calls of a batch that nobody missed, what is usual is learnt again.
constexpr double least_valid = 0.5;
// A cell that has no such call when its time is over goes on so many times as long.
constexpr double patience = 4;

// How long calls run back to back, of the cell's time.
constexpr double back_to_back_share = 0.1;
constexpr std::size_t most_back_to_back = 10'000;

// What is learnt of the overlap needs no more samples than a median does.
constexpr std::size_t overlap_samples = 500;

std::uint64_t quantile(std::vector<std::uint64_t> values, double share) {
  if (values.empty()) return 0;
  const auto position = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
  std::ranges::nth_element(values, values.begin() + position);
  return values[static_cast<std::size_t>(position)];
}

std::uint64_t median(const std::vector<std::uint64_t>& values) { return quantile(values, 0.5); }

std::vector<std::uint64_t> copy_of(std::span<const std::uint64_t> values) { return {values.begin(), values.end()}; }

/// The time of a call of a batch without windows, where all times count from the first start. The first call is left
/// out: it may open connections, and ranks come to it one by one.
double time_between_ends(const CallTimes& batch) {
  const auto ends = batch.times();
  return static_cast<double>(ends.back() - ends.front()) / static_cast<double>(ends.size() - 1);
}

std::int64_t window_for(std::uint64_t call_ns) {
  return static_cast<std::int64_t>(window_factor * static_cast<double>(call_ns)) + window_margin_ns;
}

/// Lets the others go when the first rank is done, however it ends.
class End {
 public:
  explicit End(const CellTeam& team) : team_(team) {}
  ~End() {
    for (std::size_t member = 1; member < team_.size(); ++member) team_.send(member, CallOrder{});
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

 private:
  const CellTeam& team_;
};

}  // namespace

Conductor::Conductor(MPI_Comm communicator, Task& task, Take take)
    : communicator_(communicator),
      task_(task),
      take_(std::move(take)),
      lead_ns_(least_lead_ns + lead_per_member_ns * static_cast<std::int64_t>(task.team.size())) {}

Outcome Conductor::run(bool with_overlap) {
  if (task_.team.member() == 0) return lead(with_overlap);
  follow();
  return {};
}

void Conductor::follow() {
  for (;;) {
    const auto order = task_.team.receive<CallOrder>(0);
    if (order.phase == CallPhase::over) return;
    take(order);
  }
}

Outcome Conductor::lead(bool with_overlap) {
  const End end(task_.team);
  estimate();
  Stopping warmup = task_.probe.stopping;
  warmup.minimum_samples = warmup.maximum_samples = task_.probe.warmup_samples;
  if (task_.probe.warmup_samples > 0) lead_phase(warmup, CallPhase::warmup);
  const Outcome outcome = lead_phase(task_.probe.stopping, CallPhase::measured);
  task_.findings.values["window_ns"] = static_cast<double>(window_ns_);
  task_.findings.values["start_tolerance_ns"] = static_cast<double>(tolerance_ns_);
  measure_back_to_back();
  if (with_overlap) measure_overlap(static_cast<double>(median(valid_)));
  return outcome;
}

void Conductor::estimate() {
  tolerance_ns_ = std::numeric_limits<std::int64_t>::max();
  direct(CallPhase::estimate, first_calls, 0);
  back_to_back_ns_ = time_between_ends(slowest_);
  learn(CallPhase::estimate, generous * static_cast<std::int64_t>(back_to_back_ns_) + window_margin_ns);
  const std::vector<std::uint64_t> lateness = copy_of(slowest_.lateness());
  task_.findings.values["start_lateness_ns"] = static_cast<double>(median(lateness));
}

/// How wide a window must be and how late a start is usual here, from calls that nobody counts, in windows that are
/// surely wide enough.
void Conductor::learn(CallPhase phase, std::int64_t window_ns) {
  const auto fitting = static_cast<std::size_t>(look_ns / static_cast<double>(window_ns));
  tolerance_ns_ = std::numeric_limits<std::int64_t>::max();
  direct(phase, std::clamp(fitting, first_calls, most_look_calls), window_ns);
  tolerance_ns_ = usual_lateness();
  window_ns_ = window_for(quantile(copy_of(slowest_.times()), window_quantile));
}

Outcome Conductor::lead_phase(const Stopping& stopping, CallPhase phase) {
  StoppingRule rule(stopping);
  Outcome outcome;
  valid_.clear();
  valid_.reserve(stopping.maximum_samples);
  std::size_t taken = 0;
  const std::uint64_t begin = KernelClock::now();
  while (!outcome.stop) {
    const double window_seconds = static_cast<double>(window_ns_) * 1e-9;
    const std::size_t wanted = rule.next_batch(valid_.size(), outcome.seconds, window_seconds);
    const std::size_t calls = std::min(wanted, stopping.maximum_samples - taken);
    direct(phase, calls, window_ns_);
    taken += calls;
    const std::size_t before = valid_.size();
    for (std::size_t i = 0; i < calls; ++i) {
      if (slowest_.lateness()[i] <= static_cast<std::uint64_t>(tolerance_ns_)) valid_.push_back(slowest_.times()[i]);
    }
    adapt(valid_.size() - before);
    outcome.seconds = static_cast<double>(KernelClock::now() - begin) * 1e-9;
    outcome.stop = rule.decide(valid_, outcome.seconds);
    const bool has_patience = valid_.empty() && outcome.seconds < patience * stopping.maximum_seconds;
    if (outcome.stop == StopReason::time && has_patience) outcome.stop.reset();
    if (!outcome.stop && taken == stopping.maximum_samples) outcome.stop = StopReason::count;
  }
  if (valid_.empty() && phase != CallPhase::warmup) {
    throw Failure(FailureCode::timeout,
                  "in none of " + std::to_string(taken) +
                      " calls did all ranks begin at the agreed time: do more ranks than processors run here, or is "
                      "something else taking the processors?");
  }
  return outcome;
}

void Conductor::direct(CallPhase phase, std::size_t calls, std::int64_t window_ns) {
  const CallOrder order{.phase = phase,
                        .calls = static_cast<std::uint32_t>(calls),
                        .start_ns = next_start(),
                        .window_ns = window_ns,
                        .tolerance_ns = tolerance_ns_,
                        .compute_ns = compute_ns_};
  for (std::size_t member = 1; member < task_.team.size(); ++member) task_.team.send(member, order);
  take(order);
  slowest_window_ns_ = window_ns;
  if (slowest_.error() != MPI_SUCCESS) check_mpi(slowest_.error(), "a call on some rank");
  const bool is_late = calls > 0 && slowest_.lateness().front() > static_cast<std::uint64_t>(tolerance_ns_);
  if (is_late) lead_ns_ = std::min(2 * lead_ns_, longest_lead_ns);
}

std::int64_t Conductor::next_start() {
  const std::int64_t soon = task_.clock.to_global(KernelClock::now()) + lead_ns_;
  const bool is_first = std::exchange(is_first_order_, false);
  return is_first ? std::max(soon, task_.start_ns) : soon;
}

void Conductor::take(const CallOrder& order) {
  CallTimes own(order.calls);
  take_(order, own);
  join(own);
  if (own.error() != MPI_SUCCESS) check_mpi(own.error(), name_of(task_.probe.pattern).data());
  keep(order, own);
}

void Conductor::keep(const CallOrder& order, const CallTimes& own) {
  if (order.phase != CallPhase::warmup && order.phase != CallPhase::measured) return;
  const bool is_measured = order.phase == CallPhase::measured;
  Series& series = is_measured ? task_.samples.measured : task_.samples.warmup;
  for (std::size_t i = 0; i < order.calls; ++i) {
    const bool is_missed = own.lateness()[i] > static_cast<std::uint64_t>(order.tolerance_ns);
    if (is_missed && is_measured) task_.findings.missed.push_back(static_cast<std::uint32_t>(series.size()));
    series.push(own.times()[i]);
  }
}

/// The greatest of all ranks on the first one. Whoever waits here sleeps, as on the control plane.
void Conductor::join(CallTimes& own) {
  slowest_ = own;
  MPI_Request request = MPI_REQUEST_NULL;
  const std::span<std::uint64_t> values = own.values();
  check_mpi(MPI_Ireduce(values.data(), slowest_.values().data(), static_cast<int>(values.size()), MPI_UINT64_T, MPI_MAX,
                        0, communicator_, &request),
            "MPI_Ireduce");
  Pause pause;
  for (int is_done = 0; is_done == 0;) {
    check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done == 0) pause.sleep();
  }
}

/// Fit the windows to what the last batch took; nobody missed `valid` of its calls.
void Conductor::adapt(std::size_t valid) {
  const auto calls = static_cast<double>(slowest_.times().size());
  if (valid > 0) {
    const std::vector<std::uint64_t> last(valid_.end() - static_cast<std::ptrdiff_t>(valid), valid_.end());
    window_ns_ = std::max(window_for(quantile(last, window_quantile)), window_ns_ / 2);
  }
  const auto window = static_cast<std::uint64_t>(slowest_window_ns_);
  const auto overruns = std::ranges::count_if(slowest_.times(), [&](std::uint64_t time) { return time > window; });
  if (static_cast<double>(overruns) > most_overruns * calls) {
    window_ns_ = std::max(window_ns_, static_cast<std::int64_t>(widening * static_cast<double>(slowest_window_ns_)));
  }
  // The machine is not what it was when the tolerance was learnt: somebody else takes the processors now.
  if (static_cast<double>(valid) < least_valid * calls) tolerance_ns_ = std::max(tolerance_ns_, usual_lateness());
}

/// What the last batch says of how late a start may be before it is a miss.
std::int64_t Conductor::usual_lateness() const {
  const auto usual_ns = static_cast<double>(quantile(copy_of(slowest_.lateness()), usual_share));
  return std::max(least_tolerance_ns, static_cast<std::int64_t>(tolerance_factor * usual_ns));
}

/// What a plain loop around the call shows: the time of all calls over their number, on the slowest rank. Ranks that
/// are done early begin the next call early there, so that it is another figure than the time of a call that all begin
/// together, and is kept beside it.
void Conductor::measure_back_to_back() {
  const double seconds = back_to_back_share * task_.probe.stopping.maximum_seconds;
  const double fitting = seconds * 1e9 / std::max(1.0, back_to_back_ns_);
  direct(CallPhase::back_to_back,
         std::clamp(static_cast<std::size_t>(fitting), first_calls,
                    std::min(most_back_to_back, std::max(first_calls, task_.probe.stopping.maximum_samples))),
         0);
  back_to_back_ns_ = time_between_ends(slowest_);
  task_.findings.values["back_to_back_ns"] = back_to_back_ns_;
}

/// How much of the pure call's time hides behind computing of the same length, as IMB-NBC defines it: 1 if the longer
/// of both is all that remains, 0 if they add up. The computing loop makes no MPI call, so only what the library or the
/// network does on its own is hidden.
void Conductor::measure_overlap(double pure_ns) {
  Stopping stopping = task_.probe.stopping;
  stopping.maximum_samples = std::min(stopping.maximum_samples, overlap_samples);
  stopping.minimum_samples = std::min(stopping.minimum_samples, stopping.maximum_samples);
  stopping.maximum_seconds /= 2;
  stopping.minimum_seconds /= 2;
  compute_ns_ = static_cast<std::int64_t>(pure_ns);
  direct(CallPhase::calibrate, 0, 0);
  // Where ranks share a processor, one computes while the other would begin: what is usual is another time and again.
  learn(CallPhase::computing, generous * compute_ns_ + window_margin_ns);
  lead_phase(stopping, CallPhase::computing);
  const auto compute_ns = static_cast<double>(median(valid_));
  learn(CallPhase::overlapped, generous * static_cast<std::int64_t>(pure_ns + compute_ns) + window_margin_ns);
  lead_phase(stopping, CallPhase::overlapped);
  const auto overlapped_ns = static_cast<double>(median(valid_));
  const double hidden = (pure_ns + compute_ns - overlapped_ns) / std::max(1.0, std::min(pure_ns, compute_ns));
  std::map<std::string, double>& values = task_.findings.values;
  values["pure_ns"] = pure_ns;
  values["compute_ns"] = compute_ns;
  values["overlapped_ns"] = overlapped_ns;
  values["overlap"] = std::clamp(hidden, 0.0, 1.0);
}

}  // namespace fabricbench
