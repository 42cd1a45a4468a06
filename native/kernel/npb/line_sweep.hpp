// Solving, along one direction, the banded systems of all lines of a multi-partitioned grid: elimination from slab to
// slab, substitution back. A method (BT's blocks, SP's pentadiagonals) knows one group of lines in one cell; here is
// what goes around it: groups, what is kept between the two passes, and messages.
//
// In the last slab, and so always on one rank, a group is substituted right after it was eliminated, out of the cache.
// In the others what elimination leaves is kept for the whole cell.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernel/npb/flow_field.hpp"
#include "kernel/npb/lanes.hpp"
#include "kernel/npb/multipartition.hpp"

namespace fabricbench::npb::navier_stokes {

/// Lines side by side, one in each lane, in one cell. Point i, from -1 (a ghost) to the extent, component m, is the
/// vector at u + i * step + m * component; r likewise, without ghosts.
struct LineGroup {
  double* u;
  double* r;
  std::ptrdiff_t step;
  std::ptrdiff_t component;
  int begin;  // the points to solve for: those on faces of the grid are not among them
  int end;
  int offset;  // of point 0 in the whole line
};

/// What a Method has, all counts in vectors:
/// * kept: what elimination leaves of a point for substitution;
/// * lead: how many more such points precede a line's own, for a recurrence to read as if they were;
/// * scratch: what elimination may use for each point and its two ghosts;
/// * forward, backward: what a group carries to the next and to the previous cell, zero beyond a face of the grid;
/// * eliminate<d>(group, carried, kept, scratch, carry) and substitute<d>(group, kept, carried, carry). The last,
///   substitute<2>, adds the solution to U instead of storing it in r.
template <class Method>
class LineSweep {
 public:
  LineSweep(const Multipartition& partition, const Method& method);

  /// Solve for r, in place, along direction d. Collective.
  template <int d>
  void run(std::vector<Field>& u, std::vector<Field>& r);
  /// Along x or y in one plane, where there is one rank: for callers that have the plane in the cache.
  template <int d>
  void run_plane(Field& u, Field& r, int k);

 private:
  using Vectors = std::vector<Lanes>;  // aligned: C++17's operator new heeds the type

  struct Plane {
    std::size_t groups;  // of lines, in a plane of them
    int begin;           // planes, without those on faces of the grid
    int end;
  };
  static Plane planes(const Box& box, int d) {
    const int lanes_along = d == 0 ? 1 : 0;
    const int planes_along = d == 2 ? 1 : 2;
    return {std::size_t(whole_lanes(box.extent[std::size_t(lanes_along)]) / lane_count), box.inner_begin(planes_along),
            box.inner_end(planes_along)};
  }

  template <int d, class Function>
  void for_groups(const Box& box, Field& u, Field& r, int plane, bool eliminates, bool substitutes, Function&& solve);
  void gather(const Box& box, const Field& u, const Field& r, int j, int k, bool eliminates);
  void scatter(const Box& box, Field& r, int j, int k);

  template <int d>
  void eliminate_cell(const Box& box, Field& u, Field& r, const Vectors& carried, Vectors& kept, Vectors& carry);
  template <int d>
  void substitute_cell(const Box& box, Field& u, Field& r, const Vectors& kept, const Vectors& carried, Vectors& carry);
  template <int d>
  void solve_plane(const Box& box, Field& u, Field& r, int plane, const Lanes* carried, Lanes* carry);

  // One message on its way to a neighbour, and the one that is awaited.
  struct Channel {
    Vectors outgoing[2];
    Vectors incoming[2];
    MPI_Request sent = MPI_REQUEST_NULL;
    MPI_Request received = MPI_REQUEST_NULL;
  };
  void send(Channel& channel, int slab, std::size_t vectors, int to, int tag);
  void receive(Channel& channel, int slab, std::size_t vectors, int from, int tag);

