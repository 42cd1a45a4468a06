// Along direction d the Euler flux's Jacobian has the eigenvalues w, w, w, w + a, w - a (w the velocity along d, a the
// speed of sound). In its eigenvectors' coordinates the system of a line falls apart into five scalar ones, with the
// viscous terms replaced by a bound rho on their spectral radius; row i, over the columns i-2..i+2:
//   (0, -dt/(2h) l_{i-1} - dt/h^2 rho_{i-1}, 1 + 2 dt/h^2 rho_i, dt/(2h) l_{i+1} - dt/h^2 rho_{i+1}, 0)
//   + dt eps (weights of the fourth difference), l the eigenvalue: three different matrices, the first for three right
// sides (Pulliam and Chaussee's diagonal form). Between directions the right sides change from one set of eigenvectors
// to the next; these maps, written T, N, P and Z here as in the report's codes, happen where a sweep reads or writes
// them. A line sits in each lane.
#include "kernel/npb/sp_lines.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

constexpr int matrices = 3;
constexpr double root_half = 0.70710678118654752440;

// Where the parts of a kept point lie.
constexpr int right_side = 2 * matrices;
constexpr int kept_sound = right_side + components;
constexpr int kept_inverse = kept_sound + 1;

struct Primitives {
  Lanes inverse;  // 1/U1
  Lanes velocity[3];
  Lanes kinetic;  // of a unit of mass
  Lanes internal_energy;
  Lanes sound;
};

[[gnu::always_inline]] inline Primitives primitives(const double* u, std::ptrdiff_t component) {
  Primitives p;
  p.inverse = 1.0 / load(u);
  Lanes twice_kinetic{};
  Lanes momentum_energy{};
  each<3>([&](auto m) {
    const Lanes momentum = load(u + (m + 1) * component);
    p.velocity[m] = momentum * p.inverse;
    twice_kinetic += p.velocity[m] * p.velocity[m];
    momentum_energy += momentum * p.velocity[m];
  });
  p.kinetic = 0.5 * twice_kinetic;
  p.internal_energy = load(u + 4 * component) - 0.5 * momentum_energy;
  p.sound = square_root(c1 * c2 * p.internal_energy * p.inverse);
  return p;
}

// From dU to the characteristic variables along x.
[[gnu::always_inline]] inline void map_to_x(const Primitives& p, Lanes (&r)[components]) {
  const auto& v = p.velocity;
  const Lanes work = p.kinetic * r[0] - v[0] * r[1] - v[1] * r[2] - v[2] * r[3] + r[4];
  const Lanes s = work / (c1 * p.internal_energy * p.inverse);  // c2 / a^2 of it
  const Lanes e = root_half * (v[0] * r[0] - r[1]) * p.inverse;
  const Lanes f = root_half * p.sound * s * p.inverse;
  const Lanes density = r[0];
  r[0] = density - s;
  const Lanes y = r[2];
  r[1] = (r[3] - v[2] * density) * p.inverse;
  r[2] = (v[1] * density - y) * p.inverse;
  r[3] = f - e;
  r[4] = f + e;
}

// From those along x to those along y.
[[gnu::always_inline]] inline void map_x_to_y(Lanes (&r)[components]) {
  const Lanes mean = 0.5 * (r[3] + r[4]);
  const Lanes difference = root_half * (r[3] - r[4]);
  const Lanes third = root_half * r[2];
  r[2] = difference;
  const Lanes second_one = r[1];
  r[1] = r[0];
  r[0] = -second_one;
  r[3] = mean - third;
  r[4] = mean + third;
}

// From those along y to those along z.
[[gnu::always_inline]] inline void map_y_to_z(Lanes (&r)[components]) {
  const Lanes mean = 0.5 * (r[3] + r[4]);
  const Lanes difference = root_half * (r[3] - r[4]);
  const Lanes first = root_half * r[0];
  r[0] = difference;
  const Lanes second_one = r[1];
  r[1] = -r[2];
  r[2] = second_one;
  r[3] = mean - first;
  r[4] = mean + first;
}

