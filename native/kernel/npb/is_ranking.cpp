#include "kernel/npb/is_ranking.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/npb/random.hpp"

namespace fabricbench::npb {

namespace {

constexpr std::uint64_t seed = 314159265;
constexpr int numbers_per_key = 4;

// A processor guesses whether a count that it loads is one that it is still storing. Where neighbouring keys often, but
// not always, have the same count it guesses yes, and each key waits for the key before. So neighbours count apart.
constexpr std::size_t chains = 4;

// Counts of so many values are best made at random: 8 MiB, which the caches of a processor hold. Of more values,
// counting waits for memory, and keys are first sorted into streams of that many.
constexpr std::size_t most_values_at_once = std::size_t{1} << 21U;

// Up to so many ranks one message with the counts of all buckets, 4 KiB, costs less than the rounds of an all-reduce
// and of an all-to-all, which tell the same with less data; and messages of their own let a rank count the keys of one
// while those of others are on their way. Among more ranks, an MPI library knows better orders.
constexpr int most_few_ranks = 8;

constexpr int tag = 1;

}  // namespace

Ranking::Ranking(MPI_Comm communicator, const KeySpace& space)
    : communicator_(communicator), space_(space), bucket_shift_(space.log2_values - space.log2_buckets) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  const std::int64_t all_keys = std::int64_t{1} << space.log2_keys;
  first_key_ = all_keys / ranks_ * rank_ + std::min<std::int64_t>(rank_, all_keys % ranks_);
  const auto own_keys = static_cast<std::size_t>(all_keys / ranks_ + (rank_ < all_keys % ranks_ ? 1 : 0));
  keys_ = Buffer<Key>(own_keys);
  if (is_moving()) sorted_ = Buffer<Key>(own_keys + spare_keys);
  chain_buckets_.resize(chains * buckets());
  own_buckets_.resize(buckets() + is_test_keys);
  if (is_among_few()) gathered_.resize(static_cast<std::size_t>(ranks_) * own_buckets_.size());
  all_buckets_.resize(buckets() + is_test_keys);
  const auto destinations = static_cast<std::size_t>(ranks_);
  shares_.resize(destinations);
  send_counts_.resize(destinations);
  send_places_.resize(destinations);
  receive_counts_.resize(destinations);
  receive_places_.resize(destinations);
  receives_.resize(destinations, MPI_REQUEST_NULL);
  sends_.resize(destinations, MPI_REQUEST_NULL);
  generate_keys();
}

void Ranking::generate_keys() {
  Random random(seed);
  random.skip(static_cast<std::uint64_t>(first_key_) * numbers_per_key);
  const auto quarter = static_cast<double>(std::uint64_t{1} << (space_.log2_values - 2));
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    double sum = random.next();
    for (int n = 1; n < numbers_per_key; ++n) sum += random.next();
    keys_[i] = static_cast<Key>(quarter * sum);
  }
}

Ranking::TestRanks Ranking::rank_keys(int iteration) {
  if (rank_ == 0) {
    const auto changed = static_cast<std::size_t>(iteration);
    constexpr std::size_t distance = 10;  // as many as there are iterations
    keys_[changed] = static_cast<Key>(iteration);
    keys_[changed + distance] = (Key{1} << space_.log2_values) - static_cast<Key>(iteration);
  }
  if (is_moving()) count_buckets();
  add_up_buckets();
  share_buckets();
  clear_counts();
  if (!is_moving()) {
    staying_ = {keys_.data(), keys_.size()};
    count_values(staying_);
  } else {
    sort_by_share();
    exchange_counts();
    make_places();
    if (is_among_few()) {
      exchange_while_counting();
    } else {
      exchange_then_count();
    }
  }
  std::partial_sum(counts_.data(), counts_.data() + own_values(), counts_.data());
  return test_ranks();
}

bool Ranking::is_moving() const { return ranks_ > 1 || std::size_t{1} << space_.log2_values > most_values_at_once; }

bool Ranking::is_among_few() const { return ranks_ <= most_few_ranks; }

void Ranking::count_buckets() {
  std::fill(chain_buckets_.begin(), chain_buckets_.end(), 0);
  int* const counts = chain_buckets_.data();
  const unsigned shift = bucket_shift_;
  const std::size_t count = buckets();
  const std::size_t whole = keys_.size() / chains * chains;
  for (std::size_t i = 0; i < whole; i += chains) {
    for (std::size_t chain = 0; chain < chains; ++chain) ++counts[chain * count + (keys_[i + chain] >> shift)];
  }
  for (std::size_t i = whole; i < keys_.size(); ++i) ++counts[keys_[i] >> shift];
  std::copy_n(counts, count, own_buckets_.begin());
  for (std::size_t chain = 1; chain < chains; ++chain) {
    for (std::size_t bucket = 0; bucket < count; ++bucket) own_buckets_[bucket] += counts[chain * count + bucket];
  }
}

