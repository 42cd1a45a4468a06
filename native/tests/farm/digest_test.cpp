#include "farm/digest.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace fabricbench::farm {
namespace {

std::string digest_of(std::string_view text, std::size_t piece = 1000) {
  Digest digest;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    digest.add(std::as_bytes(std::span(text.substr(0, piece))));
  return digest_text(digest.value());
}

// Values of the reference implementation, xxhsum -H1.
TEST(Digest, IsXxh64) {
  EXPECT_EQ(digest_of(""), "ef46db3751d8e999");
  EXPECT_EQ(digest_of("a"), "d24ec4f1a98c6e5b");
  EXPECT_EQ(digest_of("abc"), "44bc2cf5ad770999");
  EXPECT_EQ(digest_of("Nobody inspects the spammish repetition"), "fbcea83c8a378bf1");
}

TEST(Digest, IsTheSameHoweverTheBytesCome) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += std::to_string(i * i);
  const std::string whole = digest_of(text, text.size());
  for (const std::size_t piece : {1U, 7U, 31U, 32U, 33U, 100U}) EXPECT_EQ(digest_of(text, piece), whole) << piece;
}

}  // namespace
}  // namespace fabricbench::farm
