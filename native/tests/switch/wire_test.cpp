#include <gtest/gtest.h>

#include "switch/timing.hpp"

namespace fabricbench::emulated_switch {
namespace {

TEST(Wire, AFullEthernetFrameTakes1538Bytes) { EXPECT_EQ(Wire{}.wire_bytes(1514), 1538); }

TEST(Wire, AShortFrameTakesTheMinimum) {
  EXPECT_EQ(Wire{}.wire_bytes(42), 84);
  EXPECT_EQ(Wire{}.wire_bytes(60), 84);
  EXPECT_EQ(Wire{}.wire_bytes(61), 85);
}

TEST(Wire, CellsAreRoundedUp) {
  const Wire atm{.overhead_bytes = 2, .cell = CellTax{48, 53}};
  EXPECT_EQ(atm.wire_bytes(46), 53);
  EXPECT_EQ(atm.wire_bytes(47), 106);
  EXPECT_EQ(atm.header_bytes(), 53);
}

TEST(Wire, ANegativeOverheadMakesNoFrameFree) {
  const Wire bare{.overhead_bytes = -14, .minimum_bytes = 1, .cell = CellTax{48, 53}};
  EXPECT_EQ(bare.wire_bytes(14), 53);
}

}  // namespace
}  // namespace fabricbench::emulated_switch
