// Numbers that look random and that any rank can make for any point: a hash of a counter.
#pragma once

#include <cstdint>

namespace fabricbench::kernel {

/// The finishing steps of SplitMix64: a bijection whose results look random where its arguments count.
constexpr std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// From -128 to 127, of the eight bits of `from` from `bit` on.
constexpr double small_integer(std::uint64_t from, unsigned bit = 0) {
  return static_cast<double>((from >> bit) & 0xffU) - 128;
}

}  // namespace fabricbench::kernel
