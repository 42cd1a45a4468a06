// The discrete Fourier transform of as many complex lines at once as a vector has lanes: X_k = sum over j of
// x_j exp(-2 pi i j k / n) for n = 2^a 3^b 5^c. Stockham's form, which needs no reordering: passes of radix 4 and of
// the odd factors, and a last one of radix 4 or 8 without roots. For the inverse, without its factor 1/n, let load and
// store swap real and imaginary.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernel/simd/lanes.hpp"

namespace fabricbench::simd {

/// The same point of several lines.
struct ComplexLanes {
  Lanes re;
  Lanes im;
};

/// Doubles that a point of all lanes takes: the real parts, then the imaginary ones.
inline constexpr std::size_t complex_lanes_size = 2 * lanes;

inline ComplexLanes load_complex(const double* from) { return {load(from), load(from + lanes)}; }
inline void store_complex(double* to, const ComplexLanes& value) {
  store(to, value.re);
  store(to + lanes, value.im);
}

inline ComplexLanes operator+(const ComplexLanes& a, const ComplexLanes& b) { return {a.re + b.re, a.im + b.im}; }
inline ComplexLanes operator-(const ComplexLanes& a, const ComplexLanes& b) { return {a.re - b.re, a.im - b.im}; }
inline ComplexLanes operator*(double factor, const ComplexLanes& a) { return {factor * a.re, factor * a.im}; }
inline ComplexLanes times_i(const ComplexLanes& a) { return {-a.im, a.re}; }
inline ComplexLanes swapped(const ComplexLanes& a) { return {a.im, a.re}; }

/// exp(-2 pi i k / n), correctly rounded but for the last bit: the angle is reduced exactly to an eighth of a turn.
std::array<double, 2> unit_root(std::size_t k, std::size_t n);

/// Whether n has no other prime factors than 2, 3 and 5.
bool has_transform(std::size_t n);

class Fft {
 public:
  /// Of a size that has_transform().
  explicit Fft(std::size_t size);
  std::size_t size() const { return size_; }

  /// Doubles of scratch memory that a transform needs.
  std::size_t scratch_size() const { return 2 * size_ * complex_lanes_size; }

  /// `load(j)` gives point j, `store(k, value)` takes point k; all loads come before the first store.
  template <class Load, class Store>
  void operator()(const Load& load_point, const Store& store_point, double* scratch) const;

 private:
  using Root = std::array<double, 2>;

  /// All sizes begin with a pass over what is loaded and end with one that stores, which are compiled for each caller:
  /// of radix 4, or 8 at the end, where the size has such factors, else copies. What lies between is in fft.cpp.
  enum class Ends { copy, radix4, radix8 };
  struct Pass {
    std::size_t radix = 0;
    std::size_t sections = 0;
    std::vector<Root> roots;  // the powers 1 to radix - 1 of a root, for each section
  };

  /// From `from` to the other half of the scratch memory and back; where the points are afterwards.
  double* middle_passes(double* from, double* to) const;

  template <class Load, class Store>
  static void pass4(std::size_t sections, std::size_t stride, const Root* roots, const Load& load_point,
                    const Store& store_point);
  template <int radix>
  static void odd_pass(std::size_t sections, std::size_t stride, const Root* roots, const double* from, double* to);
  template <class Load, class Store>
  static void last_pass4(std::size_t stride, const Load& load_point, const Store& store_point);
  template <class Load, class Store>
  static void last_pass8(std::size_t stride, const Load& load_point, const Store& store_point);

