// Connections that librdmacm makes, as iWARP wants them: TCP beneath, the end that connects speaks first. A
// ConnectionManager has what the connections of a device share, the channel of its events and the port where it
// listens; whoever waits there for one connection serves all of them, else ranks that meet their peers in different
// orders could wait for one another in a circle. A ManagedConnection is one of them. Every wait has a deadline.
//
// TCP goes on for a quarter of an hour when nothing arrives any more, and what is sent is complete as soon as TCP has
// it. So an end that hears nothing reads from the peer's memory, which the peer's adapter answers by itself, and bears
// no answer as long as a queue pair of RoCE might by `timeout` and `retry_count`.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/secret.hpp"
#include "rdma/adapter.hpp"
#include "rdma/manager_library.hpp"
#include "rdma/queue_pair.hpp"

namespace fabricbench {

class ManagedConnection;

class ConnectionManager {
 public:
  /// Listens at the IPv4 address of the fabric's interface. Failures: the kernel has no connection manager, or the
  /// address belongs to another device than `device`.
  ConnectionManager(std::string device, std::uint32_t address);
  ~ConnectionManager();
  ConnectionManager(const ConnectionManager&) = delete;
  ConnectionManager& operator=(const ConnectionManager&) = delete;

  const std::string& device() const { return device_; }
  std::uint32_t address() const { return address_; }
  std::uint16_t port() const { return port_; }
  verbs::EventChannel* channel() const { return channel_; }

  void add(const Secret& secret, ManagedConnection& connection) { expected_[secret] = &connection; }
  void remove(const Secret& secret) { expected_.erase(secret); }
  /// How many connections peers have still to make.
  std::size_t still_expected() const { return expected_.size(); }

  /// Serve events until `is_done` or the deadline; whether it is done. `is_done` is asked after each event, and when
  /// poll(2) tells something of the other descriptor.
  bool serve(std::uint64_t deadline_ns, const std::function<bool()>& is_done, int other_descriptor = -1);
  /// The Failure where the identifier's address belongs to another device.
  void refuse_other_device(const verbs::Identifier& identifier) const;

 private:
  void listen();
  bool take_event();
  void answer(verbs::Identifier* identifier, const verbs::ConnectionParameters& parameters);

  std::string device_;
  std::uint32_t address_;
  std::uint16_t port_ = 0;
  verbs::EventChannel* channel_ = nullptr;
  verbs::Identifier* listener_ = nullptr;
  std::map<Secret, ManagedConnection*> expected_;  // by their path's
};

/// What an end says of itself when it connects or accepts: whose path it is, and where the peer may read.
struct Introduction {
  static constexpr std::uint64_t sign = 0x6669777061627269;

  std::uint64_t magic = sign;
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  std::uint32_t unused = 0;
  Secret secret{};  // of the path

  /// Nothing where a stranger speaks.
  static std::optional<Introduction> read(const verbs::ConnectionParameters& parameters);
};

class ManagedConnection {
 public:
  /// @param is_first  of the two: it connects, the other accepts
  ManagedConnection(const std::shared_ptr<Adapter>& adapter, int peer_rank, const Secret& secret, bool is_first,
                    const RdmaParameters& parameters);
  ~ManagedConnection();
  ManagedConnection(const ManagedConnection&) = delete;
  ManagedConnection& operator=(const ManagedConnection&) = delete;

  bool is_first() const { return is_first_; }
  /// From here on a peer that connects is led to this queue pair, whose first receive is posted.
  void lead_to(const QueuePair& pair);
  /// Connect, or wait until the peer has.
  void meet(const QueuePairAddress& peer);
  /// Serve what other connections wait for, too, until `is_done`; the Failure of a peer that is late.
  void wait_for(const std::function<bool()>& is_done, const char* what, int other_descriptor = -1);
  /// The Failure of a connection that librdmacm says is closed, waiting a moment for it to say so.
  void refuse_closed();

  /// What a receive without memory is given: soft iWARP takes none without a segment.
  verbs::Segment no_memory() const;
  /// The read by which an end asks whether the peer is there, `memory` its only segment.
  verbs::SendRequest question(verbs::Segment& memory);
  bool has_answer() const;
  /// How long no answer is borne.
  std::uint64_t patience_ns() const { return patience_ns_; }
  [[noreturn]] void fail_unanswered() const;

  // For the manager.
  void accept(verbs::Identifier* identifier, const Introduction& peer);
  void note(verbs::EventKind kind, int status, const verbs::ConnectionParameters& parameters);

 private:
  /// Registered: the peer reads the one, and its own is read into the other.
  struct Keepalive {
    std::uint64_t here = Introduction::sign;
    std::uint64_t answer = 0;
  };
  enum class Stage { none, addressed, routed, established };

  void connect(const sockaddr_in& peer);
  void reach(Stage stage, std::uint64_t deadline_ns);
  [[noreturn]] void fail_event(verbs::EventKind kind, int status) const;
  [[noreturn]] void fail_call(int error, const char* call) const;
  [[noreturn]] void fail_late(FailureCode code, const std::string& what) const;
  void release();
  verbs::ConnectionParameters parameters_of(const Introduction& own) const;
  Introduction introduction() const;

  std::shared_ptr<Adapter> adapter_;
  ConnectionManager& manager_;
  Secret secret_;
  bool is_first_;
  std::uint64_t patience_ns_;
  MessageBuffer memory_;
  Keepalive* keepalive_;
  std::uint32_t pair_number_ = 0;
  std::string peer_text_;
  verbs::Identifier* identifier_ = nullptr;
  Stage stage_ = Stage::none;
  std::optional<verbs::EventKind> refused_;
  int status_ = 0;
  std::uint64_t peer_address_ = 0;
  std::uint32_t peer_key_ = 0;
};

}  // namespace fabricbench
