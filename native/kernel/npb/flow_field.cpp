#include "kernel/npb/flow_field.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

// Visit the box widened by some layers: f(i, j, k) with local indices.
template <class Function>
void for_points(const Box& box, int widened, Function&& f) {
  for (int k = -widened; k < box.extent[2] + widened; ++k) {
    for (int j = -widened; j < box.extent[1] + widened; ++j) {
      for (int i = -widened; i < box.extent[0] + widened; ++i) f(i, j, k);
    }
  }
}

}  // namespace

void set_initial(const Box& box, const ExactSolution& exact, Field& u) {
  const auto inside = [&box](std::size_t d, int local) { return std::clamp(box.begin[d] + local, 0, box.points - 1); };
  const auto& layout = u.layout();
  // Whole vectors and whole groups of rows are computed with, so their unused ends need values of sense too.
  const int rows = std::max(box.extent[1] + ghosts, whole_lanes(box.extent[1]));
  for (int k = -ghosts; k < box.extent[2] + ghosts; ++k) {
    for (int j = -ghosts; j < rows; ++j) {
      for (int i = -lane_count; i < int(layout.row) - lane_count; ++i) {
        const auto state = exact.initial(inside(0, i), inside(1, j), inside(2, k));
        for (int m = 0; m < components; ++m) *u.at(i, j, k, m) = state[std::size_t(m)];
      }
    }
  }
}

void set_forcing(const Box& box, const ExactSolution& exact, Field& forcing) {
  for_points(box, 0, [&](int i, int j, int k) {
    const auto r = exact.spatial_operator(box.begin[0] + i, box.begin[1] + j, box.begin[2] + k);
    for (int m = 0; m < components; ++m) *forcing.at(i, j, k, m) = -r[std::size_t(m)];
  });
}

State sum_of_squares(const Box& box, const Field& r) {
  State sum{};
  for_points(box, 0, [&](int i, int j, int k) {
    for (int m = 0; m < components; ++m) sum[std::size_t(m)] += *r.at(i, j, k, m) * *r.at(i, j, k, m);
  });
  return sum;
}

State sum_of_squared_errors(const Box& box, const ExactSolution& exact, const Field& u) {
  State sum{};
  for_points(box, 0, [&](int i, int j, int k) {
    const auto wanted = exact.at(box.begin[0] + i, box.begin[1] + j, box.begin[2] + k);
    for (int m = 0; m < components; ++m) {
      const double error = *u.at(i, j, k, m) - wanted[std::size_t(m)];
      sum[std::size_t(m)] += error * error;
    }
  });
  return sum;
}

}  // namespace fabricbench::npb::navier_stokes
