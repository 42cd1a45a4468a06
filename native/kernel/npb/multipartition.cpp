#include "kernel/npb/multipartition.hpp"

#include <algorithm>
#include <cmath>

namespace fabricbench::npb::navier_stokes {
namespace {

// The stencil next to a face reaches over three points.
constexpr int fewest_points = 3;

int root(int ranks) { return int(std::lround(std::sqrt(double(ranks)))); }

int modulo(int value, int modulus) { return (value % modulus + modulus) % modulus; }

// Copy `ghosts` layers of a cell, from index `layer` on along d, to or from a message; returns the message's rest.
template <bool pack>
double* copy_layers(const Box& box, int d, int layer, Field& field, double* message) {
  std::array<int, directions> begin{};
  auto end = box.extent;
  begin[std::size_t(d)] = layer;
  end[std::size_t(d)] = layer + ghosts;
  const std::ptrdiff_t width = end[0] - begin[0];
  for (int k = begin[2]; k < end[2]; ++k) {
    for (int j = begin[1]; j < end[1]; ++j) {
      for (int m = 0; m < components; ++m, message += width) {
        double* row = field.at(begin[0], j, k, m);
        if constexpr (pack) {
          std::copy_n(row, width, message);
        } else {
          std::copy_n(message, width, row);
        }
      }
    }
  }
  return message;
}

}  // namespace

std::optional<std::string> multipartition_refusal(int points, int ranks) {
  const int q = root(ranks);
  const int most = points / fewest_points;
  if (q * q == ranks && q <= most) return std::nullopt;
  return "needs a square number of ranks, from 1 to " + std::to_string(most * most) + ", not " + std::to_string(ranks);
}

Multipartition::Multipartition(MPI_Comm communicator, int points) : communicator_(communicator) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  slabs_ = root(ranks);
  row_ = rank % slabs_;
  column_ = rank / slabs_;
  for (int c = 0; c < slabs_; ++c) {
    const std::array<int, directions> slab{modulo(row_ + c, slabs_), modulo(column_ - c, slabs_), c};
    Box box{points, {}, {}};
    for (std::size_t d = 0; d < directions; ++d) {
      const int quotient = points / slabs_;
      const int remainder = points % slabs_;
      box.begin[d] = slab[d] * quotient + std::min(slab[d], remainder);
      box.extent[d] = quotient + (slab[d] < remainder ? 1 : 0);
    }
    cells_.push_back(box);
  }
}

int Multipartition::cell_in_slab(int d, int slab) const {
  if (d == 0) return modulo(slab - row_, slabs_);
  if (d == 1) return modulo(column_ - slab, slabs_);
  return slab;
}

int Multipartition::neighbour(int d, int step) const {
  const int row = modulo(row_ + (d == 0 ? step : d == 1 ? 0 : -step), slabs_);
  const int column = modulo(column_ + (d == 0 ? 0 : step), slabs_);
  return row + slabs_ * column;
}

FaceExchange::FaceExchange(const Multipartition& partition) : partition_(&partition) {
  for (int d = 0; d < directions; ++d) {
    std::size_t up = 0;
    std::size_t down = 0;
    for (const auto& box : partition.cells()) {
      std::size_t face = ghosts * components;
      for (int other = 0; other < directions; ++other) {
        if (other != d) face *= std::size_t(box.extent[std::size_t(other)]);
      }
      if (!box.is_last(d)) up += face;
      if (!box.is_first(d)) down += face;
    }
    auto& messages = along_[std::size_t(d)];
    messages.to_successor.resize(up);
    messages.from_successor.resize(up);
    messages.to_predecessor.resize(down);
    messages.from_predecessor.resize(down);
  }
}

void FaceExchange::run(std::vector<Field>& fields) {
  const int slabs = partition_->slabs();
  if (slabs == 1) return;
  std::vector<MPI_Request> requests;
  requests.reserve(4 * directions);
  const auto receive = [&](std::vector<double>& message, int from, int tag) {
    MPI_Irecv(message.data(), int(message.size()), MPI_DOUBLE, from, tag, partition_->communicator(),
              &requests.emplace_back());
  };
  const auto send = [&](const std::vector<double>& message, int to, int tag) {
    MPI_Isend(message.data(), int(message.size()), MPI_DOUBLE, to, tag, partition_->communicator(),
              &requests.emplace_back());
  };
  // A tag for each direction and sense: on 2 x 2 ranks both neighbours are the same rank.
  for (int d = 0; d < directions; ++d) {
    auto& messages = along_[std::size_t(d)];
    receive(messages.from_predecessor, partition_->predecessor(d), 2 * d);
    receive(messages.from_successor, partition_->successor(d), 2 * d + 1);
  }
  for (int d = 0; d < directions; ++d) {
    auto& messages = along_[std::size_t(d)];
    double* up = messages.to_successor.data();
    double* down = messages.to_predecessor.data();
    for (int slab = 0; slab < slabs; ++slab) {
      const auto cell = std::size_t(partition_->cell_in_slab(d, slab));
      const auto& box = partition_->cells()[cell];
      const int last = box.extent[std::size_t(d)] - ghosts;
      if (slab < slabs - 1) up = copy_layers<true>(box, d, last, fields[cell], up);
      if (slab > 0) down = copy_layers<true>(box, d, 0, fields[cell], down);
    }
    send(messages.to_successor, partition_->successor(d), 2 * d);
    send(messages.to_predecessor, partition_->predecessor(d), 2 * d + 1);
  }
  MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (int d = 0; d < directions; ++d) {
    auto& messages = along_[std::size_t(d)];
    double* above = messages.from_successor.data();
    double* below = messages.from_predecessor.data();
    for (int slab = 0; slab < slabs; ++slab) {
      const auto cell = std::size_t(partition_->cell_in_slab(d, slab));
      const auto& box = partition_->cells()[cell];
      if (slab < slabs - 1) above = copy_layers<false>(box, d, box.extent[std::size_t(d)], fields[cell], above);
      if (slab > 0) below = copy_layers<false>(box, d, -ghosts, fields[cell], below);
    }
  }
}

}  // namespace fabricbench::npb::navier_stokes
