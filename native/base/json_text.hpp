// JSON from text and as text, compiled once: the header's parser and writer take the compiler seconds in every file
// that uses them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace fabricbench {

/// The value that a text holds. Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);

/// A value on one line; bytes that are no UTF-8 are replaced.
std::string json_text(const nlohmann::json& value);
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace fabricbench
