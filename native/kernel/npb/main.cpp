// fabricbench-npb KERNEL CLASS: runs one kernel and prints what it found.
#include <mpi.h>

#include <cstdio>
#include <string_view>

#include "kernel/npb/kernels.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int status = 2;
  for (const auto* kernel : fabricbench::npb::kernels) {
    if (argc != 3 || kernel->name != argv[1]) continue;
    const auto problem = static_cast<fabricbench::npb::Class>(argv[2][0]);
    if (const auto reason = kernel->refusal(problem, size)) {
      if (rank == 0) std::fprintf(stderr, "%s\n", reason->c_str());
      break;
    }
    const auto result = kernel->run(MPI_COMM_WORLD, problem);
    status = 0;
    for (const auto& check : result.checks) {
      if (!check.holds()) status = 1;
      if (rank == 0) {
        std::printf("%-20s %.15e expected %.15e %s\n", check.name.c_str(), check.found, check.expected,
                    check.holds() ? "ok" : "WRONG");
      }
    }
    if (rank == 0) {
      std::printf("%.*s.%s %d ranks %.4f s %.1f Mop/s %016lx\n", static_cast<int>(kernel->name.size()),
                  kernel->name.data(), argv[2], size, result.seconds, result.operations / result.seconds * 1e-6,
                  result.fingerprint);
    }
  }
  MPI_Finalize();
  return status;
}
