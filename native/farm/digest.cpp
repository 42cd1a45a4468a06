#include "farm/digest.hpp"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/failure.hpp"
#include "base/socket.hpp"

namespace fabricbench::farm {
namespace {

constexpr std::uint64_t prime_1 = 0x9E3779B185EBCA87U;
constexpr std::uint64_t prime_2 = 0xC2B2AE3D27D4EB4FU;
constexpr std::uint64_t prime_3 = 0x165667B19E3779F9U;
constexpr std::uint64_t prime_4 = 0x85EBCA77C2B2AE63U;
constexpr std::uint64_t prime_5 = 0x27D4EB2F165667C5U;

constexpr std::size_t read_bytes = std::size_t{256} << 10U;

template <class Word>
std::uint64_t word_at(const std::byte* bytes) {
  Word word = 0;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) {
    Word turned = 0;
    for (std::size_t i = 0; i < sizeof word; ++i) turned = static_cast<Word>(turned << 8U | (word >> (8 * i) & 0xffU));
    word = turned;
  }
  return word;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t word) { return std::rotl(lane + word * prime_2, 31) * prime_1; }

}  // namespace

std::array<std::uint64_t, 4> Digest::beginning() { return {prime_1 + prime_2, prime_2, 0, 0 - prime_1}; }

void Digest::take_stripe(const std::byte* stripe) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = mixed(lanes_[i], word_at<std::uint64_t>(stripe + 8 * i));
}

void Digest::add(std::span<const std::byte> bytes) {
  total_bytes_ += bytes.size();
  if (rest_bytes_ > 0) {
    const std::size_t taken = std::min(bytes.size(), stripe_bytes - rest_bytes_);
    std::copy_n(bytes.begin(), taken, rest_.begin() + static_cast<std::ptrdiff_t>(rest_bytes_));
    rest_bytes_ += taken;
    bytes = bytes.subspan(taken);
    if (rest_bytes_ < stripe_bytes) return;
    take_stripe(rest_.data());
    rest_bytes_ = 0;
  }
  for (; bytes.size() >= stripe_bytes; bytes = bytes.subspan(stripe_bytes)) take_stripe(bytes.data());
  std::ranges::copy(bytes, rest_.begin());
  rest_bytes_ = bytes.size();
}

std::uint64_t Digest::value() const {
  std::uint64_t hash = prime_5;
  if (total_bytes_ >= stripe_bytes) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * prime_1 + prime_4;
  }
  hash += total_bytes_;
  std::span<const std::byte> left(rest_.data(), rest_bytes_);
  for (; left.size() >= 8; left = left.subspan(8))
    hash = std::rotl(hash ^ mixed(0, word_at<std::uint64_t>(left.data())), 27) * prime_1 + prime_4;
  if (left.size() >= 4) {
    hash = std::rotl(hash ^ word_at<std::uint32_t>(left.data()) * prime_1, 23) * prime_2 + prime_3;
    left = left.subspan(4);
  }
  for (const std::byte one : left) hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(one) * prime_5, 11) * prime_1;
  hash = (hash ^ hash >> 33U) * prime_2;
  hash = (hash ^ hash >> 29U) * prime_3;
  return hash ^ hash >> 32U;
}

std::string digest_text(std::uint64_t digest) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 0xfU];
  return text;
}

FileDigest digest_of_file(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail_with_errno("open(" + path + ")", "it must be a file that can be read");
  std::vector<std::byte> bytes(read_bytes);
  Digest digest;
  FileDigest found;
  for (;;) {
    const ssize_t taken = read(file.get(), bytes.data(), bytes.size());
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) fail_with_errno("read(" + path + ")", "it must be a file that can be read");
    if (taken == 0) break;
    digest.add(std::span(bytes).first(static_cast<std::size_t>(taken)));
    found.bytes += static_cast<std::uint64_t>(taken);
  }
  found.digest = digest.value();
  return found;
}

}  // namespace fabricbench::farm
