#include "core/clock_sync.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "base/clock.hpp"
#include "core/channel.hpp"
#include "core/set_aside.hpp"

namespace fabricbench {
namespace {

// Questions and answers are MPI's own calls with buffers of their own, not messages of a channel: a round trip is what
// is measured, and one that took memory, was packed and slept would say less of the clocks. Their tag is above all tags
// of layer mpi (transport/mpi.hpp): what its paths left behind on the same communicator is no answer.
constexpr int tag = 32765;

// Each point is the best of several exchanges; of more where even the best is held up, by a rank that has slept say.
// Where they take long, between virtual machines that wait for their ticks say, of those that the time is enough for:
// there are as many points as a tree of ranks is deep, many times in a launch.
constexpr int exchanges_of_point = 12;
constexpr int most_exchanges_of_point = 60;
constexpr int least_exchanges_of_point = 3;
constexpr double held_up = 1.15;
constexpr std::uint64_t enough_for_point_ns = 20'000'000;
// The line must carry at first: over half a second a drift is known to about the noise of a point a second. A
// synchronisation in between needs only to go on from there. Where all read one clock, the line is only told.
constexpr Sampling at_first{10, {0, 50'000'000}};
constexpr Sampling in_between{5, {0, 1'000'000}};
constexpr Sampling at_first_of_one_clock{4, {0, 2'000'000}};
constexpr Sampling in_between_of_one_clock{2, {0, 1'000'000}};

// Clocks wander: a line holds for some seconds (temperature, corrections from outside).
constexpr double longest_history_ns = 10e9;
constexpr double wander = 5e-8;
// What a quartz may be off, and more than two of them differ by as a rule.
constexpr double unknown_drift = 1e-4;
// Fewer leave a line's own error unknown.
constexpr std::size_t least_points_of_line = 5;

// A model this old is renewed before it is used again: within it even an unknown drift is some microseconds.
constexpr std::uint64_t due_after_ns = 100'000'000;

// Two readings of a clock and what a message's arrival differs by on an idle machine, beside which an excess of the
// round trip counts.
constexpr double least_noise_ns = 20;
constexpr double noise_of_bound = 0.02;
constexpr double standard_errors = 3;
// Points that lie on a line by chance do not make it exact.
constexpr double least_scatter = 0.25;

/// The 99.95 % quantile of Student's t for three degrees of freedom and more: the table, then the expansion in
/// 1/degrees (Abramowitz and Stegun 26.7.5), 1.3 % too small at six and less beyond.
double t_quantile(std::size_t degrees) {
  constexpr std::array table{12.924, 8.610, 6.869};
  constexpr std::size_t first = 3;
  if (degrees < first + table.size()) return table[std::max(degrees, first) - first];
  constexpr double z = 3.2905;
  constexpr double z3 = z * z * z;
  constexpr double z5 = z3 * z * z;
  constexpr double z7 = z5 * z * z;
  const auto n = static_cast<double>(degrees);
  return z + (z3 + z) / 4 / n + (5 * z5 + 16 * z3 + 3 * z) / 96 / (n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384 / (n * n * n);
}

/// A teacher's answer: the global time when it was given, and how far that may be off.
struct Answer {
  double global_ns;
  double error_ns;
};

/// What two ranks tell each other: MPI owns it until both messages are done with.
struct Exchange {
  bool is_over = false;  // the question: whether there is none any more
  Answer answer{};
};

// Who is asked answers at once, so that a wait is short; asleep it would add to the round trip.
constexpr std::uint64_t awake_ns = 1'000'000;

/// Throws ControlError where MPI reports an error: what an exchange then has is no answer.
void check(int error, int other) {
  if (error == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  throw ControlError("the clock of rank " + std::to_string(other) + " cannot be asked: " + text.data());
}

/// Whether a request is complete before it is better to sleep.
bool is_soon_finished(MPI_Request& request, int other) {
  const std::uint64_t begin = Clock::now();
  for (int is_done = 0;;) {
    check(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), other);
    if (is_done != 0) return true;
    if (Clock::now() - begin > awake_ns) return false;
  }
}

void finish(const Control& control, MPI_Request& request, const std::shared_ptr<Exchange>& exchange, int other) {
  if (is_soon_finished(request, other)) return;
  control.finish(std::exchange(request, MPI_REQUEST_NULL), exchange, "the clock of rank " + std::to_string(other));
}

/// What a point counts by: what its round trip took beyond the shortest, it lost on either way.
double noise_of(const OffsetPoint& point, double shortest_ns) {
  return least_noise_ns + noise_of_bound * shortest_ns + point.bound_ns - shortest_ns;
}

double shortest_of(const std::vector<OffsetPoint>& points) {
  return std::ranges::min(points, {}, &OffsetPoint::bound_ns).bound_ns;
}

/// The weighted sums of a regression around its means.
struct Line {
  double offset_ns = 0;
  double time_ns = 0;
  double weight = 0;
  double squares = 0;
  double slope = 0;
  double scatter = 0;  // of the points about the line, in units of their own noise
};

Line line_through(const std::vector<OffsetPoint>& points, double shortest_ns) {
  const auto weight_of = [&](const OffsetPoint& point) { return std::pow(noise_of(point, shortest_ns), -2); };
  // From the first point on: the times themselves have more digits than a double.
  const OffsetPoint& first = points.front();
  Line line;
  for (const OffsetPoint& point : points) {
    line.weight += weight_of(point);
    line.time_ns += weight_of(point) * (point.local_ns - first.local_ns);
    line.offset_ns += weight_of(point) * (point.offset_ns - first.offset_ns);
  }
  line.time_ns = first.local_ns + line.time_ns / line.weight;
  line.offset_ns = first.offset_ns + line.offset_ns / line.weight;
  double products = 0;
  for (const OffsetPoint& point : points) {
    const double distance = point.local_ns - line.time_ns;
    line.squares += weight_of(point) * distance * distance;
    products += weight_of(point) * distance * (point.offset_ns - line.offset_ns);
  }
  const bool has_slope = points.size() >= least_points_of_line && line.squares > 0;
  if (has_slope) line.slope = products / line.squares;
  double residuals = 0;
  for (const OffsetPoint& point : points) {
    const double residual = point.offset_ns - line.offset_ns - line.slope * (point.local_ns - line.time_ns);
    residuals += weight_of(point) * residual * residual;
  }
  const double degrees = static_cast<double>(points.size()) - (has_slope ? 2 : 1);
  line.scatter = std::max(least_scatter, degrees > 0 ? std::sqrt(residuals / degrees) : 1);
  return line;
}

}  // namespace

std::string clock_identity(const std::string& proc) {
  std::ifstream file(proc + "/sys/kernel/random/boot_id");
  std::string boot;
  if (!(file >> boot)) return {};
  std::array<char, 64> space{};
  if (readlink((proc + "/self/ns/time").c_str(), space.data(), space.size() - 1) >= 0) return boot + " " + space.data();
  // A kernel without namespaces of time has the others, and one clock.
  const bool has_none = errno == ENOENT && access((proc + "/self/ns").c_str(), X_OK) == 0;
  return has_none ? boot : std::string();
}

ClockModel fit_clock(const std::vector<OffsetPoint>& points) {
  const double shortest_ns = shortest_of(points);
  const Line line = line_through(points, shortest_ns);
  const bool has_slope = points.size() >= least_points_of_line && line.squares > 0;
  const double width = line.scatter * t_quantile(points.size() < 2 ? 0 : points.size() - 2);
  ClockModel model{.offset_ns = line.offset_ns,
                   .at_ns = std::llround(line.time_ns),
                   .error_ns = shortest_ns + width / std::sqrt(line.weight),
                   .drift_error = unknown_drift,
                   .is_shared = false};
  const double drift_error = has_slope ? wander + width / std::sqrt(line.squares) : unknown_drift;
  // A slope that says less than what any clock keeps is none.
  if (drift_error < unknown_drift) {
    model.drift = line.slope;
    model.drift_error = drift_error;
  }
  return model;
}

void OffsetHistory::add(const OffsetPoint& point) {
  if (is_off_line(point)) points_.clear();
  points_.push_back(point);
  const double oldest_ns = point.local_ns - longest_history_ns;
  const auto is_recent = [&](const OffsetPoint& one) { return one.local_ns >= oldest_ns; };
  const auto first = std::ranges::find_if(points_, is_recent);
  const auto most = points_.end() - std::min(std::ssize(points_), std::ptrdiff_t{at_first.points});
  points_.erase(points_.begin(), std::min(first, most));
}

/// The prediction interval of a regression (Student's t, 99.9 %), and what clocks wander.
bool OffsetHistory::is_off_line(const OffsetPoint& point) const {
  if (points_.size() < least_points_of_line) return false;
  const double shortest_ns = std::min(shortest_of(points_), point.bound_ns);
  const Line line = line_through(points_, shortest_ns);
  const double distance = point.local_ns - line.time_ns;
  const double variance = std::pow(noise_of(point, shortest_ns), 2) + 1 / line.weight +
                          (line.squares > 0 ? distance * distance / line.squares : 0);
  const double width = line.scatter * t_quantile(points_.size() - 2) * std::sqrt(variance);
  const double residual = point.offset_ns - line.offset_ns - line.slope * distance;
  return std::abs(residual) > width + wander * (point.local_ns - points_.back().local_ns);
}

ClockShift shift_from(const ClockModel& model, const std::vector<OffsetPoint>& points, double shortest_ns) {
  if (points.empty()) return {};
  double weights = 0;
  double sum = 0;
  for (const OffsetPoint& point : points) {
    const auto local_ns = static_cast<std::uint64_t>(point.local_ns);
    const auto model_ns = static_cast<double>(model.to_global(local_ns) - static_cast<std::int64_t>(local_ns));
    const double weight = std::pow(noise_of(point, shortest_ns), -2);
    weights += weight;
    sum += weight * (point.offset_ns - model_ns);
  }
  // No exchange is wrong by more than its bound.
  return {.shift_ns = sum / weights, .noise_ns = std::min(standard_errors / std::sqrt(weights), shortest_of(points))};
}

GlobalClock::GlobalClock(const Control& control, MPI_Comm communicator, const std::string& identity)
    : control_(&control), communicator_(communicator), rank_(control.rank()), size_(control.size()) {
  const Channel channel(control);
  is_same_as_first_ = !identity.empty() && identity == channel.broadcast(ClockIdentity{identity}).text;
  is_one_clock_ = channel.is_on_all(is_same_as_first_);
  learn_first();
  if (channel.is_on_all(is_together_)) return;
  is_one_clock_ = false;
  is_same_as_first_ = rank_ == 0;
  history_ = {};
  learn_first();
}

void GlobalClock::learn_first() { sweep_often(is_one_clock_ ? at_first_of_one_clock : at_first); }

bool GlobalClock::is_due() const { return Clock::now() - synchronised_ns_ > due_after_ns; }

ClockCheck GlobalClock::synchronise_again() {
  const ClockModel before = model_;
  fresh_.clear();
  sweep_often(is_one_clock_ ? in_between_of_one_clock : in_between);
  const std::uint64_t now = Clock::now();
  const ClockShift shift = is_same_as_first_ ? ClockShift{} : shift_from(before, fresh_, shortest_ns_);
  return {.model = model_,
          .shift_ns = shift.shift_ns,
          .noise_ns = shift.noise_ns,
          .error_ns = std::abs(shift.shift_ns) + model_.error_at(now)};
}

void GlobalClock::sweep_often(const Sampling& sampling) {
  for (int i = 0; i < sampling.points; ++i) {
    if (i > 0) nanosleep(&sampling.between, nullptr);
    sweep();
  }
}

void GlobalClock::sweep() {
  int stride = 1;
  while (stride < size_) stride *= 2;
  for (stride /= 2; stride > 0; stride /= 2) {
    const int place = rank_ % (2 * stride);
    if (place == 0 && rank_ + stride < size_) teach(rank_ + stride);
    if (place == stride) learn(rank_ - stride);
  }
  synchronised_ns_ = Clock::now();
}

void GlobalClock::teach(int learner) const {
  const auto exchange = std::make_shared<Exchange>();
  for (;;) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(&exchange->is_over, 1, MPI_CXX_BOOL, learner, tag, communicator_, &request), learner);
    finish(*control_, request, exchange, learner);
    if (exchange->is_over) return;
    const std::uint64_t now = Clock::now();
    exchange->answer = {static_cast<double>(model_.to_global(now)), model_.error_at(now)};
    check(MPI_Isend(&exchange->answer, sizeof exchange->answer, MPI_CHAR, learner, tag, communicator_, &request),
          learner);
    finish(*control_, request, exchange, learner);
  }
}

