#include "mpi_operation/conductor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "base/failure.hpp"
#include "core/channel.hpp"
#include "core/rank_info.hpp"
#include "mpi_operation/operation.hpp"

namespace fabricbench {
namespace {

// From an order until the last rank has it and waits for the first call; grows where that is not enough.
constexpr std::int64_t least_lead_ns = 1'000'000;
constexpr std::int64_t lead_per_member_ns = 50'000;
constexpr std::int64_t lead_per_step_ns = 1'500'000;
static_assert(lead_per_step_ns > TreePlace::largest_star * lead_per_member_ns, "a star's lead is that of its members");
constexpr std::int64_t longest_lead = 8;  // times the lead at first: who is late after that does not wait for the order

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
constexpr double look_share = 0.1;  // of a short cell's time
constexpr std::size_t most_look_calls = 20;

// Who waits awake sees the start one reading of the clock late at worst; so many are no miss yet.
constexpr double readings_of_start = 8;
// Samples count from the agreed start: who is late is in the time. Never more than a call takes: where processors are
// shared, with ranks or with others, some can begin only once others wait in the call. A report notes what is more than
// a tenth of the time.
constexpr double most_late_share = 1;
// Ranks that share a processor begin one after the other: what nine of ten starts keep is usual there, and half more is
// no miss yet. The tolerance is recorded, so that a reader sees how well the ranks could begin together.
constexpr double usual_share = 0.9;
constexpr double tolerance_factor = 1.5;
// With fewer calls of a batch that nobody missed, what is usual is learnt again. Of a cell fewer are no measurement:
// those that all ranks came in time to may be other calls than the rest.
constexpr double least_valid = 0.5;
// A cell that has fewer such calls when its time is over goes on so many times as long, a second at least, and fails if
// it still has: of fewer than six samples the median has no interval of 95 %. A plan that is content with fewer gets
// them.
constexpr std::size_t least_samples = 6;
constexpr double patience = 4;
constexpr double least_patience_s = 1;

// A row back to back is taken in so many pieces: a time slice that somebody else took is in one of them.
constexpr std::size_t pieces_of_row = 5;
// Of the cell's time calls back to back have a quarter, as have calls after barriers; the agreed start has the rest.
constexpr double loop_share = 0.25;
constexpr std::size_t most_loop_calls = 100'000;
// The first calls of a loop after barriers warm up.
constexpr double loop_warmup_share = 0.1;

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

/// The time of a call of a batch in a row.
double time_in_a_row(const CallTimes& batch) {
  const auto times = batch.times();
  return static_cast<double>(times.back()) / static_cast<double>(times.size() - 1);
}

double mean_reading_ns() {
  constexpr int readings = 64;
  const std::uint64_t begin = Clock::now();
  std::uint64_t last = begin;
  for (int i = 0; i < readings; ++i) last = Clock::now();
  return static_cast<double>(last - begin) / readings;
}

std::int64_t window_for(std::uint64_t call_ns) {
  return static_cast<std::int64_t>(window_factor * static_cast<double>(call_ns)) + window_margin_ns;
}

/// From an order to its first call at first: so long for each member, or for each step down a tree of many.
std::int64_t first_lead_ns(std::size_t members) {
  return least_lead_ns + std::min(lead_per_member_ns * static_cast<std::int64_t>(members),
                                  lead_per_step_ns * static_cast<std::int64_t>(TreePlace::depth_of(members)));
}

// Long enough that reading the clock counts for little; the shortest of some, so that no interruption passes for it.
constexpr std::uint64_t trial_iterations = 50'000;
constexpr int trials = 7;

/// Each step needs the one before: it takes the latency of an addition and a multiplication, whatever the processor.
void compute(std::uint64_t iterations) {
  double value = 1.0;
  for (std::uint64_t i = 0; i < iterations; ++i) {
    value = value * 0.999999 + 1e-6;
    asm volatile("" : : "m"(value) : "memory");  // the result counts as used
  }
}

}  // namespace

void Computing::calibrate(std::int64_t time_ns) {
  std::uint64_t shortest_ns = ~std::uint64_t{0};
  for (int i = 0; i < trials; ++i) {
    const std::uint64_t begin = Clock::now();
    compute(trial_iterations);
    shortest_ns = std::min(shortest_ns, Clock::now() - begin);
  }
  const double iterations_per_ns = static_cast<double>(trial_iterations) / static_cast<double>(shortest_ns);
  iterations_ = static_cast<std::uint64_t>(static_cast<double>(time_ns) * iterations_per_ns);
}

void Computing::operator()() const { compute(iterations_); }

Conductor::Conductor(MPI_Comm communicator, Task& task, Take take, int threads)
    : communicator_(communicator),
      task_(task),
      take_(std::move(take)),
      waiting_(has_own_processors(communicator, threads) ? Waiting::spin : Waiting::sleep),
      reading_ns_(mean_reading_ns()),
      lead_ns_(first_lead_ns(task.team.size())) {}

Outcome Conductor::run(Also also) {
  if (task_.team.member() == 0) return lead(also);
  follow();
  return {};
}

void Conductor::follow() {
  TeamOrders<CallOrder> orders(task_.team);
  while (const std::optional<CallOrder> order = orders.next()) take(*order);
}

Outcome Conductor::lead(Also also) {
  const TeamOrders<CallOrder> orders(task_.team);
  orders_ = &orders;
  estimate();
  measure_loops(also.barrier_start);
  task_.findings.values["start_limit_ns"] = most_late_share * call_ns_;
  learn(CallPhase::estimate, generous * static_cast<std::int64_t>(call_ns_) + window_margin_ns,
        most_late_share * call_ns_);
  task_.findings.values["start_lateness_ns"] = static_cast<double>(median(copy_of(slowest_.lateness())));
  Stopping stopping = task_.probe.stopping;
  stopping.maximum_seconds *= 1 - loop_share * (also.barrier_start ? 2 : 1);
  Stopping warmup = stopping;
  warmup.minimum_samples = warmup.maximum_samples = task_.probe.warmup_samples;
  if (task_.probe.warmup_samples > 0) lead_phase(warmup, CallPhase::warmup);
  const Outcome outcome = lead_phase(stopping, CallPhase::measured);
  if (also.overlap) measure_overlap(static_cast<double>(median(valid_)));
  return outcome;
}

void Conductor::estimate() {
  direct(CallPhase::estimate, first_calls, 0);
  call_ns_ = time_in_a_row(slowest_);
}

/// How wide a window must be and how late a start is usual here, from calls that nobody counts, in windows that are
/// surely wide enough.
void Conductor::learn(CallPhase phase, std::int64_t window_ns, double most_late_ns) {
  const auto fitting = static_cast<std::size_t>(look_ns / static_cast<double>(window_ns));
  tolerance_ns_ = std::numeric_limits<std::int64_t>::max();
  most_late_ns_ = most_late_ns;
  direct(phase, std::clamp(fitting, first_calls, most_look_calls), window_ns);
  tolerance_ns_ = tolerance();
  window_ns_ = window_for(quantile(copy_of(slowest_.times()), window_quantile));
}

Outcome Conductor::lead_phase(const Stopping& stopping, CallPhase phase) {
  StoppingRule rule(stopping, task_.samples.scratch);
  // What hides behind computing is a figure beside the cell's own, of which one sample is better than none.
  const bool is_measured = phase == CallPhase::measured;
  const std::size_t least =
      is_measured ? std::min({least_samples, stopping.minimum_samples, stopping.maximum_samples}) : 1;
  Outcome outcome;
  valid_.clear();
  valid_.reserve(stopping.maximum_samples);
  std::size_t taken = 0;
  const auto has_enough = [&] {
    const double share = is_measured ? least_valid : 0;
    return valid_.size() >= least && static_cast<double>(valid_.size()) >= share * static_cast<double>(taken);
  };
  const std::uint64_t begin = Clock::now();
  while (!outcome.stop) {
    const double window_seconds = ns_to_seconds(static_cast<std::uint64_t>(window_ns_));
    const std::size_t wanted = rule.next_batch(valid_.size(), outcome.seconds, window_seconds);
    const std::size_t calls = std::min(wanted, stopping.maximum_samples - taken);
    direct(phase, calls, window_ns_);
    taken += calls;
    const std::size_t before = valid_.size();
    for (std::size_t i = 0; i < calls; ++i) {
      if (slowest_.lateness()[i] <= static_cast<std::uint64_t>(tolerance_ns_)) valid_.push_back(slowest_.times()[i]);
    }
    adapt(valid_.size() - before);
    outcome.seconds = ns_to_seconds(Clock::now() - begin);
    outcome.stop = rule.decide(valid_, outcome.seconds);
    const double patient_s = std::max(patience * stopping.maximum_seconds, least_patience_s);
    const bool has_patience = !has_enough() && outcome.seconds < patient_s;
    if (outcome.stop && outcome.stop != StopReason::count && has_patience) outcome.stop.reset();
    if (!outcome.stop && taken == stopping.maximum_samples) outcome.stop = StopReason::count;
  }
  std::map<std::string, double>& values = task_.findings.values;
  if (is_measured) {
    values["window_ns"] = static_cast<double>(window_ns_);
    values["start_tolerance_ns"] = static_cast<double>(tolerance_ns_);
  }
  if (!has_enough() && phase != CallPhase::warmup) {
    throw Failure(
        FailureCode::timeout,
        "in only " + std::to_string(valid_.size()) + " of " + std::to_string(taken) +
            " calls did all ranks begin within " + std::to_string(tolerance_ns_) + " ns of the agreed time, at least " +
            std::to_string(least) +
            " and half of them are needed: do more ranks than processors run here, or is something else taking the "
            "processors? What calls take back to back and after barriers is kept with the cell");
  }
  return outcome;
}

void Conductor::direct(CallPhase phase, std::size_t calls, std::int64_t window_ns) {
  const CallOrder order{.phase = phase,
                        .calls = static_cast<std::uint32_t>(calls),
                        .start_ns = next_start(),
                        .window_ns = window_ns,
                        .tolerance_ns = tolerance_ns_,
                        .compute_ns = compute_ns_,
                        .waiting = waiting_};
  orders_->give(order);
  take(order);
  slowest_window_ns_ = window_ns;
  if (slowest_.error() != MPI_SUCCESS) check_mpi(slowest_.error(), "a call on some rank");
  // Whoever begins a whole lead after the start had the order too late, whatever is usual here.
  const auto latest = static_cast<std::uint64_t>(std::min(tolerance_ns_, lead_ns_));
  const bool is_late = calls > 0 && slowest_.lateness().front() > latest;
  if (is_late) lead_ns_ = std::min(2 * lead_ns_, longest_lead * first_lead_ns(task_.team.size()));
}

std::int64_t Conductor::next_start() {
  const std::int64_t soon = task_.clock.to_global(Clock::now()) + lead_ns_;
  const bool is_first = std::exchange(is_first_order_, false);
  return is_first ? std::max(soon, task_.start_ns) : soon;
}

void Conductor::take(const CallOrder& order) {
  CallTimes own(order.calls);
  CallOrder own_order = order;
  own_order.waiting = waiting_;
  take_(own_order, own);
  join(own);
  if (order.phase == CallPhase::barrier_start) average(own);
  if (own.error() != MPI_SUCCESS) check_mpi(own.error(), name_of(task_.probe.pattern).data());
  keep(order);
}

/// A call lasts as long as on its slowest rank, which the first rank knows: no other has it to report.
void Conductor::keep(const CallOrder& order) {
  if (order.phase != CallPhase::warmup && order.phase != CallPhase::measured) return;
  if (task_.team.member() != 0 || slowest_.error() != MPI_SUCCESS) return;
  const bool is_measured = order.phase == CallPhase::measured;
  Series& series = is_measured ? task_.samples.measured : task_.samples.warmup;
  for (std::size_t i = 0; i < order.calls; ++i) {
    const bool is_missed = slowest_.lateness()[i] > static_cast<std::uint64_t>(order.tolerance_ns);
    if (is_missed && is_measured) task_.findings.missed.push_back(static_cast<std::uint32_t>(series.size()));
    series.push(slowest_.times()[i]);
  }
}

/// The greatest of all ranks on the first one.
void Conductor::join(CallTimes& own) {
  slowest_ = own;
  const std::span<std::uint64_t> values = own.values();
  std::ranges::copy(reduce(std::vector(values.begin(), values.end()), MPI_UINT64_T, MPI_MAX),
                    slowest_.values().begin());
}

/// Each rank's mean over its calls, averaged over ranks, as OSU's benchmarks print it.
void Conductor::average(const CallTimes& own) {
  const auto first = static_cast<std::size_t>(loop_warmup_share * static_cast<double>(own.times().size()));
  const auto times = own.times().subspan(first);
  const double mean_ns = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  barrier_start_ns_ =
      reduce(std::vector{mean_ns}, MPI_DOUBLE, MPI_SUM).front() / static_cast<double>(task_.team.size());
}

/// Of all ranks on the first one, the own values elsewhere. Whoever waits here sleeps, as on the control plane.
template <class Value>
std::vector<Value> Conductor::reduce(const std::vector<Value>& own, MPI_Datatype type, MPI_Op op) {
  struct Buffers {
    std::vector<Value> own;
    std::vector<Value> all;
  };
  const auto buffers = std::make_shared<Buffers>(own, own);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ireduce(buffers->own.data(), buffers->all.data(), static_cast<int>(own.size()), type, op, 0,
                        communicator_, &request),
            "MPI_Ireduce");
  task_.team.control().finish(request, buffers, "the times that some rank took for its calls");
  return std::move(buffers->all);
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
  if (static_cast<double>(valid) < least_valid * calls) tolerance_ns_ = std::max(tolerance_ns_, tolerance());
}

