#include "probe/path_cache.hpp"

#include <gtest/gtest.h>

namespace fabricbench {
namespace {

class NoEndpoint final : public Endpoint {
 public:
  std::string address() const override { return {}; }
  void meet(std::string_view) override {}
  void check_size(std::size_t, std::size_t) const override {}
  std::unique_ptr<Prepared> prepare_verification(Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare(Pattern, bool, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member>, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group(std::span<const Member>, bool, Task&) override { return nullptr; }
};

const PathCache::Key first{Layer::tcp, 1, 0, Receive::blocking};
const PathCache::Key second{Layer::tcp, 2, 0, Receive::blocking};

void open_both(PathCache& cache) {
  cache.add(first, std::make_unique<NoEndpoint>());
  cache.add(second, std::make_unique<NoEndpoint>());
}

TEST(PathLease, PathsThatAreGivenBackStayOpen) {
  PathCache cache;
  open_both(cache);
  {
    PathLease lease(cache, {first});
    lease.give_back();
  }
  EXPECT_NE(cache.find(first), nullptr);
  EXPECT_EQ(cache.state(first).generation, 0U);
}

TEST(PathLease, PathsOfACellThatThrowsAreClosedAndNoOthers) {
  PathCache cache;
  open_both(cache);
  try {
    const PathLease lease(cache, {first});
    throw Failure(FailureCode::timeout, "nothing came");
  } catch (const Failure&) {
  }
  EXPECT_EQ(cache.find(first), nullptr);
  EXPECT_EQ(cache.state(first).generation, 1U);
  EXPECT_NE(cache.find(second), nullptr);
}

TEST(PathLease, APathThatIsUsedUpIsClosedThoughItIsGivenBack) {
  PathCache cache;
  open_both(cache);
  cache.find(second)->is_used_up = true;
  {
    PathLease lease(cache, {first, second});
    lease.give_back();
  }
  EXPECT_NE(cache.find(first), nullptr);
  EXPECT_EQ(cache.find(second), nullptr);
}

TEST(PathCache, PathsThroughTwoDoorsAreTwo) {
  PathCache cache;
  PathCache::Key other = first;
  other.door = "another";
  cache.add(first, std::make_unique<NoEndpoint>());
  EXPECT_EQ(cache.find(other), nullptr);
}

TEST(PathCache, BothEndsComeToOneGenerationWhicheverClosed) {
  for (const bool is_open_here : {false, true}) {
    for (const bool is_open_there : {false, true}) {
      for (const int ahead : {0, 2}) {
        PathCache here;
        PathCache there;
        for (int i = 0; i < ahead; ++i) here.close(first);
        if (is_open_here) here.add(first, std::make_unique<NoEndpoint>());
        if (is_open_there) there.add(first, std::make_unique<NoEndpoint>());
        const PathCache::State one = here.state(first);
        const PathCache::State other = there.state(first);
        here.agree(first, other);
        there.agree(first, one);
        EXPECT_EQ(here.state(first), there.state(first));
        EXPECT_EQ(here.find(first) != nullptr, one == other && is_open_here);
      }
    }
  }
}

}  // namespace
}  // namespace fabricbench
