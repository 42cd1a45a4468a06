#include "kernel/npb/lu_operator.hpp"

namespace fabricbench::npb::ssor {
namespace {

using namespace navier_stokes;

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
      out[i][primitive::pressure] = (c2 * t2_ / viscous) * (in[i][4] - 0.5 * twice_kinetic);
      out[i][primitive::conducted] = viscous * inverse * (0.5 * (1 - c1c5) * twice_kinetic + c1c5 * in[i][4]);
    }
  }
}

void SpatialOperator::start(Field& u) {
  form_primitives(u, tile_.first_slot() - 1);
  form_primitives(u, tile_.first_slot());
}

void SpatialOperator::advance(Field& u, int slot) { form_primitives(u, slot + 1); }

OperatorRow SpatialOperator::row(const Field& u, int slot, int row) const {
  return {.u = u.row(slot, row),
          .u_south2 = u.row(slot, row - 2),
          .u_south = u.row(slot, row - 1),
          .u_north = u.row(slot, row + 1),
          .u_north2 = u.row(slot, row + 2),
          .u_below2 = u.row(slot - 2, row),
          .u_below = u.row(slot - 1, row),
          .u_above = u.row(slot + 1, row),
          .u_above2 = u.row(slot + 2, row),
          .v = primitives(slot, row),
          .v_south = primitives(slot, row - 1),
          .v_north = primitives(slot, row + 1),
          .v_below = primitives(slot - 1, row),
          .v_above = primitives(slot + 1, row),
          .target = target_.row(slot, row),
          .x = x_stencil_.data(),
          .y = y_stencil_[std::size_t(row)],
          .z = z_stencil_[std::size_t(slot)],
          .viscous = t1_ * navier_stokes::c3c4,
          .convection = t2_ / (t1_ * navier_stokes::c3c4)};
}

}  // namespace fabricbench::npb::ssor
