// How kernels divide a range among ranks.
#pragma once

#include <cstddef>

namespace fabricbench::kernel {

/// A part of a range, end excluded.
struct Share {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t count() const { return end - begin; }
};

/// Of so many parts, which differ by one at most.
inline Share share(std::size_t total, std::size_t parts, std::size_t index) {
  return {total * index / parts, total * (index + 1) / parts};
}

}  // namespace fabricbench::kernel
