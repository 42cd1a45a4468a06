#include "transport/memory_kernels.hpp"

#include <type_traits>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace fabricbench {
namespace {

constexpr double scalar = 3.0;

/// Plain assignments, as STREAM's: the compiler makes of them what it will, of a copy the C library's.
struct Plain {
  static constexpr std::size_t width = 1;
  static double load(const double* from) { return *from; }
  static void store(double* to, double value) { *to = value; }
  static void settle() {}
};

#ifdef __SSE2__
struct Streaming {
  static constexpr std::size_t width = 2;
  static __m128d load(const double* from) { return _mm_load_pd(from); }
  static void store(double* to, __m128d value) { _mm_stream_pd(to, value); }
  /// What was written is there before the next sweep, or the stamp.
  static void settle() { _mm_sfence(); }
};
#else
using Streaming = Plain;  // who asks for it is refused
#endif

template <MemoryKernel kernel, class Word>
void sweep_words(double* __restrict a, double* __restrict b, double* __restrict c, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; i += Word::width) {
    if constexpr (kernel == MemoryKernel::copy) Word::store(c + i, Word::load(a + i));
    if constexpr (kernel == MemoryKernel::scale) Word::store(b + i, scalar * Word::load(c + i));
    if constexpr (kernel == MemoryKernel::add) Word::store(c + i, Word::load(a + i) + Word::load(b + i));
    if constexpr (kernel == MemoryKernel::triad) Word::store(a + i, Word::load(b + i) + scalar * Word::load(c + i));
  }
}

}  // namespace

template <MemoryKernel kernel, MemoryStores stores>
void sweep_once(const SweptArrays& arrays) {
  using Word = std::conditional_t<stores == MemoryStores::streaming, Streaming, Plain>;
  const std::size_t whole = arrays.count / Word::width * Word::width;
  sweep_words<kernel, Word>(arrays.a, arrays.b, arrays.c, 0, whole);
  sweep_words<kernel, Plain>(arrays.a, arrays.b, arrays.c, whole, arrays.count);
  Word::settle();
}

template void sweep_once<MemoryKernel::copy, MemoryStores::plain>(const SweptArrays&);
template void sweep_once<MemoryKernel::scale, MemoryStores::plain>(const SweptArrays&);
template void sweep_once<MemoryKernel::add, MemoryStores::plain>(const SweptArrays&);
template void sweep_once<MemoryKernel::triad, MemoryStores::plain>(const SweptArrays&);
template void sweep_once<MemoryKernel::copy, MemoryStores::streaming>(const SweptArrays&);
template void sweep_once<MemoryKernel::scale, MemoryStores::streaming>(const SweptArrays&);
template void sweep_once<MemoryKernel::add, MemoryStores::streaming>(const SweptArrays&);
template void sweep_once<MemoryKernel::triad, MemoryStores::streaming>(const SweptArrays&);

}  // namespace fabricbench
