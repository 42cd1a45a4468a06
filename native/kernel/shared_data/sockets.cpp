#include "kernel/shared_data/sockets.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>

#include <array>
#include <string>

namespace fabricbench::shared_data {
namespace {

constexpr int silence_ends_after_seconds = 30;
constexpr int seconds_between_looks = 5;

/// Have the kernel end what waits for a peer that is gone.
void end_waits_for_the_gone(const Path& path) {
  const auto set = [&](int level, int option, int value, std::string_view name) {
    if (setsockopt(path.descriptor(), level, option, &value, sizeof value) != 0) fail_with_errno(name);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds_between_looks, "TCP_KEEPIDLE");
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds_between_looks, "TCP_KEEPINTVL");
  set(IPPROTO_TCP, TCP_KEEPCNT, silence_ends_after_seconds / seconds_between_looks, "TCP_KEEPCNT");
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, silence_ends_after_seconds * 1000, "TCP_USER_TIMEOUT");
}

/// An address with its port, as ranks tell each other: text() and zeros.
using Told = std::array<char, 64>;

Told told(const std::string& address) {
  Told words{};
  address.copy(words.data(), words.size() - 1);
  return words;
}

/// What all ranks of the launch know, and nobody else. Collective.
Secret agree_on_secret(MPI_Comm communicator) {
  Secret secret{};
  if (getrandom(secret.data(), sizeof secret, 0) != sizeof secret) fail_with_errno("getrandom");
  MPI_Bcast(secret.data(), static_cast<int>(secret.size()), MPI_UINT64_T, 0, communicator);
  return secret;
}

/// Open this rank's ends and connect them: on rank 0 with each other rank in turn, on the others with rank 0.
/// Collective.
std::vector<Path> connect_all(MPI_Comm communicator, const std::optional<Interface>& interface) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  const Attachment attachment{.interface = interface};
  const Secret secret = agree_on_secret(communicator);
  std::vector<Path> paths;
  std::vector<Told> listening(static_cast<std::size_t>(ranks));
  for (int other = rank == 0 ? 1 : 0; other < (rank == 0 ? ranks : 1); ++other) {
    paths.emplace_back(attachment, Site{.secret = secret, .peer_rank = other, .is_first = rank > 0});
    if (rank == 0) listening[static_cast<std::size_t>(other)] = told(paths.back().address());
  }
  const Told own = rank == 0 ? Told{} : told(paths.front().address());
  std::vector<Told> clients(static_cast<std::size_t>(ranks));
  Told server{};
  MPI_Gather(own.data(), sizeof own, MPI_CHAR, clients.data(), sizeof own, MPI_CHAR, 0, communicator);
  MPI_Scatter(listening.data(), sizeof server, MPI_CHAR, server.data(), sizeof server, MPI_CHAR, 0, communicator);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    paths[i].meet(rank == 0 ? clients[i + 1].data() : server.data());
    end_waits_for_the_gone(paths[i]);
  }
  return paths;
}

}  // namespace

bool Client::read(std::uint64_t place, std::uint64_t bytes) {
  ask({place, bytes, 0});
  bool is_right = true;
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = std::span(piece_).first(content_.from(place + done, bytes - done).size());
    path_.receive(piece);
    is_right = content_.is_at(place + done, piece) && is_right;
    done += piece.size();
  }
  return is_right;
}

bool Client::write(std::uint64_t place, std::uint64_t bytes) {
  ask({place, bytes, 1});
  for (std::uint64_t done = 0; done < bytes;) {
    const auto piece = content_.from(place + done, bytes - done);
    path_.send(piece);
    done += piece.size();
  }
  Verdict verdict{};
  path_.receive(std::as_writable_bytes(std::span(&verdict, 1)));
  return verdict == Verdict::right;
}

Server::Server(std::vector<Path> paths, const Content& content) : content_(content), piece_(Content::most_piece) {
  visitors_.reserve(paths.size());
  for (Path& path : paths) visitors_.push_back({.path = std::move(path)});
}

void Server::serve(std::uint64_t blocks) {
  std::vector<pollfd> waiting(visitors_.size());
  while (blocks > 0) {
    for (std::size_t i = 0; i < visitors_.size(); ++i) {
      const bool sends = visitors_[i].is_read();
      waiting[i] = {visitors_[i].path.descriptor(), static_cast<short>(sends ? POLLOUT : POLLIN), 0};
    }
    // Not poll(), of which libraries that spare processors make something else.
    if (ppoll(waiting.data(), waiting.size(), nullptr, nullptr) < 0) {
      if (errno == EINTR) continue;
      fail_with_errno("ppoll");
    }
    for (std::size_t i = 0; i < visitors_.size() && blocks > 0; ++i) {
      if (waiting[i].revents != 0 && advance(visitors_[i])) --blocks;
    }
  }
}

bool Server::advance(Visitor& visitor) {
  if (visitor.is_asking()) {
    const auto request = std::as_writable_bytes(std::span(&visitor.request, 1));
    visitor.asked += visitor.path.try_receive(request.subspan(visitor.asked));
    return false;
  }
  if (visitor.is_read()) {
    const Request& request = visitor.request;
    visitor.done += visitor.path.try_send(content_.from(request.place + visitor.done, request.bytes - visitor.done));
  } else {
    take(visitor);
  }
  if (visitor.done < visitor.request.bytes) return false;
  if (!visitor.is_read()) {
    const Verdict verdict = visitor.is_wrong ? Verdict::wrong : Verdict::right;
    visitor.path.send(std::as_bytes(std::span(&verdict, 1)));
  }
  visitor.asked = 0;
  visitor.done = 0;
  visitor.is_wrong = false;
  return true;
}

void Server::take(Visitor& visitor) {
  const std::uint64_t place = visitor.request.place + visitor.done;
  const auto room = content_.from(place, visitor.request.bytes - visitor.done).size();
  const std::size_t taken = visitor.path.try_receive(std::span(piece_).first(room));
  visitor.is_wrong = !content_.is_at(place, std::span(piece_).first(taken)) || visitor.is_wrong;
  visitor.done += taken;
}

Sockets::Sockets(MPI_Comm communicator, const std::optional<Interface>& interface, std::uint64_t block_bytes,
                 std::uint64_t blocks) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  stretch_ = stretch_of(rank - 1, block_bytes, blocks);
  blocks_of_all_ = blocks * static_cast<std::uint64_t>(ranks - 1);
  std::vector<Path> paths = connect_all(communicator, interface);
  if (rank == 0) {
    server_ = std::make_unique<Server>(std::move(paths), content_);
  } else {
    client_ = std::make_unique<Client>(std::move(paths.front()), content_);
  }
}

void Sockets::move(Direction direction) {
  if (server_) {
    server_->serve(blocks_of_all_);
    return;
  }
  for (std::uint64_t block = 0; block < stretch_.blocks; ++block) {
    const std::uint64_t place = stretch_.begin + block * stretch_.block_bytes;
    const bool is_right = direction == Direction::read ? client_->read(place, stretch_.block_bytes)
                                                       : client_->write(place, stretch_.block_bytes);
    wrong_blocks_ += is_right ? 0 : 1;
  }
}

}  // namespace fabricbench::shared_data
