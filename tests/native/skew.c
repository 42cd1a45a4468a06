/* Preloaded, it gives the second rank a CLOCK_MONOTONIC of its own that runs SKEW_PPM too fast from its first reading on, and
 * another time namespace by name, as on another machine; and lets it come LATE_US late out of each sleep until a time. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double rate;
static long long first;
static long late_us;

__attribute__((constructor)) static void begin(void) {
  const char* rank = getenv("PMI_RANK");
  const char* ppm = getenv("SKEW_PPM");
  const char* late = getenv("LATE_US");
  if (rank == NULL || atoi(rank) != 1) return;
  if (ppm != NULL) rate = atof(ppm) * 1e-6;
  if (late != NULL) late_us = atol(late);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (rate == 0 || clock != CLOCK_MONOTONIC) return result;
  long long now = time->tv_sec * 1000000000LL + time->tv_nsec;
  if (first == 0) first = now;
  now += (long long)((double)(now - first) * rate);
  time->tv_sec = now / 1000000000LL;
  time->tv_nsec = now % 1000000000LL;
  return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* until, struct timespec* left) {
  struct timespec real = *until;
  if (rate != 0 && clock == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME)) {
    const long long skewed = until->tv_sec * 1000000000LL + until->tv_nsec;
    const long long then = first + (long long)((double)(skewed - first) / (1 + rate));
    real.tv_sec = then / 1000000000LL;
    real.tv_nsec = then % 1000000000LL;
  }
  const int result = (int)syscall(SYS_clock_nanosleep, clock, flags, &real, left);
  if (late_us > 0 && (flags & TIMER_ABSTIME)) usleep((useconds_t)late_us);
  return result;
}

ssize_t readlink(const char* path, char* text, size_t size) {
  const ssize_t length = syscall(SYS_readlink, path, text, size);
  if (rate != 0 && length > 2 && strcmp(path, "/proc/self/ns/time") == 0) text[length - 2] ^= 1;
  return length;
}