  std::size_t size_;
  Ends begin_ = Ends::copy;
  Ends end_ = Ends::copy;
  std::vector<Pass> passes_;  // all but the last one of radix 4 or 8, which has only roots that are constants
};

namespace fft_detail {

inline ComplexLanes multiply(const ComplexLanes& a, const std::array<double, 2>& root) {
  return {a.re * root[0] - a.im * root[1], a.re * root[1] + a.im * root[0]};
}

/// The transform of four points, in place and in order.
inline void butterfly4(ComplexLanes& a, ComplexLanes& b, ComplexLanes& c, ComplexLanes& d) {
  const ComplexLanes a_plus_c = a + c;
  const ComplexLanes a_minus_c = a - c;
  const ComplexLanes b_plus_d = b + d;
  const ComplexLanes rotated = times_i(b - d);
  a = a_plus_c + b_plus_d;
  b = a_minus_c - rotated;
  c = a_plus_c - b_plus_d;
  d = a_minus_c + rotated;
}

struct FromScratch {
  const double* points;
  ComplexLanes operator()(std::size_t i) const { return load_complex(points + i * complex_lanes_size); }
};

struct ToScratch {
  double* points;
  void operator()(std::size_t i, const ComplexLanes& value) const {
    store_complex(points + i * complex_lanes_size, value);
  }
};

}  // namespace fft_detail

template <class Load, class Store>
void Fft::pass4(std::size_t sections, std::size_t stride, const Root* roots, const Load& load_point,
                const Store& store_point) {
  const std::size_t quarter = sections * stride;
  for (std::size_t section = 0; section < sections; ++section) {
    const Root one = roots[3 * section];
    const Root two = roots[3 * section + 1];
    const Root three = roots[3 * section + 2];
    for (std::size_t i = 0; i < stride; ++i) {
      const std::size_t from = section * stride + i;
      ComplexLanes a = load_point(from);
      ComplexLanes b = load_point(from + quarter);
      ComplexLanes c = load_point(from + 2 * quarter);
      ComplexLanes d = load_point(from + 3 * quarter);
      fft_detail::butterfly4(a, b, c, d);
      const std::size_t to = 4 * section * stride + i;
      store_point(to, a);
      store_point(to + stride, fft_detail::multiply(b, one));
      store_point(to + 2 * stride, fft_detail::multiply(c, two));
      store_point(to + 3 * stride, fft_detail::multiply(d, three));
    }
  }
}

template <class Load, class Store>
void Fft::last_pass4(std::size_t stride, const Load& load_point, const Store& store_point) {
  for (std::size_t i = 0; i < stride; ++i) {
    ComplexLanes a = load_point(i);
    ComplexLanes b = load_point(i + stride);
    ComplexLanes c = load_point(i + 2 * stride);
    ComplexLanes d = load_point(i + 3 * stride);
    fft_detail::butterfly4(a, b, c, d);
    store_point(i, a);
    store_point(i + stride, b);
    store_point(i + 2 * stride, c);
    store_point(i + 3 * stride, d);
  }
}

template <class Load, class Store>
void Fft::last_pass8(std::size_t stride, const Load& load_point, const Store& store_point) {
  constexpr double half_root = 0.70710678118654752440;
  for (std::size_t i = 0; i < stride; ++i) {
    // Even results are the transform of the sums of opposite points, odd ones of the rotated differences.
    const auto sum = [&](std::size_t k) { return load_point(i + k * stride) + load_point(i + (k + 4) * stride); };
    ComplexLanes a = sum(0);
    ComplexLanes b = sum(1);
    ComplexLanes c = sum(2);
    ComplexLanes d = sum(3);
    fft_detail::butterfly4(a, b, c, d);
    const auto difference = [&](std::size_t k) {
      return load_point(i + k * stride) - load_point(i + (k + 4) * stride);
    };
    ComplexLanes e = difference(0);
    const ComplexLanes f_raw = difference(1);
    const ComplexLanes g_raw = difference(2);
    const ComplexLanes h_raw = difference(3);
    ComplexLanes f{half_root * (f_raw.re + f_raw.im), half_root * (f_raw.im - f_raw.re)};
    ComplexLanes g{g_raw.im, -g_raw.re};
    ComplexLanes h{half_root * (h_raw.im - h_raw.re), -half_root * (h_raw.re + h_raw.im)};
    fft_detail::butterfly4(e, f, g, h);
    store_point(i, a);
    store_point(i + stride, e);
    store_point(i + 2 * stride, b);
    store_point(i + 3 * stride, f);
    store_point(i + 4 * stride, c);
    store_point(i + 5 * stride, g);
    store_point(i + 6 * stride, d);
    store_point(i + 7 * stride, h);
  }
}

template <class Load, class Store>
void Fft::operator()(const Load& load_point, const Store& store_point, double* scratch) const {
  double* const other = scratch + size_ * complex_lanes_size;
  if (begin_ == Ends::radix4) {
    pass4(size_ / 4, 1, passes_.front().roots.data(), load_point, fft_detail::ToScratch{scratch});
  } else {
    for (std::size_t i = 0; i < size_; ++i) store_complex(scratch + i * complex_lanes_size, load_point(i));
  }
  const fft_detail::FromScratch from{middle_passes(scratch, other)};
  if (end_ == Ends::radix4) {
    last_pass4(size_ / 4, from, store_point);
  } else if (end_ == Ends::radix8) {
    last_pass8(size_ / 8, from, store_point);
  } else {
    for (std::size_t i = 0; i < size_; ++i) store_point(i, from(i));
  }
}

}  // namespace fabricbench::simd