OffsetPoint GlobalClock::ask(int teacher, double& teacher_error) {
  OffsetPoint best{.bound_ns = std::numeric_limits<double>::infinity()};
  const auto exchange = std::make_shared<Exchange>();
  MPI_Request asked = MPI_REQUEST_NULL;
  MPI_Request answered = MPI_REQUEST_NULL;
  std::uint64_t first_ns = 0;  // when the teacher had answered first, and was free
  const auto is_enough = [&](int taken) {
    if (taken >= least_exchanges_of_point && Clock::now() - first_ns > enough_for_point_ns) return true;
    return taken == most_exchanges_of_point || (taken >= exchanges_of_point && best.bound_ns <= held_up * shortest_ns_);
  };
  int taken = 0;
  try {
    for (; !is_enough(taken); ++taken) {
      check(MPI_Irecv(&exchange->answer, sizeof exchange->answer, MPI_CHAR, teacher, tag, communicator_, &answered),
            teacher);
      const std::uint64_t begin = Clock::now();
      check(MPI_Isend(&exchange->is_over, 1, MPI_CXX_BOOL, teacher, tag, communicator_, &asked), teacher);
      finish(*control_, answered, exchange, teacher);
      const std::uint64_t end = Clock::now();
      finish(*control_, asked, exchange, teacher);
      if (taken == 0) first_ns = end;
      const double half = static_cast<double>(end - begin) / 2;
      if (half >= best.bound_ns) continue;
      const double middle = static_cast<double>(begin) + half;
      best = {.local_ns = middle, .offset_ns = exchange->answer.global_ns - middle, .bound_ns = half};
      teacher_error = exchange->answer.error_ns;
    }
    exchange->is_over = true;
    check(MPI_Isend(&exchange->is_over, 1, MPI_CXX_BOOL, teacher, tag, communicator_, &asked), teacher);
    finish(*control_, asked, exchange, teacher);
  } catch (...) {
    for (const MPI_Request left : {asked, answered}) set_aside(left, exchange);
    throw;
  }
  exchanges_ += taken;
  shortest_ns_ = std::min(shortest_ns_, best.bound_ns);
  return best;
}

