#include "kernel/hpcg/rows.hpp"

#include "kernel/hpcg/problem.hpp"

namespace fabricbench::hpcg {

Rows::Rows(const Geometry& geometry)
    : box_(geometry.box()),
      values_(static_cast<std::size_t>(box_.own_points()) * stencil_points),
      begins_(static_cast<std::size_t>(box_.own_points()) + 1),
      diagonals_(static_cast<std::size_t>(box_.own_points())),
      columns_(static_cast<std::size_t>(box_.own_points()) * stencil_points),
      places_(static_cast<std::size_t>(box_.own_points())),
      product_(box_.size()) {
  std::size_t row = 0;
  std::size_t entry = 0;
  for_each_point(box_, [&](int i, int j, int k) {
    begins_[row] = static_cast<std::int64_t>(entry);
    places_[row] = static_cast<std::int32_t>(box_.at(i, j, k));
    for_each_neighbour([&](int dx, int dy, int dz) {
      if (!geometry.has(i + dx, j + dy, k + dz)) return;
      const bool is_diagonal = dx == 0 && dy == 0 && dz == 0;
      if (is_diagonal) diagonals_[row] = static_cast<std::int64_t>(entry);
      columns_[entry] = static_cast<std::int32_t>(box_.at(i + dx, j + dy, k + dz));
      values_[entry++] = is_diagonal ? diagonal : off_diagonal;
    });
    ++row;
  });
  begins_[row] = static_cast<std::int64_t>(entry);
}

void Rows::multiply(const double* x, double* y) const {
  for (std::size_t row = 0; row < places_.size(); ++row) {
    double sum = 0;
    for (auto entry = begins_[row]; entry < begins_[row + 1]; ++entry) {
      const auto at = static_cast<std::size_t>(entry);
      sum += values_[at] * x[columns_[at]];
    }
    y[places_[row]] = sum;
  }
}

void Rows::smooth(const double* r, double* x) const {
  const auto relax = [&](std::size_t row) {
    const std::int32_t place = places_[row];
    const double own = values_[static_cast<std::size_t>(diagonals_[row])];
    double sum = r[place];
    for (auto entry = begins_[row]; entry < begins_[row + 1]; ++entry) {
      const auto at = static_cast<std::size_t>(entry);
      sum -= values_[at] * x[columns_[at]];
    }
    sum += x[place] * own;
    x[place] = sum / own;
  };
  for (std::size_t row = 0; row < places_.size(); ++row) relax(row);
  for (std::size_t row = places_.size(); row > 0; --row) relax(row - 1);
}

void Rows::restrict_residual(const double* r, const double* x, const Box& coarse, double* out) {
  multiply(x, product_.data());
  for_each_point(coarse, [&](int i, int j, int k) {
    const std::ptrdiff_t fine = box_.at(2 * i, 2 * j, 2 * k);
    out[coarse.at(i, j, k)] = r[fine] - product_.data()[fine];
  });
}

void Rows::set_diagonal(const std::function<double(int, int, int)>& of) {
  std::size_t row = 0;
  for_each_point(box_,
                 [&](int i, int j, int k) { values_[static_cast<std::size_t>(diagonals_[row++])] = of(i, j, k); });
}

double Rows::dot(const double* a, const double* b) const {
  double sum = 0;
  for (std::size_t row = 0; row < places_.size(); ++row) sum += a[places_[row]] * b[places_[row]];
  return sum;
}

}  // namespace fabricbench::hpcg
