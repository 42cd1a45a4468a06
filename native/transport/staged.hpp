// A path over a socket that notes when each of its messages passes the boundaries between its stages
// (core/stages.hpp): an instantiation of its own, so that the path without stages has nothing of it.
//
// Between the stamps of a sample it reads a clock twice and receives by recvmsg(2). Everything else happens in
// settle(), outside them: the kernel's stamps are taken from the socket's error queue and matched to their message by
// number.
#pragma once

#include <time.h>
// After time.h, whose timespec it takes for granted.
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/processor_use.hpp"
#include "base/scheduler_watch.hpp"
#include "base/socket.hpp"
#include "core/stages.hpp"
#include "transport/transport.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// A path over sockets of a kind says by its type `Stamps` how these tell of the kernel's stamps and mark their
/// packets.
///
/// is_origin() is whether a control message of the error queue says what was stamped (a sock_extended_err). The lab's
/// emulated switch keeps a row of the frames of stamped messages, which it knows by a mark (switch/crossings.hpp has
/// the same): mark() sets it on a socket before a cell, or it is in the number that the first message has.
template <class Path>
concept StampedPath = requires(const cmsghdr& told, int socket) {
  { Path::Stamps::is_origin(told) } -> std::same_as<bool>;
  { Path::Stamps::first_number } -> std::convertible_to<std::uint32_t>;
  Path::Stamps::mark(socket);
};

/// A path whose socket hands up a header of so many bytes before each message.
template <class Path>
concept HeadedPath = requires(const Path path) {
  { path.header_bytes() } -> std::same_as<std::size_t>;
};

template <StampedPath Path, Receive mode>
class Staged : public Path {
 public:
  using Path::Path;
  static constexpr std::uint32_t first_number = Path::Stamps::first_number;

  void set_bound(double seconds) {
    Path::set_bound(seconds);
    bound_ns_ = seconds_to_ns(seconds);
  }

  /// Of messages that are sent one after the other, before anything is received, the call of the first counts.
  void send(std::span<const std::byte> message) {
    if (!has_sent_) now_.before = read_clock_ns(CLOCK_REALTIME);
    has_sent_ = true;
    Path::send(message);
    // The kernel numbers datagrams one by one, and what is sent of a stream by its last byte.
    next_key_ += is_stream ? static_cast<std::uint32_t>(message.size()) : 1U;
  }

  bool receive(std::span<std::byte> message) {
    const bool has_come = take(message);
    now_.received = read_clock_ns(CLOCK_REALTIME);
    has_sent_ = false;
    return has_come;
  }

  void begin_stages(std::size_t messages) {
    rows_.assign(messages, {});
    keys_.assign(messages, 0);
    count_ = settled_ = 0;
    next_key_ = 0;
    refused_.clear();
    watch_ = std::make_unique<SchedulerWatch>();
    others_.emplace();
    Path::Stamps::mark(this->sending_descriptor());
    stamp(0);  // where it was on before, its numbers would go on
    discard_errors();
    constexpr int usual = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_TX_SOFTWARE |
                          SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    constexpr int of_streams = SOF_TIMESTAMPING_TX_ACK | number_from_here;
    if (is_stream ? stamp(usual | of_streams) || stamp(usual | SOF_TIMESTAMPING_TX_ACK) : stamp(usual)) return;
    const std::string reason = std::string("setsockopt(SO_TIMESTAMPING): ") + std::strerror(errno);
    for (const char* const boundary : {"scheduled", "departed", "arrived"}) refused_[boundary] = reason;
  }

  void keep(std::int64_t number, std::int64_t round_trip_ns) {
    if (count_ == rows_.size()) return;
    now_.number = number;
    now_.round_trip = round_trip_ns;
    rows_[count_] = now_;
    keys_[count_++] = next_key_ - 1;
    now_ = {};
  }

  void settle() {
    const std::int64_t received = settled_ < count_ ? rows_[settled_].received : 0;
    const std::int64_t resumed = watch_->take_switch_in(received);
    const std::int64_t waited = watch_->take_waited();
    if (settled_ < count_) {
      StageStamps& row = rows_[settled_++];
      row.arrived = software_stamp_ns(header_).value_or(0);
      row.resumed = resumed > row.arrived ? resumed : 0;
      row.waited = row.resumed > 0 ? waited : 0;
    }
    while (take_sent_stamp()) {
    }
  }

  /// The rows that were kept. The rank and who leads are the caller's to say.
  StageReport take_stages() {
    settle();
    stamp(0);
    refused_.insert(watch_->refused().begin(), watch_->refused().end());
    watch_.reset();
    rows_.resize(count_);
    count_ = settled_ = 0;
    return {.refused = std::exchange(refused_, {}),
            .busiest = others_ ? others_->busiest() : std::nullopt,
            .messages = std::exchange(rows_, {})};
  }

 private:
  static constexpr bool is_stream = Path::traits.framing == Framing::stream;
  static constexpr int number_from_here = 1 << 16;  // SOF_TIMESTAMPING_OPT_ID_TCP of kernel 6.2, new in headers as well
  static constexpr std::size_t rows_looked_through = 16;  // a stamp comes with its message or the next

