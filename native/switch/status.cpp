#include "switch/status.hpp"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/failure.hpp"
#include "base/json_text.hpp"

namespace fabricbench::emulated_switch {
namespace {

using nlohmann::json;

constexpr timespec kPeriod{0, 500'000'000};

sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

StatusKeeper::StatusKeeper(const Config& config, Statistics& statistics, Forwarder& forwarder)
    : config_(config),
      statistics_(statistics),
      forwarder_(forwarder),
      lateness_file_(config.lateness),
      crossings_file_(config.crossings, "crossings") {}

void StatusKeeper::block_signals() {
  const sigset_t signals = awaited_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void StatusKeeper::run_until_stopped() {
  const sigset_t signals = awaited_signals();
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &kPeriod);
    if (signal == SIGTERM || signal == SIGINT) return;
    const bool has_changed = refresh();
    keep();
    if (!has_changed && signal != SIGUSR1) continue;
    try {
      write();
    } catch (const OutputError& error) {
      // A full disk is no reason to stop the network; the next write may work.
      std::fprintf(stderr, "fabricbench-switch: %s\n", error.what());
    }
  }
}

void StatusKeeper::keep() {
  lateness_file_.append(statistics_.lateness_series);
  const std::int64_t offset_ns = measure_realtime_offset_ns();
  std::string lines;
  statistics_.crossings.take([&](const FrameCrossing& one) {
    lines += json_text(
        nlohmann::json{one.arrival_ns + offset_ns, one.wire_ns, one.due_ns + offset_ns, one.sent_ns + offset_ns});
    lines += '\n';
  });
  crossings_file_.append(lines);
}

bool StatusKeeper::refresh() {
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < statistics_.ports.size(); ++i) {
    PortCounters& port = statistics_.ports[i];
    port.ring_lost_frames.add(forwarder_.take_lost_frames(i));
    counted += port.received.frames.value() + port.sent.frames.value() + port.dropped.frames.value() +
               port.unsent.frames.value() + port.send_retries.value() + port.ring_lost_frames.value();
  }
  const bool is_busy = statistics_.is_busy.load(std::memory_order_relaxed);
  const bool has_changed = counted != counted_ || is_busy != was_busy_;
  counted_ = counted;
  was_busy_ = is_busy;
  return has_changed;
}

void StatusKeeper::write() {
  refresh();
  keep();
  const std::string unfinished = config_.status + ".new";
  std::ofstream file(unfinished, std::ios::trunc);
  file << text() << '\n';
  file.close();
  if (!file || std::rename(unfinished.c_str(), config_.status.c_str()) != 0) {
    throw OutputError("cannot write the status file " + config_.status + ": " + std::strerror(errno));
  }
}

std::string StatusKeeper::text() const {
  json ports = json::array();
  for (std::size_t i = 0; i < statistics_.ports.size(); ++i) {
    const PortCounters& port = statistics_.ports[i];
    ports.push_back({{"interface", config_.ports[i].interface},
                     {"received_frames", port.received.frames.value()},
                     {"received_bytes", port.received.bytes.value()},
                     {"sent_frames", port.sent.frames.value()},
                     {"sent_bytes", port.sent.bytes.value()},
                     {"dropped_frames", port.dropped.frames.value()},
                     {"dropped_bytes", port.dropped.bytes.value()},
                     {"unsent_frames", port.unsent.frames.value()},
                     {"unsent_bytes", port.unsent.bytes.value()},
                     {"send_retries", port.send_retries.value()},
                     {"ring_lost_frames", port.ring_lost_frames.value()},
                     {"out_of_order_frames", port.out_of_order_frames.value()}});
  }
  const Lateness::Summary late = statistics_.lateness.summary();
  const json status = {
      {"name", config_.name},
      {"pid", getpid()},
      {"state", was_busy_ ? "busy" : "idle"},
      {"ports", ports},
      {"lateness_ns", {{"count", late.count}, {"p50", late.p50}, {"p99", late.p99}, {"maximum", late.maximum}}},
      {"lost_windows", statistics_.lateness_series.lost()}};
  return json_text(status);
}

}  // namespace fabricbench::emulated_switch
