// How LU lies over ranks and over SIMD lanes: the same way, twice.
//
// Over ranks: the (n-2)^2 interior columns along z are dealt in tiles, px along x and py along y. All of z is local.
// Over lanes: a tile is cut along y into one strip of rows for each lane, and lane l lies l planes behind lane 0. So
// what is next to each other in memory (a "slot", the same row and column of all lanes) are points of different planes
// which never depend on each other in a sweep: row 0 of lane l at plane k needs the last row of lane l-1 at plane k,
// which is one slot older. Lanes are a pipeline of ranks in small, and all arithmetic is on whole vectors without a
// gather.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/npb/navier_stokes.hpp"

namespace fabricbench::npb::ssor {

using kernel::Buffer;

using navier_stokes::components;

/// The components of one point in each lane.
struct Points {
  Lanes value[components];
  Lanes& operator[](int m) { return value[m]; }
  const Lanes& operator[](int m) const { return value[m]; }
};

/// Rows come from far in the memory, too many at once for the processor to foresee them all. Those that no sweep has
/// touched for a while are asked for this many points before they are needed.
inline constexpr int points_ahead = 4;

[[gnu::always_inline]] inline void ask_for(const Points* points) {
  constexpr std::size_t cache_line = 64;
  for (std::size_t byte = 0; byte < sizeof(Points); byte += cache_line) {
    __builtin_prefetch(reinterpret_cast<const char*>(points) + byte);
  }
}

/// All bits set in the lanes that count.
using LaneMask = decltype(Lanes{} < Lanes{});

/// Ranks along x and y.
struct ProcessGrid {
  int px = 1;
  int py = 1;
};

/// The squarest grid of exactly this many ranks, px >= py, that leaves each tile its least size; none if there is none.
std::optional<ProcessGrid> process_grid(int points, int ranks);

/// Where a row of a tile (or of its ghosts) is.
struct Place {
  int lane = 0;
  int row = 0;
};

/// What one rank owns. Interior columns and rows count from 0; -1, -2 and nx, nx+1 are ghosts, or the faces of the grid
/// and beyond.
struct Tile {
  Tile(MPI_Comm communicator, int grid_points, ProcessGrid grid);

  Place place(int j) const {
    const int lane = std::clamp(j < 0 ? 0 : j / strip, 0, lane_count - 1);
    return {lane, j - lane * strip};
  }
  bool has_plane(int k) const { return k >= 1 && k <= points - 2; }
  int first_slot() const { return 1; }
  int last_slot() const { return points - 2 + strips - 1; }
  /// The lanes of a row, in a slot, that hold interior points.
  LaneMask mask(int slot, int row) const;

  MPI_Comm communicator;
  int points;   // n
  int x_begin;  // in the grid, of column 0
  int y_begin;
  int nx;
  int ny;
  int strip;   // rows of a lane; the last lanes may have fewer
  int strips;  // lanes that have rows
  int west;    // neighbours: lower x, upper x, lower y, upper y; MPI_PROC_NULL beyond the faces
  int east;
  int south;
  int north;
};

/// Five components at each point of a tile. Rows and columns have this many ghosts on either side.
class Field {
 public:
  Field(const Tile& tile, int ghosts);
  Points* row(int slot, int row) { return points_ + index(slot, row); }
  const Points* row(int slot, int row) const { return points_ + index(slot, row); }
  /// A point of the tile in its own place (lanes beside it may have copies as ghosts).
  double* at(int i, int j, int k, int m = 0) {
    const auto [lane, line] = tile_.place(j);
    return reinterpret_cast<double*>(&row(k + lane, line)[i][m]) + lane;
  }

 private:
  std::ptrdiff_t index(int slot, int row) const {
    return ((slot + below) * rows_ + row + ghosts_) * columns_ + ghosts_;
  }
  static constexpr std::ptrdiff_t below = 1;  // slots before plane 0, which stencils read with weight zero

  Tile tile_;
  std::ptrdiff_t ghosts_;
  std::ptrdiff_t rows_;
  std::ptrdiff_t columns_;
  Buffer<double> memory_;
  Points* points_;
};

namespace detail {

template <int... lane>
[[gnu::always_inline]] inline Lanes shift_up(const Lanes& value, const Lanes& first,
                                             std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(value, first, (lane == 0 ? lane_count : lane - 1)...);
}

template <int... lane>
[[gnu::always_inline]] inline Lanes shift_down(const Lanes& value, const Lanes& last,
                                               std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(value, last, (lane == lane_count - 1 ? 2 * lane_count - 1 : lane + 1)...);
}

}  // namespace detail

/// Each lane takes what the lane before it has, and the first takes that of `first`; and the other way round.
inline Lanes from_lane_below(const Lanes& value, const Lanes& first) {
  return detail::shift_up(value, first, std::make_integer_sequence<int, lane_count>{});
}

inline Lanes from_lane_above(const Lanes& value, const Lanes& last) {
  return detail::shift_down(value, last, std::make_integer_sequence<int, lane_count>{});
}

}  // namespace fabricbench::npb::ssor
