// The spatial operator R(U) - R(U*) by rows, in the order in which the lower sweep wants them, so that a row of it is
// used while it is in the first-level cache and never stored.
#pragma once

#include <array>
#include <vector>

#include "kernel/npb/lu_tile.hpp"

namespace fabricbench::npb::ssor {

/// Weights of U at -2..2 along one direction, both dissipations together.
using Stencil = std::array<Lanes, 5>;

// Formed once for each point, scaled so that neighbours add up without more factors: three velocities times the
// viscosity nu = t1 c3c4; the pressure times t2 / nu; and nu times (1 - c1c5) K + c1c5 U5/U1, of which heat conduction
// takes second differences.
namespace primitive {
inline constexpr int pressure = 3;
inline constexpr int conducted = 4;
}  // namespace primitive

/// R(U) - R(U*) at the points of one row.
struct OperatorRow {
  [[gnu::always_inline]] inline Points at(int i) const;

  const Points* u;  // the row, and those next to it
  const Points *u_south2, *u_south, *u_north, *u_north2;
  const Points *u_below2, *u_below, *u_above, *u_above2;
  const Points *v, *v_south, *v_north, *v_below, *v_above;  // primitives
  const Points* target;
  const std::array<double, 5>* x;
  const Stencil& y;
  const Stencil& z;
  double viscous;     // nu
  double convection;  // t2 / nu
};

class SpatialOperator {
 public:
  SpatialOperator(const Tile& tile, const navier_stokes::ExactSolution& exact);
  /// Begin with this U, whose ghosts from other ranks are in place. Ghosts between lanes are set here on the way.
  void start(Field& u);
  /// Make a slot ready: slots come one after the other, from the tile's first.
  void advance(Field& u, int slot);
  /// R(U) - R(U*) along a row of that slot. What it says of lanes without a point means nothing.
  OperatorRow row(const Field& u, int slot, int row) const;

 private:
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
  Buffer<double> ring_;  // of primitives: three slots
};

namespace detail {

// What all neighbours add to: R itself, and squares of velocities that heat by their second differences.
struct Sum {
  Points r;
  Lanes squares;
};

// A next neighbour's part in R. The Euler flux along d is V_d U + p (e_d + V_d e_5): what multiplies U goes together
// with the weight of the dissipations.
template <int d, int side>
[[gnu::always_inline]] inline void add_neighbour(const OperatorRow& row, const Lanes& weight, const Points& u,
                                                 const Points& v, Sum& sum) {
  const Lanes speed = v[d];
  const Lanes carried = weight - (side * row.convection) * speed;
  each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] += carried * u[m]; });
  sum.r[d + 1] -= (side * row.viscous) * v[primitive::pressure];
  sum.r[4] -= side * speed * v[primitive::pressure];
  each<3>([&](auto m) __attribute__((always_inline)) {
    if constexpr (m == d) {
      sum.r[m + 1] += navier_stokes::along * speed;
    } else {
      sum.r[m + 1] += v[m];
    }
  });
  sum.r[4] += v[primitive::conducted];
  sum.squares += speed * speed;
}

[[gnu::always_inline]] inline void add_second_neighbour(const Lanes& weight, const Points& u, Sum& sum) {
  each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] += weight * u[m]; });
}

}  // namespace detail

Points OperatorRow::at(int i) const {
  using namespace detail;
  ask_for(u_above2 + i + points_ahead);
  ask_for(target + i + points_ahead);
  const auto& weight = x[i];
  const Lanes centre = weight[2] + y[2] + z[2];
  Sum sum;
  each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] = centre * u[i][m] - target[i][m]; });
  sum.squares = -2.0 * (v[i][0] * v[i][0]);
  each<3>([&](auto m) __attribute__((always_inline)) {
    sum.r[m + 1] -= (2 * navier_stokes::along + 4) * v[i][m];
    if constexpr (m > 0) sum.squares -= 2.0 * v[i][m] * v[i][m];
  });
  sum.r[4] -= 6.0 * v[i][primitive::conducted];
  add_neighbour<0, -1>(*this, broadcast(weight[1]), u[i - 1], v[i - 1], sum);
  add_neighbour<0, 1>(*this, broadcast(weight[3]), u[i + 1], v[i + 1], sum);
  add_second_neighbour(broadcast(weight[0]), u[i - 2], sum);
  add_second_neighbour(broadcast(weight[4]), u[i + 2], sum);
  add_neighbour<1, -1>(*this, y[1], u_south[i], v_south[i], sum);
  add_neighbour<1, 1>(*this, y[3], u_north[i], v_north[i], sum);
  add_second_neighbour(y[0], u_south2[i], sum);
  add_second_neighbour(y[4], u_north2[i], sum);
  add_neighbour<2, -1>(*this, z[1], u_below[i], v_below[i], sum);
  add_neighbour<2, 1>(*this, z[3], u_above[i], v_above[i], sum);
  add_second_neighbour(z[0], u_below2[i], sum);
  add_second_neighbour(z[4], u_above2[i], sum);
  sum.r[4] += 1 / (6 * viscous) * sum.squares;
  return sum.r;
}

}  // namespace fabricbench::npb::ssor