  const Multipartition* partition_;
  const Method* method_;
  std::vector<Vectors> kept_;  // of each slab but the last
  Vectors group_kept_;
  Vectors scratch_;
  Vectors line_u_;  // lines along x, turned so that a vector is one point of each line
  Vectors line_r_;
  Channel forward_;
  Channel backward_;
};

template <class Method>
LineSweep<Method>::LineSweep(const Multipartition& partition, const Method& method)
    : partition_(&partition), method_(&method) {
  std::size_t groups = 1;
  std::size_t points = 1;
  for (const auto& box : partition.cells()) {
    const auto longest = std::size_t(*std::max_element(box.extent.begin(), box.extent.end()));
    groups = std::max(groups, longest * std::size_t(whole_lanes(int(longest)) / lane_count));
    points = std::max(points, longest);
  }
  group_kept_.resize((points + Method::lead) * Method::kept);
  scratch_.resize((points + 2) * Method::scratch);
  line_u_.resize((points + 4 * lane_count) * components);
  line_r_.resize((points + lane_count) * components);
  kept_.resize(std::size_t(partition.slabs() - 1));
  for (auto& kept : kept_) kept.resize(groups * (points + Method::lead) * Method::kept);
  for (std::size_t turn = 0; turn < 2; ++turn) {
    forward_.outgoing[turn].resize(groups * Method::forward);
    forward_.incoming[turn].resize(groups * Method::forward);
    backward_.outgoing[turn].resize(groups * Method::backward);
    backward_.incoming[turn].resize(groups * Method::backward);
  }
}

template <class Method>
void LineSweep<Method>::gather(const Box& box, const Field& u, const Field& r, int j, int k, bool eliminates) {
  const auto& layout = u.layout();
  const auto turn = [&layout](const double* from, Lanes* to) {
    for (int m = 0; m < components; ++m) {
      Lanes square[lane_count];
      each<lane_count>([&](auto row) { square[row] = load(from + m * layout.row + row * layout.line); });
      transpose(square);
      each<lane_count>([&](auto i) { to[i * components + m] = square[i]; });
    }
  };
  if (!eliminates) {  // substitution overwrites all but points on faces of the grid, where the solution is zero
    std::fill(line_r_.begin(), line_r_.end(), Lanes{});
    return;
  }
  Lanes* turned_u = line_u_.data() + lane_count * components;
  for (int i = -lane_count; i <= box.extent[0]; i += lane_count) turn(u.at(i, j, k), turned_u + i * components);
  for (int i = 0; i < box.extent[0]; i += lane_count) turn(r.at(i, j, k), line_r_.data() + i * components);
}

template <class Method>
void LineSweep<Method>::scatter(const Box& box, Field& r, int j, int k) {
  const auto& layout = r.layout();
  for (int i = 0; i < box.extent[0]; i += lane_count) {
    for (int m = 0; m < components; ++m) {
      double* to = r.at(i, j, k, m);
      Lanes square[lane_count];
      each<lane_count>([&](auto s) { square[s] = line_r_[std::size_t((i + s) * components + m)]; });
      transpose(square);
      each<lane_count>([&](auto row) { store(to + row * layout.line, square[row]); });
    }
  }
}

template <class Method>
template <int d, class Function>
void LineSweep<Method>::for_groups(const Box& box, Field& u, Field& r, int plane, bool eliminates, bool substitutes,
                                   Function&& solve) {
  const auto groups = int(planes(box, d).groups);
  for (int group = 0; group < groups; ++group) {
    LineGroup lines{nullptr, nullptr, 0, 0, box.inner_begin(d), box.inner_end(d), box.begin[d]};
    const int first = group * lane_count;
    if constexpr (d == 0) {
      gather(box, u, r, first, plane, eliminates);
      lines.u = reinterpret_cast<double*>(line_u_.data() + lane_count * components);
      lines.r = reinterpret_cast<double*>(line_r_.data());
      lines.step = components * lane_count;
      lines.component = lane_count;
    } else {
      lines.u = d == 1 ? u.at(first, 0, plane) : u.at(first, plane, 0);
      lines.r = d == 1 ? r.at(first, 0, plane) : r.at(first, plane, 0);
      lines.step = u.layout().step(d);
      lines.component = u.layout().row;
    }
    solve(lines, std::size_t(group));
    if constexpr (d == 0) {
      if (substitutes) scatter(box, r, first, plane);
    }
  }
}

template <class Method>
template <int d>
void LineSweep<Method>::eliminate_cell(const Box& box, Field& u, Field& r, const Vectors& carried, Vectors& kept,
                                       Vectors& carry) {
  const auto all = planes(box, d);
  const auto kept_group = (std::size_t(box.extent[d]) + Method::lead) * Method::kept;
  for (int plane = all.begin; plane < all.end; ++plane) {
    for_groups<d>(box, u, r, plane, true, false, [&](const LineGroup& lines, std::size_t group) {
      const auto index = std::size_t(plane) * all.groups + group;
      method_->template eliminate<d>(lines, carried.data() + index * Method::forward, kept.data() + index * kept_group,
                                     scratch_.data(), carry.data() + index * Method::forward);
    });
  }
}

template <class Method>
template <int d>
void LineSweep<Method>::substitute_cell(const Box& box, Field& u, Field& r, const Vectors& kept, const Vectors& carried,
                                        Vectors& carry) {
  const auto all = planes(box, d);
  const auto kept_group = (std::size_t(box.extent[d]) + Method::lead) * Method::kept;
  for (int plane = all.begin; plane < all.end; ++plane) {
    for_groups<d>(box, u, r, plane, false, true, [&](const LineGroup& lines, std::size_t group) {
      const auto index = std::size_t(plane) * all.groups + group;
      method_->template substitute<d>(lines, kept.data() + index * kept_group,
                                      carried.data() + index * Method::backward,
                                      carry.data() + index * Method::backward);
    });
  }
}

template <class Method>
template <int d>
void LineSweep<Method>::solve_plane(const Box& box, Field& u, Field& r, int plane, const Lanes* carried, Lanes* carry) {
  for_groups<d>(box, u, r, plane, true, true, [&](const LineGroup& lines, std::size_t group) {
    Lanes unused[Method::forward];
    const Lanes beyond_face[Method::backward]{};
    method_->template eliminate<d>(lines, carried + group * Method::forward, group_kept_.data(), scratch_.data(),
                                   unused);
    method_->template substitute<d>(lines, group_kept_.data(), beyond_face, carry + group * Method::backward);
  });
}

template <class Method>
template <int d>
void LineSweep<Method>::run_plane(Field& u, Field& r, int k) {
  // forward_.incoming was made zero and stays so on one rank.
  solve_plane<d>(partition_->cells()[0], u, r, k, forward_.incoming[0].data(), backward_.outgoing[0].data());
}

template <class Method>
void LineSweep<Method>::send(Channel& channel, int slab, std::size_t vectors, int to, int tag) {
  MPI_Wait(&channel.sent, MPI_STATUS_IGNORE);
  MPI_Isend(channel.outgoing[slab % 2].data(), int(vectors * lane_count), MPI_DOUBLE, to, tag,
            partition_->communicator(), &channel.sent);
}

template <class Method>
void LineSweep<Method>::receive(Channel& channel, int slab, std::size_t vectors, int from, int tag) {
  MPI_Irecv(channel.incoming[slab % 2].data(), int(vectors * lane_count), MPI_DOUBLE, from, tag,
            partition_->communicator(), &channel.received);
}

template <class Method>
template <int d>
void LineSweep<Method>::run(std::vector<Field>& u, std::vector<Field>& r) {
  constexpr int forward_tag = 10 + 2 * d;
  constexpr int backward_tag = forward_tag + 1;
  const int slabs = partition_->slabs();
  const auto cell_of = [&](int slab) { return std::size_t(partition_->cell_in_slab(d, slab)); };
  const auto groups_of = [&](int slab) {
    const auto& box = partition_->cells()[cell_of(slab)];
    return planes(box, d).groups * std::size_t(box.extent[d == 2 ? 1 : 2]);
  };

  // A message for slab s lies in the buffers of turn s % 2; what a face of the grid would send is zero.
  std::fill(forward_.incoming[0].begin(), forward_.incoming[0].end(), Lanes{});
  for (int slab = 0; slab < slabs; ++slab) {
    const auto cell = cell_of(slab);
    const auto& box = partition_->cells()[cell];
    MPI_Wait(&forward_.received, MPI_STATUS_IGNORE);
    if (slab < slabs - 1) {
      receive(forward_, slab + 1, groups_of(slab + 1) * Method::forward, partition_->predecessor(d), forward_tag);
      eliminate_cell<d>(box, u[cell], r[cell], forward_.incoming[slab % 2], kept_[std::size_t(slab)],
                        forward_.outgoing[slab % 2]);
      send(forward_, slab, groups_of(slab) * Method::forward, partition_->successor(d), forward_tag);
      continue;
    }
    if (slab > 0) {
      receive(backward_, slab - 1, groups_of(slab - 1) * Method::backward, partition_->successor(d), backward_tag);
    }
    const auto all = planes(box, d);
    for (int plane = all.begin; plane < all.end; ++plane) {
      const auto index = std::size_t(plane) * all.groups;
      solve_plane<d>(box, u[cell], r[cell], plane, forward_.incoming[slab % 2].data() + index * Method::forward,
                     backward_.outgoing[slab % 2].data() + index * Method::backward);
    }
    if (slab > 0) {
      send(backward_, slab, groups_of(slab) * Method::backward, partition_->predecessor(d), backward_tag);
    }
  }
  for (int slab = slabs - 2; slab >= 0; --slab) {
    const auto cell = cell_of(slab);
    MPI_Wait(&backward_.received, MPI_STATUS_IGNORE);
    if (slab > 0) {
      receive(backward_, slab - 1, groups_of(slab - 1) * Method::backward, partition_->successor(d), backward_tag);
    }
    substitute_cell<d>(partition_->cells()[cell], u[cell], r[cell], kept_[std::size_t(slab)],
                       backward_.incoming[slab % 2], backward_.outgoing[slab % 2]);
    if (slab > 0) {
      send(backward_, slab, groups_of(slab) * Method::backward, partition_->predecessor(d), backward_tag);
    }
  }
  MPI_Wait(&forward_.sent, MPI_STATUS_IGNORE);
  MPI_Wait(&backward_.sent, MPI_STATUS_IGNORE);
}

}  // namespace fabricbench::npb::navier_stokes
