#include "core/tree.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace fabricbench {
namespace {

TEST(Tree, UpToNineAreAStar) {
  for (std::size_t size = 1; size <= TreePlace::largest_star; ++size) {
    const TreePlace root(size, 0);
    EXPECT_FALSE(root.parent());
    EXPECT_EQ(root.branches().size(), size - 1);
    for (std::size_t member = 1; member < size; ++member) {
      const TreePlace place(size, member);
      EXPECT_EQ(place.parent(), 0U);
      EXPECT_TRUE(place.branches().empty());
      EXPECT_EQ(root.branches()[member - 1].root, member);
    }
  }
}

TEST(Tree, EachMemberIsBelowOneAndAllBelowItFollowIt) {
  for (std::size_t size = 1; size <= 700; ++size) {
    std::vector<std::size_t> above(size, size);
    std::size_t deepest = 0;
    std::vector<std::size_t> depth(size, 0);
    for (std::size_t member = 0; member < size; ++member) {
      const TreePlace place(size, member);
      EXPECT_EQ(place.parent().value_or(size), above[member]);
      if (member > 0) depth[member] = depth[above[member]] + 1;
      deepest = std::max(deepest, depth[member]);
      ASSERT_LE(place.branches().size(), TreePlace::width);
      std::size_t next = member + 1;
      for (const Branch& branch : place.branches()) {
        ASSERT_EQ(branch.root, next);
        above[branch.root] = member;
        next = branch.end;
      }
      ASSERT_LE(next, size);
    }
    EXPECT_EQ(deepest, TreePlace::depth_of(size)) << size;
  }
}

TEST(Tree, AThousandAreFourStepsAway) {
  EXPECT_EQ(TreePlace::depth_of(1), 0U);
  EXPECT_EQ(TreePlace::depth_of(9), 1U);
  EXPECT_EQ(TreePlace::depth_of(10), 2U);
  EXPECT_EQ(TreePlace::depth_of(1024), 4U);
  EXPECT_EQ(TreePlace::depth_of(65'536), 6U);
}

}  // namespace
}  // namespace fabricbench
