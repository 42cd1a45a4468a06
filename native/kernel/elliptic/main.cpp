// fabricbench-elliptic: an elliptic equation in three dimensions on a grid that is cut into boxes, after the program
// 3DMD of the study of W. Salamon and A. Mink, "A Linux cluster at NIST" (1999): long computing, then messages of 100
// KB.
//
// Mathematics: -Laplace(u) + 4 u = f with u = 0 around a grid of nx x ny x nz points whose distance is 1, by
// differences: 10 u - (the six points around) = f at each point. That is one implicit step of diffusion.
// Decomposition (domain.hpp): the grid of ranks with the least faces between its boxes, which may be uneven. A step of
// the Schwarz method sends a whole face to each of up to six neighbours and then sweeps so many times over the own box.
// A face of 128 x 100 points is a message of 102,400 bytes, however many sweeps there are. The work is fixed: steps and
// sweeps are counted, never the residual.
// Exact check: the solution is chosen, integers that look random, and f follows from it; u begins with 0. A step
// multiplies the largest error by at most what it makes of errors of 1 everywhere, which each rank computes for its
// box. After n steps no point of any rank may be farther from the solution than the n-th power of that, times 128, and
// the rounding of a sweep. Counted are 7 operations at each point in each sweep.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "kernel/elliptic/domain.hpp"
#include "kernel/frame/kernel.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;

constexpr std::int64_t most_points = 16'384;  // along a dimension
constexpr std::int64_t usual_points = 160;
constexpr std::int64_t most_times = 100'000;
constexpr std::int64_t usual_sweeps = 20;
constexpr std::int64_t usual_steps = 20;

constexpr double sweep_operations = 7;  // at a point
/// Of the largest solution: a few operations of a sweep on numbers of ten times its size, added up over all sweeps, of
/// which each keeps six tenths.
constexpr double rounding = 64 * std::numeric_limits<double>::epsilon();

class Elliptic final : public Problem {
 public:
  explicit Elliptic(const Arguments& arguments)
      : sweeps_(static_cast<int>(arguments.number("--sweeps", 1, most_times, usual_sweeps))),
        steps_(static_cast<int>(arguments.number("--steps", 1, most_times, usual_steps))) {
    constexpr std::array<std::string_view, 3> sides{"--nx", "--ny", "--nz"};
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const std::int64_t usual = side == 0 ? usual_points : static_cast<std::int64_t>(size_[0]);
      size_[side] = static_cast<std::size_t>(arguments.number(sides[side], 1, most_points, usual));
    }
  }

  std::vector<Parameter> parameters() const override {
    return {{"nx", static_cast<std::int64_t>(size_[0])},
            {"ny", static_cast<std::int64_t>(size_[1])},
            {"nz", static_cast<std::int64_t>(size_[2])},
            {"sweeps", std::int64_t{sweeps_}},
            {"steps", std::int64_t{steps_}}};
  }

  std::optional<std::string> refusal(int ranks) const override {
    if (elliptic::rank_grid(size_, static_cast<std::size_t>(ranks))) return std::nullopt;
    return std::to_string(ranks) + " ranks cannot share " + text_of(size_) +
           " points: needed is a product of three numbers, none larger than the points along its dimension";
  }

  Result run(MPI_Comm communicator) const override {
    int ranks = 1;
    MPI_Comm_size(communicator, &ranks);
    const elliptic::Size grid = elliptic::rank_grid(size_, static_cast<std::size_t>(ranks)).value();
    elliptic::Domain domain(communicator, size_, grid);
    std::array<double, 2> worst{domain.contraction(sweeps_), 0};
    domain.step(1);  // a warm-up, with all messages
    domain.reset();

    TimedSection timed(communicator);
    for (int i = 0; i < steps_; ++i) domain.step(sweeps_);
    const double seconds = timed.end();

    worst[1] = domain.error();
    MPI_Allreduce(MPI_IN_PLACE, worst.data(), static_cast<int>(worst.size()), MPI_DOUBLE, MPI_MAX, communicator);
    const auto [contraction, error] = worst;
    std::uint64_t message_bytes = domain.message_bytes();
    MPI_Allreduce(MPI_IN_PLACE, &message_bytes, 1, MPI_UINT64_T, MPI_MAX, communicator);
    std::uint64_t bits = domain.fingerprint();
    MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UINT64_T, MPI_SUM, communicator);

    const double most_error = elliptic::most_solution * (std::pow(contraction, steps_) + rounding);
    const auto points = static_cast<double>(size_[0] * size_[1] * size_[2]);
    Result result{.seconds = seconds,
                  .operations = sweep_operations * points * sweeps_ * steps_,
                  .size = text_of(size_),
                  .iterations = steps_,
                  .checks = {{"contraction of a step", contraction, elliptic::sweep_contraction + rounding, 0, true},
                             {"error", error, most_error, 0, true}},
                  .fingerprint = bits};
    result.values = {{"gflops", result.operations / seconds * 1e-9},
                     {"message_bytes", static_cast<double>(message_bytes)}};
    result.facts.emplace_back("grid of ranks", text_of(grid));
    return result;
  }

 private:
  static std::string text_of(const elliptic::Size& size) {
    return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]);
  }

  elliptic::Size size_{};
  int sweeps_;
  int steps_;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-elliptic",
      .purpose =
          "Solves an elliptic equation on a grid in three dimensions that is cut into boxes, verifies every point and\n"
          "tells how fast it was and where the time went.",
      .kernels = {{"elliptic",
                   "an elliptic equation on boxes: long computing, then whole faces to up to six neighbours",
                   read_problem<Elliptic>}},
      .options = {{"--nx", "N", "points of the whole grid along x; default 160"},
                  {"--ny", "N", "along y; default as along x"},
                  {"--nz", "N", "along z; default as along x"},
                  {"--sweeps", "S", "sweeps over each box between two exchanges; default 20"},
                  {"--steps", "T", "exchanges that are timed, each with its sweeps; default 20"}},
      .example = "--nx 256 --sweeps 100"};
  return run_program(program, argc, argv);
}
