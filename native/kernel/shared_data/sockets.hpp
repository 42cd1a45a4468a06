// The data in the memory of rank 0, which every other rank has a TCP connection to, from its own address on the fabric.
//
// A client asks for one block at a time. It compares what it reads; what it writes the server compares, and answers
// with a byte when it has the whole block. The server is one process, asleep while there is nothing to send or to take.
// Waits have no bound of their own: the kernel ends them where the other end is gone, or does not answer for half a
// minute.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/interface.hpp"
#include "kernel/shared_data/content.hpp"
#include "kernel/shared_data/medium.hpp"
#include "transport/tcp.hpp"

namespace fabricbench::shared_data {

using Path = Tcp<Receive::blocking>;

/// What a client says before each block. All ranks run on the same kind of machine, as MPI programs do.
struct Request {
  std::uint64_t place = 0;
  std::uint64_t bytes = 0;
  std::uint64_t is_write = 0;
};

/// What the server answers to a block that was written.
enum class Verdict : std::uint8_t { right = 1, wrong = 2 };

class Client {
 public:
  Client(Path path, const Content& content) : path_(std::move(path)), content_(content), piece_(Content::most_piece) {}
  /// Whether the block came as it must be.
  bool read(std::uint64_t place, std::uint64_t bytes);
  /// Whether the server says so.
  bool write(std::uint64_t place, std::uint64_t bytes);

 private:
  void ask(const Request& request) { path_.send(std::as_bytes(std::span(&request, 1))); }

  Path path_;
  const Content& content_;
  std::vector<std::byte> piece_;
};

class Server {
 public:
  Server(std::vector<Path> paths, const Content& content);
  /// Until so many blocks were read or written by all clients together.
  void serve(std::uint64_t blocks);

 private:
  /// A client, and how far its request and the block that it asks for have come.
  struct Visitor {
    bool is_asking() const { return asked < sizeof request; }
    bool is_read() const { return !is_asking() && request.is_write == 0; }
    Path path;
    Request request{};
    std::size_t asked = 0;
    std::uint64_t done = 0;
    bool is_wrong = false;
  };

  /// Send or take what goes without waiting; whether a block was completed by it.
  bool advance(Visitor& visitor);
  void take(Visitor& visitor);

  std::vector<Visitor> visitors_;
  const Content& content_;
  std::vector<std::byte> piece_;
};

class Sockets final : public Medium {
 public:
  /// Connect all ranks with rank 0 over this interface. Collective.
  Sockets(MPI_Comm communicator, const std::optional<Interface>& interface, std::uint64_t block_bytes,
          std::uint64_t blocks);
  int first_client() const override { return 1; }
  void prepare(Direction) override {}
  void move(Direction direction) override;
  std::int64_t take_wrong_blocks(Direction) override { return std::exchange(wrong_blocks_, 0); }
  std::vector<std::pair<std::string, std::string>> facts() const override { return {{"data", "in rank 0's memory"}}; }

 private:
  Content content_;
  Stretch stretch_;
  std::uint64_t blocks_of_all_;
  std::int64_t wrong_blocks_ = 0;
  std::unique_ptr<Server> server_;  // on rank 0
  std::unique_ptr<Client> client_;  // on every other one
};

}  // namespace fabricbench::shared_data
