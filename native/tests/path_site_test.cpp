#include "probe/path_site.hpp"

#include <gtest/gtest.h>

#include <set>

namespace fabricbench {
namespace {

Plan plan_with(Secret secret) {
  Plan plan;
  plan.secret = secret;
  return plan;
}

const Plan some_plan = plan_with({1, 2});
const PathCache::Key to_second{.layer = Layer::tcp, .peer_rank = 1};
const PathCache::Key to_first{.layer = Layer::tcp, .peer_rank = 0};

TEST(Site, BothEndsOfAPathKnowItByTheSameTokenAndSecret) {
  const Site one = site_of(some_plan, 0, to_second, 3);
  const Site other = site_of(some_plan, 1, to_first, 3);
  EXPECT_EQ(one.token, other.token);
  EXPECT_EQ(one.secret, other.secret);
  EXPECT_TRUE(one.is_first);
  EXPECT_FALSE(other.is_first);
}

TEST(Site, AnotherPathAnotherGenerationOrAnotherLaunchHasAnotherTokenAndSecret) {
  PathCache::Key other_flow = to_second;
  other_flow.flow = 1;
  PathCache::Key other_layer = to_second;
  other_layer.layer = Layer::udp;
  Plan other_token = some_plan;
  other_token.token = 1;
  const std::array sites{site_of(some_plan, 0, to_second, 0),         site_of(some_plan, 0, to_second, 1),
                         site_of(some_plan, 0, other_flow, 0),        site_of(some_plan, 0, other_layer, 0),
                         site_of(some_plan, 2, to_second, 0),         site_of(other_token, 0, to_second, 0),
                         site_of(plan_with({1, 3}), 0, to_second, 0), site_of(plan_with({2, 2}), 0, to_second, 0)};
  std::set<std::uint32_t> tokens;
  std::set<Secret> secrets;
  for (const Site& site : sites) {
    tokens.insert(site.token);
    secrets.insert(site.secret);
  }
  EXPECT_EQ(tokens.size(), sites.size());
  EXPECT_EQ(secrets.size(), sites.size());
}

}  // namespace
}  // namespace fabricbench
