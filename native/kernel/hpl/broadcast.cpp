#include "kernel/hpl/broadcast.hpp"

namespace fabricbench::hpl {

namespace {
/// Of the first part; each has a tag of its own, for large ones may arrive before small ones that were sent earlier.
constexpr int first_tag = 64;
}  // namespace

Broadcast::Broadcast(const Grid& grid, BroadcastKind kind)
    : row_(grid.row()), own_(grid.own_column()), ranks_(grid.q()), kind_(kind) {
  const auto most = static_cast<std::size_t>(2 * ranks_);
  parts_.reserve(most);
  receiving_.reserve(most);
  sending_.reserve(most);
  arrived_.resize(most);
}

void Broadcast::start(double* numbers, std::int64_t size, int root) {
  finish();
  numbers_ = numbers;
  size_ = size;
  root_ = root;
  parts_.clear();
  receiving_.clear();
  sending_.clear();
  waiting_ = 0;
  if (ranks_ == 1) return;
  const int from_root = (own_ - root + ranks_) % ranks_;
  switch (kind_) {
    case BroadcastKind::ring:
      plan_ring(from_root, ranks_);
      break;
    case BroadcastKind::ring_modified:
      plan_ring_modified(from_root, ranks_);
      break;
    case BroadcastKind::spread_roll:
      plan_spread_roll(from_root, ranks_);
      break;
    case BroadcastKind::library:
      receiving_.emplace_back();
      parts_.push_back({0, 0, size, MPI_PROC_NULL});
      MPI_Ibcast(numbers, static_cast<int>(size), MPI_DOUBLE, root, row_, receiving_.data());
      waiting_ = 1;
  }
}

/// `from_root` counts ranks from the root on, around the ring.
void Broadcast::plan_ring(int from_root, int ring) {
  const int next = from_root + 1 < ring ? from_root + 1 : MPI_PROC_NULL;
  if (from_root == 0) {
    send({0, 0, size_, next});
  } else {
    receive({0, 0, size_, next}, from_root - 1);
  }
}

void Broadcast::plan_ring_modified(int from_root, int ring) {
  if (from_root == 0) {
    send({0, 0, size_, 1});
    if (ring > 2) send({0, 0, size_, 2});
  } else if (from_root == 1) {
    receive({0, 0, size_, MPI_PROC_NULL}, 0);
  } else {
    receive({0, 0, size_, from_root + 1 < ring ? from_root + 1 : MPI_PROC_NULL}, from_root == 2 ? 0 : from_root - 1);
  }
}

/// Part i is that of the rank which the root sends it to; from there it goes around until the one before the root has
/// it, from the root's own part on. So each rank gets the parts of those before it from the one before it.
void Broadcast::plan_spread_roll(int from_root, int ring) {
  const auto begin_of = [&](int part) { return size_ * part / ring; };
  const auto part_to = [&](int part, int to) {
    return Part{part, begin_of(part), begin_of(part + 1) - begin_of(part), to};
  };
  if (from_root == 0) {
    for (int rank = 1; rank < ring; ++rank) send(part_to(rank, rank));
    for (int step = 0; step + 1 < ring; ++step) {
      const int part = (ring - step) % ring;
      if (part != 1) send(part_to(part, 1));
    }
    return;
  }
  const int next = from_root + 1 < ring ? from_root + 1 : MPI_PROC_NULL;
  const auto is_needed_there = [&](int part) { return next != MPI_PROC_NULL && part != next; };
  receive(part_to(from_root, is_needed_there(from_root) ? next : MPI_PROC_NULL), 0);
  for (int step = 1; step < ring; ++step) {
    const int part = (from_root - step + ring) % ring;
    receive(part_to(part, is_needed_there(part) ? next : MPI_PROC_NULL), from_root - 1);
  }
}

void Broadcast::receive(const Part& part, int from) {
  parts_.push_back(part);
  receiving_.emplace_back();
  MPI_Irecv(numbers_ + part.begin, static_cast<int>(part.size), MPI_DOUBLE, (root_ + from) % ranks_,
            first_tag + part.number, row_, &receiving_.back());
  waiting_ += 1;
}

void Broadcast::send(const Part& part) {
  if (part.to == MPI_PROC_NULL) return;
  sending_.emplace_back();
  MPI_Isend(numbers_ + part.begin, static_cast<int>(part.size), MPI_DOUBLE, (root_ + part.to) % ranks_,
            first_tag + part.number, row_, &sending_.back());
}

void Broadcast::hand_on(FindSome* find) {
  int arrived = 0;
  find(static_cast<int>(receiving_.size()), receiving_.data(), &arrived, arrived_.data(), MPI_STATUSES_IGNORE);
  if (arrived == MPI_UNDEFINED) return;
  for (int i = 0; i < arrived; ++i) {
    send(parts_[static_cast<std::size_t>(arrived_[static_cast<std::size_t>(i)])]);
    waiting_ -= 1;
  }
}

bool Broadcast::poll() {
  if (waiting_ > 0) hand_on(MPI_Testsome);
  if (waiting_ > 0) return true;
  if (sending_.empty()) return false;
  int is_sent = 0;
  MPI_Testall(static_cast<int>(sending_.size()), sending_.data(), &is_sent, MPI_STATUSES_IGNORE);
  if (is_sent != 0) sending_.clear();
  return is_sent == 0;
}

void Broadcast::wait() {
  while (waiting_ > 0) hand_on(MPI_Waitsome);
}

void Broadcast::finish() {
  wait();
  if (sending_.empty()) return;
  MPI_Waitall(static_cast<int>(sending_.size()), sending_.data(), MPI_STATUSES_IGNORE);
  sending_.clear();
}

}  // namespace fabricbench::hpl