/// What the last batch says of how late a start may be before it is a miss; never more than a call takes.
std::int64_t Conductor::tolerance() const {
  const auto usual_ns = static_cast<double>(quantile(copy_of(slowest_.lateness()), usual_share));
  const double least_ns = readings_of_start * reading_ns_;
  return static_cast<std::int64_t>(
      std::clamp(tolerance_factor * usual_ns, least_ns, std::max(least_ns, most_late_ns_)));
}

/// What plain loops around the call show. Back to back, as IMB has it: the time of all calls over their number, on the
/// slowest rank; ranks that are done early begin the next call early. After a barrier each, as OSU has it: the mean
/// over calls, averaged over ranks. They are other figures than the time of a call that all begin together, and are
/// kept beside it.
///
/// What a call takes, by which a start is late or in time, is the greater of the two, for rooted calls run ahead back
/// to back; of each a median, which one lost time slice does not move.
void Conductor::measure_loops(bool with_barrier_start) {
  const double look_call_ns = look(CallPhase::back_to_back, call_ns_);
  const std::size_t calls = calls_of_loop(look_call_ns) / pieces_of_row + 1;
  double sum_ns = 0;
  std::vector<double> pieces;
  for (std::size_t piece = 0; piece < pieces_of_row; ++piece) {
    direct(CallPhase::back_to_back, std::max(calls, first_calls), 0);
    pieces.push_back(time_in_a_row(slowest_));
    sum_ns += pieces.back();
  }
  std::ranges::sort(pieces);
  call_ns_ = pieces[pieces_of_row / 2];
  task_.findings.values["back_to_back_ns"] = sum_ns / pieces_of_row;
  if (!with_barrier_start) return;
  // A barrier takes about as long as a small call.
  look(CallPhase::barrier_start, 2 * call_ns_);
  direct(CallPhase::barrier_start, calls_of_loop(2 * call_ns_), 0);
  call_ns_ = std::max(call_ns_, static_cast<double>(median(copy_of(slowest_.times()))));
  task_.findings.values["barrier_start_ns"] = barrier_start_ns_;
}

