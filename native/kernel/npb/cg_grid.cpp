#include "kernel/npb/cg_grid.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace fabricbench::npb {

namespace {

constexpr int tag = 1;

int largest_square_edge(int ranks) {
  int edge = 1;
  for (int i = 2; i * i <= ranks; ++i) {
    if (ranks % (i * i) == 0) edge = i;
  }
  return edge;
}

}  // namespace

// The first parts are longer by one where the whole does not divide evenly.
IndexRange CgGrid::part_of(IndexRange whole, int parts, int index) {
  const auto divisor = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t length = whole.size() / divisor;
  const std::size_t longer = whole.size() % divisor;
  const std::size_t begin = whole.begin + i * length + std::min(i, longer);
  return {begin, begin + length + (i < longer ? 1 : 0)};
}

CgGrid::CgGrid(MPI_Comm communicator, std::size_t order) : communicator_(communicator) {
  int ranks = 0;
  MPI_Comm_size(communicator, &ranks);
  MPI_Comm_rank(communicator, &own_rank_);
  const int edge = largest_square_edge(ranks);
  parts_ = ranks / (edge * edge);
  const int width = edge * parts_;
  const int i = own_rank_ / width;
  const int j = own_rank_ % width;
  const int k = j / parts_;
  part_ = j % parts_;
  row_ = {.first = i * width, .stride = 1, .size = width, .own = j};
  neighbours_ = {.first = i * width + k * parts_, .stride = 1, .size = parts_, .own = part_};
  alike_ = {.first = i * width + part_, .stride = parts_, .size = edge, .own = k};
  partner_ = k * width + i * parts_ + part_;

  const IndexRange all{0, order};
  rows_ = part_of(all, edge, i);
  columns_ = part_of(part_of(all, edge, k), parts_, part_);
  received_ = Buffer<double>(std::max(part(0).size(), columns_.size()));
}

void CgGrid::sum(double* values, int count) const {
  std::array<double, 4> received{};
  sum_within(row_, values, received.data(), count);
}

// Pairs at distance 1, 2, 4... swap and add; a + b and b + a are the same bits, so all end with the same. Members past
// the largest power of two give what they have to one of the others, and are told the sum.
void CgGrid::sum_within(const Group& group, double* values, double* received, int count) const {
  const int doubling = static_cast<int>(std::bit_floor(static_cast<unsigned>(group.size)));
  const auto add_received = [&] {
    for (int n = 0; n < count; ++n) values[n] += received[n];
  };
  if (group.own >= doubling) {
    MPI_Send(values, count, MPI_DOUBLE, group.rank(group.own - doubling), tag, communicator_);
    MPI_Recv(values, count, MPI_DOUBLE, group.rank(group.own - doubling), tag, communicator_, MPI_STATUS_IGNORE);
    return;
  }
  const bool has_guest = group.own + doubling < group.size;
  if (has_guest) {
    MPI_Recv(received, count, MPI_DOUBLE, group.rank(group.own + doubling), tag, communicator_, MPI_STATUS_IGNORE);
    add_received();
  }
  for (int distance = 1; distance < doubling; distance *= 2) {
    const int other = group.rank(group.own ^ distance);
    MPI_Sendrecv(values, count, MPI_DOUBLE, other, tag, received, count, MPI_DOUBLE, other, tag, communicator_,
                 MPI_STATUS_IGNORE);
    add_received();
  }
  if (has_guest) {
    MPI_Send(values, count, MPI_DOUBLE, group.rank(group.own + doubling), tag, communicator_);
  }
}

// In round d each neighbour sends to the d-th after it and hears from the d-th before it.
void CgGrid::sum_own_part(double* shares) {
  const IndexRange own = part(part_);
  double* const sums = shares + (own.begin - rows_.begin);
  for (int distance = 1; distance < neighbours_.size; ++distance) {
    const int to = (part_ + distance) % parts_;
    const int from = (part_ + parts_ - distance) % parts_;
    const IndexRange sent = part(to);
    MPI_Sendrecv(shares + (sent.begin - rows_.begin), static_cast<int>(sent.size()), MPI_DOUBLE, neighbours_.rank(to),
                 tag, received_.data(), static_cast<int>(own.size()), MPI_DOUBLE, neighbours_.rank(from), tag,
                 communicator_, MPI_STATUS_IGNORE);
    for (std::size_t n = 0; n < own.size(); ++n) sums[n] += received_[n];
  }
}

const double* CgGrid::gather(double* shares) {
  sum_own_part(shares);
  const IndexRange own = part(part_);
  double* const sums = shares + (own.begin - rows_.begin);
  sum_within(alike_, sums, received_.data(), static_cast<int>(own.size()));
  if (partner_ == own_rank_) return sums;
  MPI_Sendrecv(sums, static_cast<int>(own.size()), MPI_DOUBLE, partner_, tag, received_.data(),
               static_cast<int>(columns_.size()), MPI_DOUBLE, partner_, tag, communicator_, MPI_STATUS_IGNORE);
  return received_.data();
}

}  // namespace fabricbench::npb
