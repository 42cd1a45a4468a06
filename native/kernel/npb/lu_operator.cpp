#include "kernel/npb/lu_operator.hpp"

namespace fabricbench::npb::ssor {
namespace {

using namespace navier_stokes;

// Formed once for each point, scaled so that neighbours add up without more factors: three velocities times the
// viscosity nu = t1 c3c4; the pressure times t2 / nu; and nu times (1 - c1c5) K + c1c5 U5/U1, of which heat conduction
// takes second differences.
constexpr int pressure = 3;
constexpr int conducted = 4;
constexpr int slots_kept = 3;

// Both dissipations along one direction as one stencil.
std::array<double, 5> dissipation(int i, int points, std::size_t direction) {
  auto weights = fourth_difference(i, points);
  for (auto& weight : weights) weight *= -fourth;
  const double h2 = second[direction] * Spacing(points).t1;
  weights[1] += h2;
  weights[2] -= 2 * h2;
  weights[3] += h2;
  return weights;
}

// What all neighbours add to: R itself, and squares of velocities that heat by their second differences.
struct Sum {
  Points r;
  Lanes squares;
};

struct Scales {
  double viscous;     // nu
  double convection;  // t2 / nu
};

// A next neighbour's part in R. The Euler flux along d is V_d U + p (e_d + V_d e_5): what multiplies U goes together
// with the weight of the dissipations.
template <int d, int side>
[[gnu::always_inline]] inline void add_neighbour(const Scales& scale, const Lanes& weight, const Points& u,
                                                 const Points& v, Sum& sum) {
  const Lanes speed = v[d];
  const Lanes carried = weight - (side * scale.convection) * speed;
  each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] += carried * u[m]; });
  sum.r[d + 1] -= (side * scale.viscous) * v[pressure];
  sum.r[4] -= side * speed * v[pressure];
  each<3>([&](auto m) __attribute__((always_inline)) {
    if constexpr (m == d) {
      sum.r[m + 1] += along * speed;
    } else {
      sum.r[m + 1] += v[m];
    }
  });
  sum.r[4] += v[conducted];
  sum.squares += speed * speed;
}

[[gnu::always_inline]] inline void add_second_neighbour(const Lanes& weight, const Points& u, Sum& sum) {
  each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] += weight * u[m]; });
}

}  // namespace

SpatialOperator::SpatialOperator(const Tile& tile, const ExactSolution& exact)
    : tile_(tile),
      t1_(Spacing(tile.points).t1),
      t2_(Spacing(tile.points).t2),
      target_(tile, 0),
      columns_(tile.nx + 2),
      ring_(std::size_t(slots_kept * (tile.strip + 2) * columns_) * sizeof(Points) / sizeof(double)) {
  for (int i = 0; i < tile.nx; ++i) x_stencil_.push_back(dissipation(tile.x_begin + i, tile.points, 0));
  y_stencil_.resize(std::size_t(tile.strip));
  for (int row = 0; row < tile.strip; ++row) {
    for (int lane = 0; lane < lane_count; ++lane) {
      const auto weights = dissipation(tile.y_begin + lane * tile.strip + row, tile.points, 1);
      for (std::size_t s = 0; s < 5; ++s) y_stencil_[std::size_t(row)][s][lane] = weights[s];
    }
  }
  z_stencil_.resize(std::size_t(tile.last_slot() + 1));
  for (int slot = 0; slot <= tile.last_slot(); ++slot) {
    for (int lane = 0; lane < lane_count; ++lane) {
      const auto weights = dissipation(slot - lane, tile.points, 2);
      for (std::size_t s = 0; s < 5; ++s) z_stencil_[std::size_t(slot)][s][lane] = weights[s];
    }
  }
  for (int k = 1; k <= tile.points - 2; ++k) {
    for (int j = 0; j < tile.ny; ++j) {
      for (int i = 0; i < tile.nx; ++i) {
        const auto value = exact.spatial_operator(tile.x_begin + i, tile.y_begin + j, k);
        for (int m = 0; m < components; ++m) *target_.at(i, j, k, m) = value[std::size_t(m)];
      }
    }
  }
}

Points* SpatialOperator::primitives(int slot, int row) {
  auto* points = reinterpret_cast<Points*>(ring_.data());
  return points + (slot % slots_kept * (tile_.strip + 2) + row + 1) * columns_ + 1;
}

const Points* SpatialOperator::primitives(int slot, int row) const {
  const auto* points = reinterpret_cast<const Points*>(ring_.data());
  return points + (slot % slots_kept * (tile_.strip + 2) + row + 1) * columns_ + 1;
}

