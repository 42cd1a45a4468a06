/* Preloaded, it gives the second rank a CLOCK_MONOTONIC of its own that runs SKEW_PPM too fast from SKEW_AFTER_S seconds after its
 * first reading on, and is ahead by AHEAD_US from the first; with another time namespace by name, as on another machine, unless
 * SAME_BOOT is set, as on machines started from one memory image; and lets it come LATE_US late out of each sleep until a time. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double rate;
static long long first;
static long late_us;
static long long after_ns, ahead_ns;
static int has_own_clock, is_same_boot;

__attribute__((constructor)) static void begin(void) {
  const char* rank = getenv("PMI_RANK");
  const char* ppm = getenv("SKEW_PPM");
  const char* late = getenv("LATE_US");
  if (rank == NULL || atoi(rank) != 1) return;
  if (ppm != NULL) rate = atof(ppm) * 1e-6;
  if (getenv("SKEW_AFTER_S") != NULL) after_ns = (long long)(atof(getenv("SKEW_AFTER_S")) * 1e9);
  if (getenv("AHEAD_US") != NULL) ahead_ns = atoll(getenv("AHEAD_US")) * 1000;
  has_own_clock = rate != 0 || ahead_ns != 0;
  is_same_boot = getenv("SAME_BOOT") != NULL;
  if (late != NULL) late_us = atol(late);
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (!has_own_clock || clock != CLOCK_MONOTONIC) return result;
  long long now = time->tv_sec * 1000000000LL + time->tv_nsec;
  if (first == 0) first = now;
  const long long since = now - first - after_ns;
  now += ahead_ns + (since > 0 ? (long long)((double)since * rate) : 0);
  time->tv_sec = now / 1000000000LL;
  time->tv_nsec = now % 1000000000LL;
  return result;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* until, struct timespec* left) {
  struct timespec real = *until;
  if (has_own_clock && clock == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME)) {
    const long long skewed = until->tv_sec * 1000000000LL + until->tv_nsec - ahead_ns;
    const long long since = skewed - first - after_ns;
    const long long then = since > 0 ? first + after_ns + (long long)((double)since / (1 + rate)) : skewed;
    real.tv_sec = then / 1000000000LL;
    real.tv_nsec = then % 1000000000LL;
  }
  const int result = (int)syscall(SYS_clock_nanosleep, clock, flags, &real, left);
  if (late_us > 0 && (flags & TIMER_ABSTIME)) usleep((useconds_t)late_us);
  return result;
}

ssize_t readlink(const char* path, char* text, size_t size) {
  const ssize_t length = syscall(SYS_readlink, path, text, size);
  if (has_own_clock && !is_same_boot && length > 2 && strcmp(path, "/proc/self/ns/time") == 0) text[length - 2] ^= 1;
  return length;
}
