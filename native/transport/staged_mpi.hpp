// The layer mpi with the stages of its messages (core/stages.hpp): beside MPI's calls it knows when the library called
// the kernel, from a preloaded library that notes the calls (native/socket_calls), and when the kernel had the message,
// from the stamp that comes with it. That is all that is seen of a message while it is the library's; where it does not
// go through sockets of TCP on the fabric, nothing of that is.
//
// What is sent is not stamped: the stamps would lie in the sockets' error queues, and the library, told of an error by
// its own poll(2), would take the connection for broken.
#pragma once

#include <dlfcn.h>
#include <time.h>
// After time.h, whose timespec it takes for granted.
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/folder.hpp"
#include "base/processor_use.hpp"
#include "base/scheduler_watch.hpp"
#include "core/stages.hpp"
#include "socket_calls/socket_calls.hpp"
#include "transport/internet.hpp"
#include "transport/mpi_path.hpp"

namespace fabricbench {

/// The library's connections through the fabric, which are watched, stamped and marked while this lives.
class WatchedConnections {
 public:
  /// Those from the interface's address; what goes through them is noted in the log. What the host refuses is in
  /// `refused`, with the reason.
  WatchedConnections(const Interface& interface, SocketCallLog& log)
      : log_(log), note_(reinterpret_cast<NoteSocketCalls>(dlsym(RTLD_DEFAULT, note_socket_calls_symbol))) {
    if (note_ == nullptr) {
      refuse("libfabricbench-socket-calls.so was not preloaded");
      return;
    }
    for (const int socket : connections_from(interface)) watch(socket);
    if (watched_.empty()) {
      refuse("MPI has no connection of TCP from " + interface.name +
             (interface.address ? " (" + address_text(*interface.address) + ")" : ""));
      return;
    }
    note_(&log_);
  }
  ~WatchedConnections() {
    if (note_ != nullptr) note_(nullptr);
    constexpr int nothing = 0;
    constexpr int usual = -1;
    for (const int socket : watched_) {
      log_.is_watched.at(static_cast<std::size_t>(socket)) = false;
      setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &nothing, sizeof nothing);
      setsockopt(socket, IPPROTO_IP, IP_TTL, &usual, sizeof usual);
    }
  }
  WatchedConnections(const WatchedConnections&) = delete;
  WatchedConnections& operator=(const WatchedConnections&) = delete;

  const std::map<std::string, std::string>& refused() const { return refused_; }

 private:
  static std::vector<int> connections_from(const Interface& interface) {
    std::vector<int> found;
    for (const std::string& name : names_in("/proc/self/fd")) {
      int socket = -1;
      std::from_chars(name.data(), name.data() + name.size(), socket);
      sockaddr_in own{};
      sockaddr_in peer{};
      socklen_t own_size = sizeof own;
      socklen_t peer_size = sizeof peer;
      int type = 0;
      socklen_t type_size = sizeof type;
      if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
          getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 && own.sin_family == AF_INET &&
          interface.address == ntohl(own.sin_addr.s_addr) &&
          getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0) {
        found.push_back(socket);
      }
    }
    return found;
  }

  void watch(int socket) {
    if (static_cast<std::size_t>(socket) >= SocketCallLog::descriptors) return;
    constexpr int received = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE;
    if (setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &received, sizeof received) != 0) {
      refused_["arrived"] = std::string("setsockopt(SO_TIMESTAMPING): ") + std::strerror(errno);
    }
    setsockopt(socket, IPPROTO_IP, IP_TTL, &staged_time_to_live, sizeof staged_time_to_live);
    log_.is_watched.at(static_cast<std::size_t>(socket)) = true;
    watched_.push_back(socket);
  }

  void refuse(const std::string& reason) {
    for (const char* const boundary : {"called", "arrived", "drained"}) refused_[boundary] = reason;
  }

  SocketCallLog& log_;
  NoteSocketCalls note_;
  std::vector<int> watched_;
  std::map<std::string, std::string> refused_;
};

class StagedMpi : public MpiPath {
 public:
  StagedMpi(const Attachment& attachment, const Site& site)
      : MpiPath(attachment, site), interface_(needed_interface(attachment)) {}
  StagedMpi(const StagedMpi&) = delete;
  StagedMpi& operator=(const StagedMpi&) = delete;

  /// Of messages that are sent one after the other, before anything is received, the call of the first counts, and what
  /// the library does with the last.
  void send(std::span<const std::byte> message) {
    if (!has_sent_) now_.before = read_clock_ns(CLOCK_REALTIME);
    has_sent_ = true;
    sending_ = log_.count;
    sending_bytes_ = message.size();
    MpiPath::send(message);
    sent_ = log_.count;
  }

