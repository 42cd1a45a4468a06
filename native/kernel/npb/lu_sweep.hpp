// One row of a sweep of SSOR, as a scatter: with a point's change v in hand, form what its three neighbours ahead will
// have to take from it, L^x v, L^y v and L^z v, and hand these on. All three come from the state of this one point, so
// the Jacobians exist only as these products, and their common parts are formed once.
//
// With velocities V, K = V.V/2, E = U5/U1 and the change in the form (v1, a, f), a_m = v_m - V_m v1, f = v5 - E v1:
//   Euler:    J^d v = V_d v + a_d (1, V, c1 E - c2 K) + p (0, e_d, V_d),  p = c2 (v5 - V.a - K v1)
//   viscous:  N^d v = (0, g_m a_m, sum_m (g_m - e) V_m a_m + e f) / U1
//   diagonal: D is triangular in this form: first v1, then each a_m, then f.
#pragma once

#include "kernel/npb/lu_tile.hpp"

namespace fabricbench::npb::ssor {

inline constexpr double omega = 1.2;  // over-relaxation

/// The coefficients of both sweeps for a time step.
struct SweepCoefficients {
  SweepCoefficients(int points, double dt);
  double dt;
  double euler;           // omega dt t2
  double dissipation[3];  // omega dt t1 d^d
  double viscous;         // omega dt t1 c3c4
  double viscous_energy;  // omega dt t1 (c3c4 - e)
  double conduction;      // omega dt t1 e
  double diagonal;        // of D, its part without U, and those with 1/U1
  double diagonal_momentum;
  double diagonal_energy;
  double diagonal_work;  // of V.a in row 5
};

/// What neighbours hand on to a row: along x into its first column, along y and z to each column. Replaced by what the
/// row hands on.
struct Handed {
  Points& x;
  Points* y;
  Points* z;
};

/// v = D^-1 (dt r - handed), in the form (v1, a, f). Zero outside the mask.
void sweep_lower(const SweepCoefficients& c, int count, const LaneMask& mask, const Points* u, const Points* r,
                 const Handed& handed, Points* v);
/// U += (v - D^-1 handed) / (omega (2 - omega)), by columns descending.
void sweep_upper(const SweepCoefficients& c, int count, const LaneMask& mask, const Points* v, const Handed& handed,
                 Points* u);

}  // namespace fabricbench::npb::ssor
