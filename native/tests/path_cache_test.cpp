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
  std::unique_ptr<Prepared> prepare(Pattern, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group_verification(std::span<const Member>, Task&) override { return nullptr; }
  std::unique_ptr<Prepared> prepare_group(std::span<const Member>, Task&) override { return nullptr; }
};

const PathCache::Key one_key{Layer::tcp, 1, 0, Receive::blocking};
const PathCache::Key other_key{Layer::tcp, 2, 0, Receive::blocking};

void open_both(PathCache& cache) {
  cache.add(one_key, std::make_unique<NoEndpoint>());
  cache.add(other_key, std::make_unique<NoEndpoint>());
}

TEST(PathLease, PathsThatAreGivenBackStayOpen) {
  PathCache cache;
  open_both(cache);
  {
    PathLease lease(cache, {one_key});
    lease.give_back();
  }
  EXPECT_NE(cache.find(one_key), nullptr);
  EXPECT_EQ(cache.state(one_key).generation, 0U);
}

TEST(PathLease, PathsOfACellThatThrowsAreClosedAndNoOthers) {
  PathCache cache;
  open_both(cache);
  try {
    const PathLease lease(cache, {one_key});
    throw Failure(FailureCode::timeout, "nothing came");
  } catch (const Failure&) {
  }
  EXPECT_EQ(cache.find(one_key), nullptr);
  EXPECT_EQ(cache.state(one_key).generation, 1U);
  EXPECT_NE(cache.find(other_key), nullptr);
}

TEST(PathLease, APathThatIsUsedUpIsClosedThoughItIsGivenBack) {
  PathCache cache;
  open_both(cache);
  cache.find(other_key)->is_used_up = true;
  {
    PathLease lease(cache, {one_key, other_key});
    lease.give_back();
  }
  EXPECT_NE(cache.find(one_key), nullptr);
  EXPECT_EQ(cache.find(other_key), nullptr);
}

TEST(PathCache, PathsThroughTwoDoorsAreTwo) {
  PathCache cache;
  PathCache::Key other = one_key;
  other.door = "another";
  cache.add(one_key, std::make_unique<NoEndpoint>());
  EXPECT_EQ(cache.find(other), nullptr);
}

TEST(PathCache, BothEndsComeToOneGenerationWhicheverClosed) {
  for (const bool is_open_here : {false, true}) {
    for (const bool is_open_there : {false, true}) {
      for (const int ahead : {0, 2}) {
        PathCache here;
        PathCache there;
        for (int i = 0; i < ahead; ++i) here.close(one_key);
        if (is_open_here) here.add(one_key, std::make_unique<NoEndpoint>());
        if (is_open_there) there.add(one_key, std::make_unique<NoEndpoint>());
        const PathCache::State one = here.state(one_key);
        const PathCache::State other = there.state(one_key);
        here.agree(one_key, other);
        there.agree(one_key, one);
        EXPECT_EQ(here.state(one_key), there.state(one_key));
        EXPECT_EQ(here.find(one_key) != nullptr, one == other && is_open_here);
      }
    }
  }
}

}  // namespace
}  // namespace fabricbench
