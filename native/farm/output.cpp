#include "farm/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/failure.hpp"
#include "farm/digest.hpp"

namespace fabricbench::farm {
namespace {

constexpr std::size_t read_bytes = std::size_t{1} << 20U;
constexpr const char* hint = "it must be a file that can be read";

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)) {
  if (file_.get() < 0 && errno != ELOOP && errno != ENXIO) {
    fail_with_errno("it left no output: open(" + path_ + ")", hint);
  }
  struct stat about{};
  if (file_.get() < 0 || fstat(file_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    throw Failure(FailureCode::error, "it left no output: " + path_ + " is no regular file");
  }
  bytes_ = static_cast<std::uint64_t>(about.st_size);
}

std::uint64_t OutputFile::read(std::string* kept, const std::function<void()>& meanwhile) const {
  std::vector<std::byte> bytes(read_bytes);
  Digest digest;
  for (;;) {
    meanwhile();
    const ssize_t taken = ::read(file_.get(), bytes.data(), bytes.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) fail_with_errno("its output: read(" + path_ + ")", hint);
    if (taken == 0) return digest.value();
    const std::span<const std::byte> piece = std::span(bytes).first(static_cast<std::size_t>(taken));
    digest.add(piece);
    if (kept != nullptr) kept->append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
}

}  // namespace fabricbench::farm