/// A short loop first: how long a call takes there.
double Conductor::look(CallPhase phase, double call_ns) {
  const double ns = std::min(look_ns, look_share * task_.probe.stopping.maximum_seconds * 1e9);
  direct(phase, std::clamp(static_cast<std::size_t>(ns / std::max(1.0, call_ns)), first_calls, most_look_calls), 0);
  return time_in_a_row(slowest_);
}

/// How many calls a loop has in its share of the cell's time.
std::size_t Conductor::calls_of_loop(double call_ns) const {
  const double ns = loop_share * task_.probe.stopping.maximum_seconds * 1e9;
  const std::size_t most = std::clamp(task_.probe.stopping.maximum_samples, first_calls, most_loop_calls);
  return std::clamp(static_cast<std::size_t>(ns / std::max(1.0, call_ns)), first_calls, most);
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
  // How late they begin is not in what hides, which is a difference: it has no bound here.
  constexpr double no_bound = std::numeric_limits<double>::infinity();
  learn(CallPhase::computing, generous * compute_ns_ + window_margin_ns, no_bound);
  lead_phase(stopping, CallPhase::computing);
  const auto compute_ns = static_cast<double>(median(valid_));
  learn(CallPhase::overlapped, generous * static_cast<std::int64_t>(pure_ns + compute_ns) + window_margin_ns, no_bound);
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
