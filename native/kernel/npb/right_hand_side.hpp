// r = scale (R(U) - R(U*)) over a box, the part of a step that is explicit. One pass over the planes: velocities,
// pressure and what heat conduction acts on are formed once for each point, kept for three planes, and used by all
// three directions. Both dissipations of a component are one five-point stencil.
//
// The scale multiplies what the terms add up to, never their coefficients: each of those would be rounded for itself,
// and what no longer cancels moves the steady state. SP, class W, ended 4.1e-9 from the specification's norms so.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "kernel/npb/flow_field.hpp"

namespace fabricbench::npb::navier_stokes {

class RightHandSide {
 public:
  explicit RightHandSide(const Box& box);
  /// Needs two ghost layers of U; leaves zero in r on the faces of the grid.
  void evaluate(const Field& u, const Field& forcing, double scale, Field& r);
  /// The same one plane at a time, for callers that go on with a plane while it is in the cache. Planes must come in
  /// ascending order after `start`.
  void start(const Field& u, double scale);
  void evaluate_plane(const Field& u, const Field& forcing, int k, Field& r);

 private:
  double* primitives(int j, int k);
  void form_primitives(const Field& u, int k);
  void evaluate_row(const Field& u, const Field& forcing, int j, int k, Field& r);
  void finish_row(const double* u, std::ptrdiff_t component, double* out) const;

  Box box_;
  double scale_ = 0;
  std::ptrdiff_t row_;  // of the primitives
  std::ptrdiff_t plane_;
  Buffer<double> planes_;                                         // three planes of primitives, reused in turn
  std::vector<std::pair<int, std::array<double, 5>>> x_changes_;  // of the stencil at points near the faces
};

}  // namespace fabricbench::npb::navier_stokes