// From those along z back to dU.
[[gnu::always_inline]] inline void map_from_z(const Lanes (&u)[components], const Lanes& sound, const Lanes& inverse,
                                              Lanes (&r)[components]) {
  const Lanes x = u[1] * inverse;
  const Lanes y = u[2] * inverse;
  const Lanes z = u[3] * inverse;
  const Lanes kinetic = 0.5 * (x * x + y * y + z * z);
  const Lanes s = root_half * u[0] * (r[3] + r[4]) / sound;
  const Lanes e = r[2] + s;
  const Lanes f = root_half * u[0] * (r[3] - r[4]);
  const Lanes across_y = u[0] * r[1];
  const Lanes across_x = u[0] * r[0];
  r[0] = e;
  r[1] = x * e - across_y;
  r[2] = y * e + across_x;
  r[3] = z * e + f;
  r[4] = y * across_x - x * across_y + kinetic * e + (1 / c2) * sound * sound * s + z * f;
}

// What a point puts into the rows of its neighbours and its own, scaled: where these lie among a line's coefficients.
constexpr int speed = 0;
constexpr int rho = 1;
constexpr int sound = 2;

// Points ahead whose memory is asked for: along y and z each point is on another page, which no prefetcher follows.
constexpr std::ptrdiff_t points_ahead = 8;

}  // namespace

Pentadiagonals::Pentadiagonals(int points, double dt)
    : euler_(dt * Spacing(points).t2), viscous_(dt * Spacing(points).t1), fourth_(std::size_t(points)) {
  for (int i = 0; i < points; ++i) {
    auto& weights = fourth_[std::size_t(i)];
    weights = fourth_difference(i, points);
    for (auto& weight : weights) weight *= dt * fourth;
  }
}

template <int d>
void Pentadiagonals::form(const LineGroup& lines, Lanes* coefficients, Lanes* kept_points) const {
  for (int i = lines.begin - 1; i <= lines.end; ++i) {
    if constexpr (d > 0) {
      for (int m = 0; m < components; ++m) {
        __builtin_prefetch(lines.u + (i + points_ahead) * lines.step + m * lines.component);
        __builtin_prefetch(lines.r + (i + points_ahead) * lines.step + m * lines.component);
      }
    }
    const auto p = primitives(lines.u + i * lines.step, lines.component);
    Lanes* out = coefficients + (i + 1) * int(scratch);
    // The bound is the largest of second + {4/3 c3c4, c1c5 c3c4, c3c4, 0} / U1: the second, as density is positive.
    out[rho] = viscous_ * second[d] + viscous_ * heat * p.inverse;
    out[speed] = euler_ * p.velocity[d];
    out[sound] = euler_ * p.sound;
    if (i < lines.begin || i == lines.end) continue;
    if constexpr (d == 2) {
      Lanes* point = kept_points + (i + int(lead)) * int(kept);
      point[kept_sound] = p.sound;
      point[kept_inverse] = p.inverse;
    }
    if constexpr (d == 0) {
      Lanes r[components];
      double* at = lines.r + i * lines.step;
      each<components>([&](auto m) { r[m] = load(at + m * lines.component); });
      map_to_x(p, r);
      each<components>([&](auto m) { store(at + m * lines.component, r[m]); });
    }
  }
}

