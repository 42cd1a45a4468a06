// The spatial operator R(U) - R(U*) by rows, in the order in which the lower sweep wants them, so that a row of it is
// used while it is in the first-level cache and never stored.
#pragma once

#include <array>
#include <vector>

#include "kernel/npb/lu_tile.hpp"

namespace fabricbench::npb::ssor {

class SpatialOperator {
 public:
  SpatialOperator(const Tile& tile, const navier_stokes::ExactSolution& exact);
  /// Begin with this U, whose ghosts from other ranks are in place. Ghosts between lanes are set here on the way.
  void start(Field& u);
  /// Make a slot ready: slots come one after the other, from the tile's first.
  void advance(Field& u, int slot);
  /// R(U) - R(U*) of a row of that slot. What it says of lanes without a point means nothing.
  void evaluate(const Field& u, int slot, int row, Points* out) const;

 private:
  using Stencil = std::array<Lanes, 5>;
  Points* primitives(int slot, int row);
  const Points* primitives(int slot, int row) const;
  void form_primitives(Field& u, int slot);

  Tile tile_;
  double t1_;
  double t2_;
  std::vector<std::array<double, 5>> x_stencil_;  // dissipation, by column, row and slot
  std::vector<Stencil> y_stencil_;
  std::vector<Stencil> z_stencil_;
  Field target_;  // R(U*)
  std::ptrdiff_t columns_;
  HugeMemory ring_;  // of primitives: three slots
};

}  // namespace fabricbench::npb::ssor
