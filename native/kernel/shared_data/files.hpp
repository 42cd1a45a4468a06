// The data in files of a file system that all nodes mount: each rank reads a file that another one made, and writes one
// that another one compares. Files are opened past the node's memory (O_DIRECT) where the file system takes that, else
// what the memory holds of them is dropped before they are read; what is written has been sent when a pass ends
// (fsync).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/mapping.hpp"
#include "base/socket.hpp"
#include "kernel/shared_data/content.hpp"
#include "kernel/shared_data/medium.hpp"

namespace fabricbench::shared_data {

/// What this node's memory has to do with a file: it is passed by; it was emptied of it; or it may hold it.
enum class Cache { direct, dropped, kept };

/// A type of file system as statfs(2) knows it: its name, and whether its data may be on other machines.
struct FileSystem {
  std::string name;
  bool is_of_a_network = false;
};

/// Of what lies at this path; throws Failure where there is nothing.
FileSystem file_system_of(const std::string& path);

/// A file with the data of a client, which is read or written in pieces from its beginning to its end.
class DataFile {
 public:
  /// Pieces are blocks, and of larger blocks as much as file systems move at once.
  static constexpr std::uint64_t most_piece = std::uint64_t{4} << 20U;

  DataFile(std::string path, const Stretch& stretch, Direction direction);
  Cache cache() const { return cache_; }
  /// How many blocks have wrong bytes.
  std::int64_t read(const Content& content);
  /// And have all of it sent to where it is kept.
  void write(const Content& content);

 private:
  void open_for(Direction direction);
  bool can_read_past_memory();
  bool is_in_memory() const;
  void go_through_memory();
  std::span<std::byte> piece_at(std::uint64_t done);
  void read_piece(std::uint64_t done, std::span<std::byte> piece);
  void write_piece(std::uint64_t done, std::span<const std::byte> piece);

  std::string path_;
  Stretch stretch_;
  Mapping piece_;
  Descriptor file_;
  Cache cache_ = Cache::direct;
};

/// A folder of a run, which every rank sees: removed with all in it by whichever rank is done first, or fails.
class SharedFolder {
 public:
  /// Collective.
  SharedFolder(MPI_Comm communicator, const std::string& path);
  ~SharedFolder();
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::string file(std::string_view name, int rank) const;

 private:
  std::string path_;
};

class Files final : public Medium {
 public:
  /// Collective. Refuses file systems of one machine alone, unless `takes_any`.
  Files(MPI_Comm communicator, const std::string& path, bool takes_any, std::uint64_t block_bytes,
        std::uint64_t blocks);
  int first_client() const override { return 0; }
  void prepare(Direction direction) override;
  void move(Direction direction) override;
  std::int64_t take_wrong_blocks(Direction direction) override;
  std::vector<std::pair<std::string, std::string>> facts() const override;

 private:
  Stretch stretch_of_rank(int rank) const { return stretch_of(rank, block_bytes_, blocks_); }

  MPI_Comm communicator_;
  int rank_ = 0;
  int ranks_ = 1;
  std::uint64_t block_bytes_;
  std::uint64_t blocks_;
  Content content_;
  FileSystem file_system_;
  std::optional<SharedFolder> folder_;
  std::optional<DataFile> file_;
  std::optional<Cache> cache_;  // of all ranks, of what was read if anything was
  std::int64_t wrong_blocks_ = 0;
};

}  // namespace fabricbench::shared_data
