#include "kernel/shared_data/files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/failure.hpp"

namespace fabricbench::shared_data {
namespace {

constexpr std::string_view advice = "check the folder, its owner and the room in it";
constexpr std::uint64_t direct_alignment = 4096;

struct KnownFileSystem {
  std::uint32_t type;
  std::string_view name;
  bool is_of_a_network;
};

// The types of linux/magic.h, and those that cluster file systems tell in their own sources.
constexpr std::array known_file_systems{
    KnownFileSystem{0x6969, "nfs", true},
    KnownFileSystem{0xff534d42, "cifs", true},
    KnownFileSystem{0xfe534d42, "smb2", true},
    KnownFileSystem{0x517b, "smb", true},
    KnownFileSystem{0x00c36400, "ceph", true},
    KnownFileSystem{0x0bd00bd0, "lustre", true},
    KnownFileSystem{0x47504653, "gpfs", true},
    KnownFileSystem{0x19830326, "beegfs", true},
    KnownFileSystem{0x20030528, "orangefs", true},
    KnownFileSystem{0x5346414f, "afs", true},
    KnownFileSystem{0x6b414653, "kafs", true},
    KnownFileSystem{0x73757245, "coda", true},
    KnownFileSystem{0x01021997, "9p", true},
    KnownFileSystem{0x7461636f, "ocfs2", true},
    KnownFileSystem{0x01161970, "gfs2", true},
    KnownFileSystem{0x65735546, "fuse", true},
    KnownFileSystem{0xef53, "ext4", false},
    KnownFileSystem{0x58465342, "xfs", false},
    KnownFileSystem{0x9123683e, "btrfs", false},
    KnownFileSystem{0x01021994, "tmpfs", false},
    KnownFileSystem{0x794c7630, "overlayfs", false},
    KnownFileSystem{0x2fc12fc1, "zfs", false},
};

constexpr std::string_view word_of(Cache cache) {
  constexpr std::array<std::string_view, 3> words{"direct", "dropped", "kept"};
  return words[static_cast<std::size_t>(cache)];
}

void remove_all(const std::string& path) {
  std::error_code ignored;  // another rank may be removing it
  std::filesystem::remove_all(path, ignored);
}

/// Of all ranks the one that memory may have helped most. Collective.
Cache worst(Cache own, MPI_Comm communicator) {
  int value = static_cast<int>(own);
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, communicator);
  return static_cast<Cache>(value);
}

}  // namespace

FileSystem file_system_of(const std::string& path) {
  struct statfs found{};
  if (statfs(path.c_str(), &found) != 0) fail_with_errno("statfs(" + path + ")", advice);
  const auto type = static_cast<std::uint32_t>(found.f_type);
  const auto* known = std::ranges::find(known_file_systems, type, &KnownFileSystem::type);
  if (known != known_file_systems.end()) return {std::string(known->name), known->is_of_a_network};
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "type 0x%x", type);
  return {number.data(), false};
}

DataFile::DataFile(std::string path, const Stretch& stretch, Direction direction)
    : path_(std::move(path)),
      stretch_(stretch),
      piece_(std::min(stretch.block_bytes, most_piece), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, "a piece of a file") {
  open_for(direction);
  if (direction == Direction::write) return;
  if (cache_ == Cache::direct && !can_read_past_memory()) {
    go_through_memory();
    cache_ = Cache::dropped;
  }
  if (is_in_memory()) cache_ = Cache::kept;
}

void DataFile::open_for(Direction direction) {
  const int flags = direction == Direction::read ? O_RDONLY : O_WRONLY | O_CREAT;
  const bool is_aligned = piece_.size() % direct_alignment == 0;
  if (is_aligned) file_ = Descriptor(open(path_.c_str(), flags | O_CLOEXEC | O_DIRECT, 0600));
  if (file_.get() < 0 && (!is_aligned || errno == EINVAL)) {
    cache_ = direction == Direction::read ? Cache::dropped : Cache::kept;
    file_ = Descriptor(open(path_.c_str(), flags | O_CLOEXEC, 0600));
  }
  if (file_.get() < 0) fail_with_errno("open(" + path_ + ")", advice);
}

/// Some file systems refuse it only when something is read.
bool DataFile::can_read_past_memory() {
  return pread(file_.get(), piece_.data(), piece_.size(), 0) >= 0 || errno != EINVAL;
}

void DataFile::go_through_memory() {
  const int flags = fcntl(file_.get(), F_GETFL);
  if (fcntl(file_.get(), F_SETFL, flags & ~O_DIRECT) != 0) fail_with_errno("fcntl(" + path_ + ")", advice);
}

/// Whether any page of it is still in memory when all were to be dropped.
bool DataFile::is_in_memory() const {
  constexpr std::uint64_t most_at_once = std::uint64_t{1} << 30U;
  posix_fadvise(file_.get(), 0, 0, POSIX_FADV_DONTNEED);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (std::uint64_t begin = 0; begin < stretch_.bytes(); begin += most_at_once) {
    const auto bytes = static_cast<std::size_t>(std::min(most_at_once, stretch_.bytes() - begin));
    void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.get(), static_cast<off_t>(begin));
    if (mapped == MAP_FAILED && errno == ENODEV) return false;  // where files have no pages, FUSE with direct_io say
    if (mapped == MAP_FAILED) fail_with_errno("mmap(" + path_ + ")", advice);
    std::vector<unsigned char> pages((bytes + page - 1) / page, 1);
    mincore(mapped, bytes, pages.data());  // refused, nothing is known: it may be there
    munmap(mapped, bytes);
    if (std::ranges::any_of(pages, [](unsigned char one) { return (one & 1U) != 0; })) return true;
  }
  return false;
}

