// What the ranks of a launch can say to one another: a closed list of messages, each a type of its own that says which
// of the list it is. A message travels with its type and its length, so that one that is cut, too long or another than
// the one awaited is refused by name. Who may say what when stands where it is said: probe/launch.hpp for rank 0 and
// the others, probe/agreement.hpp for the ranks of a cell, core/control.hpp for the end of a launch.
//
// To add a message: a word in the list, and a type with that `message_type`. It is sent as its bytes where it can be
// copied so; else it says how by `pack()` and `unpack()`.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <new>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/vocabulary.hpp"

namespace fabricbench {

enum class MessageType : std::uint32_t {
  // How a launch ends, from whoever ends it.
  end,
  heard,
  over,
  // Whether a rank that is silent waits as well.
  asked,
  waits,
  // What ranks say of themselves, on its way to rank 0.
  gathered,
  // How it begins.
  beginning,
  rank_info,
  hosts_of_ranks,
  clock_identity,
  clock_model,
  clock_check,
  // Rank 0 and the others.
  measure,
  congest,
  check_clocks,
  finish,
  begun,
  stop,
  report,
  send_parts,
  parts,
  // The ranks of a cell, to agree.
  whether,
  verdict,
  path_state,
  address,
  common_start,
  turn,
  turn_done,
  turns_over,
  // The same within a pattern.
  round_order,
  turn_order,
  stream_end,
  flood_tally,
  clock_bound,
  stamps,
  call_order,
  exposures,
  // Rank 0 of a farm and its workers.
  farm_job,
  farm_result,
  farm_alive,
  farm_over,
  farm_closed
};
template <>
inline constexpr std::array<std::string_view, 42> names_of<MessageType>{"end of the launch",
                                                                        "end heard",
                                                                        "all have heard",
                                                                        "question whether it waits",
                                                                        "answer that it waits",
                                                                        "what ranks say of themselves",
                                                                        "beginning",
                                                                        "rank's surroundings",
                                                                        "hosts of ranks",
                                                                        "clock's identity",
                                                                        "clock model",
                                                                        "clock check",
                                                                        "order to measure",
                                                                        "order to congest",
                                                                        "order to check clocks",
                                                                        "order to finish",
                                                                        "congestor has begun",
                                                                        "order to stop",
                                                                        "report",
                                                                        "order to send parts",
                                                                        "parts",
                                                                        "whether",
                                                                        "verdict",
                                                                        "state of a path",
                                                                        "address",
                                                                        "common start",
                                                                        "turn of a pair",
                                                                        "turn done",
                                                                        "turns over",
                                                                        "round order",
                                                                        "order of turns",
                                                                        "stream's end",
                                                                        "flood tally",
                                                                        "clock's bound",
                                                                        "stamps",
                                                                        "call order",
                                                                        "exposed memory",
                                                                        "job of a farm",
                                                                        "job's result",
                                                                        "worker's sign of life",
                                                                        "end of the farm",
                                                                        "closed worker"};

/// A rank said something that cannot be meant, or nothing for too long: the launch cannot go on.
class ControlError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What says of itself how it is sent. unpack() throws where the bytes are no such message.
template <class M>
concept PackedMessage = requires(const M& message, std::string_view payload) {
  { message.pack() } -> std::convertible_to<std::string>;
  { M::unpack(payload) } -> std::same_as<M>;
};

template <class M>
concept Message = std::same_as<std::remove_cv_t<decltype(M::message_type)>, MessageType> &&
                  (PackedMessage<M> || std::is_trivially_copyable_v<M>);

/// A message that says nothing but its type.
template <MessageType type>
struct Signal {
  static constexpr MessageType message_type = type;
};

/// One that is a text, or bytes that only its receiver can read.
template <MessageType type>
struct TextMessage {
  static constexpr MessageType message_type = type;
  std::string text;

  std::string pack() const { return text; }
  static TextMessage unpack(std::string_view payload) { return {std::string(payload)}; }
};

/// Whether something holds: of one rank on its way up, of all or of any on its way down.
struct Whether {
  static constexpr MessageType message_type = MessageType::whether;
  bool holds = false;
};

/// A number before a text, as several messages have it, and the two of it. Throws ControlError where there is none.
std::string pack_numbered(std::int32_t number, std::string_view text);
std::pair<std::int32_t, std::string_view> unpack_numbered(std::string_view payload);

/// Values one after another. Throws ControlError where the bytes are not a multiple of them.
template <class Value>
std::string pack_values(const std::vector<Value>& values) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}
template <class Value>
std::vector<Value> unpack_values(std::string_view payload) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (payload.size() % sizeof(Value) != 0) {
    throw ControlError("it needs multiples of " + std::to_string(sizeof(Value)) + " bytes");
  }
  std::vector<Value> values(payload.size() / sizeof(Value));
  if (!values.empty()) std::memcpy(values.data(), payload.data(), payload.size());
  return values;
}

/// One of several parts of a message, with its length before it. Taking it leaves what follows; throws ControlError
/// where it is cut.
void append_part(std::string& payload, std::string_view part);
std::string_view take_part(std::string_view& payload);
/// After the last part. Throws where anything is left.
void refuse_rest(std::string_view payload);

/// A tree of values, in CBOR; for what is small: its destructor takes memory, and ends the process where there is none.
/// The texts in it may be any bytes. Throws where the bytes are none or more than one.
std::string pack_tree(const nlohmann::json& value);
nlohmann::json unpack_tree(std::string_view payload);

/// A message that has come, not yet looked into. Valid as long as the bytes are.
struct Envelope {
  MessageType type;
  std::string_view payload;
};
std::string seal(MessageType type, std::string_view payload);
/// Throws ControlError where the bytes are no whole message.
Envelope open_envelope(std::string_view bytes);

/// Throw ControlError: what came as this type cannot be one.
[[noreturn]] void refuse_message(const Envelope& envelope, std::string_view problem);

template <Message M>
std::string encode(const M& message) {
  if constexpr (std::is_empty_v<M>) {
    return seal(M::message_type, {});
  } else if constexpr (PackedMessage<M>) {
    return seal(M::message_type, message.pack());
  } else {
    return seal(M::message_type, {reinterpret_cast<const char*>(&message), sizeof message});
  }
}

/// The message in an envelope of its type. Throws ControlError, which names the type, where it cannot be one;
/// std::bad_alloc where there is no memory for what is in it.
template <Message M>
M decode(const Envelope& envelope) {
  if (envelope.type != M::message_type)
    refuse_message(envelope, std::string("awaited was a ") += name_of(M::message_type));
  if constexpr (PackedMessage<M>) {
    try {
      return M::unpack(envelope.payload);
    } catch (const std::bad_alloc&) {
      throw;  // nothing is wrong with the message
    } catch (const std::exception& error) {
      refuse_message(envelope, error.what());
    }
  } else {
    constexpr std::size_t size = std::is_empty_v<M> ? 0 : sizeof(M);
    if (envelope.payload.size() != size) refuse_message(envelope, "it needs " + std::to_string(size));
    M message{};
    if constexpr (size > 0) std::memcpy(&message, envelope.payload.data(), size);
    return message;
  }
}

}  // namespace fabricbench
