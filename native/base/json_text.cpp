#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

namespace fabricbench {
namespace {

template <typename Json>
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return nlohmann::json::parse(text); }

std::string json_text(const nlohmann::json& value) { return text_of(value); }

std::string json_text(const nlohmann::ordered_json& value) { return text_of(value); }

}  // namespace fabricbench