// The test keys travel with the counts: each is contributed by the rank that has it.
void Ranking::add_up_buckets() {
  for (std::size_t j = 0; j < is_test_keys; ++j) {
    const auto index = space_.test_indices[j] - first_key_;
    const bool is_here = index >= 0 && index < static_cast<std::int64_t>(keys_.size());
    own_buckets_[buckets() + j] = is_here ? static_cast<int>(keys_[static_cast<std::size_t>(index)]) : 0;
  }
  const auto size = static_cast<int>(own_buckets_.size());
  if (!is_among_few()) {
    MPI_Allreduce(own_buckets_.data(), all_buckets_.data(), size, MPI_INT, MPI_SUM, communicator_);
    return;
  }
  MPI_Allgather(own_buckets_.data(), size, MPI_INT, gathered_.data(), size, MPI_INT, communicator_);
  std::fill(all_buckets_.begin(), all_buckets_.end(), 0);
  for (std::size_t i = 0; i < gathered_.size(); i += all_buckets_.size()) {
    for (std::size_t bucket = 0; bucket < all_buckets_.size(); ++bucket) all_buckets_[bucket] += gathered_[i + bucket];
  }
}

// Rank r's share ends with the bucket that brings the keys so far to (r + 1) / p of all.
void Ranking::share_buckets() {
  const std::int64_t all_keys = std::int64_t{1} << space_.log2_keys;
  std::size_t bucket = 0;
  std::int64_t keys = 0;
  for (std::size_t r = 0; r < shares_.size(); ++r) {
    shares_[r].first_bucket = bucket;
    shares_[r].keys_before = keys;
    const auto quota = all_keys * static_cast<std::int64_t>(r + 1);
    while (bucket < buckets() && keys * ranks_ < quota) keys += all_buckets_[bucket++];
    shares_[r].end_bucket = bucket;
  }
}

// Streams follow each other in the order of their values and none crosses the border of a share, so what goes to one
// rank lies together.
void Ranking::sort_by_share() {
  const std::size_t most_buckets = std::max<std::size_t>(1, most_values_at_once >> bucket_shift_);
  streams_.clear();
  std::size_t place = 0;
  for (std::size_t r = 0; r < shares_.size(); ++r) {
    const std::size_t begin = place;
    for (std::size_t bucket = shares_[r].first_bucket; bucket < shares_[r].end_bucket;) {
      const std::size_t next = std::min(shares_[r].end_bucket, bucket + most_buckets);
      streams_.push_back({static_cast<Key>(value_begin(bucket)), place});
      place = std::accumulate(own_buckets_.begin() + bucket, own_buckets_.begin() + next, place);
      bucket = next;
    }
    send_counts_[r] = static_cast<int>(place - begin);
  }
  if (streams_.size() > streams_of_a_pass && scratch_.size() == 0) scratch_ = Buffer<Key>(sorted_.size());
  sort_into_streams({keys_.data(), keys_.size()}, streams_, sorted_.data(), scratch_.data());
}

void Ranking::exchange_counts() {
  if (!is_among_few()) {
    MPI_Alltoall(send_counts_.data(), 1, MPI_INT, receive_counts_.data(), 1, MPI_INT, communicator_);
    return;
  }
  for (std::size_t r = 0; r < receive_counts_.size(); ++r) {
    const auto counts = gathered_.begin() + static_cast<std::ptrdiff_t>(r * own_buckets_.size());
    receive_counts_[r] = std::accumulate(counts + static_cast<std::ptrdiff_t>(own_share().first_bucket),
                                         counts + static_cast<std::ptrdiff_t>(own_share().end_bucket), 0);
  }
}

// Keys that stay are ranked where they are, so they are in no message.
void Ranking::make_places() {
  std::exclusive_scan(send_counts_.begin(), send_counts_.end(), send_places_.begin(), 0);
  const auto self = static_cast<std::size_t>(rank_);
  staying_ = {sorted_.data() + send_places_[self], static_cast<std::size_t>(std::exchange(send_counts_[self], 0))};
  receive_counts_[self] = 0;
  std::exclusive_scan(receive_counts_.begin(), receive_counts_.end(), receive_places_.begin(), 0);
  const auto coming = static_cast<std::size_t>(receive_places_.back() + receive_counts_.back());
  // A little more than asked for, as the changes of the next iterations may bring a few keys more.
  if (coming > received_.size()) received_ = Buffer<Key>(coming + coming / 64 + 64);
  moved_ = {received_.data(), coming};
}

