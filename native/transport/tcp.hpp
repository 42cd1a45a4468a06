// Layer tcp: a connection between the two addresses of the fabric, small messages sent at once (TCP_NODELAY) unless the
// cell asks for `nodelay = off`. The first end connects; the other accepts only the expected peer, which knows the
// path's secret.
#pragma once

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <limits>

#include "base/socket.hpp"
#include "transport/device.hpp"
#include "transport/internet.hpp"
#include "transport/waiting.hpp"

namespace fabricbench {

/// The part of a connection's life that is not timed.
class TcpConnection {
 public:
  TcpConnection(const Attachment& attachment, const Site& site, AddressFamily family, words::Nodelay nodelay)
      : site_(site),
        nodelay_(nodelay),
        scope_(scope_of(attachment)),
        own_address_(needed_address(attachment, family)),
        socket_(open_socket(domain_of(family), SOCK_STREAM, 0, "SOCK_STREAM")) {
    if (site.is_first) return;
    listener_ = std::move(socket_);
    bind_to(listener_, own_address_);
    if (listen(listener_.get(), 16) != 0) fail_with_errno("listen(tcp)");
  }
  /// Where the accepting end listens, `10.98.1.2:40123`.
  std::string address() const { return (site_.is_first ? own_address_ : SocketAddress::bound_to(listener_)).text(); }
  void meet(std::string_view peer) {
    const SocketAddress address = SocketAddress::parse(peer, scope_);
    if (site_.is_first) {
      connect_and_prove(address);
    } else {
      accept_and_check(address);
    }
    set_option(socket_, IPPROTO_TCP, TCP_NODELAY, nodelay_ == words::Nodelay::on ? 1 : 0, "TCP_NODELAY");
    remove_bounds(socket_);
  }

  const Descriptor& socket() const { return socket_; }
  /// By a reset, which the socket sends when it is connected to nowhere (connect(2)).
  void cut() {
    const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
    if (connect(socket_.get(), &nowhere, sizeof nowhere) != 0) fail_with_errno("connect(tcp) to nowhere");
  }
  void abandon() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

 private:
  /// What the connecting end says first. Both ends run on the same kind of machine, as MPI programs do.
  struct Greeting {
    Secret secret;
  };

  // A stranger that connects and says nothing must not keep the peer out.
  static constexpr double greeting_bound_seconds = 1.0;

  /// Whether the descriptor became ready before the deadline.
  static bool wait_until(const Descriptor& descriptor, short event, std::uint64_t deadline_ns) {
    for (;;) {
      const std::uint64_t now = Clock::now();
      if (now >= deadline_ns) return false;
      pollfd entry{descriptor.get(), event, 0};
      const int ready = poll(&entry, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) fail_with_errno("poll(tcp)");
    }
  }

  /// What became of a connection that is still being made: 0 or an errno.
  static int error_of_connecting(const Descriptor& socket) {
    if (!wait_until(socket, POLLOUT, Clock::now() + seconds_to_ns(meeting_bound_seconds))) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }

  [[noreturn]] static void fail_connecting(const SocketAddress& peer, int error) {
    fail_with_errno(error == EINPROGRESS || error == EAGAIN ? ETIMEDOUT : error, "connect(" + peer.text() + ")");
  }

