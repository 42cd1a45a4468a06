#include "kernel/npb/right_hand_side.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

// Three velocities, pressure, and (1 - c1c5) K + c1c5 U5/U1, of which conduction takes second differences.
constexpr int primitive_count = 5;
constexpr int pressure = 3;
constexpr int conducted = 4;
constexpr int ring = 3;

constexpr std::ptrdiff_t cache_line = 8;

// The index of a point with the whole stencil, were the grid large enough.
constexpr int inner_index = 3;

struct Coefficients {
  double convection;  // -t2, and the others by 1/h^2, all times the scale
  double viscous;
  double dissipation;  // of second differences, without the direction's weight
  double fourth;
};

Coefficients coefficients(int points, double scale) {
  const Spacing h(points);
  return {-scale * h.t2, scale * h.t1 * c3c4, scale * h.t1, scale * fourth};
}

std::array<double, 5> stencil(const Coefficients& c, int d, int i, int points) {
  auto weights = fourth_difference(i, points);
  for (auto& weight : weights) weight *= -c.fourth;
  const double dissipation = c.dissipation * second[std::size_t(d)];
  weights[1] += dissipation;
  weights[2] -= 2 * dissipation;
  weights[3] += dissipation;
  return weights;
}

// A row of points and its neighbours along one direction; distances in doubles.
struct Row {
  const double* u;
  std::ptrdiff_t u_step;
  std::ptrdiff_t u_component;
  const double* lower;  // primitives
  const double* here;
  const double* upper;
  std::ptrdiff_t primitive;
  int end;
};

// Add the terms of direction d to one component. Component by component and direction by direction: then all streams of
// the loop have their own address register.
template <int d, int m>
void add_component(const Row& row, const Coefficients& c, const std::array<double, 5>& weight, double* out) {
  const double* u = row.u + m * row.u_component;
  const double* lower_u = u - row.u_step;
  const double* upper_u = u + row.u_step;
  const double* lowest_u = lower_u - row.u_step;
  const double* highest_u = upper_u + row.u_step;
  const double* lower_speed = row.lower + d * row.primitive;
  const double* upper_speed = row.upper + d * row.primitive;
  const double* speed = row.here + d * row.primitive;
  const double* lower_pressure = row.lower + pressure * row.primitive;
  const double* upper_pressure = row.upper + pressure * row.primitive;
  const double* lower_momentum = row.u + (d + 1) * row.u_component - row.u_step;
  const double* upper_momentum = row.u + (d + 1) * row.u_component + row.u_step;
  constexpr int diffusing = m == 4 ? conducted : m - 1;
  const double* lower_v = row.lower + diffusing * row.primitive;
  const double* v = row.here + diffusing * row.primitive;
  const double* upper_v = row.upper + diffusing * row.primitive;
  const double viscous = c.viscous * (m == d + 1 ? along : 1.0);
  for (int i = 0; i < row.end; i += lane_count) {
    const Lanes lower = load(lower_u + i);
    const Lanes upper = load(upper_u + i);
    Lanes convected;
    if constexpr (m == 0) {
      convected = load(upper_momentum + i) - load(lower_momentum + i);
    } else if constexpr (m == 4) {
      convected = (upper + load(upper_pressure + i)) * load(upper_speed + i) -
                  (lower + load(lower_pressure + i)) * load(lower_speed + i);
    } else {
      convected = upper * load(upper_speed + i) - lower * load(lower_speed + i);
      if constexpr (m == d + 1) convected += load(upper_pressure + i) - load(lower_pressure + i);
    }
    Lanes sum = load(out + i) + c.convection * convected;
    if constexpr (m > 0) {
      Lanes diffused = load(upper_v + i) + load(lower_v + i) - 2.0 * load(v + i);
      if constexpr (m == 4) {
        const Lanes below = load(lower_speed + i);
        const Lanes here = load(speed + i);
        const Lanes above = load(upper_speed + i);
        diffused += (above * above + below * below - 2.0 * here * here) * (1.0 / 6.0);
      }
      sum += viscous * diffused;
    }
    Lanes dissipated = weight[1] * lower + weight[3] * upper;
    dissipated += weight[0] * load(lowest_u + i) + weight[4] * load(highest_u + i);
    store(out + i, sum + (weight[2] * load(u + i) + dissipated));
  }
}

}  // namespace

RightHandSide::RightHandSide(const Box& box)
    : box_(box),
      row_(2 * lane_count + whole_lanes(box.extent[0])),
      plane_((box.extent[1] + 2) * primitive_count * row_),
      planes_(std::size_t(ring * plane_)) {}

double* RightHandSide::primitives(int j, int k) {
  return planes_.data() + (k + ring) % ring * plane_ + (j + 1) * primitive_count * row_ + lane_count;
}

