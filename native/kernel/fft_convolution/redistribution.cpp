#include "kernel/fft_convolution/redistribution.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/failure.hpp"

namespace fabricbench::fft_convolution {
namespace {

constexpr std::size_t point_size = 2;  // doubles

/// Call `of(place)` with where each line along x of a part begins in a region's memory.
template <class Of>
void for_each_line(const Region& region, const Region& part, Of&& of) {
  for (std::size_t z = part.shares[2].begin; z < part.shares[2].end; ++z) {
    for (std::size_t y = part.shares[1].begin; y < part.shares[1].end; ++y)
      of(point_size * region.at(part.shares[0].begin, y, z));
  }
}

}  // namespace

Region Region::common(const Region& other) const {
  Region both;
  for (std::size_t dimension = 0; dimension < shares.size(); ++dimension) {
    const std::size_t begin = std::max(shares[dimension].begin, other.shares[dimension].begin);
    const std::size_t end = std::min(shares[dimension].end, other.shares[dimension].end);
    both.shares[dimension] = {begin, std::max(begin, end)};
  }
  return both;
}

Redistribution::Redistribution(MPI_Comm communicator, std::vector<Region> from, std::vector<Region> to)
    : communicator_(communicator) {
  MPI_Comm_rank(communicator, &rank_);
  const auto place = static_cast<std::size_t>(rank_);
  of_from_ = end_of(from[place], to);
  of_to_ = end_of(to[place], from);
  const std::size_t most = point_size * std::max(from[place].points(), to[place].points());
  outgoing_ = kernel::Buffer<double>(most);
  incoming_ = kernel::Buffer<double>(most);
}

Redistribution::End Redistribution::end_of(const Region& own, const std::vector<Region>& others) {
  if (own.points() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Failure(FailureCode::unsupported, "a rank has " + std::to_string(own.points()) +
                                                " points, more than MPI counts in one exchange: take more ranks");
  }
  End end{.own = own, .parts = {}, .counts = {}, .firsts = {}};
  int first = 0;
  for (const Region& other : others) {
    end.parts.push_back(own.common(other));
    end.counts.push_back(static_cast<int>(end.parts.back().points()));
    end.firsts.push_back(first);
    first += end.counts.back();
  }
  end.are_equal = std::ranges::count(end.counts, end.counts.front()) == std::ssize(end.counts);
  return end;
}

std::size_t Redistribution::message_bytes() const {
  std::size_t most = 0;
  for (const End* end : {&of_from_, &of_to_}) {
    for (std::size_t other = 0; other < end->parts.size(); ++other) {
      if (other != static_cast<std::size_t>(rank_)) most = std::max(most, end->parts[other].points());
    }
  }
  return most * point_size * sizeof(double);
}

void Redistribution::exchange(const End& source, const double* from, const End& target, double* to) {
  double* out = outgoing_.data();
  for (const Region& part : source.parts) {
    const std::size_t line = point_size * part.count(0);
    for_each_line(source.own, part, [&](std::size_t place) {
      std::memcpy(out, from + place, line * sizeof(double));
      out += line;
    });
  }
  // Equal parts, which all ranks see if one does, go by the collective that MPI libraries know to schedule: what all
  // send to all others at once may fill the buffers of a switch.
  if (source.are_equal && target.are_equal) {
    MPI_Alltoall(outgoing_.data(), source.counts.front(), MPI_C_DOUBLE_COMPLEX, incoming_.data(), target.counts.front(),
                 MPI_C_DOUBLE_COMPLEX, communicator_);
  } else {
    MPI_Alltoallv(outgoing_.data(), source.counts.data(), source.firsts.data(), MPI_C_DOUBLE_COMPLEX, incoming_.data(),
                  target.counts.data(), target.firsts.data(), MPI_C_DOUBLE_COMPLEX, communicator_);
  }
  const double* in = incoming_.data();
  for (const Region& part : target.parts) {
    const std::size_t line = point_size * part.count(0);
    for_each_line(target.own, part, [&](std::size_t place) {
      std::memcpy(to + place, in, line * sizeof(double));
      in += line;
    });
  }
}

}  // namespace fabricbench::fft_convolution
