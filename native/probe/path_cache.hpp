// The ends of paths that stay open from cell to cell, and who may use them: a cell borrows them and gives them back
// when it ends well. After a failure nobody knows what is still under way on a path, so it is closed, and what is
// opened in its place is told apart from it by its generation, which is part of the token and tag of its messages.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/vocabulary.hpp"
#include "core/message.hpp"
#include "probe/doors.hpp"

namespace fabricbench {

class PathCache {
 public:
  struct Key {
    Layer layer = Layer::tcp;
    int peer_rank = 0;
    std::size_t flow = 0;
    Receive receive = Receive::blocking;
    std::string_view door{};
    std::string parameters{};  // of the layer, as the cell gives them

    friend auto operator<=>(const Key&, const Key&) = default;
  };

  /// What one end tells the other before they use a path: it is used again where both have it, and its messages are
  /// numbered on from the end that is further.
  struct State {
    static constexpr MessageType message_type = MessageType::path_state;
    bool is_open = false;
    std::uint32_t generation = 0;
    std::uint32_t sequence = 0;

    friend bool operator==(const State&, const State&) = default;
  };

  State state(const Key& key) const {
    const auto found = generations_.find(key);
    const Endpoint* end = find(key);
    return {.is_open = end != nullptr,
            .generation = found == generations_.end() ? 0 : found->second,
            .sequence = end != nullptr ? end->sequence : 0};
  }
  /// Keep the path open if both ends have the same one; else close it and go to a generation that is new to both.
  void agree(const Key& key, State other) {
    const State own = state(key);
    if (own.is_open && other.is_open && own.generation == other.generation) {
      find(key)->sequence = std::max(own.sequence, other.sequence);
      return;
    }
    if (own.is_open) close(key);
    std::uint32_t& generation = generations_[key];
    generation = std::max(generation, other.generation + (other.is_open ? 1 : 0));
  }
  /// Null where it is not open.
  Endpoint* find(const Key& key) const {
    const auto found = open_.find(key);
    return found == open_.end() ? nullptr : found->second.get();
  }
  void add(const Key& key, std::unique_ptr<Endpoint> endpoint) { open_[key] = std::move(endpoint); }
  /// Close it; whatever is opened there next is of another generation.
  void close(const Key& key) {
    open_.erase(key);
    ++generations_[key];
  }

 private:
  std::map<Key, std::unique_ptr<Endpoint>> open_;
  std::map<Key, std::uint32_t> generations_;
};

/// The paths of one cell. They are closed with it unless they are given back before.
class PathLease {
 public:
  PathLease(PathCache& cache, std::vector<PathCache::Key> keys) : cache_(cache), keys_(std::move(keys)) {}
  ~PathLease() {
    for (const PathCache::Key& key : keys_) cache_.close(key);
  }
  PathLease(const PathLease&) = delete;
  PathLease& operator=(const PathLease&) = delete;

  /// What they carried is complete: the next cell may use them, but for those that are used up or have leftovers.
  void give_back() {
    std::erase_if(keys_, [&](const PathCache::Key& key) {
      const Endpoint* endpoint = cache_.find(key);
      return endpoint != nullptr && !endpoint->is_used_up && !endpoint->has_leftovers();
    });
  }

 private:
  PathCache& cache_;
  std::vector<PathCache::Key> keys_;
};

}  // namespace fabricbench
