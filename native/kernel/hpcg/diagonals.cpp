#include "kernel/hpcg/diagonals.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernel/hpcg/problem.hpp"

namespace fabricbench::hpcg {
namespace {

constexpr int width = 8;
constexpr int middle = stencil_points / 2;  // the diagonal's place; what is before it belongs to rows before
constexpr int before = middle - 1;          // the neighbour before on the same line
constexpr int behind = middle + 1;

/// Eight numbers of neighbouring rows: the compiler's vector type, of as many registers as the processor needs; at any
/// address.
using AlignedEight = double __attribute__((vector_size(width * sizeof(double))));
using Eight [[gnu::aligned(alignof(double))]] = AlignedEight;

[[gnu::always_inline]] inline const Eight& eight(const double* from) { return *reinterpret_cast<const Eight*>(from); }
[[gnu::always_inline]] inline Eight& eight(double* to) { return *reinterpret_cast<Eight*>(to); }

/// The nine lines of x around one, by their place among them.
struct Lines {
  Lines(const Box& box, const double* x, int j, int k) {
    for (int dz = -1; dz <= 1; ++dz) {
      for (int dy = -1; dy <= 1; ++dy)
        at[static_cast<std::size_t>((dz + 1) * 3 + dy + 1)] = x + box.at(0, j + dy, k + dz);
    }
  }
  std::array<const double*, 9> at{};
};

/// Take off `sum` the products of directions from `first` to before `end`, but for `without`, with x around point i.
template <int first, int end, int without>
[[gnu::always_inline]] inline void subtract(Eight& sum, const double* values, const Lines& x, int i) {
#pragma GCC unroll 27
  for (int place = first; place < end; ++place) {
    if (place == without) continue;
    sum -= eight(values + place * width) * eight(x.at[static_cast<std::size_t>(place / 3)] + i + place % 3 - 1);
  }
}

}  // namespace

Diagonals::Diagonals(const Geometry& geometry)
    : box_(geometry.box()),
      groups_((static_cast<std::size_t>(box_.points[0]) + width - 1) / width),
      values_(groups_ * static_cast<std::size_t>(box_.points[1]) * static_cast<std::size_t>(box_.points[2]) *
              stencil_points * width) {
  for (int k = 0; k < box_.points[2]; ++k) {
    for (int j = 0; j < box_.points[1]; ++j) {
      for (int i = 0; i < static_cast<int>(groups_) * width; ++i) {
        double* row = group(i, j, k) + i % width;
        if (i >= box_.points[0]) {
          row[middle * width] = 1;
          continue;
        }
        int place = 0;
        for_each_neighbour([&](int dx, int dy, int dz) {
          const bool is_entry = geometry.has(i + dx, j + dy, k + dz);
          row[place * width] = place == middle ? diagonal : is_entry ? off_diagonal : 0.0;
          ++place;
        });
      }
    }
  }
}

double* Diagonals::group(int i, int j, int k) {
  return const_cast<double*>(line(j, k)) + i / width * width * stencil_points;
}

const double* Diagonals::line(int j, int k) const {
  const auto number =
      static_cast<std::size_t>(k) * static_cast<std::size_t>(box_.points[1]) + static_cast<std::size_t>(j);
  return values_.data() + number * groups_ * width * stencil_points;
}

void Diagonals::multiply(const double* x, double* y) const {
  for (int k = 0; k < box_.points[2]; ++k) {
    for (int j = 0; j < box_.points[1]; ++j) {
      const Lines around(box_, x, j, k);
      const double* values = line(j, k);
      double* out = y + box_.at(0, j, k);
      for (int i = 0; i < box_.points[0]; i += width, values += stencil_points * width) {
        Eight sum{};
        subtract<0, stencil_points, stencil_points>(sum, values, around, i);
        const int own = box_.points[0] - i;
        if (own >= width) {
          eight(out + i) = -sum;
        } else {
          for (int lane = 0; lane < own; ++lane) out[i + lane] = -sum[lane];
        }
      }
    }
  }
}

template <bool is_from_zero>
void Diagonals::sweep_forward(const double* r, double* x) const {
  for (int k = 0; k < box_.points[2]; ++k) {
    for (int j = 0; j < box_.points[1]; ++j) {
      const Lines around(box_, x, j, k);
      const double* values = line(j, k);
      double* out = x + box_.at(0, j, k);
      const double* right = r + box_.at(0, j, k);
      double last = out[-1];
      for (int i = 0; i < box_.points[0]; i += width, values += stencil_points * width) {
        Eight sum = eight(right + i);
        subtract<0, before, -1>(sum, values, around, i);
        if constexpr (!is_from_zero) subtract<behind, stencil_points, -1>(sum, values, around, i);
        const Eight own = eight(values + middle * width);
        sum /= own;
        const Eight share = eight(values + before * width) / own;
        const int end = std::min(width, box_.points[0] - i);
        for (int lane = 0; lane < end; ++lane) {
          last = sum[lane] - share[lane] * last;
          out[i + lane] = last;
        }
      }
    }
  }
}

void Diagonals::sweep_backward(const double* r, double* x) const {
  const int groups = static_cast<int>(groups_);
  for (int k = box_.points[2] - 1; k >= 0; --k) {
    for (int j = box_.points[1] - 1; j >= 0; --j) {
      const Lines around(box_, x, j, k);
      double* out = x + box_.at(0, j, k);
      const double* right = r + box_.at(0, j, k);
      double last = out[box_.points[0]];
      for (int number = groups - 1; number >= 0; --number) {
        const int i = number * width;
        const double* values = line(j, k) + i * stencil_points;
        Eight sum = eight(right + i);
        subtract<0, middle, -1>(sum, values, around, i);
        subtract<behind + 1, stencil_points, -1>(sum, values, around, i);
        const Eight own = eight(values + middle * width);
        sum /= own;
        const Eight share = eight(values + behind * width) / own;
        for (int lane = std::min(width, box_.points[0] - i) - 1; lane >= 0; --lane) {
          last = sum[lane] - share[lane] * last;
          out[i + lane] = last;
        }
      }
    }
  }
}

void Diagonals::smooth(const double* r, double* x) const {
  sweep_forward<false>(r, x);
  sweep_backward(r, x);
}

void Diagonals::smooth_zero(const double* r, double* x) const {
  sweep_forward<true>(r, x);
  sweep_backward(r, x);
}

void Diagonals::restrict_residual(const double* r, const double* x, const Box& coarse, double* out) const {
  for (int k = 0; k < coarse.points[2]; ++k) {
    for (int j = 0; j < coarse.points[1]; ++j) {
      const Lines around(box_, x, 2 * j, 2 * k);
      const double* values = line(2 * j, 2 * k);
      const double* right = r + box_.at(0, 2 * j, 2 * k);
      double* to = out + coarse.at(0, j, k);
      for (int i = 0; i < box_.points[0]; i += width, values += stencil_points * width) {
        Eight sum = eight(right + i);
        subtract<0, stencil_points, -1>(sum, values, around, i);
        const int end = std::min(width, box_.points[0] - i);
        for (int lane = 0; lane < end; lane += 2) to[(i + lane) / 2] = sum[lane];
      }
    }
  }
}

void Diagonals::set_diagonal(const std::function<double(int, int, int)>& of) {
  for_each_point(box_, [&](int i, int j, int k) { group(i, j, k)[middle * width + i % width] = of(i, j, k); });
}

double Diagonals::dot(const double* a, const double* b) const {
  Eight sum{};
  double rest = 0;
  const int whole = box_.points[0] / width * width;
  for (int k = 0; k < box_.points[2]; ++k) {
    for (int j = 0; j < box_.points[1]; ++j) {
      const double* const first = a + box_.at(0, j, k);
      const double* const second = b + box_.at(0, j, k);
      for (int i = 0; i < whole; i += width) sum += eight(first + i) * eight(second + i);
      for (int i = whole; i < box_.points[0]; ++i) rest += first[i] * second[i];
    }
  }
  for (int lane = 0; lane < width; ++lane) rest += sum[lane];
  return rest;
}

}  // namespace fabricbench::hpcg
