// Five components over a box of grid points, with two ghost layers: rows along x are contiguous, the five rows of a
// line of points lie next to each other ([k][j][component][i]), and rows start on a vector and have room for whole
// vectors.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/npb/navier_stokes.hpp"

namespace fabricbench::npb::navier_stokes {

using kernel::Buffer;

inline constexpr int ghosts = 2;

/// A box of the n x n x n grid: where it begins and how many points it has along each direction.
struct Box {
  int points = 0;  // n
  std::array<int, directions> begin{};
  std::array<int, directions> extent{};

  bool is_first(int d) const { return begin[std::size_t(d)] == 0; }
  bool is_last(int d) const { return begin[std::size_t(d)] + extent[std::size_t(d)] == points; }
  /// The local indices along d of points that are not on a face of the grid: from, and up to.
  int inner_begin(int d) const { return is_first(d) ? 1 : 0; }
  int inner_end(int d) const { return extent[std::size_t(d)] - (is_last(d) ? 1 : 0); }
};

/// How a box lies in memory; distances in doubles.
struct Layout {
  explicit Layout(const Box& box) {
    // Lines along x are solved in groups of lane_count rows, so rows come in whole groups too.
    const int rows = 2 * ghosts + std::max(box.extent[1], whole_lanes(box.extent[1]) - ghosts);
    row = lane_count + whole_lanes(box.extent[0] + ghosts);
    line = components * row;
    plane = rows * line;
    // An odd number of cache lines from plane to plane spreads a walk along z over all sets of the caches.
    constexpr std::ptrdiff_t cache_line = 8;
    plane = (plane + cache_line - 1) / cache_line;
    plane = (plane | 1) * cache_line;
    origin = ghosts * plane + ghosts * line + whole_lanes(8);
    doubles = std::size_t((box.extent[2] + 2 * ghosts) * plane + 2 * line);
  }
  std::ptrdiff_t at(int i, int j, int k, int m) const { return origin + k * plane + j * line + m * row + i; }
  /// From a point to the next along a direction.
  std::ptrdiff_t step(int d) const { return d == 0 ? 1 : d == 1 ? line : plane; }

  std::ptrdiff_t row;
  std::ptrdiff_t line;
  std::ptrdiff_t plane;
  std::ptrdiff_t origin;
  std::size_t doubles;
};

class Field {
 public:
  explicit Field(const Box& box) : layout_(box), memory_(layout_.doubles) {}
  double* at(int i, int j, int k, int m = 0) { return memory_.data() + layout_.at(i, j, k, m); }
  const double* at(int i, int j, int k, int m = 0) const { return memory_.data() + layout_.at(i, j, k, m); }
  const Layout& layout() const { return layout_; }

 private:
  Layout layout_;
  Buffer<double> memory_;
};

/// Set U to the first guess, ghosts too. Points outside the grid repeat the face: they are read, with weight zero.
void set_initial(const Box& box, const ExactSolution& exact, Field& u);
/// Set the forcing, -R(U*).
void set_forcing(const Box& box, const ExactSolution& exact, Field& forcing);
/// Sums over this box: of the squares of r, and of those of U - U*.
State sum_of_squares(const Box& box, const Field& r);
State sum_of_squared_errors(const Box& box, const ExactSolution& exact, const Field& u);

}  // namespace fabricbench::npb::navier_stokes
