#include "kernel/npb/navier_stokes.hpp"

#include <algorithm>
#include <cmath>

namespace fabricbench::npb::navier_stokes {
namespace {

// U*_m = constant + sum over the coordinates of x (a + x (b + x (c + x d))): the report's table 3.1, by powers.
struct Polynomial {
  double constant;
  std::array<std::array<double, 4>, directions> powers;
};

constexpr std::array<Polynomial, components> exact_polynomials{{
    {2.0, {{{0.0, 5.0, 0.02, 0.5}, {0.0, 3.0, 0.01, 0.4}, {4.0, 0.5, 0.03, 0.3}}}},
    {1.0, {{{0.0, 1.0, 0.01, 0.4}, {0.0, 2.0, 0.03, 0.3}, {0.0, 3.0, 0.02, 0.5}}}},
    {2.0, {{{2.0, 0.0, 0.04, 0.3}, {0.0, 2.0, 0.03, 0.5}, {0.0, 3.0, 0.05, 0.4}}}},
    {2.0, {{{2.0, 0.0, 0.03, 0.2}, {0.0, 2.0, 0.05, 0.1}, {0.0, 3.0, 0.04, 0.3}}}},
    {5.0, {{{4.0, 0.1, 0.05, 0.1}, {3.0, 0.4, 0.04, 0.3}, {2.0, 0.3, 0.03, 0.2}}}},
}};

constexpr double tolerance = 1e-8;

// What R takes differences of along direction d, at one point.
struct Fluxes {
  State euler{};    // first differences
  State viscous{};  // second differences
};

Fluxes fluxes(const State& u, int direction) {
  const auto d = static_cast<std::size_t>(direction) + 1;
  const double kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
  const double velocity = u[d] / u[0];
  Fluxes out;
  out.euler[0] = u[d];
  for (std::size_t m = 1; m <= 3; ++m) {
    out.euler[m] = u[m] * velocity;
    out.viscous[m] = c3c4 * (m == d ? along : 1.0) * u[m] / u[0];
  }
  out.euler[d] += c2 * (u[4] - kinetic);
  out.euler[4] = (c1 * u[4] - c2 * kinetic) * velocity;
  out.viscous[4] = c3c4 * ((1 - c1c5) * kinetic / u[0] + velocity * velocity / 6 + c1c5 * u[4] / u[0]);
  return out;
}

}  // namespace

std::array<double, 5> fourth_difference(int i, int points) {
  if (i <= 0 || i >= points - 1) return {};
  if (i == 1) return {0, 0, 5, -4, 1};
  if (i == points - 2) return {1, -4, 5, 0, 0};
  if (i == 2) return {0, -4, 6, -4, 1};
  if (i == points - 3) return {1, -4, 6, -4, 0};
  return {1, -4, 6, -4, 1};
}

ExactSolution::ExactSolution(int points) : points_(points) {
  for (std::size_t d = 0; d < directions; ++d) {
    along_[d].resize(static_cast<std::size_t>(points));
    for (int i = 0; i < points; ++i) {
      const double x = double(i) / double(points - 1);
      for (std::size_t m = 0; m < components; ++m) {
        const auto& c = exact_polynomials[m].powers[d];
        const double constant = d == 0 ? exact_polynomials[m].constant : 0.0;
        along_[d][static_cast<std::size_t>(i)][m] = constant + x * (c[0] + x * (c[1] + x * (c[2] + x * c[3])));
      }
    }
  }
}

State ExactSolution::at(int i, int j, int k) const {
  const auto& x = along_[0][static_cast<std::size_t>(i)];
  const auto& y = along_[1][static_cast<std::size_t>(j)];
  const auto& z = along_[2][static_cast<std::size_t>(k)];
  State u;
  for (std::size_t m = 0; m < components; ++m) u[m] = x[m] + y[m] + z[m];
  return u;
}

State ExactSolution::initial(int i, int j, int k) const {
  const int last = points_ - 1;
  if (i == 0 || i == last || j == 0 || j == last || k == 0 || k == last) return at(i, j, k);
  const std::array<State, 2> x{at(0, j, k), at(last, j, k)};
  const std::array<State, 2> y{at(i, 0, k), at(i, last, k)};
  const std::array<State, 2> z{at(i, j, 0), at(i, j, last)};
  const auto blend = [last](const std::array<State, 2>& ends, int index, std::size_t m) {
    const double weight = double(index) / double(last);
    return (1 - weight) * ends[0][m] + weight * ends[1][m];
  };
  State u;
  for (std::size_t m = 0; m < components; ++m) {
    const double a = blend(x, i, m);
    const double b = blend(y, j, m);
    const double c = blend(z, k, m);
    u[m] = a + b + c - a * b - b * c - c * a + a * b * c;
  }
  return u;
}

State ExactSolution::spatial_operator(int i, int j, int k) const {
  const int last = points_ - 1;
  State sum{};
  if (i <= 0 || i >= last || j <= 0 || j >= last || k <= 0 || k >= last) return sum;
  const Spacing h(points_);
  const std::array<int, directions> centre{i, j, k};
  for (int d = 0; d < directions; ++d) {
    const auto weights = fourth_difference(centre[static_cast<std::size_t>(d)], points_);
    std::array<State, 5> u;
    for (int s = -2; s <= 2; ++s) {
      auto point = centre;
      auto& moved = point[static_cast<std::size_t>(d)];
      moved = std::clamp(moved + s, 0, last);  // where it was outside its weight is zero
      u[static_cast<std::size_t>(s + 2)] = at(point[0], point[1], point[2]);
    }
    const auto below = fluxes(u[1], d);
    const auto here = fluxes(u[2], d);
    const auto above = fluxes(u[3], d);
    for (std::size_t m = 0; m < components; ++m) {
      sum[m] -= h.t2 * (above.euler[m] - below.euler[m]);
      sum[m] += h.t1 * (above.viscous[m] - 2 * here.viscous[m] + below.viscous[m]);
      sum[m] += h.t1 * second[static_cast<std::size_t>(d)] * (u[3][m] - 2 * u[2][m] + u[1][m]);
      for (std::size_t s = 0; s < 5; ++s) sum[m] -= fourth * weights[s] * u[s][m];
    }
  }
  return sum;
}

State root_mean_square(MPI_Comm communicator, const State& sums_of_squares, int points) {
  State total;
  MPI_Allreduce(sums_of_squares.data(), total.data(), components, MPI_DOUBLE, MPI_SUM, communicator);
  for (auto& value : total) value = std::sqrt(value / std::pow(double(points - 2), 3));
  return total;
}

void add_checks(std::vector<Check>& checks, const std::string& quantity, const State& found, const State& expected) {
  for (std::size_t m = 0; m < components; ++m) {
    checks.push_back({quantity + " " + std::to_string(m + 1), found[m], expected[m], tolerance});
  }
}

}  // namespace fabricbench::npb::navier_stokes
