#include "kernel/npb/right_hand_side.hpp"

namespace fabricbench::npb::navier_stokes {
namespace {

// Three velocities, pressure, and (1 - c1c5) K + c1c5 U5/U1, of which conduction takes second differences.
constexpr int primitive_count = 5;
constexpr int pressure = 3;
constexpr int conducted = 4;
constexpr int ring = 3;

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

// The neighbours of a row along one direction.
struct Neighbours {
  const double* u;
  std::ptrdiff_t u_step;
  const double* lower;
  const double* here;
  const double* upper;
};

// Terms of direction d for one vector of points; `weight` holds the five-point stencil.
template <int d>
[[gnu::always_inline]] inline void direction_terms(const Neighbours& at, std::ptrdiff_t u_row, std::ptrdiff_t v_row,
                                                   const Coefficients& c, const Lanes (&weight)[5],
                                                   Lanes (&r)[components]) {
  const auto u = [&](int shift, int m)
                     __attribute__((always_inline)) { return load(at.u + shift * at.u_step + m * u_row); };
  const Lanes lower_speed = load(at.lower + d * v_row);
  const Lanes upper_speed = load(at.upper + d * v_row);
  const Lanes speed = load(at.here + d * v_row);
  const Lanes lower_pressure = load(at.lower + pressure * v_row);
  const Lanes upper_pressure = load(at.upper + pressure * v_row);
  each<components>([&](auto m) __attribute__((always_inline)) {
    const Lanes lower = u(-1, m);
    const Lanes upper = u(1, m);
    Lanes convected;
    if constexpr (m == 0) {
      convected = u(1, d + 1) - u(-1, d + 1);
    } else if constexpr (m == 4) {
      convected = (upper + upper_pressure) * upper_speed - (lower + lower_pressure) * lower_speed;
    } else {
      convected = upper * upper_speed - lower * lower_speed;
      if constexpr (m == d + 1) convected += upper_pressure - lower_pressure;
    }
    Lanes sum = r[m] + c.convection * convected;
    if constexpr (m > 0) {
      constexpr int v = m == 4 ? conducted : m - 1;
      Lanes diffused = load(at.upper + v * v_row) - 2.0 * load(at.here + v * v_row) + load(at.lower + v * v_row);
      if constexpr (m == 4) {
        diffused += (upper_speed * upper_speed - 2.0 * speed * speed + lower_speed * lower_speed) * (1.0 / 6.0);
      }
      sum += c.viscous * (m == d + 1 ? along : 1.0) * diffused;
    }
    sum += weight[0] * u(-2, m) + weight[1] * lower;
    sum += weight[2] * u(0, m);
    sum += weight[3] * upper + weight[4] * u(2, m);
    r[m] = sum;
  });
}

}  // namespace

RightHandSide::RightHandSide(const Box& box)
    : box_(box),
      row_(2 * lane_count + whole_lanes(box.extent[0])),
      plane_((box.extent[1] + 2) * primitive_count * row_),
      planes_(std::size_t(ring * plane_)),
      x_stencil_(std::size_t(5 * row_)) {}

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
  const auto u_row = u.layout().row;
  const auto c = coefficients(box_.points, scale_);
  const Neighbours x{u.at(0, j, k), 1, primitives(j, k) - 1, primitives(j, k), primitives(j, k) + 1};
  const Neighbours y{x.u, u.layout().line, primitives(j - 1, k), x.here, primitives(j + 1, k)};
  const Neighbours z{x.u, u.layout().plane, primitives(j, k - 1), x.here, primitives(j, k + 1)};
  const double* source = forcing.at(0, j, k);
  double* out = r.at(0, j, k);
  const int end = box_.extent[0];

  for (int i = 0; i < end; i += lane_count) {
    Lanes sum[components];
    Lanes weight[5];
    for (int s = 0; s < 5; ++s) weight[s] = load(x_stencil_.data() + s * row_ + i);
    for (int m = 0; m < components; ++m) sum[m] = scale_ * load(source + m * u_row + i);
    direction_terms<0>({x.u + i, 1, x.lower + i, x.here + i, x.upper + i}, u_row, row_, c, weight, sum);
    for (int m = 0; m < components; ++m) store(out + m * u_row + i, sum[m]);
  }
  const auto add = [&](auto d, const Neighbours& at, int index) {
    Lanes weight[5];
    const auto weights = stencil(c, d, index, box_.points);
    for (std::size_t s = 0; s < 5; ++s) weight[s] = broadcast(weights[s]);
    for (int i = 0; i < end; i += lane_count) {
      Lanes sum[components];
      for (int m = 0; m < components; ++m) sum[m] = load(out + m * u_row + i);
      direction_terms<d>({at.u + i, at.u_step, at.lower + i, at.here + i, at.upper + i}, u_row, row_, c, weight, sum);
      for (int m = 0; m < components; ++m) store(out + m * u_row + i, sum[m]);
    }
  };
  add(std::integral_constant<int, 1>{}, y, box_.begin[1] + j);
  add(std::integral_constant<int, 2>{}, z, box_.begin[2] + k);

  for (int m = 0; m < components; ++m) {
    if (box_.is_first(0)) out[m * u_row] = 0;
    for (int i = box_.inner_end(0); i < whole_lanes(end); ++i) out[m * u_row + i] = 0;
  }
}

void RightHandSide::start(const Field& u, double scale) {
  scale_ = scale;
  const auto c = coefficients(box_.points, scale);
  for (int i = 0; i < box_.extent[0]; ++i) {
    const auto weights = stencil(c, 0, box_.begin[0] + i, box_.points);
    for (std::size_t s = 0; s < 5; ++s) x_stencil_.data()[std::ptrdiff_t(s) * row_ + i] = weights[s];
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
