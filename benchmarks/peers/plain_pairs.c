/* The loops that users of MPI write between two ranks, by the definitions of OSU's osu_latency and osu_bw (which no package
 * of Debian's has), as a peer of our own measurement of the same.
 *
 *   plain_pairs latency|bandwidth BYTES SECONDS
 *
 *   latency     a message there and one back, each end sends from one buffer and receives into another; the time of the whole
 *               loop over its round trips: prints `round_trip`, in nanoseconds (osu_latency prints half of it)
 *   bandwidth   64 messages at once from one buffer into one buffer, then an answer of 4 bytes, again and again: prints
 *               `bit_s`, from all bytes and the time of the whole loop on the rank that sends
 *
 * The first tenth of the SECONDS warms up and tells how long the loop has to be. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, ANSWER = 4, LOOK = 20, MESSAGE_TAG = 1, ANSWER_TAG = 2 };

static int rank;
static int bytes;
static char* out;
static char* in;

static void round_trip(void) {
  if (rank == 0) {
    MPI_Send(out, bytes, MPI_BYTE, 1, MESSAGE_TAG, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, 1, MESSAGE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in, bytes, MPI_BYTE, 0, MESSAGE_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_BYTE, 0, MESSAGE_TAG, MPI_COMM_WORLD);
  }
}

static void window(void) {
  static MPI_Request requests[WINDOW];
  static char answer[ANSWER];
  if (rank == 0) {
    for (int i = 0; i < WINDOW; ++i) MPI_Isend(out, bytes, MPI_BYTE, 1, MESSAGE_TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(answer, ANSWER, MPI_BYTE, 1, ANSWER_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    for (int i = 0; i < WINDOW; ++i) MPI_Irecv(in, bytes, MPI_BYTE, 0, MESSAGE_TAG, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    MPI_Send(answer, ANSWER, MPI_BYTE, 0, ANSWER_TAG, MPI_COMM_WORLD);
  }
}

/* Seconds of one turn of the loop, the same on both ranks: those of the first. */
static double loop(void (*turn)(void), long turns) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (long i = 0; i < turns; ++i) turn();
  double seconds = (MPI_Wtime() - begin) / (double)turns;
  MPI_Bcast(&seconds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return seconds;
}

static long turns_in(double seconds, double one) { return seconds > one ? (long)(seconds / one) : 1; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 4 || (strcmp(argv[1], "latency") != 0 && strcmp(argv[1], "bandwidth") != 0)) {
    if (rank == 0) fprintf(stderr, "usage: plain_pairs latency|bandwidth BYTES SECONDS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const int is_latency = strcmp(argv[1], "latency") == 0;
  void (*const turn)(void) = is_latency ? round_trip : window;
  bytes = atoi(argv[2]);
  const double seconds = atof(argv[3]);
  const size_t pages = ((size_t)bytes / 4096 + 1) * 4096;
  out = aligned_alloc(4096, pages);
  in = aligned_alloc(4096, pages);
  memset(out, 'a', pages);
  memset(in, 'b', pages);
  loop(turn, LOOK);
  const double warm = loop(turn, turns_in(seconds / 10, loop(turn, LOOK)));
  const double one = loop(turn, turns_in(seconds, warm));
  if (rank == 0 && is_latency) printf("round_trip %.2f\n", one * 1e9);
  if (rank == 0 && !is_latency) printf("bit_s %.0f\n", 8.0 * bytes * WINDOW / one);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
