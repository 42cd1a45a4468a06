// The data that are shared: a sequence without end, of which every byte is known by its place, so that whoever reads
// some can tell whether they are right. It repeats itself after a prime number of words: two pages, or two blocks, that
// could be taken for each other are not alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernel/frame/scramble.hpp"

namespace fabricbench::shared_data {

class Content {
 public:
  /// What from() gives at most: as much as stays in a processor's cache while it is sent and compared.
  static constexpr std::size_t most_piece = std::size_t{256} << 10U;

  Content() : bytes_(period + most_piece) {
    for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = kernel::scramble(at % period);
      std::memcpy(&bytes_[at], &word, sizeof word);
    }
  }

  /// The bytes from this place on, so many of them or as many as lie in one piece.
  std::span<const std::byte> from(std::uint64_t place, std::uint64_t bytes) const {
    return {&bytes_[place % period], std::min<std::uint64_t>(bytes, most_piece)};
  }

  void copy(std::uint64_t place, std::span<std::byte> to) const {
    for (std::size_t done = 0; done < to.size();) {
      const auto piece = from(place + done, to.size() - done);
      std::memcpy(&to[done], piece.data(), piece.size());
      done += piece.size();
    }
  }

  /// Whether these are the bytes of that place.
  bool is_at(std::uint64_t place, std::span<const std::byte> found) const {
    for (std::size_t done = 0; done < found.size();) {
      const auto piece = from(place + done, found.size() - done);
      if (std::memcmp(&found[done], piece.data(), piece.size()) != 0) return false;
      done += piece.size();
    }
    return true;
  }

 private:
  static constexpr std::size_t period = sizeof(std::uint64_t) * 131'071;

  std::vector<std::byte> bytes_;
};

}  // namespace fabricbench::shared_data
