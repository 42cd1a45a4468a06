#include "kernel/npb/is_streams.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace fabricbench::npb {

namespace {

// One pass, into `count` streams: `least` of each, and where its next key goes.
template <std::size_t count>
struct Pass {
  std::array<Key, count> least;
  std::array<Key*, count> next;

  std::size_t stream_of(Key key) const {
    std::size_t stream = 0;
    for (std::size_t s = 1; s < count; ++s) stream += key >= least[s] ? 1U : 0U;
    return stream;
  }

  void put_one_by_one(std::span<const Key> keys) {
    for (const Key key : keys) *next[stream_of(key)]++ = key;
  }

#ifdef __AVX2__
  static constexpr std::size_t width = spare_keys;

  // A vector of keys is written to every stream, each time with that stream's keys in front; the next write begins
  // behind those. Only at the ends of streams, but for the last, is there something behind that must stay: so the last
  // keys, among which every stream has a vector full, are put one by one.
  void put(std::span<const Key> keys) {
    const std::size_t whole = keys_before_the_last(keys) / width * width;
    __m256i below[count];  // the greatest key below the stream
    for (std::size_t s = 1; s < count; ++s) below[s] = _mm256_set1_epi32(static_cast<int>(least[s]) - 1);
    std::array<Key*, count> to = next;
    for (std::size_t i = 0; i < whole; i += width) {
      const __m256i vector = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(keys.data() + i));
      unsigned from_here_on = all_lanes;
#pragma GCC unroll 8
      for (std::size_t s = 0; s < count; ++s) {
        unsigned from_next_on = 0;
        if (s + 1 < count) from_next_on = mask_of(_mm256_cmpgt_epi32(vector, below[s + 1]));
        const unsigned here = from_here_on & ~from_next_on;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to[s]), _mm256_permutevar8x32_epi32(vector, to_front(here)));
        to[s] += std::popcount(here);
        from_here_on = from_next_on;
      }
    }
    next = to;
    put_one_by_one(keys.subspan(whole));
  }

  std::size_t keys_before_the_last(std::span<const Key> keys) const {
    std::array<std::size_t, count> seen{};
    std::size_t lacking = count - 1;
    std::size_t before = keys.size();
    while (lacking > 0 && before > 0) {
      const std::size_t stream = stream_of(keys[--before]);
      if (++seen[stream] == width && stream + 1 < count) --lacking;
    }
    return before;
  }

  static constexpr unsigned all_lanes = 0xFF;

  static unsigned mask_of(__m256i lanes) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
  }

  // Which lanes to take, one a byte, so that those of a mask come first.
  static __m256i to_front(unsigned mask) {
    static constexpr auto lanes_of_mask = [] {
      std::array<std::uint64_t, all_lanes + 1> orders{};
      for (unsigned taken = 0; taken <= all_lanes; ++taken) {
        unsigned place = 0;
        for (unsigned lane = 0; lane < width; ++lane) {
          if ((taken >> lane & 1U) != 0) orders[taken] |= std::uint64_t{lane} << (8 * place++);
        }
      }
      return orders;
    }();
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(lanes_of_mask[mask])));
  }
#else
  void put(std::span<const Key> keys) { put_one_by_one(keys); }
#endif
};

template <std::size_t count>
void put(std::span<const Key> keys, std::span<const Stream> streams, std::size_t step, Key* to) {
  Pass<count> pass;
  for (std::size_t s = 0; s < count; ++s) {
    pass.least[s] = streams[s * step].least;
    pass.next[s] = to + streams[s * step].begin;
  }
  pass.put(keys);
}

// Sorts keys by every `step`-th of the streams, at most `streams_of_a_pass` of them.
void put(std::span<const Key> keys, std::span<const Stream> streams, std::size_t step, Key* to) {
  static constexpr auto by_count = []<std::size_t... less>(std::index_sequence<less...>) {
    return std::array{&put<less + 1>...};
  }(std::make_index_sequence<streams_of_a_pass>{});
  by_count[(streams.size() - 1) / step](keys, streams, step, to);
}

}  // namespace

// Passes from coarse to fine. In each, keys lie between the same bounds as after the last: those of groups of streams.
void sort_into_streams(std::span<const Key> keys, std::span<const Stream> streams, Key* to, Key* scratch) {
  std::size_t step = 1;
  Key* into = to;
  Key* other = scratch;
  for (; step * streams_of_a_pass < streams.size(); step *= streams_of_a_pass) std::swap(into, other);
  for (std::span<const Key> from = keys; step > 0; step /= streams_of_a_pass) {
    const std::size_t group = step * streams_of_a_pass;
    for (std::size_t first = 0; first < streams.size(); first += group) {
      const std::size_t begin = streams[first].begin;
      const std::size_t end = first + group < streams.size() ? streams[first + group].begin : keys.size();
      const auto own = streams.subspan(first, std::min(group, streams.size() - first));
      put(from.subspan(begin, end - begin), own, step, into);
    }
    from = {into, keys.size()};
    std::swap(into, other);
  }
}

}  // namespace fabricbench::npb
