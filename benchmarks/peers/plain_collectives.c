/* The loops that every user of MPI writes around a collective, as a peer of our own measurement of MPI's operations.
 *
 *   plain_collectives allreduce|alltoall BYTES SECONDS
 *
 * BYTES is the block that each rank gives (allreduce: its whole vector of doubles; alltoall: what goes to each rank).
 * Prints three figures in nanoseconds:
 *   back_to_back   as IMB: MPI_Barrier, then calls one after the other: the time of all over their number, of the slowest
 *                  rank (t_max)
 *   barrier_start  as OSU: before each call an MPI_Barrier; each rank's mean over its calls, averaged over the ranks
 *   apart          the same calls; of each the time on the slowest rank; the median of the calls
 * Half of the SECONDS goes to each loop. The first calls warm up and are not counted. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARMUP = 100, LOOK = 50, MOST_CALLS = 1000000 };

static int ranks;

static void call(int is_allreduce, const void* out, void* in, int bytes) {
  if (is_allreduce) {
    MPI_Allreduce(out, in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  } else {
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
  }
}

static double loop(int calls, int is_allreduce, const void* out, void* in, int bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(is_allreduce, out, in, bytes);
  double seconds = (MPI_Wtime() - begin) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

static int ascending(const void* one, const void* other) {
  const double a = *(const double*)one;
  const double b = *(const double*)other;
  return (a > b) - (a < b);
}

/* The median over calls of the slowest rank's time; the mean over calls, averaged over ranks, goes to `mean`. */
static double apart(double* mean, int calls, int is_allreduce, const void* out, void* in, int bytes) {
  double* seconds = malloc((size_t)calls * sizeof *seconds);
  for (int i = 0; i < calls; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call(is_allreduce, out, in, bytes);
    seconds[i] = MPI_Wtime() - begin;
  }
  *mean = 0;
  for (int i = calls / 10; i < calls; ++i) *mean += seconds[i] / (calls - calls / 10) / ranks;
  MPI_Allreduce(MPI_IN_PLACE, mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, seconds, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  qsort(seconds, (size_t)calls, sizeof *seconds, ascending);
  const double median = seconds[calls / 2];
  free(seconds);
  return median;
}

static int calls_in(double seconds, double one) {
  const double calls = seconds / one;
  return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc != 4 || (strcmp(argv[1], "allreduce") != 0 && strcmp(argv[1], "alltoall") != 0)) {
    if (rank == 0) fprintf(stderr, "usage: plain_collectives allreduce|alltoall BYTES SECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int is_allreduce = strcmp(argv[1], "allreduce") == 0;
  const int bytes = atoi(argv[2]);
  const double half = atof(argv[3]) / 2;
  const size_t size = (size_t)bytes * (size_t)(is_allreduce ? 1 : ranks);
  void* out = calloc(1, size);
  void* in = calloc(1, size);
  loop(WARMUP, is_allreduce, out, in, bytes);
  /* The same number on all ranks: loop() gives all of them the slowest rank's time. */
  const double one = loop(LOOK, is_allreduce, out, in, bytes);
  const double back_to_back = loop(calls_in(half, one), is_allreduce, out, in, bytes);
  /* A barrier takes about as long as a small call. */
  double barrier_start;
  const double single = apart(&barrier_start, calls_in(half, 2 * one), is_allreduce, out, in, bytes);
  if (rank == 0) {
    printf("back_to_back %.1f\nbarrier_start %.1f\napart %.1f\n", back_to_back * 1e9, barrier_start * 1e9, single * 1e9);
  }
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
