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

namespace detail {

// A point's state as the Jacobians see it.
struct Medium {
  [[gnu::always_inline]] explicit Medium(const Points& u) : density(u[0]), inverse(1.0 / u[0]) {
    each<3>([&](auto m) __attribute__((always_inline)) { velocity[m] = u[m + 1] * inverse; });
    energy = u[4] * inverse;
    kinetic = 0.5 * (velocity[0] * velocity[0] + velocity[1] * velocity[1] + velocity[2] * velocity[2]);
  }
  Lanes density;
  Lanes inverse;
  Lanes velocity[3];
  Lanes energy;   // per mass
  Lanes kinetic;  // per mass
};

// A change of the state: of density, of velocities (times density), and of energy per mass (times density).
struct Change {
  Lanes density;
  Lanes velocity[3];
  Lanes energy;
};

[[gnu::always_inline]] inline Lanes product(const Lanes (&a)[3], const Lanes (&b)[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// D^-1 b.
[[gnu::always_inline]] inline Change solve_diagonal(const SweepCoefficients& c, const Medium& at, const Points& b) {
  const Lanes momentum_inverse = at.density / (c.diagonal * at.density + c.diagonal_momentum);
  const Lanes energy_inverse = at.density / (c.diagonal * at.density + c.diagonal_energy);
  Change out;
  out.density = b[0] * (1.0 / c.diagonal);
  each<3>([&](auto m) __attribute__((always_inline)) {
    out.velocity[m] = (b[m + 1] - at.velocity[m] * b[0]) * momentum_inverse;
  });
  const Lanes work = product(at.velocity, out.velocity);
  out.energy = (b[4] - at.energy * b[0] - c.diagonal_work * at.inverse * work) * energy_inverse;
  return out;
}

// What the neighbour ahead takes along each direction, and the change in the conserved variables.
struct Products {
  Points along[3];
  Lanes momentum[3];
  Lanes energy;
};

// The viscous part has the sign of the sweep.
template <int sign>
[[gnu::always_inline]] inline Products products_of(const SweepCoefficients& c, const Medium& at, const Change& v) {
  Products out;
  each<3>([&](auto m) __attribute__((always_inline)) { out.momentum[m] = v.velocity[m] + at.velocity[m] * v.density; });
  out.energy = v.energy + at.energy * v.density;
  const Lanes work = product(at.velocity, v.velocity);
  const Lanes pressure = (c.euler * navier_stokes::c2) * (out.energy - work - at.kinetic * v.density);
  const Lanes enthalpy = navier_stokes::c1 * at.energy - navier_stokes::c2 * at.kinetic;
  const Lanes viscosity = (sign * c.viscous) * at.inverse;
  const Lanes heat = at.inverse * (sign * c.viscous_energy * work + sign * c.conduction * v.energy);
  Lanes sheared[3];
  each<3>([&](auto m) __attribute__((always_inline)) { sheared[m] = viscosity * v.velocity[m]; });
  each<3>([&](auto d) __attribute__((always_inline)) {
    Points& h = out.along[d];
    const Lanes carried = c.euler * at.velocity[d] + sign * c.dissipation[d];
    const Lanes flow = c.euler * v.velocity[d];
    h[0] = carried * v.density + flow;
    each<3>([&](auto m) __attribute__((always_inline)) {
      h[m + 1] = carried * out.momentum[m] + (flow * at.velocity[m] + sheared[m]);
    });
    const Lanes stretched = (navier_stokes::along - 1) * sheared[d];
    h[d + 1] += pressure + stretched;
    h[4] = carried * out.energy + (flow * enthalpy + (at.velocity[d] * (pressure + stretched) + heat));
  });
  return out;
}

[[gnu::always_inline]] inline void hand_on(const Products& from, Points& x, Points& y, Points& z) {
  x = from.along[0];
  y = from.along[1];
  z = from.along[2];
}

}  // namespace detail

/// v = D^-1 (dt r - handed), in the form (v1, a, f), where r(i) forms the right-hand side at a point. Zero outside the
/// mask.
template <class RightHandSide>
void sweep_lower(const SweepCoefficients& c, int count, const LaneMask& mask, const Points* u, const RightHandSide& r,
                 const Handed& handed, Points* v) {
  using namespace detail;
  Points x = handed.x;
  for (int i = 0; i < count; ++i) {
    const Points source = r(i);
    const Medium at(u[i]);
    Points b;
    each<components>([&](auto m) __attribute__((always_inline)) {
      b[m] = c.dt * source[m] + (handed.y[i][m] + handed.z[i][m]) + x[m];
      b[m] = mask ? b[m] : Lanes{};
    });
    const Change change = solve_diagonal(c, at, b);
    v[i][0] = change.density;
    each<3>([&](auto m) __attribute__((always_inline)) { v[i][m + 1] = change.velocity[m]; });
    v[i][4] = change.energy;
    hand_on(products_of<1>(c, at, change), x, handed.y[i], handed.z[i]);
  }
  handed.x = x;
}

/// U += (v - D^-1 handed) / (omega (2 - omega)), by columns descending.
inline void sweep_upper(const SweepCoefficients& c, int count, const LaneMask& mask, const Points* v,
                        const Handed& handed, Points* u) {
  using namespace detail;
  constexpr double relaxation = 1 / (omega * (2 - omega));
  Points x = handed.x;
  for (int i = count - 1; i >= 0; --i) {
    const Medium at(u[i]);
    Points b;
    each<components>([&](auto m) __attribute__((always_inline)) {
      b[m] = (handed.y[i][m] + handed.z[i][m]) + x[m];
      b[m] = mask ? b[m] : Lanes{};
    });
    Change change = solve_diagonal(c, at, b);
    change.density = v[i][0] - change.density;
    each<3>([&](auto m) __attribute__((always_inline)) { change.velocity[m] = v[i][m + 1] - change.velocity[m]; });
    change.energy = v[i][4] - change.energy;
    const Products products = products_of<-1>(c, at, change);
    u[i][0] += relaxation * change.density;
    each<3>([&](auto m) __attribute__((always_inline)) { u[i][m + 1] += relaxation * products.momentum[m]; });
    u[i][4] += relaxation * products.energy;
    hand_on(products, x, handed.y[i], handed.z[i]);
  }
  handed.x = x;
}

}  // namespace fabricbench::npb::ssor
