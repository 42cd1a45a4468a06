// MPI's functions as the kernels meet them. The linker takes these before the library's, which are weak; each calls its
// PMPI twin. Outside a timed section a call costs one branch more; inside it two readings of the clock and a few sums.
//
// A wrapper names its call, what it sends, and the twin. What is sent is counted after the clock has been read, so that
// counting is never taken for communication.
#include <mpi.h>

#include <bit>

#include "base/clock.hpp"
#include "kernel/frame/profile.hpp"

namespace {

using fabricbench::Clock;
using fabricbench::kernel::CallTotal;
using fabricbench::kernel::Counts;

consteval std::size_t call(std::string_view name) {
  for (std::size_t i = 0; i < fabricbench::kernel::counted_calls.size(); ++i) {
    if (fabricbench::kernel::counted_calls[i] == name) return i;
  }
  throw "the call is not listed in counted_calls";
}

/// Where a wrapper notes the messages of one call.
struct Tally {
  Counts& counts;
  CallTotal& total;
  void messages(std::uint64_t number, std::uint64_t bytes_each) {
    counts.message_sizes[static_cast<std::size_t>(std::bit_width(bytes_each))] += number;
    total.bytes += number * bytes_each;
  }
};

template <class Sent, class Twin>
int counted(std::size_t index, Sent sent, Twin twin) {
  Counts& counts = fabricbench::kernel::counts();
  if (!counts.is_on) [[likely]] {
    return twin();
  }
  const std::uint64_t begin_ns = Clock::now();
  const int status = twin();
  const std::uint64_t end_ns = Clock::now();
  CallTotal& total = counts.calls[index];
  total.number += 1;
  total.time_ns += end_ns - begin_ns;
  sent(Tally{counts, total});
  return status;
}

std::uint64_t bytes_of(int count, MPI_Datatype type) {
  int type_bytes = 0;
  PMPI_Type_size(type, &type_bytes);
  return static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(type_bytes);
}

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  PMPI_Comm_rank(communicator, &rank);
  return rank;
}

int size_of(MPI_Comm communicator) {
  int size = 0;
  PMPI_Comm_size(communicator, &size);
  return size;
}

std::uint64_t others_in(MPI_Comm communicator) { return static_cast<std::uint64_t>(size_of(communicator) - 1); }

constexpr auto nothing = [](Tally) {};

/// How much a rank hands over: where it works in place, the receiving side says so, and the sending side says nothing.
struct Block {
  int count;
  MPI_Datatype type;
};
Block given(const void* out, Block sending, Block receiving) { return out == MPI_IN_PLACE ? receiving : sending; }

/// One message for another rank.
auto message(int count, MPI_Datatype type, int to, MPI_Comm communicator) {
  return [=](Tally tally) {
    if (to != MPI_PROC_NULL && to != rank_in(communicator)) tally.messages(1, bytes_of(count, type));
  };
}

/// A buffer that all others get something of.
auto contribution(int count, MPI_Datatype type, MPI_Comm communicator) {
  return [=](Tally tally) {
    if (others_in(communicator) > 0) tally.messages(1, bytes_of(count, type));
  };
}

auto root_gives(int count, MPI_Datatype type, int root, MPI_Comm communicator) {
  return [=](Tally tally) {
    if (root == rank_in(communicator) && others_in(communicator) > 0) tally.messages(1, bytes_of(count, type));
  };
}

auto others_give(int count, MPI_Datatype type, int root, MPI_Comm communicator) {
  return [=](Tally tally) {
    if (root != rank_in(communicator)) tally.messages(1, bytes_of(count, type));
  };
}

auto one_for_each(int count, MPI_Datatype type, MPI_Comm communicator) {
  return [=](Tally tally) {
    if (others_in(communicator) > 0) tally.messages(others_in(communicator), bytes_of(count, type));
  };
}

/// Messages of their own sizes for all others; `type_of` gives the type of what goes to a rank.
template <class TypeOf>
auto own_size_for_each(const int* sizes, TypeOf type_of, MPI_Comm communicator) {
  return [=](Tally tally) {
    const int self = rank_in(communicator);
    for (int to = 0; to < size_of(communicator); ++to) {
      if (to != self && sizes[to] > 0) tally.messages(1, bytes_of(sizes[to], type_of(to)));
    }
  };
}

/// A reduction whose result is dealt out: each rank gives all that goes to others.
std::uint64_t sum_of_others(const int* sizes, MPI_Comm communicator) {
  std::uint64_t sum = 0;
  const int self = rank_in(communicator);
  for (int to = 0; to < size_of(communicator); ++to) sum += to == self ? 0 : static_cast<std::uint64_t>(sizes[to]);
  return sum;
}

