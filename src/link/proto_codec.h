// Messages to the bytes of proto/link.proto and back.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "link/messages.h"

namespace orla::link {

inline constexpr std::size_t kMaxMessageBytes = 32 << 20;
// Of repeated fields of one message, all together: bounds the memory that a message takes when it is decoded.
inline constexpr std::size_t kMaxMessageElements = 1 << 20;
inline constexpr std::size_t kMaxNameBytes = 1 << 10;    // nodes, fleets, metrics, streams, inputs, reasons
inline constexpr std::size_t kMaxLabelBytes = 64 << 10;  // a label's name or value
inline constexpr std::size_t kMaxLabels = 64;            // of one group
inline constexpr std::size_t kMaxTextBytes = 64 << 10;   // for people; cut there, not refused, when encoded
// A Dictionary or an Acknowledge is cut into messages of about this many bytes.
inline constexpr std::size_t kSplitBytes = 1 << 20;

// Whole messages in order: one, or several for a Dictionary or an Acknowledge that would be large. InvalidArgument when
// the message breaks a rule of link.proto, ResourceExhausted when it is too large.
absl::StatusOr<std::vector<std::string>> encode(UpMessage message);
absl::StatusOr<std::vector<std::string>> encode(DownMessage message);

// Nothing: a kind of message of a newer minor version, to be skipped. InvalidArgument names the field, what was found
// and what was expected. A Hello or Welcome of another major is read as far as every major has it.
absl::StatusOr<std::optional<UpMessage>> decode_up(std::string_view bytes);
absl::StatusOr<std::optional<DownMessage>> decode_down(std::string_view bytes);

}  // namespace orla::link
