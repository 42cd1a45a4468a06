// What tells one input from another, and a copy from its original: XXH64 with seed 0 (the algorithm's published
// description, xxHash fast digest algorithm 0.1.1). It finds what is lost or damaged, not what is forged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace fabricbench::farm {

class Digest {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  static constexpr std::size_t stripe_bytes = 32;

  void take_stripe(const std::byte* stripe);

  std::array<std::uint64_t, 4> lanes_ = beginning();
  std::array<std::byte, stripe_bytes> rest_{};
  std::size_t rest_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;

  static std::array<std::uint64_t, 4> beginning();
};

/// As records have it: 16 digits.
std::string digest_text(std::uint64_t digest);

/// That of a file, and how long it is. Throws Failure where it cannot be read.
struct FileDigest {
  std::uint64_t digest = 0;
  std::uint64_t bytes = 0;
};
FileDigest digest_of_file(const std::string& path);

}  // namespace fabricbench::farm
