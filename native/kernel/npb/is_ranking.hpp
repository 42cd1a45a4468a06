// The ranking of integer keys that are spread over ranks: the part of IS that is timed, and the proof that it sorts.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/npb/is_streams.hpp"

namespace fabricbench::npb {

using kernel::Buffer;

inline constexpr std::size_t is_test_keys = 5;

/// What is ranked: 2^log2_keys keys in [0, 2^log2_values), split by their top bits into 2^log2_buckets buckets.
struct KeySpace {
  unsigned log2_keys;
  unsigned log2_values;
  unsigned log2_buckets;
  std::array<std::int64_t, is_test_keys> test_indices;  // in the sequence of all keys: whose ranks are asked for
};

class Ranking {
 public:
  /// Of each test key, how many keys are smaller: on the rank that knows, zero elsewhere.
  using TestRanks = std::array<std::int64_t, is_test_keys>;

  /// Makes this rank's part of the keys.
  Ranking(MPI_Comm communicator, const KeySpace& space);

  /// Put two keys of the iteration in place and find the rank of every key. Collective.
  TestRanks rank_keys(int iteration);

  /// What placing the keys by the ranks found last gives, summed over all ranks of the communicator. Collective.
  struct Order {
    std::int64_t keys = 0;          // that were placed
    std::int64_t out_of_order = 0;  // of them, smaller than the one before
    std::uint64_t digest = 0;       // of keys and places
  };
  Order place_keys() const;

 private:
  struct Share {  // what a rank ranks: buckets [first_bucket, end_bucket), before which `keys_before` keys come
    std::size_t first_bucket = 0;
    std::size_t end_bucket = 0;
    std::int64_t keys_before = 0;
  };

  std::size_t buckets() const { return std::size_t{1} << space_.log2_buckets; }
  std::size_t bucket_of(Key key) const { return key >> bucket_shift_; }
  std::size_t value_begin(std::size_t bucket) const { return bucket << bucket_shift_; }
  const Share& own_share() const { return shares_[static_cast<std::size_t>(rank_)]; }
  std::size_t own_values() const { return value_begin(own_share().end_bucket) - value_begin(own_share().first_bucket); }

  /// Whether keys are moved before they are ranked: to other ranks, or to where keys of like value lie.
  bool is_moving() const;
  /// Whether ranks are so few that each learns the counts of every other, and sends each other rank a message itself.
  bool is_among_few() const;

  void generate_keys();
  void count_buckets();
  void add_up_buckets();
  void share_buckets();
  void sort_by_share();
  void exchange_counts();
  void make_places();
  void exchange_while_counting();
  void exchange_then_count();
  void clear_counts();
  void count_values(std::span<const Key> keys);
  TestRanks test_ranks() const;

  MPI_Comm communicator_;
  int rank_ = 0;
  int ranks_ = 0;
  KeySpace space_;
  unsigned bucket_shift_;
  std::int64_t first_key_ = 0;  // index of this rank's first in the sequence of all keys

  Buffer<Key> keys_;
  Buffer<Key> sorted_;            // the same by share, thus by destination
  Buffer<Key> scratch_;           // of sorting; made where there are many streams
  Buffer<Key> received_;          // from all other ranks; grows to what comes
  Buffer<std::uint32_t> counts_;  // of each value of the own share; after ranking, of keys up to and with that value

  std::vector<int> chain_buckets_;  // counts of each chain (is_ranking.cpp)
  std::vector<int> own_buckets_;    // counts, with the test keys behind them
  std::vector<int> gathered_;       // the same of every rank, where they are gathered
  std::vector<int> all_buckets_;    // the same, summed over ranks
  std::vector<Share> shares_;       // of each rank
  std::vector<Stream> streams_;
  std::vector<int> send_counts_, send_places_, receive_counts_, receive_places_;
  std::vector<MPI_Request> receives_, sends_;  // from and to each rank
  std::span<const Key> staying_, moved_;       // the keys that this rank ranks: its own and others'
};

}  // namespace fabricbench::npb