/// The window that was asked for last and this rank in it: a group may take memory, and each page is an access.
struct OwnRank {
  MPI_Win window = MPI_WIN_NULL;
  int rank = 0;
};
OwnRank own_rank;

int own_rank_in(MPI_Win window) {
  if (own_rank.window != window) {
    MPI_Group group = MPI_GROUP_NULL;
    PMPI_Win_get_group(window, &group);
    PMPI_Group_rank(group, &own_rank.rank);
    PMPI_Group_free(&group);
    own_rank.window = window;
  }
  return own_rank.rank;
}

/// One access of another rank's window.
auto access(int count, MPI_Datatype type, int to, MPI_Win window) {
  return [=](Tally tally) {
    const int self = own_rank_in(window);
    if (to != MPI_PROC_NULL && to != self) tally.messages(1, bytes_of(count, type));
  };
}

}  // namespace

extern "C" {

// Between two ranks.

int MPI_Send(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return counted(call("MPI_Send"), message(count, type, to, comm),
                 [&] { return PMPI_Send(data, count, type, to, tag, comm); });
}
int MPI_Ssend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return counted(call("MPI_Ssend"), message(count, type, to, comm),
                 [&] { return PMPI_Ssend(data, count, type, to, tag, comm); });
}
int MPI_Rsend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  return counted(call("MPI_Rsend"), message(count, type, to, comm),
                 [&] { return PMPI_Rsend(data, count, type, to, tag, comm); });
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return counted(call("MPI_Isend"), message(count, type, to, comm),
                 [&] { return PMPI_Isend(data, count, type, to, tag, comm, request); });
}
int MPI_Issend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return counted(call("MPI_Issend"), message(count, type, to, comm),
                 [&] { return PMPI_Issend(data, count, type, to, tag, comm, request); });
}
int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  return counted(call("MPI_Recv"), nothing, [&] { return PMPI_Recv(data, count, type, from, tag, comm, status); });
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  return counted(call("MPI_Irecv"), nothing, [&] { return PMPI_Irecv(data, count, type, from, tag, comm, request); });
}
int MPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag, void* in, int in_count,
                 MPI_Datatype in_type, int from, int in_tag, MPI_Comm comm, MPI_Status* status) {
  return counted(call("MPI_Sendrecv"), message(out_count, out_type, to, comm), [&] {
    return PMPI_Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
  });
}
int MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag,
                         MPI_Comm comm, MPI_Status* status) {
  return counted(call("MPI_Sendrecv_replace"), message(count, type, to, comm),
                 [&] { return PMPI_Sendrecv_replace(data, count, type, to, out_tag, from, in_tag, comm, status); });
}
int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status* status) {
  return counted(call("MPI_Probe"), nothing, [&] { return PMPI_Probe(from, tag, comm, status); });
}
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return counted(call("MPI_Iprobe"), nothing, [&] { return PMPI_Iprobe(from, tag, comm, flag, status); });
}

// Waiting. What is waited for was counted where it began.

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return counted(call("MPI_Wait"), nothing, [&] { return PMPI_Wait(request, status); });
}
int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return counted(call("MPI_Waitall"), nothing, [&] { return PMPI_Waitall(count, requests, statuses); });
}
int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return counted(call("MPI_Waitany"), nothing, [&] { return PMPI_Waitany(count, requests, index, status); });
}
int MPI_Waitsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  return counted(call("MPI_Waitsome"), nothing,
                 [&] { return PMPI_Waitsome(count, requests, done, indices, statuses); });
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return counted(call("MPI_Test"), nothing, [&] { return PMPI_Test(request, flag, status); });
}
int MPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  return counted(call("MPI_Testall"), nothing, [&] { return PMPI_Testall(count, requests, flag, statuses); });
}
int MPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return counted(call("MPI_Testany"), nothing, [&] { return PMPI_Testany(count, requests, index, flag, status); });
}
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status statuses[]) {
  return counted(call("MPI_Testsome"), nothing,
                 [&] { return PMPI_Testsome(count, requests, done, indices, statuses); });
}

// One to all and all to one.

