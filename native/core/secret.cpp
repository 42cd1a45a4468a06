#include "core/secret.hpp"

#include <bit>
#include <charconv>
#include <cstddef>

namespace fabricbench {
namespace {

/// The four words of the paper's section 2, named as there.
class SipState {
 public:
  explicit SipState(const Secret& key)
      : v0_(key[0] ^ 0x736f6d6570736575U),
        v1_(key[1] ^ 0x646f72616e646f6dU),
        v2_(key[0] ^ 0x6c7967656e657261U),
        v3_(key[1] ^ 0x7465646279746573U) {}

  void compress(std::uint64_t word) {
    v3_ ^= word;
    rounds(2);
    v0_ ^= word;
  }
  std::uint64_t finish() {
    v2_ ^= 0xffU;
    rounds(4);
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  /// One half of a round's half: add, turn the other, and mix.
  static void mix(std::uint64_t& sum, std::uint64_t& other, int turn) {
    sum += other;
    other = std::rotl(other, turn) ^ sum;
  }
  void rounds(int count) {
    for (; count > 0; --count) {
      mix(v0_, v1_, 13);
      mix(v2_, v3_, 16);
      v0_ = std::rotl(v0_, 32);
      mix(v2_, v1_, 17);
      mix(v0_, v3_, 21);
      v2_ = std::rotl(v2_, 32);
    }
  }

  std::uint64_t v0_;
  std::uint64_t v1_;
  std::uint64_t v2_;
  std::uint64_t v3_;
};

}  // namespace

std::optional<Secret> parse_secret(std::string_view digits) {
  constexpr std::size_t of_a_word = 16;
  Secret secret{};
  if (digits.size() != secret.size() * of_a_word) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const std::string_view part = digits.substr(i * of_a_word, of_a_word);
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), secret[i], 16);
    if (error != std::errc() || end != part.data() + part.size()) return std::nullopt;
  }
  return secret;
}

std::uint64_t derive(const Secret& secret, std::span<const std::uint64_t> words) {
  SipState state(secret);
  for (const std::uint64_t word : words) state.compress(word);
  // The last word has the number of bytes, modulo 256, atop the bytes that fill no word: here there are none.
  state.compress(static_cast<std::uint64_t>(words.size() * sizeof(std::uint64_t)) << 56U);
  return state.finish();
}

}  // namespace fabricbench