void GlobalClock::learn(int teacher) {
  double teacher_error = 0;
  const OffsetPoint point = ask(teacher, teacher_error);
  // One clock read twice is apart by no more than the exchange may be wrong, whatever chance did.
  if (is_same_as_first_) is_together_ = is_together_ && std::abs(point.offset_ns) <= point.bound_ns + teacher_error;
  history_.add(point);
  fresh_.push_back(point);
  model_ = fit_clock(history_.points());
  model_.error_ns += teacher_error;
  model_.estimated_offset_ns = model_.offset_ns;
  model_.estimated_drift = model_.drift;
  model_.estimated_error_ns = model_.error_ns;
  model_.exchanges = exchanges_;
  model_.is_shared = is_same_as_first_;
  // Where the clock is the reference's own, that is used.
  if (is_same_as_first_) model_.offset_ns = model_.drift = model_.error_ns = model_.drift_error = 0;
}

ClockSpread spread_of(const std::vector<ClockCheck>& checks) {
  ClockSpread spread;
  // Of two ranks at most both are wrong, each by its own bound.
  const auto sum_of_two = [&](double ClockCheck::* value) {
    double greatest = 0;
    double sum = 0;
    for (const ClockCheck& check : checks) {
      sum = std::max(sum, check.*value + greatest);
      greatest = std::max(greatest, check.*value);
    }
    return sum;
  };
  spread.error_ns = sum_of_two(&ClockCheck::error_ns);
  if (checks.size() < 2) return spread;
  spread.noise_ns = sum_of_two(&ClockCheck::noise_ns);
  const auto [least, most] = std::ranges::minmax_element(checks, {}, &ClockCheck::shift_ns);
  spread.shift_ns = most->shift_ns - least->shift_ns;
  return spread;
}

}  // namespace fabricbench
