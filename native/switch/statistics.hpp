// What the forwarding thread counts, for the status thread to read while it runs; no lock, no atomic addition.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "switch/crossings.hpp"
#include "switch/lateness.hpp"

namespace fabricbench::emulated_switch {

/// A counter with one writer.
class Counter {
 public:
  void add(std::uint64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_ = 0;
};

struct Traffic {
  Counter frames;
  Counter bytes;

  void count(std::uint64_t frame_bytes) {
    frames.add(1);
    bytes.add(frame_bytes);
  }
};

/// Bytes are those of the frame with its Ethernet header. `dropped` is what the emulated fabric drops: a frame that is
/// too long, that finds its host's queue full or that would go back where it came from, at the port it came in by; one
/// that finds the egress buffer full, at the port it would have left by. The counters after it are the emulator's own
/// failures, which no switch would have had.
struct PortCounters {
  Traffic received;
  Traffic sent;
  Traffic dropped;
  Traffic unsent;               // the interface did not take it, or its socket's buffer was full for too long
  Counter send_retries;         // the socket's buffer was full: the frame was tried again a little later
  Counter ring_lost_frames;     // the kernel found the receive ring full; written by the status thread
  Counter out_of_order_frames;  // admitted to this egress port after a frame with a later ready_ns
};

/// All of it.
struct Statistics {
  explicit Statistics(std::size_t port_count) : ports(port_count) {}

  std::vector<PortCounters> ports;
  /// How much later than computed frames left: since the start, and window by window.
  Lateness lateness;
  LatenessSeries lateness_series;
  CrossingSeries crossings;
  std::atomic<bool> is_busy = false;
};

}  // namespace fabricbench::emulated_switch
