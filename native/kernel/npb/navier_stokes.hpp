// What BT, SP and LU share: the compressible Navier-Stokes equations in three dimensions, in the conserved variables
// U = (density, three momenta, energy), driven by a forcing that makes a polynomial U* the steady solution:
//   dU/dt = R(U) - R(U*)   on an n x n x n grid over the unit cube, U = U* on its six faces.
// R is central: first differences of the Euler fluxes, second differences of the viscous terms, and an artificial
// dissipation of second and fourth differences. RNR-94-007, section 3, has the continuous problem and the constants.
//
// Here: constants, U*, the first guess, R in its plain form (one point at a time, as the formulas stand; forcing and
// tests use it, time steps have faster ones), and norms. Components count from 0 here: 0 density, 1..3 momenta, 4
// energy; directions 0..2; the momentum along direction d is component d + 1.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb::navier_stokes {

inline constexpr int components = 5;
inline constexpr int directions = 3;
using State = std::array<double, components>;

// The report's constants c1..c5 in the products in which they occur.
inline constexpr double c1 = 1.4;    // ratio of specific heats
inline constexpr double c2 = 0.4;    // c1 - 1: pressure = c2 (energy - kinetic energy)
inline constexpr double c3c4 = 0.1;  // viscosity
inline constexpr double c1c5 = 1.96;
inline constexpr double heat = c1c5 * c3c4;                    // conduction of energy per mass, U5/U1
inline constexpr double along = 4.0 / 3.0;                     // viscous weight of the momentum along its own direction
inline constexpr std::array<double, 3> second{0.75, 0.75, 1};  // dissipation by second differences, of each direction
inline constexpr double fourth = 0.25;                         // and by fourth differences: max(second) / 4

/// 1/h^2 and 1/(2h) of a grid with this many points along each edge.
struct Spacing {
  explicit constexpr Spacing(int points) : t1(double(points - 1) * double(points - 1)), t2(0.5 * double(points - 1)) {}
  double t1;
  double t2;
};

/// Weights of U[i-2..i+2] in the fourth difference at point i of an edge with this many points: one-sided next to the
/// faces, zero on them.
std::array<double, 5> fourth_difference(int i, int points);

/// The polynomial U*: a constant plus one polynomial for each coordinate, tabled at the grid points.
class ExactSolution {
 public:
  explicit ExactSolution(int points);
  int points() const { return points_; }
  State at(int i, int j, int k) const;
  /// U at the start: U* on the faces, and inside what transfinite interpolation makes of them.
  State initial(int i, int j, int k) const;
  /// R(U*) at an interior point; zero on the faces. The forcing is its negative.
  State spatial_operator(int i, int j, int k) const;

 private:
  int points_;
  std::array<std::vector<State>, directions> along_;  // of each coordinate; the constant is in the first
};

/// Root of the mean square over the interior points, of each component, from each rank's sums. Collective.
State root_mean_square(MPI_Comm communicator, const State& sums_of_squares, int points);

/// One check for each component: "residual 1" to "residual 5", say; the specification's tolerance of 1e-8.
void add_checks(std::vector<Check>& checks, const std::string& quantity, const State& found, const State& expected);

}  // namespace fabricbench::npb::navier_stokes
