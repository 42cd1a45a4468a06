#include "probe/path_cache.hpp"

#include <algorithm>

namespace fabricbench {

PathCache::State PathCache::state(const Key& key) const {
  const auto found = generations_.find(key);
  return {.is_open = open_.contains(key), .generation = found == generations_.end() ? 0 : found->second};
}

void PathCache::agree(const Key& key, State other) {
  const State own = state(key);
  if (own.is_open && own == other) return;
  if (own.is_open) close(key);
  std::uint32_t& generation = generations_[key];
  generation = std::max(generation, other.generation + (other.is_open ? 1 : 0));
}

Endpoint* PathCache::find(const Key& key) const {
  const auto found = open_.find(key);
  return found == open_.end() ? nullptr : found->second.get();
}

void PathCache::close(const Key& key) {
  open_.erase(key);
  ++generations_[key];
}

void PathLease::give_back() {
  std::erase_if(keys_, [&](const PathCache::Key& key) {
    const Endpoint* endpoint = cache_.find(key);
    return endpoint != nullptr && !endpoint->is_used_up;
  });
}

}  // namespace fabricbench
