// The frame around every encoded value that is stored or sent.
//
//   kind       1 byte   which value ("R" rows, "S" edge state, "N" note, "P" partial)
//   version    1 byte   of that kind's format, from 1
//   body
//   checksum   8 bytes  hash64 of everything before, little-endian
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes.h"

namespace orla::codec {

struct Format {
  char kind;
  std::uint8_t version;
  const char* name;  // for messages
};

// Kind and version, to which the body is appended.
std::string begin_envelope(const Format& format);
// Appends the checksum.
void end_envelope(std::string& bytes);
// The body, a view into `bytes`. DATA_LOSS when the checksum differs, INVALID_ARGUMENT for another kind, UNIMPLEMENTED
// for a version this program does not read.
absl::StatusOr<std::string_view> open_envelope(const Format& format, std::string_view bytes);

// Of what kind so ever; 0 of bytes too few to have one.
std::uint8_t version_of(std::string_view bytes);

// INVALID_ARGUMENT: "<name>: <what>".
absl::Status malformed(const Format& format, const std::string& what);

}  // namespace orla::codec