void RightHandSide::form_primitives(const Field& u, int k) {
  const auto u_row = u.layout().row;
  const int end = box_.extent[0] + 1;
  for (int j = -1; j <= box_.extent[1]; ++j) {
    double* out = primitives(j, k);
    const double* in = u.at(0, j, k);
    for (int i = -lane_count; i < end; i += lane_count) {
      const Lanes inverse = 1.0 / load(in + i);
      const Lanes energy = load(in + 4 * u_row + i);
      Lanes twice_kinetic{};
      each<3>([&](auto m) {
        const Lanes momentum = load(in + (m + 1) * u_row + i);
        const Lanes velocity = momentum * inverse;
        twice_kinetic += momentum * velocity;
        store(out + m * row_ + i, velocity);
      });
      store(out + pressure * row_ + i, c2 * (energy - 0.5 * twice_kinetic));
      store(out + conducted * row_ + i, (0.5 * (1 - c1c5) * twice_kinetic + c1c5 * energy) * inverse);
    }
  }
}

void RightHandSide::evaluate_row(const Field& u, const Field& forcing, int j, int k, Field& r) {
  const auto& layout = u.layout();
  const auto c = coefficients(box_.points, scale_);
  const int end = box_.extent[0];
  const double* centre = u.at(0, j, k);
  const double* here = primitives(j, k);
  double* out = r.at(0, j, k);
  for (std::ptrdiff_t ahead = layout.line; ahead < 2 * layout.line; ahead += cache_line) {
    __builtin_prefetch(forcing.at(0, j, k) + ahead, 0, 2);
    __builtin_prefetch(u.at(0, j, k + 2) + ahead, 0, 2);
    __builtin_prefetch(u.at(0, j, k + 1) + ahead, 0, 2);
    __builtin_prefetch(u.at(0, j, k - 1) + ahead, 0, 2);
    __builtin_prefetch(u.at(0, j, k - 2) + ahead, 0, 2);
    __builtin_prefetch(u.at(0, j+2, k) + ahead, 0, 2);
    __builtin_prefetch(out + ahead, 0, 2);
    __builtin_prefetch(primitives(j, k-1) + ahead, 0, 2);
    __builtin_prefetch(primitives(j, k+1) + ahead, 0, 2);
    __builtin_prefetch(primitives(j+1, k) + ahead, 0, 2);
  }
  for (int m = 0; m < components; ++m) {
    const double* source = forcing.at(0, j, k, m);
    for (int i = 0; i < end; i += lane_count) store(out + m * layout.row + i, scale_ * load(source + i));
  }
  const auto add = [&](auto d, int index, const double* lower, const double* upper) {
    const Row row{centre, layout.step(d), layout.row, lower, here, upper, row_, end};
    const auto weight = stencil(c, d, index, box_.points);
    each<components>([&](auto m) { add_component<d, m>(row, c, weight, out + m * layout.row); });
  };
  add(std::integral_constant<int, 0>{}, inner_index, here - 1, here + 1);
  add(std::integral_constant<int, 1>{}, box_.begin[1] + j, primitives(j - 1, k), primitives(j + 1, k));
  add(std::integral_constant<int, 2>{}, box_.begin[2] + k, primitives(j, k - 1), primitives(j, k + 1));
  finish_row(centre, layout.row, out);
}

// Along x the stencil changes near the faces of the grid, within the row.
void RightHandSide::finish_row(const double* u, std::ptrdiff_t component, double* out) const {
  for (const auto& [i, change] : x_changes_) {
    for (int m = 0; m < components; ++m) {
      for (int s = 0; s < 5; ++s) out[m * component + i] += change[std::size_t(s)] * u[m * component + i + s - 2];
    }
  }
  for (int m = 0; m < components; ++m) {
    if (box_.is_first(0)) out[m * component] = 0;
    for (int i = box_.inner_end(0); i < whole_lanes(box_.extent[0]); ++i) out[m * component + i] = 0;
  }
}

void RightHandSide::start(const Field& u, double scale) {
  scale_ = scale;
  const auto c = coefficients(box_.points, scale);
  const auto inner = stencil(c, 0, inner_index, box_.points);
  x_changes_.clear();
  for (int i = box_.inner_begin(0); i < box_.inner_end(0); ++i) {
    auto weight = stencil(c, 0, box_.begin[0] + i, box_.points);
    if (weight == inner) continue;
    for (std::size_t s = 0; s < 5; ++s) weight[s] -= inner[s];
    x_changes_.emplace_back(i, weight);
  }
  form_primitives(u, -1);
  form_primitives(u, 0);
}

void RightHandSide::evaluate_plane(const Field& u, const Field& forcing, int k, Field& r) {
  form_primitives(u, k + 1);
  if (k < box_.inner_begin(2) || k >= box_.inner_end(2)) return;
  for (int j = box_.inner_begin(1); j < box_.inner_end(1); ++j) evaluate_row(u, forcing, j, k, r);
}

void RightHandSide::evaluate(const Field& u, const Field& forcing, double scale, Field& r) {
  start(u, scale);
  for (int k = 0; k < box_.extent[2]; ++k) evaluate_plane(u, forcing, k, r);
}

}  // namespace fabricbench::npb::navier_stokes
