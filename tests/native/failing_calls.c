/* Preloaded, it fails the first FAILED_PUTS calls of MPI_Put, and the first MPI_Comm_create_group on rank FAILED_GROUP, as an MPI does:
 * through the error handler of the communicator. At the end each rank says on stderr how many windows it has not freed.
 * No header of an MPI is needed: handles of every MPI fit a long as arguments are passed on x86-64 and aarch64. */
#include <stdio.h>
#include <stdlib.h>

enum { some_error = 1 };

int PMPI_Put(long, long, long, long, long, long, long, long);
int PMPI_Win_allocate(long, long, long, long, void*, void*);
int PMPI_Win_free(void*);
int PMPI_Comm_create_group(long, long, long, void*);
int PMPI_Comm_call_errhandler(long, int);
int PMPI_Finalize(void);

static int puts_called, groups_called, windows;

static int number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? -1 : atoi(text);
}

static int rank(void) { return number("PMI_RANK") >= 0 ? number("PMI_RANK") : number("PMIX_RANK"); }

int MPI_Put(long local, long count, long type, long to, long at, long there, long other, long window) {
  if (puts_called++ < number("FAILED_PUTS")) return some_error;
  return PMPI_Put(local, count, type, to, at, there, other, window);
}

int MPI_Win_allocate(long size, long unit, long info, long communicator, void* memory, void* window) {
  ++windows;
  return PMPI_Win_allocate(size, unit, info, communicator, memory, window);
}

int MPI_Win_free(void* window) {
  --windows;
  return PMPI_Win_free(window);
}

int MPI_Comm_create_group(long communicator, long group, long tag, void* made) {
  if (groups_called++ > 0 || rank() != number("FAILED_GROUP")) {
    return PMPI_Comm_create_group(communicator, group, tag, made);
  }
  long unused = 0;
  PMPI_Comm_create_group(communicator, group, tag, &unused); /* or the other rank would wait */
  PMPI_Comm_call_errhandler(communicator, some_error);
  return some_error;
}

int MPI_Finalize(void) {
  fprintf(stderr, "windows left: %d\n", windows);
  return PMPI_Finalize();
}
