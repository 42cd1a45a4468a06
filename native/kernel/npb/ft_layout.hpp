// How FT divides its points among the ranks, and how they change hands.
//
// The ranks form a grid of `z_ranks` x `x_ranks`; with up to nz ranks, x_ranks is 1. A rank holds in turn
//   columns: all z, a share of y (by its place along z_ranks), a share of x (by its place along x_ranks)
//   planes:  a share of z, all y, the same share of x
//   rows:    the same share of z, a share of y (by its place along x_ranks), all x
// so that each dimension is transformed where it is whole. Between columns and planes lies one all-to-all among
// z_ranks, between planes and rows one among x_ranks, or nothing where that is 1. x is counted in chunks of as many
// points as a vector has lanes: a chunk is lanes real parts, then lanes imaginary ones.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/frame/share.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/simd/fft.hpp"

namespace fabricbench::npb::fourier {

using kernel::Buffer;
using kernel::share;
using kernel::Share;

/// z_ranks and x_ranks; nothing if the size has too few points for that many ranks.
std::optional<std::array<std::size_t, 2>> rank_grid(const std::array<std::size_t, 3>& size, std::size_t ranks);

class Layout {
 public:
  /// Collective.
  Layout(MPI_Comm communicator, const std::array<std::size_t, 3>& size);
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout();

  Share z() const { return share(size_[2], grid_[0], place_[0]); }
  Share column_y() const { return share(size_[1], grid_[0], place_[0]); }
  Share row_y() const { return share(size_[1], grid_[1], place_[1]); }
  Share chunks() const { return share(size_[0] / lanes, grid_[1], place_[1]); }
  std::size_t size(std::size_t dimension) const { return size_[dimension]; }

  /// Chunks (own share, of column y and all z), (own share, of own z and y), (all x, of own z and row y).
  double* column(std::size_t y, std::size_t z) {
    return first_column_ + (z * column_y().count() + y - column_y().begin) * line_size_;
  }
  double* plane_line(std::size_t y, std::size_t z) {
    return plane_lines_[y] + (z - this->z().begin) * plane_strides_[y];
  }
  double* row(std::size_t y, std::size_t z);

  /// The same points from one shape to another. Collective.
  void rows_to_planes();
  void planes_to_columns();
  void columns_to_planes();
  void planes_to_rows();

 private:
  void exchange_columns_and_planes(bool to_planes);
  void exchange_planes_and_rows(bool to_rows);
  bool has_rows() const { return grid_[1] > 1; }

  std::array<std::size_t, 3> size_;
  std::array<std::size_t, 2> grid_;
  std::array<std::size_t, 2> place_;
  MPI_Comm along_z_ = MPI_COMM_NULL;
  MPI_Comm along_x_ = MPI_COMM_NULL;
  std::size_t line_size_;         // doubles of a line of chunks, in columns and planes
  Buffer<double> planes_;         // blocks by owner of the column y: [z][y][chunk]
  Buffer<double> columns_;        // [z][y][chunk]; unused while planes are columns
  Buffer<double> rows_;           // [z][y][chunk]; unused while planes are rows
  Buffer<double> packed_planes_;  // on their way to rows or from there, as the next
  Buffer<double> packed_rows_;
  double* first_column_;
  std::vector<double*> plane_lines_;        // by y: the line of the first z
  std::vector<std::size_t> plane_strides_;  // by y: from z to z
};

}  // namespace fabricbench::npb::fourier
