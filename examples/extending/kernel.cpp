// fabricbench-jacobi: sweeps of Jacobi's method over a line of n points between two that are 0. Every sweep replaces
// each point by the mean of its neighbours. A half wave, u_i = sin(pi i / (n + 1)), is an eigenvector of that: a sweep
// multiplies it by cos(pi / (n + 1)), so what must come out is known for every n.
//
// Each rank has a share of the line and exchanges a point with each neighbour before every sweep: the network shows
// nothing but its latency.
#include "kernel/frame/kernel.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace fabricbench::kernel;

class Jacobi final : public Problem {
 public:
  explicit Jacobi(const Arguments& arguments)
      : points_(arguments.number("--n", 1, 1'000'000'000, 100'000)),
        sweeps_(arguments.number("--sweeps", 1, 1'000'000, 100)) {}

  std::vector<Parameter> parameters() const override { return {{"n", points_}, {"sweeps", sweeps_}}; }

  std::optional<std::string> refusal(int ranks) const override {
    if (ranks <= points_) return std::nullopt;
    return std::to_string(ranks) + " ranks leave some without any of the " + std::to_string(points_) +
           " points; take 1 to " + std::to_string(points_);
  }

  Result run(MPI_Comm communicator) const override {
    int rank = 0;
    int ranks = 1;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    const std::int64_t begin = points_ * rank / ranks;
    const auto own = static_cast<std::size_t>(points_ * (rank + 1) / ranks - begin);
    const double step = std::numbers::pi / static_cast<double>(points_ + 1);
    std::vector<double> now(own + 2);  // with a point of each neighbour, or one of the two that are 0
    std::vector<double> next(own + 2);
    for (std::size_t i = 1; i <= own; ++i) now[i] = std::sin(step * static_cast<double>(begin + std::int64_t(i)));

    TimedSection timed(communicator);
    for (std::int64_t sweep = 0; sweep < sweeps_; ++sweep) {
      exchange_ends(now, rank > 0 ? rank - 1 : MPI_PROC_NULL, rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL,
                    communicator);
      for (std::size_t i = 1; i <= own; ++i) next[i] = 0.5 * (now[i - 1] + now[i + 1]);
      std::swap(now, next);
    }
    const double seconds = timed.end();

    double squares = 0;
    for (std::size_t i = 1; i <= own; ++i) squares += now[i] * now[i];
    std::uint64_t hash = fingerprint(&now[1], own * sizeof now[1]);
    MPI_Allreduce(MPI_IN_PLACE, &squares, 1, MPI_DOUBLE, MPI_SUM, communicator);
    MPI_Allreduce(MPI_IN_PLACE, &hash, 1, MPI_UINT64_T, MPI_BXOR, communicator);
    const double factor = std::pow(std::cos(step), static_cast<double>(2 * sweeps_));
    return {.seconds = seconds,
            .operations = 2.0 * static_cast<double>(points_) * static_cast<double>(sweeps_),
            .size = std::to_string(points_),
            .iterations = static_cast<int>(sweeps_),
            .checks = {{"sum of squares", squares, static_cast<double>(points_ + 1) / 2 * factor, 1e-9}},
            .fingerprint = hash};
  }

 private:
  static void exchange_ends(std::vector<double>& line, int left, int right, MPI_Comm communicator) {
    double* const first = &line[1];
    double* const last = &line[line.size() - 2];
    MPI_Sendrecv(first, 1, MPI_DOUBLE, left, 0, last + 1, 1, MPI_DOUBLE, right, 0, communicator, MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, 1, MPI_DOUBLE, right, 0, first - 1, 1, MPI_DOUBLE, left, 0, communicator, MPI_STATUS_IGNORE);
  }

  std::int64_t points_;
  std::int64_t sweeps_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-jacobi",
      .purpose = "Sweeps over a line of points by Jacobi's method: one point to each neighbour, again and again.",
      .kernels = {{"jacobi", "one point to each neighbour before every sweep", read_problem<Jacobi>}},
      .options = {{"--n", "N", "the points of the line; default 100000"},
                  {"--sweeps", "N", "how often each is replaced; default 100"}},
      .example = "--n 1000000 --output jacobi.jsonl"};
  return run_program(program, argc, argv);
}
