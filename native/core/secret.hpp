// What the ranks of one launch know, and nobody else; and what is made of it for everybody to see.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fabricbench {

/// 128 random bits.
using Secret = std::array<std::uint64_t, 2>;

/// Read 32 hexadecimal digits; nothing of any other text.
std::optional<Secret> parse_secret(std::string_view digits);

/// 64 bits that only who knows the secret can make of these words, and that tell nothing of it: SipHash-2-4 of the
/// words' bytes, lowest first (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012).
std::uint64_t derive(const Secret& secret, std::span<const std::uint64_t> words);

}  // namespace fabricbench
