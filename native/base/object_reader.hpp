// Reads a JSON object strictly: a wrong type, a value out of range or an unknown key is an InputError that names its
// JSON path.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/failure.hpp"

namespace fabricbench {

/// The values between which an integer has to be, both included.
struct Range {
  std::int64_t low = 0;
  std::int64_t high = std::numeric_limits<std::int64_t>::max();
};

class ObjectReader {
 public:
  /// Take an object that outlives the reader; anything else is an error.
  ObjectReader(const nlohmann::json& value, std::string path);

  /// The value of a key, marked as known; nullptr where it is missing, an error where it is missing and needed.
  const nlohmann::json* find(std::string_view key);
  const nlohmann::json& need(std::string_view key);

  /// The same where it may be null, which counts as missing.
  const nlohmann::json* find_given(std::string_view key);

  std::int64_t integer(std::string_view key, Range range, std::optional<std::int64_t> fallback = std::nullopt);
  /// A number of any kind, rounded to a whole one; one that is not given takes the fallback.
  std::int64_t rounded(std::string_view key, Range range, std::optional<std::int64_t> fallback = std::nullopt);
  double positive(std::string_view key, std::optional<double> fallback = std::nullopt);
  double not_negative(std::string_view key, double fallback);
  /// A time greater than 0, a year at most: in nanoseconds it fits an integer many times over.
  double seconds(std::string_view key, std::optional<double> fallback = std::nullopt);
  std::string text(std::string_view key);
  std::optional<std::string> text_or_null(std::string_view key);

  /// Refuse keys that nobody asked for: a typo must not be ignored.
  void refuse_unknown() const;

  /// Of a key of this object, whose own path may be empty.
  std::string path_of(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }

 private:
  const nlohmann::json& value_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

/// An integer at a path, checked; used for elements of arrays too.
std::int64_t read_integer(const nlohmann::json& value, const std::string& path, Range range);

}  // namespace fabricbench