int MPI_Barrier(MPI_Comm comm) {
  return counted(call("MPI_Barrier"), nothing, [&] { return PMPI_Barrier(comm); });
}
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return counted(call("MPI_Ibarrier"), nothing, [&] { return PMPI_Ibarrier(comm, request); });
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return counted(call("MPI_Bcast"), root_gives(count, type, root, comm),
                 [&] { return PMPI_Bcast(data, count, type, root, comm); });
}
int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  return counted(call("MPI_Ibcast"), root_gives(count, type, root, comm),
                 [&] { return PMPI_Ibcast(data, count, type, root, comm, request); });
}
int MPI_Gather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
               int root, MPI_Comm comm) {
  return counted(call("MPI_Gather"), others_give(out_count, out_type, root, comm),
                 [&] { return PMPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm); });
}
int MPI_Gatherv(const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[],
                const int offsets[], MPI_Datatype in_type, int root, MPI_Comm comm) {
  return counted(call("MPI_Gatherv"), others_give(out_count, out_type, root, comm),
                 [&] { return PMPI_Gatherv(out, out_count, out_type, in, in_counts, offsets, in_type, root, comm); });
}
int MPI_Scatter(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
                int root, MPI_Comm comm) {
  const auto sent = [&](Tally tally) {
    if (root == rank_in(comm)) one_for_each(out_count, out_type, comm)(tally);
  };
  return counted(call("MPI_Scatter"), sent,
                 [&] { return PMPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm); });
}
int MPI_Scatterv(const void* out, const int out_counts[], const int offsets[], MPI_Datatype out_type, void* in,
                 int in_count, MPI_Datatype in_type, int root, MPI_Comm comm) {
  const auto sent = [&](Tally tally) {
    if (root == rank_in(comm)) own_size_for_each(out_counts, [&](int) { return out_type; }, comm)(tally);
  };
  return counted(call("MPI_Scatterv"), sent,
                 [&] { return PMPI_Scatterv(out, out_counts, offsets, out_type, in, in_count, in_type, root, comm); });
}

// All to all.

int MPI_Allgather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
                  MPI_Comm comm) {
  const auto [count, type] = given(out, {out_count, out_type}, {in_count, in_type});
  return counted(call("MPI_Allgather"), contribution(count, type, comm),
                 [&] { return PMPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm); });
}
int MPI_Allgatherv(const void* out, int out_count, MPI_Datatype out_type, void* in, const int in_counts[],
                   const int offsets[], MPI_Datatype in_type, MPI_Comm comm) {
  const auto [count, type] = given(out, {out_count, out_type}, {in_counts[rank_in(comm)], in_type});
  return counted(call("MPI_Allgatherv"), contribution(count, type, comm),
                 [&] { return PMPI_Allgatherv(out, out_count, out_type, in, in_counts, offsets, in_type, comm); });
}
int MPI_Iallgather(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
                   MPI_Comm comm, MPI_Request* request) {
  const auto [count, type] = given(out, {out_count, out_type}, {in_count, in_type});
  return counted(call("MPI_Iallgather"), contribution(count, type, comm),
                 [&] { return PMPI_Iallgather(out, out_count, out_type, in, in_count, in_type, comm, request); });
}
int MPI_Alltoall(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
                 MPI_Comm comm) {
  const auto [count, type] = given(out, {out_count, out_type}, {in_count, in_type});
  return counted(call("MPI_Alltoall"), one_for_each(count, type, comm),
                 [&] { return PMPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm); });
}
int MPI_Ialltoall(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type,
                  MPI_Comm comm, MPI_Request* request) {
  const auto [count, type] = given(out, {out_count, out_type}, {in_count, in_type});
  return counted(call("MPI_Ialltoall"), one_for_each(count, type, comm),
                 [&] { return PMPI_Ialltoall(out, out_count, out_type, in, in_count, in_type, comm, request); });
}
int MPI_Alltoallv(const void* out, const int out_counts[], const int out_offsets[], MPI_Datatype out_type, void* in,
                  const int in_counts[], const int in_offsets[], MPI_Datatype in_type, MPI_Comm comm) {
  const bool is_in_place = out == MPI_IN_PLACE;
  const MPI_Datatype type = is_in_place ? in_type : out_type;
  const auto sent = own_size_for_each(is_in_place ? in_counts : out_counts, [=](int) { return type; }, comm);
  return counted(call("MPI_Alltoallv"), sent, [&] {
    return PMPI_Alltoallv(out, out_counts, out_offsets, out_type, in, in_counts, in_offsets, in_type, comm);
  });
}
int MPI_Ialltoallv(const void* out, const int out_counts[], const int out_offsets[], MPI_Datatype out_type, void* in,
                   const int in_counts[], const int in_offsets[], MPI_Datatype in_type, MPI_Comm comm,
                   MPI_Request* request) {
  const bool is_in_place = out == MPI_IN_PLACE;
  const MPI_Datatype type = is_in_place ? in_type : out_type;
  const auto sent = own_size_for_each(is_in_place ? in_counts : out_counts, [=](int) { return type; }, comm);
  return counted(call("MPI_Ialltoallv"), sent, [&] {
    return PMPI_Ialltoallv(out, out_counts, out_offsets, out_type, in, in_counts, in_offsets, in_type, comm, request);
  });
}
int MPI_Alltoallw(const void* out, const int out_counts[], const int out_offsets[], const MPI_Datatype out_types[],
                  void* in, const int in_counts[], const int in_offsets[], const MPI_Datatype in_types[],
                  MPI_Comm comm) {
  const bool is_in_place = out == MPI_IN_PLACE;
  const MPI_Datatype* const types = is_in_place ? in_types : out_types;
  const auto sent = own_size_for_each(is_in_place ? in_counts : out_counts, [=](int to) { return types[to]; }, comm);
  return counted(call("MPI_Alltoallw"), sent, [&] {
    return PMPI_Alltoallw(out, out_counts, out_offsets, out_types, in, in_counts, in_offsets, in_types, comm);
  });
}