template <int d>
void Pentadiagonals::eliminate(const LineGroup& lines, const Lanes* carried, Lanes* kept_points, Lanes* coefficients,
                               Lanes* carry) const {
  form<d>(lines, coefficients, kept_points);
  constexpr std::size_t row_size = right_side + components;
  Lanes* out = kept_points + (lines.begin + int(lead)) * int(kept);
  std::copy_n(carried, row_size, out - 2 * kept);
  std::copy_n(carried + row_size, row_size, out - kept);
  const Lanes* here = coefficients + (lines.begin + 1) * int(scratch);
  for (int i = lines.begin; i < lines.end; ++i, out += kept, here += scratch) {
    const Lanes* before = out - kept;
    const Lanes* two_before = before - kept;
    const Lanes* below = here - scratch;
    const Lanes* above = here + scratch;
    const auto& weight = fourth_[std::size_t(lines.offset + i)];
    const double* r = lines.r + i * lines.step;
    const Lanes row_below = weight[1] - below[speed] - below[rho];
    const Lanes row_here = (1.0 + weight[2]) + 2.0 * here[rho];
    const Lanes row_above = weight[3] + above[speed] - above[rho];
    each<matrices>([&](auto matrix) __attribute__((always_inline)) {
      constexpr int first = matrix == 0 ? 0 : matrix + 2;
      constexpr int last = matrix == 0 ? 3 : matrix + 3;
      constexpr int p = 2 * matrix;
      constexpr int q = p + 1;
      Lanes lower = row_below;
      Lanes upper = row_above;
      if constexpr (matrix == 1) {
        lower -= below[sound];
        upper += above[sound];
      } else if constexpr (matrix == 2) {
        lower += below[sound];
        upper -= above[sound];
      }
      lower -= weight[0] * two_before[p];
      const Lanes own = row_here - weight[0] * two_before[q] - lower * before[p];
      const Lanes inverse = 1.0 / own;
      out[p] = (upper - lower * before[q]) * inverse;
      out[q] = weight[4] * inverse;
      each<last - first>([&](auto offset) __attribute__((always_inline)) {
        constexpr int m = first + offset;
        const Lanes rest = load(r + m * lines.component) - weight[0] * two_before[right_side + m];
        out[right_side + m] = (rest - lower * before[right_side + m]) * inverse;
      });
    });
  }
  std::copy_n(out - 2 * kept, row_size, carry);
  std::copy_n(out - kept, row_size, carry + row_size);
}

template <int d>
void Pentadiagonals::substitute(const LineGroup& lines, const Lanes* kept_points, const Lanes* carried,
                                Lanes* carry) const {
  Lanes after[components];
  Lanes two_after[components];
  each<components>([&](auto m) {
    after[m] = carried[m];
    two_after[m] = carried[components + m];
  });
  const auto component = lines.component;
  const Lanes* point = kept_points + (lines.end + int(lead)) * int(kept);
  double* to = (d == 2 ? lines.u : lines.r) + lines.end * lines.step;
  for (int i = lines.end - 1; i >= lines.begin; --i) {
    point -= kept;
    to -= lines.step;
    Lanes y[components];
    each<components>([&](auto m) __attribute__((always_inline)) {
      constexpr int matrix = m < 3 ? 0 : m - 2;
      y[m] = point[right_side + m] - point[2 * matrix + 1] * two_after[m] - point[2 * matrix] * after[m];
      two_after[m] = after[m];
      after[m] = y[m];
    });
    if constexpr (d == 2) {
      Lanes u[components];
      each<components>([&](auto m) { u[m] = load(to + m * component); });
      map_from_z(u, point[kept_sound], point[kept_inverse], y);
      each<components>([&](auto m) { store(to + m * component, u[m] + y[m]); });
    } else {
      if constexpr (d == 0) map_x_to_y(y);
      if constexpr (d == 1) map_y_to_z(y);
      each<components>([&](auto m) { store(to + m * component, y[m]); });
    }
  }
  each<components>([&](auto m) {
    carry[m] = after[m];
    carry[components + m] = two_after[m];
  });
}

template void Pentadiagonals::eliminate<0>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void Pentadiagonals::eliminate<1>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void Pentadiagonals::eliminate<2>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void Pentadiagonals::substitute<0>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;
template void Pentadiagonals::substitute<1>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;
template void Pentadiagonals::substitute<2>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;

}  // namespace fabricbench::npb::navier_stokes
