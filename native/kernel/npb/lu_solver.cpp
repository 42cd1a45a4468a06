#include "kernel/npb/lu_solver.hpp"

#include <algorithm>
#include <cstring>

namespace fabricbench::npb::ssor {
namespace {

using namespace navier_stokes;

constexpr int tag_x = 21;
constexpr int tag_y = 22;
constexpr int point_doubles = lane_count * components;

std::size_t doubles(int rows, int columns) {
  return std::size_t(rows) * std::size_t(columns) * sizeof(Points) / sizeof(double);
}

Points* points(Buffer<double>& memory) { return reinterpret_cast<Points*>(memory.data()); }

double sum_of_lanes(const Lanes& value) {
  double sum = 0;
  for (int lane = 0; lane < lane_count; ++lane) sum += value[lane];
  return sum;
}

}  // namespace

SweepCoefficients::SweepCoefficients(int points, double step) : dt(step) {
  const Spacing h(points);
  const double diffusion = dt * h.t1;
  euler = omega * dt * h.t2;
  for (std::size_t d = 0; d < 3; ++d) dissipation[d] = omega * diffusion * second[d];
  viscous = omega * diffusion * c3c4;
  viscous_energy = omega * diffusion * (c3c4 - heat);
  conduction = omega * diffusion * heat;
  // D sums over the directions; each momentum is along its own in one of three.
  diagonal = 1 + 2 * diffusion * (second[0] + second[1] + second[2]);
  diagonal_momentum = 2 * diffusion * c3c4 * (along + 2);
  diagonal_energy = 2 * diffusion * 3 * heat;
  diagonal_work = 2 * diffusion * (c3c4 * (along + 2) - 3 * heat);
}

void Solver::Pipeline::start(const Tile& tile) {
  from_x.start(tile.last_slot() - tile.first_slot() + 1);
  from_y.start(tile.points - 2);
}

void Solver::Pipeline::finish() {
  to_x.finish();
  to_y.finish();
}

Solver::Solver(const Tile& tile, double dt)
    : tile_(tile),
      exact_(tile.points),
      coefficients_(tile.points, dt),
      operator_(tile, exact_),
      ghosts_(tile),
      upward_{{tile.communicator, tile.west, tag_x, doubles(1, tile.strip)},
              {tile.communicator, tile.south, tag_y, std::size_t(tile.nx) * components},
              {tile.communicator, tile.east, tag_x, doubles(1, tile.strip)},
              {tile.communicator, tile.north, tag_y, std::size_t(tile.nx) * components}},
      downward_{{tile.communicator, tile.east, tag_x, doubles(1, tile.strip)},
                {tile.communicator, tile.north, tag_y, std::size_t(tile.nx) * components},
                {tile.communicator, tile.west, tag_x, doubles(1, tile.strip)},
                {tile.communicator, tile.south, tag_y, std::size_t(tile.nx) * components}},
      u_(tile, 2),
      v_(tile, 0),
      y_(doubles(1, tile.nx)),
      z_(doubles(tile.strip, tile.nx)) {
  // Lanes that hold no point calculate too: give them a state at rest, so that their numbers stay finite.
  for (int slot = -1; slot < tile.points + lane_count; ++slot) {
    for (int row = -2; row < tile.strip + 2; ++row) {
      for (int i = -2; i < tile.nx + 2; ++i) {
        u_.row(slot, row)[i][0] = broadcast(1.0);
        u_.row(slot, row)[i][4] = broadcast(1.0);
      }
    }
  }
}

void Solver::set_initial() {
  const int last = tile_.points - 1;
  const auto is_in_grid = [last](int index) { return index >= 0 && index <= last; };
  for (int k = 0; k <= last; ++k) {
    for (int j = -2; j < tile_.ny + 2; ++j) {
      for (int i = -2; i < tile_.nx + 2; ++i) {
        const int x = tile_.x_begin + i;
        const int y = tile_.y_begin + j;
        if (!is_in_grid(x) || !is_in_grid(y)) continue;
        const State state = exact_.initial(x, y, k);
        for (int m = 0; m < components; ++m) *u_.at(i, j, k, m) = state[std::size_t(m)];
      }
    }
  }
}

void Solver::step() {
  ghosts_.run(u_);
  sweep_up();
  sweep_down();
}

void Solver::forget_handed() {
  std::fill_n(points(y_), tile_.nx, Points{});
  std::fill_n(points(z_), tile_.strip * tile_.nx, Points{});
}

void Solver::sweep_up() {
  const Place north_edge = tile_.place(tile_.ny - 1);
  Points* y = points(y_);
  forget_handed();
  operator_.start(u_);
  upward_.start(tile_);
  for (int slot = tile_.first_slot(); slot <= tile_.last_slot(); ++slot) {
    operator_.advance(u_, slot);
    const double* from_west = upward_.from_x.take();
    const bool is_fed = tile_.has_plane(slot);
    const double* from_south = is_fed ? upward_.from_y.take() : nullptr;
    for (int i = 0; i < tile_.nx; ++i) {
      for (int m = 0; m < components; ++m) {
        y[i][m] = from_lane_below(y[i][m], is_fed ? broadcast(from_south[i * components + m]) : Lanes{});
      }
    }
    double* to_east = upward_.to_x.next();
    for (int row = 0; row < tile_.strip; ++row) {
      const auto right_hand_side = operator_.row(u_, slot, row);
      Points x;
      std::memcpy(&x, from_west + row * point_doubles, sizeof x);
      sweep_lower(
          coefficients_, tile_.nx, tile_.mask(slot, row), u_.row(slot, row),
          [&](int i) __attribute__((always_inline)) { return right_hand_side.at(i); },
          {x, y, points(z_) + row * tile_.nx}, v_.row(slot, row));
      std::memcpy(to_east + row * point_doubles, &x, sizeof x);
      if (row == north_edge.row && tile_.has_plane(slot - north_edge.lane)) {
        double* to_north = upward_.to_y.next();
        for (int i = 0; i < tile_.nx; ++i) {
          for (int m = 0; m < components; ++m) to_north[i * components + m] = y[i][m][north_edge.lane];
        }
        upward_.to_y.send();
      }
    }
    upward_.to_x.send();
  }
  upward_.finish();
}

void Solver::sweep_down() {
  const Place north_edge = tile_.place(tile_.ny - 1);
  Points* y = points(y_);
  forget_handed();
  downward_.start(tile_);
  for (int slot = tile_.last_slot(); slot >= tile_.first_slot(); --slot) {
    const double* from_east = downward_.from_x.take();
    for (int i = 0; i < tile_.nx; ++i) {
      for (int m = 0; m < components; ++m) y[i][m] = from_lane_above(y[i][m], Lanes{});
    }
    double* to_west = downward_.to_x.next();
    for (int row = tile_.strip - 1; row >= 0; --row) {
      if (row == north_edge.row && tile_.has_plane(slot - north_edge.lane)) {
        const double* from_north = downward_.from_y.take();
        for (int i = 0; i < tile_.nx; ++i) {
          for (int m = 0; m < components; ++m) y[i][m][north_edge.lane] = from_north[i * components + m];
        }
      }
      Points x;
      std::memcpy(&x, from_east + row * point_doubles, sizeof x);
      sweep_upper(coefficients_, tile_.nx, tile_.mask(slot, row), v_.row(slot, row),
                  {x, y, points(z_) + row * tile_.nx}, u_.row(slot, row));
      std::memcpy(to_west + row * point_doubles, &x, sizeof x);
    }
    downward_.to_x.send();
    if (tile_.has_plane(slot)) {
      double* to_south = downward_.to_y.next();
      for (int i = 0; i < tile_.nx; ++i) {
        for (int m = 0; m < components; ++m) to_south[i * components + m] = y[i][m][0];
      }
      downward_.to_y.send();
    }
  }
  downward_.finish();
}

State Solver::residual() {
  ghosts_.run(u_);
  operator_.start(u_);
  Points squares{};
  for (int slot = tile_.first_slot(); slot <= tile_.last_slot(); ++slot) {
    operator_.advance(u_, slot);
    for (int row = 0; row < tile_.strip; ++row) {
      const LaneMask mask = tile_.mask(slot, row);
      const auto right_hand_side = operator_.row(u_, slot, row);
      for (int i = 0; i < tile_.nx; ++i) {
        const Points r = right_hand_side.at(i);
        for (int m = 0; m < components; ++m) squares[m] += mask ? r[m] * r[m] : Lanes{};
      }
    }
  }
  State sums;
  for (int m = 0; m < components; ++m) sums[std::size_t(m)] = sum_of_lanes(squares[m]);
  return root_mean_square(tile_.communicator, sums, tile_.points);
}

State Solver::error() {
  State sums{};
  for (int k = 1; k <= tile_.points - 2; ++k) {
    for (int j = 0; j < tile_.ny; ++j) {
      for (int i = 0; i < tile_.nx; ++i) {
        const State exact = exact_.at(tile_.x_begin + i, tile_.y_begin + j, k);
        for (int m = 0; m < components; ++m) {
          const double difference = *u_.at(i, j, k, m) - exact[std::size_t(m)];
          sums[std::size_t(m)] += difference * difference;
        }
      }
    }
  }
  return root_mean_square(tile_.communicator, sums, tile_.points);
}

double Solver::surface_integral() {
  // The box of the report, counted from 0: it is not quite symmetric. Over each pair of opposite faces, the sum over
  // cells of the values at their four corners has each point as often as it has cells.
  struct Edge {
    int first, last;
    int cells(int index) const { return index < first || index > last ? 0 : index == first || index == last ? 1 : 2; }
    bool is_end(int index) const { return index == first || index == last; }
  };
  const int n = tile_.points;
  const Edge x{1, n - 2};
  const Edge y{1, n - 3};
  const Edge z{2, n - 2};
  double sum = 0;
  for (int k = z.first; k <= z.last; ++k) {
    for (int j = 0; j < tile_.ny; ++j) {
      for (int i = 0; i < tile_.nx; ++i) {
        const int gx = tile_.x_begin + i;
        const int gy = tile_.y_begin + j;
        const int times = (x.is_end(gx) ? y.cells(gy) * z.cells(k) : 0) +
                          (y.is_end(gy) ? x.cells(gx) * z.cells(k) : 0) + (z.is_end(k) ? x.cells(gx) * y.cells(gy) : 0);
        if (times == 0) continue;
        State u;
        for (int m = 0; m < components; ++m) u[std::size_t(m)] = *u_.at(i, j, k, m);
        sum += times * c2 * (u[4] - (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / (2 * u[0]));
      }
    }
  }
  double total = 0;
  MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, tile_.communicator);
  return total / (4.0 * double(n - 1) * double(n - 1));
}

}  // namespace fabricbench::npb::ssor
