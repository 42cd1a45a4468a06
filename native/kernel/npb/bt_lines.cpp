// The system of one line along direction d, for the points 1..n-2 of the line (its ends stay as they are):
//   A_i y_{i-1} + B_i y_i + C_i y_{i+1} = r_i,
//   A_i = -dt/(2h) J_{i-1} - dt/h^2 M_{i-1},  B_i = I + 2 dt/h^2 M_i,  C_i = dt/(2h) J_{i+1} - dt/h^2 M_{i+1},
// J the Jacobian of the Euler flux along d and M that of the viscous terms plus the weight of the second-difference
// dissipation on its diagonal, both at U of the step's start. Block Thomas: with X_i = (C'_i | r'_i),
//   X_i = (B_i - A_i C'_{i-1})^-1 (C_i | r_i - A_i r'_{i-1}),  then backwards  y_i = r'_i - C'_i y_{i+1}.
// Blocks are diagonally dominant: no pivoting. A line sits in each lane, so all of this runs on vectors; blocks are
// formed from U on the fly, and only the entries that are not zero by structure are formed and multiplied.
#include "kernel/npb/bt_lines.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

constexpr int columns = components + 1;  // of the block (C' | r')

// Entries of J and M that are not zero by structure, D = d + 1: density changes by the momentum along d only; a
// momentum across feels density, itself and the one along d; the rest feels everything.
template <int d>
constexpr bool is_coupled(int row, int column) {
  if (row == 0) return column == 0 || column == d + 1;
  if (row == d + 1 || row == 4) return true;
  return column == 0 || column == row || column == d + 1;
}

// The three blocks that a point's state goes into: A of the next row, B of its own, C of the previous.
struct Blocks {
  Lanes lower[components][components];
  Lanes own[components][components];
  Lanes upper[components][components];
};

struct Primitives {
  Lanes inverse;      // 1/U1
  Lanes velocity[4];  // [1..3]
  Lanes kinetic;      // of a unit of mass
  Lanes energy;       // of a unit of mass
};

[[gnu::always_inline]] inline Primitives primitives(const double* u, std::ptrdiff_t component) {
  Primitives p;
  p.inverse = 1.0 / load(u);
  p.kinetic = Lanes{};
  each<3>([&](auto i) {
    constexpr int m = i + 1;
    p.velocity[m] = load(u + m * component) * p.inverse;
    p.kinetic += 0.5 * p.velocity[m] * p.velocity[m];
  });
  p.energy = load(u + 4 * component) * p.inverse;
  return p;
}

// Entry of the Euler flux's Jacobian.
template <int d, int row, int column>
[[gnu::always_inline]] inline Lanes euler_entry(const Primitives& p) {
  constexpr int along_d = d + 1;
  const auto& v = p.velocity;
  const Lanes& w = v[along_d];
  if constexpr (row == 0) {
    return broadcast(column == along_d ? 1.0 : 0.0);
  } else if constexpr (row == 4) {
    if constexpr (column == 0) return (2 * c2 * p.kinetic - c1 * p.energy) * w;
    if constexpr (column == 4) return c1 * w;
    if constexpr (column == along_d) return c1 * p.energy - c2 * (w * w + p.kinetic);
    if constexpr (column >= 1 && column <= 3) return -c2 * v[column] * w;
  } else if constexpr (row == along_d) {
    if constexpr (column == 0) return c2 * p.kinetic - w * w;
    if constexpr (column == 4) return broadcast(c2);
    if constexpr (column == along_d) return (2 - c2) * w;
    if constexpr (column >= 1 && column <= 3) return -c2 * v[column];
  } else {
    if constexpr (column == 0) return -v[row] * w;
    if constexpr (column == row) return w;
    if constexpr (column == along_d) return v[row];
  }
  return Lanes{};
}

// Entry of the viscous Jacobian plus the dissipation's weight on the diagonal.
template <int d, int row, int column>
[[gnu::always_inline]] inline Lanes viscous_entry(const Primitives& p) {
  constexpr auto weight = [](int m) { return c3c4 * (m == d + 1 ? along : 1.0); };
  if constexpr (row == column) {
    if constexpr (row == 0) return broadcast(second[d]);
    if constexpr (row == 4) return second[d] + heat * p.inverse;
    if constexpr (row >= 1 && row <= 3) return second[d] + weight(row) * p.inverse;
  } else if constexpr (row == 4) {
    if constexpr (column > 0) return (weight(column) - heat) * p.velocity[column] * p.inverse;
    Lanes sum = heat * p.energy;
    each<3>([&](auto m) { sum += (weight(m + 1) - heat) * p.velocity[m + 1] * p.velocity[m + 1]; });
    return -sum * p.inverse;
  } else {
    return -weight(row) * p.velocity[row] * p.inverse;
  }
}

template <int row, int column>
constexpr bool is_viscous = row == column || row == 4 || (row > 0 && column == 0);

template <int d>
[[gnu::always_inline]] inline void form_blocks(const double* u, std::ptrdiff_t component, double euler, double viscous,
                                               Blocks& out) {
  const auto p = primitives(u, component);
  each<components>([&](auto row) __attribute__((always_inline)) {
    each<components>([&](auto column) __attribute__((always_inline)) {
      if constexpr (is_coupled<d>(row, column)) {
        const Lanes convected = euler * euler_entry<d, row, column>(p);
        if constexpr (is_viscous<row, column>) {
          const Lanes diffused = viscous * viscous_entry<d, row, column>(p);
          out.lower[row][column] = convected + diffused;  // the negative of A
          out.own[row][column] = 2.0 * diffused + (row == column ? 1.0 : 0.0);
          out.upper[row][column] = convected - diffused;
        } else {
          out.lower[row][column] = convected;
          out.upper[row][column] = convected;
        }
      }
    });
  });
}

