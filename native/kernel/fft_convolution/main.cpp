// fabricbench-fft-convolution: circular convolution in three dimensions by Fourier transforms, after the program for
// optical absorption (OA) of the study of W. Salamon and A. Mink, "A Linux cluster at NIST" (1999): transposes of a
// whole field, large messages from all to all.
//
// Mathematics: a field u of nx x ny x nz complex numbers is convolved with a kernel g again and again,
// u <- g * u = F^-1(F(g) F(u)). The first u are integers that look random; g is 1/2 at two points a and b.
// Decomposition (convolution.hpp): slabs, a share of the planes for each rank, and an all-to-all in either direction;
// or pencils, on a grid of ranks, and two of them. Shares may be uneven. A message between two of P slabs has
// 16 nx ny nz / P^2 bytes.
// Exact check: after n convolutions u at x is the sum over k of C(n, k) / 2^n times the first u at
// x - (n - k) a - k b, which every rank computes for its own points, all of them, without what others sent.
// Counted are 5 N log2 N operations for each of two transforms of N numbers and 6 N for the product.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernel/fft_convolution/convolution.hpp"
#include "kernel/frame/kernel.hpp"

namespace {

using namespace fabricbench;
using namespace fabricbench::kernel;
namespace parts = fabricbench::fft_convolution;

constexpr std::int64_t most_points = 16'384;  // along a dimension
constexpr std::int64_t usual_points = 64;
constexpr std::int64_t most_iterations = 10'000;
constexpr std::int64_t usual_iterations = 10;

std::size_t next_size(std::size_t points) {
  while (!simd::has_transform(points)) ++points;
  return points;
}

class ManyConvolutions final : public Problem {
 public:
  explicit ManyConvolutions(const Arguments& arguments)
      : iterations_(static_cast<int>(arguments.number("--iterations", 1, most_iterations, usual_iterations))) {
    const std::string_view found =
        arguments.word("--decomposition", parts::decomposition_names, parts::decomposition_names[0]);
    decomposition_ = found == parts::decomposition_names[0] ? parts::Decomposition::slab : parts::Decomposition::pencil;
    constexpr std::array<std::string_view, 3> sides{"--nx", "--ny", "--nz"};
    for (std::size_t side = 0; side < sides.size(); ++side) {
      const std::int64_t usual = side == 0 ? usual_points : static_cast<std::int64_t>(size_[0]);
      size_[side] = static_cast<std::size_t>(arguments.number(sides[side], 1, most_points, usual));
      if (simd::has_transform(size_[side])) continue;
      throw UsageError{std::string(sides[side]) +
                       " needs a number that has no other prime factors than 2, 3 and 5, found " +
                       std::to_string(size_[side]) + "; the next one is " + std::to_string(next_size(size_[side]))};
    }
  }

  std::vector<Parameter> parameters() const override {
    return {{"nx", static_cast<std::int64_t>(size_[0])},
            {"ny", static_cast<std::int64_t>(size_[1])},
            {"nz", static_cast<std::int64_t>(size_[2])},
            {"iterations", std::int64_t{iterations_}},
            {"decomposition", std::string(parts::decomposition_names[static_cast<std::size_t>(decomposition_)])}};
  }

  std::optional<std::string> refusal(int ranks) const override {
    if (grid(ranks)) return std::nullopt;
    if (decomposition_ == parts::Decomposition::slab) {
      return std::to_string(ranks) + " ranks cannot share slabs of " + size_text() + " points: needed are at most " +
             std::to_string(std::min(size_[1], size_[2])) + "; or take --decomposition pencil";
    }
    return std::to_string(ranks) + " ranks cannot share pencils of " + size_text() +
           " points: needed is a product of two numbers, one of at most " +
           std::to_string(std::min(size_[1], size_[2])) + " and one of at most " +
           std::to_string(std::min(size_[0], size_[1]));
  }

  Result run(MPI_Comm communicator) const override {
    int ranks = 1;
    MPI_Comm_size(communicator, &ranks);
    const auto ranks_by = grid(ranks).value();
    parts::Convolution convolution(communicator, size_, ranks_by);
    fill_kernel(convolution);
    convolution.take_kernel();
    fill_field(convolution);
    convolution.convolve();  // a warm-up in both directions
    fill_field(convolution);

    TimedSection timed(communicator);
    for (int i = 0; i < iterations_; ++i) convolution.convolve();
    const double seconds = timed.end();

    double error = parts::error_of(size_, convolution.region(), convolution.field(), iterations_);
    MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, communicator);
    std::uint64_t message_bytes = convolution.message_bytes();
    MPI_Allreduce(MPI_IN_PLACE, &message_bytes, 1, MPI_UINT64_T, MPI_MAX, communicator);
    std::uint64_t bits = fingerprint(convolution.field(), convolution.region().points() * 2 * sizeof(double));
    MPI_Allreduce(MPI_IN_PLACE, &bits, 1, MPI_UINT64_T, MPI_SUM, communicator);

    const auto points = static_cast<double>(size_[0] * size_[1] * size_[2]);
    Result result{.seconds = seconds,
                  .operations = iterations_ * points * (10 * std::log2(points) + 6),
                  .size = size_text(),
                  .iterations = iterations_,
                  .checks = {{"error", error, parts::most_error(size_, iterations_), 0, true}},
                  .fingerprint = bits};
    result.values = {{"gflops", result.operations / seconds * 1e-9},
                     {"message_bytes", static_cast<double>(message_bytes)}};
    result.facts.emplace_back("grid of ranks", std::to_string(ranks_by[0]) + " x " + std::to_string(ranks_by[1]));
    return result;
  }

 private:
  std::optional<std::array<std::size_t, 2>> grid(int ranks) const {
    return parts::rank_grid(size_, static_cast<std::size_t>(ranks), decomposition_);
  }
  std::string size_text() const {
    return std::to_string(size_[0]) + " x " + std::to_string(size_[1]) + " x " + std::to_string(size_[2]);
  }

  parts::Size size_{};
  int iterations_;
  parts::Decomposition decomposition_ = parts::Decomposition::slab;
};

}  // namespace

int main(int argc, char** argv) {
  const Program program{
      .name = "fabricbench-fft-convolution",
      .purpose =
          "Convolves a field in three dimensions with a kernel by Fourier transforms, verifies every point and tells\n"
          "how fast it was and where the time went.",
      .kernels = {{"fft-convolution", "convolution by Fourier transforms: transposes of a whole field, large messages",
                   read_problem<ManyConvolutions>}},
      .options = {{"--nx", "N", "points along x, with factors 2, 3 and 5 alone; default 64"},
                  {"--ny", "N", "along y; default as along x"},
                  {"--nz", "N", "along z; default as along x"},
                  {"--iterations", "I", "convolutions that are timed; default 10"},
                  {"--decomposition", "D",
                   "slab (default): one transpose each way; or pencil: two, on a grid of ranks"}},
      .example = "--nx 128 --iterations 20"};
  return run_program(program, argc, argv);
}
