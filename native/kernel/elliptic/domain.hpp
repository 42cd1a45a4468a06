// A rank's part of an elliptic problem on a grid in three dimensions, and the Schwarz method that solves it.
//
// The equation at each point is (6 + shift) u - (the six points around) = f, and u is 0 around the grid. The grid is
// cut into a box for each rank. A step takes the outermost layer of each neighbour, up to six whole faces, and then
// sweeps over the own box with that layer as it is: Jacobi's method, from one array into another, so that no point
// waits for the one before.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/frame/share.hpp"

namespace fabricbench::elliptic {

using kernel::Share;
using Size = std::array<std::size_t, 3>;  // along x, y and z

inline constexpr double shift = 4;
inline constexpr double diagonal = 6 + shift;

/// What a sweep does at least to the largest error, whatever is around the box.
inline constexpr double sweep_contraction = 6 / diagonal;

/// The solution, which is chosen: integers that look random, of -128 to 127; 0 outside the grid.
double exact_solution(const Size& size, std::ptrdiff_t x, std::ptrdiff_t y, std::ptrdiff_t z);
inline constexpr double most_solution = 128;

/// The grid of ranks whose boxes have the least faces between them; nothing where a rank would have no points.
std::optional<Size> rank_grid(const Size& size, std::size_t ranks);

class Domain {
 public:
  /// On a grid of as many ranks as the communicator has. Throws std::bad_alloc.
  Domain(MPI_Comm communicator, const Size& size, const Size& grid);

  /// The points that this rank has, by dimension.
  const Share& points(std::size_t dimension) const { return shares_[dimension]; }
  /// The approximation at a point of this rank, by its place in the whole grid.
  double value(std::size_t x, std::size_t y, std::size_t z) const {
    return approximation_[at(x - shares_[0].begin, y - shares_[1].begin, z - shares_[2].begin)];
  }

  /// Begin with 0 everywhere.
  void reset();
  /// Collective among neighbours. Allocates nothing.
  void step(int sweeps) {
    exchange();
    for (int i = 0; i < sweeps; ++i) sweep(right_side_.data());
  }

  /// The largest distance from the exact solution at this rank's points.
  double error() const;
  /// What a step does at least to the largest error here: to errors of 1 everywhere, of the neighbours too. As a step
  /// is linear and keeps signs, no others become larger. Leaves the approximation in ruins.
  double contraction(int sweeps);

  /// Of the largest message to a neighbour.
  std::size_t message_bytes() const;
  /// Of the bits of the approximation.
  std::uint64_t fingerprint() const;

 private:
  /// One of up to six neighbours, with the points that change hands, as they lie in memory.
  struct Neighbour {
    int rank = 0;
    Size inner{};  // the first of ours; of its own, around our box, the first
    Size outer{};
    Size count{};
    std::size_t begin = 0;  // in what is packed
    std::size_t points() const { return count[0] * count[1] * count[2]; }
  };

  std::size_t line() const { return shares_[0].count() + 2; }
  std::size_t plane() const { return line() * (shares_[1].count() + 2); }
  /// Where a point lies, by its place in the box; around the points is one layer.
  std::size_t at(std::size_t i, std::size_t j, std::size_t k) const {
    return (k + 1) * plane() + (j + 1) * line() + i + 1;
  }
  template <class Of>
  void for_each_line(Of&& of) const;
  template <class Of>
  void for_each_row(const Neighbour& neighbour, const Size& first, Of&& of) const;
  void meet_neighbours(const Size& grid, const Size& place);
  void fill_right_side();
  void exchange();
  void sweep(const double* right_side);

  MPI_Comm communicator_;
  Size size_;
  std::array<Share, 3> shares_;
  std::vector<Neighbour> neighbours_;
  std::vector<MPI_Request> requests_;
  kernel::Buffer<double> approximation_;
  kernel::Buffer<double> next_;
  kernel::Buffer<double> right_side_;
  kernel::Buffer<double> outgoing_;
  kernel::Buffer<double> incoming_;
};

}  // namespace fabricbench::elliptic
