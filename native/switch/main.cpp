// fabricbench-switch: an emulated switch in user space. Reads its configuration, starts the parts, and says how it
// ended.
//
// config: the configuration as a value          timing: when frames are where (pure)
// forwarder: opens ports, sleeps                forwarding_loop: a turn over the ports
// packet_sockets: what frames come and go by    frame: what is known of one
// statistics, lateness: what is counted         status, lateness_file: the files it keeps, and signals
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/failure.hpp"
#include "base/program.hpp"
#include "switch/config.hpp"
#include "switch/forwarder.hpp"
#include "switch/statistics.hpp"
#include "switch/status.hpp"

namespace {

using namespace fabricbench::emulated_switch;
using fabricbench::ExitCode;
using fabricbench::fail_with_errno;
using fabricbench::Failure;
using fabricbench::FailureCode;

constexpr const char* kUsage =
    "usage: fabricbench-switch CONFIG.json\n\n"
    "Emulates a switch between interfaces of this network namespace (the switch-side ends of veth pairs): line rate,\n"
    "propagation delay, store-and-forward or cut-through, port buffers with drop-tail; or a cable between two of\n"
    "them, or links between nodes that frames share on their routes. Prints `ready` when it forwards.\n"
    "SIGUSR1 writes the status file, SIGTERM writes it and ends. Needs CAP_NET_RAW in the namespace.\n\n"
    "Exit codes: 0 ended by SIGTERM, 2 the configuration is wrong, 3 an interface or a permission is missing.\n\n"
    "Example: {\"name\": \"fe\", \"ports\": [{\"interface\": \"p0\", \"mac\": \"02:00:00:00:00:01\"},\n"
    "                                   {\"interface\": \"p1\", \"mac\": \"02:00:00:00:00:02\"}],\n"
    "          \"line_rate_bit_s\": 1e8, \"delay_ns\": 5000, \"switching\": \"store-and-forward\", \"mtu\": 1500,\n"
    "          \"status\": \"/run/fe.status\"}\n";

// What is asked of the scheduler and of the memory manager. Whatever an ordinary user may not have is done without.

/// Goes before other threads, also before those of other sessions: where the kernel groups tasks by session
/// (autogroup), niceness counts only within a session and each session gets the same share, so the switch takes a
/// session of its own and has that one weigh more. Beside an endless loop on the same CPU, the 99th percentile of
/// lateness fell from 7.9 ms to 0.05 ms by this.
///
/// Not SCHED_FIFO: with normal tasks runnable on its CPU, the kernel's fair server stops a real-time thread for 50 ms
/// each second.
void go_first() {
  setsid();  // fails for a process group leader; a session that others are in is left as it is
  setpriority(PRIO_PROCESS, 0, -20);
  if (getsid(0) == getpid()) std::ofstream("/proc/self/autogroup") << "-20";
}

/// Keeps the process's memory resident, so that no page fault delays a frame.
void lock_memory() { mlockall(MCL_CURRENT | MCL_FUTURE); }

/// Puts the calling thread on its CPU, before other threads where that is permitted. Failure where there is no such
/// CPU.
void claim_cpu(std::optional<int> cpu) {
  prctl(PR_SET_TIMERSLACK, 1);
  go_first();
  if (!cpu) return;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (*cpu < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(*cpu), &mask);
  if (sched_setaffinity(0, sizeof mask, &mask) != 0) {
    throw Failure(FailureCode::unsupported, "cpu " + std::to_string(*cpu) + " is not one that this process may run on");
  }
}

/// Puts the calling thread on all CPUs that the process had but that one, which would wait for it for milliseconds at a
/// time, and no longer before other threads there. If that CPU was the only one it stays.
void leave_cpu(std::optional<int> cpu, cpu_set_t had) {
  if (!cpu) return;
  CPU_CLR(static_cast<unsigned>(*cpu), &had);
  if (CPU_COUNT(&had) == 0) return;
  sched_setaffinity(0, sizeof had, &had);
  setpriority(PRIO_PROCESS, 0, 0);
}

cpu_set_t cpus_of_process() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  return mask;
}

void run_switch(const char* config_path) {
  const Config config = read_config(config_path);
  StatusKeeper::block_signals();
  Statistics statistics(config.ports.size());
  Forwarder forwarder(config, statistics);
  StatusKeeper status(config, statistics, forwarder);
  status.write();

  std::atomic<bool> stop = false;
  const int wake_fd = eventfd(0, EFD_CLOEXEC);
  if (wake_fd < 0) fail_with_errno("eventfd");
  const cpu_set_t had = cpus_of_process();
  claim_cpu(config.cpu);
  lock_memory();
  std::jthread keeper([&] {
    leave_cpu(config.cpu, had);
    status.run_until_stopped();
    stop = true;
    eventfd_write(wake_fd, 1);
  });
  std::puts("ready");
  std::fflush(stdout);
  forwarder.run(stop, wake_fd);
  keeper.join();
  status.write();
  close(wake_fd);
}

int refuse(ExitCode code, const char* problem) {
  std::fprintf(stderr, "fabricbench-switch: %s\n", problem);
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc != 2) {
    std::fputs(kUsage, stderr);
    return static_cast<int>(ExitCode::bad_input);
  }
  try {
    run_switch(argv[1]);
    return 0;
  } catch (const fabricbench::InputError& error) {
    return refuse(ExitCode::bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return refuse(ExitCode::environment, "not enough memory");
  } catch (const std::exception& error) {
    return refuse(ExitCode::environment, error.what());
  }
}