// Reductions.

int MPI_Reduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return counted(call("MPI_Reduce"), others_give(count, type, root, comm),
                 [&] { return PMPI_Reduce(out, in, count, type, op, root, comm); });
}
int MPI_Ireduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request* request) {
  return counted(call("MPI_Ireduce"), others_give(count, type, root, comm),
                 [&] { return PMPI_Ireduce(out, in, count, type, op, root, comm, request); });
}
int MPI_Allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return counted(call("MPI_Allreduce"), contribution(count, type, comm),
                 [&] { return PMPI_Allreduce(out, in, count, type, op, comm); });
}
int MPI_Iallreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  return counted(call("MPI_Iallreduce"), contribution(count, type, comm),
                 [&] { return PMPI_Iallreduce(out, in, count, type, op, comm, request); });
}
int MPI_Scan(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return counted(call("MPI_Scan"), contribution(count, type, comm),
                 [&] { return PMPI_Scan(out, in, count, type, op, comm); });
}
int MPI_Exscan(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return counted(call("MPI_Exscan"), contribution(count, type, comm),
                 [&] { return PMPI_Exscan(out, in, count, type, op, comm); });
}
int MPI_Reduce_scatter(const void* out, void* in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto sent = [&](Tally tally) {
    if (others_in(comm) > 0) tally.messages(1, sum_of_others(counts, comm) * bytes_of(1, type));
  };
  return counted(call("MPI_Reduce_scatter"), sent,
                 [&] { return PMPI_Reduce_scatter(out, in, counts, type, op, comm); });
}
int MPI_Reduce_scatter_block(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto sent = [&](Tally tally) {
    if (others_in(comm) > 0) tally.messages(1, others_in(comm) * bytes_of(count, type));
  };
  return counted(call("MPI_Reduce_scatter_block"), sent,
                 [&] { return PMPI_Reduce_scatter_block(out, in, count, type, op, comm); });
}
// Windows. An access is counted where it begins.

int MPI_Get(void* in, int in_count, MPI_Datatype in_type, int from, MPI_Aint offset, int count, MPI_Datatype type,
            MPI_Win window) {
  return counted(call("MPI_Get"), access(count, type, from, window),
                 [&] { return PMPI_Get(in, in_count, in_type, from, offset, count, type, window); });
}
int MPI_Put(const void* out, int out_count, MPI_Datatype out_type, int to, MPI_Aint offset, int count,
            MPI_Datatype type, MPI_Win window) {
  return counted(call("MPI_Put"), access(count, type, to, window),
                 [&] { return PMPI_Put(out, out_count, out_type, to, offset, count, type, window); });
}
int MPI_Fetch_and_op(const void* out, void* in, MPI_Datatype type, int to, MPI_Aint offset, MPI_Op op, MPI_Win window) {
  return counted(call("MPI_Fetch_and_op"), access(1, type, to, window),
                 [&] { return PMPI_Fetch_and_op(out, in, type, to, offset, op, window); });
}
int MPI_Win_flush(int to, MPI_Win window) {
  return counted(call("MPI_Win_flush"), nothing, [&] { return PMPI_Win_flush(to, window); });
}
int MPI_Win_free(MPI_Win* window) {
  own_rank = {};  // another window may get its handle
  return PMPI_Win_free(window);
}
int MPI_Win_flush_all(MPI_Win window) {
  return counted(call("MPI_Win_flush_all"), nothing, [&] { return PMPI_Win_flush_all(window); });
}
}
