#include "kernel/npb/right_hand_side.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

// Three velocities, pressure, and (1 - c1c5) K + c1c5 U5/U1, of which conduction takes second differences.
constexpr int primitive_count = 5;
constexpr int pressure = 3;
constexpr int conducted = 4;
constexpr int ring = 3;

// The index of a point with the whole stencil, were the grid large enough.
constexpr int inner_index = 3;

struct Coefficients {
  double convection;  // -t2, and the others by 1/h^2
  double viscous;
  double dissipation;  // of second differences, without the direction's weight
  double fourth;
};

Coefficients coefficients(int points) {
  const Spacing h(points);
  return {-h.t2, h.t1 * c3c4, h.t1, fourth};
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

// A row of points with its neighbours; distances in doubles.
struct Row {
  const double* u;
  std::ptrdiff_t y;          // to the next row, in U
  std::ptrdiff_t z;          // to the next plane
  std::ptrdiff_t component;  // to the next component
  const double* here;        // primitives, of this row and of the four around it
  std::array<const double*, 2> lower;
  std::array<const double*, 2> upper;
  std::ptrdiff_t primitive;
  std::array<std::array<double, 5>, directions> stencil;
  int end;
  double scale;
};

// One component of a row, all terms of R. Sums over the directions are taken before they are scaled.
template <int m>
void evaluate_component(const Row& row, const Coefficients& c, const double* forcing, double* out) {
  const auto primitive = [&row](const double* point, int which) { return point + which * row.primitive; };
  const double* u = row.u + m * row.component;
  const double* x_speed = primitive(row.here, 0);
  const double* lower_y_speed = primitive(row.lower[0], 1);
  const double* upper_y_speed = primitive(row.upper[0], 1);
  const double* lower_z_speed = primitive(row.lower[1], 2);
  const double* upper_z_speed = primitive(row.upper[1], 2);
  const double* y_speed = primitive(row.here, 1);
  const double* z_speed = primitive(row.here, 2);
  // What viscosity or conduction acts on.
  constexpr int diffusing = m == 0 ? 0 : m == 4 ? conducted : m - 1;
  const double* v = primitive(row.here, diffusing);
  const double* lower_y_v = primitive(row.lower[0], diffusing);
  const double* upper_y_v = primitive(row.upper[0], diffusing);
  const double* lower_z_v = primitive(row.lower[1], diffusing);
  const double* upper_z_v = primitive(row.upper[1], diffusing);
  const double* x_pressure = primitive(row.here, pressure);
  const double* lower_y_pressure = primitive(row.lower[0], pressure);
  const double* upper_y_pressure = primitive(row.upper[0], pressure);
  const double* lower_z_pressure = primitive(row.lower[1], pressure);
  const double* upper_z_pressure = primitive(row.upper[1], pressure);
  const auto& [x, y, z] = row.stencil;
  const double centre = x[2] + y[2] + z[2];
  const double x_viscous = c.viscous * (m == 1 ? along : 1.0);
  const double y_viscous = c.viscous * (m == 2 ? along : 1.0);
  const double z_viscous = c.viscous * (m == 3 ? along : 1.0);
  const double all_viscous = -2 * (x_viscous + y_viscous + z_viscous);
  for (int i = 0; i < row.end; i += lane_count) {
    const double* at = u + i;
    __builtin_prefetch(forcing + i + row.y, 0, 2);
    __builtin_prefetch(out + i + row.y, 0, 2);
    __builtin_prefetch(at + 2 * row.z + row.y, 0, 2);
    const Lanes lower_x = load(at - 1);
    const Lanes upper_x = load(at + 1);
    const Lanes lower_y = load(at - row.y);
    const Lanes upper_y = load(at + row.y);
    const Lanes lower_z = load(at - row.z);
    const Lanes upper_z = load(at + row.z);
    Lanes convected;
    if constexpr (m == 0) {
      const double* momentum = row.u + row.component + i;
      convected = load(momentum + 1) - load(momentum - 1);
      momentum += row.component;
      convected += load(momentum + row.y) - load(momentum - row.y);
      momentum += row.component;
      convected += load(momentum + row.z) - load(momentum - row.z);
    } else if constexpr (m == 4) {
      convected = (upper_x + load(x_pressure + i + 1)) * load(x_speed + i + 1);
      convected -= (lower_x + load(x_pressure + i - 1)) * load(x_speed + i - 1);
      convected += (upper_y + load(upper_y_pressure + i)) * load(upper_y_speed + i);
      convected -= (lower_y + load(lower_y_pressure + i)) * load(lower_y_speed + i);
      convected += (upper_z + load(upper_z_pressure + i)) * load(upper_z_speed + i);
      convected -= (lower_z + load(lower_z_pressure + i)) * load(lower_z_speed + i);
    } else {
      convected = upper_x * load(x_speed + i + 1) - lower_x * load(x_speed + i - 1);
      convected += upper_y * load(upper_y_speed + i) - lower_y * load(lower_y_speed + i);
      convected += upper_z * load(upper_z_speed + i) - lower_z * load(lower_z_speed + i);
      if constexpr (m == 1) convected += load(x_pressure + i + 1) - load(x_pressure + i - 1);
      if constexpr (m == 2) convected += load(upper_y_pressure + i) - load(lower_y_pressure + i);
      if constexpr (m == 3) convected += load(upper_z_pressure + i) - load(lower_z_pressure + i);
    }
    Lanes sum = load(forcing + i) + c.convection * convected;
    if constexpr (m == 4) {
      const auto square = [](const Lanes& value) { return value * value; };
      Lanes squares = square(load(x_speed + i)) + square(load(y_speed + i)) + square(load(z_speed + i));
      squares = square(load(x_speed + i - 1)) + square(load(x_speed + i + 1)) - 2.0 * squares;
      squares += square(load(lower_y_speed + i)) + square(load(upper_y_speed + i));
      squares += square(load(lower_z_speed + i)) + square(load(upper_z_speed + i));
      sum += c.viscous * (1.0 / 6.0) * squares;
    }
    if constexpr (m > 0) {
      sum += all_viscous * load(v + i) + x_viscous * (load(v + i - 1) + load(v + i + 1));
      sum += y_viscous * (load(lower_y_v + i) + load(upper_y_v + i));
      sum += z_viscous * (load(lower_z_v + i) + load(upper_z_v + i));
    }
    Lanes dissipated = centre * load(at) + x[1] * (lower_x + upper_x);
    dissipated += x[0] * (load(at - 2) + load(at + 2));
    dissipated += y[1] * lower_y + y[3] * upper_y;
    dissipated += y[0] * load(at - 2 * row.y) + y[4] * load(at + 2 * row.y);
    sum += z[1] * lower_z + z[3] * upper_z;
    sum += z[0] * load(at - 2 * row.z) + z[4] * load(at + 2 * row.z);
    store(out + i, row.scale * (sum + dissipated));
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
  const auto c = coefficients(box_.points);
  const double* centre = u.at(0, j, k);
  double* out = r.at(0, j, k);
  const Row row{centre,
                layout.line,
                layout.plane,
                layout.row,
                primitives(j, k),
                {primitives(j - 1, k), primitives(j, k - 1)},
                {primitives(j + 1, k), primitives(j, k + 1)},
                row_,
                {stencil(c, 0, inner_index, box_.points), stencil(c, 1, box_.begin[1] + j, box_.points),
                 stencil(c, 2, box_.begin[2] + k, box_.points)},
                box_.extent[0],
                scale_};
  each<components>([&](auto m) { evaluate_component<m>(row, c, forcing.at(0, j, k, m), out + m * layout.row); });
  finish_row(centre, layout.row, out);
}

// Along x the stencil changes near the faces of the grid, within the row.
void RightHandSide::finish_row(const double* u, std::ptrdiff_t component, double* out) const {
  for (const auto& [i, change] : x_changes_) {
    for (int m = 0; m < components; ++m) {
      double sum = 0;
      for (int s = 0; s < 5; ++s) sum += change[std::size_t(s)] * u[m * component + i + s - 2];
      out[m * component + i] += scale_ * sum;
    }
  }
  for (int m = 0; m < components; ++m) {
    if (box_.is_first(0)) out[m * component] = 0;
    for (int i = box_.inner_end(0); i < whole_lanes(box_.extent[0]); ++i) out[m * component + i] = 0;
  }
}

void RightHandSide::start(const Field& u, double scale) {
  scale_ = scale;
  const auto c = coefficients(box_.points);
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