std::span<std::byte> DataFile::piece_at(std::uint64_t done) {
  return {piece_.data(), static_cast<std::size_t>(std::min<std::uint64_t>(piece_.size(), stretch_.bytes() - done))};
}

std::int64_t DataFile::read(const Content& content) {
  std::int64_t wrong = 0;
  std::uint64_t last_wrong = stretch_.blocks;
  for (std::uint64_t done = 0; done < stretch_.bytes();) {
    const auto piece = piece_at(done);
    read_piece(done, piece);
    const std::uint64_t block = done / stretch_.block_bytes;
    if (!content.is_at(stretch_.begin + done, piece) && std::exchange(last_wrong, block) != block) ++wrong;
    done += piece.size();
  }
  return wrong;
}

void DataFile::read_piece(std::uint64_t done, std::span<std::byte> piece) {
  for (std::size_t got = 0; got < piece.size();) {
    // Past the memory only whole pages can be asked for, at the end of the file as well.
    const std::size_t asked = got == 0 ? piece_.size() : piece.size() - got;
    const ssize_t size = pread(file_.get(), &piece[got], asked, static_cast<off_t>(done + got));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail_with_errno("read(" + path_ + ")", advice);
    if (size == 0) throw Failure(FailureCode::error, path_ + " ended before its data: does anything else write there?");
    got += static_cast<std::size_t>(size);
  }
}

void DataFile::write(const Content& content) {
  for (std::uint64_t done = 0; done < stretch_.bytes();) {
    const auto piece = piece_at(done);
    content.copy(stretch_.begin + done, piece);
    write_piece(done, piece);
    done += piece.size();
  }
  if (fsync(file_.get()) != 0) fail_with_errno("fsync(" + path_ + ")", advice);
}

void DataFile::write_piece(std::uint64_t done, std::span<const std::byte> piece) {
  for (std::size_t put = 0; put < piece.size();) {
    const ssize_t size = pwrite(file_.get(), &piece[put], piece.size() - put, static_cast<off_t>(done + put));
    if (size >= 0) {
      put += static_cast<std::size_t>(size);
    } else if (errno == EINVAL && (fcntl(file_.get(), F_GETFL) & O_DIRECT) != 0) {
      go_through_memory();
      // The last bytes of a file need not fill a page: all before them have passed memory by.
      if (piece.size() % direct_alignment == 0) cache_ = Cache::kept;
    } else if (errno != EINTR) {
      fail_with_errno("write(" + path_ + ")", advice);
    }
  }
}

SharedFolder::SharedFolder(MPI_Comm communicator, const std::string& path) : path_(path + "/shared-data-XXXXXX") {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  if (rank == 0 && mkdtemp(path_.data()) == nullptr) fail_with_errno("mkdtemp(" + path_ + ")", advice);
  MPI_Bcast(path_.data(), static_cast<int>(path_.size()), MPI_CHAR, 0, communicator);
  int is_everywhere = access(path_.c_str(), W_OK) == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &is_everywhere, 1, MPI_INT, MPI_MIN, communicator);
  if (is_everywhere == 1) return;
  remove_all(path_);
  throw Failure(FailureCode::error,
                path_ +
                    ", which rank 0 has made, is not on every node, or may not be written there: the "
                    "path must lead to one folder that all nodes mount");
}

SharedFolder::~SharedFolder() { remove_all(path_); }

std::string SharedFolder::file(std::string_view name, int rank) const {
  return path_ + "/" + std::string(name) + "-" + std::to_string(rank);
}

Files::Files(MPI_Comm communicator, const std::string& path, bool takes_any, std::uint64_t block_bytes,
             std::uint64_t blocks)
    : communicator_(communicator), block_bytes_(block_bytes), blocks_(blocks) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  file_system_ = file_system_of(path);
  if (!file_system_.is_of_a_network && !takes_any) {
    throw Failure(FailureCode::unsupported,
                  path + " is on " + file_system_.name +
                      ", a file system of this machine alone: what is read there crosses no fabric; name a folder of a "
                      "network or cluster file system, leave the path out to read from rank 0's memory, or say "
                      "--file-system any");
  }
  folder_.emplace(communicator, path);
}

void Files::prepare(Direction direction) {
  file_.reset();
  if (direction == Direction::read) {
    const int next = (rank_ + 1) % ranks_;
    DataFile(folder_->file("read", next), stretch_of_rank(next), Direction::write).write(content_);
    MPI_Barrier(communicator_);
  }
  const std::string_view name = direction == Direction::read ? "read" : "written";
  file_.emplace(folder_->file(name, rank_), stretch_of_rank(rank_), direction);
}

void Files::move(Direction direction) {
  if (direction == Direction::read) {
    wrong_blocks_ += file_->read(content_);
  } else {
    file_->write(content_);
  }
}

std::int64_t Files::take_wrong_blocks(Direction direction) {
  if (!cache_) cache_ = worst(file_->cache(), communicator_);
  file_.reset();
  if (direction == Direction::write) {
    MPI_Barrier(communicator_);
    const int before = (rank_ + ranks_ - 1) % ranks_;
    wrong_blocks_ +=
        DataFile(folder_->file("written", before), stretch_of_rank(before), Direction::read).read(content_);
  }
  return std::exchange(wrong_blocks_, 0);
}

std::vector<std::pair<std::string, std::string>> Files::facts() const {
  return {{"file system", file_system_.name}, {"cache", std::string(word_of(cache_.value_or(Cache::kept)))}};
}

}  // namespace fabricbench::shared_data
