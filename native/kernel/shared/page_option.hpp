// The size of a page as both programs over shared memory are told it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernel/frame/kernel.hpp"

namespace fabricbench::shared {

inline constexpr std::int64_t least_page_bytes = 256;
inline constexpr std::int64_t most_page_bytes = 1 << 20;
inline constexpr std::int64_t usual_page_bytes = 4096;

inline constexpr kernel::Option page_option{"--page", "BYTES",
                                            "what is fetched at once, a power of two from 256; default 4096"};

/// Throws UsageError.
inline std::size_t read_page(const kernel::Arguments& arguments) {
  const std::int64_t bytes = arguments.number("--page", least_page_bytes, most_page_bytes, usual_page_bytes);
  const auto found = static_cast<std::size_t>(bytes);
  if (!std::has_single_bit(found)) {
    throw kernel::UsageError{"--page needs a power of two, found " + std::to_string(found) + "; take " +
                             std::to_string(std::bit_ceil(found))};
  }
  return found;
}

}  // namespace fabricbench::shared
