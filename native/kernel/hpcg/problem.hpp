// The matrix of the specification: at each point 26 for itself and -1 for each of the up to 26 points around it, those
// beyond the end of the grid left out. The right side is that of the solution 1 everywhere.
#pragma once

namespace fabricbench::hpcg {

inline constexpr int stencil_points = 27;
inline constexpr double diagonal = 26;
inline constexpr double off_diagonal = -1;

/// What a row of so many entries has on the right side.
constexpr double right_side(int entries) { return diagonal + off_diagonal * (entries - 1); }

/// Call `of(dx, dy, dz)` for a point and those around it, in the order of columns.
template <class Of>
void for_each_neighbour(Of&& of) {
  for (int dz = -1; dz <= 1; ++dz) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) of(dx, dy, dz);
    }
  }
}

}  // namespace fabricbench::hpcg
