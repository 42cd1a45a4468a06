// What MPI can count: a block, not all blocks together, but where it is told of displacements.
#include "mpi_operation/collective.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/failure.hpp"

namespace fabricbench {
namespace {

constexpr std::size_t mebibyte = 1U << 20U;

std::string refusal(int blocks, std::size_t elements, bool is_displaced) {
  try {
    check_counts(blocks, elements, is_displaced);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

TEST(Counts, OfABlockAreWhatMpiLimitsAndNotThoseOfAllBlocks) {
  EXPECT_EQ(refusal(64, 64 * mebibyte, false), "") << "an allgather of 4 GiB";
  EXPECT_EQ(refusal(1, 2047 * mebibyte, false), "");
  EXPECT_EQ(refusal(1, 2048 * mebibyte, false),
            "a block of 2147483648 elements is more than MPI's int counts: use smaller messages");
}

TEST(Counts, WithDisplacementsAreLimitedTogether) {
  EXPECT_EQ(refusal(31, 64 * mebibyte, true), "");
  EXPECT_TRUE(
      refusal(64, 64 * mebibyte, true).starts_with("64 blocks of 67108864 elements are more than MPI's int disp"));
}

}  // namespace
}  // namespace fabricbench
