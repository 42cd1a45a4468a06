#include "kernel/hpcg/halo.hpp"

#include <algorithm>

namespace fabricbench::hpcg {
namespace {

constexpr int tag = 1;

template <class Part, class Of>
void for_each_line(const Box& box, const Part& part, Of&& of) {
  for (int k = 0; k < part.points[2]; ++k) {
    for (int j = 0; j < part.points[1]; ++j) of(box.at(part.first[0], part.first[1] + j, part.first[2] + k));
  }
}

}  // namespace

Halo::Halo(const Geometry& geometry) : communicator_(geometry.communicator()), box_(geometry.box()) {
  std::size_t numbers = 0;
  for (int dz = -1; dz <= 1; ++dz) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        const Triple direction{dx, dy, dz};
        const int rank = geometry.neighbour(direction);
        if (direction == Triple{} || rank == MPI_PROC_NULL) continue;
        Neighbour neighbour{.rank = rank, .inner = {}, .outer = {}, .begin = numbers, .numbers = 1};
        for (std::size_t dimension = 0; dimension < 3; ++dimension) {
          const int points = box_.points[dimension];
          const int towards = direction[dimension];
          neighbour.inner.first[dimension] = towards > 0 ? points - 1 : 0;
          neighbour.outer.first[dimension] = towards > 0 ? points : std::min(towards, 0);
          neighbour.inner.points[dimension] = towards == 0 ? points : 1;
          neighbour.numbers *= neighbour.inner.points[dimension];
        }
        neighbour.outer.points = neighbour.inner.points;
        numbers += static_cast<std::size_t>(neighbour.numbers);
        neighbours_.push_back(neighbour);
      }
    }
  }
  requests_.resize(2 * neighbours_.size());
  outgoing_ = kernel::Buffer<double>(numbers);
  incoming_ = kernel::Buffer<double>(numbers);
}

void Halo::exchange(double* x) {
  if (neighbours_.empty()) return;
  MPI_Request* request = requests_.data();
  for (const Neighbour& from : neighbours_)
    MPI_Irecv(&incoming_[from.begin], from.numbers, MPI_DOUBLE, from.rank, tag, communicator_, request++);
  for (const Neighbour& to : neighbours_) {
    double* out = &outgoing_[to.begin];
    for_each_line(box_, to.inner, [&](std::ptrdiff_t line) { out = std::copy_n(x + line, to.inner.points[0], out); });
    MPI_Isend(&outgoing_[to.begin], to.numbers, MPI_DOUBLE, to.rank, tag, communicator_, request++);
  }
  MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  for (const Neighbour& from : neighbours_) {
    const double* in = &incoming_[from.begin];
    for_each_line(box_, from.outer, [&](std::ptrdiff_t line) {
      std::copy_n(in, from.outer.points[0], x + line);
      in += from.outer.points[0];
    });
  }
}

}  // namespace fabricbench::hpcg