  bool take(std::span<std::byte> message) {
    if constexpr (is_stream) {
      std::size_t done = 0;
      do {
        const ssize_t size = wait_for<mode>(seconds_to_ns(reliable_bound_seconds), "recvmsg(stamped)", [&](int flags) {
          return receive_some(message.subspan(done), flags | MSG_WAITALL);
        });
        if (size <= 0) [[unlikely]] {
          if (size < 0)
            throw Failure(FailureCode::timeout, "nothing came for 10 s: is the link up and the peer alive?");
          throw Failure(FailureCode::unreachable, "the peer closed the connection: see what it reports");
        }
        done += static_cast<std::size_t>(size);
      } while (done < message.size());
      return true;
    } else {
      std::size_t smallest = Path::traits.smallest_message;
      if constexpr (HeadedPath<Path>) smallest += this->header_bytes();
      return receive_datagram(smallest, [&] {
        return wait_for<mode>(bound_ns_, "recvmsg(stamped)", [&](int flags) { return receive_some(message, flags); });
      });
    }
  }

  /// Whatever its socket hands up before the message goes into a place apart. That the message begins behind it, the
  /// socket's filter has seen: the path's token lies there.
  ssize_t receive_some(std::span<std::byte> message, int flags) {
    if constexpr (HeadedPath<Path>) parts_[0] = {apart_.data(), this->header_bytes()};
    parts_[1] = {message.data(), message.size()};
    header_.msg_iov = &parts_[HeadedPath<Path> ? 0 : 1];
    header_.msg_iovlen = HeadedPath<Path> ? 2 : 1;
    header_.msg_control = control_.data();
    header_.msg_controllen = control_.size();
    return recvmsg(this->descriptor(), &header_, flags);
  }

  /// A path may send by another socket than it receives by.
  bool stamp(int flags) {
    const auto stamp_by = [&](int socket) {
      return setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags) == 0;
    };
    const int sending = this->sending_descriptor();
    return stamp_by(sending) && (sending == this->descriptor() || stamp_by(this->descriptor()));
  }

  void discard_errors() {
    std::array<std::byte, 512> scrap{};
    msghdr header{};
    do {
      header = {};
      header.msg_control = scrap.data();
      header.msg_controllen = scrap.size();
    } while (recvmsg(this->sending_descriptor(), &header, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
  }

  /// One stamp of what was sent; whether there was any.
  bool take_sent_stamp() {
    alignas(cmsghdr) std::array<std::byte, 512> control;
    msghdr header{};
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    if (recvmsg(this->sending_descriptor(), &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return false;
    const auto time_ns = software_stamp_ns(header);
    if (!time_ns) return true;
    for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
      if (!Path::Stamps::is_origin(*each)) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(each), sizeof error);
      if (error.ee_origin == SO_EE_ORIGIN_TIMESTAMPING) note_sent(error.ee_info, error.ee_data, *time_ns);
    }
    return true;
  }

  /// Of what was sent again the first stamp counts.
  void note_sent(std::uint32_t type, std::uint32_t key, std::int64_t time_ns) {
    if (count_ == 0) return;
    const std::uint32_t newest = next_key_ - 1;
    if (const auto ahead = static_cast<std::int32_t>(key - newest); ahead > 0) {
      // A datagram that the interface's queue had no room for took a number as well.
      if (keys_[count_ - 1] == newest) keys_[count_ - 1] = key;
      next_key_ = key + 1;
    }
    // The oldest row whose message was sent no earlier than what has the stamp.
    std::size_t found = 0;
    for (std::size_t back = 1; back <= std::min(count_, rows_looked_through); ++back) {
      if (static_cast<std::int32_t>(keys_[count_ - back] - key) < 0) break;
      found = back;
    }
    if (found == 0) return;
    StageStamps& row = rows_[count_ - found];
    if (type == SCM_TSTAMP_ACK) {
      // Of what was sent before it as well: an acknowledgement may release what the socket held back.
      if (row.acknowledged == 0 && time_ns >= row.before) row.acknowledged = time_ns;
    } else if (keys_[count_ - found] == key) {
      std::int64_t& place = type == SCM_TSTAMP_SCHED ? row.scheduled : row.departed;
      if (place == 0) place = time_ns;
    }
  }

  std::uint64_t bound_ns_ = 0;
  StageStamps now_;
  bool has_sent_ = false;  // since something was received last
  std::uint32_t next_key_ = 0;
  std::vector<StageStamps> rows_;
  std::vector<std::uint32_t> keys_;  // of the rows: what the kernel numbers the message sent by
  std::size_t count_ = 0;
  std::size_t settled_ = 0;  // rows whose received message has its stamps
  std::map<std::string, std::string> refused_;
  std::unique_ptr<SchedulerWatch> watch_;
  std::optional<OtherProcesses> others_;
  std::array<iovec, 2> parts_{};       // where something received goes: what lies before the message, the message
  std::array<std::byte, 60> apart_{};  // the longest header of IPv4
  msghdr header_{};
  alignas(cmsghdr) std::array<std::byte, 256> control_{};
};

}  // namespace fabricbench
