#include "core/secret.hpp"

#include <gtest/gtest.h>

namespace fabricbench {
namespace {

TEST(Secret, IsReadOf32HexadecimalDigitsAndOfNothingElse) {
  EXPECT_EQ(parse_secret("0123456789abcdeffedcba9876543210"), (Secret{0x0123456789abcdefU, 0xfedcba9876543210U}));
  for (const char* wrong : {"", "0", "0123456789abcdef0123456789abcdeg", "-123456789abcdef0123456789abcdef"}) {
    EXPECT_FALSE(parse_secret(wrong)) << wrong;
  }
}

TEST(Secret, WhatIsDerivedIsTheSipHashOfTheAuthorsTestVectors) {
  // Their key is the bytes 0 to 15, their messages the bytes from 0 on: of none and of eight of them.
  constexpr Secret key{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  const std::array<std::uint64_t, 1> eight_bytes{0x0706050403020100U};
  EXPECT_EQ(derive(key, {}), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(derive(key, eight_bytes), 0x93f5f5799a932462U);
}

}  // namespace
}  // namespace fabricbench