void Ranking::exchange_then_count() {
  MPI_Alltoallv(sorted_.data(), send_counts_.data(), send_places_.data(), MPI_UINT32_T, received_.data(),
                receive_counts_.data(), receive_places_.data(), MPI_UINT32_T, communicator_);
  count_values(staying_);
  count_values(moved_);
}

// Each rank first sends to the next and receives from the one before, so that no rank is sent to by all at once. It
// waits in that order: a wait for whichever comes first may spin where others need the processor.
void Ranking::exchange_while_counting() {
  for (int distance = 1; distance < ranks_; ++distance) {
    const int from = (rank_ - distance + ranks_) % ranks_;
    const auto r = static_cast<std::size_t>(from);
    MPI_Irecv(received_.data() + receive_places_[r], receive_counts_[r], MPI_UINT32_T, from, tag, communicator_,
              &receives_[r]);
  }
  for (int distance = 1; distance < ranks_; ++distance) {
    const int to = (rank_ + distance) % ranks_;
    const auto r = static_cast<std::size_t>(to);
    MPI_Isend(sorted_.data() + send_places_[r], send_counts_[r], MPI_UINT32_T, to, tag, communicator_, &sends_[r]);
  }
  count_values(staying_);
  for (int distance = 1; distance < ranks_; ++distance) {
    const auto r = static_cast<std::size_t>((rank_ - distance + ranks_) % ranks_);
    MPI_Wait(&receives_[r], MPI_STATUS_IGNORE);
    count_values(
        moved_.subspan(static_cast<std::size_t>(receive_places_[r]), static_cast<std::size_t>(receive_counts_[r])));
  }
  MPI_Waitall(ranks_, sends_.data(), MPI_STATUSES_IGNORE);
}

void Ranking::clear_counts() {
  const std::size_t values = own_values();
  if (values > counts_.size()) counts_ = Buffer<std::uint32_t>(values + value_begin(1));
  std::fill_n(counts_.data(), values, 0U);
}

void Ranking::count_values(std::span<const Key> keys) {
  const std::size_t begin = value_begin(own_share().first_bucket);
  std::uint32_t* const counts = counts_.data();
  for (const Key key : keys) ++counts[key - begin];
}

Ranking::TestRanks Ranking::test_ranks() const {
  TestRanks ranks{};
  const auto& share = own_share();
  for (std::size_t j = 0; j < is_test_keys; ++j) {
    const auto key = static_cast<Key>(all_buckets_[buckets() + j]);
    if (bucket_of(key) < share.first_bucket || bucket_of(key) >= share.end_bucket) continue;
    const std::size_t value = key - value_begin(share.first_bucket);
    ranks[j] = share.keys_before + (value == 0 ? 0 : counts_[value - 1]);
  }
  return ranks;
}

Ranking::Order Ranking::place_keys() const {
  const std::array parts{staying_, moved_};
  const std::size_t begin = value_begin(own_share().first_bucket);
  const std::size_t values = own_values();
  Buffer<Key> placed(parts[0].size() + parts[1].size());
  Buffer<std::uint32_t> ends(values);
  std::copy_n(counts_.data(), values, ends.data());
  for (const auto keys : parts) {
    for (const Key key : keys) placed[--ends[key - begin]] = key;
  }

  // Ranks whose share is empty have no last key; the largest of all before is that of the nearest rank that has one.
  const std::int64_t last = placed.size() == 0 ? -1 : static_cast<std::int64_t>(placed[placed.size() - 1]);
  std::int64_t previous = -1;
  MPI_Exscan(&last, &previous, 1, MPI_INT64_T, MPI_MAX, communicator_);
  if (rank_ == 0) previous = -1;
  std::array<std::uint64_t, 3> own{placed.size(), 0, 0};
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto key = static_cast<std::int64_t>(placed[i]);
    own[1] += key < previous ? 1U : 0U;
    own[2] += static_cast<std::uint64_t>(key) * (static_cast<std::uint64_t>(own_share().keys_before) + i + 1);
    previous = key;
  }
  std::array<std::uint64_t, 3> all{};
  MPI_Allreduce(own.data(), all.data(), 3, MPI_UINT64_T, MPI_SUM, communicator_);
  return {
      .keys = static_cast<std::int64_t>(all[0]), .out_of_order = static_cast<std::int64_t>(all[1]), .digest = all[2]};
}

}  // namespace fabricbench::npb
