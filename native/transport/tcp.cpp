#include "transport/tcp.hpp"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>

namespace fabricbench {
namespace {

/// What the connecting end says first. Both ends run on the same kind of machine, as MPI programs do.
struct Greeting {
  std::uint32_t token;
};

// A stranger that connects and says nothing must not keep the peer out.
constexpr double greeting_bound_seconds = 1.0;

/// Whether the descriptor became ready before the deadline.
bool wait_until(const Descriptor& descriptor, short event, std::uint64_t deadline_ns) {
  for (;;) {
    const std::uint64_t now = KernelClock::now();
    if (now >= deadline_ns) return false;
    pollfd entry{descriptor.get(), event, 0};
    const int ready = poll(&entry, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail_with_errno("poll(tcp)");
  }
}

/// What became of a connection that is still being made: 0 or an errno.
int error_of_connecting(const Descriptor& socket) {
  if (!wait_until(socket, POLLOUT, KernelClock::now() + seconds_to_ns(meeting_bound_seconds))) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

[[noreturn]] void fail_connecting(const sockaddr_in& peer, int error) {
  fail_with_errno(error == EINPROGRESS || error == EAGAIN ? ETIMEDOUT : error,
                  "connect(" + endpoint_text(ntohl(peer.sin_addr.s_addr), ntohs(peer.sin_port)) + ")");
}

}  // namespace

TcpConnection::TcpConnection(const Attachment& attachment, const Site& site)
    : site_(site),
      own_address_(needed_address(attachment)),
      socket_(open_socket(AF_INET, SOCK_STREAM, 0, "SOCK_STREAM")) {
  if (site.is_first) return;
  listener_ = std::move(socket_);
  bind_to(listener_, socket_address(own_address_, 0));
  if (listen(listener_.get(), 16) != 0) fail_with_errno("listen(tcp)");
}

std::string TcpConnection::address() const {
  return endpoint_text(own_address_, site_.is_first ? std::uint16_t{0} : bound_port(listener_));
}

void TcpConnection::meet(std::string_view peer) {
  const sockaddr_in address = parse_endpoint(peer);
  if (site_.is_first) {
    connect_and_prove(address);
  } else {
    accept_and_check(address.sin_addr.s_addr);
  }
  set_option(socket_, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  remove_bounds(socket_);
}

void TcpConnection::abandon() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void TcpConnection::connect_and_prove(const sockaddr_in& peer) {
  // From the fabric's own address, so that the route taken is the fabric's.
  bind_to(socket_, socket_address(own_address_, 0));
  // SO_SNDTIMEO bounds connect() too.
  set_send_bound(socket_, meeting_bound_seconds);
  if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    // Interrupted by the watchdog, the connection goes on being made.
    const int error = errno == EINTR ? error_of_connecting(socket_) : errno;
    if (error != 0) fail_connecting(peer, error);
  }
  const Greeting greeting{site_.token};
  if (::send(socket_.get(), &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) fail_with_errno("send(tcp)");
}

bool TcpConnection::is_proven(const Descriptor& candidate) const {
  Greeting greeting{};
  // By poll(), which goes on after an interruption; so few bytes come all at once.
  return wait_until(candidate, POLLIN, KernelClock::now() + seconds_to_ns(greeting_bound_seconds)) &&
         recv(candidate.get(), &greeting, sizeof greeting, MSG_DONTWAIT) == sizeof greeting &&
         greeting.token == site_.token;
}

void TcpConnection::accept_and_check(std::uint32_t peer_address) {
  const std::uint64_t deadline = KernelClock::now() + seconds_to_ns(meeting_bound_seconds);
  while (wait_until(listener_, POLLIN, deadline)) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    Descriptor candidate(accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC));
    if (candidate.get() < 0 || from.sin_addr.s_addr != peer_address || !is_proven(candidate)) continue;
    socket_ = std::move(candidate);
    listener_ = Descriptor();
    return;
  }
  throw Failure(FailureCode::timeout, "the peer at " + address_text(ntohl(peer_address)) +
                                          " did not connect within 5 s: check the route and the firewall");
}

}  // namespace fabricbench
