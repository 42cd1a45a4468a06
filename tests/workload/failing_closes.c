// Makes the first close of an input that the farm's worker has written fail, as a network's file system does whose disk
// is full: in each process once, of a file below the folder that FAILING_CLOSES_BELOW names. The descriptor is closed all
// the same, as Linux does.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int has_failed;

int close(int file) {
  char link[64];
  char path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = '\0';
  const char* below = getenv("FAILING_CLOSES_BELOW");
  const int is_input = below != NULL && (fcntl(file, F_GETFL) & O_ACCMODE) == O_WRONLY &&
                       strncmp(path, below, strlen(below)) == 0;
  const int done = (int)syscall(SYS_close, file);
  if (done != 0 || has_failed || !is_input) return done;
  has_failed = 1;
  errno = ENOSPC;
  return -1;
}
