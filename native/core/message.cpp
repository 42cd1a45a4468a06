#include "core/message.hpp"

#include <nlohmann/json.hpp>

namespace fabricbench {
namespace {

/// What every message begins with.
struct Header {
  std::uint32_t type = 0;
  std::uint32_t reserved = 0;  // sent with the rest
  std::uint64_t payload_bytes = 0;
};

constexpr std::string_view advice = ": do all ranks run the same fabricbench-probe on the same kind of machine?";

}  // namespace

std::string pack_numbered(std::int32_t number, std::string_view text) {
  std::string payload(sizeof number, '\0');
  std::memcpy(payload.data(), &number, sizeof number);
  return payload.append(text);
}

std::pair<std::int32_t, std::string_view> unpack_numbered(std::string_view payload) {
  std::int32_t number = 0;
  if (payload.size() < sizeof number) throw ControlError("it needs a number of 4 bytes");
  std::memcpy(&number, payload.data(), sizeof number);
  return {number, payload.substr(sizeof number)};
}

void append_part(std::string& payload, std::string_view part) {
  const std::uint64_t bytes = part.size();
  payload.append(reinterpret_cast<const char*>(&bytes), sizeof bytes).append(part);
}

std::string_view take_part(std::string_view& payload) {
  std::uint64_t bytes = 0;
  if (payload.size() < sizeof bytes) throw ControlError("it ends where a length of 8 bytes is needed");
  std::memcpy(&bytes, payload.data(), sizeof bytes);
  payload.remove_prefix(sizeof bytes);
  if (payload.size() < bytes) {
    throw ControlError("a part of " + std::to_string(bytes) + " bytes is needed, " + std::to_string(payload.size()) +
                       " are left");
  }
  const std::string_view part = payload.substr(0, bytes);
  payload.remove_prefix(bytes);
  return part;
}

void refuse_rest(std::string_view payload) {
  if (!payload.empty()) throw ControlError(std::to_string(payload.size()) + " bytes are left behind it");
}

std::string pack_tree(const nlohmann::json& value) {
  std::string payload;
  nlohmann::json::to_cbor(value, payload);
  return payload;
}

nlohmann::json unpack_tree(std::string_view payload) {
  return nlohmann::json::from_cbor(payload.begin(), payload.end());
}

std::string seal(MessageType type, std::string_view payload) {
  const Header header{.type = static_cast<std::uint32_t>(type), .payload_bytes = payload.size()};
  std::string bytes;
  bytes.reserve(sizeof header + payload.size());
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  return bytes.append(payload);
}

Envelope open_envelope(std::string_view bytes) {
  Header header;
  const std::string size = "a message of " + std::to_string(bytes.size()) + " bytes";
  if (bytes.size() < sizeof header) throw ControlError(size + " is too short to be any" + std::string(advice));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.type >= names_of<MessageType>.size()) {
    throw ControlError(size + " is of an unknown type, " + std::to_string(header.type) + std::string(advice));
  }
  const Envelope envelope{static_cast<MessageType>(header.type), bytes.substr(sizeof header)};
  if (envelope.payload.size() != header.payload_bytes) {
    refuse_message(envelope, "it says that it has " + std::to_string(header.payload_bytes));
  }
  return envelope;
}

void refuse_message(const Envelope& envelope, std::string_view problem) {
  throw ControlError("\"" + std::string(name_of(envelope.type)) + "\" came with " +
                     std::to_string(envelope.payload.size()) + " bytes, which cannot be: " + std::string(problem) +
                     std::string(advice));
}

}  // namespace fabricbench
