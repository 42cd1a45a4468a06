// SP's systems along lines: in the characteristic variables of a direction the five components are independent, and
// each is one scalar pentadiagonal system.
#pragma once

#include "kernel/npb/line_sweep.hpp"

namespace fabricbench::npb::navier_stokes {

class Pentadiagonals {
 public:
  /// After elimination: for each of three matrices the two entries above the diagonal, then the five right sides; sound
  /// speed and 1/U1 for the way back along z. The next cell needs the last two points.
  static constexpr std::size_t kept = 13;
  static constexpr std::size_t lead = 2;
  static constexpr std::size_t scratch = 3;
  static constexpr std::size_t forward = 22;
  static constexpr std::size_t backward = 2 * components;

  Pentadiagonals(int points, double dt);

  template <int d>
  void eliminate(const LineGroup& lines, const Lanes* carried, Lanes* kept_points, Lanes* coefficients,
                 Lanes* carry) const;
  template <int d>
  void substitute(const LineGroup& lines, const Lanes* kept_points, const Lanes* carried, Lanes* carry) const;

 private:
  template <int d>
  void form(const LineGroup& lines, Lanes* coefficients, Lanes* kept_points) const;

  double euler_;                               // dt / (2h)
  double viscous_;                             // dt / h^2
  std::vector<std::array<double, 5>> fourth_;  // dt times the weights of fourth differences, along a line
};

}  // namespace fabricbench::npb::navier_stokes
