#include "base/object_reader.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace fabricbench {
namespace {

/// What was found, short enough for a message.
std::string shown(const nlohmann::json& value) {
  constexpr std::size_t longest = 60;
  const std::string text = json_text(value);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

}  // namespace

ObjectReader::ObjectReader(const nlohmann::json& value, std::string path) : value_(value), path_(std::move(path)) {
  if (!value.is_object()) throw InputError(path_, "must be an object, found " + shown(value));
}

const nlohmann::json* ObjectReader::find(std::string_view key) {
  known_.emplace(key);
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

const nlohmann::json& ObjectReader::need(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) throw InputError(path_of(key), "is missing");
  return *value;
}

const nlohmann::json* ObjectReader::find_given(std::string_view key) {
  const nlohmann::json* value = find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::int64_t read_integer(const nlohmann::json& value, const std::string& path, Range range) {
  if (!value.is_number_integer()) throw InputError(path, "must be an integer, found " + shown(value));
  const bool is_beyond =
      value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(range.high);
  const std::int64_t number = is_beyond ? range.high : value.get<std::int64_t>();
  if (is_beyond || number < range.low || number > range.high) {
    const bool is_open = range.high == std::numeric_limits<std::int64_t>::max();
    const std::string wanted = is_open ? "at least " + std::to_string(range.low)
                                       : "from " + std::to_string(range.low) + " to " + std::to_string(range.high);
    throw InputError(path, "must be " + wanted + ", found " + shown(value));
  }
  return number;
}

std::int64_t ObjectReader::integer(std::string_view key, Range range, std::optional<std::int64_t> fallback) {
  if (fallback && find(key) == nullptr) return *fallback;
  return read_integer(need(key), path_of(key), range);
}

std::int64_t ObjectReader::rounded(std::string_view key, Range range, std::optional<std::int64_t> fallback) {
  const nlohmann::json* value = find_given(key);
  if (value == nullptr) {
    if (fallback) return *fallback;
    throw InputError(path_of(key), "is missing");
  }
  const double number = value->is_number() ? std::round(value->get<double>()) : std::nan("");
  if (!(number >= static_cast<double>(range.low) && number <= static_cast<double>(range.high))) {
    throw InputError(path_of(key), "must be a number from " + std::to_string(range.low) + " to " +
                                       std::to_string(range.high) + ", found " + shown(*value));
  }
  return static_cast<std::int64_t>(number);
}

double ObjectReader::positive(std::string_view key, std::optional<double> fallback) {
  if (fallback && find(key) == nullptr) return *fallback;
  const nlohmann::json& value = need(key);
  if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>())) {
    throw InputError(path_of(key), "must be a number greater than 0, found " + shown(value));
  }
  return value.get<double>();
}

double ObjectReader::not_negative(std::string_view key, double fallback) {
  const nlohmann::json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !(value->get<double>() >= 0) || !std::isfinite(value->get<double>())) {
    throw InputError(path_of(key), "must be a number of at least 0, found " + shown(*value));
  }
  return value->get<double>();
}

double ObjectReader::seconds(std::string_view key, std::optional<double> fallback) {
  constexpr double year = 365.0 * 24 * 3600;
  const double time = positive(key, fallback);
  if (time > year) throw InputError(path_of(key), "must be a year at most, 31536000 s, found " + shown(need(key)));
  return time;
}

std::string ObjectReader::text(std::string_view key) {
  const nlohmann::json& value = need(key);
  if (!value.is_string()) throw InputError(path_of(key), "must be a string, found " + shown(value));
  return value.get<std::string>();
}

std::optional<std::string> ObjectReader::text_or_null(std::string_view key) {
  const nlohmann::json* value = find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  return text(key);
}

void ObjectReader::refuse_unknown() const {
  for (const auto& [key, value] : value_.items()) {
    if (known_.contains(key)) continue;
    std::string list;
    for (const std::string& name : known_) list += (list.empty() ? "" : ", ") + name;
    throw InputError(path_of(key), "is not a known key; known are " + list);
  }
}

}  // namespace fabricbench
