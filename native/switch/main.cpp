// fabricbench-switch: an emulated switch in user space. Reads its configuration, starts the parts, and says how it
// ended.
//
// config: the configuration as a value      timing: when frames are where (pure)     forwarder: opens ports, sleeps
// forwarding_loop: a turn over the ports    ring, sender: packet sockets
// status: the files it keeps, and signals   scheduling: CPU, priority, memory
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string_view>
#include <thread>

#include "switch/board.hpp"
#include "switch/config.hpp"
#include "switch/failure.hpp"
#include "switch/forwarder.hpp"
#include "switch/scheduling.hpp"
#include "switch/status.hpp"

namespace {

using namespace fabricbench::emulated_switch;

constexpr const char* kUsage =
    "usage: fabricbench-switch CONFIG.json\n\n"
    "Emulates a switch between interfaces of this network namespace (the switch-side ends of veth pairs): line rate,\n"
    "propagation delay, store-and-forward or cut-through, port buffers with drop-tail. Prints `ready` when it "
    "forwards.\n"
    "SIGUSR1 writes the status file, SIGTERM writes it and ends. Needs CAP_NET_RAW in the namespace.\n\n"
    "Exit codes: 0 ended by SIGTERM, 2 the configuration is wrong, 3 an interface or a permission is missing.\n\n"
    "Example: {\"name\": \"fe\", \"ports\": [{\"interface\": \"p0\", \"mac\": \"02:00:00:00:00:01\"},\n"
    "                                   {\"interface\": \"p1\", \"mac\": \"02:00:00:00:00:02\"}],\n"
    "          \"line_rate_bit_s\": 1e8, \"delay_ns\": 5000, \"switching\": \"store-and-forward\", \"mtu\": 1500,\n"
    "          \"status\": \"/run/fe.status\"}\n";

void run_switch(const char* config_path) {
  const Config config = read_config(config_path);
  StatusKeeper::block_signals();
  Board board(config.ports.size());
  Forwarder forwarder(config, board);
  StatusKeeper status(config, board, forwarder);
  status.write();

  std::atomic<bool> stop = false;
  const int wake_fd = eventfd(0, EFD_CLOEXEC);
  if (wake_fd < 0) throw EnvironmentLacks::from_errno("cannot make an eventfd");
  claim_cpu(config.cpu);
  lock_memory();
  std::jthread keeper([&] {
    leave_cpu(config.cpu);
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

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc != 2) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  try {
    run_switch(argv[1]);
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "fabricbench-switch: %s\n", failure.what());
    return failure.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("fabricbench-switch: not enough memory\n", stderr);
    return 3;
  }
}
