#include "core/clock_sync.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>

#include "core/clock.hpp"

namespace fabricbench {
namespace {

constexpr int tag = 7;

// Each point is the best of several exchanges.
constexpr int exchanges_of_point = 12;
// At the beginning; a synchronisation in between needs only to go on from there.
constexpr int points_at_first = 10;
constexpr int points_in_between = 3;
// Where all read one clock the line is only told, else it must carry: over half a second a drift is known to about the
// noise of a point a second.
constexpr timespec between_points_of_one_clock{0, 5'000'000};
constexpr timespec between_points_at_first{0, 50'000'000};
constexpr timespec between_points{0, 1'000'000};

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
// Points that lie on a line by chance do not make it exact.
constexpr double least_scatter = 0.25;

/// The 99.95 % quantile of Student's t, by its expansion in 1/degrees (Abramowitz and Stegun 26.7.5); within 3 % from 4
/// degrees on.
double t_quantile(double degrees) {
  constexpr double z = 3.2905;
  constexpr double z3 = z * z * z;
  constexpr double z5 = z3 * z * z;
  constexpr double z7 = z5 * z * z;
  return z + (z3 + z) / 4 / degrees + (5 * z5 + 16 * z3 + 3 * z) / 96 / (degrees * degrees) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / 384 / (degrees * degrees * degrees);
}

/// A teacher's answer: the global time when it was given, and how far that may be off.
struct Answer {
  double global_ns;
  double error_ns;
};

bool is_same_clock(MPI_Comm communicator, const std::string& identity) {
  std::array<char, 256> reference{};
  identity.copy(reference.data(), reference.size() - 1);
  MPI_Bcast(reference.data(), static_cast<int>(reference.size()), MPI_CHAR, 0, communicator);
  return !identity.empty() && identity.substr(0, reference.size() - 1) == reference.data();
}

bool is_on_all(MPI_Comm communicator, bool own) {
  int all = own ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, communicator);
  return all == 1;
}

OffsetPoint ask(MPI_Comm communicator, int teacher, double& teacher_error) {
  OffsetPoint best{.bound_ns = std::numeric_limits<double>::infinity()};
  for (int i = 0; i < exchanges_of_point; ++i) {
    const char question = 0;
    Answer answer{};
    const std::uint64_t begin = KernelClock::now();
    MPI_Send(&question, 1, MPI_CHAR, teacher, tag, communicator);
    MPI_Recv(&answer, sizeof answer, MPI_CHAR, teacher, tag, communicator, MPI_STATUS_IGNORE);
    const std::uint64_t end = KernelClock::now();
    const double half = static_cast<double>(end - begin) / 2;
    if (half >= best.bound_ns) continue;
    const double middle = static_cast<double>(begin) + half;
    best = {.local_ns = middle, .offset_ns = answer.global_ns - middle, .bound_ns = half};
    teacher_error = answer.error_ns;
  }
  return best;
}

/// Of the points of a rank those that still belong to one line.
void forget_old(std::vector<OffsetPoint>& points) {
  const double oldest_ns = points.back().local_ns - longest_history_ns;
  const auto is_recent = [&](const OffsetPoint& point) { return point.local_ns >= oldest_ns; };
  const auto first = std::ranges::find_if(points, is_recent);
  const auto most = points.end() - std::min(std::ssize(points), std::ptrdiff_t{points_at_first});
  points.erase(points.begin(), std::min(first, most));
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
  const auto weight_of = [&](const OffsetPoint& point) {
    const double noise = least_noise_ns + noise_of_bound * shortest_ns + point.bound_ns - shortest_ns;
    return 1 / (noise * noise);
  };
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

std::string clock_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::array<char, 64> space{};
  if (!(file >> boot) || readlink("/proc/self/ns/time", space.data(), space.size() - 1) < 0) return {};
  return boot + " " + space.data();
}

ClockModel fit_clock(const std::vector<OffsetPoint>& points) {
  const double shortest_ns = std::ranges::min(points, {}, &OffsetPoint::bound_ns).bound_ns;
  const Line line = line_through(points, shortest_ns);
  const auto count = static_cast<double>(points.size());
  const bool has_slope = points.size() >= least_points_of_line && line.squares > 0;
  const double width = line.scatter * t_quantile(std::max(count - 2, 3.0));
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

GlobalClock::GlobalClock(MPI_Comm communicator, std::string identity) : communicator_(communicator) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &size_);
  is_same_as_first_ = is_same_clock(communicator, identity);
  is_one_clock_ = is_on_all(communicator, is_same_as_first_);
  const timespec& pause = is_one_clock_ ? between_points_of_one_clock : between_points_at_first;
  for (int i = 0; i < points_at_first; ++i) {
    if (i > 0) nanosleep(&pause, nullptr);
    sweep();
  }
}

bool GlobalClock::is_due() const { return KernelClock::now() - synchronised_ns_ > due_after_ns; }

ClockCheck GlobalClock::synchronise_again() {
  const ClockModel before = model_;
  for (int i = 0; i < points_in_between; ++i) {
    if (i > 0) nanosleep(&between_points, nullptr);
    sweep();
  }
  const std::uint64_t now = KernelClock::now();
  const auto shift_ns = static_cast<double>(model_.to_global(now) - before.to_global(now));
  return {.model = model_, .shift_ns = shift_ns, .error_ns = std::abs(shift_ns) + model_.error_at(now)};
}

void GlobalClock::sweep() {
  int stride = 1;
  while (stride < size_) stride *= 2;
  for (stride /= 2; stride > 0; stride /= 2) {
    const int place = rank_ % (2 * stride);
    if (place == 0 && rank_ + stride < size_) teach(rank_ + stride);
    if (place == stride) learn(rank_ - stride);
  }
  synchronised_ns_ = KernelClock::now();
}

void GlobalClock::teach(int learner) const {
  for (int i = 0; i < exchanges_of_point; ++i) {
    char question = 0;
    MPI_Recv(&question, 1, MPI_CHAR, learner, tag, communicator_, MPI_STATUS_IGNORE);
    const std::uint64_t now = KernelClock::now();
    const Answer answer{static_cast<double>(model_.to_global(now)), model_.error_at(now)};
    MPI_Send(&answer, sizeof answer, MPI_CHAR, learner, tag, communicator_);
  }
}

/// Add a point; keep what the line says of it, and where the clock is the reference's own, use that.
void GlobalClock::learn(int teacher) {
  double teacher_error = 0;
  points_.push_back(ask(communicator_, teacher, teacher_error));
  forget_old(points_);
  exchanges_ += exchanges_of_point;
  model_ = fit_clock(points_);
  model_.error_ns += teacher_error;
  model_.estimated_offset_ns = model_.offset_ns;
  model_.estimated_drift = model_.drift;
  model_.estimated_error_ns = model_.error_ns;
  model_.exchanges = exchanges_;
  model_.is_shared = is_same_as_first_;
  if (is_same_as_first_) model_.offset_ns = model_.drift = model_.error_ns = model_.drift_error = 0;
}

ClockSpread spread_of(const std::vector<ClockCheck>& checks) {
  ClockSpread spread;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  double greatest = 0;
  for (const ClockCheck& check : checks) {
    least = std::min(least, check.shift_ns);
    most = std::max(most, check.shift_ns);
    const double second = std::min(greatest, check.error_ns);
    greatest = std::max(greatest, check.error_ns);
    spread.error_ns = std::max(spread.error_ns, greatest + second);
  }
  if (checks.size() > 1) spread.shift_ns = most - least;
  return spread;
}

}  // namespace fabricbench
