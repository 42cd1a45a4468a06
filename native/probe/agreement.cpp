#include "probe/agreement.hpp"

#include <algorithm>
#include <new>
#include <optional>

namespace fabricbench {
namespace {

/// Who waits for a rank that has failed times out: of several failures the others are the cause.
Verdict cause_of(Verdict one, Verdict other) {
  const bool is_other = other.failure && (!one.failure || one.failure->code == FailureCode::timeout);
  return is_other ? std::move(other) : std::move(one);
}

}  // namespace

CellFailure Agreement::named(const Failure& failure) const {
  return {failure.code(), "rank " + std::to_string(team_.control().rank()) + " on " + host_ + ": " + failure.what()};
}

void Agreement::on(const std::function<void()>& action) const {
  Verdict own;
  try {
    action();
  } catch (const Failure& failure) {
    own.failure = named(failure);
  } catch (const std::bad_alloc&) {
    own.failure = named(Failure(FailureCode::error, "out of memory: use smaller messages or fewer samples"));
  }
  const Verdict all = learn_of_all(std::move(own));
  if (all.failure) throw AgreedFailure{*all.failure};
}

Verdict Agreement::learn_of_all(Verdict own) const {
  // Others may be held by the very call that failed: a collective one of MPI ends on some ranks only.
  const std::optional<CellFailure> here = own.failure;
  std::optional<CellFailure> known = here;
  const auto join = [&known](Verdict one, Verdict other) {
    Verdict both = cause_of(std::move(one), std::move(other));
    known = both.failure;
    return both;
  };
  try {
    return team_.converge<Verdict>(std::move(own), join);
  } catch (const ControlError& error) {
    if (known) throw ControlError(known->reason + "; then " + error.what());
    throw;
  } catch (LaunchEnded& ended) {
    if (here && std::string_view(ended.what()).find(here->reason) == std::string_view::npos)
      ended.set_failure_here(here->reason);
    throw;
  }
}

std::int64_t Agreement::common_start(std::int64_t now_ns) const {
  constexpr std::int64_t soon_ns = 10'000'000;
  constexpr std::int64_t per_member_ns = 500'000;
  constexpr std::int64_t per_step_ns = 10'000'000;  // down the tree of a large team
  static_assert(per_step_ns > TreePlace::largest_star * per_member_ns, "a star has the time of its members");
  const std::size_t members = team_.size();
  const std::int64_t telling_ns = std::min(per_member_ns * static_cast<std::int64_t>(members),
                                           per_step_ns * static_cast<std::int64_t>(TreePlace::depth_of(members)));
  const std::int64_t proposal = now_ns + soon_ns + telling_ns;
  return team_.broadcast(CommonStart{.global_ns = proposal}).global_ns;
}

void Agreement::compare_states(PathCache& paths, const std::vector<Link>& links,
                               const std::vector<PathCache::Key>& keys) const {
  for (std::size_t i = 0; i < links.size(); ++i) team_.tell(links[i].peer, paths.state(keys[i]));
  for (std::size_t i = 0; i < links.size(); ++i) {
    paths.agree(keys[i], team_.hear<PathCache::State>(links[i].peer));
  }
}

std::vector<Endpoint::Member> Agreement::open_paths(PathCache& paths, const std::vector<Link>& links,
                                                    const std::vector<PathCache::Key>& keys,
                                                    const PathMaker& maker) const {
  std::vector<Endpoint::Member> members;
  struct Opened {
    Endpoint::Member* member;
    PathCache::Key key;
    std::unique_ptr<Endpoint> endpoint;
  };
  std::vector<Opened> opened;
  for (const Link& link : links) members.push_back({link, nullptr, team_.world_rank(link.peer)});
  compare_states(paths, links, keys);
  on([&] {
    for (std::size_t i = 0; i < links.size(); ++i) {
      members[i].endpoint = paths.find(keys[i]);
      if (members[i].endpoint != nullptr) continue;
      opened.push_back({&members[i], keys[i], maker.open(keys[i], paths.state(keys[i]).generation)});
    }
  });
  for (const Opened& path : opened) team_.tell(path.member->link.peer, Address{path.endpoint->address()});
  std::vector<Address> addresses;
  for (const Opened& path : opened) addresses.push_back(team_.hear<Address>(path.member->link.peer));
  on([&] {
    for (std::size_t i = 0; i < opened.size(); ++i) {
      opened[i].endpoint->meet(addresses[i].text);
      opened[i].member->endpoint = opened[i].endpoint.get();
    }
    for (const Endpoint::Member& member : members) maker.check(*member.endpoint);
  });
  for (Opened& path : opened) paths.add(path.key, std::move(path.endpoint));
  return members;
}

}  // namespace fabricbench
