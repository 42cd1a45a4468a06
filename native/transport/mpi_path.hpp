// Paths of layer mpi (transport/mpi.hpp): MPI_Send and MPI_Recv, posted for streams, on a communicator of their own.
#pragma once

#include <mpi.h>

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "core/set_aside.hpp"
#include "transport/device.hpp"

namespace fabricbench {

class MpiPool;

class MpiPath {
 public:
  using Pool = MpiPool;
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::message, .smallest_message = 0};

  MpiPath(const Attachment& attachment, const Site& site)
      : communicator_(attachment.communicator), peer_(site.peer_rank), tag_(tag_of(site)) {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  }
  std::size_t largest_message() const { return std::numeric_limits<int>::max(); }
  std::string address() const { return {}; }  // MPI knows where its ranks are
  void meet(std::string_view) {}
  void set_bound(double) {}  // MPI has none; the launch's time limit stands for it

  void send(std::span<const std::byte> message) {
    check(MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag_, communicator_), "MPI_Send");
  }
  bool receive(std::span<std::byte> message) {
    check(MPI_Recv(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag_, communicator_,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    return true;
  }

  // As many as the bandwidth tests that MPI's users know keep under way.
  static constexpr std::size_t slots = 64;

  void post_send(std::size_t slot, std::span<const std::byte> message) {
    check(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag_, communicator_,
                    &requests_[slot]),
          "MPI_Isend");
  }
  void post_receive(std::size_t slot, std::span<std::byte> message) {
    check(MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, peer_, tag_, communicator_,
                    &requests_[slot]),
          "MPI_Irecv");
  }
  void wait(std::size_t slot) { check(MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE), "MPI_Wait"); }
  void wait_all(std::size_t count) {
    check(MPI_Waitall(static_cast<int>(count), requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }
  void release_send(std::size_t slot, std::shared_ptr<const void> memory) {
    set_aside(std::exchange(requests_[slot], MPI_REQUEST_NULL), std::move(memory));
  }
  void release_receive(std::size_t slot, std::shared_ptr<const void> memory) {
    take_back_receive(std::exchange(requests_[slot], MPI_REQUEST_NULL), std::move(memory));
  }
  MpiPool make_pool(std::size_t places) const;

  void leave_unmatched(std::size_t messages) {
    if (messages == 0) return;
    for (std::size_t i = 0; i < messages; ++i) send_empty(unmatched_tag);
    send_empty(all_left_tag);
    receive_empty(all_left_tag);  // messages of a rank do not overtake one another: all that it left are here
  }
  void take_unmatched(std::size_t messages) {
    for (std::size_t i = 0; i < messages; ++i) receive_empty(unmatched_tag);
  }

 private:
  friend class MpiPool;

  // Beyond those of paths.
  static constexpr int unmatched_tag = 32767;
  static constexpr int all_left_tag = 32766;

  void send_empty(int tag) { check(MPI_Send(nullptr, 0, MPI_BYTE, peer_, tag, communicator_), "MPI_Send"); }
  void receive_empty(int tag) {
    check(MPI_Recv(nullptr, 0, MPI_BYTE, peer_, tag, communicator_, MPI_STATUS_IGNORE), "MPI_Recv");
  }

  /// MPI guarantees tags up to 32767; 32765 is that of the clocks (core/clock_sync.cpp).
  static int tag_of(const Site& site) {
    constexpr int most_flows = 256;
    constexpr unsigned generations = 127;
    return 1 + site.flow + most_flows * static_cast<int>(site.generation % generations);
  }

  static std::array<MPI_Request, slots> no_requests() {
    std::array<MPI_Request, slots> requests{};
    requests.fill(MPI_REQUEST_NULL);
    return requests;
  }

  static void check(int error, const char* call) {
    if (error == MPI_SUCCESS) [[likely]]
      return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(error, text.data(), &length);
    throw Failure(FailureCode::error, std::string(call) + " failed: " + text.data());
  }

  MPI_Comm communicator_;
  int peer_;
  int tag_;
  std::array<MPI_Request, slots> requests_ = no_requests();
};

/// Messages under way on many paths.
class MpiPool {
 public:
  explicit MpiPool(std::size_t places)
      : requests_(places, MPI_REQUEST_NULL), complete_(places), statuses_(places, MPI_Status{}) {}
  MpiPool(const MpiPool&) = delete;
  MpiPool& operator=(const MpiPool&) = delete;

  void post_send(std::size_t place, MpiPath& path, std::span<const std::byte> message) {
    MpiPath::check(MPI_Isend(message.data(), static_cast<int>(message.size()), MPI_BYTE, path.peer_, path.tag_,
                             path.communicator_, &requests_[place]),
                   "MPI_Isend");
  }
  void post_receive(std::size_t place, MpiPath& path, std::span<std::byte> message) {
    MpiPath::check(MPI_Irecv(message.data(), static_cast<int>(message.size()), MPI_BYTE, path.peer_, path.tag_,
                             path.communicator_, &requests_[place]),
                   "MPI_Irecv");
  }
  std::span<const int> test() {
    int count = 0;
    MpiPath::check(
        MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, complete_.data(), statuses_.data()),
        "MPI_Testsome");
    return std::span(complete_).first(count == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(count));
  }
  void release_send(std::size_t place, std::shared_ptr<const void> memory) {
    set_aside(std::exchange(requests_[place], MPI_REQUEST_NULL), std::move(memory));
  }
  void release_receive(std::size_t place, std::shared_ptr<const void> memory) {
    take_back_receive(std::exchange(requests_[place], MPI_REQUEST_NULL), std::move(memory));
  }

 private:
  std::vector<MPI_Request> requests_;
  std::vector<int> complete_;
  std::vector<MPI_Status> statuses_;
};

inline MpiPool MpiPath::make_pool(std::size_t places) const { return MpiPool(places); }

static_assert(PoolingTransport<MpiPath>);

}  // namespace fabricbench
