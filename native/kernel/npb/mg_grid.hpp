// The grids of MG: how the levels are divided among the ranks, a level's points with their ghosts, and the exchange
// that fills the ghosts.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/lanes.hpp"

namespace fabricbench::npb::multigrid {

using kernel::Buffer;

/// Ghost layers of a field. Two, so that a rank computes the residual next to its border itself: one exchange less per
/// sweep for a few points computed twice.
inline constexpr std::ptrdiff_t ghosts = 2;

/// Ranks per dimension, x first.
using ProcessGrid = std::array<int, 3>;

/// Of all ways to factor `ranks`, the one whose blocks have the smallest faces, x being divided last, as its lines are
/// what vectorises.
ProcessGrid process_grid(int ranks);

/// The coarsest level whose points are divided: each rank has one at least, and so many that uneven shares are nearly
/// even, if the finest level leaves that choice. Coarser levels are solved by every rank for itself, as waiting for
/// neighbours takes longer there than computing.
int base_level(const ProcessGrid& grid, int finest);

/// Who has which points. On level l, of 2^l points per dimension, a rank has the children of what it has on the base
/// level.
class Decomposition {
 public:
  /// Of all ranks of the communicator, x first.
  Decomposition(MPI_Comm communicator, const ProcessGrid& grid, int base);
  /// Of one rank that has all.
  static Decomposition alone();

  std::ptrdiff_t offset(int level, std::size_t dimension) const {
    return begin(level, dimension, coordinates_[dimension]);
  }
  std::ptrdiff_t count(int level, std::size_t dimension) const {
    return begin(level, dimension, coordinates_[dimension] + 1) - offset(level, dimension);
  }
  bool divides(std::size_t dimension) const { return grid_[dimension] > 1; }
  /// The rank before (side 0) or after (side 1) this one.
  int neighbour(std::size_t dimension, std::size_t side) const;
  /// The same of another rank.
  Decomposition of(int rank) const;
  int base() const { return base_; }
  int ranks() const { return grid_[0] * grid_[1] * grid_[2]; }
  MPI_Comm communicator() const { return communicator_; }

 private:
  std::ptrdiff_t begin(int level, std::size_t dimension, int coordinate) const {
    const std::ptrdiff_t points = std::ptrdiff_t{1} << base_;
    return (coordinate * points / grid_[dimension]) << (level - base_);
  }

  MPI_Comm communicator_;
  ProcessGrid grid_;
  std::array<int, 3> coordinates_;
  int base_;
};

/// The points that a rank has on a level, x fastest, with ghosts on all sides.
class Field {
 public:
  Field() = default;
  Field(const Decomposition& decomposition, int level);

  /// The line of points (., j, k): [0, size(0)) are the rank's own, [-2, 0) and the two at the end are ghosts.
  double* line(std::ptrdiff_t j, std::ptrdiff_t k) { return points_.data() + place(j, k); }
  const double* line(std::ptrdiff_t j, std::ptrdiff_t k) const { return points_.data() + place(j, k); }
  std::ptrdiff_t size(std::size_t dimension) const { return size_[dimension]; }
  std::ptrdiff_t line_stride() const { return line_stride_; }
  std::ptrdiff_t plane_stride() const { return plane_stride_; }
  void clear();

 private:
  std::ptrdiff_t place(std::ptrdiff_t j, std::ptrdiff_t k) const {
    return (k + ghosts) * plane_stride_ + (j + ghosts) * line_stride_ + line_begin;
  }

  static constexpr std::ptrdiff_t line_begin = lanes;  // keeps the first own point of a line aligned
  std::array<std::ptrdiff_t, 3> size_{};
  std::ptrdiff_t line_stride_ = 0;
  std::ptrdiff_t plane_stride_ = 0;
  Buffer<double> points_;
};

/// Fills ghosts, x first, then y, then z, each with the ghosts that are already there, so that edges and corners come
/// along.
class GhostExchange {
 public:
  /// `depth` layers of the field. Collective over the decomposition's ranks.
  void operator()(const Decomposition& decomposition, Field& field, std::ptrdiff_t depth);

 private:
  void exchange_planes(const Decomposition& decomposition, Field& field, std::ptrdiff_t depth);
  void exchange_faces(const Decomposition& decomposition, Field& field, std::size_t dimension, std::ptrdiff_t depth);

  Buffer<double> faces_;  // two to send, two received
};

/// Everybody's points of the base level, on every rank. Collective.
void gather(const Decomposition& decomposition, const Field& own, Field& all);

}  // namespace fabricbench::npb::multigrid
