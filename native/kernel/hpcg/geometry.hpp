// Where the points of the grid lie: a box of nx x ny x nz of them on each rank, the ranks themselves in a grid of three
// dimensions, x running fastest in both.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace fabricbench::hpcg {

/// Along x, y and z.
using Triple = std::array<int, 3>;

/// The factors of a number of ranks whose boxes, were they cubes, have the least surface; the most along x, then y.
Triple ranks_grid(int ranks);

/// The points of one rank, between layers of one point around them: the copies of its neighbours' outermost points, and
/// zeros where the grid ends. All vectors lie so.
struct Box {
  Triple points{};

  std::ptrdiff_t line() const { return points[0] + 2; }  // from a point to the next along y
  std::ptrdiff_t plane() const { return line() * (points[1] + 2); }
  /// From -1, the layer before, to the points themselves, the layer behind.
  std::ptrdiff_t at(int i, int j, int k) const { return (k + 1) * plane() + (j + 1) * line() + i + 1; }
  std::int64_t own_points() const { return std::int64_t{points[0]} * points[1] * points[2]; }
  /// Numbers of a vector, with as many behind them as may be read at once.
  std::size_t size() const {
    constexpr std::ptrdiff_t read_at_once = 16;
    return static_cast<std::size_t>(plane() * (points[2] + 2) + read_at_once);
  }
};

/// This rank's box in the whole grid, of one level.
class Geometry {
 public:
  Geometry(MPI_Comm communicator, Triple points);

  MPI_Comm communicator() const { return communicator_; }
  const Box& box() const { return box_; }
  const Triple& ranks() const { return ranks_; }
  /// Of the whole grid along a dimension.
  std::int64_t all_points(std::size_t dimension) const {
    return std::int64_t{box_.points[dimension]} * ranks_[dimension];
  }
  std::int64_t all_points() const { return all_points(0) * all_points(1) * all_points(2); }
  /// Of the matrix: 27 a point, less where the grid ends.
  std::int64_t nonzeros() const;
  /// The number of one of our points in the whole grid, which is that of its row.
  std::int64_t row(int i, int j, int k) const {
    return ((first_[2] + k) * all_points(1) + first_[1] + j) * all_points(0) + first_[0] + i;
  }
  /// Whether a point, ours or of the layer around, is one of the grid.
  bool has(int i, int j, int k) const { return is_within(0, i) && is_within(1, j) && is_within(2, k); }
  /// Entries of a row of the matrix.
  int entries(int i, int j, int k) const { return along(0, i) * along(1, j) * along(2, k); }
  /// The rank next to ours in a direction of -1, 0 or 1 along each dimension; MPI_PROC_NULL where the grid ends.
  int neighbour(const Triple& direction) const;
  /// Every other point in each dimension.
  Geometry coarser() const;

 private:
  bool is_within(std::size_t dimension, int place) const {
    const std::int64_t point = first_[dimension] + place;
    return point >= 0 && point < all_points(dimension);
  }
  int along(std::size_t dimension, int place) const {
    return 1 + (is_within(dimension, place - 1) ? 1 : 0) + (is_within(dimension, place + 1) ? 1 : 0);
  }

  MPI_Comm communicator_;
  Box box_;
  Triple ranks_{};
  Triple place_{};
  std::array<std::int64_t, 3> first_{};
};

/// Call `of(i, j, k)` for each of a box's points, in the order of rows.
template <class Of>
void for_each_point(const Box& box, Of&& of) {
  for (int k = 0; k < box.points[2]; ++k) {
    for (int j = 0; j < box.points[1]; ++j) {
      for (int i = 0; i < box.points[0]; ++i) of(i, j, k);
    }
  }
}

}  // namespace fabricbench::hpcg
