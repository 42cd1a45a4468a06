// The four kernels of STREAM over arrays of doubles, each with plain stores or with stores past the caches.
#pragma once

#include <cstddef>

#include "core/pattern_facts.hpp"

namespace fabricbench {

using MemoryKernel = words::Kernel;
using MemoryStores = words::Stores;

/// The three arrays of a sweep, or a part of them.
struct SweptArrays {
  double* a = nullptr;
  double* b = nullptr;
  double* c = nullptr;
  std::size_t count = 0;

  SweptArrays part(std::size_t first, std::size_t of) const { return {a + first, b + first, c + first, of}; }
};

/// Whether this build has stores past the caches.
#ifdef __SSE2__
inline constexpr bool has_streaming_stores = true;
#else
inline constexpr bool has_streaming_stores = false;
#endif

/// One sweep of a kernel over arrays that begin where a vector may. Compiled apart from its callers: with them in view
/// the compiler would make of it what is measured nowhere else.
template <MemoryKernel kernel, MemoryStores stores>
void sweep_once(const SweptArrays& arrays);

/// Arrays read and written by a kernel.
constexpr std::size_t arrays_swept(MemoryKernel kernel) {
  return kernel == MemoryKernel::add || kernel == MemoryKernel::triad ? 3 : 2;
}

}  // namespace fabricbench
