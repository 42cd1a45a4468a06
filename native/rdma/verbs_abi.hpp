// What of the application binary interface of libibverbs.so.1 (version IBVERBS_1.1) layer rdma takes, declared here so
// that a build needs no header of it: the library is opened when it is first asked for (rdma/library.hpp). Fields and
// values are those of the man pages ibv_create_qp(3), ibv_modify_qp(3), ibv_post_send(3), ibv_poll_cq(3) and their
// kin, in the order in which the library has them; where its header is there, native/tests compares the two.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace fabricbench::verbs {

using Gid = std::array<std::uint8_t, 16>;

struct Device;
struct ProtectionDomain;
struct AddressHandle;
struct Context;
struct CompletionQueue;
struct QueuePair;

enum class Status : int {
  success,
  local_length,
  local_operation,
  local_eec_operation,
  local_protection,
  flushed,
  window_bind,
  bad_response,
  local_access,
  remote_invalid_request,
  remote_access,
  remote_operation,
  retry_exceeded,
  receiver_not_ready,
  local_rdd_violation,
  remote_invalid_read,
  remote_abort,
  invalid_eec_number,
  invalid_eec_state,
  fatal,
  response_timeout,
  general,
};

enum class Operation : int {
  write = 0,
  write_with_immediate = 1,
  send = 2,
  send_with_immediate = 3,
  read = 4,
  compare_and_swap = 5,
  fetch_and_add = 6,
};

enum class State : int { reset, init, ready_to_receive, ready_to_send, drained, error_while_sending, error };
enum class Service : int { reliable = 2, unreliable = 3, datagram = 4 };

inline constexpr unsigned send_signaled = 1U << 1U;
inline constexpr unsigned send_solicited = 1U << 2U;
inline constexpr unsigned send_inline = 1U << 3U;

inline constexpr unsigned access_local_write = 1U;
inline constexpr unsigned access_remote_write = 1U << 1U;
inline constexpr unsigned access_remote_read = 1U << 2U;
inline constexpr unsigned access_remote_atomic = 1U << 3U;

inline constexpr int set_state = 1 << 0;
inline constexpr int set_access = 1 << 3;
inline constexpr int set_partition = 1 << 4;
inline constexpr int set_port = 1 << 5;
inline constexpr int set_datagram_key = 1 << 6;
inline constexpr int set_address = 1 << 7;
inline constexpr int set_path_mtu = 1 << 8;
inline constexpr int set_timeout = 1 << 9;
inline constexpr int set_retries = 1 << 10;
inline constexpr int set_receiver_retries = 1 << 11;
inline constexpr int set_receive_number = 1 << 12;
inline constexpr int set_reads_out = 1 << 13;
inline constexpr int set_receiver_timer = 1 << 15;
inline constexpr int set_send_number = 1 << 16;
inline constexpr int set_reads_in = 1 << 17;
inline constexpr int set_peer = 1 << 20;

struct DeviceAttributes {
  std::array<char, 64> firmware;
  std::uint64_t node_guid;
  std::uint64_t system_guid;
  std::uint64_t max_region_bytes;
  std::uint64_t page_sizes;
  std::uint32_t vendor;
  std::uint32_t part;
  std::uint32_t version;
  int max_queue_pairs;
  int max_requests;
  unsigned capabilities;
  int max_segments;
  int max_read_segments;
  int max_completion_queues;
  int max_completions;
  int max_regions;
  int max_domains;
  int max_reads_in;
  int max_eec_reads;
  int max_resources;
  int max_reads_out;
  int max_eec_reads_out;
  int atomics;
  std::array<int, 14> others;
  std::uint16_t max_partitions;
  std::uint8_t acknowledge_delay;
  std::uint8_t ports;
};

/// The library's function of that name fills no more than is here.
struct PortAttributes {
  int state;
  int max_mtu;
  int active_mtu;
  int gids;
  std::uint32_t capabilities;
  std::uint32_t max_message_bytes;
  std::uint32_t bad_partition_keys;
  std::uint32_t bad_datagram_keys;
  std::uint16_t partitions;
  std::uint16_t lid;
  std::uint16_t manager_lid;
  std::array<std::uint8_t, 10> others;
  std::uint16_t more_capabilities;
};

struct MemoryRegion {
  Context* context;
  ProtectionDomain* domain;
  void* begin;
  std::size_t bytes;
  std::uint32_t handle;
  std::uint32_t local_key;
  std::uint32_t remote_key;
};

struct Completion {
  std::uint64_t id;
  Status status;
  int kind;  // of the request; each path knows its own
  std::uint32_t vendor_error;
  std::uint32_t bytes;
  std::uint32_t immediate;  // network byte order
  std::uint32_t queue_pair;
  std::uint32_t source_queue_pair;
  unsigned flags;
  std::uint16_t partition;
  std::uint16_t source_lid;
  std::uint8_t service_level;
  std::uint8_t path_bits;
};