void SpatialOperator::form_primitives(Field& u, int slot) {
  // Ghost rows of a lane are rows of the lanes beside it; those of the outermost lanes came from other ranks or are
  // faces.
  for (int ghost = 1; ghost <= 2; ++ghost) {
    Points* lower = u.row(slot, -ghost);
    Points* upper = u.row(slot, tile_.strip + ghost - 1);
    const Points* below = u.row(slot - 1, tile_.strip - ghost);
    const Points* above = u.row(slot + 1, ghost - 1);
    for (int i = 0; i < tile_.nx; ++i) {
      for (int m = 0; m < components; ++m) {
        lower[i][m] = from_lane_below(below[i][m], lower[i][m]);
        upper[i][m] = from_lane_above(above[i][m], upper[i][m]);
      }
    }
  }
  const double viscous = t1_ * c3c4;
  for (int row = -1; row <= tile_.strip; ++row) {
    const Points* in = u.row(slot, row);
    Points* out = primitives(slot, row);
    for (int i = -1; i <= tile_.nx; ++i) {
      const Lanes inverse = 1.0 / in[i][0];
      Lanes twice_kinetic{};
      for (int m = 0; m < 3; ++m) {
        const Lanes velocity = in[i][m + 1] * inverse;
        twice_kinetic += in[i][m + 1] * velocity;
        out[i][m] = viscous * velocity;
      }
      out[i][pressure] = (c2 * t2_ / viscous) * (in[i][4] - 0.5 * twice_kinetic);
      out[i][conducted] = viscous * inverse * (0.5 * (1 - c1c5) * twice_kinetic + c1c5 * in[i][4]);
    }
  }
}

void SpatialOperator::start(Field& u) {
  form_primitives(u, tile_.first_slot() - 1);
  form_primitives(u, tile_.first_slot());
}

void SpatialOperator::advance(Field& u, int slot) { form_primitives(u, slot + 1); }

void SpatialOperator::evaluate(const Field& u, int slot, int row, Points* out) const {
  const Points* here = u.row(slot, row);
  const std::array<const Points*, 4> south_north{u.row(slot, row - 2), u.row(slot, row - 1), u.row(slot, row + 1),
                                                 u.row(slot, row + 2)};
  const std::array<const Points*, 4> below_above{u.row(slot - 2, row), u.row(slot - 1, row), u.row(slot + 1, row),
                                                 u.row(slot + 2, row)};
  const Points* v = primitives(slot, row);
  const Points* v_south = primitives(slot, row - 1);
  const Points* v_north = primitives(slot, row + 1);
  const Points* v_below = primitives(slot - 1, row);
  const Points* v_above = primitives(slot + 1, row);
  const Points* target = target_.row(slot, row);
  const Stencil& y = y_stencil_[std::size_t(row)];
  const Stencil& z = z_stencil_[std::size_t(slot)];
  const Lanes centre_yz = y[2] + z[2];
  const Scales scale{t1_ * c3c4, t2_ / (t1_ * c3c4)};
  const double squares_heat = 1 / (6 * scale.viscous);

  for (int i = 0; i < tile_.nx; ++i) {
    const auto& x = x_stencil_[std::size_t(i)];
    const Lanes centre = x[2] + centre_yz;
    Sum sum;
    each<components>([&](auto m) __attribute__((always_inline)) { sum.r[m] = centre * here[i][m] - target[i][m]; });
    sum.squares = -2.0 * (v[i][0] * v[i][0]);
    each<3>([&](auto m) __attribute__((always_inline)) {
      sum.r[m + 1] -= (2 * along + 4) * v[i][m];
      if constexpr (m > 0) sum.squares -= 2.0 * v[i][m] * v[i][m];
    });
    sum.r[4] -= 6.0 * v[i][conducted];
    add_neighbour<0, -1>(scale, broadcast(x[1]), here[i - 1], v[i - 1], sum);
    add_neighbour<0, 1>(scale, broadcast(x[3]), here[i + 1], v[i + 1], sum);
    add_second_neighbour(broadcast(x[0]), here[i - 2], sum);
    add_second_neighbour(broadcast(x[4]), here[i + 2], sum);
    add_neighbour<1, -1>(scale, y[1], south_north[1][i], v_south[i], sum);
    add_neighbour<1, 1>(scale, y[3], south_north[2][i], v_north[i], sum);
    add_second_neighbour(y[0], south_north[0][i], sum);
    add_second_neighbour(y[4], south_north[3][i], sum);
    add_neighbour<2, -1>(scale, z[1], below_above[1][i], v_below[i], sum);
    add_neighbour<2, 1>(scale, z[3], below_above[2][i], v_above[i], sum);
    add_second_neighbour(z[0], below_above[0][i], sum);
    add_second_neighbour(z[4], below_above[3][i], sum);
    sum.r[4] += squares_heat * sum.squares;
    out[i] = sum.r;
  }
}

}  // namespace fabricbench::npb::ssor