  void connect_and_prove(const SocketAddress& peer) {
    // From the fabric's own address, so that the route taken is the fabric's.
    bind_to(socket_, own_address_);
    // SO_SNDTIMEO bounds connect() too.
    set_send_bound(socket_, meeting_bound_seconds);
    if (connect(socket_.get(), peer.get(), peer.size()) != 0) {
      // Interrupted by a signal, the connection goes on being made.
      const int error = errno == EINTR ? error_of_connecting(socket_) : errno;
      if (error != 0) fail_connecting(peer, error);
    }
    const Greeting greeting{site_.secret};
    if (::send(socket_.get(), &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting)
      fail_with_errno("send(tcp)");
  }

  /// One that has gone meanwhile is from nowhere.
  static bool is_from(const Descriptor& candidate, const SocketAddress& peer) {
    const std::optional<SocketAddress> from = SocketAddress::peer_of(candidate);
    return from && from->has_host_of(peer);
  }

  bool is_proven(const Descriptor& candidate) const {
    Greeting greeting{};
    // By poll(), which goes on after an interruption; so few bytes come all at once.
    return wait_until(candidate, POLLIN, Clock::now() + seconds_to_ns(greeting_bound_seconds)) &&
           recv(candidate.get(), &greeting, sizeof greeting, MSG_DONTWAIT) == sizeof greeting &&
           greeting.secret == site_.secret;
  }

  void accept_and_check(const SocketAddress& peer) {
    const std::uint64_t deadline = Clock::now() + seconds_to_ns(meeting_bound_seconds);
    while (wait_until(listener_, POLLIN, deadline)) {
      Descriptor candidate(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (candidate.get() < 0 || !is_from(candidate, peer) || !is_proven(candidate)) continue;
      socket_ = std::move(candidate);
      listener_ = Descriptor();
      return;
    }
    throw Failure(FailureCode::timeout,
                  "the peer at " + peer.host_text() + " did not connect within 5 s: check the route and the firewall");
  }

  Site site_;
  words::Nodelay nodelay_;
  std::uint32_t scope_;
  SocketAddress own_address_;
  Descriptor listener_;
  Descriptor socket_;
};

/// What is timed. send_some() and wait_for() (transport/waiting.hpp) repeat a system call until it has moved something,
/// asleep in it or spinning on it as `mode` says, and give up after 10 s.
template <Receive mode>
class Tcp {
 public:
  static constexpr Traits traits{
      .is_reliable = true, .is_ordered = true, .framing = Framing::stream, .smallest_message = 1};
  using Stamps = InternetStamps;

  Tcp(const Attachment& attachment, const Site& site, AddressFamily family = AddressFamily::ipv4,
      words::Nodelay nodelay = words::Nodelay::on)
      : connection_(attachment, site, family, nodelay) {}
  std::size_t largest_message() const { return std::numeric_limits<std::size_t>::max(); }
  std::string address() const { return connection_.address(); }
  void meet(std::string_view peer) {
    connection_.meet(peer);
    socket_ = connection_.socket().get();
  }
  void set_bound(double) {}  // the layer itself sends again what is lost; only a dead peer is given up

  void send(std::span<const std::byte> message) {
    std::size_t done = 0;
    do {
      done += send_some("send(tcp)",
                        [&] { return ::send(socket_, message.data() + done, message.size() - done, MSG_NOSIGNAL); });
    } while (done < message.size());
  }

  int descriptor() const { return socket_; }
  void abandon() { connection_.abandon(); }
  void cut() { connection_.cut(); }
  int sending_descriptor() const { return socket_; }
  bool has_full_interface() const { return false; }  // the layer itself waits for the interface
  GrantedBuffers granted_buffers() const { return fabricbench::granted_buffers(socket_, socket_); }

  std::size_t try_send(std::span<const std::byte> message) {
    const ssize_t size = ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size >= 0) [[likely]]
      return static_cast<std::size_t>(size);
    if (!is_empty_or_full(errno) && errno != EINTR) fail_with_errno("send(tcp)");
    return 0;
  }

  std::size_t try_receive(std::span<std::byte> message) {
    const ssize_t size = ::recv(socket_, message.data(), message.size(), MSG_DONTWAIT);
    if (size > 0) [[likely]]
      return static_cast<std::size_t>(size);
    if (size == 0) throw Failure(FailureCode::unreachable, "the peer closed the connection: see what it reports");
    if (!is_empty_or_full(errno) && errno != EINTR) fail_with_errno("recv(tcp)");
    return 0;
  }

  bool receive(std::span<std::byte> message) {
    std::size_t done = 0;
    do {
      const ssize_t size = wait_for<mode>(seconds_to_ns(reliable_bound_seconds), "recv(tcp)", [&](int flags) {
        return ::recv(socket_, message.data() + done, message.size() - done, flags | MSG_WAITALL);
      });
      if (size <= 0) [[unlikely]] {
        if (size < 0) throw Failure(FailureCode::timeout, "nothing came for 10 s: is the link up and the peer alive?");
        throw Failure(FailureCode::unreachable, "the peer closed the connection: see what it reports");
      }
      done += static_cast<std::size_t>(size);
    } while (done < message.size());
    return true;
  }

 private:
  TcpConnection connection_;
  int socket_ = -1;
};

static_assert(ByteStream<Tcp<Receive::blocking>> && ByteStream<Tcp<Receive::polling>>);

/// Through stream sockets.
struct TcpDevice : InternetDevice<Tcp> {
  static constexpr Layer layer = Layer::tcp;
  static constexpr std::string_view door = "socket";
  static constexpr bool has_flows = true;
  static constexpr bool has_stages = true;
  using InternetDevice::InternetDevice;
  template <Receive way>
  Tcp<way> open(const Site& site, const PlanProbe& probe) const {
    return {attachment(), site, word_parameter<AddressFamily>(probe, "address_family"),
            word_parameter<words::Nodelay>(probe, "nodelay")};
  }
  template <Receive way>
  Staged<Tcp<way>, way> open_staged(const Site& site, const PlanProbe& probe) const {
    return {attachment(), site, word_parameter<AddressFamily>(probe, "address_family"),
            word_parameter<words::Nodelay>(probe, "nodelay")};
  }
};

static_assert(Device<TcpDevice>);

}  // namespace fabricbench