// One row of blocks: `out` becomes (C' | r') from the previous row's and this point's blocks and right side.
template <int d>
[[gnu::always_inline]] inline void eliminate_point(const Blocks& below, const Blocks& here, const Blocks& above,
                                                   const double* r, std::ptrdiff_t component, const Lanes* previous,
                                                   Lanes* out) {
  Lanes factor[components][components];  // upper triangle of B - A C', each row over its pivot
  each<components>([&](auto row) __attribute__((always_inline)) {
    Lanes block[components];
    Lanes side[columns];
    each<components>([&](auto column) __attribute__((always_inline)) {
      constexpr bool is_own = is_coupled<d>(row, column) && is_viscous<row, column>;
      block[column] = is_own ? here.own[row][column] : Lanes{};
      side[column] = is_coupled<d>(row, column) ? above.upper[row][column] : Lanes{};
    });
    side[components] = load(r + row * component);
    each<components>([&](auto inner) __attribute__((always_inline)) {
      if constexpr (is_coupled<d>(row, inner)) {
        const Lanes a = below.lower[row][inner];
        each<components>([&](auto column) { block[column] += a * previous[inner * columns + column]; });
        side[components] += a * previous[inner * columns + components];
      }
    });
    each<row>([&](auto pivot) __attribute__((always_inline)) {
      const Lanes a = block[pivot];
      each<components>([&](auto column) {
        if constexpr (column > pivot) block[column] -= a * factor[pivot][column];
      });
      each<columns>([&](auto column) { side[column] -= a * out[pivot * columns + column]; });
    });
    const Lanes inverse = 1.0 / block[row];
    each<components>([&](auto column) {
      if constexpr (column > row) factor[row][column] = block[column] * inverse;
    });
    each<columns>([&](auto column) { out[row * columns + column] = side[column] * inverse; });
  });
  each<components - 1>([&](auto up) __attribute__((always_inline)) {
    constexpr int row = components - 2 - up;
    Lanes side[columns];
    each<columns>([&](auto column) { side[column] = out[row * columns + column]; });
    each<components - 1 - row>([&](auto offset) __attribute__((always_inline)) {
      constexpr int pivot = row + 1 + offset;
      const Lanes a = factor[row][pivot];
      each<columns>([&](auto column) { side[column] -= a * out[pivot * columns + column]; });
    });
    each<columns>([&](auto column) { out[row * columns + column] = side[column]; });
  });
}

// Points ahead whose memory is asked for: along y and z each point is on another page, which no prefetcher follows.
constexpr std::ptrdiff_t points_ahead = 3;

}  // namespace

BlockTridiagonal::BlockTridiagonal(int points, double dt)
    : euler_(dt * Spacing(points).t2), viscous_(dt * Spacing(points).t1) {}

template <int d>
void BlockTridiagonal::eliminate(const LineGroup& lines, const Lanes* carried, Lanes* kept_points, Lanes*,
                                 Lanes* carry) const {
  Blocks blocks[3];
  const auto form = [&](int i) {
    form_blocks<d>(lines.u + i * lines.step, lines.component, euler_, viscous_, blocks[(i + 1) % 3]);
  };
  form(lines.begin - 1);
  form(lines.begin);
  const Lanes* previous = carried;
  for (int i = lines.begin; i < lines.end; ++i) {
    if constexpr (d > 0) {
      for (int m = 0; m < components; ++m) {
        __builtin_prefetch(lines.u + (i + points_ahead) * lines.step + m * lines.component);
        __builtin_prefetch(lines.r + (i + points_ahead) * lines.step + m * lines.component);
      }
    }
    form(i + 1);
    Lanes* out = kept_points + std::size_t(i) * kept;
    eliminate_point<d>(blocks[i % 3], blocks[(i + 1) % 3], blocks[(i + 2) % 3], lines.r + i * lines.step,
                       lines.component, previous, out);
    previous = out;
  }
  std::copy_n(previous, forward, carry);
}

template <int d>
void BlockTridiagonal::substitute(const LineGroup& lines, const Lanes* kept_points, const Lanes* carried,
                                  Lanes* carry) const {
  Lanes y[components];
  each<components>([&](auto m) { y[m] = carried[m]; });
  const auto component = lines.component;
  double* to = (d == 2 ? lines.u : lines.r) + lines.end * lines.step;
  for (int i = lines.end - 1; i >= lines.begin; --i) {
    const Lanes* point = kept_points + std::size_t(i) * kept;
    to -= lines.step;
    Lanes solution[components];
    each<components>([&](auto row) __attribute__((always_inline)) {
      solution[row] = point[row * columns + components];
      each<components>([&](auto column) { solution[row] -= point[row * columns + column] * y[column]; });
    });
    each<components>([&](auto m) {
      y[m] = solution[m];
      if constexpr (d == 2) {
        store(to + m * component, load(to + m * component) + y[m]);
      } else {
        store(to + m * component, y[m]);
      }
    });
  }
  each<components>([&](auto m) { carry[m] = y[m]; });
}

template void BlockTridiagonal::eliminate<0>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void BlockTridiagonal::eliminate<1>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void BlockTridiagonal::eliminate<2>(const LineGroup&, const Lanes*, Lanes*, Lanes*, Lanes*) const;
template void BlockTridiagonal::substitute<0>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;
template void BlockTridiagonal::substitute<1>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;
template void BlockTridiagonal::substitute<2>(const LineGroup&, const Lanes*, const Lanes*, Lanes*) const;

}  // namespace fabricbench::npb::navier_stokes
