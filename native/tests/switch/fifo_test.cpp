#include <gtest/gtest.h>

#include "switch/forwarding_loop.hpp"

namespace fabricbench::emulated_switch {
namespace {

TEST(Fifo, KeepsTheOrderWhileItGrowsAroundItsEnd) {
  Fifo<int> fifo;
  int next_in = 0;
  int next_out = 0;
  for (; next_in < 700; ++next_in) fifo.push(next_in);
  for (; next_out < 650; ++next_out, fifo.pop()) ASSERT_EQ(fifo.front(), next_out);
  for (; next_in < 5'000; ++next_in) fifo.push(next_in);
  for (; next_out < 5'000; ++next_out, fifo.pop()) ASSERT_EQ(fifo.front(), next_out);
  EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace fabricbench::emulated_switch
