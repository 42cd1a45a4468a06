#include "kernel/npb/lu_operator.hpp"

namespace fabricbench::npb::ssor {
namespace {

using namespace navier_stokes;

// Formed once for each point: three velocities, pressure, and (1 - c1c5) K + c1c5 U5/U1, of which heat conduction takes
// second differences.
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

// Add E(above) - E(below), the Euler fluxes of a direction.
template <int direction>
[[gnu::always_inline]] inline void convect(const Points& below, const Points& below_primitive, const Points& above,
                                           const Points& above_primitive, Points& sum) {
  constexpr int along_it = direction + 1;
  const Lanes up = above_primitive[direction];
  const Lanes down = below_primitive[direction];
  sum[0] += above[along_it] - below[along_it];
  each<3>([&](auto m) __attribute__((always_inline)) {
    sum[m + 1] += above[m + 1] * up;
    sum[m + 1] -= below[m + 1] * down;
  });
  sum[along_it] += above_primitive[pressure] - below_primitive[pressure];
  sum[4] += (above[4] + above_primitive[pressure]) * up;
  sum[4] -= (below[4] + below_primitive[pressure]) * down;
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
  for (int row = -1; row <= tile_.strip; ++row) {
    const Points* in = u.row(slot, row);
    Points* out = primitives(slot, row);
    for (int i = -1; i <= tile_.nx; ++i) {
      const Lanes inverse = 1.0 / in[i][0];
      Lanes twice_kinetic{};
      for (int m = 0; m < 3; ++m) {
        const Lanes velocity = in[i][m + 1] * inverse;
        twice_kinetic += in[i][m + 1] * velocity;
        out[i][m] = velocity;
      }
      out[i][pressure] = c2 * (in[i][4] - 0.5 * twice_kinetic);
      out[i][conducted] = (0.5 * (1 - c1c5) * twice_kinetic + c1c5 * in[i][4]) * inverse;
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
  const double viscous = t1_ * c3c4;

  for (int i = 0; i < tile_.nx; ++i) {
    const auto& x = x_stencil_[std::size_t(i)];
    const Lanes centre = x[2] + centre_yz;
    Points convected{};
    convect<0>(here[i - 1], v[i - 1], here[i + 1], v[i + 1], convected);
    convect<1>(south_north[1][i], v_south[i], south_north[2][i], v_north[i], convected);
    convect<2>(below_above[1][i], v_below[i], below_above[2][i], v_above[i], convected);

    Points sum;
    each<components>([&](auto m) __attribute__((always_inline)) {
      Lanes r = centre * here[i][m] - target[i][m];
      r += x[0] * here[i - 2][m];
      r += x[1] * here[i - 1][m];
      r += x[3] * here[i + 1][m];
      r += x[4] * here[i + 2][m];
      r += y[0] * south_north[0][i][m];
      r += y[1] * south_north[1][i][m];
      r += y[3] * south_north[2][i][m];
      r += y[4] * south_north[3][i][m];
      r += z[0] * below_above[0][i][m];
      r += z[1] * below_above[1][i][m];
      r += z[3] * below_above[2][i][m];
      r += z[4] * below_above[3][i][m];
      sum[m] = r - t2_ * convected[m];
    });
    // Velocities diffuse with weight 1, along their own direction 4/3; their squares along it heat, as do the kinetic
    // energy and the temperature, which `conducted` has together.
    Lanes squares = v[i][0] * v[i][0] + v[i][1] * v[i][1] + v[i][2] * v[i][2];
    squares *= -2.0;
    each<3>([&](auto m) __attribute__((always_inline)) {
      const Points& lower = m == 0 ? v[i - 1] : m == 1 ? v_south[i] : v_below[i];
      const Points& upper = m == 0 ? v[i + 1] : m == 1 ? v_north[i] : v_above[i];
      squares += lower[m] * lower[m];
      squares += upper[m] * upper[m];
      const Lanes own = lower[m] + upper[m];
      Lanes others{};
      if constexpr (m != 0) others += v[i - 1][m] + v[i + 1][m];
      if constexpr (m != 1) others += v_south[i][m] + v_north[i][m];
      if constexpr (m != 2) others += v_below[i][m] + v_above[i][m];
      sum[m + 1] += viscous * (others + along * own - (2 * along + 4) * v[i][m]);
    });
    const Lanes heat_flow = v[i - 1][conducted] + v[i + 1][conducted] + v_south[i][conducted] + v_north[i][conducted] +
                            v_below[i][conducted] + v_above[i][conducted] - 6.0 * v[i][conducted];
    sum[4] += viscous * (heat_flow + squares * (1.0 / 6.0));
    out[i] = sum;
  }
}

}  // namespace fabricbench::npb::ssor