/// What a device tells of itself apart from completions.
enum class AsyncEventKind : int {
  completion_queue_error,
  queue_pair_fatal,
  request_error,
  access_error,
  established,
  send_queue_drained,
  path_migrated,
  path_migration_error,
  device_fatal,
  port_active,
  port_error,
  lid_change,
  partition_change,
  manager_change,
  shared_queue_error,
  shared_queue_limit,
  last_receive_reached,
  client_reregister,
  gid_change,
  work_queue_fatal,
};

struct AsyncEvent {
  union {
    void* of;  // a completion queue, a queue pair
    int port;
  };
  AsyncEventKind kind;
};

struct Segment {
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t local_key;
};

struct SendRequest {
  struct Remote {
    std::uint64_t address;
    std::uint32_t key;
  };
  struct Atomic {
    std::uint64_t address;
    std::uint64_t compare_or_add;
    std::uint64_t swap;
    std::uint32_t key;
  };
  struct Datagram {
    AddressHandle* to;
    std::uint32_t queue_pair;
    std::uint32_t key;
  };

  std::uint64_t id = 0;
  SendRequest* next = nullptr;
  Segment* segments = nullptr;
  int segment_count = 0;
  Operation operation = Operation::send;
  unsigned flags = 0;
  std::uint32_t immediate = 0;  // network byte order
  union {
    Atomic atomic{};
    Remote remote;
    Datagram datagram;
  };
  std::array<std::uint64_t, 7> others{};  // of shared receive queues, memory windows and segmentation
};

struct ReceiveRequest {
  std::uint64_t id = 0;
  ReceiveRequest* next = nullptr;
  Segment* segments = nullptr;
  int segment_count = 0;
};

struct CompletionChannel {
  Context* context;
  int descriptor;
  int references;
};

struct CompletionQueue {
  Context* context;
  CompletionChannel* channel;
  void* user;
  std::uint32_t handle;
  int entries;
};

struct QueuePair {
  Context* context;
  void* user;
  ProtectionDomain* domain;
  CompletionQueue* send_queue;
  CompletionQueue* receive_queue;
  void* shared_receive_queue;
  std::uint32_t handle;
  std::uint32_t number;
};

struct Capacity {
  std::uint32_t send_requests;
  std::uint32_t receive_requests;
  std::uint32_t send_segments;
  std::uint32_t receive_segments;
  std::uint32_t inline_bytes;
};

struct QueuePairSetup {
  void* user;
  CompletionQueue* send_queue;
  CompletionQueue* receive_queue;
  void* shared_receive_queue;
  Capacity capacity;
  Service service;
  int signals_all;
};

struct Route {
  alignas(8) Gid to;
  std::uint32_t flow_label;
  std::uint8_t gid_index;
  std::uint8_t hop_limit;
  std::uint8_t traffic_class;
};

struct Address {
  Route route;
  std::uint16_t lid;
  std::uint8_t service_level;
  std::uint8_t path_bits;
  std::uint8_t rate;
  std::uint8_t has_route;
  std::uint8_t port;
};

struct QueuePairAttributes {
  State state;
  State current;
  int path_mtu;
  int migration;
  std::uint32_t datagram_key;
  std::uint32_t receive_number;
  std::uint32_t send_number;
  std::uint32_t peer;
  unsigned access;
  Capacity capacity;
  Address address;
  Address other_address;
  std::uint16_t partition;
  std::uint16_t other_partition;
  std::uint8_t notifies_drained;
  std::uint8_t is_draining;
  std::uint8_t reads_out;
  std::uint8_t reads_in;
  std::uint8_t receiver_timer;
  std::uint8_t port;
  std::uint8_t timeout;
  std::uint8_t retries;
  std::uint8_t receiver_retries;
  std::uint8_t other_port;
  std::uint8_t other_timeout;
  std::uint32_t rate_limit;
};

/// An open device. What is called for each message goes through its table, as the header's inline functions do.
struct Context {
  struct Operations {
    std::array<void (*)(), 11> before_poll;
    int (*poll)(CompletionQueue*, int most, Completion*);
    int (*notify)(CompletionQueue*, int only_solicited);
    std::array<void (*)(), 12> before_post;
    int (*post_send)(QueuePair*, SendRequest*, SendRequest** refused);
    int (*post_receive)(QueuePair*, ReceiveRequest*, ReceiveRequest** refused);
    std::array<void (*)(), 5> after_post;
  };

  Device* device;
  Operations operations;
  int command_descriptor;
  int event_descriptor;
  int vectors;
  pthread_mutex_t mutex;
  void* compatibility;
};

}  // namespace fabricbench::verbs
