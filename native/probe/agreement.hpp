// How the ranks of a cell come to one mind over the control plane. Every step of a cell that may fail on one rank is an
// agreement: all ranks learn of a failure on any, and all throw the same. Paths are opened so too, end by end. What is
// measured is none of its business: each rank does its part in between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/channel.hpp"
#include "core/report.hpp"
#include "probe/doors.hpp"
#include "probe/path_cache.hpp"

namespace fabricbench {

/// Thrown on every rank of a cell once all know of the failure.
struct AgreedFailure {
  CellFailure failure;
};

/// What one end of a path tells the other. An address is what the layer's other end understands.
using Address = TextMessage<MessageType::address>;
/// Global time at which all ranks of a cell begin.
struct CommonStart {
  static constexpr MessageType message_type = MessageType::common_start;
  std::int64_t global_ns = 0;
};

/// How the ends of a cell's paths are made on this rank. Both may throw a Failure.
struct PathMaker {
  /// Open this rank's end of a path of this generation.
  std::function<std::unique_ptr<Endpoint>(const PathCache::Key& key, std::uint32_t generation)> open;
  /// Refuse a path that does not carry the cell's messages.
  std::function<void(const Endpoint& end)> check;
};

/// Among the members of a team; all of it is collective over them.
class Agreement {
 public:
  /// `host`: how failures name this rank's machine.
  Agreement(const CellTeam& team, std::string host) : team_(team), host_(std::move(host)) {}

  const CellTeam& team() const { return team_; }

  /// Do something that may fail here, and learn whether it failed anywhere: then every rank throws the same
  /// AgreedFailure, which names the rank that it happened to. Of several failures, one that is not a timeout.
  void on(const std::function<void()>& action) const;

  /// The first member's proposal of a time on all members: soon enough to cost little, and late enough for the last
  /// member to hear of it and to come out of its sleep. `now_ns`: the global time.
  std::int64_t common_start(std::int64_t now_ns) const;

  /// The paths of these links, each known by the key of its place: those that both ends still have, and the others
  /// opened anew. Where any end cannot be opened or is refused, none of the new ones is kept.
  std::vector<Endpoint::Member> open_paths(PathCache& paths, const std::vector<Link>& links,
                                           const std::vector<PathCache::Key>& keys, const PathMaker& maker) const;

 private:
  CellFailure named(const Failure& failure) const;
  /// Throws ControlError where another does not say how it went; it tells first of a failure here or below in the tree
  /// of ranks. A LaunchEnded has the failure here.
  Verdict learn_of_all(Verdict own) const;
  /// Keep what both ends have open, and go to a new generation of what they have not.
  void compare_states(PathCache& paths, const std::vector<Link>& links, const std::vector<PathCache::Key>& keys) const;

  const CellTeam& team_;
  std::string host_;
};

}  // namespace fabricbench
