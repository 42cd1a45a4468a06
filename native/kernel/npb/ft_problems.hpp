// The problems of FT: sizes, and the checksums that the specification knows.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <span>

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb::fourier {

/// Points per dimension, x first, and the checksum after each iteration.
struct Problem {
  std::array<std::size_t, 3> size;
  std::span<const std::complex<double>> checksums;
};

extern const std::array<Problem, 6> problems;

}  // namespace fabricbench::npb::fourier
