// An RDMA device that is open, at the port that leads into the fabric: its protection domain, the memory that is
// registered there, and what it can do. Buffers hold it, so that it is closed when the last is gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "core/message_buffer.hpp"
#include "rdma/library.hpp"
#include "rdma/port.hpp"
#include "transport/device.hpp"

namespace fabricbench {

class ConnectionManager;

class Adapter : public std::enable_shared_from_this<Adapter> {
 public:
  /// Throws the Failure that says which part is missing: library, kernel, provider, device, port or address.
  /// @param root  of the file system that has /sys
  static std::shared_ptr<Adapter> open(const Attachment& attachment, const std::filesystem::path& root = "/");
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  verbs::Context* context() const { return context_; }
  verbs::ProtectionDomain* domain() const { return domain_; }
  const RdmaPort& port() const { return port_; }
  const verbs::DeviceAttributes& attributes() const { return attributes_; }
  const verbs::PortAttributes& port_attributes() const { return port_attributes_; }
  /// Reads and atomic operations that a queue pair answers at once, and that it has outstanding: what the adapter can,
  /// up to what most adapters can (soft RoCE says 128, and has given up with 64 on three queue pairs).
  int reads_in() const { return std::clamp(attributes_.max_reads_in, 1, most_reads); }
  int reads_out() const { return std::clamp(attributes_.max_reads_out, 1, most_reads); }
  /// The access that peers' atomic operations need, where the adapter has them: others refuse memory and queue pairs
  /// that ask for it.
  unsigned atomic_access() const {
    return attributes_.atomics != 0 && !port_.is_iwarp ? verbs::access_remote_atomic : 0U;
  }
  /// The largest MTU of a path through the port, 4096 at most.
  std::size_t mtu() const { return std::size_t{128} << static_cast<unsigned>(port_attributes_.active_mtu); }

  /// How a rank is attached through it, as far as the device alone tells.
  RdmaAttachment attachment() const;

  /// Read what the device has told of itself since the last look, and throw the Failure of what ends a cell: it has
  /// failed, its link went down, peers know it by another address now. Between operations, never within a timed
  /// section. Once it has failed for good it throws that each time.
  void refuse_failed();
  /// Its reason; empty where there is none.
  std::string next_failure();
  /// Read what it has told before a cell, which is none of the cell's unless it has failed for good.
  void forget_events();

  /// What makes its connections, where its port speaks iWARP.
  ConnectionManager& manager() const { return *manager_; }
  /// The Failure of a port that has reliable connections only.
  void need_datagrams() const;

  /// Lend registered memory that peers may read and write who are told of it. Failure: too little may be locked.
  MessageBuffer allocate(std::size_t bytes, MemoryKind kind);

  /// Register memory as allocate() does, and give it back at once: for its time.
  void register_once(std::span<std::byte> memory) const;

  /// The keys of the memory that a message lies in.
  struct Region {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    std::uint32_t local_key = 0;
    std::uint32_t remote_key = 0;

    bool has(const std::byte* place) const { return place >= begin && place < end; }
  };
  const Region& region_of(const std::byte* place) const {
    if (last_ < regions_.size() && regions_[last_].has(place)) [[likely]]
      return regions_[last_];
    return find_region(place);
  }

 private:
  static constexpr int most_reads = 16;

  Adapter(RdmaPort port, const Attachment& attachment, std::filesystem::path root);
  /// What of an event ends a cell; empty where nothing does.
  std::string reason_of(const verbs::AsyncEvent& event);
  verbs::MemoryRegion* register_memory(std::byte* begin, std::size_t bytes) const;
  const Region& find_region(const std::byte* place) const;
  void forget(const std::byte* begin);

  RdmaPort port_;
  std::filesystem::path root_;
  std::string identity_;  // of the port when it was opened
  std::string failed_;    // why it can never be used again
  verbs::Context* context_ = nullptr;
  verbs::ProtectionDomain* domain_ = nullptr;
  verbs::DeviceAttributes attributes_{};
  verbs::PortAttributes port_attributes_{};
  std::vector<Region> regions_;   // by where they begin
  mutable std::size_t last_ = 0;  // the one that was asked for last
  std::unique_ptr<ConnectionManager> manager_;
};

}  // namespace fabricbench
