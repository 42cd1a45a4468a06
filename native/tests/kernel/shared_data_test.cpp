#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "kernel/shared_data/content.hpp"
#include "kernel/shared_data/files.hpp"
#include "kernel/shared_data/sockets.hpp"

namespace fabricbench::shared_data {
namespace {

constexpr std::uint64_t block_bytes = 3 * Content::most_piece + 5;  // of several pieces, the last one short

/// Both ends of a connection over the loopback: the server's, then the client's.
std::pair<Path, Path> connected() {
  const Attachment attachment{.interface = find_interface("lo", std::nullopt)};
  const Secret secret{1, 2};
  Path server(attachment, {.secret = secret});
  Path client(attachment, {.secret = secret, .is_first = true});
  std::jthread accepting([&] { server.meet(client.address()); });
  client.meet(server.address());
  accepting.join();
  return {std::move(server), std::move(client)};
}

std::vector<Path> only(Path path) {
  std::vector<Path> paths;
  paths.push_back(std::move(path));
  return paths;
}

std::vector<std::byte> copied(const Content& content, std::uint64_t place, std::size_t bytes) {
  std::vector<std::byte> copy(bytes);
  content.copy(place, copy);
  return copy;
}

TEST(Content, IsKnownByItsPlace) {
  const Content content;
  std::vector<std::byte> some = copied(content, 12'345, block_bytes);
  EXPECT_TRUE(content.is_at(12'345, some));
  some.back() ^= std::byte{1};
  EXPECT_FALSE(content.is_at(12'345, some));
}

TEST(Content, OfPagesAndOfBlocksIsNeverAlike) {
  const Content content;
  const std::vector<std::byte> page = copied(content, 0, 4096);
  for (std::uint64_t number = 1; number < 100'000; ++number) ASSERT_FALSE(content.is_at(4096 * number, page)) << number;
  for (const std::uint64_t other : {std::uint64_t{1}, std::uint64_t{8}, Content::most_piece, std::uint64_t{50'000'000}})
    EXPECT_FALSE(content.is_at(other, page)) << other;
}

TEST(Server, ServesAndTakesBlocksOfSeveralClients) {
  const Content content;
  auto [server_1, client_1] = connected();
  auto [server_2, client_2] = connected();
  std::vector<Path> paths = only(std::move(server_1));
  paths.push_back(std::move(server_2));
  Server server(std::move(paths), content);
  // Clients stay until all are served: one that leaves before is a failure.
  std::array clients{Client(std::move(client_1), content), Client(std::move(client_2), content)};
  std::jthread serving([&] { server.serve(6); });
  const auto read_and_write = [&](Client& client, std::uint64_t begin) {
    EXPECT_TRUE(client.read(begin, block_bytes));
    EXPECT_TRUE(client.write(begin, block_bytes));
    EXPECT_TRUE(client.read(begin + block_bytes, 1));
  };
  std::jthread other([&] { read_and_write(clients[0], 7); });
  read_and_write(clients[1], std::uint64_t{1} << 40U);
}

TEST(Server, TellsAClientThatItWroteWrongBytes) {
  const Content content;
  auto [of_server, of_client] = connected();
  Server server(only(std::move(of_server)), content);
  std::jthread serving([&] { server.serve(2); });
  for (const bool is_wrong : {true, false}) {  // and forgets it with the next block
    std::vector<std::byte> block = copied(content, 64, block_bytes);
    if (is_wrong) block[block.size() / 2] ^= std::byte{4};
    const Request request{64, block_bytes, 1};
    of_client.send(std::as_bytes(std::span(&request, 1)));
    of_client.send(block);
    Verdict verdict{};
    of_client.receive(std::as_writable_bytes(std::span(&verdict, 1)));
    EXPECT_EQ(verdict, is_wrong ? Verdict::wrong : Verdict::right);
  }
}

TEST(Client, SeesThatWrongBytesCame) {
  const Content content;
  auto [of_server, of_client] = connected();
  std::jthread serving([&] {
    Request request;
    of_server.receive(std::as_writable_bytes(std::span(&request, 1)));
    std::vector<std::byte> block = copied(content, request.place, request.bytes);
    block.front() ^= std::byte{128};  // in the first piece: later ones that are right do not make it good
    of_server.send(block);
  });
  EXPECT_FALSE(Client(std::move(of_client), content).read(99, block_bytes));
}

TEST(Server, EndsWhereAClientIsGone) {
  const Content content;
  auto [of_server, of_client] = connected();
  Server server(only(std::move(of_server)), content);
  {
    const Path gone = std::move(of_client);
  }
  EXPECT_THROW(server.serve(1), Failure);
}

class Files : public testing::Test {
 protected:
  Files() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/data"; }

  Content content_;

 private:
  std::string folder_ = testing::TempDir() + "shared-data-test-XXXXXX";
};

TEST_F(Files, AreReadAsTheyWereWrittenWhateverTheBlock) {
  for (const std::uint64_t block : {std::uint64_t{1000}, std::uint64_t{8192}, 2 * DataFile::most_piece + 4097}) {
    const Stretch stretch{block, 3, 12'345};
    DataFile(path(), stretch, Direction::write).write(content_);
    EXPECT_EQ(std::filesystem::file_size(path()), stretch.bytes()) << block;
    EXPECT_EQ(DataFile(path(), stretch, Direction::read).read(content_), 0) << block;
    std::filesystem::remove(path());
  }
}

TEST_F(Files, TellHowManyBlocksAreWrong) {
  const Stretch stretch{4096, 5, 0};
  DataFile(path(), stretch, Direction::write).write(content_);
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  for (const int place : {4096, 4097, 4 * 4096}) file.seekp(place).put('\0').put('\0');
  file.close();
  EXPECT_EQ(DataFile(path(), stretch, Direction::read).read(content_), 2);
}

TEST_F(Files, ThatEndTooSoonAreAFailure) {
  const Stretch stretch{4096, 5, 0};
  DataFile(path(), stretch, Direction::write).write(content_);
  std::filesystem::resize_file(path(), 4096 * 3);
  EXPECT_THROW(DataFile(path(), stretch, Direction::read).read(content_), Failure);
}

TEST_F(Files, OfMemoryAloneAreKeptThere) {
  if (file_system_of("/dev/shm").name != "tmpfs") GTEST_SKIP() << "no tmpfs at /dev/shm";
  const std::string file = "/dev/shm/shared-data-test-" + std::to_string(getpid());
  const Stretch stretch{8192, 2, 0};
  DataFile(file, stretch, Direction::write).write(content_);
  EXPECT_EQ(DataFile(file, stretch, Direction::read).cache(), Cache::kept);
  std::filesystem::remove(file);
}

TEST_F(Files, OfBlocksThatAreNoPagesAreDroppedFromMemoryBeforeTheyAreRead) {
  if (file_system_of(testing::TempDir()).name == "tmpfs") GTEST_SKIP() << "a tmpfs has no other place for them";
  const Stretch stretch{1000, 20, 0};
  DataFile(path(), stretch, Direction::write).write(content_);
  EXPECT_EQ(DataFile(path(), stretch, Direction::read).cache(), Cache::dropped);
}

TEST(FileSystem, OfOneMachineIsKnownAsSuch) {
  EXPECT_FALSE(file_system_of("/proc").is_of_a_network);
  EXPECT_THROW(file_system_of("/nowhere/at/all"), Failure);
}

}  // namespace
}  // namespace fabricbench::shared_data
