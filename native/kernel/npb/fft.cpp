#include "kernel/npb/fft.hpp"

#include <cmath>
#include <numbers>

namespace fabricbench::npb {

std::array<double, 2> unit_root(std::size_t k, std::size_t n) {
  k %= n;
  if (2 * k > n) {
    const auto [re, im] = unit_root(n - k, n);
    return {re, -im};
  }
  if (4 * k > n) {
    const auto [re, im] = unit_root(n - 2 * k, 2 * n);  // n/2 - k of n
    return {-re, im};
  }
  if (8 * k > n) {
    const auto [re, im] = unit_root(n - 4 * k, 4 * n);  // n/4 - k of n
    return {-im, -re};
  }
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

Fft::Fft(std::size_t size) : size_(size) {
  for (std::size_t length = size; length > 8; length /= 4) {
    auto& pass = passes_.emplace_back();
    for (std::size_t k = 0; k < length / 4; ++k) {
      pass.push_back({unit_root(k, length), unit_root(2 * k, length), unit_root(3 * k, length)});
    }
  }
}

}  // namespace fabricbench::npb
