// libfabricbench-yield.so, to be preloaded into MPI programs on machines with more ranks than processors. There a rank
// that spins in its MPI library's progress engine takes the processor from the rank that it waits for. The engines
// (MPICH over libfabric, Open MPI with mpi_yield_when_idle) alternate a look at their descriptors that does not wait
// with sched_yield(). So: after a look that found nothing and a sched_yield(), the next look sleeps in the kernel until
// data come, at most for `longest_look`, because the engine may have more to do than its descriptors show. Data wake
// the rank at once.
//
// Where an engine yields again before it looks (shared memory, UCX), the processor goes to whoever else is ready: a
// sleep of any length would be longer than most messages take there. So it does where one looks again and again without
// a yield, as MPICH's MPI_Waitany does and programs that call MPI_Test: those may have work of their own, and do not
// sleep. Looks that wait pass as they are.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

// Data end a sleep; this is only for what descriptors do not show.
constexpr timespec longest_look{0, 100'000};
// Each gives the processor to whoever else is ready, so a rank that waits in vain is no burden for a rank that has
// data.
constexpr int vain_rounds_at_once = 32;
// An engine may look at several descriptors before it yields itself.
constexpr int vain_looks_at_once = 32;
constexpr unsigned long timer_slack_ns = 1000;  // the default of 50 us would lengthen each sleep

// Initial-exec: a preloaded library's thread variables cost no call.
#define PER_THREAD [[gnu::tls_model("initial-exec")]] thread_local

/// Where the engine of this thread is between its looks and its yields.
enum class Idle { busy, looked_in_vain, yielded };
PER_THREAD Idle idle = Idle::busy;
PER_THREAD int vain_rounds = 0;
PER_THREAD int vain_looks = 0;  // since the last yield

/// Whether this look may sleep; to be called once for each look.
bool may_sleep(int timeout) { return timeout == 0 && idle == Idle::yielded && vain_rounds > vain_rounds_at_once; }

int note(int found, int timeout) {
  if (found != 0 || timeout != 0) {
    idle = Idle::busy;
    vain_rounds = 0;
    vain_looks = 0;
  } else {
    idle = Idle::looked_in_vain;
    if (++vain_looks > vain_looks_at_once) syscall(SYS_sched_yield);
  }
  return found;
}

[[gnu::constructor]] void shorten_sleeps() { prctl(PR_SET_TIMERSLACK, timer_slack_ns); }

}  // namespace

extern "C" {

int sched_yield() {
  vain_looks = 0;
  if (idle == Idle::looked_in_vain) {
    idle = Idle::yielded;
    // A look that sleeps comes next: nothing is left to give away.
    if (++vain_rounds > vain_rounds_at_once) return 0;
  }
  return static_cast<int>(syscall(SYS_sched_yield));
}

int epoll_wait(int descriptor, epoll_event* events, int capacity, int timeout) {
  long found = -1;
  if (may_sleep(timeout)) {
    found = syscall(SYS_epoll_pwait2, descriptor, events, capacity, &longest_look, nullptr, 0);
    // Kernels before 5.11 know milliseconds only.
    if (found < 0 && errno == ENOSYS) found = syscall(SYS_epoll_pwait, descriptor, events, capacity, 1, nullptr, 0);
    if (found < 0 && errno == EINTR) found = 0;  // a look that does not wait is never interrupted
  } else {
    found = syscall(SYS_epoll_pwait, descriptor, events, capacity, timeout, nullptr, 0);
  }
  return note(static_cast<int>(found), timeout);
}

int poll(pollfd* entries, nfds_t count, int timeout) {
  const bool sleeps = may_sleep(timeout);
  timespec limit = longest_look;
  if (!sleeps) limit = {timeout / 1000, timeout % 1000 * 1'000'000L};
  timespec* const bound = timeout < 0 ? nullptr : &limit;
  long found = syscall(SYS_ppoll, entries, count, bound, nullptr, 0);
  if (sleeps && found < 0 && errno == EINTR) found = 0;
  return note(static_cast<int>(found), timeout);
}
}
