// A launch without processes: its ranks run one at a time within this one, each with its own stack and its own time,
// and their control planes talk over a network that is a few numbers. What a rank computes takes the processor's time
// that it really took here, as if it had a processor to itself; what it waits for takes the time that the network's
// numbers and the others say. So the measurer's own code runs at sizes for which nobody here has the machines, and a
// hang of minutes is over at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/control_transport.hpp"

namespace fabricbench::simulation {

/// What a message of the control plane takes.
struct Network {
  std::uint64_t latency_ns = 30'000;  // from the last byte sent to when a look finds it
  std::uint64_t call_ns = 3'000;      // of the sender's and of the receiver's processor, for MPI's call
  std::uint64_t waking_ns = 50'000;   // how late a sleeping process wakes up
  double bytes_per_ns = 0.125;        // of a rank's link, each way: Gigabit Ethernet
};

/// How a launch ended that some rank ended by force.
struct Aborted {
  int rank;
  int exit_code;
  std::uint64_t at_ns;
};

class World {
 public:
  /// What a rank does, on a control plane's transport of its own.
  using Body = std::function<void(std::unique_ptr<ControlTransport>)>;

  World(int ranks, Network network, Body body);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Go on until every rank has returned or nothing can happen any more.
  void run();

  /// The ranks that have not returned.
  std::vector<int> left() const;
  const std::optional<Aborted>& aborted() const { return aborted_; }

  // On a rank, of itself:
  /// Its time.
  std::uint64_t now_ns();
  /// Be busy with what takes so long, elsewhere than on the control plane.
  void spend(std::uint64_t duration_ns);
  /// Hang: do nothing from now on.
  [[noreturn]] void hang();
  /// Take something's measured time for that of doing it again; `duration_ns` of processor time.
  void charge(std::uint64_t duration_ns);

 private:
  friend class WorldTransport;
  struct Rank;
  struct Event;

  void start(int rank);
  void resume(int rank);
  void suspend();
  void wake_at(int rank, std::uint64_t time_ns);
  void deliver(int rank, std::uint64_t time_ns);
  /// Add the processor's time since this was asked last to the rank's.
  Rank& current();
  /// Let all happen that happens before this rank's time.
  void catch_up();
  void push(Event event);
  [[noreturn]] void leave();
  static void enter();

  struct Implementation;
  std::unique_ptr<Implementation> all_;
  std::optional<Aborted> aborted_;
};

/// The rank that runs now; nothing between them.
std::optional<int> running_rank();

}  // namespace fabricbench::simulation
