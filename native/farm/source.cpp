#include "farm/source.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/failure.hpp"

namespace fabricbench::farm {
namespace {

namespace fs = std::filesystem;

/// A word at a place of a made-up input (SplitMix64, Steele et al. 2014: its output function over a counter).
std::uint64_t made_up_word(std::uint64_t counter) {
  std::uint64_t word = counter * 0x9E3779B97F4A7C15U;
  word = (word ^ word >> 30U) * 0xBF58476D1CE4E5B9U;
  word = (word ^ word >> 27U) * 0x94D049BB133111EBU;
  return word ^ word >> 31U;
}

std::vector<std::string> files_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_regular_file(status)) return {path.string()};
  if (!fs::is_directory(status)) {
    throw InputError("input", path.string() + " is neither a file nor a folder on this node, where rank 0 runs" +
                                  (error ? " (" + error.message() + ")" : ""));
  }
  std::vector<std::string> files;
  for (fs::directory_iterator each(path, error), end; !error && each != end; each.increment(error)) {
    if (each->is_regular_file()) files.push_back(each->path().string());
  }
  if (error) throw InputError("input", path.string() + " cannot be listed (" + error.message() + ")");
  std::ranges::sort(files);
  return files;
}

}  // namespace

Input::Input(int job, std::uint64_t bytes) : bytes_(bytes), seed_(static_cast<std::uint64_t>(job) << 40U) {}

Input::Input(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat about{};
  if (file_.get() < 0 || fstat(file_.get(), &about) != 0) fail_with_errno("open(" + path + ")", "the job needs it");
  bytes_ = static_cast<std::uint64_t>(about.st_size);
}

void Input::read(std::span<std::byte> into) {
  if (file_.get() < 0) {
    while (!into.empty()) {
      const std::uint64_t word = made_up_word(seed_ + at_ / sizeof(std::uint64_t));
      const std::size_t begin = at_ % sizeof word;
      const std::size_t size = std::min(sizeof word - begin, into.size());
      std::memcpy(into.data(), reinterpret_cast<const std::byte*>(&word) + begin, size);
      into = into.subspan(size);
      at_ += size;
    }
    return;
  }
  while (!into.empty()) {
    const ssize_t taken = ::read(file_.get(), into.data(), into.size());
    if (taken < 0) fail_with_errno("read(" + path_ + ")", "the job needs it");
    if (taken == 0) {
      throw Failure(FailureCode::error, path_ + " is shorter than it was when its job began: who writes it meanwhile?");
    }
    into = into.subspan(static_cast<std::size_t>(taken));
  }
}

Source::Source(const FarmPlan& plan) : made_up_bytes_(plan.input_bytes) {
  if (!plan.input_path) return;
  files_ = files_of(*plan.input_path);
  const bool is_folder = fs::is_directory(*plan.input_path);
  if (is_folder && files_.size() != static_cast<std::size_t>(plan.jobs)) {
    throw InputError("input", *plan.input_path + " has " + std::to_string(files_.size()) + " files, needed " +
                                  std::to_string(plan.jobs) + ", one for each job: correct `jobs`, or the folder");
  }
  if (files_.empty()) throw InputError("input", *plan.input_path + " has no files");
}

const std::string& Source::file_of(int job) const {
  return files_.size() == 1 ? files_.front() : files_[static_cast<std::size_t>(job)];
}

std::string Source::name_of(int job) const {
  return files_.empty() ? "input" : fs::path(file_of(job)).filename().string();
}

Input Source::open(int job) const {
  if (files_.empty()) return {job, made_up_bytes_};
  return Input(file_of(job));
}

}  // namespace fabricbench::farm