  bool receive(std::span<std::byte> message) {
    MpiPath::receive(message);
    now_.received = read_clock_ns(CLOCK_REALTIME);
    received_ = log_.count;
    has_sent_ = false;
    return true;
  }

  void begin_stages(std::size_t messages) {
    rows_.assign(messages, {});
    count_ = settled_ = 0;
    watch_ = std::make_unique<SchedulerWatch>();
    others_.emplace();
    calls_.assign(calls_of_a_round_trip, {});
    log_.calls = calls_.data();
    log_.capacity = calls_.size();
    log_.count = received_ = 0;
    connections_.reset();
    connections_ = std::make_unique<WatchedConnections>(interface_, log_);
  }

  void keep(std::int64_t number, std::int64_t round_trip_ns) {
    if (count_ == rows_.size()) return;
    now_.number = number;
    now_.round_trip = round_trip_ns;
    note_sent(calls_between(sending_, sent_));
    note_received(calls_between(0, received_));
    rows_[count_++] = std::exchange(now_, {});
  }

  void settle() {
    forget_calls();
    StageStamps* const row = settled_ < count_ ? &rows_[settled_++] : nullptr;
    const std::int64_t until = row == nullptr ? 0 : row->drained > 0 ? row->drained : row->received;
    const std::int64_t resumed = watch_->take_switch_in(until);
    const std::int64_t waited = watch_->take_waited();
    if (row == nullptr) return;
    row->resumed = resumed > row->arrived ? resumed : 0;
    row->waited = row->resumed > 0 ? waited : 0;
  }

  /// The rows that were kept. The rank and who leads are the caller's to say.
  StageReport take_stages() {
    settle();
    std::map<std::string, std::string> refused = watch_->refused();
    refused.insert(connections_->refused().begin(), connections_->refused().end());
    connections_.reset();
    watch_.reset();
    rows_.resize(count_);
    count_ = settled_ = 0;
    return {.refused = std::move(refused),
            .busiest = others_ ? others_->busiest() : std::nullopt,
            .messages = std::exchange(rows_, {})};
  }

 private:
  // A message of 1 MiB takes some 20 calls at each end.
  static constexpr std::size_t calls_of_a_round_trip = 4096;

  /// None where there was no room for all of them: the last ones count.
  std::span<const SocketCall> calls_between(std::size_t first, std::size_t end) const {
    if (end > calls_.size()) return {};
    return std::span(calls_).subspan(first, end - first);
  }

  /// But for those since the last message was received: while the library waits for the peer to acknowledge what it has
  /// sent, the peer's next message may come as well.
  void forget_calls() {
    const std::span<const SocketCall> next = calls_between(received_, log_.count);
    std::ranges::copy(next, calls_.begin());
    log_.count = next.size();
    received_ = 0;
  }

  /// The message begins with the first call since the library received something of those by which all of it has gone.
  /// A library that asks before it sends, as of large messages, has sent its question before. What it sends behind the
  /// message are acknowledgements of its own.
  void note_sent(std::span<const SocketCall> calls) {
    bool has_received = true;
    std::size_t bytes = 0;
    for (const SocketCall& call : calls) {
      if (call.is_sending && has_received) {
        if (now_.called > 0 && now_.asked == 0) now_.asked = now_.called;
        now_.called = call.began;
      }
      has_received = !call.is_sending;
      if (call.is_sending) bytes += call.bytes;
      if (bytes >= sending_bytes_ && bytes > 0) return;
    }
    now_.asked = now_.called = 0;  // some of it left later, which nobody ascribes to it
  }

  /// Where a library reads a message in pieces, the last piece is the last call.
  void note_received(std::span<const SocketCall> calls) {
    for (const SocketCall& call : calls) {
      if (call.is_sending) continue;
      now_.drained = call.ended;
      now_.arrived = call.arrived;
    }
  }

  Interface interface_;
  std::vector<SocketCall> calls_;  // since the last message was settled
  SocketCallLog log_;
  std::unique_ptr<WatchedConnections> connections_;
  StageStamps now_;
  bool has_sent_ = false;  // since something was received last
  // How many calls had been noted when MPI was given what was sent last, when it had taken it, and when it had given
  // what came.
  std::size_t sending_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  std::size_t sending_bytes_ = 0;
  std::vector<StageStamps> rows_;
  std::size_t count_ = 0;
  std::size_t settled_ = 0;  // rows whose received message has its times
  std::unique_ptr<SchedulerWatch> watch_;
  std::optional<OtherProcesses> others_;
};

static_assert(StagedTransport<StagedMpi>);

}  // namespace fabricbench
