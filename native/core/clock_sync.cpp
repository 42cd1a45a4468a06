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

#include "core/clock.hpp"

namespace fabricbench {
namespace {

constexpr int tag = 7;

// Points are spread over some 50 ms; each is the best of several exchanges.
constexpr int points_of_model = 10;
constexpr int exchanges_of_point = 12;
constexpr timespec between_points{0, 5'000'000};

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

void teach(MPI_Comm communicator, int learner, const ClockModel& own) {
  for (int i = 0; i < points_of_model * exchanges_of_point; ++i) {
    char question = 0;
    MPI_Recv(&question, 1, MPI_CHAR, learner, tag, communicator, MPI_STATUS_IGNORE);
    const Answer answer{static_cast<double>(own.to_global(KernelClock::now())), own.error_ns};
    MPI_Send(&answer, sizeof answer, MPI_CHAR, learner, tag, communicator);
  }
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

ClockModel learn(MPI_Comm communicator, int teacher) {
  std::vector<OffsetPoint> points;
  double teacher_error = 0;
  for (int i = 0; i < points_of_model; ++i) {
    if (i > 0) nanosleep(&between_points, nullptr);
    points.push_back(ask(communicator, teacher, teacher_error));
  }
  ClockModel model = fit_clock(points);
  model.error_ns += teacher_error;
  return model;
}

/// Keep what was found, and where the clock is the reference's own, use that.
ClockModel settled(ClockModel model, bool is_shared) {
  model.estimated_offset_ns = model.offset_ns;
  model.estimated_drift = model.drift;
  model.estimated_error_ns = model.error_ns;
  model.exchanges = points_of_model * exchanges_of_point;
  model.is_shared = is_shared;
  if (is_shared) model.offset_ns = model.drift = model.error_ns = 0;
  return model;
}

}  // namespace

std::string clock_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::array<char, 64> space{};
  if (!(file >> boot) || readlink("/proc/self/ns/time", space.data(), space.size() - 1) < 0) return {};
  return boot + " " + space.data();
}

ClockModel fit_clock(const std::vector<OffsetPoint>& all) {
  // A point whose every exchange was held up tells little: those within twice the best bound are used.
  const double best = std::ranges::min(all, {}, &OffsetPoint::bound_ns).bound_ns;
  std::vector<OffsetPoint> points;
  std::ranges::copy_if(all, std::back_inserter(points),
                       [best](const OffsetPoint& point) { return point.bound_ns <= 2 * best; });
  const auto count = static_cast<double>(points.size());
  double mean_time = 0;
  double mean_offset = 0;
  double bound = 0;
  for (const OffsetPoint& point : points) {
    mean_time += point.local_ns / count;
    mean_offset += point.offset_ns / count;
    bound = std::max(bound, point.bound_ns);
  }
  double squares = 0;
  double products = 0;
  for (const OffsetPoint& point : points) {
    squares += (point.local_ns - mean_time) * (point.local_ns - mean_time);
    products += (point.local_ns - mean_time) * (point.offset_ns - mean_offset);
  }
  const double slope = squares > 0 ? products / squares : 0;
  const double span = points.back().local_ns - points.front().local_ns;
  ClockModel model{.offset_ns = mean_offset, .at_ns = std::llround(mean_time), .is_shared = false};
  // A line that turns by less than the bounds over the time of its points tells nothing about the drift.
  if (std::abs(slope) * span > 2 * bound) model.drift = slope;
  double furthest = 0;
  for (const OffsetPoint& point : points) {
    const double line = mean_offset + model.drift * (point.local_ns - mean_time);
    furthest = std::max(furthest, std::abs(point.offset_ns - line));
  }
  model.error_ns = bound + furthest;
  return model;
}

ClockModel synchronise_clocks(MPI_Comm communicator, const std::string& identity) {
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &size);
  const bool is_shared = is_same_clock(communicator, identity);
  int stride = 1;
  while (stride < size) stride *= 2;
  ClockModel model{.is_shared = true};
  for (stride /= 2; stride > 0; stride /= 2) {
    const int place = rank % (2 * stride);
    if (place == 0 && rank + stride < size) teach(communicator, rank + stride, model);
    if (place == stride) model = settled(learn(communicator, rank - stride), is_shared);
  }
  return model;
}

ClockModel recheck_clock(MPI_Comm communicator, const std::string& identity, const ClockModel& model) {
  ClockModel now = synchronise_clocks(communicator, identity);
  const std::uint64_t local = KernelClock::now();
  if (!now.is_shared) {
    now.error_ns += std::abs(static_cast<double>(now.to_global(local) - model.to_global(local)));
  }
  return now;
}

}  // namespace fabricbench
