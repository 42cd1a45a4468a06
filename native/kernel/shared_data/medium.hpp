// What lies between the ranks that read and write data and where those are: connections to a server, or a file system.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fabricbench::shared_data {

enum class Direction { read, write };

/// The data of one client: so many blocks, one after the other, from a place of the content on.
struct Stretch {
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes() const { return block_bytes * blocks; }
};

/// The stretch of a client, the first being 0: no two clients have the same data.
inline Stretch stretch_of(int client, std::uint64_t block_bytes, std::uint64_t blocks) {
  return {block_bytes, blocks, static_cast<std::uint64_t>(client) * block_bytes * blocks};
}

/// What is timed is move(); prepare() and take_wrong_blocks() are collective. All three throw Failure.
class Medium {
 public:
  virtual ~Medium() = default;
  /// The first rank that is a client; all behind it are.
  virtual int first_client() const = 0;
  /// Do what must be done before the pass that comes.
  virtual void prepare(Direction direction) = 0;
  /// This rank's part of the pass.
  virtual void move(Direction direction) = 0;
  /// How many of the blocks that were moved since the last time have wrong bytes, as far as this rank can see.
  virtual std::int64_t take_wrong_blocks(Direction direction) = 0;
  /// In words where the data are and what of them was in memory, the same on every rank.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
};

}  // namespace fabricbench::shared_data
