// A libibverbs.so.1 without an adapter: its queue pairs reach one another within the process, at once and in order. It
// keeps what each was told, and notes whatever an adapter would refuse or write where nothing is any more: keys of
// memory that is not registered, requests without room, completions that their queue has no place for, and a waiter
// that goes to sleep while its queue has completions, of which no event will come.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "rdma/verbs_abi.hpp"

namespace fabricbench::verbs::fake {

inline constexpr const char* device_name = "fake0";
inline constexpr int most_completions = 32767;  // as soft RoCE

/// What a queue pair was told.
struct Told {
  QueuePairSetup setup{};
  QueuePairAttributes to_receive{};  // at its move to RTR
  QueuePairAttributes to_send{};     // at its move to RTS
  std::vector<unsigned> flags;       // of each request to send
};

/// What an adapter can do; whoever asks for more is refused, as by drivers.
struct Abilities {
  std::uint32_t inline_bytes = 1024;
  int queue_pair_error = 0;  // why it makes no queue pair
  bool has_atomics = true;
  bool resizes = true;
};

struct Ledger {
  Abilities abilities;
  std::map<std::uint32_t, Told> told;  // by the numbers of the queue pairs
  std::vector<std::string> faults;
  int things = 0;        // contexts, domains, regions, queues and the like that are not given back
  int not_ready = 0;     // messages that found no receive posted
  bool is_dead = false;  // whatever is sent is lost
  bool is_held = false;  // completions come only once release() is called
  bool is_gone = false;  // the device was removed: nothing is told of it any more
  // Others' completions wake who sleeps, so often.
  unsigned foreign_events_us = 0;
  std::deque<AsyncEvent> events;  // what the device tells of itself, in their order
  int unacknowledged = 0;         // of those that were read
};
Ledger& ledger();
/// Tell all completions that were held back.
void release();

}  // namespace fabricbench::verbs::fake
