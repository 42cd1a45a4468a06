// LU's time step: halo, lower sweep with the right-hand side in it, upper sweep with the update in it.
#pragma once

#include <vector>

#include "kernel/npb/lu_exchange.hpp"
#include "kernel/npb/lu_operator.hpp"
#include "kernel/npb/lu_sweep.hpp"

namespace fabricbench::npb::ssor {

class Solver {
 public:
  Solver(const Tile& tile, double dt);
  void set_initial();
  void step();
  /// Root mean squares over the grid: of R(U) - R(U*), and of U - U*. Collective.
  navier_stokes::State residual();
  navier_stokes::State error();
  /// The report's integral of the pressure over the faces of a box inside the grid. Collective.
  double surface_integral();

 private:
  /// What sweeps hand on along one direction of them: from whom and to whom.
  struct Pipeline {
    Inbox from_x, from_y;
    Outbox to_x, to_y;
    void start(const Tile& tile);
    void finish();
  };
  void sweep_up();    // lower triangle: planes ascending
  void sweep_down();  // upper triangle
  void forget_handed();

  Tile tile_;
  navier_stokes::ExactSolution exact_;
  SweepCoefficients coefficients_;
  SpatialOperator operator_;
  GhostExchange ghosts_;
  Pipeline upward_;
  Pipeline downward_;
  Field u_;
  Field v_;
  Buffer<double> y_;  // handed on along y: a row
  Buffer<double> z_;  // along z: a slot
};

}  // namespace fabricbench::npb::ssor
